package pm

import (
	"time"

	"ringlight/proto"
)

// How much is kept: a day of quarters, and a week, both with the one under way.
const (
	Quarters = 96
	Days     = 7
	Slots    = Quarters + Days
)

// saveEvery is how often the row under way is saved, in seconds. chosen: what a kill may
// cost against what a flash has to bear.
const saveEvery = 300

// quarter is the length of a bin in seconds.
const quarter = 900

// Key is a series: a quantity, and the place, path and module that it is of.
type Key uint32

// The parts of a Key, from the lowest bit.
const (
	modulePos, moduleMask = 4, Key(0xf) << modulePos
	pathPos, pathMask     = 8, Key(3) << pathPos
	placePos              = 10
	quantityMask          = Key(0xf)
	placeMask             = Key(1<<32 - 1<<placePos)
)

// KeyOf is the series of a quantity of a module on a path, 0 where it is not of one.
func KeyOf(place uint32, path proto.Path, module int, q proto.Quantity) Key {
	return Key(place)<<placePos | Key(path)<<pathPos | Key(module)<<modulePos | Key(q)
}

// cell is one series in one row.
type cell struct {
	sum      int64
	key      Key
	n        uint32
	min, max int32
}

func (c *cell) add(o *cell) {
	if c.n == 0 {
		c.min, c.max = o.min, o.max
	}
	c.n, c.sum, c.min, c.max = c.n+o.n, c.sum+o.sum, min(c.min, o.min), max(c.max, o.max)
}

// average rounds to the nearest, halves up.
func (c *cell) average() int32 {
	twice := 2 * int64(c.n)
	rest := (2*c.sum + int64(c.n)) % twice
	if rest < 0 {
		rest += twice
	}
	return int32((2*c.sum + int64(c.n) - rest) / twice)
}

// row is a bin of all series.
type row struct {
	from  uint32 // quarters since 1970, plus 1; 0: it is empty
	watch uint32 // seconds that the device watched
	cells []cell // by key
}

func (r *row) day() uint32 { return (r.from - 1) / Quarters }

