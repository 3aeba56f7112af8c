package ring

import (
	"fmt"
	"testing"

	"ringlight/proto"
)

// Nodes with the same index under each ToR form a sub-line, and the sub-lines
// are joined end to end.
// Reference: [IHBD] App. D, Algorithm 3.
func TestPaperDeploymentOrder(t *testing.T) {
	d := Deployment{Nodes: 12, PerToR: 3}
	var order []proto.NodeID
	for i := range d.Nodes {
		n := d.Node(i)
		order = append(order, n)
		if d.Position(n) != i {
			t.Errorf("node %d: position %d, want %d", n, d.Position(n), i)
		}
	}
	if got := fmt.Sprint(order); got != "[0 3 6 9 1 4 7 10 2 5 8 11]" {
		t.Errorf("order %s", got)
	}
}

// Each component holds floor(nodes / m) groups, cut one after the other, and
// K healthy-to-healthy hops bridge K-1 faults but not K.
// Reference: [IHBD] sec. 4.2 and Algorithm 2.
func TestPaperComponents(t *testing.T) {
	for _, c := range []struct {
		k      int
		faulty []proto.NodeID
		groups string
	}{
		{2, []proto.NodeID{3}, "[[0 1 2 4] [5 6 7 8] [9 10 11 12]]"},
		{2, []proto.NodeID{3, 4}, "[[5 6 7 8] [9 10 11 12]]"},
		{3, []proto.NodeID{3, 4}, "[[0 1 2 5] [6 7 8 9] [10 11 12 13]]"},
		{3, []proto.NodeID{3, 4, 5}, "[[6 7 8 9] [10 11 12 13]]"},
	} {
		if got := fmt.Sprint(Place(Problem{Order: Order{Nodes: 14, K: c.k}, Size: 4, Usable: but(c.faulty...), Want: -1})); got != c.groups {
			t.Errorf("K=%d without %v: %s, want %s", c.k, c.faulty, got, c.groups)
		}
	}
}

// The number of groups falls with every constraint that is applied, so that a
// binary search may be used.
// Reference: [IHBD] App. D, "This process is monotonic", Algorithm 4.
func TestPaperConstraintsAreMonotonic(t *testing.T) {
	for seed := range uint64(20) {
		j := cluster(256, 3, 0, draw(2048, 60_000, seed))
		ok := j.usable()
		last := -1
		for c := j.domains() * (1 + j.PerToR); c >= 0; c-- {
			n := len(j.placeFatTree(ok, c))
			if n < last {
				t.Fatalf("seed %d: %d groups with %d constraints, %d with one more", seed, n, c, last)
			}
			last = n
		}
	}
}

// The search keeps the best placement that fits: when the job fits at all, it
// is placed, and with one constraint more it would not fit.
// Reference: [IHBD] Algorithms 1 and 5, whose last try need not be the best.
func TestPaperSearchKeepsTheBest(t *testing.T) {
	for seed := range uint64(40) {
		j := cluster(256, 3, 225+int(seed%16), draw(2048, 50_000, seed))
		o := OrchestratePaper(j)
		if o.OK() != (o.Most >= j.Want) {
			t.Fatalf("seed %d: OK %v, want %d of %d", seed, o.OK(), j.Want, o.Most)
		}
		if all := j.domains() * (1 + j.PerToR); o.OK() && o.Held < all && len(j.placeFatTree(j.usable(), o.Held+1)) >= j.Want {
			t.Errorf("seed %d: %d constraints hold, one more would", seed, o.Held)
		}
	}
}

// meanM is a tenth of the mean share of inner flows between ToRs, over seeds.
func meanM(t *testing.T, domain, groups int, ppm uint64, method func(Job) Orchestration) float64 {
	t.Helper()
	const seeds = 6
	sum := 0.0
	for seed := range uint64(seeds) {
		o := method(cluster(domain, 3, groups, draw(2048, ppm, 7919*seed+ppm)))
		if !o.OK() {
			t.Fatalf("domain %d, %d ppm, seed %d: %d groups do not fit", domain, ppm, seed, groups)
		}
		sum += o.M() / 10
	}
	return sum / seeds
}

// At 90 % job scale and 5 % faults, 8,192 GPUs and TP-32, the paper claims
// 1.72 % cross-ToR traffic. Its algorithm gives 3 to 9 %, ours at most 1 %, in
// large domains at most 0.3 %.
// Reference: [IHBD] Fig. 13b.
func TestPaperCrossToRAtFullScale(t *testing.T) {
	const groups = 231                                                                                      // the first that hold 0.9 * 8192 GPUs
	for domain, limit := range map[int]float64{128: 0.01, 256: 0.01, 512: 0.01, 1024: 0.003, 2048: 0.003} { // any order
		if testing.Short() && domain != 128 && domain != 2048 {
			continue
		}
		ours, paper := meanM(t, domain, groups, 50_000, Orchestrate), meanM(t, domain, groups, 50_000, OrchestratePaper)
		t.Logf("domains of %d nodes: ours %.2f %%, Algorithm 5 %.2f %%", domain, 100*ours, 100*paper)
		if ours > limit || paper < 3*ours {
			t.Errorf("domains of %d nodes: ours %.4f, want at most %.4f; Algorithm 5 %.4f", domain, ours, limit, paper)
		}
	}
}

// At 85 % job scale there is no cross-ToR traffic up to 5 % faulty nodes. At
// 7 % 86.5 % of the ToRs are whole on average: in some draws too few, and the
// mean is under a tenth of a percent, where the paper's curve shows zero.
// Reference: [IHBD] Fig. 13c.
func TestPaperCrossToRUnderFaults(t *testing.T) {
	const groups = 218 // the first that hold 0.85 * 8192 GPUs
	for _, domain := range []int{512, 1024, 2048} {
		for ppm := uint64(10_000); ppm <= 70_000; ppm += 20_000 {
			limit := 0.0
			if ppm == 70_000 {
				limit = 0.001
			}
			if m := meanM(t, domain, groups, ppm, Orchestrate); m > limit {
				t.Errorf("domains of %d nodes, %d ppm faulty: %.5f, want at most %v", domain, ppm, m, limit)
			}
		}
	}
}

// Halves of a server that are deployed apart leave single gaps, which K = 2
// steps over; side by side they break the line.
// Reference: [IHBD] App. A, which makes two 4-GPU nodes of each 8-GPU server.
func TestPaperSiblingsApart(t *testing.T) {
	const servers = 1224
	down := draw(servers, 25_000, 3)
	wasted := func(d Deployment) int {
		p := Problem{Order: Order{Nodes: d.Nodes, K: 2, Wrap: true}, Size: 8, Want: -1,
			Usable: func(position proto.NodeID) bool { return !down[d.Node(int(position))/2] }}
		n := -8 * len(Place(p))
		for i := range d.Nodes {
			if p.Usable(proto.NodeID(i)) {
				n++
			}
		}
		return n
	}
	apart, beside := wasted(Deployment{Nodes: 2 * servers, PerToR: 2}), wasted(Deployment{Nodes: 2 * servers, PerToR: 1})
	if apart*4 > beside {
		t.Errorf("%d idle nodes with siblings apart, %d side by side", apart, beside)
	}
}
