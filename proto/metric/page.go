package metric

import (
	"slices"
	"strconv"
)

// Kind says how the samples of a family are to be read.
type Kind uint8

const (
	Gauge     Kind = iota // goes up and down
	Counter               // only grows, from 0 at each start
	Histogram             // counts by size; its samples are Tallies
)

var kindNames = [...]string{"gauge", "counter", "histogram"}

func (k Kind) String() string { return kindNames[k] }

// Decimal places of the integers that a family is given.
const (
	Milli = 3 // thousandths: milliseconds, milli-dB
	Micro = 6 // millionths: microseconds, microwatts
)

// Family is what all samples of one name have in common.
type Family struct {
	Name   string
	Kind   Kind
	Help   string
	Labels []string // in the order of a sample's Number and Word
	Places int      // decimal places of what samples are given: 0, Milli, Micro
}

// Measure is a family and where its samples come from.
type Measure[T any] struct {
	Family
	Write func(T, *Page)
}

// Of makes a measure.
func Of[T any](f Family, write func(T, *Page)) Measure[T] { return Measure[T]{f, write} }

// appendPage writes one family to a page.
func appendPage[T any](p *Page, m *Measure[T], from T) {
	p.Begin(&m.Family)
	m.Write(from, p)
}

// AppendAll writes a table to a page.
func AppendAll[T any](p *Page, all []Measure[T], from T) {
	for i := range all {
		appendPage(p, &all[i], from)
	}
}

// Page is text under construction. Text may be taken and cut to length 0.
type Page struct {
	Text   []byte
	family *Family
	labels []byte // of the sample under construction, name="value" with commas
	given  int    // how many
}

// Begin begins a family.
func (p *Page) Begin(f *Family) {
	p.family = f
	for _, line := range [2][2]string{{"# HELP ", f.Help}, {"# TYPE ", f.Kind.String()}} {
		p.Text = append(p.Text, line[0]...)
		p.Text = append(p.Text, f.Name...)
		p.Text = append(p.Text, ' ')
		p.Text = appendEscaped(p.Text, line[1], false)
		p.Text = append(p.Text, '\n')
	}
}

func (p *Page) label() {
	if p.given > 0 {
		p.labels = append(p.labels, ',')
	}
	p.labels = append(p.labels, p.family.Labels[p.given]...)
	p.labels = append(p.labels, '=', '"')
	p.given++
}

// Number is the next label's value.
func (p *Page) Number(n int64) *Page {
	p.label()
	p.labels = append(strconv.AppendInt(p.labels, n, 10), '"')
	return p
}

// Word is the next label's value.
func (p *Page) Word(s string) *Page {
	p.label()
	p.labels = append(appendEscaped(p.labels, s, true), '"')
	return p
}

// Is ends a sample with its value, of which the family's Places are decimals.
func (p *Page) Is(value int64) {
	p.sample("", nil, value, p.family.Places)
	p.end()
}

// Bool is Is of 1 or 0.
func (p *Page) Bool(yes bool) {
	if yes {
		p.Is(1)
	} else {
		p.Is(0)
	}
}

// Tally ends a histogram's sample.
func (p *Page) Tally(t *Tally) {
	var bound [24]byte
	sum := uint64(0)
	for i := range len(t.bounds) + 1 {
		if t.counts != nil {
			sum += t.counts[i]
		}
		le := append(bound[:0], "+Inf"...)
		if i < len(t.bounds) {
			le = appendDecimal(bound[:0], t.bounds[i], p.family.Places)
		}
		p.sample("_bucket", le, int64(sum), 0)
	}
	p.sample("_sum", nil, t.sum, p.family.Places)
	p.sample("_count", nil, int64(sum), 0)
	p.end()
}

func (p *Page) end() { p.labels, p.given = p.labels[:0], 0 }

func (p *Page) sample(suffix string, le []byte, value int64, places int) {
	if p.given != len(p.family.Labels) {
		panic("metric: " + p.family.Name + " has other labels")
	}
	b := append(p.Text, p.family.Name...)
	b = append(b, suffix...)
	if p.given > 0 || le != nil {
		b = append(append(b, '{'), p.labels...)
		if le != nil {
			if p.given > 0 {
				b = append(b, ',')
			}
			b = append(append(append(b, `le="`...), le...), '"')
		}
		b = append(b, '}')
	}
	p.Text = append(appendDecimal(append(b, ' '), value, places), '\n')
}

// appendDecimal writes v, of which so many places are decimals, without
// trailing zeros.
func appendDecimal(b []byte, v int64, places int) []byte {
	unit := uint64(1)
	for range places {
		unit *= 10
	}
	size := uint64(v)
	if v < 0 {
		b, size = append(b, '-'), -size
	}
	b = strconv.AppendUint(b, size/unit, 10)
	rest := size % unit
	if rest == 0 {
		return b
	}
	b = append(b, '.')
	for rest > 0 {
		unit /= 10
		b = append(b, '0'+byte(rest/unit))
		rest %= unit
	}
	return b
}

// appendEscaped writes text as the format has it: in help \ and newline are
// escaped, in a label's value the quotation mark too.
func appendEscaped(b []byte, s string, quoted bool) []byte {
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\\' || quoted && c == '"':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, '\\', 'n')
		default:
			b = append(b, c)
		}
	}
	return b
}

// Tally counts observations by size. The zero Tally counts all alike.
type Tally struct {
	bounds []int64  // upper bounds, ascending; shared
	counts []uint64 // nil: none was observed
	sum    int64
}

// NewTally counts up to bounds, which ascend and are not written.
func NewTally(bounds []int64) Tally {
	return Tally{bounds: bounds}
}

// Observe counts one.
func (t *Tally) Observe(v int64) {
	if t.counts == nil {
		t.counts = make([]uint64, len(t.bounds)+1)
	}
	at := 0
	for at < len(t.bounds) && v > t.bounds[at] {
		at++
	}
	t.counts[at]++
	t.sum += v
}

// Count is how many were observed.
func (t *Tally) Count() (n uint64) {
	for _, c := range t.counts {
		n += c
	}
	return n
}

// Clone is a copy that stays as it is.
func (t *Tally) Clone() Tally {
	return Tally{t.bounds, slices.Clone(t.counts), t.sum}
}

// One is what a page says of yes and no.
func One(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}
