package ring

import (
	"cmp"
	"slices"

	"ringlight/proto"
)

// Tracker keeps an index of what runs, so that a fault costs what it touches
// and not what there is. It knows which nodes groups could be laid on, where
// no fibre leads on, and for every row of idle nodes how many whole groups lie
// between them (rows.go): so many idle nodes as a group has, one after the
// other but for the groups between, make room for one more when those move
// along, and no placement whose groups lie one behind the other does with
// fewer.
//
// Put and Drop say what is committed, Refresh what may have changed about a
// node. Look changes nothing: it says what should be done about it. A few bytes
// a node are kept.
type Tracker struct {
	Mend
	slots  []slot
	slotOf map[proto.RingID]int32
	unused []int32
	owner  []int32 // by node: slot from 1, 0: in no group
	short  map[int32]bool
	frozen map[int32]bool
	tally  []tally // by demand
	rows   rows

	well nodeSet // idle, or in a whole group that may move
	idle nodeSet // could be in another group: in none, or in one that is short
	head nodeSet // first nodes of whole groups that may move
	tail nodeSet // their last nodes
	gap  nodeSet // well nodes that no fibre joins to the well one before
	over int     // of those groups, that pass the last index

	filling bool // all is being entered: joints and rows are counted at the end

	trial   []before // what a look has changed so far
	tried   map[int32]bool
	dearer  int // of its result
	lost    int
	fetched int

	company company
}

// slot is one group.
type slot struct {
	Group
	standing
}

// standing is what a group is to the index.
type standing uint8

const (
	gone   standing = iota // no such group, or one without nodes
	still                  // frozen: nothing is laid on it
	needs                  // owned by a job and short: only near nodes make it whole, and its own are taken by no other
	kept                   // owned by a job and whole: it stays where it is
	lacks                  // it has not all its nodes, lost some, or is torn: they are idle
	stands                 // whole: it may move
)

// tally counts the groups of a demand.
type tally struct{ groups, short int }

// before is a group as it was when a look began.
type before struct {
	slot     int32
	nodes    []proto.NodeID
	standing standing
}

// NewTracker makes an index of what runs.
func NewTracker(m Mend, running ...Group) *Tracker {
	n := m.Nodes
	t := &Tracker{Mend: m, slots: make([]slot, 1), slotOf: map[proto.RingID]int32{}, owner: make([]int32, n),
		short: map[int32]bool{}, frozen: map[int32]bool{}, tally: make([]tally, len(m.Sizes))}
	t.company = company{t: t, strayed: map[int32]bool{}}
	if m.Racks != nil {
		t.company.under = m.Racks.members()
	}
	sets := []*nodeSet{&t.well, &t.idle, &t.head, &t.tail, &t.gap}
	for _, s := range sets {
		*s = newNodeSet(n)
		s.raw = true
	}
	t.rows.init(t)
	t.filling = true
	for _, g := range running {
		t.Put(g)
	}
	for i := range n {
		if t.owner[i] == 0 && t.Free(proto.NodeID(i)) {
			t.set(i, true, true)
		}
	}
	t.filling = false
	for _, s := range sets {
		s.filled()
	}
	t.gap.raw = true
	for i := t.well.next(0); i >= 0; i = t.well.next(i + 1) {
		t.join(i)
	}
	t.gap.filled()
	t.rows.all()
	return t
}

// Put says that a group runs, with these nodes, which must be in no other.
func (t *Tracker) Put(g Group) {
	g.Size = cmp.Or(g.Size, t.Sizes[len(t.Sizes)-1].Size)
	at, ok := t.slotOf[g.ID]
	if !ok {
		at = t.open(g)
	}
	s := &t.slots[at]
	if !t.filling && !slices.Equal(s.Nodes, g.Nodes) {
		t.company.stray(at)
	}
	s.Size, s.Frozen, s.Owner = g.Size, g.Frozen, g.Owner
	t.lay(at, g.Nodes)
}

