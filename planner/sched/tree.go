package sched

// DoubleTree is two binary trees over n ranks ([LUMOS] A.5.3): the parent of
// each rank in either, -1 for the root. No rank has children in both, so each
// carries half of the data at full rate, and no rank has more than four
// neighbours in all.
//
// The first is the tree of a sorted sequence: with ranks numbered from 1 the
// odd ones are leaves, and the height of a rank is the number of zeros its
// number ends in. The second is the same over the numbers in reverse, or, for
// odd n, moved on by one, so that odd and even change places.
func DoubleTree(n int) (parents [2][]int, err error) {
	if n < 1 || n > maxDomain {
		return parents, wrong("ranks", "at least one", "%d", n)
	}
	number := func(tree, rank int) int {
		switch {
		case tree == 0:
			return rank + 1
		case n%2 == 0:
			return n - rank
		}
		return (rank+1)%n + 1
	}
	for tree := range parents {
		rankOf := make([]int, n+1)
		for rank := range n {
			rankOf[number(tree, rank)] = rank
		}
		parents[tree] = make([]int, n)
		for rank := range n {
			parents[tree][rank] = -1
			if up := above(number(tree, rank), n); up > 0 {
				parents[tree][rank] = rankOf[up]
			}
		}
	}
	return parents, nil
}

// above is the parent of a number in the tree of 1..n: the parent in the
// endless tree, or the first further up that is not beyond n. 0: the root.
func above(i, n int) int {
	if i&(i-1) == 0 && 2*i > n {
		return 0
	}
	for {
		low := i & -i
		if i = i&^low | low<<1; i <= n {
			return i
		}
	}
}
