package ocs

import (
	"ringlight/hal"
	"ringlight/hal/pca953x"
	"ringlight/proto"
)

// Latch is the node's output latches as they are meant to be: shadow registers
// that all Transceivers of the node share, because one byte holds the bits of
// two bundles. A write carries the whole byte as it is meant to be when it is
// handed to the bus, so that writes of two bundles never undo each other.
type Latch struct {
	chips []latchChip
}

// latchChip is the shadow of one chip.
type latchChip struct {
	bus     hal.BusID
	addr    uint16
	part    pca953x.Chip
	known   bool   // read back since the start
	output  uint32 // as meant
	outputs uint32 // pins that are outputs; the rest float at the board's pulls
}

// pins are those of one bundle.
type pins struct {
	chip  *latchChip
	shift byte
}

// dark is a bundle's bits when it is squelched; the toggles stay where the
// board pulls them.
const dark = hal.LatchTxOffHigh | hal.LatchTxOffLow

// NewLatch is the latches of a board, not yet read.
func NewLatch(board *hal.Board) *Latch {
	l := new(Latch)
	for i := range board.Latches {
		on := &board.Latches[i]
		l.chips = append(l.chips, latchChip{bus: on.Bus, addr: on.Addr, part: pca953x.Of(on.Part)})
	}
	return l
}

func (l *Latch) of(b *hal.Bundle) pins { return pins{&l.chips[b.Latch], b.Shift} }

// bitsOf is what a path means to a bundle's bits; toggles of a dark bundle
// stay as they are, for the next light to find its way set.
func bitsOf(p proto.Path, before uint16) uint16 {
	switch p {
	case proto.Loopback:
		return 0
	case proto.External1:
		return hal.LatchToggle0
	case proto.External2:
		return hal.LatchToggle0 | hal.LatchToggle1
	}
	return before&(hal.LatchToggle0|hal.LatchToggle1) | dark
}

// pathOf is the inverse of bitsOf.
func pathOf(bits uint16) proto.Path {
	switch {
	case bits&dark != 0:
		return proto.Dark // one half alone is of no use either
	case bits&hal.LatchToggle0 == 0:
		return proto.Loopback
	case bits&hal.LatchToggle1 == 0:
		return proto.External1
	}
	return proto.External2
}

// bits as meant.
func (p pins) bits() uint16 {
	if !p.driven() {
		return dark
	}
	return uint16(p.chip.output >> p.shift & hal.LatchMask)
}

// nets are the levels of the toggle nets, as meant.
func (p pins) nets() [2]bool {
	bits := p.bits()
	return [2]bool{bits&hal.LatchToggle0 != 0, bits&hal.LatchToggle1 != 0}
}

func (p pins) set(bits uint16) {
	p.chip.output = p.chip.output&^(hal.LatchMask<<p.shift) | uint32(bits)<<p.shift
}

// driven reports whether the pins are outputs.
func (p pins) driven() bool { return p.chip.outputs>>p.shift&hal.LatchMask == hal.LatchMask }

// read is how output and configuration registers are asked for.
func (p pins) read() []hal.Msg {
	c := p.chip
	return []hal.Msg{
		{Addr: c.addr, W: c.part.AppendRead(nil, pca953x.Output), R: make([]byte, c.part.Ports)},
		{Addr: c.addr, W: c.part.AppendRead(nil, pca953x.Config), R: make([]byte, c.part.Ports)},
	}
}

// readBack takes in what output and configuration registers hold. Only the
// first reading counts: from then on the shadow leads, because a write may be
// under way that the reading did not see. But pins that are meant to be outputs
// and are not say that the chip has lost its supply, and with it all that was
// ever written to any of its pins.
func (p pins) readBack(msgs []hal.Msg) {
	c := p.chip
	output, config := c.part.Value(msgs[0].R), c.part.Value(msgs[1].R)
	if lost := c.outputs & config >> p.shift & hal.LatchMask; !c.known || lost != 0 {
		c.known, c.output, c.outputs = true, output, ^config
	}
}

// claim makes the pins outputs, dark: what an unconfigured board is anyway.
func (p pins) claim() []hal.Msg {
	p.set(dark)
	c, port := p.chip, p.shift>>3
	c.outputs |= hal.LatchMask << p.shift
	return []hal.Msg{p.write(nil), {Addr: c.addr, W: c.part.AppendWrite(nil, pca953x.Config, port, ^byte(c.outputs>>(8*port)))}}
}

// write brings the byte that the pins lie in to the outputs; its bytes are appended to dst.
func (p pins) write(dst []byte) hal.Msg {
	c, port := p.chip, p.shift>>3
	return hal.Msg{Addr: c.addr, W: c.part.AppendWrite(dst, pca953x.Output, port, byte(c.output>>(8*port)))}
}
