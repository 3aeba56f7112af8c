package sched

import (
	"errors"
	"slices"
	"testing"

	"ringlight/planner/wiring"
)

func someCore(pods, leaves, servers, spines int) Core {
	c := Core{Leaves: wiring.Leaves{Pods: pods, Spines: spines, Tau: 2}, GPUsPerServer: 8}
	for p := range pods {
		for range leaves {
			c.PodOf = append(c.PodOf, int32(p))
			c.Servers = append(c.Servers, servers)
		}
	}
	return c
}

// A job list goes all the way to cross-connects, while jobs come and go:
// placed on servers nobody has, its links within the ports of the leaves,
// spread over spines without contention, realised exactly, and the change
// taken apart.
// Method: random jobs of small and large tensor parallel domains on a cluster
// that is nearly full; every step's claim after every change.
// Reference: [LUMOS] sec 2.4.1, workflow
func TestJobsToCircuits(t *testing.T) {
	const leaves, switches = 4, 4
	c := someCore(8, leaves, 4, 16)
	r := lcg(4)
	var running []Placed
	spread, err := c.SpreadNeed(wiring.Topology{Pods: len(c.PodOf)})
	if err != nil {
		t.Fatal(err)
	}
	groups := make([]wiring.Half, c.Spines)
	for h := range groups {
		groups[h] = wiring.NewHalf(c.Pods, switches)
	}
	waited, crossing, pieces := 0, 0, 0
	for range 60 {
		if len(running) > 0 && r.below(3) == 0 {
			running = slices.Delete(running, 0, 1)
		}
		j := Job{TP: 1 << r.below(6), EP: 1 << r.below(6), PP: 1 << r.below(3), DP: 1 + r.below(20)}
		placed, err := c.Admit(running, j)
		if errors.Is(err, ErrNoRoom) {
			waited++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		checkPlaced(t, c, running, placed)
		running = append(running, placed)
		crossing += len(placed.Wants)
		next, wanted := realise(t, c, running, spread, groups)
		parts, err := wiring.Pieces(groups, wanted)
		if err != nil {
			t.Fatal(err)
		}
		pieces += len(parts)
		spread, groups = next, wanted
	}
	if waited < 5 || crossing < 20 || pieces < 10 {
		t.Errorf("%d jobs waited, %d pairs of leaves, %d pieces: the test shows little", waited, crossing, pieces)
	}
}

func realise(t *testing.T, c Core, running []Placed, spread wiring.Spread, groups []wiring.Half) (wiring.Spread, []wiring.Half) {
	t.Helper()
	need, err := c.Need(running)
	if err != nil {
		t.Fatal(err)
	}
	next, err := c.Respread(need, spread)
	if err != nil {
		t.Fatal(err)
	}
	if next.Load() > 2 {
		t.Fatalf("a leaf has %d paths on one spine", next.Load())
	}
	wanted := make([]wiring.Half, len(groups))
	for h, paths := range next.Spine {
		g := wiring.Topology{Pods: c.Pods} // what a group carries: the paths of its spine by pods, [LUMOS] eq. 7
		for _, l := range paths.Links {
			i, j := c.PodOf[l.I], c.PodOf[l.J]
			g = wiring.Merge(g, wiring.Topology{Pods: c.Pods, Links: []wiring.Link{{I: min(i, j), J: max(i, j), Count: l.Count}}})
		}
		if wanted[h], err = wiring.Rewire(wiring.Group{Topology: g, Old: groups[h]}, 1, 200); err != nil {
			t.Fatal(err)
		}
		if err := wiring.Check(g, wanted[h]); err != nil {
			t.Fatal(err)
		}
	}
	return next, wanted
}

// checkPlaced says whether a job has GPUs enough on idle servers and links
// where its flows cross pods.
func checkPlaced(t *testing.T, c Core, running []Placed, p Placed) {
	t.Helper()
	idle := c.idle(running)
	servers, pods := 0, map[int]bool{}
	for _, s := range p.Shares {
		if idle.Idle[s.Pod][s.Leaf] -= s.Servers; idle.Idle[s.Pod][s.Leaf] < 0 {
			t.Fatalf("%+v: servers of another job", p)
		}
		servers += s.Servers
		pods[s.Pod] = true
	}
	if servers*c.GPUsPerServer < p.GPUs() {
		t.Fatalf("%+v: %d servers", p, servers)
	}
	if len(p.Links) != len(p.Wants) {
		t.Fatalf("%+v: %d wants, %d answers", p, len(p.Wants), len(p.Links))
	}
	checkElements(t, c, p)
	for n, w := range p.Wants {
		if c.PodOf[w.A] == c.PodOf[w.B] || p.Links[n] < 1 || p.Links[n] > w.Links() {
			t.Fatalf("%+v gets %d links", w, p.Links[n])
		}
	}
	if joined := joinedPods(c, p); len(pods) > 1 && joined != len(pods) {
		t.Fatalf("%+v: links join %d of %d pods", p, joined, len(pods))
	}
}

// checkElements says whether every domain has servers of its own, all in one
// pod.
func checkElements(t *testing.T, c Core, p Placed) {
	t.Helper()
	leafOf, err := c.Elements(p.Job, p.Shares)
	if err != nil {
		t.Fatal(err)
	}
	gpus := make([]int, len(c.PodOf)) // of a leaf: GPUs of the job that domains have not taken
	for _, s := range p.Shares {
		gpus[c.LeafNumbers()[s.Pod][s.Leaf]] += s.Servers * c.GPUsPerServer
	}
	for _, part := range leafOf {
		for stage, row := range part {
			if len(part) != p.PP || len(row) != p.DP {
				t.Fatalf("%+v: %d stages, %d replicas", p, len(part), len(row))
			}
			for replica, leaf := range row {
				if gpus[leaf] -= p.TP / len(leafOf); gpus[leaf] < 0 {
					t.Fatalf("%+v: leaf %d has more domains than servers", p, leaf)
				}
				if c.PodOf[leaf] != c.PodOf[leafOf[0][stage][replica]] {
					t.Fatalf("%+v: a domain in two pods", p)
				}
			}
		}
	}
}

// joinedPods counts the pods that a job's links reach from its first.
func joinedPods(c Core, p Placed) int {
	reached := map[int32]bool{int32(p.Shares[0].Pod): true}
	for grows := true; grows; {
		grows = false
		for _, w := range p.Wants {
			a, b := c.PodOf[w.A], c.PodOf[w.B]
			if reached[a] != reached[b] {
				reached[a], reached[b], grows = true, true, true
			}
		}
	}
	return len(reached)
}

// A tensor parallel domain of several servers sends from each server to its
// like: as many flows as it has GPUs leave the pod, from the leaves where the
// servers are.
// Method: two domains of two servers on two leaves, in two pods.
func TestWantsOfLargeDomains(t *testing.T) {
	c := someCore(2, 2, 1, 16)
	wants, err := c.Wants(Job{TP: 16, EP: 1, PP: 1, DP: 2}, []Share{{0, 0, 1}, {0, 1, 1}, {1, 0, 1}, {1, 1, 1}})
	if err != nil {
		t.Fatal(err)
	}
	// A ring of two: every rail goes there and back, so each pair of servers
	// has eight flows each way.
	if want := []Want{{0, 2, 8, 0}, {1, 3, 8, 0}}; !slices.Equal(wants, want) {
		t.Errorf("%v, want %v", wants, want)
	}
	small, err := c.Wants(Job{TP: 4, EP: 1, PP: 2, DP: 2}, []Share{{0, 0, 1}, {1, 0, 1}})
	if err != nil {
		t.Fatal(err)
	}
	if want := []Want{{0, 2, 0, 8}}; !slices.Equal(small, want) {
		t.Errorf("%v, want %v", small, want)
	}
	var e *wiring.Error
	if _, err := c.Wants(Job{TP: 6, EP: 1, PP: 1, DP: 2}, []Share{{0, 0, 2}}); !errors.As(err, &e) || e.Field != "tp" {
		t.Errorf("a domain that straddles servers: %v", err)
	}
	for _, bad := range []Share{{2, 0, 1}, {0, 2, 1}, {-1, 0, 1}, {0, 0, 0}} {
		if _, err := c.Wants(Job{TP: 8, EP: 1, PP: 1, DP: 1}, []Share{bad}); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
}

// Where a leaf has no port left, a job goes elsewhere; where none has, it
// waits.
// Method: a job that uses up the ports of two leaves, then others.
// Reference: [LUMOS] A.12, step 2
func TestAdmitAvoidsFullLeaves(t *testing.T) {
	c := someCore(3, 2, 2, 4) // eight ports a leaf
	first := Placed{Job: Job{TP: 8, EP: 1, PP: 1, DP: 2}, Shares: []Share{{0, 0, 1}, {1, 0, 1}}, Wants: []Want{{0, 2, 8, 0}}, Links: []int{8}}
	// Pods 0 and 1 have three servers idle, pod 2 has four: by A.4 a job of
	// five would take the first two, where one leaf of each is full.
	second, err := c.Admit([]Placed{first}, Job{TP: 8, EP: 1, PP: 1, DP: 5})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range second.Shares {
		if leaf := c.LeafNumbers()[s.Pod][s.Leaf]; leaf == 0 || leaf == 2 {
			for _, w := range second.Wants {
				if w.A == leaf || w.B == leaf {
					t.Errorf("%+v uses leaf %d, which has no port", second, leaf)
				}
			}
		}
	}
	if _, err := c.Admit([]Placed{first, second}, Job{TP: 8, EP: 1, PP: 1, DP: 9}); !errors.Is(err, ErrNoRoom) {
		t.Errorf("more than there is: %v", err)
	}
	var e *wiring.Error
	bad := c
	bad.Servers = bad.Servers[:2]
	if _, err := bad.Admit(nil, Job{1, 1, 1, 1, Ring}); !errors.As(err, &e) || e.Field != "servers" {
		t.Errorf("servers missing: %v", err)
	}
	if _, err := c.Admit(nil, Job{}); !errors.As(err, &e) || e.Field != "tp" {
		t.Errorf("no job: %v", err)
	}
}

// Whatever the core and the jobs, a job is refused by field, waits, or has
// servers and links that fit.
// Method: bytes as a small core and a list of jobs.
func FuzzAdmit(f *testing.F) {
	f.Add([]byte{2, 2, 2, 2, 2, 3, 0, 0, 1, 3, 2, 0, 1, 1})
	f.Add([]byte{5, 1, 3, 1, 1, 5, 0, 0, 0, 4, 1, 4, 2, 2, 0, 0, 7, 7})
	f.Add([]byte{1, 1, 1, 1, 1, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 5 {
			return
		}
		c := someCore(1+int(data[0]&7), 1+int(data[1]&3), int(data[2]&7), 1+int(data[3]&15))
		c.Tau = 1 + int(data[4]&1)
		var running []Placed
		for data = data[5:]; len(data) >= 4 && len(running) < 12; data = data[4:] {
			j := Job{TP: int(data[0]), EP: int(data[1]), PP: int(data[2]), DP: int(data[3])}
			placed, err := c.Admit(running, j)
			var e *wiring.Error
			if err != nil {
				if !errors.Is(err, ErrNoRoom) && (!errors.As(err, &e) || e.Field == "") {
					t.Fatalf("%+v: %v", j, err)
				}
				continue
			}
			checkPlaced(t, c, running, placed)
			running = append(running, placed)
		}
		need, err := c.Need(running)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.SpreadNeed(need); err != nil {
			t.Fatal(err)
		}
	})
}
