package sched

import (
	"slices"
	"testing"

	"ringlight/planner/wiring"
)

// stage is one stage of a job, its replicas in pods of these sizes, so many to
// a leaf, and the pod of each leaf.
func stage(sizes []int, perLeaf int) (rows [][][]int, podOf []int32) {
	var row []int
	for p, n := range sizes {
		for i := range n {
			if i%perLeaf == 0 {
				podOf = append(podOf, int32(p))
			}
			row = append(row, len(podOf)-1)
		}
	}
	return [][][]int{{row}}, podOf
}

// linksOf is the links between pods that a stage wants, element i*pods+j both
// ways round, and those of each pod and leaf.
func linksOf(t *testing.T, c Collective, sizes []int, perLeaf, rails int) (between, pod, leaf []int) {
	t.Helper()
	rows, podOf := stage(sizes, perLeaf)
	wants, err := needOf(c, rows, podOf, rails)
	if err != nil {
		t.Fatal(err)
	}
	pods := len(sizes)
	between, pod, leaf = make([]int, pods*pods), make([]int, pods), make([]int, len(podOf))
	for _, w := range wants {
		p, q := int(podOf[w.A]), int(podOf[w.B])
		between[p*pods+q] += w.Links()
		between[q*pods+p] += w.Links()
		pod[p] += w.Links()
		pod[q] += w.Links()
		leaf[w.A] += w.Links()
		leaf[w.B] += w.Links()
	}
	return between, pod, leaf
}

// maxSize is the most replicas of a pod.
const maxSize = 6

// randomSizes are those of 2 to 7 pods.
func randomSizes(r *lcg) []int {
	sizes := make([]int, 2+r.below(6))
	for p := range sizes {
		sizes[p] = 1 + r.below(maxSize)
	}
	return sizes
}

// A halving-doubling is done over circuits that stay: they join the pods that
// differ in one bit, as many GPUs as the smallest pod has exchange, and
// where those are a multiple of the bits a pod has one link for each.
// Method: random pods; the bits counted anew.
// Reference: [LUMOS] A.5.4, Fig. 15
func TestHalvingDoublingStays(t *testing.T) {
	r := lcg(5)
	for range 500 {
		sizes, rails := randomSizes(&r), 1+r.below(8)
		between, pod, _ := linksOf(t, HalvingDoubling, sizes, maxSize, rails)
		n, pods := slices.Min(sizes)*rails, len(sizes)
		left, bit := slices.Repeat([]int{-1}, pods), 0 // number among those that are left
		for bit = 1; bit*2 <= pods; bit *= 2 {
		}
		joined, number := pods-bit, 0
		for p := range sizes {
			if p >= 2*joined || p%2 == 1 {
				left[p] = number
				number++
			}
		}
		bits := 0
		for 1<<bits < bit {
			bits++
		}
		for p := range pods {
			for q := range p {
				most := 0
				x := left[p] ^ left[q]
				switch {
				case left[p] < 0 || left[q] < 0:
					if q+1 == p && q%2 == 0 && left[q] < 0 {
						most = n
					}
				case x&(x-1) == 0:
					most = (n + bits - 1) / bits
				}
				if got := between[p*pods+q]; got != most {
					t.Fatalf("pods %v, %d rails: %d links between %d and %d, want %d", sizes, rails, got, q, p, most)
				}
			}
			if joined == 0 && n%bits == 0 && pod[p] != n {
				t.Errorf("pods %v, %d rails: pod %d has %d links, want %d", sizes, rails, p, pod[p], n)
			}
		}
	}
}

// The core becomes a double binary tree of the pods: every rail has every link
// of both trees, so no pod has more than four links a rail, and they begin at
// different servers as far as there are any.
// Method: random pods against the trees.
// Reference: [LUMOS] A.5.3
func TestCoreBecomesADoubleTree(t *testing.T) {
	r := lcg(6)
	for range 500 {
		sizes, rails := randomSizes(&r), 1+r.below(8)
		between, pod, leaf := linksOf(t, DoubleTree, sizes, 2, rails)
		want := make([]int, len(between))
		for _, parents := range trees(len(sizes)) {
			for p, up := range parents {
				if up >= 0 {
					want[p*len(sizes)+up] += rails
					want[up*len(sizes)+p] += rails
				}
			}
		}
		if !slices.Equal(between, want) {
			t.Fatalf("pods %v, %d rails: %v, want %v", sizes, rails, between, want)
		}
		if most := slices.Max(pod); most > 4*rails {
			t.Errorf("pods %v: %d links of a pod with %d rails", sizes, most, rails)
		}
		if slices.Min(sizes) >= 4 && slices.Max(leaf) > 2*rails {
			t.Errorf("pods %v, %d rails: two servers of a leaf have %d links", sizes, rails, slices.Max(leaf))
		}
	}
}

