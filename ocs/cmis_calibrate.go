package ocs

import (
	"encoding/binary"
	"fmt"
	"time"

	"ringlight/hal"
	"ringlight/hal/cmis"
	"ringlight/hal/ina219"
	"ringlight/mzi"
	"ringlight/mzi/detmath"
	"ringlight/ocs/heater"
	"ringlight/ocs/mci"
	"ringlight/ocs/work"
	"ringlight/proto"

	"periph.io/x/conn/v3/physic"
)

// mciSearch finds every cell of every module of a dark bundle through the
// modules' own interface: page B4h drives heaters and lanes and measures, the
// search is that of the chips. All modules are searched side by side; then the
// codes found go the way of any codes, and the timing is measured with them.
type mciSearch struct {
	searches
	d      *mciDrive
	before *Calibration
	probes []mciProbe
	left   int // modules still being searched
}

// mciProbe is one module's search.
type mciProbe struct {
	*mci.Module
	*search
	times cmis.Calibrating
	tries int
	over  bool
	state [cmis.CalibratingBytes]byte
	heats []cmis.Request // of the drive
	codes [2 * cmis.Cells]byte
	page  [128]byte
	warm  [2]byte
}

// begin begins a search from nothing.
func (d *mciDrive) begin(now time.Duration) error {
	s, err := d.trx.newSearches(now)
	if err != nil {
		return err
	}
	c := &mciSearch{searches: s, d: d, before: d.trx.cfg.Calibration, probes: make([]mciProbe, len(s.list)), left: len(s.list)}
	for i := range c.probes {
		c.probes[i].Module, c.probes[i].search = &d.set.Modules[i], s.list[i]
	}
	d.search = c
	d.trx.become(Calibrating)
	for i := range c.probes {
		c.enter(i)
	}
	return nil
}

// do asks a module requests that may be asked again.
func (c *mciSearch) do(i int, then func(now time.Duration) error, queue ...cmis.Request) {
	p := &c.probes[i]
	p.Ask(hal.ClassHousekeeping, func(now time.Duration, err error) {
		c.now = now
		if err != nil {
			if p.tries++; p.tries < work.MaxTries {
				p.Forget()
				c.do(i, then, queue...)
				return
			}
		} else {
			p.tries = 0
			err = then(now)
		}
		if err == nil {
			return
		}
		c.blame(i, err)
		if p.over { // it cannot even be told to stop
			c.ended(now)
			return
		}
		p.tries = 0
		c.leave(i)
	}, queue...)
}

// enter makes a module cold and dark, its diodes averaged, and takes note of
// the conditions.
func (c *mciSearch) enter(i int) {
	p := &c.probes[i]
	p.result = &ModuleCalibration{}
	if !p.Control.Staging {
		c.itself(i)
		return
	}
	p.heater.Cold() // as its controller makes it
	c.do(i, func(now time.Duration) (err error) {
		if err := cmis.CheckPage(cmis.PageAdmin, p.page[:]); err != nil {
			return err
		}
		if p.times, err = cmis.ParseCalibrating(p.state[:]); err != nil {
			return err
		}
		if !p.times.On || p.times.Answer != cmis.AnswerDone {
			return fmt.Errorf("%w: calibration: %v", mci.ErrState, p.times.Answer)
		}
		p.result.Serial = cmis.Text(p.page[166-128 : 182-128])
		p.result.CaseMillicelsius = cmis.MilliCelsius(p.warm[:])
		p.result.RailMillivolt = int32(binary.BigEndian.Uint16(p.r[:2]))
		c.next(now, i)
		return nil
	}, cmis.Request{Page: cmis.PageAdmin, Offset: 128, Data: p.page[:]},
		cmis.Request{Offset: cmis.Temperature, Data: p.warm[:]},
		cmis.Request{Write: true, Page: cmis.PageCalibrate, Offset: cmis.CalMode, Data: []byte{1}},
		cmis.Request{Page: cmis.PageCalibrate, Offset: cmis.CalMode, Data: p.state[:]},
		cmis.Request{Page: cmis.PageCalibrate, Offset: cmis.CalRail + 2, Data: p.r[:2]})
}

