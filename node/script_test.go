package node

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"ringlight/proto"
	"ringlight/sim/script"
)

// Goal: each row of the sides' tables does what the table says.
// Method: scripts in testdata, as package script plays them; a case is a row.
// Commands are in scripted.command.
func TestScripts(t *testing.T) {
	script.Run(t, "testdata/*.txt", func(*testing.T) func([]string) string { return new(scripted).command })
}

// scripted is a machine with the board's part played by hand.
type scripted struct {
	m       *Machine
	now     time.Duration
	desired proto.Desired
	saved   State
}

// command runs one line:
//
//	node BUNDLES                        a new machine, node 5; every bundle ready and dark
//	ring LISTS                          ... that works in a ring since long, all lit
//	plan T.G LISTS | plan T.G none      prepare the next desired state
//	set FIELD=VALUE...                  spoil it: term gen node seq digest position size policy decisions detect switch skew bundle path peer working
//	stage | commit | abort | decide T.G PLAN VERDICT | drop T
//	light B/P on|off [D]                the filtered light of a path, noted D ago
//	settle                              every bundle settles on what was asked
//	settle B                            one does
//	adopt B=PATH[*]...                  the hardware as found; * = with light; unread: where is not known, * = light on external1
//	restart                             a new machine from what was saved last
//	failed B | well B | ready B | unready B [TEXT]
//	host-fault | host-ok | drain | undrain | heard T
//	wait D | run D                      time passes; timers run as they come due; bundles settle on the way
//	stall D                             time passes without a timer
//	request SIDE lockout|forced|manual|clear [B/P]
//	degrade B/P on|off                  signal degrade
//	sides | bundles | report | next
func (sc *scripted) command(words []string) string {
	verb, args := words[0], words[1:]
	switch verb {
	case "node":
		n, _ := strconv.Atoi(args[0])
		sc.m, sc.now = New(Config{ID: 5, Bundles: n}), 0
		var found []string
		for b := range n {
			found = append(found, fmt.Sprintf("%d=dark", b))
		}
		return sc.adopt(found)
	case "ring":
		return sc.ring(args)
	case "plan":
		sc.plan(args)
		return ""
	case "set":
		sc.set(args)
		return ""
	case "adopt":
		if sc.m == nil {
			sc.m = New(Config{ID: 5, Bundles: len(args)})
		}
		return sc.adopt(args)
	case "restart":
		bundles := len(sc.m.bundles)
		sc.m = New(Config{ID: 5, Bundles: bundles})
		sc.m.Restore(sc.saved)
		return ""
	case "stall":
		d, _ := time.ParseDuration(args[0])
		sc.now += d
		return ""
	case "wait", "run":
		return sc.wait(args[0], verb == "run")
	case "settle":
		return sc.settle(args)
	case "request":
		return sc.request(args)
	case "sides", "bundles", "report", "next":
		return sc.show(verb)
	}
	return sc.step(sc.event(verb, args))
}

func (sc *scripted) event(verb string, args []string) Event {
	num := func(i int) uint64 { n, _ := strconv.ParseUint(args[i], 10, 32); return n }
	switch verb {
	case "light":
		b, p := parsePort(args[0])
		ev := Event{Kind: Light, Bundle: b, Path: p, Lit: args[1] == "on"}
		if len(args) > 2 {
			late, _ := time.ParseDuration(args[2])
			ev.Noted = sc.now - late
		}
		return ev
	case "stage":
		d := sc.desired
		raw, _ := json.Marshal(d)
		return Event{Kind: Stage, Desired: &d, Digest: proto.Digest{byte(len(raw)), raw[len(raw)/2]}}
	case "commit", "abort":
		v := proto.Commit
		if verb == "abort" {
			v = proto.Abort
		}
		return Event{Kind: Decide, Decision: &proto.Decision{Term: sc.desired.Term, Generation: sc.desired.Generation, Plan: sc.desired.Plan, Verdict: v}}
	case "decide":
		t, g := parseKey(args[0])
		plan, _ := strconv.Atoi(args[1])
		v, _ := strconv.Atoi(args[2])
		return Event{Kind: Decide, Decision: &proto.Decision{Term: t, Generation: g, Plan: proto.Digest{byte(plan)}, Verdict: proto.Verdict(v)}}
	case "drop":
		return Event{Kind: DropStaged, Term: proto.Term(num(0))}
	case "heard":
		return Event{Kind: HeardTerm, Term: proto.Term(num(0))}
	case "failed":
		b := proto.BundleID(num(0))
		return Event{Kind: PathFailed, Bundle: b, Path: sc.m.bundles[b].path, Text: "tap dark"}
	case "well":
		return Event{Kind: PathOK, Bundle: proto.BundleID(num(0))}
	case "ready":
		return Event{Kind: Ready, Bundle: proto.BundleID(num(0)), Path: proto.Dark}
	case "unready":
		return Event{Kind: Unready, Bundle: proto.BundleID(num(0)), Text: strings.Join(args[1:], " ")}
	case "host-fault":
		return Event{Kind: HostFault, Text: "GPU lost"}
	case "host-ok":
		return Event{Kind: HostOK}
	case "drain":
		return Event{Kind: Drain}
	case "undrain":
		return Event{Kind: Undrain}
	case "degrade":
		b, p := parsePort(args[0])
		return Event{Kind: Degrade, Bundle: b, Path: p, Lit: args[1] == "on"}
	}
	panic("unknown command " + verb)
}