// An all-to-all has a full mesh of the pods: in no step of the corrected
// algorithm have two pods more flows than links, and fewer do not do.
// Method: pods of one size against all steps of it; every division of up to
// six GPUs into pods against steps found by search; leaves have their share.
// Reference: [LUMOS] A.7, eq. 44
func TestAllToAllIsAFullMesh(t *testing.T) {
	for pods := 2; pods <= 6; pods++ {
		for n := 1; n <= 8; n++ {
			var steps [][]Flow
			for step := 1; step <= pods*n; step++ {
				var flows []Flow
				for p := range pods {
					for g := range n {
						q, h := allToAllStep(pods, n, p, g, step)
						flows = append(flows, Flow{p*n + g, q*n + h})
					}
				}
				steps = append(steps, flows)
			}
			need := PodLinks(steps, pods, n)
			between, _, leaf := linksOf(t, AllToAll, slices.Repeat([]int{n}, pods), 2, 1)
			for p := range pods {
				for q := range p {
					if between[q*pods+p] != need[q*pods+p] {
						t.Errorf("%d pods of %d: %d links, want %d", pods, n, between[q*pods+p], need[q*pods+p])
					}
				}
			}
			if n%2 == 0 && slices.Max(leaf) > slices.Min(leaf)+1 {
				t.Errorf("%d pods of %d: leaves have %v", pods, n, leaf)
			}
		}
	}
	for _, sizes := range [][]int{{1, 1}, {1, 2}, {1, 3}, {2, 2}, {1, 1, 2}, {1, 4}, {2, 3}, {1, 1, 3}, {1, 2, 2}, {1, 5}, {2, 4}, {3, 3}, {1, 1, 4}, {1, 2, 3}, {2, 2, 2}} {
		between, _, _ := linksOf(t, AllToAll, sizes, 2, 1)
		s := newSteps(sizes)
		for p := range sizes {
			for q := range sizes {
				if links := between[p*len(sizes)+q]; p != q && (links*s.gpus < sizes[p]*sizes[q] || (links-1)*s.gpus >= sizes[p]*sizes[q]) {
					t.Errorf("pods %v: %d links between %d and %d", sizes, links, p, q)
				}
			}
		}
		if s.links = between; !s.fill(0) {
			t.Errorf("pods %v: no steps keep to links %v", sizes, between)
		}
	}
}

// steps is a search for an all-to-all in as many steps as there are GPUs.
type steps struct {
	gpus, pods int
	podOf      []int
	links      []int
	to         []int  // of step and GPU
	met        []bool // of GPU and GPU
	used       []int  // of step, pod and pod
	taken      []bool // of step and receiver
}

func newSteps(sizes []int) *steps {
	s := &steps{pods: len(sizes)}
	for p, n := range sizes {
		s.podOf = append(s.podOf, slices.Repeat([]int{p}, n)...)
	}
	s.gpus = len(s.podOf)
	s.to, s.met, s.taken = make([]int, s.gpus*s.gpus), make([]bool, s.gpus*s.gpus), make([]bool, s.gpus*s.gpus)
	s.used = make([]int, s.gpus*s.pods*s.pods)
	return s
}

// fill chooses whom GPU at%gpus sends to in step at/gpus, and goes on.
func (s *steps) fill(at int) bool {
	if at == len(s.to) {
		return true
	}
	step, g := at/s.gpus, at%s.gpus
	for h := range s.gpus {
		p, q := s.podOf[g], s.podOf[h]
		used := &s.used[(step*s.pods+p)*s.pods+q]
		if s.met[g*s.gpus+h] || s.taken[step*s.gpus+h] || p != q && *used == s.links[p*s.pods+q] {
			continue
		}
		s.met[g*s.gpus+h], s.taken[step*s.gpus+h] = true, true
		*used++
		if s.fill(at + 1) {
			return true
		}
		s.met[g*s.gpus+h], s.taken[step*s.gpus+h] = false, false
		*used--
	}
	return false
}

// A tensor parallel domain of several servers does a collective in each of
// them, and what leaves of other numbers want is the same.
// Method: one part against two; the leaves of a job moved up in a large core.
func TestPartsAddUp(t *testing.T) {
	podOf := []int32{0, 0, 1, 1, 2, 2, 3, 3}
	for c := range collectives {
		one, err := needOf(c, [][][]int{{{0, 2, 4, 6}}}, podOf, 4)
		if err != nil {
			t.Fatal(err)
		}
		two, err := needOf(c, [][][]int{{{0, 2, 4, 6}}, {{1, 3, 5, 7}}}, podOf, 4)
		if err != nil {
			t.Fatal(err)
		}
		far, err := needOf(c, [][][]int{{{1000, 1002, 1004, 1006}}}, append(make([]int32, 1000), podOf...), 4)
		if err != nil {
			t.Fatal(err)
		}
		sum := func(wants []Want) (n int) {
			for _, w := range wants {
				n += w.Links()
			}
			return n
		}
		if sum(two) != 2*sum(one) || sum(one) == 0 {
			t.Errorf("collective %d: %v of one part, %v of two", c, one, two)
		}
		for n := range far {
			far[n].A, far[n].B = far[n].A-1000, far[n].B-1000
		}
		if !slices.Equal(far, one) {
			t.Errorf("collective %d: %v, far up %v", c, one, far)
		}
	}
}

// A job that fills half of an empty core of leaves with a server each has its
// links, whatever its collective: no leaf has more leaves to reach than ports.
// Method: 2,048 GPUs in all divisions into stages and replicas, on 4,096.
// Reference: [LUMOS] A.12
func TestLargeJobsHaveTheirLinks(t *testing.T) {
	c := Core{Leaves: wiring.Leaves{Pods: 64, Spines: 8, Tau: 1}, GPUsPerServer: 8}
	for leaf := range 512 {
		c.PodOf = append(c.PodOf, int32(leaf/8))
		c.Servers = append(c.Servers, 1)
	}
	for of := range collectives {
		for pp := 1; pp <= 32; pp *= 2 {
			placed, err := c.Admit(nil, Job{TP: 8, EP: 8, PP: pp, DP: 256 / pp, Collective: of})
			if err != nil {
				t.Errorf("collective %d, %d stages: %v", of, pp, err)
			}
			for n, w := range placed.Wants {
				if placed.Links[n] < w.DP && of == Ring {
					t.Errorf("%d stages: a ring has %d of %d links", pp, placed.Links[n], w.DP)
				}
			}
		}
	}
}
