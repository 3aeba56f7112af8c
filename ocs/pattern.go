package ocs

import (
	"fmt"
	"time"

	"ringlight/hal"
	"ringlight/hal/cmis"
	"ringlight/hal/pca9548"
	"ringlight/proto"
)

// Patterns are the bit patterns that all modules of a bundle make and check.
type Patterns struct {
	t      *Transceiver
	step   cmis.PatternStep
	want   uint8 // modules that have not answered, bit by module
	err    error
	counts [][cmis.MonitorBytes]byte
	// When the modules were told to check, and when they said what they had counted.
	checked, counted time.Duration
}

// moduleLight is a module's own light on an external path and what comes to its halves,
// thousandths of a dBm a lane.
type moduleLight struct {
	launched proto.MilliDBm
	lost     proto.MilliDBm // since its calibration
	received [2]proto.MilliDBm
}

var noLight = moduleLight{launched: proto.NoPower, received: [2]proto.MilliDBm{proto.NoPower, proto.NoPower}}

// There: every module makes and checks bit patterns, or monitors what it receives.
func (x *Patterns) There() bool {
	set := x.t.drive.controllers()
	for i := range x.t.bundle.Modules {
		if set == nil && x.t.bundle.Modules[i].Pattern == 0 || set != nil && !set.Modules[i].Advert.Diagnostics && !set.Modules[i].Advert.Monitors {
			return false
		}
	}
	return true
}

// Ask has every module make patterns, check them anew or say what it has counted; with
// NoPattern it stops. Patterned tells the end. Whoever asks sees to it that nobody misses
// the host's bits.
func (x *Patterns) Ask(what proto.Pattern) error {
	step := cmis.PatternOff
	if what > proto.PatternAhead {
		step = cmis.PatternStep(what - proto.PatternAhead)
	}
	switch {
	case x.t.state != Idle:
		return ErrNotReady
	case !x.There():
		return fmt.Errorf("ocs: bundle %d: nothing makes bit patterns: %w", x.t.cfg.Bundle, hal.ErrUnsupported)
	case x.want != 0 && step != cmis.PatternOff:
		return ErrBusy
	}
	n := len(x.t.bundle.Modules)
	if x.counts == nil {
		x.counts = make([][cmis.MonitorBytes]byte, n)
	}
	x.step, x.want, x.err = step, 1<<n-1, nil
	if x.t.drive.controllers() == nil {
		x.askChips()
	} else {
		x.askControllers()
	}
	return nil
}

// done takes a module's answer to a step.
func (x *Patterns) done(now time.Duration, module int, step cmis.PatternStep, err error) {
	if step != x.step || x.want>>module&1 == 0 {
		return // of one that was given up
	}
	x.want &^= 1 << module
	if err != nil && x.err == nil {
		x.err = &ModuleError{Module: module, Err: err}
	}
	switch {
	case x.want != 0:
	case step == cmis.PatternCheck:
		x.checked = now
	case step == cmis.PatternCount:
		x.counted = now
	}
	if x.want == 0 {
		x.t.emit(Event{Kind: Patterned, At: now, Path: x.t.path, Module: moduleOf(x.err), Cell: None, Lane: None, Err: x.err})
	}
}

// Bits is what the modules have counted, with their light.
func (x *Patterns) Bits() []proto.ModuleBits {
	out := make([]proto.ModuleBits, len(x.counts))
	for i := range out {
		m, light := &out[i], &x.t.verify.light[i]
		m.Launched, m.Lost, m.Upper, m.Lower = light.launched, light.lost, light.received[0], light.received[1]
		lanes := x.t.bundle.Modules[i].Optics().LaneCount
		m.Errors, m.Bits = make([]uint64, lanes), make([]uint64, lanes)
		for lane := range m.Errors {
			switch {
			case !x.monitors(i):
				m.Errors[lane], m.Bits[lane] = cmis.LaneCount(x.counts[i][:], lane)
			case x.counted-x.checked >= cmis.MonitorSettle:
				m.Errors[lane], m.Bits[lane] = cmis.LaneSample(x.counts[i][:], lane)
			}
		}
	}
	return out
}

// monitors: a module makes no patterns, and tells of its host's bits how many were wrong.
func (x *Patterns) monitors(module int) bool {
	set := x.t.drive.controllers()
	return set != nil && !set.Modules[module].Advert.Diagnostics
}

// askChips asks the retimers of all modules, each in one piece of bus work.
func (x *Patterns) askChips() {
	for i := range x.t.bundle.Modules {
		m := &x.t.bundle.Modules[i]
		var msgs []hal.Msg
		for _, r := range cmis.PatternRequests(x.step, x.counts[i][:]) {
			msg := hal.Msg{Addr: m.Pattern, W: []byte{r.Offset}, R: r.Data}
			if r.Write {
				msg.W, msg.R = append(msg.W, r.Data...), nil
			}
			msgs = append(msgs, hal.Msg{Addr: m.Pattern, W: []byte{cmis.BankSelect, 0, r.Page}}, msg)
		}
		x.t.put(m.Slow, &hal.Op{Token: x.t.token(taskPattern, i, int(x.step)), Class: hal.ClassHousekeeping, Msgs: pca9548.Behind(m.Mux, m.MuxChannel, msgs...)})
	}
}

// askControllers asks those that are asked nothing else just now.
func (x *Patterns) askControllers() {
	set, step := x.t.drive.controllers(), x.step
	for i := range set.Modules {
		if m := &set.Modules[i]; x.want>>i&1 != 0 && m.Idle() {
			var queue []cmis.Request
			if !x.monitors(i) {
				queue = cmis.PatternRequests(step, x.counts[i][:])
			} else if step == cmis.PatternCount {
				queue = cmis.MonitorRequests(x.counts[i][:])
			}
			m.Ask(hal.ClassHousekeeping, func(now time.Duration, err error) { x.done(now, i, step, err) }, queue...)
		}
	}
}
