package sim

import (
	"bytes"
	"errors"
	"math"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/ads7138"
)

type adcRig struct {
	*rig
	id  BoardID
	bus hal.BusID
}

func newADCRig(t testing.TB) adcRig {
	r := newRig(t, 1, 1)
	id := r.board(1)
	return adcRig{r, id, r.hw.Bundles[0].Modules[0].ADC}
}

func (r adcRig) write(addr uint16, w ...byte) *hal.Completion {
	return r.do(r.id, r.bus, hal.Msg{Addr: addr, W: w})
}

func (r adcRig) read(addr uint16, n int, w ...byte) []byte {
	r.t.Helper()
	buf := make([]byte, n)
	r.must(r.id, r.bus, hal.Msg{Addr: addr, W: w, R: buf})
	return buf
}

const guardAddr, laneAddr = 0x10, 0x11

func (r adcRig) scan(addr uint16, osr byte) {
	r.write(addr, ads7138.OpWrite, ads7138.RegSequence, 0)
	r.write(addr, ads7138.OpWrite, ads7138.RegGeneral, ads7138.GeneralStats)
	r.write(addr, ads7138.OpWrite, ads7138.RegOversample, osr)
	r.write(addr, ads7138.OpWrite, ads7138.RegAutoSel, 0xFF)
	r.write(addr, ads7138.OpWrite, ads7138.RegOpMode, ads7138.OpModeAutonomous)
	r.write(addr, ads7138.OpWrite, ads7138.RegSequence, ads7138.SequenceAuto|ads7138.SequenceStart)
}

// lit puts the board's only module into loopback.
func (r adcRig) lit() {
	r.on(r.id)
	r.perfect(r.id, 0)
	r.latch(r.id, 0, pathLoopback)
	r.run(5 * time.Millisecond)
}

// Registers must have their power-on values, take what opcodes say, and keep
// results read-only.
func TestADCRegisters(t *testing.T) {
	r := newADCRig(t)
	read := func(reg byte) byte { return r.read(guardAddr, 1, ads7138.OpRead, reg)[0] }
	for reg, want := range map[byte]byte{ // any order: independent reads
		ads7138.RegStatus: ads7138.ResetStatus, ads7138.RegGeneral: 0, ads7138.RegOversample: 0,
		ads7138.RegOpMode: 0, ads7138.RegSequence: 0, ads7138.RegAutoSel: 0, ads7138.RegRecent: 0} {
		if got := read(reg); got != want {
			t.Errorf("register %#02x after power-on: %#02x, want %#02x", reg, got, want)
		}
	}
	r.write(guardAddr, ads7138.OpWrite, ads7138.RegAutoSel, 0x0F)
	r.write(guardAddr, ads7138.OpSetBits, ads7138.RegAutoSel, 0x30)
	r.write(guardAddr, ads7138.OpClearBits, ads7138.RegAutoSel, 0x11)
	if got := read(ads7138.RegAutoSel); got != 0x2E {
		t.Errorf("write, set, clear gave %#02x, want 0x2E", got)
	}
	r.write(guardAddr, ads7138.OpWriteBlock, ads7138.RegThresholds, 1, 2, 3, 4)
	if got := r.read(guardAddr, 4, ads7138.OpReadBlock, ads7138.RegThresholds); !bytes.Equal(got, []byte{1, 2, 3, 4}) {
		t.Errorf("block of thresholds: % x", got)
	}
	r.write(guardAddr, ads7138.OpWrite, ads7138.RegRecent, 0xAA)
	if got := read(ads7138.RegRecent); got != 0 {
		t.Errorf("a result could be written: %#02x", got)
	}
	r.write(guardAddr, ads7138.OpWrite, ads7138.RegStatus, ads7138.StatusBrownOut)
	if got := read(ads7138.RegStatus); got&ads7138.StatusBrownOut != 0 {
		t.Errorf("brown-out flag not cleared: %#02x", got)
	}
	r.write(guardAddr, ads7138.OpWrite, ads7138.RegGeneral, ads7138.GeneralReset)
	if got := read(ads7138.RegAutoSel); got != 0 {
		t.Errorf("reset kept %#02x", got)
	}
}

// An unknown opcode must not be acknowledged, nor an address without a chip,
// nor bytes after a single write.
func TestADCRefusals(t *testing.T) {
	r := newADCRig(t)
	for _, tc := range []struct {
		addr uint16
		w    []byte
		want error
	}{
		{guardAddr, []byte{0x00, 1, 2}, hal.ErrByteNACK},
		{guardAddr, []byte{0xFF}, hal.ErrByteNACK},
		{guardAddr, []byte{ads7138.OpWrite, 1, 0, 0}, hal.ErrByteNACK},
		{0x16, []byte{ads7138.OpWrite, 1, 0}, hal.ErrAddressNACK},
		{guardAddr, []byte{ads7138.OpWrite, ads7138.RegOversample, 0}, nil},
	} {
		if c := r.write(tc.addr, tc.w...); !errors.Is(c.Err, tc.want) {
			t.Errorf("%#02x % x: %v, want %v", tc.addr, tc.w, c.Err, tc.want)
		}
	}
}

