package hbd

import (
	"fmt"
	"slices"
	"strconv"

	"ringlight/planner/fabric"
	"ringlight/planner/journal"
	"ringlight/planner/member"
	"ringlight/planner/ring"
	"ringlight/proto"
)

// A fabric is edited while it runs: one record of the store says that another
// description is planned for from now on, and everything else follows from
// that as from any other news. Rings whose members would have other candidates
// are told again, with the light they have; rings that may end do; new nodes
// are expected. Nothing of it may cost light that nobody gave away, so it is
// refused where some would be.

// maxRefusals is how many reasons an edit is refused for at once. chosen: a
// page that one can read.
const maxRefusals = 20

// Against says what an edit would cost of light that runs: why it is refused,
// and which nodes carry a ring and have no place any more. Rings of ends may
// end, and with moves others may move, as far as the description lets them.
func (e *evidence) Against(to *fabric.Fabric, ends []proto.RingID, moves bool) (refused []string, drains []proto.NodeID) {
	add := func(format string, args ...any) {
		if len(refused) < maxRefusals {
			refused = append(refused, proto.Clip(fmt.Sprintf(format, args...)))
		}
	}
	for _, id := range ends {
		if e.pl.ring(id) == nil {
			add("ring %d: there is none, and it cannot end", id)
		}
	}
	order, targets := ring.OrderOf(to), to.Targets()
	running := make([]int, len(targets))
	for _, r := range e.pl.rings {
		if slices.Contains(ends, r.id) {
			continue
		}
		at := slices.IndexFunc(targets, func(t fabric.RingSize) bool { return t.TP == r.size*e.pl.fab.GPUsPerNode })
		switch {
		case r.owner != "": // the job wants it
		case at >= 0:
			running[at]++
		default:
			add("ring %d of %d GPUs runs, and none of that size is wanted: let it end with -end %d", r.id, r.size*e.pl.fab.GPUsPerNode, r.id)
		}
		lost := false
		for _, n := range r.nodes {
			if int(n) >= to.Nodes {
				drains, lost = append(drains, n), true
			}
		}
		if lost {
			add("ring %d is carried by nodes %v, which are to go: drain them first, with -drain, or let the ring end with -end %d", r.id, leavers(r.nodes, to.Nodes), r.id)
			continue
		}
		if err := order.Check(r.nodes); err != nil {
			add("ring %d: %v: let it end with -end %d", r.id, err, r.id)
		}
		e.pl.fibresInUse(r, to, add)
	}
	for i, t := range targets {
		if more := running[i] - t.Rings; more > 0 {
			add("%d rings of %d GPUs run, and %d are wanted or fit beside %d spares: let %d of them end with -end", running[i], t.TP, t.Rings, to.Spares, more)
		}
	}
	e.pl.bundlesThere(to, add)
	if len(refused) == 0 && !moves {
		for _, id := range e.movedBy(to, ends) {
			add("ring %d would move, so that one more is whole: let rings move with -move, or set moves to none", id)
		}
	}
	return refused, drains
}

// movedBy finds the rings that a description has moved when everybody who is
// expected has come.
func (e *evidence) movedBy(to *fabric.Fabric, ends []proto.RingID) (moved []proto.RingID) {
	m := e.mending()
	m.Racks, m.Order, m.Sizes, m.Moves, m.Spread = ring.RacksOf(to), ring.OrderOf(to), e.pl.demands(to), ring.MovesOf(to.Moves), to.SpareLayout == fabric.Beside
	if m.Moves > 0 {
		m.Fetch = maxFetch // sooner or later
	}
	m.Usable = func(id proto.NodeID) bool { return int(id) >= len(e.pl.nodes) || e.pl.nodes[id].wanted() }
	m.Free = func(id proto.NodeID) bool { return int(id) >= len(e.pl.nodes) || e.pl.free(id) }
	var ids []proto.RingID
	var running []ring.Group
	for _, r := range e.pl.rings {
		if !slices.Contains(ends, r.id) {
			ids, running = append(ids, r.id), append(running, r.group())
		}
	}
	res := ring.NewTracker(m, running...).Look(ids, false)
	for _, at := range res.Touched {
		g := &res.Groups[at]
		if r := e.pl.ring(g.ID); r != nil && slices.ContainsFunc(r.nodes, func(n proto.NodeID) bool { return m.Usable(n) && !slices.Contains(g.Nodes, n) }) {
			moved = append(moved, g.ID)
		}
	}
	return moved
}

