package isolate

import (
	"cmp"
	"slices"
)

// refit.go: where a job goes that has lost servers, links or ports.

// refit is one decision. Fixed links are circuits to it, over a switch for each spine
// and number, of which a leaf has one port.
type refit struct {
	optical
	was         Placement
	out         func(w Server, gpu int) bool
	lost, least int // ranks that the best so far loses, and that every place does
	budget      int // of steps
	best        Placement
	per         int        // fixed links from a leaf to a spine
	own, gone   [][]Server // by leaf, of those that it has: there, and with GPUs that are out
	order       []int      // leaves, its own first
}

// part is what one leaf holds of a job: servers that it had, others, and such as are out.
type part struct{ leaf, keep, fresh, gone int }

// edge is a link of a job, and whether its rank is there.
type edge struct {
	leaf int
	far  End
	live bool
}

// Refit gives a job, which the state has not, the place where it loses fewest ranks, if
// that is fewer than it has lost. A rank is lost whose GPU is out, or whose link no port
// carries; such a link has ports that are out, so that it is there when they are. Of
// places that lose the same it is one that moves fewest servers.
func (s *State) Refit(was Placement, lost int, out func(w Server, gpu int) bool) (Placement, bool) {
	r := &refit{optical: optical{State: s, need: len(was.Servers)}, was: was, out: out, lost: lost, own: make([][]Server, s.core.Leaves()), gone: make([][]Server, s.core.Leaves())}
	if s.core.Optics == nil {
		r.State, r.per = s.asCircuits()
		for _, l := range was.Links {
			r.was.Circuits = append(r.was.Circuits, Circuit{l.Spine*r.per + l.Nth, End{Number: l.Leaf}, End{true, l.Spine, l.Leaf}})
		}
	}
	for _, w := range was.Servers {
		of := r.own
		if r.dead(w) > 0 {
			of = r.gone
		}
		of[w.Leaf] = append(of[w.Leaf], w)
	}
	for n := range r.own {
		slices.SortStableFunc(r.gone[n], func(a, b Server) int { return r.dead(a) - r.dead(b) })
		r.order = append(r.order, n)
	}
	has := func(n int) int { return len(r.own[n]) + len(r.gone[n]) }
	slices.SortStableFunc(r.order, func(a, b int) int { return cmp.Or(has(b)-has(a), int(r.leaf.row[b]-r.leaf.row[a])) })
	r.least = r.need * s.core.GPUsPerServer // if every GPU that is there had a link
	for n, idle := range r.idle {
		r.least -= s.core.GPUsPerServer * int(idle)
		for _, w := range r.gone[n] {
			r.least -= w.GPUs - r.dead(w)
		}
	}
	r.least = max(0, r.least)
	shapes := []shape{{was.L, was.S}}
	for _, x := range append(s.core.shapes(r.need*s.core.GPUsPerServer), shape{1, 0}, shape{2, 0}) {
		if x != shapes[0] && (x != shape{2, 0} || r.core.Optics.AnyToAny) {
			shapes = append(shapes, x)
		}
	}
	for fresh := 0; fresh <= r.need && was.GPUs > s.core.GPUsPerServer; fresh++ {
		r.budget = maxSteps * (fresh + 1) / (r.need + 1)
		for _, x := range shapes {
			r.spread(x, 0, r.need, fresh, nil)
		}
	}
	if r.lost > r.least {
		if p, why := s.Place(was.GPUs); why == Fits {
			return p, true
		}
	}
	if r.per > 0 {
		for n, c := range r.best.Circuits {
			r.best.Links[n].Nth = c.Switch % r.per
		}
		r.best.Circuits = nil
	}
	return r.best, r.lost < lost
}

// asCircuits is a state whose fixed links are circuits; per: from a leaf to a spine.
func (s *State) asCircuits() (x *State, per int) {
	for cell := range s.links.free {
		per = max(per, int(s.links.start[cell+1]-s.links.start[cell]))
	}
	c, spines := Core{GPUsPerServer: s.core.GPUsPerServer, Servers: s.core.Servers}, s.core.Spines()
	c.Optics = &Optics{Leaf: fill(c.Leaves(), spines*per, 1), Spine: fill(spines, spines*per, 0)}
	for k := range spines * per {
		c.Optics.Spine[k/per][k] = c.Leaves()
	}
	x = c.Empty()
	x.gpus, x.idle, x.servers = s.gpus, s.idle, s.servers
	for n := range c.Leaves() * spines * per {
		leaf, k := n/(spines*per), n%(spines*per)
		if u := s.links.unit(leaf, k/per, k%per); u < 0 || s.links.taken[u] {
			x.Withhold(k, End{Number: leaf}, u >= 0 && s.links.out[u])
		}
	}
	return x, per
}

// dead is how many GPUs of a server are out.
func (r *refit) dead(w Server) (n int) {
	for gpu := range w.GPUs {
		if r.out(w, gpu) {
			n++
		}
	}
	return n
}

