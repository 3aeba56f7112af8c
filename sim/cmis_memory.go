package sim

import (
	"encoding/binary"
	"time"

	"ringlight/hal"
	"ringlight/hal/ads7138"
	"ringlight/hal/cmis"
	"ringlight/hal/ina219"
)

// What the simulated module says of itself. chosen.
const (
	mciRevision      = 0x53
	mciSupplyTenthMV = 33_000
)

// mciThresholds of the temperature, in the order of their flags: high and low
// alarm, high and low warning.
var mciThresholds = [...]int32{75_000, -5000, 70_000, 0}

// mciPreFEC are the alarms and warnings of the bit error ratio, high and low in turn: what
// IEEE 802.3 leaves before RS(544,514), and a tenth.
var mciPreFEC = [...]float64{2.4e-4, 0, 2.4e-5, 0}

// Applications of the module, by AppSel: all lanes as one data path, and each
// lane as one of its own.
const (
	mciApplicationOfAll = 1
	mciApplicationOfOne = 2
	mciApplications     = 2
)

// memory fills every page as after power-on: a warm module in ModuleLowPwr.
func (c *mci) memory() {
	l := &c.lower
	l[cmis.Identifier], l[cmis.Revision] = 0x18, mciRevision
	l[cmis.Management] = cmis.SteppedConfig | cmis.MaxSpeed1MHz
	l[cmis.StateByte] = byte(cmis.ModuleLowPwr)<<1 | cmis.InterruptDeasserted
	l[cmis.ModuleControl] = cmis.LowPwrAllowHW
	l[cmis.MediaType] = 0x02 // single-mode fibre
	// 800GAUI-8 L C2M as 800GBASE-DR8, and 100GAUI-1-L C2M as 100GBASE-DR.
	copy(l[cmis.Applications:], []byte{0x52, 0x56, 0x88, 0x01, 0x4C, 0x14, 0x11, 0xFF, 0xFF})
	binary.BigEndian.PutUint16(l[cmis.Supply:], mciSupplyTenthMV)

	for _, page := range []uint8{cmis.PageAdmin, cmis.PageAdvertise, cmis.PageThresholds, cmis.PageLaneControl, cmis.PageLaneStatus,
		cmis.PageMonitors, cmis.PageSamples, cmis.PageMonitorLimits, cmis.PageMonitorFlags, cmis.PageMonitorGroups, cmis.PagePattern, cmis.PageCounts, cmis.PageCDB, cmis.PageOCS, cmis.PageCodesA, cmis.PageCodesB, cmis.PageService, cmis.PageCalibrate} {
		c.pages[page] = new([128]byte)
	}
	c.version()
	c.factory()
	for lane := range hal.Lanes {
		cmis.PutNibble(c.pages[cmis.PageLaneStatus][cmis.DPStates-128:], lane, uint8(cmis.DPDeactivated))
		c.pages[cmis.PageLaneControl][cmis.StagedSet-128+lane] = mciApplicationOfAll << 4
		c.pages[cmis.PageLaneStatus][cmis.ActiveSet-128+lane] = mciApplicationOfAll << 4
	}
	if c.timing.NoPatterns {
		delete(c.pages, cmis.PagePattern)
		delete(c.pages, cmis.PageCounts)
	}
	if c.timing.NoPages {
		delete(c.pages, cmis.PageCodesA)
		delete(c.pages, cmis.PageCodesB)
	}
	c.own.has = c.m.wired.benes
	search := !c.timing.NoSearch && !c.timing.NoPages
	control := cmis.Control{Trigger: true, Staging: !c.timing.NoPages, Counters: true, Calibration: search, Own: c.own.has, Lock: !c.timing.NoLock, Carry: !c.timing.NoLock, Bias: true,
		TriggerMax: c.timing.Trigger, SettleMax: settleMicros * time.Microsecond}.Bytes()
	copy(c.pages[cmis.PageOCS][:], control[:])
	if !search {
		delete(c.pages, cmis.PageCalibrate)
		return
	}
	put16(c.pages[cmis.PageCalibrate], cmis.CalTimes, mciAverageMicros)
	put16(c.pages[cmis.PageCalibrate], cmis.CalTimes+2, uint16(2*ina219.ConversionMicros(mciRailConfig)))
}

