package ocs_test

import (
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/boardfile"
	"ringlight/ocs"
	"ringlight/proto"
	"ringlight/sim"
)

// dayFound are the calibrations of onDay's boards by seed, which take seconds to find.
var dayFound = map[uint64]*ocs.Calibration{}

// theDay is a board whose case is warmer and colder by 10 K in a day and by 3 K in an hour.
func theDay() sim.Physics {
	ph := sim.DefaultPhysics()
	ph.CaseDay, ph.CaseHour = 10, 3
	return ph
}

// bareIn is a board of one module with physics of its own.
func bareIn(t *testing.T, ph sim.Physics, seed uint64) *rig {
	t.Helper()
	hw, err := boardfile.DefaultOf(hal.LTC2688, 4, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, world: sim.NewWorld(sim.WorldConfig{Seed: seed}), board: &hw}
	if r.id, err = r.world.AddBoard(sim.BoardConfig{Board: hw, Seed: seed, Physics: &ph, Powered: true}); err != nil {
		t.Fatal(err)
	}
	r.boot(make([]*ocs.Calibration, 1))
	r.run(20 * time.Millisecond)
	return r
}

// daySeed is that of the first board.
const daySeed = 21

// onDay is such a board on a path, in a mode of the lock, calibrated when nothing of its
// physics was different yet.
func onDay(t *testing.T, ph sim.Physics, p proto.Path, lock ocs.LockConfig, seed uint64) *rig {
	t.Helper()
	if dayFound[seed] == nil {
		r := bareIn(t, sim.DefaultPhysics(), seed)
		if end, _ := r.ends(); end.Kind != ocs.Calibrated {
			t.Fatal(end.Text)
		}
		dayFound[seed] = r.optics[0].Status().Calibration
	}
	r := bareIn(t, ph, seed)
	r.lock = lock
	r.boot([]*ocs.Calibration{dayFound[seed]})
	r.ready()
	if err := r.optics[0].Select(r.world.Now(), p); err != nil {
		t.Fatal(err)
	}
	r.run(5 * time.Millisecond)
	r.events[0] = nil
	return r
}

// watch is what was seen of a module's light by the truth, and what it was called.
type watch struct {
	looks, below, claimed, unproven int
	worst                           int32 // thousandths of a dB
}

// look looks once: a path of loopback wants 20 dB, an MZI of an external one 25.
func (w *watch) look(r *rig, p proto.Path) {
	limit, db := int32(leastCell), int32(0)
	if p == proto.Loopback {
		limit = leastPath
		_, db = r.lanesOf(0, nil)
	} else {
		db, _ = r.held(0, p)
	}
	tuned := r.optics[0].Unproven() == ""
	w.looks++
	if !tuned {
		w.unproven++
	}
	w.worst = min(w.worst, db)
	if db < limit {
		w.below++
		if tuned {
			w.claimed++
		}
	}
}

func (w *watch) String() string {
	share := func(n int) float64 { return 100 * float64(n) / float64(w.looks) }
	return fmt.Sprintf("%5.1f %% of %4d under the limit, worst %4.1f dB; called tuned %5.1f %%, of those under the limit %d", share(w.below), w.looks,
		float64(w.worst)/1000, share(w.looks-w.unproven), w.claimed)
}

// blow brings the weather of now.
func (r *rig) blow() {
	if r.weather != nil {
		r.world.SetAmbient(r.id, r.weather(r.world.Now()))
	}
}

// through lets time go on with the agent's health rounds.
func (r *rig) through(p proto.Path, span time.Duration) *watch {
	w := &watch{worst: 1 << 30}
	for end := r.world.Now() + span; r.world.Now() < end; {
		r.blow()
		r.round()
		r.run(9_700 * time.Millisecond)
		w.look(r, p)
	}
	return w
}

