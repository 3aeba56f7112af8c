package mci

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"ringlight/hal"
	"ringlight/hal/cmis"
	"ringlight/ocs/heater"
	"ringlight/ocs/work"
	"ringlight/proto"

	"periph.io/x/conn/v3/physic"
)

// Errors of modules that answer but not as they must.
var (
	ErrState = errors.New("module does not reach the state asked for")
	ErrKind  = errors.New("module is not what the board says")
)

// Patience with what a module does by itself. It advertises how long it takes;
// Apply has no advertisement.
const (
	askAgain    = 5 * time.Millisecond   // between two looks at a state. chosen
	applyAtMost = 500 * time.Millisecond // chosen: fifty times the longest write
)

// pages are both pages of codes, A and B.
type pages [2][2 * cmis.Cells]byte

// put fills the pages with a module's codes, in the form that the module reads.
func (p *pages) put(hw *hal.Module, codes *heater.Allowed) {
	for register := range p {
		for k := range cmis.Cells {
			binary.BigEndian.PutUint16(p[register][2*k:], codes.Code(hw, k, register))
		}
	}
}

// requests write the pages, or read them.
func (p *pages) requests(write bool) [2]cmis.Request {
	return [2]cmis.Request{{Write: write, Page: cmis.PageCodesA, Offset: 128, Data: p[0][:]}, {Write: write, Page: cmis.PageCodesB, Offset: 128, Data: p[1][:]}}
}

// BringUp brings every module up, side by side, and adopts what is right. up
// follows when all are armed, down when one cannot be.
func (s *Set) BringUp(up func(now time.Duration), down func(now time.Duration, module int, err error)) {
	s.up, s.down = up, down
	s.left = len(s.Modules)
	for i := range s.Modules {
		s.Modules[i].bringUp()
	}
}

// Restage brings new codes to modules that are up; up and down follow as before.
func (s *Set) Restage(now time.Duration) {
	s.left = len(s.Modules)
	for i := range s.Modules {
		m := &s.Modules[i]
		m.staged, m.tries = false, 0
		m.retry(now, m.stage())
	}
}

// step is one of a bring-up: requests, then what to do with them. What fails is
// tried again from the beginning.
func (m *Module) step(then func(now time.Duration) error, queue ...cmis.Request) {
	m.Ask(hal.ClassSafety, func(now time.Duration, err error) {
		if err == nil {
			err = then(now)
		}
		m.retry(now, err)
	}, queue...)
}

// refusal is an error that another try does not mend.
type refusal struct{ error }

func (e refusal) Unwrap() error { return e.error }

func (m *Module) retry(now time.Duration, err error) {
	if err == nil || m.set.halted {
		return
	}
	var no refusal
	final := errors.As(err, &no) || errors.Is(err, hal.ErrOutOfRange) // a page B0h of no OCSTrx is not: without a sum a bit may have flipped
	if final {
		m.set.down(now, m.index, err)
	} else if m.tries++; m.tries < work.MaxTries {
		m.port.Forget()
		m.port.Cache.Clear()
		m.bringUp()
	} else {
		m.set.down(now, m.index, err)
	}
}

// bringUp identifies a module and powers it up.
func (m *Module) bringUp() {
	m.step(func(now time.Duration) error {
		if m.head[0] != 0x18 && m.head[0] != 0x19 {
			return fmt.Errorf("%w: identifier %02xh", ErrKind, m.head[0])
		}
		if most := physic.Frequency(cmis.MaxHertz(m.head[cmis.Management])) * physic.Hertz; m.clock > most {
			return refusal{fmt.Errorf("%w: it takes %v at most, its bus runs at %v", ErrKind, most, m.clock)}
		}
		advert, err := cmis.ParseAdvert(m.page[:])
		if err != nil {
			return err
		}
		m.Advert, m.port.Limits = advert, advert.Limits
		// A trigger may have to wait for one read: none is longer than those that
		// the timing was measured with.
		m.port.Limits.Read = min(advert.Read, len(m.service))
		m.identify()
		return nil
	}, cmis.Request{Offset: cmis.Identifier, Data: m.head[:4]}, cmis.Request{Page: cmis.PageAdvertise, Offset: 128, Data: m.page[:]})
}

func (m *Module) identify() {
	control := make([]byte, 12)
	m.step(func(now time.Duration) error {
		if err := cmis.CheckPage(cmis.PageAdmin, m.page[:]); err != nil {
			return err
		}
		var err error
		if m.Control, err = cmis.ParseControl(control); err != nil {
			return err
		}
		if !m.Control.Trigger || !m.Control.Staging && !m.Control.Own {
			return fmt.Errorf("%w: it has no trigger, or neither staging nor codes of its own", cmis.ErrNotOCSTrx)
		}
		if err := m.set.owner.Known(m.index, cmis.Text(m.page[166-128:182-128])); err != nil {
			return refusal{err}
		}
		m.limit = 0
		if m.Control.Calibration {
			m.leaveSearch()
		} else {
			m.powerUp()
		}
		return nil
	}, cmis.Request{Page: cmis.PageAdmin, Offset: 128, Data: m.page[:]}, cmis.Request{Page: cmis.PageOCS, Offset: 128, Data: control})
}

