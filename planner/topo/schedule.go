package topo

import "slices"

// A job sends other things at other times of its iteration: experts' tokens, what
// a pipeline hands on, gradients. Schedule says which links it has for each, where
// links that move are dark for some time.

// Step is a part of an iteration: nothing is sent for Gap nanoseconds, while GPUs
// compute, then what the phase has.
type Step struct {
	Gap   int64
	Phase int
}

// Option is links that a job may have, and what each phase is with them.
type Option struct {
	links map[[2]int]int // directed
	takes []int64        // by phase, nanoseconds; -1: some servers are not reached
	busy  []map[[2]int]bool
	turns []int // by phase: how often all links move in it, nil: never
}

// NewOption is directed links, in order, under the demands of each phase. nanos is
// how long one link takes for some bytes.
func NewOption(servers int, links []Link, phases [][]Demand, nanos func(int64) int64) *Option {
	o := &Option{links: map[[2]int]int{}}
	for _, l := range links {
		o.links[[2]int{l.A, l.B}] += l.Count
	}
	for _, demands := range phases {
		fullest, load, _ := forward(servers, links, demands)
		if fullest > 0 {
			fullest = nanos(fullest)
		}
		o.takes = append(o.takes, fullest)
		busy := map[[2]int]bool{}
		for k, bytes := range load {
			busy[[2]int{links[k].A, links[k].B}] = bytes > 0
		}
		o.busy = append(o.busy, busy)
	}
	return o
}

// InTurns is links that go round in each phase: every two servers that exchange
// something have a link of their own for as long as that takes the pair with most.
// As each server has so many peers, as many matchings are all of them (Koenig), of
// which as many as it has interfaces are there at once.
func InTurns(servers, degree int, phases [][]Demand, nanos func(int64) int64, dark int64) *Option {
	o := &Option{}
	for _, demands := range phases {
		pair, out, in, peers := map[[2]int]int64{}, make([]int, servers), make([]int, servers), 0
		most := int64(0)
		for _, d := range demands {
			at := [2]int{d.From, d.To}
			if pair[at] == 0 {
				out[d.From]++
				in[d.To]++
				peers = max(peers, out[d.From], in[d.To])
			}
			pair[at] += d.Bytes
			most = max(most, pair[at])
		}
		turns := (peers + degree - 1) / degree
		o.turns = append(o.turns, turns)
		o.takes = append(o.takes, int64(turns)*(nanos(most)+dark))
	}
	return o
}

// still says whether what moves from one option to another carries nothing in a
// phase.
func (o *Option) still(to *Option, phase int) bool {
	if o.turns != nil {
		return false
	}
	for at, n := range o.links { // any order: all are asked
		if to.links[at] < n && o.busy[phase][at] {
			return false
		}
	}
	return true
}

// Plan is the options of an iteration by step.
type Plan struct {
	Option  []int
	Nanos   int64 // of the iteration
	Dark    int64 // of them, waiting for links that move
	Changes int
}

// Schedule finds the shortest iteration of all. Links begin to move when they carry
// nothing more: at the end of the step before or, where they are still in it, at its
// beginning. No step sends before all are there. To stay with one option is one of
// the plans, so that the best is never longer than the best of those. ok is false
// where in some step no option reaches all servers.
func Schedule(steps []Step, options []*Option, dark int64) (best Plan, ok bool) {
	s := &schedule{steps: steps, dark: dark, options: options}
	s.compare()
	for first, o := range options {
		if o.takes[steps[0].Phase] < 0 {
			continue
		}
		if p := s.from(first); !ok || p.Nanos < best.Nanos {
			best, ok = p, p.Nanos < unreached
		}
	}
	return best, ok
}

// unreached is how long a step takes with an option that does not reach all servers:
// longer than any that does; chosen: 52 days.
const unreached = 1 << 52

type schedule struct {
	steps   []Step
	options []*Option
	dark    int64
	stills  [][][]bool // by two options and the phase before
}

func (s *schedule) compare() {
	for _, a := range s.options {
		var row [][]bool
		for _, b := range s.options {
			var still []bool
			for phase := range a.takes {
				still = append(still, a.still(b, phase))
			}
			row = append(row, still)
		}
		s.stills = append(s.stills, row)
	}
}

// wait is how long a step waits for links after option a.
func (s *schedule) wait(i, a, b int) int64 {
	if a == b || s.options[b].turns != nil { // which has its own
		return 0
	}
	before := s.steps[(i+len(s.steps)-1)%len(s.steps)].Phase
	window := s.steps[i].Gap
	if s.stills[a][b][before] {
		window += s.options[a].takes[before]
	}
	return max(0, s.dark-window)
}

// from is the shortest iteration whose first step has a given option.
func (s *schedule) from(first int) Plan {
	const never = 1 << 62
	n, last := len(s.options), len(s.steps)-1
	takes := func(i, c int) int64 {
		if t := s.options[c].takes[s.steps[i].Phase]; t >= 0 {
			return s.steps[i].Gap + t
		}
		return unreached
	}
	nanos := slices.Repeat([]int64{never}, n) // until the end of a step, by its option
	nanos[first] = takes(0, first)
	came := make([][]int, len(s.steps)) // by step and its option: the one before
	for i := 1; i <= last; i++ {
		next := slices.Clone(nanos)
		came[i] = make([]int, n)
		for b := range n {
			came[i][b] = b
			for a := range n {
				if t := nanos[a] + s.wait(i, a, b); t < next[b] {
					next[b], came[i][b] = t, a
				}
			}
			next[b] += takes(i, b)
		}
		nanos = next
	}
	p := Plan{Nanos: nanos[first], Option: make([]int, len(s.steps))}
	p.Option[last] = first
	for c := range n {
		if t := nanos[c] + s.wait(0, c, first); t < p.Nanos {
			p.Nanos, p.Option[last] = t, c
		}
	}
	for i := last; i > 0; i-- {
		p.Option[i-1] = came[i][p.Option[i]]
	}
	for i, b := range p.Option {
		if a := p.Option[(i+last)%len(s.steps)]; a != b {
			p.Dark += s.wait(i, a, b)
			p.Changes++
		}
		if turns := s.options[b].turns; turns != nil {
			p.Dark += int64(turns[s.steps[i].Phase]) * s.dark
			p.Changes += turns[s.steps[i].Phase]
		}
	}
	return p
}
