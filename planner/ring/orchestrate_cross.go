package ring

// reach is the dynamic program over the whole HBD order: for the first i
// usable places and at most x groups that reach over the end of a sub-line,
// the most groups.
type reach struct {
	at    []int32 // usable positions, in HBD order from where it was opened
	valid []bool  // by last place: the group that ends there may be
	over  []bool  // by last place: it reaches over the end of a sub-line
}

// maxReachCells bounds the table, 5 bytes a cell. chosen: only absurdly short
// sub-lines get there.
const maxReachCells = 16 << 20

// reachOver places a job that needs groups over the ends of sub-lines: the
// fewest of them. So full an HBD leaves no choice that would align much. nil:
// it does not hold so many.
func (j Job) reachOver(ok []bool) []placed {
	all := j.placeAll(ok)
	if len(all) < j.Want {
		return nil
	}
	turns := 1
	if j.Wrap {
		// Some group starts at one of Size consecutive places, or none passes
		// the place behind them.
		turns = j.Size + 1
	}
	for most := 1; ; most = 2 * most {
		if (j.Nodes+1)*(most+1) > maxReachCells {
			return all
		}
		best, bestOver := []placed(nil), most+1
		for turn := range turns {
			r := j.open(ok, turn)
			if over, groups := r.solve(j.Size, min(most, bestOver-1), j.Want); groups != nil {
				best, bestOver = groups, over
			}
			if bestOver == 0 {
				break
			}
		}
		if best != nil {
			return best
		}
	}
}

// open lists the places from a turn on and what groups they allow.
func (j Job) open(ok []bool, turn int) reach {
	var r reach
	for i, usable := range ok {
		if usable {
			r.at = append(r.at, int32(i))
		}
	}
	if len(r.at) > 0 {
		turn %= len(r.at)
		r.at = append(r.at[turn:len(r.at):len(r.at)], r.at[:turn]...)
	}
	r.valid, r.over = make([]bool, len(r.at)), make([]bool, len(r.at))
	first := 0
	gap := func(e int) int { return (int(r.at[e]-r.at[e-1]) + j.Nodes) % j.Nodes }
	for e := range r.at {
		if e > 0 && (gap(e) > j.K || !j.Wrap && r.at[e] < r.at[e-1]) {
			first = e
		}
		if e > 1 && j.Shared && gap(e) == j.K && gap(e-1) == j.K {
			first = max(first, e-1)
		}
		if s := e - j.Size + 1; s >= first {
			r.valid[e] = true
			r.over[e] = j.line[r.at[s]] != j.line[r.at[e]]
		}
	}
	return r
}

// solve finds the smallest number of reaching groups, at most most, with
// which want groups are placed.
func (r reach) solve(size, most, want int) (over int, groups []placed) {
	if most < 0 {
		return 0, nil
	}
	width := most + 1
	best := make([]int32, (len(r.at)+1)*width)
	took := make([]bool, (len(r.at)+1)*width)
	for e := range r.at {
		here, before := best[(e+1)*width:][:width], best[e*width:][:width]
		copy(here, before)
		if !r.valid[e] {
			continue
		}
		cost := 0
		if r.over[e] {
			cost = 1
		}
		start := best[(e+1-size)*width:][:width]
		for x := cost; x < width; x++ {
			if g := start[x-cost] + 1; g > here[x] {
				here[x], took[(e+1)*width+x] = g, true
			}
		}
	}
	last := best[len(r.at)*width:]
	for over = 0; over < width && int(last[over]) < want; over++ {
	}
	if over == width {
		return 0, nil
	}
	for e, x := len(r.at), over; e > 0; {
		if !took[e*width+x] {
			e--
			continue
		}
		groups = append(groups, placed{at: append([]int32(nil), r.at[e-size:e]...)})
		if r.over[e-1] {
			x--
		}
		e -= size
	}
	return over, groups
}
