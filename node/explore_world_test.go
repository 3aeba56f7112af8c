package node

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ringlight/proto"
)

// An exhaustive walk through prepare and commit. Nodes are the production
// machine; planners are adversaries that keep the protocol's promises and
// nothing else. What has been sent is in the network for ever, so that every
// message may come at any time, in any order, again, or never; an agent may
// die between any two steps and come back from what its disk then held.

// exPlan is a generation that some planner may try.
type exPlan struct {
	name string
	term proto.Term
	gen  proto.Generation
	plan byte
	idle bool // everyone leaves the ring
	// Of nodes, by bit: out are no members, untold hear nothing of the plan but its
	// decision. Of them one that is lit in the plan before is stepped over.
	out, untold uint8
	after       int // the number of decided plans that it waits for
}

func (pl *exPlan) has(i int) bool   { return pl.out&(1<<i) == 0 }
func (pl *exPlan) tells(i int) bool { return pl.untold&(1<<i) == 0 }

type exNode struct {
	m       *Machine
	durable State
	pending []exWrite // saves not yet on disk, with the answers that wait for them
	path    [2]proto.Path
	acked   uint8 // bit i: its prepare of plan i left
	gone    bool  // the host's GPUs
}

type exWrite struct {
	state State
	acks  []proto.Ack
}

// add lets an answer wait; the same one twice is one.
func (x *exWrite) add(a proto.Ack) {
	if !slices.ContainsFunc(x.acks, func(b proto.Ack) bool { return a.Phase == b.Phase && a.Code == b.Code && a.Plan == b.Plan }) {
		x.acks = append(slices.Clone(x.acks), a)
	}
}

type exWorld struct {
	nodes   []exNode
	now     time.Duration
	sent    uint8 // bit i: plan i was sent
	bypass  [][]uint64
	decided uint8 // bit i: plan i is committed in its planner's store
	beat    bool  // a planner of term 2 speaks
	crashes int   // left
	faults  int   // left
	lates   int   // left: steps of an agent that was late
	applied []exKey
	seen    []proto.Term // answered by each node
	bad     string
}

type exKey struct {
	term proto.Term
	gen  proto.Generation
}

func newExWorld(count, plans, crashes, faults int) *exWorld {
	w := &exWorld{crashes: crashes, faults: faults, applied: make([]exKey, count), seen: make([]proto.Term, count), bypass: make([][]uint64, plans)}
	for i := range count {
		w.nodes = append(w.nodes, exNode{m: New(Config{ID: proto.NodeID(i), Bundles: 2}), path: [2]proto.Path{proto.Loopback, proto.Loopback}})
	}
	for i := range w.nodes {
		w.adopt(i)
	}
	return w
}

func (w *exWorld) clone() *exWorld {
	c := *w
	c.nodes = slices.Clone(w.nodes)
	for i := range c.nodes {
		c.nodes[i].m = c.nodes[i].m.clone()
		c.nodes[i].pending = slices.Clone(c.nodes[i].pending)
	}
	c.bypass, c.applied, c.seen = slices.Clone(w.bypass), slices.Clone(w.applied), slices.Clone(w.seen)
	return &c
}

// clone copies a machine between two steps; plans are shared, as nobody
// writes them.
func (m *Machine) clone() *Machine {
	c := *m
	c.bundles, c.watched = slices.Clone(m.bundles), slices.Clone(m.watched)
	for i := range c.sides {
		c.sides[i].node, c.sides[i].list = &c.shared, slices.Clone(m.sides[i].list)
		for k := range c.sides[i].list {
			c.sides[i].list[k].on = &c.bundles[c.sides[i].list[k].Bundle]
		}
	}
	return &c
}

// lit is the light on a path: between neighbours, or those beyond, when the other
// end is on it, in loopback when the bundle is.
func (w *exWorld) lit(i, bundle int, p proto.Path) bool {
	if p == proto.Loopback {
		return w.nodes[i].path[bundle] == p
	}
	peer := i + (2*bundle-1)*(1+int(p-proto.External1))
	return peer >= 0 && peer < len(w.nodes) && w.nodes[peer].path[1-bundle] == p
}

var exPaths = [...]proto.Path{proto.Loopback, proto.External1, proto.External2}

func (w *exWorld) adopt(i int) {
	n := &w.nodes[i]
	ev := Event{Kind: Adopt}
	for b := range n.path {
		l := BundleLight{Bundle: proto.BundleID(b), Path: n.path[b], Ready: true}
		for _, p := range exPaths {
			if w.lit(i, b, p) {
				l.Lit |= 1 << p
			}
		}
		ev.Lits = append(ev.Lits, l)
	}
	w.step(i, ev)
	w.rest()
}

