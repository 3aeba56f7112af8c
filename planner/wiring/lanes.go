package wiring

import "math/bits"

// lanes.go adds and compares what four places cost at once, in the four lanes
// of a word.
//
// A lane has 16 bits: a cost, below it the number of the word among those of a
// link, which toll brings, and above it one that is free for comparing. So the
// least of all places is found lane by lane, and says where it is. The two places
// of a switch are half a word apart: what a lower and a higher pod see of it
// differs by a rotation.

const (
	lanes    = 4
	wordBits = 4                  // 16 words have the places of 32 switches
	eachLane = 0x0001000100010001 // one in every lane
	topLane  = 0x8000 * eachLane
	// No sum of a toll, what two ports ask and chance is over 2,047, and the best
	// place of a link, which is free of toll, never costs as much as one it cannot
	// have. While ports are dearer no bid is over 370.
	mostToll, mostBid, dearest = 4 * one, 430, 70
	noPlace                    = 1017
	unpaid                     = noPlace // what the link in a free port pays: no bid is as high
)

// inLanes puts what four places in a row cost into a word.
func inLanes(a, b, c, d int) uint64 {
	return (uint64(a) | uint64(c)<<16 | uint64(b)<<32 | uint64(d)<<48) << wordBits
}

// shiftOf is where the cost of a place begins in its word.
func shiftOf(place int) uint { return (wordBits + uint(place)&1<<5 + uint(place)&2<<3) & 63 }

func laneOf(words []uint64, place int) int {
	return int(words[place/lanes] >> shiftOf(place) & (1<<(15-wordBits) - 1))
}

// setLane leaves the number of the word.
func setLane(words []uint64, place, cost int) {
	word, shift := &words[uint(place)/lanes], shiftOf(place)
	*word = *word&^((1<<(15-wordBits)-1)<<shift) | uint64(cost)<<shift
}

// swapped is a word as the pod at the other end of a link sees it.
func swapped(word uint64) uint64 { return bits.RotateLeft64(word, 32) }

// least is the lesser of each lane.
func least(a, b uint64) uint64 {
	less := ((b | topLane) - a) & topLane // where a is not the greater one
	return b ^ (a^b)&(less-less>>15)
}

// leastLane is the place that costs least of all that went into a word, and
// what it costs.
func leastLane(a uint64) (place, cost int) {
	found := min(a&0x7fff<<2, a>>16&0x7fff<<2|2, a>>32&0x7fff<<2|1, a>>48<<2|3)
	return int(found & (lanes<<wordBits - 1)), int(found >> (wordBits + 2))
}
