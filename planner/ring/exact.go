package ring

import "ringlight/proto"

// What no row gives, because lines step over one another or a node may only be
// an end of a group, an exact program finds on a stretch of the order: which
// whole groups move, the fewest with which so many more fit. Between the nodes
// of groups that stay, the others lie one behind the other: a packing of what
// is left never gains by more ([IHBD] Alg. 2 is maximal on any set of nodes).
//
// It goes along the order and knows of what lies behind only how many nodes the
// group being laid has, how far back its last one is, and which of the groups
// begun stay.

// exactNodes is how many nodes are looked at exactly, and as a circle where
// they are one. chosen: a few milliseconds; six rings of eight nodes.
const exactNodes = 48

// stretch is a part of the order for the exact program.
type stretch struct {
	t        *Tracker
	from     int // its first place, round the seam too
	length   int
	size     int
	want     int // groups more that are of use; far: as many as there can be
	dearest  int // groups that may move at most
	sections map[int32]*section
	moves    []step
}

// section is a group that may move, by the places of its first and last node
// from the beginning of the stretch, and its bit among those begun.
type section struct {
	first, last int
	bit         uint32
}

// position is all that the rest of the program depends on.
type position struct {
	begun uint32 // groups begun that move
	nodes int16  // of the group being laid, 0: none
	back  int16  // hops to its last node
	wide  bool   // whose last gap was K
	gain  int16  // groups laid less those moved, where only so many are of use
}

// worth orders ways to a position.
type worth struct {
	gain, cost int
	step       int // the last move, from 1
}

func (w worth) less(v worth) bool { return w.gain < v.gain || w.gain == v.gain && w.cost > v.cost }

// step is a group that moves, and the move before it.
type step struct {
	group  int32
	before int
}

// exact finds which groups of a stretch move, for how many more whole ones.
func (t *Tracker) exact(from, length, want, dearest int) (moved []int32, gain, cut int) {
	s := &stretch{t: t, from: from, length: length, size: t.Sizes[0].Size, want: want, dearest: dearest}
	best, bestCut := worth{}, -1
	var bestMoves []step
	begin, turns, apart := s.turns()
	most := min(want, t.idle.all()/s.size) // what moves takes its nodes along
	for turn := 0; turn < turns && most > 0; turn++ {
		s.from = t.at(begin + turn)
		if !s.survey() {
			return nil, 0, 0
		}
		if w := s.run(); w.gain > 0 && (bestCut < 0 || best.less(w)) {
			best, bestCut, bestMoves = w, s.from, s.moves
		}
		if best.gain == most {
			s.dearest = best.cost - 1 // what another cut has must be cheaper
		}
		if best.gain == most && best.cost <= apart || t.Moves >= 0 && apart > t.limit() {
			break
		}
	}
	for at := best.step; at != 0; at = bestMoves[at-1].before {
		moved = append(moved, bestMoves[at-1].group)
	}
	return moved, best.gain, bestCut
}

// turns is how many cuts of a circle see an optimum: a group that is laid ends at one of
// them. A stretch that is no circle, or that is open somewhere, needs none: it is begun
// there. Who is laid across the first cut costs at least apart groups, too many where only
// a few may move for one.
func (s *stretch) turns() (begin, turns, apart int) {
	t := s.t
	if !t.Wrap || s.length < t.Nodes {
		return s.from, 1, 0
	}
	if gap := t.gap.next(0); gap >= 0 {
		return gap, 1, 0
	}
	begin, apart = s.calm()
	return begin, min(t.Nodes, (s.size-1)*t.K+1), apart
}

// calm finds the place across which one group more costs the most, and how many whole ones
// must move for it at least: idle nodes fill it, so many that others follow one another on,
// and no fibre leads past a whole group that stands alone between two of them.
func (s *stretch) calm() (begin, apart int) {
	t := s.t
	if t.Nodes <= exactNodes || s.size < t.K || t.idle.all() < s.size {
		return 0, 0
	}
	type hole struct{ groups, cut int } // behind an idle node: groups, and a place that none passes
	holes := []hole{{cut: -1}}          // the first is what lies before them all
	abreast, alone := t.over, false
	for i := range t.Nodes {
		if t.idle.has(i) {
			holes, alone = append(holes, hole{cut: -1}), false
		}
		h := &holes[len(holes)-1]
		if t.head.has(i) {
			alone = abreast == 0
			abreast++
		}
		if t.tail.has(i) {
			if abreast--; alone && abreast == 0 {
				h.groups++
			}
		}
		if abreast == 0 && i+1 < t.Nodes {
			h.cut = i + 1
		}
	}
	n := len(holes) - 1
	holes[n].groups += holes[0].groups // round the seam
	holes = holes[1:]
	for i, h := range holes {
		between, least := 0, far // of so many holes that one more fits, this among them
		for k := range 2*s.size - 3 {
			between += holes[(i+k+n*s.size-s.size+2)%n].groups
			if k >= s.size-1 {
				between -= holes[(i+k+n*s.size-2*s.size+3)%n].groups
			}
			if k >= s.size-2 {
				least = min(least, between)
			}
		}
		if h.cut >= 0 && least < far && least > apart {
			begin, apart = h.cut, least
		}
	}
	return begin, apart
}

