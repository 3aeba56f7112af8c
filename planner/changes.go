package planner

import (
	"ringlight/planner/fabric"
	"ringlight/planner/hbd"
	"ringlight/planner/journal"
	"ringlight/proto"
)

// What viewers draw; see package hbd.
type (
	Cell  = hbd.Cell
	Strip = hbd.Strip
	Entry = journal.Entry
)

// Snapshot is where the planner stands, and what has changed on the fabric.
type Snapshot struct {
	State    string // of the planner
	Serving  bool
	Linked   bool // to the broker
	Term     proto.Term
	Last     uint64 // number of the journal's newest entry, 0: none
	Cells    []Cell
	Strips   []Strip
	Switches [2]int         // there are, online
	Fabric   *fabric.Fabric // another one when it was edited
}

// FabricOf is what is planned for, until it is edited.
func FabricOf(p *Planner) *fabric.Fabric { return p.fab }

// Look takes what has changed since the last Look, all of it there is when all.
// There is one who looks at a planner.
func Look(p *Planner, all bool) Snapshot {
	g := Snapshot{Fabric: p.fab, State: p.state.String(), Serving: p.state == serving, Linked: p.j.LinkUp, Term: p.j.Term}
	g.Last = Last(p)
	g.Cells, g.Strips = p.rings.Placed.TakeChanges(all)
	if p.core != nil {
		t := p.core.Table()
		g.Switches[0] = len(t.Devices)
		for i := range t.Devices {
			if t.Devices[i].Online() {
				g.Switches[1]++
			}
		}
	}
	return g
}

// Changed are the nodes and rings that changed after a number, and which one it is now. Any
// may look; a planner that was made anew counts anew.
func Changed(p *Planner, after uint64) (nodes []proto.NodeID, rings []proto.RingID, now uint64) {
	return p.rings.Placed.Stamps.Since(after)
}

// ReadingsOf are the last that a node measured, of each bundle and sensor the worst.
func ReadingsOf(p *Planner, id proto.NodeID) []proto.Sample { return p.rings.Agenda.ReadingsOf(id) }

// LinkOf is a fibre of the fabric as it stands.
func LinkOf(p *Planner, x *fabric.Fibre) proto.LinkStatus { return p.rings.Evidence.LinkOf(x) }

// Last is the number of the journal's newest entry, 0: none.
func Last(p *Planner) uint64 {
	if n := p.j.Len(); n > 0 {
		return p.j.At(n - 1).Seq
	}
	return 0
}

// Entries copies at most n entries of the journal from a number on.
func Entries(p *Planner, from uint64, n int) []Entry { return p.j.From(from, n) }

// Shown are nodes with all that they report; those that the fabric has not are
// left out.
func Shown(p *Planner, ids ...proto.NodeID) []proto.NodeStatus {
	var r proto.OpReply
	for _, id := range ids {
		if p.rings.Table().Find(id) != nil {
			one := proto.OpReply{}
			p.rings.Placed.Answer(&proto.OpRequest{Noun: proto.NounNode, Node: id}, &one)
			r.Nodes = append(r.Nodes, one.Nodes...)
		}
	}
	return r.Nodes
}

// RingOf is a ring, nil when there is none.
func RingOf(p *Planner, id proto.RingID) *proto.RingStatus {
	var r proto.OpReply
	if p.rings.Placed.Answer(&proto.OpRequest{Noun: proto.NounRing, Ring: id}, &r); len(r.Rings) == 0 {
		return nil
	}
	return &r.Rings[0]
}
