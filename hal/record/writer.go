package record

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
	"time"
)

// Magic begins a recording; its last byte is the version.
const Magic = "RLREC\x01"

const (
	blockHead    = 'H'
	blockEntries = 'E'
	blockFrame   = 1 + 4 + 4 // type, length, CRC
	// blockBytes is when a block is full. chosen: an overhead under one in a
	// hundred; a block lost is a small part of a ring.
	blockBytes = 4096
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func block(kind byte, body []byte) []byte {
	b := make([]byte, 0, len(body)+blockFrame)
	b = binary.LittleEndian.AppendUint32(append(b, kind), uint32(len(body)))
	b = append(b, body...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// Head is the beginning of a recording whose head is json.
func Head(json []byte) []byte { return append([]byte(Magic), block(blockHead, json)...) }

// Writer makes blocks of entries.
type Writer struct {
	body    []byte
	entries uint64 // so far, those of body too
	ops     uint64
	last    time.Duration
}

// Append adds an entry and numbers it, if it is a submit. full is a block when
// one is full, else nil.
func (w *Writer) Append(e *Entry) (full []byte) {
	if len(w.body) == 0 {
		w.body = number(number(number(w.body, uint64(max(e.At, 0))), w.entries), w.ops)
		w.last = e.At
	}
	if e.Kind == Submit {
		e.Seq = w.ops
		w.ops++
	}
	e.At = max(e.At, w.last)
	w.body = appendEntry(w.body, e, w.last)
	w.last = e.At
	w.entries++
	if len(w.body) >= blockBytes {
		return w.Flush()
	}
	return nil
}

// Flush is the block that is not full yet, nil when it is empty.
func (w *Writer) Flush() []byte {
	if len(w.body) == 0 {
		return nil
	}
	b := block(blockEntries, w.body)
	w.body = w.body[:0]
	return b
}

// Entries is how many were appended.
func (w *Writer) Entries() uint64 { return w.entries }

// DefaultRing is the memory that a node spends on its recorder.
const DefaultRing = 2 << 20

// Ring keeps the last blocks within a number of bytes. Those in bulk, of work that says
// much and tells little, displace no others once they have a share of it.
type Ring struct {
	limit  int
	blocks [][]byte
	bulk   []bool // which of them are
	bytes  int
	bulky  int // bytes of those
	lost   int // blocks
}

// bulkShare of a ring may be in bulk, where it is full. chosen.
const bulkShare = 4

// NewRing keeps at most limit bytes.
func NewRing(limit int) *Ring { return &Ring{limit: limit} }

// Put takes a block, in bulk or not, and forgets the oldest ones.
func (r *Ring) Put(b []byte, bulk bool) {
	r.blocks, r.bulk = append(r.blocks, b), append(r.bulk, bulk)
	r.count(len(b), bulk)
	for r.bytes > r.limit && len(r.blocks) > 0 {
		n := 0
		if r.bulky > r.limit/bulkShare {
			n = slices.Index(r.bulk, true)
		}
		r.count(-len(r.blocks[n]), r.bulk[n])
		r.blocks, r.bulk = slices.Delete(r.blocks, n, n+1), slices.Delete(r.bulk, n, n+1)
		r.lost++
	}
}

func (r *Ring) count(bytes int, bulk bool) {
	r.bytes += bytes
	if bulk {
		r.bulky += bytes
	}
}

// Blocks are those that it has, oldest first; they are not written again.
func (r *Ring) Blocks() [][]byte { return r.blocks }

// Bytes is the memory in use, Lost how many blocks were forgotten.
func (r *Ring) Bytes() int { return r.bytes }

// Limit is the memory that it may come to use.
func (r *Ring) Limit() int { return r.limit }

// Lost is how many blocks were forgotten.
func (r *Ring) Lost() int { return r.lost }
