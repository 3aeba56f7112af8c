package sim

import "ringlight/hal/ads7138"

// comparing is the digital window comparator of an ADS7138 that has it enabled.
// Like all of the chip it is worked out when somebody asks, and when the light of
// its own module changes: which results were out of the window since the last
// time, at most eventWindow back.
//
// Not verified: that a flag which was cleared is set again by the next result that
// is still out, and that an event inside a window sets both flags.
type comparing struct {
	upTo int64 // results finished by then are counted
	high [ads7138.Channels]hits
	low  [ads7138.Channels]hits
}

// hits counts results in a row on one side.
type hits struct {
	n    int
	held bool // an event: ends only beyond the hysteresis
}

// eventWindow is how many results of a channel are looked at at once: what a
// module's heaters take to settle, and more.
const eventWindow = 512

// take counts one result: out says that it is beyond the threshold, back that it
// is back within it by more than the hysteresis.
func (h *hits) take(out, back bool, count int) (event bool) {
	switch {
	case back || !out && !h.held:
		*h = hits{}
	case out:
		h.n = min(h.n+1, ads7138.MaxCount)
		h.held = h.held || h.n >= count
		return h.n >= count
	}
	return false
}

// compareBoth does it for both ADCs of a module, before its light changes.
func (m *module) compareBoth() {
	for which := range numADCs {
		m.compare(which)
	}
}

// compare brings the event flags of a chip up to date.
func (m *module) compare(which converter) {
	c := &m.adc[which]
	e := c.events
	now := int64(m.board.now)
	if e == nil || !c.running() || now <= e.upTo {
		return
	}
	var p probe
	ready := false
	for ch := range ads7138.Channels {
		place, of, in := c.slot(ch)
		if !in {
			continue
		}
		cycle, n := ads7138.CycleNanos(c.reg[ads7138.RegOpMode]), c.oversample()
		one := cycle * n
		round := one * of
		// The k-th result is finished at started + k*round + (place+1)*one.
		end := c.started + (place+1)*one
		if now < end {
			continue
		}
		last := (now - end) / round
		first := max((e.upTo-end)/round+1, last-eventWindow+1, 0)
		if e.upTo < end {
			first = max(last-eventWindow+1, 0)
		}
		for k := first; k <= last; k++ {
			from := c.started + k*round + place*one
			if !ready {
				m.probe(which, max(now-eventWindow*round, c.started)-tiaNanos, now-tiaNanos, &p)
				ready = true
			}
			c.judge(ch, p.convert(ch, from-tiaNanos, cycle, n)>>4)
		}
	}
	e.upTo = now
}

// judge takes one result of twelve bits.
func (c *adc) judge(ch int, code uint16) {
	reg := ads7138.WindowReg(ch)
	x := ads7138.ParseWindow([ads7138.WindowBytes]byte(c.reg[reg:reg+ads7138.WindowBytes]), c.reg[ads7138.RegEventRegion]>>ch&1 != 0)
	bit := byte(1) << ch
	e := c.events
	if x.Inside {
		in := code >= x.Low && code <= x.High
		if e.high[ch].take(in, !in, x.Count) {
			c.reg[ads7138.RegEventHigh] |= bit
			c.reg[ads7138.RegEventLow] |= bit
		}
		return
	}
	if e.high[ch].take(code > x.High, code+x.Hysteresis < x.High, x.Count) {
		c.reg[ads7138.RegEventHigh] |= bit
	}
	if e.low[ch].take(code < x.Low, code > x.Low+x.Hysteresis, x.Count) {
		c.reg[ads7138.RegEventLow] |= bit
	}
}
