package fleet

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"ringlight/proto"
	"ringlight/sim"
)

// Invariant 9, edits: a ring that an edit does not end keeps every light while it
// is made, though it is told of other neighbours; one that is refused has a
// reason and changes nothing; afterwards all rings are lit. A ring at which
// something else happened meanwhile is left out.

// guarded is what a fabric had when an edit was asked for.
type guarded struct {
	at    time.Duration
	nodes int                         // of the fabric then: nodes that come later are not counted
	rings map[proto.RingID][]*station // whole, with nothing going on
	free  []*station                  // of no ring, at rest
	set   map[*station][]setting
}

// calm: nothing has happened to a node for so long that something may still
// follow from it: the planner's longest patience with one that is lost.
const calm = 10 * time.Second

// guard notes what an edit must leave as it is.
func (a *audit) guard() *guarded {
	g := &guarded{at: a.r.now, nodes: a.r.cfg.Fabric.Nodes, rings: map[proto.RingID][]*station{}, set: map[*station][]setting{}}
	size := map[proto.RingID]int{}
	for _, st := range a.r.nodes[:g.nodes] {
		if st.dark || st.host == nil {
			continue
		}
		rep := a.reportOf(st)
		switch {
		case len(rep.Rings) > 0:
			id := rep.Rings[0].Ring
			g.rings[id] = append(g.rings[id], st)
			size[id] = int(rep.Rings[0].Size)
		case a.untouched(st, g) && a.atRest(st) && rep.Mode == proto.ModeService && !rep.Drained:
			g.free = append(g.free, st)
		}
		g.set[st] = a.settings(st)
	}
	maps.DeleteFunc(g.rings, func(id proto.RingID, nodes []*station) bool {
		return len(nodes) != size[id] || slices.ContainsFunc(nodes, func(st *station) bool { return !st.watch.full || !a.untouched(st, g) })
	})
	return g
}

// untouched: nothing has happened to a node or one within its reach since an edit
// was asked for and for a while before, and all of their hardware is well.
func (a *audit) untouched(st *station, g *guarded) bool {
	for id := int(st.id) - a.r.reach; id <= int(st.id)+a.r.reach; id++ {
		if id < 0 || id >= g.nodes {
			continue
		}
		if n := a.r.nodes[id]; n.watch.struck >= max(g.at-calm, 1) || n.lame(a.r.now) || n.hostBad || a.ordered(n) {
			return false
		}
	}
	return true
}

// edited looks at what an edit has come to: when it is answered, and again when
// all that follows from it is done.
func (a *audit) edited(x *editing, d *edited) {
	if !d.Done && !d.GaveUp && len(d.Refused)+len(d.Dark) == 0 {
		a.violate(0, "edits", fmt.Sprintf("%q is refused without a reason", d.Text))
	}
	same := string(a.r.cfg.Fabric.Encode()) == string(x.raw)
	if d.Done != same && !d.GaveUp {
		a.violate(0, "edits", fmt.Sprintf("%q is answered as done %t, and the planner's store says %t", d.Text, d.Done, same))
	}
	a.kept(x, d)
	a.kepts = append(a.kepts, kept{x, d, a.r.now + editSettles})
	a.r.agenda.Push(a.r.now+editSettles, task{kind: taskEdited})
}

// replied hands the planner's answers to the operator of an edit.
func (a *audit) replied(_ *process, t proto.Topic, p proto.Packet) {
	if t.Kind != proto.TopicReply || a.r.edits.now == nil {
		return
	}
	var m proto.OpReply
	if _, err := proto.Decode(p.Payload, &m); err == nil {
		a.r.edits.answered(&m)
	}
}

// trials notes which nodes a planner has try a fibre.
func (a *audit) trials(_ *process, t proto.Topic, p proto.Packet) {
	var c proto.Command
	if t.Kind != proto.TopicCommand || t.Node.IsSwitch() {
		return
	}
	if _, err := proto.Decode(p.Payload, &c); err != nil || c.Verb != proto.VerbTry {
		return
	}
	if st := a.r.station(t.Node); st != nil {
		st.watch.tried = a.r.now + trialLasts
	}
}

