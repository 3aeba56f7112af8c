package view

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"ringlight/planner"
	"ringlight/planner/hbd"
	"ringlight/planner/wear"
	"ringlight/proto"
)

const (
	// trendPeriod is between two looks at all margins. chosen: light ages over
	// weeks; a minute finds what warms up.
	trendPeriod = time.Minute
	// A line is drawn through no less: chosen, so that one round of noise is no trend.
	leastLooks = 10
	leastSpan  = 10 * time.Minute
	// surely: the line falls by so many of its standard errors. chosen.
	surely = 3
	// aStep is no trend: the bundle was calibrated anew, or works on another path.
	aStep = 300 // milli-dB, chosen: beyond what a reading scatters
	// farOff is when nobody cares yet. chosen.
	farOff = 365.0 // days
)

// trends follow the margin of every bundle, by least squares.
type trends struct {
	mu    sync.Mutex
	lines map[uint64]*trend // by node and bundle
	nodes []hbd.NodeCensus
	begun time.Time
}

// trend is a line through margins over days.
type trend struct {
	wear.Fit
	first, last, was float64
}

func (l *trend) add(t, y, step float64) {
	if l.W > 0 && math.Abs(y-l.was) > step {
		*l = trend{}
	}
	if l.W == 0 {
		l.first = t
	}
	l.Add(t, y)
	l.was, l.last = y, t
}

// fall is by how many milli-dB a day the margin shrinks, 0: not for sure.
func (l *trend) fall() float64 {
	if l.W < leastLooks || l.last-l.first < leastSpan.Hours()/24 {
		return 0
	}
	return max(0, -l.Slope(surely))
}

type marginJSON struct {
	Node     proto.NodeID `json:"node"`
	Bundle   int          `json:"bundle"`
	Margin   int32        `json:"margin_mdb"`
	Fall     *float64     `json:"fall_mdb_per_day"` // null: it does not fall for sure
	DaysLeft *float64     `json:"days_left"`
}

// look reads the present margins.
func (x *trends) look(ctx context.Context, s Source, now time.Time) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	var nodes []hbd.NodeCensus
	if err := s.Read(ctx, func(p *planner.Planner) { nodes = planner.NodesOf(p, x.nodes[:0]) }); err != nil {
		return err
	}
	if x.nodes = nodes; x.lines == nil {
		x.lines, x.begun = map[uint64]*trend{}, now
	}
	maps.DeleteFunc(x.lines, func(at uint64, _ *trend) bool { return at>>8 >= uint64(len(nodes)) }) // nodes that an edit took away
	t := now.Sub(x.begun).Hours() / 24
	for i := range nodes {
		for b := range nodes[i].Margins {
			if nodes[i].Known&(1<<b) != 0 {
				at := uint64(nodes[i].Node)<<8 | uint64(b)
				if x.lines[at] == nil {
					x.lines[at] = &trend{}
				}
				x.lines[at].add(t, float64(nodes[i].Margins[b]), aStep)
			}
		}
	}
	return nil
}

// ageingJSON is a wear.Ageing.
type ageingJSON struct {
	Node     proto.NodeID   `json:"node"`
	Bundle   proto.BundleID `json:"bundle"`
	Module   uint8          `json:"module"`
	What     string         `json:"what"` // laser_bias, microampere; heater_power, microwatt
	Is       float64        `json:"is"`
	Limit    float64        `json:"limit"`
	Change   float64        `json:"change_per_day"`
	DaysLeft float64        `json:"days_left"`
}

func ageing(all []wear.Ageing) []ageingJSON {
	out := []ageingJSON{}
	for _, a := range all[:min(len(all), maxRisks)] {
		out = append(out, ageingJSON{a.Node, a.Bundle, a.Module, a.What(), a.Is, a.Limit, a.Change, a.Days})
	}
	return out
}

// since when margins are followed, in milliseconds; 0: not yet.
func (x *trends) since() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.lines == nil {
		return 0
	}
	return x.begun.UnixMilli()
}

// worst are the margins that end first, then the smallest.
func (x *trends) worst(n int) []marginJSON {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := []marginJSON{}
	for i := range x.nodes {
		c := &x.nodes[i]
		for b := range c.Margins {
			if c.Known&(1<<b) == 0 {
				continue
			}
			m := marginJSON{Node: c.Node, Bundle: b, Margin: int32(c.Margins[b])}
			if fall := x.lines[uint64(c.Node)<<8|uint64(b)].fall(); fall > 0 {
				if days := max(0, float64(m.Margin)/fall); days < farOff {
					m.Fall, m.DaysLeft = &fall, &days
				}
			}
			out = append(out, m)
		}
	}
	left := func(m marginJSON) float64 {
		if m.DaysLeft == nil {
			return farOff
		}
		return *m.DaysLeft
	}
	slices.SortStableFunc(out, func(a, b marginJSON) int {
		return cmp.Or(cmp.Compare(left(a), left(b)), cmp.Compare(a.Margin, b.Margin))
	})
	return out[:min(n, len(out))]
}

// Follow looks at the margins of all bundles until ctx ends, so that a page
// that is opened has something to say.
func (v *View) Follow(ctx context.Context) {
	tick := time.Tick(trendPeriod)
	for v.trends.look(ctx, v.source, v.hub.now()) == nil {
		select {
		case <-tick:
		case <-ctx.Done():
			return
		}
	}
}
