package planner

import (
	"strconv"
	"strings"
	"time"

	"ringlight/planner/hbd"
	"ringlight/planner/health"
	"ringlight/planner/member"
	"ringlight/proto"
	"ringlight/proto/metric"
)

// Census is what the planner's measures say, taken between two steps. It is a
// copy: whoever has it may write it out while the planner goes on.
type Census struct {
	hbd.Census
	Overview        Overview
	State           string
	Leader          bool
	Nodes, Switches member.Counts
	Affecting       int64                              // alarms that are service-affecting
	Alarms          [proto.SeverityCritical + 1][2]int // that stand, by severity, and whether someone acknowledged them
	Health          proto.HealthState
	Found           []proto.AlarmStatus // by the checks
	Core            proto.CoreStatus    // without a core it is empty
	CoreCommits     metric.Tally
	CoreAborts      uint64
	HasCore         bool
	Rollout         proto.RolloutState
	RolloutHalted   bool          // for a node that came back otherwise
	RolloutWaits    time.Duration // for a node that may not start now
}

// CensusOf counts.
func CensusOf(p *Planner) *Census {
	c := &Census{Census: hbd.Count(p.Rings), State: p.state.String(), Leader: p.state == serving || p.state == gathering,
		Nodes: p.Rings.Table.Count(p.pulse.linkSince)}
	c.Overview = Overview{Totals: hbd.Totals{Generation: p.Rings.Table.Numbers.Gen}, Term: p.j.Term, EventsSeen: p.j.Seen(),
		Refused: p.inbox.refused, UnknownKeys: p.inbox.unknown, Shed: p.inbox.shed}
	c.Health, c.Found = p.Alarms.Health()
	for _, a := range c.Found {
		c.Leader = c.Leader && a.Check != "store"
		if a.Under != "" {
			continue
		}
		c.Alarms[min(a.Severity, proto.SeverityCritical)][metric.One(a.AckMillis != 0)]++
		c.Affecting += metric.One(a.ServiceAffecting)
	}
	for _, t := range p.tables() {
		c.Overview.EventGaps += t.Gaps()
		c.Overview.Refused += t.Numbers.Refused()
	}
	c.Rollout = p.Rollout.State
	halted, _, _ := p.Rollout.Halted()
	c.RolloutHalted = halted != ""
	c.RolloutWaits, _ = p.Rollout.Stuck()
	if p.Core != nil {
		c.HasCore, c.Core, c.Switches = true, p.Core.Status(), p.Core.Table.Count(p.pulse.linkSince)
		c.CoreCommits, c.CoreAborts = p.Core.Stages.Txn.Took.Clone(), p.Core.Stages.Txn.Aborts
	}
	return c
}

// NodesOf appends every node as its measures have it.
func NodesOf(p *Planner, out []hbd.NodeCensus) []hbd.NodeCensus {
	return hbd.CountNodes(p.Rings, out, p.pulse.linkSince)
}

type (
	family     = metric.Family
	measure    = metric.Measure[*Census]
	ofNodes    = metric.Measure[[]hbd.NodeCensus]
	page       = metric.Page
	nodeCensus = hbd.NodeCensus
)

// single is a measure of one number without labels.
func single(name string, kind metric.Kind, help string, value func(*Census) int64) measure {
	return metric.Of(family{Name: name, Kind: kind, Help: help}, func(c *Census, p *page) { p.Is(value(c)) })
}