// Goal: in a day in which the case is warmer and colder by 10 K, and by 3 K each hour, no
// light that is under its limit is called tuned, in any mode of the lock and with any kind
// of module.
// Method: an hour and a half of virtual time of each mode and path, RINGLIGHT_LOCK=24h and
// as many boards as BOARDS under make bench-lock; to a controller every mode but off is
// the same. The simulator's truth every ten seconds.
func TestDayIsHeldOrSaid(t *testing.T) {
	span := 90 * time.Minute
	if text := os.Getenv("RINGLIGHT_LOCK"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		span = d
	}
	all := span >= 24*time.Hour
	for seed := range boardSeeds(t, 1) {
		for _, mode := range []ocs.LockMode{ocs.LockOff, ocs.LockOnDrift, ocs.LockAlways} {
			for _, p := range []proto.Path{proto.Loopback, proto.External1} {
				if all || (mode == ocs.LockOff) == (p == proto.External1) { // none of the others falls short so soon
					r := onDay(t, theDay(), p, ocs.LockConfig{Mode: mode}, uint64(daySeed+seed))
					r.isHeldOrSaid("chips", mode, p, span)
				}
			}
		}
	}
	for _, p := range []proto.Path{proto.Loopback, proto.External1} {
		dayCMIS(t, p, ocs.LockOnDrift, true).isHeldOrSaid(noLock, ocs.LockOnDrift, p, span)
		dayCMIS(t, p, ocs.LockOnDrift, false).isHeldOrSaid("CMIS", ocs.LockOnDrift, p, span)
		if all {
			dayCMIS(t, p, ocs.LockOff, false).isHeldOrSaid("CMIS", ocs.LockOff, p, span)
		}
	}
}

// noLock are CMIS modules whose controller has none.
const noLock = "CMIS, no lock"

// dayCMIS is a CMIS module on theDay.
func dayCMIS(t *testing.T, p proto.Path, mode ocs.LockMode, bare bool) *rig {
	t.Helper()
	timing := sim.DefaultMCITiming()
	timing.NoLock, timing.LockRest = bare, 2*time.Second // a look each .2 s takes too long to simulate
	r := someCMIS(t, 1, p, mode, timing)
	r.weather = func(at time.Duration) int32 {
		turns := func(of time.Duration) float64 { return math.Sin(2 * math.Pi * at.Seconds() / of.Seconds()) }
		return 40_000 + int32(10_000*turns(24*time.Hour)+3_000*turns(time.Hour))
	}
	return r
}

// isHeldOrSaid prints a row of the table, and judges it.
func (r *rig) isHeldOrSaid(kind string, mode ocs.LockMode, p proto.Path, span time.Duration) {
	w := r.through(p, span)
	fmt.Printf("%-13s  lock %-6s  %-9v  %v; %d events\n", kind, modeNames[mode], p, w, len(r.events[0]))
	if w.claimed > 0 || kind != noLock && mode != ocs.LockOff && p.External() && w.below > 0 {
		r.t.Errorf("%s, lock %s, %v: %d looks under the limit, %d of them called tuned", kind, modeNames[mode], p, w.below, w.claimed)
	}
}

var modeNames = [...]string{ocs.LockOff: "off", ocs.LockOnDrift: "drift", ocs.LockAlways: "always"}