// A block read must give the light of every lane, and averaging must make it
// finer. Method: perfectly driven loopback; codes against the true powers.
func TestADCMeasuresLight(t *testing.T) {
	r := newADCRig(t)
	r.lit()
	m := &r.w.boards[r.id].bundles[0].modules[0]
	truth := m.laneInputs(int64(r.w.Now()))
	for _, tc := range []struct {
		osr   byte
		codes float64
	}{{0, 2.5}, {4, 0.8}, {7, 0.3}} {
		r.scan(laneAddr, tc.osr)
		r.run(3 * time.Millisecond)
		block := r.read(laneAddr, ads7138.BlockBytes, ads7138.OpReadBlock, ads7138.RegRecent)
		for l := range hal.Lanes {
			got, want := float64(ads7138.Code16(block, l))/16, truth[l]*ads7138.CodeFull/m.wired.full[laneADC][0]
			if math.Abs(got-want) > tc.codes {
				t.Errorf("osr %d lane %d: %.2f codes, want %.2f +-%.1f", tc.osr, l, got, want, tc.codes)
			}
		}
	}
}

// Results exist only while the sequence runs and the first round is over, and stand
// still while statistics are off.
func TestADCNeedsItsSequence(t *testing.T) {
	r := newADCRig(t)
	r.lit()
	recent := func() uint16 {
		return ads7138.Code16(r.read(laneAddr, ads7138.BlockBytes, ads7138.OpReadBlock, ads7138.RegRecent), 7)
	}
	if v := recent(); v != 0 {
		t.Errorf("%d before anything was started", v)
	}
	r.scan(laneAddr, 7) // a round takes 8 * 128 us
	if v := recent(); v != 0 {
		t.Errorf("%d before the first round was over", v)
	}
	r.run(1100 * time.Microsecond)
	if v := recent(); v == 0 {
		t.Error("0 after the first round")
	}
	if s := r.read(laneAddr, 1, ads7138.OpRead, ads7138.RegStatus)[0]; s&ads7138.StatusRunning == 0 {
		t.Errorf("status %#02x: not running", s)
	}
	r.write(laneAddr, ads7138.OpClearBits, ads7138.RegGeneral, ads7138.GeneralStats)
	last := recent()
	r.run(50 * time.Millisecond)
	if v := recent(); v == 0 || v != last {
		t.Errorf("%d and then %d with statistics off", last, v)
	}
	r.write(laneAddr, ads7138.OpSetBits, ads7138.RegGeneral, ads7138.GeneralStats)
	if v := recent(); v != 0 {
		t.Errorf("%d before the first round of statistics that begin anew", v)
	}
	r.run(1100 * time.Microsecond)
	if v := recent(); v == 0 || v == last {
		t.Errorf("%d after it, %d before", v, last)
	}
}

// What is read must not depend on how often one reads.
func TestADCSamplesArePure(t *testing.T) {
	last := func(reads int) []byte {
		r := newADCRig(t)
		r.lit()
		r.scan(laneAddr, 2)
		start := r.w.Now()
		op := &hal.Op{Msgs: []hal.Msg{{Addr: laneAddr, W: []byte{ads7138.OpReadBlock, ads7138.RegRecent}, R: make([]byte, 16)}}}
		for range reads {
			r.w.module(r.id, 0, 0).refresh()
			r.w.module(r.id, 0, 0).results(laneADC, ads7138.RegRecent, op.Msgs[0].R)
			r.run(100 * time.Microsecond)
		}
		r.run(start + 5*time.Millisecond - r.w.Now())
		out := make([]byte, 16)
		r.w.module(r.id, 0, 0).results(laneADC, ads7138.RegRecent, out)
		return out
	}
	seldom, often := last(0), last(40)
	if !bytes.Equal(seldom, often) {
		t.Errorf("read once % x, read often % x", seldom, often)
	}
}

// MAX and MIN must bracket RECENT, and a plain read must convert once.
func TestADCStatisticsAndManual(t *testing.T) {
	r := newADCRig(t)
	r.lit()
	r.scan(laneAddr, 0)
	r.run(2 * time.Millisecond)
	get := func(reg byte) uint16 {
		return ads7138.Code16(r.read(laneAddr, ads7138.BlockBytes, ads7138.OpReadBlock, reg), 3)
	}
	low, mid, high := get(ads7138.RegMin), get(ads7138.RegRecent), get(ads7138.RegMax)
	if low > mid || mid > high || high-low < 16 || high-low > 16*8 {
		t.Errorf("min %d recent %d max %d: want them in order and a few codes apart", low, mid, high)
	}
	r.write(laneAddr, ads7138.OpWrite, ads7138.RegChannelSel, 3)
	v := r.read(laneAddr, 2)
	if code := uint16(v[0])<<8 | uint16(v[1]); code < low-32 || code > high+32 {
		t.Errorf("manual conversion %d, scanned %d to %d", code, low, high)
	}
}
