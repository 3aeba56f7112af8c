package sim

import (
	"ringlight/hal"
	"ringlight/mzi/detmath"
)

// The light of one module. Lasers of different lanes do not interfere, so
// powers of lanes add; within the matrix the light of one lane takes many
// ways and interferes with itself, so fields are propagated, not powers.

// matrix is the fields that a unit of light at each port of stage 1 sends to
// each output of the last stage: [port][output].
type matrix [hal.Lanes][hal.Lanes]complex128

// gram is what the half-sums of the loopback diodes need of the matrix: for
// each cell of stage 0 and each half, the power that a unit from its upper and
// lower output makes, and their interference.
type gram [hal.Lanes / 2][2]struct {
	upper, lower float64
	both         complex128
}

// mul is a complex product with every partial product rounded, so that no
// machine fuses it.
func mul(a, b complex128) complex128 {
	return complex(float64(real(a)*real(b))-float64(imag(a)*imag(b)),
		float64(real(a)*imag(b))+float64(imag(a)*real(b)))
}

func norm2(a complex128) float64 { return float64(real(a)*real(a)) + float64(imag(a)*imag(a)) }

// coefficients of a cell at a phase: fields from its upper input to upper and
// lower output, and from its lower input to upper and lower output. The common
// loss is left out; it is the same for every way through the matrix.
func (c *cell) coefficients(phase float64) (uu, ul, lu, ll complex128) {
	sin, cos := detmath.Sincos(phase)
	// M = C1 diag(exp(j phase), 1) C2 with C = [[c, js], [js, c]].
	uu = complex(float64(c.cc*cos)-c.ss, float64(c.cc*sin))
	ll = complex(c.cc-float64(c.ss*cos), -float64(c.ss*sin))
	// The field from the lower input to the upper output is row 0, column 1.
	lu = complex(-float64(c.cs*sin), float64(c.cs*cos)+c.sc)
	ul = complex(-float64(c.sc*sin), float64(c.sc*cos)+c.cs)
	return uu, ul, lu, ll
}

// bar is the share of a cell's power that stays in its row.
func (c *cell) bar(phase float64) float64 {
	return c.barMean - float64(c.barSwing*detmath.Cos(phase))
}

// joint is the coefficients of one cell: [input][output], 0 = upper.
type joint [2][2]complex128

// stages are the cells of a matrix.
type stages [hal.MatrixStages][hal.Lanes / 2]joint

// couple works out the cells from stage 1 on but for those that are known.
func (p *Personality) couple(phase *[hal.CellsPerMod]float64, known uint64, cell *stages) {
	for k := behind; k < hal.CellMatrix+4*hal.MatrixStages; k++ {
		if known>>k&1 == 0 {
			c := &cell[(k-hal.CellMatrix)/4][k%4]
			c[0][0], c[0][1], c[1][0], c[1][1] = p.cells[k].coefficients(phase[k])
		}
	}
}

// propagate fills the matrix behind stage 0. Light from one port meets one cell of stage 1, two of stage 2,
// the same two places of stage 3, where it meets itself again, and all four
// cells of stage 4, one input each. Only the ports in the mask are filled.
func propagate(cell *stages, ports uint8, g *matrix) {
	for i := range g {
		if ports>>i&1 == 0 {
			continue
		}
		var third [hal.Lanes]complex128 // fields at the inputs of stage 3
		for o1, field := range cell[1][i/2][i&1] {
			in := hal.MatrixWire(1, i&^1|o1)
			for o2, c := range cell[2][in/2][in&1] {
				third[hal.MatrixWire(2, in&^1|o2)] = mul(field, c)
			}
		}
		first := i / hal.HalfLanes * (hal.HalfLanes / 2) // row of the sub-network in stage 3
		for row := first; row < first+2; row++ {
			c := &cell[3][row]
			a, b := third[2*row], third[2*row+1]
			for o3 := range 2 {
				field := mul(a, c[0][o3]) + mul(b, c[1][o3])
				in := hal.MatrixWire(3, 2*row+o3)
				last := &cell[4][in/2][in&1]
				g[i][in&^1] = mul(field, last[0])
				g[i][in|1] = mul(field, last[1])
			}
		}
	}
}

