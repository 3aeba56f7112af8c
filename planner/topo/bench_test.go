package topo

import "testing"

// The budget: 50 ms by totients, 2 s by random rings. With tables on 64
// servers, which send to and hear from all others, ways come on top.
func BenchmarkFind2000Degree8(b *testing.B) {
	tables := []Demand{}
	for host := 0; host < 2000; host += 2000 / 64 {
		for s := range 2000 {
			if s != host {
				tables = append(tables, Demand{host, s, 1 << 10}, Demand{s, host, 1 << 10})
			}
		}
	}
	for _, tt := range []struct {
		name   string
		method Method
		mp     []Demand
	}{{"totient", Totient, nil}, {"random", Random, nil}, {"totient/tables", Totient, tables}, {"random/tables", Random, tables}} {
		b.Run(tt.name, func(b *testing.B) {
			for b.Loop() {
				mustFind(b, Request{Servers: 2000, Degree: 8, Bidirectional: true, AllReduce: []Group{{all(2000), 1 << 40}}, MP: tt.mp, Method: tt.method, Seed: 1})
			}
		})
	}
}
