package study

import (
	"slices"

	"ringlight/planner/isolate"
	"ringlight/sim/flow"
)

// ringHouse is InfiniteHBD: servers in the order of their fibres, each of which
// reaches K servers on, whatever these are: in use by others or out of order.
// A job is rings of equally many servers; what goes between GPUs of a ring goes
// around it, the rest over a Clos with balanced ECMP.
type ringHouse struct {
	leaves
	traffic *jctTraffic
	order   []int // servers, along the fibres
	hops    int
	most    int             // servers of a ring
	left    []int           // GPUs of a server
	rings   map[int][][]int // of a job that has whole servers
	server  map[int]int     // of a job that has a part of one
}

func newRingHouse(c CompareConfig, base leaves, seed uint64) (house, *flow.Sim, error) {
	traffic, err := newJCTTraffic(c.Cluster, base.rates, StrategyBalanced, seed, flow.Fullest)
	if err != nil {
		return nil, nil, err
	}
	n := c.Cluster.GPUsTotal() / base.perServer
	h := &ringHouse{leaves: base, traffic: traffic, order: make([]int, n), hops: c.Hops, most: c.Ring / base.perServer,
		left: make([]int, n), rings: map[int][][]int{}, server: map[int]int{}}
	// The halves of a server of the trace are not side by side, see Layout.
	for s, place := range (Layout{}).places(Size{Nodes: n, GPUsPerNode: base.perServer}) {
		h.order[place], h.left[s] = s, base.perServer
	}
	return h, traffic.sim, nil
}

func (h *ringHouse) place(job int) ([]int, isolate.Cause, error) {
	if gpus := h.talks[job].gpus; gpus <= h.perServer {
		s := h.part(gpus)
		if s < 0 {
			return nil, isolate.ByGPU, nil
		}
		h.left[s] -= gpus
		h.server[job] = s
		return []int{s}, isolate.Fits, nil
	}
	servers := (h.talks[job].gpus + h.perServer - 1) / h.perServer
	if idle := sumOf(h.left, func(gpus int) int { return gpus / h.perServer }); idle < servers {
		return nil, isolate.ByGPU, nil
	}
	// Rather than wait for long rings, shorter ones now: a Clos is there.
	for size := min(servers, h.most); size > 0; size-- {
		if servers%size != 0 {
			continue
		}
		rings, all := h.lay(servers/size, size)
		if rings != nil {
			h.rings[job] = rings
			return all, isolate.Fits, nil
		}
	}
	return nil, isolate.ByNetwork, nil
}

// lay takes servers for so many rings of one size; nil: it finds too few side by
// side, and takes none.
func (h *ringHouse) lay(count, size int) (rings [][]int, all []int) {
	for range count {
		ring := h.find(size)
		if ring == nil {
			h.give(all)
			return nil, nil
		}
		for _, s := range ring {
			h.left[s] = 0
		}
		rings, all = append(rings, ring), append(all, ring...)
	}
	return rings, all
}

func (h *ringHouse) give(servers []int) {
	for _, s := range servers {
		h.left[s] = h.perServer
	}
}

// runs are the idle servers in pieces whose neighbours a fibre joins, by their
// places along the fibres; around the end where that is one piece.
func (h *ringHouse) runs() (out [][]int) {
	n := len(h.order)
	for place, s := range h.order {
		if h.left[s] < h.perServer {
			continue
		}
		if k := len(out) - 1; k >= 0 && place-out[k][len(out[k])-1] <= h.hops {
			out[k] = append(out[k], place)
		} else {
			out = append(out, []int{place})
		}
	}
	if k := len(out) - 1; k > 0 && out[0][0]+n-out[k][len(out[k])-1] <= h.hops {
		out[k] = append(out[k], each(out[0], func(place int) int { return place + n })...)
		out = out[1:]
	}
	return out
}

// find is so many idle servers one after the other: those with fewest others
// between them, of the shortest piece, so that little is cut.
func (h *ringHouse) find(size int) []int {
	var best []int
	least := [2]int{}
	for _, run := range h.runs() {
		for i := 0; i+size <= len(run); i++ {
			key := [2]int{run[i+size-1] - run[i], len(run)}
			if best == nil || key[0] < least[0] || key[0] == least[0] && key[1] < least[1] {
				best, least = run[i:i+size], key
			}
		}
	}
	return each(best, func(place int) int { return h.order[place%len(h.order)] })
}

// part is the server with fewest free GPUs that suffice; of idle ones, one of
// the shortest piece.
func (h *ringHouse) part(gpus int) int {
	best := -1
	for s, left := range h.left {
		if left >= gpus && left < h.perServer && (best < 0 || left < h.left[best]) {
			best = s
		}
	}
	if best >= 0 {
		return best
	}
	if one := h.find(1); one != nil {
		return one[0]
	}
	return -1
}

func (h *ringHouse) free(job int) {
	if s, ok := h.server[job]; ok {
		h.left[s] += h.talks[job].gpus
		delete(h.server, job)
		return
	}
	h.traffic.release(job)
	for _, ring := range h.rings[job] {
		h.give(ring)
	}
	delete(h.rings, job)
}

func (h *ringHouse) withhold(server int, out bool) {
	h.left[server] = 0
	if !out {
		h.left[server] = h.perServer
	}
}

// circuits: a ring is made by transceivers of its servers, in less than a
// millisecond.
func (h *ringHouse) circuits(int) bool { return false }

func (h *ringHouse) work(job int, steps int64) (*work, error) {
	t, rings := &h.talks[job], h.rings[job]
	if t.silent() {
		return fixedWork(t, 0, steps), nil
	}
	n := len(rings[0]) * h.perServer // GPUs of a ring
	scatter := flow.TransferTime(scaled(t.bytes[reducing], int64(n-1), int64(n)), h.near)
	meet := flow.TransferTime(t.bytes[exchanging]*int64((n*n-n%2)/4), h.near) // distances of all others, both ways
	if len(rings) == 1 {
		return fixedWork(t, meet+2*scatter, steps), nil
	}
	placed := h.traffic.put(job, gpusOf(slices.Concat(rings...), h.perServer))
	sc := &flow.Script{Iterations: steps, Stages: []flow.Stage{{{Compute: t.compute}}}}
	all := len(placed.GPUs)
	if t.bytes[exchanging] > 0 {
		rounds, err := placed.Rounds(beyond(flow.AllToAll(all, t.bytes[exchanging]), n))
		if err != nil {
			return nil, err
		}
		sc.Stages = append(sc.Stages, flow.Stage{{Compute: meet}, {Rounds: rounds}})
	}
	if t.bytes[reducing] > 0 {
		between := flow.HierarchicalRing(all, n, t.bytes[reducing])
		if n > 1 {
			between = between[1:2]
		}
		rounds, err := placed.Rounds(between)
		if err != nil {
			return nil, err
		}
		sc.Stages = append(sc.Stages, flow.Stage{{Compute: scatter}}, flow.Stage{{Rounds: rounds}}, flow.Stage{{Compute: scatter}})
	}
	return &work{script: sc}, nil
}
