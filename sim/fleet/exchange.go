package fleet

import (
	"slices"
	"time"

	"ringlight/planner/topo"
	"ringlight/proto"
)

// Rings go through the steps of Binary Exchange one after the other, as jobs that announce
// their phases have them: pairs over fibres that span one hop, two, four and so on, and a
// ring again. What a step costs is read from the light.

// Times of it. chosen: many steps an hour, each over before the next; most are dark for less
// than a millisecond.
const (
	flipEvery = 500 * time.Millisecond
	flipClose = 100 * time.Microsecond
	flipFor   = 20 * time.Millisecond // then every moveWatch
)

// What a step sends, as ocs-sim study exchange has it by default: bytes from each node to
// each other, over a bundle.
const (
	exchangeBytes = 64 << 20
	exchangeGbps  = 6400
)

// flips are the steps that were asked for, now the one under way.
type flips struct {
	r     *Run
	turn  int
	now   *flip
	steps []FlipTook
}

type flip struct {
	ring     proto.RingID
	from, to uint8
	nodes    []proto.NodeID
	asked    time.Duration
	decided  time.Duration // 0: not yet
	dark     time.Duration // since when, 0: it is not
}

// FlipTook is a step of Binary Exchange; microseconds.
type FlipTook struct {
	Step    int    `json:"step"`    // from 1, over fibres that span 2^(step-1) hops; 0: back to a ring
	Ended   int    `json:"ended"`   // by a fault
	Refused int    `json:"refused"` // a ring that passes a node by lacks fibres, or the planner was at something else
	Agreed  Spread `json:"agreed_us"`
	Dark    Spread `json:"dark_us"`
	Sends   int64  `json:"sends_us"`

	agreed, dark []int64
}

// next asks for the next step of the next ring; one that was refused goes back to a ring.
func (x *flips) next() {
	r, last := x.r, x.now
	x.finish(false)
	r.agenda.Push(r.now+flipEvery, task{kind: taskExchange})
	b := r.planners[0]
	if b.host == nil {
		return
	}
	rings := slices.DeleteFunc(b.host.Planner().Rings.Placed.Statuses(), func(s proto.RingStatus) bool {
		return s.State != proto.RingInService || len(s.Nodes)&(len(s.Nodes)-1) != 0
	})
	if len(rings) == 0 {
		return
	}
	s, back := rings[x.turn%len(rings)], last != nil && last.decided == 0 && last.from > 0
	if at := slices.IndexFunc(rings, func(s proto.RingStatus) bool { return back && s.Ring == last.ring }); at >= 0 {
		s = rings[at]
	} else {
		x.turn, back = x.turn+1, false
	}
	f := &flip{ring: s.Ring, from: s.Exchange, to: s.Exchange + 1, nodes: s.Nodes, asked: r.now}
	name := proto.ExchangeStep(f.to)
	if 1<<f.to > len(s.Nodes) || back {
		f.to, name = 0, proto.PhaseRing
	}
	x.now = f
	r.asked++
	r.inject.ask(proto.OpRequest{Corr: corrOf(r.asked), Noun: proto.NounFlip, Bundle: -1, Rings: []proto.RingID{s.Ring}, Name: name})
}

// decided is told of every decision that a planner publishes.
func (x *flips) decided(d *proto.Decision) {
	if f := x.now; f != nil && f.ring == d.Ring && f.decided == 0 {
		f.decided = x.r.now
		x.r.agenda.Push(x.r.now, task{kind: taskFlip})
	}
}

// look looks at the light of a ring that goes to another step.
func (x *flips) look() {
	f, r := x.now, x.r
	if f == nil || f.decided == 0 {
		return
	}
	if f.dark == 0 && !x.holds(f.nodes, f.from) {
		f.dark = r.now
	}
	switch {
	case f.dark > 0 && x.holds(f.nodes, f.to):
		x.finish(true)
	case r.now > f.decided+flipFor:
		r.agenda.Push(r.now+moveWatch, task{kind: taskFlip})
	default:
		r.agenda.Push(r.now+flipClose, task{kind: taskFlip})
	}
}

// holds: each pair, or all, lie in one closed cycle, and in none with others.
func (x *flips) holds(nodes []proto.NodeID, step uint8) bool {
	if step == 0 {
		return x.r.measure.holds(nodes)
	}
	for at := range nodes {
		if to := at ^ 1<<(step-1); at < to && !x.r.measure.holds([]proto.NodeID{nodes[at], nodes[to]}) {
			return false
		}
	}
	return true
}

// took is what the steps cost.
func (x *flips) took() []FlipTook {
	for i := range x.steps {
		t := &x.steps[i]
		t.Agreed, t.Dark = spreadOf(t.agreed, enough), spreadOf(t.dark, enough)
	}
	return x.steps
}

// finish enters a step that has light, or one that came to something else.
func (x *flips) finish(lit bool) {
	f := x.now
	if x.now = nil; f == nil {
		return
	}
	for len(x.steps) <= int(f.to) {
		x.steps = append(x.steps, FlipTook{Step: len(x.steps)})
	}
	switch t := &x.steps[f.to]; {
	case lit:
		if f.to > 0 {
			t.Sends = topo.ExchangeStep(len(f.nodes), int(f.to)-1, int(f.to), exchangeBytes)[0].Bytes * 8 / (exchangeGbps * 1000)
		}
		t.agreed = append(t.agreed, (f.decided - f.asked).Microseconds())
		t.dark = append(t.dark, (x.r.now - f.dark).Microseconds())
	case f.decided == 0:
		t.Refused++
	default:
		t.Ended++
	}
}
