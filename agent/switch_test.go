package agent

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/ocs/circuit"
	"ringlight/ocs/mems"
	"ringlight/proto"
	"ringlight/sim"
)

func TestSwitchMakesWhatIsCommitted(t *testing.T) {
	// Goal: prepared moves no mirror; committed is on disk before one moves, and
	// is told as done when light shows every circuit.
	// Method: one switch of 8 ports, its planner played by the test.
	r := newSwitchRig(t, 8)
	r.start()
	if r.birth.Ports != 8 || !r.birth.Online || r.birth.Node != switchNode || r.birth.Mode != proto.ModeUnplanned {
		t.Errorf("birth %+v", r.birth)
	}
	d := r.desired(shift(6, 8, 3)...)
	a := r.prepare(d)
	if a.Phase != proto.PhasePrepare || a.Code != proto.OK || a.Generation != 1 {
		t.Fatalf("%+v", a)
	}
	r.run(time.Second, nil)
	if r.spi != 0 || r.last.StagedGeneration != 1 || r.last.Generation != 0 || r.last.Mode != proto.ModeService {
		t.Fatalf("prepared: %d mirror writes, %+v", r.spi, r.last)
	}
	r.acks = nil
	r.decide(d, proto.Commit)
	for r.spi == 0 {
		r.step(r.world.Now() + time.Second)
	}
	if s := r.disk.Journal.State; s == nil || s.Applied == nil || s.Applied.Desired.Generation != 1 || !s.Moving {
		t.Errorf("a mirror moves, and the journal has %+v", s)
	}
	r.must("done", time.Second, func() bool { return r.done(d) })
	if len(r.acks) != 1 || r.acks[0].Phase != proto.PhaseCommit || r.acks[0].Code != proto.OK {
		t.Errorf("answers %+v", r.acks)
	}
	r.checkLight(d.Circuits...)
	if dark := time.Duration(r.last.DarkMicros) * time.Microsecond; dark < 10*time.Millisecond || dark > mems.MaxTuneTime {
		t.Errorf("dark for %v", dark)
	}
	for _, c := range r.last.Circuits {
		if c.Loss < 1000 || c.Loss > 3000 {
			t.Errorf("%+v", c)
		}
	}
	if e := r.eventsOf(proto.EvApplied); len(e) != 1 || e[0].Generation != 1 {
		t.Errorf("events %+v", r.events)
	}
	if s := r.disk.Journal.State; s.Moving || len(r.disk.Journal.Circuits) != 6 {
		t.Errorf("the journal has %d circuits, moving %v", len(r.disk.Journal.Circuits), s.Moving)
	}
	// The same once more is answered, and moves nothing.
	r.spi = 0
	if a := r.prepare(d); a.Code != proto.OK {
		t.Errorf("%+v", a)
	}
	r.roll(d.Circuits...)
	if r.spi != 0 || r.last.DarkMicros != 0 {
		t.Errorf("%d mirror writes, dark for %d us", r.spi, r.last.DarkMicros)
	}
}

func TestSwitchTouchesOnlyWhatChanges(t *testing.T) {
	// Goal: the light of circuits in both plans never falls while the others are
	// moved, and a circuit handed to another job is not moved either.
	r := newSwitchRig(t, 12)
	r.start()
	old := shift(12, 12, 5)
	r.roll(old...)
	next := append([]proto.Circuit(nil), old...)
	for i := 8; i < 12; i++ {
		next[i].B = old[8+(i+1)%4].B
	}
	next[0].Job = 99
	for _, c := range next[:8] {
		r.watched = append(r.watched, circuit.Pair{A: c.A, B: c.B})
	}
	r.roll(next...)
	r.roll(next[:9]...)
	if len(r.drops) > 0 {
		t.Errorf("%d drops, first %s", len(r.drops), r.drops[0])
	}
	r.checkLight(next[:9]...)
}

