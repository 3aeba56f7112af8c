package sim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/boardfile"
)

// Goal: every figure of the physics has a key, a span that holds its default,
// and is refused beyond either end.
// Method: each key set through JSON to just outside, all others as they are.
func TestPhysicsAreRefusedByKey(t *testing.T) {
	kind := reflect.TypeFor[Physics]()
	for i := range kind.NumField() {
		key, span := kind.Field(i).Tag.Get("json"), kind.Field(i).Tag.Get("span")
		var low, high float64
		if n, err := fmt.Sscan(span, &low, &high); n != 2 || kind.Field(i).Tag.Get("doc") == "" {
			t.Fatalf("%s: span %q: %v", key, span, err)
		}
		for value, wrong := range map[float64]bool{low: false, high: false, low - 0.1: true, high * 1.01: true} {
			ph := DefaultPhysics()
			if err := json.Unmarshal(fmt.Appendf(nil, `{%q:%v}`, key, value), &ph); err != nil {
				t.Fatal(err)
			}
			found := ""
			ph.Validate(func(k string, _ float64, _, _ string) { found += k })
			if want := map[bool]string{true: key}[wrong]; found != want {
				t.Errorf("%s = %v: %q is refused", key, value, found)
			}
		}
	}
}

// Goal: physics that are given as the default are the default.
// Method: personalities of a seed, all of each.
func TestDefaultPhysicsChangeNothing(t *testing.T) {
	ph := DefaultPhysics()
	given := Catalogue(&ph, 5, 4)
	for i, p := range Catalogue(nil, 5, 4) {
		given[i].phys = p.phys
		if !reflect.DeepEqual(p, given[i]) {
			t.Errorf("personality %d differs", i)
		}
	}
}

// Goal: a heater's power solves the voltage law with the resistance that it
// then has, and a bow is what it says at half of the span.
// Method: bisection for the power; the ends and the middle of the bow.
func TestHeaterResistanceRises(t *testing.T) {
	ph := DefaultPhysics()
	ph.HeaterTCR, ph.HeaterOhm, ph.DACBow = 0.08, 700, 50
	p := Catalogue(&ph, 1, 1)[0]
	for k := range p.cells {
		ohm := p.cells[k].ohm
		if ohm < 665 || ohm > 735 {
			t.Fatalf("cell %d: %.0f ohm, want 700 within 5 %%", k, ohm)
		}
		v := 0.2 * float64(k+1)
		lo, hi := 0.0, 200.0
		for range 80 {
			mid := (lo + hi) / 2
			if mid/1000*ohm*(1+0.08*mid/60) < v*v {
				lo = mid
			} else {
				hi = mid
			}
		}
		if amp, got := p.heat(k, v); math.Abs(got-lo) > 1e-9 || math.Abs(amp*v-got) > 1e-9 {
			t.Errorf("cell %d at %.1f V: %.6f mW at %.3f mA, want %.6f mW", k, v, got, amp, lo)
		}
	}
	for volt, want := range map[float64]float64{0: 0, 5: 5.05, 10: 10} {
		if got := ph.bowed(volt); math.Abs(got-want) > 1e-9 {
			t.Errorf("bow of 50 mV: %.1f V becomes %.4f", volt, got)
		}
	}
}

// Goal: a share of a heater's phase follows slowly, through steps that come before it has.
// Method: 1, then back to 0 after two time constants of the tail; both exponentials by hand.
func TestHeatHasATail(t *testing.T) {
	ph := DefaultPhysics()
	ph.Tail, ph.TailMS = 0.1, 2
	r := newRig(t, 1, 1)
	w := r.w
	hw, _ := boardfile.Default(4, 1, 1)
	id, err := w.AddBoard(BoardConfig{Board: hw, Seed: 2, Physics: &ph, Powered: true})
	if err != nil {
		t.Fatal(err)
	}
	m := w.module(id, 0, 0)
	m.refresh()
	m.setLevel(5, 1)
	start := m.moving.seg[5][1].t0
	check := func(after time.Duration, want float64) {
		t.Helper()
		if got := m.warmth(5, start+int64(after), &decay{}); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v after: warmth %.6f, want %.6f", after, got, want)
		}
	}
	check(0, 0)
	check(200*time.Microsecond, 0.9*(1-math.Exp(-200./15))+0.1*(1-math.Exp(-0.1)))
	check(2*time.Millisecond, 0.9+0.1*(1-math.Exp(-1)))
	r.run(4 * time.Millisecond)
	m.setLevel(5, 0)
	age := time.Duration(m.moving.seg[5][1].t0 - start)
	start += int64(age)
	slow := 1 - math.Exp(-age.Seconds()*1000/2)
	check(0, 0.9+0.1*slow)
	check(time.Millisecond, 0.1*slow*math.Exp(-0.5)+0.9*math.Exp(-1000./20))
}

