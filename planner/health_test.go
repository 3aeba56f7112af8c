package planner

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/ocs"
	"ringlight/planner/fabric"
	"ringlight/planner/health"
	"ringlight/proto"
	"ringlight/proto/metric"
)

// made is a state of a fabric that is made on purpose: 18 nodes in two rings of 8, and two
// spares, unless said.
type made struct {
	name   string
	begin  func(w *fleet)
	health proto.HealthState
	causes string // ids of the alarms that follow from no other
	says   string // in the cause or text of the first
	fabric fabric.Params
}

func (w *fleet) raises(id proto.NodeID, kind proto.EventKind, s proto.Severity, text string) {
	w.nodes[id].alarms = []proto.Alarm{{Kind: kind, Severity: s, Bundle: 1, SinceMicros: 5, Text: text}}
	w.report(&w.nodes[id])
}

// telemetry of a node three times, ten seconds apart; with a board that answered before
// the first of them, or to each.
func (w *fleet) telemetry(id proto.NodeID, answers bool, late ...uint32) {
	for i := range 4 {
		m := proto.Health{Version: proto.Version, Node: id, Session: w.nodes[id].session, Seq: uint64(i + 1), LateMillis: append(late, 0, 0, 0, 0)[i], Samples: []proto.Sample{{Sensor: proto.SensorCase, Value: 313_150, AgeMillis: 5}}}
		if !answers {
			m.Samples[0].AgeMillis += uint32(i * 10_000)
		}
		w.hear(w.topics.Health(id), proto.TopicHealth, &m)
		w.run(10 * time.Second)
	}
}

// losesReports: so many nodes say twice that they sent a report that did not come.
func (w *fleet) losesReports(n int) {
	for seq := range uint64(2) {
		for id := proto.NodeID(4); int(id) < 4+n; id++ {
			w.hear(w.topics.Health(id), proto.TopicHealth, &proto.Health{Version: proto.Version, Node: id, Session: w.nodes[id].session, Seq: seq + 1, Reported: 1000})
		}
		w.run(2 * time.Second)
	}
}

// echoes: the broker gives the planner's next signs of life back to it, each after so long.
func (w *fleet) echoes(after time.Duration, n int) {
	for range n {
		seq := w.p.pulse.beat + 1
		for w.p.pulse.beat < seq {
			w.run(100 * time.Millisecond)
		}
		w.run(after)
		w.hear(w.topics.Planner(), proto.TopicPlanner, &proto.PlannerState{Version: proto.Version, PeriodMillis: 2000, Planner: w.p.j.Planner, Life: w.p.j.Life, Online: true, Term: w.p.j.Term, Seq: seq})
	}
}

// anew starts the planner where other ones may be, or none of the nodes is.
func (w *fleet) anew(with func(*Config), births ...proto.NodeID) {
	clear(w.store)
	for i := range w.nodes {
		w.forget(proto.NodeID(i))
		w.nodes[i] = fakeNode{id: proto.NodeID(i), current: [2]int{-2, -2}}
	}
	w.with = with
	w.start()
	for _, id := range births {
		w.birth(id, true)
	}
	w.run(10 * time.Second)
}

func given(check, why string) func(*fleet) {
	return func(w *fleet) {
		w.p.Alarms.outside = []proto.AlarmStatus{{ID: check + "/x", Check: check, Subject: check, What: "it is so", Why: why}}
	}
}

// all are the numbers from one to another.
func all(from, to proto.NodeID) (out []proto.NodeID) {
	for ; from < to; from++ {
		out = append(out, from)
	}
	return out
}

var (
	tight = fabric.Params{Name: "f", Nodes: 8, GPUsPerNode: 4, K: 2, TP: 32}
	tiny  = fabric.Params{Name: "f", Nodes: 2, GPUsPerNode: 4, K: 2, TP: 8}
)

