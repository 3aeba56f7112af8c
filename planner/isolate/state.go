package isolate

import (
	"fmt"
	"slices"
)

// JobID names a job.
type JobID uint32

// pool is units, ports or links, in cells of a matrix. Those of a row are
// numbered through.
type pool struct {
	columns int
	start   []int32 // of a cell: its first unit; one more than cells; never changed
	taken   []bool  // of a unit
	out     []bool  // such as are taken by nobody
	gone    []int32 // of a row: how many
	free    []int32 // units of a cell
	row     []int32 // free units of a row
}

func newPool(m [][]int) pool {
	var p pool
	p.start = append(p.start, 0)
	for _, list := range m {
		p.columns = len(list)
		in := int32(0)
		for _, n := range list {
			p.start = append(p.start, p.start[len(p.start)-1]+int32(n))
			p.free = append(p.free, int32(n))
			in += int32(n)
		}
		p.row, p.gone = append(p.row, in), append(p.gone, 0)
	}
	p.taken, p.out = make([]bool, p.start[len(p.start)-1]), make([]bool, p.start[len(p.start)-1])
	return p
}

func (p pool) clone() pool {
	p.taken, p.out, p.gone, p.free, p.row = slices.Clone(p.taken), slices.Clone(p.out), slices.Clone(p.gone), slices.Clone(p.free), slices.Clone(p.row)
	return p
}

// unit finds a unit by its place, -1: there is none.
func (p *pool) unit(row, column, nth int) int32 {
	if row < 0 || row >= len(p.row) || column < 0 || column >= p.columns {
		return -1
	}
	cell := row*p.columns + column
	if u := p.start[cell] + int32(nth); nth >= 0 && u < p.start[cell+1] {
		return u
	}
	return -1
}

// place is the inverse of unit.
func (p *pool) place(u int32) (row, column, nth int) {
	cell, _ := slices.BinarySearch(p.start, u+1) // the first that begins behind it
	cell--
	return cell / p.columns, cell % p.columns, int(u - p.start[cell])
}

// set takes a unit or gives it back.
func (p *pool) set(row, column int, u int32, taken bool) {
	by := int32(1)
	if taken {
		by = -1
	}
	p.taken[u] = taken
	p.free[row*p.columns+column] += by
	p.row[row] += by
}

// State is who owns what of a core. It is not safe for concurrent use; Clone
// is cheap.
type State struct {
	core    Core    // never changed
	first   []int32 // first server of each leaf, and the end of the last; never changed
	gpus    []int32 // free, of a server
	opened  []int32 // of a server that is in use: how many were before it; 0: unknown
	opens   int32
	idle    []int32 // servers of a leaf
	servers int32   // idle ones in all
	links   pool    // without optics: by leaf and spine
	leaf    pool    // with optics: ports by leaf and switch
	spine   pool    // and by spine and switch
	// lit is the port that light goes to, of ports of leaves and then of
	// spines; -1: to none.
	lit  []int32
	jobs map[JobID]Placement
	// steps is the work of the last Place, as it bounds itself.
	steps int
}

// Empty is the core with nothing running and nothing lit.
func (c Core) Empty() *State {
	s, err := c.With(nil)
	if err != nil {
		panic("isolate: invariant: a core is checked before it is used: " + err.Error())
	}
	return s
}

