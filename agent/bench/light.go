package bench

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ringlight/hal"
	"ringlight/hal/pca953x"
	"ringlight/ocs"
	"ringlight/ocs/diode"
	"ringlight/proto"
)

// lasers lets one lane shine after the other and looks for its light on every
// diode of the module: without a calibration it may be anywhere.
func (s *moduleTest) lasers(r *Report, where string, board *hal.Board, bundle int) {
	lanes := func(mask byte) error {
		return s.slowly(hal.Msg{Addr: s.hw.LaneEnable, W: pca953x.TCA9534.AppendWrite(nil, pca953x.Output, 0, mask)},
			hal.Msg{Addr: s.hw.LaneEnable, W: pca953x.TCA9534.AppendWrite(nil, pca953x.Config, 0, 0)})
	}
	err := s.scanADCs()
	if err == nil {
		err = s.shine(board, bundle, true)
	}
	var dead []string
	for lane := 0; lane < s.hw.Optics().LaneCount && err == nil; lane++ {
		if err = lanes(1 << lane); err != nil {
			break
		}
		s.h.wait(time.Millisecond)
		var taps, loops []proto.MilliDBm
		if taps, loops, err = s.levels(); err != nil {
			break
		}
		best := max(slices.Max(taps), slices.Max(loops))
		s.rep.LaneBest = append(s.rep.LaneBest, best)
		if best < laserLeast {
			dead = append(dead, fmt.Sprintf("lane %d %v", lane, best))
		}
	}
	err = errors.Join(err, lanes(0xFF), s.shine(board, bundle, false))
	if err == nil && len(dead) > 0 {
		err = fmt.Errorf("no light of %s: want %v", strings.Join(dead, ", "), laserLeast)
	}
	r.verdict("lasers", where, oneLine(err), "%d lanes emit light", len(s.rep.LaneBest))
}

// shine takes the squelch off a bundle, in loopback, or puts it back.
func (s *moduleTest) shine(board *hal.Board, bundle int, on bool) error {
	b := &board.Bundles[bundle]
	latch := board.Latches[b.Latch]
	part := pca953x.Of(latch.Part)
	regs := make([]byte, part.Ports)
	if err := s.h.do(latch.Bus, 0, hal.Msg{Addr: latch.Addr, W: part.AppendRead(nil, pca953x.Output), R: regs}); err != nil {
		return err
	}
	out := part.Value(regs) &^ (hal.LatchMask << b.Shift)
	if !on {
		out |= (hal.LatchTxOffHigh | hal.LatchTxOffLow) << b.Shift
	}
	return s.h.do(latch.Bus, 0, hal.Msg{Addr: latch.Addr, W: part.AppendWriteAll(nil, pca953x.Output, out)})
}

// scanADCs has both ADCs scan continuously, averaging.
func (s *moduleTest) scanADCs() error {
	var msgs []hal.Msg
	for adc := range diode.Both {
		msgs = append(msgs, diode.Of(s.hw).Scan(adc, 5)...)
	}
	return s.h.do(s.hw.ADC, 0, msgs...)
}

// levels are the newest of the two Tx taps and of the loopback lanes.
func (s *moduleTest) levels() (taps, loops []proto.MilliDBm, err error) {
	var guard, lane diode.Reading
	err = s.h.do(s.hw.ADC, 0, guard.Ask(diode.Of(s.hw), diode.Guard, 0, diode.Channels, 5),
		lane.Ask(diode.Of(s.hw), diode.Lane, 0, hal.Lanes, 5))
	o := s.hw.Optics()
	for _, ch := range []int{hal.GuardTap1, hal.GuardTap2} {
		taps = append(taps, diode.GuardLevel(o, guard.Block(), ch))
	}
	for ch := range o.LaneCount {
		loops = append(loops, diode.LaneLevel(o, lane.Block(), ch))
	}
	return taps, loops, err
}

// loop puts a calibrated bundle into loopback and compares the light of every
// lane with what its calibration saw.
func loop(l *lab, d *driven, r *Report, where string) {
	err := l.sel([]*driven{d}, func(*driven) proto.Path { return proto.Loopback })
	if err == nil {
		err = l.run(slotTime, nil)
	}
	if err != nil {
		r.add("optics", where, Fail, "%v", err)
		return
	}
	if e := d.event(ocs.PathFailed); e != nil {
		module, _ := e.Named()
		r.add("optics", where, Fail, "module %d: %s %v", module, e.Text, e.Err)
	}
	board := l.stations[d.station].Board
	cal := d.optics.Status().Calibration
	h := &direct{field: l.field, board: d.station, other: l.hear}
	for m := range board.Bundles[d.bundle].Modules {
		hw := &board.Bundles[d.bundle].Modules[m]
		if hw.Kind == hal.KindCMIS || cal == nil {
			continue
		}
		s := &moduleTest{h: h, hw: hw}
		_, loops, err := s.levels()
		rep := r.module(d.bundle, m)
		rep.LoopLevel, rep.LoopExpected = loops, cal.Modules[m].LaneLoop[:hw.Optics().LaneCount]
		rep.ExtinctionMB = cal.Modules[m].Extinctions()
		var weak []string
		for lane := range loops {
			if loops[lane] < rep.LoopExpected[lane]-loopSlack {
				weak = append(weak, fmt.Sprintf("lane %d %v, was %v", lane, loops[lane], rep.LoopExpected[lane]))
			}
		}
		if err == nil && len(weak) > 0 {
			err = fmt.Errorf("loopback: %s", strings.Join(weak, ", "))
		}
		r.verdict("optics", fmt.Sprintf("%s module %d", where, m), err, "loopback: all %d lanes within %.1f dB of the calibration, weakest %v",
			hw.Optics().LaneCount, float64(loopSlack)/1000, slices.Min(loops))
	}
	if err := l.sel([]*driven{d}, func(*driven) proto.Path { return proto.Dark }); err != nil {
		r.add("optics", where, Fail, "%v", err)
	}
}

func (r *Report) module(bundle, module int) *ModuleReport {
	for i := range r.Modules {
		if m := &r.Modules[i]; m.Bundle == bundle && m.Module == module {
			return m
		}
	}
	r.Modules = append(r.Modules, ModuleReport{Bundle: bundle, Module: module})
	return &r.Modules[len(r.Modules)-1]
}