// Goal: a node whose bundles fail one after the other is told with the cause of the first,
// once.
func TestCauseOfTwoBundlesIsToldOnce(t *testing.T) {
	w := states[0].make(t)
	w.nodes[3].alarms = []proto.Alarm{{Kind: proto.EvIsolated, Severity: proto.SeverityCritical, SinceMicros: 9, Text: "isolated: own optics failed"},
		{Kind: proto.EvPathFailed, Severity: proto.SeverityCritical, SinceMicros: 2_000_000, Text: "no supply"},
		{Kind: proto.EvPathFailed, Severity: proto.SeverityCritical, Bundle: 1, SinceMicros: 1_000_000, Text: "no supply"}}
	w.setMode(3, proto.ModeIsolated)
	w.run(3 * time.Second)
	n := &w.nodes[3]
	r := w.reportOf(n)
	n.repSeq++
	r.Seq, r.UptimeMicros = n.repSeq, 3_500_000
	w.publish(n, w.topics.Reported(3), proto.TopicReported, r)
	w.run(time.Second)
	for _, a := range w.p.Alarms.List() {
		if a.Check == "isolated" && a.Why != "reported by the node: no supply" {
			t.Errorf("%s: %q", a.ID, a.Why)
		}
	}
	if _, found := w.p.Alarms.Health(); !slices.ContainsFunc(found, func(a proto.AlarmStatus) bool { return a.Check == "isolated" }) {
		t.Error("nobody is isolated")
	}
}

// doubt has all bundles of a node report a state.
func (w *fleet) doubt(id proto.NodeID, s proto.PortState) {
	n := &w.nodes[id]
	r := w.reportOf(n)
	n.repSeq++
	r.Seq = n.repSeq
	for b := range r.Bundles {
		r.Bundles[b].State = s
	}
	w.publish(n, w.topics.Reported(id), proto.TopicReported, r)
	w.run(time.Second)
}

// Goal: light that nobody can call good any more is counted, where a ring uses it, and the
// fabric is not well with it.
func TestUnprovenLinksAreCounted(t *testing.T) {
	w := states[0].make(t)
	member, spare := w.p.Rings.Placed.Statuses()[0].Nodes[2], w.idle()
	for _, x := range []struct {
		node   proto.NodeID
		is     proto.PortState
		want   uint32
		health proto.HealthState
	}{{spare, proto.Unproven, 0, proto.HealthOK}, {member, proto.Unproven, 2, proto.HealthDegraded}, {member, proto.Tuned, 0, proto.HealthOK}} {
		w.doubt(x.node, x.is)
		if s := w.p.Status(); s.Unproven != x.want || s.Confirmed != s.Links || s.Health != x.health {
			t.Errorf("node %d %v: %v with %d links unproven, want %v with %d; %d of %d confirmed", x.node, x.is, s.Health, s.Unproven, x.health, x.want, s.Confirmed, s.Links)
		}
	}
}

