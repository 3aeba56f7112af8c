package bench

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ringlight/hal"
	"ringlight/hal/at24"
	"ringlight/hal/ina219"
	"ringlight/hal/pca9548"
	"ringlight/hal/tmp102"
	"ringlight/ocs/heater"
	"ringlight/proto"
)

// What is right. chosen, unless a source is named.
const (
	railLeastMillivolt = 8_900 // the guard's 8.5 V and the DAC's headroom
	railMostMillivolt  = 16_000
	caseLeast          = 0 // in thousandths of a degree
	caseMost           = 85_000
	ohmLeast           = 800 // board page: 1 kOhm +-5 %, and what a rail sensor may be off
	ohmMost            = 1250
	// One heater at a time, 2.5 V: 6 mW of the 60 that it may take.
	sweepMicrovolt = 2_500_000
	// A current below this is no heater at all.
	openMicroampere = 100
	// A laser that shines shows somewhere on its module's own diodes, whatever
	// the cells do: eight ways share what facets leave of 0 dBm.
	laserLeast proto.MilliDBm = -25_000
	// Own light in loopback may be so much weaker than it was when calibrated.
	loopSlack proto.MilliDBm = 1500
)

// railSetting averages eight conversions of shunt and bus, 80 mV.
const railSetting = 1<<ina219.GainShift | (8+3)<<ina219.ShuntADCShift | (8+0)<<ina219.BusADCShift | ina219.ModeBoth

// scan asks every address of every I2C bus, and behind every channel of its
// muxes, and compares with what the board says is there.
func scan(h *direct, board *hal.Board, r *Report) {
	for i, bus := range board.Buses {
		if bus.Kind != hal.I2C {
			continue
		}
		id := hal.BusID(i)
		muxes, want := expectedOn(board, id)
		rep := BusReport{Bus: i, Device: bus.Device, Answers: []string{}}
		var errs []error
		direct := map[uint16]bool{}
		for _, m := range muxes { // nothing of theirs on the main segment
			errs = append(errs, h.do(id, 0, hal.Msg{Addr: m, W: pca9548.AppendNone(nil)}))
		}
		for _, a := range answers(h, id, 0, 0, &errs) {
			direct[a] = true
			rep.Answers = append(rep.Answers, fmt.Sprintf("%#x", a))
		}
		for _, m := range muxes {
			for ch := range uint8(pca9548.Channels) {
				for _, a := range answers(h, id, m, ch, &errs) {
					if !direct[a] {
						rep.Answers = append(rep.Answers, fmt.Sprintf("%#x.%d/%#x", m, ch, a))
					}
				}
			}
			errs = append(errs, h.do(id, 0, hal.Msg{Addr: m, W: pca9548.AppendNone(nil)}))
		}
		r.Buses = append(r.Buses, rep)
		missing, strange := without(want, rep.Answers), without(rep.Answers, want)
		err := errors.Join(errs...)
		if len(missing) > 0 {
			err = errors.Join(err, fmt.Errorf("missing %s", strings.Join(missing, " ")))
		}
		if len(strange) > 0 {
			err = errors.Join(err, fmt.Errorf("not of this board: %s", strings.Join(strange, " ")))
		}
		r.verdict("scan", fmt.Sprintf("bus %d", i), oneLine(err), "%s: all %d chips answer, and no other", bus.Device, len(want))
	}
}

// oneLine says joined errors on one line.
func oneLine(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
}

// answers are the addresses that acknowledge a read of one byte. Errors other
// than silence are kept, one of each text.
func answers(h *direct, bus hal.BusID, mux uint16, channel uint8, errs *[]error) []uint16 {
	var out []uint16
	for a := uint16(firstAddr); a <= lastAddr; a++ {
		msgs := []hal.Msg{{Addr: a, R: make([]byte, 1)}}
		if mux != 0 {
			if a == mux {
				continue
			}
			msgs = []hal.Msg{{Addr: mux, W: pca9548.AppendSelect(nil, channel)}, msgs[0]}
		}
		err := h.do(bus, 0, msgs...)
		switch {
		case err == nil:
			out = append(out, a)
		case errors.Is(err, hal.ErrAddressNACK):
		case errors.Is(err, hal.ErrTimeout): // what i.MX says of an absent chip
		case !slices.ContainsFunc(*errs, func(e error) bool { return e != nil && e.Error() == err.Error() }) && len(*errs) < 8:
			*errs = append(*errs, err)
		}
	}
	return out
}

