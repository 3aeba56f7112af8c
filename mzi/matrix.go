package mzi

import "fmt"

// The 8 x 8 matrix is a Benes network: five columns of four cells. Cell
// CellMatrix + Rows*stage + row joins ports 2*row and 2*row+1 of its column.
const (
	Stages = 5
	Rows   = 4
)

// wire is the port of the following stage to which an output port of a stage
// is led: stage 0 assigns its outputs to two 4 x 4 networks, stage 1 to four
// single cells, and back.
var wire = [Stages - 1][Lanes]uint8{
	{0, 4, 1, 5, 2, 6, 3, 7},
	{0, 2, 1, 3, 4, 6, 5, 7},
	{0, 2, 1, 3, 4, 6, 5, 7},
	{0, 2, 4, 6, 1, 3, 5, 7},
}

// Wire is the port of the following stage to which an output port of a stage
// is led; the last stage has no following one.
func Wire(stage, port int) int { return int(wire[stage][port]) }

// Setting is the state of all matrix cells: bit Rows*stage+row set means bar,
// clear means cross.
type Setting uint32

// Bar tells the state of one cell of the matrix, counted from its first.
func (s Setting) Bar(cell int) bool { return s>>cell&1 != 0 }

// Phase at which a cell has its state.
func (s Setting) Phase(cell int) float64 {
	if s.Bar(cell) {
		return PhaseBar
	}
	return PhaseCross
}

// Line is the way of one lane through the matrix: its cells, counted from the
// matrix's first, and the output where it ends.
type Line struct {
	In, Out int
	Cells   [Stages]int
}

// Trace follows lane in through a setting.
func (s Setting) Trace(in int) Line {
	l := Line{In: in}
	port := in
	for stage := range Stages {
		cell := Rows*stage + port/2
		l.Cells[stage] = cell
		if !s.Bar(cell) {
			port ^= 1
		}
		if stage < Stages-1 {
			port = Wire(stage, port)
		}
	}
	l.Out = port
	return l
}

// Permutation of the lanes: where each goes.
type Permutation [Lanes]uint8

// Halves is the permutation of the loopback: each lane of the upper half to
// the same lane of the lower half, and back.
var Halves = Permutation{4, 5, 6, 7, 0, 1, 2, 3}

// Check tells why p is not a permutation.
func (p Permutation) Check() error {
	var seen [Lanes]bool
	for i, o := range p {
		if int(o) >= Lanes || seen[o] {
			return fmt.Errorf("mzi: lane %d goes to %d: not a permutation", i, o)
		}
		seen[o] = true
	}
	return nil
}

// Permutation that a setting makes.
func (s Setting) Permutation() (p Permutation) {
	for i := range p {
		p[i] = uint8(s.Trace(i).Out)
	}
	return p
}

// Route finds a setting that makes p, by the looping algorithm: the two lanes
// of an outer cell must take different inner networks, at the input as at the
// output; following these constraints from a free lane closes a loop, and the
// inner networks are then routed in the same way.
func Route(p Permutation) (Setting, error) {
	if err := p.Check(); err != nil {
		return 0, err
	}
	var s Setting
	perm := make([]int, Lanes)
	for i, o := range p {
		perm[i] = int(o)
	}
	s.route(perm, 0, 0)
	return s, nil
}

// route sets the cells of the sub-network of len(perm) ports whose first port
// is port first of its column, and whose first column is stage.
func (s *Setting) route(perm []int, stage, first int) {
	n := len(perm)
	if n == 2 {
		if perm[0] == 0 {
			s.bar(stage, first/2)
		}
		return
	}
	inverse := make([]int, n)
	for i, o := range perm {
		inverse[o] = i
	}
	// sub is the inner network of each input: 0 upper, 1 lower.
	sub := make([]int, n)
	for i := range sub {
		sub[i] = -1
	}
	for start := range perm {
		for i := start; sub[i] < 0; {
			sub[i] = 0
			mate := inverse[perm[i]^1] // shares the output cell: the other network
			sub[mate] = 1
			i = mate ^ 1 // shares the input cell of mate: the upper network again
		}
	}
	last := Stages - 1 - stage
	inner := [2][]int{make([]int, n/2), make([]int, n/2)}
	for i, o := range perm {
		inner[sub[i]][i/2] = o / 2
		if i&1 == sub[i] {
			s.bar(stage, (first+i)/2) // an upper port keeps to the upper output
		}
		if o&1 == sub[i] {
			s.bar(last, (first+o)/2)
		}
	}
	s.route(inner[0], stage+1, first)
	s.route(inner[1], stage+1, first+n/2)
}

func (s *Setting) bar(stage, row int) { *s |= 1 << (Rows*stage + row) }
