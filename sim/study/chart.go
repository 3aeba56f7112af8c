package study

import (
	"fmt"
	"html"
	"slices"
	"strings"
)

// Chart is one panel: lines over numbers, or with Categories groups of bars.
type Chart struct {
	Title              string
	XLabel, YLabel     string // what, and in what unit
	XPercent, YPercent bool   // axes are shares of one
	// XLog, YLog: decades are as long as each other; for values some of which are
	// ten times others. The ticks of XLog are the values themselves.
	XLog, YLog bool
	YFit       bool // the axis of values begins where they do, not at 0
	Categories []string
	Series     []Series
}

// Series is one line, or one bar in each category.
type Series struct {
	Name string
	X, Y []float64
	Step bool // a value holds until the next
	// Marks: points without a line, such as those that a paper prints.
	Marks bool
}

// Absent is a bar that there is none of; it is said where it would stand.
const Absent = -1e300

// orAbsent takes nothing for none.
func orAbsent(v float64) float64 {
	if v <= 0 {
		return Absent
	}
	return v
}

// panelOf is the last panel, or a new one when its title is another.
func panelOf(charts *[]Chart, title string, dress Chart) *Chart {
	if n := len(*charts); n == 0 || (*charts)[n-1].Title != title {
		dress.Title = title
		*charts = append(*charts, dress)
	}
	return &(*charts)[len(*charts)-1]
}

// point goes to the end of a series.
func (c *Chart) point(name string, x, y float64) *Series {
	s := firstOf(c.Series, func(s Series) bool { return s.Name == name })
	if s == nil {
		c.Series = append(c.Series, Series{Name: name})
		s = &c.Series[len(c.Series)-1]
	}
	s.X, s.Y = append(s.X, x), append(s.Y, y)
	return s
}

// bar goes to the end of a series, in the last category or a new one.
func (c *Chart) bar(category, name string, v float64) {
	if n := len(c.Categories); n == 0 || c.Categories[n-1] != category {
		c.Categories = append(c.Categories, category)
	}
	c.point(name, 0, v)
}

// mark is a point without a line.
func (c *Chart) mark(name string, x, y float64) { c.point(name, x, y).Marks = true }

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

// known are the architectures, whose look is the same in every picture.
var known = map[Model]look{
	BigSwitch: {"#000000", "2 3", 1.5},
	IHBDK2:    {"#d55e00", "", 2},
	IHBDK3:    {"#0072b2", "", 2.5},
	IHBDK3W:   {"#56b4e9", "5 4", 2},
	NVL36:     {"#777777", "", 2},
	NVL72:     {"#009e73", "", 2},
	NVL576:    {"#cc79a7", "", 2},
	TPUv4:     {"#e69f00", "", 2.5},
	SiPRing:   {"#7a4b00", "6 3", 2},
}

// looks are those of all series of a picture, each another as far as there are
// enough; what a paper prints has the colour of what it stands beside.
func looks(panels []Chart) map[string]look {
	out := map[string]look{}
	next := 0
	for _, c := range panels {
		for _, s := range c.Series {
			name := strings.TrimSuffix(s.Name, paperMark)
			l, ok := known[Model(name)]
			if at := slices.Index(Strategies, name); at >= 0 {
				l, ok = palette[at], true
			}
			if !ok {
				l, ok = out[name]
			}
			if !ok {
				if l = palette[next%len(palette)]; next >= len(palette) {
					l.dash = "8 4"
				}
				next++
			}
			out[name], out[s.Name] = l, l
		}
	}
	return out
}

// Measures of the picture, in pixels; letters stay readable at four fifths of it.
const (
	panelWidth, panelHeight = 520, 370
	left, right             = 78, 22 // from a panel's edge to its plot
	top, bottom             = 44, 74
	lineHeight              = 24 // of the title
	legendLine              = 22
	sourceLine              = 16
	letter                  = 0.56 // width of a letter, of its size
	fontFamily              = "Helvetica, Arial, sans-serif"
)

