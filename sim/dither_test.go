package sim

import (
	"math"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/ltc2688"
)

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
				frames(&c, 0, write(ltc2688.CmdSetting+ch, ltc2688.Dither(ltc2688.Span10V, source, period, phase)),
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
	frames(&c, 0, write(ltc2688.CmdSetting, ltc2688.Dither(ltc2688.Span10V, ltc2688.SourceSoftware, ltc2688.Period4, ltc2688.Phase90)),
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
	spi(write(ltc2688.CmdSetting, ltc2688.Dither(ltc2688.Span10V, ltc2688.SourceTGP2, ltc2688.Period8, ltc2688.Phase0)),
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
