package isolate

import (
	"cmp"
	"fmt"
	"slices"
)

// Order is which waiting job is the head, and what may pass it.
type Order uint8

const (
	FIFO         Order = iota // first come; the head blocks all others, as in the next two
	Fewest                    // fewest GPUs first
	EDF                       // earliest deadline first, those without one last
	EASY                      // first come; others pass the head if they do not delay it
	Conservative              // first come; others pass if they delay nobody before them
)

var orderNames = [...]string{"fifo", "fewest", "edf", "easy", "conservative"}

func (o Order) String() string { return orderNames[o] }

// OrderOf finds an order by its name.
func OrderOf(name string) (Order, bool) {
	at := slices.Index(orderNames[:], name)
	return Order(max(at, 0)), at >= 0
}

// Patience is how often a job is passed by jobs that came later before it
// becomes the head, unless Rules say otherwise. chosen.
const Patience = 20

// Rules are how a queue decides.
type Rules struct {
	Order    Order
	Patience int // instead of the constant; 0: the constant, below 0: no end of it
	// MoveMS is how long a job is dark that is moved to other servers or
	// circuits; 0: no job is moved. See Job.MayPauseMS.
	MoveMS int64
}

// Job is what is submitted.
type Job struct {
	ID         JobID
	GPUs       int
	DurationMS int64 // as declared; it may run shorter or longer
	DeadlineMS int64 // on the clock of the caller; 0: none
	MayPauseMS int64 // how long it may be dark to make room; 0: not at all
	// Passed is how many jobs that came later have started before it: 0, or
	// what Waiting gave for it to a former queue.
	Passed int
}

// Start is a job that starts now, with what it gets.
type Start struct {
	Job       Job
	Placement Placement
	Moves     []Move // to be made before
}

// Move is a running job that goes elsewhere.
type Move struct {
	Job      JobID
	From, To Placement
}

// Blocked counts the heads of the queue that could not be placed, each once.
type Blocked struct{ GPU, Network int }

type waiter struct {
	Job
	came    uint64 // how many came before
	counted bool   // in Blocked
	failed  uint64 // it could not be placed in the state of this change; 0: never tried
	why     Cause  // then
	moved   uint64 // moving others for it was tried in vain then
}

type runner struct {
	Job
	ends int64 // as declared
}

// Queue decides which waiting job starts when. It owns its State. Nothing
// happens between calls: whoever reports what came and what ended, and then
// asks Start, has missed nothing.
type Queue struct {
	rules   Rules
	state   *State
	waiting []*waiter // the head first
	running map[JobID]runner
	known   map[int]error // of a number of GPUs: whether the empty core has room
	came    uint64
	changes uint64 // of the state, from 1
	blocked Blocked
}

// NewQueue is a queue before a core. Jobs that the state has are not known to
// it: see Adopt.
func NewQueue(s *State, r Rules) *Queue {
	return &Queue{rules: r, state: s, running: map[JobID]runner{}, known: map[int]error{}, changes: 1}
}

// State is who owns what. Only the queue may change it.
func (q *Queue) State() *State { return q.state }

// Blocked is how many heads could not be placed when they became the head or
// came as the head.
func (q *Queue) Blocked() Blocked { return q.blocked }

// Waiting gives the jobs that wait, the head first.
func (q *Queue) Waiting() []Job {
	out := make([]Job, len(q.waiting))
	for n, w := range q.waiting {
		out[n] = w.Job
	}
	return out
}

// Why is what a waiting job was blocked by when it was last tried; Fits where
// it was not, because others are before it.
func (q *Queue) Why(id JobID) Cause {
	for _, w := range q.waiting {
		if w.ID == id {
			return w.why
		}
	}
	return Fits
}

// Runs says whether a job has been started and has not finished.
func (q *Queue) Runs(id JobID) bool {
	_, ok := q.running[id]
	return ok
}

// Check says whether a job can be submitted: whether the core, were it empty,
// had room for it.
func (q *Queue) Check(j Job) error {
	for _, f := range [...]struct {
		field string
		value int64
		least int64
	}{{"duration_ms", j.DurationMS, 1}, {"deadline_ms", j.DeadlineMS, 0}, {"may_pause_ms", j.MayPauseMS, 0}} {
		if f.value < f.least || f.value > maxMS {
			return wrong(f.field, fmt.Sprintf("%d to %d", f.least, int64(maxMS)), "%d", f.value)
		}
	}
	err, ok := q.known[j.GPUs]
	if !ok {
		if err = q.state.core.Check(j.GPUs); err == nil {
			if _, why := q.state.core.Empty().Place(j.GPUs); why != Fits {
				err = wrong("gpus_total", "what the empty core has room for", "%d GPUs: %s", j.GPUs, why)
			}
		}
		q.known[j.GPUs] = err
	}
	return err
}

