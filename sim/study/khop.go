package study

import "slices"

// khop counts the TP groups of a K-hop line or ring from its faulty nodes
// alone. The rule is that of planner/ring: consecutive members at most K
// apart, and with a shared bundle no member that has both neighbours exactly
// K away ([IHBD] sec 4.2; the second is ours).
type khop struct {
	nodes  int
	k      int
	wrap   bool
	shared bool

	runs  []outage  // scratch
	round int       // nodes of the ring that runs are of
	parts []stretch // what the last walk found
	pinch []int     // the pinches of all gaps, one after another
}

// outage is a run of faulty nodes.
type outage struct{ start, length int }

// stretch is a component: usable nodes each at most K from the next.
type stretch struct {
	usable  int
	closed  bool
	pinches []int // places of nodes that may only be an end of a group
}

// walk splits the order into its components. faulty is sorted. The first
// component starts behind a gap of K or more, so that none is torn at the last
// index.
func (h *khop) walk(faulty []int) {
	h.outages(faulty)
	h.parts, h.pinch = h.parts[:0], h.pinch[:0]
	first := slices.IndexFunc(h.runs, func(r outage) bool { return r.length >= h.k })
	closed := first < 0
	first = max(first, 0)
	if len(h.runs) == 0 { // a ring without a fault
		h.parts = append(h.parts, stretch{usable: h.nodes, closed: true})
		return
	}
	usable, from := 0, 0
	for i := range h.runs { // back to the run behind which it started
		before, after := h.run(first+i), h.run(first+i+1)
		gap := h.gap(before, after)
		if h.shared && gap == 1 && before.length == h.k-1 && after.length == h.k-1 {
			h.pinch = append(h.pinch, usable)
		}
		usable += gap
		if after.length >= h.k || i == len(h.runs)-1 {
			h.parts = append(h.parts, stretch{usable: usable, closed: closed, pinches: h.pinch[from:len(h.pinch):len(h.pinch)]})
			usable, from = 0, len(h.pinch)
		}
	}
}

func (h *khop) run(i int) outage { return h.runs[i%len(h.runs)] }

// gap is the number of usable nodes between two runs that follow each other.
func (h *khop) gap(before, after outage) int {
	gap := after.start - (before.start + before.length)
	if gap < 0 || len(h.runs) == 1 {
		gap += h.round
	}
	return gap
}

// outages fills runs. A line is a ring with K faulty nodes more behind its end.
func (h *khop) outages(faulty []int) {
	h.runs, h.round = h.runs[:0], h.nodes
	add := func(start, length int) {
		if n := len(h.runs); n > 0 && h.runs[n-1].start+h.runs[n-1].length == start {
			h.runs[n-1].length += length
			return
		}
		h.runs = append(h.runs, outage{start, length})
	}
	for _, n := range faulty {
		add(n, 1)
	}
	if !h.wrap {
		add(h.nodes, h.k)
		h.round += h.k
	}
	n := len(h.runs)
	if n > 1 && h.runs[0].start == 0 && h.runs[n-1].start+h.runs[n-1].length == h.round {
		h.runs[n-1].length += h.runs[0].length
		h.runs = h.runs[1:]
	}
}

// groups is the largest number of groups of size nodes in the last walk.
func (h *khop) groups(size int) int {
	return sumOf(h.parts, func(s stretch) int { return s.groups(size) })
}

// groups of a stretch. Taking the group that ends first is the optimum of
// interval scheduling. A closed stretch is cut at each of size+1 consecutive
// places: in an optimum some group starts at one of them or none passes the
// last of them.
func (s stretch) groups(size int) int {
	if len(s.pinches) == 0 || size < 3 {
		return s.usable / size
	}
	if !s.closed {
		return greedy(s.usable, size, s.pinches, 0)
	}
	best := 0
	for cut := 0; cut <= size && cut < s.usable; cut++ {
		best = max(best, greedy(s.usable, size, s.pinches, cut))
	}
	return best
}

// greedy counts groups from place `cut` on round to the place before it.
func greedy(usable, size int, pinches []int, cut int) int {
	first, _ := slices.BinarySearch(pinches, cut)
	start, total := 0, 0
	for i := range pinches {
		at := pinches[(first+i)%len(pinches)] - cut
		if at < 0 {
			at += usable
		}
		// A group may end at the pinch or start there.
		n := (at + 1 - start) / size
		total += n
		start += n * size
		start = max(start, at)
	}
	return total + (usable-start)/size
}
