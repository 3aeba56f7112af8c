package ring

import "testing"

// Successor, predecessor, rank and selection are those of a plain list.
// Random additions and removals on sets of one, two and four levels.
func TestNodeSet(t *testing.T) {
	for _, n := range []int{1, 63, 64, 65, 4096, 300_000} {
		s, plain := newNodeSet(n), make([]bool, n)
		seed := uint64(n)
		for step := range 3000 {
			seed = seed*6364136223846793005 + 1442695040888963407
			i := int(seed >> 33 % uint64(n))
			if step%3 == 0 {
				s.remove(i)
				plain[i] = false
			} else {
				s.add(i)
				plain[i] = true
			}
		}
		for probe := range min(n, 2000) {
			i := probe * (n / min(n, 2000))
			next, prev, rank := i, i, 0
			for next < n && !plain[next] {
				next++
			}
			for prev >= 0 && !plain[prev] {
				prev--
			}
			if next == n {
				next = -1
			}
			if probe%50 == 0 {
				for _, in := range plain[:i] {
					if in {
						rank++
					}
				}
				if got := s.below(i); got != rank {
					t.Fatalf("n %d: below(%d) = %d, want %d", n, i, got, rank)
				}
				if plain[i] && s.at(rank) != i {
					t.Fatalf("n %d: at(%d) = %d, want %d", n, rank, s.at(rank), i)
				}
			}
			if s.has(i) != plain[i] || s.next(i) != next || s.prev(i) != prev {
				t.Fatalf("n %d at %d: has %v next %d prev %d, want %v %d %d", n, i, s.has(i), s.next(i), s.prev(i), plain[i], next, prev)
			}
		}
	}
}
