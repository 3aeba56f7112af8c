package sim

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/at24"
	"ringlight/hal/ina219"
	"ringlight/hal/pca953x"
	"ringlight/hal/pca9548"
	"ringlight/hal/tmp102"
)

// A latch after power-on must drive nothing, hold the toggles low and the
// lasers off, and keep bytes of a message to their function: in turn with two ports,
// at one port with three unless it is asked to go on.
func TestLatch(t *testing.T) {
	for _, tc := range []struct {
		part           hal.Part
		pulls, put     uint32
		inputs, behind []byte
	}{
		{hal.PCA9535, 0xCCCC, 0xA5F0, []byte{0xF0, 0xA5, 0xF0}, []byte{0x22, 0x33}},
		{hal.PCAL6524, 0xCCCCCC, 0x3CA5F0, []byte{0xF0, 0xA5, 0x3C}, []byte{0xF0, 0x33}},
	} {
		c := pca953x.Of(tc.part)
		l := expander{part: c, pulls: latchPulls}
		l.reset()
		if got := l.pins(); got != tc.pulls {
			t.Errorf("%v: pins %#x after power-on, want %#x: toggles down, Tx-disables up", tc.part, got, tc.pulls)
		}
		l.write(c.AppendWriteAll(nil, pca953x.Output, tc.put))
		if got := l.pins(); got != tc.pulls {
			t.Errorf("%v: pins %#x driven by inputs", tc.part, got)
		}
		l.write(c.AppendWriteAll(nil, pca953x.Config, 0))
		if got := l.pins(); got != tc.put {
			t.Errorf("%v: pins %#x, want %#x", tc.part, got, tc.put)
		}
		l.write(c.AppendWriteAll(nil, pca953x.Input, 0xFFFFFF))
		r := make([]byte, 3)
		l.write(c.AppendRead(nil, pca953x.Input))
		if l.read(r); !bytes.Equal(r, tc.inputs) {
			t.Errorf("%v: inputs % x, want % x", tc.part, r, tc.inputs)
		}
		l.write(c.AppendWrite(nil, pca953x.Polarity, 0, 0xFF))
		l.write([]byte{c.Reg(pca953x.Input, 0)})
		if l.read(r[:1]); r[0] != 0x0F {
			t.Errorf("%v: inverted input %#02x, want 0x0F", tc.part, r[0])
		}
		l.write([]byte{c.Reg(pca953x.Output, 1), 0x11, 0x22, 0x33})
		if l.reg[c.Reg(pca953x.Output, 0)] != tc.behind[0] || l.reg[c.Reg(pca953x.Output, 1)] != tc.behind[1] {
			t.Errorf("%v: bytes did not go where they belong: % x", tc.part, l.reg)
		}
	}
}

// slowRig talks to the chips behind a switch.
type slowRig struct {
	*rig
	id BoardID
	hw *hal.Module
}

func newSlowRig(t *testing.T, faults ...Fault) slowRig {
	r := newRig(t, 1, 2)
	s := slowRig{r, r.board(1, faults...), &r.hw.Bundles[0].Modules[1]}
	s.must(s.id, s.hw.Slow, hal.Msg{Addr: s.hw.Mux, W: pca9548.AppendSelect(nil, s.hw.MuxChannel)})
	return s
}

func (s slowRig) read(addr uint16, n int, w ...byte) []byte {
	s.t.Helper()
	buf := make([]byte, n)
	s.must(s.id, s.hw.Slow, hal.Msg{Addr: addr, W: w, R: buf})
	return buf
}

func (s slowRig) write(addr uint16, w ...byte) error {
	return s.do(s.id, s.hw.Slow, hal.Msg{Addr: addr, W: w}).Err
}

// The switch must connect what its control register says and nothing else.
func TestMux(t *testing.T) {
	s := newSlowRig(t)
	if got := s.read(s.hw.Mux, 1)[0]; got != 2 {
		t.Errorf("control register %#02x, want 0x02", got)
	}
	if err := s.write(s.hw.Temp, 0); err != nil {
		t.Errorf("behind the open channel: %v", err)
	}
	s.write(s.hw.Mux, pca9548.AppendNone(nil)...)
	if err := s.write(s.hw.Temp, 0); !errors.Is(err, hal.ErrAddressNACK) {
		t.Errorf("behind a closed switch: %v, want address NACK", err)
	}
	s.write(s.hw.Mux, pca9548.Select(7))
	if err := s.write(s.hw.Temp, 0); !errors.Is(err, hal.ErrAddressNACK) {
		t.Errorf("behind a channel with nothing on it: %v, want address NACK", err)
	}
	// Both open: writes reach both, reads are a wired and.
	s.write(s.hw.Mux, 3)
	s.write(s.hw.LaneEnable, pca953x.Output, 0xF0)
	s.write(s.hw.Mux, 1)
	s.write(s.hw.LaneEnable, pca953x.Output, 0x3C)
	s.write(s.hw.Mux, 3)
	if got := s.read(s.hw.LaneEnable, 1, pca953x.Output)[0]; got != 0x30 {
		t.Errorf("two chips at once: %#02x, want 0x30", got)
	}
}

