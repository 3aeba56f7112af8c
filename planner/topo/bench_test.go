package topo

import "testing"

// The budget: 50 ms by totients, 2 s by random rings.
func BenchmarkFind2000Degree8(b *testing.B) {
	for _, m := range []Method{Totient, Random} {
		b.Run(string(m), func(b *testing.B) {
			for b.Loop() {
				mustFind(b, Request{Servers: 2000, Degree: 8, Bidirectional: true, AllReduce: []Group{{all(2000), 1e9}}, Method: m, Seed: 1})
			}
		})
	}
}
