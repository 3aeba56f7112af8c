package work

import "ringlight/hal"

// MaxTries bounds how often one piece of bus work is tried. chosen: three bad
// answers in a row are no glitch.
const MaxTries = 3

// A token's low 56 bits are ours: the life, the task, and a number of the
// task's own. The top 8 are the caller's, who brings the completion back.
const (
	tokenBits = 56
	lifeShift = 32
	taskShift = 24
)

// Queue is the bus work that a machine puts out. The zero value is empty.
type Queue struct {
	life    uint16
	pending []hal.BusOp
}

// Restart begins another life: what is not handed on yet is forgotten, and what
// is under way is not ours any more.
func (q *Queue) Restart() {
	q.Abandon()
	q.pending = q.pending[:0]
}

// Abandon gives up what is under way: its end is not ours any more.
func (q *Queue) Abandon() { q.life++ }

// Token of a task of this life; n has 24 bits.
func (q *Queue) Token(task uint8, n int) uint64 {
	return uint64(q.life)<<lifeShift | uint64(task)<<taskShift | uint64(n)
}

// Mine takes a token apart, if it is of this life.
func (q *Queue) Mine(op *hal.Op) (task uint8, n int, mine bool) {
	token := op.Token & (1<<tokenBits - 1)
	return uint8(token >> taskShift), int(token & (1<<taskShift - 1)), uint16(token>>lifeShift) == q.life
}

// Put adds work.
func (q *Queue) Put(bus hal.BusID, op *hal.Op) {
	q.pending = append(q.pending, hal.BusOp{Bus: bus, Op: op})
}

// Empty reports whether no work waits to be handed on.
func (q *Queue) Empty() bool { return len(q.pending) == 0 }

// Take appends the work that waits, which is the caller's from then on.
func (q *Queue) Take(out []hal.BusOp) []hal.BusOp {
	out = append(out, q.pending...)
	q.pending = q.pending[:0]
	return out
}
