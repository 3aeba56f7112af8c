//go:build linux

package isolate

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ringlight/mzi/detmath"
)

// core2048 is 64 leaves of 32 GPUs in servers of 4, 32 spines: without optics
// one link a pair, with optics 32 switches.
var core2048 = map[string]Core{"clos": Clos(64, 32, 4, 32), "optics": Optical(64, 32, 4, 32, 32)}

// mixes are sizes of jobs.
var mixes = map[string]func(r *detmath.Random) int{
	"powers": func(r *detmath.Random) int { return 1 << r.Below(9) },
	"any":    func(r *detmath.Random) int { return 4 * (1 + r.Below(64)) },
	"large":  func(r *detmath.Random) int { return 64 + 4*r.Below(112) },
}

// decision is what one Place took of a core's time: a busy machine makes it no
// longer.
type decision struct {
	took  time.Duration
	steps int
	why   Cause
}

func decide(s *State, gpus int) (Placement, decision) {
	s.steps = 0
	began := spent()
	p, why := s.Place(gpus)
	return p, decision{spent() - began, s.steps, why}
}

// spent is the processor's time of this thread.
func spent() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}

// busy drives a core to a full load of jobs that come and go.
func busy(c Core, seed uint64, n int, size func(r *detmath.Random) int) (out []decision) {
	s := c.Empty()
	r := detmath.Stream(seed, 0)
	var in []JobID
	for id := range n {
		p, d := decide(s, size(r))
		out = append(out, d)
		if d.why == Fits {
			if err := s.Take(JobID(id), p); err != nil {
				panic(err)
			}
			in = append(in, JobID(id))
		}
		for len(in) > 0 && (d.why != Fits || r.Below(8) == 0) && r.Below(4) != 0 {
			at := r.Below(len(in))
			s.Release(in[at])
			in = slices.Delete(in, at, at+1)
		}
	}
	return out
}

// torn is jobs on cores of which a part of chance is free, as no history of
// jobs leaves them.
func torn(c Core, seed uint64, n int) (out []decision) {
	r := detmath.Stream(seed, 1)
	for range n {
		free, share := 3+r.Below(8), 2+r.Below(9)
		some := func(m [][]int) [][]int {
			m = slices.Clone(m)
			for n := range m {
				m[n] = slices.Clone(m[n])
				for k := range m[n] {
					if r.Below(10) >= share {
						m[n][k] = r.Below(m[n][k] + 1)
					}
				}
			}
			return m
		}
		c := c
		if c.Optics == nil {
			c.Links = some(c.Links)
		} else {
			c.Optics = &Optics{AnyToAny: r.Below(2) == 0, Leaf: some(c.Optics.Leaf), Spine: some(c.Optics.Spine)}
		}
		gpus := fill(len(c.Servers), c.Servers[0], 0)
		for _, row := range gpus {
			for i := range row {
				if r.Below(10) < free {
					row[i] = c.GPUsPerServer
				}
			}
		}
		s, err := c.With(gpus)
		if err != nil {
			panic(err)
		}
		_, d := decide(s, 4*(1+r.Below(128)))
		out = append(out, d)
	}
	return out
}

// BenchmarkDecision is Place on 2,048 GPUs; steps do not depend on the
// machine.
func BenchmarkDecision(b *testing.B) {
	for _, name := range []string{"clos", "optics"} {
		c := core2048[name]
		for _, mix := range []string{"powers", "any", "large", "torn"} {
			b.Run(name+"/"+mix, func(b *testing.B) {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				var all []decision
				for b.Loop() {
					if mix == "torn" {
						all = append(all, torn(c, uint64(len(all)), 1000)...)
					} else {
						all = append(all, busy(c, uint64(len(all)), 1000, mixes[mix])...)
					}
				}
				why := [3]int{}
				for _, d := range all {
					why[d.why]++
				}
				at := func(share int, by func(a, b decision) int) decision {
					slices.SortFunc(all, by)
					return all[min(len(all)*share/1000, len(all)-1)]
				}
				time := func(a, b decision) int { return int(a.took - b.took) }
				steps := func(a, b decision) int { return a.steps - b.steps }
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(float64(len(all)), "decisions")
				b.ReportMetric(float64(at(500, time).took.Microseconds()), "p50-us")
				b.ReportMetric(float64(at(990, time).took.Microseconds()), "p99-us")
				b.ReportMetric(float64(at(1000, time).took.Microseconds()), "worst-us")
				b.ReportMetric(float64(at(990, steps).steps), "p99-steps")
				b.ReportMetric(float64(at(1000, steps).steps), "worst-steps")
				b.ReportMetric(float64(1000*why[ByNetwork]/len(all)), "network/1000")
				b.ReportMetric(float64(1000*why[ByGPU]/len(all)), "gpu/1000")
			})
		}
	}
}
