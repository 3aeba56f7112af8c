package planner

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/isolate"
	"ringlight/planner/job"
	"ringlight/proto"
)

// onServers is a wish of all GPUs of some servers, by the names that people call them.
func (w *coreWorld) onServers(servers []int) string {
	var names []string
	for _, s := range servers {
		names = append(names, fmt.Sprintf("%q", w.fab.ServerName(s)))
	}
	return fmt.Sprintf(`{"circuits":{},"nodes":[%s]}`, strings.Join(names, ","))
}

// Goal: a wish of circuits that names its servers is designed over just these, whichever
// they are, or refused with what would do. Over fixed links of leaves those of one leaf do,
// and as many of each; over optical ones what planner/isolate joins of a core that has no
// others; elsewhere any.
// Method: sets of servers of small cores, all with RINGLIGHT_WALKS, each on an empty core;
// light as the mirrors have it.
func TestJobsOnServersThatTheyName(t *testing.T) {
	pods := &fabric.Core{Pods: 2, LeavesPerPod: 2, SpinesPerPod: 2, SpinePorts: 4, SwitchPorts: 8, LeafLinks: 2, ServersPerLeaf: 2, GPUsPerServer: 2, Wiring: fabric.Interleaved, IotaMille: 1000}
	any, stride := func([]int) bool { return true }, 6
	if os.Getenv("RINGLIGHT_WALKS") != "" {
		stride = 1
	}
	optical := isolate.Optical(4, 4, 2, 4, 2)
	optical.Optics.AnyToAny = true
	for _, c := range []struct {
		name string
		core *fabric.Core
		fits func(perLeaf []int) bool
	}{
		{"pods", pods, any},
		{"direct", &fabric.Core{Kind: fabric.KindDirect, GPUsPerServer: 2, Direct: &fabric.Direct{Servers: 8, Degree: 2}}, any},
		{"leaves and optical spines", leafSpine(4, 4, 4, 2, 2), func(perLeaf []int) bool {
			var free [][]int
			gpus := 0
			for _, n := range perLeaf[:4] {
				free = append(free, append(slices.Repeat([]int{2}, n), make([]int, 2-n)...))
				gpus += 2 * n
			}
			s, err := optical.With(free)
			if err != nil {
				t.Fatal(err)
			}
			_, cause := s.Place(gpus)
			return cause == isolate.Fits
		}},
		{"leaves and fixed spines", leafSpine(4, 4, 4, 2, 0), level},
	} {
		w := startedWorld(t, c.core)
		all, ready, refused := c.core.Servers(), 0, 0
		for set := 1; set < 1<<all; set += stride {
			var servers []int
			perLeaf := make([]int, all)
			for s := range all {
				if set>>s&1 == 1 {
					servers = append(servers, s)
					perLeaf[s/max(1, c.core.LeafServers())]++
				}
			}
			r := w.put("a", w.onServers(servers))
			if !c.fits(perLeaf) {
				if refused++; r.Code != proto.Invalid || r.Field != "nodes" && r.Field != "circuits.servers" || r.Limit == "" || r.Reason == "" {
					t.Errorf("%s: %v: %+v", c.name, servers, r)
				}
				continue
			}
			w.run(5 * time.Second)
			v := w.job("a")
			var want []string
			for _, s := range servers {
				want = append(want, w.fab.ServerName(s))
			}
			slices.Sort(want)
			if r.Code != proto.OK || v.State != job.Ready || !slices.Equal(serversOf(v), want) || w.unlit() != "" || v.GPUsTotal != 2*len(servers) {
				t.Errorf("%s: %v: %+v; %s, %s, on %v, %s", c.name, servers, r, v.State, v.Cause, serversOf(v), w.unlit())
			}
			ready++
			w.release("a")
			w.run(3 * time.Second)
		}
		t.Logf("%s: %d sets ready, %d refused", c.name, ready, refused)
		if ready == 0 {
			t.Errorf("%s: nothing was ready", c.name)
		}
	}
}

// level: one leaf's servers, or as many of each leaf.
func level(perLeaf []int) bool {
	least, most, leaves := 1<<30, 0, 0
	for _, n := range perLeaf {
		if n > 0 {
			least, most, leaves = min(least, n), max(most, n), leaves+1
		}
	}
	return leaves == 1 || least == most
}

