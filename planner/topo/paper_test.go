package topo

import (
	"slices"
	"testing"
)

// Goal: on 16 servers with three interfaces the jumps are +1, +3 and +7.
// Method: selectPermutations on the totients of 16.
// Reference: [TOPO] sec 4.3, Fig. 7.
func TestSixteenServersGetTheRingsOfTheFigure(t *testing.T) {
	if got := selectPermutations(16, 3, totientPerms(16, false)); !slices.Equal(got, []int{1, 3, 7}) {
		t.Errorf("jumps %v", got)
	}
}

// Goal: 128 servers reach each other in 5.7 hops at degree 4 and 3 at degree 8
// in the mean, which are figures of bidirectional regular rings: ours are 5.48
// and 2.93. Random rings need at most 3.72 and 2.55.
// Method: mean over all ordered pairs, in hundredths, rounded.
// Reference: [TOPO] sec 5.5, Fig. 14.
func TestHopsOfRegularAndRandomRings(t *testing.T) {
	for _, tt := range []struct {
		degree             int
		method             Method
		atMost, atLeast100 int64
	}{{4, Totient, 548, 548}, {8, Totient, 293, 293}, {4, Random, 372, 343}, {8, Random, 255, 243}} { // Moore's bounds: 3.43, 2.43
		r := Request{Servers: 128, Degree: tt.degree, Bidirectional: true, AllReduce: []Group{{all(128), 1e9}}, Method: tt.method, Seed: 1}
		top := mustFind(t, r)
		if err := checkRings(r, top); err != nil {
			t.Error(err)
		}
		if got := (100*top.Hops.Sum + top.Hops.Pairs/2) / top.Hops.Pairs; got > tt.atMost || got < tt.atLeast100 {
			t.Errorf("degree %d, %s: %d hundredths, want %d at most and %d at least", tt.degree, tt.method, got, tt.atMost, tt.atLeast100)
		}
	}
}

// Goal: all-to-all traffic of 3 % and 80 % of AllReduce costs 1.13 and 2.99
// times the bytes by regular rings of degree 4 (the paper prints 1.11 and 3.03),
// 2.21 at most by random ones.
// Method: 128 servers; bytes carried over bytes asked for, in hundredths.
// Reference: [TOPO] sec 5.5, Fig. 13.
func TestBandwidthTax(t *testing.T) {
	for _, tt := range []struct {
		percent int64
		method  Method
		lo, hi  int64
	}{{3, Totient, 111, 113}, {80, Totient, 297, 305}, {80, Random, 200, 221}} {
		r := Request{Servers: 128, Degree: 4, Bidirectional: true, AllReduce: []Group{{all(128), 128 * 127 * 100 * 1000}}, Method: tt.method, Seed: 1}
		for a := range 128 {
			for b := range 128 {
				if a != b {
					r.MP = append(r.MP, Demand{a, b, tt.percent * 1000})
				}
			}
		}
		top := mustFind(t, r)
		if tax := (100*top.Carried + top.Asked/2) / top.Asked; tax < tt.lo || tax > tt.hi {
			t.Errorf("%d %%, %s: tax of %d hundredths, want %d to %d", tt.percent, tt.method, tax, tt.lo, tt.hi)
		}
		// The paper's least link carries 39 % less than the fullest.
		if least := top.LeastSent(r.MP); 100*least < 75*top.FullestSend {
			t.Errorf("%d %%, %s: links carry %d to %d", tt.percent, tt.method, least, top.FullestSend)
		}
	}
}