// Goal: a case that gets warmer by 12 K at once, or by a kelvin each second from 0 to 70
// degrees, takes light under its limit only until the thermometer has been read; without
// a lock no light that is under its limit is called tuned on such a way.
// Method: each mode that looks, on chips and on CMIS modules, loopback and an external
// path, then every path and modules of both kinds without a lock, with the agent's health
// rounds; the truth each second.
func TestMatrixIsCarriedWithItsCase(t *testing.T) {
	for _, c := range []struct {
		kind string
		mode ocs.LockMode
	}{{"chips", ocs.LockOnDrift}, {"chips", ocs.LockAlways}, {"CMIS", ocs.LockOnDrift}} {
		for _, p := range []proto.Path{proto.Loopback, proto.External1} {
			var r *rig
			if c.kind == "CMIS" {
				r = someCMIS(t, 1, p, c.mode, sim.DefaultMCITiming())
			} else {
				r = onDay(t, sim.DefaultPhysics(), p, ocs.LockConfig{Mode: c.mode}, daySeed)
			}
			r.round()
			r.run(time.Minute)
			r.world.SetAmbient(r.id, 52_000)
			r.round()
			r.run(5 * time.Second)
			step := r.seconds(p, 120, func(int32) int32 { return 52_000 })
			for milli := int32(52_000); milli > 0; milli -= 1000 {
				r.world.SetAmbient(r.id, milli)
				r.run(4 * time.Second)
			}
			ramp := r.seconds(p, 71, func(second int32) int32 { return second * 1000 })
			what := fmt.Sprintf("%s, lock %s, %v", c.kind, modeNames[c.mode], p)
			t.Logf("%-27s after 12 K: %v", what, step)
			t.Logf("%-27s 0 to 70 degrees: %v; %d events %+v", what, ramp, len(r.events[0]), r.optics[0].Holds())
			if step.below > 0 || step.claimed+ramp.claimed > 0 {
				t.Errorf("%s: under the limit at %d looks after a step, called tuned at %d of them and at %d of a ramp", what, step.below, step.claimed, ramp.claimed)
			}
		}
	}
	for _, p := range []proto.Path{proto.Loopback, proto.External1} {
		timing := sim.DefaultMCITiming()
		timing.NoLock = true
		for kind, r := range map[string]*rig{ // any order: independent
			"chips":         onDay(t, sim.DefaultPhysics(), p, ocs.LockConfig{}, daySeed),
			"CMIS, no lock": lockedCMIS(t, p, ocs.LockOnDrift, timing),
		} {
			ramp := &watch{worst: 1 << 30}
			for second := range int32(141) {
				r.world.SetAmbient(r.id, max(70_000-second*1000, second*1000-70_000))
				if second%10 == 0 {
					r.round()
				}
				r.run(990 * time.Millisecond)
				if second > 10 { // nobody knows that a case begins to move before it is read again
					ramp.look(r, p)
				}
			}
			t.Logf("%-13s %-9v 70 to 0 to 70 degrees: %v", kind, p, ramp)
			if ramp.claimed > 0 {
				t.Errorf("%s, %v: %d looks of a ramp under the limit and called tuned", kind, p, ramp.claimed)
			}
		}
	}
}

// Goal: modules of fewer lanes are held like those of eight, and what is said of them is so.
// Method: gazebo's module of six and that of four, calibrated from nothing, on a day of theDay:
// half an hour on an external path and in loopback, with the lock and without.
func TestFewLanesAreHeldOrSaid(t *testing.T) {
	for module := range 2 {
		ph := theDay()
		board := func(ph *sim.Physics, lock ocs.LockConfig, cal *ocs.Calibration) *rig {
			hw := boardOf(t, kindGazebo, 1, 2)
			hw.Bundles[0].Modules = hw.Bundles[0].Modules[module:][:1]
			r := &rig{t: t, world: sim.NewWorld(sim.WorldConfig{Seed: daySeed}), board: &hw, lock: lock}
			var err error
			if r.id, err = r.world.AddBoard(sim.BoardConfig{Board: hw, Seed: daySeed, Physics: ph, Powered: true}); err != nil {
				t.Fatal(err)
			}
			r.boot([]*ocs.Calibration{cal})
			r.run(20 * time.Millisecond)
			return r
		}
		first := board(nil, ocs.LockConfig{}, nil)
		if end, _ := first.ends(); end.Kind != ocs.Calibrated {
			t.Fatal(end.Text)
		}
		cal := first.optics[0].Status().Calibration
		for _, mode := range []ocs.LockMode{ocs.LockOff, ocs.LockOnDrift} {
			for _, p := range []proto.Path{proto.Loopback, proto.External2} {
				r := board(&ph, ocs.LockConfig{Mode: mode}, cal)
				r.ready()
				if err := r.optics[0].Select(r.world.Now(), p); err != nil {
					t.Fatal(err)
				}
				w := r.through(p, 30*time.Minute)
				t.Logf("module %d, lock %-5s %-9v %v", module, modeNames[mode], p, w)
				if w.claimed > 0 || mode != ocs.LockOff && (w.below > 0 || w.unproven > w.looks/2) {
					t.Errorf("module %d, lock %s, %v: %v", module, modeNames[mode], p, w)
				}
			}
		}
	}
}

