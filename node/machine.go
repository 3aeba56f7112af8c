package node

import (
	"time"

	"ringlight/proto"
)

// Machine is one node. It is not safe for concurrent use; Step, Next and the
// reports are called by one goroutine.
type Machine struct {
	shared
	sides    sides
	recalled reason        // reasons that only the journal has told
	hostSays string        // why its GPUs are gone
	outAt    time.Duration // when it went out of service, 0: in a former life
	missed   time.Duration // recovery that the timers can promise, when over the target
}

type sides [2]side // the left and the right one

// New returns a node that has heard nothing yet.
func New(cfg Config) *Machine {
	if cfg.Bundles <= 0 || cfg.Bundles > proto.MaxBundles {
		panic("node: a node has 1 to 16 bundles")
	}
	m := &Machine{shared: shared{participant: participant{fence: fence{id: cfg.ID}, reasons: noPlanner}, bundles: make([]bundle, cfg.Bundles), next: Never, toldLate: Never}}
	for b := range m.bundles {
		m.bundles[b].owner = nobody
	}
	for i := range m.sides {
		m.sides[i] = side{node: &m.shared, id: proto.Side(i), cur: none, probe: none, search: search{from: none}, lostAt: Never, steadyAt: Never, planAt: Never, searchAt: Never}
	}
	return m
}

// Step takes one event and appends what is to be done about it, in order.
// Timers that are due at ev.At run after the event, so that light which comes
// at the last moment counts.
func (m *Machine) Step(ev Event, out []Action) []Action {
	m.now, m.out = max(m.now, ev.At), out
	lag := ev.At - min(m.next, ev.At)
	if ev.Noted != 0 && ev.At > ev.Noted+tardy {
		lag, m.toldLate = max(lag, ev.At-ev.Noted), m.now
	}
	m.handle(&ev)
	for i := range m.sides {
		if s := &m.sides[i]; lag > tardy && (s.state != proto.SideWork || !s.lit(s.cur)) {
			s.searches, s.lag = maxSearches, min(lag, maxLag)
		}
	}
	if m.adopted {
		m.settle()
	}
	if m.unsaved && m.sides.quiet() {
		m.save()
	}
	out, m.out = m.out, nil
	return out
}

// Next is the time of the next due timer, or Never.
func (m *Machine) Next() time.Duration { return m.next }

// handle takes in what an event says. It decides only what does not wait for
// light; the rest is settle's.
func (m *Machine) handle(ev *Event) {
	if int(ev.Bundle) >= len(m.bundles) || int(ev.Path) >= proto.NumPaths {
		return // not of this board
	}
	b := &m.bundles[ev.Bundle]
	switch ev.Kind {
	case Adopt:
		if !m.adopted {
			m.adopt(ev.Lits)
		}
	case Light:
		m.light(b, ev)
	case Switched:
		if ev.Path == b.path {
			m.settled(ev.Bundle)
		}
	case PathFailed:
		m.pathFailed(ev)
	case PathOK:
		m.pathOK(ev.Bundle)
	case Ready:
		m.bundleReady(ev)
	case Unready:
		b.wrong(m.now)
		b.ready, b.silent = false, ev.Text
	case Stage, Decide, DropStaged, HeardTerm:
		m.tell(m, ev)
	case HostFault:
		m.recalled &^= hostGone
		if m.hostSays = ev.Text; m.reasons&hostGone == 0 {
			m.note(proto.Event{Kind: proto.EvHostFault, Severity: proto.SeverityCritical, Cause: proto.CauseHostFault, Text: ev.Text})
			m.become(m.reasons|hostGone, proto.CauseHostFault)
		}
	case HostOK:
		if m.reasons&hostGone != 0 {
			m.note(proto.Event{Kind: proto.EvHostOK, Cause: proto.CauseHostReturned, Text: ev.Text})
			m.become(m.reasons&^hostGone, proto.CauseHostReturned)
		}
	case Drain:
		m.recalled &^= drained
		m.become(m.reasons|drained, proto.CauseOperator)
	case Undrain:
		m.become(m.reasons&^drained, proto.CauseOperator)
	case Degrade:
		b.degraded &^= 1 << ev.Path
		if ev.Lit {
			b.degraded |= 1 << ev.Path
		}
	case Request:
		m.request(ev)
	}
}

// bundleReady: a bundle can switch, again or at last. It goes where it was wanted; one
// that was silent and shines outside stays, as at a start: somebody may be on it.
func (m *Machine) bundleReady(ev *Event) {
	b := &m.bundles[ev.Bundle]
	want, silent := b.path, b.silent != ""
	m.settled(ev.Bundle)
	b.ready, b.path = true, ev.Path
	b.answers(m.now)
	switch mode := m.Mode(); {
	case !m.adopted || mode == proto.ModeUnplanned:
	case b.owner == nobody && silent:
		m.idle(int(ev.Bundle), proto.CauseColdStart)
	case b.owner == nobody:
		m.drive(int(ev.Bundle), idlePath(mode), proto.CauseColdStart)
	default:
		m.drive(int(ev.Bundle), want, proto.CauseColdStart)
	}
}

