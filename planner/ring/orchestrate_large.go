package ring

// maxCells bounds the tables of the exact method, 20 bytes a cell. chosen:
// 32,768 GPUs at 90 % job scale stay far below, and a board computer copes.
const maxCells = 4 << 20

// price is what a group is worth where an unaligned one costs from 1 up to it.
// chosen: more than the cost of all groups there can be, so that at the lowest
// cost no group is given up.
const price = int64(1) << 24

// tooLarge reports whether tables of so much cost would not fit.
func tooLarge(domains []domain, most int) bool {
	cells := len(domains) * (most + 1)
	for i := range domains {
		cells += (domains[i].tors + 1) * (min(most, 2*domains[i].most()) + 1)
	}
	return cells > maxCells
}

// relaxed places jobs whose tables would be too large. In place of a limit on
// unaligned groups they have a cost, and the highest at which the job fits is
// searched for: the fewest unaligned groups but for what lies between two
// costs, which is a few in thousands.
func (j Job) relaxed(domains []domain, want int) []placed {
	for longest := 64; ; longest *= 4 {
		low, high := int64(1), price // fits at low, if at all
		rows := make([]row, len(domains))
		fits := func(cost int64) bool {
			groups := 0
			for i := range domains {
				groups += rows[i].fill(&domains[i], cost, longest)
			}
			return groups >= want
		}
		if !fits(low) {
			continue // longer segments hold more
		}
		for high-low > 1 {
			if mid := (low + high) / 2; fits(mid) {
				low = mid
			} else {
				high = mid
			}
		}
		fits(low)
		out := []placed{}
		for i := range domains {
			out = j.placeRow(&domains[i], &rows[i], out)
		}
		return out
	}
}

// row is a domain's table with a cost in place of a limit.
type row struct {
	best []int64
	last []lastStep
}

// fill finds the best cut at a cost and gives its number of groups.
func (r *row) fill(d *domain, cost int64, longest int) int {
	if r.best == nil {
		r.best, r.last = make([]int64, d.tors+1), make([]lastStep, d.tors+1)
	}
	for i := range r.best {
		r.best[i] = -1
	}
	r.best[0] = 0
	groups := make([]int32, d.tors+1)
	offer := func(i, e int32, st lastStep, more int32) {
		if v := r.best[i] + int64(more)*price - int64(st.cost)*cost; v > r.best[e] {
			r.best[e], r.last[e], groups[e] = v, st, groups[i]+more
		}
	}
	f := d.free()
	p := int32(len(d.subs))
	for i := int32(0); int(i) < d.tors; i++ {
		offer(i, i+1, lastStep{from: i}, 0)
		if e := d.all.ends[i]; e != d.all.ends[i+1] {
			offer(i, e, lastStep{from: i, cost: p * d.over(i, e)}, p)
		}
		if !d.starts(i) {
			continue
		}
		f.open(i)
		for v := int32(1); int(v) <= longest; v++ {
			_, e := f.take()
			if e == noEnd {
				break
			}
			offer(i, e, lastStep{i, v, f.cost}, v)
			if f.fresh(e) {
				break
			}
		}
	}
	return int(groups[d.tors])
}

// placeRow reads the groups out of a filled row.
func (j Job) placeRow(d *domain, r *row, out []placed) []placed {
	f := d.free()
	for i := int32(d.tors); i > 0; i = r.last[i].from {
		st := r.last[i]
		if st.free > 0 {
			f.open(st.from)
			for range st.free {
				s, e := f.take()
				out = append(out, j.spanBefore(d, s, d.subs[s].ok, e))
			}
		} else if r.best[i] != r.best[st.from] {
			for s := range d.subs {
				out = append(out, j.spanBefore(d, s, d.all.ok, i))
			}
		}
	}
	return out
}