func TestTemperature(t *testing.T) {
	s := newSlowRig(t)
	m := &s.w.boards[s.id].bundles[0].modules[1]
	for _, ambient := range []int32{40_000, 71_500, -12_250} {
		s.w.SetAmbient(s.id, ambient)
		got := tmp102.Millicelsius(s.read(s.hw.Temp, 2, tmp102.AppendRead(nil, tmp102.RegTemperature)...))
		want := ambient + int32(1000*m.per.caseAdd)
		if d := got - want; d < -63 || d > 63 {
			t.Errorf("ambient %d: %d millicelsius, want %d", ambient, got, want)
		}
	}
	if got := s.read(s.hw.Temp, 2, tmp102.RegConfig); !bytes.Equal(got, []byte{0x60, 0xA0}) {
		t.Errorf("configuration % x, want 60 a0", got)
	}
	s.write(s.hw.Temp, tmp102.AppendWrite(nil, tmp102.RegTemperature, 0x1234)...)
	s.write(s.hw.Temp, tmp102.AppendWrite(nil, tmp102.RegHigh, 0x2340)...)
	if got := s.read(s.hw.Temp, 2, tmp102.RegHigh); !bytes.Equal(got, []byte{0x23, 0x40}) {
		t.Errorf("high limit % x, want 23 40", got)
	}
}

// The EEPROM must hold the module's identity, wrap writes inside a page, not
// answer while it programs, and outlive a loss of power.
func TestEEPROM(t *testing.T) {
	s := newSlowRig(t)
	m := &s.w.boards[s.id].bundles[0].modules[1]
	id := s.read(s.hw.EEPROM, hal.IdentityBytes, at24.Of(hal.AT24C64).AppendRead(nil, 0)...)
	if serial, err := hal.ParseIdentity(id); err != nil || serial != m.per.Serial() {
		t.Errorf("identity % x: %q, %v; want %q", id, serial, err, m.per.Serial())
	}
	id[7] ^= 1
	if _, err := hal.ParseIdentity(id); !errors.Is(err, hal.ErrCRC) {
		t.Errorf("identity with a flipped bit: %v, want a wrong check sum", err)
	}
	if got := s.read(s.hw.EEPROM, 2, at24.Of(hal.AT24C64).AppendRead(nil, 0x1FFF)...); got[0] != 0xFF || got[1] != 'O' {
		t.Errorf("read over the end: % x, want ff 4f", got)
	}
	w, n := at24.Of(hal.AT24C64).AppendWrite(nil, 0x0130, bytes.Repeat([]byte{0xAB}, 40))
	if n != 16 {
		t.Errorf("%d bytes fit from 0x130, want 16", n)
	}
	if err := s.write(s.hw.EEPROM, w...); err != nil {
		t.Fatal(err)
	}
	if err := s.write(s.hw.EEPROM, 0, 0); !errors.Is(err, hal.ErrAddressNACK) {
		t.Errorf("while programming: %v, want address NACK", err)
	}
	s.run(at24.ProgramMicros * time.Microsecond)
	// 40 bytes at once come round to the start of the page.
	long := append([]byte{0x01, 0x50}, bytes.Repeat([]byte{0x77}, 20)...)
	if err := s.write(s.hw.EEPROM, long...); err != nil {
		t.Fatal(err)
	}
	s.run(at24.ProgramMicros * time.Microsecond)
	s.w.SetPower(s.id, false)
	s.run(time.Second)
	s.w.SetPower(s.id, true)
	s.must(s.id, s.hw.Slow, hal.Msg{Addr: s.hw.Mux, W: pca9548.AppendSelect(nil, s.hw.MuxChannel)})
	got := s.read(s.hw.EEPROM, 32, 0x01, 0x40)
	want := append(bytes.Repeat([]byte{0x77}, 4), bytes.Repeat([]byte{0xFF}, 12)...)
	want = append(want, bytes.Repeat([]byte{0x77}, 16)...)
	if !bytes.Equal(got, want) {
		t.Errorf("page % x\nwant % x", got, want)
	}
}

