package bench

import (
	"fmt"
	"time"

	"ringlight/hal"
)

// Board is an open board. Its time passes in Advance: sim/solo's board on the
// virtual clock is one as it is, a real one waits.
type Board interface {
	Submit(bus hal.BusID, op *hal.Op) error
	Level(line hal.LineID) (bool, error)
	Now() time.Duration
	// Advance waits for the next event, at most to limit; ok is false when
	// limit came first.
	Advance(limit time.Duration) (ev hal.Event, ok bool)
}

// Field is the boards at one bench, on one clock. Most have one: see Alone.
type Field interface {
	Submit(board int, bus hal.BusID, op *hal.Op) error
	Level(board int, line hal.LineID) (bool, error)
	Now() time.Duration
	Advance(limit time.Duration) (board int, ev hal.Event, ok bool)
}

// Alone is the field of one board.
func Alone(b Board) Field { return alone{b} }

type alone struct{ b Board }

func (a alone) Submit(_ int, bus hal.BusID, op *hal.Op) error { return a.b.Submit(bus, op) }
func (a alone) Level(_ int, line hal.LineID) (bool, error)    { return a.b.Level(line) }
func (a alone) Now() time.Duration                            { return a.b.Now() }
func (a alone) Advance(l time.Duration) (int, hal.Event, bool) {
	ev, ok := a.b.Advance(l)
	return 0, ev, ok
}

// patience is how long an op may be under way beyond its own deadline before
// the board is said to have lost it. chosen.
const patience = time.Second

// direct does one thing after the other on one board of a field.
type direct struct {
	field Field
	board int
	token uint64
	// other gets what comes in while one waits for something else; nil: it is
	// dropped.
	other func(board int, ev hal.Event)
}

// do carries out messages on a bus as one op and waits for its completion.
func (h *direct) do(bus hal.BusID, deadline time.Duration, msgs ...hal.Msg) error {
	return h.op(bus, &hal.Op{Class: hal.ClassHousekeeping, Deadline: deadline, Msgs: msgs})
}

// op carries out an op.
func (h *direct) op(bus hal.BusID, op *hal.Op) error {
	h.token++
	op.Token = h.token
	if err := h.field.Submit(h.board, bus, op); err != nil {
		return err
	}
	deadline := op.Deadline
	if deadline <= 0 {
		deadline = hal.DefaultDeadline
	}
	limit := h.field.Now() + deadline + patience
	for {
		board, ev, ok := h.field.Advance(limit)
		switch {
		case ok && ev.Completion != nil && ev.Completion.Op == op:
			return ev.Completion.Err
		case ok:
			if h.other != nil {
				h.other(board, ev)
			}
		case h.field.Now() >= limit:
			return fmt.Errorf("bench: bus %d: no completion after %v: %w", bus, deadline+patience, hal.ErrTimeout)
		}
	}
}

// wait lets time pass.
func (h *direct) wait(d time.Duration) {
	limit := h.field.Now() + d
	for h.field.Now() < limit {
		if board, ev, ok := h.field.Advance(limit); ok && h.other != nil {
			h.other(board, ev)
		}
	}
}
