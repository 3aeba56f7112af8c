package ocs_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/cmis"
	"ringlight/ocs"
	"ringlight/proto"
	"ringlight/sim"
)

// lockedCMIS is a bundle of two CMIS modules on a path.
func lockedCMIS(t *testing.T, p proto.Path, mode ocs.LockMode, timing sim.MCITiming) *rig {
	t.Helper()
	return someCMIS(t, 2, p, mode, timing)
}

// someCMIS is one with the first of these modules, or both.
func someCMIS(t *testing.T, modules int, p proto.Path, mode ocs.LockMode, timing sim.MCITiming) *rig {
	t.Helper()
	cal := *calibratedCMIS(t)
	cal.Modules = cal.Modules[:modules]
	r := bareCMIS(t, modules, true, 3, timing)
	r.lock = ocs.LockConfig{Mode: mode}
	r.boot([]*ocs.Calibration{&cal})
	r.readyCMIS()
	if err := r.optics[0].Select(r.world.Now(), p); err != nil {
		t.Fatal(err)
	}
	r.run(50 * time.Millisecond)
	r.events[0] = nil
	return r
}

// rounds lets time go on with a health round every so often, and tells the least
// extinction of all modules between them, by the truth.
func (r *rig) rounds(p proto.Path, span, every time.Duration) (least int32) {
	least = 1 << 30
	for end := r.world.Now() + span; r.world.Now() < end; {
		r.round()
		r.run(every)
		for m := range r.board.Bundles[0].Modules {
			db, _ := r.held(m, p)
			least = min(least, db)
		}
	}
	return least
}

// Goal: modules with a controller hold the walk of docs/board.md on every path, and the
// host says so; without a lock a case that is 8 K warmer costs 25 dB and the taps tell.
// Method: the walk planted in each of two modules that carry light; health rounds; the
// truth between them, dither included.
func TestControllersHoldTheirModules(t *testing.T) {
	for _, c := range []struct {
		path proto.Path
		mode ocs.LockMode
		span time.Duration
		held proto.Held
	}{
		{proto.Loopback, ocs.LockAlways, 15 * time.Second, proto.HeldMZIs},
		{proto.External1, ocs.LockAlways, 15 * time.Second, proto.HeldAll},
		{proto.External2, ocs.LockAlways, 15 * time.Second, proto.HeldAll},
		{proto.External2, ocs.LockOff, 15 * time.Second, proto.HeldNothing},
	} {
		r := lockedCMIS(t, c.path, c.mode, sim.DefaultMCITiming())
		r.rounds(c.path, 2*time.Second, 100*time.Millisecond)
		for m := range 2 {
			if err := r.world.Inject(r.id, sim.Fault{Kind: sim.DriftWalk, Module: m}); err != nil {
				t.Fatal(err)
			}
		}
		if c.mode == ocs.LockOff {
			r.world.SetAmbient(r.id, 48_000)
		}
		least := r.rounds(c.path, c.span, c.span/40)
		held, why := r.optics[0].Held()
		told := r.toldMisrouted()
		t.Logf("lock %v, %v: least %.1f dB, held %v (%s), told %q, %+v", c.mode, c.path, float64(least)/1000, held, why, told, r.optics[0].Holds())
		if held != c.held || (c.mode == ocs.LockOff) != (least < 25_000) || (c.mode == ocs.LockOff) != (told != "") {
			t.Errorf("lock %v, %v: %v (%s), %d mdB, told %q", c.mode, c.path, held, why, least, told)
		}
	}
}

// toldMisrouted is what was said of light on the wrong side.
func (r *rig) toldMisrouted() (text string) {
	for _, e := range r.events[0] {
		if strings.Contains(e.Text, "light on the wrong side") {
			text += e.Text + "; "
		}
	}
	return text
}

