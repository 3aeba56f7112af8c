package sim

import (
	"time"

	"ringlight/hal"
)

// A LOS line says that every module of a bundle has light on both halves of
// one path's receive diodes. Nothing polls it. Whatever may change light
// (a switch, a register, power, a fibre, a fault) calls changed, which
// follows the heaters to where they settle, finds the instants at which each
// half crosses its thresholds, and puts the first instant at which the line
// itself changes on the heap.

// The comparators sample every filterStep and follow after filterHits equal
// samples: the scan of eight channels at a microsecond each, 4 hits.
const (
	filterStep = 8 * time.Microsecond
	filterHits = 4
)

// crossing is a half of a module that goes over or under its threshold.
type crossing struct {
	at  int64
	bit uint8 // 2*module + half
	up  bool
}

type comparator struct {
	bundle  *bundle
	path    int
	lit     uint32 // bit per half of a module, as of the last commit
	all     uint32
	raw     bool // every half lit
	out     bool // the filtered line
	changed time.Duration
	pending []crossing // in order of time; those before next are committed
	next    int
	gen     uint32 // of the evCross on the heap
	filter  uint32 // of the evFilter on the heap
	edge    time.Duration
}

// trace is the light of one module at the instants of its grid.
type trace struct {
	n    int
	at   [gridMax]int64
	ext  [gridMax][2][hal.Lanes]float64
	loop [gridMax][2]float64
}

// grid is where a module's light is looked at after the last of its heaters
// began to move, in twentieths of a heater's time constant: steps of at most a
// third of it while it matters.
var grid = [...]int64{0, 2, 4, 6, 8, 11, 14, 17, 20, 23, 26, 30, 34, 38, 43, 48, 54, 62, 72, 84, 100, 120, 150, 190, 240}

const (
	gridTau = 20
	gridMax = len(grid) + 6
)

// look fills the trace of a module from now on.
func (m *module) look(tr *trace) {
	m.refresh()
	now := int64(m.board.now)
	tr.n = 0
	add := func(t int64) { tr.at[tr.n] = t; tr.n++ }
	add(now)
	steps := [2]int64{}
	n := 0
	for _, h := range m.tx {
		if h.since > now && (n == 0 || steps[0] != h.since) {
			steps[n] = h.since
			n++
		}
	}
	if n == 2 && steps[0] > steps[1] {
		steps[0], steps[1] = steps[1], steps[0]
	}
	step := steps[:n]
	until := func(t int64) {
		for len(step) > 0 && step[0] <= t {
			for _, s := range [...]int64{step[0] - 1, step[0]} {
				if s > tr.at[tr.n-1] {
					add(s)
				}
			}
			step = step[1:]
		}
	}
	if m.moving != nil && (n > 0 || m.lit(now) != 0) {
		for _, g := range grid {
			t := m.moving.last + g*m.per.fall/gridTau
			if until(t); t > tr.at[tr.n-1] {
				add(t)
			}
		}
	}
	until(1<<63 - 1)
	var lit instant
	for i := range tr.n {
		m.emit(tr.at[i], &lit)
		tr.ext[i] = lit.ext
		tr.loop[i] = m.loop(&lit)
	}
}

// changed follows the light of a module to every comparator that sees it; what
// the other modules of its bundle are expected to do stands.
func (m *module) changed() { m.bundle.changed(1 << m.place) }

const allModules = 1<<hal.MaxModules - 1

// changed does it for the modules in the mask.
func (bu *bundle) changed(mask uint32) {
	b := bu.board
	b.changes++
	moving := false
	for i := range bu.modules {
		if mask>>i&1 != 0 {
			m := &bu.modules[i]
			m.compareBoth()
			m.look(&b.traces[i])
			moving = moving || m.moving != nil
		}
	}
	if moving && !bu.settling {
		bu.settling = true
		bu.lookAgain()
	}
	bu.los[hal.LOSLoopback].followTraces(nil, mask)
	for ext := range bu.ends {
		if e := &bu.ends[ext]; e.to != nil {
			e.to.los[hal.LOSExternal1+e.toExt].followTraces(&e.to.ends[e.toExt], mask)
		}
	}
}

// settleCheck is how long after they are calm a bundle's heaters are looked at
// again, to forget the way they took: beyond the longest ADC window.
const settleCheck = 2760 * time.Microsecond

func (bu *bundle) lookAgain() {
	b, calm := bu.board, int64(0)
	for i := range bu.modules {
		calm = max(calm, bu.modules[i].per.calm)
	}
	b.events.Push(b.now+time.Duration(calm)+settleCheck, event{kind: evSettle, board: int32(b.id), place: uint16(bu.place)})
}

// settled forgets how the heaters of a bundle moved, when all have arrived.
func (bu *bundle) settled() {
	bu.settling = false
	for i := range bu.modules {
		if !bu.modules[i].settleDown() {
			bu.settling = true
		}
	}
	if bu.settling {
		bu.lookAgain()
	}
}

// follow looks again at the light that comes to an external path.
func (c *comparator) follow() {
	b, e := c.bundle.board, &c.bundle.ends[c.path-hal.LOSExternal1]
	switch {
	case e.outside != nil:
		for i := range c.bundle.modules {
			tr := &b.traces[i]
			tr.n, tr.at[0], tr.ext[0][e.ext] = 1, int64(b.now), e.outside.lanes[i]
		}
	case e.peer != nil:
		for i := range e.peer.modules {
			e.peer.modules[i].look(&b.traces[i])
		}
	default: // no light comes any more
		c.lit = 0
		c.take(nil)
		return
	}
	c.followTraces(e, allModules)
}

