package isolate

import (
	"slices"
	"testing"
)

// The same map on every leaf: the n-th ports of all virtual leaves reach one
// virtual spine, and what a VRF says about a virtual leaf is the way back.
// Method: follow each port up and down over the placement's own links; an
// uplink or downlink that is used twice in the core shows.
func TestTablesAreTheSameMapOnEveryLeaf(t *testing.T) {
	overSpines := defaultCore()
	overSpines.Optics.AnyToAny = false
	for _, core := range []Core{overSpines, Clos(8, 8, 2, 8)} {
		s := core.Empty()
		ups, downs := map[[2]int]bool{}, map[[2]int]bool{}
		for id, gpus := range []int{48, 16, 12, 24} {
			p, why := s.Place(gpus)
			if why != Fits {
				continue
			}
			if err := s.Take(JobID(id+1), p); err != nil {
				t.Fatal(err)
			}
			tables := s.Tables(p)
			if p.S == 0 {
				continue
			}
			if len(tables.Leaves) != p.L || len(tables.VRFs) != p.S {
				t.Fatalf("%d virtual leaves, %d VRFs of %d x %d", len(tables.Leaves), len(tables.VRFs), p.L, p.S)
			}
			for v, leaf := range tables.Leaves {
				if leaf.Virtual != v || len(leaf.Sends) != p.S {
					t.Fatalf("virtual leaf %d: %+v", v, leaf)
				}
				for i, r := range leaf.Sends {
					vrf := tables.VRFs[p.Map[i]]
					link := v*p.S + p.Map[i]
					if l := p.Links[link]; l.Leaf != leaf.Leaf || r.Leaf != leaf.Leaf || l.Spine != vrf.Spine {
						t.Fatalf("port %d of virtual leaf %d: link %+v, spine %d", i, v, l, vrf.Spine)
					}
					up, down := [2]int{leaf.Leaf, r.Uplink}, [2]int{vrf.Spine, vrf.Ports[v]}
					if ups[up] || downs[down] {
						t.Fatalf("uplink %v or port %v of a spine twice", up, down)
					}
					ups[up], downs[down] = true, true
				}
			}
		}
		if len(ups) == 0 {
			t.Fatal("no job went over spines")
		}
	}
}

// Two leaves that are joined directly: the smaller sends by source, the larger
// reaches it by destination, each over the port of the same circuit.
// Method: a job that no leaf holds on an empty core of two leaves.
func TestTablesOfTwoLeavesJoinedDirectly(t *testing.T) {
	s := Optical(2, 8, 2, 2, 8).Empty()
	p, why := s.Place(12)
	if why != Fits || p.S != 0 || len(p.Circuits) == 0 {
		t.Fatalf("%v %+v", why, p)
	}
	tables := s.Tables(p)
	if len(tables.Leaves) != 2 || len(tables.VRFs) != 0 || len(tables.Leaves[0].Sends) != len(p.Map) || len(tables.Leaves[0].Reaches)+len(tables.Leaves[1].Sends) != 0 {
		t.Fatalf("%+v", tables)
	}
	for i, r := range tables.Leaves[0].Sends {
		c, far := p.Circuits[p.Map[i]], tables.Leaves[1].Reaches[i]
		if r.Uplink != s.PortOf(c.Switch, c.A) || far.Uplink != s.PortOf(c.Switch, c.B) || far.Leaf != r.Leaf || far.Port != r.Port {
			t.Errorf("port %d: %+v, %+v, circuit %+v", i, r, far, c)
		}
	}
}

// A port that is withheld is nobody's, and a job that cannot do without it
// waits for the network.
// Method: all ports of a spine's switches but one.
func TestWithheldPortsAreNobodys(t *testing.T) {
	core := Optical(4, 4, 1, 1, 4)
	core.Optics.AnyToAny = false
	s := core.Empty()
	for k := range 4 {
		for n := range 4 {
			if !s.Withhold(k, End{Spine: true, Port: n}, false) || s.Withhold(k, End{Spine: true, Port: n}, false) {
				t.Fatal("a free port once, and not twice")
			}
		}
	}
	if s.Withhold(9, End{}, false) || s.Withhold(0, End{Number: 9}, true) {
		t.Error("a port that there is not")
	}
	if _, why := s.Place(8); why != ByNetwork {
		t.Errorf("%v", why)
	}
	if p, why := s.Place(4); why != Fits || slices.ContainsFunc(p.Circuits, func(Circuit) bool { return true }) {
		t.Errorf("%v %+v", why, p)
	}
}

// A queue that is made anew goes on where the former one was.
// Method: a job is passed once less than it takes, the queue is made again
// with what Waiting gave, and one more job passes it.
func TestPassedJobsKeepTheirPlaceInANewQueue(t *testing.T) {
	s := Clos(1, 8, 1, 1).Empty()
	q := NewQueue(s, Rules{Order: Fewest})
	if err := q.Adopt(Job{ID: 1000, GPUs: 6, DurationMS: 1}, Placement{GPUs: 6, Servers: s.idleServers(nil, 0, 6)}, 1); err != nil {
		t.Fatal(err)
	}
	submit := func(q *Queue, j Job) {
		t.Helper()
		j.DurationMS = 1
		if err := q.Submit(j); err != nil {
			t.Fatal(err)
		}
	}
	submit(q, Job{ID: 1, GPUs: 4})
	for n := range Patience - 1 {
		submit(q, Job{ID: JobID(n + 2), GPUs: 1})
		q.Start(0)
		q.Finished(JobID(n + 2))
	}
	again := NewQueue(s, Rules{Order: Fewest})
	for _, w := range q.Waiting() {
		submit(again, w)
	}
	if w := again.Waiting(); len(w) != 1 || w[0].Passed != Patience-1 {
		t.Fatalf("%+v", w)
	}
	submit(again, Job{ID: 500, GPUs: 1})
	if got := again.Start(0); len(got) != 1 {
		t.Fatalf("%+v", got)
	}
	submit(again, Job{ID: 501, GPUs: 1})
	if got := again.Start(0); len(got) != 0 {
		t.Errorf("%+v started before a job that was passed %d times", got, Patience)
	}
}
