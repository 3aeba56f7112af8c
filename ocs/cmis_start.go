package ocs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"ringlight/hal"
	"ringlight/hal/cmis"
	"ringlight/ocs/stored"
	"ringlight/proto"
)

// Errors of modules that answer but not as they must.
var (
	ErrModuleState = errors.New("module does not reach the state asked for")
	ErrModuleKind  = errors.New("module is not what the board says")
)

// Patience with what a module does by itself. It advertises how long it takes;
// Apply has no advertisement.
const (
	mciAsk   = 5 * time.Millisecond   // between two looks at a state. chosen
	mciApply = 500 * time.Millisecond // chosen: fifty times the longest write
)

// start brings every module up, side by side, and adopts what is right.
func (d *mciDrive) start(now time.Duration) {
	t := d.t
	*d = *newMCIDrive(t)
	if c := t.cfg.Calibration; c != nil && len(c.Modules) != len(d.mods) {
		t.fault(now, -1, stored.ErrMismatch)
		return
	}
	if t.cfg.Calibration != nil {
		var err error
		if t.force, err = composeCodes(t.cfg.Calibration.Modules, t.Lanes(), true); err != nil {
			t.fault(now, -1, err)
			return
		}
	}
	d.left = len(d.mods)
	for i := range d.mods {
		d.bringUp(t, i)
	}
}

// ask is one step of a bring-up: requests, then what to do with them. What
// fails is tried again from the beginning.
func (d *mciDrive) ask(t *Transceiver, i int, then func(now time.Duration) error, queue ...cmis.Request) {
	m := &d.mods[i]
	m.run(hal.ClassSafety, func(now time.Duration, err error) {
		if err == nil {
			err = then(now)
		}
		d.retry(t, now, i, err)
	}, queue...)
}

func (d *mciDrive) retry(t *Transceiver, now time.Duration, i int, err error) {
	m := &d.mods[i]
	switch {
	case err == nil || t.state == Faulted:
	case errors.Is(err, ErrCalibrationForeign), errors.Is(err, cmis.ErrNotOCSTrx), errors.Is(err, hal.ErrOutOfRange):
		t.fault(now, i, &ModuleError{Module: i, Err: err})
	default:
		if m.tries++; m.tries < maxTries {
			m.port.Forget()
			m.port.Cache.Clear()
			d.bringUp(t, i)
			return
		}
		t.fault(now, i, &ModuleError{Module: i, Err: err})
	}
}

// bringUp identifies a module and powers it up.
func (d *mciDrive) bringUp(t *Transceiver, i int) {
	m := &d.mods[i]
	d.ask(t, i, func(now time.Duration) error {
		if m.head[0] != 0x18 && m.head[0] != 0x19 {
			return fmt.Errorf("%w: identifier %02xh", ErrModuleKind, m.head[0])
		}
		advert, err := cmis.ParseAdvert(m.page[:])
		if err != nil {
			return err
		}
		m.advert, m.port.Limits = advert, advert.Limits
		// A trigger may have to wait for one read: none is longer than those that
		// the timing was measured with.
		m.port.Limits.Read = min(advert.Read, len(m.service))
		d.identify(t, i)
		return nil
	}, cmis.Request{Offset: cmis.Identifier, Data: m.head[:4]}, cmis.Request{Page: cmis.PageAdvertise, Offset: 128, Data: m.page[:]})
}

func (d *mciDrive) identify(t *Transceiver, i int) {
	m := &d.mods[i]
	control := make([]byte, 12)
	d.ask(t, i, func(now time.Duration) error {
		if err := cmis.CheckPage(cmis.PageAdmin, m.page[:]); err != nil {
			return err
		}
		var err error
		if m.control, err = cmis.ParseControl(control); err != nil {
			return err
		}
		if !m.control.Trigger || !m.control.Staging {
			return fmt.Errorf("%w: it has no trigger or no staging", cmis.ErrNotOCSTrx)
		}
		if c := t.cfg.Calibration; c != nil {
			if serial, want := cmis.Text(m.page[166-128:182-128]), c.Modules[i].Serial; serial != want {
				return fmt.Errorf("%w: it is %q, calibrated is %q", ErrCalibrationForeign, serial, want)
			}
		}
		m.limit = 0
		if m.control.Calibration {
			d.leaveSearch(t, i)
		} else {
			d.powerUp(t, i)
		}
		return nil
	}, cmis.Request{Page: cmis.PageAdmin, Offset: 128, Data: m.page[:]}, cmis.Request{Page: cmis.PageOCS, Offset: 128, Data: control})
}

