package ring

import (
	"fmt"
	"slices"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

// Order is the HBD order of a fabric and how far its fibres span.
type Order struct {
	Nodes  int
	K      int
	Wrap   bool // the last node is a neighbour of the first
	Shared bool // a node reaches -K and +K over one bundle: not both at once
	Lacks  uint // bit h: no fibre spans h hops, below K
}

// OrderOf reads the order of a fabric.
func OrderOf(f *fabric.Fabric) Order {
	return Order{Nodes: f.Nodes, K: f.K, Wrap: f.Topology == fabric.Ring, Shared: f.SharedBundle(), Lacks: LacksOf(f.Reach())}
}

// LacksOf are the hops below the last of spans that are not among them.
func LacksOf(spans fabric.Spans) (lacks uint) {
	for hops := 1; len(spans) > 0 && hops < spans[len(spans)-1]; hops++ { // a core may be without nodes
		if !slices.Contains(spans, hops) {
			lacks |= 1 << hops
		}
	}
	return lacks
}

// Spans reports whether fibres join nodes so many hops apart.
func (o Order) Spans(hops int) bool { return hops > 0 && hops <= o.K && o.Lacks>>hops&1 == 0 }

// Ahead is the number of hops from a forward to b, 0 when there is no way
// forward.
func (o Order) Ahead(a, b proto.NodeID) int {
	d := int(b) - int(a)
	if d < 0 && o.Wrap {
		d += o.Nodes
	}
	return max(0, d)
}

// pinched reports whether a node with these gaps to its left and right would
// need one bundle twice.
func (o Order) pinched(left, right int) bool { return o.Shared && left == o.K && right == o.K }

// Check says what is wrong with a group, if anything.
func (o Order) Check(group []proto.NodeID) error {
	span, before := 0, 0
	for i, n := range group {
		if int(n) >= o.Nodes {
			return fmt.Errorf("node %d: want below %d", n, o.Nodes)
		}
		if i == 0 {
			continue
		}
		gap := o.Ahead(group[i-1], n)
		if !o.Spans(gap) {
			return fmt.Errorf("node %d after node %d: want 1 to %d hops ahead, as fibres span", n, group[i-1], o.K)
		}
		if o.pinched(before, gap) {
			return fmt.Errorf("node %d needs -%d and +%d at once, which share a bundle", group[i-1], o.K, o.K)
		}
		before = gap
		if span += gap; span >= o.Nodes {
			return fmt.Errorf("node %d: the group runs into its own start", n)
		}
	}
	return nil
}

// A component is a run of usable nodes, each at most K hops from the next. A
// closed one, on a ring, has no end: its last reaches its first.
type component struct {
	nodes  []proto.NodeID
	closed bool
}

// components cuts the order wherever no fibre joins two usable nodes that follow
// one another: at least K others stand between them, or a number that none spans. On a ring the first component starts after such a gap: [IHBD] Alg. 2
// as printed starts at node 0, tears the component that passes the last index
// and yields groups with gaps over K.
func components(o Order, usable func(proto.NodeID) bool) []component {
	var all []proto.NodeID
	for n := range o.Nodes {
		if usable(proto.NodeID(n)) {
			all = append(all, proto.NodeID(n))
		}
	}
	if len(all) == 0 {
		return nil
	}
	first := 0
	if o.Wrap {
		first = -1
		for i := range all {
			if !o.Spans(o.gapBefore(all, i)) {
				first = i
				break
			}
		}
		if first < 0 {
			return []component{{nodes: all, closed: len(all) > 1}}
		}
		all = append(append(make([]proto.NodeID, 0, len(all)), all[first:]...), all[:first]...)
	}
	var out []component
	start := 0
	for i := 1; i <= len(all); i++ {
		if i == len(all) || !o.Spans(o.Ahead(all[i-1], all[i])) {
			out = append(out, component{nodes: all[start:i:i]})
			start = i
		}
	}
	return out
}

// gapBefore is the way from the usable node before all[i], round the ring, to
// all[i]; the whole ring when all[i] is alone.
func (o Order) gapBefore(all []proto.NodeID, i int) int {
	if len(all) == 1 {
		return o.Nodes
	}
	return o.Ahead(all[(i+len(all)-1)%len(all)], all[i])
}
