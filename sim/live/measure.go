package live

import (
	"fmt"
	"time"

	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/sim"
	"ringlight/sim/fleet"
	"ringlight/sim/trace"
)

// closeBound is within what every piece of a ring must be closed after a
// fault (invariant 1 of package node); the walk through the light is done then.
const closeBound = 12 * time.Millisecond

// ledgerSlack is how far the parts of a ledger may be off what the world saw:
// each of the agent's five is cut to a microsecond.
const ledgerSlack = 6 * time.Microsecond

// end is where a live neighbour of the failing node hangs on it.
type end struct {
	station *station
	port    fabric.Port // at the neighbour
	side    proto.Side
}

// struck is a fault and what the world looked like just before.
type struck struct {
	node   *station
	at     time.Duration
	ring   proto.RingID // 0: in none
	ends   []end
	member map[proto.NodeID]bool // the live members of its ring without itself
}

// before looks at the ring that a node is about to leave.
func (s *stepper) before(st *station) *struck {
	f := &struck{node: st, at: s.now, member: map[proto.NodeID]bool{}}
	if st.host == nil {
		return f
	}
	own := st.report()
	if len(own.Rings) == 0 || st.effect != trace.None {
		return f
	}
	f.ring = own.Rings[0].Ring
	for _, other := range s.stations {
		if other == st || other.host == nil || other.effect != trace.None {
			continue
		}
		r := other.report()
		if len(r.Rings) == 0 || r.Rings[0].Ring != f.ring {
			continue
		}
		f.member[other.id] = true
		for _, side := range r.Sides {
			if side.Current < 0 || side.Peer != st.id {
				continue
			}
			port, ok := sidePort(&r.Rings[0], side)
			port.Node = other.id
			// Both ends of a link in use have light.
			if far, _, there := s.fabric.At(port); ok && there && s.world.Lit(fleet.SimPort(port)) && s.world.Lit(fleet.SimPort(far)) {
				f.ends = append(f.ends, end{other, port, side.Side})
			}
		}
	}
	return f
}

// sidePort is the port that a side uses now.
func sidePort(ring *proto.RingAssignment, side proto.SideReport) (fabric.Port, bool) {
	list := ring.Left
	if side.Side == proto.Right {
		list = ring.Right
	}
	if side.Current < 0 || int(side.Current) >= len(list) {
		return fabric.Port{}, false
	}
	c := list[side.Current]
	return fabric.Port{Bundle: c.Bundle, Path: c.Path}, true
}

// strike lets a fault happen and runs the world, without the network, until
// every piece must be closed; then it looks what became of it.
func (s *stepper) strike(e trace.NodeEvent) (*struck, FaultResult, error) {
	st := s.stations[e.Node]
	res := FaultResult{Day: inDays(e.At), Node: st.id, Kind: e.Fault.Class, Outcome: Idle, RingClosed: true}
	f := s.before(st)
	for _, other := range s.stations {
		other.noted, other.edges = other.noted[:0], other.edges[:0]
	}
	if err := s.apply(st, e); err != nil {
		return nil, res, err
	}
	if err := s.runTo(f.at + closeBound); err != nil {
		return nil, res, err
	}
	if f.ring == 0 || len(f.ends) == 0 {
		return f, res, nil
	}
	res.RingClosed = s.closed(f.member)
	res.Outcome = Closed
	if len(f.ends) < 2 {
		return f, res, nil
	}
	last, ok, err := s.bypass(f)
	if err != nil || !ok {
		return f, res, err
	}
	res.Outcome = Bypassed
	total := last.Total()
	res.Ledger, res.BypassMicros = &last, &total
	return f, res, nil
}

// apply brings a node from what it suffered to what it suffers now.
func (s *stepper) apply(st *station, e trace.NodeEvent) error {
	was := st.effect
	st.effect = e.After
	switch {
	case e.After == was:
		return nil
	case e.After == trace.NodeDark:
		s.powerOff(st)
		return nil
	case was == trace.NodeDark:
		if err := s.powerOn(st); err != nil {
			return err
		}
		if e.After == trace.HostFault {
			return s.hostSays(st, false, e.Fault.Desc)
		}
		return nil
	case e.After == trace.HostFault:
		return s.hostSays(st, false, e.Fault.Desc)
	}
	return s.hostSays(st, true, e.Fault.Desc)
}

// closed walks the light GPU by GPU: do all GPUs of these nodes lie in closed
// cycles?
func (s *stepper) closed(members map[proto.NodeID]bool) bool {
	alive := func(b sim.BoardID) bool { return s.stations[b].effect == trace.None }
	for _, strand := range s.world.Walk(alive).Open {
		for _, gpu := range strand {
			if members[s.stations[gpu.Board].id] {
				return false
			}
		}
	}
	return true
}

