package pm

import (
	"encoding/binary"
	"hash/crc32"
)

// A row on disk, little-endian: checksum of what follows, from, watch, the number of
// cells; of each its sum, key, samples, minimum, maximum. All zero: none was written.
const (
	headBytes = 16
	cellBytes = 24
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// SlotBytes is the place on disk that a row takes at most.
func (b *Book) SlotBytes() int { return headBytes + cellBytes*b.room }

func (r *row) encode() []byte {
	le := binary.LittleEndian
	raw := make([]byte, 4, headBytes+cellBytes*len(r.cells))
	for _, v := range [...]uint32{r.from, r.watch, uint32(len(r.cells))} {
		raw = le.AppendUint32(raw, v)
	}
	for i := range r.cells {
		c := &r.cells[i]
		raw = le.AppendUint64(raw, uint64(c.sum))
		for _, v := range [...]uint32{uint32(c.key), c.n, uint32(c.min), uint32(c.max)} {
			raw = le.AppendUint32(raw, v)
		}
	}
	le.PutUint32(raw, crc32.Checksum(raw[4:], castagnoli))
	return raw
}

// Load takes the row that was saved at a slot, as long as the slot is or shorter, and
// says whether it is whole. One that is not leaves the slot empty.
func (b *Book) Load(slot int, raw []byte) bool {
	le := binary.LittleEndian
	if slot < 0 || slot >= Slots || len(raw) < headBytes {
		return false
	}
	n := int(le.Uint32(raw[12:]))
	if n > b.room || headBytes+cellBytes*n > len(raw) {
		return false
	}
	sum, from := le.Uint32(raw), le.Uint32(raw[4:])
	if from == 0 && sum == 0 {
		return true
	}
	if crc32.Checksum(raw[4:headBytes+cellBytes*n], castagnoli) != sum || from == 0 {
		return false
	}
	r := row{from: from, watch: le.Uint32(raw[8:]), cells: make([]cell, n)}
	if slot < Quarters && int(from-1)%Quarters != slot || slot >= Quarters && (int(r.day()%Days) != slot-Quarters || (from-1)%Quarters != 0) {
		return false
	}
	for i := range r.cells {
		w := raw[headBytes+cellBytes*i:]
		r.cells[i] = cell{sum: int64(le.Uint64(w)), key: Key(le.Uint32(w[8:])), n: le.Uint32(w[12:]), min: int32(le.Uint32(w[16:])), max: int32(le.Uint32(w[20:]))}
		if r.cells[i].n == 0 || i > 0 && r.cells[i].key <= r.cells[i-1].key {
			return false
		}
	}
	b.rows[slot] = r
	return true
}
