package pm

import (
	"encoding/binary"
	"hash/crc32"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	"unsafe"

	"ringlight/proto"
)

var all = proto.BinScope{Place: -1, Module: -1}

// raw is a sample, or (key 0) seconds that were watched.
type raw struct {
	at    int64
	key   Key
	value int32
	kept  bool // its row was saved since
}

// model knows every sample, and makes bins of them in the simplest way.
type model struct {
	t    *testing.T
	book *Book
	room int
	disk [Slots][]byte
	list []raw
}

func (m *model) add(r raw) {
	m.list = append(m.list, r)
	if r.key == 0 {
		m.book.Watched(r.at, time.Duration(r.value)*time.Second)
	} else {
		m.book.Add(r.at, r.key, r.value)
	}
}

func (m *model) save(at int64, all bool) {
	m.book.Save(at, all, func(slot int, row []byte) {
		m.disk[slot] = row
		for i := range m.list {
			if r := &m.list[i]; slot < Quarters && int(r.at/900)%Quarters == slot {
				r.kept = true
			}
		}
	})
}

// kill begins a next life: what was not saved is lost.
func (m *model) kill() {
	m.list = slices.DeleteFunc(m.list, func(r raw) bool { return !r.kept })
	m.book = New(m.room)
	for slot, row := range m.disk {
		if row != nil && !m.book.Load(slot, row) {
			m.t.Fatalf("slot %d is not taken up again", slot)
		}
	}
}

// want are the bins of a scope at a time, oldest first.
func (m *model) want(at int64, scope proto.BinScope) (out []proto.Bin) {
	length, kept := int64(900), int64(Quarters)
	if scope.Days {
		length, kept = 86400, Days
	}
	for from := (at/length - kept + 1) * length; from <= at; from += length {
		watched, values := int64(0), map[proto.Quantity][]int32{}
		for _, r := range m.list {
			k := r.key
			if r.at < from || r.at >= from+length {
				continue
			}
			q := proto.Quantity(k % 16)
			switch {
			case k == 0:
				watched += int64(r.value)
			case scope.Place >= 0 && int(k>>10) != int(scope.Place), scope.Path != 0 && proto.Path(k>>8%4) != scope.Path:
			case scope.Module >= 0 && (q > proto.TxPower || int(k>>4%16) != int(scope.Module)):
			default:
				values[q] = append(values[q], r.value)
			}
		}
		whole, tolerance := length, min(900, length/10)
		if from+length > at {
			whole = at - from
		}
		for q := proto.Quantity(1); int(q) <= proto.NumQuantities; q++ {
			v := values[q]
			if len(v) == 0 {
				continue
			}
			// floor(sum/n + 1/2), in numbers that cannot overflow
			sum := new(big.Int)
			for _, x := range v {
				sum.Add(sum, big.NewInt(int64(x)))
			}
			n := big.NewInt(int64(2 * len(v)))
			sum.Mul(sum, big.NewInt(2)).Add(sum, big.NewInt(int64(len(v))))
			avg, _ := new(big.Int).DivMod(sum, n, new(big.Int))
			out = append(out, proto.Bin{From: uint64(from), Quantity: q, Min: slices.Min(v), Avg: int32(avg.Int64()), Max: slices.Max(v), Samples: uint32(len(v)), Suspect: watched < whole-tolerance || watched > whole+tolerance})
		}
	}
	return out
}

func (m *model) check(at int64, scope proto.BinScope) {
	m.t.Helper()
	var got []proto.Bin
	for next, pages := uint32(0), 0; pages == 0 || next != 0; pages++ {
		n := len(got)
		var page []proto.Bin
		if page, next = m.book.Bins(at, scope, next, nil); len(page) > proto.MaxPage || next != 0 && len(page) == 0 || pages > 20 {
			m.t.Fatalf("page %d from %d on has %d bins, next %d", pages, n, len(page), next)
		}
		got = append(got, page...)
	}
	if want := m.want(at, scope); !slices.Equal(got, want) {
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				m.t.Fatalf("at %d, %+v: %d bins, want %d; bin %d: %+v\nwant %+v", at, scope, len(got), len(want), i, got[min(i, len(got)-1):min(i+1, len(got))], want[min(i, len(want)-1):min(i+1, len(want))])
			}
		}
	}
}

