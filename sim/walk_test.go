package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/mzi/detmath"
)

// ringOf makes n boards of 4 GPUs and 2 bundles, each joined to the next (bundle
// 1 to bundle 0, external 1); wrap joins the last to the first.
func ringOf(t *testing.T, n int, wrap bool, crossedLinks int) (*rig, []BoardID) {
	r := newRig(t, 2, 2)
	var ids []BoardID
	for i := range n {
		ids = append(ids, r.board(uint64(50+i)))
	}
	for i := range n {
		if i == n-1 && !wrap {
			break
		}
		if err := r.w.Connect(Port{ids[i], 1, hal.LOSExternal1}, Port{ids[(i+1)%n], 0, hal.LOSExternal1}, Fibre{Crossed: i < crossedLinks}); err != nil {
			t.Fatal(err)
		}
	}
	for i, id := range ids {
		r.on(id)
		for b, outer := range []bool{i == 0, i == n-1} {
			r.perfect(id, b)
			bits := byte(pathExternal1)
			if outer && !wrap {
				bits = pathLoopback
			}
			r.latch(id, b, bits)
		}
	}
	r.run(5 * time.Millisecond)
	return r, ids
}

func shape(c Cycles) string {
	s := ""
	for _, l := range c.Closed {
		s += fmt.Sprintf("closed %d ", len(l))
	}
	for _, l := range c.Open {
		s += fmt.Sprintf("open %d ", len(l))
	}
	return s
}

// A node in loopback is a ring of its own; a line with loopback ends is one
// ring of all its GPUs; a wrapped ring of straight links is two, whatever one
// thinks, and one with an odd number of crossed links.
func TestWalk(t *testing.T) {
	for _, tc := range []struct {
		n       int
		wrap    bool
		crossed int
		want    string
	}{
		{1, false, 0, "closed 4 "},
		{2, false, 0, "closed 8 "},
		{4, false, 0, "closed 16 "},
		{4, false, 1, "closed 16 "},
		{3, true, 0, "closed 9 closed 3 "},
		{3, true, 1, "closed 12 "},
		{4, true, 2, "closed 10 closed 6 "},
	} {
		r, _ := ringOf(t, tc.n, tc.wrap, tc.crossed)
		if got := shape(r.w.Walk(nil)); got != tc.want {
			t.Errorf("%d nodes, wrapped %v, %d crossed: %s, want %s", tc.n, tc.wrap, tc.crossed, got, tc.want)
		}
	}
}

// One way of light is not enough, a node that listens elsewhere is no
// neighbour, and what is not alive is left out.
func TestWalkOpensWhereLightDoes(t *testing.T) {
	r, ids := ringOf(t, 3, false, 0)
	port := Port{ids[1], 1, hal.LOSExternal1}
	if err := r.w.Cut(port, In); err != nil {
		t.Fatal(err)
	}
	if got := shape(r.w.Walk(nil)); got != "open 8 open 4 " {
		t.Errorf("cut one way: %s, want open 8 open 4", got)
	}
	if err := r.w.Mend(port, In); err != nil {
		t.Fatal(err)
	}
	r.latch(ids[2], 0, pathExternal2)
	r.run(3 * time.Millisecond)
	if c := r.w.Walk(nil); len(c.Open) == 0 {
		t.Errorf("peer listens elsewhere: %s", shape(c))
	}
	r.latch(ids[2], 0, pathExternal1)
	r.w.SetPower(ids[2], false)
	r.run(3 * time.Millisecond)
	if c := r.w.Walk(nil); len(c.Open) == 0 {
		t.Errorf("dead neighbour: %s", shape(c))
	}
	r.latch(ids[1], 1, pathLoopback)
	r.run(3 * time.Millisecond)
	if got := shape(r.w.Walk(nil)); got != "closed 8 " {
		t.Errorf("bypassed the dead: %s, want closed 8", got)
	}
	only := func(id BoardID) bool { return id == ids[0] }
	if c := r.w.Walk(only); len(c.Open) != 1 || len(c.Open[0]) != 4 {
		t.Errorf("one board alone: %s, want open 4", shape(c))
	}
}

