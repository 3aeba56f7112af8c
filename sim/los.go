package sim

import (
	"slices"
	"time"

	"ringlight/hal"
	"ringlight/mzi/detmath"
)

// A LOS line says that every module of a bundle has light on both halves of
// one path's receive diodes. Nothing polls it. Whatever may change light
// (a switch, a register, power, a fibre, a fault) calls lightChanged, which
// follows the heaters to where they settle, finds the instants at which each
// half crosses its thresholds, and puts the first instant at which the line
// itself changes on the heap.

// Thresholds of a half-sum in milliwatts: four lanes.
var (
	losAssert = hal.HalfLanes * detmath.FromDB(hal.LOSAssertMilliDBm/1000.0)
	losClear  = hal.HalfLanes * detmath.FromDB(hal.LOSClearMilliDBm/1000.0)
)

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
// began to move, in microseconds: steps of at most a third of a heater's time
// constant while it matters.
var grid = [...]int64{0, 2, 4, 6, 8, 11, 14, 17, 20, 23, 26, 30, 34, 38, 43, 48, 54, 62, 72, 84, 100, 120, 150, 190, 240}

const gridMax = len(grid) + 6

// look fills the trace of a module from now on.
func (w *World) look(b *board, m *module, tr *trace) {
	w.refresh(b, m)
	now := int64(w.now)
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
			if s := step[0]; s-1 > tr.at[tr.n-1] {
				add(s - 1)
			}
			if s := step[0]; s > tr.at[tr.n-1] {
				add(s)
			}
			step = step[1:]
		}
	}
	if m.moving != nil && (n > 0 || m.lit(now) != 0) {
		for _, g := range grid {
			t := m.moving.last + g*1000
			if until(t); t > tr.at[tr.n-1] {
				add(t)
			}
		}
	}
	until(1<<63 - 1)
	var phase [hal.CellsPerMod]float64
	var lit light
	d := decay{age: -1}
	for i := range tr.n {
		m.emit(tr.at[i], &lit, &phase, &d)
		tr.ext[i] = lit.ext
		tr.loop[i] = m.loop(tr.at[i], &lit, &phase, &d)
	}
}

// lightChanged follows the light of a whole bundle to every comparator that
// sees it.
func (w *World) lightChanged(b *board, bundle int) { w.moduleChanged(b, bundle, allModules) }

// moduleChanged does it for the modules in the mask; what the others are
// expected to do stands.
func (w *World) moduleChanged(b *board, bundle int, mask uint32) {
	bu := &b.bundles[bundle]
	b.changes++
	moving := false
	for i := range bu.modules {
		if mask>>i&1 != 0 {
			m := &bu.modules[i]
			w.compareBoth(b, bundle, i)
			w.look(b, m, &w.traces[i])
			moving = moving || m.moving != nil
		}
	}
	if moving && !bu.settling {
		bu.settling = true
		w.push(event{at: w.now + settleCheck, kind: evSettle, board: int32(b.id), place: uint16(bundle)})
	}
	w.followTraces(b, bundle, hal.LOSLoopback, nil, mask)
	for ext := range bu.ends {
		e := &bu.ends[ext]
		if e.peer == nil {
			continue
		}
		back := &e.peer.bundles[e.bundle].ends[e.ext]
		w.followTraces(e.peer, e.bundle, hal.LOSExternal1+e.ext, back, mask)
	}
}

const allModules = 1<<hal.MaxModules - 1

// settleCheck is when a bundle's heaters are looked at again, to forget the
// way they took: beyond calm and the longest ADC window.
const settleCheck = 3 * time.Millisecond

// follow looks again at the light that comes to one external path.
func (w *World) follow(b *board, bundle, path int) {
	ext := path - hal.LOSExternal1
	e := &b.bundles[bundle].ends[ext]
	if e.outside != nil {
		for i := range b.bundles[bundle].modules {
			e.outside.steady(w, i, &w.traces[i])
		}
		w.followTraces(b, bundle, path, e, allModules)
		return
	}
	if e.peer == nil {
		w.dark(b, bundle, path)
		return
	}
	src := &e.peer.bundles[e.bundle]
	for i := range src.modules {
		w.look(e.peer, &src.modules[i], &w.traces[i])
	}
	w.followTraces(b, bundle, path, e, allModules)
}

