package sched

import (
	"slices"
	"testing"
)

// An all-to-all among pods of any sizes has steps: each a permutation, every pair
// once, and no two pods with more flows at once than the links that are counted for
// them.
// Method: random sizes and orders of GPUs; each step is counted anew.
// Reference: [LUMOS] A.7, eq. 44
func TestStepsOfAnAllToAll(t *testing.T) {
	r := lcg(9)
	for range 200 {
		sizes := randomSizes(&r)
		var podOf []int32
		for p, n := range sizes {
			podOf = append(podOf, slices.Repeat([]int32{int32(p)}, n*(1+r.below(3)))...)
		}
		count := make([]int, len(sizes))
		for i := range podOf {
			k := r.below(i + 1)
			podOf[i], podOf[k] = podOf[k], podOf[i]
		}
		for _, p := range podOf {
			count[p]++
		}
		gpus := len(podOf)
		met := matrix(gpus, gpus)
		steps := AllToAllSteps(podOf)
		for _, step := range steps {
			got, flows := make([]bool, gpus), matrix(len(sizes), len(sizes))
			for from, to := range step {
				met[from][to]++
				got[to] = true
				flows[podOf[from]][podOf[to]]++
			}
			if slices.Contains(got, false) {
				t.Fatalf("pods %v: no permutation: %v", podOf, step)
			}
			for p := range flows {
				for q, n := range flows[p] {
					if links := (count[p]*count[q] + gpus - 1) / gpus; n > links {
						t.Fatalf("pods %v: %d flows from %d to %d, and %d links", podOf, n, p, q, links)
					}
				}
			}
		}
		for _, row := range met {
			if len(steps) != gpus || slices.Min(row) != 1 || slices.Max(row) != 1 {
				t.Fatalf("pods %v: %d steps, met %v", podOf, len(steps), row)
			}
		}
	}
}
