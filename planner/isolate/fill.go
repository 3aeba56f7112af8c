package isolate

// filler puts virtual leaves into leaves such that all their circuits find free
// ports at switches where the chosen spines have some: augmenting paths between
// leaves and switches, which miss nothing. Which spine a circuit goes to is left
// to the weave.
type filler struct {
	leaves, colours int
	a               []int32 // free ports by leaf and switch; the state's own
	room            []int32 // of the spines at a switch, what is left of them
	x               []int32 // circuits by leaf and switch
	was             []int32 // room and x, to go back to
	seen            []bool  // switches, then leaves
	work            int
}

func (f *filler) reset(leaf *pool) {
	f.leaves, f.colours, f.a = len(leaf.row), leaf.columns, leaf.free
	f.x = zeroed(f.x, len(f.a))
	f.room = zeroed(f.room, f.colours)
	f.seen = make([]bool, f.colours+f.leaves)
}

func zeroed(list []int32, n int) []int32 {
	if cap(list) < n {
		return make([]int32, n)
	}
	clear(list[:n])
	return list[:n]
}

// add gives a leaf so many circuits more, or none.
func (f *filler) add(n, circuits int) bool {
	f.was = append(append(f.was[:0], f.room...), f.x...)
	for range circuits {
		clear(f.seen)
		if !f.augment(n) {
			copy(f.room, f.was)
			copy(f.x, f.was[f.colours:])
			return false
		}
	}
	return true
}

// augment finds a switch for one circuit of a leaf, if need be by sending
// circuits of others to other switches.
func (f *filler) augment(n int) bool {
	f.seen[f.colours+n] = true
	x, a := f.x[n*f.colours:(n+1)*f.colours], f.a[n*f.colours:(n+1)*f.colours]
	best := -1
	for k := range x {
		if x[k] < a[k] && f.room[k] > 0 && (best < 0 || f.room[k] > f.room[best]) {
			best = k
		}
	}
	f.work += f.colours
	if best >= 0 {
		x[best]++
		f.room[best]--
		return true
	}
	for k := range x {
		if x[k] >= a[k] || f.seen[k] {
			continue
		}
		f.seen[k] = true
		f.work += f.leaves
		for m := range f.leaves {
			if !f.seen[f.colours+m] && f.x[m*f.colours+k] > 0 && f.augment(m) {
				f.x[m*f.colours+k]--
				x[k]++
				return true
			}
		}
	}
	return false
}

// dealLeaves fills leaves in order with virtual leaves that the chosen spines
// can reach; nil: there is not room enough.
func (o *optical) dealLeaves(want shape, order []int32, on []share) []share {
	f := &o.fill
	f.reset(&o.leaf)
	for _, m := range on {
		for k, free := range o.spine.free[m.at*f.colours : (m.at+1)*f.colours] {
			f.room[k] += free
		}
	}
	var out []share
	left := want.l
	for _, n := range order {
		of := 0
		for most := o.leavesAt(int(n), want.s); left > 0 && of < most && f.add(int(n), want.s); of++ {
			left--
		}
		if of > 0 {
			out = append(out, share{int(n), of})
		}
	}
	o.w.steps += f.work / 64
	f.work = 0
	if left > 0 {
		return nil
	}
	return out
}
