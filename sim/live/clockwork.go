package live

import (
	"context"
	"sync"
	"time"

	"ringlight/agent"
	"ringlight/hal"
	"ringlight/sim"
)

// clockwork drives one world in real time for all its boards.
type clockwork struct {
	mu    sync.Mutex
	world *sim.World
	sinks []func(hal.Event) // by board
	after func(sim.BoardID) // looks at a board on which something has happened; may be nil
	born  time.Time
	wake  chan struct{} // something earlier is due
}

func (c *clockwork) now() time.Duration { return time.Since(c.born) }

// told is an event on its way to an agent, after the lock is given back.
type told struct {
	sink func(hal.Event)
	ev   hal.Event
}

// advance brings the world to now, appends what its agents must be told, and
// says when it is due next. The lock is held.
func (c *clockwork) advance(now time.Duration, out []told) ([]told, time.Duration) {
	for {
		at, ok := c.world.Next()
		if !ok || at > now {
			if now > c.world.Now() {
				c.world.AdvanceTo(now)
			}
			if !ok {
				at = agent.Never
			}
			return out, at
		}
		board, ev, visible := c.world.Step()
		if c.after != nil {
			c.after(board)
		}
		if visible && c.sinks[board] != nil {
			out = append(out, told{c.sinks[board], ev})
		}
	}
}

// run steps the world as it becomes due. Events are told by this goroutine
// alone, so that they stay in order.
func (c *clockwork) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var out []told
	for {
		c.mu.Lock()
		var next time.Duration
		out, next = c.advance(c.now(), out[:0])
		c.mu.Unlock()
		for _, t := range out {
			t.sink(t.ev)
		}
		wait := time.Hour
		if next != agent.Never {
			wait = min(wait, next-c.now())
		}
		timer.Reset(max(wait, 0))
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		case <-timer.C:
		}
	}
}

// change does something to the world at the time it is now. What was due
// before is left to run, which catches up first.
func (c *clockwork) change(do func(at time.Duration) error) error {
	c.mu.Lock()
	err := do(max(c.world.Now(), c.now()))
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return err
}

func (c *clockwork) open(id sim.BoardID, events func(hal.Event)) *wallBoard {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sinks[id] = events
	return &wallBoard{c, id}
}

// wallBoard is one board of a clockwork: an agent's hardware.
type wallBoard struct {
	c  *clockwork
	id sim.BoardID
}

func (b *wallBoard) Submit(bus hal.BusID, op *hal.Op) error {
	return b.c.change(func(at time.Duration) error { return b.c.world.Submit(at, b.id, bus, op) })
}

func (b *wallBoard) Level(line hal.LineID) (bool, error) {
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	return b.c.world.Level(b.id, line), nil
}

func (b *wallBoard) Now() time.Duration { return b.c.now() }

// Close takes the agent away and leaves the board as it is.
func (b *wallBoard) Close() error {
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	b.c.sinks[b.id] = nil
	return nil
}
