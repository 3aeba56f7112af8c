package flow

import (
	"fmt"
	"math/bits"
	"time"
)

// Iteration is the stages of a training job that does forward, then the
// exchanges that compute waits for (tensor, expert and pipeline parallel; each
// a stage), then backward, beside which hidden/of of the gradients' exchange
// runs, then the rest of it.
func Iteration(forward, backward time.Duration, exposed []Phase, reduce Phase, hidden, of int64) []Stage {
	var stages []Stage
	stage := func(phases ...Phase) {
		var s Stage
		for _, p := range phases {
			if p.Compute > 0 || len(p.Rounds) > 0 {
				s = append(s, p)
			}
		}
		if len(s) > 0 {
			stages = append(stages, s)
		}
	}
	stage(Phase{Compute: forward})
	for _, p := range exposed {
		stage(p)
	}
	stage(Phase{Compute: backward}, reduce.Scale(hidden, of))
	stage(reduce.Scale(of-hidden, of))
	return stages
}

// Scale is the phase with volumes times num/den, rounded up: nothing of it at
// 0. It must stay within MaxBytes.
func (p Phase) Scale(num, den int64) Phase {
	if num == 0 {
		return Phase{}
	}
	return p.with(func(f Flow) Flow {
		hi, lo := bits.Mul64(uint64(f.Bytes), uint64(num))
		q, rest := bits.Div64(hi, lo, uint64(den))
		if rest > 0 {
			q++
		}
		return Flow{f.Path, int64(q)}
	})
}

// with is the phase with other flows, each in the place of one of its own.
func (p Phase) with(of func(Flow) Flow) Phase {
	out := Phase{Compute: p.Compute, Rounds: make([]Round, len(p.Rounds))}
	for i, r := range p.Rounds {
		flows := make([]Flow, len(r.Flows))
		for k, f := range r.Flows {
			flows[k] = of(f)
		}
		out.Rounds[i] = Round{flows, r.Times}
	}
	return out
}

// Alone is how long an iteration of the stages takes on links of these
// capacities that nobody else uses.
func Alone(capacity []int64, stages []Stage) (time.Duration, error) {
	sc := &Script{Stages: stages, Iterations: 1}
	if err := sc.check(len(capacity)); err != nil {
		return 0, err
	}
	t, err := takes(func(l Link) int64 { return capacity[l] }, stages)
	if err == nil && t == Never {
		err = fmt.Errorf("flow: the stages never end: a link of theirs is dark")
	}
	return t, err
}

// takes is Alone for stages that are known to be good; Never if a link of
// theirs is dark.
func takes(capacity func(Link) int64, stages []Stage) (time.Duration, error) {
	narrow, links := renumbered(stages)
	used := make([]int64, len(links))
	for i, l := range links {
		used[i] = capacity(l)
	}
	s, err := New(used, Rounds)
	if err != nil {
		return 0, err
	}
	if _, err := s.Add(&Script{Stages: narrow, Iterations: 1}); err != nil {
		return 0, err
	}
	for s.Live() > 0 {
		next := s.Next()
		if next == Never {
			return Never, nil
		}
		s.Advance(next)
	}
	return s.Now(), nil
}

// renumbered are the stages with the links that they use numbered from 0, and
// those links.
func renumbered(stages []Stage) ([]Stage, []Link) {
	number := map[Link]Link{}
	var links []Link
	narrow := func(f Flow) Flow {
		path := make([]Link, len(f.Path))
		for y, l := range f.Path {
			n, ok := number[l]
			if !ok {
				n = Link(len(links))
				number[l] = n
				links = append(links, l)
			}
			path[y] = n
		}
		return Flow{path, f.Bytes}
	}
	out := make([]Stage, len(stages))
	for i, stage := range stages {
		out[i] = make(Stage, len(stage))
		for j, p := range stage {
			out[i][j] = p.with(narrow)
		}
	}
	return out, links
}
