package agenda

import (
	"math"
	"time"
)

// Never is when somebody wants to be called who waits for nothing. It is the
// same as hal.Never.
const Never = time.Duration(math.MaxInt64)

// Roster is a heap of numbers from 0 on by the time when each wants to be
// called. The times are kept in it: with ten thousand, to look at each one's
// own is a miss of the cache.
type Roster struct {
	heap []seat
	slot []int // by number: where it sits
}

type seat struct {
	at  time.Duration
	who int
}

// NewRoster makes a roster of n who want nothing yet.
func NewRoster(n int) Roster {
	r := Roster{make([]seat, n), make([]int, n)}
	for i := range n {
		r.heap[i], r.slot[i] = seat{Never, i}, i
	}
	return r
}

// Grow adds one more, which is not due.
func (r *Roster) Grow() {
	n := len(r.heap)
	r.heap, r.slot = append(r.heap, seat{Never, n}), append(r.slot, n)
}

// First is the member due first, and when: Never if none is.
func (r *Roster) First() (at time.Duration, who int) {
	if len(r.heap) == 0 {
		return Never, 0
	}
	return r.heap[0].at, r.heap[0].who
}

func (r *Roster) less(i, j int) bool {
	x, y := r.heap[i], r.heap[j]
	return x.at < y.at || x.at == y.at && x.who < y.who
}

func (r *Roster) swap(i, j int) {
	r.heap[i], r.heap[j] = r.heap[j], r.heap[i]
	r.slot[r.heap[i].who], r.slot[r.heap[j].who] = i, j
}

// Place notes when a member wants to be called.
func (r *Roster) Place(who int, at time.Duration) {
	i := r.slot[who]
	r.heap[i].at = at
	for i > 0 && r.less(i, (i-1)/2) {
		r.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
	for {
		child := 2*i + 1
		if child+1 < len(r.heap) && r.less(child+1, child) {
			child++
		}
		if child >= len(r.heap) || !r.less(child, i) {
			return
		}
		r.swap(i, child)
		i = child
	}
}
