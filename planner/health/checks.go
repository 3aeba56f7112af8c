package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"ringlight/proto"
)

// Check is a row of the table.
type Check struct {
	Name   string
	Looks  string            // what it looks at: what holds while it finds nothing
	State  proto.HealthState // of the fabric at least, while it finds something
	Remedy string            // SUBJECT is the node, ring, fibre or bundle

	grave bool // a finding is critical, of whatever one device it is
	find  func(*Facts, func(finding))
}

// finding is what a check found.
type finding struct {
	id, subject string
	text, cause string
	since       uint64
	node, peer  *proto.NodeID
	ring        proto.RingID
	severity    proto.Severity    // said by a device; 0: the check's
	state       proto.HealthState // where it is worse than the check's
	remedy      string            // said by whoever found it; "": the check's
	takes       bool              // light or capacity from a ring or a job now
}

// Checks is the table. What stands above may be the cause of what stands below it.
var Checks = []Check{
	{"planner", "a planner is in service", proto.HealthNotInService, "ocsctl status says for what it waits; systemctl status ocs-planner", true, fact("planner/idle", "nobody plans", func(x *Facts) finding { return finding{cause: x.Idle, remedy: x.Remedy} })},
	{"broker", "the planner reaches the broker", proto.HealthFailed, "look at the broker's host, its log and its disk; then at the network", true, fact("broker/lost", "the planner has no connection to the broker", func(x *Facts) finding { return finding{cause: x.Broker} })},
	{"broker_slow", "messages come, and in time", proto.HealthDegraded, "ocs-sim broker-check; mosquitto: max_queued_messages, max_inflight_messages; load of the broker's host; the network", true, fact("broker/slow", "the broker loses messages, or is slow", func(x *Facts) finding { return finding{cause: x.Loses, since: x.Lost} })},
	{"planner_late", "the planner has the processor and the disk that it needs", proto.HealthDegraded, "load of the planner's host and its disk; its share of them: CPUQuota, cgroups", true, func(x *Facts, tell func(finding)) {
		switch f := (finding{id: "planner/late", subject: "planner", text: "the planner works late", since: x.LateSince}); {
		case x.Late != 0:
			f.cause = fmt.Sprintf("what it has to do, or was told, waited up to %v for it: its host or its disk is slow, not the broker or the agents", x.Late.Round(100*time.Millisecond))
			tell(f)
		case x.Stood != 0:
			until := time.UnixMilli(int64(x.StoodUntil)).UTC().Format(time.TimeOnly)
			tell(finding{id: "planner/stood-still", subject: "planner", text: "the planner stood still", since: x.StoodUntil - min(x.StoodUntil, uint64(x.Stood.Milliseconds())), severity: proto.SeverityWarning,
				cause: fmt.Sprintf("for %v, until %s: nothing was planned meanwhile, and who is told as lost then may only have been away from a broker in the same process", x.Stood.Round(time.Second), until)})
		}
	}},
	{"store", "the store takes writes", proto.HealthFailed, "look at the disk or the cluster of the store: full, worn out, away", true, given("store")},
	{"disk", "the store's disk has room", proto.HealthDegraded, "make room, or move the store: -state", false, given("disk")},
	{"audit", "the audit chain is as it was written", proto.HealthFailed, "ocsctl audit verify; compare with a copy", true, given("audit")},
	{"seal", "messages are sealed as they must be", proto.HealthDegraded, "ocsctl seal check", false, given("seal")},
	{"rollout", "a roll-out goes on", proto.HealthDegraded, "ocsctl rollout status", true, given("rollout")},
	{"nodes", "somebody speaks for the nodes", proto.HealthFailed, "start the agents; 'ocs-agent status' on one of them names its broker and its fabric", true, nobody},

	{"claim", "no device claims a number that it was not given", proto.HealthDegraded, "ocsctl quarantine SUBJECT -reason TEXT; look who has its key", true,
		device(func(d *Device, f *finding) bool {
			f.id, f.text, f.cause = "claim", "claims a number that the planner did not give", d.Claims
			return d.Claims != ""
		})},
	out("disputed", "each number has one agent", "ocs-agent status on each host has its session; stop the one that does not belong there, then: ocsctl clear SUBJECT", true),
	out("not believed", "what devices say fits what they were given", "ocsctl why SUBJECT; ocsctl quarantine SUBJECT -reason TEXT keeps it out", true),
	out("dead", "no node has lost its light to both sides", "look at the power and the board of node SUBJECT", true),
	out("unreachable", "no ring goes round an agent that is away", "look at its host: power, network, systemctl status ocs-agent; one that runs and hangs: systemctl restart ocs-agent, which changes no light", false),
	out("offline", "every device has an agent on the broker", "look at its host: power, network, systemctl status ocs-agent; one that runs and hangs: systemctl restart ocs-agent, which changes no light", false),
	out("silent", "every agent answers", "on its host: ocs-agent status; if that hangs: systemctl restart ocs-agent, which changes no light", false),
	out("isolated", "no node has failed by its own word", "ocsctl why SUBJECT; power and bus of its board; then: ocs-agent calibrate", true),
	out("host down", "every host has its GPUs", "mend its GPUs, then there: ocs-agent host ok", false),
	out("quarantined", "no node is in quarantine", "ocsctl quarantine SUBJECT -lift ends it", false),
	out("stepped over", "every member can be told where it stands", "on its host: ocs-agent status; it is let in again when it answers", false),
	out("refused a plan", "no device refuses a plan", "ocsctl why SUBJECT; it is asked again by itself", false),
	out("does not follow", "who prepares a plan follows it", "ocsctl why SUBJECT; on its host: systemctl restart ocs-agent, which changes no light", false),
	out("no ring possible", "what nodes measured of their optics lets rings work", "on its host: ocs-agent calibrate", false),
	{"slow", "no node slows its ring", proto.HealthDegraded, "on its host: ocs-agent calibrate, or another board; ocsctl quarantine SUBJECT -reason TEXT keeps it out", false,
		func(x *Facts, tell func(finding)) {
			told := map[string]bool{}
			for i := range x.Devices {
				d := &x.Devices[i]
				if d.Slow == nil {
					continue
				}
				f := finding{id: place(d.Slow.ID) + "/slows", subject: subjectOf(d.Slow.ID), node: &d.Slow.ID, ring: d.Ring, text: "slows its ring", cause: d.Slow.Text}
				if d.Slow.All {
					f = finding{id: fmt.Sprintf("ring-%d/slow", d.Ring), subject: fmt.Sprintf("ring %d", d.Ring), ring: d.Ring, text: fmt.Sprintf("ring %d may take longer than 1 ms to recover", d.Ring), cause: d.Slow.Text,
						remedy: "on the hosts, while they are quiet: ocs-agent calibrate; boards as processes are never quicker"}
				}
				if !told[f.id] {
					told[f.id] = true
					tell(f)
				}
			}
		}},
	{"board_silent", "every board answers its agent", proto.HealthDegraded, "on its host: ocs-agent status; then reset the board, or restart the agent", false,
		device(func(d *Device, f *finding) bool {
			f.id, f.text, f.since = "board-silent", "its board does not answer", d.Board
			f.cause = "its agent speaks, and has read nothing of the board since; what it says of its light is from before"
			return d.Board != 0
		})},
	{"agent_late", "every agent has the processor that it needs", proto.HealthDegraded, "load of its host; the agent's share of it: real-time priority, CPUQuota, cgroups", false,
		device(func(d *Device, f *finding) bool {
			f.id, f.text, f.since = "agent-late", "its agent works late", 0
			f.cause = fmt.Sprintf("what it has to do began %v too late again and again: it has too little of a processor, and goes round a fault so much later", d.Late)
			return d.Late != 0
		})},
	{"took_no_plan", "devices take the plans they are given", proto.HealthDegraded, "ocsctl why SUBJECT; it is asked again by itself", false,
		device(func(d *Device, f *finding) bool {
			f.id, f.text, f.cause = "took-no-plan", "took no plan", d.Lately
			return d.What == "" && d.Lately != ""
		})},
	{"path_failed", "every path that is tried works", proto.HealthDegraded, "ocsctl why SUBJECT; its module, bus or fibre", true, said(func(k proto.EventKind) bool { return k == proto.EvPathFailed })},
	{"journal", "agents can write their journals", proto.HealthDegraded, "make room on its disk, or mend that; the agent tries again by itself", true, said(func(k proto.EventKind) bool { return k == proto.EvJournal })},
	{"device", "no device has another alarm of its own", proto.HealthDegraded, "ocsctl why SUBJECT", false, said(func(k proto.EventKind) bool {
		return k != proto.EvPathFailed && k != proto.EvJournal && k != proto.EvBoundNotMet
	})},
	{"light_low", "bundles have the light of their calibration", proto.HealthDegraded, "ocsctl why SUBJECT has the temperatures; cool, clean, calibrate or change the module", false, low},
	{"fibre_dark", "no fibre is held to be cut", proto.HealthDegraded, "clean or change the fibre; then: ocsctl link clear SUBJECT", false, fibres(func(x *Fibre) bool { return x.State != proto.FibreLit })},
	{"fibre_flapping", "no fibre comes and goes", proto.HealthDegraded, "clean both ends of the fibre, or change it", false, fibres(func(x *Fibre) bool { return x.State == proto.FibreLit })},
	ringsThat(proto.RingDown, "ring_down", "every ring has light", proto.HealthFailed, true),
	ringsThat(proto.RingDegraded, "ring_degraded", "every ring is closed with all its GPUs", proto.HealthDegraded, false),
	ringsThat(proto.RingForming, "ring_forming", "every ring has light on all its links", proto.HealthDegraded, false),
	{"rings_missing", "all rings are there that are wanted", proto.HealthDegraded, "ocsctl node list: bring back what is out, or ask for fewer rings", false, missing},
	{"spares", "as many spares are well as are wanted", proto.HealthDegraded, "bring back a node that is out: ocsctl node list", false, spares},
	{"light_unproven", "light that carries traffic has been looked at", proto.HealthDegraded, "agents look by themselves within two minutes of a start or a switch; if it stays: 'ocsctl why NODE' has the reason; 'lock' of its agent", false, unproven},
	{"circuits", "every circuit that is wanted is tuned", proto.HealthDegraded, "ocsctl circuit list has the state of each", false,
		func(x *Facts, tell func(finding)) {
			if n := x.Circuits - x.CircuitsTuned; n > 0 {
				tell(finding{id: "circuits/not-tuned", subject: "circuits", takes: true, text: fmt.Sprintf("%d of %s not tuned", n, proto.Count(x.Circuits, "circuit")), cause: "no light proves that they are there"})
			}
		}},
	{"routes", "routers hold the routes of jobs, and of no others, and drain ports whose light will move", proto.HealthDegraded, "look at SUBJECT, and that ocsctl routes push or drain runs; ocsctl routes list", false,
		func(x *Facts, tell func(finding)) {
			for _, r := range x.Routes {
				if r.Port != "" {
					text := map[bool]string{false: "has not drained " + r.Port, true: "may not use " + r.Port + " again"}[r.Over]
					tell(finding{id: r.Router + "/drain-" + r.Port, takes: r.Over, subject: r.Router, text: text, cause: cmp.Or(r.Says, "nobody has confirmed it"), since: r.Since})
					continue
				}
				text := "does not hold the routes of job " + r.Job
				if r.Over {
					text = "may still hold the routes of job " + r.Job
				}
				tell(finding{id: r.Router + "/routes-" + r.Job, takes: !r.Over, subject: r.Router, text: text, cause: cmp.Or(r.Says, "nobody has confirmed it"), since: r.Since})
			}
		}},
	{"jobs", "no job waits", proto.HealthDegraded, "ocsctl job show SUBJECT; ocsctl circuit jobs", false,
		func(x *Facts, tell func(finding)) {
			for _, j := range x.Jobs {
				tell(finding{id: "job-" + j.Name + "/waits", takes: true, subject: "job " + j.Name, text: fmt.Sprintf("job %s waits", j.Name), cause: j.Cause, since: j.Since})
			}
		}},
}

