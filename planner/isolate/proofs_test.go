package isolate

import (
	"math/bits"
	"testing"

	"ringlight/mzi/detmath"
)

// The proofs that a job alone on its virtual Clos never waits for itself, as
// tests: the load of a set of flows is the largest number of them on one
// directed link.

// clos is a virtual Clos with a map of ports to spines for each leaf.
type clos struct {
	l, s int
	f    [][]int
}

// equalMaps has the same map on every leaf.
func equalMaps(r *detmath.Random, l, s int) clos {
	c := clos{l: l, s: s}
	f := Identity[int](s)
	r.Shuffle(s, func(i, j int) { f[i], f[j] = f[j], f[i] })
	for range l {
		c.f = append(c.f, f)
	}
	return c
}

// unequalMaps has one of chance on each leaf.
func unequalMaps(r *detmath.Random, l, s int) clos {
	c := clos{l: l, s: s}
	for range l {
		c.f = append(c.f, equalMaps(r, 1, s).f[0])
	}
	return c
}

func (c clos) ranks() int { return c.l * c.s }

// load sends one flow from each rank to where to says, -1: none.
func (c clos) load(to func(rank int) int) int {
	up, down, most := make([]int, c.l*c.s), make([]int, c.l*c.s), 0
	for from := range c.ranks() {
		dst := to(from)
		if dst < 0 || dst/c.s == from/c.s {
			continue
		}
		spine := c.f[from/c.s][from%c.s]
		u, d := &up[from/c.s*c.s+spine], &down[dst/c.s*c.s+spine]
		*u++
		*d++
		most = max(most, *u, *d)
	}
	return most
}

// everyClos goes through every virtual Clos of up to 16 x 16 and servers of 1,
// 2, 4 and 8 GPUs: all of them with a scale above 1, else a sample.
func everyClos(t *testing.T, check func(r *detmath.Random, l, s, T int)) {
	t.Helper()
	r := detmath.Stream(5, 0)
	seen := 0
	for _, T := range []int{1, 2, 4, 8} {
		for l := 2; l <= 16; l++ {
			for s := T; s <= 16; s += T {
				if scale(1) == 1 && r.Below(4) != 0 {
					continue
				}
				seen++
				check(r, l, s, T)
			}
		}
	}
	if seen < 50 {
		t.Errorf("%d seen", seen)
	}
}

// leafWise is a permutation by which each leaf sends to one other at most.
func leafWise(r *detmath.Random, l, s int) []int {
	to := make([]int, l*s)
	leaves := equalMaps(r, 1, l).f[0]
	for v, far := range leaves {
		for i, j := range equalMaps(r, 1, s).f[0] {
			to[v*s+i] = far*s + j
		}
	}
	return to
}

// Goal: proof 1. With any map on each leaf there is one flow on each link for
// leaf-wise permutations, the ring and each half-doubling step.
// Method: maps and permutations of chance on every virtual Clos.
func TestAnyMapsServeLeafWise(t *testing.T) {
	everyClos(t, func(r *detmath.Random, l, s, T int) {
		for range scale(2) {
			c := unequalMaps(r, l, s)
			to := leafWise(r, l, s)
			if n := c.load(func(i int) int { return to[i] }); n > 1 {
				t.Fatalf("%d x %d: a leaf-wise permutation has load %d", l, s, n)
			}
			if n := c.load(func(i int) int { return (i + 1) % c.ranks() }); n != 1 {
				t.Fatalf("%d x %d: the ring has load %d", l, s, n)
			}
			for step := 1; bits.OnesCount(uint(c.ranks())) == 1 && step < c.ranks(); step *= 2 {
				if n := c.load(func(i int) int { return i ^ step }); n > 1 {
					t.Fatalf("%d x %d: half-doubling over %d has load %d", l, s, step, n)
				}
			}
		}
	})
}

