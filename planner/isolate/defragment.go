package isolate

import (
	"cmp"
	"slices"
)

// maxMoves is how many sets of moves are tried for one head in one state;
// chosen: a hundred decisions.
const maxMoves = 100

// makeRoom moves running jobs that allow it so that the head can start: one or
// two, fewest dark GPU-seconds first, which are GPUs times Rules.MoveMS.
func (q *Queue) makeRoom(now int64, head *waiter) (Start, bool) {
	if q.rules.MoveMS <= 0 || head.moved == q.changes {
		return Start{}, false
	}
	head.moved = q.changes
	var may []Job
	for _, r := range q.running { // any order: sorted below
		if r.MayPauseMS >= q.rules.MoveMS {
			may = append(may, r.Job)
		}
	}
	slices.SortFunc(may, func(a, b Job) int { return cmp.Or(cmp.Compare(a.GPUs, b.GPUs), cmp.Compare(a.ID, b.ID)) })
	type set struct {
		gpus int
		jobs []Job
	}
	var sets []set
	for n, a := range may {
		sets = append(sets, set{a.GPUs, []Job{a}})
		for _, b := range may[:n] {
			sets = append(sets, set{a.GPUs + b.GPUs, []Job{a, b}})
		}
	}
	slices.SortStableFunc(sets, func(a, b set) int {
		return cmp.Or(cmp.Compare(a.gpus, b.gpus), cmp.Compare(len(a.jobs), len(b.jobs)))
	})
	for _, s := range sets[:min(len(sets), maxMoves)] {
		if p, moves, ok := q.after(head, s.jobs); ok {
			for _, m := range moves {
				q.state.Release(m.Job)
			}
			start := q.start(now, head, p)
			for _, m := range moves {
				if err := q.state.Take(m.Job, m.To); err != nil {
					panic("isolate: invariant: what a probe took is free: " + err.Error())
				}
			}
			start.Moves = moves
			return start, true
		}
	}
	return Start{}, false
}

// after places the head as if these jobs were not there, and then them, the
// largest first.
func (q *Queue) after(head *waiter, jobs []Job) (Placement, []Move, bool) {
	then := q.state.probe()
	var moves []Move
	for _, j := range jobs {
		p, _ := q.state.Of(j.ID)
		then.give(p, len(p.Servers), len(p.Links), 2*len(p.Circuits))
		moves = append(moves, Move{Job: j.ID, From: p})
	}
	place := func(gpus int) (Placement, bool) {
		p, why := then.Place(gpus)
		if why != Fits {
			return p, false
		}
		if err := then.take(p); err != nil {
			panic("isolate: invariant: what Place gives is free: " + err.Error())
		}
		return p, true
	}
	p, ok := place(head.GPUs)
	for n := range moves {
		if ok {
			moves[n].To, ok = place(moves[n].From.GPUs)
		}
	}
	return p, moves, ok
}
