package wiring

import "fmt"

// split writes a matrix as k matrices whose entries, row sums and column sums
// are each the floor or the ceiling of a k-th of its own ([LUMOS] Th. 2.2).
//
// Unlike the publications, which solve k - 1 flows: an even k is two halves by
// an Euler split and then each half again; an odd k gives up one part by a
// feasible flow (take) and goes on with k - 1. O(entries * log k) where k is a
// power of two. For a matrix of leaves the sums of their pods get floor or
// ceiling as well; podOf nil means there are no pods.
func (d Demand) split(k int, podOf []int32) []Demand {
	parts := make([]Demand, k)
	s := newSplitter(d, func(part int, arcs []Arc) {
		parts[part] = Demand{d.Rows, d.Cols, append([]Arc(nil), arcs...)}
	})
	s.group(podOf)
	s.split(d.Arcs, 0, k)
	return parts
}

// Layout realises a demand on the even switches of a group, one part a switch.
// It fails when a row or a column sum is above their number.
func (d Demand) Layout(switches int) (Half, error) {
	rows, cols := d.Sums()
	for i, n := range rows {
		if n > switches {
			return Half{}, wrong("demand", fmt.Sprintf("at most %d circuits a row", switches), "row %d has %d", i, n)
		}
	}
	for j, n := range cols {
		if n > switches {
			return Half{}, wrong("demand", fmt.Sprintf("at most %d circuits a column", switches), "column %d has %d", j, n)
		}
	}
	h := NewHalf(max(d.Rows, d.Cols), switches)
	s := newSplitter(d, func(part int, arcs []Arc) {
		row := h.Row(part)
		for _, a := range arcs {
			row[a.From] = a.To
		}
	})
	s.split(d.Arcs, 0, switches)
	return h, nil
}

// splitter holds the scratch space of one decomposition.
type splitter struct {
	d    Demand
	emit func(part int, arcs []Arc)
	free [][]Arc // buffers to use again

	odd     []int32 // arcs with an odd count
	partner []int32 // of odd arc e: 2e in its row, 2e+1 in its column; -1 none
	side    []int8  // of odd arc e: 1 first half, 2 second, 0 not yet
	open    []int32 // the column's arc without a partner, + 1

	podOf      []int32    // of a row or column; nil: no pods
	pods       int        // their number
	overInPods [2][]int32 // the pod's arc, of a row and of a column, without a partner, + 1
}

func newSplitter(d Demand, emit func(int, []Arc)) *splitter {
	return &splitter{
		d: d, emit: emit,
		odd:     make([]int32, 0, len(d.Arcs)),
		partner: make([]int32, 2*len(d.Arcs)),
		side:    make([]int8, len(d.Arcs)),
		open:    make([]int32, d.Cols),
	}
}

func (s *splitter) group(podOf []int32) {
	if podOf == nil {
		return
	}
	s.podOf = podOf
	for _, p := range podOf {
		s.pods = max(s.pods, int(p)+1)
	}
	s.overInPods = [2][]int32{make([]int32, s.pods), make([]int32, s.pods)}
}

func (s *splitter) buffer(n int) []Arc {
	if last := len(s.free) - 1; last >= 0 && cap(s.free[last]) >= n {
		b := s.free[last]
		s.free = s.free[:last]
		return b[:0]
	}
	return make([]Arc, 0, n+n/8+16) // some room, so that the sibling fits as well
}

func (s *splitter) split(arcs []Arc, first, k int) {
	switch {
	case k < 1:
		return
	case k == 1:
		s.emit(first, arcs)
		return
	case len(arcs) == 0:
		for p := range k {
			s.emit(first+p, nil)
		}
		return
	}
	a, b := s.buffer(len(arcs)), s.buffer(len(arcs))
	if k%2 != 0 {
		a, b = s.take(arcs, k, a, b)
		s.emit(first, a)
		s.split(b, first+1, k-1)
	} else {
		a, b = s.halve(arcs, a, b)
		s.split(a, first, k/2)
		s.split(b, first+k/2, k/2)
	}
	s.free = append(s.free, b, a)
}

// halve is the Euler split. Half of every even count goes either way. The odd
// rest is a bipartite graph; the arcs at each row and at each column are
// paired off, the pairs string them into trails and rings, and along each the
// arcs go to the two halves in turn. Rings have even length, so both arcs of
// every pair part.
func (s *splitter) halve(arcs, a, b []Arc) ([]Arc, []Arc) {
	s.pair(arcs)
	for e := range int32(len(s.odd)) {
		if s.side[e] != 0 {
			continue
		}
		s.side[e] = 1
		s.along(e, 0)
		s.along(e, 1)
	}
	odd := 0
	for _, arc := range arcs {
		one, two := arc.Count>>1, arc.Count>>1
		if arc.Count&1 != 0 {
			if s.side[odd] == 1 {
				one++
			} else {
				two++
			}
			odd++
		}
		if one > 0 {
			a = append(a, Arc{arc.From, arc.To, one})
		}
		if two > 0 {
			b = append(b, Arc{arc.From, arc.To, two})
		}
	}
	return a, b
}

