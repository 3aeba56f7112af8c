package ring

import "ringlight/proto"

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

// Position is where in the HBD order a node stands.
func (d Deployment) Position(n proto.NodeID) int {
	return int(n)%d.PerToR*d.ToRs() + int(n)/d.PerToR
}

// ToR is the switch above a node.
func (d Deployment) ToR(n proto.NodeID) int { return int(n) / d.PerToR }
