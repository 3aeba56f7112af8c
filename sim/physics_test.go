package sim

import (
	"math"
	"testing"
	"time"

	"ringlight/hal"
)

// Settling from pi must be what the board page says, up and down.
// Method: the cell's own formula along one segment of a heater; whole
// microseconds at which the light is within 1 dB, and the null 20 and 25 dB
// down. 30 dB must never be reached.
func TestSettlingTimes(t *testing.T) {
	p := Catalogue(nil, 7, 1)[0]
	c := &p.cells[0]
	for _, tc := range []struct {
		name              string
		from, to          float64
		oneDB, db20, db25 int
	}{
		{"rise", 0, 1, 18, 43, 55},
		{"fall", 1, 0, 24, 57, 74},
	} {
		s := segment{p0: tc.from, p1: tc.to}
		when := func(reached func(on, off float64) bool) int {
			for us := range 400 {
				d := decay{age: -1}
				bar := c.bar(pi * s.at(int64(us)*1000, &d, p))
				on, off := bar, 1-bar
				if tc.to == 0 {
					on, off = 1-bar, bar
				}
				if reached(on, off) {
					return us
				}
			}
			return -1
		}
		down := func(db float64) func(on, off float64) bool {
			return func(_, off float64) bool { return off <= math.Pow(10, -db/10) }
		}
		got := [3]int{when(func(on, _ float64) bool { return on >= math.Pow(10, -0.1) }), when(down(20)), when(down(25))}
		for i, want := range [3]int{tc.oneDB, tc.db20, tc.db25} {
			if diff := got[i] - want; diff < 0 || diff > 1 { // the page rounds
				t.Errorf("%s: %v us, want about %d, %d, %d", tc.name, got, tc.oneDB, tc.db20, tc.db25)
				break
			}
		}
		if n := when(down(30)); n >= 0 {
			t.Errorf("%s: 30 dB extinction after %d us; the couplers allow 28", tc.name, n)
		}
	}
}

// A cell must neither make nor lose light at any phase.
// Method: unitarity of the coefficients over a circle, and the bar formula
// against them.
func TestCellsAreLossless(t *testing.T) {
	p := Catalogue(nil, 3, 1)[0]
	for k := range p.cells {
		c := &p.cells[k]
		for i := range 64 {
			phase := float64(i) * 2 * pi / 64
			uu, ul, lu, ll := c.coefficients(phase)
			if x := norm2(uu) + norm2(ul); math.Abs(x-1) > 1e-12 {
				t.Fatalf("cell %d phase %.2f: upper input gives %v", k, phase, x)
			}
			if x := norm2(lu) + norm2(ll); math.Abs(x-1) > 1e-12 {
				t.Fatalf("cell %d phase %.2f: lower input gives %v", k, phase, x)
			}
			if x := norm2(uu) - c.bar(phase); math.Abs(x) > 1e-12 {
				t.Fatalf("cell %d phase %.2f: bar differs by %v", k, phase, x)
			}
		}
	}
}

// The half-sums and the lanes must be two views of one light.
// Method: random phases and lane powers; sum of the lanes against the gram's
// half-sums, and everything against the sum of the inputs.
func TestMatrixViewsAgree(t *testing.T) {
	for n, p := range Catalogue(nil, 11, 8) {
		var phase [hal.CellsPerMod]float64
		var in [hal.Lanes]float64
		for k := range phase {
			phase[k] = between(derive(uint64(n), uint64(k)), -pi, pi)
		}
		for l := range in {
			in[l] = unit(derive(uint64(n), uint64(100+l)))
		}
		var mat matrix
		var cells stages
		p.couple(&phase, 0, &cells)
		propagate(&cells, allPorts, &mat)
		ones := [hal.Lanes]float64{1, 1, 1, 1, 1, 1, 1, 1}
		var g gram
		gramOf(&mat, &ones, &g)
		sum := p.halves(&g, &phase, &in)
		h := p.routes(&mat, &phase)
		var lanes [2]float64
		total := 0.0
		for i := range in {
			total += in[i]
			for o := range in {
				lanes[o/hal.HalfLanes] += in[i] * h[i][o]
			}
		}
		if math.Abs(lanes[0]-sum[0]) > 1e-12 || math.Abs(lanes[1]-sum[1]) > 1e-12 || math.Abs(sum[0]+sum[1]-total) > 1e-12 {
			t.Errorf("personality %d: half-sums %v, lanes %v, in %v", n, sum, lanes, total)
		}
	}
}

