package core

import (
	"slices"

	"ringlight/proto"
)

// Links that find no room beside those that run. One goes where one of its ends
// has room; a link there goes where that end has room, and so on, until both
// ends of the last have. That is an alternating chain; the shortest is looked
// for, of spines first and then, for each link of it, of the ports of circuits.
// Links without light move first. Of each leaf no more links with light move
// than may be dark at once, in all chains together; so however chains meet in a
// stage, no leaf has too many dark. For a link that is left without a circuit
// then, as many may move again, and chains may branch (eject), if all that moves
// can still be divided into stages with no more dark in any.

const (
	// chainSteps and portSteps bound the search for one chain, of spines and of
	// ports, in places looked at. chosen: of 128 pods with four fifths of all
	// ports in use ten times as many find no more; a few milliseconds at most.
	chainSteps, portSteps = 100_000, 10_000
	// chainTries bounds the chains of spines whose circuits are looked for.
	// chosen: where none of these does, the ports of a pod are the trouble.
	chainTries = 40
)

// site is where a link is: the spine of its path, and of its circuit the map
// of the group and the pod that sends; -1: it has none.
type site struct{ spine, k, from int32 }

var nowhere = site{-1, -1, -1}

// What else is in a port: nothing, and a circuit that cannot be moved.
const nobodys, someones = -1, -2

// leafLoad is how many links of a leaf a spine carries ([LUMOS] Th. 4.1).
const leafLoad = 2

// link is one link of a job.
type link struct {
	job       proto.JobID
	leaf, pod [2]int32
	at, first site // now, and before anything moved
	lit       bool // at first, and then first is where
}

// chains finds room by moving links.
type chains struct {
	core    *interleaved
	links   []link
	spare   []int     // of a leaf: links with light that may yet move
	holders [][]int32 // of a leaf and spine: the links there
	pod     []int     // of a pod and spine: how many
	ports   []int32   // of a map and pod that sends, then of those that receive: the link there
	closed  []bool    // of a group: some switch of it cannot be told
	gone    []int32   // of a leaf and spine: paths for which there is no link
	dark    bool      // only links without light may move
	steps   int       // of eject
	log     []was
}

// was is where a link was before a move.
type was struct {
	e  int32
	at site
}

// chain finds room for links that have none. It changes jobs' paths and pins
// circuits elsewhere.
func (t *staging) chain(jobs []*job) {
	s := t.newChains(jobs)
	for _, e := range s.without() {
		s.light(e)
	}
	s.home()
	for _, e := range s.without() {
		moves := len(s.log)
		s.allow(t.lit)
		if s.light(e) || s.eject(e) {
			if s.home(); !t.staged(s, jobs) {
				s.back(moves)
			}
		}
	}
	s.write(jobs, t.groups)
}

// staged: what moves can be done in stages that are within the bound.
func (t *staging) staged(s *chains, jobs []*job) bool {
	try := *t
	try.groups = slices.Clone(t.groups)
	for h := range try.groups {
		g := &try.groups[h]
		g.pinned = cloneMaps(g.pinned)
		g.wanted = g.pinned
	}
	s.write(copyJobs(jobs), try.groups)
	return !slices.ContainsFunc(try.moves(), func(m move) bool { return t.tooMuch(&m) })
}

// without are the links that have no circuit.
func (s *chains) without() []int32 {
	var out []int32
	for e := range s.links {
		if s.links[e].at.k < 0 {
			out = append(out, int32(e))
		}
	}
	return out
}

// allow lets as many more links with light of each leaf move as may be dark at
// once.
func (s *chains) allow(lit []int) {
	s.spare = s.spare[:0]
	for _, n := range lit {
		s.spare = append(s.spare, n*s.core.fab.IotaMille/1000)
	}
}

func (t *staging) newChains(jobs []*job) *chains {
	c := t.core
	s := &chains{core: c, closed: make([]bool, len(t.groups)),
		holders: make([][]int32, c.fab.Leaves()*c.fab.SpinesPerPod), pod: make([]int, c.fab.Pods*c.fab.SpinesPerPod)}
	s.gone = c.from.out.ofLeaves()
	for end := range c.from.out.ends() { // any order: counted
		s.pod[s.of(end.from, int32(c.layout.groupOf(int(end.k))))]++
	}
	s.ports = slices.Repeat([]int32{nobodys}, 2*len(c.from.maps)*c.fab.Pods)
	s.allow(t.lit)
	for at, able := range c.from.able {
		s.closed[c.layout.groupOf(at)] = s.closed[c.layout.groupOf(at)] || !able
	}
	s.readCircuits(t, s.readPaths(jobs))
	for e := range s.links {
		s.links[e].first = s.links[e].at
	}
	s.log = nil
	return s
}

