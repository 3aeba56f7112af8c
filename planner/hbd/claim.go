package hbd

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/journal"
	"ringlight/planner/ring"
	"ringlight/proto"
)

// Unassigned rings are stock: as many as the fabric describes, formed and
// lit before anybody asks. A job claims whole rings. It gets stock of its size
// as it is, without a change of light, or else rings of its own size on nodes
// that are no other job's, for which stock ends. A ring of a job is mended with
// nodes near it and moves for nobody. What a job gives back is stock again where
// its size is, and ends else.

// Want is what a job wants.
type Want struct {
	Size    int // nodes of a ring
	Rings   int
	Spares  int            // nodes that are kept for it, each within reach of a ring
	Nodes   []proto.NodeID // that alone it may have; nil: any
	Exclude []proto.NodeID // that it may not have
	Ring    proto.RingID   // of just those nodes, that alone it may have; 0: any
	Again   bool           // it had that ring, which may be formed again where it has ended
	Spread  bool           // its rings stand apart, else side by side
	AtToR   bool           // ranks that talk to one another under one ToR switch
}

// Share is what a job would get, or gets.
type Share struct {
	Stock  []proto.RingID   // rings that are there, and not of others
	New    [][]proto.NodeID // rings to be formed
	As     proto.RingID     // number of the ring to be formed, where it is one; 0: the next free numbers
	Spares []proto.NodeID
	Ends   []proto.RingID // stock that makes room for those
	Most   int            // rings of this size that it could have now; only where it gets none
	Why    string         // it gets none; "" when it does
	Gone   bool           // and never will: the ring that it names is not what its name said
}

// Claims are what jobs have of the rings.
type Claims struct{ h *Rings }

// Bar says which nodes a job must not have, whatever is mended.
func (c Claims) Bar(bar func(owner string, id proto.NodeID) bool) { c.h.Placed.bar = bar }

// Along says of which jobs whole rings move to stay under the ToRs of their others.
func (c Claims) Along(along func(owner string) bool) { c.h.Placed.along = along }

// ClaimsOf the rings.
func ClaimsOf(h *Rings) Claims { return Claims{h} }

// Resumed takes note of how long after its light a job computed again.
func (c Claims) Resumed(after time.Duration) { c.h.Evidence.patience.Resumed(after) }

// Resting: rings may be claimed.
func (c Claims) Resting() bool { return c.h.Resting() }

// demands are the rings that are to be there: what jobs have, and of each size as many
// more as the fabric describes, as far as those leave room; what stands of it stays.
func (p *placement) demands(f *fabric.Fabric) []ring.Demand {
	var out []ring.Demand
	left, owned, stands, jobs := f.Nodes-max(f.Spares, len(p.kept)), map[int]int{}, map[int]int{}, len(p.kept) > 0
	for _, r := range p.rings {
		if left -= r.size; r.owner == "" {
			stands[r.size]++
		} else {
			owned[r.size]++
			jobs = true
		}
	}
	targets := ring.DemandsOf(f)
	for _, d := range targets {
		stock := max(0, d.Want-owned[d.Size])
		if stand := min(stands[d.Size], d.Want); jobs {
			stock = stand + min(max(0, stock-stand), max(0, left)/d.Size)
			left -= (stock - stand) * d.Size
		}
		d.Want = stock + owned[d.Size]
		delete(owned, d.Size)
		out = append(out, d)
	}
	for _, size := range slices.Sorted(maps.Keys(owned)) {
		out = append(out, ring.Demand{Size: size, Want: owned[size]})
	}
	return out
}

// resize notes which sizes rings have.
func (p *placement) resize() {
	p.sizes = nil
	for _, d := range p.demands(p.fab) {
		p.sizes = append(p.sizes, d.Size)
	}
	slices.Sort(p.sizes)
	p.sizes = slices.Compact(p.sizes)
}