// remedyOf is what helps a device, by what its agent says of what failed and why; "": it says no more.
func remedyOf(cause string) string {
	for _, r := range [...][2]string{
		{"too warm", "it is too warm: air flow, fans, the heat sink of the module; it is tried again by itself once it is cool"},
		{"on the wrong side", "its light is switched badly, a heater or its supply: on its host ocs-agent calibrate; if that fails, another module"},
		{"below its calibration", "a laser, its connector, a heater, or a module that is too warm, which ocsctl why has 10 s later: clean it, or change the module; then on its host: ocs-agent calibrate"},
		{"not answer", "power and bus of its board; it is read again by itself"},
		{"out of reach", "power and bus of its board; then on its host: systemctl start ocs-agent, if systemd has not"},
		{"told to end", "if it is to run, on its host: systemctl start ocs-agent"},
		{"its process ended", "on its host: journalctl -u ocs-agent says why; systemctl start ocs-agent, which changes no light"},
		{"it hangs, or", "its host, if that is there: ocs-agent status; an agent that hangs: systemctl restart ocs-agent, which changes no light; else power and network"},
		{"file too large", "a limit of its process, not the disk: LimitFSIZE= of its unit, ulimit -f; the agent tries again by itself"},
	} {
		if strings.Contains(cause, r[0]) {
			return r[1]
		}
	}
	return ""
}

