package core

import (
	"cmp"
	"fmt"
	"slices"

	"ringlight/planner/fabric"
	"ringlight/planner/isolate"
	"ringlight/planner/topo"
	"ringlight/proto"
)

// Route is what one leaf, spine or server does with packets from one address to
// another. Addresses have numbers: of GPU g of a server server * GPUs of a server + g;
// of servers joined directly those of their interfaces, server * degree + interface.
type Route struct {
	At       string // leaf3, pod0-spine1, spine2, or server5 of servers joined directly
	In       string // the port by which it comes; "": any
	From, To int    // addresses; -1: any
	Out      string // the port by which it goes; "": as it would without
	Next     string // where that leads: a port of another; "": as light goes
}

// maxRouted is how many GPUs of a stage have routes for an all-to-all, and maxPassed
// how many servers joined directly for what they do not send each other by plan.
// chosen: some ten thousand routes of a job, as many as the smallest switches hold.
const maxRouted, maxPassed = 128, 64

// routesOf are a job's, by where they are, and there the first that fits a packet
// holds; why says what is left out.
func routesOf(of designer, j *job) (out []Route, why string) {
	switch d := of.(type) {
	case interleaved:
		out, why = d.routes(j)
	case isolated:
		out = d.leafRoutes(j)
	case direct:
		out, why = d.serverRoutes(j)
	}
	class := func(r Route) int {
		switch {
		case r.From >= 0 && r.To >= 0:
			return 0
		case r.To >= 0 && r.Out == "":
			return 1
		case r.To >= 0:
			return 2
		}
		return 3
	}
	slices.SortStableFunc(out, func(a, b Route) int { return cmp.Or(cmp.Compare(a.At, b.At), class(a)-class(b)) })
	return out, why
}

// router writes routes of a job between pods down.
type router struct {
	core  *interleaved
	ranks Ranks
	ways  map[leaves][]*way // by leaves, and by pods
	pods  map[leaves][]*way
	out   []Route
}

func (c interleaved) routes(j *job) ([]Route, string) {
	r := router{core: &c, ranks: ranksOf(c.fab, c, j), ways: map[leaves][]*way{}, pods: map[leaves][]*way{}}
	for n := range j.ways {
		w := &j.ways[n]
		p, q := int(c.sched.PodOf[w.A]), int(c.sched.PodOf[w.B])
		if p == q || w.Map >= 0 {
			r.ways[leaves{w.A, w.B}] = append(r.ways[leaves{w.A, w.B}], w)
		}
		if w.Map >= 0 {
			r.pods[leaves{min(p, q), max(p, q)}] = append(r.pods[leaves{min(p, q), max(p, q)}], w)
		}
	}
	for _, phase := range r.ranks.flows() {
		count := map[leaves]int{}
		for _, f := range phase {
			a, b := r.leaf(f[0]), r.leaf(f[1])
			of := r.ways[leaves{min(a, b), max(a, b)}]
			if a == b || len(of) == 0 {
				continue
			}
			n := count[leaves{a, b}]
			count[leaves{a, b}]++
			w := of[n%len(of)]
			up, down := w.UpA, w.UpB
			if a != w.A {
				up, down = down, up
			}
			r.put(f, w, up, down)
		}
	}
	r.backup()
	why := ""
	if r.ranks.Collective == proto.CollectiveAllToAll {
		if n := len(r.ranks.Places) / r.ranks.Stages; n > maxRouted {
			why = fmt.Sprintf("an all-to-all of %d GPUs: routes are for at most %d", n, maxRouted)
		} else {
			for stage := range r.ranks.Stages {
				for _, step := range r.ranks.Phases(stage) {
					r.step(step)
				}
			}
		}
	}
	return r.out, why
}