// maxMS bounds times; chosen: sums of two stay far from the end of an int64.
const maxMS = 1 << 60

// Submit lets a job wait.
func (q *Queue) Submit(j Job) error {
	if err := q.Check(j); err != nil {
		return err
	}
	if q.Runs(j.ID) || slices.ContainsFunc(q.waiting, func(w *waiter) bool { return w.ID == j.ID }) {
		return wrong("job", "a job that is not there yet", "job %d is", j.ID)
	}
	q.came++
	w := &waiter{Job: j, came: q.came}
	at, _ := slices.BinarySearchFunc(q.waiting, w, q.before)
	q.waiting = slices.Insert(q.waiting, at, w)
	return nil
}

// aged says whether a job has been passed often enough.
func (q *Queue) aged(w *waiter) bool {
	patience := cmp.Or(q.rules.Patience, Patience)
	return patience > 0 && w.Passed >= patience
}

// before orders waiting jobs.
func (q *Queue) before(a, b *waiter) int {
	if x, y := q.aged(a), q.aged(b); x != y {
		if x {
			return -1
		}
		return 1
	} else if x {
		return cmp.Compare(a.came, b.came)
	}
	switch q.rules.Order {
	case Fewest:
		return cmp.Or(cmp.Compare(a.GPUs, b.GPUs), cmp.Compare(a.came, b.came))
	case EDF:
		// 0, none, becomes the largest
		return cmp.Or(cmp.Compare(uint64(a.DeadlineMS-1), uint64(b.DeadlineMS-1)), cmp.Compare(a.came, b.came))
	}
	return cmp.Compare(a.came, b.came)
}

// Adopt lets a job run where it is known to be, as after a restart; it is
// declared to end then.
func (q *Queue) Adopt(j Job, p Placement, endsMS int64) error {
	if q.Runs(j.ID) || slices.ContainsFunc(q.waiting, func(w *waiter) bool { return w.ID == j.ID }) {
		return wrong("job", "a job that is not there yet", "job %d is", j.ID)
	}
	if err := q.state.Take(j.ID, p); err != nil {
		return err
	}
	q.changes++
	q.running[j.ID] = runner{j, endsMS}
	return nil
}

// Finished takes a job out that has ended, or that shall wait no longer.
func (q *Queue) Finished(id JobID) bool {
	if _, ok := q.running[id]; ok {
		q.changes++
		delete(q.running, id)
		return q.state.Release(id)
	}
	at := slices.IndexFunc(q.waiting, func(w *waiter) bool { return w.ID == id })
	if at >= 0 {
		q.waiting = slices.Delete(q.waiting, at, at+1)
	}
	return at >= 0
}

// Start gives the jobs that start now, and makes them run.
func (q *Queue) Start(nowMS int64) []Start {
	var out []Start
	for len(q.waiting) > 0 {
		head := q.waiting[0]
		if p, ok := q.place(head); ok {
			out = append(out, q.start(nowMS, head, p))
			continue
		}
		if !head.counted {
			head.counted = true
			if head.why == ByNetwork {
				q.blocked.Network++
			} else {
				q.blocked.GPU++
			}
		}
		if moved, ok := q.makeRoom(nowMS, head); ok {
			out = append(out, moved)
			continue
		}
		switch q.rules.Order {
		case EASY:
			out = append(out, q.passHead(nowMS)...)
		case Conservative:
			out = append(out, q.passReserved(nowMS)...)
		}
		if len(q.waiting) > 0 && q.waiting[0] != head {
			continue // one has been passed often enough
		}
		break
	}
	return out
}

// place tries a waiting job, once in each state.
func (q *Queue) place(w *waiter) (Placement, bool) {
	if w.failed == q.changes {
		return Placement{}, false
	}
	p, why := q.state.Place(w.GPUs)
	w.why = why
	if why != Fits {
		w.failed = q.changes
	}
	return p, why == Fits
}

// start makes a waiting job run.
func (q *Queue) start(now int64, w *waiter, p Placement) Start {
	if err := q.state.Take(w.ID, p); err != nil {
		panic("isolate: invariant: what Place gives is free: " + err.Error())
	}
	q.changes++
	q.running[w.ID] = runner{w.Job, now + w.DurationMS}
	at := slices.Index(q.waiting, w)
	q.waiting = slices.Delete(q.waiting, at, at+1)
	aged := false
	for _, other := range q.waiting {
		if other.came < w.came {
			other.Passed++
			aged = aged || q.aged(other)
		}
	}
	if aged {
		slices.SortFunc(q.waiting, q.before)
	}
	return Start{Job: w.Job, Placement: p}
}
