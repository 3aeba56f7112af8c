package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ringlight/cmd/cli"
	"ringlight/planner/job"
	"ringlight/planner/jobapi/client"
)

// litEvery is the time between two looks for light. chosen: a tenth of what a script
// takes to begin.
const litEvery = 100 * time.Millisecond

func lit(ctx context.Context, args []string, t cli.Terminal) error {
	p := newPlanner("lit")
	wait := p.fs.Duration("wait", time.Minute, "`TIME` for light, and for a planner that is away")
	asked := p.fs.Duration("asked", 10*time.Second, "`TIME` until somebody has asked for the job's light: its prolog did before, or never will")
	j, c, err := p.job(args, wait)
	if err != nil {
		return err
	}
	j.comment = "" // how it is divided is its prolog's
	w, err := wishOf(ctx, c, j)
	if w == nil || err != nil {
		return err
	}
	for began := time.Now(); ; {
		err := hasLight(ctx, c, j, w)
		if err == nil {
			return nil
		}
		if since := time.Since(began); since >= *wait || since >= *asked && errors.As(err, new(unasked)) {
			return fmt.Errorf("no light after %v: %w", since.Round(time.Millisecond), err)
		}
		select {
		case <-time.After(litEvery):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// unasked is a job that nobody has asked light for, on the nodes that it has now.
type unasked struct{ error }

// hasLight tells why a job has none on the nodes of a wish.
func hasLight(ctx context.Context, c *client.Client, j slurmJob, w *job.Wish) error {
	v, err := c.Get(ctx, j.name)
	switch {
	case missing(err):
		return unasked{err}
	case err != nil:
		return err
	case v.Wish == nil || v.Wish.Owner != j.owner || len(v.Wish.Nodes) != 1 || len(takenFrom(w, string(v.Wish.Nodes[0]))) > 0:
		return unasked{fmt.Errorf("job %s is not of %s on %s", j.name, j.owner, j.nodes)}
	case v.State != job.Ready && v.State != job.Degraded: // a step of one that runs begins on what light there is
		return fmt.Errorf("job %s is %s: %s", j.name, v.State, v.Cause)
	}
	return nil
}
