package sim

import (
	"slices"
	"time"

	"ringlight/hal"
)

// wireFault is what is wrong with one chip's share of a bus.
type wireFault struct {
	addr    uint16
	stretch time.Duration // clock held low in every message
	every   int           // of so many bytes read one has a bit flipped; 0: none
	deaf    bool          // it acknowledges its address and then no byte
	read    int           // bytes read
}

// wireOf is what is wrong with a chip; nil: nothing.
func (q *bus) wireOf(addr uint16) *wireFault {
	for i := range q.wire {
		if q.wire[i].addr == addr {
			return &q.wire[i]
		}
	}
	return nil
}

// setWire changes what is wrong with a chip's share of the bus.
func (q *bus) setWire(addr uint16, set func(*wireFault)) {
	w := q.wireOf(addr)
	if w == nil {
		q.wire = append(q.wire, wireFault{addr: addr})
		w = &q.wire[len(q.wire)-1]
	}
	set(w)
	q.wire = slices.DeleteFunc(q.wire, func(w wireFault) bool { return w == wireFault{addr: w.addr, read: w.read} })
}

// stretched is how much longer a message takes.
func (q *bus) stretched(msg *hal.Msg) time.Duration {
	if w := q.wireOf(msg.Addr); w != nil {
		return w.stretch
	}
	return 0
}

// frameFault is what is wrong with a SPI bus: a connector that is loose.
type frameFault struct{ every, sent int }

// flip is a frame to a DAC as it arrives there.
func (x *frameFault) flip(w []byte) []byte {
	if x.every == 0 {
		return w
	}
	if x.sent++; x.sent%x.every != 0 {
		return w
	}
	w = slices.Clone(w)
	bit := x.sent / x.every * 7 % (8 * len(w))
	w[bit/8] ^= 1 << (bit % 8)
	return w
}

// flip spoils what was read.
func (w *wireFault) flip(r []byte) {
	if w.every == 0 {
		return
	}
	for i := range r {
		if w.read++; w.read%w.every == 0 {
			r[i] ^= 1 << (w.read / w.every % 8)
		}
	}
}
