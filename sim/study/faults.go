package study

import (
	"cmp"
	"slices"
	"time"

	"ringlight/mzi/detmath"
	"ringlight/sim/flow"
	"ringlight/sim/trace"
)

// Streams of the seed.
const (
	streamHalves = iota + 1
	streamIID
	streamCrossTor
	streamBounds
	streamRewire
	streamOutages
	streamRacks
)

// halfFails is the probability that one 4-GPU half of an 8-GPU server is
// faulty when the server is ([IHBD] App. A).
const halfFails = 0.5038

// serverGPUs of the servers of the public trace.
const serverGPUs = 8

// flipAt is a node that goes out or comes back.
type flipAt struct {
	at   time.Duration
	node int
	out  bool
}

// Layout says how the trace's servers become nodes.
type Layout struct {
	// Adjacent puts the two 4-GPU halves of a server side by side in HBD
	// order, as the paper does; otherwise they are half a cluster apart, so
	// that a fault of both is two single gaps and not a double one. Other
	// architectures see whole servers in any case.
	Adjacent bool
	Seed     uint64
	// Repair replaces every repair time, if it is not zero.
	Repair time.Duration
}

// lay puts a trace over the nodes of a cluster: servers are a seeded shuffle
// of the trace's, and beyond 400 further copies shifted in time. A server with
// several open faults is out until the last ends, and each of its halves is
// for the whole of that outage or not at all.
func (l Layout) lay(t *trace.Trace, s Size) (schedule, error) {
	if s.GPUsPerNode != serverGPUs && s.GPUsPerNode != serverGPUs/2 {
		return schedule{}, invalid("gpus", "4 or 8 with a trace of 8-GPU servers", "%d is neither a server nor half of one", s.GPUsPerNode)
	}
	halves := serverGPUs / s.GPUsPerNode
	servers := (s.Nodes + halves - 1) / halves
	if l.Repair > 0 {
		t = fixedRepair(t, l.Repair)
	}
	r := detmath.Stream(l.Seed, streamHalves)
	open := make([]int, servers)
	hit := make([][serverGPUs / 4]bool, servers) // drawn once for each outage of a server
	var out []flipAt
	for _, e := range t.Nodes(servers, l.Seed, t.Span+1) {
		was := open[e.Node] > 0
		if e.Start {
			open[e.Node]++
		} else {
			open[e.Node]--
		}
		if was == (open[e.Node] > 0) {
			continue
		}
		for i := range halves {
			if !was {
				hit[e.Node][i] = halves == 1 || r.Chance(halfFails)
			}
			// An odd cluster lacks the second half of its last server.
			if node := e.Node*halves + i; hit[e.Node][i] && node < s.Nodes {
				out = append(out, flipAt{e.At, node, !was})
			}
		}
	}
	return schedule{out, t.Span}, nil
}

// places gives every node its place in HBD order: first all first halves, then
// all second ones, or the nodes' own order.
func (l Layout) places(s Size) []int {
	out := packed(s.Nodes)
	if l.Adjacent || s.GPUsPerNode == serverGPUs {
		return out
	}
	return each(out, func(n int) int { return n/2 + n%2*((s.Nodes+1)/2) })
}

// fixedRepair lets every fault last equally long. One that would end after the
// trace stays to its end.
func fixedRepair(t *trace.Trace, repair time.Duration) *trace.Trace {
	out := &trace.Trace{Servers: t.Servers, Span: t.Span}
	for _, e := range t.Events {
		if !e.Start {
			continue
		}
		out.Events = append(out.Events, e)
		if e.At+repair <= t.Span {
			e.At, e.Start = e.At+repair, false
			out.Events = append(out.Events, e)
		}
	}
	slices.SortStableFunc(out.Events, func(a, b trace.Event) int { return cmp.Compare(a.At, b.At) })
	return out
}

// outages is which servers are out of order, from any day of a trace on and
// around it, endlessly. Several traces over each other are one more frequent
// one; that of fewer is part of that of more.
type outages struct {
	events []flipAt // of one round; nodes are servers
	span   time.Duration
	at     int
	round  time.Duration // when the round under way began
	open   []int         // of a server: traces by which it is out
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
	slices.SortStableFunc(o.events, func(a, b flipAt) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.node, b.node)) })
	return o, nil
}

// add puts in an outage, shifted around the span.
func (o *outages) add(server int, from, to, shift time.Duration) {
	put := func(from, to time.Duration) {
		if from < to {
			o.events = append(o.events, flipAt{from, server, true}, flipAt{to, server, false})
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
	was := slices.Clone(o.open)
	for o.next() <= now {
		e := o.events[o.at]
		if o.at++; o.at == len(o.events) {
			o.at, o.round = 0, o.round+o.span
		}
		touched = append(touched, e.node)
		if o.open[e.node]--; e.out {
			o.open[e.node] += 2
		}
	}
	for _, s := range once(touched) {
		switch is := o.open[s] > 0; {
		case is && was[s] == 0:
			out = append(out, s)
		case !is && was[s] > 0:
			back = append(back, s)
		}
	}
	return out, back
}
