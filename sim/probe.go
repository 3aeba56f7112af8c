package sim

import (
	"ringlight/hal"
	"ringlight/hal/ads7138"
)

// probe works out what a chip's inputs see from one instant to another: once
// when nothing moved in between, else at a few points.
func (w *World) probe(b *board, bundle, mod int, isLanes bool, from, to int64, p *probe) {
	m := &b.bundles[bundle].modules[mod]
	p.from, p.to = from, max(to, from+probePoints-1)
	if isLanes {
		p.full, p.seed = &laneFulls, derive(m.seed, seedLanes)
	} else {
		p.full, p.seed = &guardFulls, derive(m.seed, seedGuard)
	}
	p.noise = 0
	if m.planted != nil {
		p.noise = float64(m.planted.noise)
	}
	p.points = 1
	if w.moved(b, bundle, mod, from) {
		p.points = probePoints
	}
	w.refresh(b, m)
	for i := range p.points {
		t := p.to
		if p.points > 1 {
			t = p.from + (p.to-p.from)/(probePoints-1)*int64(i)
		}
		in := &p.at[i]
		if isLanes {
			*in = w.laneInputs(m, t)
		} else {
			*in = w.guardInputs(b, bundle, mod, t)
		}
		for ch := range in {
			in[ch] *= ads7138.CodeFull / p.full[ch]
		}
	}
}

// moved reports whether the light of a module, or of those that send to it,
// was other than steady since a time.
func (w *World) moved(b *board, bundle, mod int, since int64) bool {
	bu := &b.bundles[bundle]
	if bu.modules[mod].movedSince(since) {
		return true
	}
	for i := range bu.ends {
		if e := &bu.ends[i]; e.outside != nil && e.outside.since > since {
			return true
		} else if e.peer != nil && mod < len(e.peer.bundles[e.bundle].modules) &&
			e.peer.bundles[e.bundle].modules[mod].movedSince(since) {
			return true
		}
	}
	return false
}

func (m *module) movedSince(t int64) bool {
	return m.moving != nil && m.moving.last+calm > t || m.tx[0].since > t || m.tx[1].since > t
}

func (w *World) laneInputs(m *module, t int64) [ads7138.Channels]float64 {
	var phase [hal.CellsPerMod]float64
	var lit light
	d := decay{age: -1}
	m.emit(t, &lit, &phase, &d)
	return m.loopLanes(t, &lit, &phase, &d)
}

func (w *World) guardInputs(b *board, bundle, mod int, t int64) (in [ads7138.Channels]float64) {
	bu := &b.bundles[bundle]
	m := &bu.modules[mod]
	var phase [hal.CellsPerMod]float64
	var lit light
	d := decay{age: -1}
	m.emit(t, &lit, &phase, &d)
	loop := m.loop(t, &lit, &phase, &d)
	in[hal.GuardLoopUpper], in[hal.GuardLoopLower] = loop[0], loop[1]
	for l := range hal.Lanes {
		in[hal.GuardTap1] += lit.ext[0][l]
		in[hal.GuardTap2] += lit.ext[1][l]
	}
	for ext := range bu.ends {
		e := &bu.ends[ext]
		if e.outside != nil && !e.cut {
			diode := m.rxDiodes(ext)
			sum := e.take(&e.outside.lanes[mod], &diode)
			in[hal.GuardExt1Upper+2*ext], in[hal.GuardExt1Lower+2*ext] = sum[0], sum[1]
			continue
		}
		if e.peer == nil || e.cut || mod >= len(e.peer.bundles[e.bundle].modules) {
			continue
		}
		src := &e.peer.bundles[e.bundle].modules[mod]
		w.refresh(e.peer, src)
		src.emit(t, &lit, &phase, &d)
		diode := m.rxDiodes(ext)
		sum := e.receive(src, &lit.ext[e.ext], &diode)
		in[hal.GuardExt1Upper+2*ext], in[hal.GuardExt1Lower+2*ext] = sum[0], sum[1]
	}
	return in
}
