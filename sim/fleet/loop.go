package fleet

import (
	"time"

	"ringlight/agent"
	"ringlight/proto"
	"ringlight/sim"
)

type taskKind uint8

const (
	taskUp        taskKind = iota // a packet reaches the broker
	taskDown                      // a packet reaches a client
	taskConnect                   // a client tries to connect
	taskLost                      // a client finds its connection broken
	taskWill                      // the broker gives a client up
	taskPersisted                 // a record is on disk
	taskFault                     // a fault of the script
	taskStep                      // the next step of a fault that has several
	taskStart                     // an agent's process starts
	taskCheck                     // the checkers look at a node
	taskMeasure                   // what became of a fault
	taskMove                      // what became of a ring that a plan moved
	taskSweep                     // the checkers look at everything
	taskMutant                    // a planted defect acts
	taskCompare                   // what was noted before a death is compared
)

// source is a place where things wait that will happen.
type source interface {
	next() time.Duration        // when the first of them is due; never: none is
	act(at time.Duration) error // lets it happen
}

// never is when a source acts that has nothing.
const never = agent.Never

// timeline is a run's clock and its one event loop.
type timeline struct {
	world   *sim.World
	now     time.Duration
	agenda  agenda
	sources []source // of two things that are due at one instant, that of the first source happens first
	steps   uint64
}

// advance sets the clock. The world's clock follows, so that what is written
// now ends later.
func (t *timeline) advance(at time.Duration) {
	if at > t.now {
		t.now = at
		t.world.AdvanceTo(at)
	}
}

// run lets everything happen that is due up to end, and sets the clock to it.
// each is called before every step.
func (t *timeline) run(end time.Duration, each func() error) error {
	for {
		var first source
		at := never
		for _, s := range t.sources {
			if next := s.next(); next < at {
				first, at = s, next
			}
		}
		if first == nil || at > end {
			break
		}
		t.steps++
		if err := each(); err != nil {
			return err
		}
		if err := first.act(at); err != nil {
			return err
		}
	}
	t.advance(end)
	return nil
}

// The four sources of a fleet, in their order: what the boards do by
// themselves, agents that want to be polled, planners that want a tick, and
// what is scheduled - packets under way, faults, looks of the checkers.
type (
	boards    struct{ *Run }
	agents    struct{ *Run }
	planners  struct{ *Run }
	scheduled struct{ *Run }
)

func (s boards) next() time.Duration {
	if at, moves := s.world.Next(); moves {
		return at
	}
	return never
}

// act steps the world, which has a clock of its own.
func (s boards) act(time.Duration) error {
	board, ev, visible := s.world.Step()
	s.now = max(s.now, s.world.Now())
	st := s.stations[board]
	s.audit.stepped(st)
	if !visible {
		return nil
	}
	return st.hardware(ev)
}

func (s agents) next() time.Duration { return s.queue[0].next }

func (s agents) act(at time.Duration) error {
	s.advance(at)
	return s.queue[0].st.settle()
}

func (s planners) next() time.Duration {
	at := never
	for _, p := range s.planners {
		at = min(at, p.next())
	}
	return at
}

func (s planners) act(at time.Duration) error {
	for _, p := range s.planners {
		if p.next() == at {
			s.advance(at)
			p.tick()
			break
		}
	}
	return nil
}

func (s scheduled) next() time.Duration {
	if len(s.agenda.list) == 0 {
		return never
	}
	return s.agenda.list[0].at
}

func (s scheduled) act(at time.Duration) error {
	s.advance(at)
	t := s.agenda.pop()
	return s.do(&t)
}

// task is one thing that will happen. gen must still be that of its owner.
type task struct {
	at     time.Duration
	seq    uint64
	kind   taskKind
	who    int32 // number of a client
	gen    uint32
	n      int
	packet proto.Packet
}

// agenda is a heap by time, then by the order in which tasks were made.
type agenda struct {
	list []task
	seq  uint64
}

func (a *agenda) less(i, j int) bool {
	x, y := &a.list[i], &a.list[j]
	return x.at < y.at || x.at == y.at && x.seq < y.seq
}

func (a *agenda) push(t task) {
	a.seq++
	t.seq = a.seq
	a.list = append(a.list, t)
	for i := len(a.list) - 1; i > 0; {
		up := (i - 1) / 2
		if !a.less(i, up) {
			break
		}
		a.list[i], a.list[up] = a.list[up], a.list[i]
		i = up
	}
}

func (a *agenda) pop() task {
	top := a.list[0]
	n := len(a.list) - 1
	a.list[0] = a.list[n]
	a.list[n] = task{}
	a.list = a.list[:n]
	for i := 0; ; {
		c := 2*i + 1
		if c >= n {
			break
		}
		if c+1 < n && a.less(c+1, c) {
			c++
		}
		if !a.less(c, i) {
			break
		}
		a.list[i], a.list[c] = a.list[c], a.list[i]
		i = c
	}
	return top
}

// roster is a heap of the devices by the time when their agents want to be
// polled, then by number. Each knows its place in it. The time is kept in
// the heap too: with ten thousand, to look at each is a miss of the cache.
type roster []waiter

type waiter struct {
	next time.Duration
	st   *station
}

func (a *waiter) before(b *waiter) bool {
	return a.next < b.next || a.next == b.next && a.st.who < b.st.who
}

func (q roster) swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].st.slot, q[j].st.slot = i, j
}

// place puts a node where it belongs after its time has changed.
func (q roster) place(st *station) {
	i := st.slot
	q[i].next = st.next
	for i > 0 && q[i].before(&q[(i-1)/2]) {
		q.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
	for {
		c := 2*i + 1
		if c+1 < len(q) && q[c+1].before(&q[c]) {
			c++
		}
		if c >= len(q) || !q[c].before(&q[i]) {
			return
		}
		q.swap(i, c)
		i = c
	}
}