// Drop says that a group is no more.
func (t *Tracker) Drop(id proto.RingID) {
	if at, ok := t.slotOf[id]; ok {
		t.lay(at, nil)
		t.close(at)
	}
}

// Members are the nodes of a group, left to right.
func (t *Tracker) Members(id proto.RingID) []proto.NodeID { return t.slots[t.slotOf[id]].Nodes }

// Short calls f for the groups that lack a node and may reach this one.
func (t *Tracker) Short(n proto.NodeID, f func(proto.RingID)) {
	last := int32(0)
	reach := min(t.K*t.rows.longest, t.Nodes/2)
	for by := -reach; by <= reach; by++ {
		at := t.at(int(n) + by)
		if at < 0 || t.owner[at] == last {
			continue
		}
		if last = t.owner[at]; last != 0 && len(t.slots[last].Nodes) < t.slots[last].Size {
			f(t.slots[last].ID)
		}
	}
}

// Concerned are the groups that a change of a node may concern: its own, or
// those that may take it.
func (t *Tracker) Concerned(n proto.NodeID) (ids []proto.RingID) {
	if at := t.owner[n]; at != 0 {
		return append(ids, t.slots[at].ID)
	}
	t.Short(n, func(id proto.RingID) { ids = append(ids, id) })
	return ids
}

// open takes a slot for a group that has no nodes yet.
func (t *Tracker) open(g Group) int32 {
	at := int32(len(t.slots))
	if n := len(t.unused); n > 0 {
		at, t.unused = t.unused[n-1], t.unused[:n-1]
	} else {
		t.slots = append(t.slots, slot{})
	}
	t.slots[at] = slot{Group: Group{ID: g.ID, Size: g.Size, Frozen: g.Frozen, Owner: g.Owner}}
	if g.ID != 0 {
		t.slotOf[g.ID] = at
	}
	return at
}

func (t *Tracker) close(at int32) {
	delete(t.slotOf, t.slots[at].ID)
	delete(t.company.strayed, at)
	t.unused = append(t.unused, at)
}

// Refresh reads again what may be done with a node, and with its group.
func (t *Tracker) Refresh(n proto.NodeID) {
	if at := t.owner[n]; at != 0 {
		t.settle(at)
		return
	}
	free := t.Free(n)
	t.rows.mark(int(n), int(n))
	t.set(int(n), free, free)
	t.rows.mark(int(n), int(n))
}

// lay gives a group other nodes.
func (t *Tracker) lay(at int32, nodes []proto.NodeID) { t.layAll([]int32{at}, [][]proto.NodeID{nodes}) }

// layAll gives groups other nodes, which may be one another's.
func (t *Tracker) layAll(groups []int32, nodes [][]proto.NodeID) {
	old := make([][]proto.NodeID, len(groups))
	for i, at := range groups {
		s := &t.slots[at]
		t.note(at)
		t.withdraw(at)
		old[i] = s.Nodes
		for _, n := range s.Nodes {
			t.owner[n] = 0
		}
	}
	for i, at := range groups {
		t.slots[at].Nodes = nodes[i]
		for _, n := range nodes[i] {
			t.owner[n] = at
		}
	}
	for _, nodes := range old {
		for _, n := range nodes {
			if t.owner[n] == 0 {
				free := t.Free(n)
				t.set(int(n), free, free)
			}
		}
		t.markGroup(nodes)
	}
	for _, at := range groups {
		t.settle(at)
	}
}

// note remembers what a group was when the look began, if one is under way.
func (t *Tracker) note(at int32) {
	if t.tried == nil || t.tried[at] {
		return
	}
	t.tried[at] = true
	t.trial = append(t.trial, before{at, t.slots[at].Nodes, t.slots[at].standing})
}

func (t *Tracker) markGroup(nodes []proto.NodeID) {
	if len(nodes) > 0 {
		t.rows.mark(int(nodes[0]), int(nodes[len(nodes)-1]))
	}
}

