package isolate

// ways.go is the last resort of stage 3: every way of virtual leaves to
// leaves and of virtual spines to spines, each coloured exactly, until the
// decision's work is spent. On small cores nothing is missed so.

const (
	// exactCircuits is up to how many circuits it is worth while; chosen: with
	// more, few of the ways are reached.
	exactCircuits = 32
	// exactSteps bounds one exact colouring; chosen: enough for 16 circuits
	// over 4 switches, nearly always.
	exactSteps = 3000
)

// everyWay looks at all ways of all shapes.
func (o *optical) everyWay(shapes []shape) (p Placement, ok bool) {
	if o.need*o.core.GPUsPerServer > exactCircuits {
		return p, false
	}
	for _, want := range shapes {
		leaves := rooms(o.core.Leaves(), func(n int) int { return o.leavesAt(n, want.s) })
		spines := rooms(o.core.Spines(), func(m int) int { return int(o.spine.row[m]) / want.l })
		o.way(leaves, want.l, nil, func(at []share) bool {
			return o.way(spines, want.s, nil, func(on []share) bool {
				if o.colourExactly(at, on) {
					p, ok = o.placement(want, at, on), true
				}
				return ok
			})
		})
		if ok {
			break
		}
	}
	return p, ok
}

// colourExactly finds a colouring if there is one; where that takes too long,
// ejection chains have a try.
func (o *optical) colourExactly(at, on []share) bool {
	if !o.lay(at, on) {
		return false
	}
	found, complete := o.w.exact(exactSteps, 0)
	if !complete {
		o.lay(at, on)
		found = o.w.run(0)
	}
	return found
}

// rooms lists who has room, and how much.
func rooms(n int, room func(n int) int) []share {
	var out []share
	for at := range n {
		if of := room(at); of > 0 {
			out = append(out, share{at, of})
		}
	}
	return out
}

// way shows every way to put so many things into rooms, the fullest first,
// until one is taken or the decision's work is spent.
func (o *optical) way(rooms []share, things int, to []share, take func([]share) bool) bool {
	if o.w.steps++; o.w.steps > maxSteps {
		return true
	}
	if things == 0 {
		return take(to)
	}
	left := 0
	for _, r := range rooms {
		left += r.of
	}
	if left < things {
		return false
	}
	first := rooms[0]
	for of := min(first.of, things); of >= 0; of-- {
		next := to
		if of > 0 {
			next = append(to[:len(to):len(to)], share{first.at, of})
		}
		if o.way(rooms[1:], things-of, next, take) {
			return true
		}
	}
	return false
}