func TestAbortedStageMovesNothing(t *testing.T) {
	r := newSwitchRig(t, 8)
	r.start()
	old := r.roll(shift(4, 8, 1)...)
	r.spi = 0
	d := r.desired(shift(8, 8, 2)...)
	r.prepare(d)
	r.acks = nil
	r.decide(d, proto.Abort)
	r.must("an answer", time.Second, func() bool { return len(r.acks) > 0 })
	if r.acks[0].Code != proto.OK || r.acks[0].Phase != proto.PhaseCommit {
		t.Errorf("%+v", r.acks)
	}
	r.run(time.Second, nil)
	if r.spi != 0 || r.last.Generation != old.Generation || r.last.StagedGeneration != 0 {
		t.Errorf("%d mirror writes, %+v", r.spi, r.last)
	}
	r.acks = nil
	r.decide(d, proto.Commit) // too late
	r.must("an answer", time.Second, func() bool { return len(r.acks) > 0 })
	if r.acks[0].Code != proto.NotStaged {
		t.Errorf("%+v", r.acks)
	}
	d = r.desired(shift(8, 8, 2)...)
	r.prepare(d)
	r.publish(switchTopics.Command(switchNode), &proto.Command{Version: 1, Node: switchNode, Term: 1, Session: r.agent.cfg.Session,
		Corr: proto.Corr{1}, TTLMillis: 1000, Verb: proto.VerbAbort})
	r.run(time.Second, nil)
	if r.spi != 0 || r.last.StagedGeneration != 0 {
		t.Errorf("%d mirror writes, %+v", r.spi, r.last)
	}
	r.checkLight(old.Circuits...)
}

func TestBadCircuitsAreRefused(t *testing.T) {
	// Goal: what is wrong is refused as a whole with the field and the limit,
	// and changes nothing.
	base := func(r *switchRig) *proto.Desired { return r.desired(shift(4, 8, 2)...) }
	command := func(r *switchRig, v proto.Verb) (string, any) {
		return switchTopics.Command(switchNode), &proto.Command{Version: 1, Node: switchNode, Term: 5, Session: r.agent.cfg.Session,
			Corr: proto.Corr{9}, TTLMillis: 1000, Verb: v}
	}
	for _, c := range []struct {
		name  string
		wrong func(r *switchRig) (topic string, msg any)
		code  proto.Code
		field string
	}{
		{"port of A beyond the switch", func(r *switchRig) (string, any) { d := base(r); d.Circuits[2].A = 8; return "", d }, proto.Invalid, "circuits[2].a"},
		{"port of B beyond the switch", func(r *switchRig) (string, any) { d := base(r); d.Circuits[3].B = 65535; return "", d }, proto.Invalid, "circuits[3].b"},
		{"port of A twice", func(r *switchRig) (string, any) {
			raw, err := proto.Encode(base(r)) // what no planner of ours can send
			if err != nil {
				r.t.Fatal(err)
			}
			return "", bytes.Replace(raw, []byte{0x83, 1, 3}, []byte{0x83, 0, 3}, 1)
		}, proto.Invalid, "circuits[1].a"},
		{"held port", func(r *switchRig) (string, any) { d := base(r); d.Circuits[1].A = 6; return "", d }, proto.HardwareFailed, "circuits[1].a"},
		{"held port of B", func(r *switchRig) (string, any) { d := base(r); d.Circuits[1].B = 7; return "", d }, proto.HardwareFailed, "circuits[1].b"},
		{"stale term", func(r *switchRig) (string, any) { d := base(r); d.Term = 4; return "", d }, proto.Stale, "term"},
		{"stale generation", func(r *switchRig) (string, any) { d := base(r); d.Generation = 1; return "", d }, proto.Stale, "generation"},
		{"same generation, other circuits", func(r *switchRig) (string, any) {
			d := base(r)
			d.Generation, d.Plan = r.last.Generation, r.last.Plan
			return "", d
		}, proto.Conflict, "plan"},
		{"plan that does not know of a hold", func(r *switchRig) (string, any) { d := base(r); d.BypassSeq = 0; return "", d }, proto.Conflict, "bypass_seq"},
		{"another switch's", func(r *switchRig) (string, any) { d := base(r); d.Node++; return "", d }, proto.WrongNode, "node"},
		{"commit of what was never staged", func(r *switchRig) (string, any) {
			return switchTopics.Decision(proto.FirstGroup), &proto.Decision{Version: 1, Ring: proto.FirstGroup, Term: 5, Generation: 99, Verdict: proto.Commit}
		}, proto.NotStaged, ""},
		{"commit of an old generation", func(r *switchRig) (string, any) {
			return switchTopics.Decision(proto.FirstGroup), &proto.Decision{Version: 1, Ring: proto.FirstGroup, Term: 5, Generation: 1, Verdict: proto.Commit}
		}, proto.Stale, "generation"},
		{"abort of what is applied", func(r *switchRig) (string, any) {
			return switchTopics.Decision(proto.FirstGroup), &proto.Decision{Version: 1, Ring: proto.FirstGroup, Term: 5, Generation: r.last.Generation,
				Plan: r.last.Plan, Verdict: proto.Abort}
		}, proto.Conflict, "plan"},
		{"decision on another group's topic", func(r *switchRig) (string, any) {
			return switchTopics.Decision(proto.FirstGroup), &proto.Decision{Version: 1, Ring: proto.FirstGroup + 1, Term: 5, Generation: 9, Verdict: proto.Commit}
		}, proto.Invalid, "ring"},
		{"drain", func(r *switchRig) (string, any) { return command(r, proto.VerbDrain) }, proto.Unsupported, "verb"},
		{"calibrate", func(r *switchRig) (string, any) { return command(r, proto.VerbCalibrate) }, proto.Unsupported, "verb"},
		{"host fault", func(r *switchRig) (string, any) { return command(r, proto.VerbHostFault) }, proto.Unsupported, "verb"},
		{"request for a side", func(r *switchRig) (string, any) { return command(r, proto.VerbRequest) }, proto.Unsupported, "verb"},
		{"unknown verb", func(r *switchRig) (string, any) { return command(r, 77) }, proto.Unsupported, "verb"},
		{"command of an old planner", func(r *switchRig) (string, any) {
			topic, msg := command(r, proto.VerbReannounce)
			msg.(*proto.Command).Term = 4
			return topic, msg
		}, proto.Stale, "term"},
		{"another life", func(r *switchRig) (string, any) {
			topic, msg := command(r, proto.VerbReannounce)
			msg.(*proto.Command).Session++
			return topic, msg
		}, proto.WrongSession, "session"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newSwitchRig(t, 8)
			r.term = 5
			r.start()
			old := r.roll(shift(3, 8, 4)...)
			for array, port := range [2]uint16{6, 7} {
				if a := r.ask(Ask{Verb: AskHold, Array: uint8(array), Port: port, Override: proto.ForceBlocked}); a.Err != nil {
					t.Fatal(a.Err)
				}
			}
			r.roll(old.Circuits...)
			r.run(time.Second, nil)
			r.acks, r.spi = nil, 0
			before := r.last
			topic, msg := c.wrong(r)
			if topic == "" {
				topic = switchTopics.Desired(switchNode)
			}
			r.publish(topic, msg)
			r.must("an answer", time.Second, func() bool { return len(r.acks) > 0 })
			if a := r.acks[0]; a.Code != c.code || a.Field != c.field || a.Limit == "" && a.Reason == "" {
				t.Errorf("%+v", a)
			}
			r.run(time.Second, nil)
			if r.spi != 0 || r.last.Generation != before.Generation || r.last.StagedGeneration != 0 || r.last.RefusedMessages <= before.RefusedMessages && c.code != proto.HardwareFailed {
				t.Errorf("%d mirror writes, %+v", r.spi, r.last)
			}
			r.checkLight(old.Circuits...)
		})
	}
}