// spread puts what is left of the servers under leaves from the n-th on, so many of them
// fresh, in every way.
func (r *refit) spread(want shape, n, left, fresh int, to []part) {
	if r.w.steps++; r.w.steps > r.budget || r.lost <= r.least {
		return
	}
	alone := want.s > 0 && r.core.Links != nil // each virtual leaf has a leaf of its own
	if left == 0 && fresh == 0 && (len(to) > 1) == (want.l > 1) && (want.s > 0 || len(to) == want.l) {
		if r.seat(want, to); want.s == 0 && want.l == 2 {
			r.seat(want, []part{to[1], to[0]})
		}
	}
	if left == 0 || n == len(r.order) {
		return
	}
	leaf, u := r.order[n], max(1, want.s/r.core.GPUsPerServer)
	own, gone := len(r.own[leaf]), len(r.gone[leaf])
	idle := int(r.idle[leaf]) - own
	for c := min(left, own+gone+idle) / u * u; c > 0; c -= u {
		for out := 0; out <= min(c, gone) && !(alone && c > u); out++ {
			x := part{leaf, min(c-out, own), max(0, c-out-own), out}
			if x.fresh <= min(idle, fresh) {
				r.spread(want, n+1, left-c, fresh-x.fresh, append(to[:len(to):len(to)], x))
			}
		}
	}
	r.spread(want, n+1, left, fresh, to)
}

// seat puts servers of leaves in the order of ranks, and looks for their links.
func (r *refit) seat(want shape, parts []part) {
	t, u := r.core.GPUsPerServer, max(1, want.s/r.core.GPUsPerServer)
	of, on, lost := map[int]*[]Server{}, []share{}, 0
	for _, x := range parts {
		list := append(slices.Clone(r.own[x.leaf][:x.keep]), r.gone[x.leaf][:x.gone]...)
		for _, w := range list {
			lost += r.dead(w)
		}
		idle := slices.DeleteFunc(r.idleServers(nil, x.leaf, int(r.idle[x.leaf])), func(w Server) bool { return slices.Contains(r.own[x.leaf], w) })
		list = append(list, idle[:x.fresh]...)
		of[x.leaf], on = &list, append(on, share{x.leaf, len(list) / u})
	}
	joined := want.s == 0 && want.l == 2
	if lost >= r.lost || joined && on[0].of > on[1].of { // the smaller first
		return
	}
	p := Placement{GPUs: r.was.GPUs, Stage: min(want.l, 2), L: want.l, S: want.s, Servers: make([]Server, r.need)}
	rows := keepers(r.need/u, on, func(v int) int { // leaves
		if joined {
			return -1
		}
		return r.was.Servers[v*u].Leaf
	})
	assign(r.need, func(n int) *[]Server { return of[rows[n/u]] }, func(n int) Server { return r.was.Servers[n] }, func(n int, w Server) { p.Servers[n] = w })
	join := func(links int, far func(n int) End) bool {
		var edges []edge
		for i := range links {
			edges = append(edges, edge{p.Servers[i/t].Leaf, far(i), !r.out(p.Servers[i/t], i%t)})
		}
		r.join(p, lost, edges)
		return r.lost <= r.least || r.w.steps > r.budget
	}
	switch {
	case joined:
		p.Map = Identity[int](t * on[0].of)
		join(len(p.Map), func(int) End { return End{Number: on[1].at} })
	case want.s == 0:
		r.best, r.lost = p, lost
	default:
		p.Map = Identity[int](want.s)
		same := want == shape{r.was.L, r.was.S}
		try := func(spine func(column int) int) bool {
			return join(r.need*t, func(n int) End { return End{Spine: true, Number: spine(n % want.s)} })
		}
		old := func(column int) int {
			if !same {
				return -1
			}
			return r.was.Links[column].Spine
		}
		if same && try(old) {
			return
		}
		r.way(rooms(r.core.Spines(), func(m int) int {
			if r.core.Links != nil {
				return 1
			}
			return int(r.spine.row[m]+r.spine.gone[m]) / want.l
		}), want.s, nil, func(on []share) bool {
			columns := keepers(want.s, on, old)
			r.align(p, columns)
			return try(func(column int) int { return columns[column] })
		})
	}
}

