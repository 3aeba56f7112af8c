package hbd

import (
	"time"

	"ringlight/planner/journal"
	"ringlight/planner/ring"
)

// shortage is the rings that lack nodes and could be whole, if more whole rings
// moved for them than may at once. That costs the jobs on those something once,
// and that it is not done costs the GPUs of all those rings, all the time.
// So they wait until the second has come to the price of the first: which never
// costs more than twice the best of one who knew what comes. While nothing could be
// gained, what was lost runs out as it ran up: an idle node that is away for a second
// does not begin the wait anew, and a lack that is long over pays for no other.
type shortage struct {
	moves int           // whole rings that would have to move for one more; 0: nothing is short
	rings int           // that could be whole
	lost  time.Duration // ring time that was lost by then, but for what was paid with moves
	then  time.Duration
}

// since counts on what is lost.
func (l *shortage) since(now time.Duration) {
	if d := now - l.then; l.moves > 0 {
		l.lost += time.Duration(l.rings) * d
	} else {
		l.lost = max(0, l.lost-d)
	}
	l.then = now
}

// paid reports whether as much was lost as the moves would cost.
func (l *shortage) paid(now, price time.Duration) bool {
	l.since(now)
	return l.moves > 0 && l.lost >= time.Duration(l.moves)*price
}

// saw takes what a look found, and says when the next one is due, Never where it
// needs none of its own.
func (l *shortage) saw(res *ring.Result, now, price time.Duration) time.Duration {
	l.since(now)
	l.moves, l.rings = res.Dearer, res.Lost
	l.lost -= time.Duration(res.Fetched) * price
	if l.moves == 0 || res.Fetched > 0 {
		return journal.Never
	}
	left := max(0, time.Duration(l.moves)*price-l.lost)
	return now + max(betterWait, (left+time.Duration(l.rings)-1)/time.Duration(l.rings))
}