// move puts a link somewhere else, and remembers where it was; what it takes
// must be free.
func (s *chains) move(e int32, to site) {
	l := &s.links[e]
	s.log = append(s.log, was{e, l.at})
	for side, leaf := range l.leaf {
		if l.lit && l.at == l.first {
			s.spare[leaf]--
		}
		if l.lit && to == l.first {
			s.spare[leaf]++
		}
		if l.at.k >= 0 {
			s.ports[s.port(l, l.at, side)] = nobodys
		}
		if to.k >= 0 {
			s.ports[s.port(l, to, side)] = e
		}
		if l.at.spine == to.spine {
			continue
		}
		if l.at.spine >= 0 {
			r := s.of(leaf, l.at.spine)
			n := slices.Index(s.holders[r], e)
			s.holders[r] = slices.Delete(s.holders[r], n, n+1)
			s.pod[s.of(l.pod[side], l.at.spine)]--
		}
		if to.spine >= 0 {
			r := s.of(leaf, to.spine)
			s.holders[r] = append(s.holders[r], e)
			s.pod[s.of(l.pod[side], to.spine)]++
		}
	}
	l.at = to
}

// back takes moves back, down to so many.
func (s *chains) back(moves int) bool {
	for n := len(s.log) - 1; n >= moves; n-- {
		s.move(s.log[n].e, s.log[n].at)
	}
	s.log = s.log[:moves]
	return false
}

// of is where a leaf, or a pod, counts its links to a spine.
func (s *chains) of(n, spine int32) int { return int(n)*s.core.fab.SpinesPerPod + int(spine) }

func (s *chains) mapAt(at site) int { return int(at.spine)*s.core.layout.groupMaps() + int(at.k) }

// port is what a link takes there on one of its sides: of a circuit the port of
// the pod, of a path without one the leaf's share of the spine.
func (s *chains) port(l *link, at site, side int) int {
	if at.k < 0 {
		return s.of(l.leaf[side], at.spine)
	}
	n := s.mapAt(at)*s.core.fab.Pods + int(l.pod[side])
	if at.from != l.pod[side] && !s.core.layout.uniform() {
		n += len(s.core.from.maps) * s.core.fab.Pods
	}
	return n
}

// has are the links at a port; full: there is no room for another.
func (s *chains) has(port int, circuit bool) (links []int32, full bool) {
	if circuit {
		return s.ports[port : port+1], s.ports[port] != nobodys
	}
	return s.holders[port], len(s.holders[port]) >= leafLoad-int(s.gone[port])
}

// sites are the places that a link may go to, in an order that turns: circuits
// in the group of a spine, or where none is given (-1) paths.
func (s *chains) sites(e, spine int32, turn int, yield func(site) bool) {
	l := &s.links[e]
	if spine < 0 {
		for n := range s.core.fab.SpinesPerPod {
			h := (n + int(e) + turn) % s.core.fab.SpinesPerPod // not all in the first
			if !s.closed[h] && !yield(site{int32(h), -1, -1}) {
				return
			}
		}
		return
	}
	for n := range s.core.layout.groupMaps() {
		k := int32((n + turn) % s.core.layout.groupMaps())
		for _, from := range l.pod {
			at := site{spine, k, from}
			if m := s.mapAt(at); s.core.from.able[m] && !s.core.from.failed(s.core.layout.slots(m, from, l.pod[0]+l.pod[1]-from)) && !yield(at) {
				return
			}
		}
	}
}

// mayMove: with light a link moves only where its leaves have not too many
// moved.
func (s *chains) mayMove(e int32) bool {
	if e < 0 {
		return false
	}
	l := &s.links[e]
	return !s.isLit(e) || !s.dark && !s.core.layout.uniform() && s.spare[l.leaf[0]] > 0 && s.spare[l.leaf[1]] > 0
}

// isLit: a link has light and is where it has it.
func (s *chains) isLit(e int32) bool {
	l := &s.links[e]
	return l.lit && l.at == l.first
}

// chained is a link that goes to a place where one of its ports is full, and
// leaves one that the next of the chain may take.
type chained struct {
	e          int32
	to         site
	full, left int
	before     int // in the queue; -1: it is the first
}