func TestStuckMirrorFailsItsCircuitAlone(t *testing.T) {
	// Goal: a circuit that does not come up is told with its ports and its job;
	// the others of the change do not suffer; it is tried again by itself and by
	// the next plan.
	for _, byItself := range []bool{true, false} {
		stuckMirror(t, byItself)
	}
}

func stuckMirror(t *testing.T, byItself bool) {
	r := newSwitchRig(t, 8)
	r.start()
	r.world.StickMirror(r.id, hal.SideB, 5, true)
	d := r.desired(shift(8, 8, 3)...)
	r.prepare(d)
	r.decide(d, proto.Commit)
	r.must("an event", 2*time.Second, func() bool { return len(r.eventsOf(proto.EvPathFailed)) > 0 })
	r.run(time.Second, nil)
	e := r.eventsOf(proto.EvPathFailed)
	if len(e) != 1 || e[0].PortA != 2 || e[0].PortB != 5 || e[0].Job != 12 || e[0].Severity != proto.SeverityCritical || e[0].Text == "" {
		t.Errorf("%+v", e)
	}
	for _, c := range r.last.Circuits {
		if want := map[bool]proto.PortState{true: proto.Failed, false: proto.Tuned}[c.A == 2]; c.State != want {
			t.Errorf("%+v", c)
		}
	}
	if len(r.last.Alarms) != 1 || r.last.Alarms[0].PortA != 2 || r.last.Alarms[0].PortB != 5 {
		t.Errorf("%+v", r.last.Alarms)
	}
	for _, c := range d.Circuits {
		if c.A != 2 {
			r.watched = append(r.watched, circuit.Pair{A: c.A, B: c.B})
		}
	}
	// It is tried again, more and more seldom; the next plan tries it at once.
	r.spi = 0
	r.run(10*time.Minute, nil)
	if r.spi == 0 || r.spi > 10*50 || len(r.eventsOf(proto.EvPathFailed)) != 1 {
		t.Errorf("%d mirror writes in ten minutes, %d events", r.spi, len(r.eventsOf(proto.EvPathFailed)))
	}
	r.world.StickMirror(r.id, hal.SideB, 5, false)
	if byItself {
		r.must("back", 10*time.Minute, func() bool { return r.done(d) })
	} else {
		d = r.roll(d.Circuits...)
	}
	if found := r.eventsOf(proto.EvLightFound); len(r.drops) > 0 || byItself && (len(found) != 1 || !found[0].Resolved || found[0].PortB != 5) {
		t.Errorf("%v, %+v", r.drops, found)
	}
	r.checkLight(d.Circuits...)
}

