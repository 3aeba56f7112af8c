package hbd

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/journal"
	"ringlight/proto"
)

// A link that had light and lost it at both ends, while both nodes are well
// and have not been away, is held to be cut: the placement goes round it at
// once. It gets another chance later and later (damper.go), and at once when one of
// its nodes starts anew or a person says so: where one of its nodes is in no ring, that
// one lights it and the other looks, so that no ring goes dark for a fibre that still
// is; elsewhere a ring that lacks a node tries it.

// cut is what is known of a fibre that was held to be cut.
type cut struct {
	damper
	since  uint64 // by the wall clock: when it was last
	proven bool   // by light, since then
	tried  bool   // it has no ring, and is looked at now
	first  bool   // before its first ring: nothing is known against it
	misses int    // tries without a ring that found it dark, since then
	hits   int    // and in a row that found light; of a first one, without a count of its bits
	shown  string // what the last of those tries showed, "": light, or there was none
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
	return x != nil && x.held && (x.tried || now < x.until)
}

// hold keeps rings off a fibre, for longer each time.
func (c *cuts) hold(a, b proto.NodeID, now time.Duration, wall uint64) (wait time.Duration) {
	x := c.known[pair(a, b)]
	if x == nil {
		x = &cut{}
		c.known[pair(a, b)] = x
	}
	x.since, x.proven, x.tried, x.misses, x.hits, x.shown = wall, false, false, 0, 0, ""
	wait = x.strike(now, 0, dampLast)
	c.at = min(c.at, x.until)
	return wait
}

// due gives fibres another chance that have waited: f is called with the nodes
// of each, and says whether it is looked at first. A node that was well for long is forgotten.
func (c *cuts) due(now time.Duration, f func(a, b proto.NodeID) (looked bool)) {
	c.at = journal.Never
	for at, x := range c.known { // any order: the earliest is wanted, and what is marked is sorted
		switch {
		case x.until > now:
			c.at = min(c.at, x.until)
		case x.tried:
		case x.held:
			x.tried = f(at[0], at[1])
			x.held = x.tried
		default:
			if x.forgiven(now); x.count == 0 && x.proven {
				delete(c.known, at)
			}
		}
	}
}

// again gives a fibre another chance now. What it did is not forgotten.
func (c *cuts) again(at [2]proto.NodeID, now time.Duration) {
	if x := c.known[at]; x != nil && x.held {
		x.until, x.held, x.tried, x.first = min(x.until, now), false, false, false
	}
}

// reborn gives the fibres of a node that starts anew another chance: those that are to be
// tried before use by a trial.
func (c *cuts) reborn(id proto.NodeID, now time.Duration, before bool) {
	for at, x := range c.known { // any order: each by itself
		switch {
		case x.first || at[0] != id && at[1] != id:
		case before && x.held:
			x.until, x.tried, x.first, x.hits = min(x.until, now), true, true, 0
		default:
			c.again(at, now)
		}
	}
}

// prove notes the fibres of a ring that have light.
func (c *cuts) prove(r *ringView) {
	if len(c.known) == 0 {
		return
	}
	for at, to := range r.links {
		if x := c.known[pair(r.nodes[at], r.nodes[to])]; x != nil && r.lit[at] && r.confirmed(at) {
			x.proven = true
		}
	}
}

// keep drops what is known of fibres of nodes that are gone.
func (c *cuts) keep(nodes int) {
	maps.DeleteFunc(c.known, func(at [2]proto.NodeID, _ *cut) bool { return int(at[1]) >= nodes })
}

// onProbation lists the links of a ring that were given another chance lately: one that
// flaps may have light at any one look.
func (c *cuts) onProbation(r *ringView, now time.Duration) (links []int) {
	for at, to := range r.links {
		if x := c.known[pair(r.nodes[at], r.nodes[to])]; x != nil && !x.held && x.until != 0 && now < x.until+probation {
			links = append(links, at)
		}
	}
	return links
}

// doubtful: some dark link of the ring was held to be cut before, so one
// attempt is enough.
func (c *cuts) doubtful(r *ringView) bool {
	for at, to := range r.links {
		if c.known[pair(r.nodes[at], r.nodes[to])] != nil && !r.confirmed(at) {
			return true
		}
	}
	return false
}