// seconds looks each second, with the agent's health rounds, at a case of so many
// thousandths of a degree.
func (r *rig) seconds(p proto.Path, n int32, milli func(second int32) int32) *watch {
	w := &watch{worst: 1 << 30}
	for second := range n {
		r.world.SetAmbient(r.id, milli(second))
		if second%10 == 0 {
			r.round()
		}
		r.run(990 * time.Millisecond)
		w.look(r, p)
	}
	return w
}

// Goal: one cell that begins to move between two looks of a quiet module, ten minutes apart,
// is looked at before its light is 3 dB under the limit.
// Method: an hour after the last change a cell of MZI1 or of MZI2 walks; an hour of the truth
// each ten seconds. Without what taps tell between looks these have 17.9, 19.1 and 19.7 dB.
func TestCellThatBeginsToMoveIsFoundBetweenLooks(t *testing.T) {
	for _, cell := range []int{7, hal.CellMZI2 + 5, hal.CellMZI2 + 6} {
		p := proto.External1
		r := onDay(t, sim.DefaultPhysics(), p, ocs.LockConfig{Mode: ocs.LockOnDrift}, daySeed)
		r.through(p, time.Hour)
		before := r.optics[0].Holds()[0].Looks
		r.plant(sim.Fault{Kind: sim.CellWalk, Index: cell})
		w := r.through(p, time.Hour)
		t.Logf("cell %d: %d looks before; %v; %+v", cell, before, w, r.optics[0].Holds()[0])
		if w.worst < leastCell-3_000 || before > 40 {
			t.Errorf("cell %d: %d mdB; the lock looked %d times in an hour in which nothing moved", cell, w.worst, before)
		}
	}
}

// Goal: a calibration that a life finds, in a file or in the modules' own memory, says nothing
// of light at another temperature until the lock has looked; then MZIs count as tuned within
// seconds, on a path outside all light.
// Method: boards calibrated at 40 degrees and started between 0 and 70, each path; the truth
// each half second, with the agent's health rounds.
func TestLockAtBootIsAtAnotherTemperature(t *testing.T) {
	for n, celsius := range []int32{0, 28, 39, 52, 70} {
		for _, p := range []proto.Path{proto.Loopback, proto.External1, proto.External2} {
			r, from := onDay(t, sim.DefaultPhysics(), proto.Dark, ocs.LockConfig{Mode: ocs.LockOnDrift}, daySeed), "file"
			cal := r.optics[0].Status().Calibration
			if n%2 == 1 && p != proto.External2 {
				from, cal = "passport", nil
				if end, _ := r.ends(); end.Kind != ocs.Calibrated {
					t.Fatal(end.Text)
				}
				r.ready()
			}
			r.world.SetAmbient(r.id, celsius*1000)
			r.powerCycle(cal)
			r.ready()
			if err := r.optics[0].Select(r.world.Now(), p); err != nil {
				t.Fatal(err)
			}
			w, first := &watch{worst: 1 << 30}, time.Duration(0)
			from0 := r.world.Now()
			for half := range 60 {
				if half%5 == 0 {
					r.round()
				}
				r.run(500 * time.Millisecond)
				w.look(r, p)
				if first == 0 && r.optics[0].Unproven() == "" && r.optics[0].Holds() != nil && r.optics[0].Holds()[0].Looks > 0 {
					first = r.world.Now() - from0
				}
			}
			held, why := r.optics[0].Held()
			t.Logf("%d degrees, %v, %s: %v; tuned after %v, held %v %s", celsius, p, from, w, first, held, why)
			if w.claimed > 0 || p.External() && (first == 0 || w.unproven > 30) {
				t.Errorf("%d degrees, %v, %s: %d looks called tuned under the limit; tuned after %v, not in %d of %d looks", celsius, p, from, w.claimed, first, w.unproven, w.looks)
			}
		}
	}
}

