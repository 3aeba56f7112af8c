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

// Look takes what has changed since the last Look, all of it there is when all.
// There is one who looks at a planner.
func Look(p *Planner, all bool) Snapshot {
	g := Snapshot{Fabric: p.Fabric, State: p.state.String(), Serving: p.state == serving, Linked: p.j.LinkUp, Term: p.j.Term}
	g.Last = Last(p)
	g.Cells, g.Strips = p.Rings.Placed.TakeChanges(all)
	if p.Core != nil {
		t := p.Core.Table
		g.Switches[0] = len(t.Devices)
		for i := range t.Devices {
			if t.Devices[i].Online() {
				g.Switches[1]++
			}
		}
	}
	return g
}

// Last is the number of the journal's newest entry, 0: none.
func Last(p *Planner) uint64 {
	if n := p.j.Len(); n > 0 {
		return p.j.At(n - 1).Seq
	}
	return 0
}

// Entries copies at most n entries of the journal from a number on.
func Entries(p *Planner, from uint64, n int) []Entry { return p.j.From(from, n) }
