package ocs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"ringlight/hal"
	"ringlight/hal/cmis"
	"ringlight/mzi"
	"ringlight/ocs/heater"
	"ringlight/proto"
)

// mciLanes changes the permutation that the loopback of CMIS modules makes, by
// page 1Dh: the codes for it are staged, and the commit brings both about.
//
//	laneIdle -> laneStage -> laneBreak -> laneFire -> laneIdle
//	                                         `-> laneUndo -> laneIdle
//
// Here laneStage waits until nobody reads the modules, laneBreak until the
// loopback is dark, if it was lit, and laneFire and laneUndo until every module
// has committed. Unlike with chips the codes cannot be staged beside those in
// force while light is on the way: what is staged and not applied, no trigger
// lights.
type mciLanes struct {
	step  laneStep
	asked time.Duration
	perm  mzi.Permutation
	codes []*heater.Codes
	want  bool // the light is to be set again at the end
	left  int
	err   error
	mods  []mciLane
}

// mciLane is one module's part.
type mciLane struct {
	codes  [2][2 * hal.CellsPerMod]byte
	back   [2][2 * hal.CellsPerMod]byte
	result [2 * hal.Lanes]byte
	tries  int
	limit  time.Duration
}

// ErrLanesRefused is a module that does not commit a redirection.
var ErrLanesRefused = errors.New("module refuses the redirection of its lanes")

// setLanes begins a redirection.
func (d *mciDrive) setLanes(now time.Duration, p mzi.Permutation) error {
	t := d.t
	if d.lanes.step != laneIdle || d.dump != nil {
		return ErrNotReady
	}
	for i := range d.mods {
		if !d.mods[i].advert.LaneSwitch {
			return &ModuleError{Module: i, Err: fmt.Errorf("it does not redirect lanes: %w", hal.ErrUnsupported)}
		}
	}
	codes, err := composeCodes(t.cfg.Calibration.Modules, p, true)
	if err != nil {
		return err
	}
	d.lanes = mciLanes{step: laneStage, asked: now, perm: p, codes: codes, mods: make([]mciLane, len(d.mods))}
	return nil
}

// due goes on as soon as it may.
func (l *mciLanes) due(t *Transceiver, now time.Duration) {
	switch d := t.mci(); {
	case l.step == laneStage && t.verify.out == 0 && !t.sw.busy():
		t.sw.held = true // nobody reads, verifies or asks for rounds until the end
		l.step = laneBreak
		if t.path == proto.Loopback {
			l.want = true
			d.send(t, now, triggerOf(proto.Dark, d.fired))
			return
		}
		l.redirect(t, laneFire)
	case l.step == laneBreak && !t.sw.settling && !t.sw.want && t.sw.out == 0:
		l.redirect(t, laneFire)
	}
}

// redirect commits the new codes and permutation in every module, or, to undo,
// those in force.
func (l *mciLanes) redirect(t *Transceiver, step laneStep) {
	l.step, l.left = step, len(l.mods)
	perm := l.perm
	if step == laneUndo {
		perm = t.Lanes()
	}
	var to [cmis.Lanes]uint8
	for lane, at := range perm {
		to[lane] = uint8(at)
	}
	for i := range l.mods {
		c := &t.cfg.Calibration.Modules[i].Codes
		switch {
		case step == laneUndo:
			c = t.codes(i)
		case l.codes[i] != nil:
			c = l.codes[i]
		}
		m := &l.mods[i]
		m.tries = 0
		putCodes(&m.codes, t.allowed(i, c))
		l.commit(t, i, to)
	}
}

// putCodes is the form of codes on their pages.
func putCodes(pages *[2][2 * hal.CellsPerMod]byte, codes *heater.Allowed) {
	for register := range pages {
		for k := range hal.CellsPerMod {
			binary.BigEndian.PutUint16(pages[register][2*k:], codes.Code(k, register))
		}
	}
}

// do asks a module; what fails is done again from its staging on.
func (l *mciLanes) do(t *Transceiver, i int, to [cmis.Lanes]uint8, then func(now time.Duration) error, queue ...cmis.Request) {
	t.mci().mods[i].run(hal.ClassSafety, func(now time.Duration, err error) {
		if err == nil {
			err = then(now)
		}
		if err == nil {
			return
		}
		m := &l.mods[i]
		if m.tries++; m.tries < maxTries && !errors.Is(err, ErrLanesRefused) {
			t.mci().mods[i].port.Forget()
			l.commit(t, i, to)
			return
		}
		if l.err == nil || l.step == laneUndo {
			l.err = &ModuleError{Module: i, Err: err}
		}
		m.tries = maxTries
		l.done(t, now)
	}, queue...)
}

