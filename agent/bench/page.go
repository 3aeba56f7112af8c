package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"ringlight/hal"
)

// Size of a plot, in pixels.
const (
	plotWidth  = 640
	plotHeight = 166
	plotLeft   = 66
	plotBottom = 38
	plotTop    = 10
)

const style = `body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:72em;color:#1b1f24}
table{border-collapse:collapse;margin:.5em 0 1.5em}td,th{padding:.15em .8em .15em 0;text-align:left;vertical-align:top}
th{border-bottom:1px solid #889}.fail{color:#b00020;font-weight:600}.skip{color:#7a6a00}.pass{color:#1a7f37}.made{background:#fff3bf;border:2px solid #c90;padding:.5em .8em;font-weight:600}
h1{font-size:1.5em}h2{font-size:1.15em;margin-top:1.8em}svg{display:block;margin:.3em 0 1em}
svg text{font:11px system-ui,sans-serif;fill:#445}figcaption{color:#445}figure{margin:0}`

// Page writes the report as one HTML page that needs nothing else: no script,
// no style sheet, no picture from elsewhere.
func (r *Report) Page(w io.Writer) error {
	p := &page{}
	verdict, class := "passed", "pass"
	if r.Failed > 0 {
		verdict, class = fmt.Sprintf("failed: %d of %d checks", r.Failed, len(r.Checks)), "fail"
	}
	p.f("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Bring-up of node %d</title><style>%s</style></head><body>\n", r.Node, style)
	p.f("<h1>Bring-up of node %d: <span class=%q>%s</span></h1>\n", r.Node, class, verdict)
	if r.Simulated {
		p.f("<p class=\"made\">SIMULATED BOARD: every figure below comes from a model; no hardware was looked at.</p>\n")
	}
	p.urgent(r)
	p.f("<table><tr><th>date</th><td>%s</td></tr><tr><th>board</th><td>%s</td></tr><tr><th>software</th><td>%s</td></tr>"+
		"<tr><th>checks</th><td>%d, %d failed, %d skipped, %v of the board's time</td></tr></table>\n",
		escape.Replace(r.Date), escape.Replace(r.Board), escape.Replace(r.Software), len(r.Checks), r.Failed, r.Skipped, r.Took.Round(time.Millisecond))
	p.checks("All checks", r.Checks)
	p.inventory(r)
	for i := range r.Modules {
		p.module(&r.Modules[i])
	}
	p.fibres(r.Fibres)
	p.f("</body></html>\n")
	_, err := io.WriteString(w, p.b.String())
	return err
}

// escape is package html's, whose import alone brings a table of two thousand names of
// letters: 65 KB.
var escape = strings.NewReplacer("&", "&amp;", "'", "&#39;", "<", "&lt;", ">", "&gt;", `"`, "&#34;")

type page struct{ b strings.Builder }

func (p *page) f(format string, args ...any) { fmt.Fprintf(&p.b, format, args...) }

// urgent is what somebody has to act on: what failed, what was not looked at,
// and the steps.
func (p *page) urgent(r *Report) {
	for _, list := range []struct {
		title   string
		verdict Verdict
	}{{"What failed", Fail}, {"What was not looked at", Skip}} {
		p.checks(list.title, slices.DeleteFunc(slices.Clone(r.Checks), func(c Check) bool { return c.Verdict != list.verdict }))
	}
	if r.Fibres == nil || len(r.Fibres.Steps) == 0 {
		return
	}
	p.f("<h2>What to do</h2>\n<ol>\n")
	for _, s := range r.Fibres.Steps {
		p.f("<li>%s</li>\n", escape.Replace(s.String()))
	}
	p.f("</ol>\n")
}

func (p *page) checks(title string, list []Check) {
	if len(list) == 0 {
		return
	}
	p.f("<h2>%s</h2>\n<table><tr><th>check</th><th>where</th><th></th><th>found</th></tr>\n", title)
	for _, c := range list {
		p.f("<tr><td>%s</td><td>%s</td><td class=%q>%s</td><td>%s</td></tr>\n", escape.Replace(c.Section), escape.Replace(c.Where), string(c.Verdict),
			c.Verdict, escape.Replace(c.Text))
	}
	p.f("</table>\n")
}

