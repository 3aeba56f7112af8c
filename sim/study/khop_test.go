package study

import (
	"testing"

	"ringlight/mzi/detmath"
	"ringlight/planner/ring"
	"ringlight/proto"
)

// Goal: counting from the faults alone finds what the planner's placement
// finds, which is proved maximal there.
// Method: random fault patterns, line and ring, with and without the shared
// bundle, dense faults included.
func TestCountAgreesWithPlacement(t *testing.T) {
	r := detmath.Stream(1, 99)
	pinched := 0
	for range 6000 {
		k := 1 + int(r.Next()%4)
		nodes := 2*k + 1 + int(r.Next()%50)
		h := khop{nodes: nodes, k: k, wrap: r.Next()%2 == 0, shared: k == 3 && r.Next()%4 > 0}
		rate := float64(r.Next()%60) / 100
		if h.shared {
			rate = 0.3 + rate/2
		}
		var faulty []int
		down := make([]bool, nodes)
		for n := range nodes {
			if r.Chance(rate) {
				faulty, down[n] = append(faulty, n), true
			}
		}
		h.walk(faulty)
		for size := 1; size <= 8; size++ {
			p := ring.Problem{
				Order: ring.Order{Nodes: nodes, K: k, Wrap: h.wrap, Shared: h.shared}, Size: size, Want: -1,
				Usable: func(n proto.NodeID) bool { return !down[n] },
			}
			if got, want := h.groups(size), len(ring.Place(p)); got != want {
				t.Fatalf("%+v size %d faulty %v: %d groups, want %d", p.Order, size, faulty, got, want)
			}
			if h.shared && ring.LostToWiring(p) > 0 {
				pinched++
			}
		}
	}
	if pinched < 20 {
		t.Errorf("the shared bundle cost a group in %d patterns only", pinched)
	}
}
