package ocs

import (
	"time"

	"ringlight/hal"
	"ringlight/hal/ina219"
	"ringlight/hal/pca9548"
	"ringlight/hal/tmp102"
	"ringlight/mzi"
	"ringlight/ocs/diode"
	"ringlight/proto"
)

// chipHealth is the reading of one module's health, and the own light of all.
type chipHealth struct {
	busy  bool
	out   int
	path  proto.Path
	slow  *hal.Op     // made once, as those of own: one is under way
	seen  *ownLightOp // likewise
	below int32       // that the first reading of the taps said: see misrouted
	own   []ownLightOp
}

const (
	healthSlow = iota
	healthLight
	healthTaps // once more, where the first reading said that light leaves by the wrong output
)

// readHealth reads case temperature, heater rail, and the light of the path in use.
func (d *chipDrive) readHealth(i int) bool {
	h := &d.readings
	if h.busy || d.lock.act != nil && d.lock.act.module == i {
		return false
	}
	m := &d.trx.bundle.Modules[i]
	h.busy, h.out, h.path = true, 1, d.trx.path
	if h.slow == nil || !pca9548.Turn(m.Mux, m.MuxChannel, h.slow.Msgs) {
		h.slow = &hal.Op{Class: hal.ClassHousekeeping, Msgs: pca9548.Behind(m.Mux, m.MuxChannel,
			hal.Msg{W: tmp102.AppendRead(nil, tmp102.RegTemperature), R: make([]byte, 2)},
			hal.Msg{W: ina219.AppendRead(nil, ina219.RegShunt), R: make([]byte, 2)},
			hal.Msg{W: ina219.AppendRead(nil, ina219.RegBus), R: make([]byte, 2)})}
	}
	slow := pca9548.Inner(m.Mux, h.slow.Msgs)
	slow[0].Addr, slow[1].Addr, slow[2].Addr = m.Temp, m.Rail, m.Rail
	h.slow.Token = d.trx.token(taskHealth, i, healthSlow)
	d.put(m.Slow, h.slow)
	if d.trx.path != proto.Dark && d.trx.cfg.Calibration != nil { // else no scan runs, or nothing is to be seen
		h.out++
		h.readTaps(d, i, healthLight)
	}
	return true
}

func (h *chipHealth) completed(d *chipDrive, now time.Duration, c *hal.Completion, module, n int) {
	if h.out--; h.out == 0 {
		h.busy = false
		if d.trx.Health.module == 0 { // once a round
			d.trx.verify.round()
		}
	}
	if c.Err != nil {
		return // counted; a sample that was not taken only grows old
	}
	s := &d.trx.Health.last[module]
	if n == healthSlow {
		hw := &d.trx.bundle.Modules[module]
		slow := pca9548.Inner(hw.Mux, c.Op.Msgs)
		d.trx.Health.warm(now, c.Start, module, tmp102.Millicelsius(slow[0].R))
		s.railMicrowatt = railMicrowatt(hw.Optics(), ina219.Value(slow[1].R), ina219.Value(slow[2].R))
		d.trx.prove(now, module)
		return
	}
	if h.path != d.trx.path || d.trx.sw.busy() {
		return // of neither path
	}
	block := h.seen.own.Block()
	o := d.trx.bundle.Modules[module].Optics()
	below := d.trx.cfg.Calibration.Modules[module].below(o, h.path, block[2*hal.GuardTap1:])
	if n == healthTaps {
		h.strayed(d, now, module, max(below, h.below)) // a bit may flip on its way
		return
	}
	if below >= mzi.LeastExtinction {
		h.strayed(d, now, module, below)
	} else {
		h.below, h.busy, h.out = below, true, h.out+1
		defer h.readTaps(d, module, healthTaps)
	}
	s.light(c.Start, h.path, o, block)
}

// strayed takes a look at a module's taps. What would be told if it stayed lets the
// lock take hold first, as does what may be one cell's.
func (h *chipHealth) strayed(d *chipDrive, now time.Duration, module int, below int32) {
	a := &d.trx.Health.last[module].misrouted
	a.sample(h.path, below)
	d.lock.strays(d, now, module)
	if a.rounds > 0 {
		d.lock.hurry(d, now, module)
	}
}

// readTaps reads a module's light, for the first time or once more.
func (h *chipHealth) readTaps(d *chipDrive, module, n int) {
	m, seen := &d.trx.bundle.Modules[module], h.seen
	d.put(m.ADC, seen.ask(m, diode.Guard, d.trx.token(taskHealth, module, n), hal.ClassHousekeeping))
}

// railMicrowatt is the power on the heater rail for the readings of shunt and
// bus voltage.
func railMicrowatt(o *hal.Optics, shunt, bus uint16) int32 {
	microamp := ina219.ShuntMicrovolt(shunt) * 1000 / o.RailShuntMilliohm
	return int32(microamp * ina219.BusMillivolt(bus) / 1000)
}

// ownLightOp is a read made ready, so that a verification allocates nothing.
type ownLightOp struct {
	op  hal.Op
	msg [1]hal.Msg
	own diode.Reading
}

func (o *ownLightOp) ask(m *hal.Module, adc diode.Which, token uint64, class hal.Class) *hal.Op {
	o.msg[0] = o.own.Ask(diode.Of(m), adc, 0, diode.Channels, 0)
	o.op = hal.Op{Token: token, Class: class, Msgs: o.msg[:]}
	return &o.op
}

// look reads every module's own light: the Tx tap of an external path, the lane
// diodes in loopback. Class verify lets switches go first.
func (d *chipDrive) look() int {
	if d.trx.cfg.Calibration == nil || d.trx.path == proto.Dark {
		return 0
	}
	d.lock.freeze(d) // an ADC that averages tells what was, or nothing yet
	h := &d.readings
	if h.own == nil {
		h.own = make([]ownLightOp, len(d.trx.bundle.Modules))
	}
	for i := range h.own {
		o, m, adc := &h.own[i], &d.trx.bundle.Modules[i], diode.Guard
		if d.trx.path == proto.Loopback {
			adc = diode.Lane
		}
		d.put(m.ADC, o.ask(m, adc, d.trx.token(taskVerify, i, 0), hal.ClassVerify))
	}
	return len(h.own)
}
