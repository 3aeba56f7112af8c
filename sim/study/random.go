package study

// Streams keep the draws of one purpose apart from those of another.
const (
	streamHalves = iota + 1
	streamIID
	streamCrossTor
	streamBounds
	streamRewire
)

// random is splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom
// number generators", OOPSLA 2014): small, and the same on every machine.
type random struct{ state uint64 }

func newRandom(seed, stream uint64) *random {
	r := &random{seed}
	r.state = r.next() ^ stream*0xd1342543de82ef95
	r.next()
	return r
}

func (r *random) next() uint64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// chance is true with probability p.
func (r *random) chance(p float64) bool { return float64(r.next()>>11) < p*(1<<53) }

// below is a number in [0, n), n < 2^32.
func (r *random) below(n int) int { return int(r.next() >> 32 * uint64(n) >> 32) }
