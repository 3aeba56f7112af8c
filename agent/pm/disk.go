package pm

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"slices"
)

// A row on disk, and in memory unless it is under way, little-endian: checksum of what
// follows, from, watch, the bytes of its cells; then of each cell, as variable-length
// integers, by how much its key is above that of the one before, samples, minimum, by how
// much the maximum is above that, and the sum above as many minima. All zero: none was
// written.
const (
	headBytes = 16
	cellBytes = 4*binary.MaxVarintLen32 + binary.MaxVarintLen64 // at most
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// SlotBytes is the place on disk that a row takes at most.
func (b *Book) SlotBytes() int { return headBytes + cellBytes*b.room }

func (r *row) encode() []byte {
	le := binary.LittleEndian
	var room [1 << 10]byte
	raw := room[:headBytes]
	var last Key
	for i := range r.cells {
		c := &r.cells[i]
		raw = binary.AppendUvarint(raw, uint64(c.key-last))
		raw = binary.AppendUvarint(raw, uint64(c.n))
		raw = binary.AppendVarint(raw, int64(c.min))
		raw = binary.AppendUvarint(raw, uint64(int64(c.max)-int64(c.min)))
		raw = binary.AppendUvarint(raw, uint64(c.sum-int64(c.min)*int64(c.n)))
		last = c.key
	}
	for i, v := range [...]uint32{r.from, r.watch, uint32(len(raw) - headBytes)} {
		le.PutUint32(raw[4+4*i:], v)
	}
	le.PutUint32(raw, crc32.Checksum(raw[4:], castagnoli))
	return slices.Clone(raw)
}

// head is a row without its cells.
func head(raw []byte) (r row) {
	if len(raw) >= headBytes {
		r.from, r.watch = binary.LittleEndian.Uint32(raw[4:]), binary.LittleEndian.Uint32(raw[8:])
	}
	return r
}

// decode reads a row of so many cells at most, and says whether it is whole.
func decode(raw []byte, room int) (r row, whole bool) {
	if r = head(raw); r.from == 0 {
		return row{}, false
	}
	raw = raw[headBytes:]
	next := func() (x uint64) {
		x, n := binary.Uvarint(raw)
		if whole = whole && n > 0; whole {
			raw = raw[n:]
		}
		return x
	}
	key := uint64(0)
	for whole = true; whole && len(raw) > 0; {
		step, n, low, wide, sum := next(), next(), next(), next(), next()
		key += step
		least := int64(low>>1) ^ -int64(low&1) // as binary.Varint has it
		most := least + int64(wide)
		whole = whole && len(r.cells) < room && key <= math.MaxUint32 && (step > 0 || len(r.cells) == 0) && n > 0 && n <= math.MaxUint32 &&
			wide <= math.MaxUint32 && least >= math.MinInt32 && most <= math.MaxInt32
		r.cells = append(r.cells, cell{sum: least*int64(n) + int64(sum), key: Key(key), n: uint32(n), min: int32(least), max: int32(most)})
	}
	return r, whole
}

// Load takes the row that was saved at a slot, as long as the slot is or shorter, and
// says whether it is whole. One that is not leaves the slot empty.
func (b *Book) Load(slot int, raw []byte) bool {
	le := binary.LittleEndian
	if slot < 0 || slot >= Slots || len(raw) < headBytes {
		return false
	}
	sum, length := le.Uint32(raw), le.Uint32(raw[12:])
	if uint64(length) > uint64(len(raw)-headBytes) {
		return false
	}
	if head(raw).from == 0 && sum == 0 {
		return true
	}
	raw = raw[:headBytes+length]
	r, whole := decode(raw, b.room)
	if !whole || crc32.Checksum(raw[4:], castagnoli) != sum {
		return false
	}
	if slot < Quarters && int(r.from-1)%Quarters != slot || slot >= Quarters && (int(r.day()%Days) != slot-Quarters || (r.from-1)%Quarters != 0) {
		return false
	}
	b.rows[slot] = slices.Clone(raw)
	return true
}
