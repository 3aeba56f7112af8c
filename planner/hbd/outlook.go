package hbd

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ringlight/planner/fabric"
	"ringlight/planner/health"
	"ringlight/planner/ring"
	"ringlight/proto"
)

// Loss is what the loss of one more node, or of one more fibre that a ring uses,
// comes to, when the neighbours have passed it by and the planner has done what it
// can.
type Loss struct {
	Node  proto.NodeID
	Fibre bool // that to Peer; else the node
	Peer  proto.NodeID
	Ring  proto.RingID // that it is in
	// Down are the rings that are in service now and would have fewer nodes
	// than they are to have, or be gone.
	Down []proto.RingID
	Left [][2]int // of each of those: GPUs that it would have, and that it is to have
	// GPUs that are in a ring now and would be in none, its own included.
	GPUs int
	// Torn: its neighbours in the ring have no way past it (past neither end of a
	// fibre), so that the ring is in pieces until the planner has mended it.
	Torn bool
	// Still are those of them that may not pass it by: nobody speaks for them, or their
	// boards do not answer.
	Still []proto.NodeID
}

// What is lost, for people.
func (l *Loss) What() string {
	if l.Fibre {
		return fmt.Sprintf("fibre %d-%d", l.Node, l.Peer)
	}
	return fmt.Sprintf("node %d", l.Node)
}

// Comes is what it comes to, for people, in the words of ring list.
func (l *Loss) Comes() string {
	var parts []string
	for i, id := range l.Down[:min(len(l.Down), 3)] {
		if left := l.Left[i]; left[0] == 0 {
			parts = append(parts, fmt.Sprintf("ring %d ends", id))
		} else {
			parts = append(parts, fmt.Sprintf("ring %d degraded: %d of %d GPUs", id, left[0], left[1]))
		}
	}
	if more := len(l.Down) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("and %s more", proto.Count(more, "ring")))
	}
	if len(parts) == 0 && l.GPUs > 0 {
		return fmt.Sprintf("%s fewer in rings that are degraded already", proto.Count(l.GPUs, "GPU"))
	} else if len(parts) == 0 && !l.Torn {
		return fmt.Sprintf("ring %d may be in pieces until the planner has mended it: node %s may not move its light", l.Ring, health.Spans(l.Still, 4))
	} else if len(parts) == 0 {
		return fmt.Sprintf("ring %d is in pieces until the planner has mended it", l.Ring)
	}
	return strings.Join(parts, "; ")
}

// Harmless: nothing is lost that a spare does not make good.
func (l *Loss) Harmless() bool {
	return len(l.Down) == 0 && l.GPUs == 0 && !l.Torn && len(l.Still) == 0
}

// Outlook is a copy of what is committed, on which each node, and each fibre that a
// ring uses, is lost once: what breaks next. It shares nothing with the rings, so whoever asked for it
// tries it where and as slowly as he likes.
type Outlook struct {
	Losses []Loss // of those tried so far that would not be harmless, by node
	Spares int    // nodes in no ring that may join one

	fab    *fabric.Fabric
	rings  []outlookRing
	of     []int32 // by node: its ring from 1, 0: none
	wanted []bool  // may stay in its ring
	free   []bool  // may join one
	still  []bool  // moves no light: nobody speaks for it, or its board does not answer
	broken map[[2]proto.NodeID]bool
	order  ring.Order
	index  *ring.Tracker // nil until the first is tried
	next   int           // node, and the fibre behind it: 2n, 2n+1
	lost   proto.NodeID  // the one that is tried
	mend   ring.Mend
}

type outlookRing struct {
	id        proto.RingID
	nodes     []proto.NodeID
	size      int
	inService bool
	frozen    bool
	owner     string
}

const nobodyLost = ^proto.NodeID(0)

