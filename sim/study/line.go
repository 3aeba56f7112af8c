package study

import (
	"fmt"
	"slices"
	"time"

	"ringlight/planner/isolate"
	"ringlight/sim/flow"
)

// house is a system: which traffic goes where on it, and how long what jobs do takes.
type house interface {
	// place gives a job whole servers, or a part of one, and tells which.
	place(job int) (servers []int, why isolate.Cause, err error)
	free(job int)
	// work is the steps of a job at its place.
	work(job int, steps int64) (*work, error)
	// circuits says whether light is switched for a job before it runs.
	circuits(job int) bool
	// withhold keeps a server that nobody is on from all jobs, or gives it back.
	withhold(server int, out bool)
}

// line is jobs in the order of arrival, the first of which blocks all others. One that
// loses a server goes back to its place in that order, and to the last step that it has
// ended.
type line struct {
	*timeline
	house   house
	refused func(job int, why isolate.Cause, waited time.Duration) error // there is no place for the head
	setup   time.Duration                                                // of circuits and routes
	reload  time.Duration                                                // of a job that lost a server
	servers [][]int                                                      // of a job at a place
	on      [][]int                                                      // jobs, of a server
	waiting []int
	left    []int64         // steps
	resumed []bool          // it lost a server
	spent   []time.Duration // at steps that did not end, and reloading
	tried   bool            // the head was, and nothing has become free
}

func newLine(h house, sim *flow.Sim, servers int, arrivals []time.Duration, steps []int64) *line {
	n := len(arrivals)
	l := &line{house: h, servers: make([][]int, n), on: make([][]int, servers), left: steps, resumed: make([]bool, n), spent: make([]time.Duration, n)}
	l.timeline = newTimeline(l, arrivals, sim)
	return l
}

func (l *line) come(job int) error {
	at, _ := slices.BinarySearch(l.waiting, job)
	l.waiting = slices.Insert(l.waiting, at, job)
	if at == 0 {
		l.tried = false
	}
	return nil
}

func (l *line) seat(now time.Duration) (out []seated, err error) {
	for len(l.waiting) > 0 && !l.tried {
		job := l.waiting[0]
		servers, why, err := l.house.place(job)
		if err != nil {
			return nil, fmt.Errorf("study: job %d: %w", job+1, err)
		}
		if servers == nil {
			l.tried = true
			return out, l.refused(job, why, now-l.arrivals[job])
		}
		l.waiting, l.servers[job] = l.waiting[1:], servers
		for _, s := range servers {
			l.on[s] = append(l.on[s], job)
		}
		s := seated{job: job, work: func() (*work, error) { return l.house.work(job, l.left[job]) }}
		if l.house.circuits(job) {
			s.setup = l.setup
		}
		if l.resumed[job] {
			s.setup += l.reload
		}
		out = append(out, s)
	}
	return out, nil
}

// maxWait of a job; chosen: ten years, after which a study would not end.
const maxWait = 3650 * 24 * time.Hour

func (l *line) leave(job int) {
	for _, s := range l.servers[job] {
		l.on[s] = slices.DeleteFunc(l.on[s], func(j int) bool { return j == job })
	}
	l.house.free(job)
	l.tried = false
}

// lose takes all that they have from the jobs on a server, and says how many these are.
func (l *line) lose(server int) int {
	jobs := slices.Clone(l.on[server])
	for _, job := range jobs {
		began := l.lives[job].work != nil
		steps, lost := l.stop(job)
		if l.resumed[job] && began {
			lost += l.reload
		}
		l.left[job] -= steps
		l.spent[job] += lost
		l.resumed[job] = true
		_ = l.come(job) // never refused
	}
	return len(jobs)
}

// fails has a server that nobody is on out of order, or in order again.
func (l *line) fails(server int, out bool) {
	l.house.withhold(server, out)
	l.tried = l.tried && out
}
