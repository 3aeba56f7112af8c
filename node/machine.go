package node

import (
	"time"

	"ringlight/proto"
)

// Machine is one node. It is not safe for concurrent use; Step, Next and the
// reports are called by one goroutine.
type Machine struct {
	fence
	now     time.Duration
	adopted bool
	reasons reason
	bundles []bundle
	sides   [2]side
	timers  timers
	holdOff time.Duration // a lost light may come back
	restore time.Duration // wait-to-restore, 0: not revertive
	missed  time.Duration // recovery that the timers can promise, when over the target

	ring      *proto.RingAssignment // of applied, nil when it has none
	bypassSeq uint64
	unsaved   bool

	next time.Duration // earliest timer of both sides, found anew by each Step
	out  []Action      // of the Step under way
}

// bundle is what the node knows of one bundle of modules.
type bundle struct {
	path   proto.Path // last asked for
	busy   bool       // asked for, not yet settled
	ready  bool       // can switch
	failed bool       // own optics failed
	owner  int8       // side that has it outside, or nobody
	lit    uint8      // bit p: path p has light
	litAt  [proto.NumPaths]time.Duration
	since  time.Duration
	cause  proto.Cause
	flaps  uint32 // losses of the selected light

	degraded uint8         // bit p: path p has a signal degrade
	tries    int           // remedies so far
	remedyAt time.Duration // of the next one
	wellAt   time.Duration // since the last one helped
}

const nobody = -1

// New returns a node that has heard nothing yet.
func New(cfg Config) *Machine {
	if cfg.Bundles <= 0 || cfg.Bundles > proto.MaxBundles {
		panic("node: a node has 1 to 16 bundles")
	}
	m := &Machine{fence: fence{id: cfg.ID}, reasons: unheard, bundles: make([]bundle, cfg.Bundles), next: Never}
	for b := range m.bundles {
		m.bundles[b].owner = nobody
	}
	for i := range m.sides {
		m.sides[i] = side{id: proto.Side(i), cur: none, probe: none, from: none, lostAt: Never, steadyAt: Never, planAt: Never}
	}
	return m
}

// Step takes one event and appends what is to be done about it, in order.
// Timers that are due at ev.At run after the event, so that light which comes
// at the last moment counts.
func (m *Machine) Step(ev Event, out []Action) []Action {
	m.now = max(m.now, ev.At)
	m.out = out
	m.handle(&ev, m.now)
	if m.adopted {
		m.settle(m.now)
	}
	if m.unsaved && m.quiet() {
		m.save()
	}
	out, m.out = m.out, nil
	return out
}

// Next is the time of the next due timer, or Never.
func (m *Machine) Next() time.Duration { return m.next }

// handle takes in what an event says. It decides only what does not wait for
// light; the rest is settle's.
func (m *Machine) handle(ev *Event, now time.Duration) {
	if int(ev.Bundle) >= len(m.bundles) || int(ev.Path) >= proto.NumPaths {
		return // not of this board
	}
	b := &m.bundles[ev.Bundle]
	switch ev.Kind {
	case Adopt:
		if !m.adopted {
			m.adopt(ev.Lits, now)
		}
	case Light:
		m.light(b, ev, now)
	case Switched:
		if ev.Path == b.path {
			b.busy = false
		}
	case PathFailed:
		m.pathFailed(ev, now)
	case PathOK:
		m.pathOK(ev.Bundle, now)
	case Ready:
		want := b.path
		if b.owner == nobody {
			want = rest(m.Mode())
		}
		b.ready, b.busy, b.path = true, false, ev.Path
		if m.adopted && m.Mode() != proto.ModeDeaf {
			m.drive(int(ev.Bundle), want, proto.CauseColdStart, now)
		}
	case Unready:
		b.ready = false
	case Stage:
		m.stage(ev.Desired, ev.Digest, now)
	case Decide:
		m.decide(ev.Decision, now)
	case DropStaged:
		if ev.Term >= m.seenTerm && m.staged != nil {
			m.staged = nil
			m.save()
			m.out = m.watch(m.out)
		}
	case HeardTerm:
		m.hear(ev.Term, now)
	case HostFault:
		if m.reasons&hostGone == 0 {
			m.note(proto.Event{Kind: proto.EvHostFault, Severity: proto.SeverityCritical, Cause: proto.CauseHostFault, Text: ev.Text}, now)
			m.become(m.reasons|hostGone, proto.CauseHostFault, now)
		}
	case HostOK:
		if m.reasons&hostGone != 0 {
			m.note(proto.Event{Kind: proto.EvHostOK, Cause: proto.CauseHostReturned, Text: ev.Text}, now)
			m.become(m.reasons&^hostGone, proto.CauseHostReturned, now)
		}
	case Drain:
		m.become(m.reasons|drained, proto.CauseOperator, now)
	case Undrain:
		m.become(m.reasons&^drained, proto.CauseOperator, now)
	case Degrade:
		b.degraded &^= 1 << ev.Path
		if ev.Lit {
			b.degraded |= 1 << ev.Path
		}
	case Request:
		m.request(ev, now)
	}
}