// factory fills the pages with a checksum.
func (c *mci) factory() {
	text := func(p *[128]byte, offset, length int, s string) {
		for i := range length {
			p[offset-128+i] = ' '
		}
		copy(p[offset-128:offset-128+length], s)
	}
	p := c.pages[cmis.PageAdmin]
	p[0] = 0x18
	text(p, 129, 16, "RINGLIGHT")
	copy(p[145-128:], []byte{0x02, 'R', 'L'}) // locally administered: nobody has registered it
	text(p, 148, 16, "OCSTRX-8")
	text(p, 164, 2, "1A")
	text(p, 166, 16, c.m.per.serial)
	text(p, 182, 8, "260101")
	p[200-128], p[201-128], p[203-128] = 4<<5, 32, 0x0C // power class 5, 8 W, MPO 1x12
	p[212-128] = 0x04                                   // DFB laser, 1310 nm

	p = c.pages[cmis.PageAdvertise]
	p[142-128] = byte(boolToInt(!c.timing.NoPatterns))<<5 | 1<<6 // of the optional pages 13h and 14h, 20h to 2Fh; one bank
	put16(p, 138, 1310*20)                                       // wavelength in 0.05 nm
	put16(p, 140, 6500/5)                                        // and how far off, in 0.005 nm
	p[151-128] = 1 << 4                                          // receive power is an average
	p[176-128], p[177-128] = 0x01, 0xFF                          // media lanes where a data path may begin
	p[144-128] = cmis.DurationCode(c.timing.DPInit) | cmis.DurationCode(c.timing.DPInit)<<4
	p[155-128], p[156-128] = 1<<1, 0
	p[157-128], p[158-128] = 1<<0, 1<<1
	p[159-128], p[160-128] = 3, 1<<0|1<<1|1<<2
	p[163-128], p[164-128] = 1<<6, 15 // one instance, foreground; 128 bytes at once
	if !c.timing.NoFirmware && !c.timing.NoEPL {
		p[163-128] |= 0x07 // 16 pages of extended payload
	}
	p[165-128], p[166-128] = byte((c.timing.Command+159*time.Millisecond)/(160*time.Millisecond)), 0x80
	p[167-128] = cmis.DurationCode(c.timing.PowerUp) | cmis.DurationCode(c.timing.PowerUp)<<4
	shift := byte(0)
	for shift < 15 && (10*time.Millisecond)>>(shift+1) >= c.timing.PageChange {
		shift++
	}
	p[169-128] = shift
	p[251-128] = 1

	p = c.pages[cmis.PageThresholds]
	for i, milli := range mciThresholds {
		cmis.PutMilliCelsius(p[2*i:], milli)
	}
	for i, tenth := range []uint16{34_650, 31_350, 34_300, 31_700} {
		put16(p, 136+2*i, tenth)
	}
	for i, tenthMicrowatt := range []uint16{20_000, 1_000, 17_800, 1_260} {
		put16(p, 176+2*i, tenthMicrowatt)
		put16(p, 192+2*i, tenthMicrowatt/4)
	}
	for lane := range hal.Lanes {
		put16(c.pages[cmis.PageMonitors], 128+2*lane, uint16(lane)<<8|cmis.MonitorPreFEC)
	}
	for i, ratio := range mciPreFEC {
		put16(c.pages[cmis.PageMonitorLimits], 128+2*i, cmis.F16(ratio))
	}
	for page := range uint8(3) {
		sum, at, _ := cmis.Checksum(page, c.pages[page][:])
		c.pages[page][at-128] = sum
	}
}

// refresh brings what is measured up to date before it is read.
func (c *mci) refresh(page uint8, lower bool) {
	if lower {
		cmis.PutMilliCelsius(c.lower[cmis.Temperature:], c.m.caseMilli())
		c.lower[cmis.ModuleFlags+1] |= c.warm // what stands is latched again
		c.summarize()
		for lane := range hal.Lanes {
			c.lower[cmis.Bias+lane] = byte(c.bias(lane) / cmis.BiasMicroamp)
		}
		c.lower[cmis.Applied] = 0
		if c.applied {
			c.lower[cmis.Applied] = 1
		}
		return
	}
	switch page {
	case cmis.PageService:
		p := c.pages[page]
		for which := range numADCs {
			var raw [ads7138.BlockBytes]byte
			c.m.results(which, ads7138.RegRecent, raw[:])
			for ch := range ads7138.Channels {
				put16(p, cmis.Levels+16*int(which)+2*ch, ads7138.Code16(raw[:], ch))
			}
		}
		for i, n := range c.raises {
			put16(p, cmis.Raised+2*i, n)
		}
	case cmis.PageLaneStatus:
		c.monitor()
	case cmis.PageSamples, cmis.PageMonitorFlags:
		for lane, ratio := range c.m.bitErrorRatios(false) {
			put16(c.pages[cmis.PageSamples], 128+2*lane, cmis.F16(ratio))
			flags := byte(boolToInt(ratio > mciPreFEC[0]) | boolToInt(ratio > mciPreFEC[2])<<2)
			c.pages[cmis.PageMonitorFlags][lane/2] |= flags << (4 * (lane & 1))
		}
	case cmis.PageCounts:
		c.m.tally(c.pages[page])
	case cmis.PageCalibrate:
		c.measure()
	}
}

// summarize fills in what lower memory says of all flags: on which pages some
// stand, masked or not, and whether one that is not masked asks for attention.
func (c *mci) summarize() {
	stand, attention := byte(0), false
	for i := range cmis.ModuleFlagBytes {
		attention = attention || c.lower[cmis.ModuleFlags+i]&^c.lower[cmis.ModuleMasks+i] != 0
	}
	for i := range cmis.LaneFlagBytes {
		flags := c.pages[cmis.PageLaneStatus][cmis.LaneFlags-128+i]
		stand |= flags
		attention = attention || flags&^c.pages[cmis.PageLaneControl][cmis.LaneMasks-128+i] != 0
	}
	c.lower[cmis.FlagSummary] = byte(boolToInt(stand != 0)) * cmis.SummaryLaneStatus
	c.lower[cmis.StateByte] &^= cmis.InterruptDeasserted
	if !attention {
		c.lower[cmis.StateByte] |= cmis.InterruptDeasserted
	}
}

// bias is a laser's, in microampere: what its controller keeps, or none. chosen.
func (c *mci) bias(lane int) int {
	return 40_000 * int(c.m.lit(int64(c.m.board.now))>>lane&1)
}

// monitor fills the standard monitors of the lanes: light launched, and in
// loopback light received.
func (c *mci) monitor() {
	m := c.m
	m.refresh()
	var lit instant
	m.emit(int64(m.board.now), &lit)
	loop := m.loopLanes(&lit)
	p := c.pages[cmis.PageLaneStatus]
	tenth := func(milliwatt float64) uint16 { return uint16(min(milliwatt*10_000, 65535)) }
	for lane := range hal.Lanes {
		put16(p, cmis.TxPower+2*lane, tenth(lit.ext[0][lane]+lit.ext[1][lane]))
		put16(p, cmis.RxPower+2*lane, tenth(loop[lane]))
		put16(p, cmis.TxBias+2*lane, uint16(c.bias(lane)/2))
	}
}
