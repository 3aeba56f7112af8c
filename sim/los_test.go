package sim

import (
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/mzi/detmath"
)

// pair is two boards with one bundle, joined on external 1 by a fibre.
func pair(t testing.TB, modules int, f Fibre) (*rig, BoardID, BoardID) {
	r := newRig(t, 2, modules)
	a, z := r.board(11), r.board(12)
	if err := r.w.Connect(Port{a, 1, hal.LOSExternal1}, Port{z, 0, hal.LOSExternal1}, f); err != nil {
		t.Fatal(err)
	}
	for _, id := range []BoardID{a, z} {
		r.on(id)
		r.perfect(id, 0)
		r.perfect(id, 1)
	}
	return r, a, z
}

func (r *rig) line(id BoardID, bundle, path int) bool {
	return r.w.Level(id, r.hw.Bundles[bundle].LOS[path])
}

// lastEdge is the newest edge of a line and how many it had since from.
func (r *rig) lastEdge(id BoardID, bundle, path int, from time.Duration) (last hal.Edge, n int) {
	for _, e := range r.edges {
		if e.board == id && e.Line == r.hw.Bundles[bundle].LOS[path] && e.At >= from {
			last = e.Edge
			n++
		}
	}
	return last, n
}

// Detecting must take between d = 40 and D = 150 us from the light's own
// change to the host, in both directions, for the near and the far board, and
// one switch must give one edge.
func TestDetectTimes(t *testing.T) {
	r, a, z := pair(t, 8, Fibre{LossMilliDB: 300})
	lo, hi := time.Hour, time.Duration(0)
	for i := range 60 {
		bits, path := byte(pathExternal1), "external1"
		if i%2 == 1 {
			bits, path = pathLoopback, "loopback"
		}
		r.latch(a, 1, bits)
		from := r.w.Now()
		r.run(5 * time.Millisecond)
		for _, at := range []struct {
			id           BoardID
			bundle, path int
			lit          bool
		}{{a, 1, hal.LOSLoopback, i%2 == 1}, {z, 0, hal.LOSExternal1, i%2 == 0}} {
			edge, n := r.lastEdge(at.id, at.bundle, at.path, from)
			changed, lit := r.w.LastChange(Port{at.id, at.bundle, at.path})
			if i == 0 && at.path == hal.LOSLoopback {
				continue // lasers come on before the heaters have left loopback
			}
			if n != 1 || edge.High != at.lit || lit != at.lit || r.line(at.id, at.bundle, at.path) != at.lit {
				t.Fatalf("switch %d to %s: board %d line %d: %d edges, last %v, lit %v, level %v", i, path, at.id, at.path, n, edge, lit, r.line(at.id, at.bundle, at.path))
			}
			if changed < from || changed > from+60*time.Microsecond {
				t.Errorf("switch %d: light changed %v after the latch", i, changed-from)
			}
			took := edge.At - changed
			lo, hi = min(lo, took), max(hi, took)
		}
	}
	if lo < 40*time.Microsecond || hi > 150*time.Microsecond {
		t.Errorf("detected in %v to %v, want 40us to 150us", lo, hi)
	}
	t.Logf("detect %v to %v", lo, hi)
}

// Switching must take between s = 75 and S = 250 us from the submission of the
// latch write to the light at the far end, most of it the bus and the heaters.
func TestSwitchTimes(t *testing.T) {
	r, a, z := pair(t, 8, Fibre{})
	lo, hi := time.Hour, time.Duration(0)
	for range 100 {
		r.latch(a, 1, pathLoopback)
		r.run(3 * time.Millisecond)
		from := r.w.Now()
		r.latch(a, 1, pathExternal1)
		r.run(3 * time.Millisecond)
		at, lit := r.w.LastChange(Port{z, 0, hal.LOSExternal1})
		if !lit {
			t.Fatal("no light")
		}
		lo, hi = min(lo, at-from), max(hi, at-from)
	}
	// s and S are counted to the end of settling, 24 to 74 us after the light
	// first passes the threshold.
	if lo < 40*time.Microsecond || hi > 176*time.Microsecond {
		t.Errorf("light after %v to %v", lo, hi)
	}
	t.Logf("light %v to %v after submission", lo, hi)
}