func (sc *scripted) request(args []string) string {
	ev := Event{Kind: Request, Path: proto.Loopback, Request: map[string]proto.Request{"lockout": proto.Lockout,
		"forced": proto.ForcedSwitch, "manual": proto.ManualSwitch, "clear": proto.NoRequest}[args[1]]}
	if args[0] == "right" {
		ev.Side = proto.Right
	}
	if len(args) > 2 {
		ev.Bundle, ev.Path = parsePort(args[2])
	}
	out := ""
	if err := sc.m.Refuses(ev.Side, ev.Request, ev.Bundle, ev.Path); err != nil {
		out = fmt.Sprintf("refused %s; field %q limit %q: %s\n", err.Code, err.Field, err.Limit, err.Reason)
	}
	return out + sc.step(ev)
}

func (sc *scripted) step(ev Event) string {
	ev.At = sc.now
	var b strings.Builder
	for _, a := range sc.m.Step(ev, nil) {
		if a.Kind == Save {
			sc.saved = sc.m.State()
		}
		b.WriteString(traceOf(a) + "\n")
	}
	return b.String()
}

func (sc *scripted) adopt(args []string) string {
	var found []BundleLight
	for _, a := range args {
		bs, path, _ := strings.Cut(a, "=")
		b, _ := strconv.Atoi(bs)
		name, lit := strings.CutSuffix(path, "*")
		l := BundleLight{Bundle: proto.BundleID(b), Unread: name == "unread"}
		p := proto.External1
		if !l.Unread {
			p = pathOf(name)
			l.Path, l.Ready = p, true
		}
		if lit || p == proto.Loopback {
			l.Lit = 1 << p
		}
		found = append(found, l)
	}
	return sc.step(Event{Kind: Adopt, Lits: found})
}

func (sc *scripted) ring(args []string) string {
	sc.plan(append([]string{"1.1"}, args...))
	r := &sc.desired.Rings[0]
	bundles := 2
	for _, c := range append(append([]proto.Candidate{}, r.Left...), r.Right...) {
		bundles = max(bundles, int(c.Bundle)+1)
	}
	sc.m, sc.now = New(Config{ID: 5, Bundles: bundles}), time.Second
	s := State{SeenTerm: 1, Applied: &Held{Desired: sc.desired}, Bundles: make([]BundleRecord, bundles)}
	found := make([]BundleLight, bundles)
	for b := range found {
		found[b] = BundleLight{Bundle: proto.BundleID(b), Path: proto.Loopback, Lit: 1 << proto.Loopback, Ready: true}
	}
	for i, list := range [2][]proto.Candidate{r.Left, r.Right} {
		if len(list) > 0 {
			c := list[workingOf(r, i)]
			found[c.Bundle].Path, found[c.Bundle].Lit = c.Path, 1<<c.Path
		}
	}
	for b := range found {
		s.Bundles[b].Path = found[b].Path
	}
	sc.m.Restore(s)
	sc.saved = s
	return sc.step(Event{Kind: Adopt, Lits: found})
}

