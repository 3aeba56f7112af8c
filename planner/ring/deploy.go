package ring

import (
	"slices"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

// Deployment says in which order the fibres join nodes that are numbered as
// the data centre network sees them ([IHBD] Alg. 3): with PerToR nodes under
// each ToR switch, the first nodes of all ToRs form the first sub-line, their
// second nodes the next, and so on, end to end.
//
// The same order keeps siblings apart: number the halves of server i as nodes
// 2i and 2i+1 and deploy with two per "ToR", then a server that fails leaves
// two single gaps far from each other, not one double gap. With K = 2 that is
// the difference between stepping over and losing the line.
type Deployment struct {
	Nodes  int // a multiple of PerToR
	PerToR int // p of the paper; 1: HBD order is node order
}

// ToRs is the number of ToR switches, which is the length of a sub-line.
func (d Deployment) ToRs() int { return d.Nodes / d.PerToR }

// Node is the node at a position of the HBD order.
func (d Deployment) Node(position int) proto.NodeID {
	tors := d.ToRs()
	return proto.NodeID(position/tors + position%tors*d.PerToR)
}

// ToR is the switch above a node.
func (d Deployment) ToR(n proto.NodeID) int { return int(n) / d.PerToR }

// Racks says by position of the HBD order under which ToR switch a node stands,
// and of each ToR in which aggregation domain it is. ToRs may have any numbers of
// nodes.
type Racks struct {
	ToR    []int32 // by position
	Domain []int32 // by ToR
}

// RacksOf reads the racks of a fabric; nil: it does not say.
func RacksOf(f *fabric.Fabric) *Racks {
	if !f.KnowsToRs() {
		return nil
	}
	r := &Racks{ToR: make([]int32, f.Nodes)}
	for n := range r.ToR {
		r.ToR[n] = int32(f.ToR(proto.NodeID(n)))
	}
	for tor := range f.ToRCount() {
		r.Domain = append(r.Domain, int32(f.ToRDomain(tor)))
	}
	return r
}

// racks of a deployment, with so many nodes in a domain.
func (d Deployment) racks(perDomain int) *Racks {
	r := &Racks{ToR: make([]int32, d.Nodes), Domain: make([]int32, d.ToRs())}
	for at := range r.ToR {
		r.ToR[at] = int32(at % d.ToRs())
	}
	for tor := range r.Domain {
		r.Domain[tor] = int32(tor / (perDomain / d.PerToR))
	}
	return r
}

// members are the positions under each ToR, rising.
func (r *Racks) members() [][]int32 {
	out := make([][]int32, len(r.Domain))
	for at, tor := range r.ToR {
		out[tor] = append(out[tor], int32(at))
	}
	return out
}

// zone is a row of ToRs through which sub-lines run side by side: the fibres lead
// from every node of one to a node of the next, and none has nodes beside those.
type zone struct {
	tors []int32
	base []int32 // by sub-line: the position of its node under the first ToR
}

// zones finds all rows of ToRs, in HBD order. They end where a domain does, unless
// domains are open.
func (r *Racks) zones(open bool) (out []zone) {
	under := r.members()
	follows := func(a, b int32) bool {
		return (open || r.Domain[a] == r.Domain[b]) && slices.EqualFunc(under[a], under[b], func(x, y int32) bool { return y == x+1 })
	}
	next := func(tor int32) int32 { // -1: it is the last of its row
		if at := int(under[tor][0]) + 1; at < len(r.ToR) && follows(tor, r.ToR[at]) {
			return r.ToR[at]
		}
		return -1
	}
	seen := make([]bool, len(under))
	for at, tor := range r.ToR {
		if seen[tor] || at > 0 && follows(r.ToR[at-1], tor) {
			continue
		}
		z := zone{base: under[tor]}
		for ; tor >= 0 && !seen[tor]; tor = next(tor) {
			seen[tor] = true
			z.tors = append(z.tors, tor)
		}
		out = append(out, z)
	}
	return out
}

// pieces numbers the parts of sub-lines within zones, by position.
func (r *Racks) pieces(open bool) []int32 {
	out, piece := make([]int32, len(r.ToR)), int32(0)
	for _, z := range r.zones(open) {
		for _, base := range z.base {
			for t := range z.tors {
				out[int(base)+t] = piece
			}
			piece++
		}
	}
	return out
}

// even is the number of nodes under each ToR, 0: they differ.
func (r *Racks) even() int {
	under := r.members()
	if slices.ContainsFunc(under, func(at []int32) bool { return len(at) != len(under[0]) }) {
		return 0
	}
	return len(under[0])
}
