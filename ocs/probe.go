package ocs

import (
	"time"

	"ringlight/hal"
	"ringlight/hal/at24"
	"ringlight/hal/ina219"
	"ringlight/hal/pca953x"
	"ringlight/hal/pca9548"
	"ringlight/hal/tmp102"
	"ringlight/mzi"
	"ringlight/ocs/diode"
	"ringlight/ocs/heater"
	"ringlight/ocs/work"

	"periph.io/x/conn/v3/physic"
)

const (
	milliVolt   = physic.MilliVolt
	microAmpere = physic.MicroAmpere
	microWatt   = physic.MicroWatt
)

// probeStep is where the search of one module stands.
//
//	probeSlow -> probeCold -> probeScan -> probeReady
//	                                           |
//	     ,-------------------------------------'
//	     v
//	probeLasers -> probeHeat -> probeWait -> probeRead -> probeLasers ... probeDone
type probeStep uint8

const (
	probeSlow   probeStep = iota // lasers held, rail sensor set, case, supply and identity read
	probeCold                    // heaters at nought, no toggling
	probeScan                    // both ADCs averaging
	probeReady                   // waits for the other modules
	probeLasers                  // the lane that shines changes
	probeHeat                    // heaters change
	probeWait                    // heat and average settle
	probeRead                    // the measurement
	probeDone
)

// probe lets one module's search measure.
type probe struct {
	*search
	hw    *hal.Module
	step  probeStep
	tries int

	reading diode.Reading
	taps    diode.Reading // of mzi.ReadAll, besides
	all     [2*hal.Lanes + 4]byte
	at      time.Duration // of probeWait

	settings []heater.Setting
}

const (
	// chosen: 32 conversions bring the noise to a tenth of a step ("calibrate
	// with oversampling 16-128", board page).
	averageLog2 = 5
	// The newest result of a channel began at most a round of all channels and
	// its own time ago; the diodes' amplifiers add 5 us.
	oneResult   = (1 << averageLog2) * diode.Conversion
	averageTime = (diode.Channels+1)*oneResult + 10*time.Microsecond

	// chosen: shunt only, 80 mV (160 mA, three times what is needed), eight
	// conversions averaged.
	railConfig = 1<<ina219.GainShift | (8+3)<<ina219.ShuntADCShift | (8+0)<<ina219.BusADCShift | ina219.ModeBoth
)

// railTime is what the rail sensor takes to show a new current in full: the
// conversion under way and a whole one.
var railTime = 2 * time.Duration(ina219.ConversionMicros(railConfig)) * time.Microsecond

func (p *probe) submit(d *chipDrive, bus hal.BusID, msgs ...hal.Msg) {
	d.put(bus, &hal.Op{Token: d.cal.token(d, p.module, p.module), Class: hal.ClassHousekeeping, Msgs: msgs})
}

// begin makes the module dark and learns under which conditions it stands.
func (p *probe) begin(d *chipDrive) {
	p.step = probeSlow
	m := p.hw
	identity := p.r[:hal.IdentityBytes]
	rest := p.r[hal.IdentityBytes:]
	p.submit(d, m.Slow, pca9548.Behind(m.Mux, m.MuxChannel,
		hal.Msg{Addr: m.LaneEnable, W: pca953x.TCA9534.AppendWrite(nil, pca953x.Output, 0, 0)},
		hal.Msg{Addr: m.LaneEnable, W: pca953x.TCA9534.AppendWrite(nil, pca953x.Config, 0, 0)},
		hal.Msg{Addr: m.Rail, W: ina219.AppendWrite(nil, ina219.RegConfig, railConfig)},
		hal.Msg{Addr: m.Rail, W: ina219.AppendRead(nil, ina219.RegBus), R: rest[:2]},
		hal.Msg{Addr: m.Temp, W: tmp102.AppendRead(nil, tmp102.RegTemperature), R: rest[2:4]},
		hal.Msg{Addr: m.EEPROM, W: at24.Of(m.Memory).AppendRead(nil, 0), R: identity})...)
}

// cold takes every heater to 0 V, whatever held it.
func (p *probe) cold(d *chipDrive) {
	p.step = probeCold
	p.submit(d, p.hw.SPI, d.dacs(p.module).Cold()...)
}

// leave ends the search of a module that has failed: cold, its lasers held. What does
// not get there the end of all does.
func (p *probe) leave(d *chipDrive) {
	p.cold(d)
	p.slowly(d, hal.Msg{Addr: p.hw.LaneEnable, W: pca953x.TCA9534.AppendWrite(nil, pca953x.Output, 0, 0)})
	p.step = probeDone
}

// scan lets both ADCs average.
func (p *probe) scan(d *chipDrive) {
	p.step = probeScan
	var msgs []hal.Msg
	for adc := range diode.Both {
		msgs = append(msgs, diode.Of(p.hw).Scan(adc, averageLog2)...)
	}
	p.submit(d, p.hw.ADC, msgs...)
}

