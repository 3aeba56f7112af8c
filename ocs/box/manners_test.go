package box_test

import (
	"strings"
	"testing"
	"time"

	"ringlight/agent"
	"ringlight/hal"
	"ringlight/proto"
	"ringlight/sim/boxes"
)

// want compares what is told, of circuits and alarms, and what is lit. Words of a line
// of told may be left out at its end.
func (s *service) want(when, told, lit string) {
	s.t.Helper()
	got := strings.Split(s.told(), "\n")
	want := strings.Split(told, "\n")
	same := len(got) == len(want)
	for i := range min(len(got), len(want)) {
		same = same && strings.HasPrefix(got[i], want[i])
	}
	if !same {
		s.t.Errorf("%s, told:\n%s\nwant\n%s", when, s.told(), told)
	}
	if s.lit() != lit {
		s.t.Errorf("%s, lit: %s, want %s", when, s.lit(), lit)
	}
}

// tellsOnce wants an event of a kind with a text, once so far.
func (s *service) tellsOnce(kind proto.EventKind, text string) {
	s.t.Helper()
	seen := map[uint64]bool{}
	for _, e := range s.events {
		if e.Kind == kind && strings.Contains(e.Text, text) {
			seen[e.Seq] = true
		}
	}
	if len(seen) != 1 {
		s.t.Errorf("%v %q is told %d times", kind, text, len(seen))
	}
}

const (
	threeTold = "1A-5B tuned\n2A-6B tuned\n3A-7B tuned"
	threeLit  = "1A-5B 2A-6B 3A-7B"
)

