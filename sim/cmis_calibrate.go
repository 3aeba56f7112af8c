package sim

import (
	"encoding/binary"

	"ringlight/hal"
	"ringlight/hal/ads7138"
	"ringlight/hal/cmis"
	"ringlight/hal/ina219"
)

// Page B4h: a controller that lets its host search. It averages 32 conversions a
// channel, which takes a round of all channels and one more, and eight of the
// rail's. chosen.
const (
	mciAverageLog2   = 5
	mciAverageMicros = (ads7138.Channels+1)<<mciAverageLog2 + 10
	mciRailConfig    = 1<<ina219.GainShift | (8+3)<<ina219.ShuntADCShift | (8+0)<<ina219.BusADCShift | ina219.ModeBoth
)

// mciCalibrates writes one byte of page B4h.
func (w *World) mciCalibrates(b *board, bundle, mod int, c *mci, at, v byte) {
	p := c.pages[cmis.PageCalibrate]
	m := &b.bundles[bundle].modules[mod]
	switch {
	case at == cmis.CalMode:
		p[cmis.CalAnswer-128] = byte(w.mciSearches(b, bundle, mod, c, v))
	case !c.search:
		// nothing else is taken
	case at == cmis.CalLasers:
		p[at-128] = v
		w.mciShines(b, bundle, mod, c)
	default:
		p[at-128] = v
		cell := int(at-cmis.CalDrive) / 2
		if at&1 == 0 {
			return // the code is whole with its second byte
		}
		code := binary.BigEndian.Uint16(p[cmis.CalDrive-128+2*cell:])
		if !mciAllowed(code) {
			p[cmis.CalDriven-128] = byte(cmis.AnswerBadValue)
			return
		}
		if p[cmis.CalDriven-128] == byte(cmis.AnswerNone) {
			p[cmis.CalDriven-128] = byte(cmis.AnswerDone)
		}
		d, ch := cell/controllerChannels, cell%controllerChannels
		c.power[d].code[ch][0] = code
		if w.drive(b, m, d, 1<<ch, c.nets) {
			w.moduleChanged(b, bundle, 1<<mod)
		}
	}
}

// mciSearches begins and ends a calibration.
func (w *World) mciSearches(b *board, bundle, mod int, c *mci, mode byte) cmis.Answer {
	m := &b.bundles[bundle].modules[mod]
	const lasers = cmis.TriggerUpper | cmis.TriggerLower
	switch {
	case mode == 0:
		w.mciSearched(b, bundle, mod, c)
		return cmis.AnswerDone
	case mode != 1:
		return cmis.AnswerBadValue
	case c.state() != cmis.ModuleReady:
		return cmis.AnswerLowPower
	case c.lower[cmis.InForce]&lasers != 0 || c.lower[cmis.Trigger]&lasers != 0:
		return cmis.AnswerInService
	}
	p := c.pages[cmis.PageCalibrate]
	clear(p[cmis.CalDrive-128 : cmis.CalLanes-128])
	p[cmis.CalMode-128], p[cmis.CalLasers-128], p[cmis.CalDriven-128] = 1, 0, byte(cmis.AnswerNone)
	c.search = true
	c.rail.reg[ina219.RegConfig] = mciRailConfig
	*c.power = controllerPower{}
	w.driveAll(b, m)
	for _, a := range []*adc{&m.guard, &m.lanes} {
		mciScan(a, int64(w.now), mciAverageLog2)
	}
	w.mciShines(b, bundle, mod, c)
	return cmis.AnswerDone
}

// mciSearched ends a calibration: the codes applied last come back, or none.
func (w *World) mciSearched(b *board, bundle, mod int, c *mci) {
	if !c.search {
		return
	}
	m := &b.bundles[bundle].modules[mod]
	p := c.pages[cmis.PageCalibrate]
	p[cmis.CalMode-128], p[cmis.CalLasers-128] = 0, 0
	c.search = false
	for half := range m.tx {
		m.tx[half].turn(false, int64(w.now), int64(w.now+laserDelay))
	}
	for _, a := range []*adc{&m.guard, &m.lanes} {
		mciScan(a, int64(w.now), 0)
	}
	w.mciLanes(m, c)
	w.mciDrive(b, bundle, mod, c)
}

// mciShines lets the lanes of CalLasers shine.
func (w *World) mciShines(b *board, bundle, mod int, c *mci) {
	m := &b.bundles[bundle].modules[mod]
	want := c.pages[cmis.PageCalibrate][cmis.CalLasers-128] &^ c.pages[cmis.PageLaneControl][cmis.OutputDisableTx-128]
	m.enable = 0
	for lane := range hal.Lanes {
		if s := c.path(lane); want>>lane&1 != 0 && (s == cmis.DPInitialized || s == cmis.DPActivated) {
			m.enable |= 1 << lane
		}
	}
	for half := range m.tx {
		m.tx[half].turn(m.enable>>(half*hal.HalfLanes)&(1<<hal.HalfLanes-1) != 0, int64(w.now), int64(w.now+laserDelay))
	}
	w.moduleChanged(b, bundle, 1<<mod)
}

// mciMeasures fills in what page B4h measures.
func (w *World) mciMeasures(b *board, bundle, mod int, c *mci) {
	p := c.pages[cmis.PageCalibrate]
	var raw [ads7138.BlockBytes]byte
	w.results(b, bundle, mod, true, ads7138.RegRecent, raw[:])
	for lane := range hal.Lanes {
		put16(p, cmis.CalLanes+2*lane, ads7138.Code16(raw[:], lane))
	}
	w.results(b, bundle, mod, false, ads7138.RegRecent, raw[:])
	for e := range 2 {
		put16(p, cmis.CalTaps+2*e, ads7138.Code16(raw[:], hal.GuardTap1+e))
	}
	m := &b.bundles[bundle].modules[mod]
	c.rail.at = ina219.RegShunt
	c.rail.read(w, m, raw[:2])
	put16(p, cmis.CalRail, ina219.Value(raw[:2])) // 10 uV of half an ohm
	put16(p, cmis.CalRail+2, railMillivolt)
}

// mciAllowed reports whether a heater may have a code.
func mciAllowed(code uint16) bool {
	return heaterMicrovolt(code) <= hal.HeaterMaxMillivolt*1000
}
