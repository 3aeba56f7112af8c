package ocs_test

import (
	"errors"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/mzi"
	"ringlight/ocs"
	"ringlight/ocs/heater"
	"ringlight/proto"
	"ringlight/sim"
)

// kinds of events of bundle 0 since they were cleared.
func (r *rig) kinds() (list []ocs.EventKind) {
	for _, e := range r.events[0] {
		list = append(list, e.Kind)
	}
	return list
}

// Goal: the lanes of a bundle that carries light change: staged without moving
// it, dark while the heaters move, lit again by the new way, and well.
// Method: several permutations on a lit loopback; edges of the LOS line and the
// light of each lane by the module's own diodes; a restart that is told the
// permutation adopts it.
func TestLanesChangeBreakBeforeMake(t *testing.T) {
	r := calibrated(t, 2, proto.Loopback)
	o := r.optics[0]
	for _, p := range []mzi.Permutation{{0, 1, 2, 3, 4, 5, 6, 7}, {7, 6, 5, 4, 3, 2, 1, 0}, {3, 0, 5, 1, 7, 2, 6, 4}, mzi.Halves} {
		r.events[0] = nil
		if err := o.SetLanes(r.world.Now(), p); err != nil {
			t.Fatal(err)
		}
		dark := false
		began, ended := time.Duration(0), time.Duration(0)
		r.until(r.world.Now()+20*time.Millisecond, func() bool {
			_, shining := r.world.Selected(r.id, 0)
			switch {
			case !shining && !dark:
				dark, began = true, r.world.Now()
			case shining && dark:
				dark, ended = false, r.world.Now()
			}
			return false
		})
		s := o.Status()
		if s.State != proto.Tuned || s.Path != proto.Loopback || o.Lanes() != p || began == 0 || ended-began > time.Millisecond {
			t.Errorf("%v: %+v, dark for %v, events %v", p, s, ended-began, r.kinds())
		}
		for _, e := range r.events[0] {
			if e.Kind == ocs.PathFailed || e.Kind == ocs.Degraded {
				t.Errorf("%v: %+v", p, e)
			}
		}
		if d := s.Measured - s.Expected; d < -200 || d > 200 {
			t.Errorf("%v: own light %v, expected %v", p, s.Measured, s.Expected)
		}
		t.Logf("%v: without light for %v", p, ended-began)
	}
	checkLimits(t, r)
	if err := o.SetLanes(r.world.Now(), mzi.Permutation{}); err == nil {
		t.Error("eight lanes to one: accepted")
	}
}

// Goal: a path that is asked for while the lanes change comes, and no light is
// seen before the way is set.
// Method: Select at instants over the whole of a change.
func TestSelectWhileLanesChange(t *testing.T) {
	r := calibrated(t, 1, proto.Loopback)
	o := r.optics[0]
	p, q := mzi.Permutation{0, 1, 2, 3, 4, 5, 6, 7}, mzi.Halves
	for after := time.Duration(0); after < 1200*time.Microsecond; after += 53 * time.Microsecond {
		if err := o.SetLanes(r.world.Now(), p); err != nil {
			t.Fatal(err)
		}
		if err := o.SetLanes(r.world.Now(), p); !errors.Is(err, ocs.ErrNotReady) {
			t.Errorf("two changes at the same time: %v", err)
		}
		r.run(after)
		for _, path := range []proto.Path{proto.External2, proto.Loopback} {
			if err := o.Select(r.world.Now(), path); err != nil {
				t.Fatal(err)
			}
			r.run(3 * time.Millisecond)
			if s := o.Status(); s.Path != path || path == proto.Loopback && s.State != proto.Tuned {
				t.Errorf("after %v: asked for %v: %+v", after, path, s)
			}
		}
		if o.Lanes() != p {
			t.Errorf("after %v: lanes %v", after, o.Lanes())
		}
		p, q = q, p
	}
}

// Goal: lanes are refused where nobody knows the module.
// Method: a bundle that is out of service for a foreign module, and one without
// a calibration.
func TestLanesAreRefusedWhereNothingIsKnown(t *testing.T) {
	r := calibrated(t, 1, proto.Dark)
	own := r.optics[0].Status().Calibration
	if err := r.world.Exchange(r.id, 0, 0, sim.Catalogue(9, 1)[0], nil); err != nil {
		t.Fatal(err)
	}
	r.boot([]*ocs.Calibration{own})
	r.run(300 * time.Millisecond)
	if err := r.optics[0].SetLanes(r.world.Now(), mzi.Halves); !errors.Is(err, ocs.ErrOutOfService) {
		t.Errorf("a module that nobody knows: %v", err)
	}
	r.boot(make([]*ocs.Calibration, 1))
	r.run(50 * time.Millisecond)
	if err := r.optics[0].SetLanes(r.world.Now(), mzi.Halves); !errors.Is(err, ocs.ErrNotCalibrated) {
		t.Errorf("uncalibrated: %v", err)
	}
}

// Goal: a restart that is told the permutation finds it, and touches nothing.
// Method: lanes changed, a new life of the software with Config.Lanes and one
// without.
func TestRestartAdoptsLanes(t *testing.T) {
	r := calibrated(t, 2, proto.Loopback)
	cal := r.optics[0].Status().Calibration
	p := mzi.Permutation{2, 3, 0, 1, 6, 7, 4, 5}
	if err := r.optics[0].SetLanes(r.world.Now(), p); err != nil {
		t.Fatal(err)
	}
	r.run(20 * time.Millisecond)
	changed, _ := r.world.LastChange(sim.Port{Board: r.id, Path: hal.LOSLoopback})
	for _, told := range []bool{true, false} {
		r.lanes = mzi.Permutation{}
		if told {
			r.lanes = p
		}
		r.boot([]*ocs.Calibration{cal})
		r.ready()
		r.run(10 * time.Millisecond)
		if at, lit := r.world.LastChange(sim.Port{Board: r.id, Path: hal.LOSLoopback}); at != changed || !lit {
			t.Errorf("told %v: light changed at %v (was %v), lit %v", told, at, changed, lit)
		}
		differs := false
		for _, e := range r.events[0] {
			differs = differs || errors.Is(e.Err, heater.ErrReadBack)
		}
		if differs == told {
			t.Errorf("told %v: codes differ %v", told, differs)
		}
	}
}