// itself has a module that keeps its heaters to itself find its codes. Of its cells
// nothing is known then but what their maker states.
func (c *mciSearch) itself(i int) {
	p := &c.probes[i]
	c.do(i, func(time.Duration) error {
		if err := cmis.CheckPage(cmis.PageAdmin, p.page[:]); err != nil {
			return err
		}
		p.result.Serial, p.result.CaseMillicelsius = cmis.Text(p.page[166-128:182-128]), cmis.MilliCelsius(p.warm[:])
		p.CalibrateItself(func(now time.Duration, light mci.OwnLight, err error) {
			if p.over = true; err != nil {
				c.blame(i, err)
			}
			o := c.d.trx.bundle.Modules[i].Optics()
			for k := range o.CellSpan() {
				p.result.Cells[k] = CellCalibration{PiMicrowatt: uint32(o.Heater.MostPiMicrowatt), MilliOhm: uint32(o.Heater.LeastOhm) * 1000}
			}
			for lane := range hal.Lanes {
				p.result.LaneLoop[lane] = levelOf(light[hal.LOSLoopback][lane])
				for e := range p.result.LaneTap {
					p.result.LaneTap[e][lane] = levelOf(light[hal.LOSExternal1+e][lane])
				}
			}
			p.result.BoardMillis = uint32((now - c.started) / time.Millisecond)
			c.ended(now)
		})
		return nil
	}, cmis.Request{Page: cmis.PageAdmin, Offset: 128, Data: p.page[:]}, cmis.Request{Offset: cmis.Temperature, Data: p.warm[:]})
}

// levelOf is a power that CMIS tells in tenths of a microwatt.
func levelOf(tenths uint16) proto.MilliDBm {
	return proto.MilliDBm(1000 * detmath.DB(max(float64(tenths), 0.1)/10_000))
}

// next lets the search say what it wants next.
func (c *mciSearch) next(now time.Duration, i int) {
	p := &c.probes[i]
	done, lasers := p.next()
	if done {
		c.leave(i)
		return
	}
	p.heats = p.heats[:0]
	if lasers {
		p.heats = append(p.heats, cmis.Request{Write: true, Page: cmis.PageCalibrate, Offset: cmis.CalLasers, Data: []byte{p.lasers}})
	}
	p.drives()
	if len(p.heats) == 0 {
		c.settle(now, i)
		return
	}
	c.driven(i, false)
}

// driven makes the writes of a drive and asks what came of them, once more where it is not
// done: a bit may flip on its way.
func (c *mciSearch) driven(i int, again bool) {
	p := &c.probes[i]
	ask := cmis.Request{Page: cmis.PageCalibrate, Offset: cmis.CalDriven, Data: p.state[:1]}
	if p.heats = append(p.heats, ask); again {
		p.heats = append(p.heats[:0], ask)
	}
	c.do(i, func(now time.Duration) error {
		switch a := cmis.Answer(p.state[0]); {
		case a == cmis.AnswerDone || len(p.drive.Set) == 0:
			c.settle(now, i)
		case again && a == cmis.AnswerNone:
			return fmt.Errorf("%w: drive: none, as after a reset: its supply may have dipped", mci.ErrState)
		case again:
			return fmt.Errorf("%w: drive: %v", mci.ErrState, a)
		default:
			c.driven(i, true)
		}
		return nil
	}, p.heats...)
}

// drives makes the writes of the heaters that change: one for each run of
// neighbours. The limits have their say as with any code.
func (p *mciProbe) drives() {
	for n, h := range p.drive.Set {
		b := p.codes[2*h.Cell : 2*h.Cell+2]
		binary.BigEndian.PutUint16(b, p.heater.Allow(h.Cell, 0, heater.Code(h.Voltage)).Code())
		if last := len(p.heats) - 1; n > 0 && p.drive.Set[n-1].Cell+1 == h.Cell {
			q := &p.heats[last]
			q.Data = p.codes[int(q.Offset-cmis.CalDrive) : 2*h.Cell+2]
			continue
		}
		p.heats = append(p.heats, cmis.Request{Write: true, Page: cmis.PageCalibrate, Offset: uint8(cmis.CalDrive + 2*h.Cell), Data: b})
	}
}