// Levels of a module that is driven right must lie within the board page's:
// external -9.0 to -1.2, loopback -5.4 to 0.0, unselected at most -21 dBm.
// Method: 40 modules driven by codes from their own personalities, two boards
// joined by a fibre without loss, per lane; the mean must be near nominal.
func TestLevels(t *testing.T) {
	var sums [2]float64
	count := 0
	for seed := range uint64(5) {
		r := newRig(t, 1, 8)
		a, z := r.board(100+seed), r.board(200+seed)
		for ext := hal.LOSExternal1; ext <= hal.LOSExternal2; ext++ {
			if err := r.w.Connect(Port{a, 0, ext}, Port{z, 0, ext}, Fibre{}); err != nil {
				t.Fatal(err)
			}
		}
		r.on(a)
		r.on(z)
		r.perfect(a, 0)
		for path, bits := range []byte{pathLoopback, pathExternal1, pathExternal2} {
			r.latch(a, 0, bits)
			r.run(5 * time.Millisecond)
			for m := range 8 {
				levels := r.lanes(a, z, m)
				for where, lanes := range levels {
					lo, hi := -9.0, -1.2
					if where == hal.LOSLoopback {
						lo, hi = -5.4, 0.0
					}
					if where != path {
						lo, hi = math.Inf(-1), -21
					}
					for l, dbm := range lanes {
						if dbm < lo-0.2 || dbm > hi+0.2 {
							t.Errorf("seed %d module %d path %s: lane %d on %s: %.2f dBm, want %.1f to %.1f", seed, m, hal.LOSNames[path], l, hal.LOSNames[where], dbm, lo, hi)
						}
						if where == path {
							sums[min(where, 1)] += dbm
							count++
						}
					}
				}
			}
		}
	}
	if loop := sums[0] / float64(count/3); math.Abs(loop+2.3) > 0.4 {
		t.Errorf("loopback mean %.2f dBm, want about -2.3", loop)
	}
	if ext := sums[1] / float64(2*count/3); math.Abs(ext+4.6) > 0.4 {
		t.Errorf("external mean %.2f dBm, want about -4.6", ext)
	}
}

// lanes is the light of module m of board a on each diode of each path, the
// external ones at z.
func (r *rig) lanes(a, z BoardID, mod int) (dbm [hal.NumLOS][hal.Lanes]float64) {
	src := &r.w.boards[a].bundles[0].modules[mod]
	dst := r.w.boards[z].bundles[0].modules[mod]
	src.refresh()
	var lit instant
	src.emit(int64(r.w.Now()), &lit)
	for l, p := range src.loopLanes(&lit) {
		dbm[hal.LOSLoopback][l] = milliDBm(p)
	}
	for ext := range 2 {
		gain := dst.rxDiodes(ext)
		for l := range hal.Lanes {
			dbm[hal.LOSExternal1+ext][l] = milliDBm(lit.ext[ext][l] * src.per.txGain[l] * gain[l^hal.HalfLanes])
		}
	}
	return dbm
}

// Drift must have the board page's size and forget itself in its own time.
// Method: many cells at two times; deviation 50 mrad, correlation exp(-1/2)
// over 3 h, and the same value again whatever was asked before.
func TestDriftRevertsToItsMean(t *testing.T) {
	const n = 4000
	var sum, sq, cross float64
	for i := range n {
		seed := derive(42, uint64(i))
		a := driftAt(seed, 300*time.Hour)
		z := driftAt(seed, 303*time.Hour)
		if a != driftAt(seed, 300*time.Hour) {
			t.Fatal("drift depends on what was asked before")
		}
		sum += a
		sq += a * a
		cross += a * z
	}
	sigma := math.Sqrt(sq / n)
	if math.Abs(sigma-driftSigma) > 0.003 || math.Abs(sum/n) > 0.003 || math.Abs(cross/sq-driftKeep) > 0.05 {
		t.Errorf("deviation %.4f mean %.4f correlation %.3f, want %.3f 0 %.3f", sigma, sum/n, cross/sq, driftSigma, driftKeep)
	}
}