// Share is what a want would get now. Nothing changes.
func (c Claims) Share(w Want) (s Share) {
	h := c.h
	if w.Ring != 0 && (!w.Again || h.Placed.ring(w.Ring) != nil) {
		return c.named(w)
	}
	s.As = w.Ring
	may := c.claimable(w)
	if w.Nodes == nil && !w.AtToR {
		s.Stock = c.stock(w)
	}
	if len(s.Stock) == w.Rings && w.Spares == 0 {
		return s
	}
	s.Stock = nil
	order := ring.Problem{Order: h.Placed.order, Usable: may, Spread: w.Spread, Broken: h.Evidence.broken}
	if len(h.Evidence.cuts.known) == 0 {
		order.Broken = nil
	}
	if w.AtToR {
		s.New, _ = h.Placed.underToRs(w.Size, w.Rings, may)
		s.Spares = beside(order, s.New, w.Spares)
	} else {
		s.New, s.Spares = lay(order, w)
	}
	if len(s.New) == w.Rings && len(s.Spares) == w.Spares {
		if w.Nodes != nil {
			s.Spares = append(s.Spares, c.rest(w, may, &s)...)
		}
		if w.Ring == 0 {
			c.keepStock(&s, w.Size)
		}
		s.Ends = c.ends(&s)
		return s
	}
	order.Size, order.Want = w.Size, -1
	s = Share{Most: len(ring.Place(order))}
	switch {
	case s.Most >= w.Rings:
		s.Why = fmt.Sprintf("%s of %d nodes fit, but not with %s within reach", proto.Count(w.Rings, "ring"), w.Size, proto.Count(w.Spares, "spare"))
	default:
		s.Why = fmt.Sprintf("%s of %d nodes, and there is room for %d now", proto.Count(w.Rings, "ring"), w.Size, s.Most)
	}
	return s
}

// named is a ring by its number. Who names one has seen it stand on those nodes, and
// would not know one of another number or on others for the same.
func (c Claims) named(w Want) (s Share) {
	switch r := c.h.Placed.ring(w.Ring); {
	case r == nil || r.size != w.Size || !slices.Equal(slices.Sorted(slices.Values(r.nodes)), w.Nodes):
		s.Why, s.Gone = fmt.Sprintf("there is no ring %d of these nodes any more", w.Ring), true
	case r.owner != "":
		s.Why = fmt.Sprintf("ring %d is for job %s", w.Ring, r.owner)
	case !c.lendable(r, w):
		s.Why = fmt.Sprintf("ring %d is %s", w.Ring, r.stateNow())
	default:
		s.Stock = []proto.RingID{w.Ring}
	}
	return s
}

// lendable: a ring is stock, whole and lit.
func (c Claims) lendable(r *ringView, w Want) bool {
	return r.owner == "" && r.size == w.Size && r.stateNow() == proto.RingInService && !r.frozen(c.h.j.Now) &&
		!slices.ContainsFunc(r.nodes, func(n proto.NodeID) bool { return slices.Contains(w.Exclude, n) || !c.h.Placed.free(n) })
}

// rest are the nodes of a list that no ring has: whoever listed them means them
// for this job.
func (c Claims) rest(w Want, may func(proto.NodeID) bool, s *Share) []proto.NodeID {
	taken := map[proto.NodeID]bool{}
	mark(taken, s.New...)
	mark(taken, s.Spares)
	return slices.DeleteFunc(slices.Clone(w.Nodes), func(n proto.NodeID) bool { return taken[n] || !may(n) })
}

// mark puts nodes into a set.
func mark(set map[proto.NodeID]bool, groups ...[]proto.NodeID) {
	for _, nodes := range groups {
		for _, n := range nodes {
			set[n] = true
		}
	}
}

// Without are the nodes of a that are not in b.
func Without(a, b []proto.NodeID) []proto.NodeID {
	return slices.DeleteFunc(slices.Clone(a), func(n proto.NodeID) bool { return slices.Contains(b, n) })
}

// claimable tells which nodes a want may have.
func (c Claims) claimable(w Want) func(proto.NodeID) bool {
	h := c.h
	only := map[proto.NodeID]bool{}
	mark(only, w.Nodes)
	return func(id proto.NodeID) bool {
		if w.Nodes != nil && !only[id] || slices.Contains(w.Exclude, id) || !h.Placed.free(id) {
			return false
		}
		r := h.Placed.ring(h.Placed.nodes[id].Device.Group)
		return r == nil || r.owner == "" && !r.frozen(h.j.Now)
	}
}

