package live

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"ringlight/planner/job"
)

// lifeOf is what a job goes through while the planner is killed.
type lifeOf struct {
	what string
	wish job.Wish
	kill time.Duration // after what is done to it, at most
	do   func(a *asking, ctx context.Context, id string, v *job.View) error
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
	{"loses a board", job.Wish{TP: 16, Rings: 2, Spares: 1}, 400 * time.Millisecond, func(a *asking, _ context.Context, _ string, v *job.View) error {
		return a.dark(v, 1)
	}, job.Ready, ""},
	{"waits for a spare that does not answer", job.Wish{TP: 16, Rings: 2, Spares: 1}, 100 * time.Millisecond, func(a *asking, _ context.Context, _ string, v *job.View) error {
		return a.dark(v, 1)
	}, job.Ready, "node_lost"},
	{"loses two boards side by side", job.Wish{TP: 16, Rings: 1}, 400 * time.Millisecond, func(a *asking, _ context.Context, _ string, v *job.View) error {
		return a.dark(v, 2)
	}, "", ""},
	{"is released", job.Wish{TP: 16, Rings: 1}, 100 * time.Millisecond, func(a *asking, ctx context.Context, id string, _ *job.View) error {
		_, err := a.c.Release(ctx, id)
		return err
	}, job.Released, ""},
}

// dark takes the supply of boards in the middle of a job's first ring.
func (a *asking) dark(v *job.View, boards int) error {
	for _, host := range v.Rings[0].Nodes[1 : 1+boards] {
		var n int
		if _, err := fmt.Sscan(host, &n); err != nil {
			return err
		}
		if _, err := a.tell(boardName(n), "power off"); err != nil {
			return err
		}
		a.signal(agentName(n), syscall.SIGKILL)
		a.res.ProcsKilled++
	}
	return nil
}

// killInEach kills the planner at a moment drawn by chance after something happened to a
// job, and looks whether that goes on as if nothing had been.
func (a *asking) killInEach(ctx context.Context) error {
	began := time.Now()
	for i := range a.Jobs.Kills {
		life := &livesOf[i%len(livesOf)]
		if err := a.killOne(ctx, fmt.Sprintf("life-%d", i), life); err != nil {
			return fmt.Errorf("kill %d, a job that %s: %w", i, life.what, err)
		}
	}
	var in []string
	for state, n := range a.tally.KilledIn { // any order: sorted
		in = append(in, fmt.Sprintf("%s %d", state, n))
	}
	slices.Sort(in)
	a.done(began, fmt.Sprintf("planner killed %d times", a.Jobs.Kills), "in states: %s; each job as before or further, each event once; no light of another job changed", strings.Join(in, ", "))
	return nil
}

func (a *asking) killOne(ctx context.Context, id string, life *lifeOf) error {
	if life.hang == asked {
		a.tellOthers(syscall.SIGSTOP)
	}
	if _, err := a.c.Put(ctx, id, &life.wish); err != nil {
		return err
	}
	f, err := a.follow(ctx, id)
	if err != nil {
		return err
	}
	end := life.end
	if life.do != nil {
		v, err := a.until(ctx, id, job.Ready)
		if err == nil {
			err = life.do(a, ctx, id, v)
		}
		if err != nil {
			return err
		}
	}
	if life.hang != "" && life.hang != asked {
		if err := f.until(ctx, life.hang); err != nil {
			return err
		}
		a.tellOthers(syscall.SIGSTOP)
	}
	time.Sleep(time.Duration(a.rnd.Int64N(int64(life.kill))))
	a.signal("planner", syscall.SIGKILL)
	a.res.ProcsKilled++
	a.tally.KilledIn[cmp.Or(f.last(), "unheard")]++
	if err := a.startPlanner(); err != nil {
		return err
	}
	a.tellOthers(syscall.SIGCONT)
	if end == "" { // what has no way stands when its boards are back
		if err := a.powered(); err != nil {
			return err
		}
		end = job.Ready
	}
	v, err := a.until(ctx, id, end)
	if err != nil {
		return err
	}
	if end != job.Released {
		if again, err := a.c.Put(ctx, id, &life.wish); err != nil || again.Generation < v.Generation {
			return fmt.Errorf("asked for again: generation %d, then %+v, %v", v.Generation, again, err)
		}
		if err := a.release(ctx, id); err != nil {
			return err
		}
	}
	if err := f.whole(ctx); err != nil {
		return err
	}
	if err := a.powered(); err != nil {
		return err
	}
	if err := a.serving(ctx); err != nil {
		return err
	}
	return a.unchanged(a.before, id, a.others)
}

// tellOthers signals all agents but those of the job that nothing happens to.
func (a *asking) tellOthers(s syscall.Signal) {
	for n := range a.f.Nodes {
		if a.others[n] && a.runs[agentName(n)] != nil {
			a.signal(agentName(n), s)
		}
	}
}

// powered gives every board without power its supply and agent back.
func (a *asking) powered() error {
	now, err := a.records()
	for n := range now {
		if now[n].Powered || err != nil {
			continue
		}
		if _, err = a.tell(boardName(n), "power on"); err == nil {
			err = a.startAgent(n)
		}
	}
	return err
}