// ask lets the search say what it wants next.
func (p *probe) ask(d *chipDrive, now time.Duration) {
	done, lasers := p.next()
	if done {
		p.step = probeDone
		return
	}
	if lasers {
		p.step = probeLasers
		m := p.hw
		p.slowly(d, hal.Msg{Addr: m.LaneEnable, W: pca953x.TCA9534.AppendWrite(nil, pca953x.Output, 0, p.lasers)})
		return
	}
	p.heat(d, now)
}

// heat sets the heaters that change.
func (p *probe) heat(d *chipDrive, now time.Duration) {
	p.step = probeHeat
	if len(p.drive.Set) == 0 {
		p.wait(now)
		return
	}
	p.settings = p.settings[:0]
	for _, h := range p.drive.Set { // in order of cells
		p.settings = append(p.settings, p.heater.Allow(h.Cell, 0, heater.Code(h.Voltage)))
	}
	p.submit(d, p.hw.SPI, d.dacs(p.module).Set(p.settings)...)
}

func (p *probe) wait(from time.Duration) {
	p.step = probeWait
	p.at = from + p.settle + averageTime
	if p.drive.Read == mzi.ReadRail {
		p.at = from + p.settle + railTime
	}
}

func (p *probe) wake() time.Duration {
	if p.step == probeWait {
		return p.at
	}
	return hal.Never
}

// due measures when everything has settled.
func (p *probe) due(d *chipDrive, now time.Duration) {
	if p.step != probeWait || now < p.at {
		return
	}
	p.step = probeRead
	m := p.hw
	block := func(adc diode.Which, first, n int) {
		p.submit(d, m.ADC, p.reading.Ask(diode.Of(m), adc, first, n, averageLog2))
	}
	switch p.drive.Read {
	case mzi.ReadLane:
		block(diode.Lane, p.drive.Lane, 1)
	case mzi.ReadLanes:
		block(diode.Lane, 0, hal.Lanes)
	case mzi.ReadTaps:
		block(diode.Guard, hal.GuardTap1, 2)
	case mzi.ReadAll:
		p.submit(d, m.ADC, p.reading.Ask(diode.Of(m), diode.Lane, 0, hal.Lanes, averageLog2),
			p.taps.Ask(diode.Of(m), diode.Guard, hal.GuardTap1, 2, averageLog2))
	case mzi.ReadRail:
		p.slowly(d, hal.Msg{Addr: m.Rail, W: ina219.AppendRead(nil, ina219.RegShunt), R: p.r[:2]})
	}
}

// slowly puts a message out behind the module's mux, which stays at its channel: what
// asks next is the same module's.
func (p *probe) slowly(d *chipDrive, msg hal.Msg) {
	if p.hw.Mux == 0 {
		p.submit(d, p.hw.Slow, msg)
		return
	}
	p.submit(d, p.hw.Slow, hal.Msg{Addr: p.hw.Mux, W: pca9548.AppendSelect(nil, p.hw.MuxChannel)}, msg)
}

// completed goes on after one piece of bus work. The error is why the module
// cannot be calibrated.
func (p *probe) completed(d *chipDrive, now time.Duration, c *hal.Completion) error {
	if c.Err != nil {
		if p.tries++; p.tries < work.MaxTries {
			d.put(c.Bus, c.Op)
			return nil
		}
		return &ModuleError{Module: p.module, Err: c.Err}
	}
	p.tries = 0
	switch p.step {
	case probeSlow:
		rest := p.r[hal.IdentityBytes:]
		serial, err := hal.ParseIdentity(p.r[:hal.IdentityBytes])
		if err != nil {
			return &ModuleError{Module: p.module, Err: err}
		}
		p.result = &ModuleCalibration{
			Serial:           serial,
			RailMillivolt:    int32(ina219.BusMillivolt(ina219.Value(rest[:2]))),
			CaseMillicelsius: tmp102.Millicelsius(rest[2:4]),
			Matrix:           matrixSum(d.trx.bundle.Modules[p.module].Optics().Couplers),
		}
		p.cold(d)
	case probeCold:
		p.scan(d)
	case probeScan:
		p.step = probeReady
	case probeLasers:
		p.heat(d, now)
	case probeHeat:
		p.wait(c.End)
	case probeRead:
		if p.drive.Read != mzi.ReadRail {
			p.block = p.reading.Block()
		}
		if p.drive.Read == mzi.ReadAll {
			p.block = append(p.all[:0], p.block...)
			p.block = append(p.block, p.taps.Block()...)
		}
		p.take()
		p.ask(d, now)
		if p.step == probeDone {
			return p.finish()
		}
	}
	return nil
}
