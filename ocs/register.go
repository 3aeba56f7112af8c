package ocs

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"ringlight/hal"
	"ringlight/hal/at24"
	"ringlight/hal/ina219"
	"ringlight/hal/pca953x"
	"ringlight/hal/pca9548"
	"ringlight/hal/tmp102"
	"ringlight/ocs/diode"
	"ringlight/ocs/heater"
)

// Register is one register of a chip of a module, for an engineer's hands.
// Written BUNDLE/MODULE/CHIP/REGISTER; RegisterForms lists the chips.
type Register struct {
	Bundle, Module int
	Name           string // as written
	Bits           int
	// Settable says whether Poke may write it, and why not where it is "".
	Settable string

	hw    *hal.Module
	latch hal.Latch
	chip  string
	addr  byte // of the register
	mem   uint16
	dac   heater.Register
	dacs  *heater.Driver
	adc   diode.Register
	max   uint32
}

// RegisterForms says what a register is called, whatever DACs the board has.
var RegisterForms = heater.Forms() + ", " + otherForms

const otherForms = diode.Forms + ", " +
	"temp/temperature|config|low|high, rail/config|shunt|bus|power|current|calibration, laser/input|output|polarity|config, " +
	"latch/input|output|polarity|config, eeprom/0x0000..0x1fff"

// ErrRegister is a register that does not exist.
var ErrRegister = errors.New("no such register")

// ErrReadOnly is a register that may not be written by hand.
var ErrReadOnly = errors.New("not to be written by hand")

// ackTries bounds the questions to a memory that programs. chosen: 5 ms of it
// at 1 MHz, several times over.
const ackTries = 1000

// scratch is where the part of the EEPROM begins that nobody keeps anything in.
func (r *Register) scratch() uint64 {
	c := at24.Of(r.hw.Memory)
	return uint64(c.Size - c.PageBytes)
}

// FindRegister finds a register of a board.
func FindRegister(b *hal.Board, text string) (*Register, error) {
	parts := strings.Split(text, "/")
	forms := RegisterForms
	bad := func(why string) (*Register, error) {
		return nil, fmt.Errorf("%q: %s: %w; want BUNDLE/MODULE/CHIP/REGISTER with one of %s", text, why, ErrRegister, forms)
	}
	if len(parts) != 4 {
		return bad("want four parts")
	}
	r := &Register{Name: text, chip: parts[2]}
	if len(b.Bundles) == 0 {
		return nil, fmt.Errorf("%q: a board without bundles: %w", text, hal.ErrUnsupported)
	}
	var errB, errM error
	r.Bundle, errB = strconv.Atoi(parts[0])
	r.Module, errM = strconv.Atoi(parts[1])
	if errB != nil || r.Bundle < 0 || r.Bundle >= len(b.Bundles) {
		return bad(fmt.Sprintf("bundle: want 0 to %d", len(b.Bundles)-1))
	}
	if n := len(b.Bundles[r.Bundle].Modules); errM != nil || r.Module < 0 || r.Module >= n {
		return bad(fmt.Sprintf("module: want 0 to %d", n-1))
	}
	r.hw = &b.Bundles[r.Bundle].Modules[r.Module]
	if r.hw.Kind == hal.KindCMIS && (r.chip != "eeprom" || r.hw.EEPROM == 0) {
		return nil, fmt.Errorf("%q: the chips of a CMIS module are behind its controller; dump-module reads its pages: %w", text, hal.ErrUnsupported)
	}
	r.dacs = heater.For(r.hw)
	forms = r.dacs.Forms() + ", " + otherForms
	if l := b.Bundles[r.Bundle].Latch; l < len(b.Latches) {
		r.latch = b.Latches[l]
	}
	if !r.named(parts[3]) {
		return bad("register")
	}
	r.max = 1<<r.Bits - 1
	return r, nil
}