var states = []made{
	{name: "all is well", begin: func(*fleet) {}, health: proto.HealthOK},
	{"nobody is there", func(w *fleet) { w.anew(nil) }, proto.HealthFailed, "nodes/none", "no agent of this fabric has spoken", fabric.Params{}},
	{"half is there", func(w *fleet) { w.anew(nil, all(0, 9)...) }, proto.HealthDegraded, "nodes/9", "nobody has spoken for them since the planner started", fabric.Params{}},
	{"one never came", func(w *fleet) { w.anew(nil, all(0, 17)...) }, proto.HealthDegraded, "17/offline", "never heard since the planner started", fabric.Params{}},
	{"an agent is away, its light stays", func(w *fleet) { w.offline(4) }, proto.HealthDegraded, "4/offline", "its agent is not at the broker", fabric.Params{}},
	{"an agent was told to end", func(w *fleet) {
		w.nodes[4].why = "it was told to end"
		w.offline(4)
	}, proto.HealthDegraded, "4/offline", "its last word was: it was told to end", fabric.Params{}},
	{"a node lost its power", func(w *fleet) { w.die(4) }, proto.HealthDegraded, "4/dead", "nodes 3 and 5 have lost its light", fabric.Params{}},
	{"a rack lost its power", func(w *fleet) { w.die(11); w.die(12); w.die(13) }, proto.HealthDegraded, "nodes/11", "they went at one time", fabric.Params{}},
	{"all agents went", func(w *fleet) {
		for i := range w.nodes {
			w.offline(proto.NodeID(i))
		}
	}, proto.HealthFailed, "nodes/none", "the last of their agents went at", fabric.Params{}},
	{"an agent was killed, then its neighbour lost its power", func(w *fleet) { w.offline(4); w.run(10 * time.Second); w.die(5); w.run(30 * time.Second) }, proto.HealthDegraded, "5/dead, 4/offline", "node 6 has lost its light", fabric.Params{}},
	{"an agent was killed, then a fibre of its board was cut", func(w *fleet) { w.offline(4); w.run(10 * time.Second); w.cuts[pair(4, 5)] = true; w.light() }, proto.HealthDegraded, "4/unreachable", "agent is offline and node 5 has lost its light", fabric.Params{}},
	{"a spare is lost", func(w *fleet) { w.die(w.idle()) }, proto.HealthDegraded, "SPARE/offline", "its agent is not at the broker", fabric.Params{}},
	{"a ring is short", func(w *fleet) { w.die(4) }, proto.HealthDegraded, "4/dead", "have lost its light", tight},
	{"a ring has no light", func(w *fleet) { w.cuts[pair(0, 1)] = true; w.light() }, proto.HealthDegraded, "fibre-0-1", "light was lost at one end, or at both, between nodes 0 and 1", tiny},
	{"all hosts of a ring are down", func(w *fleet) {
		for i := range w.nodes {
			w.setMode(proto.NodeID(i), proto.ModeHostDown)
		}
	}, proto.HealthFailed, "0/host-down, 1/host-down", "reported by the node", tiny},
	{"a fibre is cut, a spare takes over", func(w *fleet) { w.cuts[pair(3, 4)] = true; w.light() }, proto.HealthDegraded, "fibre-3-4", "next try at", fabric.Params{}},
	{"a fibre was cut and waits to be proven", func(w *fleet) { w.cuts[pair(3, 4)] = true; w.light(); w.run(20 * time.Second) }, proto.HealthDegraded, "fibre-3-4", "tried with no ring on it, node 4: no light; the other way was not tried, as node 4 is in a ring; next try at", fabric.Params{}},
	{"a fibre comes and goes", func(w *fleet) {
		for range 3 {
			w.cuts[pair(3, 4)] = true
			w.light()
			w.run(time.Second)
			delete(w.cuts, pair(3, 4))
			w.light()
			w.run(20 * time.Second)
		}
	}, proto.HealthDegraded, "fibre-3-4/flaps", "it was lost", tight},
	{"a host is down, and says why", func(w *fleet) {
		w.nodes[3].alarms = []proto.Alarm{{Kind: proto.EvIsolated, Severity: proto.SeverityCritical, SinceMicros: 5, Text: "host_down: the host's GPUs are gone: xid 79; ocs-agent host ok ends it"}}
		w.setMode(3, proto.ModeHostDown)
	}, proto.HealthDegraded, "3/host-down", "reported by the node: the host's GPUs are gone: xid 79", fabric.Params{}},
	{"a host is down", func(w *fleet) { w.setMode(3, proto.ModeHostDown) }, proto.HealthDegraded, "3/host-down", "host", fabric.Params{}},
	{"a node's own optics failed", func(w *fleet) {
		w.nodes[3].alarms = []proto.Alarm{{Kind: proto.EvIsolated, Severity: proto.SeverityCritical, Text: "own optics"}, {Kind: proto.EvPathFailed, Severity: proto.SeverityCritical, Bundle: 0, SinceMicros: 5, Text: "its bus does not answer"}, {Kind: proto.EvPathFailed, Severity: proto.SeverityCritical, Bundle: 1, SinceMicros: 5, Text: "its bus does not answer"}}
		w.setMode(3, proto.ModeIsolated)
	}, proto.HealthDegraded, "3/isolated", "its bus does not answer", fabric.Params{}},
	{"a node at an end of its ring lost its power", func(w *fleet) { w.setMode(3, proto.ModeIsolated); w.offline(3) }, proto.HealthDegraded, "3/isolated", "it may have lost its power", fabric.Params{}},
	{"a member is drained", func(w *fleet) {
		w.later(proto.OpRequest{Noun: proto.NounDrain, Node: 3, Bundle: -1, Author: "alice", Reason: "RMA"})
	}, proto.HealthDegraded, "spares/few", "node 3 is drained by alice: RMA", fabric.Params{}},
	{"a node is in quarantine", func(w *fleet) {
		w.ask(proto.OpRequest{Noun: proto.NounQuarantine, Node: 3, Bundle: -1, Author: "alice", Reason: "lies"})
	}, proto.HealthDegraded, "3/quarantined", "quarantined by alice: lies", fabric.Params{}},
	{"a member refuses every plan", func(w *fleet) { w.nodes[2].refuse = proto.Conflict; w.die(4) }, proto.HealthDegraded, "4/dead, 2/refused-a-plan", "have lost its light", fabric.Params{}},
	{"a member says nothing", func(w *fleet) { w.nodes[2].mute = true; w.die(4); w.run(15 * time.Second) }, proto.HealthDegraded, "4/dead, 2/silent", "have lost its light", fabric.Params{}},
	{"telemetry of a member stops", func(w *fleet) { w.telemetry(4, true); w.nodes[4].offline = true; w.run(50 * time.Second) }, proto.HealthDegraded, "4/silent", "says nothing any more", fabric.Params{}},
	{"light of one is unproven", func(w *fleet) { w.doubt(4, proto.Unproven) }, proto.HealthDegraded, "links/unproven", "at an end of fibre 3-4, 4-5: not looked at", fabric.Params{}},
	{"no light has been looked at", func(w *fleet) {
		for i := range w.nodes {
			w.doubt(proto.NodeID(i), proto.Unproven)
		}
	}, proto.HealthDegraded, "links/unproven", "and more: not looked at", fabric.Params{}},
	{"a board hangs", func(w *fleet) { w.telemetry(4, false) }, proto.HealthDegraded, "4/board-silent", "has read nothing of the board since", fabric.Params{}},
	{"an agent has a tenth of a processor", func(w *fleet) { w.telemetry(4, true, 5, 5, 90, 87) }, proto.HealthDegraded, "4/agent-late", "began 87ms too late", fabric.Params{}},
	{"an agent was late at its start", func(w *fleet) { w.telemetry(4, true, 700, 5, 24, 90) }, proto.HealthOK, "", "", fabric.Params{}},
	{"a journal cannot be written", func(w *fleet) {
		w.raises(4, proto.EvJournal, proto.SeverityCritical, "no space left on device")
	}, proto.HealthDegraded, "4/1/journal-not-written", "no space left on device", fabric.Params{}},
	{"a member's board hangs", func(w *fleet) { // whoever is beside it is not passed by at once
		w.telemetry(4, false)
		o := w.p.Rings.Evidence.Outlook()
		for !o.Try(100) {
		}
		said := ""
		for i := range o.Losses {
			said += o.Losses[i].What() + ": " + o.Losses[i].Comes() + "\n"
		}
		if want := "node 3: ring 1 may be in pieces until the planner has mended it: node 4 may not move its light\nnode 5: ring 1 may"; !strings.Contains(said, want) {
			w.t.Errorf("breaks next: %s, want %s", said, want)
		}
	}, proto.HealthDegraded, "4/board-silent", "has read nothing of the board since", fabric.Params{}},
	{"an idle node's board hangs", func(w *fleet) { // a spare that cannot take part is none, and nothing counts on it
		spare := w.idle()
		before := w.p.Rings.Evidence.Outlook().Spares
		w.telemetry(spare, false)
		if after := w.p.Rings.Evidence.Outlook().Spares; before-after != 1 || int(w.p.Status().Spares) != after {
			w.t.Errorf("%d spares are counted on, %d before, %d told", after, before, w.p.Status().Spares)
		}
	}, proto.HealthDegraded, "SPARE/board-silent", "has read nothing of the board since", fabric.Params{}},
	{"a laser is dead", func(w *fleet) { w.nodes[4].weak = 580; w.light() }, proto.HealthDegraded, "4/0/light-low", "the module is too warm, or a path of it has drifted", fabric.Params{}},
	{"a path failed", func(w *fleet) { w.raises(4, proto.EvPathFailed, proto.SeverityCritical, "heater stuck") }, proto.HealthDegraded, "4/1/path-failed", "heater stuck", fabric.Params{}},
	{"a bundle of a spare failed", func(w *fleet) {
		w.raises(w.idle(), proto.EvPathFailed, proto.SeverityCritical, "its bus does not answer")
		w.run(time.Second)
		if left := w.p.Status().Spares; left != 1 {
			w.t.Errorf("%d spares are left, want 1", left)
		}
	}, proto.HealthDegraded, "SPARE/1/path-failed", "its bus does not answer", fabric.Params{}},
	{"an operator holds a side", func(w *fleet) {
		w.raises(4, proto.EvRequest, proto.SeverityWarning, "right side: forced switch of an operator")
	}, proto.HealthDegraded, "4/1/request", "forced switch", fabric.Params{}},
	{"a node is far slower than those round it", func(w *fleet) {
		slow := measured
		slow.SwitchMaxMicros = 90_000
		w.nodes[4].times = &slow
		w.birth(4, false)
	}, proto.HealthDegraded, "4/no-ring-possible", "it would slow its whole ring", fabric.Params{}},
	{"a node makes its ring too slow", func(w *fleet) {
		slow := measured
		slow.DetectMaxMicros = 700
		w.nodes[4].times = &slow
		w.birth(4, false)
		w.raises(5, proto.EvBoundNotMet, proto.SeverityWarning, "recovery takes up to 1950 us")
	}, proto.HealthDegraded, "4/slows", "it takes up to 700 us to find light, the others of its ring 150", fabric.Params{}},
	{"the nodes of a ring are all slow", func(w *fleet) {
		for id := range proto.NodeID(8) {
			w.raises(id, proto.EvBoundNotMet, proto.SeverityWarning, "recovery takes up to 1950 us")
		}
	}, proto.HealthDegraded, "ring-1/slow", "recovery takes up to 1950 us: its members say that they take up to 150 us (node 0) to find light", fabric.Params{}},
	{"all in a ring were slow", func(w *fleet) {
		w.raises(4, proto.EvBoundNotMet, proto.SeverityWarning, "recovery takes up to 1950 us")
		w.nodes[4].alarms = nil
		w.report(&w.nodes[4])
	}, proto.HealthOK, "", "", fabric.Params{}},
	{"a liar", func(w *fleet) {
		for i := range 3 {
			w.hear(w.topics.Presence(8), proto.TopicPresence, &proto.Presence{Version: 1, Node: 8, Session: w.nodes[8].session, Online: true, SeenTerm: proto.Term(i+1) * 1000})
			w.run(time.Second)
		}
	}, proto.HealthDegraded, "8/claim", "there is a planner of term", fabric.Params{}},
	{"too few nodes for both rings", func(w *fleet) { w.anew(nil, all(0, 15)...) }, proto.HealthDegraded, "nodes/15", "nobody has spoken", fabric.Params{}},
	{"a ring waits for its members", func(w *fleet) {
		for i := range w.nodes {
			w.nodes[i].loseAcks = 1000
		}
		w.ask(proto.OpRequest{Noun: proto.NounQuarantine, Node: 3, Bundle: -1, Author: "alice", Reason: "lies"})
	}, proto.HealthDegraded, "3/quarantined", "lies", fabric.Params{}},
	{"the planner lost its broker", func(w *fleet) { w.linkUp = false; w.step(Event{Kind: LinkDown}) }, proto.HealthFailed, "broker/lost", "it was lost", fabric.Params{}},
	{"the broker loses messages", func(w *fleet) { w.losesReports(3) }, proto.HealthDegraded, "broker/slow", "messages of 3 agents were lost or late within a minute, as their later ones show: 4-6", fabric.Params{}},
	{"two agents have a bad network", func(w *fleet) { w.losesReports(2) }, proto.HealthOK, "", "", fabric.Params{}},
	{"the broker gives nothing back", func(w *fleet) { w.echoes(0, 1); w.run(8 * time.Second) }, proto.HealthDegraded, "broker/slow", "none of the planner's own last", fabric.Params{}},
	{"the broker is slow", func(w *fleet) { w.echoes(2400*time.Millisecond, 5) }, proto.HealthDegraded, "broker/slow", "took long to come back from the broker, the last of them 2.5s", fabric.Params{}},
	{"the planner is late, and so is what the broker gives back", func(w *fleet) {
		w.late = 2400 * time.Millisecond
		w.echoes(w.late, 5)
		w.nodes[2].mute = true
		w.die(4)
		w.run(10 * time.Second)
	}, proto.HealthDegraded, "planner/late, 4/dead", "waited up to 2.4s for it", fabric.Params{}},
	{"the planner stood still", func(w *fleet) {
		w.late = 45 * time.Second
		w.run(2 * time.Second)
		w.late = 0
		w.run(5 * time.Second)
	}, proto.HealthDegraded, "planner/stood-still", "for 45s, until", fabric.Params{}},
	{"the planner stood still, and messages of that time are lost", func(w *fleet) {
		w.late = 45 * time.Second
		w.run(2 * time.Second)
		w.late = 0
		w.run(5 * time.Second)
		w.losesReports(3)
	}, proto.HealthDegraded, "planner/stood-still", "for 45s, until", fabric.Params{}},
	{"the planner stood still some time ago", func(w *fleet) {
		w.late = 45 * time.Second
		w.run(2 * time.Second)
		w.late = 0
		w.run(stoodTold)
	}, proto.HealthOK, "", "", fabric.Params{}},
	{"an agent's process ended", func(w *fleet) { w.telemetry(4, true); w.offline(4) }, proto.HealthDegraded, "4/offline", "its connection was closed while it spoke: its process ended", fabric.Params{}},
	{"an agent went while the broker was away", func(w *fleet) {
		w.telemetry(4, true)
		w.linkUp = false
		w.step(Event{Kind: LinkDown})
		w.run(time.Minute)
		w.linkUp = true
		w.step(Event{Kind: LinkUp})
		for id := range proto.NodeID(len(w.nodes)) {
			w.birth(id, false)
		}
		w.offline(4)
		w.run(time.Second)
		for _, a := range w.p.Alarms.List() {
			if strings.Contains(a.Why, "hangs") {
				w.t.Errorf("%s: nobody could be heard", a.Why)
			}
		}
	}, proto.HealthDegraded, "4/offline", "its agent is not at the broker", fabric.Params{}},
	{"an agent hung, and the broker lost it", func(w *fleet) { w.telemetry(4, true); w.run(6 * time.Second); w.offline(4) }, proto.HealthDegraded, "4/offline", "it had said nothing for 16s: it hangs, or power or network are gone", fabric.Params{}},
	{"the planner was late", func(w *fleet) { w.late = 3 * time.Second; w.run(2 * time.Second); w.late = 0 }, proto.HealthOK, "", "", fabric.Params{}},
	{"the broker was slow twice", func(w *fleet) { w.echoes(2400*time.Millisecond, 2) }, proto.HealthOK, "", "", fabric.Params{}},
	{"the broker gives back what it is given", func(w *fleet) { w.echoes(0, 1); w.run(4 * time.Second); w.echoes(0, 1) }, proto.HealthOK, "", "", fabric.Params{}},
	{"the store takes no writes", given("store", "a write is under way since then"), proto.HealthFailed, "store/x", "a write is under way", fabric.Params{}},
	{"the disk is nearly full", given("disk", "3 MiB are free"), proto.HealthDegraded, "disk/x", "3 MiB are free", fabric.Params{}},
	{"the audit chain is damaged", given("audit", "record 7 is not there"), proto.HealthFailed, "audit/x", "record 7", fabric.Params{}},
	{"messages are not sealed", given("seal", "reported: unsealed, and not read"), proto.HealthDegraded, "seal/x", "unsealed", fabric.Params{}},
	{"a roll-out has stopped", given("rollout", "node 3 came back otherwise"), proto.HealthDegraded, "rollout/x", "node 3 came back", fabric.Params{}},
	{"the planner listens", func(w *fleet) { w.listens = true; w.start(); w.run(time.Second) }, proto.HealthNotInService, "planner/idle", "listening: nothing is planned", fabric.Params{}},
	{"another planner is in service", func(w *fleet) {
		w.listens = true
		w.start()
		s := nodeScript{t: w.t.(*testing.T), w: w}
		s.planner([]string{"9", "50", "5"})
	}, proto.HealthNotInService, "planner/idle", "is in service", fabric.Params{}},
	{"a follower", func(w *fleet) {
		w.with = func(c *Config) { c.Election, c.Follow = 5, true }
		w.start()
	}, proto.HealthNotInService, "planner/idle", "following", fabric.Params{}},
	{"a job waits", func(w *fleet) {
		w.put("t0", `{"tp":32,"rings":2}`)
		w.put("t1", `{"tp":32,"rings":2,"policy":"wait"}`)
	}, proto.HealthDegraded, "job-t1/waits", "", fabric.Params{}},
	{"the planner is started anew while one is away", func(w *fleet) { w.offline(4); w.run(5 * time.Second); w.start(); w.run(10 * time.Second) }, proto.HealthDegraded, "4/offline", "its agent is not at the broker", fabric.Params{}},
}