// hear takes note of a planner's term; the first valid one ends deafness.
func (m *Machine) hear(t proto.Term, now time.Duration) {
	if t == 0 || t < m.seenTerm {
		return
	}
	if t > m.seenTerm {
		m.seenTerm, m.unsaved = t, true
	}
	m.become(m.reasons&^unheard, proto.CauseColdStart, now)
}

// light takes in one change of filtered light. What no later note of a side
// tells is told here, so that no change goes uncounted.
func (m *Machine) light(b *bundle, ev *Event, now time.Duration) {
	bit := uint8(1) << ev.Path
	if ev.Lit == (b.lit&bit != 0) {
		return
	}
	b.lit ^= bit
	b.litAt[ev.Path] = now
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
	m.note(proto.Event{Kind: proto.EvLightUnselected, Bundle: ev.Bundle, Path: ev.Path, FromPath: b.path, Resolved: !ev.Lit}, now)
	if mode := m.Mode(); !ev.Lit && b.owner == nobody && b.path == ev.Path && (mode == proto.ModeService || mode == proto.ModeDeaf) {
		m.drive(int(ev.Bundle), proto.Loopback, proto.CauseLightLost, now) // it was a stray, see there
	}
}

// pathFailed takes the node out of its ring at once: half a node in a ring
// opens it, and whatever can be tried can be tried alone.
func (m *Machine) pathFailed(ev *Event, now time.Duration) {
	b := &m.bundles[ev.Bundle]
	b.busy = false
	again := b.failed
	b.ail(now)
	if again {
		return
	}
	m.note(proto.Event{Kind: proto.EvPathFailed, Severity: proto.SeverityCritical, Bundle: ev.Bundle, Path: ev.Path,
		FromPath: b.path, Cause: proto.CauseOwnFault, Module: ev.Module, Lane: ev.Lane, Text: ev.Text}, now)
	m.become(m.reasons|ownFault, proto.CauseOwnFault, now)
}

func (m *Machine) anyFailed() bool {
	for b := range m.bundles {
		if m.bundles[b].failed {
			return true
		}
	}
	return false
}

// maxRounds bounds settle: each round moves a side on, and a search has only
// so many steps before it has to wait for something.
const maxRounds = 64

// settle lets both sides act on light and time until neither moves. On the
// way it finds the earliest timer, so that what is waited for and what is
// acted on cannot differ.
func (m *Machine) settle(now time.Duration) {
	for range maxRounds {
		m.next = Never
		m.runRemedies(now)
		moved := false
		for i := range m.sides {
			m.lift(&m.sides[i], now)
			moved = m.run(&m.sides[i], now) || moved
		}
		if !moved {
			return
		}
	}
	panic("node: the sides do not come to rest")
}

// due tells whether t has come, and remembers it when not.
func (m *Machine) due(t, now time.Duration) bool {
	if now >= t {
		return true
	}
	m.next = min(m.next, t)
	return false
}

// drive asks for a path unless it has been asked for already: what is right
// is never driven again. A move that no plan asked for is counted, so that a
// plan which does not know of it can be refused.
func (m *Machine) drive(b int, p proto.Path, cause proto.Cause, now time.Duration) {
	x := &m.bundles[b]
	if x.path == p || !x.ready {
		return
	}
	x.path, x.busy, x.since, x.cause = p, true, now, cause
	m.unsaved = true
	switch cause {
	case proto.CausePlan, proto.CauseColdStart, proto.CauseAdopted:
	default:
		m.bypassSeq++
	}
	m.out = append(m.out, Action{Kind: Select, Bundle: proto.BundleID(b), Path: p, Cause: cause})
}

func (m *Machine) note(e proto.Event, now time.Duration) {
	m.noteStamped(e, Stamps{}, now)
}

func (m *Machine) noteStamped(e proto.Event, st Stamps, now time.Duration) {
	e.Version, e.Node, e.Count = proto.Version, m.id, 1
	e.AtMicros = uint64(now.Microseconds())
	e.FirstMicros = e.AtMicros
	e.Measured, e.Expected = proto.NoPower, proto.NoPower
	e.BypassSeq = m.bypassSeq
	if m.ring != nil {
		e.Ring = m.ring.Ring
	}
	if m.applied != nil {
		e.Generation = m.applied.Desired.Generation
	}
	m.out = append(m.out, Action{Kind: Note, Bundle: e.Bundle, Path: e.Path, Cause: e.Cause, Note: e, Stamps: st})
}

func (m *Machine) save() {
	m.unsaved = false
	m.out = append(m.out, Action{Kind: Save})
}

// quiet tells whether no side is on its way anywhere: until then the journal
// can wait.
func (m *Machine) quiet() bool {
	for i := range m.sides {
		switch m.sides[i].state {
		case proto.SideSwitch, proto.SideListen, proto.SideClosing:
			return false
		}
	}
	return true
}
