package sim

import (
	"encoding/binary"
	"time"

	"ringlight/hal"
	"ringlight/hal/cmis"
	"ringlight/mzi/detmath"
)

// maxMCIWrite is what the module takes in one write; pages of the command data
// block take what 01h:164 says.
const maxMCIWrite = 8

// hear takes the bytes of a write and returns how many were acknowledged.
// A write of more than the module takes is refused at the byte too many, and
// changes nothing.
func (c *mci) hear(in []byte) int {
	c.at = in[0]
	data := in[1:]
	if len(data) == 0 {
		return len(in)
	}
	most := maxMCIWrite
	if c.at >= 128 && c.page >= cmis.PageCDB && c.page < cmis.PageEPL+cmis.EPLPages {
		most = 128
	}
	if len(data) > most {
		return 1 + most
	}
	hold := c.timing.Write
	selects := false
	for _, v := range data {
		at := c.at
		c.at = next(at)
		if at == cmis.BankSelect || at == cmis.PageSelect {
			selects = selects || at == cmis.PageSelect
			c.lower[at] = v
			continue
		}
		f, known := cmis.At(c.page, at)
		if !known || !f.Access.Writable() {
			continue // the module ignores it
		}
		if f.Access == cmis.NV {
			hold = c.timing.NonVolatile
		}
		c.put(at, v)
	}
	if selects {
		hold = c.timing.PageChange
		c.turn()
	}
	c.busy = max(c.busy, int64(c.m.board.now+hold))
	return len(in)
}

// next is the address after one: both halves wrap by themselves.
func next(at uint8) uint8 { return at&0x80 | (at+1)&0x7F }

// turn selects the page that bytes 126 and 127 name. One that is not there, in a
// bank that is not there, becomes page 00h.
func (c *mci) turn() {
	bank, page := c.lower[cmis.BankSelect], c.lower[cmis.PageSelect]
	if !cmis.Banked(page) {
		bank = 0
	}
	c.extended(page)
	if c.pages[page] == nil || bank != 0 {
		bank, page = 0, 0
	}
	c.page = page
	c.lower[cmis.BankSelect], c.lower[cmis.PageSelect] = bank, page
}

// put writes one byte, with what follows from it.
func (c *mci) put(at, v byte) {
	if at < 128 {
		switch at {
		case cmis.ModuleControl:
			c.control(v)
		case cmis.Trigger:
			c.triggered(v)
		case cmis.LockMode:
			c.hold(v)
		default:
			c.lower[at] = v
		}
		return
	}
	p := c.pages[c.page]
	switch {
	case c.page == cmis.PageLaneControl && at == cmis.ApplyDPInit:
		c.initialize(v)
	case c.page == cmis.PageLaneControl && at == cmis.ApplyImmediate:
	case c.page == cmis.PageLaneControl && (at == cmis.DPDeinit || at == cmis.OutputDisableTx):
		p[at-128] = v
		c.walk()
	case c.page == cmis.PageOCS && at == cmis.Apply:
		c.apply(v)
	case c.page == cmis.PagePattern:
		p[at-128] = v
		c.m.pattern(at, v)
	case c.page == cmis.PageCounts:
		c.m.patterned().selector = v
	case c.page == cmis.PageCalibrate:
		c.calibrate(at, v)
	case c.page == cmis.PageCDB && at == cmis.CDBCommand+1:
		p[at-128] = v
		c.lower[cmis.CDBStatus1] = cmis.CDBExecuting
		c.undo()
		c.busy = int64(c.m.board.now + c.timing.Command) // in the foreground nobody answers
		c.later(c.timing.Command, mciCommand, 0)
	case c.page == cmis.PageCodesA || c.page == cmis.PageCodesB:
		p[at-128] = v
		cell := int(at-128) / 2
		c.staged[c.page-cmis.PageCodesA][cell] = binary.BigEndian.Uint16(p[2*cell:])
		c.applied = false
	default:
		p[at-128] = v
	}
}

// control is a write to the module's global controls.
func (c *mci) control(v byte) {
	if v&cmis.SoftwareReset != 0 {
		c.busy = int64(c.m.board.now + c.timing.NonVolatile)
		c.later(c.timing.Write, mciReset, 0)
		return
	}
	c.lower[cmis.ModuleControl] = v
	switch low := c.lowPower(); {
	case low && c.state() == cmis.ModuleReady:
		c.endSearch()
		c.walk()
		c.become(cmis.ModulePwrDn)
		c.fire(c.lower[cmis.InForce] & cmis.TriggerPath)
		c.later(c.timing.PowerUp, mciLow, 0)
	case !low && c.state() == cmis.ModuleLowPwr:
		c.become(cmis.ModulePwrUp)
		c.later(c.timing.PowerUp, mciPowered, 0)
	}
}

