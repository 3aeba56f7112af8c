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

// patience is how long an op may be under way beyond its own deadline before
// the board is said to have lost it. chosen.
const patience = time.Second

// hands do one thing after the other on a board.
type hands struct {
	board Board
	token uint64
	// other gets what comes in while one waits for something else.
	other func(hal.Event)
}

// do carries out messages on a bus as one op and waits for its completion.
func (h *hands) do(bus hal.BusID, class hal.Class, deadline time.Duration, msgs ...hal.Msg) (*hal.Completion, error) {
	h.token++
	op := &hal.Op{Token: h.token, Class: class, Deadline: deadline, Msgs: msgs}
	if err := h.board.Submit(bus, op); err != nil {
		return nil, err
	}
	if deadline <= 0 {
		deadline = hal.DefaultDeadline
	}
	limit := h.board.Now() + deadline + patience
	for {
		ev, ok := h.board.Advance(limit)
		switch {
		case ok && ev.Completion != nil && ev.Completion.Op == op:
			return ev.Completion, ev.Completion.Err
		case ok:
			if h.other != nil {
				h.other(ev)
			}
		case h.board.Now() >= limit:
			return nil, fmt.Errorf("bench: bus %d: no completion after %v: %w", bus, deadline+patience, hal.ErrTimeout)
		}
	}
}

// wait lets time pass.
func (h *hands) wait(d time.Duration) {
	limit := h.board.Now() + d
	for h.board.Now() < limit {
		if ev, ok := h.board.Advance(limit); ok && h.other != nil {
			h.other(ev)
		}
	}
}