// Goal: lasers that die or return while the lock looks, or whose power wanders, cost no
// healthy lane its light: the lock is never worse than none.
// Method: each of 40 times a laser dies or returns at another instant of a look on each
// path; then worlds in which all lasers wander, or the case jumps with its load, with the
// lock and without it.
func TestLasersDoNotMisleadTheLock(t *testing.T) {
	for n := range 3 * boardSeeds(t, 1) {
		p := []proto.Path{proto.External1, proto.External2, proto.Loopback}[n%3]
		r := onDay(t, sim.DefaultPhysics(), p, ocs.LockConfig{Mode: ocs.LockAlways, Period: 60 * time.Millisecond, Rest: 60 * time.Millisecond}, uint64(daySeed+n/3))
		r.run(time.Second)
		worst, cell, low := int32(1<<30), 0, 0
		for n := range 40 {
			f := sim.Fault{Kind: sim.LaserDead, Index: n / 2 % hal.Lanes}
			dead := hal.Lanes
			r.run(80*time.Millisecond + time.Duration(n)*1700*time.Microsecond)
			if n%2 == 0 {
				r.plant(f)
				dead = f.Index
			} else if err := r.world.Repair(r.id, f); err != nil {
				t.Fatal(err)
			}
			was := false
			for range 20 { // through the look under way and the next
				r.run(11 * time.Millisecond)
				for k, db := range r.world.PathExtinctions(r.id, 0, 0, int(p-proto.Loopback)) {
					if k >= hal.CellMatrix || k%hal.Lanes == dead {
						continue
					}
					if db < worst {
						worst, cell = db, k
					}
					was = was || db < 20_000
				}
			}
			if was {
				low++
			}
		}
		t.Logf("%v: healthy lanes under 20 dB in %d of 40, worst %.1f dB (cell %d); %+v", p, low, float64(worst)/1000, cell, r.optics[0].Holds()[0])
		if low > 0 {
			t.Errorf("%v: healthy lanes under 20 dB in %d of 40", p, low)
		}
	}
	load := func(kelvin float64, span, tau time.Duration) func(time.Duration) int32 {
		return func(at time.Duration) int32 { // up and down as a case does that is not new to it
			left := math.Exp(-(at%span).Seconds()/tau.Seconds()) / (1 + math.Exp(-span.Seconds()/tau.Seconds()))
			if at/span%2 == 0 {
				left = 1 - left
			}
			return 40_000 + int32(1000*kelvin*left)
		}
	}
	for _, w := range []struct {
		what    string
		world   func(*sim.Physics)
		weather func(time.Duration) int32
	}{
		{"wander of 12 % in 4 s", func(ph *sim.Physics) { ph.LaserWander, ph.LaserWanderS = 0.12, 4 }, nil},
		{"wander of 20 % in 1 s", func(ph *sim.Physics) { ph.LaserWander, ph.LaserWanderS = 0.2, 1 }, nil},
		{"wander of 20 % in 10 s", func(ph *sim.Physics) { ph.LaserWander, ph.LaserWanderS = 0.2, 10 }, nil},
		{"steps of .3 dB each .5 s", func(ph *sim.Physics) { ph.LaserStep, ph.LaserStepS = 0.07, 0.5 }, nil},
		{"steps of .3 dB each 20 ms", func(ph *sim.Physics) { ph.LaserStep, ph.LaserStepS = 0.07, 0.02 }, nil},
		{"hops of 1 dB each 3 s", func(ph *sim.Physics) { ph.LaserStep, ph.LaserStepS = 0.2, 3 }, nil},
		{"load of 3 K each 5 s in 2 s", func(*sim.Physics) {}, load(3, 5*time.Second, 2*time.Second)},
		{"load of 6 K each 30 s in 10 s", func(*sim.Physics) {}, load(6, 30*time.Second, 10*time.Second)},
		{"load of 12 K each 60 s in 30 s", func(*sim.Physics) {}, load(12, 60*time.Second, 30*time.Second)},
	} {
		ph := sim.DefaultPhysics()
		w.world(&ph)
		var least [2]int32
		for i, mode := range []ocs.LockMode{ocs.LockOff, ocs.LockAlways} {
			r := onDay(t, ph, proto.External1, ocs.LockConfig{Mode: mode}, daySeed)
			r.weather = w.weather
			least[i], _, _, _ = r.follow(proto.External1, time.Minute, 317*time.Millisecond)
			if mode == ocs.LockAlways {
				held, why := r.optics[0].Held()
				t.Logf("%-26s %.1f dB unlocked, %.1f locked; %v (%s) %+v", w.what, float64(least[0])/1000, float64(least[1])/1000, held, why, r.optics[0].Holds()[0])
			}
		}
		if least[1] < least[0]-500 {
			t.Errorf("%s: %d mdB locked, %d unlocked", w.what, least[1], least[0])
		}
	}
}

