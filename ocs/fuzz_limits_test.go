package ocs_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/at24"
	"ringlight/ocs"
	"ringlight/ocs/heater"
	"ringlight/proto"
	"ringlight/sim"
)

// misuse is somebody who tries to burn a heater.
type misuse struct {
	*rig
	rng    *rand.Rand
	faults []sim.Fault
	cal    *ocs.Calibration
}

// limitOps is how many operations step knows.
const limitOps = 17

// step does one operation.
func (m *misuse) step(op, arg byte) {
	o := m.optics[0]
	now := m.world.Now()
	path := proto.Path(arg % 5) // one more than there are
	switch op % limitOps {
	case 0:
		_ = o.Select(now, path)
	case 1:
		_ = o.SelectAtOnce(now, path)
	case 2:
		o.Health.Round(now)
	case 3:
		o.Start(now)
	case 4:
		m.rig.run(time.Duration(arg) * 3 * time.Microsecond)
	case 5:
		m.rig.run(time.Duration(arg) * time.Millisecond)
	case 6:
		m.rig.run(time.Duration(arg) * 10 * time.Millisecond)
	case 7:
		kinds := [...]sim.FaultKind{sim.HeaterStuck, sim.LaserDead, sim.DiodeDead, sim.DriftWalk, sim.CellWalk, sim.ModuleHot}
		f := sim.Fault{Kind: kinds[int(arg)%len(kinds)], Index: m.rng.IntN(hal.Lanes)}
		if m.world.Inject(m.id, f) == nil {
			m.faults = append(m.faults, f)
		}
	case 8:
		for _, f := range m.faults {
			_ = m.world.Repair(m.id, f)
		}
		m.faults = nil
	case 9:
		m.world.SetPower(m.id, false)
		m.rig.run(time.Duration(arg) * 40 * time.Microsecond)
		m.world.SetPower(m.id, true)
		m.boot([]*ocs.Calibration{m.cal})
	case 10:
		m.boot([]*ocs.Calibration{m.mangled(arg)})
	case 11:
		m.world.SetAmbient(m.id, int32(arg)*300)
	case 12:
		_ = o.Calibrate(now)
	case 13:
		o.Light(now, now, path, arg&0x80 != 0)
	case 14:
		m.exchange(arg)
	case 15:
		buses := len(m.board.Buses)
		f := sim.Fault{Kind: sim.BusStuck, Bus: hal.BusID(int(arg) % buses)}
		if m.world.Inject(m.id, f) == nil {
			m.faults = append(m.faults, f)
		}
	case 16:
		m.bench(arg)
	}
}

// bench does what a test of the module's electrics does, in the place of the service,
// with patterns of any bits.
func (m *misuse) bench(arg byte) {
	hw := &m.board.Bundles[0].Modules[0]
	if hw.Kind != hal.KindChips {
		return
	}
	idle := func() { // what is on the buses comes to its end
		for end := m.world.Now() + 5*time.Millisecond; m.world.Now() < end; {
			m.world.Advance(end)
		}
	}
	idle()
	do := func(msgs []hal.Msg) {
		if err := m.world.Submit(m.world.Now(), m.id, hw.SPI, &hal.Op{Msgs: msgs}); err != nil {
			m.t.Fatal(err)
		}
		idle()
	}
	d := heater.For(hw)
	if arg&1 != 0 {
		do(d.Cold())
	}
	for _, pattern := range []uint16{uint16(m.rng.Uint32()), 0xFFFF, 0xAAAA << (arg >> 4 & 1), 0} {
		msgs, _ := d.Pattern(pattern)
		do(msgs)
		if arg&2 != 0 {
			do(d.Take())
		}
	}
	do(d.Cold())
	for cell := range hal.BenesCells {
		do(d.Poke(d.Allow(cell, 0, uint16(m.rng.Uint32()))))
		if arg&4 != 0 {
			do(d.Poke(d.Allow(cell, 0, 0)))
		}
	}
	m.boot([]*ocs.Calibration{m.cal})
}

// mangled is a calibration with codes that no search would find; arg 0 none, so
// that EEPROMs are read.
func (m *misuse) mangled(arg byte) *ocs.Calibration {
	switch {
	case arg == 0:
		return nil
	case arg < 64:
		return m.cal
	}
	mod := *m.cal.Modules[0]
	for k := range mod.Codes {
		for register := range mod.Codes[k] {
			if m.rng.IntN(256) < int(arg) {
				mod.Codes[k][register] = uint16(m.rng.Uint32())
			}
		}
		if m.rng.IntN(256) < int(arg) {
			mod.Cells[k].OffsetMicrorad += int32(m.rng.IntN(6_000_000) - 3_000_000)
		}
	}
	return &ocs.Calibration{Modules: []*ocs.ModuleCalibration{&mod}, Timing: m.cal.Timing}
}