// backup leads what goes between leaves that no link joins over the mesh of ports that
// no job needs: what the job's collective did not ask for, and flows whose links are out.
func (r *router) backup() {
	if !r.core.fab.Backup || len(r.ranks.Places) > maxRouted {
		return
	}
	mesh := map[leaves][]*way{} // by pods
	for at, d := range r.core.from.maps {
		r.core.layout.links(at, d, func(i, j int32, id proto.JobID) {
			if id == 0 && !r.core.from.failed(r.core.layout.slots(at, i, j)) {
				k := leaves{int(min(i, j)), int(max(i, j))}
				mesh[k] = append(mesh[k], &way{Spine: r.core.layout.groupOf(at), Map: at, From: int(i)})
			}
		})
	}
	for x := range r.ranks.Places {
		for y := range r.ranks.Places {
			a, b := r.leaf(x), r.leaf(y)
			p, q := int(r.core.sched.PodOf[a]), int(r.core.sched.PodOf[b])
			if p == q || len(r.ways[leaves{min(a, b), max(a, b)}]) > 0 || r.ranks.Collective == proto.CollectiveAllToAll && len(r.pods[leaves{min(p, q), max(p, q)}]) > 0 {
				continue
			}
			for _, w := range mesh[leaves{min(p, q), max(p, q)}] {
				if up, down := r.linkTo(a, w.Spine), r.linkTo(b, w.Spine); up >= 0 && down >= 0 {
					r.put([2]int{x, y}, w, up, down)
					break
				}
			}
		}
	}
}

// linkTo is a link of a leaf to a spine that is not out; -1: there is none.
func (r *router) linkTo(leaf, spine int) int {
	return slices.IndexFunc(isolate.Identity[int](r.core.fab.LeafLinks), func(nth int) bool {
		_, gone := r.core.from.out.links[fabric.LeafLink{Leaf: leaf, Spine: spine, Nth: nth}]
		return !gone
	})
}

func (r *router) leaf(rank int) int { return r.ranks.Places[rank].Server / r.core.fab.ServersPerLeaf }

// step gives the flows of one step of an all-to-all between pods each a circuit of its
// own, of those that its pods have, where its leaves' links have least to do.
func (r *router) step(flows [][2]int) {
	type end struct {
		at uplink
		up bool
	}
	load, taken := map[end]int{}, map[*way]map[int]bool{}
	var within []*way // of a pod: any spine
	for h := range r.core.fab.SpinesPerPod {
		within = append(within, &way{Spine: h, Map: -1})
	}
	for _, f := range flows {
		a, b := r.leaf(f[0]), r.leaf(f[1])
		p, q := int(r.core.sched.PodOf[a]), int(r.core.sched.PodOf[b])
		if a == b {
			continue
		}
		ways := r.pods[leaves{min(p, q), max(p, q)}]
		if p == q {
			ways = within
		}
		var best *way
		var ends [2]end
		least := 0
		for _, w := range ways {
			pick := func(leaf int, up bool) (e end) {
				for t := range r.core.fab.LeafLinks {
					if x := (end{uplink{leaf, w.Spine, t}, up}); t == 0 || load[x] < load[e] {
						e = x
					}
				}
				return e
			}
			x, y := pick(a, true), pick(b, false)
			cost := load[x] + load[y]
			if p != q && taken[w][p] {
				cost += 1 << 20
			}
			if best == nil || cost < least {
				best, least, ends = w, cost, [2]end{x, y}
			}
		}
		if best == nil {
			continue
		}
		if taken[best] == nil {
			taken[best] = map[int]bool{}
		}
		taken[best][p] = true
		load[ends[0]]++
		load[ends[1]]++
		r.put(f, best, ends[0].at.nth, ends[1].at.nth)
	}
}