// Goal: what is stated of a converter's bow and of crosstalk's lean is there.
func TestBowsAndLeans(t *testing.T) {
	ph := DefaultPhysics()
	ph.ADCBow, ph.Skew = 40, 0.5
	most := 0.0
	for _, p := range Catalogue(&ph, 3, 20) {
		for c := range p.adc {
			for ch := range p.adc[c] {
				e := &p.adc[c][ch]
				most = max(most, math.Abs(e.bow))
				if got := e.of(2048) - 2048; math.Abs(got-e.bow) > 1e-3 || e.of(0) != 0 || math.Abs(e.of(4095)-4095) > 1e-9 {
					t.Fatalf("a bow of %.2f codes makes %.2f of 2,048, %.2f of 0, %.2f of 4,095", e.bow, e.of(2048), e.of(0), e.of(4095))
				}
			}
		}
	}
	if most < 38 || most > 40 {
		t.Errorf("bows up to %.1f codes, want 40", most)
	}
	leans, plain := Catalogue(&ph, 3, 1)[0].crosstalk[9], Catalogue(nil, 3, 1)[0].crosstalk[9]
	for j := range plain {
		want := plain[j] * map[int]float64{-1: 1.5, 0: 1, 1: 0.5}[cmp.Compare(j, crosstalkBand)]
		if math.Abs(leans[j]-want) > 1e-12 {
			t.Errorf("share of the heater %d away: %.5f, want %.5f", j-crosstalkBand, leans[j], want)
		}
	}
}

// Goal: heat goes where the layout says: to the neighbours, across the rows, to
// all; and in the time that the time constant says.
// Method: one heater after the other at a phase of pi; what each cell's phase
// gains against the shares, long after and one time constant after.
func TestHeatGoesByPlace(t *testing.T) {
	ph := DefaultPhysics()
	ph.Crosstalk, ph.CrosstalkRow, ph.CommonK, ph.TauUS = 0.06, 0.03, 8, 50
	w := NewWorld(WorldConfig{Seed: 1})
	hw, _ := boardfile.Default(4, 1, 1)
	id, err := w.AddBoard(BoardConfig{Board: hw, Seed: 2, Physics: &ph, Powered: true})
	if err != nil {
		t.Fatal(err)
	}
	m := w.module(id, 0, 0)
	m.refresh()
	for _, hot := range []int{0, 7, 13, 20, 35} {
		add := 0.02 * 8 * m.per.cells[hot].piPower / 1000
		var cold, warm, soon [hal.CellsPerMod]float64
		m.phases(int64(w.now), m.wired.all, m.moving.underway(int64(w.now), m.per), &cold, &decay{})
		m.setLevel(hot, 1)
		start := int64(w.now) + int64(m.per.settle[hot/16])
		m.phases(start+int64(50*time.Microsecond), m.wired.all, m.moving.underway(start+int64(50*time.Microsecond), m.per), &soon, &decay{})
		m.phases(start+int64(time.Second), m.wired.all, m.moving.underway(start+int64(time.Second), m.per), &warm, &decay{})
		for k := range hal.BenesCells {
			want, got := add, warm[k]-cold[k]
			tol := 1e-9
			switch d := max(k-hot, hot-k); {
			case d == 0:
				want += pi
			case d <= crosstalkBand:
				want += pi * 0.06 * math.Pow(0.25, float64(d-1))
				tol = 0.2*(want-add) + 1e-9
			case d == 8:
				want += pi * 0.03
				tol = 0.2*(want-add) + 1e-9
			}
			if math.Abs(got-want) > tol {
				t.Errorf("heater %d on cell %d: %.6f rad, want %.6f", hot, k, got, want)
			}
			// Warming takes three quarters of the time constant.
			if part := (soon[k] - cold[k]) / got; math.Abs(part-(1-math.Exp(-1/0.75))) > 1e-6 {
				t.Errorf("heater %d on cell %d: %.4f of its way after 50 us", hot, k, part)
			}
		}
		m.setLevel(hot, 0)
		w.now += time.Second
		m.settleDown()
	}
}

