package ocs_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"ringlight/hal"
	"ringlight/hal/boardfile"
	"ringlight/ocs"
	"ringlight/ocs/heater"
	"ringlight/sim"
)

// hand does accesses on a simulated board of two modules.
type hand struct {
	t  *testing.T
	w  *sim.World
	hw *hal.Board
}

func newHand(t *testing.T) *hand {
	t.Helper()
	hw, err := boardfile.Default(4, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	h := &hand{t: t, w: sim.NewWorld(sim.WorldConfig{Seed: 2}), hw: &hw}
	if _, err := h.w.AddBoard(sim.BoardConfig{Board: hw, Seed: 2, Powered: true}); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *hand) op(bus hal.BusID, op *hal.Op) *hal.Completion {
	h.t.Helper()
	if err := h.w.Submit(h.w.Now(), 0, bus, op); err != nil {
		h.t.Fatal(err)
	}
	for {
		if _, ev, ok := h.w.Step(); ok && ev.Completion != nil {
			return ev.Completion
		}
	}
}

func (h *hand) do(a *ocs.Access) (uint32, error) {
	h.t.Helper()
	for done := (*hal.Completion)(nil); ; {
		bus, op := a.Next(done)
		if op == nil {
			return a.Value()
		}
		done = h.op(bus, op)
	}
}

func (h *hand) peek(name string) (uint32, error) {
	h.t.Helper()
	r, err := ocs.FindRegister(h.hw, name)
	if err != nil {
		return 0, err
	}
	return h.do(r.Peek())
}

func (h *hand) poke(name string, v uint32) error {
	h.t.Helper()
	r, err := ocs.FindRegister(h.hw, name)
	if err != nil {
		return err
	}
	a, err := r.Poke(v)
	if err != nil {
		return err
	}
	_, err = h.do(a)
	return err
}

// Goal: a value is told in units. Method: figures of the data sheets (TMP102
// "12-Bit Temperature Data Format", INA219 "Register Details": 10 uV and 4 mV a
// step), the board's shunt and full scales, and of a real read the simulated
// board's own temperature.
func TestRegistersHaveMeanings(t *testing.T) {
	h := newHand(t)
	optics := h.hw.Bundles[0].Modules[0].Optics()
	for _, c := range []struct {
		name  string
		value uint32
		want  string
	}{
		{"temp/temperature", 0x2810, "40.06 C"}, {"temp/temperature", 0xE700, "-25.00 C"}, {"temp/high", 0x5000, "80.00 C"}, {"temp/config", 0x60a0, ""},
		{"rail/shunt", 0x0140, fmt.Sprintf("3.20 mV, %.2f mA through %d mOhm", 3200/float64(optics.RailShuntMilliohm), optics.RailShuntMilliohm)},
		{"rail/shunt", 0xfec0, fmt.Sprintf("-3.20 mV, %.2f mA through %d mOhm", -3200/float64(optics.RailShuntMilliohm), optics.RailShuntMilliohm)},
		{"rail/bus", 0x5dc2, "12.000 V"}, {"rail/bus", 0x5dc3, "12.000 V, current or power overflowed"},
		{"rail/config", 0x399f, "shunt up to 320 mV, 532 us a conversion"}, {"rail/calibration", 0, "not set: current and power read 0"}, {"rail/power", 5, ""},
		{"laser/output", 0x05, "high: lanes 0 2"}, {"laser/config", 0, "inputs: none"}, {"latch/config", 0xffffff, "inputs: all"}, {"latch/polarity", 1 << 23, "inverted: pins 23"},
		{"lanes/recent3", 0, "no light on lane 3"}, {"guard/recent6", 0, "no light on tap of external 1"}, {"lanes/0x04", 0x10, ""}, {"eeprom/0", 'O', ""}, {"dac1/setting2", 3, ""}, {"dac1/toggles", 3, ""},
		{"dac0/code0a", 0x8000, "5.000 V on cell 0"},
	} {
		r, err := ocs.FindRegister(h.hw, "0/0/"+c.name)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Meaning(c.value); got != c.want {
			t.Errorf("%s %#x: %q, want %q", c.name, c.value, got, c.want)
		}
	}
	// Half of the codes is 3.01 dB below the full scale, whatever ADC.
	for part, half := range map[hal.Part]uint32{hal.ADS7138: 0x8000, hal.AD7998: 0x800} { // any order: independent
		h.hw.Bundles[0].Modules[0].Diodes = part
		for n, s := range optics.Lanes {
			r, err := ocs.FindRegister(h.hw, fmt.Sprintf("0/0/lanes/recent%d", s.Channel))
			if err != nil {
				t.Fatal(err)
			}
			dbm := float64(s.FullScaleMilliDBm)/1000 - 3.01
			want := fmt.Sprintf("%.2f dBm, %.3g mW on lane %d", dbm, math.Pow(10, float64(s.FullScaleMilliDBm)/1e4)*0.5, n)
			if got := r.Meaning(half); got != want {
				t.Errorf("%v recent%d: %q, want %q", part, s.Channel, got, want)
			}
		}
	}
}

func TestRegistersAreFoundByName(t *testing.T) {
	// Goal: every register of every chip can be read; what does not exist is
	// refused.
	h := newHand(t)
	for _, name := range []string{"dac0/code0a", "dac2/code3b", "dac1/setting15", "dac2/toggles", "guard/recent7", "lanes/recent0", "lanes/0x04", "guard/0x25",
		"temp/temperature", "temp/config", "temp/low", "temp/high", "rail/config", "rail/shunt", "rail/bus", "rail/power", "rail/current", "rail/calibration",
		"laser/input", "laser/output", "laser/polarity", "laser/config", "latch/input", "latch/output", "latch/polarity", "latch/config", "eeprom/0x0000", "eeprom/0x1fff"} {
		if _, err := h.peek("0/1/" + name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if v, err := h.peek("0/0/temp/high"); err != nil || v != 0x5000 {
		t.Errorf("temp/high %#x, %v", v, err)
	}
	if v, err := h.peek("0/0/eeprom/0"); err != nil || v != 'O' {
		t.Errorf("eeprom/0 %#x, %v", v, err)
	}
	for _, name := range []string{"", "0/0", "0/0/temp", "1/0/temp/low", "0/2/temp/low", "-1/0/temp/low", "0/0/temp/lower", "0/0/dac3/code0a", "0/0/dac0/code16a", "0/0/dac0/code0c",
		"0/0/dac0/a", "0/0/dac0/", "0/0/guard/recent8", "0/0/guard/0x100", "0/0/eeprom/0x2000", "0/0/clock/0"} {
		if _, err := ocs.FindRegister(h.hw, name); !errors.Is(err, ocs.ErrRegister) {
			t.Errorf("%q: %v", name, err)
		}
	}
	cmis, err := boardfile.DefaultCMIS(4, 1, 1, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ocs.FindRegister(&cmis, "0/0/temp/low"); !errors.Is(err, hal.ErrUnsupported) || !strings.Contains(err.Error(), "dump-module") {
		t.Errorf("of a CMIS module: %v", err)
	}
}

func TestPokesStayWithinTheirLimits(t *testing.T) {
	// Goal: a poke is written and reads back; what is out of range, not for
	// hands, or more than a heater may take is refused and changes nothing; no
	// sequence of pokes brings a heater or a module over its limits.
	h := newHand(t)
	if c := h.op(h.hw.Bundles[0].Modules[0].SPI, &hal.Op{Msgs: heater.For(&h.hw.Bundles[0].Modules[0]).Cold()}); c.Err != nil {
		t.Fatal(c.Err)
	}
	for name, v := range map[string]uint32{"temp/low": 0x1230, "rail/calibration": 0x1000, "laser/output": 0xA5, "guard/0x21": 0x7F,
		"eeprom/0x1ff3": 0x5C, "dac0/code5a": 0x4000, "dac0/code5b": 0x3000} { // any order: independent
		if err := h.poke("0/0/"+name, v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got, err := h.peek("0/0/" + name); err != nil || got != v {
			t.Errorf("%s: %#x, %v; want %#x", name, got, err, v)
		}
	}
	for name, v := range map[string]uint32{"temp/low": 0x10000, "laser/output": 0x100, "eeprom/0x1ff3": 0x100, "dac0/code5a": 0x10000} { // any order: independent
		if err := h.poke("0/0/"+name, v); !errors.Is(err, hal.ErrOutOfRange) {
			t.Errorf("%s %#x: %v", name, v, err)
		}
	}
	for _, name := range []string{"temp/temperature", "temp/config", "rail/shunt", "laser/config", "latch/output", "eeprom/0x0000", "dac0/setting0", "dac0/toggles", "dac2/code4a", "guard/0x01"} {
		if err := h.poke("0/0/"+name, 0); !errors.Is(err, ocs.ErrReadOnly) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// 8.5 V is 0xd99a. A heater that nobody has measured may be the least that its
	// maker states: 10 mA are 4.5 V.
	if err := h.poke("0/0/dac0/code6a", 0xE000); !errors.Is(err, hal.ErrOutOfRange) || !strings.Contains(err.Error(), "8500 mV") {
		t.Errorf("beyond 8.5 V: %v", err)
	}
	if got, _ := h.peek("0/0/dac0/code6a"); got != 0 {
		t.Errorf("a refused poke wrote %#x", got)
	}
	if err := h.poke("0/0/dac0/code6a", 0x7400); !errors.Is(err, hal.ErrOutOfRange) {
		t.Errorf("beyond 4.5 V: %v", err)
	}
	refused := 0
	for cell := range hal.BenesCells {
		err := h.poke(fmt.Sprintf("0/0/dac%d/code%da", cell/16, cell%16), 0x7000)
		if errors.Is(err, hal.ErrOutOfRange) {
			refused++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	l := h.w.Limits(0)
	if refused != 0 {
		t.Errorf("%d of %d refused: what any heater may have", refused, hal.BenesCells)
	}
	if int64(l.Module) > hal.Standard().Heater.ModuleMicrowatt*1000*11/10 || int64(l.Heater) > hal.Standard().Heater.MaxMicrowatt*1000*11/10 {
		t.Errorf("limits %+v", l)
	}
	// A channel whose span is not its heater's is left alone.
	if err := h.poke("0/1/dac0/code0a", 1); !errors.Is(err, hal.ErrUnsupported) {
		t.Errorf("a DAC after power-on: %v", err)
	}
}
