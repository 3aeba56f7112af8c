package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"ringlight/hal"
)

// Kind tells what an entry is.
type Kind uint8

// Kinds of entries; a number is never used again.
const (
	Submit     Kind = 1 // Bus, Op, Seq
	Completion Kind = 2 // Seq, Start, End, Msg, Err, R
	Edge       Kind = 3 // Edge
	Poll       Kind = 4
	Other      Kind = 5 // What, Blob
)

// Entry is one thing that happened.
type Entry struct {
	Kind Kind
	At   time.Duration // on the board's clock

	Seq uint64 // of an op: submits are counted from 0
	Bus hal.BusID
	Op  *hal.Op // of a submit; token and contents of R are not kept

	Start, End time.Duration
	Msg        int
	Err        error // matches the cause that was recorded, and has its text
	R          [][]byte

	Edge hal.Edge

	What uint8
	Blob []byte
}

// Limits of what is read; chosen: beyond anything that an agent does.
const (
	maxMsgs  = 1024
	maxBytes = 1 << 20 // of one text or buffer
	maxReply = 1 << 14 // that one message reads
)

// appendEntry appends e; its time is told from last on.
func appendEntry(b []byte, e *Entry, last time.Duration) []byte {
	b = append(b, byte(e.Kind))
	b = number(b, uint64(max(e.At-last, 0)))
	switch e.Kind {
	case Submit:
		b = append(b, byte(e.Bus), byte(e.Op.Class))
		b = number(b, uint64(max(e.Op.Deadline, 0)))
		b = number(b, uint64(len(e.Op.Msgs)))
		for i := range e.Op.Msgs {
			m := &e.Op.Msgs[i]
			b = append(number(b, uint64(m.Addr)), m.Frame)
			b = bytesOf(b, m.Redact(m.W))
			if m.R == nil {
				b = number(b, 0)
			} else {
				b = number(b, uint64(1+len(m.R)))
			}
		}
	case Completion:
		b = number(b, e.Seq)
		b = number(b, uint64(max(e.Start, 0)))
		b = number(b, uint64(max(e.End, 0)))
		b = number(b, uint64(max(e.Msg, 0)))
		if e.Err == nil {
			b = append(b, 0)
		} else {
			b = bytesOf(append(b, hal.CauseNumber(e.Err)), []byte(e.Err.Error()))
		}
		b = number(b, uint64(len(e.R)))
		for _, r := range e.R {
			b = bytesOf(b, r)
		}
	case Edge:
		level := byte(0)
		if e.Edge.High {
			level = 1
		}
		b = append(number(b, uint64(e.Edge.Line)), level)
		b = number(b, uint64(max(e.Edge.At, 0)))
		b = number(b, uint64(max(e.Edge.Origin, 0)))
	case Other:
		b = bytesOf(append(b, e.What), e.Blob)
	}
	return b
}

func number(b []byte, n uint64) []byte { return binary.AppendUvarint(b, n) }

func bytesOf(b, p []byte) []byte { return append(number(b, uint64(len(p))), p...) }

// ErrFormat is a recording that cannot be read.
var ErrFormat = errors.New("not a readable recording")

// cursor reads; the first thing that is wrong stays.
type cursor struct {
	b   []byte
	err error
}

func (c *cursor) fail(what string) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: %s", ErrFormat, what)
	}
	c.b = nil
}

func (c *cursor) number(limit uint64, what string) uint64 {
	n, k := binary.Uvarint(c.b)
	if k <= 0 || n > limit {
		c.fail(what)
		return 0
	}
	c.b = c.b[k:]
	return n
}

func (c *cursor) byte(what string) byte {
	if len(c.b) == 0 {
		c.fail(what)
		return 0
	}
	x := c.b[0]
	c.b = c.b[1:]
	return x
}

func (c *cursor) bytes(what string) []byte {
	n := c.number(maxBytes, what)
	if n > uint64(len(c.b)) {
		c.fail(what)
		return nil
	}
	p := append([]byte{}, c.b[:n]...)
	c.b = c.b[n:]
	return p
}

// maxTime bounds a time: 292 years in nanoseconds.
const maxTime = 1<<63 - 1

func (c *cursor) time(what string) time.Duration { return time.Duration(c.number(maxTime, what)) }

// entry reads one entry; seq is the number of the next submit.
func (c *cursor) entry(last time.Duration, seq *uint64) Entry {
	e := Entry{Kind: Kind(c.byte("kind"))}
	after := c.time("time")
	if after > maxTime-last {
		c.fail("time")
		return e
	}
	e.At = last + after
	switch e.Kind {
	case Submit:
		e.Seq = *seq
		*seq++
		e.Bus = hal.BusID(c.byte("bus"))
		e.Op = c.op()
	case Completion:
		e.Seq = c.number(maxTime, "op")
		e.Start, e.End, e.Msg = c.time("start"), c.time("end"), int(c.number(maxMsgs, "message"))
		if n := c.byte("cause"); n != 0 {
			e.Err = hal.NumberedError(n, string(c.bytes("cause")))
		}
		for range c.number(maxMsgs, "replies") {
			if c.err != nil {
				break
			}
			e.R = append(e.R, c.bytes("reply"))
		}
	case Edge:
		e.Edge.Line = hal.LineID(c.number(1<<16-1, "line"))
		e.Edge.High = c.byte("level") != 0
		e.Edge.At, e.Edge.Origin = c.time("at"), c.time("origin")
	case Poll:
	case Other:
		e.What = c.byte("what")
		e.Blob = c.bytes("other")
	default:
		c.fail(fmt.Sprintf("entry of kind %d", e.Kind))
	}
	return e
}

func (c *cursor) op() *hal.Op {
	op := &hal.Op{Class: hal.Class(c.byte("class"))}
	op.Deadline = c.time("deadline")
	for range c.number(maxMsgs, "messages") {
		if c.err != nil {
			break
		}
		m := hal.Msg{Addr: uint16(c.number(1<<16-1, "address"))}
		m.Frame = c.byte("frame")
		m.W = c.bytes("bytes out")
		if n := c.number(maxReply+1, "bytes back"); n > 0 {
			m.R = make([]byte, n-1)
		}
		op.Msgs = append(op.Msgs, m)
	}
	return op
}