// powerUp asks for ModuleReady and waits for it.
func (d *mciDrive) powerUp(t *Transceiver, i int) {
	m := &d.mods[i]
	d.ask(t, i, func(now time.Duration) error {
		switch s := cmis.ModuleStateOf(m.head[0]); {
		case s == cmis.ModuleReady:
			d.readCodes(t, i)
		case m.limit != 0 && now >= m.limit:
			return fmt.Errorf("%w: %v, not ModuleReady", ErrModuleState, s)
		case s == cmis.ModuleLowPwr && m.limit == 0:
			m.limit = now + m.advert.PowerUp + mciAsk
			d.ask(t, i, func(time.Duration) error { d.powerUp(t, i); return nil },
				cmis.Request{Write: true, Offset: cmis.ModuleControl, Data: []byte{cmis.LowPwrAllowHW}})
		default:
			if m.limit == 0 {
				m.limit = now + m.advert.PowerUp + mciAsk
			}
			m.pause(now+mciAsk, func(time.Duration, error) { d.powerUp(t, i) })
		}
		return nil
	}, cmis.Request{Offset: cmis.StateByte, Data: m.head[:1]})
}

// readCodes reads what the module does and what it would do.
func (d *mciDrive) readCodes(t *Transceiver, i int) {
	m := &d.mods[i]
	d.ask(t, i, func(now time.Duration) error {
		var err error
		if m.status, err = cmis.ParseStatus(m.raw[:]); err != nil {
			return err
		}
		if t.cfg.Calibration == nil {
			d.initPath(t, i)
			return nil
		}
		right := m.status.Applied && d.codesRight(t, i)
		switch {
		case right:
			d.initPath(t, i)
		case m.staged:
			return ErrCodeReadBack
		case pathOfTrigger(m.status.InForce) != proto.Dark:
			d.differ = true // it carries light with other codes than ours: fail static
			d.initPath(t, i)
		default:
			return d.stage(t, i)
		}
		return nil
	}, cmis.Request{Offset: cmis.Trigger, Data: m.raw[:]},
		cmis.Request{Page: cmis.PageCodesA, Offset: 128, Data: m.codes[0][:]}, cmis.Request{Page: cmis.PageCodesB, Offset: 128, Data: m.codes[1][:]})
}

func (d *mciDrive) codesRight(t *Transceiver, i int) bool {
	m, c := &d.mods[i], t.cfg.Calibration.Modules[i]
	want, cuts := c.allowed(t.codes(i))
	if cuts > 0 {
		return false
	}
	for register := range m.codes {
		for k := range hal.CellsPerMod {
			if binary.BigEndian.Uint16(m.codes[register][2*k:]) != want.Code(k, register) {
				return false
			}
		}
	}
	return true
}

// stage writes the codes of all paths.
func (d *mciDrive) stage(t *Transceiver, i int) error {
	m := &d.mods[i]
	codes, cuts := t.cfg.Calibration.Modules[i].allowed(t.codes(i))
	putCodes(&m.codes, codes)
	if cuts > 0 {
		t.limitErrors += cuts
		return hal.ErrOutOfRange
	}
	if t.state == Reading {
		t.become(Staging)
	}
	m.staged = true
	m.limit = 0
	d.ask(t, i, func(time.Duration) error { d.applied(t, i); return nil },
		cmis.Request{Write: true, Page: cmis.PageCodesA, Offset: 128, Data: m.codes[0][:]},
		cmis.Request{Write: true, Page: cmis.PageCodesB, Offset: 128, Data: m.codes[1][:]},
		cmis.Request{Write: true, Page: cmis.PageOCS, Offset: cmis.Apply, Data: []byte{1}})
	return nil
}

// applied waits for the codes to be in force, and reads them back.
func (d *mciDrive) applied(t *Transceiver, i int) {
	m := &d.mods[i]
	d.ask(t, i, func(now time.Duration) error {
		if m.limit == 0 {
			m.limit = now + mciApply
		}
		switch a := cmis.Answer(m.head[0]); {
		case a == cmis.AnswerDone:
			d.readCodes(t, i)
		case a == cmis.AnswerUnderWay && now < m.limit:
			m.pause(now+mciAsk, func(time.Duration, error) { d.applied(t, i) })
		default:
			return fmt.Errorf("%w: codes: %v", ErrModuleState, a)
		}
		return nil
	}, cmis.Request{Page: cmis.PageOCS, Offset: cmis.ApplyAnswer, Data: m.head[:1]})
}

