package sim

import (
	"fmt"
	"time"
)

// Latency is what a call into the operating system costs: two points of its
// distribution, whose tail then ends at 1.25 times the second, or a measured
// table, whose tail is its own.
type Latency struct {
	P50, P99 time.Duration
	table    []Quantile
}

// Quantile says that this share of all calls take no longer than so many
// microseconds.
type Quantile struct{ Share, Micros float64 }

// Costs are what the virtual clock is charged.
type Costs struct {
	Source    string        // where the figures come from
	Interrupt Latency       // from an input line's edge to user space
	I2CCall   Latency       // before the bits of an I2C operation
	SPICall   Latency       // before the bits of an SPI operation
	SPIFrame  time.Duration // chip select between two frames
	// Decide is what a decision costs an agent that an edge woke: who steps
	// the agent submits the work that it puts out this much later.
	Decide time.Duration
}

// DefaultCosts are those of the default board. chosen: docs/board.md.
func DefaultCosts() Costs {
	return Costs{
		Source:    "chosen, docs/board.md: p50 and p99, no call beyond 1.25 times the p99",
		Interrupt: Latency{P50: 25 * time.Microsecond, P99: 60 * time.Microsecond},
		I2CCall:   Latency{P50: 18 * time.Microsecond, P99: 45 * time.Microsecond},
		SPICall:   Latency{P50: 20 * time.Microsecond, P99: 50 * time.Microsecond},
		SPIFrame:  100 * time.Nanosecond,
		Decide:    8 * time.Microsecond,
	}
}

// CostTable is what was measured, as a file has it: of each kind of call the
// least, quantiles and the most, as pairs of share and microseconds, straight
// lines between. What is left out is as in DefaultCosts.
type CostTable struct {
	Source    string       `json:"source"`
	Interrupt [][2]float64 `json:"interrupt_us"`
	I2CCall   [][2]float64 `json:"i2c_call_us"`
	SPICall   [][2]float64 `json:"spi_call_us"`
	Decide    *float64     `json:"decide_us"`
}

// mostMicros bounds a latency. chosen: beyond it nothing is a call any more.
const mostMicros = 10e6

// Costs are those of the table; bad is told what is wrong with it.
func (t *CostTable) Costs(bad func(key, have, want string)) Costs {
	c := DefaultCosts()
	if c.Source = t.Source; t.Source == "" {
		bad("source", "empty", "who measured it, where and how")
	}
	for _, l := range []struct {
		key  string
		rows [][2]float64
		to   *Latency
	}{{"interrupt_us", t.Interrupt, &c.Interrupt}, {"i2c_call_us", t.I2CCall, &c.I2CCall}, {"spi_call_us", t.SPICall, &c.SPICall}} {
		for i, r := range l.rows {
			key := fmt.Sprintf("%s[%d]", l.key, i)
			switch {
			case r[1] < 0 || r[1] > mostMicros:
				bad(key, fmt.Sprintf("%v us", r[1]), "0 to 10000000")
			case i == 0 && r[0] != 0 || i == len(l.rows)-1 && r[0] != 1:
				bad(key, fmt.Sprintf("share %v", r[0]), "the first 0, the last 1")
			case i > 0 && (r[0] <= l.rows[i-1][0] || r[1] < l.rows[i-1][1]):
				bad(key, fmt.Sprint(r), "more than the one before")
			}
			l.to.table = append(l.to.table, Quantile{r[0], r[1]})
		}
	}
	if t.Decide != nil {
		if *t.Decide < 0 || *t.Decide > mostMicros {
			bad("decide_us", fmt.Sprint(*t.Decide), "0 to 10000000")
		}
		c.Decide = micros(*t.Decide)
	}
	return c
}

func micros(us float64) time.Duration { return time.Duration(us * float64(time.Microsecond)) }

// at is the latency that a share of all do not exceed.
func (l *Latency) at(u float64) time.Duration {
	if n := len(l.table); n > 0 {
		i := 1
		for i < n-1 && l.table[i].Share < u {
			i++
		}
		a, b := l.table[i-1], l.table[i]
		part := (u - a.Share) / (b.Share - a.Share)
		return micros(a.Micros + float64((b.Micros-a.Micros)*part))
	}
	// As many below P50 as above, 1 in 100 over P99, straight lines between, never
	// under 0.6 P50 nor over 1.25 P99.
	lo, mid, high, top := 0.6*float64(l.P50), float64(l.P50), float64(l.P99), 1.25*float64(l.P99)
	var t float64
	switch {
	case u < 0.5:
		t = lo + float64((mid-lo)*(u/0.5))
	case u < 0.99:
		// Bent, so that most of the upper half stays near the middle.
		x := (u - 0.5) / 0.49
		t = mid + float64((high-mid)*float64(float64(x*x)*x))
	default:
		t = high + float64((top-high)*((u-0.99)/0.01))
	}
	return time.Duration(t)
}
