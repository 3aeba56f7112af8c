package isolate

import (
	"testing"

	"ringlight/mzi/detmath"
)

// Goal: no directed link, port or server is ever shared, and a core that all
// jobs have left is as it was.
// Method: random jobs come and go; every unit is counted by a naive ledger.
func TestNothingIsShared(t *testing.T) {
	for name, c := range map[string]Core{"clos": Clos(8, 16, 4, 16), "optics": Optical(8, 16, 4, 4, 8), "open": {GPUsPerServer: 4, Servers: []int{4, 4, 4}}} {
		s := c.Empty()
		r := detmath.Stream(7, 0)
		var in []JobID
		for n := range 4000 {
			if len(in) > 0 && r.Below(2) == 0 {
				at := r.Below(len(in))
				s.Release(in[at])
				in = append(in[:at], in[at+1:]...)
			} else if p, why := s.Place(1 + r.Below(40)); why == Fits {
				if err := s.Take(JobID(n), p); err != nil {
					t.Fatal(name, err)
				}
				in = append(in, JobID(n))
			}
			ledger(t, s)
		}
		for _, id := range in {
			s.Release(id)
		}
		if s.FreeGPUs() != c.GPUs() || s.IdleServers()*c.GPUsPerServer != c.GPUs() {
			t.Errorf("%s: %d GPUs free of %d", name, s.FreeGPUs(), c.GPUs())
		}
	}
}

// ledger counts what all jobs own.
func ledger(t *testing.T, s *State) {
	t.Helper()
	type unit struct{ kind, a, b, c int }
	used := map[unit]int{}
	for _, id := range s.Jobs() {
		p, _ := s.Of(id)
		for _, w := range p.Servers {
			used[unit{0, w.Leaf, w.Server, 0}] += w.GPUs
		}
		for _, c := range p.Circuits {
			for _, e := range []End{c.A, c.B} {
				kind := 1
				if e.Spine {
					kind = 2
				}
				used[unit{kind, c.Switch, e.Number, e.Port}]++
			}
		}
		if len(p.Circuits) == 0 {
			for _, l := range p.Links {
				used[unit{3, l.Leaf, l.Spine, l.Nth}]++
			}
		}
	}
	for u, n := range used {
		if u.kind == 0 && n > s.core.GPUsPerServer || u.kind > 0 && n > 1 {
			t.Fatalf("%+v is used %d times", u, n)
		}
	}
}
