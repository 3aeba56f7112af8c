package mzi

import (
	"fmt"
	"hash/fnv"
	"math"
	"testing"

	"ringlight/mzi/detmath"
)

// Goal: fits and compensated heats have the same bits on every machine.
// Method: golden hash over fringes made with detmath; the test runs on every
// architecture that is built for.
func TestGoldenBits(t *testing.T) {
	sum := fnv.New64a()
	put := func(x float64) { fmt.Fprintf(sum, "%016x", math.Float64bits(x)) }
	var m Module
	var want, u, most [Cells]float64
	var which []int
	for k := range CellMatrix + len(Benes) {
		p := points{n: laterPoints}
		for i := range p.n {
			p.u[i] = float64(i) * 6.1
			p.y[i] = 1 + float64(0.9*detmath.Cos(float64(p.u[i]*(0.11+float64(0.0007*float64(k))))+float64(k)))
		}
		f := p.fit(0.1, 0.15)
		put(f.Mean)
		put(f.Swing)
		put(f.Slope)
		put(f.Phase)
		m.Cells[k] = Cell{Offset: f.Phase, Slope: f.Slope, Ohm: 1000}
		for i, x := range [...]float64{0.02, 0.005, 0.001} {
			for _, j := range [...]int{k - 1 - i, k + 1 + i} {
				if j >= 0 && j < CellMatrix+len(Benes) {
					m.Cross[k][j] = x
				}
			}
		}
		want[k], most[k], which = PhaseBar, 59, append(which, k)
	}
	m.Solve(which, &want, &u, &most)
	for _, x := range u[:CellMatrix+len(Benes)] {
		put(x)
	}
	if got := fmt.Sprintf("%016x", sum.Sum64()); got != "0ff84da6c55ebd46" {
		t.Errorf("hash %s", got)
	}
}