// lateText is the text of a bundle that is late.
const lateText = "late: it was asked for this path, and its board has not said that it is there"

// settled: a bundle is where it was asked to be, late or not.
func (m *Machine) settled(id proto.BundleID) {
	b := &m.bundles[id]
	if b.late {
		m.note(proto.Event{Kind: proto.EvAlarm, Bundle: id, Path: b.path, Cause: b.cause, Resolved: true, Text: "settled " + (m.now - b.since).String() + " after it was asked for"})
	}
	b.busy, b.late = false, false
}

// plannerSeen: the first planner of all ends the wait for one.
func (m *Machine) plannerSeen() { m.become(m.reasons&^noPlanner, proto.CauseColdStart) }

// light takes in one change of filtered light. What no later note of a side
// tells is told here, so that no change goes uncounted.
func (m *Machine) light(b *bundle, ev *Event) {
	bit := uint8(1) << ev.Path
	if ev.Lit == (b.lit&bit != 0) {
		return
	}
	b.lit ^= bit
	b.litAt[ev.Path] = m.now
	if !m.adopted || !ev.Path.External() {
		return // inside the node only its own switching changes light, and its own taps judge it
	}
	if b.owner != nobody {
		s := &m.sides[b.owner]
		if c := s.list[s.cur]; c.Bundle == ev.Bundle && c.Path == ev.Path &&
			(s.state == proto.SideWork || s.state == proto.SideListen && ev.Lit) {
			return
		}
	}
	m.note(proto.Event{Kind: proto.EvLightUnselected, Bundle: ev.Bundle, Path: ev.Path, FromPath: b.path, Resolved: !ev.Lit})
	if mode := m.Mode(); !ev.Lit && b.owner == nobody && b.path == ev.Path && (mode == proto.ModeService || mode == proto.ModeUnplanned) {
		m.drive(int(ev.Bundle), proto.Loopback, proto.CauseLightLost) // see unowned
	}
}

// pathFailed takes the node out of its ring at once: half a node in a ring
// opens it, and whatever can be tried can be tried alone.
func (m *Machine) pathFailed(ev *Event) {
	b := &m.bundles[ev.Bundle]
	b.busy, b.late = false, false
	again := b.failed
	b.fail(m.now)
	b.why = ev.Text
	if again {
		return
	}
	m.unsaved = true
	m.note(proto.Event{Kind: proto.EvPathFailed, Severity: proto.SeverityCritical, Bundle: ev.Bundle, Path: ev.Path,
		FromPath: b.path, Cause: proto.CauseOwnFault, Module: ev.Module, Lane: ev.Lane, Text: ev.Text})
	m.become(m.reasons|ownFault, proto.CauseOwnFault)
}

// maxRounds bounds settle: each round moves a side on, and a search has only
// so many steps before it has to wait for something.
const maxRounds = 64

// settle lets both sides act on light and time until neither moves. On the
// way it finds the earliest timer, so that what is waited for and what is
// acted on cannot differ.
func (m *Machine) settle() {
	for range maxRounds {
		m.next = Never
		m.runRemedies()
		moved := false
		for i := range m.sides {
			moved = m.run(&m.sides[i]) || moved
		}
		if !moved {
			return
		}
	}
	panic("node: the sides do not come to rest")
}

// run takes one step of a side, and reports whether it moved. A bundle that
// the side waits for for long is late, and in the end has failed silently.
func (m *Machine) run(s *side) bool {
	s.lift()
	switching := s.state == proto.SideSwitch
	for b := s.awaited(); b != none && m.due(s.lateAt); b = s.awaited() {
		if x := &m.bundles[b]; !x.late {
			x.late = true
			m.note(proto.Event{Kind: proto.EvAlarm, Severity: proto.SeverityWarning, Bundle: proto.BundleID(b), Path: x.path, Cause: x.cause, Text: lateText})
		}
		if !m.due(s.lateAt + BoardPatience) {
			break
		}
		m.pathFailed(&Event{Bundle: proto.BundleID(b), Path: m.bundles[b].path, Text: "does not settle"})
		if switching {
			return true // out of its ring: the side closes
		}
	}
	return s.run()
}

// quiet tells whether no side is on its way anywhere: until then the journal
// can wait.
func (s *sides) quiet() bool {
	for i := range s {
		switch s[i].state {
		case proto.SideSwitch, proto.SideListen, proto.SideClosing:
			return false
		}
	}
	return true
}