// put is a flow's way: up by one of its leaf's links, down by one of the other's.
func (r *router) put(f [2]int, w *way, up, down int) {
	a, b := r.leaf(f[0]), r.leaf(f[1])
	p, q := int(r.core.sched.PodOf[a]), int(r.core.sched.PodOf[b])
	from, to := addressOf(r.core.fab, r.ranks.Places[f[0]]), addressOf(r.core.fab, r.ranks.Places[f[1]])
	spine := func(pod int) string { return fmt.Sprintf("pod%d-spine%d", pod, w.Spine) }
	add := func(at, out, next string) {
		r.out = append(r.out, Route{At: at, From: from, To: to, Out: out, Next: next})
	}
	if r.core.fab.Spineless { // its uplinks are the ports
		out := func(pod int) string { return fmt.Sprintf("up%d", w.Spine*r.core.fab.SpinePorts+r.spinePorts(w, pod)) }
		add(fmt.Sprintf("leaf%d", a), out(p), fmt.Sprintf("leaf%d %s", b, out(q)))
		return
	}
	leafPort := func(nth int) string { return fmt.Sprintf("up%d", w.Spine*r.core.fab.LeafLinks+nth) }
	spinePort := func(leaf, nth int) string {
		return fmt.Sprintf("down%d", leaf%r.core.fab.LeavesPerPod*r.core.fab.LeafLinks+nth)
	}
	add(fmt.Sprintf("leaf%d", a), leafPort(up), spine(p)+" "+spinePort(a, up))
	if p != q {
		far := q
		mine, its := r.spinePorts(w, p), r.spinePorts(w, q)
		add(spine(p), fmt.Sprintf("ocs%d", mine), fmt.Sprintf("%s ocs%d", spine(far), its))
	}
	add(spine(q), spinePort(b, down), fmt.Sprintf("leaf%d %s", b, leafPort(down)))
}

// spinePorts is the port of the spine of a pod at which a way's circuit ends: who
// sends through the even switch of a pair does so by the even port (planner/wiring).
func (r *router) spinePorts(w *way, pod int) int {
	k := w.Map % r.core.layout.groupMaps()
	switch {
	case r.core.layout.uniform():
		return k
	case pod == w.From:
		return 2 * k
	}
	return 2*k + 1
}

// addressOf is the number of a GPU's address.
func addressOf(fab *fabric.Core, p Place) int { return p.Server*fab.GPUsPerServer + p.GPU }

// leafRoutes are tables as routes: leaves send by source, but what stays at them,
// spines by the port that it comes by and its destination.
func (c isolated) leafRoutes(j *job) (out []Route) {
	if j.own == nil {
		return nil
	}
	places := c.places(j)
	address := func(rank int) int { return addressOf(c.fab, places[rank]) }
	of := map[int][]int{} // by leaf: its ranks
	for r, p := range places {
		leaf := p.Server / c.fab.LeafServers()
		of[leaf] = append(of[leaf], r)
	}
	local := map[int]bool{}
	p := c.detour(j)
	t := c.shape.Empty().Tables(p)
	carries := func(virtual, column int) bool { return c.carries(j, &p, virtual*p.S+column) }
	for _, l := range t.Leaves {
		at := fmt.Sprintf("leaf%d", l.Leaf)
		if !local[l.Leaf] {
			for _, r := range of[l.Leaf] {
				out = append(out, Route{At: at, From: -1, To: address(r)})
			}
		}
		local[l.Leaf] = true
		number := func(leaf, port int) int { return leaf*c.fab.GPUsPerLeaf + port }
		known := func(n int) bool {
			return slices.ContainsFunc(places, func(p Place) bool { return addressOf(c.fab, p) == n })
		}
		for i, s := range l.Sends {
			next := ""
			if !carries(l.Virtual, p.Map[i]) {
				continue
			}
			if p.S > 0 {
				v := t.VRFs[p.Map[i]]
				next = fmt.Sprintf("spine%d port%d", v.Spine, v.Ports[l.Virtual])
			} else {
				next = fmt.Sprintf("leaf%d up%d", t.Leaves[1].Leaf, t.Leaves[1].Reaches[i].Uplink)
			}
			if n := number(s.Leaf, s.Port); known(n) {
				out = append(out, Route{At: at, From: n, To: -1, Out: fmt.Sprintf("up%d", s.Uplink), Next: next})
			}
		}
		for i, s := range l.Reaches {
			if n := number(s.Leaf, s.Port); known(n) && carries(0, p.Map[i]) {
				out = append(out, Route{At: at, From: -1, To: n, Out: fmt.Sprintf("up%d", s.Uplink), Next: fmt.Sprintf("leaf%d up%d", s.Leaf, t.Leaves[0].Sends[i].Uplink)})
			}
		}
	}
	for _, v := range t.VRFs {
		at := fmt.Sprintf("spine%d", v.Spine)
		nth := slices.Index(p.Map, v.Virtual)
		for from, in := range v.Ports {
			for to, port := range v.Ports {
				if nth < 0 || !carries(from, v.Virtual) || !carries(to, v.Virtual) {
					continue
				}
				for i := range p.S {
					if r := to*p.S + i; from != to && r < len(places) {
						out = append(out, Route{At: at, In: fmt.Sprintf("port%d", in), From: -1, To: address(r), Out: fmt.Sprintf("port%d", port),
							Next: fmt.Sprintf("leaf%d up%d", t.Leaves[to].Leaf, t.Leaves[to].Sends[nth].Uplink)})
					}
				}
			}
		}
	}
	return out
}

