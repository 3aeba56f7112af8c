package ocs_test

import (
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/boardfile"
	"ringlight/hal/pca953x"
	"ringlight/mzi"
	"ringlight/ocs"
	"ringlight/ocs/heater"
	"ringlight/proto"
	"ringlight/sim"
)

// Goal: whether toggle edges of an LTC2688 load its input registers or choose between
// codes that an update has brought over, an edge in the midst of staging spoils no path:
// every cell on it has a code of before or of after, and with either of them and any
// neighbours' it is where it should be.
// Method: both models of the chip; the frames of a change of lanes cut off after each,
// then an edge of both nets; cells judged by the simulator's truth.
func TestEdgesInTheMidstOfStagingAreHarmless(t *testing.T) {
	for _, holds := range []bool{false, true} {
		r := toggling(t, holds)
		hw := &r.board.Bundles[0].Modules[0]
		cal := r.optics[0].Status().Calibration.Modules[0]
		d := heater.For(hw)
		for k := range cal.Cells {
			d.Know(k, cal.Cells[k].MilliOhm)
		}
		after, err := cal.LaneCodes(standardOptics(), mzi.Permutation{2, 3, 0, 1, 6, 7, 4, 5})
		if err != nil {
			t.Fatal(err)
		}
		changed := 0
		for k := range hal.CellMatrix {
			if after[k] != cal.Codes[k] {
				changed++
			}
		}
		latch := r.board.Latches[0]
		path := func(bits byte) {
			r.alone(latch.Bus, hal.Msg{Addr: latch.Addr, W: pca953x.Of(latch.Part).AppendWrite(nil, pca953x.Output, 0, 0xC0|bits)})
		}
		worst := int32(1 << 30)
		frames := 0
		for cut := 0; cut <= frames; cut++ {
			before, _ := d.AllowAll((*heater.Codes)(&cal.Codes))
			r.alone(hw.SPI, d.Stage(before)...)
			allowed, _ := d.AllowAll(&after)
			msgs := d.Load(allowed)
			msg := msgs[0] // has every cell that toggles
			frames = len(msg.W) / int(msg.Frame)
			if msg.W = msg.W[:cut*int(msg.Frame)]; cut > 0 {
				r.alone(hw.SPI, msg)
			}
			for _, to := range []struct {
				bits byte
				path int
			}{{hal.LatchToggle0, hal.LOSExternal1}, {hal.LatchToggle0 | hal.LatchToggle1, hal.LOSExternal2}, {0, hal.LOSLoopback}} {
				path(to.bits)
				for k, x := range r.world.PathExtinctions(r.id, 0, 0, to.path) {
					if k < hal.CellMatrix {
						worst = min(worst, x)
					}
				}
			}
		}
		t.Logf("edges load %v: %d frames, %d of %d codes change, worst cell %.1f dB", !holds, frames, changed, hal.CellMatrix, float64(worst)/1000)
		if worst < 20_000 || changed == 0 {
			t.Errorf("edges load %v: %d codes change, a cell at %.1f dB", !holds, changed, float64(worst)/1000)
		}
	}
}

// alone does messages on a bus while nobody else does anything.
func (r *rig) alone(bus hal.BusID, msgs ...hal.Msg) {
	r.t.Helper()
	op := &hal.Op{Msgs: msgs}
	if err := r.world.Submit(r.world.Now(), r.id, bus, op); err != nil {
		r.t.Fatal(err)
	}
	for {
		if _, ev, ok := r.world.Step(); ok && ev.Completion != nil && ev.Completion.Op == op {
			if ev.Completion.Err != nil {
				r.t.Fatal(ev.Completion.Err)
			}
			return
		}
	}
}

// toggling is a calibrated module in loopback, whose DACs do one thing or the other at
// an edge.
func toggling(t *testing.T, holds bool) *rig {
	t.Helper()
	hw, err := boardfile.Default(4, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, world: sim.NewWorld(sim.WorldConfig{Seed: 21}), board: &hw}
	if r.id, err = r.world.AddBoard(sim.BoardConfig{Board: hw, Seed: 21, Powered: true, TogglesHold: holds}); err != nil {
		t.Fatal(err)
	}
	r.boot(make([]*ocs.Calibration, 1))
	r.run(20 * time.Millisecond)
	if end, _ := r.ends(); end.Kind != ocs.Calibrated {
		t.Fatal(end.Text)
	}
	r.ready()
	if err := r.optics[0].Select(r.world.Now(), proto.Loopback); err != nil {
		t.Fatal(err)
	}
	r.run(5 * time.Millisecond)
	return r
}