// Goal: what a module keeps of heaters on their way goes when they have arrived, though nobody
// looks at it again, and not before; its phases are the same to the bit.
func TestTransitsGoWhereNobodyLooks(t *testing.T) {
	r := newRig(t, 1, 2)
	id := r.board(2)
	m, other := r.w.module(id, 0, 0), r.w.module(id, 0, 1)
	phases := func() (all [hal.CellsPerMod]float64) {
		m.phases(int64(r.w.now), m.wired.all, m.moving.underway(int64(r.w.now), m.per), &all, &decay{})
		return all
	}
	m.setLevel(3, 1)
	r.w.now += time.Duration(longCalm) / 2
	if other.setLevel(3, 1); m.moving == nil {
		t.Error("its heaters have just arrived, and it has no transit any more")
	}
	r.w.now += time.Duration(longCalm)
	other.settleDown()
	before := phases()
	if other.setLevel(3, 0); m.moving != nil || other.moving == nil {
		t.Errorf("transits %t, %t, want none and one", m.moving != nil, other.moving != nil)
	}
	if after := phases(); after != before {
		t.Errorf("phases %v became %v", before, after)
	}
}

// Goal: lasers wander by as much and as fast as they are told, each by itself;
// aged ones have lost as much.
// Method: a long look at two lanes; a level against that of the same module when
// it was new.
func TestLasersWanderAndAge(t *testing.T) {
	ph := DefaultPhysics()
	ph.LaserWander, ph.LaserWanderS, ph.LaserAgeing = 0.02, 10, 3
	least, most, apart, turns := 0.0, 0.0, 0.0, 0
	last, slope := 0.0, 0.0
	for i := range int64(20_000) {
		at := i * int64(100*time.Millisecond)
		x := ph.swings(1, at)
		least, most, apart = min(least, x), max(most, x), max(apart, x-ph.swings(2, at))
		if s := x - last; s*slope < 0 {
			turns++
		}
		last, slope = x, x-last
	}
	// Of knots each half a period two in three are turning points.
	if least < -0.02 || most > 0.02 || least > -0.019 || most < 0.019 || apart < 0.02 || turns < 200 || turns > 340 {
		t.Errorf("from %.4f to %.4f, %.4f apart, %d turns in 200 periods", least, most, apart, turns)
	}
	new, old := Catalogue(nil, 1, 1)[0], Catalogue(&ph, 1, 1)[0]
	for l := range new.laser {
		if lost := milliDBm(new.laser[l]) - milliDBm(old.laser[l]); math.Abs(lost-3) > 1e-9 {
			t.Errorf("lane %d lost %.3f dB", l, lost)
		}
	}
}

// Goal: a converter is off by what it is told, sees the noise that it is told,
// and a diode saturates.
// Method: dark and lit codes of many channels; the spread of single samples.
func TestConvertersAreOff(t *testing.T) {
	ph := DefaultPhysics()
	ph.ADCGain, ph.ADCOffset = 0.05, 8
	var gains, offsets [2]float64
	for _, p := range Catalogue(&ph, 3, 20) {
		for _, c := range p.adc {
			for _, e := range c {
				gains = [2]float64{min(gains[0], e.gain-1), max(gains[1], e.gain-1)}
				offsets = [2]float64{min(offsets[0], e.offset), max(offsets[1], e.offset)}
			}
		}
	}
	for _, x := range []float64{gains[0] / -0.05, gains[1] / 0.05, offsets[0] / -8, offsets[1] / 8} {
		if x < 0.95 || x > 1 {
			t.Errorf("gains %.4f, offsets %.2f: want all of 5 %% and 8 codes", gains, offsets)
		}
	}
	ph.Saturation = 10
	if got := ph.saturated(10, 1); got != 5 {
		t.Errorf("10 mW show as %v", got)
	}
	for _, tc := range []struct{ noise, rin, want float64 }{{3, 0, 3}, {0, 0.01, 20}, {3, 0.01, math.Hypot(3, 20)}} {
		p := probe{points: 1, noise: tc.noise, rin: tc.rin, seed: 9}
		p.at[0][0] = 2000
		sum, sq := 0.0, 0.0
		const n = 20_000
		for i := range int64(n) {
			x := float64(p.convert(0, 1000*i, 1, 1)) / 16
			sum, sq = sum+x, sq+x*x
		}
		mean := sum / n
		if rms := math.Sqrt(sq/n - mean*mean); math.Abs(mean-2000) > 1 || math.Abs(rms-tc.want) > 0.05*tc.want {
			t.Errorf("noise %v, rin %v: mean %.1f, rms %.2f codes, want %.2f", tc.noise, tc.rin, mean, rms, tc.want)
		}
	}
}