// fibre is what people call the fibre between two nodes: its label, or the two.
func (p *placement) fibre(a, b proto.NodeID) string {
	if link, ok := p.fab.Link(a, b); ok {
		return cmp.Or(p.fab.Label(link), between(a, b))
	}
	return between(a, b)
}

func between(a, b proto.NodeID) string { return fmt.Sprintf("%d-%d", min(a, b), max(a, b)) }

// FibreName is what people call a fibre: its label, or its two nodes.
func FibreName(x *fabric.Fibre) string { return cmp.Or(x.ID, between(x.A.Node, x.B.Node)) }

// Engaged is why a node's fibres are not to be touched, "" when they may be.
func (p *placement) Engaged(id proto.NodeID) string {
	n := &p.nodes[id]
	switch {
	case n.bare():
		return ""
	case n.Device.Group != 0:
		return fmt.Sprintf("node %d carries ring %d", id, n.Device.Group)
	case n.Device.Online() && len(n.Device.Whole().Rings) > 0:
		return fmt.Sprintf("node %d has the light of a ring still", id)
	}
	return fmt.Sprintf("node %d: %s", id, cmp.Or(n.whyNot(), "it is being told where it stands"))
}

// LinkOf is a fibre as operators see it.
func (e *evidence) LinkOf(x *fabric.Fibre) proto.LinkStatus {
	a, b := x.A, x.B
	m, n := &e.pl.nodes[a.Node], &e.pl.nodes[b.Node]
	s := proto.LinkStatus{Fibre: FibreName(x), A: m.end(a), B: n.end(b)}
	r, wanted := e.pl.ring(m.Device.Group), false
	if r != nil && m.Device.Group == n.Device.Group {
		i, j := slices.Index(r.nodes, a.Node), slices.Index(r.nodes, b.Node)
		wanted = r.peer(min(i, j), proto.Right) == max(i, j)
	}
	lit := s.A.State.Lit() && s.B.State.Lit() && m.Device.Online() && n.Device.Online() && (wanted || m.faces(b.Node) && n.faces(a.Node))
	known := e.cuts.known[pair(a.Node, b.Node)]
	switch {
	case known != nil && known.first:
		s.State, s.SinceMillis = proto.FibreDoubted, known.since
	case e.broken(a.Node, b.Node):
		s.State, s.SinceMillis, s.NextMillis = proto.FibreDark, known.since, e.j.Wall+uint64((known.until-e.j.Now).Milliseconds())
	case lit:
		s.State = proto.FibreLit
	case known != nil && !known.proven:
		s.State, s.SinceMillis = proto.FibreDoubted, known.since
	case wanted && !(m.Device.Online() && n.Device.Online()): // what they said is of before
		s.State = proto.FibreDoubted
	case wanted:
		s.State, s.SinceMillis = proto.FibreDark, r.since
	}
	if wanted || lit && r != nil {
		s.Ring = r.id
	}
	return s
}

// faces: one of its sides has the light of a peer.
func (n *node) faces(peer proto.NodeID) bool {
	for s := range n.Device.Report.Sides {
		if s.State == proto.SideWork && s.Peer == peer {
			return true
		}
	}
	return false
}

// Asked answers about rings and their fibres.
func (e *evidence) Asked(q *proto.OpRequest, r *proto.OpReply) {
	if q.Noun != proto.NounLinks {
		e.pl.Answer(q, r)
		return
	}
	all := e.pl.fab.AllFibres()
	r.Links, r.Next = proto.PageOf(len(all), q.Page, nil, func(i int) proto.LinkStatus { return e.LinkOf(&all[i]) })
}

// ClearFibre forgets that a fibre was held to be cut. It reports whether one of that
// name was.
func (e *evidence) ClearFibre(name string) bool {
	for at := range e.cuts.known { // any order: a name is one fibre's
		if e.pl.fibre(at[0], at[1]) != name {
			continue
		}
		delete(e.cuts.known, at)
		e.usableAgain(at[0])
		for _, id := range at {
			e.agenda.mark(e.pl.ring(e.pl.nodes[id].Device.Group))
		}
		e.agenda.replan(0)
		return true
	}
	return false
}

