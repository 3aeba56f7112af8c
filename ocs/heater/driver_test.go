package heater_test

import (
	"errors"
	"testing"

	"ringlight/hal"
	"ringlight/ocs/heater"
	"ringlight/sim"

	"periph.io/x/conn/v3/physic"
)

// desk is one module on a simulated board, whose DACs know nothing of the driver.
type desk struct {
	t    *testing.T
	w    *sim.World
	hw   *hal.Module
	dacs heater.Driver
}

// onEvery runs a test with every DAC that a board may name.
func onEvery(t *testing.T, test func(d *desk)) {
	for name, dac := range map[string]hal.DAC{"LTC2688": hal.LTC2688, "AD5676R": hal.AD5676R} { // any order: independent
		t.Run(name, func(t *testing.T) { test(newDesk(t, dac)) })
	}
}

func newDesk(t *testing.T, dac hal.DAC) *desk {
	t.Helper()
	board, err := hal.DefaultOf(dac, 1, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, w: sim.NewWorld(sim.WorldConfig{Seed: 3}), hw: &board.Bundles[0].Modules[0]}
	if _, err := d.w.AddBoard(sim.BoardConfig{Board: board, Seed: 3, Powered: true}); err != nil {
		t.Fatal(err)
	}
	d.dacs = heater.For(d.hw)
	return d
}

// do carries messages out and returns what came back.
func (d *desk) do(msgs []hal.Msg) []hal.Msg {
	d.t.Helper()
	if err := d.w.Submit(d.w.Now(), 0, d.hw.SPI, &hal.Op{Msgs: msgs}); err != nil {
		d.t.Fatal(err)
	}
	for {
		if _, ev, ok := d.w.Step(); ok && ev.Completion != nil {
			if ev.Completion.Err != nil {
				d.t.Fatal(ev.Completion.Err)
			}
			return msgs
		}
	}
}

func (d *desk) holds(codes *heater.Codes) bool {
	d.t.Helper()
	ok := true
	for n, m := range d.do(d.dacs.ReadBack(nil)) {
		ok = d.dacs.Holds(n, m.R, codes) && ok
	}
	return ok
}

// ladder are codes of which no two are the same, all within the limits.
func ladder() (codes heater.Codes) {
	for k := range codes {
		codes[k] = [2]uint16{uint16(0x1000 + 0x100*k), uint16(0x1080 + 0x100*k)}
	}
	return codes
}

// Goal: what is staged, loaded and taken is held and read back; what is only
// loaded moves nothing; a chip after power-on is not ready.
// Method: the simulated DACs, by their frames; the rail's record of voltages.
func TestCodesGetToTheDACs(t *testing.T) { onEvery(t, codesGetToTheDACs) }

func codesGetToTheDACs(d *desk) {
	t := d.t
	codes := ladder()
	if d.holds(&codes) || d.dacs.HoldsBoth() && d.holds(&heater.Codes{}) {
		t.Fatal("a DAC after power-on counts as set up")
	}
	var l heater.Limits
	d.do(d.dacs.Stage(l.AllowAll(&codes)))
	if !d.holds(&codes) || l.Cuts() != 0 {
		t.Fatalf("staged codes are not held, %d cuts", l.Cuts())
	}
	before := d.w.Limits(0)
	higher := codes
	higher[7][0] = 0x9000
	d.do(d.dacs.Load(l.AllowAll(&higher)))
	if d.w.Limits(0) != before {
		t.Error("loading drove a heater")
	}
	d.do(d.dacs.Take())
	if got := d.w.Limits(0).Volt; got < heater.Volts(0x9000)-physic.MilliVolt || got > heater.Volts(0x9000)+physic.MilliVolt {
		t.Errorf("taken: at most %v, want %v", got, heater.Volts(0x9000))
	}
	if !d.holds(&higher) || d.holds(&codes) {
		t.Error("what was loaded is not held")
	}
	var back heater.Codes
	for n, m := range d.do(d.dacs.ReadBack(nil)) {
		if !d.dacs.Codes(n, m.R, &back) {
			t.Errorf("DAC %d is not ready", n)
		}
	}
	for k := range back {
		for register := range back[k] {
			if k < hal.CellMatrix && d.dacs.HoldsBoth() || register == 0 {
				if back[k][register] != higher[k][register] {
					t.Errorf("cell %d register %d: %#x, want %#x", k, register, back[k][register], higher[k][register])
				}
			}
		}
	}
}

