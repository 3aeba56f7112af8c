package study

import (
	"fmt"
	"html"
	"slices"
	"strconv"
	"strings"
)

// Chart is one panel: lines over numbers, or with Categories groups of bars.
type Chart struct {
	Title              string
	XLabel, YLabel     string
	XPercent, YPercent bool // axes are shares of one
	Categories         []string
	Series             []Series
}

// Series is one line, or one bar in each category.
type Series struct {
	Name string
	X, Y []float64
	Step bool // a value holds until the next
	// Marks: points without a line, such as those that a paper prints.
	Marks bool
}

// look is how a series is drawn: the same architecture looks the same in
// every chart, and dashes tell apart what lies on top of each other or is
// printed in grey.
type look struct {
	colour, dash string
	width        float64
}

// palette is that of Okabe and Ito, "Color Universal Design" (2008), which
// most colour-blind people can tell apart.
var palette = []look{
	{"#0072b2", "", 2}, {"#d55e00", "", 2}, {"#009e73", "", 2}, {"#cc79a7", "", 2},
	{"#e69f00", "", 2}, {"#56b4e9", "", 2}, {"#000000", "2 3", 1.5}, {"#777777", "6 3", 2},
}

func lookOf(name string, i int) look {
	if at := slices.Index(Strategies, strings.TrimSuffix(name, paperMark)); at >= 0 {
		return palette[at]
	}
	switch Model(name) {
	case BigSwitch:
		return look{"#000000", "2 3", 1.5}
	case IHBDK2:
		return look{"#d55e00", "", 2}
	case IHBDK3:
		return look{"#0072b2", "", 2.5}
	case IHBDK3W:
		return look{"#56b4e9", "5 4", 2}
	case NVL36:
		return look{"#777777", "", 2}
	case NVL72:
		return look{"#009e73", "", 2}
	case NVL576:
		return look{"#cc79a7", "", 2}
	case TPUv4:
		return look{"#e69f00", "", 2.5}
	case SiPRing:
		return look{"#7a4b00", "6 3", 2}
	}
	return palette[i%len(palette)]
}

// Measures of the picture, in pixels.
const (
	panelWidth, panelHeight = 460, 320
	left, right             = 64, 18 // from a panel's edge to its plot
	top, bottom             = 34, 48
	titleHeight             = 40
	legendLine              = 20
	letterWidth             = 5.5 // of a label of size 11
	fontFamily              = "Helvetica, Arial, sans-serif"
)

