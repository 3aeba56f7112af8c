package flow

import (
	"fmt"
	"time"
)

// Sharing is how flows share links.
type Sharing uint8

// The models of sharing.
const (
	Rounds Sharing = iota
	Phases
	Equal
	Isolated
)

var sharings = []string{"rounds", "phases", "equal", "isolated"}

func (s Sharing) String() string { return sharings[s] }

// ParseSharing reads the name of a model of sharing.
func ParseSharing(name string) (Sharing, error) {
	for i, s := range sharings {
		if s == name {
			return Sharing(i), nil
		}
	}
	return 0, fmt.Errorf("sharing %q, one of rounds, phases, equal, isolated", name)
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
	sharing  Sharing
	capacity []int64
	now      time.Duration
	jobs     []*job // nil once gone
	ended    []Job
	count    Count
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
	if sharing != Rounds && sharing != Isolated {
		return nil, fmt.Errorf("flow: sharing %v is not there yet, one of rounds, isolated", sharing)
	}
	if len(capacity) > MaxLinks {
		return nil, fmt.Errorf("flow: %d links, at most %d", len(capacity), MaxLinks)
	}
	s := &Sim{sharing: sharing, capacity: make([]int64, len(capacity))}
	for l, c := range capacity {
		if err := s.SetCapacity(Link(l), c); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Now is the virtual time.
func (s *Sim) Now() time.Duration { return s.now }

// Count tells what was done so far.
func (s *Sim) Count() Count { return s.count }

// Capacity of a link in bit/s.
func (s *Sim) Capacity(l Link) int64 { return s.capacity[l] }

// SetCapacity changes a link from now on.
func (s *Sim) SetCapacity(l Link, bitPerS int64) error {
	if l < 0 || int(l) >= len(s.capacity) {
		return fmt.Errorf("flow: link %d, 0 to %d", l, len(s.capacity)-1)
	}
	if bitPerS < 0 || bitPerS > MaxCapacity {
		return fmt.Errorf("flow: link %d: capacity is %d bit/s, 0 to %d", l, bitPerS, MaxCapacity)
	}
	s.capacity[l] = bitPerS
	return nil
}

// Progress is how far a job is.
type Progress struct {
	Iterations int64         // that have ended
	Last       time.Duration // when the last of them ended, or when the job was added
	Stopped    bool
}

// Progress of a job that has not ended and was not removed.
func (s *Sim) Progress(j Job) Progress {
	jb := s.jobs[j]
	return Progress{Iterations: jb.done, Last: jb.last, Stopped: jb.stopped}
}

// Live is how many jobs are in the Sim.
func (s *Sim) Live() int {
	n := 0
	for _, j := range s.jobs {
		if j != nil {
			n++
		}
	}
	return n
}