// exchange puts another module in the place of the one there, with rubbish in
// its EEPROM or nothing.
func (m *misuse) exchange(arg byte) {
	m.world.SetPower(m.id, false)
	m.rig.run(5 * time.Millisecond)
	per := sim.Catalogue(nil, uint64(arg), 1)[0]
	var pages []sim.Page
	if arg&1 != 0 {
		for n := range uint16(40) {
			p := sim.Page{Number: 32 + n}
			for i := range at24.Of(hal.AT24C64).PageBytes {
				p.Data[i] = byte(m.rng.Uint32())
			}
			pages = append(pages, p)
		}
	}
	if err := m.world.Exchange(m.id, 0, 0, per, pages); err != nil {
		m.t.Fatal(err)
	}
	m.world.SetPower(m.id, true)
	if arg&2 != 0 {
		m.cal = truth([]*sim.Personality{per})
	}
	m.boot([]*ocs.Calibration{m.cal})
}

// FuzzLimits: no sequence of calls, faults, restarts and rubbish in files and
// EEPROMs takes a heater or a module beyond its limits, as the board records
// them. Resistances are what they were measured to be: the guard has nothing
// else to reckon with, and a heater that gets a short while it is hot draws what
// its DAC gives, whatever the driver does.
func FuzzLimits(f *testing.F) {
	f.Add([]byte{0, 1, 5, 9, 2, 0, 3, 7, 5, 5, 0, 2, 6, 200})
	f.Add([]byte{10, 255, 5, 100, 0, 1, 5, 50, 3, 200, 5, 10})
	f.Add([]byte{12, 0, 6, 255, 9, 100, 6, 255, 0, 3, 6, 100})
	f.Add([]byte{0, 2, 7, 4, 6, 255, 6, 255, 11, 255, 2, 0, 5, 9})
	f.Add([]byte{14, 3, 5, 200, 0, 1, 6, 50, 15, 3, 0, 2, 5, 50, 8, 0, 14, 2, 6, 90})
	f.Add([]byte{0, 1, 5, 9, 16, 0, 16, 3, 5, 50, 0, 2, 5, 50, 16, 23, 12, 0, 16, 5, 5, 90})
	f.Fuzz(func(t *testing.T, ops []byte) { abuse(t, hal.LTC2688, ops) })
}

// FuzzLimitsAD5676R is FuzzLimits for a board with another DAC.
func FuzzLimitsAD5676R(f *testing.F) {
	f.Add([]byte{0, 1, 5, 9, 2, 0, 3, 7, 5, 5, 0, 2, 0, 1, 0, 3, 6, 200})
	f.Add([]byte{10, 255, 5, 100, 0, 1, 5, 50, 3, 200, 5, 10})
	f.Add([]byte{12, 0, 6, 255, 9, 100, 6, 255, 0, 3, 6, 100})
	f.Add([]byte{14, 3, 5, 200, 0, 1, 6, 50, 15, 1, 0, 2, 5, 50, 8, 0, 14, 2, 6, 90})
	f.Add([]byte{0, 1, 5, 9, 16, 0, 16, 3, 5, 50, 0, 2, 5, 50, 16, 23, 12, 0, 16, 5, 5, 90})
	f.Fuzz(func(t *testing.T, ops []byte) { abuse(t, hal.AD5676R, ops) })
}

func abuse(t *testing.T, dac hal.Part, ops []byte) {
	m := &misuse{rig: newRigOf(t, dac, 1, 1), rng: rand.New(rand.NewPCG(uint64(len(ops)), 1))}
	m.cal = m.optics[0].Status().Calibration
	m.lock = ocs.LockConfig{Mode: ocs.LockAlways, Period: 20 * time.Millisecond, Rest: 20 * time.Millisecond}
	m.boot([]*ocs.Calibration{m.cal})
	for i := 0; i+1 < min(len(ops), 80); i += 2 {
		m.step(ops[i], ops[i+1])
		checkLimits(t, m.rig)
		if t.Failed() {
			t.Fatalf("after operation %d: %d with %d", i/2, ops[i]%limitOps, ops[i+1])
		}
	}
	m.rig.run(20 * time.Millisecond)
	checkLimits(t, m.rig)
}