// fact makes a check with one finding at most: it stands while of names a cause.
func fact(id, text string, of func(*Facts) finding) func(*Facts, func(finding)) {
	return func(x *Facts, tell func(finding)) {
		if f := of(x); f.cause != "" {
			f.id, f.text = id, text
			f.subject, _, _ = strings.Cut(id, "/")
			tell(f)
		}
	}
}

// given are what others found under the name of a check.
func given(name string) func(*Facts, func(finding)) {
	return func(x *Facts, tell func(finding)) {
		for i := range x.Given {
			if a := &x.Given[i]; a.Check == name {
				tell(finding{id: a.ID, subject: a.Subject, text: a.What, cause: a.Why, since: a.SinceMillis, node: a.Node, severity: a.Severity})
			}
		}
	}
}

func nobody(x *Facts, tell func(finding)) {
	if !x.Judged || x.Nodes == 0 || x.Heard > 0 {
		return
	}
	last, cause := uint64(0), "no agent of this fabric has spoken since the planner came to the broker"
	for i := range x.Devices {
		last = max(last, x.Devices[i].Since)
	}
	if last > 0 {
		cause = "the last of their agents went at " + time.UnixMilli(int64(last)).UTC().Format(time.TimeOnly) + ": power, network or broker of all of them"
	}
	tell(finding{id: "nodes/none", subject: "nodes", text: fmt.Sprintf("none of %s is heard", proto.Count(x.Nodes, "node")), cause: cause})
}

