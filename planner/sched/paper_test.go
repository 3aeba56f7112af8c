package sched

import (
	"errors"
	"math/bits"
	"slices"
	"testing"

	"ringlight/planner/wiring"
)

// lcg is enough chance for tests.
type lcg uint64

func (r *lcg) below(n int) int {
	*r = *r*6364136223846793005 + 1442695040888963407
	return int(uint64(*r) >> 33 % uint64(n))
}

// A job in several pods takes those whose idle servers are fewest together,
// gives each of them whole domains, and leaves at most one half used.
// Method: random clusters against every choice of pods.
// Reference: [LUMOS] A.4, eq. 37-41
func TestPlacementIsAKnapsack(t *testing.T) {
	r := lcg(1)
	placed, refused := 0, 0
	for range 2000 {
		c := Cluster{GPUsPerServer: 8, Idle: make([][]int, 1+r.below(6))}
		for p := range c.Idle {
			c.Idle[p] = []int{r.below(5), r.below(5), r.below(5)}
		}
		j := Job{TP: 1 << r.below(5), EP: 1 << r.below(6), PP: 1 + r.below(4), DP: 1 + r.below(8)}
		shares, err := Place(c, j)
		best := bestPods(c, j)
		if errors.Is(err, ErrNoRoom) {
			refused++
			if best >= 0 {
				t.Fatalf("%+v %+v: no room, but pods with %d idle servers would do", c, j, best)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		placed++
		checkPlacement(t, c, j, shares, best)
	}
	if placed < 300 || refused < 300 {
		t.Errorf("%d placed, %d refused: the test shows little", placed, refused)
	}
}

// bestPods is the least number of idle servers in pods that can take a job.
func bestPods(c Cluster, j Job) int {
	best := -1
	domain, need := c.domainServers(j), c.servers(j)
	for choice := range 1 << len(c.Idle) {
		idle, room := 0, 0
		for p, leaves := range c.Idle {
			if choice>>p&1 != 0 {
				idle += sum(leaves)
				room += sum(leaves) / domain * domain
			}
		}
		if room >= need && (best < 0 || idle < best) {
			best = idle
		}
	}
	return best
}

func checkPlacement(t *testing.T, c Cluster, j Job, shares []Share, best int) {
	t.Helper()
	domain := c.domainServers(j)
	pods := make([]int, len(c.Idle))
	all, idle, halfUsed := 0, 0, 0
	for _, s := range shares {
		if s.Servers < 1 || s.Servers > c.Idle[s.Pod][s.Leaf] {
			t.Fatalf("%+v %+v: %+v", c, j, s)
		}
		pods[s.Pod] += s.Servers
		all += s.Servers
	}
	one := 0
	for p, n := range pods {
		if n == 0 {
			continue
		}
		one++
		idle += sum(c.Idle[p])
		if n%domain != 0 {
			t.Fatalf("%+v %+v: pod %d gives %d servers, domains have %d", c, j, p, n, domain)
		}
		if n < sum(c.Idle[p])/domain*domain {
			halfUsed++
		}
	}
	if all*c.GPUsPerServer < j.GPUs() || all-domain >= 0 && (all-domain)*c.GPUsPerServer >= j.GPUs() {
		t.Fatalf("%+v %+v: %d servers", c, j, all)
	}
	if one > 1 && idle != best || halfUsed > 1 {
		t.Fatalf("%+v %+v: pods with %d idle servers, %d would do; %d half used", c, j, idle, best, halfUsed)
	}
}

// A job that fits a leaf goes into the fullest leaf that takes it, one that
// fits a pod into the fullest pod.
// Method: one cluster, three jobs.
// Reference: [LUMOS] principle 1, sec 4.2.1
func TestLocalityFirst(t *testing.T) {
	c := Cluster{GPUsPerServer: 8, Idle: [][]int{{4, 4, 4}, {3, 2, 4}, {2, 0, 1}}}
	for _, want := range []struct {
		dp     int
		shares []Share
	}{
		{2, []Share{{1, 1, 2}}},
		{3, []Share{{1, 0, 3}}},
		{4, []Share{{0, 0, 4}}},
		{5, []Share{{1, 0, 3}, {1, 1, 2}}},
		{9, []Share{{1, 0, 3}, {1, 1, 2}, {1, 2, 4}}},
		{10, []Share{{0, 0, 2}, {0, 1, 4}, {0, 2, 4}}},
	} {
		got, err := Place(c, Job{TP: 8, EP: 1, PP: 1, DP: want.dp})
		if err != nil || !slices.Equal(got, want.shares) {
			t.Errorf("%d servers: %v, %v, want %v", want.dp, got, err, want.shares)
		}
	}
}

// With its ranks arranged a ring needs one link between neighbouring pods,
// used both ways, and none to close it; unarranged it needs one more and uses
// half of each.
// Method: every flow of a phase counted by pods.
// Reference: [LUMOS] A.5.1, eq. 42, Lemma A.1
func TestRingReusesLinks(t *testing.T) {
	for pods := 1; pods <= 9; pods++ {
		for n := 2; n <= 10; n += 2 {
			rank, err := ringRanks(pods, n)
			if err != nil {
				t.Fatal(err)
			}
			isPermutation(t, rank)
			flows := PodFlows(RingFlows(rank), pods, n)
			links := 0
			for i := range pods {
				for j := range pods {
					f := flows[i*pods+j]
					if f > 1 || f != flows[j*pods+i] || f > 0 && i-j != 1 && j-i != 1 {
						t.Fatalf("%d pods of %d: %d flows from %d to %d, %d back", pods, n, f, i, j, flows[j*pods+i])
					}
					links += f
				}
			}
			if links/2 != pods-1 {
				t.Errorf("%d pods of %d: %d links, want %d", pods, n, links/2, pods-1)
			}
			if pods > 2 {
				plain := make([]int, pods*n)
				for g := range plain {
					plain[g] = g
				}
				if used := sum(PodLinks([][]Flow{RingFlows(plain)}, pods, n)); used != pods {
					t.Errorf("%d pods: %d links unarranged, want %d", pods, used, pods)
				}
			}
		}
	}
	if _, err := ringRanks(3, 5); err == nil {
		t.Error("an odd number of GPUs was accepted")
	}
}

func isPermutation(t *testing.T, of []int) {
	t.Helper()
	sorted := slices.Clone(of)
	slices.Sort(sorted)
	for n, x := range sorted {
		if n != x {
			t.Fatalf("no permutation: %v", of)
		}
	}
}

// With every second ring the other way round a pod needs no more links than
// it has GPUs; with all one way it needs twice that. Every ring is a ring.
// Method: flows of a phase counted, both ways.
// Reference: [LUMOS] A.5.2, eq. 43
func TestHierarchicalRingReusesLinks(t *testing.T) {
	for pods := 3; pods <= 9; pods++ {
		for n := 1; n <= 9; n++ {
			place, err := HierarchicalRing(pods, n)
			if err != nil {
				t.Fatal(err)
			}
			for g := range n {
				var ring []int
				for p := range pods {
					ring = append(ring, place[p*n+g])
				}
				isPermutation(t, ring)
			}
			arranged := perPod(PodLinks([][]Flow{HierarchicalFlows(place, pods)}, pods, n), pods)
			if arranged != 2*((n+1)/2) {
				t.Errorf("%d pods of %d: %d links a pod, want %d", pods, n, arranged, 2*((n+1)/2))
			}
			for g := range place {
				place[g] = g / n
			}
			if plain := perPod(PodLinks([][]Flow{HierarchicalFlows(place, pods)}, pods, n), pods); plain != 2*n {
				t.Errorf("%d pods of %d: %d links a pod unarranged, want %d", pods, n, plain, 2*n)
			}
		}
	}
}

// perPod is the most links of any pod.
func perPod(links []int, pods int) int {
	most := 0
	for i := range pods {
		n := 0
		for j := range pods {
			n += links[min(i, j)*pods+max(i, j)]
		}
		most = max(most, n)
	}
	return most
}

// Over all phases of a halving-doubling a pod needs one link a GPU when GPUs
// begin with different bits, and one for every bit when they do not; the
// phases are an AllReduce, among any number of pods.
// Method: flows counted over all phases; sums carried through the exchange.
// Reference: [LUMOS] A.5.4, Fig. 15
func TestHalvingDoublingReusesLinks(t *testing.T) {
	for pods := 1; pods <= 32; pods++ {
		all := bits.Len(uint(pods)) - 1
		for n := 1; n <= 3*max(all, 1); n++ {
			var phases [][]Flow
			for at := 0; ; at++ {
				exchanges, ok := halvings(pods, n, at)
				if !ok {
					break
				}
				var flows []Flow
				for _, x := range exchanges {
					flows = append(flows, Flow{x.from*n + x.gpu, x.to*n + x.gpu})
				}
				phases = append(phases, flows)
			}
			joins := 0
			if pods&(pods-1) != 0 {
				joins = 1
			}
			if len(phases) != all+joins {
				t.Fatalf("%d pods: %d phases, want %d", pods, len(phases), all+joins)
			}
			got := perPod(PodLinks(phases[joins:], pods, n), pods)
			if want := all * ((n + max(all, 1) - 1) / max(all, 1)); got != want {
				t.Errorf("%d pods of %d: %d links a pod, want %d", pods, n, got, want)
			}
			checkAllReduce(t, phases, pods, n, joins)
		}
	}
}

// checkAllReduce: after all phases, and the joining one back again, every GPU
// has the data of its like in all pods.
func checkAllReduce(t *testing.T, phases [][]Flow, pods, n, joins int) {
	t.Helper()
	seen := make([]uint32, pods*n) // whose data a GPU has: bit by pod
	for g := range seen {
		seen[g] = 1 << (g / n)
	}
	for _, flows := range append(slices.Clone(phases), phases[:joins]...) {
		next := slices.Clone(seen)
		for _, f := range flows {
			next[f.To] |= seen[f.From]
		}
		seen = next
	}
	for g, s := range seen {
		if s != uint32(1<<pods-1) {
			t.Fatalf("%d pods of %d: GPU %d has data of %b", pods, n, g, s)
		}
	}
}

// Two binary trees span all ranks, no rank has children in both, none has more
// than four neighbours, and the core can be configured as both at once.
// Method: every size up to 300; the links of 33 pods through interleaved
// wiring with four ports.
// Reference: [LUMOS] A.5.3
func TestDoubleBinaryTree(t *testing.T) {
	for n := 1; n <= 300; n++ {
		parents := trees(n)
		inner := make([]int, n)
		degree := make([]int, n)
		for _, parent := range parents {
			children := make([]int, n)
			roots := 0
			for rank, up := range parent {
				if up < 0 {
					roots++
					continue
				}
				children[up]++
				degree[up]++
				degree[rank]++
				depth := 0
				for at := rank; at >= 0; at = parent[at] {
					if depth++; 1<<(depth-1) > n {
						t.Fatalf("%d ranks: rank %d is too deep", n, rank)
					}
				}
			}
			if roots != 1 {
				t.Fatalf("%d ranks: %d roots", n, roots)
			}
			for rank, c := range children {
				if c > 2 {
					t.Fatalf("%d ranks: rank %d has %d children", n, rank, c)
				}
				if c > 0 {
					inner[rank]++
				}
			}
		}
		for rank := range n {
			if inner[rank] > 1 || degree[rank] > 4 {
				t.Fatalf("%d ranks: rank %d is inside %d trees with %d neighbours", n, rank, inner[rank], degree[rank])
			}
		}
	}
	parents := trees(33)
	count := map[[2]int32]int32{}
	for _, parent := range parents {
		for rank, up := range parent {
			if up >= 0 {
				count[[2]int32{int32(min(rank, up)), int32(max(rank, up))}]++
			}
		}
	}
	var links []wiring.Link
	for pair, n := range count { // any order: NewTopology sorts
		links = append(links, wiring.Link{I: pair[0], J: pair[1], Count: n})
	}
	top, err := wiring.NewTopology(33, links)
	if err != nil {
		t.Fatal(err)
	}
	h, err := top.Orient().Layout(2)
	if err != nil {
		t.Fatal(err)
	}
	if err := wiring.Check(top, h); err != nil {
		t.Error(err)
	}
}

// A job in two pods needs as many links as it has replicas, however large they
// are: every pipeline crosses once. In any number of pods fewer rows than pods
// lie in more than one.
// Method: every split in two of several sizes; random pods.
// Reference: [LUMOS] A.6, Fig. 5
func TestDomainsReuseLinks(t *testing.T) {
	for pp := 1; pp <= 6; pp++ {
		for dp := 1; dp <= 6; dp++ {
			for first := 1; first < pp*dp; first++ {
				m, err := arrange([]int{first, pp*dp - first}, pp, dp)
				if err != nil {
					t.Fatal(err)
				}
				crossing := 0
				for c := range dp {
					for r := 1; r < pp; r++ {
						if m[r][c] != m[r-1][c] {
							crossing++
						}
					}
				}
				// A column whose ends are in one pod does not cross.
				if small := min(first, pp*dp-first); small >= dp && crossing != dp || crossing > dp {
					t.Errorf("pp %d, dp %d, %d in the first pod: %d pipelines cross", pp, dp, first, crossing)
				}
			}
		}
	}
	r := lcg(2)
	for range 1000 {
		pp, dp := 1+r.below(12), 1+r.below(12)
		elements := make([]int, 1+r.below(6))
		for n := range pp * dp {
			elements[(n*7+r.below(3))%len(elements)]++
		}
		m, err := arrange(elements, pp, dp)
		if err != nil {
			t.Fatal(err)
		}
		count, split := make([]int, len(elements)), 0
		for _, row := range m {
			for _, p := range row {
				count[p]++
			}
			if slices.Min(row) != slices.Max(row) {
				split++
			}
		}
		if !slices.Equal(count, elements) || split > len(elements)-1 {
			t.Fatalf("%v in %dx%d: %v, %d rows split", elements, pp, dp, count, split)
		}
	}
}

// Every step of the corrected all-to-all is a permutation, every GPU meets
// every other once, and no pod sends more than ceil(N/P) flows to another. As
// printed that is so for N = P alone.
// Method: all steps of all small sizes.
// Reference: [LUMOS] A.7, eq. 44
func TestAllToAll(t *testing.T) {
	for pods := 1; pods <= 7; pods++ {
		for n := 1; n <= 9; n++ {
			met := make([]bool, pods*n*pods*n)
			printed := true
			for step := 1; step <= pods*n; step++ {
				var to, asPrinted []int
				var flows []Flow
				for p := range pods {
					for g := range n {
						q, h := allToAllStep(pods, n, p, g, step)
						to = append(to, q*n+h)
						flows = append(flows, Flow{p*n + g, q*n + h})
						met[(p*n+g)*pods*n+q*n+h] = true
						asPrinted = append(asPrinted, (p*(n+1)+n*g+step-1)%(n*pods))
					}
				}
				isPermutation(t, to)
				if most := slices.Max(PodFlows(flows, pods, n)); most > (n+pods-1)/pods {
					t.Fatalf("%d pods of %d, step %d: %d flows from one pod to another", pods, n, step, most)
				}
				slices.Sort(asPrinted)
				printed = printed && len(slices.Compact(asPrinted)) == pods*n
			}
			if slices.Contains(met, false) {
				t.Errorf("%d pods of %d: some pair never meets", pods, n)
			}
			if n == pods && !printed {
				t.Errorf("eq. 44 as printed is no permutation for N = P = %d", n)
			}
			if n == 2 && pods == 3 && printed {
				t.Error("eq. 44 as printed is a permutation for N = 2, P = 3")
			}
		}
	}
}