// usableAgain enters a fibre of a node anew, and marks rings that lack a node.
func (e *evidence) usableAgain(a proto.NodeID) {
	e.pl.reads(a)
	e.agenda.markNear(a)
	e.agenda.wantBetter = true
	e.agenda.replan(debounce)
}

func (e *evidence) broken(a, b proto.NodeID) bool { return e.cuts.broken(a, b, e.j.Now) }

// hold keeps rings off the fibre behind a member for a while.
func (e *evidence) hold(r *ringView, at int, why string) {
	e.holdOff(r.nodes[at], r.nodes[r.peer(at, proto.Right)], r.id, r.Gen, why)
}

func (e *evidence) holdOff(a, b proto.NodeID, ring proto.RingID, gen proto.Generation, why string) {
	wait := e.cuts.hold(a, b, e.j.Now, e.j.Wall)
	e.pl.reads(a)
	e.j.Note(journal.Error, "fibre is held to be cut", journal.Note{Rule: "cut", Node: int64(a), Ring: ring, Gen: gen, Cause: proto.CauseLightLost,
		Text: fmt.Sprintf("%s of fibre %s between nodes %d and %d, both well; no ring uses it for %v", why, e.pl.fibre(a, b), a, b, wait)})
}

// checkCuts gives fibres another chance that have waited.
func (e *evidence) checkCuts() {
	if e.j.Now < e.cuts.at {
		return
	}
	e.cuts.due(e.j.Now, func(a, b proto.NodeID) bool {
		if link, ok := e.pl.fab.Link(a, b); ok {
			if _, may := e.pl.MayTry(link.Local, link.Remote); may || awaits(e.pl.fab, &e.pl.nodes[a], &e.pl.nodes[b]) {
				return true
			}
		}
		e.usableAgain(a)
		return false
	})
}

// tryFirst keeps rings off some fibres until they were tried, where the description asks
// for it. One whose node is in a ring by then is left to that.
func (e *evidence) tryFirst(of func(fabric.Fibre) bool) {
	if !e.pl.fab.Qualifies().BeforeUse {
		return
	}
	for _, f := range e.pl.fab.AllFibres() {
		at := pair(f.A.Node, f.B.Node)
		x := e.cuts.known[at]
		if !of(f) || x != nil && x.held {
			continue
		}
		if x == nil {
			x = &cut{}
			e.cuts.known[at] = x
		}
		x.since, x.held, x.tried, x.first, x.hits = e.j.Wall, true, true, true, 0
		e.pl.reads(f.A.Node)
	}
}

// MayTry tells whether a fibre can be lit without anybody missing light, and which of
// its ends only look.
func (p *placement) MayTry(a, b fabric.Port) (looks [2]bool, may bool) {
	var idle [2]bool
	for end, id := range [2]proto.NodeID{a.Node, b.Node} {
		idle[end] = int(id) < len(p.nodes) && p.nodes[id].bare()
	}
	may = idle[0] && (idle[1] || p.looks(b)) || idle[1] && p.looks(a)
	return [2]bool{!idle[0], !idle[1]}, may
}

// awaits: a fibre is to be tried before use, and no ring has a node of it that it would be
// late for: a trial waits until both are there.
func awaits(f *fabric.Fabric, a, b *node) bool {
	return f.Qualifies().BeforeUse && a.Device.Group == 0 && b.Device.Group == 0
}