// plan reads "T.G left=B/P>PEER[!],... right=... [lw=N] [rw=N] [hold] [holdoff=US] [wtr=MS]";
// "!" means that the peer has others.
func (sc *scripted) plan(args []string) {
	t, g := parseKey(args[0])
	sc.desired = proto.Desired{Version: proto.Version, Node: 5, Term: t, Generation: g, Plan: proto.Digest{byte(g)}, Decisions: []proto.RingID{1}}
	if sc.m != nil {
		sc.desired.BypassSeq = sc.m.bypassSeq
	}
	r := proto.RingAssignment{Ring: 1, Generation: g, Position: 1, Size: 8, Envelope: defaultEnvelope}
	for _, a := range args[1:] {
		key, value, _ := strings.Cut(a, "=")
		n, _ := strconv.Atoi(value)
		switch key {
		case "none":
			return
		case "left":
			r.Left = parseList(value)
		case "right":
			r.Right = parseList(value)
		case "lw":
			r.LeftWorking = uint8(n)
		case "rw":
			r.RightWorking = uint8(n)
		case "hold":
			r.Policy = proto.PolicyHold
		case "holdoff":
			r.HoldOffMicros = uint32(n)
		case "wtr":
			r.WaitToRestoreMillis = uint32(n)
		default:
			panic("plan: " + a)
		}
	}
	sc.desired.Rings = []proto.RingAssignment{r}
}

func (sc *scripted) set(args []string) {
	d := &sc.desired
	for _, a := range args {
		key, value, _ := strings.Cut(a, "=")
		n, _ := strconv.Atoi(value)
		switch key {
		case "term":
			d.Term = proto.Term(n)
		case "gen":
			d.Generation = proto.Generation(n)
		case "plan":
			d.Plan[0] = byte(n)
		case "node":
			d.Node = proto.NodeID(n)
		case "seq":
			d.BypassSeq = uint64(n)
		case "decisions":
			d.Decisions = make([]proto.RingID, n)
			for i := range n {
				d.Decisions[i] = proto.RingID(i + 1)
			}
		case "position":
			d.Rings[0].Position = uint16(n)
		case "policy":
			d.Rings[0].Policy = proto.Policy(n)
		case "detect":
			d.Rings[0].Envelope.DetectMaxMicros = uint32(n)
		case "switch":
			d.Rings[0].Envelope.SwitchMaxMicros = uint32(n)
		case "skew":
			d.Rings[0].Envelope.SkewMicros = uint32(n)
		default:
			panic("set: " + a)
		}
	}
}

func (sc *scripted) settle(args []string) string {
	out := ""
	for b := range sc.m.bundles {
		x := &sc.m.bundles[b]
		if x.busy && (len(args) == 0 || args[0] == strconv.Itoa(b)) {
			out += sc.step(Event{Kind: Switched, Bundle: proto.BundleID(b), Path: x.path})
		}
	}
	return out
}

func (sc *scripted) wait(arg string, settles bool) string {
	d, err := time.ParseDuration(arg)
	if err != nil {
		panic(err)
	}
	end := sc.now + d
	out := ""
	if settles {
		out = sc.settle(nil)
	}
	for sc.m.Next() <= end {
		sc.now = max(sc.now, sc.m.Next())
		got := sc.step(Event{Kind: Tick})
		if settles {
			got += sc.settle(nil)
		}
		if got != "" {
			out += "after " + (sc.now - end + d).String() + ":\n" + got
		}
	}
	sc.now = end
	return out
}

