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
	h.Agenda.planAt = journal.Never
	if len(h.Placed.nodes) == 0 {
		return nil // circuits only
	}
	rings := h.Agenda.concerned()
	for _, r := range rings {
		h.Evidence.concludeDead(r)
		h.Evidence.dueSplit(r)
		if r.step > 0 && !r.renew && r.unpaired(r.step, h.Evidence.broken) != "" { // told to be a ring again
			r.renew, r.renewed = true, max(1, r.renewed)
		}
		if r.splitAt != 0 {
			h.Agenda.replan(max(r.splitAt+splitWait, r.renewAt) - h.j.Now)
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
			h.Agenda.mark(r)
		}
	}
	return q
}

// choose mends what is hurt first, and alone: few nodes to ask, and none that
// has light elsewhere. What could be better placed waits until that is over.
func (h *Rings) choose(rings []*ringView) *proposal {
	if len(h.Placed.rings) > 0 {
		if q := h.propose(rings, true); !q.empty() {
			h.Agenda.betterAt, h.Agenda.wantBetter = max(h.Agenda.betterAt, h.j.Now+betterWait), true
			return q
		}
		if !h.Agenda.wantBetter {
			return nil
		}
		if h.j.Now < h.Agenda.betterAt {
			h.Agenda.lookAt = h.Agenda.betterAt
			return nil
		}
	}
	h.Agenda.wantBetter = false
	if q := h.propose(rings, false); !q.empty() {
		h.Agenda.wantBetter = true
		return q
	}
	return nil
}

// retryRefused asks nodes again that refused some time ago.
func (h *Rings) retryRefused() {
	h.refusing = slices.DeleteFunc(h.refusing, func(id proto.NodeID) bool {
		n := &h.Placed.nodes[id]
		switch {
		case n.Device.Refusal.Code == proto.OK:
			return true
		case n.Device.Retry(h.j.Now):
			h.Agenda.markNode(n)
			h.Agenda.replan(0)
			if r := h.Placed.ring(n.Device.Group); r != nil {
				h.Evidence.watchRing(r) // it may be in pieces, and waited for that node alone
			}
			return true
		}
		h.Agenda.replan(n.Device.Refusal.Until - h.j.Now)
		return false
	})
}

// propose mends the committed rings. A ring stays exactly as it is while one
// of its members cannot be told anything, or while its bypass is not yet
// reported. near: no ring goes elsewhere, and none is formed.
func (h *Rings) propose(rings []*ringView, near bool) *proposal {
	for _, r := range rings {
		if wait := r.hurtAt + settleWait - h.j.Now; r.hurtAt != 0 && wait > 0 {
			h.Agenda.replan(wait)
		}
	}
	// A ring of which a member did not answer would keep the others waiting once more.
	if others := slices.DeleteFunc(slices.Clone(rings), func(r *ringView) bool { return r.balked }); len(others) < len(rings) {
		if q := h.propose(others, near); len(q.rings)+len(q.gone) > 0 {
			return q
		}
	}
	res, ok := h.Evidence.first(h.Placed.index.Mend)
	if !ok {
		ids := make([]proto.RingID, len(rings))
		for i, r := range rings {
			ids[i] = r.id
		}
		_, _, waits := h.Placed.Expected()
		h.Evidence.patience.SetPrice(h.Placed.fab)
		h.Placed.index.Moves, h.Placed.index.AtOnce, h.Placed.index.Fetch = ring.MovesOf(h.Placed.fab.Moves), h.Evidence.patience.AtOnce(), 0
		switch {
		case waits > 0: // what they are to carry would be laid on others
			h.Placed.index.Moves = 0
		case !near && h.Evidence.patience.Paid(h.j.Now):
			h.Placed.index.Fetch = maxFetch
		}
		if res = h.Placed.index.Look(ids, near); !near && waits == 0 {
			if due, waits := h.Evidence.patience.Saw(&res, h.j.Now); waits && res.Fetched == 0 {
				h.Agenda.lookAt, h.Agenda.wantBetter = min(h.Agenda.lookAt, max(due, h.j.Now+betterWait)), true
			}
		}
	}
	q := &proposal{pl: h.Placed, next: h.nextRing, gone: res.Gone}
	h.take(q, &res)
	h.renewals(q, rings)
	slices.SortFunc(q.rings, func(a, b *ringView) int { return cmp.Compare(a.id, b.id) })
	q.idle = h.Agenda.toTell(q)
	return q
}

