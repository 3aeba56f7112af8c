package ocs

import (
	"errors"
	"fmt"
	"time"

	"ringlight/hal"
	"ringlight/hal/ina219"
	"ringlight/mzi"
	"ringlight/mzi/detmath"
	"ringlight/ocs/diode"
	"ringlight/ocs/heater"
	"ringlight/proto"

	"periph.io/x/conn/v3/physic"
)

// search is that of one module from nothing: what is to be measured next, and what
// has been found. How heaters and lasers get there, and how the light is read, is
// for a drive.
type search struct {
	algo   *mzi.Search
	module int
	heater *heater.Driver
	known  [hal.CellsPerMod]uint32 // milliohm of the heaters, as its driver has been told
	drive  *mzi.Drive
	settle time.Duration
	lasers uint8
	sample mzi.Sample
	optics *hal.Optics
	r      [hal.IdentityBytes + 8]byte // what was read
	block  []byte                      // of lights
	result *ModuleCalibration
	failed bool // the others go on
}

// next lets the search say what it wants next; lasers: others than before.
func (s *search) next() (done, lasers bool) {
	drive, settle, done := s.algo.Next(&s.sample)
	if done {
		return true, false
	}
	s.drive, s.settle = drive, settle
	s.learnHeaters()
	lasers = drive.Lasers != s.lasers
	s.lasers = drive.Lasers
	return false, lasers
}

// learnHeaters tells the heaters' driver what the search knows of resistances.
func (s *search) learnHeaters() {
	for k := range s.known {
		if milliohm := uint32(s.algo.Ohm(k) * 1000); milliohm != s.known[k] {
			s.heater.Know(k, milliohm)
			s.known[k] = milliohm
		}
	}
}

// take turns a reading into what the search reckons with.
func (s *search) take() {
	light := func(i int, x hal.Sense) physic.Power {
		full := physic.Power(detmath.FromDB(float64(x.FullScaleMilliDBm)/1000) * float64(physic.MilliWatt))
		return physic.Power(diode.Code(s.block, i)) * full / diode.FullCode
	}
	switch s.drive.Read {
	case mzi.ReadLane:
		s.sample.Lane[s.drive.Lane] = light(0, s.optics.Lanes[s.drive.Lane])
	case mzi.ReadLanes:
		for i := range s.optics.LaneCount {
			s.sample.Lane[i] = light(i, s.optics.Lanes[i])
		}
	case mzi.ReadTaps:
		s.sample.Tap = [2]physic.Power{light(0, s.optics.Guard[hal.GuardTap1]), light(1, s.optics.Guard[hal.GuardTap2])}
	case mzi.ReadAll:
		for i := range s.optics.LaneCount {
			s.sample.Lane[i] = light(i, s.optics.Lanes[i])
		}
		for i := range s.sample.Tap {
			s.sample.Tap[i] = light(hal.Lanes+i, s.optics.Guard[hal.GuardTap1+i])
		}
	case mzi.ReadRail:
		s.sample.Current = physic.ElectricCurrent(ina219.ShuntMicrovolt(ina219.Value(s.r[:2]))) * microAmpere * 1000 / physic.ElectricCurrent(s.optics.RailShuntMilliohm)
	}
}

// finish takes the search's result.
func (s *search) finish() error {
	found, err := s.algo.Result()
	if err != nil {
		return &ModuleError{Module: s.module, Err: err}
	}
	r := s.result
	r.Measurements = uint32(found.Measurements)
	r.SettleMicros = uint32(found.Settle / time.Microsecond)
	r.Paths = [2]int32{found.Own.Path, found.Own.PathLoss}
	for i, dark := range found.Dark.Tap {
		r.DarkTap[i] = int32(dark / physic.NanoWatt)
	}
	for k := range s.optics.All {
		cell := &found.Module.Cells[k]
		c := &r.Cells[k]
		c.OffsetMicrorad = int32(cell.Offset * 1e6)
		c.PiMicrowatt = uint32(cell.PiPower() / physic.MicroWatt)
		c.MilliOhm = uint32(cell.Ohm * 1000)
		r.Extinction[k] = found.Extinction[k]
		for register, v := range found.Volts[k] {
			r.Codes[k][register] = heater.Code(v)
		}
	}
	r.cross(&found.Module)
	r.keepPhases(found, &s.optics.Heater)
	for l := range r.LaneLoop {
		r.LaneLoop[l] = milliDBm(found.LaneLoop[l])
		for e := range r.LaneTap {
			r.LaneTap[e][l] = milliDBm(found.LaneTap[e][l])
		}
	}
	return nil
}

