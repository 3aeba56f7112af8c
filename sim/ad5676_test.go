package sim

import (
	"testing"

	"ringlight/hal/ad5676"
)

// Goal: the simulated AD5676R does what its frames and pins say: input registers
// move nothing, an edge of its net brings them out but for the mask, and a readback
// brings the output register one frame late; a transfer that is not 24 bits, and a
// reserved one, do nothing.
// Method: frames and edges one after the other, the voltages and replies.
func TestAD5676R(t *testing.T) {
	c := newAD(1, [2]bool{})
	send := func(cmd byte, v uint16) (reply, changed uint16) {
		back := make([]byte, ad5676.FrameBytes)
		changed = c.frame(0, ad5676.AppendWrite(nil, cmd, v), back)
		return ad5676.Value(back), changed
	}
	volts := func(ch int, want float64, when string) {
		t.Helper()
		if got := c.volts(ch, [2]bool{false, c.level}); got != want {
			t.Errorf("%s: channel %d has %v V, want %v", when, ch, got, want)
		}
	}
	send(ad5676.CmdInput|3, 0x8000)
	send(ad5676.CmdInput|4, 0x4000)
	volts(3, 0, "written")
	if c.volts(3, [2]bool{false, true}) != 5 {
		t.Error("behind an edge there is no code")
	}
	send(ad5676.CmdMask, 1<<4)
	if follow := c.pins([2]bool{true, false}); follow != 0 {
		t.Errorf("the other net moves %#x", follow)
	}
	if follow := c.pins([2]bool{true, true}); follow != 1<<3 {
		t.Errorf("an edge moves %#x, want channel 3", follow)
	}
	volts(3, 5, "after an edge")
	volts(4, 0, "masked")
	if follow := c.pins([2]bool{false, true}); follow != 0 {
		t.Errorf("no edge moves %#x", follow)
	}
	send(ad5676.CmdReadback|3, 0)
	send(ad5676.CmdInput|3, 0x1111) // the reply to the one before
	if got, _ := send(ad5676.CmdReadback|3, 0); got != 0 {
		t.Errorf("a write brought %#x", got)
	}
	if got, _ := send(ad5676.CmdNoop, 0); got != 0x8000 {
		t.Errorf("readback %#x, want the output register", got)
	}
	if _, changed := send(ad5676.CmdUpdate, 1<<4); changed != 1<<4 {
		t.Errorf("an update moved %#x", changed)
	}
	volts(4, 2.5, "updated")
	before := *c
	for _, bad := range [][]byte{{}, {0x33}, {0x33, 0xFF}, {0x33, 0xFF, 0xFF, 0}, {0x38, 0xFF, 0xFF}, {0xC3, 0xFF, 0xFF}} {
		if changed := c.frame(0, bad, nil); changed != 0 || *c != before {
			t.Errorf("% x changed the chip", bad)
		}
	}
	for frame, want := range map[[3]byte]bool{{0x93, 0, 0}: true, {}: true, {0x13, 0, 0}: false, {0x20, 0, 1}: false, {0x50, 0, 1}: false} { // any order: independent
		if c.inert(frame[:]) != want {
			t.Errorf("% x: inert is not %v", frame, want)
		}
	}
	send(ad5676.CmdPower, 1<<8)
	volts(4, 0, "powered down")
	send(ad5676.CmdPower, 0)
	send(ad5676.CmdReference, ad5676.ReferenceOff)
	volts(4, 0, "without a reference")
	send(ad5676.CmdReset, 0)
	send(ad5676.CmdAllBoth, 0x2000)
	volts(7, 1.25, "all written")
	send(ad5676.CmdReset, 0)
	volts(7, 0, "reset")
}