// manners are those of boxes, each from where three circuits are made and tuned.
var manners = []struct {
	name string
	only string // of the protocols, if not all
	set  func(*service)
	act  func(*service)
}{
	{"no meters", "scpi tl1 tl1-patch", func(s *service) { s.far.noMeters() }, func(s *service) {
		const told = "1A-5B unproven: box has no power meters\n2A-6B unproven\n3A-7B unproven"
		s.want("made", told, threeLit)
		s.plan("1-6 2-5 3-7")
		s.run(time.Second)
		s.want("changed", strings.NewReplacer("1A-5B", "1A-6B", "2A-6B", "2A-5B").Replace(told), "1A-6B 2A-5B 3A-7B")
	}},
	{"an odd meter", "scpi tl1 tl1-patch", func(s *service) { s.far.oddMeter = "OVERLOAD" }, func(s *service) {
		s.want("made", "1A-5B unproven\n2A-6B unproven\n3A-7B unproven", threeLit)
		s.far.oddMeter = ""
		s.run(6 * time.Second)
		s.want("well again", threeTold, threeLit)
	}},
	{"odd answers", "", nil, func(s *service) {
		s.far.babble = true
		s.plan("1-5 2-6 4-8")
		s.run(time.Minute)
		if s.far.scpi() != nil {
			s.want("meanwhile", "out of service: scpi: identity \"odd\": reply is not what\n1A-5B tuned\n2A-6B tuned\n4A-8B tuning", threeLit)
		} else {
			s.want("meanwhile", "out of service: box does not answer within 5s\n1A-5B tuned\n2A-6B tuned\n4A-8B tuning", threeLit)
		}
		s.far.babble = false
		s.run(time.Minute)
		s.want("over", "1A-5B tuned\n2A-6B tuned\n4A-8B tuned", "1A-5B 2A-6B 4A-8B")
	}},
	{"silence", "", nil, func(s *service) {
		s.far.Lock("bob") // one is wanted, and has failed before it
		s.plan("1-5 2-6 3-7 6-2")
		s.run(time.Second)
		s.far.Lock("")
		s.far.mute = true
		s.run(time.Minute)
		s.want("meanwhile", "out of service: box does not answer within 5s\n1A-5B tuned\n2A-6B tuned\n3A-7B tuned\n6A-2B", threeLit)
		if code := s.plan("1-5"); code != proto.HardwareFailed {
			s.t.Errorf("a plan meanwhile: %v", code)
		}
		s.far.mute = false
		s.run(time.Minute)
		s.want("over", threeTold+"\n6A-2B tuned", threeLit+" 6A-2B")
		s.tellsOnce(proto.EvAlarm, "box does not answer within 5s")
		s.tellsOnce(proto.EvAlarm, "the board answers again")
	}},
	{"half-open, and then nobody there", "", nil, func(s *service) {
		s.far.halfOpen = true
		s.plan("1-5 2-6 4-8")
		s.run(time.Minute)
		const circuits = "1A-5B tuned\n2A-6B tuned\n4A-8B tuning"
		s.want("half-open", "out of service: box does not answer within 5s\n"+circuits, threeLit)
		s.far.halfOpen, s.far.refused = false, true
		s.run(time.Minute)
		s.want("refused", "out of service: dial tcp: connection refused\n"+circuits, threeLit)
		s.far.refused = false
		s.run(2 * time.Second)
		s.want("there again", "1A-5B tuned\n2A-6B tuned\n4A-8B tuned", "1A-5B 2A-6B 4A-8B")
	}},
	{"seven seconds, five allowed", "", nil, func(s *service) {
		s.far.delay = 7 * time.Second
		s.run(time.Minute)
		s.want("slow", "out of service: box does not answer within 5s\n"+threeTold, threeLit)
		s.far.delay = 0
		s.run(20 * time.Second)
		s.want("quick again", threeTold, threeLit)
	}},
	{"seven seconds, ten allowed", "", func(s *service) { s.limit = 10 * time.Second }, func(s *service) {
		s.far.delay = 7 * time.Second
		s.plan("1-5 2-6 4-8")
		s.run(5 * time.Minute)
		s.want("slow", "1A-5B tuned\n2A-6B tuned\n4A-8B tuned", "1A-5B 2A-6B 4A-8B")
	}},
	{"a restart without its circuits", "", nil, func(s *service) {
		s.far.refused = true
		s.run(20 * time.Second)
		s.far.Restart()
		s.far.refused = false
		s.run(6 * time.Second)
		s.want("back", "1A-5B failed\n2A-6B failed\n3A-7B failed", "")
		s.run(time.Minute)
		s.want("a minute on", threeTold, threeLit)
	}},
	{"foreign changes", "", nil, func(s *service) {
		s.far.Cut(0, 4)
		s.far.Join(3, 7, "G")
		s.run(6 * time.Second)
		s.want("seen", "1A-5B failed: box reports connections other than those that were set: the connection was removed at the box\n2A-6B tuned\n3A-7B tuned\n4A-8B tuned", "2A-6B 3A-7B 4A-8B")
		s.tellsOnce(proto.EvSwitched, "by hand")
		s.run(time.Minute)
		s.want("a minute on", threeTold+"\n4A-8B tuned", threeLit+" 4A-8B")
		s.far.Join(0, 0, "G") // over the port of one of ours
		s.run(6 * time.Second)
		s.want("taken over", "1A-5B failed: box reports connections other than those that were set: 1A-1B has a port of it\n2A-6B tuned\n3A-7B tuned\n4A-8B tuned", "1A-1B 2A-6B 3A-7B 4A-8B")
		s.far.Cut(3, 7)
		s.run(time.Minute)
		s.want("over", threeTold, threeLit)
	}},
	{"a foreign group's port", "tl1", nil, func(s *service) {
		s.far.Join(4, 0, "other")
		s.plan("1-5 5-2 6-3")
		s.run(time.Second)
		s.want("refused", "1A-5B tuned\n5A-2B failed: box denied the command: SRCN\n6A-3B tuned", "1A-5B 5A-1B 6A-3B")
		s.far.Cut(4, 0)
		s.run(time.Minute)
		s.want("over", "1A-5B tuned\n5A-2B tuned\n6A-3B tuned", "1A-5B 5A-2B 6A-3B")
	}},
	{"another user's lock", "", nil, func(s *service) {
		s.far.Lock("bob")
		s.plan("1-5 3-7 6-2")
		s.run(20 * time.Second)
		s.want("locked", "1A-5B tuned\n3A-7B tuned\n6A-2B failed: box denied the command: "+map[string]string{"scpi": `-203,"Command protected;locked by bob"`, "sonic-ocs": "locked by bob"}[s.far.protocol], threeLit)
		if len(s.last.Alarms) != 2 || !strings.Contains(s.last.Alarms[0].Text, "locked by bob") || !strings.HasPrefix(s.last.Alarms[1].Text, "box, circuit 2A-6B: is not taken away: ") || !strings.Contains(s.last.Alarms[1].Text, "locked by bob") {
			s.t.Errorf("alarms %+v", s.last.Alarms)
		}
		s.far.Lock("")
		s.run(time.Minute)
		s.want("over", "1A-5B tuned\n3A-7B tuned\n6A-2B tuned", "1A-5B 3A-7B 6A-2B")
		if len(s.last.Alarms) != 0 {
			s.t.Errorf("alarms %+v", s.last.Alarms)
		}
	}},
	{"another user's lock on the login", "tl1", nil, func(s *service) {
		s.far.tl1().User = "bob"
		s.far.HangUp()
		s.run(6 * time.Second)
		s.want("locked out", "out of service: box denied the command: P\n"+threeTold, threeLit)
		s.far.tl1().User = "u"
		s.run(5 * time.Second)
		s.want("over", threeTold, threeLit)
	}},
	{"shutters", "", nil, func(s *service) {
		if s.far.protocol == "tl1" { // none that are known
			if err := s.hold(agent.Ask{Verb: agent.AskHold, Override: proto.ForceBlocked}); err == nil || !strings.Contains(err.Reason, "no command of the box") {
				s.t.Errorf("%v", err)
			}
			return
		}
		for side, port := range [hal.NumSides]uint16{1, 6} { // 2A, 7B
			if err := s.hold(agent.Ask{Verb: agent.AskHold, Array: uint8(side), Port: port, Override: proto.ForceBlocked}); err != nil {
				s.t.Fatal(err)
			}
		}
		s.run(time.Second)
		s.want("held", "1A-5B tuned\n2A-6B blocked\n3A-7B blocked", "1A-5B")
		s.boot() // another life remembers
		s.far.open("2")
		s.run(6 * time.Second)
		s.want("another life", "1A-5B tuned\n2A-6B blocked\n3A-7B blocked", "1A-5B")
		s.far.Lock("bob")
		if err := s.hold(agent.Ask{Verb: agent.AskHold, Array: 0, Port: 1}); err != nil {
			s.t.Fatal(err)
		}
		s.run(time.Second)
		s.want("not let go", "1A-5B tuned\n2A-6B blocked\n3A-7B blocked", "1A-5B")
		if len(s.last.Alarms) != 1 || !strings.HasPrefix(s.last.Alarms[0].Text, "box, port 2A: shutter") {
			s.t.Errorf("alarms %+v", s.last.Alarms)
		}
		s.far.Lock("")
		s.run(6 * time.Second)
		s.want("let go", "1A-5B tuned\n2A-6B tuned\n3A-7B blocked", "1A-5B 2A-6B")
	}},
	{"no shutters", "scpi", func(s *service) { s.far.scpi().NoShutters = true }, func(s *service) {
		if err := s.hold(agent.Ask{Verb: agent.AskHold, Override: proto.ForceBlocked}); err != nil {
			s.t.Fatal(err)
		}
		s.run(time.Second)
		s.want("told", threeTold, threeLit)
		if len(s.last.Alarms) != 1 || !strings.HasPrefix(s.last.Alarms[0].Text, "box, port 1A: shutter") {
			s.t.Errorf("alarms %+v", s.last.Alarms)
		}
	}},
	{"alarms of its own", "tl1 tl1-patch", func(s *service) { s.far.tl1().Alarms = map[string]string{"FAN-1 HITEMP": "MN"} }, func(s *service) {
		alarms := func(when string, want ...string) {
			s.t.Helper()
			same := len(s.last.Alarms) == len(want)
			for i := range min(len(want), len(s.last.Alarms)) {
				same = same && s.last.Alarms[i].Text == want[i]
			}
			if !same {
				s.t.Errorf("%s: %+v, want %q", when, s.last.Alarms, want)
			}
		}
		const hot, fails = "box, FAN-1 HITEMP (MN): of the box", "box, PWR-2 FAIL (CR): of the box"
		alarms("found", hot)
		s.far.report("ALM EQPT", boxes.AlarmLine("PWR-2 FAIL", "CR"))
		s.far.report("EVT CRS", "1.1.3:SWITCHED,TC") // of the moment: nothing stands
		s.run(6 * time.Second)
		alarms("told unasked", hot, fails)
		s.tellsOnce(proto.EvAlarm, "PWR-2")
		s.far.report("ALM EQPT", boxes.AlarmLine("FAN-1 HITEMP", "CL"))
		s.run(6 * time.Second)
		alarms("cleared", fails)
		s.far.tl1().Alarms = nil // the other goes while nobody listens
		s.far.refused = true
		s.run(6 * time.Second)
		s.far.refused = false
		s.run(6 * time.Second)
		alarms("gone meanwhile")
		s.want("at all times", threeTold, threeLit)
	}},
	{"no light comes in", "scpi tl1 tl1-patch", nil, func(s *service) {
		s.far.dark = true
		s.run(6 * time.Second)
		s.want("dark", strings.ReplaceAll(threeTold, "tuned", "tuning: no light comes in to tune by"), threeLit)
		s.far.dark = false
		s.run(6 * time.Second)
		s.want("light", threeTold, threeLit)
	}},
	{"a wrong size", "scpi", nil, func(s *service) {
		s.far.scpi().Box.In, s.far.scpi().Box.Out, s.far.scpi().Box.Map = 4, 4, nil
		s.far.refused = true
		s.run(6 * time.Second)
		s.far.refused = false
		s.run(6 * time.Second)
		s.want("told", "out of service: box has 4 ports on side A, want the 8 of its configuration\n"+threeTold, "")
	}},
}

