package fleet

import (
	"cmp"
	"slices"
	"time"

	"ringlight/proto"
	"ringlight/sim"
)

// A ring in pieces is a job that stands still until the planner has joined it
// again. What that takes is told in parts, for all splits and the slowest: so
// whoever wants it shorter sees what to shorten.

// repairWatch is how often a split ring is looked at again; repairLimit ends
// the watch.
const (
	repairWatch = 5 * time.Millisecond
	repairLimit = 2 * time.Minute
)

// step is one generation that asks members of a split ring.
type step struct {
	gen    proto.Generation
	asked  time.Duration // the first of them
	agreed time.Duration // decided and on the planner's disk, 0: not
}

// repair is the record of a split that was mended.
type repair struct {
	took  time.Duration
	parts [4]time.Duration // until the first generation asks, the last one asks, it is decided, there is light
	known bool             // the planner did it
	lost  bool
}

// SplitParts are means over splits, in milliseconds.
type SplitParts struct {
	Of     string  `json:"of"` // all, or the slowest
	N      int     `json:"n"`
	Asked  float64 `json:"asked_ms"`  // from the fault until members are asked: evidence, silent members, other plans
	Anew   float64 `json:"anew_ms"`   // until the generation asks that came into force: others were given up
	Agreed float64 `json:"agreed_ms"` // until all have agreed and the decision is on disk
	Lit    float64 `json:"lit_ms"`    // until the ring has light
	Lost   int     `json:"lost"`      // of them: a packet was lost, and sent again by its connection
}

// slowest is the share of splits that is told beside all. chosen: some ten of a
// day of 10,000 nodes.
const slowest = 20

// partsOf sums up repairs.
func partsOf(all []repair) (Spread, []SplitParts) {
	took := each(all, func(r repair) int64 { return r.took.Milliseconds() })
	known := slices.DeleteFunc(slices.Clone(all), func(r repair) bool { return !r.known })
	slices.SortStableFunc(known, func(a, b repair) int { return cmp.Compare(b.took, a.took) })
	out := []SplitParts{}
	for _, of := range []struct {
		name string
		n    int
	}{{"all", len(known)}, {"slowest", (len(known) + slowest - 1) / slowest}} {
		p := SplitParts{Of: of.name, N: of.n}
		for i := range known[:of.n] {
			r := &known[i]
			for j, to := range [4]*float64{&p.Asked, &p.Anew, &p.Agreed, &p.Lit} {
				*to += float64(r.parts[j].Microseconds()) / float64(1000*of.n)
			}
			if r.lost {
				p.Lost++
			}
		}
		if of.n > 0 {
			out = append(out, p)
		}
	}
	return spreadOf(took, enoughRare), out
}

// touched: a fault, a start or a plan came to a member after the strike.
func (m *measure) touched(s *strike) bool {
	return slices.ContainsFunc(s.rest, func(o *station) bool {
		return o.watch.touched > s.at || !s.fibre && o.watch.touched == s.at || s.fibre && o.host == nil
	})
}

// bypassed is how long after a strike its ring is closed again, or will not be
// without a plan. chosen: ten times what the loss of two takes.
const bypassed = adjacentWithin + 6*time.Millisecond

// tell is called before a decision reaches a node. A planner may be quicker
// than the first look at a strike, which must see the ring as it was.
func (m *measure) tell(st *station) {
	for _, s := range m.watched {
		if s.looked < 0 && !s.told && m.r.now-s.at >= bypassed && s.clean && len(s.rest) > 1 && slices.Contains(s.rest, st) && !m.touched(s) {
			s.told, s.torn = true, !m.one(s)
		}
	}
}

// asked is called for each packet that a planner sends.
func (m *measure) asked(p proto.Packet) {
	if len(m.watched) == 0 {
		return
	}
	topic, err := proto.ParseTopic(p.Topic)
	if err != nil || topic.Kind != proto.TopicDesired {
		return
	}
	var d proto.Desired
	if _, err := proto.Decode(p.Payload, &d); err != nil {
		return // others check that
	}
	for _, s := range m.watched {
		of := func(o *station) bool { return o.id == topic.Node }
		if slices.ContainsFunc(s.rest, of) && !slices.ContainsFunc(s.steps, func(x step) bool { return x.gen == d.Generation }) {
			s.steps = append(s.steps, step{gen: d.Generation, asked: m.r.now})
		}
	}
}

// agreed is called for each decision that is published.
func (m *measure) agreed(gen proto.Generation) {
	for _, s := range m.watched {
		for i := range s.steps {
			if x := &s.steps[i]; x.gen == gen && x.agreed == 0 {
				x.agreed = m.r.now
			}
		}
	}
}

// lost is told of a packet that its connection has to send again.
func (m *measure) lost(who int32) {
	for _, s := range m.watched {
		s.lost = s.lost || who < 0 || slices.ContainsFunc(s.rest, func(o *station) bool { return o.who == who })
	}
}

// leave ends the watch of a strike.
func (m *measure) leave(s *strike) {
	m.watched = slices.DeleteFunc(m.watched, func(o *strike) bool { return o == s })
}

// follow watches a split ring until every node that was in it lies in a whole
// ring of its plan, or in none.
func (m *measure) follow(n int, s *strike) {
	for _, o := range s.rest {
		if o.dark || o.host == nil {
			m.leave(s)
			return // another fault: another story
		}
		rep := m.r.audit.reportOf(o)
		if len(rep.Rings) == 0 {
			continue
		}
		strand, closed := m.r.world.Strand(sim.GPU{Board: o.board}, nil)
		if !closed || len(strand) != int(rep.Rings[0].Size)*m.r.cfg.Fabric.GPUsPerNode {
			if m.r.now-s.at < repairLimit && m.r.net.up && m.r.planning() {
				m.r.agenda.Push(m.r.now+repairWatch, task{kind: taskMeasure, n: n})
			} else {
				m.leave(s)
			}
			return
		}
	}
	m.leave(s)
	m.repairs = append(m.repairs, s.repaired(m.r.now))
	m.dark += m.r.now - s.at
	m.r.tracer.linef("ring %d is one again after %v", s.ring, m.r.now-s.at)
}

// repaired is the account of a split that is over now.
func (s *strike) repaired(now time.Duration) repair {
	r := repair{took: now - s.at, lost: s.lost}
	for _, x := range s.steps {
		if x.agreed != 0 {
			r.known = true
			r.parts = [4]time.Duration{s.steps[0].asked - s.at, x.asked - s.steps[0].asked, x.agreed - x.asked, now - x.agreed}
		}
	}
	return r
}