// A loopback whose matrix does not swap the halves closes no gap, though all
// its diodes are lit.
func TestWalkNeedsTheMatrix(t *testing.T) {
	r, ids := ringOf(t, 1, false, 0)
	if got := shape(r.w.Walk(nil)); got != "closed 4 " {
		t.Fatalf("to begin with: %s", got)
	}
	b := r.w.boards[ids[0]]
	m := &b.bundles[0].modules[1]
	// Turn one whole column of the matrix round, one that leaves light of a
	// half in that half.
	cells := swapCells()
	column := 0
	for ; ; column++ {
		turned := cells
		for row := range 4 {
			turned[4*column+row] = !turned[4*column+row]
		}
		if to := settingRoutes(turned); to[0] < hal.HalfLanes {
			break
		}
	}
	for row := range 4 {
		k := hal.CellMatrix + 4*column + row
		level := m.level[k] + 1
		if level > 2 {
			level = m.level[k] - 1
		}
		m.setLevel(k, level)
	}
	b.bundles[0].changed(allModules)
	r.run(5 * time.Millisecond)
	if !r.w.Lit(Port{ids[0], 0, hal.LOSLoopback}) {
		t.Error("the matrix only moved light; all of it should still arrive somewhere")
	}
	if got := shape(r.w.Walk(nil)); got != "open 4 " {
		t.Errorf("%s, want open 4", got)
	}
}

// The walk does not look at a matrix again while no phase can have drifted as
// far as would change the answer.
// Goal: no change of phases within the slack makes a swapping matrix not swap,
// and one far beyond it does.
// Method: 20 boards, the worst of 500 random corners of the slack each; then
// the time that the walk trusts is checked against the drift itself.
func TestSwapSlackIsSafe(t *testing.T) {
	broken := 0
	for n := range 20 {
		r := newRig(t, 1, 1)
		id := r.board(uint64(700 + n))
		r.on(id)
		r.perfect(id, 0)
		r.latch(id, 0, pathLoopback)
		r.run(5 * time.Millisecond)
		m := &r.w.boards[id].bundles[0].modules[0]
		m.refresh()
		slack, ok := m.swaps(int64(r.w.now))
		if !ok || slack < 0.01 {
			t.Fatalf("board %d: swaps %t, slack %v", n, ok, slack)
		}
		base := slices.Clone(m.drift)
		corner := func(h uint64, x float64) bool {
			for k := hal.CellMatrix; k < hal.BenesCells; k++ {
				m.drift[k][0] = base[k][0] + x
				if detmath.Mix(h+uint64(k))&1 == 0 {
					m.drift[k][0] = base[k][0] - x
				}
			}
			_, ok := m.swaps(int64(r.w.now))
			copy(m.drift, base)
			return ok
		}
		for i := range 500 {
			h := derive(uint64(n), uint64(i))
			if !corner(h, slack) {
				t.Fatalf("board %d: phases %v away it does not swap, corner %d", n, slack, i)
			}
			if !corner(h, 40*slack) {
				broken++
			}
		}
		until := m.steadyUntil(0.002)
		from := (r.w.now / driftEpoch) * driftEpoch
		for k := hal.CellMatrix; k < hal.BenesCells; k++ {
			seed := derive(m.seed, uint64(k))
			if d := driftAt(seed, until-driftEpoch) - driftAt(seed, from); d > 0.002 || d < -0.002 {
				t.Errorf("board %d: cell %d drifts by %v until %v", n, k, d, until)
			}
		}
		if until <= from+driftEpoch {
			t.Errorf("board %d: trusted until %v only", n, until)
		}
	}
	if broken < 1000 {
		t.Errorf("only %d of 10000 corners far beyond the slack break the swap", broken)
	}
}

// driftAt is the drift of a cell at a time, without what a module keeps of it.
func driftAt(seed uint64, t time.Duration) float64 {
	a, b := driftKnotAt(seed, int64(t/driftKnot))
	return a + float64(float64(t%driftKnot)/float64(driftKnot)*(b-a))
}