// The planted walk must grow as 5 mrad per root second.
func TestWalkHasNoBounds(t *testing.T) {
	for _, seconds := range []int{1, 28, 1000, 100_000} {
		const n = 3000
		sq := 0.0
		for i := range n {
			x := walkAt(derive(5, uint64(i)), time.Duration(seconds)*time.Second)
			sq += x * x
		}
		got, want := math.Sqrt(sq/n), walkPerRootSecond*math.Sqrt(float64(seconds))
		if math.Abs(got/want-1) > 0.05 {
			t.Errorf("after %d s: deviation %.4f, want %.4f", seconds, got, want)
		}
	}
}

// Personalities must spread as the board page says and a catalogue must be the
// same however long it is.
func TestCatalogue(t *testing.T) {
	long, short := Catalogue(nil, 9, 64), Catalogue(nil, 9, 3)
	serials := map[string]bool{}
	lo, hi := math.Inf(1), math.Inf(-1)
	for i, p := range long {
		if i < 3 && *p != *short[i] {
			t.Errorf("personality %d depends on the length of the catalogue", i)
		}
		if serials[p.Serial()] {
			t.Errorf("serial %s twice", p.Serial())
		}
		serials[p.Serial()] = true
		for k := range hal.BenesCells {
			c := p.Cell(k)
			lo, hi = min(lo, c.OffsetRadian), max(hi, c.OffsetRadian)
			if c.PiMilliwatt < 22.5 || c.PiMilliwatt > 27.5 || c.Ohm < 950 || c.Ohm > 1050 {
				t.Errorf("personality %d cell %d: %+v", i, k, c)
			}
		}
	}
	if lo > -3 || hi < 3 || lo < -pi || hi > pi {
		t.Errorf("offsets from %.2f to %.2f, want +-pi", lo, hi)
	}
}

// A heater on its way that gets a new voltage must go on from where it is.
// Method: warmth is continuous over a second step given in mid-flight.
func TestHeaterStepInFlight(t *testing.T) {
	r := newRig(t, 1, 1)
	id := r.board(1)
	m := &r.w.boards[id].bundles[0].modules[0]
	m.setLevel(3, 1)
	r.run(20 * time.Microsecond)
	m.setLevel(3, 0.2)
	last, d := -1.0, decay{age: -1}
	for ns := int64(0); ns < 200_000; ns += 100 {
		x := m.warmth(3, ns, &d)
		if last >= 0 && math.Abs(x-last) > 0.008 { // 100 ns of 15 us
			t.Fatalf("warmth jumps from %.4f to %.4f at %d ns", last, x, ns)
		}
		last = x
	}
	if math.Abs(last-0.2) > 1e-3 {
		t.Errorf("arrived at %.4f, want 0.2", last)
	}
}

// The short way through the matrix must be the long one.
// Method: a unit into each port of stage 1, cell by cell through hal's wiring.
func TestPropagateKnowsTheWiring(t *testing.T) {
	p := Catalogue(nil, 13, 1)[0]
	var phase [hal.CellsPerMod]float64
	for k := range phase {
		phase[k] = between(derive(1, uint64(k)), -pi, pi)
	}
	var short matrix
	var cells stages
	p.couple(&phase, 0, &cells)
	propagate(&cells, allPorts, &short)
	for i := range hal.Lanes {
		var at [hal.Lanes]complex128
		at[i] = 1
		for stage := 1; stage < hal.MatrixStages; stage++ {
			for row := range hal.Lanes / 2 {
				k := hal.CellMatrix + 4*stage + row
				uu, ul, lu, ll := p.cells[k].coefficients(phase[k])
				a, b := at[2*row], at[2*row+1]
				at[2*row], at[2*row+1] = uu*a+lu*b, ul*a+ll*b
			}
			if stage == hal.MatrixStages-1 {
				break
			}
			var next [hal.Lanes]complex128
			for port, field := range at {
				next[hal.MatrixWire(stage, port)] = field
			}
			at = next
		}
		for o := range at {
			if d := at[o] - short[i][o]; norm2(d) > 1e-28 {
				t.Errorf("port %d to output %d: %v, want %v", i, o, short[i][o], at[o])
			}
		}
	}
	for i, shares := range p.routes(&short, &phase) {
		for o, want := range shares {
			if got := p.through(hal.Benes, &phase)[i][o]; got-want > 1e-14 || want-got > 1e-14 {
				t.Errorf("lane %d to %d: %v by couplers, want %v", i, o, got, want)
			}
		}
	}
}
