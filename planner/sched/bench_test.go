package sched

import (
	"fmt"
	"testing"
)

// BenchmarkAdmit is what one more job costs on 4,096 leaves of which half are
// in use by others: a small one, one over many pods, and one on all that is left.
func BenchmarkAdmit(b *testing.B) {
	c := someCore(512, 8, 4, 8)
	var running []Placed
	for len(running) < 128 {
		p, err := c.Admit(running, Job{TP: 8, EP: 1, PP: 2, DP: 32})
		if err != nil {
			b.Fatal(err)
		}
		running = append(running, p)
	}
	for _, j := range []Job{{TP: 1, EP: 1, PP: 1, DP: 8}, {TP: 8, EP: 1, PP: 4, DP: 64}, {TP: 8, EP: 1, PP: 8, DP: 1024}} {
		b.Run(fmt.Sprintf("gpus=%d", j.GPUs()), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Admit(running, j); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