// Sizes of letters.
const (
	sizeTitle, sizePanel, sizeLabel, sizeTick, sizeValue, sizeSource = 19, 15, 14, 13, 12, 12
)

// SVG draws the panels two in a row under a title and one legend, and below them
// where they come from. The text stands alone: no script, style sheet or font from
// elsewhere.
func SVG(title, source string, panels []Chart) string {
	columns := min(2, max(1, len(panels)))
	rows := (len(panels) + columns - 1) / columns
	width := columns * panelWidth
	titles, sources := fold(title, width-2*right, sizeTitle), fold(source, width-2*right, sizeSource)
	legendTop := 14 + len(titles)*lineHeight
	look := looks(panels)
	legend, legendRows := drawLegend(panels, look, width, legendTop+legendLine/2)
	head := legendTop + legendRows*legendLine + 6
	height := head + rows*panelHeight + len(sources)*sourceLine + 8
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" font-family="%s">`+"\n",
		width, height, width, height, fontFamily)
	fmt.Fprintf(&b, "<title>%s</title>\n<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n", html.EscapeString(title), width, height)
	for i, line := range titles {
		text(&b, float64(width)/2, float64(26+i*lineHeight), "middle", sizeTitle, "#111111", line)
	}
	b.WriteString(legend)
	for i, c := range panels {
		fmt.Fprintf(&b, "<g transform=\"translate(%d %d)\">\n", i%columns*panelWidth, head+i/columns*panelHeight)
		c.draw(&b, look)
		b.WriteString("</g>\n")
	}
	for i, line := range sources {
		text(&b, right, float64(height-8-(len(sources)-1-i)*sourceLine), "start", sizeSource, "#555555", line)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// fold breaks a text into lines of so many pixels.
func fold(s string, width, size int) (lines []string) {
	most := int(float64(width) / (letter * float64(size)))
	for _, word := range strings.Fields(s) {
		if n := len(lines); n > 0 && len(lines[n-1])+1+len(word) <= most {
			lines[n-1] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}

func text(b *strings.Builder, x, y float64, anchor string, size int, colour, s string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s" font-size="%d" fill="%s">%s</text>`+"\n", x, y, anchor, size, colour, html.EscapeString(s))
}

// drawLegend names every series once, in order of appearance.
func drawLegend(panels []Chart, looks map[string]look, width, from int) (string, int) {
	var b strings.Builder
	seen := map[string]bool{}
	x, row := left, 0
	for _, c := range panels {
		for _, s := range c.Series {
			if s.Name == "" || seen[s.Name] {
				continue
			}
			seen[s.Name] = true
			wide := 54 + int(float64(len(s.Name))*letter*sizeTick)
			if x+wide > width && x > left {
				x, row = left, row+1
			}
			l := looks[s.Name]
			y := from + row*legendLine
			switch {
			case s.Marks:
				mark(&b, float64(x+12), float64(y), l)
			case len(c.Categories) > 0:
				fmt.Fprintf(&b, `<rect x="%d" y="%d" width="14" height="12" %s/>`+"\n", x+8, y-6, fill(s.Name, l))
			default:
				fmt.Fprintf(&b, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s" stroke-width="%.1f" stroke-dasharray="%s"/>`+"\n", x, y, x+24, y, l.colour, max(l.width, 2)+1, l.dash)
			}
			text(&b, float64(x+30), float64(y+4), "start", sizeTick, "#222222", s.Name)
			x += wide
		}
	}
	if len(seen) == 0 {
		return "", 0
	}
	return b.String(), row + 1
}

func mark(b *strings.Builder, x, y float64, l look) {
	fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="4.5" fill="#ffffff" stroke="%s" stroke-width="2"/>`+"\n", x, y, l.colour)
}

// fill is how a bar is filled: what a paper prints is hollow.
func fill(name string, l look) string {
	if strings.Contains(name, "paper") {
		return fmt.Sprintf(`fill="#ffffff" stroke="%s" stroke-width="2"`, l.colour)
	}
	return fmt.Sprintf(`fill="%s"`, l.colour)
}
