package sim

import (
	"bytes"
	"errors"
	mathbits "math/bits"
	"strings"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/ads7138"
)

func TestFaultsReadAndWrite(t *testing.T) {
	for _, s := range []string{"stuck:0/3/17", "short:1/0/35", "laser:0/7/7", "diode:1/2/loopback/0", "diode:0/0/external2/7", "drift:1/7", "nack:2/0x13", "bus:4", "walk:0/3/35", "hot:0/1", "stretch:2/0x13/900", "flip:2/0x13/7", "byte:2/0x13", "noise:0/1/30"} {
		f, err := ParseFault(s)
		if err != nil || f.String() != s {
			t.Errorf("%q: %v, %v", s, f, err)
		}
	}
	for s, why := range map[string]string{ // any order: independent cases
		"": "unknown kind", "stuck": "unknown kind", "melted:0/0/0": "unknown kind", "stuck:0/3": "2 numbers, want 3",
		"stuck:0/3/17/1": "4 numbers", "stuck:0/-1/2": "no number", "stuck:0/x/2": "no number", "diode:0/1/nowhere/2": "no number",
		"diode:0/1/2/3": "path has a name", "bus:99999": "no number"} {
		if f, err := ParseFault(s); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, %v; want an error with %q", s, f, err, why)
		}
	}
}

func FuzzParseFault(f *testing.F) {
	f.Add("stuck:0/3/17")
	f.Add("diode:0/0/external2/7")
	f.Fuzz(func(t *testing.T, s string) {
		fault, err := ParseFault(s)
		if err != nil {
			return
		}
		if again, err := ParseFault(fault.String()); err != nil || again != fault {
			t.Errorf("%q reads as %+v, which writes as %q: %+v, %v", s, fault, fault, again, err)
		}
	})
}

