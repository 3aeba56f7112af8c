package isolate

import (
	"cmp"
	"slices"
)

// byEnd gives the running jobs by the time they are declared to end. One that
// is late counts as ending now.
func (q *Queue) byEnd(now int64) []runner {
	out := make([]runner, 0, len(q.running))
	for _, r := range q.running { // any order: sorted below
		r.ends = max(r.ends, now)
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b runner) int { return cmp.Or(cmp.Compare(a.ends, b.ends), cmp.Compare(a.ID, b.ID)) })
	return out
}

// reserve is the earliest time at which a job can be placed by declared
// durations, and what is owned then, of those that run now and of the job.
// nil: never.
func (q *Queue) reserve(now int64, w *waiter) (int64, *State) {
	then := q.state.probe()
	ends := q.byEnd(now)
	for n, r := range ends {
		q.giveBack(then, r)
		if n+1 < len(ends) && ends[n+1].ends == r.ends {
			continue
		}
		if settle(then, w) {
			return r.ends, then
		}
	}
	return 0, nil
}

// beside is what is owned at the turn of the head when another job starts now
// and still runs then; nil: the head has no place beside it.
func (q *Queue) beside(now, turn int64, head *waiter, other Placement) *State {
	then := q.state.probe()
	if err := then.take(other); err != nil {
		panic("isolate: invariant: what Place gives is free: " + err.Error())
	}
	for _, r := range q.byEnd(now) {
		if r.ends <= turn {
			q.giveBack(then, r)
		}
	}
	if !settle(then, head) {
		return nil
	}
	return then
}

func (q *Queue) giveBack(then *State, r runner) {
	p, _ := q.state.Of(r.ID)
	then.give(p, len(p.Servers), len(p.Links), 2*len(p.Circuits))
}

// settle takes a place for a waiting job.
func settle(then *State, w *waiter) bool {
	p, why := then.Place(w.GPUs)
	if why != Fits {
		return false
	}
	if err := then.take(p); err != nil {
		panic("isolate: invariant: what Place gives is free: " + err.Error())
	}
	return true
}

// passHead starts what does not delay the head: what ends before the head's
// turn, and what fits beside it. Jobs of one size have one place, so that each
// size is looked at once in each state.
func (q *Queue) passHead(now int64) []Start {
	var out []Start
	head := q.waiting[0]
	turn, then := q.reserve(now, head)
	full, crowd := map[int]bool{}, map[int]bool{} // sizes: no place; none beside the head
	for n := 1; n < len(q.waiting); n++ {
		w := q.waiting[n]
		stays := then != nil && now+w.DurationMS > turn // at the head's turn
		if full[w.GPUs] || stays && crowd[w.GPUs] {
			continue
		}
		p, ok := q.place(w)
		if !ok {
			full[w.GPUs] = true
			continue
		}
		if stays && then.take(p) != nil {
			// Not beside the head's place; perhaps the head has another.
			other := q.beside(now, turn, head, p)
			if other == nil {
				crowd[w.GPUs] = true
				continue
			}
			then = other
		}
		out = append(out, q.start(now, w, p))
		if q.waiting[0] != head {
			break
		}
		clear(full)
		clear(crowd)
		n--
	}
	return out
}

// maxReserved is how many waiting jobs conservative backfill gives times to;
// those behind do not start. chosen: several times the queue of a core that
// keeps up with its jobs, and a tenth of a second of the slowest decision.
const maxReserved = 512

// profile is how many GPUs are free from each time on, to the next.
type profile []struct {
	from int64
	free int
}

// passReserved gives every waiting job, the head first, the time at which
// enough GPUs are free by declared durations. It starts those whose time is
// now and that can be placed. Times go by the number of GPUs alone; which GPUs
// and links a job gets is decided when it starts.
func (q *Queue) passReserved(now int64) []Start {
	var out []Start
	head := q.waiting[0]
	free := profile{{now, q.state.FreeGPUs()}}
	for _, r := range q.byEnd(now) {
		p, _ := q.state.Of(r.ID)
		gpus := 0
		for _, w := range p.Servers {
			gpus += w.GPUs
		}
		free = append(free, struct {
			from int64
			free int
		}{r.ends, free[len(free)-1].free + gpus})
	}
	for n := 0; n < len(q.waiting) && n < maxReserved; n++ {
		w := q.waiting[n]
		at := free.earliest(now, w.DurationMS, q.gpus(w))
		if at == now {
			if p, ok := q.place(w); ok {
				out = append(out, q.start(now, w, p))
				free = free.less(now, w.DurationMS, q.gpus(w))
				if len(q.waiting) > 0 && q.waiting[0] != head {
					break
				}
				n--
				continue
			}
			at = now + 1
			if len(free) > 1 {
				at = free[1].from
			}
			at = free.earliest(at, w.DurationMS, q.gpus(w))
		}
		if at >= 0 {
			free = free.less(at, w.DurationMS, q.gpus(w))
		}
	}
	return out
}

// gpus is what a job will own.
func (q *Queue) gpus(w *waiter) int {
	if w.GPUs <= q.state.core.GPUsPerServer {
		return w.GPUs
	}
	return q.state.core.servers(w.GPUs) * q.state.core.GPUsPerServer
}

// earliest is the first time, not before from, from which so many GPUs are
// free for so long; -1: never.
func (f profile) earliest(from, length int64, gpus int) int64 {
	at := int64(-1)
	for n, step := range f {
		if n+1 < len(f) && f[n+1].from <= from {
			continue
		}
		if step.free < gpus {
			at = -1
			continue
		}
		if at < 0 {
			at = max(step.from, from)
		}
		if n+1 == len(f) || f[n+1].from >= at+length {
			return at
		}
	}
	return -1
}

// less takes GPUs away from a time on for so long.
func (f profile) less(from, length int64, gpus int) profile {
	f = f.cut(from).cut(from + length)
	for n := range f {
		if f[n].from >= from && f[n].from < from+length {
			f[n].free -= gpus
		}
	}
	return f
}

// cut makes a step begin at a time.
func (f profile) cut(at int64) profile {
	for n, step := range f {
		if step.from == at {
			return f
		}
		if step.from > at {
			step = f[n-1]
			step.from = at
			return slices.Insert(f, n, step)
		}
	}
	step := f[len(f)-1]
	step.from = at
	return append(f, step)
}