// Goal: a cell that its module cannot hold is told: by the module where it knows, by
// the taps where it does not.
// Method: a case that gets colder than the lock can follow; the heater of an MZI2 that
// stops, which a module that goes to and fro with it takes for quiet.
func TestModuleThatCannotHoldSaysSo(t *testing.T) {
	for name, c := range map[string]struct { // any order: independent
		spoil func(*rig)
		why   string
	}{
		"cold":         {func(r *rig) { r.world.SetAmbient(r.id, 0) }, " does not hold cell "},
		"heater stuck": {func(r *rig) { r.plant(sim.Fault{Kind: sim.HeaterStuck, Module: 1, Index: hal.CellMZI2 + 3}) }, "module 1 lets light to the wrong side"},
	} {
		r := lockedCMIS(t, proto.External1, ocs.LockAlways, sim.DefaultMCITiming())
		r.rounds(proto.External1, 2*time.Second, 100*time.Millisecond)
		if held, why := r.optics[0].Held(); held != proto.HeldAll {
			t.Fatalf("%s: before: %v (%s)", name, held, why)
		}
		c.spoil(r)
		r.rounds(proto.External1, time.Second, 100*time.Millisecond)
		if name == "heater stuck" {
			r.rounds(proto.External1, 3*time.Second, 100*time.Millisecond)
		}
		held, why := r.optics[0].Held()
		if held != proto.HeldNothing || !strings.Contains(why, c.why) {
			t.Errorf("%s: %v (%s)", name, held, why)
		}
		if told := r.toldMisrouted(); name == "heater stuck" && !strings.Contains(told, "module 1") {
			t.Errorf("%s: told %q", name, told)
		}
	}
}

func (r *rig) plant(f sim.Fault) {
	r.t.Helper()
	if err := r.world.Inject(r.id, f); err != nil {
		r.t.Fatal(err)
	}
}

// Goal: a new life of the software adopts a module that holds, and one without a lock
// ends it.
// Method: 8 K more in the case; the host's word and the light.
func TestControllersAreToldOnDrift(t *testing.T) {
	p := proto.External2
	r := lockedCMIS(t, p, ocs.LockAlways, sim.DefaultMCITiming())
	r.rounds(p, 5*time.Second, 100*time.Millisecond) // codes that are right
	cal := r.optics[0].Status().Calibration
	again := func(mode ocs.LockMode) {
		r.lock.Mode = mode
		r.boot([]*ocs.Calibration{cal})
		r.readyCMIS()
	}
	again(ocs.LockOnDrift)
	r.round()
	r.round()
	if h := r.optics[0].Holds(); len(h) != 2 || !h[0].Engaged || !h[1].Engaged {
		t.Fatalf("not adopted: %+v", h)
	}
	r.world.SetAmbient(r.id, 48_000)
	before, _ := r.held(1, p)
	r.rounds(p, 4*time.Second, 100*time.Millisecond)
	after, cell := r.held(1, p)
	if before > 22_500 || after < 26_000 {
		t.Errorf("8 K warmer: %d mdB before, %d after (cell %d)", before, after, cell)
	}
	again(ocs.LockOff)
	r.round()
	r.run(20 * time.Millisecond)
	r.world.SetAmbient(r.id, 40_000)
	r.rounds(p, 4*time.Second, 100*time.Millisecond)
	if least, _ := r.held(1, p); least > 22_500 {
		t.Errorf("the lock was to be off: %d mdB", least)
	}
}

