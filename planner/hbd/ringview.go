package hbd

import (
	"cmp"
	"slices"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/health"
	"ringlight/planner/member"
	"ringlight/planner/ring"
	"ringlight/proto"
)

// ringView is one committed ring.
type ringView struct {
	pl    *placement
	id    proto.RingID
	step  paired         // of an exchange
	nodes []proto.NodeID // left to right
	size  int            // nodes that it is to have
	owner string         // the job that it is for, "" for none
	member.Decided

	state     proto.RingState
	marked    bool          // it is on the list of those to be looked at
	unsettled bool          // it is on the list of those that may wait
	moved     bool          // it was in service when it got other members
	counted   bool          // shy is of the ring as it is
	renew     bool          // to be touched with the same members
	balked    bool          // a member did not answer its last prepare, and it still needs one
	late      bool          // its members say that they take less
	shy       int32         // links that shine, and of which nobody can say whether well
	renewed   int32         // attempts
	bypass    uint32        // microseconds that its last one took, 0: none yet
	told      uint32        // microseconds that its slowest member takes, as its plan has it; 0: not known
	since     uint64        // the state, by the wall clock
	lit       []bool        // by link: had light since the ring was formed and both its nodes were there
	toldAt    time.Duration // when its last generation was committed, of slow members
	slow      time.Duration // what those need to follow, 0: they are quick
	hurtAt    time.Duration // since when it waits to settle after a fault, 0: it does not
	splitAt   time.Duration // since when it is split though all are well, 0: it is not
	renewAt   time.Duration // not to be formed anew before
	needAt    time.Duration // since when it needs a change that a member is in the way of, 0: none
	retold    time.Duration // not to be told so before
}

// group is the ring as the index knows it.
func (r *ringView) group() ring.Group {
	return ring.Group{ID: r.id, Nodes: r.nodes, Size: r.size, Owner: r.owner}
}

// at gives the member at a place.
func (r *ringView) at(at int) *node { return &r.pl.nodes[r.nodes[at]] }

// side tells whether a member has light on its planned candidate of a side.
func (r *ringView) side(at int, s proto.Side) bool { return r.port(at, s).Lit() }

// port is what a member says of its planned candidate of a side; Blocked where that is none:
// it must have applied the ring's generation, and its bundle must have light.
func (r *ringView) port(at int, s proto.Side) proto.PortState {
	n, peer := r.at(at), r.peer(at, s)
	if peer < 0 {
		return proto.Blocked
	}
	link, ok := r.pl.fab.Link(n.Device.ID, r.nodes[peer])
	if !ok || !n.Device.At(r.Decided) {
		return proto.Blocked
	}
	b, ok := n.Device.Report.Bundle(link.Local.Bundle)
	if !ok || b.Path != link.Local.Path || n.after(n.loss[s].seq) {
		return proto.Blocked
	}
	return b.State
}

// confirmed reports whether both ends of the link behind member at have light.
func (r *ringView) confirmed(at int) bool {
	to := r.peer(at, proto.Right)
	return to >= 0 && r.side(at, proto.Right) && r.side(to, proto.Left)
}

// unproven counts the links that shine, and of which at an end nobody can say whether well.
func (r *ringView) unproven(x *health.Facts) {
	x.Links += r.linkCount()
	if r.counted && (r.shy == 0 || len(x.Unproven) == maxUnproven) {
		x.LinksUnproven += int(r.shy)
		return
	}
	r.counted, r.shy = true, 0
	for at, to := range r.links {
		if r.port(at, proto.Right) == proto.Unproven || r.port(to, proto.Left) == proto.Unproven {
			if r.shy++; len(x.Unproven) < maxUnproven {
				x.Unproven = append(x.Unproven, r.pl.fibre(r.nodes[at], r.nodes[to]))
			}
		}
	}
	x.LinksUnproven += int(r.shy)
}

// maxUnproven are the fibres that are named. chosen: more than one looks at.
const maxUnproven = 4

func (r *ringView) linksConfirmed() int {
	count := 0
	for at := range r.links {
		if r.confirmed(at) {
			count++
		}
	}
	return count
}