// triggered takes a trigger byte, or refuses it and says why.
func (c *mci) triggered(v byte) {
	answer := cmis.AnswerUnderWay
	c.hosted = c.hosted || cmis.ValidTrigger(v)
	lights := v&(cmis.TriggerUpper|cmis.TriggerLower) != 0
	switch {
	case !cmis.ValidTrigger(v):
		answer = cmis.AnswerBadValue
	case c.state() != cmis.ModuleReady:
		answer = cmis.AnswerLowPower
	case lights && (c.search || c.own.busy):
		answer = cmis.AnswerCalibrating
	case lights && !c.applied:
		answer = cmis.AnswerNotStaged
	}
	c.lower[cmis.TriggerAnswer] = byte(answer)
	if answer != cmis.AnswerUnderWay {
		return
	}
	c.lower[cmis.Trigger] = v
	c.endSearch()
	c.draws++
	after := c.timing.Trigger/2 + time.Duration(derive(c.m.seed^detmath.Golden, c.draws)%uint64(c.timing.Trigger/2+1))
	binary.BigEndian.PutUint16(c.lower[cmis.TriggerTook:], uint16((after+time.Microsecond-1)/time.Microsecond))
	c.later(after, mciTrigger, v)
}

// initialize provisions lanes with what is staged for them, or says why not. The
// data paths follow where the host lets them.
func (c *mci) initialize(mask byte) {
	control, status := c.pages[cmis.PageLaneControl], c.pages[cmis.PageLaneStatus]
	for lane := range hal.Lanes {
		if mask>>lane&1 == 0 {
			continue
		}
		set := control[cmis.StagedSet-128+lane]
		result := cmis.ConfigSuccess
		switch {
		case c.state() != cmis.ModuleReady:
			result = cmis.ConfigRejected
		case c.path(lane) != cmis.DPDeactivated:
			result = cmis.ConfigLaneInUse // 00h:2 says: only step by step
		case set>>4 > mciApplications:
			result = cmis.ConfigInvalidAppSel
		case set>>4 == mciApplicationOfAll && mask != 0xFF:
			result = cmis.ConfigPartialPath
		case set>>4 == mciApplicationOfAll && set>>1&7 != 0, set>>4 == mciApplicationOfOne && set>>1&7 != byte(lane):
			result = cmis.ConfigInvalidPath
		}
		cmis.PutNibble(status[cmis.ConfigStatuses-128:], lane, uint8(result))
		if result == cmis.ConfigSuccess {
			status[cmis.ActiveSet-128+lane] = set
			status[cmis.DPInitPending-128] |= 1 << lane
		}
	}
	c.walk()
}

// apply takes the staged codes, or refuses them.
func (c *mci) apply(v byte) {
	answer := cmis.AnswerUnderWay
	switch {
	case v != 1 || !c.within():
		answer = cmis.AnswerBadValue
	case c.state() != cmis.ModuleReady:
		answer = cmis.AnswerLowPower
	case c.search:
		answer = cmis.AnswerCalibrating
	}
	c.pages[cmis.PageOCS][cmis.ApplyAnswer-128] = byte(answer)
	if answer == cmis.AnswerUnderWay {
		c.later(c.timing.Apply, mciApply, 0)
	}
}

// within reports whether no staged code asks for more than a heater may have.
func (c *mci) within() bool {
	for register := range c.staged {
		for _, code := range c.staged[register] {
			if !c.allows(code) {
				return false
			}
		}
	}
	return true
}

// command carries out what stands in the command data block.
func (c *mci) command() {
	p := c.pages[cmis.PageCDB]
	id, in, reading, err := cmis.ParseCDBCommand(p[:])
	status, reply := byte(cmis.CDBSuccess), p[cmis.CDBPayload-128:cmis.CDBPayload-128]
	switch {
	case err != nil:
		status = cmis.CDBBadCheckCode
	case id == cmis.CommandQueryStatus:
		reply = append(reply, 2, 0, 0)
	case id == cmis.CommandFeatures:
		reply = append(reply, make([]byte, 36)...)
		reply[2], reply[2+0x40/8] = 1<<0, 1<<0|byte(boolToInt(!c.timing.NoFirmware))<<1
		binary.BigEndian.PutUint16(reply[34:], uint16(c.timing.Command/time.Millisecond))
	case id >= cmis.CommandOwnInfo && c.own.has:
		reply, status = c.own.command(c, id, in)
		copy(p[cmis.CDBPayload-128:], reply)
	case !c.timing.NoFirmware:
		reply, status = c.upgrade(id, in)
		copy(p[cmis.CDBPayload-128:], reply)
	default:
		status = cmis.CDBUnknown
	}
	p[cmis.CDBReplyLength-128] = byte(len(reply))
	p[cmis.CDBReplyCheck-128] = cmis.CheckCode(reply, reading)
	c.lower[cmis.CDBStatus1] = status
	c.raise(0, 6)
}

// say fills a read from the address pointer on, and clears what is
// cleared by reading.
func (c *mci) say(r []byte) {
	low, high := false, false
	for i, at := 0, c.at; i < len(r); i, at = i+1, next(at) {
		low, high = low || at < 128, high || at >= 128
	}
	if low {
		c.refresh(0, true)
	}
	if high {
		c.refresh(c.page, false)
	}
	for i := range r {
		src := &c.lower[c.at&0x7F]
		if c.at >= 128 {
			src = &c.pages[c.page][c.at-128]
		}
		r[i] = *src
		if f, known := cmis.At(c.page, c.at); known && f.Access == cmis.COR {
			*src = 0
		}
		c.at = next(c.at)
	}
}