// named takes the register's own name and reports whether the chip has it.
func (r *Register) named(name string) bool {
	pick := func(bits int, names ...string) bool {
		r.Bits = bits
		for i, n := range names {
			if n == name {
				r.addr = byte(i)
				return true
			}
		}
		return false
	}
	if dac, ok := strings.CutPrefix(r.chip, "dac"); ok && len(dac) == 1 {
		r.dac, ok = r.dacs.Register(int(dac[0])-'0', name)
		if r.Bits = 16; ok && r.dac.Cell >= 0 {
			r.Settable = "a heater, within its limits"
		}
		return ok
	}
	switch r.chip {
	case "guard", "lanes":
		var ok bool
		r.adc, ok = diode.Of(r.hw).FindRegister(name)
		if r.Bits = r.adc.Bits; r.adc.Threshold {
			r.Settable = "a threshold"
		}
		return ok
	case "temp":
		if ok := pick(16, "temperature", "config", "low", "high"); !ok {
			return false
		}
		if r.addr == tmp102.RegLow || r.addr == tmp102.RegHigh {
			r.Settable = "a limit"
		}
		return true
	case "rail":
		ok := pick(16, "config", "shunt", "bus", "power", "current", "calibration")
		if r.addr == ina219.RegCalibration {
			r.Settable = "a scale"
		}
		return ok
	case "laser":
		ok := pick(8, "input", "output", "polarity", "config")
		if r.addr == pca953x.Output {
			r.Settable = "lanes"
		}
		return ok
	case "latch":
		return pick(8*int(pca953x.Of(r.latch.Part).Ports), "input", "output", "polarity", "config")
	case "eeprom":
		n, err := strconv.ParseUint(name, 0, 16)
		r.mem, r.Bits = uint16(n), 8
		if n >= r.scratch() {
			r.Settable = "scratch"
		}
		return err == nil && n < uint64(at24.Of(r.hw.Memory).Size)
	}
	return false
}

// Access is a register being read or written, as a machine: Next until it is
// over.
type Access struct {
	reg   *Register
	poke  bool
	value uint32
	step  int
	tries int
	bus   hal.BusID
	op    *hal.Op
	err   error
}

// Peek begins to read a register.
func (r *Register) Peek() *Access { return &Access{reg: r} }

// Poke begins to write one. What is out of its range, and what may not be
// written by hand, is refused here; what a heater may not take, once the
// module has said what its other heaters have.
func (r *Register) Poke(value uint32) (*Access, error) {
	switch {
	case r.Settable == "":
		return nil, fmt.Errorf("%s: %w", r.Name, ErrReadOnly)
	case value > r.max:
		return nil, fmt.Errorf("%s: %#x: want 0 to %#x: %w", r.Name, value, r.max, hal.ErrOutOfRange)
	case r.chip == "laser" && value > 1<<hal.Lanes-1:
		return nil, fmt.Errorf("%s: %#x: %w", r.Name, value, hal.ErrOutOfRange)
	}
	return &Access{reg: r, poke: true, value: value}, nil
}

// Value is what the register holds, once Next says that it is over.
func (a *Access) Value() (uint32, error) { return a.value, a.err }

// Next takes the completion of the op before, nil at first, and gives the next
// one; nil when it is over.
func (a *Access) Next(done *hal.Completion) (hal.BusID, *hal.Op) {
	if done != nil && done.Err != nil && a.poke && a.reg.chip == "eeprom" && a.step == 2 && a.tries < ackTries && errors.Is(done.Err, hal.ErrAddressNACK) {
		a.tries++ // it programs: asked until it acknowledges
		return a.bus, a.op
	}
	if done != nil && done.Err != nil {
		a.err = fmt.Errorf("%s: %w", a.reg.Name, done.Err)
		return 0, nil
	}
	a.step++
	if a.reg.chip[:3] == "dac" {
		return a.dac(done)
	}
	switch {
	case a.step == 1 && a.poke:
		return a.give(a.reg.message(true, a.value))
	case a.step == 1, a.step == 2 && a.poke:
		return a.give(a.reg.message(false, 0))
	}
	a.take(done.Op.Msgs[len(done.Op.Msgs)-1].R)
	return 0, nil
}

