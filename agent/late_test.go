package agent

import (
	"strings"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/node"
	"ringlight/proto"
	"ringlight/sim"
)

// lights are when light last came or went anywhere in a fleet.
func (f *fleet) lights() (last time.Duration) {
	for i := range f.nodes {
		for b := range 2 {
			for path := range hal.NumLOS {
				at, _ := f.world.LastChange(sim.Port{Board: sim.BoardID(i), Bundle: b, Path: path})
				last = max(last, at)
			}
		}
	}
	return last
}

// Goal: a board that answers late at start costs nobody's light. Its node says
// for what it waits, and is in service with its ring when it has been read; one that
// says nothing for long is told of, its light left, and taken back when it answers.
// Method: an agent of a ring starts anew over buses that begin nothing before 3 s, or
// a minute, have passed: all of its buses, or those of one bundle. The boards' own
// record judges light.
func TestLateBoardKeepsItsLight(t *testing.T) {
	for _, c := range []struct {
		name string
		late time.Duration
		only int // bundle that is late; -1: both
	}{{"both, 3 s", 3 * time.Second, -1}, {"one, 3 s", 3 * time.Second, 1}, {"both, a minute", time.Minute, -1}, {"one, a minute", time.Minute, 1}} {
		t.Run(c.name, func(t *testing.T) {
			f := ringed(t, 4, 1)
			f.run(time.Second, nil)
			x, before, ready := f.nodes[1], f.world.Now(), f.world.Now()+c.late
			x.last = proto.Reported{}
			seen := len(x.events)
			var kept []Work
			f.asked = func(y *fleetNode, w Work) bool {
				held := y == x && f.world.Now() < ready && (c.only < 0 || int(w.Op.Token>>tokenShift)-1 == c.only)
				if held {
					kept = append(kept, w)
				}
				return held
			}
			f.kill(x)
			f.boot(x)
			f.link(x, true)
			f.heard()
			f.run(c.late-time.Millisecond, nil)
			if !strings.Contains(strings.Join(f.trace, "\n"), "bundle 1: hardware not read") {
				t.Errorf("nobody was told what is waited for: %v", f.trace)
			}
			told := len(x.last.Alarms) > 0 && strings.Contains(x.last.Alarms[len(x.last.Alarms)-1].Text, "do not answer: hardware not read")
			if told != (c.late > node.BoardPatience) {
				t.Errorf("after %v the planner was told %+v", c.late, x.last.Alarms)
			}
			f.run(ready-f.world.Now(), nil)
			for _, w := range kept {
				if err := f.world.Submit(f.world.Now(), sim.BoardID(x.id), w.Bus, w.Op); err != nil {
					t.Fatal(err)
				}
			}
			f.must("back in its ring", 3*time.Second, func() bool { return f.linkedTo(0, 1) && f.linkedTo(1, 2) })
			f.run(2*time.Second, nil)
			if at := f.lights(); at > before {
				t.Errorf("light changed %v after the start", at-before)
			}
			if m := x.host.View().Mode(); m != proto.ModeService || len(x.last.Alarms) > 0 {
				t.Errorf("mode %v, alarms %+v", m, x.last.Alarms)
			}
			for _, e := range x.events[seen:] {
				if e.Kind == proto.EvAdopted || e.Kind == proto.EvIsolated || e.Kind == proto.EvPathFailed || e.Cause == proto.CauseColdStart {
					t.Errorf("not so: %v %v->%v %v", e.Kind, e.FromPath, e.Path, e.Cause)
				}
			}
			if t.Failed() {
				for _, line := range f.trace {
					t.Log(line)
				}
			}
			f.checkCycle(0, 1, 2, 3)
		})
	}
}

// Goal: a machine hears how old the word of a change of light is, so that an agent
// that was late asks again.
// Method: a node loses power for good; every edge was noted long ago, or just now.
// With nobody to link to, a side closes once, and three times more where it was late.
func TestLateEdgesAreTold(t *testing.T) {
	for late, closed := range map[time.Duration]int{0: 1, time.Millisecond: 4} { // any order
		f := ringed(t, 2, 1)
		f.run(time.Second, nil)
		f.edge = func(e *hal.Edge) { e.At -= late }
		f.power(f.nodes[1], false)
		f.run(3*time.Second, nil)
		count := 0
		for _, e := range f.nodes[0].events {
			if e.Kind == proto.EvClosed {
				count += int(e.Count)
			}
		}
		if count != closed {
			t.Errorf("edges noted %v ago: closed %d times, want %d", late, count, closed)
		}
	}
}

// Goal: an agent tells how old what it says of a board is.
// Method: its buses answer, then answer nothing for 40 s.
func TestAgeOfABoardsAnswersIsTold(t *testing.T) {
	f := startFleet(&fleet{t: t, decide: fleetDecide, health: 10 * time.Second}, 2, 1).join()
	f.run(30*time.Second, nil)
	read := func() time.Duration {
		return time.Duration(f.nodes[1].host.Status(f.world.Now()).Bundles[0].ReadUS) * time.Microsecond
	}
	if age := read(); age <= 0 || age > 15*time.Second {
		t.Errorf("answers: read %v ago", age)
	}
	f.asked = func(y *fleetNode, _ Work) bool { return y == f.nodes[1] }
	f.run(40*time.Second, nil)
	if age := read(); age < 39*time.Second || age > 55*time.Second {
		t.Errorf("silent for 40 s: read %v ago", age)
	}
}
