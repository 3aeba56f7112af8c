package hbd

import (
	"cmp"
	"fmt"
	"slices"

	"ringlight/planner/fabric"
	"ringlight/planner/journal"
	"ringlight/planner/ring"
	"ringlight/proto"
)

// look compares what should be with what is committed, and finds what is to be
// changed: nil when that is nothing.
func (h *Rings) look() *proposal {
	h.dirty, h.planAt = false, journal.Never
	if len(h.nodes) == 0 {
		return nil // circuits only
	}
	rings := h.concerned()
	for _, r := range rings {
		h.concludeDead(r)
		h.dueSplit(r)
		if r.splitAt != 0 {
			h.replan(max(r.splitAt+splitWait, r.renewAt) - h.j.Now)
		}
		h.obstacles.stepOver(r)
		h.obstacles.retell(r)
	}
	h.retryRefused()
	h.obstacles.undamp()
	q := trim(h)
	if q == nil {
		q = h.choose(rings)
	}
	for _, r := range rings {
		if r.waits() {
			h.mark(r)
		}
	}
	return q
}

// choose mends what is hurt first, and alone: few nodes to ask, and none that
// has light elsewhere. What could be better placed waits until that is over.
func (h *Rings) choose(rings []*ringView) *proposal {
	if len(h.rings) > 0 {
		if q := h.propose(rings, true); !q.empty() {
			h.betterAt, h.wantBetter = max(h.betterAt, h.j.Now+betterWait), true
			return q
		}
		if !h.wantBetter {
			return nil
		}
		if h.j.Now < h.betterAt {
			h.lookAt = h.betterAt
			return nil
		}
	}
	h.wantBetter = false
	if q := h.propose(rings, false); !q.empty() {
		h.wantBetter = true
		return q
	}
	return nil
}

// retryRefused asks nodes again that refused some time ago.
func (h *Rings) retryRefused() {
	h.refusing = slices.DeleteFunc(h.refusing, func(id proto.NodeID) bool {
		n := &h.nodes[id]
		switch {
		case n.Refusal.Code == proto.OK:
			return true
		case n.Retry(h.j.Now):
			h.markNode(n)
			h.replan(0)
			if r := h.ring(n.Group); r != nil {
				h.watchRing(r) // it may be in pieces, and waited for that node alone
			}
			return true
		}
		h.replan(n.Refusal.Until - h.j.Now)
		return false
	})
}

// propose mends the committed rings. A ring stays exactly as it is while one
// of its members cannot be told anything, or while its bypass is not yet
// reported. near: no ring goes elsewhere, and none is formed.
func (h *Rings) propose(rings []*ringView, near bool) *proposal {
	for _, r := range rings {
		if wait := r.hurtAt + settleWait - h.j.Now; r.hurtAt != 0 && wait > 0 {
			h.replan(wait)
		}
	}
	// A ring of which a member did not answer would keep the others waiting once more.
	if others := slices.DeleteFunc(slices.Clone(rings), func(r *ringView) bool { return r.balked }); len(others) < len(rings) {
		if q := h.propose(others, near); len(q.rings)+len(q.gone) > 0 {
			return q
		}
	}
	res, ok := h.first(h.index.Mend)
	if !ok {
		ids := make([]proto.RingID, len(rings))
		for i, r := range rings {
			ids[i] = r.id
		}
		_, _, waits := h.Expected()
		h.patience.Price = h.fab.MovePrice()
		h.index.Moves, h.index.AtOnce, h.index.Fetch = ring.MovesOf(h.fab.Moves), h.patience.AtOnce(), 0
		switch {
		case waits > 0: // what they are to carry would be laid on others
			h.index.Moves = 0
		case !near && h.patience.Paid(h.j.Now):
			h.index.Fetch = maxFetch
		}
		if res = h.index.Look(ids, near); !near && waits == 0 {
			if due, waits := h.patience.Saw(&res, h.j.Now); waits && res.Fetched == 0 {
				h.lookAt, h.wantBetter = min(h.lookAt, max(due, h.j.Now+betterWait)), true
			}
		}
	}
	q := &proposal{pl: h.placement, next: h.nextRing, gone: res.Gone}
	h.take(q, &res)
	h.renewals(q, rings)
	slices.SortFunc(q.rings, func(a, b *ringView) int { return cmp.Compare(a.id, b.id) })
	q.idle = h.toTell(q)
	return q
}

