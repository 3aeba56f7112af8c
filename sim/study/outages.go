package study

import (
	"cmp"
	"slices"
	"time"

	"ringlight/mzi/detmath"
	"ringlight/sim/flow"
	"ringlight/sim/trace"
)

// outages is which servers are out of order, from any day of a trace on and
// around it, endlessly. Several traces over each other are one more frequent
// one; that of fewer is part of that of more.
type outages struct {
	events []turn // of one round
	span   time.Duration
	at     int
	round  time.Duration // when the round under way began
	open   []int         // of a server: traces by which it is out
}

// turn is the beginning or the end of an outage.
type turn struct {
	at     time.Duration
	server int
	begins bool
}

func newOutages(t *trace.Trace, s Size, traces int, seed uint64) (*outages, error) {
	o := &outages{span: t.Span, open: make([]int, s.Nodes)}
	for n := range traces {
		own := detmath.Hash(seed, streamOutages, uint64(n))
		laid, err := Layout{Seed: own}.lay(t, s)
		if err != nil {
			return nil, err
		}
		since := slices.Repeat([]time.Duration{-1}, s.Nodes)
		shift := t.Span - time.Duration(own%uint64(t.Span))
		for _, f := range laid.flips {
			if since[f.node] < 0 {
				since[f.node] = f.at
				continue
			}
			o.add(f.node, since[f.node], f.at, shift)
			since[f.node] = -1
		}
		for node, from := range since {
			if from >= 0 {
				o.add(node, from, t.Span, shift)
			}
		}
	}
	slices.SortStableFunc(o.events, func(a, b turn) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.server, b.server)) })
	return o, nil
}

// add puts in an outage, shifted around the span.
func (o *outages) add(server int, from, to, shift time.Duration) {
	put := func(from, to time.Duration) {
		if from < to {
			o.events = append(o.events, turn{from, server, true}, turn{to, server, false})
		}
	}
	from, to = from+shift, to+shift
	switch {
	case from >= o.span:
		put(from-o.span, to-o.span)
	case to > o.span:
		put(from, o.span)
		put(0, to-o.span)
	default:
		put(from, to)
	}
}

// next is when something happens next.
func (o *outages) next() time.Duration {
	if len(o.events) == 0 {
		return flow.Never
	}
	return o.round + o.events[o.at].at
}

// until goes on to a time. It gives the servers that are out now and were not
// before, and those that are in order again, each in the order of events.
func (o *outages) until(now time.Duration) (out, back []int) {
	var touched []int
	was := map[int]bool{}
	for o.next() <= now {
		e := o.events[o.at]
		if o.at++; o.at == len(o.events) {
			o.at, o.round = 0, o.round+o.span
		}
		if _, known := was[e.server]; !known {
			was[e.server] = o.open[e.server] > 0
			touched = append(touched, e.server)
		}
		if o.open[e.server]--; e.begins {
			o.open[e.server] += 2
		}
	}
	for _, s := range touched {
		switch is := o.open[s] > 0; {
		case is && !was[s]:
			out = append(out, s)
		case !is && was[s]:
			back = append(back, s)
		}
	}
	return out, back
}