func milliDBm(p physic.Power) proto.MilliDBm {
	if p <= 0 {
		return hal.DarkMilliDBm
	}
	return proto.MilliDBm(detmath.DB(float64(p)/float64(physic.MilliWatt)) * 1000)
}

// searches are those of a bundle's modules, side by side.
type searches struct {
	started time.Duration
	now     time.Duration // of the last turn
	list    []*search
	failure error // of any module, or of what they share
	of      []Failure
}

func (t *Transceiver) newSearches(now time.Duration) (searches, error) {
	s := searches{started: now, now: now}
	for i := range t.bundle.Modules {
		o := t.bundle.Modules[i].Optics()
		limits := heaterLimits(&o.Heater)
		one, err := mzi.NewSearch(mzi.Config{
			Seed: t.cfg.Seed + uint64(t.cfg.Bundle)<<8 + uint64(i), Step: heater.Step, Lanes: o.LaneCount, Matrix: o.Couplers,
			LeastOhm: float64(o.Heater.LeastOhm), MostOhm: float64(o.Heater.MostOhm), MostSettle: o.Heater.MostSettle,
			LeastPi: physic.Power(o.Heater.LeastPiMicrowatt) * microWatt, MostPi: physic.Power(o.Heater.MostPiMicrowatt) * microWatt,
			MaxVoltage: limits.Voltage, MaxCurrent: limits.Current, MaxPower: limits.Power,
		})
		if err != nil {
			return s, fmt.Errorf("ocs: bundle %d: %w", t.cfg.Bundle, err)
		}
		for k := range hal.CellsPerMod {
			t.heat.drivers[i].Know(k, 0)
		}
		s.list = append(s.list, &search{module: i, algo: one, heater: t.heat.drivers[i], optics: o})
	}
	return s, nil
}

// blame notes why a module fails, or, of None, all; a module fails once.
func (s *searches) blame(module int, err error) {
	if module != None {
		if s.list[module].failed {
			return
		}
		s.list[module].failed = true
		if _, ok := errors.AsType[*ModuleError](err); !ok {
			err = &ModuleError{Module: module, Err: err}
		}
		f := Failure{Module: uint8(module), Cell: None, Err: err}
		if found, ok := errors.AsType[*mzi.CellError](err); ok {
			f.Cell = uint8(found.Cell)
		}
		s.of = append(s.of, f)
	}
	if s.failure != nil {
		err = fmt.Errorf("%w; %w", s.failure, err)
	}
	s.failure = err
}

// sound counts the modules that have not failed.
func (s *searches) sound() int { return len(s.list) - len(s.of) }

// progress of the searches; under way, the last that is not over says its step.
func (s *searches) progress(step string, underWay bool, over func(module int) bool) Progress {
	p := Progress{Step: step, Elapsed: s.now - s.started}
	for i, one := range s.list {
		what, n := one.algo.Progress()
		p.Measurements += uint32(n)
		if over(i) {
			p.Done++
		} else if underWay {
			p.Step = what
		}
	}
	return p
}

// calibrationFailed tells why, and names modules and cells where they are to blame.
func (t *Transceiver) calibrationFailed(now time.Duration, err error, of []Failure) {
	e := Event{Kind: CalibrationFailed, At: now, Path: t.path, Module: None, Cell: None, Lane: None, Err: err, Failures: of,
		Text: fmt.Sprintf("bundle %d: %v", t.cfg.Bundle, err)}
	if len(of) > 0 {
		e.Module, e.Cell = of[0].Module, of[0].Cell
	}
	if e.Cell < hal.CellMatrix {
		e.Lane = e.Cell % hal.Lanes
	}
	t.emit(e)
}
