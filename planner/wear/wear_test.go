package wear

import (
	"iter"
	"math"
	"slices"
	"testing"
	"time"

	"ringlight/planner/journal"
	"ringlight/proto"
)

// bench is a node whose telemetry a planner follows, and the store that outlives it.
type bench struct {
	t       *testing.T
	book    *Book
	store   map[string][]byte
	lives   int
	minute  int           // since the bench began
	started int           // of this life
	skew    time.Duration // of the planner's clock
	seq     uint64
	serial  [2]int32 // of two modules
	cal     string
	path    proto.Path
	bias    func(module int, day float64) float64 // microampere
	heater  func(day float64) float64             // microwatt
	writes  int
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, store: map[string][]byte{}, serial: [2]int32{11, -12}, cal: "first", path: proto.External1}
	b.bias = func(int, float64) float64 { return 40_000 }
	b.heater = func(float64) float64 { return 1e6 }
	b.restart()
	return b
}

// restart has another planner go on with what is stored.
func (b *bench) restart() {
	b.book, b.started = &Book{}, b.minute
	b.lives++
	for k, v := range b.store {
		if err := b.book.Restore(k[len(Prefix):], v); err != nil {
			b.t.Fatal(err)
		}
	}
}

// run lets some days go by, with readings every so many minutes, after which what is called may
// change the bench.
func (b *bench) run(days float64, every int, then func()) {
	b.t.Helper()
	const epoch = 1_790_000_000_000
	for end := b.minute + int(days*minutesADay); b.minute < end; b.minute += every {
		day := float64(b.minute) / minutesADay
		b.seq++
		m := &proto.Health{Node: 3, Seq: b.seq}
		add := func(module uint8, s proto.Sensor, v int32) {
			m.Samples = append(m.Samples, proto.Sample{Bundle: 1, Module: module, Sensor: s, Value: v})
		}
		for i, serial := range b.serial {
			add(uint8(i), proto.SensorSerial, serial)
			high := int32(math.Round(b.bias(i, day)/500) * 500) // as modules tell it
			add(uint8(i), proto.SensorUpperBias, high/2)
			add(uint8(i), proto.SensorLowerBias, high)
		}
		add(1, proto.SensorRail, int32(b.heater(day)))
		report := iter.Seq[proto.BundleReport](func(yield func(proto.BundleReport) bool) {
			yield(proto.BundleReport{Bundle: 1, Path: b.path, Calibration: proto.DigestOf([]byte(b.cal))})
		})
		at := time.Duration(b.minute) * time.Minute
		if due := b.book.Take(at-time.Duration(b.started)*time.Minute, uint64((at+b.skew).Milliseconds())+epoch, m, report); due.Key != "" {
			b.store[due.Key] = slices.Clone(due.Value)
			b.writes++
		}
		if then != nil {
			then()
		}
	}
}

// ages is the list, at 50 and 10 per cent within a year.
func (b *bench) ages() []Ageing { return b.book.Ageing(50, 10, 365) }

// wants one that ages, and days that are about right.
func (b *bench) wants(lasers bool, module uint8, days, off float64) {
	b.t.Helper()
	got := b.ages()
	if len(got) != 1 || got[0].Lasers != lasers || got[0].Module != module || got[0].Bundle != 1 || got[0].Node != 3 || math.Abs(got[0].Days-days) > off {
		b.t.Errorf("%+v, want module %d in %.1f days", got, module, days)
	}
}

// noise of a share: a room that is warm by day, and what scatters.
func noise(day, share float64) float64 {
	return 1 + share*math.Sin(2*math.Pi*day) + share*(float64(int(day*minutesADay)*7919%41)-20)/20
}

// Goal: lasers and heaters that creep to their limits are told with the days until then, others are
// not. Method: ten days of 40 mA that rise by .8 mA a day in steps of .5, and of 1 W that falls by
// 4 mW a day, each alone, in a room that is warm by day, then of that alone for 100 days.
func TestAgeing(t *testing.T) {
	b := newBench(t)
	b.bias = func(m int, day float64) float64 { return (40_000 + 800*day*float64(m)) * noise(day, 0.01) }
	b.run(10, 5, nil)
	b.wants(true, 1, 15, 2)
	b = newBench(t)
	b.heater = func(day float64) float64 { return (1e6 - 4000*day) * noise(day, 0.005) }
	b.run(10, 5, nil)
	b.wants(false, 1, 15, 2)
	if got := b.book.Ageing(50, 10, 10); len(got) != 0 {
		t.Errorf("within ten days: %+v", got)
	}
	b = newBench(t)
	b.bias = func(m int, day float64) float64 { return 40_000 * noise(day, 0.02) }
	b.heater = func(day float64) float64 { return 1e6 * noise(day, 0.02) }
	b.run(100, 8, func() {
		if b.minute%minutesADay == 0 && len(b.ages()) > 0 {
			t.Fatalf("day %d: %+v", b.minute/minutesADay, b.ages())
		}
	})
}