// at is the cell of a series; one is made where there is none and room is left.
func (r *row) at(key Key, room int) *cell {
	low, high := 0, len(r.cells)
	for low < high {
		if mid := (low + high) / 2; r.cells[mid].key < key {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low == len(r.cells) || r.cells[low].key != key {
		if len(r.cells) >= room {
			return nil
		}
		r.cells = append(r.cells, cell{})
		copy(r.cells[low+1:], r.cells[low:])
		r.cells[low] = cell{key: key}
	}
	return &r.cells[low]
}

// Book is the records of one device. Times are seconds since 1970, UTC.
type Book struct {
	rows  [Slots][]byte // as they are on disk, whoever keeps it: quarters by their place in the day, then days
	dirty [Slots]bool   // the disk has it otherwise
	under row           // the row under way; what rows has in its place was saved last
	room  int           // series that a row has room for
	now   int           // the slot of the row under way
	saved int64         // when that was saved last
}

// New is an empty book of at most so many series.
func New(series int) *Book { return &Book{room: series, now: -1} }

// row is what a slot has; it stays as it is until the next sample.
func (b *Book) row(slot int) row {
	if slot == b.now {
		return b.under
	}
	r, _ := decode(b.rows[slot], b.room) // looked at when it came in
	return r
}

// turn begins the row of a time, or takes it up again where the clock went back.
func (b *Book) turn(at int64) *row {
	from := uint32(at/quarter) + 1
	slot := int(from-1) % Quarters
	if b.now == slot && b.under.from == from {
		return &b.under
	}
	if b.now >= 0 {
		b.rows[b.now] = b.under.encode()
	}
	if today := (from - 1) / Quarters; b.now < 0 || b.under.day() != today {
		b.fold(today)
	}
	cells := b.under.cells[:0]
	if r := b.row(slot); r.from == from {
		b.under = r
	} else {
		b.under = row{from: from, cells: cells}
	}
	b.now, b.saved = slot, at
	return &b.under
}

// fold writes down what the quarters of the days before come to. What was written down
// stays where less of the day is left, as after a clock that went back over midnight.
func (b *Book) fold(today uint32) {
	done := today
	for i := range b.rows[:Quarters] {
		r := head(b.rows[i])
		if r.from == 0 || r.day() == done || r.day() >= today || today-r.day() >= Days {
			continue // of a time that has not come, or that nobody asks for any more
		}
		done = r.day()
		slot := Quarters + int(done%Days)
		if sum, was := b.sum(done), head(b.rows[slot]); was.from != sum.from || was.watch < sum.watch {
			b.rows[slot], b.dirty[slot] = sum.encode(), true
		}
	}
}

// sum is what the quarters of a day come to.
func (b *Book) sum(day uint32) row {
	out := row{from: day*Quarters + 1}
	for i := range b.rows[:Quarters] {
		if r := b.row(i); r.from != 0 && r.day() == day {
			out.watch += r.watch
			for k := range r.cells {
				if c := out.at(r.cells[k].key, b.room); c != nil {
					c.add(&r.cells[k])
				}
			}
		}
	}
	return out
}

// Add takes one sample.
func (b *Book) Add(at int64, key Key, value int32) {
	r := b.turn(at)
	if c := r.at(key, b.room); c != nil {
		c.add(&cell{sum: int64(value), n: 1, min: value, max: value})
		b.dirty[b.now] = true
	}
}

// Watched says that the device has watched all that it can for some time until at.
func (b *Book) Watched(at int64, during time.Duration) {
	r := b.turn(at)
	r.watch += uint32((during + time.Second/2) / time.Second)
	b.dirty[b.now] = true
}

// Save gives out the rows that the disk has otherwise, the one under way only now and
// then, or with all.
func (b *Book) Save(at int64, all bool, out func(slot int, raw []byte)) {
	for i := range b.rows {
		if !b.dirty[i] {
			continue
		}
		if i == b.now {
			if since := at - b.saved; !all && since >= 0 && since < saveEvery {
				continue
			}
			b.saved, b.rows[i] = at, b.under.encode()
		}
		b.dirty[i] = false
		out(i, b.rows[i])
	}
}

// tolerance is by how many seconds a bin of so many quarters may be watched for less or
// more than its time and is whole. chosen: rounds of the modules straddle its ends.
func tolerance(length uint32) uint32 { return min(quarter, length/10) }

// Bins appends what a scope had in the bins from next on, 0: from the first, and says
// which comes next when there are as many as one answer has; 0: these were all.
func (b *Book) Bins(at int64, scope proto.BinScope, next uint32, dst []proto.Bin) ([]proto.Bin, uint32) {
	now := uint32(at/quarter) + 1
	step, kept, last := uint32(1), uint32(Quarters), now
	if scope.Days {
		step, kept, last = Quarters, Days, (now-1)/Quarters*Quarters+1
	}
	first := uint32(1)
	if back := (kept - 1) * step; last > back {
		first = last - back
	}
	for from := max(first, next); from <= last; from += step {
		if len(dst)+proto.NumQuantities > proto.MaxPage {
			return dst, from
		}
		r := b.find(from, scope.Days, from == last)
		if r.from != from {
			continue
		}
		length := step * quarter
		if from == last {
			length = uint32(at - int64(from-1)*quarter)
		}
		off := max(r.watch, length) - min(r.watch, length)
		dst = r.bins(scope, off > tolerance(step*quarter), dst)
	}
	return dst, 0
}

// find is the row of a bin; empty where there is none.
func (b *Book) find(from uint32, day, current bool) row {
	if !day {
		return b.row(int((from - 1) % Quarters))
	}
	d := (from - 1) / Quarters
	if r := b.row(Quarters + int(d%Days)); r.from == from && !current {
		return r
	}
	return b.sum(d)
}

// bins appends a row's, one a quantity, over all series in scope.
func (r *row) bins(scope proto.BinScope, suspect bool, dst []proto.Bin) []proto.Bin {
	var want, mask Key
	if scope.Place >= 0 {
		want, mask = Key(scope.Place)<<placePos, placeMask
	}
	if scope.Path != proto.Dark {
		want, mask = want|Key(scope.Path)<<pathPos, mask|pathMask
	}
	var all [proto.NumQuantities + 1]cell
	for i := range r.cells {
		c := &r.cells[i]
		if q := c.key & quantityMask; c.key&mask == want && int(q) < len(all) && (scope.Module < 0 || c.ofModule(scope.Module)) {
			all[q].add(c)
		}
	}
	for q := range all {
		if c := &all[q]; c.n > 0 {
			dst = append(dst, proto.Bin{From: uint64(r.from-1) * quarter, Quantity: proto.Quantity(q), Min: c.min, Avg: c.average(), Max: c.max, Samples: c.n, Suspect: suspect})
		}
	}
	return dst
}

func (c *cell) ofModule(module int8) bool {
	return proto.Quantity(c.key&quantityMask).OfModule() && c.key&moduleMask == Key(module)<<modulePos
}