// stateNow is the planner's word on a ring: in service when all members report
// the generation that last touched it with light confirmed; degraded when it
// is closed with fewer GPUs; down when no two members hang together.
func (r *ringView) stateNow() proto.RingState {
	usable, told := 0, true
	for _, id := range r.nodes {
		n := &r.pl.nodes[id]
		if !n.usable() {
			continue
		}
		usable++
		told = told && n.Device.At(r.Decided)
	}
	links := r.linksConfirmed()
	switch {
	case usable == 0:
		return proto.RingDown
	case usable < len(r.nodes):
		if links == 0 && usable > 1 && told && !r.bypassed() {
			return proto.RingDown
		}
		return proto.RingDegraded
	case !told:
		return proto.RingForming
	case links == r.linkCount():
		if len(r.nodes) < r.size {
			return proto.RingDegraded
		}
		return proto.RingInService
	case r.some(func(n *node) bool { return n.usable() && !n.settled() }):
		return proto.RingForming
	case links == 0 && !r.bypassed():
		return proto.RingDown
	}
	return proto.RingDegraded
}

// serves: it is in service, and nothing of it has changed since it was looked at.
func (r *ringView) serves() bool { return r.state == proto.RingInService && !r.marked }

// bypassed reports whether some member works on another candidate than
// planned.
func (r *ringView) bypassed() bool {
	for _, id := range r.nodes {
		n := &r.pl.nodes[id]
		if !n.Device.At(r.Decided) {
			continue
		}
		for s := range n.Device.Report.Sides {
			if s.State == proto.SideWork && int(s.Current) != int(s.Working) {
				return true
			}
		}
	}
	return false
}

// seeLight counts the links that have light, and remembers which.
func (r *ringView) seeLight() (count int) {
	for at := range r.lit {
		if r.confirmed(at) {
			r.lit[at] = true
			count++
		}
	}
	return count
}

// some member is so.
func (r *ringView) some(is func(*node) bool) bool {
	return slices.ContainsFunc(r.nodes, func(id proto.NodeID) bool { return is(&r.pl.nodes[id]) })
}

// allWell: every member is usable, here, told and at rest.
func (r *ringView) allWell() bool {
	return r.allReady() && !r.some(func(n *node) bool { return !n.Device.At(r.Decided) || !n.settled() || n.held() })
}

// hasLight: every member has been told and every link is confirmed.
func (r *ringView) hasLight() bool { return r.linksConfirmed() == r.linkCount() }

// allReady: every member is usable and can be told.
func (r *ringView) allReady() bool {
	return !r.some(func(n *node) bool { return !n.usable() || !n.Device.Ready() })
}

// unmissed: a node is the last of the ring on one side, and its only neighbour
// is out, so that nobody could tell that its light is gone.
func (r *ringView) unmissed(id proto.NodeID) bool {
	if r == nil || len(r.nodes) < 2 {
		return false
	}
	at := slices.Index(r.nodes, id)
	left, right := r.peer(at, proto.Left), r.peer(at, proto.Right)
	return left < 0 && right >= 0 && !r.at(right).usable() || right < 0 && left >= 0 && !r.at(left).usable()
}

// lost: the member has applied the ring's generation and one of its sides is
// off its planned candidate.
func (r *ringView) lost(at int, s proto.Side) bool {
	n := r.at(at)
	return *n.Device.Want.Decided == r.Decided && n.loss[s].lost
}

// off: a member that is well has left the planned link on one side and has
// settled elsewhere, in loopback or with another peer.
func (r *ringView) off(at int, s proto.Side) bool {
	n := r.at(at)
	return r.lost(at, s) && !n.loss[s].moving && n.usable() && n.Device.Ready() && n.Device.At(r.Decided) && !n.held()
}

// unseen forgets that a member's links had light.
func (r *ringView) unseen(id proto.NodeID) {
	at := slices.Index(r.nodes, id)
	if at < 0 {
		return
	}
	if left := r.peer(at, proto.Left); left >= 0 {
		r.lit[left] = false
	}
	if at < len(r.lit) {
		r.lit[at] = false
	}
}

