package wiring

import (
	"math"
	"testing"

	"ringlight/mzi/detmath"
)

// Any symmetric integer matrix with an even diagonal is A + A^T with floors
// and ceilings of half on entries, rows and columns. As printed, for any
// symmetric matrix at all, the claim is false: [1] is no such sum.
// Method: the smallest odd cases; TestOrientIsBalanced has thousands.
// Reference: [LUMOS] Th. 2.1, [CROSS] Th. 3.1
func TestTheorem21(t *testing.T) {
	for _, c := range [][][]int{
		{{0, 1}, {1, 0}},
		{{2, 1, 0}, {1, 0, 3}, {0, 3, 4}},
		{{0, 1, 1}, {1, 0, 1}, {1, 1, 0}},
		{{0, 5, 3, 1}, {5, 0, 1, 1}, {3, 1, 0, 7}, {1, 1, 7, 2}},
	} {
		top, err := matrix(c)
		if err != nil {
			t.Fatal(err)
		}
		checkOriented(t, top, top.Orient())
	}
	if _, err := matrix([][]int{{1}}); err == nil {
		t.Error("[1] was accepted, which is no A + A^T of integers")
	}
}

// Any integer matrix is a sum of H matrices with floors and ceilings of an
// H-th everywhere, for any H.
// Method: one matrix, every H from 1 to beyond its largest sum.
// Reference: [LUMOS] Th. 2.2, [CROSS] Th. 3.2
func TestTheorem22(t *testing.T) {
	d := Demand{3, 4, []Arc{{0, 0, 7}, {0, 1, 1}, {0, 3, 2}, {1, 0, 3}, {1, 2, 5}, {2, 1, 11}, {2, 2, 1}, {2, 3, 1}}}
	for h := 1; h < 20; h++ {
		checkSplit(t, d, d.split(h, nil), h)
	}
}

// Interleaved wiring realises every topology within its ports, uniform wiring
// does not: of three pods in a full mesh with two ports each it can have two
// links, interleaved wiring has all three.
// Method: the mesh; uniform wiring by trying everything.
// Reference: [LUMOS] Th. 3.1 and Fig. 4, [CROSS] Th. 4.1 and Fig. 1
func TestTheorem31AndTheThreePodMesh(t *testing.T) {
	mesh, err := matrix([][]int{{0, 1, 1}, {1, 0, 1}, {1, 1, 0}})
	if err != nil {
		t.Fatal(err)
	}
	h, err := mesh.Orient().Layout(1)
	if err != nil {
		t.Fatal(err)
	}
	if err := Check(mesh, h); err != nil {
		t.Fatal(err)
	}
	var interleaved Fit
	interleaved.Add(mesh, h.Links())
	if interleaved.Realised != 3 || interleaved.Asked != 3 {
		t.Errorf("interleaved wiring realises %d of %d", interleaved.Realised, interleaved.Asked)
	}
	if best := bestUniform(mesh, 2); best != 2 {
		t.Errorf("uniform wiring can realise %d of 3, want 2", best)
	}
	for name, m := range map[string]Matchings{ // any order: each is judged by itself
		"greedy": GreedyUniform(mesh, newMatchings(3, 2)), "helios": Helios(mesh, 2),
	} {
		var uniform Fit
		uniform.Add(mesh, m.Links())
		if uniform.Realised != 2 {
			t.Errorf("%s realises %d of 3, want 2", name, uniform.Realised)
		}
	}
}

// bestUniform is the most links that uniform wiring can realise, by trying
// every switch for every link.
func bestUniform(t Topology, switches int) int {
	var links []Link
	for _, l := range t.Links {
		for range l.Count {
			links = append(links, Link{l.I, l.J, 1})
		}
	}
	m := newMatchings(t.Pods, switches)
	best := 0
	var try func(n, realised int)
	try = func(n, realised int) {
		best = max(best, realised)
		if n == len(links) {
			return
		}
		try(n+1, realised)
		l := links[n]
		for k := range switches {
			if row := m.Row(k); row[l.I] < 0 && row[l.J] < 0 {
				m.join(k, l.I, l.J)
				try(n+1, realised+1)
				row[l.I], row[l.J] = None, None
			}
		}
	}
	try(0, 0)
	return best
}

// randomNeed asks for cross-pod paths, at most so many a leaf.
func randomNeed(r *detmath.Random, l Leaves, most int) Topology {
	count := make([]int32, len(l.PodOf)*len(l.PodOf))
	left := make([]int, len(l.PodOf))
	for a := range left {
		left[a] = most
	}
	for range 40 * len(l.PodOf) {
		a, b := r.Below(len(l.PodOf)), r.Below(len(l.PodOf))
		if l.PodOf[a] != l.PodOf[b] && left[a] > 0 && left[b] > 0 {
			left[a]--
			left[b]--
			count[min(a, b)*len(l.PodOf)+max(a, b)]++
		}
	}
	return fromCounts(len(l.PodOf), count)
}