// pair finds the odd arcs and pairs them off, at rows and at columns, and
// what is left over once more at the pods of these.
func (s *splitter) pair(arcs []Arc) {
	s.odd = s.odd[:0]
	clear(s.open)
	row, single := int32(-1), int32(-1) // the row's arc without a partner
	for n := range arcs {
		arc := &arcs[n]
		if arc.Count&1 == 0 {
			continue
		}
		e := int32(len(s.odd))
		s.odd = append(s.odd, int32(n))
		s.side[e] = 0
		if arc.From != row {
			s.leftOver(0, row, single)
			row, single = arc.From, -1
		}
		s.partner[2*e] = single
		if single >= 0 {
			s.partner[2*single] = e
			single = -1
		} else {
			single = e
		}
		other := s.open[arc.To] - 1
		s.partner[2*e+1] = other
		if other >= 0 {
			s.partner[2*other+1] = e
			s.open[arc.To] = 0
		} else {
			s.open[arc.To] = e + 1
		}
	}
	s.leftOver(0, row, single)
	if s.podOf != nil {
		for col, e := range s.open {
			s.leftOver(1, int32(col), e-1)
		}
		clear(s.overInPods[0])
		clear(s.overInPods[1])
	}
}

// leftOver pairs the last arc of a row (side 0) or column (side 1) within its
// pod.
func (s *splitter) leftOver(side int, line, e int32) {
	if s.podOf == nil || e < 0 {
		return
	}
	waiting := &s.overInPods[side][s.podOf[line]]
	if other := *waiting - 1; other >= 0 {
		s.partner[2*int(e)+side], s.partner[2*int(other)+side] = other, e
		*waiting = 0
	} else {
		*waiting = e + 1
	}
}

// along follows the trail that leaves arc e by its row (by = 0) or its column.
func (s *splitter) along(e, by int32) {
	side := s.side[e]
	for {
		e = s.partner[2*e+by]
		if e < 0 || s.side[e] != 0 {
			return
		}
		side = 3 - side
		s.side[e] = side
		by ^= 1
	}
}

// take gives one k-th of arcs, rounded so that what is left can be split in
// k - 1: entries, rows and columns each get their floor or ceiling. A k-th of
// everything is such a flow in fractions, so one in integers exists.
func (s *splitter) take(arcs []Arc, k int, one, rest []Arc) ([]Arc, []Arc) {
	rows, cols := Demand{s.d.Rows, s.d.Cols, arcs}.Sums()
	nodes := s.d.Rows + s.d.Cols
	f := newFlow(nodes+2*s.pods+2, len(arcs)+nodes+2*s.pods+1)
	source, sink := nodes+2*s.pods, nodes+2*s.pods+1
	share := func(from, to, n int) { f.arc(from, to, n/k, (n+k-1)/k, 0) }
	sums := [2][]int{make([]int, s.pods), make([]int, s.pods)}
	for i, n := range rows {
		from := source
		if s.podOf != nil {
			from = nodes + int(s.podOf[i])
			sums[0][s.podOf[i]] += n
		}
		share(from, i, n)
	}
	for j, n := range cols {
		to := sink
		if s.podOf != nil {
			to = nodes + s.pods + int(s.podOf[j])
			sums[1][s.podOf[j]] += n
		}
		share(s.d.Rows+j, to, n)
	}
	for p := range s.pods {
		share(source, nodes+p, sums[0][p])
		share(nodes+s.pods+p, sink, sums[1][p])
	}
	first := f.arcs()
	for _, a := range arcs {
		f.arc(int(a.From), s.d.Rows+int(a.To), int(a.Count)/k, (int(a.Count)+k-1)/k, 0)
	}
	f.arc(sink, source, 0, unbounded, 0)
	if !f.solve() {
		panic("wiring: invariant: a k-th of a matrix can be rounded to integers")
	}
	for n, a := range arcs {
		x := int32(f.on(first + n))
		if x > 0 {
			one = append(one, Arc{a.From, a.To, x})
		}
		if a.Count > x {
			rest = append(rest, Arc{a.From, a.To, a.Count - x})
		}
	}
	return one, rest
}
