package hostile

import (
	"testing"

	"ringlight/proto"
)

// Goal: a bypass that the wiring does not have is not waited for.
// Method: rings of a run that waited in vain, by the boards' light for want of a bundle:
// at three hops of three the bundle that both sides share was the other neighbour's.
func TestBypassesThatTheWiringHas(t *testing.T) {
	for _, c := range []struct {
		ring []proto.NodeID
		at   int
		want bool
	}{
		{[]proto.NodeID{9, 10, 11, 12}, 1, true},
		{[]proto.NodeID{9, 12, 13, 14}, 2, true}, // two hops beside three
		{[]proto.NodeID{9, 12, 13, 15}, 2, false},
		{[]proto.NodeID{0, 2, 3, 6}, 1, false},
		{[]proto.NodeID{0, 3, 5, 6}, 2, false},
		{[]proto.NodeID{0, 1, 3, 4}, 1, true}, // three hops, and no other
		{[]proto.NodeID{0, 1, 4, 5}, 1, false},
	} {
		if got := passable(c.ring, c.at, 3); got != c.want {
			t.Errorf("ring %v without %d: %v", c.ring, c.ring[c.at], got)
		}
	}
}
