package isolate

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"ringlight/mzi/detmath"
)

// scale multiplies the runs of tests that look at many cases; RINGLIGHT_ISOLATE
// sets it, 1 is what make test runs.
func scale(n int) int {
	times := 1
	fmt.Sscan(os.Getenv("RINGLIGHT_ISOLATE"), &times)
	return n * times
}

// follows checks a placement against what it must be, from its public fields
// and the free matrices alone.
func follows(t *testing.T, c Core, free [][]int, gpus int, p Placement) {
	t.Helper()
	bad := func(format string, args ...any) {
		t.Helper()
		t.Fatalf("%s\n%d GPUs on %+v %+v, free %v: %+v", fmt.Sprintf(format, args...), gpus, c, c.Optics, free, p)
	}
	T := c.GPUsPerServer
	seen := map[Server]bool{}
	perLeaf := map[int]int{}
	own := 0
	for _, w := range p.Servers {
		at := Server{Leaf: w.Leaf, Server: w.Server}
		if seen[at] || w.GPUs > free[w.Leaf][w.Server] || gpus > T && (w.GPUs != T || free[w.Leaf][w.Server] != T) {
			bad("server %+v", w)
		}
		seen[at] = true
		perLeaf[w.Leaf]++
		own += w.GPUs
	}
	want := gpus
	if gpus > T {
		want = (gpus + T - 1) / T * T
	}
	if own != want || p.GPUs != gpus {
		bad("%d GPUs", own)
	}
	if len(perLeaf) == 1 && (len(p.Links) > 0 || len(p.Circuits) > 0 || p.S != 0 || p.L != 1) {
		bad("links within a leaf")
	}
	links, leaf, spine := map[[2]int]int{}, map[[2]int]int{}, map[[2]int]int{}
	for n, x := range p.Circuits {
		leaf[[2]int{x.A.Number, x.Switch}]++
		switch {
		case x.A.Spine || x.Switch < 0:
			bad("circuit %d begins at a spine", n)
		case x.B.Spine:
			spine[[2]int{x.B.Number, x.Switch}]++
			if l := p.Links[n]; l.Leaf != x.A.Number || l.Spine != x.B.Number {
				bad("circuit %d is not link %v", n, l)
			}
		default:
			leaf[[2]int{x.B.Number, x.Switch}]++
			if !c.Optics.AnyToAny || x.A.Number == x.B.Number {
				bad("circuit %d joins leaves", n)
			}
		}
	}
	if c.Optics == nil {
		for _, l := range p.Links {
			links[[2]int{l.Leaf, l.Spine}]++
		}
		for at, n := range links {
			if n > c.Links[at[0]][at[1]] || n > 1 {
				bad("links %v", at)
			}
		}
	} else {
		for at, n := range leaf {
			if n > c.Optics.Leaf[at[0]][at[1]] {
				bad("leaf ports %v", at)
			}
		}
		for at, n := range spine {
			if n > c.Optics.Spine[at[0]][at[1]] {
				bad("spine ports %v", at)
			}
		}
	}
	switch {
	case len(perLeaf) == 1:
	case p.S == 0:
		small := len(p.Circuits) / T
		if c.Optics == nil || len(perLeaf) != 2 || p.L != 2 || small*T != len(p.Circuits) || perLeaf[p.Servers[0].Leaf] != small || small*2 > len(p.Servers) || len(p.Map) != small*T {
			bad("two leaves joined")
		}
		for _, x := range p.Circuits {
			if x.A.Number != p.Servers[0].Leaf || x.B.Number != p.Servers[len(p.Servers)-1].Leaf {
				bad("circuit %+v", x)
			}
		}
	default:
		if p.L*p.S != own || p.S%T != 0 || len(p.Links) != own || len(p.Map) != p.S || c.Optics == nil && len(perLeaf) != p.L {
			bad("l x s")
		}
		for at, l := range p.Links {
			v, j := at/p.S, at%p.S
			if l.Spine != p.Links[j].Spine || l.Leaf != p.Links[v*p.S].Leaf {
				bad("link %d", at)
			}
			if w := p.Servers[(v*p.S+j)/T]; w.Leaf != l.Leaf {
				bad("rank %d is not under leaf %d", at, l.Leaf)
			}
		}
		hit := make([]bool, p.S)
		for _, j := range p.Map {
			if hit[j] {
				bad("map")
			}
			hit[j] = true
		}
	}
}

