package metric

import (
	"math"
	"strings"
	"testing"
)

func TestPageIsTheTextFormat(t *testing.T) {
	wait := NewTally([]int64{1000, 2500})
	for _, v := range []int64{0, 1000, 1001, 9_000_000} {
		wait.Observe(v)
	}
	measures := []Measure[int64]{
		{Family{Name: "a_total", Kind: Counter, Help: "Back\\slash\nand \"quotes\"."}, func(v int64, p *Page) { p.Is(v) }},
		{Family{Name: "b_decibels", Help: "B.", Labels: []string{"node", "why"}, Places: Milli}, func(v int64, p *Page) {
			p.Number(-7).Word("a\"b\\c\nd").Is(-1)
			p.Number(8).Word("").Is(12_340)
		}},
		{Family{Name: "c_seconds", Kind: Histogram, Help: "C.", Labels: []string{"losses"}, Places: Micro}, func(_ int64, p *Page) { p.Number(1).Tally(&wait) }},
		{Family{Name: "d", Help: "D."}, func(_ int64, p *Page) { p.Bool(true); p.Bool(false); p.Is(math.MinInt64) }},
	}
	var p Page
	for i := range measures {
		appendPage(&p, &measures[i], 42)
	}
	want := `# HELP a_total Back\\slash\nand "quotes".
# TYPE a_total counter
a_total 42
# HELP b_decibels B.
# TYPE b_decibels gauge
b_decibels{node="-7",why="a\"b\\c\nd"} -0.001
b_decibels{node="8",why=""} 12.34
# HELP c_seconds C.
# TYPE c_seconds histogram
c_seconds_bucket{losses="1",le="0.001"} 2
c_seconds_bucket{losses="1",le="0.0025"} 3
c_seconds_bucket{losses="1",le="+Inf"} 4
c_seconds_sum{losses="1"} 9.002001
c_seconds_count{losses="1"} 4
# HELP d D.
# TYPE d gauge
d 1
d 0
d -9223372036854775808
`
	if got := string(p.Text); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if wait.Count() != 4 {
		t.Error(wait.Count())
	}
}

func TestSampleAllocatesNothing(t *testing.T) {
	f := Family{Name: "ringlight_margin_decibels", Help: "M.", Labels: []string{"node", "bundle"}, Places: Milli}
	h := Family{Name: "ringlight_bypass_seconds", Kind: Histogram, Help: "B.", Labels: []string{"losses"}, Places: Micro}
	tally := NewTally([]int64{1, 2, 3})
	var p Page
	round := func() {
		p.Text = p.Text[:0]
		p.Begin(&f)
		for n := range int64(100) {
			p.Number(n).Word("x").Is(-n)
		}
		p.Begin(&h)
		p.Number(1).Tally(&tally)
	}
	round()
	if n := testing.AllocsPerRun(10, round); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestWrongLabelsAreABrokenInvariant(t *testing.T) {
	defer func() {
		if r, _ := recover().(string); !strings.Contains(r, "other labels") {
			t.Error(r)
		}
	}()
	var p Page
	p.Begin(&Family{Name: "a", Labels: []string{"b"}})
	p.Is(1)
}

func BenchmarkSeries60000(b *testing.B) {
	f := Family{Name: "ringlight_margin_decibels", Help: "M.", Labels: []string{"node", "bundle"}, Places: Milli}
	var p Page
	b.ReportAllocs()
	for b.Loop() {
		p.Text = p.Text[:0]
		p.Begin(&f)
		for n := range int64(60_000) {
			p.Number(n).Number(n & 1).Is(n)
		}
	}
}