// survey lists the groups that may move: all of whose nodes are here.
func (s *stretch) survey() bool {
	t := s.t
	s.sections, s.moves = map[int32]*section{}, nil
	seen := map[int32]int{}
	for i := range s.length {
		own := t.owner[t.at(s.from+i)]
		if own == 0 || t.slots[own].standing != stands {
			continue
		}
		if seen[own]++; seen[own] == 1 {
			s.sections[own] = &section{first: i}
		}
		s.sections[own].last = i
	}
	var used uint32
	ends := map[int]uint32{}
	for i := range s.length {
		own := t.owner[t.at(s.from+i)]
		if x := s.sections[own]; x != nil && x.first == i {
			if seen[own] < t.slots[own].Size {
				delete(s.sections, own)
				continue
			}
			if used == ^uint32(0) {
				return false // more lines abreast than any fabric joins
			}
			x.bit = ^used & (used + 1)
			used |= x.bit
			ends[x.last] |= x.bit
		}
		used &^= ends[i]
	}
	return true
}

// ways are the positions that can be reached and the best way to each.
type ways struct {
	list []way
	at   map[position]int32
}

type way struct {
	position
	worth
}

func (w *ways) reach(p position, v worth) {
	at, ok := w.at[p]
	switch {
	case !ok:
		w.at[p] = int32(len(w.list))
		w.list = append(w.list, way{p, v})
	case w.list[at].worth.less(v):
		w.list[at].worth = v
	}
}

// run is the program: from the first place to the last.
func (s *stretch) run() (best worth) {
	here, next := &ways{at: map[position]int32{}}, &ways{at: map[position]int32{}}
	here.reach(position{}, worth{})
	for i := range s.length {
		node := s.t.at(s.from + i)
		x, idle := s.sections[s.t.owner[node]], s.t.idle.has(node)
		for _, v := range here.list {
			p := v.position
			if p.nodes > 0 {
				if p.back++; int(p.back) > s.t.K {
					continue
				}
			}
			switch {
			case idle:
				s.take(p, v.worth, node, next)
			case x == nil:
				next.reach(p, v.worth)
			default:
				s.member(p, v.worth, node, i, x, next)
			}
		}
		here, next = next, here
		next.list = next.list[:0]
		clear(next.at)
	}
	for _, v := range here.list {
		if v.nodes == 0 && best.less(v.worth) {
			best = v.worth
		}
	}
	return best
}

// member goes on at a node of a group that may move.
func (s *stretch) member(p position, w worth, node, i int, x *section, next *ways) {
	if i == x.first {
		stays := p
		if x.first == x.last {
			stays.begun &^= x.bit
		}
		next.reach(stays, w)
		own := s.t.owner[node]
		if !s.t.tried[own] {
			w.cost++
		}
		if w.cost > s.dearest {
			return
		}
		s.moves = append(s.moves, step{own, w.step})
		w.step = len(s.moves)
		w.gain--
		p.begun |= x.bit
		if s.want < far {
			p.gain = int16(w.gain)
		}
	}
	moves := p.begun&x.bit != 0
	if i == x.last {
		p.begun &^= x.bit
	}
	if moves {
		s.take(p, w, node, next)
	} else {
		next.reach(p, w)
	}
}

// take goes on at a node that may be laid on: it is passed, begins a group, or
// goes into the one being laid, which passes none but where fibres lack spans.
func (s *stretch) take(p position, w worth, node int, next *ways) {
	t := s.t
	wide := false
	if p.nodes == 0 || t.Lacks != 0 {
		next.reach(p, w)
	}
	if p.nodes > 0 {
		last := t.at(node - int(p.back))
		wide = int(p.back) == t.K
		if t.Shared && p.wide && wide || !t.Spans(int(p.back)) || t.Broken != nil && t.Broken(proto.NodeID(last), proto.NodeID(node)) {
			return
		}
	}
	p.nodes++
	p.back, p.wide = 0, wide && t.Shared
	if int(p.nodes) == s.size {
		p.nodes, p.wide = 0, false
		w.gain++
		if s.want < far {
			w.gain = min(w.gain, s.want)
			p.gain = int16(w.gain)
		}
	}
	next.reach(p, w)
}