// Outlook copies what is committed. It costs some bytes a node, and no look.
func (h *evidence) Outlook() *Outlook {
	n := len(h.pl.nodes)
	o := &Outlook{fab: h.pl.fab, order: h.pl.order, rings: make([]outlookRing, 0, len(h.pl.rings)), of: make([]int32, n),
		wanted: make([]bool, n), free: make([]bool, n), still: make([]bool, n), broken: map[[2]proto.NodeID]bool{}, lost: nobodyLost}
	for i := range h.pl.nodes {
		m := &h.pl.nodes[i]
		_, silent := m.boardSilent()
		o.still[i] = silent || !m.Device.Answers()
		if o.wanted[i], o.free[i] = m.wanted(), h.pl.free(m.Device.ID) && !silent; o.free[i] && m.Device.Group == 0 {
			o.Spares++
		}
	}
	for i, r := range h.pl.rings {
		o.rings = append(o.rings, outlookRing{r.id, slices.Clone(r.nodes), r.size, r.state == proto.RingInService, r.frozen(h.j.Now), r.owner})
		for _, id := range r.nodes {
			o.of[id] = int32(i) + 1
		}
	}
	for at, x := range h.cuts.known { // any order: a set
		if h.j.Now < x.until {
			o.broken[at] = true
		}
	}
	o.mend = h.mending()
	return o
}

// reindex makes the index that the looks are at.
func (o *Outlook) reindex() {
	running := make([]ring.Group, len(o.rings))
	for i := range o.rings {
		running[i] = o.group(&o.rings[i])
	}
	m := o.mend
	m.Usable = func(id proto.NodeID) bool { return o.wanted[id] && id != o.lost }
	m.Free = func(id proto.NodeID) bool { return o.free[id] && id != o.lost }
	m.Own, m.Bar, m.Racks = nil, nil, nil // a spare that is a job's is not counted on, nor what goes along later
	m.Broken = func(a, b proto.NodeID) bool { return o.broken[pair(a, b)] }
	m.Frozen = func(id proto.RingID) bool { return o.ring(id).frozen }
	o.index = ring.NewTracker(m, running...)
}

func (o *Outlook) group(r *outlookRing) ring.Group {
	return ring.Group{ID: r.id, Nodes: r.nodes, Size: r.size, Frozen: r.frozen, Owner: r.owner}
}

// ring finds a ring that is there.
func (o *Outlook) ring(id proto.RingID) *outlookRing {
	i, _ := slices.BinarySearchFunc(o.rings, id, func(r outlookRing, id proto.RingID) int { return cmp.Compare(r.id, id) })
	return &o.rings[i]
}

// Try tries the next n nodes and fibres, and reports whether all have been. The cost of
// one does not depend on how many there are.
func (o *Outlook) Try(n int) (done bool) {
	if o.index == nil {
		o.reindex()
	}
	for ; n > 0 && o.next < 2*len(o.of); o.next++ {
		id := proto.NodeID(o.next / 2)
		at := o.of[id]
		if at == 0 || !o.wanted[id] { // what is lost already breaks nothing more
			continue
		}
		own := &o.rings[at-1]
		l := Loss{Node: id, Ring: own.id}
		if o.next%2 == 0 {
			o.lose(&l, own)
		} else if !o.cut(&l, own) {
			continue
		}
		if n--; !l.Harmless() {
			o.Losses = append(o.Losses, l)
		}
	}
	return o.next == 2*len(o.of)
}

// lose takes a node away, looks, and gives it back.
func (o *Outlook) lose(l *Loss, own *outlookRing) {
	id := l.Node
	at := slices.Index(own.nodes, id)
	l.Torn, l.Still = o.torn(own, at), o.stays(own, at)
	o.lost = id
	o.index.Refresh(id)
	after, back := o.look(id, own)
	o.lost = nobodyLost
	o.index.Carry(back)
	o.index.Refresh(id)
	if _, touched := after[own.id]; !touched { // it has to stay as it is, without the node
		after[own.id] = slices.DeleteFunc(slices.Clone(own.nodes), func(x proto.NodeID) bool { return x == id })
	}
	o.count(l, after)
}

// cut does so with the fibre to the next member, if there is one.
func (o *Outlook) cut(l *Loss, own *outlookRing) bool {
	at := slices.Index(own.nodes, l.Node)
	next := o.beside(own, at, +1)
	if next < 0 {
		return false
	}
	peer := own.nodes[next]
	link := pair(l.Node, peer)
	if o.broken[link] {
		return false // is cut already
	}
	l.Fibre, l.Peer, l.Torn = true, peer, o.torn(own, at) && o.torn(own, next)
	o.broken[link] = true
	for _, id := range link {
		o.index.Refresh(id)
	}
	after, back := o.look(l.Node, own)
	delete(o.broken, link)
	o.index.Carry(back)
	for _, id := range link {
		o.index.Refresh(id)
	}
	if _, touched := after[own.id]; !touched { // it has to stay as it is: without an end of the fibre, or in two pieces
		left := len(own.nodes) - 1
		if l.Torn {
			left = max(at+1, len(own.nodes)-next)
		}
		after[own.id] = own.nodes[:left]
	}
	o.count(l, after)
	return true
}

