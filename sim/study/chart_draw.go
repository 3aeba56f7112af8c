package study

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strconv"
	"strings"

	"ringlight/mzi/detmath"
)

// axes fit what is drawn.
func (c Chart) axes() (x, y axis) {
	var xs, ys []float64
	for _, s := range c.Series {
		for i, v := range s.Y {
			if v == Absent || c.YLog && v <= 0 {
				continue
			}
			ys = append(ys, v)
			if i < len(s.X) {
				xs = append(xs, s.X[i])
			}
		}
	}
	for _, list := range []*[]float64{&xs, &ys} {
		if len(*list) == 0 {
			*list = []float64{0, 1}
		}
	}
	const start, length = panelHeight - bottom, -(panelHeight - top - bottom)
	if low, high := slices.Min(ys), slices.Max(ys); c.YLog && low > 0 {
		y = decades(low, high, start, length, c.YPercent)
	} else {
		if !c.YFit || !(high > low) {
			low = min(0, low)
		}
		y = newAxis(low, high, start, length, c.YPercent)
	}
	if c.XLog && slices.Min(xs) > 0 {
		return octaves(xs, left, panelWidth-left-right, c.XPercent), y
	}
	return newAxis(slices.Min(xs), slices.Max(xs), left, panelWidth-left-right, c.XPercent), y
}