// A fault that the board has no place for must be refused.
func TestFaultsMustFitTheBoard(t *testing.T) {
	r := newRig(t, 2, 4)
	for _, s := range []string{"stuck:2/0/0", "stuck:0/4/0", "stuck:0/0/36", "walk:0/0/36", "laser:0/0/8", "diode:0/0/loopback/8", "nack:99/0x10", "nack:0/0x7f", "nack:0/0x7fff", "flip:0/0x03/5", "stretch:0/0x03/100", "byte:0/0x03", "bus:1", "stretch:99/0x10/1", "byte:1/0", "noise:0/4/1", "noise:0/0/5000"} {
		f, err := ParseFault(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.w.AddBoard(BoardConfig{Board: r.hw, Faults: []Fault{f}}); err == nil {
			t.Errorf("%s accepted by a board of 2 bundles with 4 modules", s)
		}
	}
	if len(r.w.boards) != 0 {
		t.Errorf("%d boards were added all the same", len(r.w.boards))
	}
}

// A heater that fails while it holds a path must let its light go.
// Method: the MZI1 heaters of a whole half, one by one; the loopback light is
// the witness, by the lane's own diode route.
func TestHeaterFaultMovesLight(t *testing.T) {
	for _, kind := range []FaultKind{HeaterStuck, HeaterShort} {
		r := newRig(t, 1, 1)
		id := r.board(5)
		r.on(id)
		r.perfect(id, 0)
		r.latch(id, 0, pathLoopback)
		r.run(5 * time.Millisecond)
		m := &r.w.boards[id].bundles[0].modules[0]
		hottest := 0
		for l := range hal.Lanes {
			if d := abs(m.level[l] - 1); d < abs(m.level[hottest]-1) {
				hottest = l // the one whose loss turns its phase by pi
			}
		}
		before := r.guard(id, 0, 0)
		f := Fault{Kind: kind, Index: hottest}
		if err := r.w.Inject(id, f); err != nil {
			t.Fatal(err)
		}
		r.run(5 * time.Millisecond)
		broken := r.guard(id, 0, 0)
		if lost := before[0] + before[1] - broken[0] - broken[1]; lost < 0.1 {
			t.Errorf("%v: only %.3f mW less", f, lost)
		}
		if err := r.w.Repair(id, f); err != nil {
			t.Fatal(err)
		}
		r.run(5 * time.Millisecond)
		if after := r.guard(id, 0, 0); abs(after[0]-before[0]) > 1e-4 {
			t.Errorf("%v repaired: %.4f mW, was %.4f", f, after[0], before[0])
		}
	}
}

func abs(x float64) float64 {
	if x < 0 {
		return -x
	}
	return x
}

// The planted walk must cost the extinction that the board page says, 25 dB
// within minutes, and a healthy module must keep it for days.
func TestDriftFaultEatsExtinction(t *testing.T) {
	r := newRig(t, 1, 2)
	walk, err := ParseFault("drift:0/1")
	if err != nil {
		t.Fatal(err)
	}
	id := r.board(6, walk)
	r.on(id)
	r.perfect(id, 0)
	r.latch(id, 0, pathLoopback)
	r.run(5 * time.Millisecond)
	worst := func(m int) float64 { g := r.guard(id, 0, m); return milliDBm((g[6] + g[7]) / (g[0] + g[1])) }
	start := [2]float64{worst(0), worst(1)}
	r.run(2 * time.Hour)
	if now := worst(0); now > start[0]+3 {
		t.Errorf("healthy module: leak from %.1f to %.1f dB in 2 h", start[0], now)
	}
	if now := worst(1); now < start[1]+6 {
		t.Errorf("walking module: leak from %.1f to %.1f dB only", start[1], now)
	}
}

// Goal: a cell that walks begins where it stands, and no other follows it.
// Method: the phases behind the truth before and after the fault is planted,
// and an hour later.
func TestAWalkingCellStartsWhereItStands(t *testing.T) {
	r := newRig(t, 1, 1)
	id, err := r.w.AddBoard(BoardConfig{Board: r.hw, Powered: true})
	if err != nil {
		t.Fatal(err)
	}
	b := r.w.boards[id]
	m := &b.bundles[0].modules[0]
	for r.w.Now() < time.Hour {
		if next, any := r.w.Next(); any && next < time.Hour {
			r.w.Step()
			continue
		}
		r.w.AdvanceTo(time.Hour)
	}
	m.refresh()
	var before [hal.CellsPerMod]float64
	for k := range m.drift {
		before[k] = m.rest(k)
	}
	if err := r.w.Inject(id, Fault{Kind: CellWalk, Index: 17}); err != nil {
		t.Fatal(err)
	}
	m.refresh()
	if d := m.rest(17) - before[17]; d > 1e-9 || d < -1e-9 {
		t.Errorf("it jumped by %v", d)
	}
	for r.w.Now() < 2*time.Hour {
		if next, any := r.w.Next(); any && next < 2*time.Hour {
			r.w.Step()
			continue
		}
		r.w.AdvanceTo(2 * time.Hour)
	}
	m.refresh()
	for k := range m.drift {
		d := sqrt((m.rest(k) - before[k]) * (m.rest(k) - before[k]))
		// An hour of drift is some 20 mrad; an hour of the walk 300 rms.
		if k != 17 && d > 0.1 || k == 17 && d < 0.03 {
			t.Errorf("cell %d moved by %v rad", k, d)
		}
	}
}

// A chip that stretches the clock, garbles bytes or refuses them must show as
// such on the wire, and no other chip of the bus. Method: block reads of two
// converters on one segment; each fault in turn, and mended.
func TestWireFaults(t *testing.T) {
	r := newRig(t, 2, 2)
	id := r.board(5)
	m, other := r.hw.Bundles[0].Modules[0], r.hw.Bundles[0].Modules[1]
	read := func(addr uint16) ([]byte, *hal.Completion) {
		buf := make([]byte, ads7138.BlockBytes)
		c := r.do(id, m.ADC, hal.Msg{Addr: addr, W: ads7138.AppendReadBlock(nil, ads7138.RegRecent), R: buf})
		return buf, c
	}
	want, quick := read(m.Guard)
	usual := quick.End - quick.Start
	plant := func(f Fault, broken bool) {
		t.Helper()
		if err := r.w.setFault(id, f, broken); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		fault Fault
		err   error
		check func(got []byte, took time.Duration) bool
	}{
		{Fault{Kind: WireStretch, Bus: m.ADC, Addr: m.Guard, Index: 900}, nil, func(got []byte, took time.Duration) bool {
			return bytes.Equal(got, want) && took > 900*time.Microsecond && took < 2*time.Millisecond
		}},
		{Fault{Kind: WireStretch, Bus: m.ADC, Addr: m.Guard, Index: 30_000}, hal.ErrClockStretch, func(_ []byte, took time.Duration) bool {
			return took == hal.DefaultDeadline
		}},
		{Fault{Kind: WireFlip, Bus: m.ADC, Addr: m.Guard, Index: 5}, nil, func(got []byte, _ time.Duration) bool {
			bits := 0
			for i := range got {
				bits += mathbits.OnesCount8(got[i] ^ want[i])
			}
			return bits == len(got)/5
		}},
		{Fault{Kind: ByteNACK, Bus: m.ADC, Addr: m.Guard}, hal.ErrByteNACK, nil},
	} {
		plant(c.fault, true)
		got, done := read(m.Guard)
		if !errors.Is(done.Err, c.err) || c.check != nil && !c.check(got, done.End-done.Start) {
			t.Errorf("%v: %v after %v, % x", c.fault, done.Err, done.End-done.Start, got)
		}
		if _, done := read(other.Guard); done.Err != nil || done.End-done.Start > 2*usual {
			t.Errorf("%v: the other chip: %v after %v", c.fault, done.Err, done.End-done.Start)
		}
		plant(c.fault, false)
		if got, done := read(m.Guard); done.Err != nil || !bytes.Equal(got, want) {
			t.Errorf("%v mended: %v, % x", c.fault, done.Err, got)
		}
	}
}
