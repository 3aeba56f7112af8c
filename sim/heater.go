package sim

import (
	"math"
	"math/bits"
	"time"

	"ringlight/hal"
	"ringlight/mzi/detmath"
)

func sqrt(x float64) float64 { return math.Sqrt(x) }

// A heater's warmth is counted in phases of pi on its own cell: a heater that
// takes P_pi for long has warmth 1.

// segment is one way of a heater: from p0 at t0 towards p1, and its slow share from s0.
type segment struct {
	t0         int64 // nanoseconds of world time
	p0, p1, s0 float64
}

// transit holds the heaters of a module while any is on its way. A settled
// module has none. Each heater has its last two segments, because a new
// voltage takes effect only when the DAC has settled, and because a sample
// may be asked for that lies a little back.
type transit struct {
	seg   [hal.CellsPerMod][2]segment // of those that moved
	moved uint64
	last  int64 // when the last segment began
}

// calmTaus is after how many time constants a heater counts as settled: exp(-12)
// of its step is left, less than a code of its DAC.
const calmTaus = 12

// decay remembers the exponentials of one age: heaters that started together
// share them.
type decay struct {
	age, tau   int64   // of a heater that cools
	rise, fall float64 // 0 = not computed
	tail       float64
}

func (d *decay) of(age int64, falling bool, p *Personality) float64 {
	if age != d.age || p.fall != d.tau {
		*d = decay{age: age, tau: p.fall}
	}
	if falling {
		if d.fall == 0 {
			d.fall = detmath.Exp(-float64(age) / float64(p.fall))
		}
		return d.fall
	}
	if d.rise == 0 {
		d.rise = detmath.Exp(-float64(age) / float64(p.rise))
	}
	return d.rise
}

// at is the warmth at time t. Before its beginning a segment has the warmth
// with which it began.
func (s *segment) at(t int64, d *decay, p *Personality) float64 {
	if p.tail > 0 {
		quick, slow := s.both(t, d, p)
		return quick + float64(p.phys.Tail*(slow-quick))
	}
	return s.quick(t, d, p)
}

func (s *segment) quick(t int64, d *decay, p *Personality) float64 {
	age := t - s.t0
	switch {
	case age <= 0:
		return s.p0
	case age >= p.calm || s.p0 == s.p1:
		return s.p1
	}
	return s.p1 + float64((s.p0-s.p1)*d.of(age, s.p1 < s.p0, p))
}

// both are the warmth as it would be if all of it followed quickly, and if all
// of it followed slowly.
func (s *segment) both(t int64, d *decay, p *Personality) (quick, slow float64) {
	quick, slow = s.quick(t, d, p), s.s0
	if age := t - s.t0; p.tail > 0 && age > 0 {
		if d.tail == 0 || d.age != age {
			d.of(age, true, p)
			d.tail = detmath.Exp(-float64(age) / float64(p.tail))
		}
		slow = s.p1 + float64((s.s0-s.p1)*d.tail)
	}
	return quick, slow
}

// warmth of heater k at time t.
func (m *module) warmth(k int, t int64, d *decay) float64 {
	if m.moving == nil || m.moving.moved>>k&1 == 0 {
		return m.level[k]
	}
	s := &m.moving.seg[k]
	return s[boolToInt(t >= s[1].t0)].at(t, d, m.per)
}

// underway are the heaters that are not at their level from t on.
func (tr *transit) underway(t int64, p *Personality) (heaters uint64) {
	if tr == nil {
		return 0
	}
	for on := tr.moved; on != 0; on &= on - 1 {
		s := &tr.seg[bits.TrailingZeros64(on)][1]
		if t < s.t0 || p.tail > 0 || s.p0 != s.p1 && t-s.t0 < p.calm {
			heaters |= on & -on
		}
	}
	return heaters
}

// near are the cells that feel any of these heaters.
func (p *Personality) near(heaters uint64) (cells uint64) {
	for d := 0; heaters != 0 && d <= p.reach; d++ {
		cells |= heaters<<d | heaters>>d
	}
	return cells
}

