package hbd

import (
	"time"

	"ringlight/planner/journal"
	"ringlight/planner/ring"
)

// lacking is a ring that lacks nodes and could be whole, if more whole rings
// moved for it than may at once. That costs the jobs on them something once,
// and that it is not done costs a ring's GPUs all the time. So it waits until
// the second has come to the price of the first: which never costs more than
// twice the best of one who knew what comes.
type lacking struct {
	moves int           // whole rings that would have to move for one more; 0: nothing is lacking
	since time.Duration // when it began, but for the time that was paid with moves
}

// paid reports whether it has lacked nodes for as long as the moves would cost.
func (l *lacking) paid(now, price time.Duration) bool {
	return l.moves > 0 && now >= l.since+time.Duration(l.moves)*price
}

// saw takes what a look found, and says when the next one is due, Never where it
// needs none of its own.
func (l *lacking) saw(res *ring.Result, now, price time.Duration) time.Duration {
	if l.moves == 0 {
		l.since = now
	}
	l.moves = res.Dearer
	l.since += time.Duration(res.Fetched) * price
	if l.moves == 0 || res.Fetched > 0 {
		return journal.Never
	}
	return max(now+betterWait, l.since+time.Duration(l.moves)*price)
}
