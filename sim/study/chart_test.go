package study

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Goal: on an axis of decades every bar above 0 is seen, however small beside the
// largest, and one of nothing, below zero or that nobody has is said.
// Method: heights of the bars of a chart drawn.
func TestEveryBarIsSeen(t *testing.T) {
	c := Chart{Title: "of ten thousand to one", YLabel: "share", YPercent: true, YLog: true, Categories: []string{"a"}}
	for i, v := range []float64{0.3, 0.00152, 0.00003, 0, Absent} {
		c.point(fmt.Sprint("s", i), 0, v)
	}
	svg := SVG("bars", "ocs-sim <seed 3>", []Chart{c})
	var tall []float64
	for _, m := range regexp.MustCompile(`<rect x="[0-9.]+" y="[0-9.]+" width="[0-9]+[.][0-9]" height="([0-9.]+)"`).FindAllStringSubmatch(svg, -1) {
		h, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		tall = append(tall, h)
	}
	if len(tall) != 3 || tall[0] < 2*tall[2] || tall[2] < 10 {
		t.Errorf("bars of %v pixels", tall)
	}
	for _, want := range []string{">0<", ">\u2013<", "share, logarithmic", "ocs-sim &lt;seed 3&gt;", ">0.001 %<", ">100 %<"} {
		if !strings.Contains(svg, want) {
			t.Errorf("the picture lacks %q", want)
		}
	}
	c.YLog, c.Series[1].Y[0] = false, -0.1
	if svg := SVG("bars", "", []Chart{c}); !strings.Contains(svg, ">-10 %<") || !strings.Contains(svg, ">-10<") {
		t.Error("what is below 0 is not drawn")
	}
}

// Goal: an axis of decades ends at powers of ten that hold the values, one of
// octaves has the values for ticks, none over another.
func TestLogarithmicAxes(t *testing.T) {
	for _, c := range []struct{ from, to, low, high float64 }{{1, 1, 1, 10}, {0.0003, 0.3, 0.0001, 1}, {10, 1000, 10, 1000}, {11, 999, 10, 1000}, {0.00152, 0.0922, 0.001, 0.1}} {
		a := decades(c.from, c.to, 300, -200, false)
		if a.from > c.from || a.to < c.to || !closeTo(a.from, c.low) || !closeTo(a.to, c.high) || !closeTo(a.at(c.low), 300) || !closeTo(a.at(c.high), 100) {
			t.Errorf("%v to %v: axis %v to %v", c.from, c.to, a.from, a.to)
		}
	}
	a := octaves([]float64{2048, 64, 128, 64, 65, 1024}, 0, 400, false)
	if fmt.Sprint(a.ticks) != "[64 128 1024 2048]" || !closeTo(a.at(362.04), 200.01) {
		t.Errorf("ticks %v, %v", a.ticks, a.at(362.04))
	}
}

func closeTo(a, b float64) bool { return a-b < 1e-3*max(a, b) && b-a < 1e-3*max(a, b) }

// Goal: two series of one picture never look the same, but a figure that a paper
// prints has the colour of ours.
func TestSeriesAreToldApart(t *testing.T) {
	l := looks([]Chart{{Series: []Series{{Name: "JRT"}, {Name: "JRT" + paperMark}, {Name: "infinitehbd-k2"}}}, {Series: []Series{{Name: "ideal"}, {Name: "JRT"}}}})
	if l["JRT"] != l["JRT"+paperMark] || l["JRT"] == l["ideal"] || l["infinitehbd-k2"].colour != "#d55e00" {
		t.Errorf("%v", l)
	}
}

// Goal: a number on a chart is in groups of three digits, however long it is.
// Method: numbers beside each new group, signs, halves, and what is no number.
func TestNumbersAreInGroups(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 9999: "9999", -9999: "-9999", 10000: "10 000", -10000: "-10 000", 100000: "100 000", -123456: "-123 456", 999999: "999 999", 1e6: "1 000 000",
		-5e6: "-5 000 000", 123456000: "123 456 000", 999999999: "999 999 999", 1e9: "1 000 000 000", -2.5e9: "-2 500 000 000", 1e12: "1 000 000 000 000",
		1e19: "10 000 000 000 000 000 000", 12345.5: "12 345.5", 0.123456789: "0.123456789", 9999.9999999: "10 000", math.Inf(1): "+Inf", math.Inf(-1): "-Inf",
	} {
		if got := plainDigits(v, 9); got != strings.ReplaceAll(want, " ", "\u2009") {
			t.Errorf("%g: %q, want %q", v, got, want)
		}
	}
}