// demand is the index of a size among the demands; a size that nobody wants
// counts as the last.
func (t *Tracker) demand(size int) int {
	for i, d := range t.Sizes {
		if d.Size == size {
			return i
		}
	}
	return len(t.Sizes) - 1
}

// withdraw takes a group out of the index.
func (t *Tracker) withdraw(at int32) {
	s := &t.slots[at]
	if s.standing == gone {
		return
	}
	t.markGroup(s.Nodes)
	count := &t.tally[t.demand(s.Size)]
	count.groups--
	switch s.standing {
	case still:
		delete(t.frozen, at)
	case lacks:
		count.short--
		delete(t.short, at)
	case stands:
		first, last := int(s.Nodes[0]), int(s.Nodes[len(s.Nodes)-1])
		t.head.remove(first)
		t.tail.remove(last)
		if last < first {
			t.over--
		}
	}
	s.standing = gone
}

// settle finds what a group is now, and enters it.
func (t *Tracker) settle(at int32) {
	s := &t.slots[at]
	t.withdraw(at)
	if len(s.Nodes) == 0 {
		return
	}
	count := &t.tally[t.demand(s.Size)]
	count.groups++
	whole := t.sound(s)
	switch {
	case s.Frozen:
		s.standing = still
		t.frozen[at] = true
	case s.Owner != "" && !whole:
		s.standing = needs
	case s.Owner != "":
		s.standing = kept
	case !whole:
		s.standing = lacks
		count.short++
		t.short[at] = true
	default:
		s.standing = stands
	}
	for _, n := range s.Nodes {
		usable := s.standing == stands || s.standing == lacks && t.Usable(n)
		t.set(int(n), usable, usable && s.standing == lacks)
	}
	if s.standing == stands {
		first, last := int(s.Nodes[0]), int(s.Nodes[len(s.Nodes)-1])
		t.head.add(first)
		t.tail.add(last)
		if last < first {
			t.over++
		}
	}
	t.markGroup(s.Nodes)
}

// sound reports whether a group may stand as it is.
func (t *Tracker) sound(s *slot) bool {
	return !s.Frozen && s.whole() && t.Check(s.Nodes) == nil && !slices.ContainsFunc(s.Nodes, func(n proto.NodeID) bool { return !t.Usable(n) }) && !t.torn(s.Nodes)
}

// set enters what may be laid on a node; the caller marks the rows.
func (t *Tracker) set(i int, well, idle bool) {
	if idle {
		t.idle.add(i)
	} else {
		t.idle.remove(i)
	}
	if t.filling {
		if well {
			t.well.add(i)
		}
		return
	}
	if well {
		t.well.add(i)
		t.join(i)
	} else if t.well.has(i) {
		t.well.remove(i)
		t.gap.remove(i)
	} else {
		return
	}
	if next := t.well.after(i); next >= 0 && next != i {
		t.join(next)
	}
}

// join notes whether a fibre joins a well node to the one before.
func (t *Tracker) join(i int) {
	last := t.well.before(i)
	apart := !t.Spans(t.hops(last, i)) || t.Broken != nil && t.Broken(proto.NodeID(last), proto.NodeID(i))
	if t.gap.has(i) == apart {
		return
	}
	t.rows.mark(i, i)
	if apart {
		t.gap.add(i)
	} else {
		t.gap.remove(i)
	}
}

// far is more hops than any fibre spans, and more groups than there are.
const far = 1 << 30

// hops is the way forward from a to b, the whole circle to itself.
func (t *Tracker) hops(a, b int) int {
	switch {
	case b > a:
		return b - a
	case t.Wrap:
		return b - a + t.Nodes
	}
	return far
}

// shortage is how many whole groups of a demand are missing: one for each that
// is short, and those that do not run.
func (t *Tracker) shortage(demand int) int { return t.tally[demand].short + t.absent(demand) }

// absent is how many groups of a demand are wanted and do not run.
func (t *Tracker) absent(demand int) int {
	if want := t.Sizes[demand].Want; want < 0 {
		return far
	} else {
		return max(0, want-t.tally[demand].groups)
	}
}
