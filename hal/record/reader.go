package record

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
	"time"
)

// Reader reads a recording.
type Reader struct {
	// Head is the JSON document of the writer.
	Head []byte

	rest []byte
	in   cursor
	last time.Duration
	seq  uint64
	next uint64 // number of the next entry
	lost uint64
}

// NewReader reads the head of a recording.
func NewReader(raw []byte) (*Reader, error) {
	if len(raw) < len(Magic) || !strings.HasPrefix(string(raw), Magic[:len(Magic)-1]) {
		return nil, fmt.Errorf("%w: it does not begin with %q", ErrFormat, Magic[:len(Magic)-1])
	}
	if v := raw[len(Magic)-1]; v != Magic[len(Magic)-1] {
		return nil, fmt.Errorf("%w: version %d, want %d", ErrFormat, v, Magic[len(Magic)-1])
	}
	r := &Reader{rest: raw[len(Magic):]}
	kind, body, err := r.block()
	if err != nil {
		return nil, err
	}
	if kind != blockHead {
		return nil, fmt.Errorf("%w: the first block is of type %q, want %q", ErrFormat, kind, blockHead)
	}
	r.Head = body
	return r, nil
}

// errTorn is a recording that ends inside a block: its writer was cut off. What
// came before it is good.
var errTorn = fmt.Errorf("%w: it ends inside a block", ErrFormat)

func (r *Reader) block() (kind byte, body []byte, err error) {
	if len(r.rest) < blockFrame {
		return 0, nil, errTorn
	}
	n := binary.LittleEndian.Uint32(r.rest[1:])
	if uint64(n) > uint64(len(r.rest)-blockFrame) {
		return 0, nil, errTorn
	}
	end := 5 + int(n)
	if crc32.Checksum(r.rest[:end], castagnoli) != binary.LittleEndian.Uint32(r.rest[end:]) {
		return 0, nil, fmt.Errorf("%w: check sum of a block", ErrFormat)
	}
	kind, body = r.rest[0], r.rest[5:end]
	r.rest = r.rest[end+4:]
	return kind, body, nil
}

// Next is the next entry; ok is false at the end. A block cut off at the very
// end is the end.
func (r *Reader) Next() (e Entry, ok bool, err error) {
	for len(r.in.b) == 0 {
		if len(r.rest) == 0 {
			return e, false, nil
		}
		kind, body, err := r.block()
		switch {
		case err == errTorn:
			r.rest = nil
			return e, false, nil
		case err != nil:
			return e, false, err
		case kind != blockEntries:
			return e, false, fmt.Errorf("%w: block of type %q", ErrFormat, kind)
		}
		r.in = cursor{b: body}
		r.last = r.in.time("time")
		n := r.in.number(maxTime, "entries")
		r.seq = r.in.number(maxTime, "ops")
		if r.in.err != nil {
			return e, false, r.in.err
		}
		if n < r.next {
			return e, false, fmt.Errorf("%w: entry %d after %d", ErrFormat, n, r.next)
		}
		r.lost += n - r.next
		r.next = n
	}
	e = r.in.entry(r.last, &r.seq)
	if r.in.err != nil {
		return e, false, r.in.err
	}
	r.last = e.At
	r.next++
	return e, true, nil
}

// Lost is how many entries are missing before the last one that was read.
func (r *Reader) Lost() uint64 { return r.lost }

// Index is the number of the entry that Next gives next, from 0.
func (r *Reader) Index() uint64 { return r.next }