// With is the core with so many GPUs free of each server, by leaf; nil: all of
// them. Its links and ports are free.
func (c Core) With(free [][]int) (*State, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if free != nil && len(free) != c.Leaves() {
		return nil, wrong("free_gpus", fmt.Sprintf("%d leaves", c.Leaves()), "%d leaves", len(free))
	}
	s := &State{core: c, jobs: map[JobID]Placement{}, idle: make([]int32, c.Leaves()), first: []int32{0}}
	for _, servers := range c.Servers {
		s.first = append(s.first, s.first[len(s.first)-1]+int32(servers))
	}
	s.gpus, s.opened = make([]int32, s.first[c.Leaves()]), make([]int32, s.first[c.Leaves()])
	for n, servers := range c.Servers {
		if free != nil && len(free[n]) != servers {
			return nil, wrong(fmt.Sprintf("free_gpus[%d]", n), fmt.Sprintf("%d servers", servers), "%d servers", len(free[n]))
		}
		for i := range servers {
			g := c.GPUsPerServer
			if free != nil {
				g = free[n][i]
			}
			if g < 0 || g > c.GPUsPerServer {
				return nil, wrong(fmt.Sprintf("free_gpus[%d][%d]", n, i), fmt.Sprintf("0 to %d", c.GPUsPerServer), "%d", g)
			}
			s.addGPUs(n, i, g)
		}
	}
	if s.links = newPool(c.Links); c.Optics == nil {
		return s, nil
	}
	s.leaf, s.spine = newPool(c.Optics.Leaf), newPool(c.Optics.Spine)
	s.lit = slices.Repeat([]int32{-1}, len(s.leaf.taken)+len(s.spine.taken))
	return s, nil
}

// probe is a copy that does not know whose what is.
func (s *State) probe() *State {
	c := *s
	c.gpus, c.opened, c.idle, c.lit, c.jobs = slices.Clone(s.gpus), slices.Clone(s.opened), slices.Clone(s.idle), slices.Clone(s.lit), nil
	c.links, c.leaf, c.spine = s.links.clone(), s.leaf.clone(), s.spine.clone()
	return &c
}

// FreeGPUs is the number of GPUs that no job has.
func (s *State) FreeGPUs() int {
	n := 0
	for _, g := range s.gpus {
		n += int(g)
	}
	return n
}

// IdleServers is the number of servers that no job has a part of.
func (s *State) IdleServers() int { return int(s.servers) }

// Of is where a job is.
func (s *State) Of(id JobID) (Placement, bool) {
	p, ok := s.jobs[id]
	return p, ok
}

func (s *State) addGPUs(leaf, server, by int) {
	at := int(s.first[leaf]) + server
	t := int32(s.core.GPUsPerServer)
	was := s.gpus[at]
	s.gpus[at] += int32(by)
	switch {
	case was < t && s.gpus[at] == t:
		s.idle[leaf]++
		s.servers++
		s.opened[at] = 0
	case was == t && by < 0:
		s.idle[leaf]--
		s.servers--
		s.opens++
		s.opened[at] = s.opens
	}
}

// Take makes a placement a job's own. It fails, and changes nothing, when
// another job has some of it or it is not of this core.
func (s *State) Take(id JobID, p Placement) error {
	if _, ok := s.jobs[id]; ok {
		return wrong("job", "a job that has nothing yet", "job %d is placed", id)
	}
	if err := s.take(p); err != nil {
		return err
	}
	s.jobs[id] = p
	return nil
}

// Withhold keeps a free port of a leaf or spine at a switch from all jobs to
// come; out: until it is back, so that a job may have it without light. It reports
// whether there is one.
func (s *State) Withhold(at int, e End, out bool) bool {
	p := s.side(e)
	u := p.unit(e.Number, at, e.Port)
	if u < 0 || p.taken[u] {
		return false
	}
	p.set(e.Number, at, u, true)
	if p.out[u] = out; out {
		p.gone[e.Number]++
	}
	return true
}

// WithholdLink does the same with a free link between a leaf and a spine that is out.
func (s *State) WithholdLink(l Link) {
	if u := s.links.unit(l.Leaf, l.Spine, l.Nth); u >= 0 && !s.links.taken[u] {
		s.links.set(l.Leaf, l.Spine, u, true)
		s.links.out[u] = true
	}
}

// Release frees what a job owns. Its circuits stay lit.
func (s *State) Release(id JobID) bool {
	p, ok := s.jobs[id]
	if ok {
		s.give(p, len(p.Servers), len(p.Links), 2*len(p.Circuits))
		delete(s.jobs, id)
	}
	return ok
}

