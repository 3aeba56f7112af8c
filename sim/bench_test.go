package sim

import (
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/ads7138"
)

// BenchmarkSwitch is one switch of a bundle of 8 modules with a neighbour on
// each fibre: latch write, heaters, crossings at both ends, edges, settling.
func BenchmarkSwitch(b *testing.B) {
	r := newRig(b, 2, 8)
	id := r.board(1)
	left, right := r.board(2), r.board(3)
	for i, peer := range []BoardID{left, right} {
		if err := r.w.Connect(Port{id, 0, hal.LOSExternal1 + i}, Port{peer, 1, hal.LOSExternal1}, Fibre{}); err != nil {
			b.Fatal(err)
		}
	}
	r.on(id)
	r.perfect(id, 0)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		r.latch(id, 0, []byte{pathExternal1, pathExternal2, pathLoopback}[i%3])
		r.run(5 * time.Millisecond)
	}
}

func calibrating(b *testing.B) (*rig, BoardID) {
	r := newRig(b, 1, 1)
	id := r.board(1)
	r.on(id)
	r.perfect(id, 0)
	r.latch(id, 0, pathLoopback)
	r.run(5 * time.Millisecond)
	hw := &r.hw.Bundles[0].Modules[0]
	for _, addr := range []uint16{hw.Guard, hw.LaneADC} {
		for _, rv := range [][2]byte{{ads7138.RegGeneral, ads7138.GeneralStats}, {ads7138.RegAutoSel, 0xFF}, {ads7138.RegOversample, 4},
			{ads7138.RegOpMode, ads7138.OpModeAutonomous}, {ads7138.RegSequence, ads7138.SequenceAuto | ads7138.SequenceStart}} {
			r.must(id, hw.ADC, hal.Msg{Addr: addr, W: ads7138.AppendWrite(nil, rv[0], rv[1])})
		}
	}
	r.run(5 * time.Millisecond)
	b.ReportAllocs()
	b.ResetTimer()
	return r, id
}

// BenchmarkReadSettled is a block read of eight averaged lanes while nothing
// moves.
func BenchmarkReadSettled(b *testing.B) {
	r, id := calibrating(b)
	hw := &r.hw.Bundles[0].Modules[0]
	msg := hal.Msg{Addr: hw.LaneADC, W: ads7138.AppendReadBlock(nil, ads7138.RegRecent), R: make([]byte, ads7138.BlockBytes)}
	for range b.N {
		r.must(id, hw.ADC, msg)
	}
}

// BenchmarkMeasure is one step of a calibration: a code into a matrix cell, a
// settling time, a block read.
func BenchmarkMeasure(b *testing.B) {
	r, id := calibrating(b)
	hw := &r.hw.Bundles[0].Modules[0]
	msg := hal.Msg{Addr: hw.Guard, W: ads7138.AppendReadBlock(nil, ads7138.RegRecent), R: make([]byte, ads7138.BlockBytes)}
	for i := range b.N {
		r.must(id, hw.SPI, hal.Msg{Addr: hw.ChipSelects[1], Frame: 3, W: driven(5, uint16(i*1000)&0x7FFF)})
		r.run(200 * time.Microsecond)
		r.must(id, hw.ADC, msg)
	}
}
