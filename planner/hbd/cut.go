package hbd

import (
	"fmt"
	"time"

	"ringlight/planner/journal"
	"ringlight/planner/ring"
	"ringlight/proto"
)

// A link that had light and lost it at both ends, while both nodes are well
// and have not been away, is held to be cut: the placement goes round it at
// once. It gets another chance later and later, and at once when one of its
// nodes starts anew. Only a ring that lacks a node takes the chance.

const (
	cutFirst = 2 * time.Second // chosen: longer than a plug takes to stop rattling
	cutLast  = 24 * time.Hour
	cutsMore = 2 // each time as a power of two: the wait is four times the one before
)

// cut is what is known of a fibre that was held to be cut.
type cut struct {
	count int
	until time.Duration // until then it carries no ring
}

func pair(a, b proto.NodeID) [2]proto.NodeID { return [2]proto.NodeID{min(a, b), max(a, b)} }

// cuts are the fibres that are, or were, held to be cut.
type cuts struct {
	known map[[2]proto.NodeID]*cut
	at    time.Duration // when the next of them gets another chance
}

// broken reports whether a ring must not use the fibre between two nodes.
func (c *cuts) broken(a, b proto.NodeID, now time.Duration) bool {
	x := c.known[pair(a, b)]
	return x != nil && now < x.until
}

// hold keeps rings off a fibre, for longer each time.
func (c *cuts) hold(a, b proto.NodeID, now time.Duration) (wait time.Duration) {
	x := c.known[pair(a, b)]
	if x == nil {
		x = &cut{}
		c.known[pair(a, b)] = x
	}
	wait = min(cutFirst<<min(cutsMore*x.count, 20), cutLast)
	x.count++
	x.until = now + wait
	c.at = min(c.at, x.until)
	return wait
}

// due gives fibres another chance that have waited: f is called with the nodes
// of each.
func (c *cuts) due(now time.Duration, f func(a, b proto.NodeID)) {
	c.at = journal.Never
	for at, x := range c.known { // any order: the earliest is wanted, and what is marked is sorted
		if x.until > now {
			c.at = min(c.at, x.until)
			continue
		}
		f(at[0], at[1])
	}
}

// forget gives the fibres of a node that starts anew another chance.
func (c *cuts) forget(o ring.Order, id proto.NodeID) {
	for hop := -o.K; hop <= o.K; hop++ {
		other := int(id) + hop
		if o.Wrap {
			other = (other + o.Nodes) % o.Nodes
		}
		if other >= 0 && other != int(id) {
			delete(c.known, pair(id, proto.NodeID(other)))
		}
	}
}

// keep drops what is known of fibres of nodes that are gone.
func (c *cuts) keep(nodes int) {
	for at := range c.known { // any order: each is judged by itself
		if int(at[1]) >= nodes {
			delete(c.known, at)
		}
	}
}

// doubtful: some dark link of the ring was held to be cut before, so one
// attempt is enough.
func (c *cuts) doubtful(r *ringView) bool {
	for at := 0; at+1 < len(r.nodes); at++ {
		if c.known[pair(r.nodes[at], r.nodes[at+1])] != nil && !r.confirmed(at) {
			return true
		}
	}
	return false
}

func (e *evidence) broken(a, b proto.NodeID) bool { return e.cuts.broken(a, b, e.j.Now) }

// hold keeps rings off the fibre behind a member for a while.
func (e *evidence) hold(r *ringView, at int, why string) {
	a, b := r.nodes[at], r.nodes[at+1]
	wait := e.cuts.hold(a, b, e.j.Now)
	e.reads(a)
	e.reads(b)
	e.j.Note(journal.Error, "fibre is held to be cut", journal.Note{Rule: "cut", Node: int64(a), Ring: r.id, Gen: r.Gen, Cause: proto.CauseLightLost,
		Text: fmt.Sprintf("%s between nodes %d and %d, both well; no ring uses it for %v", why, a, b, wait)})
}

// checkCuts gives fibres another chance that have waited.
func (e *evidence) checkCuts() {
	if e.j.Now < e.cuts.at {
		return
	}
	e.cuts.due(e.j.Now, func(a, b proto.NodeID) {
		e.reads(a)
		e.reads(b)
		e.markNear(a)
	})
	e.wantBetter = true
	e.replan(debounce)
}

// concludeParted goes through the links that both of their ends have left:
// one that has had light is held to be cut. It reports whether some other is
// only parted: both wait in loopback, and a plan brings them together.
func (e *evidence) concludeParted(r *ringView) (apart bool) {
	for at := 0; at+1 < len(r.nodes); at++ {
		if !r.off(at, proto.Right) || !r.off(at+1, proto.Left) || e.broken(r.nodes[at], r.nodes[at+1]) {
			continue
		}
		if !r.lit[at] {
			apart = true
			continue
		}
		r.lit[at] = false
		e.hold(r, at, "light lost at both ends")
		e.mark(r)
		e.replan(debounce)
	}
	return apart
}

// concludeCut holds the dark links of a ring whose members are all well to be
// cut: attempts to join them have failed.
func (e *evidence) concludeCut(r *ringView) {
	for at := 0; at+1 < len(r.nodes); at++ {
		if a, b := r.nodes[at], r.nodes[at+1]; !r.confirmed(at) && !e.broken(a, b) {
			e.hold(r, at, fmt.Sprintf("no light in %d attempts", max(1, r.renewed)))
		}
	}
}
