package job

import (
	"cmp"
	"slices"
)

// maxTold are the events of all jobs that are kept for those who watch all, at least.
// chosen: a site that loses power has some a job, and who missed more reads the list.
const maxTold = 4096

// told are the last events of all jobs, without who is which rank.
type told struct {
	last   uint64 // number of an event
	events []Event
	mixed  bool // not by number yet
}

// add takes an event; the oldest are forgotten, many at a time.
func (a *told) add(id string, e Event) {
	e.Job, e.HandOver = id, nil
	if a.events = append(a.events, e); len(a.events) >= 2*maxTold && !a.mixed {
		a.events = slices.Clone(a.events[maxTold:])
	}
}

// sort puts those of the store into order.
func (a *told) sort() {
	if a.mixed {
		slices.SortFunc(a.events, func(x, y Event) int { return cmp.Compare(x.Number, y.Number) })
		a.events, a.mixed = slices.Clone(a.events[max(0, len(a.events)-maxTold):]), false
	}
}

// Told are events of all jobs after a number, the first ones, and the number of the last
// there is; complete is false where some of them are not kept any more, or where there
// are fewer: the planner has lost its store.
func (t *Table) Told(after uint64) (events []Event, last uint64, complete bool) {
	a := &t.all
	a.sort()
	at, _ := slices.BinarySearchFunc(a.events, after, func(e Event, n uint64) int { return cmp.Compare(e.Number, n+1) })
	events = a.events[at:]
	complete = after <= a.last && uint64(len(events)) == a.last-after
	return slices.Clone(events[:min(len(events), maxEvents)]), a.last, complete
}