// followTraces finds the crossings that the traces of the source modules in the
// mask make at a comparator; end is the receiving fibre end, nil for the
// loopback.
func (w *World) followTraces(b *board, bundle, path int, end *fibreEnd, mask uint32) {
	bu := &b.bundles[bundle]
	c := &bu.los[path]
	w.commit(c)
	found := w.found[:0]
	for _, x := range c.pending[c.next:] {
		if mask>>(x.bit/2)&1 == 0 {
			found = append(found, x)
		}
	}
	for i := range bu.modules {
		if mask>>i&1 == 0 {
			continue
		}
		tr := &w.traces[i]
		var value [gridMax][2]float64
		n := tr.n
		at := tr.at[:n]
		switch {
		case end == nil:
			value = tr.loop
		case end.outside != nil && !end.cut:
			diode := bu.modules[i].rxDiodes(path - hal.LOSExternal1)
			value[0] = end.take(&tr.ext[0][0], &diode)
		case end.cut || i >= len(end.peer.bundles[end.bundle].modules):
			at = []int64{int64(w.now)} // dark from now on
		default:
			diode := bu.modules[i].rxDiodes(path - hal.LOSExternal1)
			src := &end.peer.bundles[end.bundle].modules[i]
			for g := range n {
				value[g] = end.receive(src, &tr.ext[g][end.ext], &diode)
			}
		}
		for half := range 2 {
			found = c.cross(found, uint8(2*i+half), at, &value, half)
		}
	}
	w.found = found
	w.take(b, bundle, path, found)
}

// cross appends the crossings of one half of one module.
func (c *comparator) cross(found []crossing, bit uint8, at []int64, value *[gridMax][2]float64, half int) []crossing {
	lit := c.lit>>bit&1 != 0
	for i, t := range at {
		v := value[i][half]
		limit := losClear
		if lit {
			limit = losAssert
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
func (w *World) commit(c *comparator) {
	for c.next < len(c.pending) && c.pending[c.next].at <= int64(w.now) {
		c.apply(c.pending[c.next])
		c.next++
	}
}

func (c *comparator) apply(x crossing) {
	c.lit &^= 1 << x.bit
	if x.up {
		c.lit |= 1 << x.bit
	}
}

// dark tells a comparator that no light comes any more.
func (w *World) dark(b *board, bundle, path int) {
	c := &b.bundles[bundle].los[path]
	c.lit = 0
	w.take(b, bundle, path, nil)
}

// take replaces what a comparator expects.
func (w *World) take(b *board, bundle, path int, found []crossing) {
	c := &b.bundles[bundle].los[path]
	slices.SortFunc(found, func(x, y crossing) int {
		switch {
		case x.at != y.at && x.at < y.at:
			return -1
		case x.at != y.at:
			return 1
		}
		return int(x.bit) - int(y.bit)
	})
	c.pending, c.next = append(c.pending[:0], found...), 0
	w.commit(c)
	w.settleLine(b, bundle, path)
}

// settleLine brings the unfiltered line up to date and puts its next change
// on the heap.
func (w *World) settleLine(b *board, bundle, path int) {
	c := &b.bundles[bundle].los[path]
	if raw := c.lit == c.all; raw != c.raw {
		c.raw, c.changed = raw, w.now
		w.filterLine(b, bundle, path)
	}
	c.gen++
	lit := c.lit
	for _, x := range c.pending[c.next:] {
		bit := uint32(1) << x.bit
		lit &^= bit
		if x.up {
			lit |= bit
		}
		if (lit == c.all) != c.raw {
			w.push(event{at: time.Duration(x.at), kind: evCross, board: int32(b.id), place: linePlace(bundle, path), gen: c.gen})
			return
		}
	}
}

func linePlace(bundle, path int) uint16 { return uint16(bundle*hal.NumLOS + path) }

// filterLine starts or calls off the filter after the line changed.
func (w *World) filterLine(b *board, bundle, path int) {
	c := &b.bundles[bundle].los[path]
	c.filter++
	if c.raw == c.out {
		return // it came back before four samples saw it
	}
	phase := time.Duration(derive(b.seed, 1<<32|uint64(linePlace(bundle, path))) % uint64(filterStep))
	t := w.now + tiaNanos
	wait := (phase - t%filterStep + filterStep) % filterStep
	w.push(event{at: t + wait + (filterHits-1)*filterStep, kind: evFilter, board: int32(b.id), place: linePlace(bundle, path), gen: c.filter})
}

// filtered is a comparator's filter following its input.
func (w *World) filtered(b *board, e event) {
	bundle, path := int(e.place)/hal.NumLOS, int(e.place)%hal.NumLOS
	c := &b.bundles[bundle].los[path]
	if c.filter != e.gen {
		return
	}
	c.out = c.raw
	if !b.powered {
		return
	}
	at := max(w.now+b.draw(w.costs.Interrupt), c.edge+1)
	c.edge = at
	w.push(event{at: at, kind: evEdge, board: int32(b.id), place: uint16(b.hw.Bundles[bundle].LOS[path]), high: c.out, gen: b.life})
}

// crossed is the line's next change.
func (w *World) crossed(b *board, e event) {
	bundle, path := int(e.place)/hal.NumLOS, int(e.place)%hal.NumLOS
	c := &b.bundles[bundle].los[path]
	if c.gen != e.gen {
		return
	}
	w.commit(c)
	w.settleLine(b, bundle, path)
}
