package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"ringlight/cmd/cli"
	"ringlight/planner/hostlist"
	"ringlight/planner/job"
	"ringlight/planner/jobapi/client"
	"ringlight/proto"
)

// maxHosts of one job: more than Slurm has nodes.
const maxHosts = 1 << 16

// hopeless is a job that no queueing helps.
type hopeless struct{ error }

func prolog(ctx context.Context, args []string, t cli.Terminal) error {
	p := newPlanner("prolog")
	wait := p.fs.Duration("wait", time.Minute, "`TIME` after which a job is queued again that has no light")
	place := p.fs.Duration("place", 5*time.Second, "`TIME` after which a job is queued again whose nodes cannot carry its rings now: while it starts, Slurm gives them to nobody")
	away := p.fs.Duration("away", 15*time.Second, "`TIME` that a planner may be away: one that begins anew listens for 6 s")
	notes := p.fs.String("notes", "", "`DIR` for the reasons of jobs that do not start; ocs-slurm watch tells Slurm")
	j, c, err := p.job(args, away)
	if err != nil {
		return err
	}
	c = c.As(j.owner)
	if *notes == "" {
		return start(ctx, c, j, *place, *wait)
	}
	// Until it is known whether the job may start, so that whoever ends us learns why.
	note := filepath.Join(*notes, j.number)
	if err := cli.ReplaceFile(note, fmt.Appendf(nil, "%s %d %s %s", begun, time.Now().UnixNano(), j.name, j.owner), 0o644); err != nil {
		return err
	}
	if err = start(ctx, c, j, *place, *wait); err == nil {
		return os.Remove(note)
	}
	kind := queued
	if errors.As(err, new(hopeless)) {
		kind = held
	}
	return errors.Join(err, cli.ReplaceFile(note, []byte(kind+" "+err.Error()), 0o644))
}

// wishOf is what a job asks for on the fabric as it stands; nil: nothing of it.
func wishOf(ctx context.Context, c *client.Client, j slurmJob) (*job.Wish, error) {
	top, err := c.Topology(ctx)
	if err != nil {
		return nil, err
	}
	return wish(top, j)
}

// start returns nil when the job may start.
func start(ctx context.Context, c *client.Client, j slurmJob, place, wait time.Duration) error {
	w, err := wishOf(ctx, c, j)
	if w == nil || err != nil {
		return err
	}
	v, err := c.Put(ctx, j.name, w)
	if err == nil && v.State == job.Waiting {
		v, err = until(ctx, c, v, place, func(s string) bool { return s != string(job.Waiting) })
	}
	placed := err == nil && v.State != job.Waiting
	if placed && v.State != job.Ready {
		v, err = until(ctx, c, v, wait, func(s string) bool { return s == string(job.Ready) })
	}
	switch {
	case err == nil && v.State == job.Ready:
		return nil
	case err == nil && !placed:
		err = fmt.Errorf("no place on %s after %v: %s", j.nodes, place, v.Cause)
	case err == nil:
		err = fmt.Errorf("no light after %v: job %s is %s: %s", wait, j.name, v.State, v.Cause)
	default:
		if e := (*proto.Error)(nil); errors.As(err, &e) && (e.Code == proto.Invalid && e.Field != "nodes" || e.Code == proto.Conflict && e.Field == "rings") {
			err = hopeless{err}
		}
	}
	// Asked to end or not, the nodes are not to be kept.
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer stop()
	if _, e := c.Release(ctx, j.name); e != nil && !missing(e) && !others(e) {
		err = errors.Join(err, e)
	}
	return err
}

// until waits for an event of a job, and gives the job as it is then.
func until(ctx context.Context, c *client.Client, v *job.View, wait time.Duration, is func(event string) bool) (*job.View, error) {
	waits, stop := context.WithTimeout(ctx, wait)
	defer stop()
	err := c.Follow(waits, v.ID, v.Generation, func(e *job.Event) bool { return !is(e.Event) })
	if err != nil && waits.Err() == nil {
		return nil, err
	}
	return c.Get(ctx, v.ID) // lost again in the meantime, or late
}

