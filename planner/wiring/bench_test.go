package wiring

import (
	"fmt"
	"testing"
	"time"

	"ringlight/mzi/detmath"
)

// The sizes of the literature: pods, groups, spine ports.
var sizes = []struct{ pods, groups, ports int }{
	{128, 16, 16}, {128, 1, 256}, // 32k ports
	{512, 16, 16}, {512, 1, 256}, // 131k
	{1024, 16, 16}, {1024, 1, 256}, {512, 1, 512}, // 262k
	{128, 1, 254}, {512, 16, 18}, // odd numbers of even switches
}

// groupsOf draws groups of which every pod has so many ports in use.
func groupsOf(b *testing.B, n, pods, ports, used, churn int) []Group {
	r := detmath.Random(11)
	groups := make([]Group, n)
	for i := range groups {
		was := randomTopology(&r, pods, used, 0)
		old, err := was.Orient().Layout(ports / 2)
		if err != nil {
			b.Fatal(err)
		}
		groups[i] = Group{churned(&r, was, churn), old}
	}
	return groups
}

// BenchmarkDecompose is topology to switches, by the Euler walks and, once per
// run, by the published flows; ratio is how many times as long those take.
// cpu-ms is processor time, for machines that have other work.
func BenchmarkDecompose(b *testing.B) {
	for _, s := range sizes {
		b.Run(fmt.Sprintf("ports=%d/pods=%d/groups=%d", s.pods*s.groups*s.ports, s.pods, s.groups), func(b *testing.B) {
			groups := groupsOf(b, s.groups, s.pods, s.ports, s.ports, 0)
			start := busy(b)
			for _, g := range groups {
				crossLayout(crossOrient(g.Topology), NewHalf(s.pods, s.ports/2))
			}
			published := busy(b) - start
			start = busy(b)
			b.ResetTimer()
			for b.Loop() {
				for _, g := range groups {
					if _, err := g.Topology.Orient().Layout(s.ports / 2); err != nil {
						b.Fatal(err)
					}
				}
			}
			each := (busy(b) - start) / time.Duration(b.N)
			b.ReportMetric(milliseconds(each), "cpu-ms")
			b.ReportMetric(milliseconds(published), "published-ms")
			b.ReportMetric(float64(published)/float64(each), "ratio")
		})
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// BenchmarkRewire is 128 pods, 16 groups of 16 switches, all ports in use or 14
// of 16, a tenth of the links taken and their ports joined anew, by steps in
// all; kept is the share of circuits left in place.
func BenchmarkRewire(b *testing.B) {
	for _, used := range []int{16, 14} {
		groups := groupsOf(b, 16, 128, 16, used, 100)
		run := func(name string, rewire func(g Group, seed uint64) (Half, error)) {
			b.Run(fmt.Sprintf("used=%d/%s", used, name), func(b *testing.B) {
				kept, all := 0, 0
				start := busy(b)
				for b.Loop() {
					for n, g := range groups {
						h, err := rewire(g, Seed(1, n))
						if err != nil {
							b.Fatal(err)
						}
						kept += h.Kept(g.Old)
						all += g.Old.circuits()
					}
				}
				b.ReportMetric(float64(kept)/float64(all), "kept")
				b.ReportMetric(milliseconds((busy(b)-start)/time.Duration(b.N)), "cpu-ms")
			})
		}
		run("published", func(g Group, _ uint64) (Half, error) { return CrossRewire(g) })
		run("first", func(g Group, _ uint64) (Half, error) { return g.First() })
		for _, steps := range []int{80_000, 600_000, 2_000_000, 6_000_000, 30_000_000, 150_000_000} {
			run(fmt.Sprintf("steps=%d", steps), func(g Group, seed uint64) (Half, error) {
				return Rewire(g, seed, steps/len(groups))
			})
		}
	}
}

// BenchmarkRewireLarge is one group of many pods with all ports in use, a tenth
// of the links taken and their ports joined anew, by steps a link.
func BenchmarkRewireLarge(b *testing.B) {
	for _, s := range []struct{ pods, ports int }{{512, 32}, {1024, 32}, {128, 256}} {
		g := groupsOf(b, 1, s.pods, s.ports, s.ports, 100)[0]
		b.Run(fmt.Sprintf("pods=%d/ports=%d/first", s.pods, s.ports), func(b *testing.B) {
			kept := 0
			start := busy(b)
			for b.Loop() {
				h, err := g.First()
				if err != nil {
					b.Fatal(err)
				}
				kept = h.Kept(g.Old)
			}
			b.ReportMetric(float64(kept)/float64(g.Old.circuits()), "kept")
			b.ReportMetric(milliseconds((busy(b)-start)/time.Duration(b.N)), "cpu-ms")
		})
		for _, steps := range []int{30, 100, 300, 1000, 3000} {
			b.Run(fmt.Sprintf("pods=%d/ports=%d/steps=%d", s.pods, s.ports, steps), func(b *testing.B) {
				kept := 0
				start := busy(b)
				for b.Loop() {
					h, err := Rewire(g, 1, steps*g.Circuits())
					if err != nil {
						b.Fatal(err)
					}
					kept = h.Kept(g.Old)
				}
				b.ReportMetric(float64(kept)/float64(g.Old.circuits()), "kept")
				b.ReportMetric(milliseconds((busy(b)-start)/time.Duration(b.N)), "cpu-ms")
			})
		}
	}
}

// BenchmarkRollout is what a new job costs besides the search: of 1,024 leaves
// in 128 pods with nearly all ports in use a tenth of the paths change; these are
// spread beside those that stay, and the change of 16 groups is assigned to
// stages that move at most a quarter of a leaf's links.
func BenchmarkRollout(b *testing.B) {
	r := detmath.Random(12)
	l := Leaves{Pods: 128, Spines: 16, Tau: 2}
	for a := range 1024 {
		l.PodOf = append(l.PodOf, int32(a/8))
	}
	was := randomNeed(&r, l, l.Ports())
	need := Topology{Pods: was.Pods}
	for _, link := range churned(&r, was, 100).Links {
		if l.PodOf[link.I] != l.PodOf[link.J] {
			need.Links = append(need.Links, link)
		}
	}
	old, err := l.SpreadNeed(was)
	if err != nil {
		b.Fatal(err)
	}
	halves := make([]Half, l.Spines)
	for h, g := range old.groups() {
		if halves[h], err = g.Orient().Layout(8); err != nil {
			b.Fatal(err)
		}
	}
	var next Spread
	b.Run("respread", func(b *testing.B) {
		for b.Loop() {
			if next, err = l.Respread(need, old); err != nil {
				b.Fatal(err)
			}
		}
	})
	wanted := make([]Half, l.Spines)
	kept, all := 0, 0
	for h, g := range next.groups() {
		if wanted[h], err = Rewire(Group{g, halves[h]}, Seed(1, h), 60_000); err != nil {
			b.Fatal(err)
		}
		kept += wanted[h].Kept(halves[h])
		all += halves[h].circuits()
	}
	b.Run("stages", func(b *testing.B) {
		var r rollout
		for b.Loop() {
			if r, err = old.rollout(halves, wanted, 250); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(r.Stages)), "stages")
		b.ReportMetric(float64(kept)/float64(all), "kept")
		b.ReportMetric(1000*float64(r.Moved)/float64(r.Of), "moved-mille")
	})
}
