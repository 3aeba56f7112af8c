package solo

import (
	"context"
	"time"

	"ringlight/hal"
	"ringlight/sim"
)

// Live is a board on the real clock.
type Live struct {
	wall  Wall
	board *Board
	ctx   context.Context
	stop  context.CancelFunc
	ended chan struct{}
}

// Open makes a board and lets its time run. Events are called from one
// goroutine, one after the other.
func Open(cfg Config, events func(hal.Event)) (*Live, error) {
	return OpenWatched(cfg, events, nil, nil)
}

// OpenWatched is Open with onlookers: stepped is called after whatever happens
// on the board, idle when nothing does, and again when the time that it
// returned has passed. Nothing else happens on the board meanwhile.
func OpenWatched(cfg Config, events func(hal.Event), stepped func(*Board), idle func(*Board) time.Duration) (*Live, error) {
	board, err := New(cfg)
	if err != nil {
		return nil, err
	}
	l := &Live{board: board, ended: make(chan struct{})}
	l.wall.World, l.wall.Precise = board.world, true
	l.wall.Told = func(_ sim.BoardID, ev hal.Event) { events(ev) }
	if stepped != nil {
		l.wall.Stepped = func(sim.BoardID) { stepped(board) }
	}
	if idle != nil {
		l.wall.Idle = func() time.Duration { return idle(board) }
	}
	l.ctx, l.stop = context.WithCancel(context.Background())
	l.wall.Start()
	go func() {
		defer close(l.ended)
		l.wall.Run(l.ctx)
	}()
	return l, nil
}

// Now is the time since the board was switched on.
func (l *Live) Now() time.Duration { return l.wall.Now() }

// Submit submits op now.
func (l *Live) Submit(bus hal.BusID, op *hal.Op) error {
	return l.wall.Do(func(at time.Duration) error {
		if l.ctx.Err() != nil {
			return hal.ErrClosed
		}
		return l.board.SubmitAt(at, bus, op)
	})
}

// Level is the level of an input line now.
func (l *Live) Level(line hal.LineID) (bool, error) {
	l.wall.Lock()
	defer l.wall.Unlock()
	return l.board.Level(line)
}

// With lets f look at the board, or break something on it, between two
// events.
func (l *Live) With(f func(*Board)) {
	_ = l.wall.Do(func(time.Duration) error {
		f(l.board)
		return nil
	})
}

// Close stops the board's time and keeps its EEPROMs.
func (l *Live) Close() error {
	l.stop()
	<-l.ended
	l.wall.Lock()
	defer l.wall.Unlock()
	return l.board.Close()
}