// Goal: a lock costs a switch nothing: the path comes as fast, its light is there, and
// no cell is left where a look put it.
// Method: paths to and fro at instants over whole looks, with slow controllers too.
func TestTriggerFreezesAControllersLock(t *testing.T) {
	for _, timing := range []sim.MCITiming{sim.DefaultMCITiming(), sim.SlowMCITiming()} {
		var took [2]time.Duration
		for i, mode := range []ocs.LockMode{ocs.LockOff, ocs.LockAlways} {
			r := lockedCMIS(t, proto.External1, mode, timing)
			r.rounds(proto.External1, 3*time.Second, 100*time.Millisecond)
			paths := []proto.Path{proto.External2, proto.Loopback, proto.External1}
			for n := range 18 {
				r.round()
				r.run(300*time.Millisecond + time.Duration(n)*7*time.Millisecond)
				p := paths[n%3]
				r.events[0] = nil
				asked := r.world.Now()
				if err := r.optics[0].Select(asked, p); err != nil {
					t.Fatal(err)
				}
				r.run(80 * time.Millisecond)
				verified := false
				for _, e := range r.events[0] {
					switch e.Kind {
					case ocs.Switched:
						took[i] = max(took[i], e.At-asked)
					case ocs.Verified:
						verified = true
					case ocs.PathFailed:
						t.Errorf("%v: %+v", p, e)
					}
				}
				if db, cell := r.held(0, p); mode == ocs.LockAlways && n > 5 && db < 24_500 {
					t.Errorf("%d: %v: cell %d at %d mdB", n, p, cell, db)
				}
				if mode == ocs.LockAlways && !verified && n > 5 {
					t.Errorf("%d: %v: not verified: %+v", n, p, r.events[0])
				}
			}
		}
		t.Logf("longest switch %v without, %v with a lock", took[0], took[1])
		if took[1] > took[0]*5/4+20*time.Microsecond {
			t.Errorf("longest switch %v without, %v with a lock", took[0], took[1])
		}
	}
}

// Goal: a controller that has no lock is said to have none, and light that it does not look
// at counts as good for minutes after its calibration, not in another life or a warmer case.
func TestControllerWithoutALockSaysSo(t *testing.T) {
	timing, p := sim.DefaultMCITiming(), proto.Loopback
	timing.NoLock = true
	r := bareCMIS(t, 1, false, 3, timing)
	r.lock = ocs.LockConfig{Mode: ocs.LockAlways}
	r.boot(make([]*ocs.Calibration, 1))
	r.run(3 * time.Second)
	if end, _ := r.ends(); end.Kind != ocs.Calibrated {
		t.Fatal(end.Text)
	}
	r.readyCMIS()
	if err := r.optics[0].Select(r.world.Now(), p); err != nil {
		t.Fatal(err)
	}
	r.rounds(p, time.Second, 100*time.Millisecond)
	if held, why := r.optics[0].Held(); held != proto.HeldNothing || why != "the controller of module 0 has no lock" {
		t.Errorf("%v (%s)", held, why)
	}
	is := func(when, want string) {
		t.Helper()
		if why := r.optics[0].Unproven(); why != want {
			t.Errorf("%s: %q, want %q", when, why, want)
		}
	}
	is("just calibrated", "")
	r.world.SetAmbient(r.id, 46_000)
	r.rounds(p, time.Second, 100*time.Millisecond)
	is("6 K warmer", "module 0: not looked at since its calibration, 6.0 K away")
	r.world.SetAmbient(r.id, 40_000)
	r.boot([]*ocs.Calibration{r.optics[0].Status().Calibration})
	r.readyCMIS()
	r.rounds(p, time.Second, 100*time.Millisecond)
	is("another life", "module 0: not looked at since this life began")
}

