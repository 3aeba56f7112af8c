package wiring

// rng is SplitMix64: tiny, seedable, the same everywhere. Pure packages have
// no other source of chance.
type rng uint64

func (r *rng) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below gives a number in [0, n), n < 2^32.
func (r *rng) below(n int) int { return int(r.next() >> 32 * uint64(n) >> 32) }