// step runs a machine. Answers behind a save wait for the disk.
func (w *exWorld) step(i int, ev Event) {
	n := &w.nodes[i]
	ev.At = w.now
	saved, heard := false, n.m.seenTerm
	for _, a := range n.m.Step(ev, nil) {
		switch a.Kind {
		case Select:
			n.path[a.Bundle] = a.Path
		case Save:
			if w.crashes == 0 {
				break // nobody will read what the disk has
			}
			saved = true
			// A save that nobody waits for is overtaken by the next.
			if last := len(n.pending) - 1; last >= 0 && len(n.pending[last].acks) == 0 {
				n.pending = n.pending[:last]
			}
			n.pending = append(n.pending, exWrite{state: n.m.State()})
		case Answer:
			if a.Ack.Phase == proto.PhaseCommit && a.Ack.Code == proto.NotStaged && n.acked&(1<<(a.Ack.Plan[0]-1)) != 0 {
				w.bad = fmt.Sprintf("node %d forgot plan %d, which it had prepared", i, a.Ack.Plan[0])
			}
			// The commit of what is in force already may be confirmed again.
			again := a.Ack.Phase == proto.PhaseCommit && w.applied[i] == (exKey{a.Ack.Term, a.Ack.Generation})
			if a.Ack.Code == proto.OK && a.Ack.Term < heard && !again {
				w.bad = fmt.Sprintf("node %d takes %s of term %d after term %d", i, a.Ack.Phase, a.Ack.Term, heard)
			}
			switch {
			case a.Ack.Phase != proto.PhasePrepare || a.Ack.Code != proto.OK:
				// A refusal moves no planner.
			case saved || len(n.pending) > 0:
				n.pending[len(n.pending)-1].add(a.Ack)
			default:
				w.answered(i, a.Ack)
			}
		}
	}
	t, g, _ := n.m.applied.name()
	now := exKey{t, g}
	if was := w.applied[i]; order(now.term, now.gen, was.term, was.gen) < 0 && n.m.adopted {
		w.bad = fmt.Sprintf("node %d went back from %v to %v", i, was, now)
	}
	w.applied[i] = now
}

// rest lets the optics of all nodes settle and their timers run out: what is
// explored here is messages, not light.
func (w *exWorld) rest() {
	for range 400 {
		quiet := true
		for i := range w.nodes {
			n := &w.nodes[i]
			for b := range n.path {
				x := &n.m.bundles[b]
				if x.busy {
					quiet = false
					w.step(i, Event{Kind: Switched, Bundle: proto.BundleID(b), Path: x.path})
				}
				for _, p := range exPaths {
					if lit := w.lit(i, b, p); lit != x.hasLight(p) {
						quiet = false
						w.step(i, Event{Kind: Light, Bundle: proto.BundleID(b), Path: p, Lit: lit})
					}
				}
			}
		}
		if !quiet {
			continue
		}
		first := 0
		for i := range w.nodes {
			if w.nodes[i].m.Next() < w.nodes[first].m.Next() {
				first = i
			}
		}
		next := w.nodes[first].m.Next()
		if next == Never {
			return
		}
		w.now = max(w.now, next)
		w.step(first, Event{Kind: Tick})
	}
	w.bad = "the nodes do not come to rest"
}

// answered takes a prepared answer into the network.
func (w *exWorld) answered(i int, a proto.Ack) {
	n := &w.nodes[i]
	w.seen[i] = max(w.seen[i], a.CurrentTerm)
	n.acked |= 1 << (a.Plan[0] - 1)
}

func (w *exWorld) flush(i int) {
	n := &w.nodes[i]
	first := n.pending[0]
	n.pending = n.pending[1:]
	n.durable = first.state
	for _, a := range first.acks {
		w.answered(i, a)
	}
}

func (w *exWorld) crash(i int) {
	n := &w.nodes[i]
	w.crashes--
	n.pending = nil
	if w.crashes == 0 { // the others lose nothing any more
		for k := range w.nodes {
			for len(w.nodes[k].pending) > 0 {
				w.flush(k)
			}
		}
	}
	n.m = New(Config{ID: proto.NodeID(i), Bundles: 2})
	n.m.Restore(n.durable)
	// What was not on the disk was never answered: it may be forgotten.
	t, g, _ := n.m.applied.name()
	w.applied[i] = exKey{t, g}
	if n.durable.SeenTerm < w.seen[i] {
		w.bad = fmt.Sprintf("node %d forgot term %d, which it had answered with", i, w.seen[i])
	}
	w.adopt(i)
	n.gone = n.m.Mode() == proto.ModeHostDown // unless its light said that the journal is older than the host's last word
}

// key names a state; times are left out, since timers have run out.
func (w *exWorld) key() string {
	var b strings.Builder
	fmt.Fprint(&b, w.sent, w.decided, w.beat, w.crashes, w.faults, w.lates, w.bypass, w.seen)
	state := func(s *State) {
		name := func(h *Held) {
			t, g, p := h.name()
			fmt.Fprint(&b, " ", t, g, p[0])
		}
		fmt.Fprint(&b, "|", s.SeenTerm, s.BypassSeq, s.Reasons)
		name(s.Applied)
		name(s.Staged)
		for _, r := range s.Bundles {
			fmt.Fprint(&b, r.Path)
		}
	}
	for i := range w.nodes {
		n := &w.nodes[i]
		s := n.m.State()
		fmt.Fprint(&b, "\n", n.acked, n.gone, n.path, n.m.early.Term, n.m.early.Generation, n.m.early.Plan[0])
		for k := range n.m.sides {
			sd := &n.m.sides[k]
			fmt.Fprint(&b, sd.state, sd.cur, sd.follow, sd.asks)
		}
		state(&s)
		if w.crashes == 0 {
			continue
		}
		state(&n.durable)
		for k := range n.pending {
			state(&n.pending[k].state)
			for _, a := range n.pending[k].acks {
				fmt.Fprint(&b, a.Plan[0])
			}
		}
	}
	return b.String()
}
