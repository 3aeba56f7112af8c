package study

import (
	"fmt"
	"math/bits"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/topo"
)

// All-to-all of a group over transceivers with backup fibres to n +- 2^i, which switch
// between its steps ([IHBD] sec 7), beside neighbours only, Bruck's algorithm and a switch;
// and with an AllReduce before it, as two dimensions of parallelism that share the fibres
// by time or have half of each bundle's modules each.

// ExchangeConfig is the comparison.
type ExchangeConfig struct {
	Groups  []int           `flag:"groups" usage:"nodes of a group, powers of two"`
	Ks      []int           `flag:"k" usage:"spans of fibres, to n +- 2^i for i below k"`
	Gbps    int             `flag:"gbps" usage:"bandwidth of a bundle, Gb/s"`
	Bytes   int             `flag:"bytes" usage:"from each node to each other"`
	Reduce  int             `flag:"reduce" usage:"bytes of the AllReduce beside which it is looked at"`
	Compute time.Duration   `flag:"compute" usage:"before the first step, nothing is sent"`
	Dark    []time.Duration `flag:"switching" usage:"for so long a transceiver is dark that switches"`
	Drawn
}

// DefaultExchange is bundles of eight modules at 800 Gb/s ([IHBD] sec 4.1).
func DefaultExchange() ExchangeConfig {
	return ExchangeConfig{Groups: []int{4, 8, 16, 32, 64}, Ks: []int{2, 3, 4}, Gbps: 6400, Bytes: 64 << 20, Reduce: 256 << 20, Compute: time.Millisecond,
		Dark: []time.Duration{0, 80 * time.Microsecond, time.Millisecond}}
}

// Validate checks the sizes.
func (c ExchangeConfig) Validate() error {
	spans := []span{{"gbps", c.Gbps, 1, 100_000}, {"bytes", c.Bytes, 1, 1 << 30}, {"reduce", c.Reduce, 1, 1 << 30}, {"compute, us", int(c.Compute.Microseconds()), 0, 10_000_000}}
	for _, g := range c.Groups {
		spans = append(spans, span{"groups", g, 4, 64})
		if g&(g-1) != 0 {
			return invalid("groups", "powers of two from 4 to 64", "%d is none: nodes exchange with those whose number differs in one bit", g)
		}
	}
	spans = append(spans, each(c.Ks, func(k int) span { return span{"k", k, 1, 4} })...)
	spans = append(spans, each(c.Dark, switching)...)
	if len(c.Groups) == 0 || len(c.Ks) == 0 || len(c.Dark) == 0 {
		return invalid("switching", "one group, one number of spans and one time of switching, or more", "none given")
	}
	return within(spans...)
}

// ExchangeRow is a group over some fibres; milliseconds.
type ExchangeRow struct {
	Group     int     `json:"group"`
	K         int     `json:"k"`
	DarkMS    float64 `json:"switching_ms" table:"2" column:"switching, ms"`
	RingMS    float64 `json:"neighbours_ms" table:"3" column:"neighbours"`
	StepMS    float64 `json:"exchange_ms" table:"3" column:"a bit a step"`
	Steps     int     `json:"exchange_steps" column:"steps"`
	BestMS    float64 `json:"planned_ms" table:"3" column:"as planned"`
	BestSteps int     `json:"planned_steps" column:"its steps"`
	WaitMS    float64 `json:"planned_dark_ms" table:"3" column:"of it dark"` // what is not hidden
	BruckMS   float64 `json:"bruck_ms" table:"3" column:"Bruck"`
	SwitchMS  float64 `json:"switch_ms" table:"3" column:"switch"`
	ByTimeMS  float64 `json:"with_allreduce_by_time_ms" table:"3" column:"with AllReduce, by time"`
	ByFibreMS float64 `json:"with_allreduce_by_fibres_ms" table:"3" column:"by fibres"`
}

// switching is the limit of a time in which links are dark.
func switching(d time.Duration) span {
	return span{"switching, us", int(d.Microseconds()), 0, 10_000_000}
}

// ExchangeResult is all of them.
type ExchangeResult struct {
	rowsOf[ExchangeRow]
	Report
}