// idle is a spare.
func (w *fleet) idle() proto.NodeID {
	for i := range w.nodes {
		if id := proto.NodeID(i); w.status(id).Ring == 0 {
			return id
		}
	}
	w.t.Fatal("no spare")
	return 0
}

// make makes a state of a fabric that was well.
func (s *made) make(t *testing.T) *fleet {
	if s.fabric.Nodes == 0 {
		s.fabric = fabric.Params{Name: "f", Nodes: 18, GPUsPerNode: 4, K: 2, TP: 32, Spares: 2}
	}
	w := started(t, s.fabric)
	w.run(2 * time.Second)
	if is, found := w.p.Alarms.Health(); is != proto.HealthOK {
		t.Fatalf("before: %v %v", is, found)
	}
	if s.fabric.Spares > 0 {
		s.causes = strings.ReplaceAll(s.causes, "SPARE", fmt.Sprint(w.idle()))
	}
	s.begin(w)
	w.run(1600 * time.Millisecond)
	return w
}

// Goal: however a fabric is, all who say how it is say the same, nobody says that it is
// well when it is not, and each alarm has its cause and what to do.
// Method: more than forty states made on purpose; status, alarms, metrics, readiness and why of
// each.
func TestHowAFabricIs(t *testing.T) {
	for _, s := range states {
		t.Run(s.name, func(t *testing.T) {
			w := s.make(t)
			is, found := w.p.Alarms.Health()
			if causes := agree(t, w.p, is, found); is != s.health || causes != s.causes {
				t.Errorf("%v by %q, want %v by %q", is, causes, s.health, s.causes)
			}
			if s.causes != "" && len(found) > 0 && !strings.Contains(found[0].What+": "+found[0].Why, s.says) {
				t.Errorf("%s: %s, want %q", found[0].What, found[0].Why, s.says)
			}
			for i := range found {
				t.Logf("%v %s [%s] since %d, under %q: %s: %s; to do: %s", found[i].State, found[i].ID, found[i].Check, found[i].SinceMillis, found[i].Under, found[i].What, found[i].Why, found[i].Remedy)
			}
		})
	}
}

