package ring

import "slices"

// line is one ToR line within a domain: a sub-line, or all sub-lines at once
// with a ToR usable when every node under it is.
type line struct {
	ok   []bool
	ends []int32 // by place: the end of the first group that starts there or later; noEnd: none fits
	from []int32 // by end: where the group that ends there starts
}

// noEnd is behind every line; chosen: comparisons need no special case.
const noEnd = int32(1) << 30

// newLine finds the groups of a line. A group is a span of usable places, at
// most K apart, without a place inside that would need one bundle twice.
func newLine(ok []bool, k, size int, shared bool) line {
	l := line{ok: ok, ends: slices.Repeat([]int32{noEnd}, len(ok)+1), from: make([]int32, len(ok)+1)}
	places := make([]int32, 0, len(ok))
	for i, usable := range ok {
		if usable {
			places = append(places, int32(i))
		}
	}
	first := 0 // no group that ends here or later starts before places[first]
	for e := range places {
		if e > 0 && int(places[e]-places[e-1]) > k {
			first = e
		}
		if e > 1 && shared && int(places[e]-places[e-1]) == k && int(places[e-1]-places[e-2]) == k {
			first = max(first, e-1)
		}
		if start := e - size + 1; start >= first {
			l.ends[places[start]], l.from[places[e]+1] = places[e]+1, places[start]
		}
	}
	for i := len(ok) - 1; i >= 0; i-- {
		l.ends[i] = min(l.ends[i], l.ends[i+1])
	}
	return l
}

// next is the end of the first group at or after a place.
func (l line) next(at int32) int32 {
	if at == noEnd {
		return noEnd
	}
	return l.ends[at]
}

// most is the number of groups that the line holds from a place on.
func (l line) most() int {
	n := 0
	for at := l.next(0); at != noEnd; at = l.next(at) {
		n++
	}
	return n
}

// domain is one aggregation domain, or all of them when their ends are opened:
// its sub-lines' parts and all of them at once.
type domain struct {
	base  []int32 // by sub-line: the position of its node under the first ToR
	tors  int
	walls []int32 // by place: which domain it is of, where ends were opened; nil: none were
	size  int     // nodes in a group
	subs  []line
	all   line
}

// domainLines cuts the sub-lines into domains; open: only where they end
// themselves.
func (j Job) domainLines(ok []bool, open bool) []domain {
	zones := j.racks.zones(open)
	out := make([]domain, len(zones))
	for i, z := range zones {
		d := &out[i]
		d.base, d.tors, d.size = z.base, len(z.tors), j.Size
		all := make([]bool, d.tors)
		for t, tor := range z.tors {
			all[t] = true
			if open {
				d.walls = append(d.walls, j.racks.Domain[tor])
			}
		}
		for _, base := range z.base {
			part := ok[base : int(base)+d.tors]
			for t, usable := range part {
				all[t] = all[t] && usable
			}
			d.subs = append(d.subs, newLine(part, j.K, j.Size, j.Shared))
		}
		d.all = newLine(all, j.K, j.Size, j.Shared)
	}
	return out
}

// most is the number of groups that the domain holds when nothing is aligned.
func (d *domain) most() int {
	n := 0
	for _, s := range d.subs {
		n += s.most()
	}
	return n
}

// over is 1 for a group that reaches over an opened end.
func (d *domain) over(start, end int32) int32 {
	if d.walls == nil || d.walls[start] == d.walls[end-1] {
		return 0
	}
	return 1
}

// lastStep is how the best cut of the first ToRs ends: from some place on with
// so many unaligned groups, or none and a set, or none and an idle ToR.
type lastStep struct {
	from int32
	free int32
	cost int32
}

// cut is a domain's table: for the first i ToRs and at most so much cost the
// most groups, and the last step towards them. An unaligned group costs 1; a
// group over an opened end, aligned or not, costs 1 more.
type cut struct {
	width int // cost at most, plus 1
	best  []gain
	last  []lastStep
}

// gain is what a cut is worth: its groups first, then fewer cross-ToR flows.
type gain int64

const oneGroup = gain(1) << 32

func gainOf(groups, cross int32) gain { return gain(groups)*oneGroup - gain(cross) }

func (g gain) groups() int { return int((g + oneGroup - 1) / oneGroup) }

// all is what the whole domain gains at a cost of at most u.
func (c *cut) all(u int) gain { return c.best[len(c.best)-c.width+min(u, c.width-1)] }

// cutUp fills the table. Free segments need to be tried only where some
// sub-line's first group starts, and only as long as they are no two segments
// one after the other: so what is tried is few.
func (d *domain) cutUp(most int) cut {
	width := most + 1
	c := cut{width: width, best: make([]gain, (d.tors+1)*width), last: make([]lastStep, (d.tors+1)*width)}
	for i := range c.last {
		c.last[i].from = -1
	}
	p := int32(len(d.subs))
	f := d.free()
	for i := int32(0); int(i) < d.tors; i++ {
		c.advance(i, i+1, lastStep{from: i}, 0)
		if e := d.all.ends[i]; e != d.all.ends[i+1] {
			c.advance(i, e, lastStep{from: i, cost: p * d.over(i, e)}, gainOf(p, 0))
		}
		if !d.starts(i) {
			continue
		}
		f.open(i)
		for v := int32(1); ; v++ {
			_, e := f.take()
			if e == noEnd || int(f.cost) >= width {
				break
			}
			c.advance(i, e, lastStep{i, v, f.cost}, gainOf(v, f.cross))
			if f.fresh(e) {
				break
			}
		}
	}
	return c
}

