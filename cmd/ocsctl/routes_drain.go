package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"ringlight/cmd/cli"
	"ringlight/planner/job"
	asker "ringlight/planner/jobapi/client"
	"ringlight/proto"
)

// tellDrain has one router drain its ports, or use them again, and tells the planner
// what came of it.
func (p *pusher) tellDrain(ctx context.Context, r job.Router) (first error) {
	var found []error
	if p.post != "" {
		for _, d := range r.Ports {
			found = append(found, p.postDrain(ctx, r.Router, d))
		}
	} else if len(r.Ports) > 0 {
		found = p.execDrain(ctx, r)
	}
	for i, d := range r.Ports {
		if ctx.Err() != nil {
			return ctx.Err() // it was not the device that failed
		}
		got := job.PortSaid{Drained: d.Drained}
		switch err := found[i]; {
		case err == errLater:
			continue
		case err != nil:
			got = job.PortSaid{Says: proto.Clip(err.Error())}
			first = cmp.Or(first, fmt.Errorf("%s: %w", d.Port, err))
		}
		if err := p.c.Said(ctx, r.Router, d.Port, got); err != nil {
			return cmp.Or(first, err)
		}
		if found[i] == nil && !d.Held {
			p.tell("%s: %s is %s", r.Router, d.Port, cli.Either(d.Drained, "drained", "in use again"))
		}
	}
	return first
}

// execDrain reads what a router does with its ports, and changes and reads that again
// where it is not what it must.
func (p *pusher) execDrain(ctx context.Context, r job.Router) []error {
	found := make([]error, len(r.Ports))
	check := func(holds string, err error) (todo []job.PortDrain) {
		for i, d := range r.Ports {
			if found[i] = err; err == nil {
				found[i] = job.CheckDrain(d, holds)
			}
			if found[i] != nil {
				todo = append(todo, d)
			}
		}
		return todo
	}
	holds, err := p.run(ctx, r.Router, "", job.AskDrains())
	if todo := check(holds, err); len(todo) > 0 && err == nil {
		check(p.run(ctx, r.Router, "", job.PushDrains(todo, holds)))
	}
	return found
}

// errLater: who was asked tells the planner himself.
var errLater = errors.New("it tells the planner itself")

// postDrain asks somebody for one port.
func (p *pusher) postDrain(ctx context.Context, router string, d job.PortDrain) error {
	status, said, err := asker.Post(ctx, p.timeout, p.post, "application/json", map[string]any{"router": router, "port": d.Port, "drained": d.Drained})
	switch {
	case err != nil || status == http.StatusOK:
		return err
	case status == http.StatusAccepted:
		return errLater
	default:
		return errors.New(said)
	}
}

// routesSaid is an operator's word for a router.
func routesSaid(ctx context.Context, args []string, out io.Writer) error {
	j := jobFlags{help: help("ports")}
	words, c, err := j.open(cli.NewFlags("routes said"), args, 3, "ROUTER PORT drained, or ROUTER PORT in-use", 0)
	if err != nil {
		return err
	}
	drained := words[2] == "drained"
	if !drained && words[2] != "in-use" {
		return cli.Usage("said", "drained or in-use", "%q", words[2])
	}
	return c.Said(ctx, words[0], words[1], job.PortSaid{Drained: drained})
}
