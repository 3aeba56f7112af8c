package view

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"ringlight/planner"
	"ringlight/planner/hbd"
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
	n                int
	first, last      float64 // days
	meanT, meanY     float64
	varT, varY, both float64 // sums of squares about the means
	was              float64
}

func (l *trend) add(t, y float64) {
	if l.n > 0 && math.Abs(y-l.was) > aStep {
		*l = trend{}
	}
	if l.n == 0 {
		l.first = t
	}
	l.n++
	dt, dy := t-l.meanT, y-l.meanY
	l.meanT += dt / float64(l.n)
	l.meanY += dy / float64(l.n)
	l.varT += dt * (t - l.meanT)
	l.varY += dy * (y - l.meanY)
	l.both += dt * (y - l.meanY)
	l.was, l.last = y, t
}

// fall is by how many milli-dB a day the margin shrinks, 0: not for sure.
func (l *trend) fall() float64 {
	if l.n < leastLooks || l.last-l.first < leastSpan.Hours()/24 || l.varT == 0 {
		return 0
	}
	slope := l.both / l.varT
	rest := max(0, l.varY-slope*l.both) / float64(l.n-2)
	if -slope <= surely*math.Sqrt(rest/l.varT) {
		return 0
	}
	return -slope
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
	for at := range x.lines { // any order: nodes that an edit took away
		if at>>8 >= uint64(len(nodes)) {
			delete(x.lines, at)
		}
	}
	t := now.Sub(x.begun).Hours() / 24
	for i := range nodes {
		for b := range nodes[i].Margins {
			if nodes[i].Known&(1<<b) == 0 {
				continue
			}
			at := uint64(nodes[i].Node)<<8 | uint64(b)
			if x.lines[at] == nil {
				x.lines[at] = &trend{}
			}
			x.lines[at].add(t, float64(nodes[i].Margins[b]))
		}
	}
	return nil
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
	tick := time.NewTicker(trendPeriod)
	defer tick.Stop()
	for v.trends.look(ctx, v.source, v.hub.now()) == nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
