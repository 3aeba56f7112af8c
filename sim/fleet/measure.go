package fleet

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/ring"
	"ringlight/proto"
	"ringlight/sim"
)

// measure counts what faults cost. It looks only at the world's light and at
// what the nodes tell.
type measure struct {
	r           *Run
	strikes     []*strike
	open        map[int]*strike // by group, while its losses come
	bypasses    map[int][]int64 // by adjacent losses: microseconds
	repairs     []repair
	watched     []*strike // rings that are looked after now: hurt a moment ago, or split
	splits      int
	interrupted int
	dark        time.Duration
	moves       []move
	moved       int
	movedDark   time.Duration
	latest      map[proto.RingID]proto.Generation // last decision of each ring

	well, whole int // nodes that are well; nodes in whole groups
	since       time.Duration
	counting    bool
	wasted      []time.Duration // by n: how long n healthy nodes were in no whole group
	ideal       float64         // node-time wasted by arithmetic alone
	static      float64         // node-time wasted by the best static placement
	leastWaste  int             // of the present set of faults, by placement
	wired       ring.Problem    // that placement's, read from the fibres once
}

// strike is one loss of a node, or of several beside each other within a
// moment, and what its ring looked like before.
type strike struct {
	at     time.Duration
	gone   []*station
	ring   proto.RingID
	rest   []*station // live members of the ring
	clean  bool       // the ring was whole and nothing else was going on
	looked int
	fibre  bool // nobody is lost, a fibre is cut
	told   bool // a decision has come to a member before the first look
	torn   bool // the ring was in pieces then
	alone  bool // its agents are starved, and no planner was there

	steps []step // of generations that the planner made since
	lost  bool   // a packet between planner and members was lost, and sent again
}

// adjacentWithin is how long after the first the others of a group of losses
// come at most. chosen: as long as a recovery may take.
const adjacentWithin = time.Millisecond

// strike is called before a node is lost.
func (m *measure) strike(f *Fault, st *station) {
	r := m.r
	if st.id.IsSwitch() {
		return // no ring waits for it
	}
	if s := m.open[f.Group]; s != nil && f.Group != 0 && r.now-s.at <= adjacentWithin {
		s.lose(st)
		return
	}
	s := &strike{at: r.now, looked: -1}
	m.before(s, st)
	s.lose(st)
	if s.ring == 0 {
		return
	}
	m.interrupted++
	if f.Group != 0 {
		m.open[f.Group] = s
	}
	m.watch(s)
}

// watch has a strike looked at when its ring must be closed again.
func (m *measure) watch(s *strike) {
	s.alone = m.alone()
	m.strikes, m.watched = append(m.strikes, s), append(m.watched, s)
	m.r.agenda.Push(m.r.now+adjacentWithin+m.r.ringBound, task{kind: taskMeasure, n: len(m.strikes) - 1})
}

// alone: agents are starved, and no planner is there. When they have enough again a
// ring closes within starvedRing (package node); until then nobody promises it.
func (m *measure) alone() bool {
	b := m.r.planners[0]
	return m.r.ringBound > m.r.closeBound && !(m.r.net.up && b.host != nil && !b.paused && !b.cut && b.up)
}

// lose moves a node from the living to the lost.
func (s *strike) lose(st *station) {
	s.gone = append(s.gone, st)
	s.rest = slices.DeleteFunc(s.rest, func(o *station) bool { return o == st })
}

// before looks at the ring that a node is about to leave.
func (m *measure) before(s *strike, st *station) {
	a := m.r.audit
	if st.host == nil || st.hostBad {
		return
	}
	rep := a.reportOf(st)
	if len(rep.Rings) == 0 || rep.Mode != proto.ModeService {
		return
	}
	ring := rep.Rings[0]
	strand, closed := m.r.world.Strand(sim.GPU{Board: st.board}, nil)
	s.clean, s.ring = closed, ring.Ring
	seen := map[*station]bool{}
	for _, g := range strand {
		o := m.r.stations[g.Board]
		if seen[o] {
			continue
		}
		seen[o] = true
		if o.host == nil || o.lame(m.r.now) || o.hostBad || o.busy() > m.r.now || m.r.net.up && m.r.now-o.watch.touched < time.Second {
			s.clean = false
		}
		s.rest = append(s.rest, o)
	}
}

// leads tells whether a candidate leads to what is lost.
func (s *strike) leads(c *proto.Candidate) bool {
	return slices.ContainsFunc(s.gone, func(o *station) bool { return o.id == c.Peer })
}