// setLevel sends heater k to a new warmth, from when the DAC has settled, and
// reports whether that is another one.
func (m *module) setLevel(k int, level float64) bool {
	if level == m.level[k] {
		return false
	}
	now := int64(m.board.now)
	tr := m.moving
	if tr == nil {
		tr = m.takeTransit()
		m.moving = tr
	}
	s := &tr.seg[k]
	if tr.moved>>k&1 == 0 {
		at := segment{p0: m.level[k], p1: m.level[k], s0: m.level[k]}
		tr.moved, *s = tr.moved|1<<k, [2]segment{at, at}
	}
	if now >= s[1].t0 {
		s[0] = s[1]
	}
	start := now + int64(m.per.settle[k/16])
	var d decay
	quick, slow := s[0].both(start, &d, m.per)
	s[1] = segment{start, quick, level, slow}
	m.level[k] = level
	tr.last = max(tr.last, start)
	if k >= hal.CellMatrix+4-m.per.reach {
		m.rerouted()
	}
	if k >= hal.CellMatrix-m.per.reach {
		m.routed = 0
	}
	return true
}

// settleDown drops the transit of a module whose heaters have arrived.
func (m *module) settleDown() bool {
	if m.moving == nil {
		return true
	}
	if int64(m.board.now) < m.moving.last+m.per.calm {
		return false
	}
	m.board.freeTransit(m.moving)
	m.moving = nil
	return true
}

// longCalm is how long ago the heaters of a module have arrived when somebody else may take
// its transit: no conversion looks back so far. chosen.
const longCalm = int64(time.Second)

// takeTransit gives a module a transit, one that some other does not need any more where
// there is one. Those that nobody has looked at since would keep theirs for ever.
func (m *module) takeTransit() *transit {
	s := m.board.scratch
	for len(s.moved) > 0 {
		if old := s.moved[0]; old.moving != nil && int64(m.board.now) < old.moving.last+old.per.calm+longCalm {
			break
		} else if old.moving != nil {
			s.freeTransit(old.moving)
			old.moving = nil
		}
		s.moved = s.moved[1:]
	}
	s.moved = append(s.moved, m)
	if n := len(s.transits); n > 0 {
		tr := s.transits[n-1]
		s.transits = s.transits[:n-1]
		tr.moved, tr.last = 0, 0
		return tr
	}
	return new(transit)
}

// freeTransit keeps some for whoever takes the next ones. chosen: a start of all boards at
// once takes a hundred times as many as are ever in use again.
func (s *scratch) freeTransit(tr *transit) {
	if len(s.transits) < 1000 {
		s.transits = append(s.transits, tr)
	}
}

// padded is the warmth of all cells, with room for the band on either side.
type padded [hal.CellsPerMod + 2*crosstalkBand]float64

// phases puts the phases of these cells at time t into phase, with the crosstalk of all
// heaters in reach; of those underway all others are at their level.
func (m *module) phases(t int64, cells, underway uint64, phase *[hal.CellsPerMod]float64, d *decay) {
	var warm padded
	copy(warm[crosstalkBand:], m.level[:])
	for on := underway & m.per.near(cells); on != 0; on &= on - 1 {
		k := bits.TrailingZeros64(on)
		warm[k+crosstalkBand] = m.warmth(k, t, d)
	}
	m.standing(&warm, cells, phase)
}

// standing are the phases of these cells with heaters at their warmth.
func (m *module) standing(warm *padded, cells uint64, phase *[hal.CellsPerMod]float64) {
	add := 0.0
	if m.per.phys.CommonK > 0 {
		add = m.per.common(warm)
	}
	for ; cells != 0; cells &= cells - 1 {
		k := bits.TrailingZeros64(cells)
		x := &m.per.crosstalk[k]
		near := (*[2*crosstalkBand + 1]float64)(warm[k:])
		sum := 0.0
		for j := range x {
			sum += float64(x[j] * near[j])
		}
		if m.per.reach > crosstalkBand {
			sum += m.per.apart(k, warm)
		}
		phase[k] = m.rest(k) + float64(pi*sum)
		if m.per.phys.CommonK > 0 {
			phase[k] += add
		}
	}
}
