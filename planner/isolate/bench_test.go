package isolate

import (
	"slices"
	"testing"
	"time"

	"ringlight/mzi/detmath"
)

// decisions drives a core of 2,048 GPUs to a full load of jobs that come and
// go, and gives how long each Place took, and how it ended.
func decisions(c Core, seed uint64, n int, size func(r *detmath.Random) int) (took []time.Duration, blocked [3]int) {
	s := c.Empty()
	r := detmath.Stream(seed, 0)
	var in []JobID
	for id := range n {
		gpus := size(r)
		began := time.Now()
		p, why := s.Place(gpus)
		took = append(took, time.Since(began))
		blocked[why]++
		if why == Fits {
			if err := s.Take(JobID(id), p); err != nil {
				panic(err)
			}
			in = append(in, JobID(id))
		}
		for len(in) > 0 && (why != Fits || r.Below(8) == 0) && r.Below(4) != 0 {
			at := r.Below(len(in))
			s.Release(in[at])
			in = slices.Delete(in, at, at+1)
		}
	}
	return took, blocked
}

func BenchmarkDecision2048(b *testing.B) {
	sizes := map[string]func(r *detmath.Random) int{
		"small": func(r *detmath.Random) int { return 1 << r.Below(7) },
		"any":   func(r *detmath.Random) int { return 4 * (1 + r.Below(64)) },
		"large": func(r *detmath.Random) int { return 64 + 4*r.Below(112) },
	}
	for name, c := range map[string]Core{"clos": Clos(64, 32, 4, 32), "optics": Optical(64, 32, 4, 32, 32)} {
		for mix, size := range sizes {
			b.Run(name+"/"+mix, func(b *testing.B) {
				var all []time.Duration
				var blocked [3]int
				for b.Loop() {
					took, why := decisions(c, uint64(len(all)+1), 2000, size)
					all = append(all, took...)
					for n := range why {
						blocked[n] += why[n]
					}
				}
				slices.Sort(all)
				b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-us")
				b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-us")
				b.ReportMetric(float64(all[len(all)-1].Microseconds()), "max-us")
				b.ReportMetric(float64(blocked[ByNetwork])/float64(len(all)), "network/op")
				b.ReportMetric(float64(blocked[ByGPU])/float64(len(all)), "gpu/op")
			})
		}
	}
}