// leaveSearch ends the search of an earlier life, before anything else.
func (m *Module) leaveSearch() {
	m.step(func(time.Duration) error {
		if m.head[0] == 0 {
			m.powerUp()
			return nil
		}
		m.step(func(time.Duration) error { m.powerUp(); return nil },
			cmis.Request{Write: true, Page: cmis.PageCalibrate, Offset: cmis.CalMode, Data: []byte{0}})
		return nil
	}, cmis.Request{Page: cmis.PageCalibrate, Offset: cmis.CalMode, Data: m.head[:1]})
}

// patience begins the wait for what takes a module so long, if it has not begun.
func (m *Module) patience(now, takes time.Duration) {
	if m.limit == 0 {
		m.limit = now + takes
	}
}

// later asks again soon, or ends the wait with the reason.
func (m *Module) later(now time.Duration, again func(), why error) error {
	if now >= m.limit {
		return why
	}
	m.Wait(now+askAgain, func(time.Duration) { again() })
	return nil
}

// powerUp asks for ModuleReady and waits for it.
func (m *Module) powerUp() {
	m.step(func(now time.Duration) error {
		fresh := m.limit == 0
		m.patience(now, m.Advert.PowerUp+askAgain)
		switch s := cmis.ModuleStateOf(m.head[0]); {
		case s == cmis.ModuleReady:
			m.readCodes()
		case s == cmis.ModuleLowPwr && fresh:
			// Dark first, or it shines on its default path; and up, whatever the board's LPMode line says.
			m.step(func(time.Duration) error { m.powerUp(); return nil }, cmis.Request{Write: true, Offset: cmis.Trigger, Data: []byte{cmis.TriggerValid}},
				cmis.Request{Write: true, Offset: cmis.ModuleControl, Data: []byte{0}})
		default:
			return m.later(now, m.powerUp, fmt.Errorf("%w: %v, not ModuleReady", ErrState, s))
		}
		return nil
	}, cmis.Request{Offset: cmis.StateByte, Data: m.head[:1]})
}

// readCodes reads what the module does and what it would do.
func (m *Module) readCodes() {
	queue := []cmis.Request{{Offset: cmis.Trigger, Data: m.raw[:]}}
	if m.Control.Staging {
		read := m.codes.requests(false)
		queue = append(queue, read[:]...)
	}
	m.step(func(now time.Duration) error {
		var err error
		if m.Status, err = cmis.ParseStatus(m.raw[:]); err != nil {
			return err
		}
		codes, whole := m.set.owner.Codes(m.index)
		var want pages
		if codes != nil {
			want.put(m.hw, codes)
		}
		switch {
		case codes == nil, m.Status.Applied && whole && (m.codes == want || !m.Control.Staging):
		case m.staged:
			return heater.ErrReadBack
		case pathOf(m.Status.InForce) != proto.Dark:
			m.set.differ = true // it carries light with other codes than ours: fail static
		default:
			return m.stage()
		}
		m.limit, m.asked = 0, 0
		m.initPath()
		return nil
	}, queue...)
}

// stage writes the codes of all paths.
func (m *Module) stage() error {
	if err := m.set.owner.Stage(m.index); err != nil {
		return err
	}
	m.staged = true
	m.limit = 0
	if !m.Control.Staging {
		m.command(cmis.CommandOwnStage, nil, 0, 0, func(now time.Duration, _ []byte, err error) {
			if m.retry(now, err); err == nil {
				m.readCodes()
			}
		})
		return nil
	}
	codes, _ := m.set.owner.Codes(m.index)
	m.codes.put(m.hw, codes)
	write := m.codes.requests(true)
	m.step(func(time.Duration) error { m.applied(); return nil }, write[0], write[1],
		cmis.Request{Write: true, Page: cmis.PageOCS, Offset: cmis.Apply, Data: []byte{1}})
	return nil
}

// applied waits for the codes to be in force, and reads them back.
func (m *Module) applied() {
	m.step(func(now time.Duration) error {
		m.patience(now, applyAtMost)
		a := cmis.Answer(m.head[0])
		wrong := fmt.Errorf("%w: codes: %v", ErrState, a)
		switch a {
		case cmis.AnswerDone:
			m.readCodes()
			return nil
		case cmis.AnswerUnderWay:
			return m.later(now, m.applied, wrong)
		}
		return wrong
	}, cmis.Request{Page: cmis.PageOCS, Offset: cmis.ApplyAnswer, Data: m.head[:1]})
}

