package ocs_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/ocs"
	"ringlight/proto"
	"ringlight/sim"
)

// Goal: modules of either kind, a controller that is slow to answer among them, make and
// check patterns over a fibre, count as many errors as the light makes, every second bit
// where nobody makes what they check, and stop; a module without a retimer says so.
// Method: two bundles of a board and a fibre between them, cells without their neighbours'
// heat allowed for, so that some lanes have errors; the simulator's ratio.
func TestPatternsGoOverAFibre(t *testing.T) {
	for name, make := range map[string]func() *rig{ // any order: each by itself
		"chips":              func() *rig { return newRig(t, 2, 2) },
		"CMIS":               func() *rig { return newCMISRigOf(t, 2, 2, false, sim.DefaultMCITiming()) },
		"CMIS behind a mux":  func() *rig { return newCMISRigOf(t, 2, 2, true, sim.DefaultMCITiming()) },
		"CMIS that is slow":  func() *rig { return newCMISRigOf(t, 2, 2, true, sim.SlowMCITiming()) },
		"chips, no retimers": func() *rig { return newRig(t, 2, 2) },
	} {
		t.Run(name, func(t *testing.T) {
			r := make()
			at := sim.Port{Board: r.id, Path: hal.LOSExternal1}
			far := at
			far.Bundle = 1
			if err := r.world.Connect(at, far, sim.Fibre{LossMilliDB: 200}); err != nil {
				t.Fatal(err)
			}
			idle := func() bool { return r.optics[0].Status().Ready && r.optics[1].Status().Ready }
			if !r.until(5*time.Second, idle) {
				t.Fatal("not ready")
			}
			for b := range r.optics {
				if err := r.optics[b].Select(r.world.Now(), proto.External1); err != nil {
					t.Fatal(err)
				}
			}
			r.run(300 * time.Millisecond)
			if name == "chips, no retimers" {
				r.board.Bundles[0].Modules[1].Pattern = 0
				if err := r.optics[0].Patterns.Ask(proto.PatternMake); !errors.Is(err, hal.ErrUnsupported) {
					t.Errorf("without a retimer: %v", err)
				}
				return
			}
			ask := func(b int, what proto.Pattern) {
				t.Helper()
				r.events[b] = nil
				if err := r.optics[b].Patterns.Ask(what); err != nil {
					t.Fatal(err)
				}
				over := func() bool {
					for _, e := range r.events[b] {
						if e.Kind == ocs.Patterned {
							if e.Err != nil {
								t.Fatal(e.Err)
							}
							return true
						}
					}
					return false
				}
				if !r.until(10*time.Second, over) {
					t.Fatalf("pattern %d of bundle %d: no end", what, b)
				}
			}
			counts := func(b int) {
				t.Helper()
				r.optics[b].Recheck()
				r.run(50 * time.Millisecond)
				ask(b, proto.PatternCheck)
				r.run(20 * time.Millisecond)
				ask(b, proto.PatternCount)
				for m, got := range r.optics[b].Patterns.Bits() {
					truth := r.world.Inside(r.id, b, m).BitErrorRatios
					for lane, n := range got.Bits {
						want := float64(n) * truth[lane]
						if off := math.Abs(float64(got.Errors[lane]) - want); n < 1e9 || off > 6*math.Sqrt(want)+1 {
							t.Errorf("bundle %d module %d lane %d: %d errors in %d bits, want %.0f", b, m, lane, got.Errors[lane], n, want)
						}
					}
					if loss := got.Launched - got.Upper; loss < 2500 || loss > 6500 {
						t.Errorf("bundle %d module %d: %v launched, %v comes", b, m, got.Launched, got.Upper)
					}
				}
			}
			ask(0, proto.PatternMake)
			counts(1)
			counts(0) // nobody makes what it checks
			ask(1, proto.PatternMake)
			counts(0)
			ask(0, proto.NoPattern)
			ask(1, proto.NoPattern)
			for b := range r.optics {
				for m := range 2 {
					if in := r.world.Inside(r.id, b, m); in.Makes|in.Checks != 0 {
						t.Errorf("bundle %d module %d makes %02x, checks %02x", b, m, in.Makes, in.Checks)
					}
				}
			}
		})
	}
}

// Goal: modules that make no patterns and monitor their bit error ratio before correction
// are counted by that, a lane whose receiver is noisy as well, and not before a sample is of
// the light that is on.
func TestMonitorsInPlaceOfPatterns(t *testing.T) {
	timing := sim.DefaultMCITiming()
	timing.NoPatterns = true
	r := newCMISRigOf(t, 2, 2, true, timing)
	at := sim.Port{Board: r.id, Path: hal.LOSExternal1}
	far := at
	far.Bundle = 1
	if err := r.world.Connect(at, far, sim.Fibre{LossMilliDB: 200}); err != nil {
		t.Fatal(err)
	}
	if err := r.world.Inject(r.id, sim.Fault{Kind: sim.Deaf, Bundle: 1, Module: 1, Index: 6000}); err != nil {
		t.Fatal(err)
	}
	if !r.until(5*time.Second, func() bool { return r.optics[0].Status().Ready && r.optics[1].Status().Ready }) {
		t.Fatal("not ready")
	}
	for b := range r.optics {
		if err := r.optics[b].Select(r.world.Now(), proto.External1); err != nil {
			t.Fatal(err)
		}
	}
	r.run(300 * time.Millisecond)
	ask := func(what proto.Pattern) []proto.ModuleBits {
		t.Helper()
		if err := r.optics[1].Patterns.Ask(what); err != nil {
			t.Fatal(err)
		}
		r.run(100 * time.Millisecond)
		return r.optics[1].Patterns.Bits()
	}
	ask(proto.PatternMake)
	ask(proto.PatternCheck)
	for m, got := range ask(proto.PatternCount) {
		if got.Bits[0] != 0 {
			t.Errorf("module %d: %d bits at once", m, got.Bits[0])
		}
	}
	r.run(2 * time.Second)
	some := 0
	for m, got := range ask(proto.PatternCount) {
		ratios := r.world.Inside(r.id, 1, m).PreFEC
		for lane := range got.Bits {
			if got.Bits[lane] != 1e11 || math.Abs(float64(got.Errors[lane])-1e11*ratios[lane]) > 1+0.003*1e11*ratios[lane] {
				t.Errorf("module %d lane %d: %d errors in %d bits, the light makes %g", m, lane, got.Errors[lane], got.Bits[lane], ratios[lane])
			}
			if got.Errors[lane] > 0 {
				some++
			}
		}
	}
	if some == 0 {
		t.Error("no lane has errors: nothing is compared")
	}
}
