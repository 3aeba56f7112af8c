package sim

import (
	"errors"
	"math"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/ltc2688"

	"periph.io/x/conn/v3/physic"
)

// frames sends frames to a DAC and returns the value that came back with each.
func frames(c *ltc, now int64, list ...[]byte) (back []uint16) {
	for _, f := range list {
		b := make([]byte, ltc2688.FrameBytes)
		c.frame(now, f, b)
		back = append(back, ltc2688.Value(b))
	}
	return back
}

func write(cmd byte, v uint16) []byte { return ltc2688.AppendWrite(nil, cmd, v) }

// driven are the frames that put a channel to a code of 10 V at once.
func driven(ch int, code uint16) []byte {
	w := write(ltc2688.CmdSetting+byte(ch), ltc2688.Span10V)
	return ltc2688.AppendWrite(w, ltc2688.CmdCodeUpdate+byte(ch), code)
}

// staged are the frames that put the codes of three paths into a DAC.
func staged(d int, loop, ext1, ext2 *[hal.CellsPerMod]uint16) (w []byte) {
	put := func(cmd byte, v uint16) { w = ltc2688.AppendWrite(w, cmd, v) }
	source := [2]uint16{ltc2688.SourceTGP0, ltc2688.SourceTGP1}
	for ch := range ltc2688.Channels {
		k := d*ltc2688.Channels + ch
		if k >= hal.BenesCells {
			break
		}
		set, a, z := ltc2688.Setting(ltc2688.Span10V, ltc2688.SourceSoftware), loop[k], loop[k]
		if k < hal.CellMatrix {
			set = ltc2688.Setting(ltc2688.Span10V, source[k/8])
			a, z = loop[k], ext1[k]
			if k >= hal.CellMZI2 {
				a, z = ext1[k], ext2[k]
			}
		}
		put(ltc2688.CmdSetting+byte(ch), set)
		put(ltc2688.CmdCode+byte(ch), a)
		put(ltc2688.CmdABSelect, 1<<ch)
		put(ltc2688.CmdCode+byte(ch), z)
		put(ltc2688.CmdABSelect, 0)
	}
	if d == 0 {
		put(ltc2688.CmdToggleEnable, 0xFFFF)
	}
	put(ltc2688.CmdUpdateAll, 0)
	return w
}

var noop = []byte{ltc2688.CmdNoop, 0, 0}

// Every register must read back what was written, one frame late.
func TestDACReadBackIsOneFrameLate(t *testing.T) {
	for _, reg := range []byte{ltc2688.CmdCode + 3, ltc2688.CmdSetting + 15, ltc2688.CmdOffset, ltc2688.CmdGain + 9,
		ltc2688.CmdConfig, ltc2688.CmdPowerDown, ltc2688.CmdABSelect, ltc2688.CmdSoftwareToggle, ltc2688.CmdToggleEnable, ltc2688.CmdMux} {
		var c ltc
		got := frames(&c, 0, write(reg, 0x1234), write(reg|ltc2688.ReadFlag, 0), noop, noop)
		if got[0] != 0 || got[1] != 0 || got[2] != 0x1234 || got[3] != 0 {
			t.Errorf("register %#02x: frames brought %#04x, want 0 0 0x1234 0", reg, got)
		}
	}
	var c ltc
	if got := frames(&c, 0, write(ltc2688.CmdThermal, 0xFFFF), write(ltc2688.CmdThermal|ltc2688.ReadFlag, 0), noop); got[2] != 0 {
		t.Errorf("the thermal status could be written: %#04x", got[2])
	}
}

// A transfer that is not 24 bits must do nothing at all.
func TestDACRefusesWrongFrameLength(t *testing.T) {
	for _, bad := range [][]byte{{}, {0x43}, {0x43, 0xFF}, {0x43, 0xFF, 0xFF, 0}, {0x43, 0xFF, 0xFF, 0x44, 0xFF, 0xFF}} {
		var c, fresh ltc
		if changed := c.frame(0, bad, nil); changed != 0 || c != fresh {
			t.Errorf("%d bytes changed the chip", len(bad))
		}
	}
}

// A and B are two codes; a write reaches the output with an update only, and
// the toggle source chooses between them.
func TestDACTwoCodes(t *testing.T) {
	var c ltc
	const ch = 5
	set := ltc2688.Setting(ltc2688.Span10V, ltc2688.SourceTGP1)
	frames(&c, 0, write(ltc2688.CmdSetting+ch, set), write(ltc2688.CmdToggleEnable, 1<<ch),
		write(ltc2688.CmdCode+ch, 0x2000), write(ltc2688.CmdABSelect, 1<<ch), write(ltc2688.CmdCode+ch, 0x8000))
	check := func(when string, nets [2]bool, want float64) {
		t.Helper()
		if got := c.volts(ch, nets); got != want {
			t.Errorf("%s, nets %v: %v V, want %v", when, nets, got, want)
		}
	}
	low, high, other := [2]bool{}, [2]bool{false, true}, [2]bool{true, false}
	check("before the update", low, 0)
	check("before the update", high, 0)
	if changed := c.frame(0, write(ltc2688.CmdUpdateAll, 0), nil); changed != 0xFFFF {
		t.Errorf("update all changed %#04x", changed)
	}
	check("updated", low, 1.25)
	check("updated", high, 5)
	check("another net", other, 1.25)
	frames(&c, 0, write(ltc2688.CmdToggleEnable, 0))
	check("toggling off", high, 1.25)
	frames(&c, 0, write(ltc2688.CmdToggleEnable, 1<<ch), write(ltc2688.CmdPowerDown, 1<<ch))
	check("powered down", high, 0)
}

