package ring

import (
	"slices"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

// Group is one running ring.
type Group struct {
	ID     proto.RingID
	Nodes  []proto.NodeID // left to right
	Size   int            // nodes that it is to have; 0: as the last of Mend.Sizes
	Frozen bool           // must stay exactly as it is
	Owner  string         // the job that owns it, "": none; an owned one is mended where it is, and moves for no other job
}

// whole: it has all its nodes.
func (g Group) whole() bool { return len(g.Nodes) == g.Size }

// Mend is what a re-placement is to reach, and with what.
type Mend struct {
	Order
	Sizes  []Demand                // groups wanted in all, running ones included
	Usable func(proto.NodeID) bool // a member that is not usable is lost
	Free   func(proto.NodeID) bool // a node in no group that may join one
	// Own tells whether a node that is not free is kept for this pinned group, Bar
	// whether a free one must not join it; nil: none.
	Own, Bar func(proto.NodeID, proto.RingID) bool
	Spread   bool
	Broken   func(a, b proto.NodeID) bool // links that hold no group together; nil: none
	Frozen   func(proto.RingID) bool      // groups that must stay exactly as they are; nil: as they were put
	Racks    *Racks                       // groups that meet under ToRs stay together (along.go); nil: where nodes stand is not known
	Along    func(proto.RingID) bool      // somebody's group may move for that, too; nil: none

	// Moves is how many whole groups may move aside to make one more whole:
	// none, a few (at most 8 help), or Any.
	Moves int
	// AtOnce is how many may where Moves are few and outages have taught more (Patience).
	AtOnce int
	// Fetch is how many may move in one look beyond that, where one more needs
	// more than Moves: idle nodes come nearer to one another by it (fetch.go).
	Fetch int
}

// Any lets as many whole groups move aside for one as it takes.
const Any = -1

// maxMoves is how many whole groups move for one where few may. chosen: beyond
// that, more jobs are disturbed than one is worth.
const maxMoves = 8

// MovesOf is how many whole groups a fabric lets move aside for one.
func MovesOf(m fabric.Moves) int {
	switch m {
	case fabric.MoveNone:
		return 0
	case fabric.MoveAny:
		return Any
	}
	return maxMoves
}

// limit is how many whole groups may move for one.
func (m Mend) limit() int {
	switch {
	case m.Moves < 0:
		return far - 1
	case m.Moves == 0:
		return 0
	}
	return max(m.Moves, m.AtOnce)
}

// Result of a re-placement.
type Result struct {
	Groups  []Group // running ones in their order, then new ones with ID 0
	Touched []int   // indices into Groups that differ from before or are new
	Gone    []proto.RingID
	Dearer  int // whole groups that must move for one more, where that is more than Moves; 0: none can be
	Lost    int // groups that are not whole for that: as many as the idle nodes could be
	Fetched int // whole groups that moved for that
	Along   int // whole groups that moved to stay under the ToRs of others
}

// Replace mends running groups, all of them. A group with every member usable
// and no place to fill is not touched but to make another whole, and as few are
// as that takes. A group that lost members keeps as many of the rest as can
// stay one line, then takes free nodes that reach it by fibre, up to its size;
// the groups that lack fewest come first, so that most become whole. One that
// stays short is made whole where a row allows it (rows.go), and new groups are
// made up to what Sizes wants.
func (m Mend) Replace(running []Group) Result {
	t := NewTracker(m, running...)
	slots := make([]int32, len(running))
	for i, g := range running {
		slots[i] = t.slotOf[g.ID]
	}
	t.begin()
	t.mendAll(slots)
	t.improve(slots)
	var r Result
	for i, g := range running {
		now := t.slots[slots[i]].Group
		if now.Frozen = g.Frozen; len(now.Nodes) == 0 {
			r.Gone = append(r.Gone, g.ID)
			continue
		}
		if !slices.Equal(now.Nodes, g.Nodes) {
			r.Touched = append(r.Touched, len(r.Groups))
		}
		r.Groups = append(r.Groups, now)
	}
	for _, b := range t.trial {
		if s := &t.slots[b.slot]; s.ID == 0 && len(s.Nodes) > 0 {
			r.Touched = append(r.Touched, len(r.Groups))
			r.Groups = append(r.Groups, s.Group)
		}
	}
	return r
}

// Look says what should be done about some groups that may have lost nodes, or
// that lack some. near: they take free nodes within their reach, no other is
// touched, and none is made; else what can be made whole anywhere is. Only
// groups that change are in the result.
func (t *Tracker) Look(ids []proto.RingID, near bool) Result {
	t.thaw()
	var slots []int32
	for _, id := range ids {
		if at, ok := t.slotOf[id]; ok {
			t.trust(at)
			slots = append(slots, at)
		}
	}
	t.begin()
	t.mendAll(slots)
	if !near {
		t.improve(slots)
		t.company.goAlong()
	}
	r := Result{Dearer: t.dearer, Lost: t.lost, Fetched: t.fetched, Along: t.company.moved}
	for _, at := range slots {
		if s := &t.slots[at]; len(s.Nodes) == 0 && !t.tried[at] {
			r.Gone = append(r.Gone, s.ID) // it never had any
		}
	}
	for _, b := range t.trial {
		s := &t.slots[b.slot]
		switch {
		case slices.Equal(s.Nodes, b.nodes):
		case len(s.Nodes) == 0:
			r.Gone = append(r.Gone, s.ID)
		default:
			r.Touched = append(r.Touched, len(r.Groups))
			r.Groups = append(r.Groups, s.Group)
		}
	}
	t.undo()
	return r
}

// Carry makes a result what is committed, but for groups without a number.
func (t *Tracker) Carry(r Result) {
	for _, id := range r.Gone {
		t.Drop(id)
	}
	var groups []int32
	var nodes [][]proto.NodeID
	for _, g := range r.Groups {
		if g.ID == 0 {
			continue
		}
		at, ok := t.slotOf[g.ID]
		if !ok {
			at = t.open(g)
		}
		groups, nodes = append(groups, at), append(nodes, g.Nodes)
		t.company.stray(at)
	}
	t.layAll(groups, nodes)
}

// begin begins to remember what changes.
func (t *Tracker) begin() {
	t.trial, t.tried, t.dearer, t.lost, t.fetched, t.company.moved = t.trial[:0], map[int32]bool{}, 0, 0, 0, 0
}

// undo puts everything back as it was when the look began.
func (t *Tracker) undo() {
	t.tried = nil
	groups, nodes := make([]int32, len(t.trial)), make([][]proto.NodeID, len(t.trial))
	for i, b := range t.trial {
		groups[i], nodes[i] = b.slot, b.nodes
	}
	t.layAll(groups, nodes)
	for _, at := range groups {
		if s := &t.slots[at]; s.ID == 0 {
			t.close(at)
		}
	}
}

// mendOne finds the best line for a group. What is kept for it comes first.
func (t *Tracker) mendOne(s *slot) []proto.NodeID {
	if s.Owner != "" && t.Own != nil {
		own := t.Mend
		own.Free = func(proto.NodeID) bool { return false }
		if line := own.mend(s.Group, t.owner); len(line) == s.Size {
			return line
		}
	}
	return t.mend(s.Group, t.owner)
}

// mendAll brings groups that are short as near to their size as they get. A
// second round lets a group take what another had to give up in the first.
func (t *Tracker) mendAll(groups []int32) {
	var short []int32
	lack := map[int32]int{}
	for _, at := range groups {
		if s := &t.slots[at]; s.standing == lacks || s.standing == needs {
			short = append(short, at)
			lack[at] = s.Size
			for _, n := range s.Nodes {
				if t.Usable(n) {
					lack[at]--
				}
			}
		}
	}
	slices.SortStableFunc(short, func(a, b int32) int { return lack[a] - lack[b] })
	for range 2 {
		freed := false
		for _, at := range short {
			s := &t.slots[at]
			if len(s.Nodes) == 0 {
				continue
			}
			line := t.mendOne(s)
			if slices.Equal(line, s.Nodes) {
				continue
			}
			freed = freed || slices.ContainsFunc(s.Nodes, func(n proto.NodeID) bool { return t.Usable(n) && !slices.Contains(line, n) })
			t.lay(at, line)
		}
		if !freed {
			return
		}
	}
}