// agree finds whether all say the same, and gives the causes.
func agree(t testing.TB, p *Planner, is proto.HealthState, found []proto.AlarmStatus) string {
	t.Helper()
	var causes []string
	for i := range found {
		a := &found[i]
		if a.Under == "" {
			causes = append(causes, a.ID)
		}
		check := slices.IndexFunc(health.Checks, func(c health.Check) bool { return c.Name == a.Check })
		if check < 0 || a.Why == "" && a.Check != "jobs" || a.Remedy == "" || strings.Contains(a.Remedy, "SUBJECT") || a.Subject == "" || a.State == proto.HealthOK {
			t.Errorf("an alarm without check, cause, remedy or subject: %+v", a)
		}
	}
	if (is == proto.HealthOK) != (len(found) == 0) {
		t.Errorf("%v with %d alarms", is, len(found))
	}
	if s := p.Status(); s.Health != is || int(s.Alarms) != len(causes) {
		t.Errorf("status says %v with %d alarms, want %v with %d", s.Health, s.Alarms, is, len(causes))
	}
	var page metric.Page
	metric.AppendAll(&page, Measures, CensusOf(p))
	if want := fmt.Sprintf("ringlight_health{state=%q} 1\n", is); !strings.Contains(string(page.Text), want) {
		t.Errorf("metrics have no %s", want)
	}
	for i := range found {
		if none := fmt.Sprintf("ringlight_check{check=%q} 0\n", found[i].Check); strings.Contains(string(page.Text), none) {
			t.Errorf("metrics have %s", none)
		}
	}
	_, why := p.Alarms.NotReady(p.state != following)
	self := slices.ContainsFunc(found, func(a proto.AlarmStatus) bool {
		return a.Check == "store" || a.Check == "broker" || a.ID == "nodes/none" || a.Check == "planner" && p.state != following
	})
	if self != (why != "") {
		t.Errorf("ready: %q", why)
	}
	for i := range found {
		a := &found[i]
		if a.Node == nil {
			continue
		}
		if lines := p.Alarms.about(*a.Node); !slices.ContainsFunc(lines, func(l proto.WhyLine) bool { return strings.Contains(l.Text, a.What) }) {
			t.Errorf("why %d does not say %q", *a.Node, a.What)
		}
	}
	return strings.Join(causes, ", ")
}

