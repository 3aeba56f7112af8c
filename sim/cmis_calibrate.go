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

// calibrate writes one byte of page B4h.
func (c *mci) calibrate(at, v byte) {
	p := c.pages[cmis.PageCalibrate]
	switch {
	case at == cmis.CalMode:
		p[cmis.CalAnswer-128] = byte(c.beginSearch(v))
	case !c.search:
		// nothing else is taken
	case at == cmis.CalLasers:
		p[at-128] = v
		c.shine()
	default:
		p[at-128] = v
		cell := int(at-cmis.CalDrive) / 2
		if at&1 == 0 {
			return // the code is whole with its second byte
		}
		code := binary.BigEndian.Uint16(p[cmis.CalDrive-128+2*cell:])
		if !c.allows(code) {
			p[cmis.CalDriven-128] = byte(cmis.AnswerBadValue)
			return
		}
		if p[cmis.CalDriven-128] == byte(cmis.AnswerNone) {
			p[cmis.CalDriven-128] = byte(cmis.AnswerDone)
		}
		d, ch := cell/controllerChannels, cell%controllerChannels
		c.power[d].code[ch][0] = code
		if c.m.drive(d, 1<<ch) {
			c.m.changed()
		}
	}
}

// beginSearch begins and ends a calibration.
func (c *mci) beginSearch(mode byte) cmis.Answer {
	const lasers = cmis.TriggerUpper | cmis.TriggerLower
	switch {
	case mode == 0:
		c.endSearch()
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
	c.freeze()
	c.lock.trim, c.lock.large = [cmis.Cells]float64{}, [mciLockCells]float64{}
	c.rail.reg[ina219.RegConfig] = mciRailConfig
	*c.power = controllerPower{}
	c.m.driveAll()
	c.m.scan(mciAverageLog2)
	c.shine()
	return cmis.AnswerDone
}

// endSearch ends a calibration: the codes applied last come back, or none.
func (c *mci) endSearch() {
	if !c.search {
		return
	}
	m, now := c.m, c.m.board.now
	p := c.pages[cmis.PageCalibrate]
	p[cmis.CalMode-128], p[cmis.CalLasers-128] = 0, 0
	c.search = false
	for half := range m.tx {
		m.tx[half].turn(false, int64(now), int64(now+laserDelay))
	}
	m.scan(0)
	c.lanes()
	c.drive()
}

// shine lets the lanes of CalLasers shine.
func (c *mci) shine() {
	m, now := c.m, c.m.board.now
	m.enable = c.pages[cmis.PageCalibrate][cmis.CalLasers-128] & c.ready()
	c.pages[cmis.PageLaneStatus][cmis.OutputStatusTx-128] = m.enable
	for half := range m.tx {
		m.tx[half].turn(m.enable>>(half*hal.HalfLanes)&(1<<hal.HalfLanes-1) != 0, int64(now), int64(now+laserDelay))
	}
	c.m.changed()
}

// measure fills in what page B4h measures.
func (c *mci) measure() {
	p := c.pages[cmis.PageCalibrate]
	var raw [ads7138.BlockBytes]byte
	c.m.results(laneADC, ads7138.RegRecent, raw[:])
	for lane := range hal.Lanes {
		put16(p, cmis.CalLanes+2*lane, ads7138.Code16(raw[:], lane))
	}
	c.m.results(guardADC, ads7138.RegRecent, raw[:])
	for e := range 2 {
		put16(p, cmis.CalTaps+2*e, ads7138.Code16(raw[:], hal.GuardTap1+e))
	}
	c.rail.at = ina219.RegShunt
	c.rail.read(c.m, raw[:2])
	put16(p, cmis.CalRail, ina219.Value(raw[:2])) // 10 uV of half an ohm
	put16(p, cmis.CalRail+2, railMillivolt)
}

// allows reports whether a heater may have a code.
func (c *mci) allows(code uint16) bool {
	return heaterMicrovolt(code) <= c.m.wired.Heater.MaxMillivolt*1000
}
