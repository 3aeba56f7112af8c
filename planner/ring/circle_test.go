package ring

import (
	"math/rand/v2"
	"testing"

	"ringlight/proto"
)

// Goal: the cuts of a circle that the exact program goes along find as many groups more as
// all of them, and move as few for it.
// Method: rings of 50 to 250 nodes that have run for a while, so that lines stand beside
// holes and step over them; every limit of moves and of groups; what is laid on the moved
// ones' nodes is as many groups as was said.
func TestFewCutsOfACircleDo(t *testing.T) {
	calm, better := 0, 0
	for seed := range uint64(24) {
		rng := rand.New(rand.NewPCG(seed, 33))
		nodes, k := 50+rng.IntN(200), 1+rng.IntN(4)
		o := Order{Nodes: nodes, K: k, Wrap: true, Shared: rng.IntN(2) == 0}
		out := map[proto.NodeID]bool{}
		well := func(n proto.NodeID) bool { return !out[n] }
		size := 2 + rng.IntN(7)
		m := Mend{Order: o, Sizes: []Demand{{size, nodes / size * 3 / 4}}, Usable: well, Free: well, Spread: rng.IntN(2) == 0, Moves: maxMoves}
		running := runningGroups(Place(Problem{Order: o, Size: size, Usable: well, Want: m.Sizes[0].Want, Spread: m.Spread}))
		for range rng.IntN(nodes / 4) {
			n := proto.NodeID(rng.IntN(nodes))
			out[n] = !out[n]
			running = m.Replace(running).Groups
			for i := range running {
				running[i].ID = proto.RingID(i + 1)
			}
		}
		m.Sizes[0].Want, m.Moves = -1, Any
		for _, dearest := range []int{1, 3, far - 1} {
			for _, want := range []int{1, 2, far} {
				if want == far && dearest < far-1 {
					continue // the most are sought first, and an optimum within a limit is not promised
				}
				tr := NewTracker(m, running...)
				tr.begin()
				moved, gain, cut := tr.exact(0, nodes, want, dearest)
				s := stretch{t: tr, length: nodes, size: size, want: want, dearest: dearest}
				begin, turns, apart := s.turns()
				if apart > 0 {
					calm++
				}
				best := worth{}
				for turn := range turns {
					if s.from = turn; turns == 1 {
						s.from = begin
					}
					s.survey()
					if w := s.run(); best.less(w) {
						best = w
					}
				}
				if gain != best.gain || len(moved) != best.cost {
					t.Fatalf("seed %d, %d nodes, K %d, size %d, want %d at most %d: %d groups more for %d moved, best is %d for %d", seed, nodes, k, size, want, dearest, gain, len(moved), best.gain, best.cost)
				}
				if gain > 0 {
					better++
					before := wholeIn(tr)
					tr.layAnew(cut, nodes, moved, gain)
					if after := wholeIn(tr); after < before+gain {
						t.Fatalf("seed %d: %d groups are laid, %d were whole and %d more were said", seed, after, before, gain)
					}
				}
			}
		}
	}
	if t.Logf("%d circles with a calm place, %d find more", calm, better); calm < 50 || better < 50 {
		t.Error("too few cases say anything")
	}
}