// settle waits until what is measured is of the drive alone.
func (c *mciSearch) settle(now time.Duration, i int) {
	p := &c.probes[i]
	after := p.times.Levels
	if p.drive.Read == mzi.ReadRail {
		after = p.times.Rail
	}
	p.Wait(now+p.settle+after, func(time.Duration) { c.measure(i) })
}

func (c *mciSearch) measure(i int) {
	p := &c.probes[i]
	at, n := uint8(cmis.CalLanes), 2*hal.Lanes
	switch p.drive.Read {
	case mzi.ReadLane:
		at, n = at+uint8(2*p.drive.Lane), 2
	case mzi.ReadTaps:
		at, n = cmis.CalTaps, 4
	case mzi.ReadAll:
		n += 4 // the taps come behind the lanes
	case mzi.ReadRail:
		at, n = cmis.CalRail, 2
	}
	c.do(i, func(now time.Duration) error {
		p.took()
		c.next(now, i)
		return nil
	}, cmis.Request{Page: cmis.PageCalibrate, Offset: at, Data: p.r[:n]})
}

// took turns what was read into what the search reckons with. Channels come as
// from an ADC, but big-endian.
func (p *mciProbe) took() {
	if p.drive.Read == mzi.ReadRail {
		p.sample.Current = physic.ElectricCurrent(ina219.Value(p.r[:2])) * cmis.CalRailStepMicroampere * microAmpere
		return
	}
	for k := 0; k < 2*hal.Lanes+4; k += 2 {
		p.r[k], p.r[k+1] = p.r[k+1], p.r[k]
	}
	p.block = p.r[:2*hal.Lanes+4]
	p.take()
}

// leave ends a module's search: dark, and with the codes of before.
func (c *mciSearch) leave(i int) {
	p := &c.probes[i]
	p.over = true
	c.do(i, func(now time.Duration) error {
		if p.state[0] != 0 {
			return fmt.Errorf("%w: calibration does not end", mci.ErrState)
		}
		if !p.failed {
			if err := p.finish(); err != nil {
				c.blame(i, err)
			}
		}
		p.result.BoardMillis = uint32((now - c.started) / time.Millisecond)
		c.ended(now)
		return nil
	}, cmis.Request{Write: true, Page: cmis.PageCalibrate, Offset: cmis.CalMode, Data: []byte{0}},
		cmis.Request{Page: cmis.PageCalibrate, Offset: cmis.CalMode, Data: p.state[:1]})
}

// ended goes on when every module's search is over.
func (c *mciSearch) ended(now time.Duration) {
	if c.left--; c.left > 0 {
		return
	}
	result := new(Calibration)
	for i := range c.probes {
		if c.failure != nil {
			break
		}
		m := c.probes[i].result
		if _, cuts := m.fit(&c.d.trx.bundle.Modules[i].Optics().Heater, m.codes()); cuts > 0 {
			c.d.trx.heat.limitErrors += cuts
			c.blame(i, hal.ErrOutOfRange)
		}
		result.Modules = append(result.Modules, m)
	}
	d := c.d
	if c.failure != nil {
		d.search = nil
		d.trx.become(Idle)
		d.trx.calibrationFailed(now, c.failure, c.of)
		for i := range c.probes {
			c.probes[i].Home()
		}
		return
	}
	d.trx.cfg.Calibration = result
	d.trx.Health.forgetMisrouted()
	d.trx.calibrated, d.trx.foundIt = now, false
	if d.compose(now) {
		d.set.Restage(now)
	}
}

func (d *mciDrive) progress() (p Progress, running bool) {
	c := d.search
	if c == nil {
		return p, false
	}
	p = c.searches.progress("timing", true, func(i int) bool { return c.probes[i].over })
	p.Done = len(c.probes) - c.left
	return p, true
}
