package solo

import (
	"sync"
	"syscall"
	"time"

	"ringlight/hal"
)

// Waits of the driver. The runtime's timers wake on whole milliseconds; what
// is nearer is waited for in the kernel, in naps short enough that work
// submitted meanwhile is not late.
const (
	coarse = 2 * time.Millisecond
	nap    = 50 * time.Microsecond
)

// Live is a board on the real clock.
type Live struct {
	events func(hal.Event)
	watch  func(*Board) time.Duration
	born   time.Time

	mu    sync.Mutex
	board *Board
	wake  chan struct{}
	stop  chan struct{}
	ended chan struct{}
	once  sync.Once
}

// Open makes a board and lets its time run. Events are called from one
// goroutine, one after the other.
func Open(cfg Config, events func(hal.Event)) (*Live, error) {
	return OpenWatched(cfg, events, nil)
}

// OpenWatched is Open with an onlooker: watch is called after whatever happens
// on the board, and again when the time that it returned has passed. Nothing
// else happens on the board meanwhile.
func OpenWatched(cfg Config, events func(hal.Event), watch func(*Board) time.Duration) (*Live, error) {
	board, err := New(cfg)
	if err != nil {
		return nil, err
	}
	if watch == nil {
		watch = func(*Board) time.Duration { return time.Hour }
	}
	l := &Live{events: events, watch: watch, born: time.Now(), board: board,
		wake: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{})}
	go l.run()
	return l, nil
}

// Now is the time since the board was switched on.
func (l *Live) Now() time.Duration { return time.Since(l.born) }

// Submit submits op now.
func (l *Live) Submit(bus hal.BusID, op *hal.Op) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.stop:
		return hal.ErrClosed
	default:
	}
	err := l.board.SubmitAt(max(l.Now(), l.board.Now()), bus, op)
	select {
	case l.wake <- struct{}{}:
	default:
	}
	return err
}

// Level is the level of an input line now.
func (l *Live) Level(line hal.LineID) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.board.Level(line)
}

// With lets f look at the board, or break something on it, between two
// events.
func (l *Live) With(f func(*Board)) {
	l.mu.Lock()
	f(l.board)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Close stops the board's time and keeps its EEPROMs.
func (l *Live) Close() error {
	l.once.Do(func() { close(l.stop) })
	<-l.ended
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.board.Close()
}

// step lets one thing happen that is due, and says how long to wait when
// nothing is.
func (l *Live) step() (ev hal.Event, told bool, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.Now()
	if ev, ok := l.board.Advance(max(now, l.board.Now())); ok {
		l.watch(l.board)
		return ev, true, 0
	}
	wait = l.watch(l.board)
	if next, any := l.board.world.Next(); any {
		wait = min(wait, next-now)
	}
	return hal.Event{}, false, wait
}

func (l *Live) run() {
	defer close(l.ended)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-l.stop:
			return
		default:
		}
		ev, told, wait := l.step()
		switch {
		case told:
			l.events(ev)
		case wait <= 0:
		case wait < coarse:
			ts := syscall.NsecToTimespec(int64(min(wait, nap)))
			_ = syscall.Nanosleep(&ts, nil)
		default:
			timer.Reset(wait - coarse/2)
			select {
			case <-timer.C:
			case <-l.wake:
			case <-l.stop:
				return
			}
		}
	}
}
