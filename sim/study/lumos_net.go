package study

import (
	"cmp"
	"slices"

	"ringlight/mzi/detmath"
	"ringlight/planner/sched"
	"ringlight/planner/wiring"
	"ringlight/sim/flow"
)

const (
	chipGbps = 25_600
	fastGbps = 1600
	// unit is what a Gbit/s is in the simulation: a job of a week sends more at
	// once than a flow may in bits.
	unit = 1_000_000
)

// shape is how a network is built of chips with half of their ports down.
type shape struct {
	network                          string
	gbps                             int // of a port
	pods, leaves, spines, leafServer int // leaves and spines of a pod, servers of a leaf
	perServer                        int // GPUs
	byRails                          bool
}

func (s shape) leafGPUs() int { return s.leafServer * s.perServer }
func (s shape) podGPUs() int  { return s.leaves * s.leafGPUs() }

// lumosShape builds a network for so many GPUs. [LUMOS] sec 2.1: three tiers
// of chips with 2h ports reach 2h^3 GPUs, so more GPUs have slower ports.
func lumosShape(network string, in LumosInputs) shape {
	if network == LumosBest {
		return shape{network, fastGbps, 1, 1, 1, in.GPUs / gpusPerServer, gpusPerServer, false}
	}
	gbps := fastGbps
	if network == LumosClos {
		for h := chipGbps / gbps / 2; 2*h*h*h < in.GPUs; h = chipGbps / gbps / 2 {
			gbps /= 2
		}
	}
	half := chipGbps / gbps / 2
	s := shape{network, gbps, in.GPUs / (half * half), half, half, half / gpusPerServer, gpusPerServer, in.Rails}
	if network == LumosClos && in.Gbps > 0 {
		s.gbps = in.Gbps // of other chips
	}
	return s
}

// net is the links of a network and the way of each flow.
type net struct {
	shape
	core     sched.Core
	capacity []int64
	gpus     int
	ecmp     bool
	pooled   bool               // circuits carry flows of whoever is between their pods
	between  map[[2]int][]lane  // then: of two pods
	lifted   map[flow.Link]bool // then: of no job any more, and of flows
	ideal    bool
	counts   bool // how many connections a link has is of use
	seed     uint64
	firstUp  int         // of leaves; then their downlinks
	firstTop int         // between spines and what is above: circuits, or links to a core switch
	load     []int32     // of a link of a Clos: connections
	spare    []flow.Link // circuits that nobody has
}

func newNet(cell LumosCell) *net {
	n := lumosShape(cell.Network, cell.LumosInputs).net(cell.Seed)
	way := cmp.Or(cell.Routing, cell.Core)
	n.ecmp, n.ideal = way == RouteECMP, way == RouteIdeal || cell.Network == LumosBest
	n.pooled = cell.Network == LumosCore && way != RoutePlanned && !n.ideal
	n.counts = n.pooled || cell.Network == LumosClos && !n.ecmp && !n.ideal
	return n
}

// net is a network of this shape.
func (s shape) net(seed uint64) *net {
	n := &net{between: map[[2]int][]lane{}, lifted: map[flow.Link]bool{}, shape: s, gpus: s.pods * s.podGPUs(), seed: seed}
	n.core = sched.Core{Leaves: wiring.Leaves{Pods: s.pods, Spines: s.spines, Tau: 1}, GPUsPerServer: s.perServer}
	for p := range s.pods {
		for range s.leaves {
			n.core.PodOf = append(n.core.PodOf, int32(p))
			n.core.Servers = append(n.core.Servers, s.leafServer)
		}
	}
	leaves := s.pods * s.leaves
	n.firstUp = 2 * n.gpus
	n.firstTop = n.firstUp + 2*leaves*s.spines
	top := 2 * s.pods * s.spines * s.leaves // a link up and one down for each port of a spine
	n.capacity = slices.Repeat([]int64{int64(s.gbps) * unit}, n.firstTop+top)
	n.load = make([]int32, len(n.capacity))
	if s.network == LumosCore {
		for range top { // those that flows stay on when their job is gone are beside the ports
			n.capacity, n.load = append(n.capacity, int64(s.gbps)*unit), append(n.load, 0)
		}
		for l := n.firstTop + 2*top - 1; l >= n.firstTop; l-- {
			n.spare = append(n.spare, flow.Link(l))
		}
	}
	return n
}

