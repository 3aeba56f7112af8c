package wiring

import "container/heap"

// unbounded is a capacity no flow of this package reaches.
const unbounded = 1 << 30

// flow finds a circulation of least cost within bounds on every arc. Costs
// may be negative. It is the primal-dual method: arcs of negative cost start
// full, lower bounds start met, and what is then too much at some nodes is
// moved to where it lacks along cheapest paths, all paths of one length at a
// time (Dijkstra with potentials, then blocking flows among the arcs of
// reduced cost 0).
type flow struct {
	nodes  int
	from   []int32 // of arc a; arc 2a runs forward, 2a+1 back
	low    []int32
	over   []int32 // of the nodes: what arrives and does not leave
	to     []int32
	room   []int32
	cost   []int32
	start  []int32 // of node n in order: its arcs are order[start[n]:start[n+1]]
	order  []int32
	high   []int64 // potentials
	dist   []int64
	level  []int32
	cursor []int32
	queue  []int32
	heap   byDist
}

func newFlow(nodes, arcs int) *flow {
	return &flow{
		nodes: nodes,
		from:  make([]int32, 0, arcs), low: make([]int32, 0, arcs),
		to: make([]int32, 0, 2*arcs), room: make([]int32, 0, 2*arcs), cost: make([]int32, 0, 2*arcs),
		over: make([]int32, nodes),
	}
}

// arcs is the number of the next arc.
func (f *flow) arcs() int { return len(f.from) }

// arc adds an arc with bounds on its flow and a cost a unit.
func (f *flow) arc(from, to, low, high, cost int) {
	f.from = append(f.from, int32(from))
	f.to = append(f.to, int32(to), int32(from))
	f.cost = append(f.cost, int32(cost), int32(-cost))
	f.low = append(f.low, int32(low))
	begin := low
	if cost < 0 {
		begin = high
	}
	f.room = append(f.room, int32(high-begin), int32(begin-low))
	f.over[to] += int32(begin)
	f.over[from] -= int32(begin)
}

// on is the flow on an arc.
func (f *flow) on(arc int) int { return int(f.low[arc] + f.room[2*arc+1]) }

// solve reports whether a circulation within the bounds exists; the flow is
// then one of least cost.
func (f *flow) solve() bool {
	f.index()
	f.high = make([]int64, f.nodes)
	f.dist = make([]int64, f.nodes)
	f.level = make([]int32, f.nodes)
	f.cursor = make([]int32, f.nodes)
	f.queue = make([]int32, 0, f.nodes)
	for {
		rest := false
		for _, x := range f.over {
			rest = rest || x > 0
		}
		if !rest {
			return true
		}
		if !f.reach() {
			return false
		}
		for f.layers() {
			for n := range int32(f.nodes) {
				for f.over[n] > 0 {
					got := f.push(n, f.over[n])
					if got == 0 {
						break
					}
					f.over[n] -= got
				}
			}
		}
	}
}

func (f *flow) index() {
	f.start = make([]int32, f.nodes+1)
	f.order = make([]int32, len(f.to))
	for a := range f.to {
		f.start[f.to[a^1]+1]++
	}
	for n := range f.nodes {
		f.start[n+1] += f.start[n]
	}
	at := append([]int32(nil), f.start[:f.nodes]...)
	for a := range f.to {
		n := f.to[a^1]
		f.order[at[n]] = int32(a)
		at[n]++
	}
}

const far = int64(1) << 60

// reach finds the distance of every node from those with too much, by reduced
// cost, up to the nearest that lacks, and moves the potentials.
func (f *flow) reach() bool {
	f.heap = f.heap[:0]
	for n := range f.dist {
		f.dist[n] = far
		if f.over[n] > 0 {
			f.dist[n] = 0
			f.heap = append(f.heap, heapItem{0, int32(n)})
		}
	}
	nearest := far
	for len(f.heap) > 0 {
		top := heap.Pop(&f.heap).(heapItem)
		if top.dist > f.dist[top.node] {
			continue
		}
		if f.over[top.node] < 0 {
			nearest = top.dist
			break
		}
		for _, a := range f.order[f.start[top.node]:f.start[top.node+1]] {
			if f.room[a] == 0 {
				continue
			}
			m := f.to[a]
			d := top.dist + int64(f.cost[a]) + f.high[top.node] - f.high[m]
			if d < f.dist[m] {
				f.dist[m] = d
				heap.Push(&f.heap, heapItem{d, m})
			}
		}
	}
	if nearest == far {
		return false
	}
	for n := range f.high {
		f.high[n] += min(f.dist[n], nearest)
	}
	return true
}

// layers numbers the nodes by hops from those with too much, over arcs of
// reduced cost 0, and reports whether one that lacks is reached.
func (f *flow) layers() bool {
	f.queue = f.queue[:0]
	for n := range f.level {
		f.level[n] = -1
		if f.over[n] > 0 {
			f.level[n] = 0
			f.queue = append(f.queue, int32(n))
		}
	}
	copy(f.cursor, f.start)
	found := false
	for q := 0; q < len(f.queue); q++ {
		n := f.queue[q]
		for _, a := range f.order[f.start[n]:f.start[n+1]] {
			m := f.to[a]
			if f.room[a] > 0 && f.level[m] < 0 && int64(f.cost[a])+f.high[n] == f.high[m] {
				f.level[m] = f.level[n] + 1
				f.queue = append(f.queue, m)
				found = found || f.over[m] < 0
			}
		}
	}
	return found
}

// push sends up to most units from a node down the layers to one that lacks.
func (f *flow) push(n, most int32) int32 {
	if f.over[n] < 0 {
		got := min(most, -f.over[n])
		f.over[n] += got
		return got
	}
	for ; f.cursor[n] < f.start[n+1]; f.cursor[n]++ {
		a := f.order[f.cursor[n]]
		m := f.to[a]
		if f.room[a] == 0 || f.level[m] != f.level[n]+1 || int64(f.cost[a])+f.high[n] != f.high[m] {
			continue
		}
		if got := f.push(m, min(most, f.room[a])); got > 0 {
			f.room[a] -= got
			f.room[a^1] += got
			return got
		}
	}
	return 0
}

type heapItem struct {
	dist int64
	node int32
}

// byDist is a heap by distance, then node, so that ties fall the same way everywhere.
type byDist []heapItem

func (h byDist) Len() int      { return len(h) }
func (h byDist) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *byDist) Push(x any)   { *h = append(*h, x.(heapItem)) }

func (h byDist) Less(i, j int) bool {
	return h[i].dist < h[j].dist || h[i].dist == h[j].dist && h[i].node < h[j].node
}

func (h *byDist) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}