// Exchanges compares, group by group.
func Exchanges(c ExchangeConfig) (*ExchangeResult, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	out := &ExchangeResult{}
	for i, g := range c.Groups {
		for j, k := range c.Ks {
			x, err := newExchange(c, g, k)
			if err != nil {
				return nil, err
			}
			out.Rows = append(out.Rows, each(c.Dark, x.row)...)
			c.report(i*len(c.Ks)+j+1, len(c.Groups)*len(c.Ks))
		}
	}
	out.Title = fmt.Sprintf("All-to-all of %d bytes from each node to each other, bundles of %d Gb/s, fibres to n +- 2^i", c.Bytes, c.Gbps)
	out.note("A node has K bundles, each with light on one of its two fibres, both directions at full rate. The fullest link is the time of a step; nodes pass on, and nothing waits for the passing.")
	out.note("Neighbours: fibres to n +- 1 alone, which never switch, both ways at once. A bit a step: Binary Exchange, where fibres that are too short are passed over. As planned: bits in one step where that is faster, to one step without switching.")
	out.note("Bruck: log2 p rounds of half of all blocks over one bundle, any to any, as [IHBD] counts it; a step of several bits has light on all K. Switch: p-1 blocks over all K bundles.")
	out.beside()
	out.note("Iterations follow one another; transceivers switch while their fibres carry nothing more, also in %v of compute before the first step. No step sends before all have switched.", c.Compute)
	out.note("With AllReduce of %d bytes on the line before it: by time, over the same fibres; by fibres, half of each bundle's modules for each.", c.Reduce)
	return out, nil
}

// beside holds the rows against what the paper says of its design.
func (r *ExchangeResult) beside() {
	most := 0
	for _, x := range r.Rows {
		if x.K == 2 && x.DarkMS == 0 && x.BestMS <= x.BruckMS*1.001 {
			most = max(most, x.Group)
		}
	}
	if most > 0 {
		r.compare("largest group as fast as Bruck's, K = 2, switching in no time", fmt.Sprint(most), "below 8", "bit by bit it is 4; with the two long bits in one step over the fibres to n +- 2 it is 8")
	}
}

// exchange is a group's all-to-all over its fibres.
type exchange struct {
	c       ExchangeConfig
	p, k    int
	fibres  []topo.Fibre
	line    []topo.Link
	reduce  []topo.Demand
	cuts    [][]int
	set     map[[2]int]*topo.Setting
	demands map[[2]int][]topo.Demand
	options map[string][]*topo.Option // by cut and what else they are of
}

func newExchange(c ExchangeConfig, p, k int) (*exchange, error) {
	spans := fabric.Powers(k)
	for spans[len(spans)-1] >= p { // a group so short has no use for them
		spans = spans[:len(spans)-1]
	}
	gpus := max(2, k)
	f, err := fabric.New(fabric.Params{Name: "group", Nodes: p, GPUsPerNode: gpus, TP: gpus, Spans: spans})
	if err != nil {
		return nil, err
	}
	x := &exchange{c: c, p: p, k: k, set: map[[2]int]*topo.Setting{}, demands: map[[2]int][]topo.Demand{}, options: map[string][]*topo.Option{}}
	for _, l := range f.AllFibres() {
		a, b := int(l.A.Node), int(l.B.Node)
		x.fibres = append(x.fibres, topo.Fibre{A: a, B: b, PortA: a*f.Bundles + int(l.A.Bundle), PortB: b*f.Bundles + int(l.B.Bundle), Hops: f.Distance(l.A.Node, l.B.Node)})
	}
	for n := range p - 1 {
		x.line = append(x.line, topo.Link{A: n, B: n + 1, Count: 1}, topo.Link{A: n + 1, B: n, Count: 1})
		share := 2 * int64(c.Reduce) / int64(p) * int64(p-1) // a ring that goes along the line and back
		x.reduce = append(x.reduce, topo.Demand{From: n, To: n + 1, Bytes: share}, topo.Demand{From: n + 1, To: n, Bytes: share})
	}
	x.line = inOrder(x.line)
	x.cuts = topo.Cuts(bits.Len(uint(p)) - 1)
	for from := range bits.Len(uint(p)) - 1 {
		for to := from + 1; 1<<to <= p; to++ {
			at := [2]int{from, to}
			x.demands[at] = topo.ExchangeStep(p, from, to, int64(c.Bytes))
			if x.set[at] = topo.Set(p, x.fibres, x.demands[at]); x.set[at] == nil {
				return nil, fmt.Errorf("no fibres of %v reach all of %d nodes", spans, p)
			}
		}
	}
	return x, nil
}