// The rail must show each heater's current, so that a sweep finds its
// resistance and names the one that is open.
func TestRailCurrent(t *testing.T) {
	stuck, err := ParseFault("stuck:0/1/20")
	if err != nil {
		t.Fatal(err)
	}
	s := newSlowRig(t, stuck)
	m := &s.w.boards[s.id].bundles[0].modules[1]
	shunt := func() float64 {
		s.run(140 * time.Millisecond) // two conversions of 128 samples
		v := ina219.Value(s.read(s.hw.Rail, 2, ina219.RegShunt))
		return float64(ina219.ShuntMicrovolt(v)) / float64(hal.Standard().RailShuntMilliohm) // milliamperes
	}
	s.write(s.hw.Rail, ina219.AppendWrite(nil, ina219.RegConfig, 2<<ina219.GainShift|15<<ina219.ShuntADCShift|ina219.ModeBoth)...)
	idle := shunt()
	for _, k := range []int{3, 20, 21} {
		cs := s.hw.ChipSelects[k/16]
		set := func(code uint16) { s.must(s.id, s.hw.SPI, hal.Msg{Addr: cs, Frame: 3, W: driven(k%16, code)}) }
		set(0xC000)
		got := shunt() - idle
		want := 7500 / m.per.cells[k].ohm
		if k == 20 {
			want = 0
		}
		if got < want-0.05 || got > want+0.05 {
			t.Errorf("cell %d: %.3f mA at 7.5 V, want %.3f", k, got, want)
		}
		if wantLevel := k != 20; m.level[k] != 0 != wantLevel {
			t.Errorf("cell %d: warm %v", k, m.level[k])
		}
		set(0)
	}
	if v := ina219.BusMillivolt(ina219.Value(s.read(s.hw.Rail, 2, ina219.RegBus))); v != railMillivolt {
		t.Errorf("rail %d mV, want %d", v, railMillivolt)
	}
}

// A lane must go dark when its enable pin is driven low, and lanes are enabled
// by pull-ups before anyone configures the chip.
func TestLaneEnable(t *testing.T) {
	s := newSlowRig(t)
	m := &s.w.boards[s.id].bundles[0].modules[1]
	if m.enable != 0xFF {
		t.Errorf("enabled %#02x after power-on, want all", m.enable)
	}
	s.write(s.hw.LaneEnable, pca953x.TCA9534.AppendWrite(nil, pca953x.Output, 0, 0x01)...)
	if m.enable != 0xFF {
		t.Errorf("enabled %#02x by an output that is an input", m.enable)
	}
	s.write(s.hw.LaneEnable, pca953x.TCA9534.AppendWrite(nil, pca953x.Config, 0, 0)...)
	if m.enable != 0x01 {
		t.Errorf("enabled %#02x, want lane 0 alone", m.enable)
	}
	if got := s.read(s.hw.LaneEnable, 1, pca953x.Input)[0]; got != 0x01 {
		t.Errorf("input register %#02x, want 0x01", got)
	}
}

// Bytes at random must never break a chip, only be refused.
func FuzzI2C(f *testing.F) {
	f.Add(uint8(0), uint8(0x20), []byte{6, 0, 0}, uint8(2))
	f.Add(uint8(2), uint8(0x10), []byte{0x30, 0xA0}, uint8(16))
	f.Add(uint8(4), uint8(0x50), []byte{0, 0, 1, 2, 3}, uint8(0))
	f.Fuzz(func(t *testing.T, bus, addr uint8, w []byte, n uint8) {
		r := newRig(t, 1, 2)
		id := r.board(1)
		slow := r.hw.Bundles[0].Modules[0].Slow
		r.must(id, slow, hal.Msg{Addr: r.hw.Bundles[0].Modules[0].Mux, W: []byte{3}})
		r.do(id, hal.BusID(int(bus)%len(r.hw.Buses)), hal.Msg{Addr: uint16(addr), Frame: 3, W: w, R: make([]byte, n)})
		r.run(time.Millisecond)
	})
}

func ExampleParseFault() {
	f, err := ParseFault("diode:0/3/external1/5")
	fmt.Println(f, err)
	_, err = ParseFault("stuck:0/3")
	fmt.Println(err != nil)
	// Output:
	// diode:0/3/external1/5 <nil>
	// true
}
