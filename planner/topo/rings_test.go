package topo

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"ringlight/mzi/detmath"
)

func all(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func mustFind(t testing.TB, r Request) *Topology {
	t.Helper()
	top, err := Find(r)
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// checkRings says what is wrong with a topology's rings and layers, from
// nothing but its own lists: every ring is its group in some order and has its
// links on its own layers, and nobody hears two on one layer.
func checkRings(r Request, top *Topology) error {
	carried := make([]map[[2]int]bool, len(top.Layers))
	for l, layer := range top.Layers {
		carried[l] = map[[2]int]bool{}
		heard := map[int]bool{}
		for s, to := range layer.To {
			if to < 0 {
				continue
			}
			if to == s || to >= r.Servers || heard[to] {
				return fmt.Errorf("layer %d: %d to %d", l, s, to)
			}
			heard[to] = true
			carried[l][[2]int{s, to}] = true
		}
	}
	for i, ring := range top.Rings {
		if ring.Group >= 0 {
			in := map[int]bool{}
			for _, s := range r.AllReduce[ring.Group].Servers {
				in[s] = true
			}
			for _, s := range ring.Order {
				if !in[s] {
					return fmt.Errorf("ring %d: %d is no member or there twice", i, s)
				}
				delete(in, s)
			}
			if len(in) > 0 {
				return fmt.Errorf("ring %d lacks %v", i, in)
			}
		}
		for k, s := range ring.Order {
			next := ring.Order[(k+1)%len(ring.Order)]
			for _, way := range [][2]int{{s, next}, {next, s}} {
				found := false
				for _, l := range ring.Layers {
					found = found || carried[l][way]
				}
				if !found && (r.Bidirectional || way[0] == s) {
					return fmt.Errorf("ring %d: no link %v on its layers", i, way)
				}
			}
		}
		for _, l := range ring.Layers {
			for _, s := range ring.Order {
				if r.Bidirectional && len(ring.Order)%2 == 0 && !top.Layers[l].Paired(s) {
					return fmt.Errorf("ring %d of %d: on layer %d server %d hears not whom it speaks to", i, len(ring.Order), l, s)
				}
			}
		}
	}
	return nil
}

// Goal: every ring is a ring of its group and every layer can be switched.
// Method: 300 requests of random size, degree, groups and method.
func TestRingsLieOnTheirLayers(t *testing.T) {
	rnd := detmath.Random(5)
	for i := range 300 {
		r := Request{Servers: 2 + rnd.Below(20), Degree: 1 + rnd.Below(6), Bidirectional: i%2 == 0, Seed: uint64(i), Method: []Method{Totient, Random, Auto}[i%3]}
		if r.Bidirectional {
			r.Degree *= 2
		}
		r.AllReduce = []Group{{all(r.Servers), 1 + int64(rnd.Below(1000))}}
		for range rnd.Below(4) {
			some := all(r.Servers)
			rnd.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
			r.AllReduce = append(r.AllReduce, Group{some[:2+rnd.Below(r.Servers-1)], 1 + int64(rnd.Below(1000))})
		}
		if err := checkRings(r, mustFind(t, r)); err != nil {
			t.Fatalf("%+v: %v", r, err)
		}
	}
}

// Goal: a jump is given exactly when it makes a ring.
// Method: walk every jump of every n to 60.
func TestTotientPermsAreTheRings(t *testing.T) {
	for n := 2; n <= 60; n++ {
		got := map[int]bool{}
		for _, p := range totientPerms(n, false) {
			got[p] = true
		}
		for p := 1; p < n; p++ {
			seen := map[int]bool{}
			for i := 0; !seen[i]; i = (i + p) % n {
				seen[i] = true
			}
			if got[p] != (len(seen) == n) {
				t.Errorf("n %d: jump %d given: %v, comes to %d", n, p, got[p], len(seen))
			}
		}
	}
}

// Goal: CoinChangeMod's ways arrive in as few jumps as any.
// Method: walk each way; compare with distances found by bits over the links.
func TestCoinChangeArrivesInFewestJumps(t *testing.T) {
	for n := 3; n <= 40; n++ {
		for _, both := range []bool{false, true} {
			jumps := selectPermutations(n, 2, totientPerms(n, both))
			c := CoinChangeMod(n, jumps, both)
			sum, most := 0, 0
			for d := 1; d < n; d++ {
				at, steps := 0, 0
				for at != d {
					at = (at + c.Jump[(d-at+n)%n]) % n
					if steps++; steps > n {
						t.Fatalf("n %d, %v: no end to %d", n, jumps, d)
					}
				}
				if steps != c.Count[d] {
					t.Errorf("n %d, %v: %d in %d, said %d", n, jumps, d, steps, c.Count[d])
				}
				sum, most = sum+steps, max(most, steps)
			}
			r := Request{Servers: n, Degree: 2, Bidirectional: both, AllReduce: []Group{{all(n), 1}}, Method: Totient}
			if both {
				r.Degree = 4
			}
			if h := mustFind(t, r).Hops; h.Sum != int64(n*sum) || h.Max != most {
				t.Errorf("n %d, %v: %d and %d, over the links %+v", n, jumps, n*sum, most, h)
			}
		}
	}
}

// Goal: what is not acceptable is refused by field and limit.
// Method: table.
func TestBadRequestsNameFieldAndLimit(t *testing.T) {
	good := func() Request {
		return Request{Servers: 8, Degree: 4, Bidirectional: true, AllReduce: []Group{{all(8), 100}}, MP: []Demand{{0, 1, 5}}}
	}
	for _, tt := range []struct {
		field, limit string
		spoil        func(*Request)
	}{
		{"servers", "2 to", func(r *Request) { r.Servers = 1 }},
		{"servers", "2 to", func(r *Request) { r.Servers = MaxServers + 1 }},
		{"degree", "even", func(r *Request) { r.Degree = 3 }},
		{"degree", "ports", func(r *Request) { r.Degree = MaxDegree + 2 }},
		{"degree", "1 to", func(r *Request) { r.Degree = 0 }},
		{"method", "totient", func(r *Request) { r.Method = "best" }},
		{"allreduce[0].group", "2 servers", func(r *Request) { r.AllReduce[0].Servers = []int{1} }},
		{"allreduce[0].group[1]", "0 to 7", func(r *Request) { r.AllReduce[0].Servers[1] = 8 }},
		{"allreduce[0].group[1]", "once", func(r *Request) { r.AllReduce[0].Servers[1] = 0 }},
		{"allreduce[0].bytes", "1 to", func(r *Request) { r.AllReduce[0].Bytes = 0 }},
		{"mp[0][1]", "0 to 7", func(r *Request) { r.MP[0].To = -1 }},
		{"mp[0]", "two servers", func(r *Request) { r.MP[0].To = 0 }},
		{"mp[0][2]", "1 to", func(r *Request) { r.MP[0].Bytes = -1 }},
		{"allreduce", "joins all 8", func(r *Request) { r.AllReduce[0].Servers = []int{0, 1, 2} }},
		{"allreduce", "joins all 8", func(r *Request) { r.AllReduce, r.MP = nil, nil }},
	} {
		r := good()
		tt.spoil(&r)
		_, err := Find(r)
		var refused *Error
		if !errors.As(err, &refused) || refused.Field != tt.field || !strings.Contains(refused.Limit, tt.limit) {
			t.Errorf("%v, want %s: %s", err, tt.field, tt.limit)
		}
	}
	if _, err := Find(good()); err != nil {
		t.Error(err)
	}
}
