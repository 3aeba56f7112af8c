package planner

import (
	"fmt"
	"time"

	"ringlight/planner/journal"
)

// standstill is how late a planner is at least for this to be told after it is over, stoodTold
// for how long that is. chosen: a broker in its process loses agents to it that hear
// nothing for 20 s; and a person who comes when the alarm was raised still reads why.
const (
	standstill = 10 * time.Second
	stoodTold  = 5 * time.Minute
)

// standstills are the times in which this process did nothing: it was stopped, its host
// stood still, or its disk.
type standstills struct {
	j  *journal.Journal
	by time.Duration // the last one, which ended at j.Stood
}

// late takes by how much what was to be done came too late.
func (s *standstills) late(by time.Duration) {
	if by < standstill {
		return
	}
	if s.j.Stood == 0 || s.j.Now > s.j.Stood+standstill {
		s.by = 0
		s.j.Note(journal.Warn, "this planner stood still", journal.Note{Rule: "stood_still", Node: -1, Text: fmt.Sprintf("for %v: its process, its host or its disk", by.Round(time.Second))})
	}
	s.j.Stood, s.by = max(1, s.j.Now), max(s.by, by)
}

// lately is for how long it stood still, and how long ago that ended; 0: it did not.
func (s *standstills) lately() (by, ago time.Duration) {
	if ago = s.j.Now - s.j.Stood; s.j.Stood == 0 || ago >= stoodTold {
		return 0, 0
	}
	return s.by, ago
}