func (c Chart) draw(b *strings.Builder, looks map[string]look) {
	x, y := c.axes()
	text(b, left, top-16, "start", sizePanel, "#111111", c.Title)
	for _, v := range y.ticks {
		at := y.at(v)
		fmt.Fprintf(b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#dddddd"/>`+"\n", left, at, panelWidth-right, at)
		text(b, left-7, at+4.5, "end", sizeTick, "#333333", y.label(v))
	}
	fmt.Fprintf(b, `<path d="M%d %d V%d M%d %.1f H%d" fill="none" stroke="#555555"/>`+"\n", left, top, panelHeight-bottom, left, y.base(), panelWidth-right)
	label := c.YLabel
	if y.log {
		label += ", logarithmic"
	}
	fmt.Fprintf(b, `<text transform="translate(17 %d) rotate(-90)" text-anchor="middle" font-size="%d" fill="#222222">%s</text>`+"\n",
		(top+panelHeight-bottom)/2, sizeLabel, html.EscapeString(label))
	tiers := 1
	if len(c.Categories) > 0 {
		tiers = c.bars(b, y, looks)
	}
	text(b, (left+panelWidth-right)/2, float64(panelHeight-bottom+28+tiers*15), "middle", sizeLabel, "#222222", c.XLabel)
	if len(c.Categories) > 0 {
		return
	}
	for _, v := range x.ticks {
		at := x.at(v)
		fmt.Fprintf(b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#555555"/>`+"\n", at, panelHeight-bottom, at, panelHeight-bottom+4)
		text(b, at, panelHeight-bottom+19, "middle", sizeTick, "#333333", x.label(v))
	}
	for _, s := range c.Series {
		s.line(b, x, y, looks[s.Name])
	}
}

func (s Series) line(b *strings.Builder, x, y axis, l look) {
	if len(s.X) == 0 {
		return
	}
	if s.Marks {
		for i := range s.X {
			mark(b, x.at(s.X[i]), y.at(s.Y[i]), l)
		}
		return
	}
	fmt.Fprintf(b, `<path fill="none" stroke="%s" stroke-width="%.1f" stroke-linejoin="round"`, l.colour, l.width)
	if l.dash != "" {
		fmt.Fprintf(b, ` stroke-dasharray="%s"`, l.dash)
	}
	b.WriteString(` d="`)
	for i := range s.X {
		form := "L%.1f %.1f"
		switch {
		case i == 0:
			form = "M%.1f %.1f"
		case s.Step:
			form = "H%.1fV%.1f"
		}
		fmt.Fprintf(b, form, x.at(s.X[i]), y.at(s.Y[i]))
	}
	if s.Step { // what the last value is it stays
		fmt.Fprintf(b, "H%.1f", x.at(x.to))
	}
	b.WriteString("\"/>\n")
	if !s.Step && len(s.X) <= 12 { // what was drawn, and what lies between
		for i := range s.X {
			fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="2.5" fill="%s"/>`+"\n", x.at(s.X[i]), y.at(s.Y[i]), l.colour)
		}
	}
}

// bars draws them and gives how many rows their names take.
func (c Chart) bars(b *strings.Builder, y axis, looks map[string]look) int {
	slot := float64(panelWidth-left-right) / float64(len(c.Categories))
	bar := slot * 0.86 / float64(max(1, len(c.Series)))
	longest := 0
	for _, name := range c.Categories {
		longest = max(longest, len(name))
	}
	tiers := min(3, 1+int(float64(longest)*letter*sizeTick/slot))
	said := true // values above bars, if there is room for each of them
	for _, s := range c.Series {
		for _, v := range s.Y {
			said = said && (v == Absent || float64(len(y.value(v)))*letter*sizeValue <= bar*0.95)
		}
	}
	for i, name := range c.Categories {
		from := left + float64(slot*float64(i))
		text(b, from+slot/2, float64(panelHeight-bottom+19+i%tiers*15), "middle", sizeTick, "#333333", name)
		for j, s := range c.Series {
			v := Absent
			if i < len(s.Y) {
				v = s.Y[i]
			}
			c.drawBar(b, y, v, from+float64(slot*0.07)+float64(bar*float64(j)), bar*0.92, said, s.Name, looks[s.Name])
		}
	}
	return tiers
}

// drawBar draws a value, and says it. What would not be seen is said in every case:
// nothing, and that there is none.
func (c Chart) drawBar(b *strings.Builder, y axis, v, x, wide float64, said bool, name string, l look) {
	base := y.base()
	if v == Absent {
		text(b, x+wide/2, base-4, "middle", sizeValue, "#777777", "\u2013")
		return
	}
	up := y.at(v)
	tall := max(up-base, base-up)
	if tall >= 0.5 {
		fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" %s/>`+"\n", x, min(up, base), wide, tall, fill(name, l))
	}
	label := y.value(v)
	switch {
	case said:
	case v == 0:
		label = "0"
	default:
		label = "~0"
	}
	if said || tall < 2 {
		text(b, x+wide/2, min(up, base)-4, "middle", sizeValue, l.colour, label)
	}
}

// axis maps values to pixels.
type axis struct {
	from, to float64
	start    float64 // pixel of from
	length   float64 // pixels to `to`, negative: upwards
	ticks    []float64
	percent  bool
	log      bool // from, to and ticks are values all the same
}

// newAxis covers the values with round ends.
func newAxis(from, to, start, length float64, percent bool) axis {
	if !(to > from) {
		to = from + 1
	}
	step := niceStep((to - from) / 5)
	a := axis{start: start, length: length, percent: percent}
	first := math.Floor(from/step + 1e-6)
	a.from = float64(first * step)
	for i := int(first); ; i++ {
		v := float64(i) * step
		a.ticks = append(a.ticks, v)
		if v >= to-step/1e6 {
			a.to = v
			return a
		}
	}
}

// decades covers values above 0 with powers of ten, at least one decade.
func decades(from, to, start, length float64, percent bool) axis {
	a := axis{start: start, length: length, percent: percent, log: true, from: 1}
	for a.from > from*(1+1e-9) {
		a.from /= 10
	}
	for a.from*10 <= from*(1+1e-9) {
		a.from *= 10
	}
	for v := a.from; ; v *= 10 {
		a.ticks, a.to = append(a.ticks, v), v
		if len(a.ticks) > 1 && v >= to*(1-1e-9) {
			return a
		}
	}
}

// octaves covers values above 0, each a tick unless it would touch the last.
func octaves(values []float64, start, length float64, percent bool) axis {
	slices.Sort(values)
	values = slices.Compact(values)
	a := axis{start: start, length: length, percent: percent, log: true, from: values[0], to: values[len(values)-1]}
	if len(values) == 1 {
		a.from, a.to = a.from/2, a.to*2
	}
	for _, v := range values {
		if n := len(a.ticks); n > 0 && a.at(v)-a.at(a.ticks[n-1]) < float64(len(a.label(v))+1)*letter*sizeTick {
			continue
		}
		a.ticks = append(a.ticks, v)
	}
	return a
}

// niceStep is 1, 2 or 5 times a power of ten, not below v.
func niceStep(v float64) float64 {
	unit := 1.0
	for unit > v {
		unit /= 10
	}
	for unit*10 <= v {
		unit *= 10
	}
	for _, f := range []float64{1, 2, 5, 10} {
		if f*unit >= v {
			return f * unit
		}
	}
	return 10 * unit
}

func (a axis) at(v float64) float64 {
	share := (v - a.from) / (a.to - a.from)
	if a.log {
		share = 0
		if v > a.from {
			share = detmath.Log(v/a.from) / detmath.Log(a.to/a.from)
		}
	}
	return a.start + float64(min(max(share, 0), 1)*a.length)
}

// base is where bars stand: at 0, or at the lowest that there is.
func (a axis) base() float64 { return a.at(max(0, a.from)) }

func (a axis) label(v float64) string {
	unit := ""
	if a.percent {
		v, unit = v*100, " %"
	}
	return plainDigits(v, 9) + unit // nine digits hide the rounding error of a multiple of 0.1
}

// value is how a bar is labelled, short enough to stand above it.
func (a axis) value(v float64) string {
	if a.percent {
		v *= 100
	}
	return plainDigits(v, 3)
}

// plainDigits writes a number without an exponent; thousands are parted.
func plainDigits(v float64, digits int) string {
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64) // which reads what it wrote
	s := strconv.FormatFloat(v, 'f', -1, 64)
	for i := strings.IndexByte(s+".", '.') - 3; i > 0 && s[i-1] >= '0' && math.Abs(v) >= 10000; i -= 3 { // not behind a sign
		s = s[:i] + "\u2009" + s[i:]
	}
	return s
}