// Expected are the first and the last node that an edit brought and that has
// not come yet, and how many there are. Until all have, no ring moves: what they
// are to carry would be laid on others.
func (p *placement) Expected() (first, last proto.NodeID, count int) {
	for i := p.grown; i < len(p.nodes); i++ {
		if n := &p.nodes[i]; n.Device.Want.Gen == 0 && !n.Device.Heard() {
			if last = proto.NodeID(i); count == 0 {
				first = last
			}
			count++
		}
	}
	return first, last, count
}

func leavers(nodes []proto.NodeID, from int) []proto.NodeID {
	return slices.DeleteFunc(slices.Clone(nodes), func(n proto.NodeID) bool { return int(n) < from })
}

// fibresInUse names the fibres that a ring has light on, planned or passed by,
// and that are elsewhere in another description.
func (p *placement) fibresInUse(r *ringView, to *fabric.Fabric, add func(string, ...any)) {
	keep := func(at fabric.Port) {
		is, crossed, ok := p.fab.At(at)
		if then, c, there := to.At(at); ok && (!there || then != is || c != crossed) {
			add("ring %d has light on fibre %s - %s, which is to go: let the ring end with -end %d", r.id, at, is, r.id)
		}
	}
	for at, id := range r.nodes {
		if to := r.peer(at, proto.Right); to >= 0 {
			if link, ok := p.fab.Link(id, r.nodes[to]); ok {
				keep(link.Local)
			}
		}
		n := &p.nodes[id]
		if !n.Device.At(r.Decided) {
			continue
		}
		said := n.Device.Whole()
		for _, s := range said.Sides {
			if list := candidates(said, s.Side); s.Current >= 0 && int(s.Current) < len(list) && int(s.Current) != int(s.Working) {
				keep(fabric.Port{Node: id, Bundle: list[s.Current].Bundle, Path: list[s.Current].Path})
			}
		}
	}
}

// bundlesThere names the nodes whose boards have too few bundles.
func (p *placement) bundlesThere(to *fabric.Fabric, add func(string, ...any)) {
	for i := range p.nodes {
		n := &p.nodes[i]
		if i < to.Nodes && n.Device.Known && len(n.Device.Whole().Bundles) < to.Bundles {
			add("node %d has %d bundles of transceivers, %d are wanted", n.Device.ID, len(n.Device.Whole().Bundles), to.Bundles)
		}
	}
}

// Retold is how many rings an edit would tell again.
func (e *evidence) Retold(to *fabric.Fabric, ends []proto.RingID) (count uint32) {
	p := *e.pl
	p.fab, p.order = to, ring.OrderOf(to)
	for _, r := range e.pl.rings {
		if !slices.Contains(ends, r.id) && slices.ContainsFunc(r.nodes, func(id proto.NodeID) bool { return e.outdated(&e.pl.nodes[id], r, &p) }) {
			count++
		}
	}
	return count
}

// outdated: a member holds other candidates or times than a placement would
// give it now.
func (e *evidence) outdated(n *node, r *ringView, p *placement) bool {
	said := n.Device.Whole()
	if len(said.Rings) == 0 || said.Rings[0].Ring != r.id {
		return false
	}
	is, at := &said.Rings[0], slices.Index(r.nodes, n.Device.ID)
	return !slices.Equal(is.Left, p.candidates(r.nodes, at, -1, e.broken)) || !slices.Equal(is.Right, p.candidates(r.nodes, at, +1, e.broken)) ||
		is.HoldOffMicros != uint32(p.fab.HoldOffUS) || is.WaitToRestoreMillis != uint32(p.fab.WaitToRestoreMS) || is.Policy != policyOf(p.fab)
}

// update tells the ring of a node again that was planned from another
// description and would be planned otherwise from this one.
func (e *evidence) update(n *node) {
	if layout := n.Device.Scalars().Layout; layout == 0 || layout == e.j.Layout {
		return
	}
	if r := e.pl.ring(n.Device.Group); r != nil && !r.renew && n.Device.At(r.Decided) && e.outdated(n, r, e.pl) {
		e.agenda.renew(n, "it was planned from another description of the fabric")
	}
}

// bare: a node is there, in no ring, and where it should be; nobody is darker for its
// light. Of one that was drained, whoever mends it wants to know before it comes back.
func (n *node) bare() bool {
	return n.Device.Online() && n.Device.Session != 0 && n.Device.Known && n.Device.Group == 0 && len(n.Device.Whole().Rings) == 0 && n.Device.Ready() && !n.Device.Pending() &&
		(n.able() || !n.dead && n.said.mode == proto.ModeDrained)
}

