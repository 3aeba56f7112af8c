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
	board *hal.Board
	chips []latchChip
}

// latchChip is the shadow of one chip.
type latchChip struct {
	part    pca953x.Chip
	known   bool   // read back since the start
	output  uint32 // as meant
	outputs uint32 // pins that are outputs; the rest float at the board's pulls
}

// dark is a bundle's bits when it is squelched; the toggles stay where the
// board pulls them.
const dark = hal.LatchTxOffHigh | hal.LatchTxOffLow

// NewLatch is the latches of a board, not yet read.
func NewLatch(board *hal.Board) *Latch {
	l := &Latch{board: board, chips: make([]latchChip, len(board.Latches))}
	for i := range l.chips {
		l.chips[i].part = pca953x.Of(board.Latches[i].Part)
	}
	return l
}

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

// bits of a bundle as meant.
func (l *Latch) bits(b *hal.Bundle) uint16 {
	c := &l.chips[b.Latch]
	if c.outputs>>b.Shift&hal.LatchMask != hal.LatchMask {
		return dark
	}
	return uint16(c.output >> b.Shift & hal.LatchMask)
}

func (l *Latch) set(b *hal.Bundle, bits uint16) {
	c := &l.chips[b.Latch]
	c.output = c.output&^(hal.LatchMask<<b.Shift) | uint32(bits)<<b.Shift
}

// driven reports whether the bundle's pins are outputs.
func (l *Latch) driven(b *hal.Bundle) bool {
	return l.chips[b.Latch].outputs>>b.Shift&hal.LatchMask == hal.LatchMask
}

// readBack takes in what output and configuration registers hold. Only the
// first reading counts: from then on the shadow leads, because a write may be
// under way that the reading did not see. But pins that are meant to be outputs
// and are not say that the chip has lost its supply, and with it all that was
// ever written to any of its pins.
func (l *Latch) readBack(b *hal.Bundle, output, config uint32) {
	c := &l.chips[b.Latch]
	if lost := c.outputs & config >> b.Shift & hal.LatchMask; !c.known || lost != 0 {
		*c = latchChip{part: c.part, known: true, output: output, outputs: ^config}
	}
}

// claim makes a bundle's pins outputs, dark, in the shadow: what an
// unconfigured board is anyway.
func (l *Latch) claim(b *hal.Bundle) {
	l.set(b, dark)
	l.chips[b.Latch].outputs |= hal.LatchMask << b.Shift
}

// port is which part of the chip a bundle's bits lie in.
func port(b *hal.Bundle) byte { return b.Shift >> 3 }

// appendWrite appends the message that brings a bundle's byte to the outputs.
func (l *Latch) appendWrite(dst []byte, b *hal.Bundle) []byte {
	c := &l.chips[b.Latch]
	return c.part.AppendWrite(dst, pca953x.Output, port(b), byte(c.output>>(8*port(b))))
}

// appendConfig appends the message that makes the claimed pins outputs.
func (l *Latch) appendConfig(dst []byte, b *hal.Bundle) []byte {
	c := &l.chips[b.Latch]
	return c.part.AppendWrite(dst, pca953x.Config, port(b), ^byte(c.outputs>>(8*port(b))))
}
