package heater

import (
	"ringlight/hal"
	"ringlight/hal/ad5676"
)

// ad is the AD5676R. A channel has one output register, and an edge of its toggle
// net brings the input register into it: so the input register holds the code that
// is not in force, A or B, and is written anew after every edge. The cells that
// follow a net fill one chip each; the matrix stands still, behind the mask of
// LDAC. Only output registers can be read.
type ad struct{ wired *hal.Optics }

const (
	adChannels = ad5676.Channels
	adFrame    = ad5676.FrameBytes
	adReads    = adFrame * 2 * adChannels // length of readBack
)

// A code is one of the chip's: its span, doubled by the board, is a heater's.
var _ = [1]struct{}{}[ad5676.FullScaleMicrovolt*hal.AD5676RStageGain-hal.HeaterFullScaleMicrovolt]

// follows is the net whose edges the n-th chip of a module follows, if any.
func (ad) follows(n int) (net int, ok bool) { return n, n < 2 }

// inForce is the register of a cell that the n-th chip has on its outputs.
func (c ad) inForce(n int, nets [2]bool) int {
	if net, ok := c.follows(n); ok && nets[net] {
		return 1
	}
	return 0
}

// appendInputs writes a register's codes into the input registers.
func (c ad) appendInputs(dst []byte, n int, codes *Codes, register int) []byte {
	for ch := range adChannels {
		dst = ad5676.AppendWrite(dst, ad5676.CmdInput|byte(ch), codeOf(codes, c.wired.CellAt(n, ch), register))
	}
	return dst
}

func (c ad) frames(dst []byte, n int, o *order) []byte {
	put := func(cmd byte, v uint16) { dst = ad5676.AppendWrite(dst, cmd, v) }
	now := c.inForce(n, o.nets)
	switch o.action {
	case actCold:
		put(ad5676.CmdMask, ad5676.AllChannels) // edges move nothing that is cold
		put(ad5676.CmdAllBoth, 0)
		put(ad5676.CmdPower, 0)
		put(ad5676.CmdReference, 0)
	case actStage:
		put(ad5676.CmdReference, 0)
		put(ad5676.CmdPower, 0)
		put(ad5676.CmdMask, ad5676.AllChannels)
		dst = c.appendInputs(dst, n, &o.codes.codes, now)
		put(ad5676.CmdUpdate, ad5676.AllChannels)
		dst = c.appendArm(dst, n, &o.codes.codes, now)
	case actLoad:
		dst = c.appendInputs(dst, n, &o.codes.codes, now)
	case actTake:
		put(ad5676.CmdUpdate, ad5676.AllChannels)
	case actArm:
		dst = c.appendArm(dst, n, &o.codes.codes, now)
	case actPattern:
		for ch := range adChannels {
			put(ad5676.CmdBoth|byte(ch), o.codes.test(c.wired.CellAt(n, ch), ch))
		}
	default:
		dst = c.settings(dst, n, o, now)
	}
	return dst
}

// appendArm writes what the next edge is to bring into force, and lets it.
func (c ad) appendArm(dst []byte, n int, codes *Codes, now int) []byte {
	if _, ok := c.follows(n); ok {
		dst = c.appendInputs(dst, n, codes, 1-now)
		dst = ad5676.AppendWrite(dst, ad5676.CmdMask, 0)
	}
	return dst
}

// settings appends the frames of orders about single heaters.
func (c ad) settings(dst []byte, n int, o *order, now int) []byte {
	moved := uint16(0)
	for _, s := range o.settings {
		at := c.wired.Heaters[s.cell]
		if int(at.Chip) != n {
			continue
		}
		ch, cmd := at.Channel, byte(ad5676.CmdBoth)
		if o.action == actMove {
			cmd = ad5676.CmdInput
			moved |= 1 << ch
		}
		dst = ad5676.AppendWrite(dst, cmd|ch, s.code)
	}
	if moved != 0 {
		dst = ad5676.AppendWrite(dst, ad5676.CmdUpdate, moved)
		dst = c.appendArm(dst, n, &o.codes.codes, now)
	}
	return dst
}

func (ad) readBack(dst []byte) []byte {
	for ch := range adChannels {
		dst = ad5676.AppendRead(dst, ch)
	}
	return dst
}

func (c ad) state(n int, nets [2]bool, reply []byte) (s state) {
	now := c.inForce(n, nets)
	s.ready, s.ranges = true, ad5676.AllChannels
	s.unknown[1-now] = true
	for ch := range adChannels { // each value comes with the second of its two frames
		s.codes[ch][now] = ad5676.Value(reply[(2*ch+1)*adFrame:])
	}
	return s
}