// expectedOn is what must answer on a bus, in the words of a BusReport.
func expectedOn(board *hal.Board, id hal.BusID) (muxes []uint16, want []string) {
	add := func(s string) {
		if !slices.Contains(want, s) {
			want = append(want, s)
		}
	}
	for _, latch := range board.Latches {
		if latch.Bus == id {
			add(fmt.Sprintf("%#x", latch.Addr))
		}
	}
	for i := range board.Bundles {
		for _, m := range board.Bundles[i].Modules {
			slow, behind := m.Slow, []uint16{m.Temp, m.EEPROM, m.Rail, m.LaneEnable}
			if m.Pattern != 0 {
				behind = append(behind, m.Pattern)
			}
			if m.Kind == hal.KindCMIS {
				slow, behind = m.MCI, []uint16{hal.MCIAddr}
				if m.EEPROM != 0 {
					behind = append(behind, m.EEPROM)
				}
			} else if m.ADC == id {
				add(fmt.Sprintf("%#x", m.Guard))
				add(fmt.Sprintf("%#x", m.LaneADC))
			}
			if slow != id {
				continue
			}
			if m.Mux != 0 && !slices.Contains(muxes, m.Mux) {
				muxes = append(muxes, m.Mux)
				add(fmt.Sprintf("%#x", m.Mux))
			}
			for _, a := range behind {
				if m.Mux == 0 {
					add(fmt.Sprintf("%#x", a))
				} else {
					add(fmt.Sprintf("%#x.%d/%#x", m.Mux, m.MuxChannel, a))
				}
			}
		}
	}
	return muxes, want
}

// moduleTest is one module under test.
type moduleTest struct {
	h       *direct
	hw      *hal.Module
	heating *heater.Driver
	rep     ModuleReport
}

// slowly does messages behind the module's mux.
func (s *moduleTest) slowly(msgs ...hal.Msg) error {
	if s.hw.Mux != 0 {
		msgs = append([]hal.Msg{{Addr: s.hw.Mux, W: pca9548.AppendSelect(nil, s.hw.MuxChannel)}}, msgs...)
	}
	bus := s.hw.Slow
	if s.hw.Kind == hal.KindCMIS {
		bus = s.hw.MCI
	}
	return s.h.do(bus, 0, msgs...)
}

// electrical looks at one module without any calibration. It ends with every
// heater cold and every lane on.
func electrical(h *direct, board *hal.Board, bundle, module int, r *Report) {
	where := fmt.Sprintf("bundle %d module %d", bundle, module)
	hw := &board.Bundles[bundle].Modules[module]
	s := &moduleTest{h: h, hw: hw, heating: heater.For(hw), rep: ModuleReport{Bundle: bundle, Module: module, Ohm: []int32{}, LaneBest: []proto.MilliDBm{},
		LoopLevel: []proto.MilliDBm{}, LoopExpected: []proto.MilliDBm{}}}
	defer func() { r.Modules = append(r.Modules, s.rep) }()
	if hw.Kind == hal.KindCMIS {
		if hw.EEPROM != 0 {
			s.identity(r, where)
		}
		r.add("inventory", where, Skip, "its chips are behind its own controller; dump-module reads it")
		return
	}
	s.identity(r, where)
	s.inventory(r, where)
	s.rails(r, where)
	if err := h.op(hw.SPI, &hal.Op{Class: hal.ClassHousekeeping, Msgs: s.heating.Cold()}); err != nil {
		r.add("dac", where, Fail, "%v", err)
		return
	}
	s.dacs(r, where)
	s.heaters(r, where)
	s.lasers(r, where, board, bundle)
}

// identity reads the identity in the EEPROM twice.
func (s *moduleTest) identity(r *Report, where string) {
	id := make([]byte, hal.IdentityBytes)
	again := make([]byte, hal.IdentityBytes)
	memory := at24.Of(s.hw.Memory)
	err := s.slowly(hal.Msg{Addr: s.hw.EEPROM, W: memory.AppendRead(nil, 0), R: id}, hal.Msg{Addr: s.hw.EEPROM, W: memory.AppendRead(nil, 0), R: again})
	if err == nil && !slices.Equal(id, again) {
		err = errors.New("two readings of the identity differ")
	}
	if err == nil {
		s.rep.Serial, err = hal.ParseIdentity(id)
	}
	r.verdict("eeprom", where, err, "identity of %s, check sum right, twice the same", s.rep.Serial)
}

// inventory reads the case temperature.
func (s *moduleTest) inventory(r *Report, where string) {
	temp := make([]byte, 2)
	err := s.slowly(hal.Msg{Addr: s.hw.Temp, W: tmp102.AppendRead(nil, tmp102.RegTemperature), R: temp})
	if s.rep.CaseMillicelsius = tmp102.Millicelsius(temp); err == nil && (s.rep.CaseMillicelsius < caseLeast || s.rep.CaseMillicelsius > caseMost) {
		err = fmt.Errorf("case at %.1f C: want %d to %d", float64(s.rep.CaseMillicelsius)/1000, caseLeast/1000, caseMost/1000)
	}
	r.verdict("inventory", where, err, "OCSTrx of %d cells, serial number %s, case %.1f C", s.hw.Optics().Cells(), s.rep.Serial, float64(s.rep.CaseMillicelsius)/1000)
}

