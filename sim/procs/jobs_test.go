package procs

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/job"
	"ringlight/planner/jobapi/client"
	"ringlight/sim/live"
	"ringlight/sim/step"
)

// JobsConfig is jobs that are asked for, and a planner that is killed meanwhile.
type JobsConfig struct {
	Asks     int // jobs asked for one after the other, timed; 0: none of all this
	Kills    int // of the planner, while a job is in each of its states in turn
	Watchers int // who watch a job over a kill
}

// JobsResult is what became of that.
type JobsResult struct {
	// From asked for to ready, of rings that stand and of rings that are formed.
	Standing Took `json:"standing"`
	Formed   Took `json:"formed"`
	// KilledIn counts the kills by what a watcher had heard last.
	KilledIn map[string]int `json:"killed_in"`
	Watchers int            `json:"watchers"`
	Events   int            `json:"events"` // that each of them heard
	// The planner's memory: before they came, with them, and most of the life after the kill.
	AloneKiB int `json:"planner_alone_kib"`
	WithKiB  int `json:"planner_watched_kib"`
	AfterKiB int `json:"planner_after_kib"`
}

// Took is how long something took, each time.
type Took struct {
	N      int   `json:"n"`
	Median int64 `json:"median_ms"`
	Most   int64 `json:"most_ms"`
}

func tookOf(list []time.Duration) Took {
	if len(list) == 0 {
		return Took{}
	}
	return Took{len(list), median(list).Milliseconds(), slices.Max(list).Milliseconds()}
}

func (t Took) String() string { return fmt.Sprintf("%d in %d ms, at most %d", t.N, t.Median, t.Most) }

// jobsParams: rings of 32 on eight nodes as an operator would have them, a spare beside each.
func jobsParams(nodes int) fabric.Params {
	p := procsParams
	p.Nodes, p.TP, p.Spares = nodes, 32, nodes/8
	return p
}

// asking is a run of it.
type asking struct {
	run    *procs
	tally  JobsResult
	c      *client.Client
	rnd    *rand.Rand
	before []live.BoardRecord
	others map[int]bool // nodes that are not of it
}

// jobs asks a planner for jobs and kills it in each state that one can be in. A job that
// nothing happens to stands beside them; the boards' own record judges its light.
func (p *procs) jobs(ctx context.Context) {
	a := &asking{run: p, rnd: rand.New(rand.NewPCG(p.Seed, 0)), others: map[int]bool{}}
	a.tally.KilledIn = map[string]int{}
	p.res.Jobs = &a.tally
	a.c = step.Got(a.client())
	for _, step := range []func(context.Context){a.stand, a.ask, a.killInEach, a.watch} {
		step(ctx)
		p.unchanged(a.before, "a job that nothing happened to", a.others)
	}
}

func (a *asking) client() (*client.Client, error) {
	return client.New(client.Config{URL: "unix:" + a.run.path("planner.http"), Retry: procsService})
}

func (a *asking) stand(ctx context.Context) {
	step.Got(a.c.Put(ctx, "steady", &job.Wish{TP: a.run.f.TP, Rings: 2}))
	v := a.until(ctx, "steady", job.Ready)
	of := map[string]bool{}
	for _, r := range v.Rings {
		for _, n := range r.Nodes {
			of[n] = true
		}
	}
	for n := range a.run.f.Nodes {
		a.others[n] = !of[fmt.Sprint(n)]
	}
	a.before = a.run.records()
}

// until waits for a state of a job.
func (a *asking) until(ctx context.Context, id string, s job.State) *job.View {
	ctx, cancel := context.WithTimeoutCause(ctx, procsService, fmt.Errorf("job %s is not %s within %v", id, s, procsService))
	defer cancel()
	for {
		v, err := a.c.Get(ctx, id)
		if err == nil && v.State == s {
			return v
		}
		if err == nil {
			err = a.c.Follow(ctx, id, v.Generation, func(*job.Event) bool { return false })
		}
		if err != nil {
			step.Must(cmp.Or(context.Cause(ctx), err))
		}
	}
}

func (a *asking) release(ctx context.Context, id string) {
	step.Got(a.c.Release(ctx, id))
	a.until(ctx, id, job.Released)
}