// stock picks whole rings that are there: those side by side that lie closest,
// or such that stand apart.
func (c Claims) stock(w Want) []proto.RingID {
	h := c.h
	whole := slices.DeleteFunc(slices.Clone(h.Placed.rings), func(r *ringView) bool { return !c.lendable(r, w) })
	if len(whole) < w.Rings {
		return nil
	}
	slices.SortFunc(whole, func(a, b *ringView) int { return cmp.Compare(a.nodes[0], b.nodes[0]) })
	var ids []proto.RingID
	if w.Spread {
		for i := range w.Rings {
			ids = append(ids, whole[i*len(whole)/w.Rings].id)
		}
		return ids
	}
	best, from := -1, 0
	for i := 0; i+w.Rings <= len(whole); i++ {
		last := whole[i+w.Rings-1].nodes
		if span := int(last[len(last)-1]) - int(whole[i].nodes[0]); best < 0 || span < best {
			best, from = span, i
		}
	}
	for _, r := range whole[from : from+w.Rings] {
		ids = append(ids, r.id)
	}
	return ids
}

// keepStock takes groups that are rings already as they are.
func (c Claims) keepStock(s *Share, size int) {
	h := c.h
	s.New = slices.DeleteFunc(s.New, func(nodes []proto.NodeID) bool {
		r := h.Placed.ring(h.Placed.nodes[nodes[0]].Device.Group)
		same := r != nil && r.size == size && slices.Equal(r.nodes, nodes)
		if same {
			s.Stock = append(s.Stock, r.id)
		}
		return same
	})
}

// ends are the rings that the nodes of a share are in.
func (c Claims) ends(s *Share) (gone []proto.RingID) {
	for _, nodes := range append(slices.Clone(s.New), s.Spares) {
		for _, n := range nodes {
			if id := c.h.Placed.nodes[n].Device.Group; id != 0 {
				gone = append(gone, id)
			}
		}
	}
	slices.Sort(gone)
	return slices.Compact(gone)
}

// lay lays a want's rings and spares on nodes. A spare stands between two rings
// as far as that goes round, or at the end of one: nobody moves for a ring of a
// job, so that only what is beside it can join it.
func lay(p ring.Problem, w Want) (rings [][]proto.NodeID, spares []proto.NodeID) {
	taken := map[proto.NodeID]bool{}
	usable := p.Usable
	p.Usable = func(id proto.NodeID) bool { return !taken[id] && usable(id) }
	place := func(size, want int) [][]proto.NodeID {
		p.Size, p.Want = size, want
		groups := ring.Place(p)
		mark(taken, groups...)
		return groups
	}
	left, free := w.Rings, w.Spares
	for free > 0 && left > 0 {
		blocks := min(free, max(1, left/2)) // each with one spare, or what is over
		beside, each := min(2, left), (free+blocks-1)/blocks
		blocks = min(blocks, free/each, left/beside)
		groups := place(beside*w.Size+each, blocks)
		for _, g := range groups {
			rings = append(rings, slices.Clone(g[:w.Size]))
			spares = append(spares, g[w.Size:w.Size+each]...)
			if beside == 2 {
				rings = append(rings, slices.Clone(g[w.Size+each:]))
			}
		}
		if left, free = left-len(groups)*beside, free-len(groups)*each; len(groups) < blocks {
			return nil, nil
		}
	}
	rings = append(rings, place(w.Size, left)...)
	slices.SortFunc(rings, func(a, b []proto.NodeID) int { return cmp.Compare(a[0], b[0]) })
	return rings, spares
}