// Goal: of circuits, too, all say the same, in the words in which they are listed.
// Method: a mirror that does not come up, a box without meters, a switch whose agent is away.
func TestHowCircuitsAre(t *testing.T) {
	for _, c := range []struct {
		name, causes string
		begin        func(w *coreWorld)
	}{
		{"a mirror does not come up", "circuits/not-tuned", func(w *coreWorld) { w.switches[0].broken[[2]uint16{0, 1}] = true; w.apply(spec(1, 4, 4, 1)) }},
		{"a box has no power meters", "circuits/unproven", func(w *coreWorld) { w.switches[0].blind = true; w.apply(spec(1, 4, 4, 1)) }},
		{"a switch is away", "switch-0/offline", func(w *coreWorld) { w.apply(spec(1, 4, 4, 1)); w.run(5 * time.Second); w.die(0) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			core := smallCore()
			core.LeavesPerPod, core.SpinesPerPod, core.SpinePorts, core.ServersPerLeaf = 1, 1, 2, 2
			w := startedWorld(t, core)
			c.begin(w)
			w.run(5 * time.Second)
			is, found := w.p.Alarms.Health()
			if causes := agree(t, w.p, is, found); is != proto.HealthDegraded || causes != c.causes {
				t.Errorf("%v by %q: %s", is, causes, w.show())
			}
		})
	}
}

