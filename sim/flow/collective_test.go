package flow

import (
	"slices"
	"testing"
)

// Goal: halving and doubling, folded where N is no power of two, ends with
// every rank's part in every rank, and in no round does a rank send to or hear
// from two.
// Method: sets of contributions along the transfers, N from 2 to 33.
func TestHalvingDoublingReachesAll(t *testing.T) {
	for n := 2; n <= 33; n++ {
		has := make([]map[int]bool, n)
		for i := range has {
			has[i] = map[int]bool{i: true}
		}
		for _, e := range HalvingDoubling(n, 1<<20) {
			before := make([]map[int]bool, n)
			for i := range has {
				before[i] = map[int]bool{}
				for k := range has[i] { // any order: a set
					before[i][k] = true
				}
			}
			sends, hears := map[int]int{}, map[int]int{}
			for _, x := range e.Transfers {
				sends[x.From]++
				hears[x.To]++
				for k := range before[x.From] { // any order: a set
					has[x.To][k] = true
				}
			}
			for i := range n {
				if sends[i] > 1 || hears[i] > 1 {
					t.Fatalf("N = %d: rank %d sends to %d and hears from %d", n, i, sends[i], hears[i])
				}
			}
		}
		for i := range has {
			if len(has[i]) != n {
				t.Errorf("N = %d: rank %d has %d parts", n, i, len(has[i]))
			}
		}
	}
}

// Goal: both trees of the double binary tree span all ranks without a circle,
// inner ranks of one are leaves of the other, but for one when N is odd, and a
// rank has at most three neighbours in a tree.
// Method: each tree is every other pair of transfers; ranks are joined one by
// one. Reference: [VCLOS] sec 4.3.
func TestDoubleBinaryTreeSpansTwice(t *testing.T) {
	for n := 2; n <= 40; n++ {
		all := DoubleBinaryTree(n, 1000)[0].Transfers
		if len(all) != 4*(n-1) {
			t.Fatalf("N = %d: %d transfers", n, len(all))
		}
		inner := make([]int, n)
		for tree := range 2 {
			parent := make([]int, n)
			for i := range parent {
				parent[i] = i
			}
			root := func(i int) int {
				for parent[i] != i {
					i = parent[i]
				}
				return i
			}
			degree := make([]int, n)
			for k := 2 * tree; k < len(all); k += 4 {
				x, back := all[k], all[k+1]
				if back.From != x.To || back.To != x.From || x.Bytes != 500 {
					t.Fatalf("N = %d: %v and %v", n, x, back)
				}
				if root(x.From) == root(x.To) {
					t.Fatalf("N = %d, tree %d: a circle at %v", n, tree, x)
				}
				parent[root(x.From)] = root(x.To)
				degree[x.From]++
				degree[x.To]++
			}
			for i, d := range degree {
				if d > 3 {
					t.Errorf("N = %d: rank %d has %d neighbours in tree %d", n, i, d, tree)
				}
				if d > 1 {
					inner[i]++
				}
			}
		}
		twice := 0
		for _, k := range inner {
			if k == 2 {
				twice++
			}
		}
		if twice > n%2 && n > 2 {
			t.Errorf("N = %d: %d ranks are inner in both trees", n, twice)
		}
	}
}

// Goal: all-to-all sends every pair once, and each rank sends to one and hears
// from one in a round.
func TestAllToAllIsPairwise(t *testing.T) {
	for n := 2; n <= 17; n++ {
		seen := map[[2]int]int{}
		for _, e := range AllToAll(n, 5) {
			var hears []int
			for _, x := range e.Transfers {
				seen[[2]int{x.From, x.To}]++
				hears = append(hears, x.To)
			}
			slices.Sort(hears)
			if len(slices.Compact(hears)) != n {
				t.Errorf("N = %d: two send to one rank", n)
			}
		}
		if len(seen) != n*(n-1) {
			t.Errorf("N = %d: %d pairs", n, len(seen))
		}
	}
}

// Goal: the way in a ring is the shorter one, every way has its own links, and
// nodes of two rings or a node twice are refused.
func TestRingsGoTheShorterWay(t *testing.T) {
	r, err := NewRings([][]int{{10, 11, 12, 13, 14}, {20, 21}}, 5, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		from, to int
		want     []Link
	}{
		{10, 11, []Link{100}}, {11, 10, []Link{106}}, {10, 14, []Link{105}}, {14, 10, []Link{104}},
		{13, 10, []Link{103, 104}}, {10, 13, []Link{105, 109}}, {20, 21, []Link{110}}, {21, 20, []Link{111}},
	} {
		if got, err := r.Route(c.from, c.to); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%d to %d: %v, %v, want %v", c.from, c.to, got, err, c.want)
		}
	}
	if _, err := r.Route(10, 20); err == nil {
		t.Error("a way between two rings")
	}
	if _, err := NewRings([][]int{{1, 2}, {2, 3}}, 5, 0); err == nil {
		t.Error("a node in two rings")
	}
	if len(r.Capacities()) != 14 || len(r.Links(1)) != 4 || r.Links(1)[0] != 110 {
		t.Errorf("%d links, of ring 1 %v", len(r.Capacities()), r.Links(1))
	}
}

// Goal: balanced routing loads uplinks evenly and takes its load back; a path
// leads over one spine; uplinks to two are refused.
func TestBalancedSpreads(t *testing.T) {
	n := small(t)
	b := n.NewBalanced(1)
	var paths [][]Link
	for i := range 8 {
		p, err := b.Route(i%4, 4+i%4)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, p)
	}
	for u := range 4 {
		if up := b.load[n.Up(0, u)]; up != 2 {
			t.Errorf("uplink %d carries %d, want 2", u, up)
		}
	}
	for _, p := range paths {
		b.Release(p)
	}
	for l, k := range b.load {
		if k != 0 {
			t.Errorf("link %d keeps a load of %d", l, k)
		}
	}
	if p, err := n.Source(func(leaf, _ int) int { return leaf })(0, 4); err == nil {
		t.Errorf("%v over no common spine", p)
	}
}