func someLeaves(r *detmath.Random, tau int) Leaves {
	pods, perPod := 2+r.Below(5), 2*(1+r.Below(4))
	l := Leaves{Pods: pods, Spines: 1 + r.Below(12), Tau: tau}
	for a := range pods * perPod {
		l.PodOf = append(l.PodOf, int32(a/perPod))
	}
	return l
}

// checkSpread says whether paths add up to the need and whether every group
// can be realised with as many spine ports as leaves have links to a spine.
func checkSpread(t *testing.T, need Topology, s Spread) {
	t.Helper()
	var sum Topology
	for h, part := range s.Spine {
		if h == 0 {
			sum = part
		} else {
			sum = Merge(sum, part)
		}
	}
	if len(sum.Links) != len(need.Links) {
		t.Fatalf("%d pairs of leaves served, %d need it", len(sum.Links), len(need.Links))
	}
	for n := range sum.Links {
		if sum.Links[n] != need.Links[n] {
			t.Fatalf("%v served, %v needed", sum.Links[n], need.Links[n])
		}
	}
	perPod := len(s.PodOf) / s.Pods
	for h, group := range s.groups() {
		if err := group.CheckPorts(perPod * s.Tau); err != nil {
			t.Fatalf("spine %d: %v", h, err)
		}
		if perPod*s.Tau%2 == 0 {
			half, err := group.Orient().Layout(perPod * s.Tau / 2)
			if err != nil {
				t.Fatalf("spine %d: %v", h, err)
			}
			if err := Check(group, half); err != nil {
				t.Fatalf("spine %d: %v", h, err)
			}
		}
	}
}

// With two links between a leaf and a spine every need within the leaves'
// ports is served without contention, and the logical topology fits.
// Method: a thousand random needs, up to all ports of every leaf.
// Reference: [LUMOS] Th. 4.1, sec 4.1.1
func TestTheorem41(t *testing.T) {
	r := detmath.Random(1)
	for range 1000 {
		l := someLeaves(&r, 2)
		need := randomNeed(&r, l, 1+r.Below(l.Ports()))
		s, err := l.SpreadNeed(need)
		if err != nil {
			t.Fatal(err)
		}
		checkSpread(t, need, s)
		if s.Load() > 2 {
			t.Fatalf("a leaf has %d paths on one spine", s.Load())
		}
	}
}

// With one link, a need of at most half the ports of each leaf is served
// without contention, any other with two paths on a link at most; and the
// logical topology fits in both cases.
// Method: as above.
// Reference: [LUMOS] Th. 4.2, sec 4.1.1
func TestTheorem42(t *testing.T) {
	r := detmath.Random(2)
	for range 1000 {
		l := someLeaves(&r, 1)
		for _, c := range []struct{ most, load int }{{l.Ports() / 2, 1}, {l.Ports(), 2}} {
			need := randomNeed(&r, l, c.most)
			s, err := l.SpreadNeed(need)
			if err != nil {
				t.Fatal(err)
			}
			checkSpread(t, need, s)
			if s.Load() > c.load {
				t.Fatalf("a leaf has %d paths on one spine, want %d at most", s.Load(), c.load)
			}
		}
	}
}

// With one link there are needs that no spread serves without contention: two
// paths on one link are the least.
// Method: three leaves in three pods that all need each other, two spines,
// every spread tried.
// Reference: [LUMOS] sec 4.1.1, Fig. 12
func TestOneLinkCanBeTooFew(t *testing.T) {
	l := Leaves{PodOf: []int32{0, 1, 2}, Pods: 3, Spines: 2, Tau: 1}
	need, err := NewTopology(3, []Link{{0, 1, 1}, {0, 2, 1}, {1, 2, 1}})
	if err != nil {
		t.Fatal(err)
	}
	least := 3
	for choice := range 8 {
		var load [2][3]int
		worst := 0
		for n, link := range need.Links {
			h := choice >> n & 1
			load[h][link.I]++
			load[h][link.J]++
			worst = max(worst, load[h][link.I], load[h][link.J])
		}
		least = min(least, worst)
	}
	s, err := l.SpreadNeed(need)
	if err != nil {
		t.Fatal(err)
	}
	if least != 2 || s.Load() != 2 {
		t.Errorf("the least is %d, ours is %d, want 2", least, s.Load())
	}
}