// Goal: what ages is followed across planners. Method: as above, with another planner from the
// stored records every seven hours, some on machines whose clock begins in 1970, some with one
// that is a year ahead; what is stored once in four hours.
func TestAgeingOutlivesPlanners(t *testing.T) {
	b := newBench(t)
	b.bias = func(m int, day float64) float64 { return (40_000 + 800*day*float64(m)) * noise(day, 0.01) }
	b.run(20, 5, func() {
		if b.minute-b.started >= 7*60 {
			b.minute += 15 // nobody plans
			b.restart()
			b.skew = [...]time.Duration{0, -20 * 365 * 24 * time.Hour, 0, 0}[b.lives%4]
		}
	})
	b.wants(true, 1, 5, 1)
	if b.lives < 60 || b.writes > 20*6 || len(b.store) != 1 {
		t.Errorf("%d lives, %d writes, %d records", b.lives, b.writes, len(b.store))
	}
	for _, v := range b.store {
		if len(v) > 5+3*44 {
			t.Errorf("%d bytes of three lines", len(v))
		}
	}
	b.restart()
	b.wants(true, 1, 5, 1)
	b.skew = 10 * 365 * 24 * time.Hour // it tells another century for one life
	b.run(1, 5, nil)
	b.skew = 0
	b.restart()
	b.run(8, 5, nil) // the line begins anew, what it is held against stays: 63 of 60 mA
	if got := b.ages(); len(got) != 1 || got[0].Days != 0 || math.Abs(got[0].Limit-60_000) > 1000 {
		t.Errorf("%+v", got)
	}
}

// Goal: a clock that is set within a life changes nothing. Method: two planners side by side, the
// clock of one jumps by years and back all the time.
func TestAgeingDoesNotFollowAClockThatJumps(t *testing.T) {
	var list [2][]Ageing
	for i := range list {
		b := newBench(t)
		b.bias = func(m int, day float64) float64 { return 40_000 + 800*day*float64(m) }
		b.run(1, 5, nil)
		b.run(9, 5, func() {
			if i == 1 {
				b.skew = time.Duration(b.minute%7-3) * 365 * 24 * time.Hour
			}
		})
		list[i] = b.ages()
	}
	if len(list[0]) != 1 || !slices.Equal(list[0], list[1]) {
		t.Errorf("%+v", list)
	}
}

// Goal: another module, another calibration begin anew, and nothing else does. Method: a module whose
// laser ages is exchanged for one that does as well and takes as much; heaters that creep are
// calibrated; a path is used in between for five minutes a day, and for days.
func TestAgeingBeginsAnewWithAnotherModule(t *testing.T) {
	b := newBench(t)
	b.bias = func(m int, day float64) float64 { return 40_000 + 800*day*float64(m) }
	b.run(10, 5, nil)
	b.wants(true, 1, 15, 1)
	b.serial[0]++
	b.run(1, 5, nil)
	b.wants(true, 1, 14, 1)
	b.serial[1]++
	b.run(1, 5, nil)
	if got := b.ages(); len(got) != 0 {
		t.Errorf("another module: %+v", got)
	}
	b.restart()
	b.run(9, 5, nil)
	b.wants(true, 1, 22, 2) // 56.8 at the end, of 48.8 then: 73.2 is the limit

	b = newBench(t)
	b.heater = func(day float64) float64 {
		if b.path == proto.Loopback {
			return 4e5
		}
		return 1e6 + 4000*day
	}
	b.run(20, 5, func() {
		b.path = proto.External1
		if day := b.minute % (5 * minutesADay); day < minutesADay || b.minute%minutesADay < 10 {
			b.path = proto.Loopback
		}
	})
	b.wants(false, 1, 5, 2)
	b.cal = "second"
	b.run(8, 5, nil)
	if got := b.ages(); len(got) != 1 || got[0].Days < 17 {
		t.Errorf("calibrated at 1.08: %+v", got)
	}
}

// Goal: what begins to age after years is seen within weeks, and an agent that names no module is
// believed until its laser jumps. Method: three years of the same, then two months of 100 uA a day;
// then a step of a third.
func TestAgeingAfterYears(t *testing.T) {
	b := newBench(t)
	b.serial = [2]int32{}
	begins := 3 * 365.0
	b.bias = func(m int, day float64) float64 {
		return (40_000 + 100*max(0, day-begins)*float64(m)) * noise(day, 0.005)
	}
	b.run(begins, 7, nil)
	if got := b.ages(); len(got) != 0 {
		t.Fatalf("%+v", got)
	}
	b.restart()
	b.run(60, 7, nil)
	got := b.ages()
	if len(got) != 1 || got[0].Days < 130 || got[0].Days > 250 { // 140
		t.Errorf("%+v", got)
	}
	was := b.bias
	b.bias = func(m int, day float64) float64 { return was(m, day) * 4 / 3 }
	b.run(2, 7, nil)
	if got := b.ages(); len(got) != 0 {
		t.Errorf("a laser that jumped: %+v", got)
	}
}

// Goal: what is not a record of ours costs nothing but the lines of its node. Method: each prefix of a
// record, other formats, and what an edit takes away.
func TestRecordsThatAreNotOurs(t *testing.T) {
	b := newBench(t)
	b.run(10, 5, nil)
	for key, v := range b.store {
		for n := range v {
			if err := new(Book).Restore(key[len(Prefix):], v[:n]); err != nil {
				t.Fatal(err)
			}
		}
		other := slices.Clone(v)
		other[0]++
		book := &Book{}
		if err := book.Restore(key[len(Prefix):], other); err != nil || len(book.nodes) != 0 {
			t.Errorf("%v, %d nodes", err, len(book.nodes))
		}
		if book.Restore("x", v) == nil {
			t.Error("no number")
		}
		if got := b.book.Keep(3); len(got) != 1 || got[0].Key != key || got[0].Value != nil || len(b.book.nodes) != 0 {
			t.Errorf("%+v", got)
		}
	}
	var _ []journal.Record = b.book.Keep(0)
}

func FuzzRestore(f *testing.F) {
	f.Add([]byte{format, 0, 0, 0, 9}, uint32(5))
	f.Fuzz(func(t *testing.T, raw []byte, id uint32) {
		b := &Book{}
		if b.Restore("7", raw) == nil {
			for _, a := range b.Ageing(50, 10, 365) {
				if math.IsNaN(a.Days) || a.Days < 0 {
					t.Errorf("%+v", a)
				}
			}
		}
	})
}
