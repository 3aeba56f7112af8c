package record

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"periph.io/x/conn/v3/conntest"
	"periph.io/x/conn/v3/i2c/i2ctest"

	"ringlight/hal"
)

// transfer is one message of an op that was carried out.
type transfer struct {
	start time.Duration
	msg   *hal.Msg
	read  []byte
}

// transfers are what a bus carried, in the order in which it did. A playback of periph's
// knows no errors: failed is how many messages it cannot have.
func transfers(r *Reader, bus hal.BusID) (done []transfer, failed int, err error) {
	open := map[uint64]*hal.Op{}
	for {
		e, ok, err := r.Next()
		if err != nil || !ok {
			slices.SortStableFunc(done, func(a, b transfer) int { return cmp.Compare(a.start, b.start) })
			return done, failed, err
		}
		op := open[e.Seq]
		switch {
		case e.Kind == Submit && e.Bus == bus:
			open[e.Seq] = e.Op
		case e.Kind == Completion && op != nil:
			delete(open, e.Seq)
			carried := len(op.Msgs)
			if e.Err != nil {
				carried = min(e.Msg, carried)
				failed += len(op.Msgs) - carried
			}
			for i := range carried {
				t := transfer{start: e.Start, msg: &op.Msgs[i]}
				if i < len(e.R) {
					t.read = e.R[i]
				}
				done = append(done, t)
			}
		}
	}
}

// I2C is what an I2C bus of a recording carried, as the Ops of an i2ctest.Playback.
// failed is how many messages are not in it since they ended with an error.
func I2C(r *Reader, bus hal.BusID) (ops []i2ctest.IO, failed int, err error) {
	done, failed, err := transfers(r, bus)
	for _, t := range done {
		// Copies of nothing are nil, as periph's recorders leave it.
		ops = append(ops, i2ctest.IO{Addr: t.msg.Addr, W: append([]byte(nil), t.msg.W...), R: append([]byte(nil), t.read...)})
	}
	return ops, failed, err
}

// SPI is what a chip select of a recording carried, frame by frame, as the Ops of an
// spitest.Playback.
func SPI(r *Reader, bus hal.BusID, sel uint16) (ops []conntest.IO, failed int, err error) {
	done, failed, err := transfers(r, bus)
	for _, t := range done {
		frame := int(t.msg.Frame)
		if t.msg.Addr != sel {
			continue
		}
		if frame == 0 || len(t.msg.W)%frame != 0 {
			return nil, 0, fmt.Errorf("%w: bus %d: %d bytes in frames of %d", ErrFormat, bus, len(t.msg.W), frame)
		}
		for at := 0; at < len(t.msg.W); at += frame {
			op := conntest.IO{W: t.msg.W[at : at+frame]}
			if len(t.read) == len(t.msg.W) {
				op.R = t.read[at : at+frame]
			}
			ops = append(ops, op)
		}
	}
	return ops, failed, err
}

// Played is a recording whose bus carried the Ops of an i2ctest.Playback, one an op and a
// microsecond.
func Played(bus hal.BusID, ops []i2ctest.IO) []byte {
	return played(bus, len(ops), func(i int) (hal.Msg, []byte) {
		return hal.Msg{Addr: ops[i].Addr, W: ops[i].W, R: make([]byte, len(ops[i].R))}, ops[i].R
	})
}

// PlayedSPI is the same of a chip select and the Ops of an spitest.Playback.
func PlayedSPI(bus hal.BusID, sel uint16, ops []conntest.IO) ([]byte, error) {
	for i, op := range ops {
		if n := len(op.W); n == 0 || n > 255 || len(op.R) > 0 && len(op.R) != n {
			return nil, fmt.Errorf("%w: operation %d: %d bytes out, %d back: want a frame of 1 to 255", ErrFormat, i, n, len(op.R))
		}
	}
	return played(bus, len(ops), func(i int) (hal.Msg, []byte) {
		m := hal.Msg{Addr: sel, Frame: uint8(len(ops[i].W)), W: ops[i].W}
		if len(ops[i].R) > 0 {
			m.R = make([]byte, len(ops[i].R))
		}
		return m, ops[i].R
	}), nil
}

func played(bus hal.BusID, n int, at func(int) (hal.Msg, []byte)) []byte {
	var w Writer
	raw := Head([]byte("{}"))
	for i := range n {
		now := time.Duration(i) * time.Microsecond
		msg, read := at(i)
		raw = append(raw, w.Append(&Entry{Kind: Submit, At: now, Bus: bus, Op: &hal.Op{Class: hal.ClassHousekeeping, Msgs: []hal.Msg{msg}}})...)
		raw = append(raw, w.Append(&Entry{Kind: Completion, At: now, Seq: uint64(i), Start: now, End: now, R: [][]byte{read}})...)
	}
	return append(raw, w.Flush()...)
}