// find looks for chains that bring a link to a circuit, or to a path, the
// shortest first, until one is taken.
func (s *chains) find(e int32, circuit bool, take func([]was) bool) bool {
	steps := chainSteps
	if circuit {
		steps = portSteps
	}
	var queue []chained
	seen := map[[2]int]bool{}
	// goes lets a link go to where its one side has room, or gets it from the link before.
	goes := func(e int32, side, left, before int) (taken bool) {
		l, spine := &s.links[e], int32(-1)
		if circuit {
			spine = l.at.spine
		}
		s.sites(e, spine, 0, func(to site) bool {
			steps--
			near, far := s.port(l, to, side), s.port(l, to, 1-side)
			if _, full := s.has(near, circuit); full && near != left || to == s.here(e, circuit) {
				return steps > 0
			}
			x := chained{e, to, far, -1, before}
			if l.at.spine >= 0 && (!circuit || l.at.k >= 0) {
				x.left = s.port(l, s.here(e, circuit), 1-side)
			}
			if _, full := s.has(far, circuit); !full {
				taken = take(follow(queue, x))
				return !taken && steps > 0
			}
			if key := [2]int{far, x.left}; !seen[key] {
				seen[key] = true
				queue = append(queue, x)
			}
			return steps > 0
		})
		return taken
	}
	if goes(e, 0, -1, -1) || goes(e, 1, -1, -1) {
		return true
	}
	for n := 0; n < len(queue) && steps > 0; n++ {
		x := queue[n]
		links, _ := s.has(x.full, circuit)
		for _, f := range slices.Clone(links) {
			if !s.mayMove(f) || slices.ContainsFunc(follow(queue, x), func(w was) bool { return w.e == f }) {
				continue
			}
			side := 0
			if s.port(&s.links[f], s.here(f, circuit), 0) != x.full {
				side = 1
			}
			if goes(f, side, x.left, n) {
				return true
			}
		}
	}
	return false
}

// here is a link's site: its circuit, or only the spine of its path.
func (s *chains) here(e int32, circuit bool) site {
	at := s.links[e].at
	if !circuit {
		return site{at.spine, -1, -1}
	}
	return at
}

// follow is a chain from its first link to this one.
func follow(queue []chained, x chained) []was {
	chain := []was{{x.e, x.to}}
	for x.before >= 0 {
		x = queue[x.before]
		chain = append(chain, was{x.e, x.to})
	}
	return chain
}

// apply moves the links of a chain, or none where in truth they have no room.
func (s *chains) apply(chain []was) bool {
	moves, circuit := len(s.log), chain[0].at.k >= 0
	for _, x := range chain {
		to := nowhere
		if circuit {
			to = site{x.at.spine, -1, -1}
		}
		s.move(x.e, to)
	}
	for _, x := range chain {
		l := &s.links[x.e]
		for side, leaf := range l.leaf {
			_, full := s.has(s.port(l, x.at, side), circuit)
			if full || s.spare[leaf] < 0 || !circuit && s.pod[s.of(l.pod[side], x.at.spine)] >= s.core.fab.SpinePorts {
				return s.back(moves)
			}
		}
		s.move(x.e, x.at)
	}
	return true
}

// light looks for a chain for one link; without one it gets a path, if it can.
func (s *chains) light(e int32) bool {
	for _, s.dark = range [2]bool{true, false} {
		if s.links[e].at.spine >= 0 && s.find(e, true, s.apply) {
			return true
		}
		moves, tries := len(s.log), 0
		s.move(e, nowhere)
		if s.find(e, false, func(chain []was) bool {
			moves := len(s.log)
			if tries++; tries > chainTries || !s.apply(chain) {
				return false
			}
			for _, x := range chain {
				if !s.find(x.e, true, s.apply) {
					return s.back(moves)
				}
			}
			return true
		}) {
			return true
		}
		s.back(moves)
	}
	if s.dark = true; s.links[e].at.spine < 0 { // a search of its group may find what chains do not
		s.find(e, false, s.apply)
	}
	return false
}

// home puts links back where their light is, where later chains left that free.
func (s *chains) home() {
	for again := true; again; {
		again = false
		for e := range s.links {
			if l := &s.links[e]; l.lit && l.at != l.first {
				moves, path := len(s.log), l.first
				path.k, path.from = -1, -1
				s.move(int32(e), nowhere)
				if s.apply([]was{{int32(e), path}}) && s.apply([]was{{int32(e), l.first}}) {
					again = true
				} else {
					s.back(moves)
				}
			}
		}
	}
}