// others: a job of that name is not of Slurm.
func others(err error) bool {
	var e *proto.Error
	return errors.As(err, &e) && e.Code == proto.Conflict && e.Field == "owner"
}

func missing(err error) bool {
	return errors.Is(err, &proto.Error{Code: proto.NotFound})
}

// wish is what a job of Slurm asks for; nil: nothing, its nodes are in no fabric.
func wish(top *job.Topology, j slurmJob) (*job.Wish, error) {
	hosts, err := hostlist.Parse(j.nodes, maxHosts)
	if err != nil {
		return nil, hopeless{cli.Usage("SLURM_JOB_NODELIST", "a list of hosts", "%v", err)}
	}
	in, outside, servers := 0, "", 0
	for _, h := range hosts {
		is := func(n job.FabricNode) bool { return n.Host == h }
		switch {
		case slices.ContainsFunc(top.Nodes, is):
			in++
		case slices.ContainsFunc(top.Servers, is):
			servers++
			fallthrough
		default:
			outside = h
		}
	}
	gpus := in * top.GPUsPerNode
	tp := min(top.TP, gpus)
	_, asked, says := strings.Cut(j.comment, "ringlight:")
	asked, _, _ = strings.Cut(asked, " ")
	if servers == len(hosts) {
		w := &job.Wish{Circuits: &job.Circuits{}, Nodes: []job.Name{job.Name(j.nodes)}}
		if err := proto.DecodeFile([]byte(cmp.Or(asked, "{}")), w.Circuits); err != nil {
			return nil, hopeless{cli.Usage("comment", "ringlight: and what circuits have in a wish, as JSON without blanks", "%v", err)}
		}
		return w, nil
	}
	if says {
		size, ok := strings.CutPrefix(asked, "tp=")
		if tp, err = strconv.Atoi(size); !ok || err != nil || tp < 1 || tp > gpus {
			return nil, hopeless{cli.Usage("comment", fmt.Sprintf("ringlight:tp=GPUS, up to the %d of its nodes", gpus), "ringlight:%s", cli.Clip(asked))}
		}
	}
	switch {
	case in == 0 && !says:
		return nil, nil
	case outside != "":
		return nil, hopeless{cli.Usage("SLURM_JOB_NODELIST", "nodes of the fabric, or none of them", "%s is not in fabric %s", outside, top.Fabric)}
	}
	return &job.Wish{TP: tp, Rings: gpus / tp, Nodes: []job.Name{job.Name(j.nodes)}}, nil
}

func epilog(ctx context.Context, args []string, t cli.Terminal) error {
	p := newPlanner("epilog")
	away := p.fs.Duration("away", 10*time.Second, "`TIME` that a planner may be away; then ocs-slurm watch does it")
	stays := p.fs.Duration("stays", time.Second, "`TIME` that light stays which came less than 10 s ago: Slurm calls this before it kills, and a script may be about to begin")
	j, c, err := p.job(args, away)
	if err != nil {
		return err
	}
	c = c.As(j.owner)
	if err = stay(ctx, c, j.name, *stays); err == nil {
		_, err = c.Release(ctx, j.name)
	}
	if missing(err) || others(err) {
		return nil
	}
	return err
}

// young is light whose script may not have begun. chosen: five times what one took to begin
// on two cores at a load of 14.
const young = 10 * time.Second

// stay waits where a job's light is young by the planner's clock.
func stay(ctx context.Context, c *client.Client, id string, wait time.Duration) error {
	v, err := c.Get(ctx, id)
	if err != nil || v.State != job.Ready && v.State != job.Degraded {
		return err
	}
	came := uint64(0)
	_ = c.Follow(ctx, id, 0, func(e *job.Event) bool { // of one to which more happened than is kept light is old
		if e.Event == string(job.Ready) {
			came = e.AtMS
		}
		return e.Generation < v.Generation
	})
	if time.Since(time.UnixMilli(int64(came))) > young {
		return nil
	}
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
