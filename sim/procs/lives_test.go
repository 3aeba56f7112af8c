package procs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"ringlight/planner/job"
	"ringlight/sim/step"
)

// lifeOf is what a job goes through while the planner is killed.
type lifeOf struct {
	what string
	wish job.Wish
	kill time.Duration // after what is done to it, at most
	do   func(a *asking, ctx context.Context, id string, v *job.View)
	end  job.State // in which it must come; "": ready, when its boards have power again
	// hang is the event after which the agents of all others answer no more until the
	// planner is back, so that it stays where it is; "": they do, asked: from the beginning.
	hang string
}

const asked = "asked"

var livesOf = []lifeOf{
	{"is asked for", job.Wish{TP: 16, Rings: 2}, 300 * time.Millisecond, nil, job.Ready, ""},
	{"waits for nodes that do not answer", job.Wish{TP: 16, Rings: 2}, 100 * time.Millisecond, nil, job.Ready, asked},
	{"waits for room", job.Wish{TP: 32, Rings: 6}, 100 * time.Millisecond, nil, job.Waiting, ""},
	{"loses a board", job.Wish{TP: 16, Rings: 2, Spares: 1}, 400 * time.Millisecond, func(a *asking, _ context.Context, _ string, v *job.View) {
		a.dark(v, 1)
	}, job.Ready, ""},
	{"waits for a spare that does not answer", job.Wish{TP: 16, Rings: 2, Spares: 1}, 100 * time.Millisecond, func(a *asking, _ context.Context, _ string, v *job.View) {
		a.dark(v, 1)
	}, job.Ready, "node_lost"},
	{"loses two boards side by side", job.Wish{TP: 16, Rings: 1}, 400 * time.Millisecond, func(a *asking, _ context.Context, _ string, v *job.View) {
		a.dark(v, 2)
	}, "", ""},
	{"is released", job.Wish{TP: 16, Rings: 1}, 100 * time.Millisecond, func(a *asking, ctx context.Context, id string, _ *job.View) {
		step.Got(a.c.Release(ctx, id))
	}, job.Released, ""},
}

// dark takes the supply of boards in the middle of a job's first ring.
func (a *asking) dark(v *job.View, boards int) {
	for _, host := range v.Rings[0].Nodes[1 : 1+boards] {
		var n int
		step.Got(fmt.Sscan(host, &n))
		a.run.unplug(n)
	}
}

// killInEach kills the planner at a moment drawn by chance after something happened to a
// job, and looks whether that goes on as if nothing had been.
func (a *asking) killInEach(ctx context.Context) {
	began := time.Now()
	for i := range a.run.Jobs.Kills {
		life := &livesOf[i%len(livesOf)]
		step.Within(fmt.Sprintf("kill %d, a job that %s", i, life.what), func() { a.killOne(ctx, fmt.Sprintf("life-%d", i), life) })
	}
	var in []string
	for state, n := range a.tally.KilledIn { // any order: sorted
		in = append(in, fmt.Sprintf("%s %d", state, n))
	}
	slices.Sort(in)
	a.run.done(began, fmt.Sprintf("planner killed %d times", a.run.Jobs.Kills), "in states: %s; each job as before or further, each event once; no light of another job changed", strings.Join(in, ", "))
}

func (a *asking) killOne(ctx context.Context, id string, life *lifeOf) {
	if life.hang == asked {
		a.tellOthers(syscall.SIGSTOP)
	}
	step.Got(a.c.Put(ctx, id, &life.wish))
	f := a.follow(ctx, id)
	end := life.end
	if life.do != nil {
		life.do(a, ctx, id, a.until(ctx, id, job.Ready))
	}
	if life.hang != "" && life.hang != asked {
		f.until(ctx, life.hang)
		a.tellOthers(syscall.SIGSTOP)
	}
	time.Sleep(time.Duration(a.rnd.Int64N(int64(life.kill))))
	a.run.kill("planner")
	a.tally.KilledIn[cmp.Or(f.last(), "unheard")]++
	a.run.startPlanner()
	a.tellOthers(syscall.SIGCONT)
	if end == "" { // what has no way stands when its boards are back
		a.powered()
		end = job.Ready
	}
	v := a.until(ctx, id, end)
	if end != job.Released {
		if again, err := a.c.Put(ctx, id, &life.wish); err != nil || again.Generation < v.Generation {
			step.Fail("asked for again: generation %d, then %+v, %v", v.Generation, again, err)
		}
		a.release(ctx, id)
	}
	f.whole(ctx)
	a.powered()
	a.run.serving(ctx)
	a.run.unchanged(a.before, id, a.others)
}

// tellOthers signals all agents but those of the job that nothing happens to.
func (a *asking) tellOthers(s syscall.Signal) {
	for n := range a.run.f.Nodes {
		if a.others[n] && a.run.runs[agentName(n)] != nil {
			a.run.signal(agentName(n), s)
		}
	}
}

// powered gives every board without power its supply and agent back.
func (a *asking) powered() {
	for n, is := range a.run.records() {
		if !is.Powered {
			a.run.plugIn(n)
		}
	}
}