// doubted: suspect, and no other member stands on its light. A silent agent
// whose light a neighbour has turned to has turned to that neighbour itself.
func (r *ringView) doubted(at int) bool {
	id := r.nodes[at]
	if !r.pl.nodes[id].suspect() {
		return false
	}
	if n := &r.pl.nodes[id]; !n.usable() {
		return true
	}
	for other := max(0, at-r.pl.fab.K); other <= min(len(r.nodes)-1, at+r.pl.fab.K); other++ {
		n := r.at(other)
		if other == at || *n.Device.Want.Decided != r.Decided || n.suspect() {
			continue
		}
		for _, l := range n.loss {
			if l.lost && l.lit && l.peer == id {
				return false
			}
		}
	}
	return true
}

// settling reports whether a ring with a fault still waits for the reports of
// its bypass: a plan that quotes an old bypass count would be refused.
func (r *ringView) settling(now time.Duration) bool {
	hurt, waits := false, false
	for at, id := range r.nodes {
		n := &r.pl.nodes[id]
		if !n.usable() {
			hurt = true
			continue
		}
		waits = waits || n.Device.Online() && !n.fresh() || n.loss[proto.Left].moving || n.loss[proto.Right].moving
		for s := proto.Left; s <= proto.Right; s++ {
			to := r.peer(at, s)
			waits = waits || to >= 0 && r.at(to).gone() && !r.lost(at, s)
		}
	}
	if !hurt || !waits {
		r.hurtAt = 0
		return false
	}
	r.hurtAt = cmp.Or(r.hurtAt, max(1, now))
	return now < r.hurtAt+settleWait
}

// frozen: some member that light says is well cannot be told anything, or has
// been asked whether it lives: a plan with it would have to be given up.
func (r *ringView) frozen(now time.Duration) bool {
	return r.some(func(n *node) bool { return n.usable() && !n.Device.Ready() }) || r.asks() || r.settling(now)
}

// asks: the answer of a member is waited for.
func (r *ringView) asks() bool {
	return r.some(func(n *node) bool { return n.usable() && n.asked() })
}

// waits: a ring that must be looked at again though nothing else happens to it.
func (r *ringView) waits() bool {
	return r.late || r.needAt != 0 || r.hurtAt != 0 || r.splitAt != 0 || r.renew || r.asks()
}

// status is the ring as operators see it.
func (r *ringView) status() proto.RingStatus {
	s := proto.RingStatus{Ring: r.id, Nodes: slices.Clone(r.nodes), State: r.stateNow(), Generation: r.Gen, Job: r.owner,
		Links: uint16(r.linkCount()), Exchange: uint8(r.step), LinksConfirmed: uint16(r.linksConfirmed())}
	for _, id := range r.nodes {
		if r.pl.nodes[id].usable() {
			s.GPUs += uint32(r.pl.fab.GPUsPerNode)
		}
	}
	return s
}

// joints are the links as operators see them: fibre and light of both ends.
func (r *ringView) joints() []proto.Joint {
	out := make([]proto.Joint, 0, r.linkCount())
	for at, to := range r.links {
		link, ok := r.pl.fab.Link(r.nodes[at], r.nodes[to])
		if !ok {
			continue
		}
		j := proto.Joint{A: r.at(at).end(link.Local), B: r.at(to).end(link.Remote), Confirmed: r.confirmed(at)}
		j.Fibre = r.pl.fab.Label(link)
		out = append(out, j)
	}
	return out
}

// end is one port as its node reports it.
func (n *node) end(p fabric.Port) proto.JointEnd {
	e := proto.JointEnd{Node: p.Node, Bundle: p.Bundle, Path: p.Path, State: proto.Blocked, Measured: proto.NoPower, Expected: proto.NoPower}
	if b, ok := n.Device.Report.Bundle(p.Bundle); ok {
		e.Losses = b.Flaps
		if b.Path == p.Path {
			e.State, e.Measured, e.Expected = b.State, b.Measured, b.Expected
		}
	}
	return e
}