// align has columns change spines as long as fewer ranks lose their fixed link by it: what
// is out of a spine is for ranks that are lost anyway.
func (r *refit) align(p Placement, columns []int) {
	t, spines := r.core.GPUsPerServer, r.core.Spines()
	if r.per == 0 {
		return
	}
	over := make([]int, r.core.Leaves()*spines) // ranks that are there beyond the links that are
	for n := range over {
		for nth := range r.per {
			if !r.taken(n%spines*r.per+nth, End{Number: n / spines}) {
				over[n]--
			}
		}
	}
	live := make([][]int, len(columns)) // leaves of ranks that are there, by column
	for rank := range r.need * t {
		if w := p.Servers[rank/t]; !r.out(w, rank%t) {
			c := rank % len(columns)
			live[c] = append(live[c], w.Leaf)
			over[w.Leaf*spines+columns[c]]++
		}
	}
	move := func(c, from, to int) (lost int) {
		for _, leaf := range live[c] {
			a, b := &over[leaf*spines+from], &over[leaf*spines+to]
			if *a > 0 {
				lost--
			}
			*a--
			if *b++; *b > 0 {
				lost++
			}
		}
		return lost
	}
	for better := true; better; {
		better = false
		for a := range columns {
			for b := range a {
				x, y := columns[a], columns[b]
				if r.w.steps++; x == y {
					continue
				}
				if move(a, x, y)+move(b, y, x) < 0 {
					columns[a], columns[b], better = y, x, true
				} else {
					move(a, y, x)
					move(b, x, y)
				}
			}
		}
	}
}

// keepers gives n things rooms, each the one it had where that has room.
func keepers(n int, in []share, had func(int) int) []int {
	out, left := make([]int, n), []int{}
	for _, x := range in {
		left = append(left, slices.Repeat([]int{x.at}, x.of)...)
	}
	assign(n, func(int) *[]int { return &left }, had, func(v, at int) { out[v] = at })
	return out
}

// assign gives each of n one of a list: what it had, if that is there, else the first left.
func assign[T comparable](n int, of func(i int) *[]T, had func(i int) T, give func(i int, x T)) {
	given := make([]bool, n)
	for again := range 2 {
		for i := range n {
			list := of(i)
			if at := slices.Index(*list, had(i)); !given[i] && len(*list) > 0 && max(at, again-1) >= 0 {
				give(i, (*list)[max(at, 0)])
				*list, given[i] = slices.Delete(*list, max(at, 0), max(at, 0)+1), true
			}
		}
	}
}

// join finds circuits for a placement, and takes it if it loses fewer ranks than the best.
func (r *refit) join(p Placement, lost int, edges []edge) {
	var leaves []int
	var fars []End
	for _, e := range edges {
		if !slices.Contains(leaves, e.leaf) {
			leaves = append(leaves, e.leaf)
		}
		if !slices.Contains(fars, e.far) {
			fars = append(fars, e.far)
		}
	}
	w, columns := &r.w, r.leaf.columns
	w.pairs = zeroed(w.pairs, len(leaves)*len(fars))[:len(leaves)*len(fars)]
	pair, want := make([]int, len(edges)), make([]wish, len(edges))
	old := make([][]int32, len(w.pairs)) // switches of circuits that it had
	for n, e := range edges {
		pair[n], want[n] = slices.Index(leaves, e.leaf)*len(fars)+slices.Index(fars, e.far), wish{-1, e.leaf, e.far, true}
		healthy := false
		if n < len(r.was.Circuits) {
			if c := r.was.Circuits[n]; c.A.Number == e.leaf && c.B.Spine == e.far.Spine && c.B.Number == e.far.Number {
				want[n].at, healthy = c.Switch, !r.taken(c.Switch, c.A) && !r.taken(c.Switch, c.B)
			}
		}
		if e.live {
			w.pairs[pair[n]]++
			if healthy {
				old[pair[n]] = append(old[pair[n]], int32(want[n].at))
			}
		}
	}
	lay := func() { r.layOut(leaves, fars) }
	found := false
	lay()
	for k := w.deficit(); k < r.lost-lost && !found && w.steps <= r.budget; k++ {
		lay()
		kept := slices.Clone(old)
		w.missing = slices.DeleteFunc(w.missing, func(e int32) bool {
			at := int(w.leaf[e])*len(fars) + int(w.spine[e])
			if len(kept[at]) > 0 {
				w.put(e, kept[at][0])
				kept[at] = kept[at][1:]
			}
			return w.colour[e] >= 0
		})
		if found = w.run(k); !found && w.edges <= exactCircuits {
			lay()
			found, _ = w.exact(exactSteps, k)
		}
	}
	if !found {
		return
	}
	has := make([][]int, len(w.pairs))
	for e, k := range w.colour {
		if at := int(w.leaf[e])*len(fars) + int(w.spine[e]); k >= 0 && int(k) < columns {
			has[at] = append(has[at], int(k))
		}
	}
	var none []int
	assign(len(edges), func(n int) *[]int {
		if edges[n].live {
			return &has[pair[n]]
		}
		return &none
	}, func(n int) int { return want[n].at }, func(n, k int) { want[n].at, want[n].lost = k, false })
	for n, e := range edges {
		if e.live && want[n].lost {
			lost++
		}
		p.Links = append(p.Links, Link{e.leaf, e.far.Number, n})
	}
	if p.S == 0 {
		p.Links = nil
	}
	if p.Circuits = r.ports(want); p.Circuits != nil && lost < r.lost {
		r.best, r.lost = p, lost
	}
}

func (s *State) taken(at int, e End) bool {
	p := s.side(e)
	return p.taken[p.unit(e.Number, at, e.Port)]
}