// plan is the time of all-to-all cut into steps, after an AllReduce with width of the
// modules where reduce says so.
func (x *exchange) plan(ends []int, dark time.Duration, gap int64, reduce bool, width int64) topo.Plan {
	var phases [][]topo.Demand
	var links [][]topo.Link
	if reduce {
		phases, links = append(phases, x.reduce), append(links, x.line)
	}
	from := 0
	for _, to := range ends {
		at := [2]int{from, to}
		phases, links = append(phases, x.demands[at]), append(links, x.set[at].Links())
		from = to
	}
	nanos := func(bytes int64) int64 { return nanosAt(x.c.Gbps, bytes*width) }
	key := fmt.Sprint(ends, reduce, width)
	if x.options[key] == nil {
		x.options[key] = each(append(links, x.line), func(l []topo.Link) *topo.Option { return topo.NewOption(x.p, l, phases, nanos) })
	}
	steps := each(packed(len(phases)), func(i int) topo.Step { return topo.Step{Phase: i} })
	steps[0].Gap = gap
	p, ok := topo.Schedule(steps, x.options[key], int64(dark))
	if !ok {
		panic("study: invariant: a line reaches all")
	}
	p.Nanos -= gap
	return p
}

// best is the shortest of all cuts.
func (x *exchange) best(dark time.Duration, gap int64, reduce bool, width int64) (best topo.Plan, steps int) {
	for i, ends := range x.cuts {
		if p := x.plan(ends, dark, gap, reduce, width); i == 0 || p.Nanos < best.Nanos {
			best, steps = p, len(ends)
		}
	}
	return best, steps
}

func (x *exchange) row(dark time.Duration) ExchangeRow {
	ms := func(nanos int64) float64 { return float64(nanos) / 1e6 }
	block := int64(x.c.Bytes)
	single := x.cuts[len(x.cuts)-1]
	all := topo.ExchangeStep(x.p, 0, len(single), block)
	gap := int64(x.c.Compute)
	r := ExchangeRow{Group: x.p, K: x.k, DarkMS: ms(int64(dark)), Steps: len(single)}
	r.RingMS = ms(nanosAt(x.c.Gbps, topo.Forward(x.p, x.line, all)))
	r.StepMS = ms(x.plan(single, dark, gap, false, 1).Nanos)
	best, steps := x.best(dark, gap, false, 1)
	r.BestMS, r.BestSteps, r.WaitMS = ms(best.Nanos), steps, ms(best.Dark)
	r.BruckMS = ms(nanosAt(x.c.Gbps, block*int64(x.p/2*len(single))))
	r.SwitchMS = ms(nanosAt(x.c.Gbps, (block*int64(x.p-1)+int64(x.k)-1)/int64(x.k)))
	both, _ := x.best(dark, gap, true, 1)
	r.ByTimeMS = ms(both.Nanos)
	alone := nanosAt(x.c.Gbps, 2*x.reduce[0].Bytes)
	half, _ := x.best(dark, gap+alone, false, 2)
	r.ByFibreMS = ms(half.Nanos + alone)
	return r
}

// Charts are the times by group, of the fastest switch.
func (r *ExchangeResult) Charts() []Chart {
	c := Chart{Title: "All-to-all, the first switching time", YLabel: "times the switch"}
	for _, x := range r.Rows {
		if x.DarkMS == r.Rows[0].DarkMS {
			name := fmt.Sprintf("%d nodes, K = %d", x.Group, x.K)
			c.bar(name, "neighbours", x.RingMS/x.SwitchMS)
			c.bar(name, "a bit a step", x.StepMS/x.SwitchMS)
			c.bar(name, "as planned", x.BestMS/x.SwitchMS)
			c.bar(name, "Bruck", x.BruckMS/x.SwitchMS)
		}
	}
	return []Chart{c}
}