// Any module dark must be a loss of the whole line, either half alone, and no
// single lane: a sum of four loses 1.25 dB by it.
func TestAnyDarkHalfIsALoss(t *testing.T) {
	r, a, z := pair(t, 8, Fibre{})
	r.latch(a, 1, pathExternal1)
	r.run(3 * time.Millisecond)
	far := Port{z, 0, hal.LOSExternal1}
	if !r.w.Lit(far) {
		t.Fatal("no light to begin with")
	}
	set := func(lanes []int, broken bool) {
		for _, l := range lanes {
			f := Fault{Kind: LaserDead, Bundle: 1, Module: 5, Index: l}
			act := r.w.Inject
			if !broken {
				act = r.w.Repair
			}
			if err := act(a, f); err != nil {
				t.Fatal(err)
			}
		}
		r.run(3 * time.Millisecond)
	}
	set([]int{4, 5, 6}, true)
	if !r.w.Lit(far) {
		t.Error("three of four lanes dark is a loss; the sum has one left")
	}
	set([]int{7}, true)
	if r.w.Lit(far) {
		t.Error("a dark half of one module is no loss")
	}
	set([]int{7}, false)
	if !r.w.Lit(far) {
		t.Error("the light did not come back")
	}
	if err := r.w.Inject(z, Fault{Kind: DiodeDead, Bundle: 0, Module: 5, Path: hal.LOSExternal1, Index: 3}); err != nil {
		t.Fatal(err)
	}
	r.run(3 * time.Millisecond)
	if r.w.Lit(far) {
		t.Error("the only lit lane of a half has a dead diode and is no loss")
	}
}

// Between -16 and -14 dBm a line must stay what it was.
// Method: a fibre whose loss puts the light between the thresholds; it stays
// lit when it weakens into the band, and dark when it rises into it.
func TestLOSHysteresis(t *testing.T) {
	r := newRig(t, 1, 1)
	id := r.board(1)
	c := &r.w.boards[id].bundles[0].los[hal.LOSExternal1]
	per := func(dbm float64) [gridMax][2]float64 {
		var v [gridMax][2]float64
		for i := range v {
			v[i] = [2]float64{4 * fromDBm(dbm), 4 * fromDBm(dbm)}
		}
		return v
	}
	for _, step := range []struct {
		dbm float64
		lit bool
	}{{-15, false}, {-14.1, false}, {-13.9, true}, {-15.9, true}, {-16.1, false}, {-14.1, false}, {-5, true}} {
		v := per(step.dbm)
		var found []crossing
		for half := range 2 {
			found = c.cross(found, uint8(half), []int64{int64(r.w.Now())}, &v, half)
		}
		c.take(found)
		if got := r.w.Lit(Port{id, 0, hal.LOSExternal1}); got != step.lit {
			t.Errorf("at %.1f dBm: lit %v, want %v", step.dbm, got, step.lit)
		}
	}
}

func fromDBm(dbm float64) float64 { return detmath.FromDB(dbm) }

// A loss shorter than four samples must not reach the host.
func TestFilterRidesOutGlitches(t *testing.T) {
	r, a, z := pair(t, 2, Fibre{})
	r.latch(a, 1, pathExternal1)
	r.run(3 * time.Millisecond)
	port := Port{z, 0, hal.LOSExternal1}
	for _, tc := range []struct {
		dark  time.Duration
		edges int
	}{{20 * time.Microsecond, 0}, {80 * time.Microsecond, 2}} {
		from := r.w.Now()
		if err := r.w.Cut(port, In); err != nil {
			t.Fatal(err)
		}
		if r.w.Lit(port) {
			t.Error("light through a cut fibre")
		}
		r.run(tc.dark)
		if err := r.w.Mend(port, In); err != nil {
			t.Fatal(err)
		}
		r.run(time.Millisecond)
		if _, n := r.lastEdge(z, 0, hal.LOSExternal1, from); n != tc.edges {
			t.Errorf("dark for %v: %d edges, want %d", tc.dark, n, tc.edges)
		}
	}
}

// A cut must act in the direction named, and only there.
func TestCutDirections(t *testing.T) {
	r, a, z := pair(t, 1, Fibre{})
	r.latch(a, 1, pathExternal1)
	r.latch(z, 0, pathExternal1)
	r.run(3 * time.Millisecond)
	pa, pz := Port{a, 1, hal.LOSExternal1}, Port{z, 0, hal.LOSExternal1}
	for _, tc := range []struct {
		d      Direction
		la, lz bool
	}{{Out, true, false}, {In, false, true}, {Both, false, false}} {
		if err := r.w.Cut(pa, tc.d); err != nil {
			t.Fatal(err)
		}
		if r.w.Lit(pa) != tc.la || r.w.Lit(pz) != tc.lz {
			t.Errorf("cut %d: lit %v %v, want %v %v", tc.d, r.w.Lit(pa), r.w.Lit(pz), tc.la, tc.lz)
		}
		if err := r.w.Mend(pa, Both); err != nil {
			t.Fatal(err)
		}
		if !r.w.Lit(pa) || !r.w.Lit(pz) {
			t.Error("mended and still dark")
		}
	}
	if err := r.w.Cut(Port{a, 0, hal.LOSExternal1}, Both); err == nil {
		t.Error("cut a fibre that is not there")
	}
	if err := r.w.Connect(pa, Port{z, 1, hal.LOSExternal2}, Fibre{}); err == nil {
		t.Error("two fibres in one port")
	}
}

