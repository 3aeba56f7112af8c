package job

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"ringlight/planner/journal"
)

// allocator is who finds what a job asks for: of rings, or of circuits. Whatever
// it is, a job lives the same life.
type allocator interface {
	// trial says what a wish would get now.
	trial(id string, w *Wish) Trial
	// resume takes up what a former planner left of a job.
	resume(*job)
	// lacks: something of a job is still to be found; place looks for it.
	lacks(*job) bool
	place(*job)
	// free gives back all that a job has, and says what the store is to know.
	free(*job) []journal.Record
	// stand says where a job stands, and tells it what is new of its parts. The
	// store is to know of what changed.
	stand(*job) (s State, cause string, changed bool)
	// members are its GPUs by rank.
	members(*job) []GPU
	// show fills in what a job has; whole: with all that can be said.
	show(x *job, v *View, whole bool)
}

// of is who finds what a wish asks for.
func (t *Table) of(w *Wish) allocator {
	if w.Circuits != nil {
		return circuitJobs{t}
	}
	return ringJobs{t}
}

// Run moves jobs on. It is called at the end of a step, and costs nothing where
// nothing of a job has changed.
func (t *Table) Run() {
	if t.busy() != "" {
		t.began = false
		return
	}
	t.all.tellNodes(t)
	if !t.began {
		t.begin()
	}
	if len(t.jobs) == 0 {
		t.tryAt = journal.Never
		return
	}
	ringJobs{t}.settle()
	for _, id := range t.rings.Moved() {
		if x := t.jobs[id]; x != nil && (t.claim == nil || t.claim.id != id) { // else it is looked at when that is over
			t.look(x)
		}
	}
	if t.core != nil && t.core.Moved() {
		t.lookAtCircuits()
	}
	if t.j.Now >= t.tryAt {
		t.try()
	}
}

// begin takes up what a former planner left.
func (t *Table) begin() {
	t.began, t.lent = true, nil
	t.all.sort()
	for _, x := range t.order() {
		if i := slices.IndexFunc(x.events, func(e Event) bool { return e.Number == 0 }); i >= 0 {
			t.store(x, len(x.events)-i) // of a decision that ended with the planner, or of an earlier release
		}
		x.at = t.j.Now
		t.of(x.wish).resume(x)
	}
	ringJobs{t}.returnStrays()
	t.tryAt = t.j.Now
}

// Next is when it wants a tick.
func (t *Table) Next() time.Duration {
	switch {
	case t.busy() != "":
		return journal.Never
	case t.core != nil && len(t.jobs) > 0 && t.core.Unreported():
		return t.j.Now
	}
	return t.tryAt
}

// try looks for room for those that wait, and for what of others is gone.
func (t *Table) try() {
	t.tryAt = journal.Never
	t.lookAtCircuits() // time alone may have ended what was under way
	for _, x := range t.order() {
		if x.State.ended() {
			continue
		}
		t.lapse(x)
		t.overdue(x)
		if of := t.of(x.wish); of.lacks(x) {
			of.place(x)
		}
	}
	for _, x := range t.jobs { // any order: whether there is one
		if x.lapses() || x.due != 0 {
			t.tryAt = min(t.tryAt, t.j.Now+tryEvery)
		}
	}
}

// lapse takes the place of a job back that has not become ready in time, and
// shrinks a ring that no node makes whole.
func (t *Table) lapse(x *job) {
	hold := time.Duration(x.wish.HoldMS) * time.Millisecond
	switch {
	case x.holds() && t.j.Now >= x.at+hold && t.claim == nil:
		records := t.of(x.wish).free(x)
		x.at = t.j.Now
		t.enter(x, Waiting, fmt.Sprintf("not ready within %v: its place was given back", hold))
		t.store(x, 1, records...)
	case x.wish.Policy == Shrink && x.hurt != 0 && t.j.Now >= x.hurt+hurtWait && t.rings.Resting():
		ringJobs{t}.shrink(x)
	}
}

// holds: it has a place and has never been ready.
func (x *job) holds() bool {
	return !x.Once && (x.State == Forming || x.wish.Circuits != nil && (x.State == Reserved || x.State == Degraded))
}

// lapses: time alone may change what the job has.
func (x *job) lapses() bool {
	if x.wish.Circuits != nil { // patience with what is under way ends
		return x.State != Waiting && x.State != Ready && !x.State.ended()
	}
	return x.holds() || x.hurt != 0 && x.wish.Policy == Shrink
}

// look compares what a job has with what was told of it, and tells what is new.
func (t *Table) look(x *job) {
	if x.State.ended() {
		return
	}
	before := len(x.events)
	s, cause, changed := t.of(x.wish).stand(x)
	if s == Ready {
		cause = ""
	}
	switch {
	case s != Degraded && s != Down:
		x.hurt = 0
	case x.hurt == 0:
		x.hurt = max(1, t.j.Now)
	}
	if x.hurt != 0 && x.wish.Policy == Shrink {
		t.tryAt = min(t.tryAt, x.hurt+hurtWait)
	}
	if s != x.State {
		again := s == Ready && x.Once
		t.enter(x, s, cause)
		if again {
			t.told(x, Event{Event: Restored, GPUsTotal: x.gpus})
		}
		x.Once = x.Once || s == Ready
	} else if s == Degraded {
		x.Cause = cmp.Or(cause, x.Cause)
		// It is known by now who is lost.
		if before := x.handed(); before != nil && !slices.Equal(before.Members, t.of(x.wish).members(x)) {
			t.told(x, Event{Event: string(Degraded), Cause: x.Cause, GPUsTotal: x.gpus})
		}
	}
	if x.lapses() {
		t.tryAt = min(t.tryAt, t.j.Now+tryEvery)
	}
	if n := len(x.events) - before; n > 0 || changed {
		t.store(x, n)
	}
}
