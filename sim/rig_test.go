package sim

import (
	"math"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/boardfile"
	"ringlight/hal/pca953x"
)

// rig drives boards as a host would, with codes worked out from the modules'
// true personalities: what a perfect calibration would find.
type rig struct {
	t     testing.TB
	w     *World
	hw    hal.Board
	edges []edgeSeen
}

type edgeSeen struct {
	board BoardID
	hal.Edge
}

func newRig(t testing.TB, bundles, modules int) *rig {
	t.Helper()
	hw, err := boardfile.Default(4, bundles, modules)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t: t, w: NewWorld(WorldConfig{Seed: 1}), hw: hw}
}

func (r *rig) board(seed uint64, faults ...Fault) BoardID {
	r.t.Helper()
	id, err := r.w.AddBoard(BoardConfig{Board: r.hw, Seed: seed, Faults: faults, Powered: true})
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

// do carries out one operation and returns its completion.
func (r *rig) do(b BoardID, bus hal.BusID, msgs ...hal.Msg) *hal.Completion {
	r.t.Helper()
	op := &hal.Op{Msgs: msgs}
	if err := r.w.Submit(r.w.Now(), b, bus, op); err != nil {
		r.t.Fatal(err)
	}
	for {
		if _, any := r.w.Next(); !any {
			r.t.Fatal("no completion")
		}
		id, ev, ok := r.w.Step()
		if !ok {
			continue
		}
		if ev.Edge != nil {
			r.edges = append(r.edges, edgeSeen{id, *ev.Edge})
			continue
		}
		if ev.Completion.Op == op {
			return ev.Completion
		}
	}
}

func (r *rig) must(b BoardID, bus hal.BusID, msgs ...hal.Msg) *hal.Completion {
	r.t.Helper()
	c := r.do(b, bus, msgs...)
	if c.Err != nil {
		r.t.Fatalf("bus %d: %v", bus, c.Err)
	}
	return c
}

// run moves the world on by d.
func (r *rig) run(d time.Duration) {
	end := r.w.Now() + d
	for {
		next, any := r.w.Next()
		if !any || next > end {
			break
		}
		id, ev, ok := r.w.Step()
		if ok && ev.Edge != nil {
			r.edges = append(r.edges, edgeSeen{id, *ev.Edge})
		}
	}
	r.w.AdvanceTo(end)
}

// latch writes the four bits of a bundle, leaving the others.
func (r *rig) latch(b BoardID, bundle int, bits byte) *hal.Completion {
	r.t.Helper()
	hw := &r.hw.Bundles[bundle]
	la := r.hw.Latches[hw.Latch]
	port, low := hw.Shift>>3, hw.Shift&7
	part := pca953x.Of(la.Part)
	keep := byte(r.w.boards[b].latches[hw.Latch].reg[part.Reg(pca953x.Output, port)])
	v := keep&^(hal.LatchMask<<low) | bits<<low
	return r.must(b, la.Bus, hal.Msg{Addr: la.Addr, W: part.AppendWrite(nil, pca953x.Output, port, v)})
}

// Latch bits of the three lit paths.
const (
	pathLoopback  = 0
	pathExternal1 = hal.LatchToggle0
	pathExternal2 = hal.LatchToggle0 | hal.LatchToggle1
	pathDark      = hal.LatchTxOffHigh | hal.LatchTxOffLow
)

// swapCells is the setting of the 20 matrix cells, true = cross, that brings lane i
// to lane i^4: the outer columns straight, the upper and lower 4 x 4 networks
// both doing p -> p^2.
func swapCells() (x [hal.MatrixCells]bool) {
	// Try every setting of each column with the same value in all rows.
	for n := range 32 {
		for i := range x {
			x[i] = n>>(i/4)&1 != 0
		}
		if settingRoutes(x) == [hal.Lanes]int{4, 5, 6, 7, 0, 1, 2, 3} {
			return x
		}
	}
	panic("no setting of whole columns swaps the halves")
}

func settingRoutes(x [hal.MatrixCells]bool) (to [hal.Lanes]int) {
	for i := range to {
		at := i
		for s := range hal.MatrixStages {
			if x[4*s+at/2] {
				at ^= 1
			}
			if s < hal.MatrixStages-1 {
				at = hal.MatrixWire(s, at)
			}
		}
		to[i] = at
	}
	return to
}

// perfect stages the codes of a bundle: A and B registers of every module,
// with the crosstalk and drift of each code's own path compensated.
func (r *rig) perfect(id BoardID, bundle int) {
	r.t.Helper()
	b := r.w.boards[id]
	for j := range b.bundles[bundle].modules {
		m := &b.bundles[bundle].modules[j]
		m.refresh()
		hw := &r.hw.Bundles[bundle].Modules[j]
		loop, ext1, ext2 := r.codes(m, false, false), r.codes(m, true, false), r.codes(m, true, true)
		for d, cs := range hw.ChipSelects {
			r.must(id, hw.SPI, hal.Msg{Addr: cs, Frame: 3, W: staged(d, &loop, &ext1, &ext2)})
		}
	}
	r.run(time.Millisecond)
}

// codes solves for the warmths that put every cell of a module where a path
// wants it.
func (r *rig) codes(m *module, external, second bool) (code [hal.CellsPerMod]uint16) {
	cross := swapCells()
	var want [hal.CellsPerMod]float64
	for l := range hal.Lanes {
		if external {
			want[hal.CellMZI1+l] = pi
		}
		if second {
			want[hal.CellMZI2+l] = pi
		}
	}
	for i, x := range cross {
		if !x {
			want[hal.CellMatrix+i] = pi
		}
	}
	var warm [hal.CellsPerMod]float64
	for range 30 {
		for k := range m.drift {
			sum := m.rest(k)
			for j, x := range m.per.crosstalk[k] {
				if n := k + j - crosstalkBand; n >= 0 && n < hal.BenesCells && n != k {
					sum += float64(float64(pi*x) * warm[n])
				}
			}
			warm[k] = math.Mod(math.Mod(want[k]-sum, 2*pi)+2*pi, 2*pi) / pi
		}
	}
	for k := range code {
		volt := math.Sqrt(warm[k] * m.per.cells[k].piPower * m.per.cells[k].ohm / 1000)
		code[k] = hal.HeaterCode(int64(volt * 1e6))
	}
	return code
}

// on configures the latch of a board as outputs, every bundle dark.
func (r *rig) on(id BoardID) {
	r.t.Helper()
	for _, la := range r.hw.Latches {
		r.must(id, la.Bus, hal.Msg{Addr: la.Addr, W: pca953x.Of(la.Part).AppendWriteAll(nil, pca953x.Output, 0xCCCCCC)})
		r.must(id, la.Bus, hal.Msg{Addr: la.Addr, W: pca953x.Of(la.Part).AppendWriteAll(nil, pca953x.Config, 0)})
	}
}

func milliDBm(milliwatt float64) float64 { return 10 * math.Log10(milliwatt) }

func (r *rig) guard(id BoardID, bundle, mod int) [8]float64 {
	m := r.w.module(id, bundle, mod)
	m.refresh()
	return m.guardInputs(int64(r.w.Now()))
}
