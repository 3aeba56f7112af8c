package fleet

import (
	"slices"
	"time"

	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/sim"
)

// What plans cost: a ring that was whole and is given other members, so that
// some other one can be whole, is a job interrupted by the planner.

// move is one such ring, from its decision until all its new members lie in
// one closed cycle of light.
type move struct {
	at    time.Duration
	ring  proto.RingID
	gen   proto.Generation
	nodes []proto.NodeID
}

// moveWatch is how often the light of a moved ring is looked at, moveLimit
// ends it: then something else has happened to it.
const (
	moveWatch = time.Millisecond
	moveLimit = 2 * time.Second
)

// decided is told of every decision that a planner publishes; a repeated one
// counts once.
func (m *measure) decided(b *process, d *proto.Decision) {
	m.agreed(d.Generation)
	m.r.flips.decided(d)
	if !m.counting || b.host == nil || d.Ring == 0 || d.Ring >= proto.FirstGroup || m.latest[d.Ring] == d.Generation {
		return
	}
	m.latest[d.Ring] = d.Generation
	nodes, moved := b.host.Planner().Rings.Placed.Touched(d.Ring)
	if !moved {
		return
	}
	m.interrupted++
	m.moved++
	m.moves = append(m.moves, move{at: m.r.now, ring: d.Ring, gen: d.Generation, nodes: slices.Clone(nodes)})
	m.r.agenda.Push(m.r.now+moveWatch, task{kind: taskMove, n: len(m.moves) - 1})
}

// watchMove looks whether a moved ring has its light.
func (m *measure) watchMove(n int) {
	v := &m.moves[n]
	took := m.r.now - v.at
	if m.latest[v.ring] != v.gen {
		return // moved once more: that one counts on
	}
	if !m.holds(v.nodes) && took < moveLimit {
		m.r.agenda.Push(m.r.now+moveWatch, task{kind: taskMove, n: n})
		return
	}
	m.dark += took
	m.movedDark += took
	v.nodes = nil
}

// holds: nodes, all of them and nobody else, lie in one closed cycle.
func (m *measure) holds(nodes []proto.NodeID) bool {
	strand, closed := m.r.world.Strand(sim.GPU{Board: m.r.stations[nodes[0]].board}, nil)
	if !closed || len(strand) != len(nodes)*m.r.cfg.Fabric.GPUsPerNode {
		return false
	}
	for _, id := range nodes {
		board := m.r.stations[id].board
		if !slices.ContainsFunc(strand, func(g sim.GPU) bool { return g.Board == board }) {
			return false
		}
	}
	return true
}

// shake is called before a fibre is cut: where that parts a ring whose nodes
// live, the planner has to join it again.
func (m *measure) shake(p fabric.Port) {
	s := &strike{at: m.r.now, looked: -1, fibre: true}
	m.before(s, m.r.stations[p.Node])
	if s.ring == 0 || !s.clean {
		return
	}
	m.watch(s)
}