// A quiet world must have nothing to do.
func TestQuietBoardsCostNothing(t *testing.T) {
	r, a, _ := pair(t, 8, Fibre{})
	r.latch(a, 1, pathExternal1)
	r.run(20 * time.Millisecond)
	if next, any := r.w.Next(); any {
		t.Errorf("next event at %v, now %v", next, r.w.Now())
	}
	for i := range r.w.boards[a].bundles[1].modules {
		if r.w.boards[a].bundles[1].modules[i].moving != nil {
			t.Error("a settled module remembers how it moved")
		}
	}
}

// What a checker may ask of a link must be the latch's and the fibre's word.
func TestTruthAboutLinks(t *testing.T) {
	r, a, z := pair(t, 1, Fibre{})
	for _, tc := range []struct {
		bits    byte
		path    int
		shining bool
	}{{pathLoopback, hal.LOSLoopback, true}, {pathExternal1, hal.LOSExternal1, true}, {pathExternal2, hal.LOSExternal2, true},
		{pathExternal1 | hal.LatchTxOffLow, hal.LOSExternal1, false}, {pathDark, hal.LOSLoopback, false}} {
		r.latch(a, 1, tc.bits)
		if path, on := r.w.Selected(a, 1); path != tc.path || on != tc.shining {
			t.Errorf("latch bits %04b: path %d shining %v, want %d %v", tc.bits, path, on, tc.path, tc.shining)
		}
	}
	if far, ok := r.w.Far(Port{a, 1, hal.LOSExternal1}); !ok || far != (Port{z, 0, hal.LOSExternal1}) {
		t.Errorf("far end %v, %v", far, ok)
	}
	if _, ok := r.w.Far(Port{a, 0, hal.LOSExternal1}); ok {
		t.Error("a port without a fibre has a far end")
	}
}

// A register written in one module must not disturb what the light of the
// others is about to do.
// Method: a bundle switches; while its heaters move, a matrix cell of one
// module gets another code. The far line must come up all the same, once, and
// a module that is then darkened alone must take it down.
func TestModulesAreFollowedApart(t *testing.T) {
	r, a, z := pair(t, 8, Fibre{})
	r.latch(a, 1, pathLoopback)
	r.run(5 * time.Millisecond)
	r.latch(a, 1, pathExternal1)
	m := &r.w.boards[a].bundles[1].modules[3]
	for i := range 10 {
		r.run(3 * time.Microsecond)
		m.setLevel(hal.CellMatrix+9, m.level[hal.CellMatrix+9]+0.01*float64(1+i))
		m.changed()
	}
	from := r.w.Now()
	r.run(5 * time.Millisecond)
	far := Port{z, 0, hal.LOSExternal1}
	if _, n := r.lastEdge(z, 0, hal.LOSExternal1, from); n != 1 || !r.w.Lit(far) || !r.line(z, 0, hal.LOSExternal1) {
		t.Errorf("%d edges, lit %v, line %v", n, r.w.Lit(far), r.line(z, 0, hal.LOSExternal1))
	}
	for l := range hal.HalfLanes {
		if err := r.w.Inject(a, Fault{Kind: LaserDead, Bundle: 1, Module: 3, Index: l}); err != nil {
			t.Fatal(err)
		}
	}
	if r.w.Lit(far) {
		t.Error("a dark half of one module was not followed")
	}
}

// A bundle that faces a smaller one must stay dark: its last modules get no
// light.
func TestSmallerPeerIsDark(t *testing.T) {
	r, small := newRig(t, 1, 4), newRig(t, 1, 2)
	a := r.board(1)
	z, err := r.w.AddBoard(BoardConfig{Board: small.hw, Seed: 2, Powered: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.w.Connect(Port{a, 0, hal.LOSExternal1}, Port{z, 0, hal.LOSExternal1}, Fibre{}); err != nil {
		t.Fatal(err)
	}
	r.on(a)
	r.perfect(a, 0)
	r.latch(a, 0, pathExternal1)
	big := r.hw
	r.hw = small.hw
	r.on(z)
	r.perfect(z, 0)
	r.latch(z, 0, pathExternal1)
	r.hw = big
	r.run(5 * time.Millisecond)
	if r.w.Lit(Port{a, 0, hal.LOSExternal1}) {
		t.Error("two modules light four")
	}
	if !r.w.Lit(Port{z, 0, hal.LOSExternal1}) {
		t.Error("four modules do not light two")
	}
}
