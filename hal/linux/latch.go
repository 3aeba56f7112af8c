package linux

import (
	"errors"
	"fmt"
	"strings"

	"periph.io/x/conn/v3/gpio"

	"ringlight/hal"
	"ringlight/hal/pca953x"
)

// gpioLatch is a latch made of lines: it answers to the registers of a PCA9535, so that
// nobody above knows the difference. A level is the GPIO controller's to keep, and outlives
// this process where the controller leaves a line that is let go as it was. The pins of one
// write follow one another within microseconds, in the order of their numbers.
type gpioLatch struct {
	chip pca953x.Chip
	pins []gpio.PinIO
	low  uint32    // pins that are active low
	regs [2]uint32 // output and configuration as written; there a 1 is an input
	is   [2]uint32 // and as the pins are
	cmd  byte
	back []byte
}

// openLatch takes lines as they stand: an output stays one, at its level.
func openLatch(lines []hal.Line, find func(hal.Line) (gpio.PinIO, error)) (*gpioLatch, error) {
	g := &gpioLatch{chip: pca953x.Of(hal.GPIOLatch)}
	g.regs[1] = 1<<(8*g.chip.Ports) - 1
	var errs []error
	for i, l := range lines {
		p, err := find(l)
		if err != nil {
			errs = append(errs, fmt.Errorf("lines[%d]: %w", i, err))
			continue
		}
		g.pins = append(g.pins, p)
		if own, ok := p.(*pin); ok {
			if err := own.asItStands(); err != nil {
				errs = append(errs, fmt.Errorf("lines[%d]: %w", i, err))
			}
		}
		if l.ActiveLow {
			g.low |= 1 << i
		}
		//lint:ignore SA1019 what replaces it, pin.PinFunc, is optional: not every driver has it
		if strings.HasPrefix(strings.ToUpper(p.Function()), "OUT") {
			g.regs[1] &^= 1 << i
			if bool(p.Read()) != l.ActiveLow {
				g.regs[0] |= 1 << i
			}
		}
	}
	g.is = g.regs
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, g.close())
	}
	return g, nil
}

// latchRegister is the place of a function in regs; -1: it has none.
func latchRegister(function byte) int {
	switch function {
	case pca953x.Output:
		return 0
	case pca953x.Config:
		return 1
	}
	return -1
}

func (g *gpioLatch) transfer(m *hal.Msg) error {
	if m.Addr != hal.GPIOLatchAddr || len(m.W) == 0 {
		return hal.ErrAddressNACK
	}
	g.cmd = m.W[0]
	for _, v := range m.W[1:] {
		function, port := g.chip.At(g.cmd)
		r := latchRegister(function)
		if r < 0 {
			return fmt.Errorf("%w: a latch of lines has no register %#02x to write", hal.ErrUnsupported, g.cmd)
		}
		g.regs[r] = g.regs[r]&^(0xff<<(8*port)) | uint32(v)<<(8*port)
		g.cmd = g.chip.Next(g.cmd)
	}
	if err := g.apply(); err != nil {
		return caused(err)
	}
	g.back = g.back[:0]
	for range m.R {
		function, port := g.chip.At(g.cmd)
		v := uint32(0)
		if r := latchRegister(function); r >= 0 {
			v = g.regs[r]
		} else if function == pca953x.Input {
			v = g.levels()
		}
		g.back = append(g.back, byte(v>>(8*port)))
		g.cmd = g.chip.Next(g.cmd)
	}
	return nil
}

// apply brings pins that are other than written to what is.
func (g *gpioLatch) apply() error {
	for i, p := range g.pins {
		bit := uint32(1) << i
		level, input := g.regs[0]&bit, g.regs[1]&bit
		switch {
		case input != 0 && g.is[1]&bit == 0:
			if err := p.In(gpio.PullNoChange, gpio.NoEdge); err != nil {
				return err
			}
		case input == 0 && (g.is[1]&bit != 0 || g.is[0]&bit != level):
			if err := p.Out((level != 0) != (g.low&bit != 0)); err != nil {
				return err
			}
		}
		g.is = [2]uint32{g.is[0]&^bit | level, g.is[1]&^bit | input}
	}
	return nil
}

func (g *gpioLatch) levels() (v uint32) {
	for i, p := range g.pins {
		if bool(p.Read()) != (g.low>>i&1 != 0) {
			v |= 1 << i
		}
	}
	return v
}

func (g *gpioLatch) read() []byte { return g.back }

// close lets go of the lines, and leaves every level as it is.
func (g *gpioLatch) close() error {
	var errs []error
	for _, p := range g.pins {
		errs = append(errs, p.Halt())
	}
	return errors.Join(errs...)
}
