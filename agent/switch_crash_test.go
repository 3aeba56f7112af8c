package agent

import (
	"slices"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/node"
	"ringlight/ocs/circuit"
	"ringlight/proto"
	"ringlight/sim"
)

// stage is a rig with four circuits of other jobs that stay and four that a
// committed plan moves: the old ones, the new plan.
func stage(t testing.TB) (r *switchRig, old []proto.Circuit, next *proto.Desired) {
	t.Helper()
	r = newSwitchRig(t, 8)
	r.start()
	old = shift(8, 8, 5)
	r.roll(old...)
	moved := append([]proto.Circuit(nil), old...)
	for i := range 4 {
		moved[4+i].B = old[4+(i+1)%4].B
		r.watched = append(r.watched, circuit.Pair{A: old[i].A, B: old[i].B})
	}
	next = r.desired(moved...)
	if a := r.prepare(next); a.Code != proto.OK {
		t.Fatalf("%+v", a)
	}
	r.decide(next, proto.Commit)
	return r, old, next
}

func TestSwitchKilledAtAnyMomentEndsOldOrNew(t *testing.T) {
	// Goal: whenever the agent dies in a change, its next life, alone, moves no
	// mirror: it has all of the old circuits when the commit was not on disk, as
	// then no mirror had moved, and says so; when it was, it holds the light that
	// is there and says that no plan is in effect. No circuit that is in both ever
	// loses light, and none that was told as tuned. Then the planner repeats
	// itself, and the change is made.
	// Method: the change is cut after every single step of the world.
	r, _, next := stage(t)
	steps := 0
	for !r.done(next) {
		r.step(r.world.Now() + time.Second)
		steps++
	}
	const oldPlan, held, newPlan = "old", "held", "new"
	ends := map[string]int{}
	for cut := range steps + 1 {
		r, old, next := stage(t)
		for range cut {
			r.step(r.world.Now() + time.Second)
		}
		if r.last.Generation == next.Generation {
			for _, c := range r.last.Circuits {
				if p := (circuit.Pair{A: c.A, B: c.B}); c.State == proto.Tuned && c.A >= 4 {
					r.watched = append(r.watched, p)
				}
			}
		}
		began := r.spi > 0
		committed := r.disk.Journal.State.Applied.Desired.Generation == next.Generation
		if began && r.spi > 0 && !committed && r.last.Generation != next.Generation && r.moved(old) {
			t.Fatalf("cut %d: mirrors moved before the disk knew why", cut)
		}
		r.kill()
		r.run(20*time.Millisecond, nil)
		found := r.light()
		r.boot()
		r.spi = 0
		r.run(3*time.Second, nil)
		r.start()
		if !slices.Equal(r.light(), found) || r.spi > 0 {
			t.Errorf("cut %d: light %v, was %v; %d mirror writes", cut, r.light(), found, r.spi)
		}
		switch known := r.disk.Journal.State; {
		case !committed:
			r.checkLight(old...)
			ends[oldPlan]++
		case known.Moving:
			ends[held]++
			if r.last.Generation != 0 {
				t.Errorf("cut %d: reports generation %d, which is not known to be there", cut, r.last.Generation)
			}
		default:
			ends[newPlan]++
			r.checkLight(next.Circuits...)
		}
		r.publish(switchTopics.Desired(switchNode), next)
		r.decide(next, proto.Commit)
		r.must("done after all", 3*time.Second, func() bool { return r.done(next) })
		r.checkLight(next.Circuits...)
		if len(r.drops) > 0 {
			t.Errorf("cut %d: %d drops, first %s", cut, len(r.drops), r.drops[0])
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d moments: %v", steps+1, ends)
	if ends[oldPlan] == 0 || ends[held] == 0 || ends[newPlan] == 0 {
		t.Errorf("%v: that shows little", ends)
	}
}

// moved tells whether any of the circuits has lost its light.
func (r *switchRig) moved(list []proto.Circuit) bool {
	for _, c := range list {
		if !r.lit(c) {
			return true
		}
	}
	return false
}

func TestSwitchKeepsWhatIsStaged(t *testing.T) {
	// Goal: a life that ends between prepare and commit leaves a plan that the
	// next one can commit; nothing moves in between.
	r := newSwitchRig(t, 8)
	r.start()
	old := r.roll(shift(8, 8, 1)...)
	d := r.desired(shift(8, 8, 2)...)
	r.prepare(d)
	r.kill()
	r.spi = 0
	r.boot()
	r.start()
	if r.spi != 0 || r.last.Generation != old.Generation || r.last.StagedGeneration != d.Generation {
		t.Fatalf("%d mirror writes, %+v", r.spi, r.last)
	}
	if e := r.events[len(r.events)-1]; e.Kind != proto.EvStarted || e.Cause != proto.CauseAdopted {
		t.Errorf("%+v", e)
	}
	r.decide(d, proto.Commit)
	r.must("done", 3*time.Second, func() bool { return r.done(d) })
	r.checkLight(d.Circuits...)
}

func TestSwitchFailsStatic(t *testing.T) {
	// Goal: without a broker, without a planner and without an agent nothing
	// moves; a restarted agent adopts what it finds and moves nothing either.
	r := newSwitchRig(t, 8)
	r.start()
	d := r.roll(shift(8, 8, 3)...)
	for _, c := range d.Circuits {
		r.watched = append(r.watched, circuit.Pair{A: c.A, B: c.B})
	}
	r.spi = 0
	r.link(false)
	r.run(time.Minute, nil)
	r.kill()
	r.run(time.Minute, nil)
	r.boot()
	r.run(time.Minute, nil)
	r.start()
	if r.spi != 0 || len(r.drops) > 0 || !r.done(d) {
		t.Errorf("%d mirror writes, %d drops, %+v", r.spi, len(r.drops), r.last)
	}
	for _, e := range r.events {
		if e.Kind != proto.EvStarted && e.Kind != proto.EvApplied {
			t.Errorf("%+v", e)
		}
	}
}

func TestSwitchStaysDarkAfterALossOfPower(t *testing.T) {
	// Goal: after a loss of power the journal's circuits are not lit again, as
	// the journal may be old; a planner's word on the generation, or another
	// one, brings them back.
	for _, again := range []bool{true, false} {
		r := newSwitchRig(t, 8)
		r.start()
		d := r.roll(shift(5, 8, 3)...)
		r.kill()
		r.world.SetPower(r.id, false)
		r.run(time.Second, nil)
		r.world.SetPower(r.id, true)
		r.spi, r.events = 0, nil
		r.boot()
		r.start()
		r.run(time.Minute, nil)
		if r.spi != 0 {
			t.Fatalf("%d mirror writes", r.spi)
		}
		r.checkLight()
		if e := r.events[0]; e.Kind != proto.EvStarted || e.Cause != proto.CauseColdStart {
			t.Errorf("%+v", e)
		}
		for _, c := range r.last.Circuits {
			if c.State != proto.Failed {
				t.Errorf("%+v", c)
			}
		}
		if again {
			r.publish(switchTopics.Desired(switchNode), d)
			r.decide(d, proto.Commit)
			r.must("lit again", 3*time.Second, func() bool { return r.done(d) })
		} else {
			d = r.roll(d.Circuits...)
		}
		r.checkLight(d.Circuits...)
	}
}

func TestSwitchWithoutItsMonitorsTakesNoPlan(t *testing.T) {
	// Goal: a board that does not answer is told as such and takes no circuits;
	// it comes back by itself.
	hw, _ := hal.DefaultMEMS(8)
	stuck := sim.Fault{Kind: sim.BusStuck, Bus: hw.Mirrors.Monitors[hal.SideA][0].Bus}
	r := newSwitchRig(t, 8, stuck)
	r.start()
	if a := r.prepare(r.desired(shift(3, 8, 1)...)); a.Code != proto.HardwareFailed || a.Field != "circuits" {
		t.Fatalf("%+v", a)
	}
	if r.last.Mode != proto.ModeIsolated || len(r.last.Alarms) != 1 {
		t.Errorf("%+v", r.last)
	}
	if err := r.world.Repair(r.id, stuck); err != nil {
		t.Fatal(err)
	}
	r.must("back", time.Minute, func() bool { return r.last.Mode == proto.ModeService })
	r.checkLight(r.roll(shift(3, 8, 1)...).Circuits...)
}

func TestSwitchWhoseBoardLosesPowerComesBack(t *testing.T) {
	// Goal: a board that loses its power under a running agent is told as out of
	// service; when it answers again the switch says that its plan is not in
	// effect, and the planner's repetition brings it back.
	r := newSwitchRig(t, 8)
	r.start()
	d := r.roll(shift(5, 8, 3)...)
	r.world.SetPower(r.id, false)
	r.must("told", 5*time.Second, func() bool { return r.last.Mode == proto.ModeIsolated })
	r.run(20*time.Second, nil)
	r.world.SetPower(r.id, true)
	r.must("answers", 10*time.Second, func() bool { return r.last.Mode == proto.ModeService })
	r.spi = 0
	r.run(time.Minute, nil)
	if r.spi != 0 || r.last.Generation != 0 {
		t.Errorf("%d mirror writes, generation %d", r.spi, r.last.Generation)
	}
	r.publish(switchTopics.Desired(switchNode), d)
	r.decide(d, proto.Commit)
	r.must("lit again", 3*time.Second, func() bool { return r.done(d) })
	r.checkLight(d.Circuits...)
}

// Goal: a board that answers late at start is late, not lost: the switch waits for
// it, and is in service with the plan and the light that it had. One that never
// answers does not keep the agent from its planner for ever.
// Method: an agent starts anew over buses that begin everything 3 s late, and over
// some that begin after a minute.
func TestSlowBoardIsLateNotLost(t *testing.T) {
	r := newSwitchRig(t, 32)
	r.start()
	d := r.roll(shift(20, 32, 3)...)
	for _, c := range d.Circuits {
		r.watched = append(r.watched, circuit.Pair{A: c.A, B: c.B})
	}
	for _, slow := range [2]time.Duration{3 * time.Second, time.Minute} {
		r.kill()
		r.slow, r.last = slow, proto.Reported{}
		r.boot()
		r.link(true)
		began := r.world.Now()
		r.must("adopted", time.Minute, func() bool { return r.agent.adopted })
		took := r.world.Now() - began
		r.run(time.Second, nil)
		if slow < node.BoardPatience && (took < slow || r.last.Mode != proto.ModeService || r.last.Generation != d.Generation) || slow > node.BoardPatience && (took != node.BoardPatience || r.last.Mode == proto.ModeService) {
			t.Errorf("%v late: adopted after %v, mode %v, generation %d of %d", slow, took, r.last.Mode, r.last.Generation, d.Generation)
		}
		r.slow, r.late = 0, nil
	}
	if len(r.drops) > 0 {
		t.Error(r.drops)
	}
}

func TestHeldPortIsDarkUntilItIsLetGo(t *testing.T) {
	// Goal: an operator's hold darkens its circuit alone, outlives the process,
	// and keeps no other change from being made.
	r := newSwitchRig(t, 8)
	r.start()
	d := r.roll(shift(4, 8, 1)...)
	if a := r.ask(Ask{Verb: AskHold, Array: hal.SideB, Port: 2, Override: proto.ForceBlocked}); a.Err != nil || len(a.Status.Switch.Held) != 1 {
		t.Fatalf("%+v", a)
	}
	if a := r.ask(Ask{Verb: AskHold, Array: hal.SideB, Port: 8}); a.Err == nil || a.Err.Code != proto.NotFound {
		t.Fatalf("%+v", a.Err)
	}
	r.run(time.Second, nil)
	others := []proto.Circuit{d.Circuits[0], d.Circuits[2], d.Circuits[3]}
	r.checkLight(others...)
	r.kill()
	r.boot()
	r.start()
	if s := r.last.Circuits[1].State; s != proto.Blocked || r.last.BypassSeq != 1 {
		t.Errorf("%v, bypass %d", s, r.last.BypassSeq)
	}
	extra := proto.Circuit{A: 6, B: 6, Job: 77}
	more := r.desired(append(d.Circuits, extra)...)
	r.prepare(more)
	r.decide(more, proto.Commit)
	r.run(time.Second, nil)
	r.checkLight(append(others, extra)...)
	if a := r.ask(Ask{Verb: AskHold, Array: hal.SideB, Port: 2}); a.Err != nil || len(a.Status.Switch.Held) != 0 {
		t.Fatalf("%+v", a)
	}
	r.must("back", 3*time.Second, func() bool { return r.done(more) })
	r.checkLight(more.Circuits...)
}