// parts shows every way to put n things into rooms of these sizes.
func parts(rooms []int, n int, show func([]int) bool) bool {
	at := make([]int, len(rooms))
	var rec func(i, left int) bool
	rec = func(i, left int) bool {
		if i == len(rooms) {
			return left == 0 && show(at)
		}
		for at[i] = 0; at[i] <= min(rooms[i], left); at[i]++ {
			if rec(i+1, left-at[i]) {
				return true
			}
		}
		return false
	}
	return rec(0, n)
}

// possible is whether any placement exists, by looking at all.
func possible(c Core, free [][]int, gpus int) Cause {
	T := c.GPUsPerServer
	if gpus <= T {
		for _, servers := range free {
			for _, g := range servers {
				if g >= gpus {
					return Fits
				}
			}
		}
		return ByGPU
	}
	need := (gpus + T - 1) / T
	idle, all := make([]int, len(free)), 0
	for n, servers := range free {
		for _, g := range servers {
			if g == T {
				idle[n]++
				all++
			}
		}
	}
	if all < need {
		return ByGPU
	}
	for _, n := range idle {
		if n >= need {
			return Fits
		}
	}
	if c.Optics == nil {
		if _, ok := cheapest(c, idle, need*T); ok {
			return Fits
		}
		return ByNetwork
	}
	if c.Optics.AnyToAny {
		for a := range idle {
			for b := range idle {
				for x := 1; x < need && a != b; x++ {
					joint := 0
					for k := range c.Optics.Leaf[a] {
						joint += min(c.Optics.Leaf[a][k], c.Optics.Leaf[b][k])
					}
					if x <= idle[a] && need-x <= idle[b] && joint >= T*min(x, need-x) {
						return Fits
					}
				}
			}
		}
	}
	for s := 1; s <= need*T; s++ {
		if s%T != 0 || need*T%s != 0 {
			continue
		}
		l := need * T / s
		ok := parts(over(idle, s/T), l, func(ln []int) bool {
			return parts(repeat(s, c.Spines()), s, func(sm []int) bool { return coloured(c, ln, sm) })
		})
		if ok {
			return Fits
		}
	}
	return ByNetwork
}

func over(list []int, by int) []int {
	out := make([]int, len(list))
	for n, x := range list {
		out[n] = x / by
	}
	return out
}

func repeat(x, n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = x
	}
	return out
}

// coloured is whether circuits for these virtual leaves and spines exist, by
// trying all switches for all of them.
func coloured(c Core, ln, sm []int) bool {
	O := c.Switches()
	var a, b []int
	for n := range ln {
		sum := 0
		for _, x := range c.Optics.Leaf[n] {
			a = append(a, x)
			sum += x
		}
		s := 0
		for _, x := range sm {
			s += x
		}
		if sum < ln[n]*s {
			return false
		}
	}
	for m := range sm {
		sum, l := 0, 0
		for _, x := range c.Optics.Spine[m] {
			b = append(b, x)
			sum += x
		}
		for _, x := range ln {
			l += x
		}
		if sum < sm[m]*l {
			return false
		}
	}
	failed := map[string]bool{}
	var rec func(pair, k, left int) bool
	rec = func(pair, k, left int) bool {
		for left == 0 || pair < 0 {
			if pair++; pair == len(ln)*len(sm) {
				return true
			}
			k, left = 0, ln[pair/len(sm)]*sm[pair%len(sm)]
		}
		if k == O {
			return false
		}
		key := fmt.Sprint(pair, k, left, a, b)
		if failed[key] {
			return false
		}
		n, m := pair/len(sm)*O+k, pair%len(sm)*O+k
		for take := min(a[n], b[m], left); take >= 0; take-- {
			a[n] -= take
			b[m] -= take
			ok := rec(pair, k+1, left-take)
			a[n] += take
			b[m] += take
			if ok {
				return true
			}
		}
		failed[key] = true
		return false
	}
	return rec(-1, 0, 0)
}