func (s *State) take(p Placement) error {
	var servers, links, ends int
	undo := func(err error) error {
		s.give(p, servers, links, ends)
		return err
	}
	for n, w := range p.Servers {
		field := fmt.Sprintf("servers[%d]", n)
		if w.Leaf < 0 || w.Leaf >= s.core.Leaves() || w.Server < 0 || w.Server >= s.core.Servers[w.Leaf] {
			return undo(wrong(field, "a leaf and server of the core", "unknown leaf %d, server %d", w.Leaf, w.Server))
		}
		if free := int(s.gpus[int(s.first[w.Leaf])+w.Server]); w.GPUs < 1 || w.GPUs > free {
			return undo(wrong(field, fmt.Sprintf("1 to %d free GPUs", free), "%d GPUs", w.GPUs))
		}
		s.addGPUs(w.Leaf, w.Server, -w.GPUs)
		servers++
	}
	if s.core.Optics == nil {
		for n, l := range p.Links {
			u := s.links.unit(l.Leaf, l.Spine, l.Nth)
			if u < 0 || s.links.taken[u] {
				return undo(wrong(fmt.Sprintf("links[%d]", n), "a free link of the core", "leaf %d, spine %d, link %d", l.Leaf, l.Spine, l.Nth))
			}
			s.links.set(l.Leaf, l.Spine, u, true)
			links++
		}
	}
	for n, c := range p.Circuits {
		for _, e := range [...]End{c.A, c.B} {
			pool := s.side(e)
			u := pool.unit(e.Number, c.Switch, e.Port)
			if u < 0 || pool.taken[u] {
				return undo(wrong(fmt.Sprintf("circuits[%d]", n), "free ports of the core", "switch %d, %+v", c.Switch, e))
			}
			pool.set(e.Number, c.Switch, u, true)
			ends++
		}
	}
	for _, c := range p.Circuits {
		a, b := s.port(c.Switch, c.A), s.port(c.Switch, c.B)
		s.darken(a)
		s.darken(b)
		s.lit[a], s.lit[b] = b, a
	}
	return nil
}

// give frees the first servers, links and ends of circuits of a placement.
func (s *State) give(p Placement, servers, links, ends int) {
	for _, w := range p.Servers[:servers] {
		s.addGPUs(w.Leaf, w.Server, w.GPUs)
	}
	if s.core.Optics == nil {
		for _, l := range p.Links[:links] {
			s.links.set(l.Leaf, l.Spine, s.links.unit(l.Leaf, l.Spine, l.Nth), false)
		}
	}
	for n := range ends {
		c := p.Circuits[n/2]
		e := c.A
		if n%2 == 1 {
			e = c.B
		}
		pool := s.side(e)
		pool.set(e.Number, c.Switch, pool.unit(e.Number, c.Switch, e.Port), false)
	}
}

func (s *State) side(e End) *pool {
	if e.Spine {
		return &s.spine
	}
	return &s.leaf
}

// port is the index of an end in lit.
func (s *State) port(at int, e End) int32 {
	u := s.side(e).unit(e.Number, at, e.Port)
	if e.Spine {
		u += int32(len(s.leaf.taken))
	}
	return u
}

func (s *State) darken(port int32) {
	if to := s.lit[port]; to >= 0 {
		s.lit[port], s.lit[to] = -1, -1
	}
}

// Circuits gives every circuit that is lit, of jobs and left by them, by
// switch and ports.
func (s *State) Circuits() []Circuit {
	var out []Circuit
	leaves := int32(len(s.leaf.taken))
	end := func(u int32) (int, End) {
		p, e := &s.leaf, End{}
		if u >= leaves {
			p, e.Spine, u = &s.spine, true, u-leaves
		}
		row, at, nth := p.place(u)
		e.Number, e.Port = row, nth
		return at, e
	}
	for u, to := range s.lit {
		if to > int32(u) {
			at, a := end(int32(u))
			_, b := end(to)
			out = append(out, Circuit{at, a, b})
		}
	}
	slices.SortStableFunc(out, func(a, b Circuit) int { return a.Switch - b.Switch })
	return out
}