// mending is the placement's task as things stand.
func (h *evidence) mending() ring.Mend {
	return ring.Mend{
		Order: h.pl.order, Sizes: h.pl.demands(h.pl.fab), Moves: ring.MovesOf(h.pl.fab.Moves), AtOnce: h.patience.AtOnce(), Spread: h.pl.fab.SpareLayout == fabric.Beside,
		Usable: func(id proto.NodeID) bool { return h.pl.nodes[id].wanted() },
		Free:   h.pl.free,
		Own:    func(id proto.NodeID, r proto.RingID) bool { return h.pl.own(id, h.pl.ring(r)) },
		Bar:    func(id proto.NodeID, r proto.RingID) bool { return h.pl.barred(id, h.pl.ring(r)) },
		Broken: h.broken,
		Frozen: func(id proto.RingID) bool { return h.pl.ring(id).frozen(h.j.Now) },
		Racks:  h.pl.racks,
		Along: func(id proto.RingID) bool {
			r := h.pl.ring(id)
			return r.owner != "" && h.pl.along != nil && h.pl.along(r.owner)
		},
	}
}

// reindex builds the index again from the committed rings.
func (e *evidence) reindex() {
	running := make([]ring.Group, len(e.pl.rings))
	for i, r := range e.pl.rings {
		running[i] = r.group()
	}
	e.pl.index = ring.NewTracker(e.mending(), running...)
}

// take turns the groups that a placement touched into rings.
func (h *Rings) take(q *proposal, res *ring.Result) {
	for _, at := range res.Touched {
		g := res.Groups[at]
		if g.ID != 0 && len(g.Nodes) < g.Size && h.Placed.fab.OnLoss == fabric.Dissolve && g.Owner == "" {
			q.gone = append(q.gone, g.ID) // its nodes are told that they are spares
			continue
		}
		if g.ID == 0 {
			g.ID = q.next
			q.next++
		}
		q.rings = append(q.rings, h.Placed.view(g.ID, g.Nodes, g.Size))
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
			x := h.Placed.view(r.id, slices.Clone(r.nodes), r.size)
			if r.step > 0 && x.unpaired(r.step, h.Evidence.broken) == "" {
				x.step = r.step
			}
			q.rings = append(q.rings, x)
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
		r := h.Placed.ring(id)
		if r == nil || r.hasLight() || !r.allReady() {
			continue // gone, well, or hurt since: that is another matter
		}
		if h.j.Now < h.stageAt+qualifyWait {
			h.Agenda.replan(stagePoll)
			return false
		}
		if !h.stageStopped {
			h.stageStopped = true
			h.j.Note(journal.Error, "roll-out stopped", journal.Note{Rule: "stop", Node: -1, Ring: id, Gen: r.Gen,
				Text: fmt.Sprintf("ring %d has light on %d of %d links %v after it was told; the others are told in %v", id, r.linksConfirmed(), r.linkCount(), qualifyWait, renewLast)})
		}
		if h.j.Now < h.stageAt+renewLast {
			h.Agenda.replan(h.stageAt + renewLast - h.j.Now)
			return false
		}
	}
	h.stage, h.stageStopped = nil, false
	return true
}

// toTell lists the nodes that a proposal leaves without a ring, or that were
// never told where they stand, and that can be told.
func (a *agenda) toTell(q *proposal) []proto.NodeID {
	placed := map[proto.NodeID]bool{}
	for _, r := range q.rings {
		mark(placed, r.nodes)
	}
	var idle []proto.NodeID
	tell := func(id proto.NodeID) {
		if n := &a.pl.nodes[id]; !placed[id] && n.Device.Ready() && n.able() {
			idle = append(idle, id)
		}
	}
	for _, id := range a.untold() {
		tell(id)
	}
	leave := func(id proto.RingID) {
		if r := a.pl.ring(id); r != nil {
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