// fibres are those that are not as a description has them, as "fibre state ring".
func (w *fleet) fibres() (out []string, all int) {
	for page := uint64(0); ; {
		r := w.ask(proto.OpRequest{Noun: proto.NounLinks, Bundle: -1, Page: page})
		for _, l := range r.Links {
			all++
			if l.State != proto.FibreIdle && l.State != proto.FibreLit {
				out = append(out, fmt.Sprintf("%s %v %d since %v next %v", l.Fibre, l.State, l.Ring, l.SinceMillis != 0, l.NextMillis != 0))
			}
		}
		if page = r.Next; page == 0 {
			return out, all
		}
	}
}

// Goal: every fibre is listed once with its state; one that is cut is dark and has a
// next try, later each time, and is well when light proves it, though no ring needs it.
// Method: a cut between two members, time, and its mending; 150 nodes have more than a
// page.
func TestFibresAreListed(t *testing.T) {
	if got, all := small(t, 150, 2, 32, 6).fibres(); len(got) > 0 || all != 297 {
		t.Errorf("%v of %d", got, all)
	}
	w := small(t, 18, 2, 32, 2)
	step := func(what, want string) {
		t.Helper()
		if got, _ := w.fibres(); strings.Join(got, ", ") != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	w.cuts[pair(3, 4)] = true
	w.light()
	w.run(time.Second)
	step("cut, and a spare is in reach", "3-4 dark 0 since true next true")
	w.run(5 * time.Second)
	step("it was tried", "3-4 dark 0 since true next true")
	delete(w.cuts, pair(3, 4))
	w.run(10 * time.Second)
	step("mended", "")
	if got := w.alarms(); strings.Contains(got, "fibre") {
		t.Errorf("alarms %s", got)
	}
}

// Goal: a fibre that is held to be cut is tried without the ring that lacks it: the ring
// keeps its plan for as long as the fibre is dark, and is whole soon after it is mended.
// Method: eight nodes in one ring, a cut in its middle, minutes, and its mending.
func TestDoubtedFibreIsTriedWithoutItsRing(t *testing.T) {
	w := started(t, tight)
	w.run(2 * time.Second)
	w.cuts[pair(3, 4)] = true
	w.light()
	w.run(time.Second)
	gen, short := w.p.Rings.Table.Numbers.Gen, w.p.Rings.Placed.Statuses()[0]
	if len(short.Nodes) != 7 || short.LinksConfirmed != 6 {
		t.Fatalf("%+v", short)
	}
	w.run(3 * time.Minute)
	if now := w.p.Rings.Table.Numbers.Gen; now != gen {
		t.Errorf("generation %d, was %d", now, gen)
	}
	if a, b := w.nodes[3].tried, w.nodes[4].tried; min(a, b) < 4 || max(a, b) > 16 || max(a, b) != 2*min(a, b) { // who lights it puts its path back
		t.Errorf("tried %d and %d times", a, b)
	}
	delete(w.cuts, pair(3, 4))
	w.run(2*time.Minute + 5*time.Second)
	if r := w.p.Rings.Placed.Statuses()[0]; len(r.Nodes) != 8 || r.State != proto.RingInService {
		t.Errorf("%+v", r)
	}
}

// Goal: each cause of failed optics has its own remedy, and one that nobody knows has the
// check's. Method: the texts that agents say, of a path and of a node that is out for it.
func TestEachCauseHasItsRemedy(t *testing.T) {
	seen := map[string]bool{}
	for _, said := range []string{"module 3: case at 96.2 degrees, 95 at most: " + ocs.ErrTooHot.Error(), "module 1: light on the wrong side is 9.1 dB below that of loopback, wanted 25",
		"own light is 3.40 dB below its calibration", "its bus or chips do not answer: address not acknowledged", "tap dark"} {
		w := started(t, fabric.Params{Name: "f", Nodes: 18, GPUsPerNode: 4, K: 2, TP: 32, Spares: 2})
		w.run(2 * time.Second)
		w.raises(4, proto.EvPathFailed, proto.SeverityCritical, said)
		w.setMode(4, proto.ModeIsolated)
		w.run(1600 * time.Millisecond)
		_, found := w.p.Alarms.Health()
		if found[0].ID != "4/isolated" || seen[found[0].Remedy] || !strings.Contains(found[0].Why, said) || found[0].SinceMillis == 0 {
			t.Errorf("%s: %+v", said, found[0])
		}
		seen[found[0].Remedy] = true
		if strings.HasSuffix(said, "below its calibration") && !strings.Contains(found[0].Remedy, "too warm") { // a temperature is read later than light
			t.Errorf("%s: only %s", said, found[0].Remedy)
		}
	}
}