// The realisation rate is a cosine: it does not see that half of everything
// is missing, which links realised of links asked does.
// Method: a mesh of which every pair has one link of two.
// Reference: [CROSS] eq. 15
func TestLTRRIsACosine(t *testing.T) {
	asked, _ := matrix([][]int{{0, 2, 2}, {2, 0, 2}, {2, 2, 0}})
	var f Fit
	f.Add(asked, []Link{{0, 1, 1}, {0, 2, 1}, {1, 2, 1}})
	if math.Abs(f.LTRR()-1) > 1e-12 {
		t.Errorf("LTRR %v, want 1", f.LTRR())
	}
	if f.Realised != 3 || f.Asked != 6 {
		t.Errorf("%d of %d links, want 3 of 6", f.Realised, f.Asked)
	}
	var g Fit
	g.Add(asked, []Link{{0, 1, 2}, {0, 2, 2}})
	if want := math.Sqrt(2.0 / 3); math.Abs(g.LTRR()-want) > 1e-12 {
		t.Errorf("LTRR %v with one pair missing, want %v", g.LTRR(), want)
	}
}

// Greedy on uniform wiring realises about 0.95 (LTRR) of full random
// topologies of 128 pods, interleaved wiring all of each; the published
// rewiring keeps far less than is possible and than the search does.
// Method: one group of 16 switches, 10 % of the links churned.
// Reference: [CROSS] sec 6.2, Fig. 5 and 7
func TestBaselinesAreWhatTheyAre(t *testing.T) {
	r := detmath.Random(3)
	g := randomGroup(t, &r, 128, 16, 0, 100)
	var uniform, helios, interleaved Fit
	uniform.Add(g.Topology, GreedyUniform(g.Topology, newMatchings(128, 16)).Links())
	helios.Add(g.Topology, Helios(g.Topology, 16).Links())
	published, err := CrossRewire(g)
	if err != nil {
		t.Fatal(err)
	}
	interleaved.Add(g.Topology, published.Links())
	if interleaved.Realised != interleaved.Asked || math.Abs(interleaved.LTRR()-1) > 1e-12 {
		t.Errorf("interleaved wiring realises %d of %d", interleaved.Realised, interleaved.Asked)
	}
	if uniform.LTRR() < 0.93 || uniform.LTRR() > 0.97 || uniform.Realised >= uniform.Asked {
		t.Errorf("greedy on uniform wiring: LTRR %.3f, %d of %d links", uniform.LTRR(), uniform.Realised, uniform.Asked)
	}
	if helios.Realised >= helios.Asked || helios.Realised < uniform.Realised {
		t.Errorf("Helios on uniform wiring: %d of %d links", helios.Realised, helios.Asked)
	}
	searched, err := Rewire(g, 1, 150_000)
	if err != nil {
		t.Fatal(err)
	}
	all := g.Old.circuits()
	if p, s := published.Kept(g.Old), searched.Kept(g.Old); 2*p > all || 4*s < 3*all {
		t.Errorf("of %d circuits the published method keeps %d, the search %d", all, p, s)
	}
}

// Idle ports become a mesh over all pairs next to what jobs have, and hardly a
// port stays over.
// Method: 32 pods, 16 groups with a few job links each.
// Reference: [LUMOS] Fig. 10
func TestIdlePortsBecomeAMesh(t *testing.T) {
	r := detmath.Random(4)
	const pods, ports = 32, 16
	var jobs, none []Half
	for range 16 {
		h, err := randomTopology(&r, pods, ports, 700).Orient().Layout(ports / 2)
		if err != nil {
			t.Fatal(err)
		}
		jobs, none = append(jobs, h), append(none, NewHalf(pods, ports/2))
	}
	full, err := FillIdle(jobs, none)
	if err != nil {
		t.Fatal(err)
	}
	mesh := make([]int, pods*pods)
	for n, h := range full {
		if idle := pods*ports/2 - h.circuits(); idle > ports/2 {
			t.Errorf("group %d leaves %d ports idle", n, idle)
		}
		for _, l := range h.Links() {
			mesh[int(l.I)*pods+int(l.J)] += int(l.Count)
		}
		for _, l := range jobs[n].Links() {
			mesh[int(l.I)*pods+int(l.J)] -= int(l.Count)
		}
	}
	joined := 0
	for i := range pods {
		for j := i + 1; j < pods; j++ {
			if mesh[i*pods+j] > 0 {
				joined++
			}
		}
	}
	if all := pods * (pods - 1) / 2; 100*joined < 97*all {
		t.Errorf("%d of %d pairs have a backup link", joined, all)
	}
}