func (p *page) inventory(r *Report) {
	p.f("<h2>Buses</h2>\n<table><tr><th>bus</th><th>device</th><th>who answers</th></tr>\n")
	for _, b := range r.Buses {
		p.f("<tr><td>%d</td><td>%s</td><td>%s</td></tr>\n", b.Bus, escape.Replace(b.Device), escape.Replace(strings.Join(b.Answers, " ")))
	}
	p.f("</table>\n<h2>Modules</h2>\n<table><tr><th>module</th><th>serial number</th><th>case</th><th>rail</th><th>idle</th></tr>\n")
	for _, m := range r.Modules {
		p.f("<tr><td>%d/%d</td><td>%s</td><td>%.1f C</td><td>%.2f V</td><td>%.2f mA</td></tr>\n", m.Bundle, m.Module, escape.Replace(m.Serial),
			float64(m.CaseMillicelsius)/1000, float64(m.RailMillivolt)/1000, float64(m.IdleMicroampere)/1000)
	}
	p.f("</table>\n")
}

// series is what one plot shows: a bar an item, and what it should be.
type series struct {
	title, unit string
	axis        string // what the values are
	values      []float64
	bad         []bool
	want        []float64 // a mark a bar; nil: none
	limits      []float64 // drawn as lines
	item        string
}

func (p *page) module(m *ModuleReport) {
	if len(m.Ohm)+len(m.LaneBest)+len(m.LoopLevel) == 0 {
		return
	}
	p.f("<h2>Bundle %d module %d, %s</h2>\n", m.Bundle, m.Module, escape.Replace(m.Serial))
	s := series{title: "Heater resistance", axis: "resistance", unit: "Ohm", limits: []float64{ohmLeast, ohmMost}, item: "cell"}
	for _, o := range m.Ohm {
		s.values = append(s.values, float64(max(o, 0)))
		s.bad = append(s.bad, o != 0 && (o < ohmLeast || o > ohmMost))
	}
	p.plot(s)
	s = series{title: "Light of each laser on its module's own diodes, heaters cold", axis: "light", unit: "dBm", limits: []float64{float64(laserLeast) / 1000}, item: "lane"}
	for _, l := range m.LaneBest {
		s.values = append(s.values, float64(l)/1000)
		s.bad = append(s.bad, l < laserLeast)
	}
	p.plot(s)
	s = series{title: "Loopback; black: what the calibration saw", axis: "light", unit: "dBm", item: "lane"}
	for i, l := range m.LoopLevel {
		s.values = append(s.values, float64(l)/1000)
		s.want = append(s.want, float64(m.LoopExpected[i])/1000)
		s.bad = append(s.bad, l < m.LoopExpected[i]-loopSlack)
	}
	p.plot(s)
	s = series{title: "Extinction of each cell as calibrated", axis: "extinction", unit: "dB", item: "cell"}
	for _, e := range m.ExtinctionMB {
		s.values = append(s.values, float64(e)/1000)
		s.bad = append(s.bad, false)
	}
	p.plot(s)
}

// bounds are the round numbers between which all of a series lies.
func (s *series) bounds() (low, high float64) {
	low, high = s.values[0], s.values[0]
	for _, list := range [][]float64{s.values, s.want, s.limits} {
		for _, v := range list {
			low, high = min(low, v), max(high, v)
		}
	}
	step := 5.0
	for high-low > 8*step {
		step *= 2
	}
	floor := func(v float64) float64 { return float64(int64(v/step)) * step }
	low, high = floor(low)-step, floor(high)+step
	if s.unit == "Ohm" || s.unit == "dB" {
		low = 0
	}
	return low, high
}