// look is what the planner would do about a loss beside a node.
func (o *Outlook) look(id proto.NodeID, own *outlookRing) (after map[proto.RingID][]proto.NodeID, back ring.Result) {
	after, _, back = try(o.index, id, func(id proto.RingID) ring.Group { return o.group(o.ring(id)) },
		func(after map[proto.RingID][]proto.NodeID) bool {
			return len(after) == 1 && len(after[own.id]) >= own.size
		})
	return after, back
}

// count says what rings come to that are as they are after a loss.
func (o *Outlook) count(l *Loss, after map[proto.RingID][]proto.NodeID) {
	members, left := 0, map[proto.RingID][2]int{}
	for ring, nodes := range after { // any order: a sum, and what is sorted below
		r := o.ring(ring)
		whole := len(nodes) >= r.size
		if !whole && o.fab.OnLoss == fabric.Dissolve {
			nodes = nil
		}
		members += o.well(r.nodes) - o.well(nodes)
		if r.inService && !whole {
			l.Down = append(l.Down, ring)
			left[ring] = [2]int{o.well(nodes) * o.fab.GPUsPerNode, r.size * o.fab.GPUsPerNode}
		}
	}
	l.GPUs = max(0, members) * o.fab.GPUsPerNode
	slices.Sort(l.Down)
	for _, id := range l.Down {
		l.Left = append(l.Left, left[id])
	}
}

// well counts nodes that are.
func (o *Outlook) well(nodes []proto.NodeID) (count int) {
	for _, id := range nodes {
		if o.wanted[id] || o.free[id] {
			count++
		}
	}
	return count
}

// torn reports whether the neighbours of a member have no way past it: no fibre
// between them, one that is held to be cut, or one on a bundle whose light they
// need on their other side.
func (o *Outlook) torn(r *outlookRing, at int) bool {
	left, right := o.beside(r, at, -1), o.beside(r, at, +1)
	if left < 0 || right < 0 {
		return false // the end of a line: what is left of it stays one piece
	}
	a, b := r.nodes[left], r.nodes[right]
	ab, ok := o.fab.Link(a, b)
	if !ok || o.broken[pair(a, b)] || o.order.Ahead(a, b) > o.fab.K {
		return true
	}
	taken := func(from, by int, bundle proto.BundleID) bool {
		other := o.beside(r, from, by)
		if other < 0 {
			return false
		}
		link, ok := o.fab.Link(r.nodes[from], r.nodes[other])
		return ok && link.Local.Bundle == bundle
	}
	return taken(left, -1, ab.Local.Bundle) || taken(right, +1, ab.Remote.Bundle)
}

// stays are the neighbours of a member that may not pass it by.
func (o *Outlook) stays(r *outlookRing, at int) (out []proto.NodeID) {
	for _, by := range [2]int{-1, +1} {
		if next := o.beside(r, at, by); next >= 0 && o.still[r.nodes[next]] {
			out = append(out, r.nodes[next])
		}
	}
	return out
}

// beside is the next member on one side that is well, -1: there is none.
func (o *Outlook) beside(r *outlookRing, at, by int) int {
	for at += by; at >= 0 && at < len(r.nodes); at += by {
		if o.wanted[r.nodes[at]] {
			return at
		}
	}
	return -1
}

// Worst are the gravest losses, at most n of them.
func (o *Outlook) Worst(n int) []Loss {
	out := slices.Clone(o.Losses)
	slices.SortStableFunc(out, func(a, b Loss) int {
		return cmp.Or(cmp.Compare(len(b.Down), len(a.Down)), cmp.Compare(b.GPUs, a.GPUs), cmp.Compare(torn(b), torn(a)))
	})
	return out[:min(n, len(out))]
}

func torn(l Loss) int {
	if l.Torn {
		return 1
	}
	return 0
}