// Measures are those of the planner and its fabric.
var Measures = []measure{
	metric.Of(family{Name: "ringlight_leader", Help: "1 while this planner is in service, 0 while it listens, stands by, or its store takes no writes."},
		func(c *Census, p *page) { p.Bool(c.Leader) }),
	metric.Of(family{Name: "ringlight_planner_state", Help: "1 for the state that this planner is in.", Labels: []string{"state"}},
		func(c *Census, p *page) {
			for _, s := range stateNames {
				p.Word(s).Bool(s == c.State)
			}
		}),
	metric.Of(family{Name: "ringlight_health", Help: "1 for how the fabric is, as ocsctl status has it.", Labels: []string{"state"}},
		func(c *Census, p *page) {
			for s := proto.HealthOK; s <= proto.HealthNotInService; s++ {
				p.Word(s.String()).Bool(s == c.Health)
			}
		}),
	metric.Of(family{Name: "ringlight_check", Help: "Findings of a check of ocsctl status, with those that follow from others. 0: none.", Labels: []string{"check"}},
		func(c *Census, p *page) {
			found := map[string]int64{}
			for i := range c.Found {
				found[c.Found[i].Check]++
			}
			for i := range health.Checks {
				p.Word(health.Checks[i].Name).Is(found[health.Checks[i].Name])
			}
		}),
	metric.Of(family{Name: "ringlight_fibre_dark", Help: "1 for a fibre that seems cut, or is doubted since: ocsctl link list. Absent while it is well.", Labels: []string{"fibre"}},
		func(c *Census, p *page) {
			for i := range c.Found {
				if fibre, is := strings.CutPrefix(c.Found[i].Subject, "fibre "); is && c.Found[i].Check == "fibre_dark" {
					p.Word(fibre).Is(1)
				}
			}
		}),
	single("ringlight_term", metric.Gauge, "Term of this planner; it grows with each that comes into service.", func(c *Census) int64 { return int64(c.Overview.Term) }),
	single("ringlight_generation", metric.Gauge, "Last generation of rings that was given out or heard of.", func(c *Census) int64 { return int64(c.Overview.Generation) }),

	metric.Of(family{Name: "ringlight_rings", Help: "Rings by state.", Labels: []string{"state"}},
		func(c *Census, p *page) {
			for s, n := range c.Rings {
				p.Word(proto.RingState(s).String()).Is(int64(n))
			}
		}),
	single("ringlight_gpus", metric.Gauge, "GPUs of the fabric's nodes.", func(c *Census) int64 { return int64(c.GPUs) }),
	single("ringlight_gpus_wasted", metric.Gauge, "GPUs that are well and in no lit ring of full size, beyond those of the spares that are wanted.", func(c *Census) int64 { return int64(c.GPUsWasted) }),
	single("ringlight_spares", metric.Gauge, "Nodes that are well and in no ring.", func(c *Census) int64 { return int64(c.Spares) }),
	single("ringlight_links", metric.Gauge, "Links between nodes that the committed rings want lit.", func(c *Census) int64 { return int64(c.Links) }),
	single("ringlight_links_unconfirmed", metric.Gauge, "Of those, the ones that not both ends report as tuned.", func(c *Census) int64 { return int64(c.Links - c.LinksConfirmed) }),

	metric.Of(family{Name: "ringlight_devices", Help: "Nodes and circuit switches by the state of their connection.", Labels: []string{"kind", "state"}},
		func(c *Census, p *page) {
			c.devices(func(kind string, n *member.Counts) {
				for s, count := range n.States {
					p.Word(kind).Word(member.State(s).String()).Is(int64(count))
				}
			})
		}),
	single("ringlight_silent_nodes", metric.Gauge, "Silent nodes: no agent on the broker, no answer, or no telemetry for 35 s (three and a half of its periods).", func(c *Census) int64 { return int64(c.Nodes.Silent) }),
	metric.Of(family{Name: "ringlight_nodes_out", Help: "Nodes that report themselves out of service: host down, own optics failed, drained.", Labels: []string{"reason"}},
		func(c *Census, p *page) {
			p.Word("host_down").Is(int64(c.HostDown))
			p.Word("isolated").Is(int64(c.Isolated))
			p.Word("drained").Is(int64(c.Drained))
		}),
	single("ringlight_nodes_pending", metric.Gauge, "Nodes online that have not applied what is committed for them.", func(c *Census) int64 { return int64(c.Pending) }),
	single("ringlight_alarms_service_affecting", metric.Gauge, "Active alarms that take light or capacity from a ring or a job now, also through what follows from them.", func(c *Census) int64 { return c.Affecting }),
	metric.Of(family{Name: "ringlight_alarms", Help: "Active alarms: ocsctl alarm list.", Labels: []string{"severity", "acknowledged"}},
		func(c *Census, p *page) {
			for s := proto.SeverityWarning; s <= proto.SeverityCritical; s++ {
				name := strings.ToLower(s.String())
				p.Word(name).Word("no").Is(int64(c.Alarms[s][0]))
				p.Word(name).Word("yes").Is(int64(c.Alarms[s][1]))
			}
		}),

	metric.Of(family{Name: "ringlight_rollout_state", Help: "1 for the state that the roll-out of new software is in: ocsctl rollout status.", Labels: []string{"state"}},
		func(c *Census, p *page) {
			for s := proto.RolloutIdle; s <= proto.RolloutDone; s++ {
				p.Word(s.String()).Bool(s == c.Rollout)
			}
		}),
	metric.Of(family{Name: "ringlight_rollout_halted", Help: "1 while it is stopped: a node came back with a difference, or not at all."},
		func(c *Census, p *page) { p.Bool(c.RolloutHalted) }),
	metric.Of(family{Name: "ringlight_rollout_waits_seconds", Places: metric.Milli, Help: "For how long it has waited for rings with a fault. 0: it does not wait."},
		func(c *Census, p *page) { p.Is(c.RolloutWaits.Milliseconds()) }),

	metric.Of(family{Name: "ringlight_bypass_seconds", Kind: metric.Histogram, Places: metric.Micro, Labels: []string{"losses"},
		Help: "Time of one side from light lost to light confirmed on another candidate, by ring members bypassed."},
		func(c *Census, p *page) {
			for losses := 1; losses < len(c.Bypasses); losses++ {
				p.Word(strconv.Itoa(losses)).Tally(&c.Bypasses[losses])
			}
			p.Word("unknown").Tally(&c.Bypasses[0])
		}),
	metric.Of(family{Name: "ringlight_commit_seconds", Kind: metric.Histogram, Places: metric.Micro, Labels: []string{"of"},
		Help: "Time of a generation from its first prepare to the decision on disk, of rings or of circuits."},
		func(c *Census, p *page) {
			p.Word("rings").Tally(&c.Commits)
			if c.HasCore {
				p.Word("circuits").Tally(&c.CoreCommits)
			}
		}),
	metric.Of(family{Name: "ringlight_generations_aborted_total", Kind: metric.Counter, Labels: []string{"of"}, Help: "Generations given up before a decision: somebody refused, was late or went."},
		func(c *Census, p *page) {
			p.Word("rings").Is(int64(c.Aborts))
			if c.HasCore {
				p.Word("circuits").Is(int64(c.CoreAborts))
			}
		}),

	single("ringlight_events_total", metric.Counter, "Events taken from nodes and switches, each once and in order.", func(c *Census) int64 { return int64(c.Overview.EventsSeen) }),
	single("ringlight_events_lost_total", metric.Counter, "Events that never came and were given up.", func(c *Census) int64 { return int64(c.Overview.EventGaps) }),
	single("ringlight_messages_refused_total", metric.Counter, "Messages to the planner that were not acceptable or not believed.", func(c *Census) int64 { return int64(c.Overview.Refused) }),
	single("ringlight_messages_shed_total", metric.Counter, "Messages to the planner that nobody read: too long, or too many on one topic.", func(c *Census) int64 { return int64(c.Overview.Shed) }),
	single("ringlight_unknown_keys_total", metric.Counter, "Keys skipped in messages of a later minor version.", func(c *Census) int64 { return int64(c.Overview.UnknownKeys) }),

	metric.Of(family{Name: "ringlight_jobs", Help: "Jobs of the core: with servers, and all. Only with a core.", Labels: []string{"state"}},
		func(c *Census, p *page) {
			if c.HasCore {
				p.Word("placed").Is(int64(c.Core.Placed))
				p.Word("waiting").Is(int64(c.Core.Jobs) - int64(c.Core.Placed))
			}
		}),
	metric.Of(family{Name: "ringlight_circuits", Help: "Circuits that are wanted, by whether light proves them. Only with a core.", Labels: []string{"state"}},
		func(c *Census, p *page) {
			if c.HasCore {
				p.Word("tuned").Is(int64(c.Core.Tuned))
				p.Word("not_tuned").Is(int64(c.Core.Circuits) - int64(c.Core.Tuned))
			}
		}),
}

