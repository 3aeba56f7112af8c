package ocs

import (
	"errors"
	"fmt"
	"math/bits"
	"time"

	"ringlight/hal"
	"ringlight/hal/ads7138"
	"ringlight/hal/ina219"
	"ringlight/hal/pca9548"
	"ringlight/hal/tmp102"
	"ringlight/proto"
)

// healthRound reads one module after the other, whenever it is asked to: case
// temperature, heater rail, and the light of the path in use.
type healthRound struct {
	module int // next
	busy   bool
	out    int
	path   proto.Path
	slow   *hal.Op // kept for the next round
	light  *hal.Op
	last   []moduleHealth
	hot    uint16 // bit m: the case of module m is too warm
}

// How warm a module's case may get. chosen: the usual high alarm of a
// pluggable module, and five degrees below it before it counts as cool again.
const (
	hotMilliCelsius  = 75_000
	coolMilliCelsius = 70_000
)

// ErrTooHot takes a bundle out of use: heaters add to what is too warm
// already, and calibrations do not hold so far from where they were made.
var ErrTooHot = errors.New("case too warm")

// warm takes a case temperature. A bundle that gets too warm has failed, at
// once; once it is cool its light decides again.
func (t *Transceiver) warm(now time.Duration, module int, millicelsius int32) {
	h, bit := &t.health, uint16(1)<<module
	switch {
	case millicelsius > hotMilliCelsius && h.hot&bit == 0:
		h.hot |= bit
		t.port = proto.Failed
		t.verify.told = finding{PathFailed, t.path, uint8(module), None}
		t.emit(t.tooHot(now))
	case millicelsius < coolMilliCelsius:
		h.hot &^= bit
	}
}

// TooHot tells whether a module is too warm to be used, or to be calibrated.
func (t *Transceiver) TooHot() bool { return t.health.hot != 0 }

// tooHot is the event about the first module that is too warm.
func (t *Transceiver) tooHot(now time.Duration) Event {
	module := bits.TrailingZeros16(t.health.hot)
	celsius := float64(t.health.last[module].millikelvin-zeroCelsiusMillikelvin) / 1000
	return Event{Kind: PathFailed, At: now, Path: t.path, Module: uint8(module), Cell: None, Lane: None, Expected: proto.NoPower, Measured: proto.NoPower,
		Err: ErrTooHot, Text: fmt.Sprintf("module %d: case at %.1f degrees, %d at most", module, celsius, hotMilliCelsius/1000)}
}

// moduleHealth is a module's newest readings.
type moduleHealth struct {
	slowAt, lightAt time.Duration // 0 = never
	millikelvin     int32
	railMicrowatt   int32
	path            proto.Path
	upper, lower    proto.MilliDBm
	tap             proto.MilliDBm // NoPower in loopback
}

const (
	healthSlow = iota
	healthLight
)

const zeroCelsiusMillikelvin = 273_150

