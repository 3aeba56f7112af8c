package sim

import (
	"time"

	"ringlight/hal"
	"ringlight/mzi/detmath"
)

// module is one OCSTrx: three DACs, two ADCs, the slow chips, and the state
// of its optics. Registers that nobody wrote cost nothing. What every look at its
// light reads stands together: of thousands of boards none is in a cache.
type module struct {
	board   *board
	bundle  *bundle
	per     *Personality
	wired   *wired
	planted *planted // faults, nil for none
	seed    uint64
	moving  *transit
	tx      [2]laserHalf
	place   int   // in its bundle
	enable  uint8 // lane lasers let shine, by the TCA9534
	// See walk.go: 0 unknown, 1 halves swapped and before routedUntil as long
	// as nothing but drift happens, -1 not.
	routed      int8
	routedUntil time.Duration
	epoch       int64                    // of what follows, 0 = never taken
	air         float64                  // phase by the temperature of the case
	part        float64                  // how far it is from knot to the next
	knot        int64                    // of drift
	drift       [][2]float64             // see driftFrom; nil: never taken
	level       [hal.CellsPerMod]float64 // warmth that each heater goes to

	dac  []voltages
	adc  [numADCs]adc
	read []readADC  // in their place, where the board has such; nil: none
	slow *slowChips // nil: as after power-on
	mci  *mci       // the controller in front of all this; nil: of kind chips

	milliamp         [hal.CellsPerMod]float32 // current of each heater
	rail, railBefore float64                  // current of all heaters, now and before railSince
	railSince        int64

	patterns *patterns // nil: none was ever asked for
}

// laserHalf is the supply of the lasers of one half.
type laserHalf struct {
	on    bool
	since int64 // nanoseconds; before it was the other way
}

func (l laserHalf) at(t int64) bool { return (t >= l.since) == l.on }

// instant is the light of a module at one time in milliwatts, with what
// working it out takes.
type instant struct {
	t   int64                 // nanoseconds
	ext [2][hal.Lanes]float64 // behind MZI2, where the taps are
	in  [hal.Lanes]float64    // at the matrix input
	any bool

	of     *module
	lit    uint8                    // lanes that shine
	phase  [hal.CellsPerMod]float64 // as far as it was needed
	loose  uint64                   // heaters that are underway
	steady uint64                   // cells of which it stands from then on: none in reach is
	known  uint64                   // of the matrix, whose coefficients are in scratch
	decay  decay
}

var (
	cellGain  = detmath.FromDB(-cellLossDB)
	cellField = complex(sqrt(cellGain), 0)
	allLanes  = uint8(0xFF)
)

// lit tells which lanes shine at t.
func (m *module) lit(t int64) (mask uint8) {
	if m.tx[0].at(t) {
		mask = m.wired.lasers(0)
	}
	if m.tx[1].at(t) {
		mask |= m.wired.lasers(1)
	}
	mask &= m.enable
	if m.planted != nil {
		mask &^= m.planted.lasers
	}
	return mask
}

// emit is the light of a module at t, with the phases before the matrix where it shines.
func (m *module) emit(t int64, out *instant) {
	mask := m.lit(t)
	cells := uint64(mask)<<hal.CellMZI1 | uint64(mask)<<hal.CellMZI2
	out.t, out.any = t, mask != 0
	if out.of != m {
		out.of, out.steady, out.known, out.loose = m, 0, 0, m.moving.underway(t, m.per)
	} else if mask == out.lit && out.steady&cells == cells && !m.per.phys.wanders() {
		return
	}
	out.lit = mask
	out.ext, out.in = [2][hal.Lanes]float64{}, [hal.Lanes]float64{}
	if !out.any {
		return
	}
	phase := &out.phase
	m.fill(out, cells)
	for l := range hal.Lanes {
		if mask>>l&1 == 0 {
			continue
		}
		// MZI1: the cross output is the internal side; MZI2: the cross output
		// is external 1.
		bar := m.per.cells[hal.CellMZI1+l].bar(phase[hal.CellMZI1+l])
		p := float64(m.per.laser[l] * cellGain)
		if m.planted != nil && m.planted.aged != 0 {
			p *= m.planted.aged
		}
		if ph := m.per.phys; ph.wanders() {
			seed := derive(m.seed, seedLaser+uint64(l))
			p *= 1 + (ph.swings(seed, t) + ph.steps(seed, t))
		}
		out.in[l] = float64(p * (1 - bar))
		p = float64(float64(p*bar) * cellGain)
		bar = m.per.cells[hal.CellMZI2+l].bar(phase[hal.CellMZI2+l])
		out.ext[0][l] = float64(p * (1 - bar))
		out.ext[1][l] = float64(p * bar)
	}
}