// shunt is the current of the rail once it has averaged anew.
func (s *moduleTest) shunt() (microampere int64, err error) {
	s.h.wait(2 * time.Duration(ina219.ConversionMicros(railSetting)) * time.Microsecond)
	v := make([]byte, 2)
	err = s.slowly(hal.Msg{Addr: s.hw.Rail, W: ina219.AppendRead(nil, ina219.RegShunt), R: v})
	return ina219.ShuntMicrovolt(ina219.Value(v)) * 1000 / s.hw.Optics().RailShuntMilliohm, err
}

func (s *moduleTest) rails(r *Report, where string) {
	v := make([]byte, 2)
	err := s.slowly(hal.Msg{Addr: s.hw.Rail, W: ina219.AppendWrite(nil, ina219.RegConfig, railSetting)})
	if err == nil {
		s.h.wait(2 * time.Duration(ina219.ConversionMicros(railSetting)) * time.Microsecond)
		err = s.slowly(hal.Msg{Addr: s.hw.Rail, W: ina219.AppendRead(nil, ina219.RegBus), R: v})
	}
	if s.rep.RailMillivolt = ina219.BusMillivolt(ina219.Value(v)); err == nil && (s.rep.RailMillivolt < railLeastMillivolt || s.rep.RailMillivolt > railMostMillivolt) {
		err = fmt.Errorf("heater rail %d mV: want %d to %d", s.rep.RailMillivolt, railLeastMillivolt, railMostMillivolt)
	}
	r.verdict("rails", where, err, "heater rail %.2f V", float64(s.rep.RailMillivolt)/1000)
}

// dacs writes two patterns into every input register and reads them back. No
// output moves: nothing updates them, and every pattern passes the limits.
func (s *moduleTest) dacs(r *Report, where string) {
	wrong, n := 0, 0
	var first error
	dacs := s.heating
	for _, pattern := range []uint16{0x5555, 0x2AAA, 0} {
		msgs, codes := dacs.Pattern(pattern)
		for _, msg := range msgs {
			if err := s.h.do(s.hw.SPI, 0, msg); err != nil {
				r.add("dac", where, Fail, "%v", err)
				return
			}
		}
		op := &hal.Op{Class: hal.ClassHousekeeping, Msgs: dacs.ReadBack(nil)}
		if err := s.h.op(s.hw.SPI, op); err != nil {
			r.add("dac", where, Fail, "%v", err)
			return
		}
		looked, bad, err := dacs.PatternHeld(codes, op.Msgs)
		n, wrong = n+looked, wrong+bad
		if first == nil {
			first = err
		}
	}
	if wrong > 0 {
		first = fmt.Errorf("%d of %d registers read back wrong; first: %w", wrong, n, first)
	}
	r.verdict("dac", where, first, "%d registers of %d DACs read back what was written", n, dacs.Chips())
}

// heaters drives one heater after the other and reads the rail: DAC, heater
// and ADC in one loop.
func (s *moduleTest) heaters(r *Report, where string) {
	idle, err := s.shunt()
	if err != nil {
		r.add("heaters", where, Fail, "%v", err)
		return
	}
	s.rep.IdleMicroampere = idle
	var bad []string
	least, most := int32(1<<30), int32(0)
	for cell := range s.hw.Optics().CellSpan() {
		if !s.hw.Optics().Has(cell) {
			s.rep.Ohm = append(s.rep.Ohm, 0)
			continue
		}
		set := s.heating.Allow(cell, 0, hal.HeaterCode(sweepMicrovolt)) // every other heater is cold
		i, err := s.driven(set, cell)
		if err != nil {
			r.add("heaters", where, Fail, "cell %d: %v", cell, err)
			return
		}
		i -= idle
		ohm := int32(-1)
		if i > openMicroampere {
			ohm = int32(hal.HeaterMicrovolt(set.Code()) / i)
		}
		s.rep.Ohm = append(s.rep.Ohm, ohm)
		switch {
		case ohm < 0:
			bad = append(bad, fmt.Sprintf("cell %d open", cell))
		case ohm < ohmLeast/2:
			bad = append(bad, fmt.Sprintf("cell %d short, %d Ohm", cell, ohm))
		case ohm < ohmLeast || ohm > ohmMost:
			bad = append(bad, fmt.Sprintf("cell %d %d Ohm", cell, ohm))
		default:
			least, most = min(least, ohm), max(most, ohm)
		}
	}
	if len(bad) > 0 {
		err = fmt.Errorf("%s: want %d to %d Ohm", strings.Join(bad, ", "), ohmLeast, ohmMost)
	}
	r.verdict("heaters", where, err, "%d heaters of %d to %d Ohm", s.hw.Optics().Cells(), least, most)
}

// driven is the rail's current with one heater on; it is cold again
// afterwards.
func (s *moduleTest) driven(on heater.Setting, cell int) (microampere int64, err error) {
	set := func(x heater.Setting) error { return s.h.do(s.hw.SPI, 0, s.heating.Poke(x)...) }
	if err = set(on); err == nil {
		microampere, err = s.shunt()
	}
	return microampere, errors.Join(err, set(s.heating.Allow(cell, 0, 0)))
}
