package sim

import (
	"time"

	"ringlight/hal"
)

// GPU is one GPU of a board.
type GPU struct {
	Board BoardID
	Index int
}

// Cycles is what a walk through the light found. Every GPU of the boards asked
// about is in exactly one of them.
type Cycles struct {
	Closed [][]GPU // in order of walking
	Open   [][]GPU // from end to end
}

// Walk goes from GPU to GPU through the light as it is now: through cables and
// loopbacks inside a board, through fibres between boards, and only where light
// arrives in both directions at the diodes that the receivers listen to. GPUs
// of boards that are not alive are left out; nil takes the boards with power.
//
// The GPUs of a board stand in a cycle. Gap j between g_j and g_j+1 is bundle
// j, whose upper half belongs to g_j and lower half to g_j+1, or a cable.
func (w *World) Walk(alive func(BoardID) bool) Cycles {
	if alive == nil {
		alive = w.Powered
	}
	k := walker{w: w, first: make([]int, len(w.boards)+1), alive: make([]bool, len(w.boards))}
	for i, b := range w.boards {
		k.alive[i] = alive(BoardID(i))
		k.first[i+1] = k.first[i] + b.hw.GPUs
	}
	k.seen = make([]bool, k.first[len(w.boards)])
	var c Cycles
	// A strand begins at a GPU that has nothing on its left or on its right;
	// what is left over then are cycles.
	for _, closing := range []bool{false, true} {
		for i := range w.boards {
			if !k.alive[i] {
				continue
			}
			for g := range w.boards[i].hw.GPUs {
				at := GPU{BoardID(i), g}
				if k.seen[k.index(at)] {
					continue
				}
				_, _, left := k.beside(at, 0)
				_, _, right := k.beside(at, 1)
				switch {
				case closing:
					c.Closed = append(c.Closed, k.strand(at, 1))
				case !left:
					c.Open = append(c.Open, k.strand(at, 1))
				case !right:
					c.Open = append(c.Open, k.strand(at, 0))
				}
			}
		}
	}
	return c
}

// Strand walks from one GPU to its right until the light comes back to it or
// ends, and then to its left: the same walk as Walk's, of one strand. It
// appends the GPUs to list.
func (w *World) Strand(g GPU, list []GPU) (_ []GPU, closed bool) {
	k := walker{w: w}
	list = append(list, g)
	for first := 1; first >= 0; first-- {
		at, side := g, first
		for {
			next, in, ok := k.beside(at, side)
			if !ok {
				break
			}
			if next == g {
				return list, true
			}
			list = append(list, next)
			at, side = next, 1-in
		}
	}
	return list, false
}

// Beside is the GPU that a side of a GPU, 0 left and 1 right, is joined to, and which
// side of that: a step of the same walk.
func (w *World) Beside(g GPU, side int) (to GPU, at int, ok bool) {
	k := walker{w: w}
	return k.beside(g, side)
}

type walker struct {
	w     *World
	first []int  // index of each board's first GPU
	alive []bool // nil: all
	seen  []bool
}

func (k *walker) index(g GPU) int { return k.first[g.Board] + g.Index }

// strand walks from a GPU, leaving it on a side (0 left, 1 right), until the
// light ends or comes back.
func (k *walker) strand(g GPU, side int) (list []GPU) {
	for !k.seen[k.index(g)] {
		k.seen[k.index(g)] = true
		list = append(list, g)
		next, in, ok := k.beside(g, side)
		if !ok {
			break
		}
		g, side = next, 1-in
	}
	return list
}

