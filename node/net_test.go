package node

import (
	"math/rand/v2"
	"time"

	"ringlight/proto"
)

// A small deterministic network: machines, fibres that carry light or not,
// and one heap of events. Light through it is found after a time in [d, D]
// and bundles switch in [s, S]; a dying node's lasers go within W. It is not
// the board simulator: it knows no register and costs microseconds a run.

var defaultEnvelope = proto.Envelope{DetectMaxMicros: 150, DetectMinMicros: 40, SwitchMaxMicros: 250, SwitchMinMicros: 75, SkewMicros: 500}

type port struct{ node, bundle, path int }

var nowhere = port{node: -1}

type netKind uint8

const (
	netDetect  netKind = iota // the comparator of a port follows its light
	netSettle                 // a bundle has settled
	netTick                   // a machine's timer
	netLasers                 // a bundle of a dying node goes dark
	netDeath                  // all of a node at once, but for its lasers
	netReturn                 // power is back
	netHost                   // host fault
	netHostOK                 //
	netCut                    // a receiver's fibre breaks
	netMend                   //
	netFail                   // own optics
	netCommit                 // the decision, on what was prepared before
	netCrash                  // the agent alone: light stays
	netRestart                // it comes back and adopts
	netHang                   // the bus of a bundle does nothing for tag microseconds
	netDegrade                // signal degrade of a path begins, or ends with tag 1
	netDrain                  // an operator takes the node out, or back with tag 1
	netRequest                // an operator's request, by tag; see fault
	netWake                   // a starved agent gets the processor
)

type netEvent struct {
	at   time.Duration
	seq  uint32
	kind netKind
	port port
	tag  uint32
}

type netBundle struct {
	path   proto.Path // what it does; Dark while it moves
	target proto.Path
	tag    uint32
	dead   bool
	hung   time.Duration // until when its bus does nothing
}

type netPort struct {
	light, found, cut bool
	tag               uint32
}

type netNode struct {
	m        *Machine
	alive    bool
	agent    bool // its process runs
	member   bool
	bundles  []netBundle
	ports    [][proto.NumPaths]netPort
	fibres   [][proto.NumPaths]port
	tickAt   time.Duration
	desired  proto.Desired
	saved    State
	starved  starving
	freeAt   time.Duration // when a starved agent is done with what it does
	inbox    []Event       // what a starved agent has not been told yet
	moved    time.Duration // last time a side confirmed light
	switches int
}

type network struct {
	rng    *rand.Rand
	corner func() bool // set: every delay is at its least or at its most
	layout
	env     proto.Envelope
	nodes   []*netNode
	heap    []netEvent
	seq     uint32
	now     time.Duration
	actions []Action
	lost    time.Duration // last time that any port lost its light by a fault
	last    time.Duration // when the last fault strikes
	trace   func(format string, args ...any)
	spoil   func(*Machine) // a planted defect, before every step
}