// diodes are the responses of a path's diodes, without those that are dead.
func (m *module) diodes(path int, g [hal.Lanes]float64) [hal.Lanes]float64 {
	if m.planted != nil {
		for l := range g {
			if m.planted.diodes[path]>>l&1 != 0 {
				g[l] = 0
			}
		}
	}
	return g
}

// loop is the light on the loopback diodes of both halves.
func (m *module) loop(x *instant) (sum [2]float64) {
	if !x.any {
		return [2]float64{}
	}
	if !m.wired.benes {
		for o, p := range m.loopLanes(x) {
			if o < m.wired.LaneCount {
				sum[o/m.wired.half] += p
			}
		}
		return sum
	}
	m.fill(x, behindMask&^(1<<hal.CellMatrix-1))
	if m.per.near(x.loose)&^behindMask != 0 {
		// Heaters in reach of the later stages are on their way.
		var g gram
		m.later(x, portsOf(&x.in), &g)
		return m.per.halves(&g, &x.phase, &x.in)
	}
	kept := m.board.kept(m)
	if kept.of != m {
		m.later(x, allPorts, &kept.gram)
		kept.of = m
	}
	return m.per.halves(&kept.gram, &x.phase, &x.in)
}

// keptGram is the gram of a module while its matrix stands still. Few are looked at
// twice in the minute in which it does.
type keptGram struct {
	of *module
	gram
}

func (s *scratch) kept(m *module) *keptGram {
	return &s.grams[((int(m.board.id)*8+m.bundle.place)*hal.MaxModules+m.place)%len(s.grams)]
}

// rerouted: what its matrix makes of light is another thing now.
func (m *module) rerouted() { m.board.kept(m).of = nil }

// behind is the first cell of stage 1 of a matrix.
const (
	behind     = hal.CellMatrix + 4
	behindMask = 1<<behind - 1
)

// fill brings the phases of these cells up to the instant's time, but for those that
// have not changed since it was at another.
func (m *module) fill(x *instant, cells uint64) {
	if cells &^= x.steady; cells != 0 {
		m.phases(x.t, cells, x.loose, &x.phase, &x.decay)
		x.steady |= cells &^ m.per.near(x.loose)
	}
}

// later is what the stages of the matrix behind the first make of light.
func (m *module) later(x *instant, ports uint8, g *gram) {
	var mat matrix
	m.fill(x, m.wired.all&^behindMask)
	cells := &m.board.scratch.cells
	m.per.couple(&x.phase, x.known, cells)
	x.known = x.steady
	propagate(cells, ports, &mat)
	diode := m.diodes(hal.LOSLoopback, m.per.loopGain)
	gramOf(&mat, &diode, g)
}

// loopLanes is the light on each loopback diode.
func (m *module) loopLanes(x *instant) (sum [hal.Lanes]float64) {
	if !x.any {
		return sum
	}
	h := m.matrixRoutes(x, portsOf(&x.in))
	diode := m.diodes(hal.LOSLoopback, m.per.loopGain)
	for i, p := range x.in {
		if p == 0 {
			continue
		}
		for o := range sum {
			sum[o] += float64(float64(p*h[i][o]) * diode[o])
		}
	}
	return sum
}

func (m *module) matrixRoutes(x *instant, ports uint8) [hal.Lanes][hal.Lanes]float64 {
	m.fill(x, m.wired.all&^(1<<hal.CellMatrix-1))
	return m.ways(&x.phase, ports)
}

// ways is routes of the module's matrix.
func (m *module) ways(phase *[hal.CellsPerMod]float64, ports uint8) [hal.Lanes][hal.Lanes]float64 {
	if !m.wired.benes {
		return m.per.through(m.wired.Couplers, phase)
	}
	var mat matrix
	var cells stages
	m.per.couple(phase, 0, &cells)
	propagate(&cells, ports, &mat)
	return m.per.routes(&mat, phase)
}

// rxDiodes are the responses of the receive diodes of an external path, with
// all losses from the fibre on.
func (m *module) rxDiodes(ext int) [hal.Lanes]float64 {
	g := m.diodes(hal.LOSExternal1+ext, m.per.rxGain[ext])
	if clean := m.clean(ext); clean != 1 {
		for l := range g {
			g[l] *= clean
		}
	}
	return g
}