// Goal: a look of a controller proves what it saw: not what a dark lane hides, nothing in
// another life before it looks again, nothing of a module that has begun anew.
// Method: a laser that dies and returns; a new life; a reset of one module by another host.
func TestControllersLookProvesWhatItSaw(t *testing.T) {
	p := proto.External1
	r := lockedCMIS(t, p, ocs.LockOnDrift, sim.DefaultMCITiming())
	is := func(when, want string) {
		t.Helper()
		if why := r.optics[0].Unproven(); why != want {
			t.Errorf("%s: %q, want %q", when, why, want)
		}
	}
	look := func() { r.rounds(p, 5*time.Second, 100*time.Millisecond) }
	look()
	is("looked at", "")
	f := sim.Fault{Kind: sim.LaserDead, Module: 1, Index: 3}
	r.plant(f)
	look()
	is("a dark lane", "module 1: not looked at since a lane was dark, or may have been")
	if err := r.world.Repair(r.id, f); err != nil {
		t.Fatal(err)
	}
	look()
	is("it is back", "")
	r.boot([]*ocs.Calibration{r.optics[0].Status().Calibration})
	r.readyCMIS()
	is("another life", "module 0: not looked at since this life began")
	look()
	is("looked at by it", "")
	m := r.board.Bundles[0].Modules[1]
	reset := &hal.Op{Msgs: []hal.Msg{{Addr: m.Mux, W: []byte{1 << m.MuxChannel}}, {Addr: hal.MCIAddr, W: []byte{cmis.ModuleControl, cmis.SoftwareReset}}}}
	if err := r.world.Submit(r.world.Now(), r.id, m.MCI, reset); err != nil {
		t.Fatal(err)
	}
	r.rounds(p, time.Second, 100*time.Millisecond)
	if why := r.optics[0].Unproven(); r.optics[0].Status().State == proto.Tuned || why == "" {
		t.Errorf("a module that has begun anew: %v, %q", r.optics[0].Status().State, why)
	}
}

// Goal: a module whose bytes are garbled on their way is not said to be another kind of module
// at first sight: it is identified anew.
// Method: one of so many bytes has a bit flipped while a module comes up, among which are
// those of its custom page.
func TestGarbledModuleIsIdentifiedAnew(t *testing.T) {
	cal := *calibratedCMIS(t)
	cal.Modules = cal.Modules[:1]
	for _, bytes := range []int{311, 316, 321, 340} {
		r := bareCMIS(t, 1, true, 3, sim.DefaultMCITiming())
		r.plant(sim.Fault{Kind: sim.WireFlip, Bus: r.board.Bundles[0].Modules[0].MCI, Addr: hal.MCIAddr, Index: bytes})
		r.boot([]*ocs.Calibration{&cal})
		r.run(5 * time.Second)
		if err := r.optics[0].Status().Err; errors.Is(err, cmis.ErrNotOCSTrx) {
			t.Errorf("one bit of %d bytes: %v", bytes, err)
		}
	}
}

// Goal: a matrix that its controller carries and whose cells move each by itself counts as
// tuned only as long as the cells that are looked at say so.
// Method: loopback; all cells of a module walk for twenty minutes. By the age of the
// calibration alone all of it is called tuned.
func TestMatrixThatWalksIsUnproven(t *testing.T) {
	timing := sim.DefaultMCITiming()
	timing.LockRest = 2 * time.Second
	r := someCMIS(t, 1, proto.Loopback, ocs.LockOnDrift, timing)
	before := r.through(proto.Loopback, 2*time.Minute)
	r.plant(sim.Fault{Kind: sim.DriftWalk})
	w := r.through(proto.Loopback, 20*time.Minute)
	t.Logf("before %v; %v", before, w)
	if before.looks == before.unproven || w.below == 0 || w.claimed > 0 {
		t.Errorf("before %v; %v", before, w)
	}
}

// Goal: light on the wrong side is no event before it stays, and not tuned from the first
// round on that sees it.
// Method: the heater of an MZI2 opens; one health round of each module.
func TestWrongSideIsUnprovenAtFirstSight(t *testing.T) {
	r := calibrated(t, 2, proto.External1)
	r.round()
	r.run(100 * time.Millisecond)
	if why := r.optics[0].Unproven(); why != "" {
		t.Fatal(why)
	}
	r.plant(sim.Fault{Kind: sim.HeaterStuck, Module: 1, Index: hal.CellMZI2 + 3})
	r.round()
	r.run(100 * time.Millisecond)
	if why := r.optics[0].Unproven(); why != "module 1: lets light to the wrong side" {
		t.Errorf("unproven: %q", why)
	}
}