// take compares what was written with what is read back.
func (a *Access) take(reply []byte) {
	var v uint32
	for _, b := range reply {
		v = v<<8 | uint32(b)
	}
	switch a.reg.chip {
	case "guard", "lanes":
		v = a.reg.adc.Value(reply)
	case "latch":
		v = pca953x.Of(a.reg.latch.Part).Value(reply)
	}
	a.settle(v)
}

func (a *Access) settle(v uint32) {
	if a.poke && v != a.value {
		a.err = fmt.Errorf("%s: wrote %#x, reads back %#x", a.reg.Name, a.value, v)
	}
	a.value = v
}

func (a *Access) give(bus hal.BusID, msgs []hal.Msg) (hal.BusID, *hal.Op) {
	a.bus, a.op = bus, &hal.Op{Class: hal.ClassHousekeeping, Msgs: msgs}
	return bus, a.op
}

// message reads or writes a register that is not of a DAC.
func (r *Register) message(write bool, v uint32) (hal.BusID, []hal.Msg) {
	hw, bus := r.hw, r.hw.Slow
	if hw.Kind == hal.KindCMIS {
		bus = hw.MCI
	}
	m := hal.Msg{Addr: hw.EEPROM}
	if !write {
		m.R = make([]byte, r.Bits/8)
	}
	switch r.chip {
	case "guard", "lanes":
		addr := hw.Guard
		if r.chip == "lanes" {
			addr = hw.LaneADC
		}
		if write {
			return hw.ADC, []hal.Msg{r.adc.Write(addr, byte(v))}
		}
		return hw.ADC, []hal.Msg{r.adc.Read(addr)}
	case "latch":
		m.Addr, m.W = r.latch.Addr, pca953x.Of(r.latch.Part).AppendRead(nil, r.addr)
		return r.latch.Bus, []hal.Msg{m}
	case "temp":
		if m.Addr, m.W = hw.Temp, tmp102.AppendRead(nil, r.addr); write {
			m.W = tmp102.AppendWrite(nil, r.addr, uint16(v))
		}
	case "rail":
		if m.Addr, m.W = hw.Rail, ina219.AppendRead(nil, r.addr); write {
			m.W = ina219.AppendWrite(nil, r.addr, uint16(v))
		}
	case "laser":
		if m.Addr, m.W = hw.LaneEnable, pca953x.TCA9534.AppendRead(nil, r.addr); write {
			m.W = pca953x.TCA9534.AppendWrite(nil, r.addr, 0, byte(v))
		}
	default:
		if m.W = at24.Of(hw.Memory).AppendRead(nil, r.mem); write {
			m.W, _ = at24.Of(hw.Memory).AppendWrite(nil, r.mem, []byte{byte(v)})
		}
	}
	if hw.Mux == 0 {
		return bus, []hal.Msg{m}
	}
	return bus, []hal.Msg{{Addr: hw.Mux, W: pca9548.AppendSelect(nil, hw.MuxChannel)}, m}
}

// dac reads all DACs of the module back; a poke then passes the limits, is
// written, and read back again.
func (a *Access) dac(done *hal.Completion) (hal.BusID, *hal.Op) {
	r := a.reg
	dacs := r.dacs
	switch {
	case a.step == 1, a.step == 3 && a.poke:
		return a.give(r.hw.SPI, dacs.Peek())
	case a.step == 2 && a.poke:
		s, err := dacs.AllowPoke(r.dac, uint16(a.value), done.Op.Msgs)
		if err != nil {
			a.err = fmt.Errorf("%s: %w", r.Name, err)
			return 0, nil
		}
		return a.give(r.hw.SPI, dacs.Poke(s))
	}
	a.settle(uint32(dacs.Value(r.dac, done.Op.Msgs)))
	return 0, nil
}