// Goal: among others that come and go, a job that names its servers starts at once where
// they are free and can be joined, whoever waits; never has another, neither when they
// are taken nor when they are out; no server is two jobs'; over restarts too.
// Method: random jobs, of which half name servers, drains and restarts on every kind of
// core. RINGLIGHT_WALKS sets how many runs.
func TestServersByNameAmongOthers(t *testing.T) {
	ready, waited := 0, 0
	for seed := range uint64(walks() / 4) {
		r := rand.New(rand.NewPCG(seed, 30))
		k := circuitKinds[seed%uint64(len(circuitKinds))]
		w := startedWorld(t, k.core())
		all, named := w.fab.Core.Servers(), map[string][]string{}
		drained := ""
		for n := range 12 {
			id := fmt.Sprint("j", n)
			switch x := r.IntN(8); {
			case x == 0 && drained == "":
				drained = w.fab.ServerName(r.IntN(all))
				w.drain(proto.NounDrain, drained)
			case x == 0:
				w.drain(proto.NounUndrain, drained)
				drained = ""
			case x == 1:
				w.start()
				w.quiet(10 * time.Minute)
			case x == 2:
				w.release(fmt.Sprint("j", r.IntN(n+1)))
			case x < 6:
				servers := r.Perm(all)[:1+r.IntN(min(all, 6))]
				if w.put(id, w.onServers(servers)).Code == proto.OK {
					for _, s := range servers {
						named[id] = append(named[id], w.fab.ServerName(s))
					}
					slices.Sort(named[id])
				}
			default:
				w.put(id, fmt.Sprintf(`{"circuits":{"servers":%d}}`, 1+r.IntN(max(1, all/3))))
			}
			w.run(time.Duration(r.IntN(4000)) * time.Millisecond)
			owner := map[string]string{}
			for _, v := range listed(w.p) {
				v = w.job(v.ID)
				has, want := serversOf(v), named[v.ID]
				if want != nil && len(has) > 0 && !slices.Equal(has, want) {
					t.Fatalf("seed %d: %s named %v and has %v", seed, v.ID, want, has)
				}
				for _, s := range has {
					if owner[s] != "" {
						t.Fatalf("seed %d: %s is of %s and %s", seed, s, owner[s], v.ID)
					}
					owner[s] = v.ID
				}
			}
		}
		w.drain(proto.NounUndrain, drained)
		for len(listed(w.p)) > 0 { // the others end: whoever named servers gets them
			w.run(20 * time.Second)
			for _, v := range listed(w.p) {
				if named[v.ID] == nil || v.State == job.Ready {
					if named[v.ID] != nil {
						ready++
					}
					w.release(v.ID)
					continue
				}
				waited++
			}
			if waited > 1000 {
				t.Fatalf("seed %d: %s: %s waits for ever\n%s", seed, k.name, listed(w.p)[0].ID, listed(w.p)[0].Cause)
			}
		}
	}
	t.Logf("%d jobs on servers that they named became ready, %d looks at one that waits", ready, waited)
	if ready == 0 || waited == 0 {
		t.Error("nothing happened")
	}
}

// Goal: what cannot be is refused by field.
func TestBadServersByNameAreRefused(t *testing.T) {
	w := startedWorld(t, &fabric.Core{Kind: fabric.KindDirect, GPUsPerServer: 2, Direct: &fabric.Direct{Servers: 8, Degree: 2}})
	w.put("before", `{"circuits":{"servers":2}}`)
	for wish, field := range map[string]string{ // any order: each by itself
		`{"circuits":{},"nodes":["nobody"]}`:                                   "nodes[0]",
		`{"circuits":{},"nodes":["server0",8]}`:                                "nodes[1]",
		`{"circuits":{},"nodes":[]}`:                                           "nodes",
		`{"circuits":{"servers":3},"nodes":["server0","server1"]}`:             "nodes",
		`{"circuits":{"gpus_total":7},"nodes":["server0"]}`:                    "nodes",
		`{"circuits":{"servers":2,"next":"before"},"nodes":[0,1]}`:             "circuits.next",
		`{"circuits":{"servers":2},"nodes":["server[0-1]"],"exclude":["x"]}`:   "exclude",
		`{"circuits":{"servers":2,"pods":[0]},"nodes":["server[0-1]"]}`:        "circuits.pods",
		`{"circuits":{"topology":{"degree":2}},"nodes":["server[0-7]",0,"x"]}`: "nodes[2]",
	} {
		if r := w.put("a", wish); r.Code != proto.Invalid || r.Field != field || r.Limit == "" {
			t.Errorf("%s: %+v, want %s", wish, r, field)
		}
	}
	if r := w.put("a", `{"circuits":{"topology":{"degree":2}},"nodes":["server[1,3-4]",7]}`); r.Code != proto.OK {
		t.Errorf("%+v", r)
	}
	if most := bits.OnesCount(0b10011010); len(w.job("a").Wish.Nodes) != 2 || w.job("a").Wish.Circuits.Servers != uint32(most) {
		t.Errorf("%+v", w.job("a").Wish)
	}
}