func (l *mciLanes) commit(t *Transceiver, i int, to [cmis.Lanes]uint8) {
	m := &l.mods[i]
	requests, err := cmis.RedirectionRequests(to)
	if err != nil {
		panic("ocs: lanes are no permutation: " + err.Error())
	}
	queue := []cmis.Request{
		{Write: true, Page: cmis.PageCodesA, Offset: 128, Data: m.codes[0][:]},
		{Write: true, Page: cmis.PageCodesB, Offset: 128, Data: m.codes[1][:]},
	}
	for _, q := range requests {
		if q.Write {
			queue = append(queue, q)
		}
	}
	m.limit = 0
	l.do(t, i, to, func(time.Duration) error { l.look(t, i, to); return nil }, queue...)
}

// look waits for the results, and reads codes and lanes back.
func (l *mciLanes) look(t *Transceiver, i int, to [cmis.Lanes]uint8) {
	m := &l.mods[i]
	l.do(t, i, to, func(now time.Duration) error {
		if m.limit == 0 {
			m.limit = now + mciApply
		}
		pending := false
		for lane := range to {
			switch result := m.result[lane]; {
			case result == cmis.RedirectionRejected:
				return fmt.Errorf("%w: lane %d", ErrLanesRefused, lane)
			case result != cmis.RedirectionSuccess:
				pending = true
			}
		}
		switch {
		case pending && now >= m.limit:
			return fmt.Errorf("%w: no result after %v", ErrModuleState, mciApply)
		case pending:
			t.mci().mods[i].pause(now+mciAsk, func(time.Duration, error) { l.look(t, i, to) })
			return nil
		case [cmis.Lanes]uint8(m.result[hal.Lanes:]) != to:
			return fmt.Errorf("%w: lanes % d", ErrModuleState, m.result[hal.Lanes:])
		}
		l.readBack(t, i, to)
		return nil
	}, cmis.Request{Page: cmis.PageLaneSwitch, Offset: cmis.RedirectionResult, Data: m.result[:hal.Lanes]},
		cmis.Request{Page: cmis.PageLaneSwitch, Offset: cmis.CommittedRedirection, Data: m.result[hal.Lanes:]})
}

func (l *mciLanes) readBack(t *Transceiver, i int, to [cmis.Lanes]uint8) {
	m := &l.mods[i]
	l.do(t, i, to, func(now time.Duration) error {
		if m.back != m.codes {
			return ErrCodeReadBack
		}
		l.done(t, now)
		return nil
	}, cmis.Request{Page: cmis.PageCodesA, Offset: 128, Data: m.back[0][:]},
		cmis.Request{Page: cmis.PageCodesB, Offset: 128, Data: m.back[1][:]},
		t.mci().mods[i].levels(proto.External1)) // and back on the service page
}

// done ends the change when every module is through.
func (l *mciLanes) done(t *Transceiver, now time.Duration) {
	if l.left--; l.left > 0 {
		return
	}
	d := t.mci()
	failed := false
	for i := range l.mods {
		failed = failed || l.mods[i].tries == maxTries
	}
	switch {
	case failed && l.step == laneUndo:
		err := l.err
		d.lanes = mciLanes{}
		t.fault(now, err.(*ModuleError).Module, err) // nobody knows what that module would do next
		return
	case failed:
		l.redirect(t, laneUndo)
		return
	}
	undone, err, want, asked := l.step == laneUndo, l.err, l.want, l.asked
	if !undone {
		t.force, t.cfg.Lanes = l.codes, l.perm
	}
	d.lanes = mciLanes{}
	t.sw.held = false
	if want {
		d.send(t, now, triggerOf(t.target, d.fired))
		t.sw.asked = asked
	}
	if undone {
		t.emit(Event{Kind: Degraded, At: now, Path: t.path, Module: None, Cell: None, Lane: None, Err: err,
			Measured: proto.NoPower, Expected: proto.NoPower, Text: "lanes are what they were: " + err.Error()})
		return
	}
	t.emit(Event{Kind: LanesSet, At: now, Path: t.path, Asked: asked, Module: None, Cell: None, Lane: None})
}