// detour is where a job is, with others of its links in place of those of columns of
// which one carries nothing, though some rank of its virtual leaf is there.
func (c *isolated) detour(j *job) isolate.Placement {
	p, places := j.own.Placement, c.places(j)
	whole := func(column int) bool {
		return !slices.ContainsFunc(isolate.Identity[int](max(p.L*min(1, p.S), 1)), func(v int) bool {
			here := p.S == 0 || slices.ContainsFunc(places[min(v*p.S, len(places)):min((v+1)*p.S, len(places))], func(x Place) bool { return c.from.out.at(x) == "" })
			return here && !c.carries(j, &p, v*p.S+column)
		})
	}
	p.Map = slices.Clone(p.Map)
	columns := slices.Clone(j.own.Map)
	for i, at := range j.own.Map {
		if whole(at) {
			continue
		}
		for n := range columns { // the next that is whole, so that they are not all over one
			if other := columns[(i+1+n)%len(columns)]; whole(other) {
				p.Map[i] = other
				break
			}
		}
	}
	return p
}

// serverRoutes are the routes over direct links: to servers that are joined directly by
// the interface that is, on the ways that traffic was planned for, and between others
// on ways that are level.
func (c direct) serverRoutes(j *job) (out []Route, why string) {
	s := j.shard
	if s == nil || len(s.Servers) < 2 {
		return nil, ""
	}
	n := len(s.Servers)
	address := func(rank, face int) int { return s.Servers[rank]*c.fab.Degree + face }
	add := func(at, from, to, face, next int) {
		out = append(out, Route{At: fmt.Sprintf("server%d", s.Servers[at]), From: from, To: to, Out: fmt.Sprintf("if%d", face), Next: fmt.Sprintf("server%d if%d", s.Servers[next], face)})
	}
	faces := map[[2]int][]int{} // from rank to rank
	layers := make([]topo.Layer, len(s.Layers))
	for l, to := range s.Layers {
		layers[l].To = slices.Clone(to)
		for a, b := range s.joined(l) {
			if c.from.failed(c.way(s, l, a, b)) || c.isOff(s.Servers[a]) || c.isOff(s.Servers[b]) {
				layers[l].To[a] = -1 // packets go over others
				continue
			}
			faces[[2]int{a, b}] = append(faces[[2]int{a, b}], l)
			add(a, -1, address(b, l), l, b)
		}
	}
	r := c.request(j.topology(), n)
	planned, demands := r.RoutesOver(layers, s.Rings)
	asked := map[[2]int]bool{}
	for _, d := range demands {
		asked[[2]int{d.From, d.To}] = true
	}
	if n > maxPassed {
		why = fmt.Sprintf("%d servers: between those that do not send each other by plan routes are for at most %d", n, maxPassed)
	}
	for a := range n {
		for b := range n {
			path := planned.Path(a, b)
			if a == b || len(path) < 2 || n > maxPassed && !asked[[2]int{a, b}] {
				continue
			}
			for face := range c.fab.Degree {
				for i, at := range path[:len(path)-1] {
					ways := faces[[2]int{at, path[i+1]}]
					if len(path) == 2 && slices.Contains(ways, face) {
						continue // by the interface itself
					}
					add(at, address(a, face), address(b, face), ways[face%len(ways)], path[i+1])
				}
			}
		}
	}
	return out, why
}
