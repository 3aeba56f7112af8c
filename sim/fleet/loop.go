package fleet

import (
	"time"

	"ringlight/agent"
	"ringlight/proto"
	"ringlight/sim"
	"ringlight/sim/agenda"
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
	taskAsk                       // the operator of an edit asks again, if nobody has answered
	taskEdited                    // what an edit had to leave alone is looked at
	taskExchange                  // the next ring goes to its next step
	taskFlip                      // what became of it
	taskRest                      // nothing has happened for a while: look for nodes that are usable and out
	taskBox                       // what an agent says reaches its box
	taskCompare                   // what was noted before a death is compared
)

// source is a place where things wait that will happen.
type source interface {
	next() time.Duration        // when the first of them is due; never: none is
	act(at time.Duration) error // lets it happen
}

// never is when a source acts that has nothing.
const never = agenda.Never

// timeline is a run's clock and its one event loop.
type timeline struct {
	world   *sim.World
	now     time.Duration
	agenda  agenda.Queue[task]
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
	s.audit.circuits.look(st)
	if !visible {
		return nil
	}
	return st.hardware(ev)
}

func (s agents) next() time.Duration {
	at, _ := s.queue.First()
	return at
}

func (s agents) act(at time.Duration) error {
	s.advance(at)
	_, who := s.queue.First()
	return s.stations[who].settle()
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
			p.host.Tick()
			p.settle()
			break
		}
	}
	return nil
}

func (s scheduled) next() time.Duration {
	if s.agenda.Len() == 0 {
		return never
	}
	at, _ := s.agenda.First()
	return at
}

func (s scheduled) act(at time.Duration) error {
	s.advance(at)
	_, t := s.agenda.Pop()
	return s.do(&t)
}

// task is one thing that will happen. gen must still be that of its owner.
type task struct {
	kind   taskKind
	who    int32 // number of a client
	gen    uint32
	n      int
	packet proto.Packet
	work   *agent.Work // of taskBox
}

// touch notes that something happened at a node: what follows from it has its
// time, then the checkers look.
func (r *Run) touch(st *station) {
	st.watch.touched, st.watch.struck = r.now, r.now
	r.look(st)
}

func (r *Run) look(st *station) {
	if r.epoch != 0 && !st.watch.checking && !st.id.IsSwitch() {
		st.watch.checking = true
		r.agenda.Push(r.now+r.closeBound, task{kind: taskCheck, who: st.who})
	}
}
