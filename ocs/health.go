package ocs

import (
	"errors"
	"fmt"
	"hash/crc32"
	"math/bits"
	"time"

	"ringlight/hal"
	"ringlight/ocs/diode"
	"ringlight/proto"
)

// Health reads one module after the other, whenever it is asked to: case
// temperature, heater rail, and the light of the path in use.
type Health struct {
	t      *Transceiver
	module int // next
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
func (h *Health) warm(now, read time.Duration, module int, millicelsius int32) {
	bit := uint16(1) << module
	h.last[module].warm(read, millicelsius+zeroCelsiusMillikelvin)
	switch {
	case millicelsius > hotMilliCelsius && h.hot&bit == 0:
		h.hot |= bit
		h.t.port = proto.Failed
		h.t.verify.told = finding{PathFailed, h.t.path, uint8(module), None}
		h.t.emit(h.tooHot(now))
	case millicelsius < coolMilliCelsius && h.hot == bit:
		h.hot = 0
		h.t.emit(Event{Kind: Cooled, At: now, Path: h.t.path, Module: uint8(module), Cell: None, Lane: None, Expected: proto.NoPower, Measured: proto.NoPower})
	case millicelsius < coolMilliCelsius:
		h.hot &^= bit
	}
}

// ReadHot reads the first module that is too warm, without a round: Cooled tells when
// none is any more.
func (h *Health) ReadHot() {
	if h.t.state == Idle && h.hot != 0 {
		h.t.drive.readHealth(bits.TrailingZeros16(h.hot))
	}
}

// TooHot tells whether a module is too warm to be used, or to be calibrated.
func (h *Health) TooHot() bool { return h.hot != 0 }

// tooHot is the event about the first module that is too warm.
func (h *Health) tooHot(now time.Duration) Event {
	module := bits.TrailingZeros16(h.hot)
	celsius := float64(h.last[module].millikelvin-zeroCelsiusMillikelvin) / 1000
	return Event{Kind: PathFailed, At: now, Path: h.t.path, Module: uint8(module), Cell: None, Lane: None, Expected: proto.NoPower, Measured: proto.NoPower,
		Err: ErrTooHot, Text: fmt.Sprintf("module %d: case at %.1f degrees, %d at most", module, celsius, hotMilliCelsius/1000)}
}

// temperature of a module's case in kelvin, 0: it was never read.
func (h *Health) temperature(module int) float64 {
	if module >= len(h.last) || h.last[module].slowAt == 0 {
		return 0
	}
	return float64(h.last[module].millikelvin) / 1000
}

// moves is by how many kelvin a case may move until it is read again: as much as before.
func (h *Health) moves(module int) float64 {
	if module >= len(h.last) {
		return 0
	}
	return float64(h.last[module].moved) / 1000
}

// moduleHealth is a module's newest readings.
type moduleHealth struct {
	slowAt, lightAt time.Duration // 0 = never
	millikelvin     int32
	railMicrowatt   int32
	bias            [2]int32      // of the lasers of a half, microampere
	biasAt          time.Duration // 0 = never
	path            proto.Path
	upper, lower    proto.MilliDBm
	tap             proto.MilliDBm // NoPower in loopback
	misrouted       misrouted
	doubt           string // why its light is unproven, "": it is not
	moved           int32  // by how much millikelvin has changed since the reading before
}

// warm takes a temperature. One that is read again within a second says no more of where
// the case is going.
func (s *moduleHealth) warm(at time.Duration, millikelvin int32) {
	moved := max(millikelvin-s.millikelvin, s.millikelvin-millikelvin)
	switch {
	case s.slowAt == 0:
		moved = 0
	case at-s.slowAt < time.Second:
		moved = max(moved, s.moved)
	}
	s.slowAt, s.millikelvin, s.moved = at, millikelvin, moved
}

// light takes a reading of the guard ADC's channels.
func (s *moduleHealth) light(at time.Duration, path proto.Path, o *hal.Optics, block []byte) {
	on := func(channel int) proto.MilliDBm { return diode.GuardLevel(o, block, channel) }
	upper := hal.GuardLoopUpper + 2*int(path-proto.Loopback)
	s.lightAt, s.path = at, path
	s.upper, s.lower, s.tap = on(upper), on(upper+1), proto.NoPower
	if path.External() {
		s.tap = on(hal.GuardTap1 + int(path-proto.External1))
	}
}

const zeroCelsiusMillikelvin = 273_150

// Round reads the health of the next module, and after the last one the
// own light of all. While the one before is still being read, it does nothing.
func (h *Health) Round(now time.Duration) {
	if h.t.state != Idle {
		return
	}
	if h.last == nil {
		h.last = make([]moduleHealth, len(h.t.bundle.Modules))
		if h.t.foundIt && h.t.cfg.Lock.Mode != LockOff {
			for i := range h.last { // until it is judged, which a garbled answer delays
				if h.t.drive.proof(i).since == 0 {
					h.last[i].doubt = notInThisLife
				}
			}
		}
	}
	i := h.module
	h.module = (i + 1) % len(h.t.bundle.Modules)
	if !h.t.drive.readHealth(i) {
		h.module = i
	}
}

// Samples appends the newest health samples, of those that were read after a time, 0: all;
// what was never read is absent.
func (h *Health) Samples(now, after time.Duration, dst []proto.Sample) []proto.Sample {
	for i := range h.last {
		s := &h.last[i]
		add := func(at time.Duration, sensor proto.Sensor, value int32) {
			dst = append(dst, proto.Sample{Bundle: h.t.cfg.Bundle, Module: uint8(i), Sensor: sensor, Value: value,
				AgeMillis: uint32((now - at) / time.Millisecond)})
		}
		if s.slowAt > after {
			add(s.slowAt, proto.SensorCase, s.millikelvin)
			add(s.slowAt, proto.SensorRail, s.railMicrowatt)
		}
		if s.biasAt > after {
			if c := h.t.cfg.Calibration; c != nil {
				add(s.biasAt, proto.SensorSerial, int32(crc32.ChecksumIEEE([]byte(c.Modules[i].Serial))))
			}
			add(s.biasAt, proto.SensorUpperBias, s.bias[0])
			add(s.biasAt, proto.SensorLowerBias, s.bias[1])
		}
		if s.lightAt > after && s.path == h.t.path {
			add(s.lightAt, proto.SensorUpperPath, int32(s.upper))
			add(s.lightAt, proto.SensorLowerPath, int32(s.lower))
			if s.tap != proto.NoPower {
				add(s.lightAt, proto.SensorTxTap, int32(s.tap))
			}
		}
	}
	return dst
}
