package sim

import "ringlight/mzi/detmath"

// Chance here is a hash of what asks for it, never a stream: reading often or
// seldom, or in another order, changes nothing.

// derive makes the seed of a part from that of the whole.
func derive(seed, part uint64) uint64 {
	return detmath.Mix(detmath.Mix(seed+detmath.Golden) ^ (part+1)*detmath.Golden)
}

// unit is a number in [0, 1) with 53 bits.
func unit(h uint64) float64 { return float64(h>>11) * (1.0 / (1 << 53)) }

// between is uniform in [lo, hi).
func between(h uint64, lo, hi float64) float64 { return lo + float64(unit(h)*(hi-lo)) }

// bump is in [lo, hi] with its mode at mid, zero at both ends: what a
// production tolerance looks like after inspection.
func bump(h uint64, lo, mid, hi float64) float64 {
	u := unit(h) + unit(detmath.Mix(h^detmath.Golden)) - 1 // triangular in (-1, 1)
	if u < 0 {
		return mid + float64(u*(mid-lo))
	}
	return mid + float64(u*(hi-mid))
}

// normal has mean 0 and variance 1: a sum of four uniforms of 16 bits, which
// never leaves +-3.47.
func normal(h uint64) float64 {
	sum := int64(h&0xFFFF) + int64(h>>16&0xFFFF) + int64(h>>32&0xFFFF) + int64(h>>48)
	// Four uniforms over 0..65535 have mean 2*65535 and variance (65536^2-1)/3.
	return float64(sum-2*65535) * (1.0 / 37837.227)
}
