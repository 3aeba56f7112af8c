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
}

// whole: it has all its nodes.
func (g Group) whole() bool { return len(g.Nodes) == g.Size }

// Mend is what a re-placement is to reach, and with what.
type Mend struct {
	Order
	Sizes  []Demand                // groups wanted in all, running ones included
	Usable func(proto.NodeID) bool // a member that is not usable is lost
	Free   func(proto.NodeID) bool // a node in no group that may join one
	Spread bool
	Broken func(a, b proto.NodeID) bool // links that hold no group together; nil: none
	Frozen func(proto.RingID) bool      // groups that must stay exactly as they are; nil: as they were put

	// Moves is how many whole groups may move aside to make one more whole:
	// none, a few (at most 8 help), or Any.
	Moves int
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
	if m.Moves < 0 {
		return far - 1
	}
	return m.Moves
}

// Result of a re-placement.
type Result struct {
	Groups  []Group // running ones in their order, then new ones with ID 0
	Touched []int   // indices into Groups that differ from before or are new
	Gone    []proto.RingID
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
	}
	var r Result
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
	}
	t.layAll(groups, nodes)
}

// begin begins to remember what changes.
func (t *Tracker) begin() { t.trial, t.tried = t.trial[:0], map[int32]bool{} }

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

// mendAll brings groups that are short as near to their size as they get. A
// second round lets a group take what another had to give up in the first.
func (t *Tracker) mendAll(groups []int32) {
	var short []int32
	lack := map[int32]int{}
	for _, at := range groups {
		if s := &t.slots[at]; s.standing == lacks {
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
			line := t.mend(s.Group, t.owner)
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

// improve makes more groups whole, wherever in the fabric, and moves the
// fewest for it.
func (t *Tracker) improve(concerned []int32) {
	t.fresh()
	one := len(t.Sizes) == 1
	plan := one && t.Sizes[0].Want < 0 // on paper: it may take as long as it takes
	for !plan && t.untangle(t.useRows(concerned)) {
	}
	if plan || one && t.Nodes <= exactNodes {
		t.rethink(concerned)
	}
}

// useRows makes groups whole as long as some row does it. It returns the first
// nodes of rows that would have done but for a link or a bundle.
func (t *Tracker) useRows(concerned []int32) (rejected []int) {
	for d := range t.Sizes {
		for t.lacking(d) > 0 {
			near, from := t.shortest(d, concerned, nil), 0
			if near != 0 {
				from = int(t.slots[near].Nodes[0])
			}
			left, right, groups := t.rows.best(d, from)
			if groups > t.limit() {
				break
			}
			first := t.nearer(d, from, near, left, right)
			if !t.use(d, first, near) && t.rows.bad[d][first] {
				rejected = append(rejected, first)
			}
		}
	}
	return rejected
}

// untangle looks exactly where a row did not do. It reports whether a group
// more is whole.
func (t *Tracker) untangle(rejected []int) bool {
	if len(t.Sizes) > 1 {
		return false
	}
	for _, first := range rejected {
		last := t.rows.last(0, first)
		if last < 0 || t.lacking(0) == 0 {
			continue
		}
		from, length := 0, t.Nodes
		if start := t.gap.before(first + 1); t.Moves < 0 && start >= 0 {
			from, length = start, t.hops(start, t.gap.after(start))
			if length == far {
				length = t.Nodes - start
			}
		} else if margin := 2 * t.K * t.Sizes[0].Size; t.Moves >= 0 && t.hops(first, last)+2*margin < t.Nodes {
			from, length = first-margin, t.hops(first, last)+2*margin
			if !t.Wrap {
				length = min(t.Nodes, from+length)
				from = max(0, from)
				length -= from
			}
		}
		moved, more, cut := t.exact(from, length, t.lacking(0), t.limit())
		if more > 0 {
			t.layAnew(cut, length, moved, more)
			return true
		}
	}
	return false
}

// rethink looks at all nodes exactly, and does that instead when it makes more
// groups whole, or touches fewer sound ones for as many.
func (t *Tracker) rethink(concerned []int32) {
	gain, touched := 0, 0
	var groups []int32
	var nodes, old [][]proto.NodeID
	for _, b := range t.trial {
		s := &t.slots[b.slot]
		if b.standing == stands {
			gain--
			if !slices.Equal(s.Nodes, b.nodes) {
				touched++
			}
		}
		if s.standing == stands {
			gain++
		}
		groups, nodes, old = append(groups, b.slot), append(nodes, s.Nodes), append(old, b.nodes)
	}
	if touched == 0 && t.lacking(0) == 0 {
		return
	}
	t.layAll(groups, old)
	t.begin()
	want := min(t.lacking(0), far)
	moved, more, cut := t.exact(0, t.Nodes, want, min(far, t.limit()*min(want, t.Nodes)))
	if more < gain || more == gain && len(moved) >= touched || t.Moves >= 0 && len(moved) > t.Moves*more {
		t.layAll(groups, nodes)
		return
	}
	for _, at := range groups {
		if t.slots[at].ID == 0 {
			t.close(at)
		}
	}
	t.layAnew(cut, t.Nodes, moved, more)
	t.mendAll(concerned)
}

// thaw looks again at groups that had to stay as they were.
func (t *Tracker) thaw() {
	var groups []int32
	for at := range t.frozen { // any order: sorted below
		groups = append(groups, at)
	}
	slices.Sort(groups)
	for _, at := range groups {
		t.trust(at)
	}
}

// manyMissing groups are placed as if from nothing. chosen: few more are not
// worth a look at every node.
const manyMissing = 8

// fresh places groups that do not run on free nodes, where many are missing.
func (t *Tracker) fresh() {
	missing, running, absent := slices.Clone(t.Sizes), 0, 0
	for d := range t.Sizes {
		missing[d].Want = t.absent(d)
		absent += min(far, missing[d].Want)
		running += t.tally[d].groups
	}
	if absent == 0 || running > 0 && absent < manyMissing {
		return
	}
	placed := PlaceSizes(Problem{Order: t.Order, Spread: t.Spread, Broken: t.Broken,
		Usable: func(n proto.NodeID) bool { return t.owner[n] == 0 && t.Free(n) }}, missing)
	for d, groups := range placed {
		for _, nodes := range groups {
			t.lay(t.open(Group{Size: t.Sizes[d].Size}), nodes)
		}
	}
}

// shortest is the short group of a demand that is to be made whole next: of
// those that the look is about the first, else the one that lacks the fewest;
// 0: there is none but some.
func (t *Tracker) shortest(demand int, concerned []int32, but map[int32]bool) int32 {
	is := func(at int32) bool {
		return !but[at] && t.slots[at].standing == lacks && t.demand(t.slots[at].Size) == demand
	}
	for _, at := range concerned {
		if is(at) {
			return at
		}
	}
	best := int32(0)
	for at := range t.short { // any order: the one that is found does not depend on it
		if !is(at) {
			continue
		}
		a, b := &t.slots[at], &t.slots[best]
		if best == 0 || len(a.Nodes) > len(b.Nodes) || len(a.Nodes) == len(b.Nodes) && a.Nodes[0] < b.Nodes[0] {
			best = at
		}
	}
	return best
}

// nearer chooses between rows on both sides of a group: the one with more of
// its nodes, else the nearer.
func (t *Tracker) nearer(demand, from int, near int32, left, right int) int {
	if left < 0 || right < 0 {
		return max(left, right)
	}
	own := func(first int) (count int) {
		for i, at := 0, first; i < t.Sizes[demand].Size; i, at = i+1, t.idle.after(at) {
			if near != 0 && t.owner[at] == near {
				count++
			}
		}
		return count
	}
	if a, b := own(left), own(right); a != b {
		if a > b {
			return left
		}
		return right
	}
	if abs(from-left) <= abs(right-from) {
		return left
	}
	return right
}

func abs(x int) int { return max(x, -x) }
