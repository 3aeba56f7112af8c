package heater_test

import (
	"errors"
	"testing"

	"ringlight/hal"
	"ringlight/hal/boardfile"
	"ringlight/ocs/heater"
	"ringlight/sim"

	"periph.io/x/conn/v3/physic"
)

// desk is one module on a simulated board, whose DACs know nothing of the driver.
type desk struct {
	t    *testing.T
	w    *sim.World
	hw   *hal.Module
	dacs *heater.Driver
}

// onEvery runs a test with every DAC that a board may name.
func onEvery(t *testing.T, test func(d *desk)) {
	for name, dac := range map[string]hal.Part{"LTC2688": hal.LTC2688, "AD5676R": hal.AD5676R} { // any order: independent
		t.Run(name, func(t *testing.T) { test(newDesk(t, dac)) })
	}
}

func newDesk(t *testing.T, dac hal.Part) *desk {
	t.Helper()
	board, err := boardfile.DefaultOf(dac, 1, 1, 1)
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

// known tells the driver of every heater's resistance.
func (d *desk) known() {
	for cell := range hal.BenesCells {
		d.dacs.Know(cell, 900_000)
	}
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

// all is what codes become of which none may be cut down.
func (d *desk) all(codes *heater.Codes) *heater.Allowed {
	d.t.Helper()
	allowed, cuts := d.dacs.AllowAll(codes)
	if cuts > 0 {
		d.t.Fatalf("%d cuts", cuts)
	}
	return allowed
}

// ladder are codes of which no two are the same, all within the limits.
func ladder() (codes heater.Codes) {
	for k := range codes[:hal.BenesCells] {
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
	d.known()
	codes := ladder()
	if d.holds(&codes) || d.dacs.HoldsBoth() && d.holds(&heater.Codes{}) {
		t.Fatal("a DAC after power-on counts as set up")
	}
	allowed, cuts := d.dacs.AllowAll(&codes)
	d.do(d.dacs.Stage(allowed))
	if !d.holds(&codes) || cuts != 0 {
		t.Fatalf("staged codes are not held, %d cuts", cuts)
	}
	before := d.w.Limits(0)
	higher := codes
	higher[7][0] = 0x9000
	d.do(d.dacs.Load(d.all(&higher)))
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
	d.do(d.dacs.Set([]heater.Setting{d.dacs.Allow(2, 0, 0x2000), d.dacs.Allow(17, 0, 0x3000), d.dacs.Allow(35, 0, 0x4000)}))
	if got := d.w.Limits(0).Volt; got < 2499*physic.MilliVolt || got > 2501*physic.MilliVolt {
		t.Errorf("set: at most %v", got)
	}
	codes := ladder()
	d.do(d.dacs.Stage(d.all(&codes)))
	var moves []heater.Setting
	for k := range hal.CellMatrix {
		register := 0 // in force
		if d.dacs.HoldsBoth() {
			register = k / hal.CellMZI2
		}
		codes[k][register] += 0x33
		moves = append(moves, d.dacs.Allow(k, register, codes[k][register]))
	}
	d.do(d.dacs.Move(moves, d.all(&codes)))
	if !d.holds(&codes) {
		t.Error("a move is not what is held")
	}
	codes[20][0] = 0x2345
	d.do(d.dacs.Poke(d.dacs.Allow(20, 0, 0x2345)))
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
	if _, err := d.dacs.AllowPoke(r, 1, d.do(d.dacs.Peek())); !errors.Is(err, hal.ErrUnsupported) && d.dacs.HoldsBoth() {
		t.Errorf("a DAC after power-on: %v", err)
	}
	full := heater.Codes{}
	for k := range full {
		full[k] = [2]uint16{0xB800, 0xB800}
	}
	allowed, cuts := d.dacs.AllowAll(&full)
	d.do(d.dacs.Stage(allowed))
	if cuts == 0 {
		t.Fatal("a full module was not cut down")
	}
	for _, tc := range []struct {
		code uint16
		ok   bool
	}{{0x1000, true}, {0xE000, false}} {
		s, err := d.dacs.AllowPoke(r, tc.code, d.do(d.dacs.Peek()))
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
	d.do(d.dacs.Cold())
	msgs, codes := d.dacs.Pattern(0x5555)
	d.do(msgs)
	read := d.do(d.dacs.ReadBack(nil))
	if n, wrong, err := d.dacs.PatternHeld(codes, read); n == 0 || wrong != 0 || err != nil {
		t.Errorf("%d of %d registers are wrong: %v", wrong, n, err)
	}
	_, other := d.dacs.Pattern(0x2AAA)
	if n, wrong, err := d.dacs.PatternHeld(other, read); wrong != n || err == nil {
		t.Errorf("another pattern: %d of %d wrong, %v", wrong, n, err)
	}
}

// Goal: a test pattern never leaves more in the registers of heaters than the limits
// allow, whatever it is and whoever writes it first.
// Method: patterns of many ones, read back from the chips; power reckoned here, for
// the least plausible resistance. A driver that knows nothing of the module writes
// nothing that heats.
func TestPatternsStayWithinTheLimits(t *testing.T) { onEvery(t, patternsStayWithinTheLimits) }

func patternsStayWithinTheLimits(d *desk) {
	t := d.t
	d.do(d.dacs.Cold())
	for _, pattern := range []uint16{0xAAAA, 0xFFFF, 0xAAAA, 0x5555, 0xFFFF, 0} {
		msgs, codes := d.dacs.Pattern(pattern)
		d.do(msgs)
		read := d.do(d.dacs.ReadBack(nil))
		if n, wrong, err := d.dacs.PatternHeld(codes, read); wrong != 0 || n < hal.BenesCells {
			t.Errorf("%#x: %d of %d wrong, %v", pattern, wrong, n, err)
		}
		if most, module := d.hottest(read, 450); most > 60 || module > 2000 {
			t.Errorf("%#x: a heater has %.1f mW, the module %.1f mW", pattern, most, module)
		} else if pattern == 0xFFFF && module < 1500 {
			t.Errorf("%#x was cut down to %.1f mW", pattern, module)
		}
	}
	stranger := newDesk(t, d.hw.DAC)
	msgs, _ := stranger.dacs.Pattern(0xAAAA)
	stranger.do(msgs)
	if most, _ := stranger.hottest(stranger.do(stranger.dacs.ReadBack(nil)), 900); most != 0 {
		t.Errorf("a driver that knows nothing of the module gave a heater %.1f mW", most)
	}
}

// hottest is the power of the hottest heater and of the module, milliwatt, with what
// the DACs hold.
func (d *desk) hottest(read []hal.Msg, ohm float64) (most, module float64) {
	var codes heater.Codes
	for n, m := range read {
		d.dacs.Codes(n, m.R, &codes)
	}
	for k := range codes {
		volt := 10 * float64(max(codes[k][0], codes[k][1])) / 65536
		most = max(most, 1000*volt*volt/ohm)
		module += 1000 * volt * volt / ohm
	}
	return most, module
}

// Goal: nobody brings a module over its limits with limits that know less than all of
// it, and what one driver allowed another never writes.
// Method: a driver for each cell; settings and codes of one driver given to another of
// the same module; settings allowed before a heater was known to be a hotter one, and
// before others got the heat.
func TestLimitsAreOfOneModule(t *testing.T) { onEvery(t, limitsAreOfOneModule) }

func limitsAreOfOneModule(d *desk) {
	t := d.t
	refused := func(what string, write func()) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Errorf("%s is written", what)
			}
		}()
		write()
	}
	d.do(d.dacs.Cold())
	for cell := range hal.BenesCells {
		fresh := heater.For(d.hw)
		fresh.Know(cell, 1_100_000)
		d.do(fresh.Set([]heater.Setting{fresh.Allow(cell, 0, 0xFFFF)}))
	}
	if _, module := d.hottest(d.do(d.dacs.ReadBack(nil)), 900); module > 2000 {
		t.Errorf("a driver for each cell: the module has %.1f mW", module)
	}
	other := heater.For(d.hw)
	codes := ladder()
	allowed, _ := other.AllowAll(&codes)
	refused("another driver's setting", func() { d.dacs.Set([]heater.Setting{other.Allow(3, 0, 0x4000)}) })
	refused("another driver's setting by hand", func() { d.dacs.Poke(other.Allow(3, 0, 0x4000)) })
	for _, write := range []func(*heater.Allowed) []hal.Msg{d.dacs.Stage, d.dacs.Load, d.dacs.Arm, d.dacs.Change} {
		refused("another driver's set of codes", func() { write(allowed) })
	}
	refused("another module's set of codes", func() { allowed.Code(new(hal.Module), 0, 0) })

	d.dacs.Cold()
	d.dacs.Know(5, 1_100_000)
	hot := d.dacs.Allow(5, 0, 0xFFFF)
	d.dacs.Poke(hot)
	all, _ := d.dacs.AllowAll(&codes)
	d.dacs.Know(5, 900_000)
	refused("a setting for a heater that was another", func() { d.dacs.Poke(hot) })
	refused("a set of codes for heaters that were others", func() { d.dacs.Load(all) })

	d.dacs.Cold()
	d.known()
	early := d.dacs.Allow(0, 0, 0xB000)
	full := heater.Codes{}
	for k := 1; k < hal.BenesCells; k++ {
		full[k][0] = 0xB800
	}
	d.dacs.AllowAll(&full)
	refused("a setting whose heat others have by now", func() { d.dacs.Poke(early) })
}

// Goal: the driver names the registers of its chips, and finds those alone.
// Method: both chips' forms; toggles and settings, which one of them has.
func TestRegistersAreTheChips(t *testing.T) {
	forms := map[hal.Part]string{hal.LTC2688: "dac0..2/code0..15a|b, dac0..2/setting0..15, dac0..2/toggles", hal.AD5676R: "dac0..4/code0..7a"}
	for dac, want := range forms { // any order: independent
		d := newDesk(t, dac).dacs
		if got := d.Forms(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		for _, name := range []string{"toggles", "setting3"} {
			if _, ok := d.Register(0, name); ok != (dac == hal.LTC2688) {
				t.Errorf("DAC %d: %s found: %v", dac, name, ok)
			}
		}
	}
}
