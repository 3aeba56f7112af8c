package sim

import (
	"errors"
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
	if c.setting[0] != ltc2688.ResetSetting {
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
