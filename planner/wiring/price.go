package wiring

import (
	"math"
	"math/bits"
)

const (
	// one is a circuit kept, in the units of tolls, and fine of these are one in
	// the units of prices. chosen: fine enough for steps, small enough for int32.
	one  = 128
	fine = 128
	// firstPrice is where the ports of a full pod start. chosen: about the
	// mean of where they end in random groups, a quarter circuit.
	firstPrice = one * fine / 4
)

// prices is a dual solution of a block's linear programme. Its primal: every
// link in one place, every port used once at most, as many circuits kept as
// can be. The dual is minimised over prices of ports by subgradient steps: in
// each round every link books the place that is worth most to it - one if it
// was there before, less the prices of both ports - and ports grow dearer by
// how far they were overbooked in this round and, ever less, in those before.
// Steps shrink by the same share in every round. Both come to a value in 100
// rounds for which steps that shrink by the same amount, without a memory,
// take 300.
//
// A link's toll at a place is what the place is worth less than its best one.
// The loss of a configuration against the bound is the sum of the tolls paid
// (and of the prices of unused ports), so a search that looks at tolls sees at
// every place what taking it will cost elsewhere, which no count of ejected
// circuits tells it.
type prices struct {
	now, best []int32 // of a port
	asked     []int32
	drift     []int32 // of a port: how far it is overbooked, with a memory
	value     int64   // of the best dual solution
	bound     int     // no configuration keeps more circuits
	rounds    int
	step      int32 // in 1/256
}

func newPrices(s *seats, full func(pod int) bool) *prices {
	n := len(s.at)
	p := &prices{
		value: math.MaxInt64, bound: math.MaxInt,
		now: make([]int32, n), best: make([]int32, n), asked: make([]int32, n), drift: make([]int32, n),
	}
	for port := range p.now {
		if full(int(s.pod(int32(port)))) && port%(s.words()*lanes) < s.places() {
			p.now[port] = firstPrice
		}
	}
	return p
}

// The subgradient's first steps, from nothing and from the best prices of
// before, and its last ones: each a share of one circuit, in the units of
// step. chosen: those that came closest to the linear programme's value in 50
// to 800 rounds.
const (
	stepFirst, refineFirst = one * fine * 256 / 2, one * fine * 256 / 16
	stepShrink             = 4 * 65536 // over all rounds, about e to the 4th
)

// begin starts a pricing. The first one starts from nothing, later ones refine
// the best prices.
func (p *prices) begin() {
	p.step = stepFirst
	if p.rounds > 0 {
		p.step = refineFirst
		copy(p.now, p.best)
		clear(p.drift)
	}
}

// round is one subgradient step of so many.
func (p *prices) round(s *seats, of int) {
	value := p.book(s)
	for _, price := range p.now {
		value += int64(price)
	}
	if value < p.value {
		p.value = value
		p.bound = min(p.bound, int(value/(one*fine)))
		copy(p.best, p.now)
	}
	p.rounds++
	for port, drift := range p.drift {
		drift = (4*drift + (p.asked[port]-1)*256) / 5
		p.drift[port] = drift
		p.now[port] = max(0, p.now[port]+int32(int64(p.step)*int64(drift)>>16))
	}
	p.step -= int32(int64(p.step) * min(stepShrink/int64(of), 32768) >> 16)
}

// book lets every link choose and adds up what the choices are worth. Ties
// fall differently at every link and in every round.
func (p *prices) book(s *seats) int64 {
	clear(p.asked)
	sum := int64(0)
	places := s.places()
	width := max(6, bits.Len(uint(places-1))) // of a place
	for e := range s.old {
		low := p.now[s.low[e]:][:places]
		high := p.now[s.high[e]:][:places]
		salt := int32(e*11+p.rounds*7) & (1<<width - 1)
		top := int32(math.MinInt32)
		old := uint64(0)
		for k := 0; k+1 < places; k += 2 {
			if k&63 == 0 {
				old = s.old[e][k>>6]
			}
			there := (int32(old&1)*(one*fine)-low[k]-high[k+1])<<width | int32(k) ^ salt
			back := (int32(old>>1&1)*(one*fine)-low[k+1]-high[k])<<width | int32(k+1) ^ salt
			top = max(top, there, back)
			old >>= 2
		}
		sum += int64(top >> width)
		place := top&(1<<width-1) ^ salt
		p.asked[s.low[e]+place]++
		p.asked[s.high[e]+place^1]++
	}
	return sum
}

// setTolls works out every toll from the best prices so far.
func (p *prices) setTolls(s *seats) {
	words := s.words()
	worth := make([]int32, s.places())
	for e := range int32(len(s.low)) {
		top := int32(math.MinInt32)
		for place := range worth {
			low, high := s.ports(e, place)
			if worth[place] = -p.best[low] - p.best[high]; s.isOld(e, place) {
				worth[place] += one * fine
			}
			top = max(top, worth[place])
		}
		toll := s.toll[int(e)*words:][:words]
		for word := range toll {
			toll[word] = uint64(word%(1<<wordBits)) * eachLane
			for lane := range lanes {
				// for a pod's link to itself both ways are one
				place, cost := word*lanes+lane, noPlace
				if place < len(worth) && (s.low[e] != s.high[e] || place&1 == 0) {
					cost = min(int(top-worth[place])/fine, mostToll)
				}
				setLane(toll, word*lanes+lane, cost)
			}
		}
	}
}
