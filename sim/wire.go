package sim

import (
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

// setWire plants or mends a fault of kind WireStretch, WireFlip or ByteNACK.
func (q *bus) setWire(f Fault, broken bool) {
	w := q.wireOf(f.Addr)
	if w == nil {
		q.wire = append(q.wire, wireFault{addr: f.Addr})
		w = &q.wire[len(q.wire)-1]
	}
	n := 0
	if broken {
		n = f.Index
	}
	switch f.Kind {
	case WireStretch:
		w.stretch = time.Duration(n) * time.Microsecond
	case WireFlip:
		w.every, w.read = n, 0
	case ByteNACK:
		w.deaf = broken
	}
	if *w == (wireFault{addr: f.Addr, read: w.read}) {
		for i := range q.wire {
			if q.wire[i].addr == f.Addr {
				q.wire = append(q.wire[:i], q.wire[i+1:]...)
				break
			}
		}
	}
}

// stretched is how much longer a message takes.
func (q *bus) stretched(msg *hal.Msg) time.Duration {
	if w := q.wireOf(msg.Addr); w != nil {
		return w.stretch
	}
	return 0
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