// device makes a check of every device.
func device(one func(*Device, *finding) bool) func(*Facts, func(finding)) {
	return func(x *Facts, tell func(finding)) {
		for i := range x.Devices {
			d := &x.Devices[i]
			f := finding{subject: subjectOf(d.ID), node: &d.ID, since: d.Since}
			if !d.ID.IsSwitch() {
				f.ring = d.Ring
			}
			if one(d, &f) {
				f.id = place(d.ID) + "/" + f.id
				tell(f)
			}
		}
	}
}

// out makes the check for one cause that keeps devices out of plans.
func out(word, looks, remedy string, grave bool) Check {
	slug := strings.ReplaceAll(word, " ", "-")
	return Check{strings.ReplaceAll(word, " ", "_"), looks, proto.HealthDegraded, remedy, grave, device(func(d *Device, f *finding) bool {
		if f.id, f.text, f.cause = slug, word, strings.TrimPrefix(d.Why, word+": "); word == "offline" {
			f.remedy = remedyOf(f.cause)
		} else if word == "isolated" {
			if f.remedy = remedyOf(f.cause); d.Quiet {
				f.cause += ", and its agent is gone since: it may have lost its power"
			}
		}
		return d.What == word
	})}
}

// said makes a check of alarms that devices raise. What the planner says of a device is
// not said twice.
func said(which func(proto.EventKind) bool) func(*Facts, func(finding)) {
	return func(x *Facts, tell func(finding)) {
		for i := range x.Devices {
			d := &x.Devices[i]
			for j := range d.Said {
				a := &d.Said[j]
				if !which(a.Kind) || a.Kind == proto.EvIsolated && (d.What == "isolated" || d.What == "host down" || d.Held != "") {
					continue
				}
				f := finding{id: d.IDOf(a), subject: subjectOf(d.ID), text: a.Kind.Words(), cause: a.Text, since: a.Since, node: &d.ID, severity: a.Severity}
				if !d.ID.IsSwitch() {
					f.ring = d.Ring
				}
				switch a.Kind {
				case proto.EvPathFailed:
					f.subject, f.remedy = fmt.Sprintf("%s/%s", f.subject, a.At), remedyOf(a.Text)
				case proto.EvJournal:
					f.remedy = remedyOf(a.Text)
				}
				tell(f)
			}
		}
	}
}