// Goal: every bin of every scope is what the samples say, over restarts, kills and times
// away; one of which time was not watched is suspect.
// Method: ten days of samples at random, of which a model keeps each one; it knows what a
// kill must cost, since it sees what is saved. All bins against the model's.
func TestBinsAreWhatTheSamplesSay(t *testing.T) {
	for seed := range uint64(6) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		m := &model{t: t, room: 300}
		m.book = New(m.room)
		at := int64(1_700_000_000)*rnd.Int64N(2) + rnd.Int64N(200_000)
		end := at + 10*86400
		for steps := 0; at < end; steps++ {
			at += 60
			if steps%7 == 0 {
				at += rnd.Int64N(50)
			}
			m.add(raw{at: at, value: 60})
			for range 1 + rnd.IntN(4) {
				k := KeyOf(rnd.Uint32N(3), proto.Path(rnd.Uint32N(4)), rnd.IntN(2), proto.Quantity(1+rnd.IntN(proto.NumQuantities)))
				m.add(raw{at: at, key: k, value: int32(rnd.Uint32()) >> rnd.IntN(31)})
			}
			m.save(at, false)
			switch rnd.IntN(400) {
			case 0:
				m.kill()
			case 1: // an orderly end, and a time away
				m.save(at, true)
				m.kill()
				at += rnd.Int64N(40_000)
			case 2:
				m.kill()
				at += rnd.Int64N(3000)
			case 3:
				scope := all
				scope.Days = rnd.IntN(2) == 0
				scope.Place, scope.Path, scope.Module = int16(rnd.IntN(4)-1), proto.Path(rnd.IntN(4)), int8(rnd.IntN(3)-1)
				m.check(at, scope)
			}
		}
		for _, days := range []bool{false, true} {
			scope := all
			scope.Days = days
			m.check(at, scope)
		}
	}
}

// Goal: a clock that jumps spoils no more than the bins of the times that it showed: those
// there are go on, and none of a time that has not come is told.
// Method: a jump back within the day, over midnight, and to a year too far and back again.
func TestAClockThatJumps(t *testing.T) {
	m := &model{t: t, room: 300}
	m.book = New(m.room)
	k := KeyOf(0, 0, 0, proto.CaseTemperature)
	day := int64(19_700 * 86400)
	walk := func(from, to int64) {
		for at := from; at < to; at += 60 {
			m.add(raw{at: at, key: k, value: int32(at % 1000)})
			m.add(raw{at: at, value: 60})
			m.save(at, false)
		}
	}
	days := all
	days.Days = true
	walk(day-3*86400, day+7200)
	walk(day+1800, day+9000) // 90 minutes back
	m.check(day+9000, all)
	m.check(day+9000, days)
	walk(day+9000, day+86400+600)
	m.check(day+86400+600, days)
	now := day + 86400 + 7200
	walk(day+86400-1200, now) // back over midnight
	m.check(now, all)
	of := func(d int64) int { // samples of a day
		bins, _ := m.book.Bins(now, days, 0, nil)
		for _, b := range bins {
			if b.From == uint64(d) {
				return int(b.Samples)
			}
		}
		return 0
	}
	if n := of(day); n < 1440+90-15 {
		t.Errorf("%d samples of a day of 1440 and 90 again, of which a quarter may be lost", n)
	}
	yesterday, today := of(day), of(day+86400)
	walk(2_500_000_000, 2_500_000_120)
	m.save(2_500_000_120, true)
	now += 1800
	walk(now-1800, now)
	for range 2 { // and after a kill
		bins, _ := m.book.Bins(now, all, 0, nil)
		if last := bins[len(bins)-1]; last.From != uint64(now-900) {
			t.Errorf("the last bin is of %d", last.From)
		}
		if of(day) != yesterday || of(day+86400) != today+30 {
			t.Errorf("%d samples yesterday and %d today, were %d and %d", of(day), of(day+86400), yesterday, today)
		}
		m.save(now, true)
		m.kill()
	}
}