// trialLasts is as long as an agent lets a trial nobody ends stay, and a while to put
// it back. chosen.
const trialLasts = 6 * time.Second

// editSettles is when new nodes have come and rings of new sizes are lit. chosen.
const editSettles = 20 * time.Second

// kept is an edit that is looked at once more.
type kept struct {
	x   *editing
	d   *edited
	due time.Duration
}

// keptDue looks at the first edit that waits for it.
func (a *audit) keptDue() {
	k := a.kepts[0]
	a.kepts = a.kepts[1:]
	a.kept(k.x, k.d)
}

// kept holds the rings that an edit did not end, or drain a node of, to what they
// were.
func (a *audit) kept(x *editing, d *edited) {
	for _, id := range slices.Sorted(maps.Keys(x.before.rings)) {
		nodes := x.before.rings[id]
		gone := x.c.move || slices.Contains(x.c.ends, id) || x.drained && slices.ContainsFunc(nodes, func(st *station) bool { return int(st.id) >= x.to.Nodes })
		if gone || slices.ContainsFunc(nodes, func(st *station) bool { return !a.untouched(st, x.before) }) {
			continue
		}
		a.guards++
		for _, st := range nodes {
			a.keptLight(st, x, fmt.Sprintf("ring %d", id))
		}
	}
	if d.Done {
		return
	}
	for _, st := range x.before.free {
		if !a.untouched(st, x.before) || len(a.reportOf(st).Rings) > 0 {
			continue
		}
		if now := a.settings(st); !slices.Equal(now, x.before.set[st]) {
			a.violate(st.id, "edits", fmt.Sprintf("%q was refused, and left a node of no ring on %v, which was on %v", x.text, now, x.before.set[st]))
		}
	}
}

func (a *audit) keptLight(st *station, x *editing, what string) {
	for b, was := range x.before.set[st] {
		path, shining := a.r.world.Selected(st.board, b)
		at, lit := a.r.world.LastChange(sim.Port{Board: st.board, Bundle: b, Path: was.path})
		if path != was.path || shining != was.shining || at >= x.before.at {
			a.violate(st.id, "edits", fmt.Sprintf("%q: %s: bundle %d went from path %d to path %d, its light turned %t at %v, asked for at %v",
				x.text, what, b, was.path, path, lit, at, x.before.at))
			return
		}
	}
}

// settled: no edit is under way, and where every node is well, all rings stand.
func (e *editor) settled() bool {
	return len(e.done) == 0 && e.now == nil || e.now == nil && (!e.well() || e.in.ringsStand())
}

// well: every node of the fabric could carry a ring.
func (e *editor) well() bool {
	return !slices.ContainsFunc(e.in.nodes[:e.in.cfg.Fabric.Nodes], func(st *station) bool { return !st.well() || st.host == nil || st.lame(e.in.now) || e.drains(st) })
}

// drains: an operator keeps it out.
func (e *editor) drains(st *station) bool { return e.in.audit.reportOf(st).Mode != proto.ModeService }

// lit is the last look at a fabric that was edited: every ring of the planner is
// one closed cycle of its nodes, and there are as many as are wanted.
func (a *audit) lit() {
	r := a.r
	if len(r.edits.done) == 0 || r.planners[0].host == nil || !r.edits.well() {
		return
	}
	rings := r.planners[0].host.Planner().Rings.Placed.Statuses()
	if want := r.cfg.Fabric.TargetRings(); len(rings) != want {
		a.violate(0, "edits", fmt.Sprintf("%d rings run at the end, %d are wanted", len(rings), want))
	}
	for _, x := range rings {
		if !r.measure.holds(x.Nodes) {
			a.violate(x.Nodes[0], "edits", fmt.Sprintf("ring %d of %v is not one cycle of light at the end", x.Ring, x.Nodes))
		}
	}
}