func (sc *scripted) show(what string) string {
	var b strings.Builder
	switch what {
	case "next":
		if sc.m.Next() == Never {
			return "never\n"
		}
		return (sc.m.Next() - sc.now).String() + "\n"
	case "bundles":
		for _, r := range sc.m.BundleReports(nil) {
			fmt.Fprintf(&b, "%d %s %s (%s), %d losses, carries %v\n", r.Bundle, r.Path, r.State, r.Cause, r.Flaps, sc.m.Carries(r.Bundle))
		}
	case "sides":
		fmt.Fprintf(&b, "%s", sc.m.Mode())
		for _, r := range sc.m.Sides(nil) {
			fmt.Fprintf(&b, "; %s %s %d of planned %d, %s, banned %b", r.Side, r.State, r.Current, r.Working, r.Request, r.Banned)
			if r.Timer != proto.TimerNone {
				fmt.Fprintf(&b, ", %s in %v", r.Timer, time.Duration(r.UntilMicros)*time.Microsecond-sc.now)
			}
		}
		b.WriteString("\n")
	case "report":
		var r proto.Reported
		sc.m.Report(&r)
		fmt.Fprintf(&b, "%s seen %d applied %d.%d staged %d.%d bypasses %d rings %d\n", r.Mode, r.SeenTerm, r.Term, r.Generation,
			r.StagedTerm, r.StagedGeneration, r.BypassSeq, len(r.Rings))
		for _, a := range r.Alarms {
			fmt.Fprintf(&b, "alarm %s %s b%d %s\n", a.Kind, a.Severity, a.Bundle, a.Text)
		}
	}
	return b.String()
}

func traceOf(a Action) string {
	switch a.Kind {
	case Remedy:
		return fmt.Sprintf("remedy %d %s %s", a.Bundle, a.Path, a.Remedy)
	case Select:
		return fmt.Sprintf("select %d %s (%s)", a.Bundle, a.Path, a.Cause)
	case Answer:
		k := a.Ack
		s := fmt.Sprintf("answer %s %s %d.%d, in force %d.%d", k.Phase, k.Code, k.Term, k.Generation, k.CurrentTerm, k.CurrentGeneration)
		if k.Field != "" || k.Limit != "" || k.Reason != "" {
			s += fmt.Sprintf("; field %q limit %q: %s", k.Field, k.Limit, k.Reason)
		}
		return s
	case Watch, Unwatch:
		return fmt.Sprintf("%s ring %d", a.Kind, a.Ring)
	case Note:
		return traceOfNote(a)
	}
	return a.Kind.String()
}

func traceOfNote(a Action) string {
	e := a.Note
	s := fmt.Sprintf("note %s", e.Kind)
	if e.Severity != proto.SeverityOK {
		s += " " + e.Severity.String()
	}
	switch e.Kind {
	case proto.EvApplied, proto.EvHostFault, proto.EvHostOK, proto.EvReturned, proto.EvIsolated, proto.EvBoundNotMet, proto.EvSplitBrain:
	case proto.EvLightUnselected, proto.EvAdopted, proto.EvPathFailed:
		s += fmt.Sprintf(" %d %s (on %s)", e.Bundle, e.Path, e.FromPath)
	default:
		s += fmt.Sprintf(" %s %d %s to %d", e.Side, e.Bundle, e.Path, e.Peer)
	}
	s += fmt.Sprintf(" (%s)", e.Cause)
	if e.Resolved {
		s += " resolved"
	}
	if e.SideBypassed {
		s += " bypassed"
	}
	if e.Text != "" {
		s += " " + e.Text
	}
	if st := a.Stamps; st != (Stamps{}) {
		s += fmt.Sprintf(" [decided +%v settled +%v confirmed +%v]", st.Decided-st.Lost, st.Settled-st.Lost, st.Confirmed-st.Lost)
	}
	return s
}

func parseKey(s string) (proto.Term, proto.Generation) {
	a, b, _ := strings.Cut(s, ".")
	t, _ := strconv.Atoi(a)
	g, _ := strconv.Atoi(b)
	return proto.Term(t), proto.Generation(g)
}

func parsePort(s string) (proto.BundleID, proto.Path) {
	b, p, _ := strings.Cut(s, "/")
	n, _ := strconv.Atoi(b)
	return proto.BundleID(n), pathOf(p)
}

func pathOf(s string) proto.Path {
	if len(s) == 1 {
		return proto.Loopback + proto.Path(s[0]-'0')
	}
	p, err := proto.ParsePath(s)
	if err != nil {
		panic(err)
	}
	return p
}

func parseList(s string) (list []proto.Candidate) {
	for _, c := range strings.Split(s, ",") {
		c, others := strings.CutSuffix(c, "!")
		at, peer, _ := strings.Cut(c, ">")
		b, p := parsePort(at)
		n, _ := strconv.Atoi(peer)
		list = append(list, proto.Candidate{Bundle: b, Path: p, Peer: proto.NodeID(n), Others: others})
	}
	return list
}