var protocols = []string{"scpi", "tl1", "tl1-patch", "sonic-ocs"}

// Goal: whatever a box's manners, what is told of it is true with its cause, what can be
// switched is, and what was wanted comes about by itself when the manner is over.
// Method: a fake box of each protocol with a crossbar and a manner, a switch agent, a
// planner played by the test that says what it wants once.
func TestMannersOfBoxes(t *testing.T) {
	for _, m := range manners {
		for _, protocol := range protocols {
			if m.only != "" && !strings.Contains(" "+m.only+" ", " "+protocol+" ") {
				continue
			}
			t.Run(m.name+", "+protocol, func(t *testing.T) {
				s := newService(t, protocol, m.set)
				if code := s.plan("1-5 2-6 3-7"); code != proto.OK {
					t.Fatalf("a plan: %v", code)
				}
				s.run(time.Second + 2*s.limit)
				m.act(s)
			})
		}
	}
}

// Goal: a script that drives a box through an agent hears that its change is over when it
// is, and why it is not so; errors queue in their order, and the queue has an end.
// Method: a slow box of each protocol, then one that another user has locked, then one
// that is silent.
func TestScriptsHearWhatBecameOfTheirChange(t *testing.T) {
	for _, protocol := range protocols {
		s := newService(t, protocol, nil)
		say := func(line string, wait time.Duration) string {
			s.lines = ""
			s.deliver(agent.Input{Kind: agent.InLine, ID: 1, Line: []byte(line)})
			s.run(wait)
			return s.lines
		}
		s.far.delay = time.Second
		for _, c := range []struct{ line, lit string }{
			{":oxc:swit:conn:add (@1,2),(@13,14);*OPC?", "1A-5B 2A-6B"},
			{":oxc:swit:conn:sub (@1),(@13);*OPC?", "2A-6B"},
		} {
			if early := say(c.line, 700*time.Millisecond); early != "" {
				t.Errorf("%s: %s: %q before it is so", protocol, c.line, early)
			}
			if s.run(time.Minute); s.lines != "1\n" || s.lit() != c.lit {
				t.Errorf("%s: %s: %q, lit %s", protocol, c.line, s.lines, s.lit())
			}
		}
		s.far.delay = 0
		s.far.Lock("bob")
		got := say("nonsense;:oxc:swit:conn:add (@3),(@15);*OPC?;:syst:err?;:syst:err?;:syst:err?", time.Minute)
		if !strings.HasPrefix(got, `1;-113,"Undefined header";-200,"Execution error;(@3),(@15) box denied the command: `) || !strings.Contains(got, "locked by bob") || !strings.HasSuffix(got, `";0,"No error"`+"\n") {
			t.Errorf("%s: locked: %s", protocol, got)
		}
		s.far.mute = true
		got = say(":oxc:swit:conn:add (@4),(@16);*OPC?;:syst:err?", time.Minute)
		if !strings.HasPrefix(got, `1;-200,"Execution error;(@4),(@16) box does not answer within 5s`) {
			t.Errorf("%s: silent: %s", protocol, got)
		}
		if got = say(strings.Repeat("x;", 33)+":syst:err:all?", time.Second); strings.Count(got, "-113,") != 31 || !strings.HasSuffix(got, `,-350,"Queue overflow"`+"\n") {
			t.Errorf("%s: many: %s", protocol, got)
		}
	}
}