// ask times jobs from asked for to ready, and asks for each twice.
func (a *asking) ask(ctx context.Context) {
	began := time.Now()
	var took [2][]time.Duration
	for i := range a.run.Jobs.Asks {
		id, w := fmt.Sprintf("ask-%d", i), &job.Wish{TP: a.run.f.TP >> (i % 2), Rings: 1 + i%2}
		from := time.Now()
		step.Got(a.c.Put(ctx, id, w))
		v := a.until(ctx, id, job.Ready)
		took[i%2] = append(took[i%2], time.Since(from))
		if v.Confirmed != v.Links {
			step.Fail("job %s is ready with %d of %d links confirmed", id, v.Confirmed, v.Links)
		}
		if again, err := a.c.Put(ctx, id, w); err != nil || again.Generation != v.Generation {
			step.Fail("job %s asked for twice: generation %d, then %+v, %v", id, v.Generation, again, err)
		}
		a.release(ctx, id)
	}
	a.tally.Standing, a.tally.Formed = tookOf(took[0]), tookOf(took[1])
	a.run.done(began, "jobs asked for twice, ready, released", "rings that stand: %v; rings formed: %v", a.tally.Standing, a.tally.Formed)
}

// follower hears a job's events until told.
type follower struct {
	id     string
	mu     sync.Mutex
	heard  []job.Event
	ended  chan error
	cancel context.CancelFunc
}

func (a *asking) follow(ctx context.Context, id string) *follower {
	c := step.Got(a.client())
	f := &follower{id: id, ended: make(chan error, 1)}
	ctx, f.cancel = context.WithCancel(ctx)
	go func() {
		f.ended <- c.Follow(ctx, id, 0, func(e *job.Event) bool {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.heard = append(f.heard, *e)
			return e.Event != string(job.Released)
		})
	}()
	return f
}

// last is the latest state that was reported.
func (f *follower) last() (state string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.heard {
		if e.Event != "node_lost" && e.Event != "replaced" {
			state = e.Event
		}
	}
	return state
}

// until waits for an event.
func (f *follower) until(ctx context.Context, event string) {
	for end := time.Now().Add(procsService); ; {
		f.mu.Lock()
		heard := slices.ContainsFunc(f.heard, func(e job.Event) bool { return e.Event == event })
		f.mu.Unlock()
		switch {
		case heard:
			return
		case ctx.Err() != nil:
			step.Must(ctx.Err())
		case time.Now().After(end):
			step.Fail("who watches job %s has not heard %s after %v", f.id, event, procsService)
		}
		time.Sleep(time.Millisecond)
	}
}

// whole waits for the end of the job: every event was to be heard once and in order.
func (f *follower) whole(ctx context.Context) {
	defer f.cancel()
	select {
	case err := <-f.ended:
		step.Must(err)
	case <-time.After(procsService):
		step.Fail("who watches job %s has not heard of its end after %v", f.id, procsService)
	case <-ctx.Done():
		step.Must(ctx.Err())
	}
	for i, e := range f.heard {
		if e.Generation != uint64(i+1) {
			step.Fail("job %s: event %d was heard as number %d of %v", f.id, e.Generation, i+1, f.heard)
		}
	}
}

// watch lets many watch one job while a node of it is replaced and the planner killed.
func (a *asking) watch(ctx context.Context) {
	if a.run.Jobs.Watchers == 0 {
		return
	}
	began, resident := time.Now(), func() int { return statusKiB(a.run.runs["planner"].Process.Pid, "VmRSS:") }
	a.tally.Watchers, a.tally.AloneKiB = a.run.Jobs.Watchers, resident()
	step.Got(a.c.Put(ctx, "watched", &job.Wish{TP: 16, Rings: 1, Spares: 1}))
	all := make([]*follower, a.run.Jobs.Watchers)
	for i := range all {
		all[i] = a.follow(ctx, "watched")
		defer all[i].cancel()
	}
	for _, kill := range []bool{false, true} {
		v := a.until(ctx, "watched", job.Ready)
		step.Got(a.c.Replace(ctx, "watched", v.Rings[0].Nodes[1], "to be watched"))
		if !kill {
			continue
		}
		a.tally.WithKiB = resident()
		a.run.kill("planner")
		a.run.startPlanner()
	}
	a.until(ctx, "watched", job.Ready)
	a.release(ctx, "watched")
	for i, f := range all {
		step.Within(fmt.Sprintf("watcher %d", i), func() { f.whole(ctx) })
		if a.tally.Events = len(f.heard); a.tally.Events != len(all[0].heard) {
			step.Fail("watcher %d heard %d events, the first %d", i, a.tally.Events, len(all[0].heard))
		}
	}
	a.tally.AfterKiB = peakKiB(a.run.runs["planner"].Process.Pid)
	a.run.done(began, fmt.Sprintf("%d watch a job, the planner killed", a.run.Jobs.Watchers), "%d events, each once and in order by all; planner %.1f MiB alone, %.1f watched, at most %.1f after the kill",
		a.tally.Events, mebi(a.tally.AloneKiB), mebi(a.tally.WithKiB), mebi(a.tally.AfterKiB))
}

func mebi(kib int) float64 { return float64(kib) / 1024 }