// Doubted are the fibres that are to be looked at now: held to be cut for as long as they
// were to be, and with a node in no ring. One whose nodes have rings since is left to those.
func (e *evidence) Doubted() (out []fabric.Fibre) {
	for at, x := range e.cuts.known { // any order: sorted below
		link, ok := e.pl.fab.Link(at[0], at[1])
		if !ok || !x.tried {
			continue
		}
		switch _, may := e.pl.MayTry(link.Local, link.Remote); {
		case !may && awaits(e.pl.fab, &e.pl.nodes[at[0]], &e.pl.nodes[at[1]]): // they come
		case !may && x.first && x.count == 0:
			delete(e.cuts.known, at)
			e.usableAgain(at[0])
		case !may:
			e.cuts.again(at, e.j.Now)
			e.usableAgain(at[0])
		default:
			out = append(out, fabric.Fibre{ID: e.pl.fibre(at[0], at[1]), A: link.Local, B: link.Remote, Crossed: link.Crossed})
		}
	}
	slices.SortFunc(out, func(a, b fabric.Fibre) int {
		return cmp.Or(cmp.Compare(a.A.Node, b.A.Node), cmp.Compare(a.B.Node, b.B.Node))
	})
	return out
}

// Looked takes what came of looking at a fibre, dark says at which end it shows none: with
// light rings may have it again, else it waits for longer. told: its bits were counted, or
// nothing can ever count them. Without an answer it is as it was, as is one before its first
// ring of whose bits nothing was told, where its node left or joined a ring since it was asked
// for, with ends that only looked: that says nothing of the fibre; and where it has light, some
// times: its agents were busy.
func (e *evidence) Looked(f *fabric.Fibre, looked [2]bool, told bool, dark string) {
	a, b := f.A.Node, f.B.Node
	x := e.cuts.known[pair(a, b)]
	if x == nil || !x.tried {
		return
	}
	lit := dark == ""
	if x.first && !told {
		if looks, may := e.pl.MayTry(f.A, f.B); !may || looks != looked {
			return
		}
		if x.hits++; lit && looked == [2]bool{} && x.hits < steadyHits {
			return
		}
	}
	x.tried, x.shown = false, dark
	if x.first && lit && x.count == 0 {
		delete(e.cuts.known, pair(a, b))
		e.usableAgain(a)
		return
	}
	x.first = false
	switch x.hits++; {
	case lit && x.hits < steadyHits: // it may rattle still
		x.until = e.j.Now + steadyWait
		e.cuts.at = min(e.cuts.at, x.until)
		return
	case lit:
		x.held, x.proven = false, true
		e.usableAgain(a)
		return
	}
	x.hits = 0
	x.misses++
	wait := min(dampFirst<<min(x.count+x.misses-1, dampMost), dampLast)
	x.until = e.j.Now + wait
	e.cuts.at = min(e.cuts.at, x.until)
	e.j.Note(journal.Info, "fibre is still dark", journal.Note{Rule: "cut", Node: int64(a), Cause: proto.CauseLightLost,
		Text: fmt.Sprintf("fibre %s between nodes %d and %d shows no light with no ring on it; no ring uses it for %v more", e.pl.fibre(a, b), a, b, wait)})
}

// A fibre that was held to be cut is used again when it had light at each of so many looks
// in a row, and is the first to be blamed where its ring is split within its probation.
// chosen: a plug that rattles is dark for most of a second now and then; what flaps faster
// shows light at each look, and the ring has it for a second or two.
const (
	steadyHits = 3
	steadyWait = 730 * time.Millisecond
	probation  = 10 * time.Second
)

// concludeParted goes through the links that both of their ends have left:
// one that has had light is held to be cut. It reports whether some other is
// only parted: both wait in loopback, and a plan brings them together.
func (e *evidence) concludeParted(r *ringView) (apart bool) {
	for at, to := range r.links {
		if !r.off(at, proto.Right) || !r.off(to, proto.Left) || e.broken(r.nodes[at], r.nodes[to]) {
			continue
		}
		if !r.lit[at] {
			apart = true
			continue
		}
		r.lit[at] = false
		e.hold(r, at, "light lost at one end, or at both,")
		e.agenda.mark(r)
		e.agenda.replan(debounce)
	}
	return apart
}

// concludeCut holds the dark links of a ring whose members are all well to be
// cut: attempts to join them have failed.
func (e *evidence) concludeCut(r *ringView) {
	for at, to := range r.links {
		if a, b := r.nodes[at], r.nodes[to]; !r.confirmed(at) && !e.broken(a, b) {
			e.hold(r, at, fmt.Sprintf("no light in %d attempts", max(1, r.renewed)))
		}
	}
}
