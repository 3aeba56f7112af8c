package study

import (
	"fmt"
	"time"

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