// HealthRound reads the health of the next module, and after the last one the
// own light of all. While the one before is
// still being read, it does nothing.
func (t *Transceiver) HealthRound(now time.Duration) {
	if t.mci != nil {
		t.mci.healthRound(t)
		return
	}
	h := &t.health
	if h.busy || t.state != Idle {
		return
	}
	if h.slow == nil {
		if h.last == nil {
			h.last = make([]moduleHealth, len(t.bundle.Modules))
		}
		h.slow = &hal.Op{Class: hal.ClassHousekeeping, Msgs: []hal.Msg{
			{W: make([]byte, 1)},
			{W: tmp102.AppendRead(nil, tmp102.RegTemperature), R: make([]byte, 2)},
			{W: ina219.AppendRead(nil, ina219.RegShunt), R: make([]byte, 2)},
			{W: ina219.AppendRead(nil, ina219.RegBus), R: make([]byte, 2)},
			{W: pca9548.AppendNone(nil)},
		}}
		h.light = &hal.Op{Class: hal.ClassHousekeeping, Msgs: []hal.Msg{
			{W: ads7138.AppendReadBlock(nil, ads7138.RegRecent), R: make([]byte, ads7138.BlockBytes)},
		}}
	}
	i := h.module
	h.module = (i + 1) % len(t.bundle.Modules)
	m := &t.bundle.Modules[i]
	s := h.slow.Msgs
	s[0].Addr, s[1].Addr, s[2].Addr, s[3].Addr, s[4].Addr = m.Mux, m.Temp, m.Rail, m.Rail, m.Mux
	s[0].W[0] = pca9548.Select(m.MuxChannel)
	h.slow.Token = t.token(taskHealth, i, healthSlow)
	h.light.Msgs[0].Addr = m.Guard
	h.light.Token = t.token(taskHealth, i, healthLight)
	h.busy, h.out, h.path = true, 1, t.path
	t.put(m.Slow, h.slow)
	if t.path != proto.Dark && t.cfg.Calibration != nil { // else no scan runs, or nothing is to be seen
		h.out++
		t.put(m.ADC, h.light)
	}
}

func (t *Transceiver) healthDone(now time.Duration, c *hal.Completion, module, n int) {
	h := &t.health
	if h.out--; h.out == 0 {
		h.busy = false
		if h.module == 0 { // once a round
			t.routineVerify()
		}
	}
	if c.Err != nil {
		return // counted; a sample that was not taken only grows old
	}
	s := &h.last[module]
	if n == healthSlow {
		s.slowAt = c.Start
		s.millikelvin = tmp102.Millicelsius(c.Op.Msgs[1].R) + zeroCelsiusMillikelvin
		t.warm(now, module, s.millikelvin-zeroCelsiusMillikelvin)
		s.railMicrowatt = railMicrowatt(ina219.Value(c.Op.Msgs[2].R), ina219.Value(c.Op.Msgs[3].R))
		return
	}
	if h.path != t.path || t.sw.busy() {
		return // of neither path
	}
	block := c.Op.Msgs[0].R
	at := func(channel int) proto.MilliDBm {
		return level(ads7138.Code16(block, channel), guardFullScale(channel))
	}
	t.lock.watch(t, now, module, h.path, block)
	s.lightAt, s.path = c.Start, h.path
	upper := hal.GuardLoopUpper + 2*int(h.path-proto.Loopback)
	s.upper, s.lower, s.tap = at(upper), at(upper+1), proto.NoPower
	if h.path.External() {
		s.tap = at(hal.GuardTap1 + int(h.path-proto.External1))
	}
}

// railMicrowatt is the power on the heater rail for the readings of shunt and
// bus voltage.
func railMicrowatt(shunt, bus uint16) int32 {
	microamp := ina219.ShuntMicrovolt(shunt) * 1000 / hal.RailShuntMilliohm
	return int32(microamp * ina219.BusMillivolt(bus) / 1000)
}

// Samples appends the newest health samples; what was never read is absent.
func (t *Transceiver) Samples(now time.Duration, dst []proto.Sample) []proto.Sample {
	for i := range t.health.last {
		s := &t.health.last[i]
		add := func(at time.Duration, sensor proto.Sensor, value int32) {
			dst = append(dst, proto.Sample{Bundle: t.cfg.Bundle, Module: uint8(i), Sensor: sensor, Value: value,
				AgeMillis: uint32((now - at) / time.Millisecond)})
		}
		if s.slowAt != 0 {
			add(s.slowAt, proto.SensorCase, s.millikelvin)
			add(s.slowAt, proto.SensorRail, s.railMicrowatt)
		}
		if s.lightAt != 0 && s.path == t.path {
			add(s.lightAt, proto.SensorUpperPath, int32(s.upper))
			add(s.lightAt, proto.SensorLowerPath, int32(s.lower))
			if s.tap != proto.NoPower {
				add(s.lightAt, proto.SensorTxTap, int32(s.tap))
			}
		}
	}
	return dst
}
