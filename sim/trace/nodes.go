package trace

import (
	"cmp"
	"slices"
	"time"

	"ringlight/mzi/detmath"
)

// NodeEvent is a fault that starts or ends on a node.
type NodeEvent struct {
	At    time.Duration
	Node  int
	Start bool
	Fault Fault
	// Before and After are what the node suffers from, over all its open
	// faults: the worst of them.
	Before, After Effect
}

// interval is one fault of one server.
type interval struct {
	server   int
	from, to time.Duration
	ended    bool
	fault    Fault
}

// Nodes lays the trace over a fabric of n nodes: node i is server number i of
// a seeded shuffle of all servers, and where there are more nodes than
// servers, further copies of the trace are shifted in time by equal parts of
// its span, going round at its end. The events before limit are returned in
// order of time, at one instant in order of node, and of one node as the trace
// has them, so that a fault without length starts before it ends.
func (t *Trace) Nodes(n int, seed uint64, limit time.Duration) []NodeEvent {
	copies := (n + t.Servers - 1) / t.Servers
	faults := t.intervals()
	var out []NodeEvent
	for c := range copies {
		order := t.shuffle(seed, c)
		shift := t.Span / time.Duration(copies) * time.Duration(c)
		for _, f := range faults {
			node := c*t.Servers + order[f.server]
			if node >= n {
				continue
			}
			for _, g := range f.rotate(shift, t.Span) {
				out = append(out, NodeEvent{At: g.from, Node: node, Start: true, Fault: f.fault})
				if g.ended {
					out = append(out, NodeEvent{At: g.to, Node: node, Fault: f.fault})
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b NodeEvent) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Node, b.Node))
	})
	cut, _ := slices.BinarySearchFunc(out, limit, func(e NodeEvent, at time.Duration) int { return cmp.Compare(e.At, at) })
	out = out[:cut]
	Number(out, n)
	return out
}

// Number fills in Before and After: overlapping faults of a node are a count.
func Number(events []NodeEvent, n int) {
	open := make([][NodeDark + 1]int, n)
	worst := func(node int) Effect {
		for e := NodeDark; e > None; e-- {
			if open[node][e] > 0 {
				return e
			}
		}
		return None
	}
	for i := range events {
		e := &events[i]
		e.Before = worst(e.Node)
		if e.Start {
			open[e.Node][e.Fault.Effect()]++
		} else {
			open[e.Node][e.Fault.Effect()]--
		}
		e.After = worst(e.Node)
	}
}

// shuffle returns the place of every server in copy c.
func (t *Trace) shuffle(seed uint64, c int) []int {
	r := detmath.Stream(seed, streamShuffle+uint64(c))
	order := make([]int, t.Servers)
	for i := range order {
		order[i] = i
	}
	r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	return order
}

// intervals pairs every start with its end: the first open fault of the same
// kind on the server. Without an end a fault lasts to the end of the trace.
func (t *Trace) intervals() []interval {
	type key struct {
		server int
		fault  Fault
	}
	var out []interval
	open := map[key][]int{}
	for _, e := range t.Events {
		k := key{e.Server, e.Fault}
		if e.Start {
			open[k] = append(open[k], len(out))
			out = append(out, interval{server: e.Server, from: e.At, to: t.Span, fault: e.Fault})
			continue
		}
		if q := open[k]; len(q) > 0 {
			out[q[0]].to, out[q[0]].ended = e.At, true
			open[k] = q[1:]
		}
	}
	return out
}

// rotate shifts an interval round a span; one that crosses the end becomes
// two, the second of which is there from the beginning.
func (f interval) rotate(shift, span time.Duration) []interval {
	if shift == 0 {
		return []interval{f}
	}
	g := f
	g.from, g.to = f.from+shift, f.to+shift
	switch {
	case g.from >= span:
		g.from, g.to, g.ended = g.from-span, g.to-span, true
		return []interval{g}
	case g.to > span:
		head, tail := g, g
		head.to, head.ended = span, false
		tail.from, tail.to, tail.ended = 0, g.to-span, true
		return []interval{tail, head}
	}
	g.ended = true
	return []interval{g}
}

// MeanRepair is the mean length of the faults that end; 0: none does.
func (t *Trace) MeanRepair() time.Duration {
	var sum, ended time.Duration
	for _, f := range t.intervals() {
		if f.ended {
			sum += f.to - f.from
			ended++
		}
	}
	return sum / max(1, ended)
}
