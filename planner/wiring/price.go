package wiring

import "math"

const (
	// one is a circuit kept, in the units of prices and tolls. chosen: fine
	// enough for steps, small enough for int32 sums.
	one = 256
	// noPlace is the toll of a place that a link cannot have.
	noPlace = 1 << 24
	// firstPrice is where the ports of a full pod start. chosen: about the
	// mean of where they end in random groups, a quarter circuit.
	firstPrice = one / 4
	// The subgradient's steps, first and last, from nothing and from the best
	// prices of before. chosen: those that got closest to the linear
	// programme's value, of constant steps from 256 to 1.
	stepFirst, stepLast     = one / 4, one / 64
	refineFirst, refineLast = one / 16, one / 256
)

// prices is a dual solution of a block's linear programme. Its primal: every
// link in one place, every port used once at most, as many circuits kept as
// can be. The dual is minimised over prices of ports by subgradient steps: in
// each round every link books the place that is worth most to it - one if it
// was there before, less the prices of both ports - and ports grow dearer by
// how far they are overbooked.
//
// A link's toll at a place is what the place is worth less than its best one.
// The loss of a configuration against the bound is the sum of the tolls paid
// (and of the prices of unused ports), so a search that looks at tolls sees at
// every place what taking it will cost elsewhere, which no count of ejected
// circuits tells it.
type prices struct {
	now, best [2][]int32 // of out and in ports
	asked     [2][]int32
	worth     []int32 // of the places of one link
	value     int     // of the best dual solution
	bound     int     // no configuration keeps more circuits
	rounds    int
}

func newPrices(s *seats, full func(pod int) bool) *prices {
	p := &prices{value: math.MaxInt, bound: math.MaxInt, worth: make([]int32, 2*s.switches)}
	for side := range p.now {
		p.now[side] = make([]int32, len(s.out))
		p.best[side] = make([]int32, len(s.out))
		p.asked[side] = make([]int32, len(s.out))
		for n := range p.now[side] {
			if full(n / s.switches) {
				p.now[side][n] = firstPrice
			}
		}
	}
	return p
}

// round is one subgradient step, the n-th of so many. The first pricing
// starts from nothing, later ones refine the best prices.
func (p *prices) round(s *seats, n, of int) {
	first, last := stepFirst, stepLast
	if p.rounds > n {
		first, last = refineFirst, refineLast
		if n == 0 {
			copy(p.now[0], p.best[0])
			copy(p.now[1], p.best[1])
		}
	}
	value := p.book(s)
	for side := range p.now {
		for _, price := range p.now[side] {
			value += int(price)
		}
	}
	if value < p.value {
		p.value = value
		p.bound = min(p.bound, value/one)
		copy(p.best[0], p.now[0])
		copy(p.best[1], p.now[1])
	}
	p.rounds++
	step := int32(first + (last-first)*n/of)
	for side := range p.now {
		now, asked := p.now[side], p.asked[side]
		for n := range now {
			now[n] = max(0, now[n]+step*(asked[n]-1))
		}
	}
}

// book lets every link choose and adds up what the choices are worth.
func (p *prices) book(s *seats) int {
	clear(p.asked[0])
	clear(p.asked[1])
	sum := 0
	n := s.switches
	k := 0
	for e := range s.low {
		l, h := int(s.low[e]), int(s.high[e])
		lowOut, highOut := p.now[0][l:l+n], p.now[0][h:h+n]
		lowIn, highIn := p.now[1][l:l+n], p.now[1][h:h+n]
		old := s.old[e]
		top, at := int32(-1<<30), 0
		if k = e + p.rounds; k >= n { // ties fall differently in every round
			k %= n
		}
		for range n {
			there := int32(old>>(2*k)&1)*one - lowOut[k] - highIn[k]
			back := int32(old>>(2*k+1)&1)*one - highOut[k] - lowIn[k]
			if there > top {
				top, at = there, 2*k
			}
			if back > top {
				top, at = back, 2*k+1
			}
			if k++; k == n {
				k = 0
			}
		}
		sum += int(top)
		out, in := s.ports(int32(e), at)
		p.asked[0][out]++
		p.asked[1][in]++
	}
	return sum
}

// setTolls works out every toll from the best prices so far.
func (p *prices) setTolls(s *seats) {
	places := 2 * s.switches
	for e := range int32(len(s.low)) {
		toll := s.toll[int(e)*places : (int(e)+1)*places]
		top := int32(-1 << 30)
		for place := range toll {
			out, in := s.ports(e, place)
			toll[place] = int32(s.old[e]>>place&1)*one - p.best[0][out] - p.best[1][in]
			top = max(top, toll[place])
		}
		for place := range toll {
			toll[place] = top - toll[place]
			if s.low[e] == s.high[e] && place&1 != 0 {
				toll[place] = noPlace // for a pod's link to itself both ways are one
			}
		}
	}
}
