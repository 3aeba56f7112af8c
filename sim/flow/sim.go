package flow

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Sharing is how flows share links.
type Sharing uint8

// The models of sharing.
const (
	Rounds Sharing = iota
	Phases
	Equal
	Isolated // nobody meets another, so there is no Sim of it
	Fullest
)

var sharings = []string{"rounds", "phases", "equal", "isolated", "fullest"}

func (s Sharing) String() string { return sharings[s] }

// whole says whether phases are one flow each.
func (s Sharing) whole() bool { return s == Phases || s == Fullest }

// Sharings are the names of the models.
func Sharings() []string { return slices.Clone(sharings) }

// ParseSharing reads the name of a model of sharing.
func ParseSharing(name string) (Sharing, error) {
	if i := slices.Index(sharings, name); i >= 0 {
		return Sharing(i), nil
	}
	return 0, fmt.Errorf("sharing %q, one of %s", name, strings.Join(Sharings(), ", "))
}

// Job is the number of a job of a Sim, from 0 in the order of Add; never used
// again.
type Job int32

// Sim is jobs on links on a virtual clock that starts at 0.
//
// Its owner goes: Next, then Advance to that time or to one of his own that is
// earlier, then Add, Remove, Stop, Resume and SetCapacity at Now. What he
// changes at an instant comes after all that ends by itself at that instant.
type Sim struct {
	traffic
	now   time.Duration
	jobs  []*job // nil once gone
	live  int
	heap  events
	dirty []*run // whose next event this instant may have changed
	ended []Job
	epoch uint32 // of the capacities
	count Count
}

// Count is what a Sim has done.
type Count struct {
	Flows  int64 // that have ended, each repeat of a round for itself
	Rounds int64 // that have ended
	Events int64 // instants at which something ended or began
	Solved int64 // rates given out, one a flow and solution
}

// New is a Sim whose links have capacities in bit/s. A capacity of 0 is a
// dark link: its flows wait.
func New(capacity []int64, sharing Sharing) (*Sim, error) {
	if len(capacity) > MaxLinks {
		return nil, fmt.Errorf("flow: %d links, at most %d", len(capacity), MaxLinks)
	}
	if sharing == Isolated {
		return nil, fmt.Errorf("flow: isolated jobs share no links, Alone tells how long each takes")
	}
	s := &Sim{traffic: traffic{sharing: sharing, links: make([]link, len(capacity)), least: unlimited}}
	for l, c := range capacity {
		if err := s.SetCapacity(Link(l), c); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Unabridged has every flow of every round go through the solver by itself:
// nothing is merged, folded or skipped. The times are the same; it is for
// whoever measures what that saves. To be called before the first Add.
func (s *Sim) Unabridged() { s.plain = true }

// Now is the virtual time.
func (s *Sim) Now() time.Duration { return s.now }

// Count tells what was done so far.
func (s *Sim) Count() Count { return s.count }

// Live is how many jobs are in the Sim.
func (s *Sim) Live() int { return s.live }

// Next is when something goes on next by itself, Never if nothing does; not
// all of it need be the end of a job.
func (s *Sim) Next() time.Duration {
	s.flush()
	return s.heap.next()
}

// Advance goes on to a time, or to the first instant before it at which jobs
// end, and returns those, by number; they are gone from the Sim. What it
// returns is good until the next Advance.
func (s *Sim) Advance(to time.Duration) []Job {
	s.ended = s.ended[:0]
	for len(s.ended) == 0 {
		at := s.Next()
		if at > to {
			s.now = max(s.now, to)
			break
		}
		s.instant(at)
	}
	slices.Sort(s.ended)
	return s.ended
}

// instant does all that goes on by itself at a time.
func (s *Sim) instant(at time.Duration) {
	s.now = at
	s.count.Events++
	for s.heap.next() == at {
		_, e := s.heap.Pop()
		s.due(e.run)
	}
	s.flush()
}

// SetCapacity changes a link from now on.
func (s *Sim) SetCapacity(l Link, bitPerS int64) error {
	if l < 0 || int(l) >= len(s.links) {
		return fmt.Errorf("flow: link %d, 0 to %d", l, len(s.links)-1)
	}
	if bitPerS < 0 || bitPerS > MaxCapacity {
		return fmt.Errorf("flow: link %d: capacity is %d bit/s, 0 to %d", l, bitPerS, MaxCapacity)
	}
	if k := &s.links[l]; k.capacity != bitPerS {
		s.epoch++
		if k.jobs > 0 {
			s.change(l, bitPerS)
		}
		k.capacity, k.epoch = bitPerS, s.epoch
	}
	return nil
}

// Progress is how far a job is.
type Progress struct {
	Iterations int64         // that have ended
	Last       time.Duration // when the last of them ended, or when the job was added
}

// Progress of a job that has not ended and was not removed.
func (s *Sim) Progress(j Job) Progress {
	jb := s.jobs[j]
	p := Progress{Iterations: jb.done, Last: jb.last}
	if jb.coast.state == coasting {
		k := (s.now - jb.from) / jb.period
		p.Iterations += int64(k)
		p.Last = jb.from + k*jb.period
	}
	return p
}