// looks: a node is there, in a ring, and the port is none that the ring goes over,
// in use or in reserve: light that comes there changes nothing.
func (p *placement) looks(at fabric.Port) bool {
	if int(at.Node) >= len(p.nodes) {
		return false
	}
	n := &p.nodes[at.Node]
	if !n.Device.Online() || n.Device.Session == 0 || !n.Device.Known || n.Device.Pending() || n.Device.Report.Mode() != proto.ModeService {
		return false
	}
	said := n.Device.Whole()
	if len(said.Rings) == 0 || int(at.Bundle) >= len(said.Bundles) {
		return false
	}
	way := func(c proto.Candidate) bool { return c.Bundle == at.Bundle && c.Path == at.Path }
	return !slices.ContainsFunc(said.Rings[0].Left, way) && !slices.ContainsFunc(said.Rings[0].Right, way) && said.Bundles[at.Bundle].Path != at.Path
}

// Resting: no generation and no drain is under way, so that the description
// may change.
func (h *Rings) Resting() bool { return h.rest() && !h.Table.Numbers.Fresh && len(h.drains.list) == 0 }

// Refit plans for another description from now on, as far as Against lets it,
// and says what the store is to know of that. It is called at rest.
func Refit(h *Rings, to *fabric.Fabric, ends []proto.RingID) (records []journal.Record) {
	if !h.Resting() {
		panic("hbd: invariant: a fabric is edited at rest")
	}
	was := *h.Placed
	for _, id := range ends {
		r := h.Placed.ring(id)
		records = append(records, journal.Record{Key: ringKey(id)})
		for _, m := range r.nodes {
			n := &h.Placed.nodes[m]
			n.Device.Group, n.Device.Unassigned = 0, true
			n.unlost()
			if int(m) < to.Nodes {
				records = append(records, member.Record(m, 0, member.Target{Decided: n.Device.Want.Decided}, true))
			}
		}
		h.j.Note(journal.Info, "ring ends", journal.Note{Rule: "edit", Node: -1, Ring: id, Cause: proto.CauseOperator, Text: "the fabric was edited so that it may"})
	}
	for id := to.Nodes; id < len(was.nodes); id++ {
		n := &h.Placed.nodes[id]
		h.drains.holds.list = slices.DeleteFunc(h.drains.holds.list, func(x proto.NodeID) bool { return x == n.Device.ID })
		records = append(records, n.Device.Forget(), journal.Record{Key: holdKey(n.Device.ID)}, n.Device.ForgetEvents())
	}
	h.Table.Resize(to.Nodes)
	p := newPlacement(to)
	p.grown = min(was.grown, to.Nodes)
	if _, _, waits := was.Expected(); waits == 0 {
		p.grown = min(len(was.nodes), to.Nodes)
	}
	records = append(records, journal.Record{Key: keyGrown, Value: strconv.AppendInt(nil, int64(p.grown), 10)})
	for i := range p.nodes {
		if i < len(was.nodes) {
			p.nodes[i] = was.nodes[i]
			p.nodes[i].stray, p.nodes[i].touched = false, [2]bool{}
			if p.nodes[i].probe != (probe{}) {
				p.nodes[i].own().probe = probe{}
			}
		}
		p.nodes[i].Device = &h.Table.Devices[i]
	}
	for _, r := range was.rings {
		if !slices.Contains(ends, r.id) {
			r.marked, r.unsettled = false, true
			p.rings, p.unsettled = append(p.rings, r), append(p.unsettled, r.id)
		}
	}
	p.Stamps.last, p.Stamps.rings = was.Stamps.last, was.Stamps.rings
	for i := range p.nodes {
		p.touch(proto.NodeID(i))
	}
	for _, r := range was.rings {
		p.touchRing(r.id)
	}
	p.kept, p.moved, p.bar, p.along = was.kept, was.moved, was.bar, was.along
	p.resize()
	*h.Placed, h.txn.Parts, h.proposal = *p, nil, nil
	h.Evidence.probes = probes{j: h.j, at: journal.Never, other: h.Evidence.askOther, took: h.Evidence.probes.took, spread: h.Evidence.probes.spread}
	h.Agenda.marked, h.Agenda.strays, h.stage, h.refusing = nil, nil, nil, nil
	h.Evidence.patience.Restart()
	h.Evidence.cuts.keep(to.Nodes)
	for i := range h.Placed.nodes {
		n := &h.Placed.nodes[i]
		if n.Device.Unassigned {
			h.Agenda.unassign(n)
		}
		if n.Device.Refusal.Code != proto.OK {
			h.refusing = append(h.refusing, n.Device.ID)
		}
	}
	h.Evidence.reindex()
	return records
}

// Refitted looks at everything with the eyes of a new description.
func Refitted(h *Rings) {
	for i := range h.Placed.nodes {
		h.Evidence.update(&h.Placed.nodes[i])
	}
	h.Table.SweepNow()
	h.Agenda.markAll()
	h.Agenda.replan(0)
}