// cheapest is the least objective (6) of all bicliques of the fewest leaves
// that there is one of, by looking at all sets of leaves.
func cheapest(c Core, idle []int, gpus int) (best int, ok bool) {
	T, fewest := c.GPUsPerServer, 0
	price := make([]int, c.Spines())
	for _, row := range c.Links {
		for m, n := range row {
			price[m] += n
		}
	}
	for set := range 1 << len(idle) {
		var leaves []int
		for n := range idle {
			if set>>n&1 != 0 {
				leaves = append(leaves, n)
			}
		}
		l := len(leaves)
		if l < 2 || gpus%l != 0 || gpus/l%T != 0 {
			continue
		}
		s := gpus / l
		for spines := range 1 << c.Spines() {
			cost, fits, on := 0, true, 0
			for m := range c.Spines() {
				if spines>>m&1 != 0 {
					on++
					cost += price[m]
				}
			}
			if on != s {
				continue
			}
			for _, n := range leaves {
				cost += T * idle[n]
				fits = fits && idle[n]*T >= s
				for m := range c.Spines() {
					fits = fits && (spines>>m&1 == 0 || c.Links[n][m] > 0)
				}
			}
			if fits && (!ok || l < fewest || l == fewest && cost < best) {
				best, fewest, ok = cost, l, true
			}
		}
	}
	return best, ok
}

func random(r *detmath.Random, rows, columns, most int) [][]int {
	m := fill(rows, columns, 0)
	for _, row := range m {
		for c := range row {
			row[c] = r.Below(most + 1)
		}
	}
	return m
}

// Goal: stage 2 without optics equals exhaustion in feasibility, in the number
// of leaves and in cost.
// Method: random cores with at most 8 leaves and spines, part of them taken,
// against all sets of leaves and spines.
func TestBicliqueIsOptimal(t *testing.T) {
	r := detmath.Stream(1, 0)
	found, none := 0, 0
	for range scale(400) {
		T := 1 << r.Below(3)
		leaves, spines := 2+r.Below(7), 1+r.Below(8)
		servers := 1 + r.Below(8/T)
		c := Core{GPUsPerServer: T, Servers: repeat(servers, leaves), Links: random(r, leaves, spines, 1+r.Below(2))}
		free := fill(leaves, servers, T)
		for _, row := range free {
			for i := range row {
				if r.Below(4) == 0 {
					row[i] = r.Below(T)
				}
			}
		}
		s, err := c.With(free)
		if err != nil {
			t.Fatal(err)
		}
		gpus := T*servers + 1 + r.Below(T*servers*2)
		p, why := s.Place(gpus)
		if want := possible(c, free, gpus); why != want {
			t.Fatalf("%d GPUs on %+v, free %v: %v, want %v", gpus, c, free, why, want)
		}
		if why != Fits {
			none++
			continue
		}
		follows(t, c, free, gpus, p)
		idle := make([]int, leaves)
		for n := range idle {
			idle[n] = int(s.idle[n])
		}
		if p.Stage == 2 {
			found++
			if want, _ := cheapest(c, idle, len(p.Servers)*T); p.Cost != want {
				t.Fatalf("%d GPUs on %+v, free %v: cost %d, want %d: %+v", gpus, c, free, p.Cost, want, p)
			}
		}
	}
	if found < 50 || none < 50 {
		t.Errorf("%d found, %d not: does the test still see both?", found, none)
	}
}