// Goal: proof 2. With the same map on every leaf each step of the pairwise
// exchange has one flow on each link; with maps that differ some has two.
// Method: all steps of every virtual Clos; of those that are large enough one
// counterexample each.
func TestEqualMapsServePairwise(t *testing.T) {
	everyClos(t, func(r *detmath.Random, l, s, T int) {
		same, other := equalMaps(r, l, s), unequalMaps(r, l, s)
		worst := 0
		for step := 1; step < same.ranks(); step++ {
			shift := func(i int) int { return (i + step) % same.ranks() }
			if n := same.load(shift); n > 1 {
				t.Fatalf("%d x %d: step %d has load %d", l, s, step, n)
			}
			worst = max(worst, other.load(shift))
		}
		if l >= 3 && s >= 4 && worst < 2 {
			t.Errorf("%d x %d: maps of chance served every step", l, s)
		}
	})
	// the smallest: leaf 0 sends its port 1 where leaf 2 sends its port 0
	small := clos{3, 2, [][]int{{0, 1}, {0, 1}, {1, 0}}}
	if n := small.load(func(i int) int { return (i + 3) % 6 }); n != 2 {
		t.Errorf("the counterexample has load %d", n)
	}
}

// Goal: proof 3. The folding step of half-doubling with a number of ranks that
// is no power of two has one flow on each link with equal maps, and so have
// the other steps where s is a power of two; else they have two at most.
func TestHalfDoublingOfAnyNumber(t *testing.T) {
	two := 0
	everyClos(t, func(r *detmath.Random, l, s, T int) {
		c := equalMaps(r, l, s)
		power := 1 << (bits.Len(uint(c.ranks())) - 1)
		fold := func(by int) func(int) int {
			return func(i int) int {
				if j := i + by; i < c.ranks()-power && by > 0 || i >= power && by < 0 {
					return j
				}
				return -1
			}
		}
		for _, by := range []int{power, -power} {
			if n := c.load(fold(by)); n > 1 {
				t.Fatalf("%d x %d: folding by %d has load %d", l, s, by, n)
			}
		}
		for step := 1; step < power; step *= 2 {
			n := c.load(func(i int) int {
				if i >= power {
					return -1
				}
				return i ^ step
			})
			if n > 2 || n > 1 && bits.OnesCount(uint(s)) == 1 {
				t.Fatalf("%d x %d: step %d has load %d", l, s, step, n)
			}
			if n > 1 {
				two++
			}
		}
	})
	if two == 0 {
		t.Error("no step had two flows: the bound is not tight")
	}
}

// parent in the tree in which odd ranks are leaves of the tree and each lowest
// bit is a level.
func parent(rank, ranks int) int {
	if rank == 0 {
		return -1
	}
	low := rank & -rank
	if up := rank ^ low | low<<1; up < ranks {
		return up
	}
	return rank ^ low
}

// trees is the load of both trees of a double binary tree at once, all ranks
// sending to their parents.
func (c clos) trees() int {
	up, down, most := make([]int, c.l*c.s), make([]int, c.l*c.s), 0
	for from := range c.ranks() {
		other := parent(c.ranks()-1-from, c.ranks())
		if other >= 0 {
			other = c.ranks() - 1 - other
		}
		for _, dst := range [...]int{parent(from, c.ranks()), other} {
			if dst < 0 || dst/c.s == from/c.s {
				continue
			}
			spine := c.f[from/c.s][from%c.s]
			up[from/c.s*c.s+spine]++
			down[dst/c.s*c.s+spine]++
			most = max(most, up[from/c.s*c.s+spine], down[dst/c.s*c.s+spine])
		}
	}
	return most
}

