package mzi

import (
	"errors"
	"fmt"
	"math/bits"
)

// Matrix is the couplers of a loopback matrix, each a cell that joins the waveguides of
// two lanes, in an order in which light meets them. Light enters at the waveguide of its
// lane and ends at the loopback diode of that in which it is then.
type Matrix [][2]uint8

// MatrixCells is the most couplers of a matrix: where no two lanes meet twice (see clean),
// there is one for every two. A mesh of so many makes any unitary of the lanes (Reck et al.
// 1994, Clements et al. 2016).
const MatrixCells = Lanes * (Lanes - 1) / 2

// Benes is the 8 x 8 Benes network: five columns of four cells.
var Benes = Matrix{
	{0, 1}, {2, 3}, {4, 5}, {6, 7},
	{0, 2}, {4, 6}, {1, 3}, {5, 7},
	{0, 4}, {2, 6}, {1, 5}, {3, 7},
	{0, 2}, {4, 6}, {1, 3}, {5, 7},
	{0, 1}, {2, 3}, {4, 5}, {6, 7},
}

// Setting is the state of all matrix cells by bit: set means bar, in which light keeps to
// its waveguide, clear means cross.
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

// Line is the way of one lane through the matrix. Light meets its cells in their order.
type Line struct {
	In, Out int
	on      Setting // bit by cell of the matrix
}

// Cells are those of the line, counted from the matrix's first.
func (l *Line) Cells() (cells []int) {
	for on := l.on; on != 0; on &= on - 1 {
		cells = append(cells, bits.TrailingZeros32(uint32(on)))
	}
	return cells
}

// has says whether a line passes a matrix cell.
func (l *Line) has(c int) bool { return c >= 0 && l.on.Bar(c) }

// meets counts the cells that two lines have in common.
func (l *Line) meets(other *Line) int { return bits.OnesCount32(uint32(l.on & other.on)) }

// Lines of all lanes in a setting.
func (x Matrix) Lines(s Setting) (lines [Lanes]Line) {
	at := straight
	for c, pair := range x {
		a, b := &at[pair[0]], &at[pair[1]]
		lines[*a].on |= 1 << c
		lines[*b].on |= 1 << c
		if !s.Bar(c) {
			*a, *b = *b, *a
		}
	}
	for out, lane := range at {
		lines[lane].In, lines[lane].Out = int(lane), out
	}
	return lines
}

// through are the two lines through a cell.
func (x Matrix) through(s Setting, c int) (two [2]Line) {
	n := 0
	for _, l := range x.Lines(s) {
		if l.has(c) {
			two[n] = l
			n++
		}
	}
	return two
}

// parted says whether the two lines through a cell have no other in common.
func (x Matrix) parted(s Setting, c int) bool {
	lines := x.through(s, c)
	return lines[0].meets(&lines[1]) == 1
}

// Permutation of the lanes: where each goes.
type Permutation [Lanes]uint8

// Halves is the permutation of the loopback of so many lanes: each of the upper half to
// the same of the lower half, and back. A lane that the module has not keeps its place.
func Halves(lanes int) Permutation {
	p := straight
	for l := range lanes {
		p[l] = uint8((l + lanes/2) % lanes)
	}
	return p
}

var straight = Permutation{0, 1, 2, 3, 4, 5, 6, 7}

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

// Route finds the first setting that makes p, bar before cross, cell after cell; what no
// light can reach any more is not followed. The error says that the matrix cannot.
func (x Matrix) Route(p Permutation) (Setting, error) {
	if err := p.Check(); err != nil {
		return 0, err
	}
	r := router{matrix: x}
	for w := range Lanes {
		r.reach[len(x)][w] = 1 << w
	}
	for c := len(x) - 1; c >= 0; c-- {
		r.reach[c] = r.reach[c+1]
		a, b := x[c][0], x[c][1]
		both := r.reach[c][a] | r.reach[c][b]
		r.reach[c][a], r.reach[c][b] = both, both
	}
	for w, out := range p {
		if r.reach[0][w]>>out&1 == 0 {
			return 0, fmt.Errorf("mzi: the matrix has no way from lane %d to %d", w, out)
		}
	}
	if !r.from(0, &p) {
		return 0, fmt.Errorf("mzi: no setting of the matrix makes %v", p)
	}
	return r.setting, nil
}

// router is a search for a setting.
type router struct {
	matrix  Matrix
	reach   [MatrixCells + 1][Lanes]uint8 // outputs that light can reach, bit by lane, by next cell and waveguide
	setting Setting
}

// from sets the cells from c on; want is where the light in each waveguide is to go.
func (r *router) from(c int, want *Permutation) bool {
	if c == len(r.matrix) {
		return true
	}
	a, b, next := r.matrix[c][0], r.matrix[c][1], &r.reach[c+1]
	for _, bar := range [2]bool{true, false} {
		if next[a]>>want[a]&1 != 0 && next[b]>>want[b]&1 != 0 {
			r.setting &^= 1 << c
			if bar {
				r.setting |= 1 << c
			}
			if r.from(c+1, want) {
				return true
			}
		}
		want[a], want[b] = want[b], want[a] // and back, for the caller
	}
	return false
}

// Check says why a search cannot find a matrix of so many lanes, or it cannot swap the halves.
func (x Matrix) Check(lanes int) error {
	_, err := x.Route(Halves(lanes))
	if err == nil {
		_, err = x.clean()
	}
	return err
}

// clean is the first setting in which no two lines have more than one cell in common:
// what leaks out of a line never comes back to it, so that a cell shows its own phase
// however wrong the others still are. (With the loopback's own setting, two wrong cells
// of a pair of lines hide each other.)
func (x Matrix) clean() (Setting, error) {
	if s, ok := x.apart(straight, [Lanes]uint8{}); ok {
		return s, nil
	}
	return 0, errors.New("mzi: in every setting of the matrix two lanes meet twice: its cells cannot be told apart")
}

// apart is the first setting in which no two lines meet twice, from the last cell of the
// matrix on, seen from their ends: line at[w] is in waveguide w, and met[l] has a bit for
// every line that l has met.
func (x Matrix) apart(at Permutation, met [Lanes]uint8) (Setting, bool) {
	last := len(x) - 1
	if last < 0 {
		return 0, true
	}
	a, b := &at[x[last][0]], &at[x[last][1]]
	if met[*a]>>*b&1 != 0 {
		return 0, false
	}
	met[*a] |= 1 << *b
	met[*b] |= 1 << *a
	bar := at
	*a, *b = *b, *a
	if s, ok := x[:last].apart(at, met); ok {
		return s, true
	}
	s, ok := x[:last].apart(bar, met)
	return s | 1<<last, ok
}

// cover are lines of a setting that have every cell between them, those first that have
// no cell in common with others.
func (x Matrix) cover(s Setting) (cover []Line) {
	lines := x.Lines(s)
	all, best := Setting(1)<<len(x)-1, 1<<30
	for set := range 1 << Lanes {
		on, cells := Setting(0), 0
		for l := range lines {
			if set>>l&1 != 0 {
				on |= lines[l].on
				cells += bits.OnesCount32(uint32(lines[l].on))
			}
		}
		if on != all || cells >= best {
			continue
		}
		best, cover = cells, nil
		for l := range lines {
			if set>>l&1 != 0 {
				cover = append(cover, lines[l])
			}
		}
	}
	return cover
}
