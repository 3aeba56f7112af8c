package ring

import (
	"maps"
	"slices"

	"ringlight/proto"
)

// A group that is mended goes on over other ToRs than before, from the place that was
// lost to the end. Groups that stood under the same ToRs, rank by rank, then meet
// it no more. They go along: each takes the idle nodes under the ToRs where the group
// is now, which costs it one move and the fabric nothing, as what it leaves is idle
// for it. Who may not move, or finds no idle node there, stays.

// maxStrayed bounds how many groups of former looks are looked at again in one.
// chosen: a few milliseconds, whatever the size of the fabric.
const maxStrayed = 64

// company is who stands beside whom under ToRs.
type company struct {
	t       *Tracker
	under   [][]int32      // nodes by ToR
	strayed map[int32]bool // groups that others could not follow, or were not asked to yet
	next    int32          // of those, where the next look begins
	moved   int            // whole groups, of a look
}

// stray notes that a group has other nodes.
func (c *company) stray(at int32) {
	if c.t.Racks != nil {
		c.strayed[at] = true
	}
}

// goAlong has whole groups follow those that have other nodes than before this look,
// or since former ones, as long as somebody could not follow them. It moves no more
// groups than may move for one before outages teach more.
func (c *company) goAlong() {
	t := c.t
	if t.Racks == nil || t.Moves == 0 {
		return
	}
	leaders := map[int32]bool{}
	for _, b := range t.trial {
		leaders[b.slot] = true
	}
	former := slices.Sorted(maps.Keys(c.strayed))
	first, _ := slices.BinarySearch(former, c.next)
	for i := range min(len(former), maxStrayed) {
		c.next = former[(first+i)%len(former)] + 1
		leaders[c.next-1] = true
	}
	type pair struct{ leader, group int32 }
	var pairs []pair
	for _, at := range slices.Sorted(maps.Keys(leaders)) {
		delete(c.strayed, at)
		for _, group := range c.beside(at) {
			if pairs = append(pairs, pair{at, group}); c.mayGo(at) {
				pairs = append(pairs, pair{group, at})
			}
		}
	}
	// Of a row that moved along, the last goes first and makes room for the one before.
	for again := true; again; {
		again = false
		for _, p := range pairs {
			line := c.image(p.leader, p.group)
			if slices.Equal(line, t.slots[p.group].Nodes) {
				continue
			}
			for _, at := range [2]int32{p.leader, p.group} {
				if leaders[at] {
					c.strayed[at] = true
				}
			}
			if line != nil && (t.Moves < 0 || c.moved < t.Moves) && c.meets(p.group, line) > c.meets(p.group, t.slots[p.group].Nodes) {
				t.lay(p.group, line)
				c.moved++
				again = true
			}
		}
	}
}

// mayGo: a group is whole, and may move for its ToRs.
func (c *company) mayGo(at int32) bool {
	t := c.t
	s := &t.slots[at]
	return s.standing == stands || s.standing == kept && t.Along != nil && t.Along(s.ID)
}

// beside lists the groups that have a node under most of the ToRs of a whole one and
// may go along with it.
func (c *company) beside(at int32) (out []int32) {
	t := c.t
	s := &t.slots[at]
	if !s.whole() {
		return nil
	}
	shared := map[int32]int{}
	for _, n := range s.Nodes {
		for _, m := range c.under[t.Racks.ToR[n]] {
			if own := t.owner[m]; own != 0 && own != at {
				shared[own]++
			}
		}
	}
	for _, own := range slices.Sorted(maps.Keys(shared)) {
		g := &t.slots[own]
		if c.mayGo(own) && g.Size == s.Size && g.Owner == s.Owner && 2*shared[own] > s.Size && t.trust(own) {
			out = append(out, own)
		}
	}
	return out
}

// image is where a group stands under the ToRs of a leader, rank by rank, on nodes that
// are idle or its own; nil: there is no such line.
func (c *company) image(leader, group int32) []proto.NodeID {
	t := c.t
	to, g := t.slots[leader].Nodes, &t.slots[group]
	may := func(n proto.NodeID) bool {
		if t.owner[n] == group {
			return t.Usable(n)
		}
		return t.owner[n] == 0 && (t.Free(n) && (t.Bar == nil || !t.Bar(n, g.ID)) || t.Own != nil && t.Own(n, g.ID))
	}
	for _, first := range c.under[t.Racks.ToR[to[0]]] {
		line := []proto.NodeID{proto.NodeID(first)}
		for rank := 0; may(line[rank]); rank++ {
			if len(line) == len(to) {
				if t.lines(line) {
					return line
				}
				break
			}
			next := slices.IndexFunc(c.under[t.Racks.ToR[to[rank+1]]], func(m int32) bool {
				return t.Spans(t.Ahead(line[rank], proto.NodeID(m)))
			})
			if next < 0 {
				break
			}
			line = append(line, proto.NodeID(c.under[t.Racks.ToR[to[rank+1]]][next]))
		}
	}
	return nil
}

// meets counts the nodes of the same rank in groups of the same size under the ToRs
// that a group would be under.
func (c *company) meets(group int32, line []proto.NodeID) (count int) {
	t := c.t
	for rank, n := range line {
		for _, m := range c.under[t.Racks.ToR[n]] {
			own := t.owner[m]
			if s := &t.slots[own]; own != 0 && own != group && s.Size == len(line) && rank < len(s.Nodes) && s.Nodes[rank] == proto.NodeID(m) {
				count++
			}
		}
	}
	return count
}
