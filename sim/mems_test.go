package sim_test

import (
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/ad5535b"
	"ringlight/sim"
)

type mirrorBench struct {
	t  *testing.T
	w  *sim.World
	hw *hal.Board
	id sim.BoardID
}

func newMirrorBench(t *testing.T, ports int, seed uint64) *mirrorBench {
	t.Helper()
	hw, err := hal.DefaultMEMS(ports)
	if err != nil {
		t.Fatal(err)
	}
	w := sim.NewWorld(sim.WorldConfig{Seed: seed})
	id, err := w.AddBoard(sim.BoardConfig{Board: hw, Seed: seed, Powered: true})
	if err != nil {
		t.Fatal(err)
	}
	return &mirrorBench{t, w, &hw, id}
}

// wait lets the world go on for d.
func (m *mirrorBench) wait(d time.Duration) {
	limit := m.w.Now() + d
	for ok := true; ok; {
		_, _, ok = m.w.Advance(limit)
	}
}

// drive writes the two axes of a mirror in frames of so many bytes.
func (m *mirrorBench) drive(side, port int, d [2]int16, frame int) {
	m.t.Helper()
	for i, x := range d {
		for pole, code := range [2]int16{hal.MirrorBias + x, hal.MirrorBias - x} {
			at := int(m.hw.Mirrors.Arrays[side][port].Electrodes[2*i+pole])
			dac := m.hw.Mirrors.DACs[at/hal.MirrorDACChannels]
			w := ad5535b.AppendWrite(nil, at%hal.MirrorDACChannels, uint16(code))[:frame]
			if err := m.w.Submit(m.w.Now(), m.id, dac.SPI, &hal.Op{Msgs: []hal.Msg{{Addr: dac.ChipSelect, Frame: uint8(frame), W: w}}}); err != nil {
				m.t.Fatal(err)
			}
		}
	}
	m.wait(300 * time.Microsecond)
}

// Every mirror of the default board is within 0.1 dB of its end 10 ms after
// its last step, wherever it came from in steps of half a swing.
func TestMirrorsSettleIn10Milliseconds(t *testing.T) {
	m := newMirrorBench(t, 64, 1)
	for a := range 64 {
		b := (a*11 + 5) % 64
		d := m.w.Maker(m.id).Drive(a, b)
		m.drive(hal.SideA, a, [2]int16(d[:2]), 3)
		m.drive(hal.SideB, b, [2]int16(d[2:]), 3)
		m.wait(10 * time.Millisecond)
		at10 := m.w.MirrorLoss(m.id, a, b)
		m.wait(200 * time.Millisecond)
		if end := m.w.MirrorLoss(m.id, a, b); at10-end > 100 || end-at10 > 100 {
			t.Errorf("%d-%d: %d after 10 ms, %d in the end", a, b, at10, end)
		}
	}
}

// A whole swing in one step overshoots into the stop on the mirrors with
// little damping, and hangs there until the torque is taken off; the same
// swing in steps does not.
func TestMirrorPullIn(t *testing.T) {
	const swing = hal.MirrorMaxDrive // 63 mrad
	const step = 2560
	hung := 0
	for port := range 64 {
		m := newMirrorBench(t, 64, 2)
		m.drive(hal.SideA, port, [2]int16{-swing, 0}, 3)
		m.wait(50 * time.Millisecond)
		m.drive(hal.SideA, port, [2]int16{swing, 0}, 3)
		m.wait(50 * time.Millisecond)
		if m.w.PulledIn(m.id) == 0 {
			continue
		}
		hung++
		if x, _ := m.w.MirrorAngle(m.id, hal.SideA, port); x < 100_000 {
			t.Errorf("port %d: pulled in at %d urad", port, x)
		}
		m.drive(hal.SideA, port, [2]int16{swing - 10, 0}, 3)
		m.wait(50 * time.Millisecond)
		if m.w.PulledIn(m.id) == 0 {
			t.Errorf("port %d: let go at nearly full torque", port)
		}
		m.drive(hal.SideA, port, [2]int16{0, 0}, 3)
		m.wait(50 * time.Millisecond)
		if m.w.PulledIn(m.id) != 0 {
			t.Errorf("port %d: hangs without torque", port)
		}
		m.drive(hal.SideA, port, [2]int16{-swing, 0}, 3)
		m.wait(50 * time.Millisecond)
		for d := -swing; d < swing; {
			d = min(d+step, swing)
			m.drive(hal.SideA, port, [2]int16{int16(d), 0}, 3)
			m.wait(4 * time.Millisecond)
		}
		m.wait(50 * time.Millisecond)
		if m.w.PulledIn(m.id) != 0 {
			t.Errorf("port %d: pulled in by steps", port)
		}
	}
	if hung == 0 || hung == 64 {
		t.Errorf("%d of 64 mirrors pulled in", hung)
	}
	t.Logf("%d of 64 mirrors do not survive a whole swing at once", hung)
}

// What is shorter than 19 bits moves nothing.
func TestMirrorDACRefusesShortFrames(t *testing.T) {
	m := newMirrorBench(t, 4, 3)
	m.drive(hal.SideA, 0, [2]int16{2000, 2000}, 2)
	m.wait(50 * time.Millisecond)
	if x, y := m.w.MirrorAngle(m.id, hal.SideA, 0); x != 0 || y != 0 {
		t.Errorf("moved to %d, %d", x, y)
	}
	m.drive(hal.SideA, 0, [2]int16{2000, -2000}, 3)
	m.wait(50 * time.Millisecond)
	if x, y := m.w.MirrorAngle(m.id, hal.SideA, 0); x < 25_000 || y > -25_000 {
		t.Errorf("moved to %d, %d", x, y)
	}
}

// Without power every mirror falls to rest, and the light with it.
func TestMirrorsFallWithoutPower(t *testing.T) {
	m := newMirrorBench(t, 9, 4)
	d := m.w.Maker(m.id).Drive(0, 8)
	m.drive(hal.SideA, 0, [2]int16(d[:2]), 3)
	m.drive(hal.SideB, 8, [2]int16(d[2:]), 3)
	m.wait(50 * time.Millisecond)
	if loss := m.w.MirrorLoss(m.id, 0, 8); loss > 5000 {
		t.Errorf("loss %d", loss)
	}
	m.w.SetPower(m.id, false)
	m.wait(50 * time.Millisecond)
	if loss := m.w.MirrorLoss(m.id, 0, 8); loss != sim.NoLightMilliDB {
		t.Errorf("without power: loss %d", loss)
	}
}

// A board whose data contradict each other is refused.
func TestMirrorBoardChecked(t *testing.T) {
	for name, spoil := range map[string]func(*hal.Board){
		"electrode twice": func(b *hal.Board) { b.Mirrors.Arrays[0][0].Electrodes[1] = 0 },
		"monitor twice":   func(b *hal.Board) { b.Mirrors.Monitors[0][1] = b.Mirrors.Monitors[0][0] },
		"bus too fast":    func(b *hal.Board) { b.Buses[b.Mirrors.DACs[0].SPI].Speed *= 2 },
		"no SPI":          func(b *hal.Board) { b.Mirrors.DACs[0].SPI = 0 },
		"mirrors missing": func(b *hal.Board) { b.Mirrors.Arrays[1] = b.Mirrors.Arrays[1][:3] },
	} {
		hw, _ := hal.DefaultMEMS(4)
		spoil(&hw)
		if _, err := sim.NewWorld(sim.WorldConfig{}).AddBoard(sim.BoardConfig{Board: hw}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