// Goal: as many bus calls are late as are told, by as much, and no others are
// changed.
// Method: calls of two worlds that differ in nothing else.
func TestShareOfCallsIsLate(t *testing.T) {
	ph := DefaultPhysics()
	ph.LateCall = 0.01
	hw, _ := boardfile.Default(4, 1, 1)
	var boards [2]*board
	for i, physics := range []*Physics{nil, &ph} {
		w := NewWorld(WorldConfig{Seed: 1})
		id, err := w.AddBoard(BoardConfig{Board: hw, Seed: 2, Physics: physics})
		if err != nil {
			t.Fatal(err)
		}
		boards[i] = w.boards[id]
	}
	late := 0
	const n = 50_000
	for range n {
		switch d := boards[1].drawCall(&boards[1].costs.I2CCall) - boards[0].drawCall(&boards[0].costs.I2CCall); d {
		case 0:
		case 3 * time.Millisecond:
			late++
		default:
			t.Fatalf("late by %v", d)
		}
	}
	if late < 430 || late > 570 {
		t.Errorf("%d of %d calls are late", late, n)
	}
}

// Goal: a measured table is drawn from as it is, tail and all, and a wrong one is
// refused with the key.
// Method: shares of many draws at each of its quantiles, between them and at the
// end; tables with one thing wrong.
func TestMeasuredLatenciesHaveTheirTail(t *testing.T) {
	table := CostTable{Source: "here", Interrupt: [][2]float64{{0, 20}, {0.5, 40}, {0.99, 150}, {0.999, 900}, {1, 5000}}}
	c := table.Costs(func(key, have, want string) { t.Errorf("%s: %s: want %s", key, have, want) })
	b := &board{seed: 5}
	const n = 200_000
	over := map[float64]int{}
	for range n {
		d := float64(b.draw(&c.Interrupt)) / 1000
		for _, us := range []float64{40, 95, 150, 900, 2950, 5000} {
			if d > us {
				over[us]++
			}
		}
	}
	for us, share := range map[float64]float64{40: 0.5, 95: 0.255, 150: 0.01, 900: 0.001, 2950: 0.0005, 5000: 0} {
		if got, tol := float64(over[us])/n, 4*math.Sqrt(share*(1-share)/n)+1e-9; math.Abs(got-share) > tol {
			t.Errorf("%.5f of all take over %v us, want %.5f", got, us, share)
		}
	}
	if c.I2CCall.P50 != DefaultCosts().I2CCall.P50 || c.Source != "here" {
		t.Errorf("what was left out is %+v of %q", c.I2CCall, c.Source)
	}
	negative := -1.0
	for want, bad := range map[string]CostTable{
		"source":          {},
		"interrupt_us[0]": {Source: "x", Interrupt: [][2]float64{{0.1, 1}, {1, 2}}},
		"i2c_call_us[1]":  {Source: "x", I2CCall: [][2]float64{{0, 1}, {0.9, 2}}},
		"spi_call_us[1]":  {Source: "x", SPICall: [][2]float64{{0, 3}, {0.5, 2}, {1, 4}}},
		"spi_call_us[2]":  {Source: "x", SPICall: [][2]float64{{0, 3}, {0.5, 4}, {1, 2e7}}},
		"decide_us":       {Source: "x", Decide: &negative},
	} {
		found := ""
		bad.Costs(func(key, _, _ string) { found += key })
		if found != want {
			t.Errorf("want %s refused, got %q", want, found)
		}
	}
}