func (c *Census) devices(f func(kind string, n *member.Counts)) {
	f("node", &c.Nodes)
	if c.HasCore {
		f("switch", &c.Switches)
	}
}

// perNode is a measure with one sample a node.
func perNode(name string, kind metric.Kind, help string, value func(*nodeCensus) int64) ofNodes {
	return metric.Of(family{Name: name, Kind: kind, Help: help, Labels: []string{"node"}}, func(nodes []nodeCensus, p *page) {
		for i := range nodes {
			p.Number(int64(nodes[i].Node)).Is(value(&nodes[i]))
		}
	})
}

// NodeMeasures are those of single nodes.
var NodeMeasures = []ofNodes{
	perNode("ringlight_node_online", metric.Gauge, "1 while the broker knows an agent of the node.", func(n *nodeCensus) int64 { return metric.One(n.Online) }),
	perNode("ringlight_node_usable", metric.Gauge, "1 while the node may carry a ring.", func(n *nodeCensus) int64 { return metric.One(n.Usable) }),
	perNode("ringlight_node_silent", metric.Gauge, "1 while the node counts among ringlight_silent_nodes and no operator keeps it out.", func(n *nodeCensus) int64 { return metric.One(n.Silent) }),
	perNode("ringlight_node_ring", metric.Gauge, "Number of the node's ring, 0: none.", func(n *nodeCensus) int64 { return int64(n.Ring) }),
	perNode("ringlight_node_sides_bypassed", metric.Gauge, "Sides of the node that work on another candidate than planned.", func(n *nodeCensus) int64 { return int64(n.Bypassed) }),
	perNode("ringlight_node_alarms", metric.Gauge, "Standing alarms of the node, as it reported last.", func(n *nodeCensus) int64 { return int64(n.Alarms) }),
	metric.Of(family{Name: "ringlight_margin_decibels", Places: metric.Milli, Labels: []string{"node", "bundle"},
		Help: "Light that a bundle may still lose until its path counts as not there; worst module. Absent while not measured."},
		func(nodes []nodeCensus, p *page) {
			for i := range nodes {
				for b := range nodes[i].Margins {
					if nodes[i].Known&(1<<b) != 0 {
						p.Number(int64(nodes[i].Node)).Number(int64(b)).Is(int64(nodes[i].Margins[b]))
					}
				}
			}
		}),
	perNode("ringlight_node_flaps_total", metric.Counter, "Losses of selected light that the node's bundles count, over all lives.", func(n *nodeCensus) int64 { return int64(n.Flaps) }),
	perNode("ringlight_node_bypasses_total", metric.Counter, "Moves of a side that the node counts, over all lives.", func(n *nodeCensus) int64 { return int64(n.Bypasses) }),
	perNode("ringlight_node_messages_refused_total", metric.Counter, "Messages that the node refused, over all lives.", func(n *nodeCensus) int64 { return int64(n.Refused) }),
	metric.Of(family{Name: "ringlight_node_case_celsius", Places: metric.Milli, Labels: []string{"node"}, Help: "Case temperature of the warmest module; at 75 its bundle is taken out of use."},
		func(nodes []nodeCensus, p *page) {
			for i := range nodes {
				if t := nodes[i].CaseMillikelvin; t != 0 {
					p.Number(int64(nodes[i].Node)).Is(int64(t) - 273_150)
				}
			}
		}),
}