// followTraces finds the crossings that the traces of the source modules in the
// mask make; end is the receiving fibre end, nil for the loopback.
func (c *comparator) followTraces(end *fibreEnd, mask uint32) {
	bu := c.bundle
	b := bu.board
	c.commit()
	found := b.found[:0]
	for _, x := range c.pending[c.next:] {
		if mask>>(x.bit/2)&1 == 0 {
			found = append(found, x)
		}
	}
	for i := range bu.modules {
		if mask>>i&1 == 0 {
			continue
		}
		tr := &b.traces[i]
		var value [gridMax][2]float64
		n := tr.n
		at := tr.at[:n]
		switch {
		case end == nil:
			value = tr.loop
		case end.cut || end.outside == nil && end.sender(i) == nil:
			at = []int64{int64(b.now)} // dark from now on
		default:
			diode := bu.modules[i].rxDiodes(c.path - hal.LOSExternal1)
			src := end.sender(i) // none, and one look: from outside
			for g := range n {
				value[g] = end.receive(&bu.modules[i], src, &tr.ext[g][end.ext], &diode)
			}
		}
		for half := range 2 {
			found = c.cross(found, uint8(2*i+half), at, &value, half)
		}
	}
	b.found = found
	c.take(found)
}

// cross appends the crossings of one half of one module.
func (c *comparator) cross(found []crossing, bit uint8, at []int64, value *[gridMax][2]float64, half int) []crossing {
	lit := c.lit>>bit&1 != 0
	limits := c.bundle.modules[bit/2].wired
	for i, t := range at {
		v := value[i][half]
		limit := limits.clear
		if lit {
			limit = limits.assert
		}
		if lit == (v >= limit) {
			continue
		}
		if i > 0 {
			// On a straight line between the two instants.
			a := value[i-1][half]
			part := (limit - a) / (v - a)
			t = at[i-1] + int64(float64(t-at[i-1])*min(max(part, 0), 1))
		}
		lit = !lit
		found = append(found, crossing{t, bit, lit})
	}
	return found
}

// commit carries out the crossings up to now.
func (c *comparator) commit() {
	for c.next < len(c.pending) && c.pending[c.next].at <= int64(c.bundle.board.now) {
		c.lit = c.pending[c.next].apply(c.lit)
		c.next++
	}
}

// apply gives the lit paths after a crossing.
func (x crossing) apply(lit uint32) uint32 {
	lit &^= 1 << x.bit
	if x.up {
		lit |= 1 << x.bit
	}
	return lit
}

func (x crossing) before(y crossing) bool { return x.at < y.at || x.at == y.at && x.bit < y.bit }

// take replaces what a comparator expects.
func (c *comparator) take(found []crossing) {
	for i := range found { // some dozens: each where it belongs
		for j := i; j > 0 && found[j].before(found[j-1]); j-- {
			found[j], found[j-1] = found[j-1], found[j]
		}
	}
	c.pending, c.next = append(c.pending[:0], found...), 0
	c.settle()
}

// settle brings the unfiltered line up to date and puts its next change on the
// heap.
func (c *comparator) settle() {
	c.commit()
	b := c.bundle.board
	if raw := c.lit == c.all; raw != c.raw {
		c.raw, c.changed = raw, b.now
		c.startFilter()
	}
	c.gen++
	lit := c.lit
	for _, x := range c.pending[c.next:] {
		if lit = x.apply(lit); (lit == c.all) != c.raw {
			b.events.Push(time.Duration(x.at), event{kind: evCross, board: int32(b.id), place: c.place(), gen: c.gen})
			return
		}
	}
}

// place numbers the comparators of a board.
func (c *comparator) place() uint16 { return uint16(c.bundle.place*hal.NumLOS + c.path) }

// comparatorAt is the one with a number.
func (b *board) comparatorAt(place uint16) *comparator {
	return &b.bundles[int(place)/hal.NumLOS].los[int(place)%hal.NumLOS]
}

// startFilter starts or calls off the filter after the line changed.
func (c *comparator) startFilter() {
	c.filter++
	if c.raw == c.out {
		return // it came back before four samples saw it
	}
	b := c.bundle.board
	phase := time.Duration(derive(b.seed, 1<<32|uint64(c.place())) % uint64(filterStep))
	t := b.now + tiaNanos
	wait := (phase - t%filterStep + filterStep) % filterStep
	b.events.Push(t+wait+(filterHits-1)*filterStep, event{kind: evFilter, board: int32(b.id), place: c.place(), gen: c.filter})
}

// filtered is the filter following its input.
func (c *comparator) filtered() {
	c.out = c.raw
	if c.bundle.board.powered {
		c.tell(c.out)
	}
}

// tell lets the host's watcher wake for an edge of the line.
func (c *comparator) tell(high bool) {
	b := c.bundle.board
	at := max(b.now+b.draw(&b.costs.Interrupt), c.edge+1)
	c.edge = at
	line := b.hw.Bundles[c.bundle.place].LOS[c.path]
	b.events.Push(at, event{kind: evEdge, board: int32(b.id), place: uint16(line), high: high, gen: b.life})
}
