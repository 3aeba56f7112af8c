package fleet

import (
	"time"

	"ringlight/mzi/detmath"
)

// random is a stream of its own for each purpose, so that a change in one
// leaves the others as they are.
type random struct{ seed, n uint64 }

func (r *random) next() uint64 {
	r.n++
	return detmath.Hash(r.seed, r.n)
}

// below draws from 0 to n-1.
func (r *random) below(n int) int { return int(r.next() % uint64(n)) }

// chance is true perMillion times in a million.
func (r *random) chance(perMillion uint32) bool { return r.next()%1_000_000 < uint64(perMillion) }

// between draws evenly from lo to hi.
func (r *random) between(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(r.next()%uint64(hi-lo+1))
}

// unit draws from (0, 1].
func (r *random) unit() float64 { return float64(r.next()>>11+1) / (1 << 53) }

// wait draws from the exponential distribution.
func (r *random) wait(mean time.Duration) time.Duration {
	return time.Duration(float64(mean) * -detmath.Log(r.unit()))
}
