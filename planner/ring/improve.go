package ring

import (
	"maps"
	"slices"

	"ringlight/proto"
)

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
	seen := map[int]bool{}
	for d := range t.Sizes {
		for t.shortage(d) > 0 {
			near, from := t.shortest(d, concerned, nil), 0
			if near != 0 {
				from = int(t.slots[near].Nodes[0])
			}
			left, right, groups := t.rows.best(d, from)
			first := t.nearer(d, from, near, left, right)
			dearest := min(groups-1, t.limit())
			if groups <= t.limit() {
				if near != 0 && t.around(from, dearest, seen) || t.around(first, dearest, seen) {
					continue
				}
			} else if (t.Moves >= 0 || t.Lacks != 0) && slices.ContainsFunc(t.changed(concerned), func(n proto.NodeID) bool { return t.around(int(n), dearest, seen) }) {
				continue
			} else if groups < far && t.fetch(d, first, near, groups) {
				continue
			} else {
				break
			}
			if !t.use(d, first, near) && t.rows.bad[d][first] {
				rejected = append(rejected, first)
			}
		}
	}
	return rejected
}

// changed lists a node of each group that the look is about, or has changed, and where
// fibres lack spans those behind a gap, which a line may pass that leaves a node idle.
func (t *Tracker) changed(concerned []int32) (nodes []proto.NodeID) {
	for _, at := range concerned {
		if t.slots[at].standing == lacks {
			nodes = append(nodes, t.slots[at].Nodes[0])
		}
	}
	for _, b := range t.trial {
		if len(b.nodes) > 0 {
			nodes = append(nodes, b.nodes[0])
		}
	}
	for at := t.gap.next(0); t.Lacks != 0 && at >= 0 && len(nodes) < maxAround; at = t.gap.next(at + 1) {
		nodes = append(nodes, proto.NodeID(at))
	}
	return nodes
}

// maxAround bounds the places that are looked at exactly for one group more.
// chosen: a millisecond or two, and one fault concerns fewer.
const maxAround = 8

// around looks exactly round a node for a group more that moves fewer than a
// row does. Only lines that are short against the fibres step over one another
// so that this can be, or lines of fibres that lack spans, which leave nodes idle.
func (t *Tracker) around(center, dearest int, seen map[int]bool) bool {
	if t.Nodes <= exactNodes || len(t.Sizes) > 1 || t.K == 1 || t.Lacks == 0 && t.Sizes[0].Size > 2*t.K || dearest < 0 || seen[center] || len(seen) == maxAround {
		return false
	}
	seen[center] = true
	length := min(2*exactNodes, t.Nodes)
	from := center - length/2
	if !t.Wrap {
		from = min(max(0, from), t.Nodes-length)
	}
	moved, more, cut := t.exact(from, length, 1, dearest)
	if more > 0 {
		t.layAnew(cut, length, moved, more)
		clear(seen)
	}
	return more > 0
}

// untangle looks exactly where a row did not do. It reports whether a group
// more is whole.
func (t *Tracker) untangle(rejected []int) bool {
	if len(t.Sizes) > 1 {
		return false
	}
	for _, first := range rejected {
		last := t.rows.last(0, first)
		if last < 0 || t.shortage(0) == 0 {
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
		moved, more, cut := t.exact(from, length, t.shortage(0), t.limit())
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
	if touched == 0 && t.shortage(0) == 0 || t.fetched > 0 {
		return
	}
	dearer, lost := t.dearer, t.lost
	t.layAll(groups, old)
	t.begin()
	t.dearer, t.lost = dearer, lost
	want := min(t.shortage(0), far)
	moved, more, cut := t.exact(0, t.Nodes, want, min(far, t.limit()*min(want, t.idle.all()/t.Sizes[0].Size)))
	if more < gain || more == gain && len(moved) >= touched || t.Moves >= 0 && len(moved) > t.limit()*more {
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
	for _, at := range slices.Sorted(maps.Keys(t.frozen)) {
		t.trust(at)
	}
}

// manyMissing groups are placed as if from nothing. chosen: few more are not
// worth a look at every node.
const manyMissing = 8

// fresh places groups that do not run on free nodes, where many are missing and
// could be there; it looks at every node.
func (t *Tracker) fresh() {
	var missing []Demand
	running, absent := 0, 0
	for d, x := range t.Sizes {
		if x.Want = t.absent(d); x.Want > 0 {
			missing = append(missing, x)
			absent += min(far, x.Want)
		}
		running += t.tally[d].groups
	}
	free := t.idle.all()
	for at := range t.short { // any order: a sum
		free -= len(t.slots[at].Nodes)
	}
	if absent == 0 || running > 0 && min(absent, free/t.rows.shortest) < manyMissing {
		return
	}
	placed := PlaceSizes(Problem{Order: t.Order, Spread: t.Spread, Broken: t.Broken,
		Usable: func(n proto.NodeID) bool { return t.owner[n] == 0 && t.Free(n) }}, missing)
	for d, groups := range placed {
		for _, nodes := range groups {
			t.lay(t.open(Group{Size: missing[d].Size}), nodes)
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
