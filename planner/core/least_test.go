package core

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

// afterOut takes jobs as they are designed, and then parts out; it gives what becomes of
// them.
func afterOut(t *testing.T, c *Circuits, specs []proto.JobSpec, parts []string) design {
	t.Helper()
	d := c.design(c.jobs.list(specs), true)
	if len(d.change.Waiting) > 0 {
		t.Fatalf("%v wait", d.change.Waiting)
	}
	c.jobs.all, c.maps = d.jobs, d.maps
	why := map[string]string{}
	for _, part := range parts {
		why[part] = "test"
	}
	if c.out = newOut(c.fab, why); len(c.out.why) != len(why) {
		t.Fatalf("%v: not all are parts", parts)
	}
	return c.design(c.jobs.all, false)
}

// Goal: of links between pods no more are lost by what is out than must be.
// Method: small cores on which every way to lay the links of a job is tried.
func TestLeastLinksOfPodsAreLost(t *testing.T) {
	short, worse := 0, 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 26))
		k := &fabric.Core{Pods: 3, LeavesPerPod: 1, SpinesPerPod: 2, SpinePorts: 2, SwitchPorts: 8, LeafLinks: 2, ServersPerLeaf: 2, GPUsPerServer: 2, Wiring: fabric.Interleaved, IotaMille: 1000}
		c := readyCircuits(k)
		var parts []string
		for range 1 + r.IntN(3) {
			parts = append(parts, []string{fmt.Sprintf("switch%d", r.IntN(4)), fmt.Sprintf("switch%d/a%d", r.IntN(4), r.IntN(3)), fmt.Sprintf("switch%d/b%d", r.IntN(4), r.IntN(3)),
				fmt.Sprintf("leaf%d/up%d", r.IntN(3), r.IntN(4)), fmt.Sprintf("pod%d-spine%d", r.IntN(3), r.IntN(2))}[r.IntN(5)])
		}
		d := afterOut(t, c, []proto.JobSpec{spec(1, 6, 2, 1)}, parts)
		j := d.jobs[0]
		var links []leaves
		for n, w := range j.placed.Wants {
			for range j.placed.Links[n] {
				links = append(links, leaves{w.A, w.B})
			}
		}
		gone := func(s, side, port int) bool {
			_, is := c.out.ports[fabric.SwitchPort{Switch: s, Side: side, Port: port}]
			return is
		}
		room, ports := map[[2]int]int{}, map[[3]int]bool{}
		for l := range 3 {
			for h := range 2 {
				for nth := range 2 {
					if _, is := c.out.links[fabric.LeafLink{Leaf: l, Spine: h, Nth: nth}]; !is {
						room[[2]int{l, h}]++
					}
				}
			}
		}
		best := 0
		var try func(n, lit int)
		try = func(n, lit int) {
			if best = max(best, lit); n == len(links) || lit+len(links)-n <= best {
				return
			}
			for h := range 2 {
				for turn := range 2 {
					from, to := links[n].a, links[n].b
					if turn == 1 {
						from, to = to, from
					}
					even, odd := 2*h, 2*h+1
					a, b := [3]int{h, 0, from}, [3]int{h, 1, to}
					if gone(even, 0, from) || gone(even, 1, to) || gone(odd, 0, to) || gone(odd, 1, from) || ports[a] || ports[b] || room[[2]int{from, h}] == 0 || room[[2]int{to, h}] == 0 {
						continue
					}
					ports[a], ports[b] = true, true
					room[[2]int{from, h}]--
					room[[2]int{to, h}]--
					try(n+1, lit+1)
					ports[a], ports[b] = false, false
					room[[2]int{from, h}]++
					room[[2]int{to, h}]++
				}
			}
			try(n+1, lit)
		}
		try(0, 0)
		if best < len(links) {
			short++
		}
		if got := int(d.change.Realised); got != best {
			worse++
			t.Errorf("seed %d: %v: %d of %d links, and %d can be", seed, parts, got, len(links), best)
		}
	}
	if t.Logf("%d of 300 lose some, %d more than they must", short, worse); short == 0 {
		t.Error("nothing was lost")
	}
}

// Goal: of servers joined directly no more links are lost than must be.
// Method: small cores on which a job's ranks are tried on all servers and fibres.
func TestLeastDirectLinksAreLost(t *testing.T) {
	short, worse := 0, 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 27))
		c := readyCircuits(&fabric.Core{Kind: fabric.KindDirect, GPUsPerServer: 2, Direct: &fabric.Direct{Servers: 4, Degree: 2}})
		var parts []string
		for range 1 + r.IntN(4) {
			parts = append(parts, []string{fmt.Sprint(r.IntN(4)), fmt.Sprintf("switch%d/a%d", r.IntN(2), r.IntN(8)), fmt.Sprintf("switch%d/b%d", r.IntN(2), r.IntN(8)),
				fmt.Sprintf("%d/if%d", r.IntN(4), r.IntN(2))}[r.IntN(4)])
		}
		d := afterOut(t, c, []proto.JobSpec{{Job: 1, TP: 1, EP: 1, PP: 1, Servers: 3}}, parts)
		of := designing(c.designer, standingOf(c)).(direct)
		s := *d.jobs[0].shard
		got, best := len(of.dark(&s)), 1<<30
		for n := range 64 * 8 {
			s.Servers, s.Path = []int{n & 3, n >> 2 & 3, n >> 4 & 3}, []uint8{uint8(n >> 6 & 1), uint8(n >> 7 & 1), uint8(n >> 8 & 1)}
			strange := c.out.of(3) && (s.Servers[0] == 3 || s.Servers[1] == 3 || s.Servers[2] == 3) // what is out is given to nobody; it had 0 to 2
			if s.Servers[0] != s.Servers[1] && s.Servers[0] != s.Servers[2] && s.Servers[1] != s.Servers[2] && !strange {
				best = min(best, len(of.dark(&s)))
			}
		}
		if best > 0 {
			short++
		}
		if got != best {
			worse++
			t.Errorf("seed %d: %v: %d dark, and %d must be", seed, parts, got, best)
		}
	}
	if t.Logf("%d of 300 lose some, %d more than they must", short, worse); short == 0 {
		t.Error("nothing was lost")
	}
}
