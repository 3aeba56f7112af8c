package detmath

// Golden is the step of SplitMix64: 2^64 divided by the golden ratio.
const Golden = 0x9E3779B97F4A7C15

// streamStep keeps the streams of one seed apart; chosen: odd and large.
const streamStep = 0xD1342543DE82EF95

// Random is SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom
// number generators", OOPSLA 2014): small, and the same on every machine. It
// is the only source of chance in pure packages; its value is its state.
type Random uint64

// Stream starts one of many sequences of a seed, so that the draws of one
// purpose stay as they are when those of another change.
func Stream(seed, stream uint64) *Random {
	r := Random(seed)
	r = Random(r.Next() ^ stream*streamStep)
	r.Next()
	return &r
}

// Next draws 64 bits.
func (r *Random) Next() uint64 {
	*r += Golden
	return Mix(uint64(*r))
}

// Below draws from 0 to n-1 by scaling, n < 2^32.
func (r *Random) Below(n int) int { return int(r.Next() >> 32 * uint64(n) >> 32) }

// Modulo draws from 0 to n-1 by division; its bias is under n/2^64. What was
// once drawn by one of the two must stay so, or its results change.
func (r *Random) Modulo(n int) int { return int(r.Next() % uint64(n)) }

// Chance is true with probability p.
func (r *Random) Chance(p float64) bool { return float64(r.Next()>>11) < p*(1<<53) }

// Shuffle puts n things into an order of chance.
func (r *Random) Shuffle(n int, swap func(i, j int)) {
	for i := n - 1; i > 0; i-- {
		swap(i, r.Modulo(i+1))
	}
}

// Mix is the finaliser of SplitMix64: every bit of x moves every bit of what
// it gives.
func Mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// Hash draws one number from several, in their order: chance that belongs to
// what asks for it, not to when it asks.
func Hash(parts ...uint64) uint64 {
	var z uint64
	for _, p := range parts {
		z = Mix((z ^ p) + Golden)
	}
	return z
}