// Goal: light that a lock has looked at before the first health round of a life is not called
// unproven again by that round.
// Method: a found bundle, looked at by its lock; then a round, module by module.
func TestFirstRoundDoesNotForgetLooks(t *testing.T) {
	r := calibrated(t, 2, proto.External1)
	cal := r.optics[0].Status().Calibration
	r.lock = ocs.LockConfig{Mode: ocs.LockOnDrift}
	r.boot([]*ocs.Calibration{cal})
	r.ready()
	r.run(10 * time.Second)
	if why := r.optics[0].Unproven(); why != "" {
		t.Fatal(why)
	}
	for range r.board.Bundles[0].Modules {
		r.optics[0].Health.Round(r.world.Now())
		if why := r.optics[0].Unproven(); why != "" {
			t.Error(why)
		}
		r.run(5 * time.Millisecond)
	}
}

// Goal: so is one that begins to move after lasers were out for a while.
// Method: two minutes without lasers, and forty in which nothing moves; then an hour of
// walking. With the dark in the mean of what taps tell these have 20.3 and 22.0 dB.
func TestDarkDoesNotHideACellThatMoves(t *testing.T) {
	for _, cell := range []int{7, hal.CellMZI2 + 5} {
		p := proto.External1
		r := onDay(t, sim.DefaultPhysics(), p, ocs.LockConfig{Mode: ocs.LockOnDrift}, daySeed)
		r.through(p, 20*time.Minute)
		for lane := range hal.Lanes {
			r.plant(sim.Fault{Kind: sim.LaserDead, Index: lane})
		}
		r.through(p, 2*time.Minute)
		for lane := range hal.Lanes {
			if err := r.world.Repair(r.id, sim.Fault{Kind: sim.LaserDead, Index: lane}); err != nil {
				t.Fatal(err)
			}
		}
		r.through(p, 40*time.Minute)
		r.plant(sim.Fault{Kind: sim.CellWalk, Index: cell})
		w := r.through(p, time.Hour)
		if t.Logf("cell %d: %v", cell, w); w.worst < leastCell-3_000 {
			t.Errorf("cell %d: %v", cell, w)
		}
	}
}