// portsOf are the ports of stage 1 to which light in these lanes comes.
func portsOf(in *[hal.Lanes]float64) (ports uint8) {
	for row := range hal.Lanes / 2 {
		if in[2*row] != 0 || in[2*row+1] != 0 {
			ports |= 1<<hal.MatrixWire(0, 2*row) | 1<<hal.MatrixWire(0, 2*row+1)
		}
	}
	return ports
}

const allPorts = 0xFF

// gramOf weighs a matrix with the diodes' responses.
func gramOf(g *matrix, diode *[hal.Lanes]float64, out *gram) {
	for row := range out {
		a := &g[hal.MatrixWire(0, 2*row)]
		b := &g[hal.MatrixWire(0, 2*row+1)]
		for half := range 2 {
			e := &out[row][half]
			e.upper, e.lower, e.both = 0, 0, 0
			for o := half * hal.HalfLanes; o < (half+1)*hal.HalfLanes; o++ {
				x := diode[o]
				e.upper += float64(x * norm2(a[o]))
				e.lower += float64(x * norm2(b[o]))
				c := mul(complex(real(a[o]), -imag(a[o])), b[o])
				e.both += complex(float64(x*real(c)), float64(x*imag(c)))
			}
		}
	}
}

// halves is the light on the loopback diodes of both halves, for a power in
// each lane at the matrix input.
func (p *Personality) halves(g *gram, phase *[hal.CellsPerMod]float64, in *[hal.Lanes]float64) (sum [2]float64) {
	for row := range hal.Lanes / 2 {
		u, l := in[2*row], in[2*row+1]
		if u == 0 && l == 0 {
			continue
		}
		uu, ul, lu, ll := p.cells[hal.CellMatrix+row].coefficients(phase[hal.CellMatrix+row])
		pu := float64(u*norm2(uu)) + float64(l*norm2(lu))
		pl := float64(u*norm2(ul)) + float64(l*norm2(ll))
		// 2 Re(conj(upper) lower both), summed over the two inputs.
		x := mul(complex(real(uu), -imag(uu)), ul)
		y := mul(complex(real(lu), -imag(lu)), ll)
		mix := complex(float64(u*real(x))+float64(l*real(y)), float64(u*imag(x))+float64(l*imag(y)))
		for half := range sum {
			e := &g[row][half]
			m := mul(mix, e.both)
			sum[half] += float64(pu*e.upper) + float64(pl*e.lower) + float64(2*real(m))
		}
	}
	return sum
}

// routes is the power that a unit in lane i brings to output o: [i][o],
// without the diodes.
func (p *Personality) routes(g *matrix, phase *[hal.CellsPerMod]float64) (h [hal.Lanes][hal.Lanes]float64) {
	for row := range hal.Lanes / 2 {
		uu, ul, lu, ll := p.cells[hal.CellMatrix+row].coefficients(phase[hal.CellMatrix+row])
		a := &g[hal.MatrixWire(0, 2*row)]
		b := &g[hal.MatrixWire(0, 2*row+1)]
		for o := range hal.Lanes {
			h[2*row][o] = norm2(mul(uu, a[o]) + mul(ul, b[o]))
			h[2*row+1][o] = norm2(mul(lu, a[o]) + mul(ll, b[o]))
		}
	}
	return h
}

// through is routes for any matrix of couplers, as for as many cells on a way as the
// Benes network's: where a way has more or fewer, their loss is.
func (p *Personality) through(couplers [][2]uint8, phase *[hal.CellsPerMod]float64) (h [hal.Lanes][hal.Lanes]float64) {
	whole := 1.0
	for range hal.MatrixStages {
		whole /= cellGain
	}
	for i := range h {
		var at [hal.Lanes]complex128
		at[i] = complex(sqrt(whole), 0)
		for c, pair := range couplers {
			k := hal.CellMatrix + c
			uu, ul, lu, ll := p.cells[k].coefficients(phase[k])
			a, b := mul(at[pair[0]], cellField), mul(at[pair[1]], cellField)
			at[pair[0]], at[pair[1]] = mul(uu, a)+mul(lu, b), mul(ul, a)+mul(ll, b)
		}
		for o := range at {
			h[i][o] = norm2(at[o])
		}
	}
	return h
}