// leaf is that of a GPU.
func (n *net) leaf(gpu int) int {
	if !n.byRails {
		return gpu / n.leafGPUs()
	}
	pod, server := gpu/n.podGPUs(), gpu%n.podGPUs()/n.perServer
	return pod*n.leaves + server/n.leafGPUs()*n.perServer + gpu%n.perServer
}

func (n *net) up(leaf, spine int) flow.Link { return flow.Link(n.firstUp + leaf*n.spines + spine) }

func (n *net) down(leaf, spine int) flow.Link {
	return flow.Link(n.firstUp + (n.pods*n.leaves+leaf)*n.spines + spine)
}

// climb is the link from a spine of a pod to a core switch, sink the one back;
// a spine has as many core switches as ports.
func (n *net) climb(pod, spine, core int) flow.Link {
	return flow.Link(n.firstTop + (pod*n.spines+spine)*n.leaves + core)
}

func (n *net) sink(pod, spine, core int) flow.Link {
	return n.climb(n.pods+pod, spine, core)
}

// near is the path of a flow that no choice is left for, nil where one is.
func (n *net) near(from, to int) []flow.Link {
	if n.ideal || n.leaf(from) == n.leaf(to) {
		return []flow.Link{flow.Link(from), flow.Link(n.gpus + to)}
	}
	return nil
}

// within is the path through a spine of the pod of both.
func (n *net) within(from, spine, to int) []flow.Link {
	return []flow.Link{flow.Link(from), n.up(n.leaf(from), spine), n.down(n.leaf(to), spine), flow.Link(n.gpus + to)}
}

// clos is the path of a connection through a Clos, between two leaves.
func (n *net) clos(from, to, job int) []flow.Link {
	p, q := n.leaf(from)/n.leaves, n.leaf(to)/n.leaves
	cores := n.leaves
	if p == q {
		cores = 1
	}
	path := func(spine, core int) []flow.Link {
		if p == q {
			return n.within(from, spine, to)
		}
		return []flow.Link{flow.Link(from), n.up(n.leaf(from), spine), n.climb(p, spine, core), n.sink(q, spine, core), n.down(n.leaf(to), spine), flow.Link(n.gpus + to)}
	}
	if n.ecmp {
		h := detmath.Hash(n.seed, uint64(from), uint64(to), uint64(job))
		return n.counted(path(int(h%uint64(n.spines)), int(h>>32%uint64(cores))))
	}
	var best [2]int
	least, found := [2]int32{}, false
	for spine := range n.spines {
		a, b := n.load[n.up(n.leaf(from), spine)], n.load[n.down(n.leaf(to), spine)]
		for core := range cores {
			worst, all := max(a, b), a+b
			if p != q {
				c, d := n.load[n.climb(p, spine, core)], n.load[n.sink(q, spine, core)]
				worst, all = max(worst, c, d), all+c+d
			}
			if !found || worst < least[0] || worst == least[0] && all < least[1] {
				best, least, found = [2]int{spine, core}, [2]int32{worst, all}, true
			}
		}
	}
	return n.counted(path(best[0], best[1]))
}

// counted is a way on which one connection more is, where that is of use.
func (n *net) counted(way []flow.Link) []flow.Link {
	if n.counts {
		n.count(way, 1)
	}
	return way
}

// release takes the connections of a job off their links.
func (n *net) release(paths [][]flow.Link) {
	if !n.counts {
		return
	}
	for _, path := range paths {
		n.count(path, -1)
		for _, l := range path {
			if n.lifted[l] && n.load[l] == 0 {
				n.spare = append(n.spare, l)
				delete(n.lifted, l)
			}
		}
	}
}

func (n *net) count(path []flow.Link, by int32) {
	for _, l := range path[1 : len(path)-1] { // near paths have none
		n.load[l] += by
	}
}