// bypass finds the ledger of a fault that both neighbours went round. The
// time counts from the last of the losses of light at them to the last side
// that has its light again; the parts are those of that side, from the losses
// on.
func (s *stepper) bypass(f *struck) (LedgerMicros, bool, error) {
	var lost time.Duration // the last physical loss
	for _, e := range f.ends {
		at, lit := s.world.LastChange(fleet.SimPort(e.port))
		if lit || at < f.at {
			return LedgerMicros{}, false, fmt.Errorf("live: node %d has light of node %d, which is gone", e.station.id, f.node.id)
		}
		lost = max(lost, at)
	}
	var last *proto.Event
	var lastEnd end
	for _, e := range f.ends {
		ev, err := s.switched(f, e)
		if err != nil || ev == nil {
			return LedgerMicros{}, false, err
		}
		if last == nil || ev.AtMicros > last.AtMicros {
			last, lastEnd = ev, e
		}
	}
	l, err := s.ledger(f, lastEnd, last, lost)
	return l, err == nil, err
}

// switched is the event by which a neighbour's side told that it works again,
// nil when it does not.
func (s *stepper) switched(f *struck, e end) (*proto.Event, error) {
	if e.station.host == nil {
		return nil, fmt.Errorf("live: node %d has no power", e.station.id)
	}
	r := e.station.report()
	for _, side := range r.Sides {
		if side.Side != e.side {
			continue
		}
		if side.State != proto.SideWork || side.Peer == f.node.id || len(r.Rings) == 0 {
			return nil, nil
		}
		port, ok := sidePort(&r.Rings[0], side)
		port.Node = e.station.id
		if !ok || !s.world.Lit(fleet.SimPort(port)) {
			return nil, fmt.Errorf("live: node %d says that its %v side works on %v, where there is no light", port.Node, e.side, port)
		}
	}
	for i := len(e.station.noted) - 1; i >= 0; i-- {
		ev := &e.station.noted[i]
		if ev.Kind == proto.EvSwitched && ev.Side == e.side {
			if ev.Ledger == nil {
				return nil, fmt.Errorf("live: node %d switched without a ledger", e.station.id)
			}
			return ev, nil
		}
	}
	return nil, fmt.Errorf("live: node %d moved its %v side and tells no event of it", e.station.id, e.side)
}

// ledger puts the agent's ledger of its switch behind the true time of the
// loss, which only the world knows, and checks that the two fit together: the
// agent's parts must lead back from the confirmation to the moment at which the
// world handed the edge in. A switch that answers light after the deadline was not the first
// try, and leads back to its own beginning: what lies before counts as detection.
func (s *stepper) ledger(f *struck, e end, ev *proto.Event, lost time.Duration) (LedgerMicros, error) {
	micros := func(n uint32) time.Duration { return time.Duration(n) * time.Microsecond }
	confirmed := time.Duration(ev.AtMicros) * time.Microsecond
	a := ev.Ledger
	marks := [...]time.Duration{0, micros(a.HoldoffMicros), micros(a.DecideMicros), micros(a.BusMicros), micros(a.SettleMicros), micros(a.ConfirmMicros)}
	sum := time.Duration(0)
	for _, m := range marks {
		sum += m
	}
	told := confirmed - sum
	seen, ok := s.edgeAt(f, e)
	if !ok {
		return LedgerMicros{}, fmt.Errorf("live: node %d switched without an edge of %v", e.station.id, e.port)
	}
	if d := told - seen; d < -ledgerSlack || d > ledgerSlack && ev.Cause != proto.CauseLateLight {
		return LedgerMicros{}, fmt.Errorf("live: node %d: ledger %+v leads back from %v to %v, but the loss was handed in at %v",
			e.station.id, *a, confirmed, told, seen)
	}
	// What lies before the last loss is not part of this bypass.
	var parts [len(marks)]int64
	at, from := told, lost.Microseconds()
	for i, m := range marks {
		at += m
		to := max(from, at.Microseconds())
		parts[i] = to - from
		from = to
	}
	l := LedgerMicros{parts[0], parts[1], parts[2], parts[3], parts[4], parts[5]}
	if want := confirmed.Microseconds() - lost.Microseconds(); l.Total() != want {
		return l, fmt.Errorf("live: node %d: ledger %+v adds up to %d us, not %d", e.station.id, l, l.Total(), want)
	}
	return l, nil
}

// edgeAt is when the neighbour's agent was handed the loss of its light.
func (s *stepper) edgeAt(f *struck, e end) (time.Duration, bool) {
	losLines := s.board.Bundles[e.port.Bundle].LOS
	line := losLines[fleet.SimPort(e.port).Path]
	for _, seen := range e.station.edges {
		if seen.line == line && !seen.high && seen.at >= f.at {
			return seen.at, true
		}
	}
	return 0, false
}

// groups counts the healthy nodes and the full TP groups among them, by the
// light: a full group is a closed cycle of exactly so many GPUs.
func (s *stepper) groups() (healthy, full int) {
	alive := func(b sim.BoardID) bool { return s.stations[b].effect == trace.None }
	for _, st := range s.stations {
		if st.effect == trace.None {
			healthy++
		}
	}
	for _, cycle := range s.world.Walk(alive).Closed {
		if s.fabric.WholeRing(len(cycle)) {
			full++
		}
	}
	return healthy, full
}

// eventCounts are the events at their source and what the planner has of
// them.
func (s *stepper) eventCounts() (queued, delivered uint64) {
	for _, st := range s.stations {
		j := &st.disk.Journal
		queued += max(j.Last, j.Acked)
	}
	return queued, s.watch.overview().EventsSeen
}

func inDays(t time.Duration) float64 { return float64(t) / float64(trace.Day) }
