package node

import "ringlight/proto"

// One side of a node in its ring. A letter's meaning is below.
//
//	             a                 b                c
//	  END ──────────────► SWITCH ─────► LISTEN ─────────► WORK
//	   ▲                  ▲ ▲ ▲ │         │ │               │
//	   │ d (from any)     │ │ │ └───┐   e │ │ f             │
//	                      │ │ └─────┼─────┘ │               │
//	                      │ │   f   ▼       │       g       │
//	                      │ └──── CLOSING ◄─┴───────────────┤
//	                    h │          │ b                    │ e
//	                      │          ▼                      │
//	                      ├──────  CLOSED                   │
//	                      └─────────────────────────────────┘
//
//	a  a plan gives the side a candidate        e  light lost, or dwell over: next step; a
//	b  every bundle has settled                    request, signal degrade or wait-to-restore
//	c  light of the target or of the probe;     f  no step is left: loopback; or a new plan
//	   or dwell over where a request ties it    g  nothing to try; forced into loopback; or
//	d  a plan gives the side no candidate          the node leaves service
//	                                            h  light after the deadline, a plan or a request; or the
//	                                               node was late: it searches again
//
// At start a side is adopted: END to WORK or CLOSED.

// edges[s] has a bit for each state that s may become.
var edges = [...]uint8{
	proto.SideEnd:     1<<proto.SideEnd | 1<<proto.SideSwitch | 1<<proto.SideWork | 1<<proto.SideClosed,
	proto.SideWork:    1<<proto.SideEnd | 1<<proto.SideSwitch | 1<<proto.SideClosing,
	proto.SideSwitch:  1<<proto.SideEnd | 1<<proto.SideSwitch | 1<<proto.SideListen | 1<<proto.SideClosing,
	proto.SideListen:  1<<proto.SideEnd | 1<<proto.SideSwitch | 1<<proto.SideWork | 1<<proto.SideClosing,
	proto.SideClosing: 1<<proto.SideEnd | 1<<proto.SideSwitch | 1<<proto.SideClosed,
	proto.SideClosed:  1<<proto.SideEnd | 1<<proto.SideSwitch,
}

// become is the only place that changes a side's state.
func (s *side) become(next proto.SideState) {
	if edges[s.state]&(1<<next) == 0 {
		panic("node: illegal edge of the " + s.id.String() + " side: " + s.state.String() + " to " + next.String())
	}
	s.state, s.since = next, s.node.now
}

// reason is why a node is out of service. Several may hold; the highest rules.
type reason uint8

const (
	noPlanner reason = 1 << iota // started in the dark with no plan of its own, no planner heard since
	drained                      // an operator took it out
	ownFault                     // own optics failed
	hostGone                     // the host's GPUs are gone
)

// mode is the standing that the reasons add up to.
func (r reason) mode() proto.Mode {
	switch {
	case r&hostGone != 0:
		return proto.ModeHostDown
	case r&ownFault != 0:
		return proto.ModeIsolated
	case r&drained != 0:
		return proto.ModeDrained
	case r&noPlanner != 0:
		return proto.ModeUnplanned
	}
	return proto.ModeService
}

// become is the only place that changes the node's mode. The way out of
// service is at once and for all bundles: loopback makes the node a ring of
// its own, dark is the optical dying gasp. The way back is into loopback,
// closed and listening: only a planner or a searching neighbour lets a node
// in again.
func (m *Machine) become(r reason, cause proto.Cause) {
	before := m.reasons.mode()
	if m.reasons == r {
		return
	}
	if m.reasons&^noPlanner == 0 {
		m.outAt = m.now
	}
	m.reasons, m.unsaved = r, true
	mode := r.mode()
	if mode == before || !m.adopted {
		return
	}
	switch mode {
	case proto.ModeService:
		m.note(proto.Event{Kind: proto.EvReturned, Path: proto.Loopback, Cause: cause})
		for i := range m.sides {
			m.sides[i].cause = cause
			m.sides[i].armRestore()
		}
	case proto.ModeUnplanned:
		return // came back before any planner spoke: stay as it is
	default:
		for i := range m.sides {
			m.sides[i].leave()
		}
	}
	for b := range m.bundles {
		if mode != proto.ModeService || !m.bundles[b].unowned() {
			m.drive(b, idlePath(mode), cause)
		}
	}
	if before == proto.ModeService {
		m.note(proto.Event{Kind: proto.EvIsolated, Severity: severity(mode), Path: idlePath(mode), Cause: cause})
	}
}

// idlePath is where a bundle is that no side has outside.
func idlePath(mode proto.Mode) proto.Path {
	if mode == proto.ModeHostDown {
		return proto.Dark
	}
	return proto.Loopback
}

// severity of a node's being out of service: an operator's wish is no fault.
func severity(mode proto.Mode) proto.Severity {
	if mode == proto.ModeDrained {
		return proto.SeverityWarning
	}
	return proto.SeverityCritical
}
