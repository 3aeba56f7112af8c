package study

import (
	"fmt"
	"slices"
	"time"

	"ringlight/planner/isolate"
	"ringlight/sim/agenda"
	"ringlight/sim/flow"
)

// timeline is jobs on a virtual clock: they come, wait for a place, run and
// end. It is the loop of every study of jobs; where they run is a site.
type timeline struct {
	site     site
	hazards  hazards // nil: nothing fails
	arrivals []time.Duration
	sim      *flow.Sim // of jobs that share links; nil: none does
	due      agenda.Queue[deed]
	now      time.Duration
	lives    []life
	number   []int // of each job of sim
	gone     int   // jobs that have ended
}

// site is where jobs run, and the order in which they get a place.
type site interface {
	come(job int) error                       // it waits from now on
	seat(now time.Duration) ([]seated, error) // jobs that have a place from now on
	leave(job int)                            // its place is free
}

// hazards is what happens to a site by itself.
type hazards interface {
	next() time.Duration
	strike(now time.Duration) // all that happens then
}

// seated is a job that has a place.
type seated struct {
	job   int
	setup time.Duration         // until it runs
	work  func() (*work, error) // what it does, asked for when it begins
}

// work is what a job does at its place: a script on shared links, or without
// one so many steps that last so long whatever others do.
type work struct {
	script *flow.Script
	step   time.Duration
	steps  int64
}

// deed is a job that begins, or ends what it does by itself.
type deed struct {
	job   int
	place int // the how manieth of the job, so that one it has lost is forgotten
	work  func() (*work, error)
}

// life is a job so far.
type life struct {
	ended time.Duration
	held  time.Duration // time at places, but the present one
	since time.Duration // at the present one
	place int
	began time.Duration
	work  *work // nil: it has not begun
	id    flow.Job
}

func newTimeline(s site, arrivals []time.Duration, sim *flow.Sim) *timeline {
	return &timeline{site: s, arrivals: arrivals, sim: sim, lives: make([]life, len(arrivals))}
}

// run goes from instant to instant at which a job comes, begins or ends, or
// something strikes. What ends frees its place before what comes asks for one.
func (t *timeline) run() error {
	for next := 0; t.gone < len(t.arrivals); {
		at := flow.Never
		if next < len(t.arrivals) {
			at = t.arrivals[next]
		}
		if t.due.Len() > 0 {
			first, _ := t.due.First()
			at = min(at, first)
		}
		if t.hazards != nil {
			at = min(at, t.hazards.next())
		}
		ended, err := t.advance(at)
		if err != nil {
			return err
		}
		for _, id := range ended {
			t.end(t.number[id])
		}
		if err := t.act(); err != nil {
			return err
		}
		if t.hazards != nil && t.hazards.next() <= t.now {
			t.hazards.strike(t.now)
		}
		for ; next < len(t.arrivals) && t.arrivals[next] <= t.now; next++ {
			if err := t.site.come(next); err != nil {
				return err
			}
		}
		starts, err := t.site.seat(t.now)
		if err != nil {
			return err
		}
		for _, s := range starts {
			if err := t.start(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// advance goes on to an instant, or to the first before it at which jobs on
// shared links end; it gives those.
func (t *timeline) advance(at time.Duration) (ended []flow.Job, err error) {
	if at == flow.Never && (t.sim == nil || t.sim.Next() == flow.Never) {
		return nil, fmt.Errorf("study: %d jobs neither end nor start at %v", len(t.arrivals)-t.gone, t.now)
	}
	if t.now = at; t.sim != nil {
		ended = t.sim.Advance(min(at, flow.Never-1))
		t.now = t.sim.Now()
	}
	return ended, nil
}

// act runs the events that are due.
func (t *timeline) act() error {
	for t.due.Len() > 0 {
		if at, _ := t.due.First(); at > t.now {
			break
		}
		switch _, d := t.due.Pop(); {
		case d.place != t.lives[d.job].place: // it was thrown out
		case d.work == nil:
			t.end(d.job)
		default:
			if err := t.begin(d.job, d.work); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *timeline) start(s seated) error {
	l := &t.lives[s.job]
	l.place++
	if l.since = t.now; s.setup > 0 {
		t.due.Push(t.now+s.setup, deed{s.job, l.place, s.work})
		return nil
	}
	return t.begin(s.job, s.work)
}

// begin lets a job that has its place run.
func (t *timeline) begin(job int, of func() (*work, error)) (err error) {
	l := &t.lives[job]
	if l.work, err = of(); err != nil {
		return fmt.Errorf("study: job %d: %w", job+1, err)
	}
	if l.began = t.now; l.work.script == nil {
		t.due.Push(t.now+l.work.step*time.Duration(l.work.steps), deed{job: job, place: l.place})
		return nil
	}
	if l.id, err = t.sim.Add(l.work.script); err != nil {
		return fmt.Errorf("study: job %d: %w", job+1, err)
	}
	t.number = append(t.number, job)
	return nil
}

func (t *timeline) end(job int) {
	l := &t.lives[job]
	l.held, l.ended = l.held+t.now-l.since, t.now
	t.gone++
	t.site.leave(job)
}

// stop takes a job from its place. It gives the steps that it has ended there,
// and the time there that ended none.
func (t *timeline) stop(job int) (steps int64, lost time.Duration) {
	l := &t.lives[job]
	l.held += t.now - l.since
	switch {
	case l.work == nil:
		lost = t.now - l.since
	case l.work.script == nil:
		steps, lost = int64((t.now-l.began)/l.work.step), (t.now-l.began)%l.work.step
	default:
		p := t.sim.Progress(l.id)
		steps, lost = p.Iterations, t.now-p.Last
		t.sim.Remove(l.id)
	}
	l.place, l.work = l.place+1, nil
	t.site.leave(job)
	return steps, lost
}

// ran is how long a job had a place, and waited how long it had none.
func (t *timeline) ran(job int) time.Duration { return t.lives[job].held }

func (t *timeline) waited(job int) time.Duration {
	return t.lives[job].ended - t.arrivals[job] - t.lives[job].held
}

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