// beside picks so many nodes that no ring has and that reach one.
func beside(p ring.Problem, rings [][]proto.NodeID, count int) (spares []proto.NodeID) {
	taken := map[proto.NodeID]bool{}
	mark(taken, rings...)
	for _, r := range rings {
		for _, end := range [2]proto.NodeID{r[0], r[len(r)-1]} {
			for by := -p.K; by <= p.K && len(spares) < count; by++ {
				n := int(end) + by
				if p.Wrap {
					n = (n + p.Nodes) % p.Nodes
				}
				if id := proto.NodeID(n); n >= 0 && n < p.Nodes && !taken[id] && p.Usable(id) {
					taken[id] = true
					spares = append(spares, id)
				}
			}
		}
	}
	return spares
}

// Claim gives a job its share. The rings' numbers are in the order of the
// share, stock first. With nothing new to be formed it is done at once, and
// the caller stores what it returns; else a generation is begun, which stores
// records of the job's own as it is decided, and Claiming says how it goes. It
// is called at rest.
func (c Claims) Claim(owner string, size int, s Share, own func([]proto.RingID) []journal.Record) (records []journal.Record) {
	h := c.h
	if !h.Resting() {
		panic("hbd: invariant: rings are claimed at rest")
	}
	for _, n := range s.Spares {
		h.Placed.kept[n] = owner
	}
	if len(s.New) == 0 && len(s.Ends) == 0 {
		for _, id := range s.Stock {
			records = append(records, c.lendTo(id, owner))
		}
		c.claimed()
		return append(records, own(s.Stock)...)
	}
	q := &proposal{pl: h.Placed, next: h.nextRing, owner: owner, stock: s.Stock, spares: s.Spares, gone: s.Ends}
	ids := slices.Clone(s.Stock)
	for _, nodes := range s.New {
		id := s.As
		if id == 0 {
			id = q.next
			q.next++
		}
		q.rings = append(q.rings, &ringView{pl: h.Placed, id: id, nodes: nodes, size: size, owner: owner})
		ids = append(ids, id)
	}
	q.idle = h.Agenda.toTell(q)
	q.own = own(ids)
	h.prepare(q)
	return nil
}

// Claiming reports whether a claim of a job is under way.
func (c Claims) Claiming(owner string) bool {
	return c.h.proposal != nil && c.h.proposal.owner == owner
}

// lendTo assigns a formed ring to a job, or to none.
func (c Claims) lendTo(id proto.RingID, owner string) journal.Record {
	h := c.h
	r := h.Placed.ring(id)
	r.owner = owner
	h.Placed.touchRing(id)
	h.Placed.tell(r)
	return journal.Encode(ringKey(id), r.record(r.Decided))
}

// Keep keeps nodes for a job, as the store says.
func (c Claims) Keep(owner string, nodes []proto.NodeID) {
	h := c.h
	for _, n := range nodes {
		if int(n) < len(h.Placed.nodes) {
			h.Placed.kept[n] = owner
		}
	}
	h.Placed.resize()
}

// claimed looks at everything with the present owners in mind.
func (c Claims) claimed() {
	h := c.h
	h.Placed.resize()
	if h.Placed.index != nil {
		h.Evidence.reindex()
	}
	h.surplus = true
	h.Agenda.markAll()
	h.Agenda.replan(0)
}

// trim ends unassigned rings beyond those that are wanted, the last first; nil:
// there are none.
func trim(h *Rings) *proposal {
	if !h.surplus {
		return nil
	}
	room := map[int]int{}
	for _, d := range h.Placed.demands(h.Placed.fab) {
		room[d.Size] = d.Want
	}
	for _, r := range h.Placed.rings {
		room[r.size]--
	}
	q := &proposal{pl: h.Placed, next: h.nextRing}
	for i := len(h.Placed.rings) - 1; i >= 0; i-- {
		if r := h.Placed.rings[i]; r.owner == "" && room[r.size] < 0 && !r.frozen(h.j.Now) {
			room[r.size]++
			q.gone = append(q.gone, r.id)
		}
	}
	if len(q.gone) == 0 {
		h.surplus = slices.ContainsFunc(h.Placed.rings, func(r *ringView) bool { return r.owner == "" && room[r.size] < 0 })
		return nil
	}
	slices.Sort(q.gone)
	q.idle = h.Agenda.toTell(q)
	return q
}
