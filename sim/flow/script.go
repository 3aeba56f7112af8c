package flow

import (
	"fmt"
	"time"
)

// Link is a directed link of a network, by its index in the capacities that
// the Sim was made with.
type Link int32

// Flow carries bytes over all links of its path at one rate. A path has at
// least one link and none twice; a flow of no bytes does not exist.
type Flow struct {
	Path  []Link
	Bytes int64
}

// Round is flows that start together; it ends with the last of them.
type Round struct {
	Flows []Flow
	Times int // in a row, at least 1
}

// Phase is compute, or rounds one after another.
type Phase struct {
	Compute time.Duration
	Rounds  []Round
}

// Stage is phases that start together; it ends with the last of them.
type Stage []Phase

// Script is what a job does over and over.
type Script struct {
	Stages     []Stage
	Iterations int64 // after which the job ends, at least 1
}

// Limits of a script. chosen: a year of compute, more repeats than the rounds
// of a ring of a million ranks.
const (
	MaxCompute = 365 * 24 * time.Hour
	MaxTimes   = 1 << 21
)

// check names what of a script a Sim of so many links does not take.
func (sc *Script) check(links int) error {
	if sc.Iterations < 1 {
		return fmt.Errorf("flow: iterations is %d, at least 1", sc.Iterations)
	}
	lasts := false
	for i, stage := range sc.Stages {
		for j := range stage {
			p := &stage[j]
			if p.Compute < 0 || p.Compute > MaxCompute {
				return fmt.Errorf("flow: stage %d, phase %d: compute is %v, 0 to %v", i, j, p.Compute, MaxCompute)
			}
			if p.Compute > 0 && len(p.Rounds) > 0 {
				return fmt.Errorf("flow: stage %d, phase %d: compute and rounds, one of the two", i, j)
			}
			moves, err := p.check(links)
			if err != nil {
				return fmt.Errorf("flow: stage %d, phase %d, %w", i, j, err)
			}
			lasts = lasts || moves || p.Compute > 0
		}
	}
	if !lasts {
		return fmt.Errorf("flow: an iteration takes no time: at least 1 ns of compute or 1 byte")
	}
	return nil
}

func (p *Phase) check(links int) (moves bool, err error) {
	seen := map[Link]bool{}
	for k := range p.Rounds {
		r := &p.Rounds[k]
		if r.Times < 1 || r.Times > MaxTimes {
			return false, fmt.Errorf("round %d: times is %d, 1 to %d", k, r.Times, MaxTimes)
		}
		for f := range r.Flows {
			fl := &r.Flows[f]
			if fl.Bytes < 0 || fl.Bytes > MaxBytes {
				return false, fmt.Errorf("round %d, flow %d: bytes is %d, 0 to %d", k, f, fl.Bytes, MaxBytes)
			}
			if len(fl.Path) == 0 {
				return false, fmt.Errorf("round %d, flow %d: path is empty, at least 1 link", k, f)
			}
			clear(seen)
			for _, l := range fl.Path {
				if l < 0 || int(l) >= links {
					return false, fmt.Errorf("round %d, flow %d: path has link %d, 0 to %d", k, f, l, links-1)
				}
				if seen[l] {
					return false, fmt.Errorf("round %d, flow %d: path has link %d twice, at most once", k, f, l)
				}
				seen[l] = true
			}
			moves = moves || fl.Bytes > 0
		}
	}
	return moves, nil
}
