package sim

import (
	"ringlight/hal"
	"ringlight/hal/ads7138"
)

// probe works out what a chip's inputs see from one instant to another: once
// when nothing moved in between, else at a few points.
func (m *module) probe(which converter, from, to int64, p *probe) {
	p.from, p.to = from, max(to, from+probePoints-1)
	p.seed = derive(m.seed, seedGuard+uint64(which))
	p.full = &m.wired.full[which]
	p.noise, p.rin = float64(adcNoiseCodes*m.per.phys.ADCNoise), m.per.phys.LaserRIN
	if m.planted != nil && m.planted.noise > 0 {
		p.noise = float64(m.planted.noise)
	}
	p.points = 1
	if m.seenMoving(from) {
		p.points = probePoints
	}
	m.refresh()
	for i := range p.points {
		t := p.to
		if p.points > 1 {
			t = p.from + (p.to-p.from)/(probePoints-1)*int64(i)
		}
		in := &p.at[i]
		if which == laneADC {
			*in = m.laneInputs(t)
		} else {
			*in = m.guardInputs(t)
		}
		m.wired.onChannels(which, in)
		for ch := range in {
			in[ch] *= ads7138.CodeFull / p.full[ch]
			if m.per.adc != nil {
				in[ch] = m.per.adc[which][ch].of(in[ch])
			}
		}
	}
}

// seenMoving reports whether the light of a module, or of those that send to
// it, was other than steady since a time.
func (m *module) seenMoving(since int64) bool {
	if m.movedSince(since) {
		return true
	}
	for i := range m.bundle.ends {
		e := &m.bundle.ends[i]
		src := e.sender(m.place)
		if e.outside != nil && e.outside.since > since || src != nil && src.movedSince(since) {
			return true
		}
	}
	return false
}

func (m *module) movedSince(t int64) bool {
	return m.moving != nil && m.moving.last+m.per.calm > t || m.tx[0].since > t || m.tx[1].since > t
}

func (m *module) laneInputs(t int64) [ads7138.Channels]float64 {
	var lit instant
	m.emit(t, &lit)
	in := m.loopLanes(&lit)
	for l := range in {
		in[l] = m.per.phys.saturated(in[l], 1)
	}
	return in
}

func (m *module) guardInputs(t int64) (in [ads7138.Channels]float64) {
	var lit instant
	m.emit(t, &lit)
	loop := m.loop(&lit)
	in[hal.GuardLoopUpper], in[hal.GuardLoopLower] = loop[0], loop[1]
	for l := range hal.Lanes {
		in[hal.GuardTap1] += lit.ext[0][l]
		in[hal.GuardTap2] += lit.ext[1][l]
	}
	for ext := range m.bundle.ends {
		e := &m.bundle.ends[ext]
		if e.cut {
			continue
		}
		var sum [2]float64
		diode := m.rxDiodes(ext)
		if e.outside != nil {
			sum = e.receive(m, nil, &e.outside.lanes[m.place], &diode)
		} else if src := e.sender(m.place); src != nil {
			src.refresh()
			src.emit(t, &lit)
			sum = e.receive(m, src, &lit.ext[e.ext], &diode)
		}
		in[hal.GuardExt1Upper+2*ext], in[hal.GuardExt1Lower+2*ext] = sum[0], sum[1]
	}
	for ch := range hal.GuardTap1 { // a tap takes too little light
		in[ch] = m.per.phys.saturated(in[ch], m.wired.half)
	}
	return in
}