// Goal: with optics nothing is refused that exists, and what is found is right.
// Method: random small cores, part of them taken, against exhaustion.
func TestOpticsRefuseNothingThatExists(t *testing.T) {
	r := detmath.Stream(2, 0)
	stages := [4]int{}
	none := 0
	for range scale(1500) {
		T := 1 << r.Below(3)
		leaves, spines, switches := 2+r.Below(3), 1+r.Below(4), 1+r.Below(4)
		servers := 1 + r.Below(8/T)
		most := 1 + r.Below(3)
		c := Core{GPUsPerServer: T, Servers: repeat(servers, leaves), Optics: &Optics{
			AnyToAny: r.Below(3) == 0, Leaf: random(r, leaves, switches, most), Spine: random(r, spines, switches, 2*most)}}
		free := fill(leaves, servers, T)
		for _, row := range free {
			for i := range row {
				if r.Below(6) == 0 {
					row[i] = r.Below(T)
				}
			}
		}
		s, err := c.With(free)
		if err != nil {
			t.Fatal(err)
		}
		gpus := 1 + r.Below(16)
		p, why := s.Place(gpus)
		if want := possible(c, free, gpus); why != want {
			t.Fatalf("%d GPUs on %+v %+v, free %v: %v, want %v", gpus, c, *c.Optics, free, why, want)
		}
		if why != Fits {
			none++
			continue
		}
		follows(t, c, free, gpus, p)
		stages[p.Stage]++
	}
	if slices.Min(stages[:]) < 20 || none < 100 {
		t.Errorf("stages %v, %d not: does the test still see all?", stages, none)
	}
}

// planted is a core whose free ports are those of one virtual Clos, coloured by
// chance, and a few more.
func planted(r *detmath.Random, leaves, spines, switches int, want shape) Core {
	c := Core{GPUsPerServer: 1, Servers: repeat(0, leaves), Optics: &Optics{Leaf: fill(leaves, switches, 0), Spine: fill(spines, switches, 0)}}
	ln, sm := repeat(0, leaves), repeat(0, spines)
	for range want.l {
		ln[r.Below(leaves)]++
	}
	for range want.s {
		sm[r.Below(spines)]++
	}
	for n := range ln {
		for m := range sm {
			for range ln[n] * sm[m] {
				k := r.Below(switches)
				c.Optics.Leaf[n][k]++
				c.Optics.Spine[m][k]++
			}
		}
		c.Servers[n] = ln[n]*want.s + r.Below(4)
	}
	for range r.Below(6) {
		c.Optics.Leaf[r.Below(leaves)][r.Below(switches)]++
		if r.Below(2) == 0 {
			c.Optics.Spine[r.Below(spines)][r.Below(switches)]++
		}
	}
	return c
}

// Goal: a virtual Clos that is there is found, though no port may be over.
// Method: planted ones; some are found only by looking at every way.
func TestPlantedClosIsFound(t *testing.T) {
	r := detmath.Stream(9, 0)
	shapes := []shape{{2, 8}, {8, 2}, {4, 4}, {16, 1}, {3, 5}, {5, 3}, {6, 2}, {4, 3}, {3, 4}, {7, 2}}
	for range scale(4000) {
		want := shapes[r.Below(len(shapes))]
		c := planted(r, 3+r.Below(2), 2+r.Below(7), 3+r.Below(2), want)
		if slices.Max(c.Servers) >= want.l*want.s {
			continue // one leaf holds it
		}
		o := &optical{State: c.Empty(), need: want.l * want.s}
		p, ok := o.severalSpines()
		if !ok {
			t.Fatalf("no %d x %d on %+v after %d steps", want.l, want.s, *c.Optics, o.w.steps)
		}
		p.GPUs = o.need
		follows(t, c, fillServers(c), o.need, p)
	}
}

// fillServers is all GPUs free.
func fillServers(c Core) [][]int {
	var out [][]int
	for _, n := range c.Servers {
		out = append(out, repeat(c.GPUsPerServer, n))
	}
	return out
}
