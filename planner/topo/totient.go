package topo

import "math/big"

// totientPerms are the jumps p that make a ring of n: i, i+p, i+2p, .. modulo n
// comes to every number before it returns, which is so when p and n share no
// divisor ([TOPO] Alg. 2). A bidirectional ring of p is that of n-p as well:
// only the smaller is given.
func totientPerms(n int, bidirectional bool) []int {
	var out []int
	for p := 1; p < n && (!bidirectional || p <= n-p); p++ {
		if gcd(p, n) == 1 {
			out = append(out, p)
		}
	}
	return out
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// selectPermutations takes so many of the jumps, near a geometric sequence of
// ratio n^(1/rings) ([TOPO] Alg. 3). Where there are fewer jumps it begins
// again: links are then parallel.
func selectPermutations(n, rings int, jumps []int) []int {
	out := make([]int, 0, rings)
	for len(out) < rings {
		left := append([]int{}, jumps...)
		at := 0
		for {
			q := left[at]
			out = append(out, q)
			left = append(left[:at], left[at+1:]...)
			if len(left) == 0 || len(out) == rings {
				break
			}
			at = nearest(left, n, q, rings)
		}
	}
	return out
}

// nearest is the index of what is nearest to q*n^(1/m), the smaller of two. It
// compares in whole numbers: q*n^(1/m) is beyond the middle of a and b when
// n*(2q)^m > (a+b)^m.
func nearest(list []int, n, q, m int) int {
	exponent := big.NewInt(int64(m))
	want := new(big.Int).Exp(big.NewInt(int64(2*q)), exponent, nil)
	want.Mul(want, big.NewInt(int64(n)))
	lo, hi := 0, len(list)-1 // the first whose middle with the next is not passed
	for lo < hi {
		at := (lo + hi) / 2
		middle := new(big.Int).Exp(big.NewInt(int64(list[at]+list[at+1])), exponent, nil)
		if want.Cmp(middle) > 0 {
			lo = at + 1
		} else {
			hi = at
		}
	}
	return lo
}

// Change says how to come from i to i+t modulo n in as few jumps as there are
// ways: Jump[t] is the first jump of one such way and Count[t] how many it has.
type Change struct {
	Jump, Count []int
}

// CoinChangeMod finds it for every t by a search in breadth on Z_n. Unlike
// [TOPO] Alg. 4, which as printed does not end.
func CoinChangeMod(n int, jumps []int, bidirectional bool) Change {
	steps := make([]int, 0, 2*len(jumps))
	for _, p := range jumps {
		if steps = append(steps, p); bidirectional {
			steps = append(steps, n-p)
		}
	}
	c := Change{make([]int, n), make([]int, n)}
	for t := 1; t < n; t++ {
		c.Count[t] = -1
	}
	queue := make([]int, 1, n)
	for len(queue) > 0 {
		t := queue[0]
		queue = queue[1:]
		for _, p := range steps {
			u := (t + p) % n
			if c.Count[u] >= 0 {
				continue
			}
			if c.Count[u], c.Jump[u] = c.Count[t]+1, c.Jump[t]; t == 0 {
				c.Jump[u] = p
			}
			queue = append(queue, u)
		}
	}
	return c
}