func (n *network) push(at time.Duration, kind netKind, p port, tag uint32) {
	n.seq++
	h := append(n.heap, netEvent{at, n.seq, kind, p, tag})
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !h[i].before(h[up]) {
			break
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
	n.heap = h
}

func (e netEvent) before(o netEvent) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

func (n *network) pop() netEvent {
	h := n.heap
	top := h[0]
	last := len(h) - 1
	h[0] = h[last]
	h = h[:last]
	for i := 0; ; {
		c := 2*i + 1
		if c >= last {
			break
		}
		if c+1 < last && h[c+1].before(h[c]) {
			c++
		}
		if !h[c].before(h[i]) {
			break
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
	n.heap = h
	return top
}

func (n *network) between(lo, hi uint32) time.Duration {
	if n.corner != nil {
		if n.corner() {
			lo = hi
		}
		return time.Duration(lo) * time.Microsecond
	}
	ns := int64(lo)*1000 + n.rng.Int64N(int64(hi-lo)*1000+1)
	return time.Duration(ns)
}

// bundleFor is the default wiring: which bundle and path reaches an offset.
func bundleFor(k, offset int) (bundle, path int, ok bool) {
	e1, e2 := int(proto.External1), int(proto.External2)
	switch {
	case offset == -1:
		return 0, e1, true
	case offset == -2:
		return 0, e2, true
	case offset == 1:
		return 1, e1, true
	case offset == 2:
		return 1, e2, true
	case k == 3 && offset == -3:
		return 2, e1, true
	case k == 3 && offset == 3:
		return 2, e2, true
	case k == 4 && offset == -3:
		return 2, e1, true
	case k == 4 && offset == -4:
		return 2, e2, true
	case k == 4 && offset == 3:
		return 3, e1, true
	case k == 4 && offset == 4:
		return 3, e2, true
	}
	return 0, 0, false
}

func (n *network) prepare(i int) {
	d := n.nodes[i].desired
	n.step(i, Event{Kind: Stage, Desired: &d})
}

func (n *network) adopt(i int) {
	nd := n.nodes[i]
	var found []BundleLight
	for b := range nd.bundles {
		f := BundleLight{Bundle: proto.BundleID(b), Path: nd.bundles[b].path, Ready: true}
		for p := range nd.ports[b] {
			if nd.ports[b][p].found {
				f.Lit |= 1 << p
			}
		}
		found = append(found, f)
	}
	n.step(i, Event{Kind: Adopt, Lits: found})
}

func (n *network) step(i int, ev Event) {
	nd := n.nodes[i]
	if !nd.alive || !nd.agent {
		return
	}
	ev.At = n.now
	if n.spoil != nil {
		n.spoil(nd.m)
	}
	n.actions = nd.m.Step(ev, n.actions[:0])
	nd.freeAt = 0
	if n.now < nd.starved.until {
		nd.freeAt = n.now + nd.starved.cost
	}
	for j := range n.actions {
		a := &n.actions[j]
		if n.trace != nil {
			n.traceAction(i, a)
		}
		switch a.Kind {
		case Select:
			b := &nd.bundles[a.Bundle]
			b.tag++
			b.target, b.path = a.Path, proto.Dark
			nd.switches++
			n.push(max(n.now, b.hung)+n.between(n.env.SwitchMinMicros, n.env.SwitchMaxMicros), netSettle, port{i, int(a.Bundle), int(a.Path)}, b.tag)
			n.relight(i, int(a.Bundle))
		case Note:
			if a.Note.Kind == proto.EvSwitched || a.Note.Kind == proto.EvLightFound {
				nd.moved = n.now
			}
		case Save:
			nd.saved = nd.m.State()
		}
	}
	if t := nd.m.Next(); t != nd.tickAt {
		nd.tickAt = t
		if t != Never {
			n.push(t, netTick, port{node: i}, 0)
		}
	}
}

// tell is step for what the hardware says: a starved agent hears it later.
func (n *network) tell(i int, ev Event) {
	nd := n.nodes[i]
	at := nd.awake(n.now)
	if at == n.now && len(nd.inbox) == 0 {
		n.step(i, ev)
		return
	}
	if len(nd.inbox) == 0 {
		n.push(at, netWake, port{node: i}, 0)
	}
	nd.inbox = append(nd.inbox, ev)
}

func (n *network) traceAction(i int, a *Action) {
	switch a.Kind {
	case Select:
		n.trace("%9v n%d select b%d %s (%s)", n.now, i, a.Bundle, a.Path, a.Cause)
	case Note:
		n.trace("%9v n%d note %s %s b%d %s (%s)", n.now, i, a.Note.Kind, a.Note.Side, a.Note.Bundle, a.Note.Path, a.Note.Cause)
	case Answer:
		n.trace("%9v n%d answer %s %s", n.now, i, a.Ack.Phase, a.Ack.Code)
	}
}

// lightAt is the light that truly falls on a port.
func (n *network) lightAt(p port) bool {
	nd := n.nodes[p.node]
	if proto.Path(p.path) == proto.Loopback {
		return nd.bundles[p.bundle].path == proto.Loopback
	}
	f := nd.fibres[p.bundle][p.path]
	if f == nowhere || nd.ports[p.bundle][p.path].cut {
		return false
	}
	b := &n.nodes[f.node].bundles[f.bundle]
	return !b.dead && b.path == proto.Path(f.path)
}

// relight carries a change of one bundle's light to the ports it reaches.
func (n *network) relight(i, bundle int) {
	n.follow(port{i, bundle, int(proto.Loopback)})
	for _, f := range n.nodes[i].fibres[bundle] {
		if f != nowhere {
			n.follow(f)
		}
	}
}

func (n *network) follow(p port) {
	pt := &n.nodes[p.node].ports[p.bundle][p.path]
	lit := n.lightAt(p)
	if lit == pt.light {
		return
	}
	pt.light = lit
	pt.tag++
	if lit != pt.found {
		n.push(n.now+n.between(n.env.DetectMinMicros, n.env.DetectMaxMicros), netDetect, p, pt.tag)
	}
}

// run plays until nothing is left before a time; it returns how many events
// that took.
func (n *network) run(until time.Duration) int {
	count := 0
	until = max(until, n.now)
	for len(n.heap) > 0 && n.heap[0].at <= until {
		e := n.pop()
		n.now = e.at
		n.play(e)
		if count++; count > 200_000 {
			panic("the network does not come to rest")
		}
	}
	n.now = until
	return count
}

func (n *network) play(e netEvent) {
	i := e.port.node
	nd := n.nodes[i]
	switch e.kind {
	case netDetect:
		pt := &nd.ports[e.port.bundle][e.port.path]
		if pt.tag == e.tag && pt.light != pt.found {
			pt.found = pt.light
			n.tell(i, Event{Kind: Light, Bundle: proto.BundleID(e.port.bundle), Path: proto.Path(e.port.path), Lit: pt.found, Noted: n.now})
		}
	case netSettle:
		b := &nd.bundles[e.port.bundle]
		if b.tag != e.tag || !nd.alive {
			return
		}
		if at := nd.awake(n.now); at > n.now && n.rng.IntN(2) == 0 {
			n.push(at, netSettle, e.port, e.tag) // the last write waits too
			return
		}
		b.path = b.target
		n.relight(i, e.port.bundle)
		n.tell(i, Event{Kind: Switched, Bundle: proto.BundleID(e.port.bundle), Path: b.path})
	case netWake:
		if len(nd.inbox) == 0 {
			return
		}
		if nd.awake(n.now) == n.now {
			ev := nd.inbox[0]
			nd.inbox = nd.inbox[1:]
			n.step(i, ev)
		}
		n.push(nd.awake(n.now), netWake, e.port, 0)
	case netTick:
		if nd.tickAt != e.at {
			return
		}
		at := nd.awake(n.now)
		if len(nd.inbox) > 0 { // light first
			at = nd.awake(n.now + nd.starved.cost)
		}
		if at > n.now {
			nd.tickAt = at
			n.push(at, netTick, e.port, 0)
		} else {
			nd.tickAt = Never
			n.step(i, Event{Kind: Tick})
		}
	case netCommit:
		d := nd.desired
		n.step(i, Event{Kind: Decide, Decision: &proto.Decision{Version: proto.Version, Ring: 1, Term: d.Term,
			Generation: d.Generation, Plan: d.Plan, Verdict: proto.Commit}})
	default:
		n.fault(e, i, nd)
	}
}
