package study

import "testing"

// The whole study of 348 days: all architectures, four group sizes.
func BenchmarkWasteOnTrace(b *testing.B) {
	cfg := ClusterConfig{Size: DefaultSize(), Runs: 1}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := WasteOnTrace(cfg); err != nil {
			b.Fatal(err)
		}
	}
}

// One node fails in a million GPUs with 1 % of the nodes faulty: all
// architectures, four group sizes.
func BenchmarkFlipMillionGPUs(b *testing.B) {
	c := newCluster(Size{Nodes: 250_000, GPUsPerNode: 4, Ring: true, TPs: []int{8, 16, 32, 64}})
	for n := 0; n < c.Nodes; n += 100 {
		c.flip(n)
	}
	b.ReportAllocs()
	for b.Loop() {
		c.flip(100_050)
		c.groups(1, 2)
	}
}

func BenchmarkBestStrategy(b *testing.B) {
	for b.Loop() {
		if _, err := Nets[1].Best(16384, MaxTP); err != nil {
			b.Fatal(err)
		}
	}
}
