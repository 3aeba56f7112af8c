package trace

// Streams keep the draws of one purpose apart from those of another, so that
// a change in one leaves the others as they are.
const (
	streamGenerate = 1
	streamShuffle  = 1 << 16 // + copy
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

// below returns a number in 0..n-1. The bias of the modulus is below n/2^64.
func (r *random) below(n int) int { return int(r.next() % uint64(n)) }

func (r *random) shuffle(n int, swap func(i, j int)) {
	for i := n - 1; i > 0; i-- {
		swap(i, r.below(i+1))
	}
}