func (p *page) plot(s series) {
	if len(s.values) == 0 {
		return
	}
	low, high := s.bounds()
	y := func(v float64) float64 {
		return plotTop + (high-v)/(high-low)*(plotHeight-plotTop-plotBottom)
	}
	wide := float64(plotWidth-plotLeft) / float64(len(s.values))
	title := s.title
	for i, v := range s.limits {
		title += fmt.Sprintf("%s %.4g", []string{"; dashed: limits", " and"}[min(i, 1)], v)
	}
	title = escape.Replace(title)
	p.f("<figure><figcaption>%s</figcaption><svg width=\"%d\" height=\"%d\" role=\"img\" aria-label=\"%s\">\n", title, plotWidth, plotHeight, title)
	middle := (plotTop + plotHeight - plotBottom) / 2
	p.f("<text x=\"12\" y=\"%d\" text-anchor=\"middle\" transform=\"rotate(-90 12 %d)\">%s, %s</text>\n", middle, middle, s.axis, s.unit)
	p.f("<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", (plotLeft+plotWidth)/2, plotHeight-6, s.item)
	for _, v := range []float64{low, (low + high) / 2, high} {
		p.f("<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#dde\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.4g</text>\n",
			plotLeft, plotWidth, y(v), y(v), plotLeft-4, y(v)+4, v)
	}
	for i, v := range s.values {
		colour := "#4a7fb5"
		if s.bad[i] {
			colour = "#b00020"
		}
		x := plotLeft + float64(i)*wide
		top := y(max(v, low))
		p.f("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=%q><title>%s %d: %.2f %s</title></rect>\n", x+wide*0.15, top, wide*0.7,
			max(y(low)-top, 1), colour, s.item, i, v, escape.Replace(s.unit))
		if s.want != nil {
			p.f("<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#222\" stroke-width=\"2\"/>\n", x, x+wide, y(s.want[i]), y(s.want[i]))
		}
		if len(s.values) <= hal.Lanes || i%4 == 0 {
			p.f("<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%d</text>\n", x+wide/2, plotHeight-plotBottom+14, i)
		}
	}
	for _, v := range s.limits {
		p.f("<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#a60\" stroke-dasharray=\"4 3\"/>\n", plotLeft, plotWidth, y(v), y(v))
	}
	p.f("</svg></figure>\n")
}

// fibres draws the ports in a column and what was found between them.
func (p *page) fibres(m *FibreMap) {
	if m == nil {
		return
	}
	p.f("<h2>Fibres</h2>\n")
	place := map[Port]int{}
	var ports []Port
	row := func(q Port) float64 {
		n, ok := place[q]
		if !ok {
			n = len(ports)
			place[q], ports = n, append(ports, q)
		}
		return 18 + 22*float64(n)
	}
	var lines strings.Builder
	draw := func(fibres []Fibre, colour, dash, what string) {
		for _, f := range fibres {
			a, b := row(f.A), row(f.B)
			bulge := 170 + (b-a)*0.5
			if b < a {
				bulge = 170 + (a-b)*0.5
			}
			fmt.Fprintf(&lines, "<path d=\"M170 %.0f C %.0f %.0f %.0f %.0f 170 %.0f\" fill=\"none\" stroke=%q stroke-width=\"2\" stroke-dasharray=%q><title>%s</title></path>\n",
				a, bulge, a, bulge, b, b, colour, dash, escape.Replace(what+" "+f.String()))
		}
	}
	draw(m.Found, "#1a7f37", "none", "found")
	draw(m.Extra, "#b00020", "none", "not expected")
	draw(m.Missing, "#889", "4 3", "expected")
	draw(m.OneWay, "#a60", "none", "light one way only")
	for _, q := range m.Dark {
		row(q)
	}
	p.f("<p>Green: found. Red: found, not expected. Dashed: expected, not found. Brown: light one way only.</p>\n<svg width=\"%d\" height=\"%d\">\n%s",
		plotWidth, 22*len(ports)+20, lines.String())
	for _, q := range ports {
		p.f("<circle cx=\"170\" cy=\"%.0f\" r=\"3\"/><text x=\"160\" y=\"%.0f\" text-anchor=\"end\">%s</text>\n", row(q), row(q)+4, escape.Replace(q.String()))
	}
	p.f("</svg>\n")
}