// Goal: single heaters are driven, moved in both registers, and poked, and the
// rest stays.
// Method: cold, then settings of three DACs; staged, then a move of sixteen cells.
func TestSettingsTouchTheirCellsAlone(t *testing.T) { onEvery(t, settingsTouchTheirCellsAlone) }

func settingsTouchTheirCellsAlone(d *desk) {
	t := d.t
	d.do(d.dacs.Cold())
	var l heater.Limits
	d.do(d.dacs.Set([]heater.Setting{l.Allow(2, 0, 0x2000), l.Allow(17, 0, 0x3000), l.Allow(35, 0, 0x4000)}))
	if got := d.w.Limits(0).Volt; got < 2499*physic.MilliVolt || got > 2501*physic.MilliVolt {
		t.Errorf("set: at most %v", got)
	}
	codes := ladder()
	d.do(d.dacs.Stage(l.AllowAll(&codes)))
	var moves []heater.Setting
	for k := range hal.CellMatrix {
		register := 0 // in force
		if d.dacs.HoldsBoth() {
			register = k / hal.CellMZI2
		}
		codes[k][register] += 0x33
		moves = append(moves, l.Allow(k, register, codes[k][register]))
	}
	d.do(d.dacs.Move(moves, l.AllowAll(&codes)))
	if !d.holds(&codes) {
		t.Error("a move is not what is held")
	}
	codes[20][0] = 0x2345
	d.do(d.dacs.Poke(l.Allow(20, 0, 0x2345)))
	if !d.holds(&codes) {
		t.Error("a poke is not what is held")
	}
}

// Goal: hands find the registers there are, read them, and get no code past the
// limits of a module that is warm already.
// Method: names; pokes of a full module; test patterns that come back, and one that
// does not.
func TestHandsStayWithinTheLimits(t *testing.T) { onEvery(t, handsStayWithinTheLimits) }

func handsStayWithinTheLimits(d *desk) {
	t := d.t
	for _, name := range []string{"code", "codea", "code16a", "code0c", "setting16", "setting", "togglesa", ""} {
		if _, ok := d.dacs.Register(0, name); ok {
			t.Errorf("there is a register %q", name)
		}
	}
	if _, ok := d.dacs.Register(d.dacs.Chips(), "toggles"); ok {
		t.Error("there is a DAC too many")
	}
	r, ok := d.dacs.Register(0, "code3a")
	if !ok || r.Cell != 3 {
		t.Fatalf("code3a: %+v, %v", r, ok)
	}
	if other, ok := d.dacs.Register(0, "code3b"); ok != d.dacs.HoldsBoth() {
		t.Errorf("code3b: %+v, %v", other, ok)
	} else if ok {
		r = other
	}
	if _, err := d.dacs.Allow(r, 1, d.do(d.dacs.Peek())); !errors.Is(err, hal.ErrUnsupported) && d.dacs.HoldsBoth() {
		t.Errorf("a DAC after power-on: %v", err)
	}
	var l heater.Limits
	full := heater.Codes{}
	for k := range full {
		full[k] = [2]uint16{0xB800, 0xB800}
	}
	d.do(d.dacs.Stage(l.AllowAll(&full)))
	if l.Cuts() == 0 {
		t.Fatal("a full module was not cut down")
	}
	for _, tc := range []struct {
		code uint16
		ok   bool
	}{{0x1000, true}, {0xE000, false}} {
		s, err := d.dacs.Allow(r, tc.code, d.do(d.dacs.Peek()))
		if tc.ok != (err == nil) || !tc.ok && !errors.Is(err, hal.ErrOutOfRange) {
			t.Errorf("%#x: %v", tc.code, err)
		}
		if err == nil {
			d.do(d.dacs.Poke(s))
			if got := d.dacs.Value(r, d.do(d.dacs.Peek())); got != tc.code {
				t.Errorf("poked %#x, peeked %#x", tc.code, got)
			}
		}
	}
	d.do(d.dacs.Pattern(0x5555))
	read := d.do(d.dacs.ReadBack(nil))
	if n, wrong, err := d.dacs.PatternHeld(0x5555, read); n == 0 || wrong != 0 || err != nil {
		t.Errorf("%d of %d registers are wrong: %v", wrong, n, err)
	}
	if n, wrong, err := d.dacs.PatternHeld(0x2AAA, read); wrong != n || err == nil {
		t.Errorf("another pattern: %d of %d wrong, %v", wrong, n, err)
	}
}
