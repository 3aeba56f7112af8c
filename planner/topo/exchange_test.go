package topo

import (
	"slices"
	"testing"

	"ringlight/planner/fabric"
)

// fibresOf are those of a line of nodes to n +- 2^i, by the ports of a fabric file.
func fibresOf(nodes, count int) (out []Fibre) {
	f, err := fabric.New(fabric.Params{Name: "x", Nodes: nodes, GPUsPerNode: 4, TP: 4 * nodes, Spans: fabric.Powers(count)})
	if err != nil {
		panic(err)
	}
	for _, x := range f.AllFibres() {
		out = append(out, Fibre{A: int(x.A.Node), B: int(x.B.Node), PortA: int(x.A.Node)*f.Bundles + int(x.A.Bundle), PortB: int(x.B.Node)*f.Bundles + int(x.B.Bundle),
			Hops: f.Distance(x.A.Node, x.B.Node)})
	}
	return out
}

// Goal: in every cut into steps each block comes to whom it is for, over fibres that have
// light, one at a port; the fullest link carries what is said.
// Method: an executor that knows blocks by sender and receiver and moves them node by node.
func TestExchangeBringsEveryBlock(t *testing.T) {
	for count := 2; count <= 4; count++ {
		for bits := 2; bits <= 5; bits++ {
			p := 1 << bits
			fibres := fibresOf(p, count)
			for _, ends := range Cuts(bits) {
				type block struct{ from, to int }
				at := map[block]int{}
				for a := range p {
					for b := range p {
						at[block{a, b}] = a
					}
				}
				from := 0
				for _, to := range ends {
					s := Set(p, fibres, ExchangeStep(p, from, to, 1))
					if s == nil {
						t.Fatalf("K %d, %d nodes, %v: no fibres reach all", count, p, ends)
					}
					light, lit := map[int]int{}, map[[2]int]bool{}
					for _, x := range s.Fibres {
						light[x.PortA]++
						light[x.PortB]++
						lit[[2]int{x.A, x.B}], lit[[2]int{x.B, x.A}] = true, true
					}
					for port, n := range light { // any order: each by itself
						if n > 1 {
							t.Fatalf("port %d has %d fibres", port, n)
						}
					}
					carried := map[[2]int]int64{}
					for b, n := range at { // any order: sums
						mask := (1<<to - 1) &^ (1<<from - 1)
						next := n&^mask | b.to&mask
						if next == n {
							continue
						}
						way := s.Path(n, next)
						if way[0] != n || way[len(way)-1] != next {
							t.Fatalf("way %v from %d to %d", way, n, next)
						}
						for i := 1; i < len(way); i++ {
							hop := [2]int{way[i-1], way[i]}
							if carried[hop]++; !lit[hop] {
								t.Fatalf("%v: no light from %d to %d", ends, hop[0], hop[1])
							}
						}
						at[b] = next
					}
					most := int64(0)
					for _, n := range carried { // any order: the most
						most = max(most, n)
					}
					if most != s.Fullest {
						t.Fatalf("K %d, %d nodes, bits %d to %d: the fullest link carries %d, said %d", count, p, from, to, most, s.Fullest)
					}
					if to-from == 1 && to <= count && most != int64(p/2) {
						t.Errorf("K %d, %d nodes, bit %d: %d blocks, half of all is %d", count, p, from, most, p/2)
					}
					from = to
				}
				for b, n := range at { // any order: each by itself
					if n != b.to {
						t.Fatalf("K %d, %d nodes, %v: block %v is at %d", count, p, ends, b, n)
					}
				}
			}
		}
	}
}

// Goal: no choice of fibres has an emptier fullest link where Set is compared.
// Method: every choice of fibres on four and eight nodes with two spans.
func TestSetAgainstAllChoices(t *testing.T) {
	worse, steps := 0, 0
	for _, bits := range []int{2, 3} {
		p := 1 << bits
		fibres := fibresOf(p, 2)
		for from := range bits {
			for to := from + 1; to <= bits; to++ {
				demands := ExchangeStep(p, from, to, 1)
				best := int64(1 << 40)
				for mask := range 1 << len(fibres) {
					var some []Fibre
					taken := map[int]bool{}
					ok := true
					for i, x := range fibres {
						if mask>>i&1 == 0 {
							continue
						}
						ok = ok && !taken[x.PortA] && !taken[x.PortB]
						taken[x.PortA], taken[x.PortB] = true, true
						some = append(some, x)
					}
					if !ok {
						continue
					}
					if full := Forward(p, linksOf(some), demands); full >= 0 {
						best = min(best, full)
					}
				}
				if steps++; Set(p, fibres, demands).Fullest != best {
					t.Logf("%d nodes, bits %d to %d: %d, best %d", p, from, to, Set(p, fibres, demands).Fullest, best)
					worse++
				}
			}
		}
	}
	if worse > 0 {
		t.Errorf("%d of %d steps", worse, steps)
	}
}

// Goal: with two spans Binary Exchange is as fast as Bruck's algorithm below eight nodes,
// and with long bits in one step at eight too.
// Reference: [IHBD] sec 7
func TestExchangeEqualsBruck(t *testing.T) {
	for bits, want := range []struct{ exchange, cut int64 }{2: {4, 4}, 3: {16, 12}, 4: {64, 40}} {
		if bits < 2 {
			continue
		}
		p := 1 << bits
		sum := func(ends []int) (all int64) {
			from := 0
			for _, to := range ends {
				all += Set(p, fibresOf(p, 2), ExchangeStep(p, from, to, 1)).Fullest
				from = to
			}
			return all
		}
		cuts := Cuts(bits)
		least := slices.MinFunc(cuts, func(a, b []int) int { return int(sum(a) - sum(b)) })
		if single, cut := sum(cuts[len(cuts)-1]), sum(least); single != want.exchange || cut != want.cut {
			t.Errorf("%d nodes: %d blocks bit by bit, %d at best (%v), want %d and %d; Bruck %d", p, single, cut, least, want.exchange, want.cut, bits*p/2)
		}
	}
}
