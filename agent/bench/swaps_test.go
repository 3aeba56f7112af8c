package bench

import (
	"slices"
	"testing"

	"ringlight/proto"
)

// apply does steps to fibres, as a person would, and fails where one cannot.
func apply(t *testing.T, found []Fibre, steps []Step) map[Port]Port {
	t.Helper()
	at := map[Port]Port{}
	for _, f := range found {
		at[f.A], at[f.B] = f.B, f.A
	}
	for _, s := range steps {
		x, hasX := at[s.A]
		y, hasY := at[s.B]
		switch s.Kind {
		case StepSwap:
			if !hasX || !hasY || x == s.B {
				t.Fatalf("%v: no two fibres there", s)
			}
			at[s.A], at[y], at[s.B], at[x] = y, s.A, x, s.B
		case StepMove:
			if !hasX || hasY {
				t.Fatalf("%v: nothing to take, or nowhere to put it", s)
			}
			delete(at, s.A)
			at[s.B], at[x] = x, s.B
		case StepLay:
			if hasX || hasY {
				t.Fatalf("%v: a port is taken", s)
			}
			at[s.A], at[s.B] = s.B, s.A
		case StepPull:
			if x != s.B {
				t.Fatalf("%v: no such fibre", s)
			}
			delete(at, s.A)
			delete(at, s.B)
		}
	}
	return at
}

// matchings are all ways to join some of n ports in pairs, each as the partner
// by port, the port itself for none.
func matchings(n int) [][]int {
	var out [][]int
	var grow func(m []int, from int)
	grow = func(m []int, from int) {
		for from < n && m[from] >= 0 {
			from++
		}
		if from == n {
			out = append(out, slices.Clone(m))
			return
		}
		for to := from; to < n; to++ {
			if m[to] >= 0 {
				continue
			}
			m[from], m[to] = to, from
			grow(m, from+1)
			m[from], m[to] = -1, -1
		}
	}
	m := make([]int, n)
	for i := range m {
		m[i] = -1
	}
	grow(m, 0)
	return out
}

func fibresOf(m []int) (out []Fibre) {
	for a, b := range m {
		if a < b {
			out = append(out, Fibre{Port{Bundle: a, Path: proto.External1}, Port{Bundle: b, Path: proto.External1}})
		}
	}
	return out
}

// near are the states that one step leads to.
func near(m []int) [][]int {
	var out [][]int
	with := func(change func(c []int)) {
		c := slices.Clone(m)
		change(c)
		out = append(out, c)
	}
	for a := range m {
		for b := range m {
			x, y := m[a], m[b]
			switch {
			case a == b:
			case x == a && y == b && a < b:
				with(func(c []int) { c[a], c[b] = b, a })
			case x == b && a < b:
				with(func(c []int) { c[a], c[b] = a, b })
			case x != a && y == b && x != b:
				with(func(c []int) { c[a], c[b], c[x] = a, x, b })
			case x != a && y != b && x != b && a < b:
				with(func(c []int) { c[a], c[y], c[b], c[x] = y, a, x, b })
			}
		}
	}
	return out
}

func TestSwapsAreTheFewest(t *testing.T) {
	// Goal: the steps can be done in their order, lead to the expected fibres,
	// and no shorter list does.
	// Method: every pair of states of six ports, each port with or without a
	// fibre, against a search through all states by single steps.
	all := matchings(6)
	key := func(m []int) (k [6]int) { copy(k[:], m); return k }
	for _, start := range all {
		best := map[[6]int]int{key(start): 0}
		queue := [][]int{start}
		for len(queue) > 0 {
			m := queue[0]
			queue = queue[1:]
			for _, next := range near(m) {
				if _, seen := best[key(next)]; !seen {
					best[key(next)] = best[key(m)] + 1
					queue = append(queue, next)
				}
			}
		}
		for _, want := range all {
			steps := swapsOf(fibresOf(start), fibresOf(want))
			at := apply(t, fibresOf(start), steps)
			if len(at) != 2*len(fibresOf(want)) {
				t.Fatalf("%v to %v by %v: ends as %v", start, want, steps, at)
			}
			for _, f := range fibresOf(want) {
				if at[f.A] != f.B || at[f.B] != f.A {
					t.Fatalf("%v to %v by %v: ends as %v", start, want, steps, at)
				}
			}
			if len(steps) != best[key(want)] {
				t.Fatalf("%v to %v: %d steps %v, %d are enough", start, want, len(steps), steps, best[key(want)])
			}
		}
	}
}