// initPath brings the data paths to where lasers may be turned on.
func (d *mciDrive) initPath(t *Transceiver, i int) {
	m := &d.mods[i]
	m.limit = 0
	d.pathState(t, i)
}

func (d *mciDrive) pathState(t *Transceiver, i int) {
	m := &d.mods[i]
	d.ask(t, i, func(now time.Duration) error {
		down, ready := byte(0), 0
		for lane := range hal.Lanes {
			switch cmis.DataPathState(cmis.Nibble(m.head[:4], lane)) {
			case cmis.DPDeactivated:
				down |= 1 << lane
			case cmis.DPInitialized, cmis.DPActivated:
				ready++
			}
		}
		switch {
		case ready == hal.Lanes:
			d.arm(t, i)
		case down != 0 && m.limit == 0:
			m.limit = now + m.advert.DPInit + mciAsk
			d.ask(t, i, func(time.Duration) error { d.pathState(t, i); return nil },
				cmis.Request{Write: true, Page: cmis.PageLaneControl, Offset: cmis.StagedSet, Data: []byte{0x10, 0x10, 0x10, 0x10, 0x10, 0x10, 0x10, 0x10}},
				cmis.Request{Write: true, Page: cmis.PageLaneControl, Offset: cmis.ApplyDPInit, Data: []byte{down}})
		case m.limit != 0 && now >= m.limit:
			return fmt.Errorf("%w: data paths % x", ErrModuleState, m.head[:4])
		default:
			if m.limit == 0 {
				m.limit = now + m.advert.DPInit + mciAsk
			}
			m.pause(now+mciAsk, func(time.Duration, error) { d.pathState(t, i) })
		}
		return nil
	}, cmis.Request{Page: cmis.PageLaneStatus, Offset: cmis.DPStates, Data: m.head[:4]})
}

// arm leaves a module on the service page, where it stays.
func (d *mciDrive) arm(t *Transceiver, i int) {
	m := &d.mods[i]
	m.reads = [2]cmis.Request{{Offset: cmis.Trigger, Data: m.raw[:]}, m.levels(proto.External1)}
	d.ask(t, i, func(now time.Duration) error {
		if d.left--; d.left == 0 {
			d.found(t, now)
		}
		return nil
	}, m.reads[1])
}

// found adopts the path that the modules are on.
func (d *mciDrive) found(t *Transceiver, now time.Duration) {
	d.latency, d.settle, d.longest = 0, settleTime, 0
	d.fired = d.mods[0].status.InForce
	agree := true
	for i := range d.mods {
		m := &d.mods[i]
		m.lone[0], m.tries = d.fired, 0 // who missed it is given it by the look that follows
		d.latency, d.settle = max(d.latency, m.control.TriggerMax), max(d.settle, m.control.SettleMax)
		agree = agree && pathOfTrigger(m.status.InForce) == pathOfTrigger(d.fired)
	}
	if d.cal != nil { // of what a search has found
		d.trials = mciTrials{step: mciTrialRest, at: now}
		return
	}
	t.path = pathOfTrigger(d.fired)
	t.target, t.since = t.path, now
	t.port = proto.Blocked
	if t.path != proto.Dark {
		t.port = proto.Tuning
		t.settleLight()
	}
	t.become(Idle)
	e := Event{Kind: Ready, At: now, Path: t.path, Module: None, Cell: None, Lane: None}
	if t.cfg.Calibration == nil {
		e.Err = ErrNotCalibrated
	}
	t.emit(e)
	if d.differ {
		t.emit(Event{Kind: Degraded, At: now, Path: t.path, Module: None, Cell: None, Lane: None, Err: ErrCodeReadBack,
			Text: "codes differ from the calibration; not touched while they carry light"})
	}
	if !agree {
		t.emit(Event{Kind: Degraded, At: now, Path: t.path, Module: None, Cell: None, Lane: None, Err: ErrModuleState,
			Text: "modules are on different paths"})
	}
	if t.path != proto.Dark {
		t.startVerify(now)
	}
}
