package topo

import (
	"fmt"
	"testing"

	"ringlight/mzi/detmath"
)

// bestWorth tries every matching: the lowest server is left alone or joined
// with each other one.
func bestWorth(worth [][]int64, left uint, known map[uint]int64) int64 {
	if left == 0 {
		return 0
	}
	if w, ok := known[left]; ok {
		return w
	}
	a := 0
	for left>>a&1 == 0 {
		a++
	}
	rest := left &^ (1 << a)
	best := bestWorth(worth, rest, known)
	for b := a + 1; b < len(worth); b++ {
		if rest>>b&1 == 1 && worth[a][b] > 0 {
			best = max(best, worth[a][b]+bestWorth(worth, rest&^(1<<b), known))
		}
	}
	known[left] = best
	return best
}

func worthOf(t *testing.T, worth [][]int64, mate []int) int64 {
	t.Helper()
	sum := int64(0)
	for a, b := range mate {
		switch {
		case b == nobody:
		case mate[b] != a || worth[a][b] == 0:
			t.Fatalf("mates %v", mate)
		case a < b:
			sum += worth[a][b]
		}
	}
	return sum
}

// Goal: no matching is worth more than the one that is found.
// Method: 20,000 random graphs of up to 12 servers against exhaustion, with
// worths of few values (blossoms within blossoms) and of many.
func TestMatchingIsWorthAsMuchAsAny(t *testing.T) {
	rnd := detmath.Random(9)
	for i := range 20000 {
		n := 2 + rnd.Below(11)
		values, dense := []int{2, 4, 30, 1 << 30}[i%4], 1+rnd.Below(10)
		worth := make([][]int64, n)
		for a := range worth {
			worth[a] = make([]int64, n)
		}
		var pairs []pair
		for a := range n {
			for b := range a {
				if rnd.Below(10) < dense {
					w := int64(1 + rnd.Below(values))
					worth[a][b], worth[b][a] = w, w
					pairs = append(pairs, pair{a, b, w})
				}
			}
		}
		got := worthOf(t, worth, match(n, pairs))
		if want := bestWorth(worth, 1<<n-1, map[uint]int64{}); got != want {
			t.Fatalf("case %d, %v: worth %d, possible %d", i, pairs, got, want)
		}
	}
}

func BenchmarkMatching(b *testing.B) {
	for _, n := range []int{128, 432} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			rnd := detmath.Random(3)
			var pairs []pair
			for a := range n {
				for c := range a {
					pairs = append(pairs, pair{a, c, int64(1 + rnd.Below(1<<30))})
				}
			}
			for b.Loop() {
				match(n, pairs)
			}
		})
	}
}
