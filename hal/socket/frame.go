package socket

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"ringlight/hal"
)

// version is the first byte of a hello; another one is refused.
const version = 1

// Limits of one frame. chosen: the largest op of the default board, 16 codes
// for each of 24 converters with their read-back, is under 4 KiB.
const (
	maxFrame    = 64 << 10
	maxMessages = 1024
	maxText     = 256
)

// Kinds of frame.
const (
	frameHello    = iota + 1 // client: version; server: version, now
	frameSubmit              // client
	frameComplete            // server
	frameEdge                // server
	frameLevel               // client asks, server answers
)

// errFrame says that the other side does not keep to the form.
var errFrame = errors.New("socket: malformed frame")

// errorOf is an error from the other end. What broke the contract of the bus there, or is
// of a newer release, is a device that is out of reach.
func errorOf(code uint8, text string) error {
	err := hal.NumberedError(code, text)
	if err != nil && !hal.Caused(err) {
		err = fmt.Errorf("%s: %w", text, hal.ErrNoDevice)
	}
	return err
}

func appendError(b []byte, err error) []byte {
	b = append(b, hal.CauseNumber(err))
	text := ""
	if err != nil {
		text = err.Error()
	}
	if len(text) > maxText {
		text = text[:maxText]
	}
	b = binary.BigEndian.AppendUint16(b, uint16(len(text)))
	return append(b, text...)
}

// begin leaves room for the length, which end fills in.
func begin(b []byte, kind byte) []byte { return append(b[:0], 0, 0, 0, 0, kind) }

func end(b []byte) []byte {
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

// readFrame reads one frame into buf, growing it, and returns kind and body.
func readFrame(r io.Reader, buf []byte) (kind byte, body, grown []byte, err error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, buf, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n < 1 || n > maxFrame {
		return 0, nil, buf, fmt.Errorf("%w: %d bytes, limit %d", errFrame, n, maxFrame)
	}
	if cap(buf) < int(n) {
		buf = make([]byte, n)
	}
	buf = buf[:n]
	if _, err := io.ReadFull(r, buf); err != nil {
		return 0, nil, buf, err
	}
	return buf[0], buf[1:], buf, nil
}

// cursor reads fixed-size fields; after the end of the frame it reads zeros
// and remembers it.
type cursor struct {
	b     []byte
	short bool
}

func (c *cursor) take(n int) []byte {
	if n < 0 || len(c.b) < n {
		c.short, c.b = true, nil
		return nil
	}
	v := c.b[:n]
	c.b = c.b[n:]
	return v
}

func (c *cursor) u8() uint8 {
	if v := c.take(1); v != nil {
		return v[0]
	}
	return 0
}

func (c *cursor) u16() uint16 {
	if v := c.take(2); v != nil {
		return binary.BigEndian.Uint16(v)
	}
	return 0
}

func (c *cursor) u32() uint32 {
	if v := c.take(4); v != nil {
		return binary.BigEndian.Uint32(v)
	}
	return 0
}

func (c *cursor) u64() uint64 {
	if v := c.take(8); v != nil {
		return binary.BigEndian.Uint64(v)
	}
	return 0
}

// done reports whether the frame was read exactly to its end.
func (c *cursor) done() error {
	if c.short || len(c.b) != 0 {
		return errFrame
	}
	return nil
}

func appendSubmit(b []byte, id uint64, bus hal.BusID, op *hal.Op) ([]byte, error) {
	if len(op.Msgs) > maxMessages {
		return nil, fmt.Errorf("socket: %d messages in one op, limit %d: %w", len(op.Msgs), maxMessages, hal.ErrOutOfRange)
	}
	b = begin(b, frameSubmit)
	b = binary.BigEndian.AppendUint64(b, id)
	b = append(b, byte(bus), byte(op.Class))
	b = binary.BigEndian.AppendUint64(b, uint64(op.Deadline))
	b = binary.BigEndian.AppendUint16(b, uint16(len(op.Msgs)))
	back := 0
	for i := range op.Msgs {
		m := &op.Msgs[i]
		b = binary.BigEndian.AppendUint16(b, m.Addr)
		b = append(b, m.Frame)
		b = binary.BigEndian.AppendUint32(b, uint32(len(m.W)))
		b = binary.BigEndian.AppendUint32(b, uint32(len(m.R)))
		b = append(b, m.W...)
		back += len(m.R)
	}
	if len(b) > maxFrame || back > maxFrame/2 {
		return nil, fmt.Errorf("socket: op of %d bytes out, %d back, limit %d: %w", len(b), back, maxFrame, hal.ErrOutOfRange)
	}
	return end(b), nil
}

func decodeSubmit(body []byte) (id uint64, bus hal.BusID, op *hal.Op, err error) {
	c := cursor{b: body}
	id = c.u64()
	bus = hal.BusID(c.u8())
	op = &hal.Op{Token: id, Class: hal.Class(c.u8()), Deadline: time.Duration(c.u64())}
	n := int(c.u16())
	if c.short || n > maxMessages || op.Class >= hal.NumClasses || op.Deadline < 0 {
		return id, bus, nil, errFrame
	}
	back := 0
	for range n {
		m := hal.Msg{Addr: c.u16(), Frame: c.u8()}
		w, r := c.u32(), c.u32()
		back += int(min(r, maxFrame))
		if c.short || w > maxFrame || back > maxFrame/2 {
			return id, bus, nil, errFrame
		}
		// A copy: the frame's buffer is used again before the op is over.
		m.W = append([]byte(nil), c.take(int(w))...)
		if r > 0 {
			m.R = make([]byte, r)
		}
		op.Msgs = append(op.Msgs, m)
	}
	return id, bus, op, c.done()
}

func appendComplete(b []byte, id uint64, done *hal.Completion) []byte {
	b = begin(b, frameComplete)
	b = binary.BigEndian.AppendUint64(b, id)
	b = binary.BigEndian.AppendUint64(b, uint64(done.Start))
	b = binary.BigEndian.AppendUint64(b, uint64(done.End))
	b = binary.BigEndian.AppendUint16(b, uint16(done.Msg))
	b = appendError(b, done.Err)
	for i := range done.Op.Msgs {
		b = append(b, done.Op.Msgs[i].R...)
	}
	return end(b)
}

// completeHead is a completion without its data.
type completeHead struct {
	id         uint64
	start, end time.Duration
	msg        int
	err        error
	read       []byte // all messages' R, one after the other
}

func decodeComplete(body []byte) (completeHead, error) {
	c := cursor{b: body}
	h := completeHead{id: c.u64(), start: time.Duration(c.u64()), end: time.Duration(c.u64()), msg: int(c.u16())}
	code := c.u8()
	text := c.take(int(c.u16()))
	if c.short || len(text) > maxText {
		return h, errFrame
	}
	h.err, h.read = errorOf(code, string(text)), c.b
	return h, nil
}

func appendEdge(b []byte, e *hal.Edge) []byte {
	b = begin(b, frameEdge)
	b = binary.BigEndian.AppendUint16(b, uint16(e.Line))
	b = append(b, bit(e.High))
	b = binary.BigEndian.AppendUint64(b, uint64(e.At))
	b = binary.BigEndian.AppendUint64(b, uint64(e.Origin))
	return end(b)
}

func decodeEdge(body []byte) (*hal.Edge, error) {
	c := cursor{b: body}
	e := &hal.Edge{Line: hal.LineID(c.u16()), High: c.u8() == 1, At: time.Duration(c.u64()), Origin: time.Duration(c.u64())}
	return e, c.done()
}

func bit(v bool) byte {
	if v {
		return 1
	}
	return 0
}