func TestCircuitThatLosesItsLightIsTold(t *testing.T) {
	// Goal: light that no longer comes in, and light that no longer leaves, are
	// told with ports and job by the next look; so is their return.
	r := newSwitchRig(t, 6)
	r.start()
	r.roll(shift(6, 6, 1)...)
	r.world.SetMirrorInput(r.id, 2, sim.InputLight{})
	r.must("input lost", 3*time.Second, func() bool { return len(r.eventsOf(proto.EvLightLost)) == 1 })
	if e := r.eventsOf(proto.EvLightLost)[0]; e.PortA != 2 || e.PortB != 3 || e.Job != 12 || e.Measured != proto.NoPower || e.Severity != proto.SeverityWarning {
		t.Errorf("%+v", e)
	}
	r.world.SetMirrorInput(r.id, 2, sim.InputLight{Lit: true})
	r.must("input found", 3*time.Second, func() bool { return len(r.eventsOf(proto.EvLightFound)) == 1 })
	r.world.StickMirror(r.id, hal.SideA, 4, true)
	r.world.CreepMirror(r.id, hal.SideA, 4, 40_000_000)
	r.must("path lost", 10*time.Second, func() bool { return len(r.eventsOf(proto.EvLightLost)) == 2 })
	if e := r.eventsOf(proto.EvLightLost)[1]; e.PortA != 4 || e.PortB != 5 || e.Job != 14 || e.Severity != proto.SeverityCritical || e.Expected < 1000 || e.Expected > 3000 {
		t.Errorf("%+v", e)
	}
}

func TestPowerAlarmNamesItsPort(t *testing.T) {
	// Goal: a port whose power leaves its thresholds is told with its side, and
	// told again when it is back.
	r := newSwitchRig(t, 6)
	r.kill()
	r.thresholds = [hal.NumSides]circuit.Thresholds{{On: true, Low: -10_000, Degrade: -5_000, High: 3_000, ClearHoldOff: 2 * time.Second}, {}}
	r.boot()
	r.start()
	r.roll(shift(6, 6, 1)...)
	r.world.SetMirrorInput(r.id, 4, sim.InputLight{Lit: true, MilliDBm: -7_000})
	r.must("raised", 3*time.Second, func() bool { return len(r.eventsOf(proto.EvAlarm)) == 1 })
	r.world.SetMirrorInput(r.id, 4, sim.InputLight{Lit: true})
	r.must("cleared", 6*time.Second, func() bool { return len(r.eventsOf(proto.EvAlarm)) == 2 })
	e := r.eventsOf(proto.EvAlarm)
	if e[0].PortA != 4 || e[0].Resolved || e[0].Expected != -5_000 || e[0].Measured > -6_000 || e[0].Text != "power of port 5A: under the degrade threshold" || !e[1].Resolved {
		t.Errorf("%+v", e)
	}
}

func TestSwitchTellsItsLastReport(t *testing.T) {
	// Goal: what a planner holds of a switch that has nothing to say can be found
	// wrong: each round says which report was the last one.
	r := newSwitchRig(t, 8)
	r.start()
	r.roll(shift(3, 8, 1)...)
	r.run(3*time.Second, nil)
	before := r.health.Seq
	r.run(3*time.Second, nil)
	if h := r.health; h.Reported != r.last.Seq || h.Session != r.last.Session || h.Seq < before+2 {
		t.Errorf("%+v, was %d; the last report is %d", h, before, r.last.Seq)
	}
}

// A circuit whose light nobody can judge carries traffic, and has not failed.
// Method: a switch that reports one circuit of each state, on its page of measures.
func TestCircuitsAreCountedByTheirState(t *testing.T) {
	s := &Status{Switch: &SwitchStatus{}}
	for state := range proto.NumPortStates {
		s.Reported.Circuits = append(s.Reported.Circuits, proto.CircuitReport{State: proto.PortState(state)})
	}
	page := string(measuredBy(s))
	for state := range proto.NumPortStates {
		want := fmt.Sprintf("ringlight_agent_circuits{state=%q} 1\n", proto.PortState(state).String())
		if !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
}