// Reset must clear everything and then take its time.
func TestDACReset(t *testing.T) {
	var c ltc
	frames(&c, 0, write(ltc2688.CmdSettingAll, 1), write(ltc2688.CmdCodeAllUpdate, 0x7000), write(ltc2688.CmdConfig, ltc2688.ConfigReset))
	if v := c.volts(0, [2]bool{}); v != 0 {
		t.Errorf("output %v V after reset", v)
	}
	frames(&c, ltc2688.ResetMicros*1000-1, write(ltc2688.CmdSetting, 1))
	if c.setting[0] != ltc2688.Span5V {
		t.Error("took a frame before it was ready")
	}
	frames(&c, ltc2688.ResetMicros*1000, write(ltc2688.CmdSetting, 1))
	if c.setting[0] != 1 {
		t.Error("did not take a frame when it was ready")
	}
}

// Over the bus: frames of the wrong length are the chip's to ignore, a message
// that is no whole number of frames is refused, and the limits are recorded.
func TestDACOnTheBus(t *testing.T) {
	r := newRig(t, 1, 1)
	id := r.board(1)
	hw := &r.hw.Bundles[0].Modules[0]
	m := &r.w.boards[id].bundles[0].modules[0]
	r.must(id, hw.SPI, hal.Msg{Addr: hw.ChipSelects[1], Frame: 2, W: []byte{0x40, 0xFF, 0xFF, 0x40}})
	if m.level[16] != 0 {
		t.Error("a frame of 16 bits drove a heater")
	}
	if c := r.do(id, hw.SPI, hal.Msg{Addr: hw.ChipSelects[1], Frame: 3, W: []byte{1, 2, 3, 4}}); !errors.Is(c.Err, hal.ErrOutOfRange) {
		t.Errorf("four bytes in frames of three: %v", c.Err)
	}
	c := r.must(id, hw.SPI, hal.Msg{Addr: hw.ChipSelects[1], Frame: 3, W: append(write(ltc2688.CmdSetting, ltc2688.Span10V), write(ltc2688.CmdCodeUpdate, 0x8000)...)})
	if d := c.End - c.Start; d != 2*(1200+100)*time.Nanosecond {
		t.Errorf("two frames at 20 MHz took %v, want 2.6us", d)
	}
	lim := r.w.Limits(id)
	if lim.Volt != 5*physic.Volt || lim.Current < 4*physic.MilliAmpere || lim.Heater < 20*physic.MilliWatt || lim.Module != lim.Heater {
		t.Errorf("5 V on one heater recorded as %+v", lim)
	}
	r.must(id, hw.SPI, hal.Msg{Addr: 99, Frame: 3, W: write(ltc2688.CmdCodeUpdate, 0xFFFF)})
	if r.w.Limits(id) != lim {
		t.Error("a chip select that no chip has moved a heater")
	}
}

// dithering is the setting of a channel that dithers with a source's edges.
func dithering(span, source, period, phase uint16) uint16 {
	return span | source<<ltc2688.SourceShift | period<<ltc2688.PeriodShift | phase<<ltc2688.PhaseShift | ltc2688.SettingDither
}