// advance offers what is known at i, with so many groups more, at e.
func (c *cut) advance(i, e int32, st lastStep, more gain) {
	here := c.best[int(i)*c.width:][:c.width]
	there, last := c.best[int(e)*c.width:][:c.width], c.last[int(e)*c.width:][:c.width]
	for u := int(st.cost); u < c.width; u++ {
		if g := here[u-int(st.cost)] + more; g > there[u] || last[u].from < 0 {
			there[u], last[u] = g, st
		}
	}
}

// starts reports whether some sub-line's first group from i on starts at i.
func (d *domain) starts(i int32) bool {
	return slices.ContainsFunc(d.subs, func(s line) bool { return s.ends[i] != s.ends[i+1] })
}

// free is a free segment that grows: each sub-line is cut for itself, and the
// first groups of all are one set, and so on.
type free struct {
	d     *domain
	at    []int32   // by sub-line: the end of its last group
	ends  [][]int32 // by sub-line: the ends of its groups
	cost  int32
	cross int32 // flows between ToRs, when the sets stay together
}

func (d *domain) free() free {
	return free{d: d, at: make([]int32, len(d.subs)), ends: make([][]int32, len(d.subs))}
}

// open starts a segment at a place.
func (f *free) open(i int32) {
	for s := range f.at {
		f.at[s], f.ends[s] = i, f.ends[s][:0]
	}
	f.cost, f.cross = 0, 0
}

// take grows the segment by the group that ends first.
func (f *free) take() (sub int, end int32) {
	sub, end = -1, noEnd
	for s := range f.at {
		if e := f.d.subs[s].next(f.at[s]); e < end {
			sub, end = s, e
		}
	}
	if sub < 0 {
		return sub, end
	}
	f.at[sub] = end
	f.ends[sub] = append(f.ends[sub], end)
	f.cost += 1 + f.d.over(f.d.subs[sub].from[end], end)
	f.cross += f.meet(len(f.ends[sub]) - 1)
	return sub, end
}

// meet is what a group more in a set adds to the cross-ToR flows: all its own
// while the set is not whole, then what the whole set has less.
func (f *free) meet(set int) int32 {
	size, p := f.d.size, len(f.ends)
	for s := range f.ends {
		if len(f.ends[s]) <= set {
			return int32(size)
		}
	}
	cross := 0
	for s := range f.ends {
		next := (s + 1) % p
		a, b := f.ends[s][set], f.ends[next][set]
		for range size {
			for a--; !f.d.subs[s].ok[a]; a-- {
			}
			for b--; !f.d.subs[next].ok[b]; b-- {
			}
			if a != b {
				cross++
			}
		}
	}
	return int32(cross - (p-1)*size)
}

// fresh reports whether no sub-line loses anything when a new segment starts
// at e.
func (f *free) fresh(e int32) bool {
	for s := range f.at {
		if f.d.subs[s].next(f.at[s]) != f.d.subs[s].next(e) {
			return false
		}
	}
	return true
}

// place reads the groups of the best cut at a cost of at most u out of the
// table.
func (j Job) place(d *domain, c *cut, u int, out []placed) []placed {
	f := d.free()
	i := int32(d.tors)
	u = min(u, c.width-1)
	for i > 0 {
		st := c.last[int(i)*c.width+u]
		before := u - int(st.cost)
		if st.free > 0 {
			f.open(st.from)
			for range st.free {
				s, e := f.take()
				out = append(out, j.spanBefore(d, s, d.subs[s].ok, e))
			}
		} else if c.best[int(i)*c.width+u] != c.best[int(st.from)*c.width+before] {
			for s := range d.subs {
				out = append(out, j.spanBefore(d, s, d.all.ok, i))
			}
		}
		i, u = st.from, before
	}
	return out
}

// spanBefore is the group on a sub-line that ends before a place.
func (j Job) spanBefore(d *domain, sub int, ok []bool, end int32) placed {
	g := placed{at: make([]int32, j.Size)}
	base := d.base[sub]
	for r := j.Size - 1; r >= 0; r-- {
		end--
		for !ok[end] {
			end--
		}
		g.at[r] = base + end
	}
	return g
}

// shareOut gives each domain its number of unaligned groups, the fewest in
// all that reach want groups. It tries few first: most jobs need few, and the
// work grows with the square. nil: the domains do not hold so many.
func (j Job) shareOut(domains []domain, want int) []placed {
	total := 0
	for i := range domains {
		total += domains[i].most()
	}
	if total < want {
		return nil
	}
	for most := 0; ; most = max(8, 2*most) {
		if tooLarge(domains, most) {
			return j.relaxed(domains, want)
		}
		cuts := make([]cut, len(domains))
		for i := range domains {
			cuts[i] = domains[i].cutUp(min(most, 2*domains[i].most()))
		}
		if shares := share(cuts, min(most, 2*total), want); shares != nil {
			out := []placed{}
			for i := range domains {
				out = j.place(&domains[i], &cuts[i], shares[i], out)
			}
			return out
		}
	}
}

// share is the knapsack: the unaligned groups of each domain, the fewest in
// all, at most most, that reach want groups; nil when there is no such.
func share(cuts []cut, most, want int) []int {
	best, next := make([]gain, most+1), make([]gain, most+1)
	chosen := make([]int32, len(cuts)*(most+1))
	for i := range cuts {
		for all := range next {
			next[all] = -1 << 62
			for u := range min(all, cuts[i].width-1) + 1 {
				if g := best[all-u] + cuts[i].all(u); g > next[all] {
					next[all], chosen[i*(most+1)+all] = g, int32(u)
				}
			}
		}
		best, next = next, best
	}
	for all, g := range best {
		if g.groups() < want {
			continue
		}
		shares := make([]int, len(cuts))
		for i := len(cuts) - 1; i >= 0; i-- {
			shares[i] = int(chosen[i*(most+1)+all])
			all -= shares[i]
		}
		return shares
	}
	return nil
}