// after looks what became of a strike.
func (m *measure) after(n int) {
	s := m.strikes[n]
	if s.looked++; s.looked > 0 {
		m.follow(n, s)
		return
	}
	maps.DeleteFunc(m.open, func(_ int, o *strike) bool { return o == s })
	if !s.told {
		if !s.clean || len(s.rest) < 2 || m.touched(s) {
			m.leave(s)
			return // something else happened to the ring
		}
		if s.torn = !m.one(s); s.torn && !s.fibre && m.mustHold(s) && !s.alone && !m.alone() {
			m.r.audit.violate(s.gone[0].id, "closed rings", fmt.Sprintf("ring %d is in pieces after the loss of %d", s.ring, len(s.gone)))
		}
	}
	if s.torn {
		m.splits++
		by := "by a fibre"
		if !s.fibre {
			by = "without " + names(s.gone)
		}
		m.r.tracer.linef("ring %d is split since %v, %s", s.ring, s.at, by)
		m.follow(n, s)
		return
	}
	m.leave(s)
	if s.told || s.fibre {
		return
	}
	if took, ok := m.bypass(s); ok {
		m.bypasses[len(s.gone)] = append(m.bypasses[len(s.gone)], took.Microseconds())
		m.dark += took
	}
}

// one reports whether all nodes that are left of the ring lie in one closed
// cycle of light. A piece that was cut off earlier may be in it too.
func (m *measure) one(s *strike) bool {
	strand, closed := m.r.world.Strand(sim.GPU{Board: s.rest[0].board}, nil)
	in := 0
	for _, g := range strand {
		if slices.ContainsFunc(s.rest, func(o *station) bool { return o.board == g.Board }) {
			in++
		}
	}
	return closed && in == len(s.rest)*m.r.cfg.Fabric.GPUsPerNode
}

// mustHold: the ring could close over the gap: at most K hops, and no bundle
// would be needed for both sides.
func (m *measure) mustHold(s *strike) bool {
	f := m.r.cfg.Fabric
	ids := each(s.rest, func(o *station) proto.NodeID { return o.id })
	slices.Sort(ids)
	if len(s.gone) > 1 {
		return false // counted as a split, not as a broken promise
	}
	for i := 1; i < len(ids); i++ {
		d := f.Distance(ids[i-1], ids[i])
		if d > f.K || f.Topology != "line" && d != int(ids[i]-ids[i-1]) {
			return false
		}
		if !m.ready(ids[i-1], ids[i]) {
			return false
		}
		if i > 1 && d == f.K && f.Distance(ids[i-2], ids[i-1]) == f.K && f.SharedBundle() {
			return false
		}
	}
	return true
}

// ready: the fibre between two nodes is whole, and both may use it.
func (m *measure) ready(a, b proto.NodeID) bool {
	link, ok := m.r.cfg.Fabric.Link(a, b)
	if !ok || slices.Contains(m.r.inject.cuts, link.Local) {
		return false
	}
	for _, end := range [2]fabric.Port{link.Local, link.Remote} {
		st := m.r.stations[end.Node]
		if st.host == nil {
			return false
		}
		rep := m.r.audit.reportOf(st)
		if !listed(rep, SimPort(end)) || slices.ContainsFunc(rep.Sides, func(s proto.SideReport) bool { return s.Banned != 0 || s.Request >= proto.ForcedSwitch }) {
			return false
		}
	}
	return true
}

// bypass is the time from the last physical loss of light to the last side
// that has confirmed light again.
func (m *measure) bypass(s *strike) (time.Duration, bool) {
	var lost, done time.Duration
	ends := 0
	for _, o := range s.rest {
		if o.host == nil {
			return 0, false
		}
		rep := m.r.audit.reportOf(o)
		if len(rep.Rings) == 0 {
			return 0, false
		}
		for side, list := range [2][]proto.Candidate{rep.Rings[0].Left, rep.Rings[0].Right} {
			w := o.watch.switched[side]
			if w.at < s.at {
				continue
			}
			for i := range list {
				if s.leads(&list[i]) {
					if at, lit := m.r.world.LastChange(SimPort(fabricPort(o.id, &list[i]))); !lit && at >= s.at {
						lost = max(lost, at)
					}
				}
			}
			ends++
			done = max(done, w.at)
			m.ledger(o, s, &w)
		}
	}
	return done - lost, ends >= 2 && lost > 0 && done > lost
}

// ledgerSlack is how far the parts of a ledger may be off: each of the five
// the agent adds is cut to a microsecond, its clock drifts.
const ledgerSlack = 10 * time.Microsecond

// ledger checks that the parts lead back from the confirmation to no earlier
// than the fault. Invariant 4.
func (m *measure) ledger(o *station, s *strike, w *moved) {
	total := time.Duration(w.ledger.TotalMicros()) * time.Microsecond
	if w.at-total < s.at-ledgerSlack {
		m.r.audit.violate(o.id, "bounded", fmt.Sprintf("a ledger of %v leads back to before the fault at %v", total, s.at))
	}
}

func names(nodes []*station) string {
	s := ""
	for i, st := range nodes {
		if i > 0 {
			s += ", "
		}
		s += fmt.Sprint(st.id)
	}
	return s
}
