package flow

// Transfer is what one rank sends another in a round.
type Transfer struct {
	From, To int
	Bytes    int64
}

// Exchange is the transfers of one round, so many times in a row.
type Exchange struct {
	Transfers []Transfer
	Times     int
}

// share is an nth of bytes, rounded up.
func share(bytes int64, n int) int64 { return (bytes + int64(n) - 1) / int64(n) }

// Ring is an AllReduce of bytes on n ranks: 2(n-1) rounds in which each rank
// sends an nth to the next.
func Ring(n int, bytes int64) []Exchange {
	if n < 2 || bytes < 1 {
		return nil
	}
	t := make([]Transfer, n)
	for i := range t {
		t[i] = Transfer{i, (i + 1) % n, share(bytes, n)}
	}
	return []Exchange{{t, 2 * (n - 1)}}
}

// HierarchicalRing is an AllReduce on n ranks in groups of g, g | n: rings in
// the groups scatter, one ring per place in a group reduces between them, and
// rings in the groups gather.
func HierarchicalRing(n, g int, bytes int64) []Exchange {
	if g < 2 || g >= n {
		return Ring(n, bytes)
	}
	var inner, outer []Transfer
	for i := range n {
		at, group := i%g, i-i%g
		inner = append(inner, Transfer{i, group + (at+1)%g, share(bytes, g)})
		outer = append(outer, Transfer{i, (i + g) % n, share(share(bytes, g), n/g)})
	}
	return []Exchange{{inner, g - 1}, {outer, 2 * (n/g - 1)}, {inner, g - 1}}
}

// HalvingDoubling is an AllReduce of bytes on n ranks: halves to the rank at
// distance 1, quarters at 2, and so on, and back the same way. When n is no
// power of two, the ranks beyond the largest first fold all they have onto
// one of the others each, and get the result from it at the end.
func HalvingDoubling(n int, bytes int64) []Exchange {
	if n < 2 || bytes < 1 {
		return nil
	}
	p := 1
	for 2*p <= n {
		p *= 2
	}
	// Rank i < 2(n-p), i odd, folds onto i-1; the others are renumbered.
	extra := n - p
	rank := func(v int) int {
		if v < extra {
			return 2 * v
		}
		return v + extra
	}
	var fold, unfold []Transfer
	for v := range extra {
		fold = append(fold, Transfer{2*v + 1, 2 * v, bytes})
		unfold = append(unfold, Transfer{2 * v, 2*v + 1, bytes})
	}
	var there, back []Exchange
	for d, part := 1, share(bytes, 2); d < p; d, part = 2*d, share(part, 2) {
		var t []Transfer
		for v := range p {
			t = append(t, Transfer{rank(v), rank(v ^ d), part})
		}
		there = append(there, Exchange{t, 1})
		back = append([]Exchange{{t, 1}}, back...)
	}
	out := append(there, back...)
	if extra > 0 {
		out = append(append([]Exchange{{fold, 1}}, out...), Exchange{unfold, 1})
	}
	return out
}

// DoubleBinaryTree is an AllReduce on n ranks over two trees, each for half of
// the bytes; the inner ranks of one are leaves of the other (but for one rank
// when n is odd). Chunks flow up and down both trees at once, so all edges are
// busy together: one round, in which every edge carries half of the bytes each
// way.
func DoubleBinaryTree(n int, bytes int64) []Exchange {
	if n < 2 || bytes < 1 {
		return nil
	}
	twin := func(i int) int { return n - 1 - i } // odd ranks are leaves: mirror
	if n%2 == 1 {
		twin = func(i int) int { return (i + 1) % n } // or shift
	}
	half := share(bytes, 2)
	var t []Transfer
	for i := 1; i < n; i++ {
		low := i & -i
		up := i&^low | 2*low // the lowest bit moves up
		if up >= n {
			up = i &^ low
		}
		t = append(t, Transfer{i, up, half}, Transfer{up, i, half},
			Transfer{twin(i), twin(up), half}, Transfer{twin(up), twin(i), half})
	}
	return []Exchange{{t, 1}}
}

// AllToAll sends bytes from each of n ranks to each other: in round t rank i
// sends to i+t.
func AllToAll(n int, bytes int64) []Exchange {
	if bytes < 1 {
		return nil
	}
	var out []Exchange
	for t := 1; t < n; t++ {
		round := make([]Transfer, n)
		for i := range round {
			round[i] = Transfer{i, (i + t) % n, bytes}
		}
		out = append(out, Exchange{round, 1})
	}
	return out
}