// SVG draws the panels two in a row under a title and one legend. The text
// stands alone: no script, style sheet or font from elsewhere.
func SVG(title string, panels []Chart) string {
	columns := min(2, max(1, len(panels)))
	rows := (len(panels) + columns - 1) / columns
	legend, legendRows := drawLegend(panels, columns*panelWidth)
	head := titleHeight + legendRows*legendLine
	width, height := columns*panelWidth, head+rows*panelHeight
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" font-family="%s">`+"\n",
		width, height, width, height, fontFamily)
	fmt.Fprintf(&b, "<title>%s</title>\n<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n", html.EscapeString(title), width, height)
	text(&b, float64(width)/2, 26, "middle", 17, "#111111", title)
	b.WriteString(legend)
	for i, c := range panels {
		fmt.Fprintf(&b, "<g transform=\"translate(%d %d)\">\n", i%columns*panelWidth, head+i/columns*panelHeight)
		c.draw(&b)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func text(b *strings.Builder, x, y float64, anchor string, size int, colour, s string) {
	fmt.Fprintf(b, `<text x="%s" y="%s" text-anchor="%s" font-size="%d" fill="%s">%s</text>`+"\n", px(x), px(y), anchor, size, colour, html.EscapeString(s))
}

func px(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

// drawLegend names every series once, in order of appearance.
func drawLegend(panels []Chart, width int) (string, int) {
	var b strings.Builder
	seen := map[string]bool{}
	x, row := left, 0
	for _, c := range panels {
		for i, s := range c.Series {
			if s.Name == "" || seen[s.Name] {
				continue
			}
			seen[s.Name] = true
			wide := 46 + 7*len(s.Name)
			if x+wide > width {
				x, row = left, row+1
			}
			l := lookOf(s.Name, i)
			y := titleHeight + row*legendLine
			if s.Marks {
				fmt.Fprintf(&b, `<circle cx="%d" cy="%d" r="4" fill="#ffffff" stroke="%s" stroke-width="2"/>`+"\n", x+12, y, l.colour)
			} else {
				fmt.Fprintf(&b, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s" stroke-width="%s" stroke-dasharray="%s"/>`+"\n", x, y, x+24, y, l.colour, px(max(l.width, 2)+1), l.dash)
			}
			text(&b, float64(x+30), float64(y+4), "start", 12, "#333333", s.Name)
			x += wide
		}
	}
	if len(seen) == 0 {
		return "", 0
	}
	return b.String(), row + 1
}

// axis maps values to pixels.
type axis struct {
	from, to float64
	start    float64 // pixel of from
	length   float64 // pixels to `to`, negative: upwards
	ticks    []float64
	percent  bool
}

// newAxis covers the values with round ends.
func newAxis(from, to, start, length float64, percent bool) axis {
	if !(to > from) {
		to = from + 1
	}
	step := niceStep((to - from) / 5)
	a := axis{from: from, start: start, length: length, percent: percent}
	first := int(from/step + 1e-6) // of values not below 0
	a.from = float64(first) * step
	for i := first; ; i++ {
		v := float64(i) * step
		a.ticks = append(a.ticks, v)
		if v >= to-step/1e6 {
			a.to = v
			return a
		}
	}
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
	return a.start + float64(min(max(share, 0), 1)*a.length)
}

func (a axis) label(v float64) string {
	unit := ""
	if a.percent {
		v, unit = v*100, " %"
	}
	// Nine digits swallow what a multiple of 0.1 carries behind them.
	s := strconv.FormatFloat(v, 'g', 9, 64)
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		s = strconv.FormatFloat(f, 'f', -1, 64)
	}
	return s + unit
}

func (c Chart) draw(b *strings.Builder) {
	var xFrom, xTo, yTo float64
	first := true
	for _, s := range c.Series {
		for i, y := range s.Y {
			yTo = max(yTo, y)
			if i < len(s.X) {
				if first {
					xFrom, xTo, first = s.X[i], s.X[i], false
				}
				xFrom, xTo = min(xFrom, s.X[i]), max(xTo, s.X[i])
			}
		}
	}
	y := newAxis(0, yTo, panelHeight-bottom, -(panelHeight - top - bottom), c.YPercent)
	text(b, left, top-12, "start", 13, "#111111", c.Title)
	for _, v := range y.ticks {
		at := y.at(v)
		fmt.Fprintf(b, `<line x1="%d" y1="%s" x2="%d" y2="%s" stroke="#e2e2e2"/>`+"\n", left, px(at), panelWidth-right, px(at))
		text(b, left-6, at+4, "end", 11, "#555555", y.label(v))
	}
	fmt.Fprintf(b, `<path d="M%d %d V%d H%d" fill="none" stroke="#555555"/>`+"\n", left, top, panelHeight-bottom, panelWidth-right)
	text(b, (left+panelWidth-right)/2, panelHeight-10, "middle", 12, "#333333", c.XLabel)
	fmt.Fprintf(b, `<text transform="translate(14 %d) rotate(-90)" text-anchor="middle" font-size="12" fill="#333333">%s</text>`+"\n",
		(top+panelHeight-bottom)/2, html.EscapeString(c.YLabel))
	if len(c.Categories) > 0 {
		c.bars(b, y)
		return
	}
	x := newAxis(xFrom, xTo, left, panelWidth-left-right, c.XPercent)
	for _, v := range x.ticks {
		at := x.at(v)
		fmt.Fprintf(b, `<line x1="%s" y1="%d" x2="%s" y2="%d" stroke="#555555"/>`+"\n", px(at), panelHeight-bottom, px(at), panelHeight-bottom+4)
		text(b, at, panelHeight-bottom+17, "middle", 11, "#555555", x.label(v))
	}
	for i, s := range c.Series {
		s.line(b, x, y, lookOf(s.Name, i))
	}
}

func (s Series) line(b *strings.Builder, x, y axis, l look) {
	if len(s.X) == 0 {
		return
	}
	if s.Marks {
		for i := range s.X {
			fmt.Fprintf(b, `<circle cx="%s" cy="%s" r="4" fill="#ffffff" stroke="%s" stroke-width="2"/>`+"\n", px(x.at(s.X[i])), px(y.at(s.Y[i])), l.colour)
		}
		return
	}
	fmt.Fprintf(b, `<path fill="none" stroke="%s" stroke-width="%s" stroke-linejoin="round"`, l.colour, px(l.width))
	if l.dash != "" {
		fmt.Fprintf(b, ` stroke-dasharray="%s"`, l.dash)
	}
	b.WriteString(` d="`)
	for i := range s.X {
		at, up := px(x.at(s.X[i])), px(y.at(s.Y[i]))
		switch {
		case i == 0:
			b.WriteString("M" + at + " " + up)
		case s.Step:
			b.WriteString("H" + at + "V" + up)
		default:
			b.WriteString("L" + at + " " + up)
		}
	}
	if s.Step { // what the last value is it stays
		b.WriteString("H" + px(x.at(x.to)))
	}
	b.WriteString("\"/>\n")
}

func (c Chart) bars(b *strings.Builder, y axis) {
	slot := float64(panelWidth-left-right) / float64(len(c.Categories))
	bar := slot * 0.86 / float64(max(1, len(c.Series)))
	wide := slices.ContainsFunc(c.Categories, func(name string) bool { return float64(len(name))*letterWidth > slot })
	for i, name := range c.Categories {
		from := left + float64(slot*float64(i))
		below := 17.0
		if wide && i%2 == 1 { // names in two rows
			below += 12
		}
		text(b, from+slot/2, panelHeight-bottom+below, "middle", 11, "#555555", name)
		for j, s := range c.Series {
			if i >= len(s.Y) {
				continue
			}
			up := y.at(s.Y[i])
			fmt.Fprintf(b, `<rect x="%s" y="%s" width="%s" height="%s" fill="%s"/>`+"\n", px(from+float64(slot*0.07)+float64(bar*float64(j))), px(up),
				px(bar*0.92), px(panelHeight-bottom-up), lookOf(s.Name, j).colour)
		}
	}
}