// Goal: proof 4. No directed link, port, uplink of a table or server is ever
// shared, and a core that all jobs have left is as it was.
// Method: sequences of jobs that come and go on random cores; every unit is
// counted by a naive ledger. 10^5 of them with RINGLIGHT_ISOLATE=100.
func TestNothingIsShared(t *testing.T) {
	r := detmath.Stream(7, 0)
	for sequence := range scale(1000) {
		T := 1 << r.Below(4)
		leaves, servers := 2+r.Below(7), 1+r.Below(8)
		c := Core{GPUsPerServer: T, Servers: repeat(servers, leaves)}
		switch r.Below(8) {
		case 0: // links that all share
		case 1, 2, 3:
			c.Links = random(r, leaves, 1+r.Below(12), 1+r.Below(2))
		default:
			switches := 1 + r.Below(8)
			c.Optics = &Optics{AnyToAny: r.Below(2) == 0, Leaf: random(r, leaves, switches, 3), Spine: random(r, 1+r.Below(6), switches, 4)}
		}
		s := c.Empty()
		before := s.Clone()
		var in []JobID
		for n := range 12 + r.Below(12) {
			if len(in) > 0 && r.Below(3) == 0 {
				at := r.Below(len(in))
				s.Release(in[at])
				in = append(in[:at], in[at+1:]...)
			} else if p, why := s.Place(1 + r.Below(4*T*servers)); why == Fits {
				if err := s.Take(JobID(n), p); err != nil {
					t.Fatal(sequence, err)
				}
				if p.Stage > 0 && s.Take(JobID(n+100), p) == nil {
					t.Fatalf("sequence %d: %+v is had twice", sequence, p)
				}
				in = append(in, JobID(n))
			}
			ledger(t, s)
		}
		for _, id := range in {
			s.Release(id)
		}
		if !same(s, before) {
			t.Fatalf("sequence %d: the empty core is not as it was", sequence)
		}
	}
}

// same is whether the same is free.
func same(a, b *State) bool {
	eq := func(x, y []int32) bool {
		for i := range x {
			if x[i] != y[i] {
				return false
			}
		}
		return len(x) == len(y)
	}
	none := func(p pool) bool {
		for _, taken := range p.taken {
			if taken {
				return false
			}
		}
		return true
	}
	return eq(a.gpus, b.gpus) && eq(a.idle, b.idle) && a.servers == b.servers &&
		eq(a.links.free, b.links.free) && eq(a.leaf.free, b.leaf.free) && eq(a.spine.free, b.spine.free) &&
		eq(a.leaf.row, b.leaf.row) && eq(a.spine.row, b.spine.row) && none(a.links) && none(a.leaf) && none(a.spine) && len(a.jobs) == len(b.jobs)
}

// ledger counts what all jobs own, and what their tables use.
func ledger(t *testing.T, s *State) {
	t.Helper()
	type unit struct {
		kind    string
		a, b, c int
	}
	used := map[unit]int{}
	for _, id := range s.Jobs() {
		p, _ := s.Of(id)
		for _, w := range p.Servers {
			used[unit{"gpus", w.Leaf, w.Server, 0}] += w.GPUs
		}
		for _, c := range p.Circuits {
			for _, e := range []End{c.A, c.B} {
				kind := "leaf port"
				if e.Spine {
					kind = "spine port"
				}
				used[unit{kind, c.Switch, e.Number, e.Port}]++
			}
		}
		if len(p.Circuits) == 0 {
			for _, l := range p.Links {
				used[unit{"link", l.Leaf, l.Spine, l.Nth}]++
			}
		}
		tables := s.Tables(p)
		for _, leaf := range tables.Leaves {
			for _, row := range leaf.Sends {
				used[unit{"uplink", leaf.Leaf, row.Uplink, 0}]++
			}
			for _, row := range leaf.Reaches {
				used[unit{"uplink", leaf.Leaf, row.Uplink, 0}]++
			}
		}
		for _, f := range tables.VRFs {
			for _, port := range f.Ports {
				used[unit{"downlink", f.Spine, port, 0}]++
			}
		}
	}
	for u, n := range used {
		if u.kind == "gpus" && n > s.core.GPUsPerServer || u.kind != "gpus" && n > 1 {
			t.Fatalf("%+v is used %d times", u, n)
		}
	}
}