// beside is the GPU that a side of a GPU is joined to, and which side of that.
func (k *walker) beside(g GPU, side int) (GPU, int, bool) {
	b := k.w.boards[g.Board]
	n := b.hw.GPUs
	gap, half := g.Index, 0 // right: the gap of its own number, upper half
	if side == 0 {
		gap, half = (g.Index+n-1)%n, 1
	}
	if gap >= len(b.bundles) {
		return GPU{g.Board, (g.Index + 2*side - 1 + n) % n}, 1 - side, true
	}
	bu := &b.bundles[gap]
	switch {
	case !bu.nets[0]:
		if loop := &bu.los[hal.LOSLoopback]; !loop.halfLit(0) || !loop.halfLit(1) || !bu.swapped() {
			return GPU{}, 0, false
		}
		return GPU{g.Board, (g.Index + 2*side - 1 + n) % n}, 1 - side, true
	default:
		ext := boolToInt(bu.nets[1])
		e := &bu.ends[ext]
		far := e.peer
		if far == nil || k.alive != nil && !k.alive[far.board.id] {
			return GPU{}, 0, false
		}
		if !far.nets[0] || boolToInt(far.nets[1]) != e.ext {
			return GPU{}, 0, false // the peer listens elsewhere
		}
		farHalf := 1 - half
		if e.crossed {
			farHalf = half
		}
		if !bu.los[hal.LOSExternal1+ext].halfLit(half) || !far.los[hal.LOSExternal1+e.ext].halfLit(farHalf) {
			return GPU{}, 0, false
		}
		// Upper half of bundle j is the right of g_j, lower the left of g_j+1.
		return GPU{far.board.id, (far.place + farHalf) % far.board.hw.GPUs}, 1 - farHalf, true
	}
}

// halfLit reports whether one half of every module has light on a path.
func (c *comparator) halfLit(half int) bool {
	c.commit()
	mask := uint32(0x55555555) << half & c.all
	return c.lit&mask == mask
}

// swapped reports whether the matrix of every module brings the light of each
// half to the other.
func (bu *bundle) swapped() bool {
	for i := range bu.modules {
		if !bu.modules[i].swapped() {
			return false
		}
	}
	return true
}

func (m *module) swapped() bool {
	now := m.board.now
	if m.moving == nil && m.routed > 0 && m.epoch != 0 && now < m.routedUntil {
		return true
	}
	m.refresh()
	if m.moving != nil {
		m.routed = 0
		_, ok := m.swaps(int64(now))
		return ok
	}
	if m.routed == 0 {
		m.routed = -1
		if slack, ok := m.swaps(int64(now)); ok {
			m.routed, m.routedUntil = 1, m.steadyUntil(slack)
		}
	}
	return m.routed > 0
}

// strangerShare is how much of a half's light may come from itself. chosen:
// 10 dB below is far from a working matrix and far from a wrong one.
const strangerShare = 0.1

// swaps reports whether the matrix swaps the halves at time t, and by how much
// every phase may change before it might not.
func (m *module) swaps(t int64) (slack float64, ok bool) {
	h := m.matrixRoutes(&instant{t: t, loose: m.moving.underway(t, m.per)}, allPorts)
	slack = pi
	stages := float64(hal.MatrixStages)
	if !m.wired.benes {
		stages = float64(len(m.wired.Couplers)) // each for itself
	}
	for o := range m.wired.LaneCount {
		same, other := 0.0, 0.0
		for i := range m.wired.LaneCount {
			if i/m.wired.half == o/m.wired.half {
				same += h[i][o]
			} else {
				other += h[i][o]
			}
		}
		if same > float64(strangerShare*other) {
			return 0, false
		}
		// The matrix is a product of stages that keep the power. A phase
		// changed by x changes its stage by at most x, so the fields behind
		// all stages by at most their number times x, and with them the roots
		// of both powers.
		share := sqrt(strangerShare)
		field := (float64(share*sqrt(other)) - sqrt(same)) / (1 + share)
		slack = min(slack, field/stages)
	}
	return slack, true
}

// steadyUntil is the time before which no phase of the matrix drifts by more
// than slack from where it is, if no heater moves and nothing breaks.
func (m *module) steadyUntil(slack float64) time.Duration {
	if m.planted != nil && m.planted.walk != 0 {
		return 0
	}
	t := (m.board.now / driftEpoch) * driftEpoch
	n := int64(t / driftKnot)
	fastest := 0.0 // way of a cell in the time between two knots
	for _, d := range m.driftFrom(n)[hal.CellMatrix:] {
		fastest = max(fastest, d[1], -d[1])
	}
	knot := time.Duration(n+1) * driftKnot
	// A hundredth is left for what rounding does.
	if way := float64(0.99 * slack); float64(fastest*float64(knot-t)) > float64(way*float64(driftKnot)) {
		return t + time.Duration(float64(way*float64(driftKnot))/fastest)
	}
	return knot
}