// Goal: in dither mode the output is code A plus a sine of amplitude B that goes
// on with each rising edge of its source, from its phase, over its period.
// Method: a channel of the simulated chip by its frames; edges of the software
// source, of a toggle pin and of the clock pin; the voltage against the sine.
func TestDACDithers(t *testing.T) {
	const ch, a, amplitude = 2, 0x6000, 0x0803 // the low two bits do not count
	for _, period := range []uint16{ltc2688.Period4, ltc2688.Period16, ltc2688.Period64} {
		for phase := range uint16(4) {
			for _, source := range []uint16{ltc2688.SourceSoftware, ltc2688.SourceTGP1} {
				var c ltc
				frames(&c, 0, write(ltc2688.CmdSetting+ch, dithering(ltc2688.Span10V, source, period, phase)),
					write(ltc2688.CmdCode+ch, a), write(ltc2688.CmdABSelect, 1<<ch), write(ltc2688.CmdCode+ch, amplitude),
					write(ltc2688.CmdUpdateAll, 0))
				if v := c.volts(ch, [2]bool{}); math.Abs(v-10.0*a/65536) > 1e-9 {
					t.Fatalf("not enabled, but %v V", v)
				}
				frames(&c, 0, write(ltc2688.CmdToggleEnable, 1<<ch))
				clocks := 4 << period
				for n := range 2 * clocks {
					want := 10 * (a + (amplitude&^3)*math.Sin(2*math.Pi*(float64(n)/float64(clocks)+float64(phase)/4))) / 65536
					if v := c.volts(ch, [2]bool{}); math.Abs(v-want) > 1e-9 {
						t.Fatalf("period %d phase %d source %d, edge %d: %v V, want %v", period, phase, source, n, v, want)
					}
					switch source {
					case ltc2688.SourceSoftware:
						frames(&c, 0, write(ltc2688.CmdSoftwareToggle, 1<<ch), write(ltc2688.CmdSoftwareToggle, 0))
					default:
						c.pins([2]bool{false, true})
						c.pins([2]bool{})
					}
				}
			}
		}
	}
}

// Goal: a chip that toggles is not moved by the clock of the dither, and one that
// was reset dithers no more.
// Method: the same channel toggling, and after a reset.
func TestDACDitherNeedsItsMode(t *testing.T) {
	var c ltc
	frames(&c, 0, write(ltc2688.CmdSetting, dithering(ltc2688.Span10V, ltc2688.SourceSoftware, ltc2688.Period4, ltc2688.Phase90)),
		write(ltc2688.CmdSetting+1, ltc2688.Setting(ltc2688.Span10V, ltc2688.SourceSoftware)), write(ltc2688.CmdToggleEnable, 3),
		write(ltc2688.CmdCodeAll, 0x4000), write(ltc2688.CmdABSelect, 3), write(ltc2688.CmdCodeAll, 0x1000), write(ltc2688.CmdUpdateAll, 0))
	if v, w := c.volts(0, [2]bool{}), c.volts(1, [2]bool{}); math.Abs(v-3.125) > 1e-9 || math.Abs(w-2.5) > 1e-9 {
		t.Errorf("dither at its crest %v V, toggle on A %v V", v, w)
	}
	frames(&c, 0, write(ltc2688.CmdSoftwareToggle, 3))
	if v, w := c.volts(0, [2]bool{}), c.volts(1, [2]bool{}); math.Abs(v-2.5) > 1e-9 || math.Abs(w-0.625) > 1e-9 {
		t.Errorf("an edge later: dither %v V, toggle on B %v V", v, w)
	}
	frames(&c, 0, write(ltc2688.CmdConfig, ltc2688.ConfigReset))
	if c.dither != nil {
		t.Error("a reset chip still dithers")
	}
}

// Goal: a dither of a heater is seen by the module's own diodes at its clock.
// Method: MZI1 of a lit lane dithered about its half-way point by the clock pin;
// the light of its lane goes up and down once in a period.
func TestDitherIsSeenByTheDiodes(t *testing.T) {
	r := newADCRig(t)
	r.lit()
	b := r.w.boards[r.id]
	m := &b.bundles[0].modules[0]
	hw := r.hw.Bundles[0].Modules[0]
	spi := func(frames ...[]byte) {
		var w []byte
		for _, f := range frames {
			w = append(w, f...)
		}
		r.must(r.id, hw.SPI, hal.Msg{Addr: hw.ChipSelects[0], Frame: ltc2688.FrameBytes, W: w})
	}
	quarter := uint16(math.Sqrt(float64(m.per.cells[0].ohm*m.per.cells[0].piPower/2000)) / 10 * 65536)
	spi(write(ltc2688.CmdSetting, dithering(ltc2688.Span10V, ltc2688.SourceTGP2, ltc2688.Period8, ltc2688.Phase0)),
		write(ltc2688.CmdToggleEnable, 0xFFFF), write(ltc2688.CmdABSelect, 0), write(ltc2688.CmdCode, quarter),
		write(ltc2688.CmdABSelect, 0xFFFF), write(ltc2688.CmdCode, 0x0C00), write(ltc2688.CmdUpdateAll, 0))
	var level [16]float64
	for n := range level {
		r.run(2 * time.Millisecond)
		level[n] = m.warmth(0, int64(r.w.Now()), &decay{age: -1})
		// As a clock generator would; on the default board nothing hangs there.
		m.dac[0].(*ltc).dither.edges[ltc2688.SourceTGP2]++
		m.drive(0, allChannels)
	}
	for n := range 8 {
		if d := level[n+8] - level[n]; math.Abs(d) > 1e-6 {
			t.Errorf("edge %d: %v, a period later %v", n, level[n], level[n+8])
		}
	}
	if level[2] <= level[0] || level[6] >= level[4] || level[2] <= level[6] {
		t.Errorf("no sine: %v", level)
	}
}
