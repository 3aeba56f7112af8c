package ring

import (
	"ringlight/planner/fabric"
	"ringlight/proto"
)

// ProblemOf is a placement on a fabric as it is wired: which nodes have -K and
// +K on one bundle is read from the fibres, node by node. Its size and number
// are for the caller, or PlaceSizes, to say.
func ProblemOf(f *fabric.Fabric, usable func(proto.NodeID) bool) Problem {
	p := Problem{Order: OrderOf(f), Usable: usable}
	if !p.Shared {
		return p
	}
	shares, all := make([]bool, f.Nodes), true
	for n := range shares {
		shares[n] = sharesBundle(f, n)
		all = all && shares[n]
	}
	if !all {
		p.Shares = func(n proto.NodeID) bool { return shares[n] }
	}
	return p
}

// sharesBundle reports whether a node reaches -K and +K over one bundle. One
// that lacks either cannot stand between them anyway.
func sharesBundle(f *fabric.Fabric, n int) bool {
	left, right := n-f.K, n+f.K
	if f.Topology == fabric.Ring {
		left, right = (left+f.Nodes)%f.Nodes, right%f.Nodes
	}
	if left < 0 || right >= f.Nodes {
		return false
	}
	a, okA := f.Link(proto.NodeID(n), proto.NodeID(left))
	b, okB := f.Link(proto.NodeID(n), proto.NodeID(right))
	return okA && okB && a.Local.Bundle == b.Local.Bundle
}