// mending is the placement's task as things stand.
func (h *evidence) mending() ring.Mend {
	return ring.Mend{
		Order: h.order, Sizes: h.demands(h.fab), Moves: ring.MovesOf(h.fab.Moves), AtOnce: h.patience.AtOnce(), Spread: h.fab.SpareLayout == fabric.Beside,
		Usable: func(id proto.NodeID) bool { return h.nodes[id].wanted() },
		Free:   h.free,
		Own:    func(id proto.NodeID, r proto.RingID) bool { return h.own(id, h.ring(r)) },
		Bar:    func(id proto.NodeID, r proto.RingID) bool { return h.barred(id, h.ring(r)) },
		Broken: h.broken,
		Frozen: func(id proto.RingID) bool { return h.ring(id).frozen(h.j.Now) },
		Racks:  h.racks,
		Along: func(id proto.RingID) bool {
			r := h.ring(id)
			return r.owner != "" && h.along != nil && h.along(r.owner)
		},
	}
}

// reindex builds the index again from the committed rings.
func (h *Rings) reindex() {
	running := make([]ring.Group, len(h.rings))
	for i, r := range h.rings {
		running[i] = r.group()
	}
	h.index = ring.NewTracker(h.mending(), running...)
}

// take turns the groups that a placement touched into rings.
func (h *Rings) take(q *proposal, res *ring.Result) {
	for _, at := range res.Touched {
		g := res.Groups[at]
		if g.ID != 0 && len(g.Nodes) < g.Size && h.fab.OnLoss == fabric.Dissolve && g.Owner == "" {
			q.gone = append(q.gone, g.ID) // its nodes are told that they are spares
			continue
		}
		if g.ID == 0 {
			g.ID = q.next
			q.next++
		}
		q.rings = append(q.rings, h.view(g.ID, g.Nodes, g.Size))
	}
}

// renewals adds rings that are to be told again, some at a time: what is
// wrong with a plan shows on the first ones, and the rest comes when those
// have light. A split ring that is formed anew waits for nobody.
func (h *Rings) renewals(q *proposal, rings []*ringView) {
	told := func(r *ringView) bool { return r.renew && r.renewed == 0 }
	clear := slices.ContainsFunc(rings, told) && h.stageClear()
	for _, r := range rings {
		if told(r) && (!clear || len(q.stage) == maxStage) {
			continue
		}
		if r.renew && !r.frozen(h.j.Now) && !slices.ContainsFunc(q.rings, func(x *ringView) bool { return x.id == r.id }) && !slices.Contains(q.gone, r.id) {
			q.rings = append(q.rings, h.view(r.id, slices.Clone(r.nodes), r.size))
			if told(r) {
				q.stage = append(q.stage, r.id)
			}
		}
	}
}

// stageClear reports whether the rings told again last have light, so that
// the next ones may be told. A stage that gets none stops the rest.
func (h *Rings) stageClear() bool {
	for _, id := range h.stage {
		r := h.ring(id)
		if r == nil || r.hasLight() || !r.allReady() {
			continue // gone, well, or hurt since: that is another matter
		}
		if h.j.Now < h.stageAt+qualifyWait {
			h.replan(stagePoll)
			return false
		}
		if !h.stageStopped {
			h.stageStopped = true
			h.j.Note(journal.Error, "roll-out stopped", journal.Note{Rule: "stop", Node: -1, Ring: id, Gen: r.Gen,
				Text: fmt.Sprintf("ring %d has light on %d of %d links %v after it was told; the others are told in %v", id, r.linksConfirmed(), len(r.nodes)-1, qualifyWait, renewLast)})
		}
		if h.j.Now < h.stageAt+renewLast {
			h.replan(h.stageAt + renewLast - h.j.Now)
			return false
		}
	}
	h.stage, h.stageStopped = nil, false
	return true
}

// toTell lists the nodes that a proposal leaves without a ring, or that were
// never told where they stand, and that can be told.
func (h *Rings) toTell(q *proposal) []proto.NodeID {
	placed := map[proto.NodeID]bool{}
	for _, r := range q.rings {
		for _, n := range r.nodes {
			placed[n] = true
		}
	}
	var idle []proto.NodeID
	tell := func(id proto.NodeID) {
		if n := &h.nodes[id]; !placed[id] && n.Ready() && n.able() {
			idle = append(idle, id)
		}
	}
	for _, id := range h.untold() {
		tell(id)
	}
	leave := func(id proto.RingID) {
		if r := h.ring(id); r != nil {
			for _, n := range r.nodes {
				tell(n)
			}
		}
	}
	for _, id := range q.gone {
		leave(id)
	}
	for _, r := range q.rings {
		leave(r.id)
	}
	slices.Sort(idle)
	return slices.Compact(idle)
}