func low(x *Facts, tell func(finding)) {
	for i := range x.Devices {
		d := &x.Devices[i]
		for _, l := range d.Low {
			tell(finding{id: fmt.Sprintf("%s/%d/light-low", place(d.ID), l.Bundle), subject: fmt.Sprintf("bundle %s/%d", place(d.ID), l.Bundle), node: &d.ID, ring: d.Ring,
				text:  fmt.Sprintf("bundle %d has %s dB less light of its own than its calibration expects", l.Bundle, strings.TrimSuffix(l.Missing.String(), " dBm")),
				cause: "a laser has failed or ages, its connector is dirty, a heater is broken, the module is too warm, or a path of it has drifted"})
		}
	}
}

// fibres makes a check of those of which something is to be said.
func fibres(which func(*Fibre) bool) func(*Facts, func(finding)) {
	return func(x *Facts, tell func(finding)) {
		for i := range x.Fibres {
			l := &x.Fibres[i]
			if !which(l) {
				continue
			}
			f := finding{id: "fibre-" + l.Name, subject: "fibre " + l.Name, since: l.Since, node: &l.A, peer: &l.B, ring: l.Ring}
			between := fmt.Sprintf("between nodes %d and %d, which spoke and were well", l.A, l.B)
			switch {
			case l.State == proto.FibreLit:
				f.id += "/flaps"
				f.text = fmt.Sprintf("fibre %s comes and goes", l.Name)
				f.cause = fmt.Sprintf("it was lost %s lately %s, and is lit", proto.Count(l.Losses, "time"), between)
			case l.Next != 0:
				shown := "light was lost at one end, or at both, " + between
				if l.Shown != "" {
					shown = "tried with no ring on it, " + l.Shown
				}
				f.text = fmt.Sprintf("fibre %s is held to be cut", l.Name)
				f.cause = fmt.Sprintf("%s; next try at %s", shown, time.UnixMilli(int64(l.Next)).UTC().Format(time.TimeOnly))
			default:
				f.text = fmt.Sprintf("fibre %s is doubted", l.Name)
				f.cause = fmt.Sprintf("light was lost at one end, or at both, %s, and nothing has shown since that it is there", between)
			}
			tell(f)
		}
	}
}

