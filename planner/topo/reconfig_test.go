package topo

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Goal: links follow what is unsent, halved by each, and all servers reach each
// other; none sends or hears more often than it has interfaces. Method: random
// demands, the first links followed by hand; reachability by a walk of its own.
func TestReconfigureFollowsDemand(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	swapped := 0
	for n := range 300 {
		servers, degree := 2+r.IntN(20), 1+r.IntN(6)
		var unsent []Demand
		for a := range servers {
			for b := range servers {
				if a != b && r.IntN(4) == 0 {
					unsent = append(unsent, Demand{a, b, 1 + r.Int64N(1<<30)})
				}
			}
		}
		if n%3 == 0 { // islands: pairs that have much to say to each other only
			unsent = nil
			for a := 0; a+1 < servers; a += 2 {
				unsent = append(unsent, Demand{a, a + 1, 1 << 40}, Demand{a + 1, a, 1 << 40})
			}
			swapped++
		}
		links := Reconfigure(servers, degree, unsent)
		out, in := make([]int, servers), make([]int, servers)
		for _, l := range links {
			if l.A == l.B || l.Count < 1 {
				t.Fatalf("%d: %+v", n, l)
			}
			out[l.A] += l.Count
			in[l.B] += l.Count
		}
		if slices.Max(out) != degree || slices.Max(in) != degree || slices.Min(out) != degree || slices.Min(in) != degree {
			t.Fatalf("%d: %d servers, degree %d: %v %v", n, servers, degree, out, in)
		}
		seen := map[int]bool{0: true}
		for grown := true; grown; {
			grown = false
			for _, l := range links {
				if seen[l.A] && !seen[l.B] {
					seen[l.B], grown = true, true
				}
			}
		}
		if len(seen) != servers {
			t.Fatalf("%d: %d of %d servers are reached: %v", n, len(seen), servers, links)
		}
	}
	if swapped == 0 {
		t.Error("no islands")
	}
	// 8 : 4 : 1 with three interfaces: 8, then 4 and 4, the first in order.
	got := Reconfigure(4, 3, []Demand{{0, 1, 8}, {0, 2, 4}, {0, 3, 1}})
	count := map[int]int{}
	for _, l := range got {
		if l.A == 0 {
			count[l.B] = l.Count
		}
	}
	if count[1] != 2 || count[2] != 1 || count[3] != 0 {
		t.Errorf("links of server 0: %v", count)
	}
}

// Goal: what is passed on is counted on every link it takes. Method: a ring of
// four, by hand.
func TestForwardCountsEachLink(t *testing.T) {
	ring := []Link{{0, 1, 1}, {1, 2, 2}, {2, 3, 1}, {3, 0, 1}}
	if got := Forward(4, ring, []Demand{{0, 2, 10}, {1, 2, 4}, {3, 0, 3}}); got != 10 {
		t.Errorf("%d", got)
	}
	if got := Forward(4, ring, []Demand{{0, 3, 10}, {2, 3, 6}}); got != 16 {
		t.Errorf("%d", got)
	}
	if got := Forward(4, ring[:3], []Demand{{0, 3, 10}, {3, 0, 6}}); got != -1 {
		t.Errorf("%d", got)
	}
}