// ask is what a life has asked of a module's data paths: each at most once.
type ask uint8

const (
	askDown ask = 1 << iota // all lanes down, because only some are
	askUp                   // an application on all lanes, and their outputs
)

// once reports whether something has not been asked yet, and takes it as asked;
// the wait begins anew.
func (m *Module) once(a ask) bool {
	if m.asked&a != 0 {
		return false
	}
	m.asked |= a
	m.limit = 0
	return true
}

// initPath waits for every lane's data path to be activated, from where lasers
// may be turned on. A module that comes up does so by itself; what another host
// has left otherwise is set right.
func (m *Module) initPath() {
	m.step(func(now time.Duration) error {
		down, up, moving := 0, 0, 0
		for lane := range hal.Lanes {
			switch cmis.DataPathState(cmis.Nibble(m.head[:4], lane)) {
			case cmis.DPDeactivated:
				down++
			case cmis.DPActivated:
				up++
			case cmis.DPInitialized: // its output is disabled
			default:
				moving++
			}
		}
		m.patience(now, m.Advert.DPInit+m.Advert.DPDeinit+m.Advert.TurnOn+askAgain)
		again := func(time.Duration) error { m.initPath(); return nil }
		control := func(offset uint8, v ...byte) cmis.Request {
			return cmis.Request{Write: true, Page: cmis.PageLaneControl, Offset: offset, Data: v}
		}
		switch {
		case up == hal.Lanes:
			m.arm()
		case moving == 0 && down == hal.Lanes && m.once(askUp):
			// Provisioned while they are held down, as a host's order of things is.
			all := byte(1 << 4) // the first application, one data path of all lanes
			m.step(func(time.Duration) error { m.provisioned(); return nil }, control(cmis.DPDeinit, 0xFF),
				control(cmis.StagedSet, all, all, all, all, all, all, all, all), control(cmis.ApplyDPInit, 0xFF))
		case moving == 0 && down > 0 && m.once(askDown):
			m.step(again, control(cmis.DPDeinit, 0xFF))
		case moving == 0 && down == 0 && m.once(askUp):
			m.step(again, control(cmis.OutputDisableTx, 0))
		default:
			return m.later(now, m.initPath, fmt.Errorf("%w: data paths % x", ErrState, m.head[:4]))
		}
		return nil
	}, cmis.Request{Page: cmis.PageLaneStatus, Offset: cmis.DPStates, Data: m.head[:4]})
}

// provisioned looks at what came of an application for all lanes, and lets their
// data paths come up.
func (m *Module) provisioned() {
	m.step(func(now time.Duration) error {
		m.patience(now, applyAtMost)
		for lane := range hal.Lanes {
			switch s := cmis.ConfigStatus(cmis.Nibble(m.head[:4], lane)); s {
			case cmis.ConfigSuccess:
			case cmis.ConfigInProgress:
				return m.later(now, m.provisioned, fmt.Errorf("%w: lane %d: configuration: %v", ErrState, lane, s))
			default:
				return fmt.Errorf("%w: lane %d: configuration: %v", ErrState, lane, s)
			}
		}
		m.limit = 0
		m.step(func(time.Duration) error { m.initPath(); return nil },
			cmis.Request{Write: true, Page: cmis.PageLaneControl, Offset: cmis.OutputDisableTx, Data: []byte{0}},
			cmis.Request{Write: true, Page: cmis.PageLaneControl, Offset: cmis.DPDeinit, Data: []byte{0}})
		return nil
	}, cmis.Request{Page: cmis.PageLaneStatus, Offset: cmis.ConfigStatuses, Data: m.head[:4]})
}

// arm leaves a module on the service page, where it stays.
func (m *Module) arm() {
	m.reads = [2]cmis.Request{{Offset: cmis.Trigger, Data: m.raw[:]}, m.levels(proto.External1)}
	m.step(func(now time.Duration) error {
		if m.set.left--; m.set.left == 0 {
			m.set.armed()
			m.set.up(now)
		}
		return nil
	}, m.reads[1])
}

// armed takes the first module's behaviour for that of all; one that differs
// is given it by the look that follows.
func (s *Set) armed() {
	s.Longest, s.latency, s.settle = 0, 0, s.least
	s.fired = s.Modules[0].Status.InForce
	for i := range s.Modules {
		m := &s.Modules[i]
		m.trigger[0], m.tries = s.fired, 0
		s.latency, s.settle = max(s.latency, m.Control.TriggerMax), max(s.settle, m.Control.SettleMax)
	}
}

// Found is the path that the modules are on; agree: all of them, differ: some
// with other codes than they should.
func (s *Set) Found() (p proto.Path, agree, differ bool) {
	p, agree = pathOf(s.fired), true
	for i := range s.Modules {
		agree = agree && pathOf(s.Modules[i].Status.InForce) == p
	}
	return p, agree, s.differ
}