// ringsThat makes the check of rings in a state.
func ringsThat(state proto.RingState, name, looks string, worst proto.HealthState, grave bool) Check {
	return Check{name, looks, worst, "ocsctl ring show SUBJECT", grave, func(x *Facts, tell func(finding)) {
		for i := range x.Rings {
			r := &x.Rings[i]
			if r.State != state {
				continue
			}
			f := finding{id: fmt.Sprintf("ring-%d/%s", r.ID, r.State), takes: true, subject: fmt.Sprintf("ring %d", r.ID), ring: r.ID, since: r.Since,
				text: fmt.Sprintf("ring %d is %s", r.ID, r.State), cause: fmt.Sprintf("%d of %d GPUs, light on %d of %s", r.GPUs, r.Whole, r.Confirmed, proto.Count(r.Links, "link"))}
			if len(r.Out) > 0 {
				f.cause += ": node " + Spans(r.Out, 4) + " cannot carry it"
			} else if len(r.Dark) > 0 {
				f.cause += ": fibre " + strings.Join(r.Dark[:min(4, len(r.Dark))], ", ") + " is dark"
			}
			if r.Waits != "" {
				f.cause += "; " + r.Waits
			}
			tell(f)
		}
	}}
}

func unproven(x *Facts, tell func(finding)) {
	for _, of := range [...]struct {
		what          string
		unproven, all int
		first         []string
	}{{"link", x.LinksUnproven, x.Links, x.Unproven}, {"circuit", x.CircuitsUnproven, x.Circuits, nil}} {
		if of.unproven == 0 {
			continue
		}
		f := finding{id: of.what + "s/unproven", subject: of.what + "s", text: fmt.Sprintf("%d of %s unproven", of.unproven, proto.Count(of.all, of.what)),
			cause: "not looked at since it was switched, or got warmer or colder, or for too long, so nobody can say whether the light is good; it carries traffic"}
		if len(of.first) > 0 {
			f.cause = "at an end of fibre " + strings.Join(of.first, ", ") + map[bool]string{true: " and more"}[of.unproven > len(of.first)] + ": " + f.cause
		}
		tell(f)
	}
}

func missing(x *Facts, tell func(finding)) {
	lacks := x.GPUsWanted - x.GPUs
	if !x.Judged || x.SmallestRing == 0 || lacks < x.SmallestRing {
		return
	}
	f := finding{id: "rings/missing", takes: true, subject: "rings", text: fmt.Sprintf("rings are missing: %d of %d GPUs are in rings", x.GPUs, x.GPUsWanted), cause: x.lost("no place for one within the reach of the fibres")}
	if x.GPUs == 0 {
		f.text, f.state = "no ring is there", proto.HealthFailed
	}
	tell(f)
}

func spares(x *Facts, tell func(finding)) {
	if x.Judged && x.Heard > 0 && x.Spares < x.SparesWanted {
		tell(finding{id: "spares/few", subject: "spares", text: fmt.Sprintf("%d of %s left", x.Spares, proto.Count(x.SparesWanted, "spare")), cause: x.lost("no other idle node can take part")})
	}
}

// lost says which nodes are out, else what else.
func (x *Facts) lost(else_ string) string {
	var out []proto.NodeID
	held := ""
	for i := range x.Devices {
		if d := &x.Devices[i]; !d.ID.IsSwitch() && (d.What != "" || d.Held != "") {
			out = append(out, d.ID)
			held = d.Held
		}
	}
	switch {
	case x.Heard == 0:
		return "no node is heard"
	case len(out) == 0:
		return else_
	case len(out) == 1 && held != "":
		return fmt.Sprintf("node %d is %s", out[0], held)
	case len(out) == 1:
		return fmt.Sprintf("node %d is out", out[0])
	}
	slices.Sort(out)
	return fmt.Sprintf("%s out: %s", proto.Count(len(out), "node"), Spans(out, 6))
}
