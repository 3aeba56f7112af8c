package ocs_test

import (
	"errors"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/ocs"
	"ringlight/proto"
	"ringlight/sim"
)

// calibrated is a bundle that calibrated itself and carries a path.
func calibrated(t *testing.T, modules int, p proto.Path) *rig {
	t.Helper()
	r := bare(t, 1, modules, 21)
	if end, _ := r.ends(); end.Kind != ocs.Calibrated {
		t.Fatal(end.Text)
	}
	r.ready()
	if err := r.optics[0].Select(r.world.Now(), p); err != nil {
		t.Fatal(err)
	}
	r.run(5 * time.Millisecond)
	r.events[0] = nil
	return r
}

// round is one health round over all modules.
func (r *rig) round() {
	for range r.board.Bundles[0].Modules {
		r.optics[0].Health.Round(r.world.Now())
		r.run(5 * time.Millisecond)
	}
}

// Goal: a laser that dies under way is found by the module's own diodes, and
// module and lane are named, once.
// Method: each lane of one module in turn; in loopback its diode tells and the
// path fails, on an external path the tap lacks its share. Two health rounds
// each: the second says nothing new. Repaired, the path is well again.
func TestDyingLaserIsNamed(t *testing.T) {
	for _, p := range []proto.Path{proto.Loopback, proto.External1, proto.External2} {
		r := calibrated(t, 2, p)
		for lane := range hal.Lanes {
			fault := sim.Fault{Kind: sim.LaserDead, Module: 1, Index: lane}
			if err := r.world.Inject(r.id, fault); err != nil {
				t.Fatal(err)
			}
			r.events[0] = nil
			r.round()
			r.round()
			if len(r.events[0]) != 1 {
				t.Fatalf("%v lane %d: %d events: %+v", p, lane, len(r.events[0]), r.events[0])
			}
			e := r.events[0][0]
			kind, named, state := ocs.Degraded, lane, r.optics[0].Status().State
			if p == proto.Loopback {
				kind, named = ocs.PathFailed, (lane+hal.HalfLanes)%hal.Lanes // the diode where it ends
				if state != proto.Failed {
					t.Errorf("lane %d dead in loopback: %v", lane, state)
				}
			} else if state == proto.Failed {
				t.Errorf("%v: failed for one lane's share of a tap", p)
			}
			if e.Kind != kind || e.Module != 1 {
				t.Errorf("%v lane %d: %+v", p, lane, e)
			}
			if int(e.Lane) != named {
				t.Errorf("%v lane %d: named %d", p, lane, e.Lane)
			}
			if err := r.world.Repair(r.id, fault); err != nil {
				t.Fatal(err)
			}
			r.round()
			if got := r.events[0][len(r.events[0])-1]; got.Kind != ocs.Verified {
				t.Errorf("%v lane %d repaired: %+v", p, lane, got)
			}
		}
		if s := r.optics[0].Status().State; p == proto.Loopback && s != proto.Tuned {
			t.Errorf("repaired, but %v", s)
		}
	}
}

// Goal: a module that was exchanged is not driven by its predecessor's codes.
// Method: the calibration of another module, on cold chips, the module's own
// EEPROM without one; then the right one.
func TestForeignModuleIsNotDriven(t *testing.T) {
	r := calibrated(t, 1, proto.Dark)
	own := r.optics[0].Status().Calibration
	r.world.Remember(r.id, 0, 0, nil) // nothing in the EEPROM speaks for the module
	strange := *own.Modules[0]
	strange.Serial = "RL9999999999"
	r.world.SetPower(r.id, false)
	r.run(10 * time.Millisecond)
	r.world.SetPower(r.id, true)
	before := r.world.Limits(r.id)
	r.boot([]*ocs.Calibration{{Modules: []*ocs.ModuleCalibration{&strange}}})
	r.run(50 * time.Millisecond)
	s := r.optics[0].Status()
	if s.Ready || s.Machine != ocs.Faulted || !errors.Is(s.Err, ocs.ErrCalibrationForeign) {
		t.Errorf("%+v", s)
	}
	if err := r.optics[0].Select(r.world.Now(), proto.Loopback); !errors.Is(err, ocs.ErrOutOfService) {
		t.Errorf("select gives %v", err)
	}
	if r.world.Limits(r.id) != before {
		t.Error("heaters were driven")
	}
	r.boot([]*ocs.Calibration{own})
	r.ready()
}

// Goal: chips that lost their codes get them back, and only those.
// Method: power off and on; the extinctions are as they were.
func TestLostCodesAreStagedAgain(t *testing.T) {
	r := calibrated(t, 2, proto.Loopback)
	before := r.world.Extinctions(r.id, 0, 1)
	cal := r.optics[0].Status().Calibration
	r.world.SetPower(r.id, false)
	r.run(10 * time.Millisecond)
	r.world.SetPower(r.id, true)
	r.boot([]*ocs.Calibration{cal})
	r.ready()
	if s := r.optics[0].Status(); s.Path != proto.Dark || s.State != proto.Blocked {
		t.Errorf("after power-on: %+v", s)
	}
	for k, db := range r.world.Extinctions(r.id, 0, 1) {
		if d := db - before[k]; d < -500 || d > 500 {
			t.Errorf("cell %d: %d mdB, was %d", k, db, before[k])
		}
	}
	if err := r.optics[0].Select(r.world.Now(), proto.Loopback); err != nil {
		t.Fatal(err)
	}
	r.run(5 * time.Millisecond)
	if s := r.optics[0].Status(); s.State != proto.Tuned {
		t.Errorf("%+v", s)
	}
}