// Goal: what the disk gives back is a row that was written, or nothing.
// Method: every bit of a row is turned, every length cut, each put at another slot.
func TestADamagedRowIsNone(t *testing.T) {
	b := New(8)
	at := int64(1_700_000_000)
	for i := range 8 {
		b.Add(at, KeyOf(uint32(i), 0, 0, proto.RxPower), int32(-i))
	}
	var slot int
	var row []byte
	b.Save(at, true, func(s int, raw []byte) { slot, row = s, raw })
	if len(row) > b.SlotBytes() || !New(8).Load(slot, row) || !New(8).Load(slot, append(slices.Clone(row), 1, 2, 3)) {
		t.Fatalf("a row of %d bytes is not taken up", len(row))
	}
	bad := func(what string, slot int, raw []byte) {
		other := New(8)
		if other.Load(slot, raw) {
			t.Errorf("%s: taken for whole", what)
		}
		if bins, _ := other.Bins(at, all, 0, nil); len(bins) > 0 {
			t.Errorf("%s: there are bins", what)
		}
	}
	for i := range 8 * len(row) {
		spoilt := slices.Clone(row)
		spoilt[i/8] ^= 1 << (i % 8)
		bad("a bit", slot, spoilt)
	}
	for n := range len(row) {
		bad("cut", slot, row[:n])
	}
	for s := -1; s <= Slots; s++ {
		if s != slot {
			bad("another slot", s, row)
		}
	}
	small := New(7)
	if small.Load(slot, row) {
		t.Error("more series than a row has room for")
	}
	if !New(8).Load(slot, make([]byte, 100)) {
		t.Error("a slot that was never written is damaged")
	}
}

// What records cost one device when a week is there: bytes of memory, of the file, and
// written a day. The planner keeps none: of 10,000 nodes each has its own.
func BenchmarkCost(b *testing.B) {
	node, sw := []Key{}, []Key{}
	for bundle := range uint32(2) {
		for m := range 8 {
			for q := proto.CaseTemperature; q <= proto.TxPower; q++ {
				node = append(node, KeyOf(bundle, proto.External1, m, q))
			}
		}
		node = append(node, KeyOf(bundle, proto.External1, 0, proto.ExcessLoss))
	}
	for port := range uint32(2 * 320) {
		sw = append(sw, KeyOf(port, 0, 0, proto.PortPower), KeyOf(port, 0, 0, proto.InsertionLoss))
	}
	for _, c := range []struct {
		name   string
		series int
		keys   []Key
	}{{"node of 16 modules", 2 * (12 + 8*7), node}, {"switch of 320 ports", 3 * 640, sw}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				book, written, writes := New(c.series), 0, 0
				for at := int64(0); at < 8*86400; at += 60 {
					for _, k := range c.keys {
						book.Add(at, k, int32(at))
					}
					book.Watched(at, time.Minute)
					book.Save(at, false, func(_ int, row []byte) { written, writes = written+len(row), writes+1 })
				}
				memory := int(unsafe.Sizeof(*book))
				for i := range book.rows {
					memory += cap(book.rows[i])
				}
				memory += cap(book.under.cells) * int(unsafe.Sizeof(cell{}))
				b.ReportMetric(float64(memory), "B-memory")
				b.ReportMetric(float64(Slots*book.SlotBytes()), "B-file")
				b.ReportMetric(float64(written)/8, "B-written/day")
				b.ReportMetric(float64(writes)/8, "writes/day")
			}
		})
	}
}

// Goal: no bytes with a right checksum stop the agent; a row that is taken up is told, and
// written as one that is taken up again with the same bins.
// Method: cells of any bytes under a head that is right.
func FuzzRow(f *testing.F) {
	const at = 1_700_000_000
	slot := at / quarter % Quarters
	b := New(8)
	for i := range 8 {
		b.Add(at, KeyOf(uint32(i), 0, 0, proto.RxPower), int32(-i))
		b.Add(at, KeyOf(uint32(i), 0, 0, proto.RxPower), int32(i))
	}
	f.Add(b.under.encode()[headBytes:])
	f.Add([]byte{1, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, cells []byte) {
		raw := append((&row{from: at/quarter + 1, watch: 900}).encode(), cells...)
		binary.LittleEndian.PutUint32(raw[12:], uint32(len(cells)))
		binary.LittleEndian.PutUint32(raw, crc32.Checksum(raw[4:], castagnoli))
		b, again := New(8), New(8)
		if !b.Load(slot, raw) {
			return
		}
		bins, _ := b.Bins(at, all, 0, nil)
		r := b.row(slot)
		if !again.Load(slot, r.encode()) {
			t.Fatal("what it writes it does not read")
		}
		if got, _ := again.Bins(at, all, 0, nil); !slices.Equal(got, bins) || len(r.cells) > 8 {
			t.Fatalf("%+v became %+v", bins, got)
		}
	})
}