// Goal: neither an idle Poll nor a switch allocates.
// Method: Select, the write's completion and the settling, with the completion
// made here; verification's reads are answered as well.
func TestSwitchAllocatesNothing(t *testing.T) {
	r := calibrated(t, 8, proto.Loopback)
	s := newSwitcher(r)
	s.once() // buffers grow once
	s.once()
	if n := testing.AllocsPerRun(100, s.once); n != 0 {
		t.Errorf("a switch with its verification allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, s.idle); n != 0 {
		t.Errorf("an idle Poll allocates %v times", n)
	}
}

// switcher switches to and fro against a board that answers at once.
type switcher struct {
	o    *ocs.Transceiver
	now  time.Duration
	ops  []hal.BusOp
	made [64]hal.Completion
	done []*hal.Completion
	seen []ocs.Event
	path proto.Path
}

func newSwitcher(r *rig) *switcher {
	return &switcher{o: r.optics[0], now: r.world.Now(), path: proto.External1, done: make([]*hal.Completion, 0, 64)}
}

func (s *switcher) idle() { s.ops, _ = s.o.Poll(s.now, nil, s.ops[:0]) }

func (s *switcher) once() {
	s.path = proto.External1 + proto.External2 - s.path
	if err := s.o.Select(s.now, s.path); err != nil {
		panic(err)
	}
	for range 10 {
		s.ops, _ = s.o.Poll(s.now, s.done, s.ops[:0])
		s.done = s.done[:0]
		s.now += 50 * time.Microsecond
		for i, op := range s.ops {
			for _, m := range op.Op.Msgs {
				for j := range m.R {
					m.R[j] = 0xFF // all the light one could wish for
				}
			}
			s.made[i] = hal.Completion{Bus: op.Bus, Op: op.Op, Start: s.now, End: s.now}
			s.done = append(s.done, &s.made[i])
		}
	}
	s.seen = s.o.TakeEvents(s.seen[:0])
}

// BenchmarkSelect is one switch from Select to Switched, with the reads that
// verify it on eight modules.
func BenchmarkSelect(b *testing.B) {
	s := newSwitcher(calibrated(&testing.T{}, 8, proto.Loopback))
	b.ReportAllocs()
	for b.Loop() {
		s.once()
	}
}

// BenchmarkCalibrate is one module from nothing on the simulated board.
func BenchmarkCalibrate(b *testing.B) {
	for i := 0; b.Loop(); i++ {
		r := bare(&testing.T{}, 1, 1, uint64(i))
		r.ends()
	}
}

// Goal: a bundle with a module that gets too warm has failed, whatever its
// light says, and is not well before it has cooled; both kinds of module.
// Method: a blocked draught on one of two modules; the module is named, once.
func TestTooWarmIsNotUsed(t *testing.T) {
	cmisRig := newCMISRig(t, 2, true, sim.DefaultMCITiming())
	cmisRig.readyCMIS()
	if err := cmisRig.optics[0].Select(cmisRig.world.Now(), proto.Loopback); err != nil {
		t.Fatal(err)
	}
	cmisRig.run(time.Second)
	for name, r := range map[string]*rig{"chips": calibrated(t, 2, proto.Loopback), "cmis": cmisRig} { // any order
		rounds := func() {
			for range 4 {
				r.optics[0].Health.Round(r.world.Now())
				r.run(50 * time.Millisecond)
			}
		}
		hot := sim.Fault{Kind: sim.ModuleHot, Module: 1}
		rounds()
		r.events[0] = nil
		if err := r.world.Inject(r.id, hot); err != nil {
			t.Fatal(err)
		}
		rounds()
		var told []ocs.Event
		for _, e := range r.events[0] {
			if errors.Is(e.Err, ocs.ErrTooHot) {
				told = append(told, e)
			}
		}
		if len(told) != 1 || told[0].Kind != ocs.PathFailed || told[0].Module != 1 || r.optics[0].Status().State != proto.Failed {
			t.Errorf("%s: too warm: %+v, state %v; want one event that names module 1", name, r.events[0], r.optics[0].Status().State)
		}
		if err := r.world.Repair(r.id, hot); err != nil {
			t.Fatal(err)
		}
		r.events[0] = nil
		rounds()
		if n := len(r.events[0]); n == 0 || r.events[0][n-1].Kind != ocs.Verified {
			t.Errorf("%s: cooled: %+v", name, r.events[0])
		}
	}
}

// Goal: where a tap lacks more than any lane's share no lane is named, for it would be one
// that may be well.
// Method: lanes of one module die one after the other on an external path; a health round
// after each.
func TestSeveralDeadLasersNameNoLane(t *testing.T) {
	r := calibrated(t, 2, proto.External1)
	for lane := range 4 {
		r.events[0] = nil
		r.plant(sim.Fault{Kind: sim.LaserDead, Module: 1, Index: lane})
		r.round()
		for _, e := range r.events[0] {
			if e.Module != 1 || (e.Lane == ocs.None) != (lane > 0) {
				t.Errorf("%d lanes dead: %+v", lane+1, e)
			}
		}
		if len(r.events[0]) == 0 && lane < 2 {
			t.Errorf("%d lanes dead: not told", lane+1)
		}
	}
}
