package main

import (
	"context"
	"fmt"
	"io"

	"ringlight/cmd/cli"
	"ringlight/proto"
)

// fabricShow asks the planner what it runs and what it refused.
func fabricShow(ctx context.Context, c *clientFlags, args []string, out io.Writer) error {
	if err := c.readNone(args, help("fabric")); err != nil {
		return err
	}
	r, err := c.one(ctx, &proto.OpRequest{Noun: proto.NounFabric, Bundle: -1})
	if err != nil {
		return err
	}
	f := r.Fabric
	if c.json {
		f.Waiting = listOf(f.Waiting)
		return printJSON(out, f)
	}
	t := cli.Table{Screen: cli.ScreenOf(out)}
	t.Row("fabric "+f.Name, fmt.Sprintf("%d of %d nodes online, %d not yet where they should be; %d of %d links have light", f.Online, f.Nodes, f.Pending, f.LinksConfirmed, f.LinksTotal))
	t.Row("  form", fmt.Sprintf("%s a node, K %d, TP %d", proto.Count(int(f.GPUsPerNode), "GPU"), f.K, f.TP))
	t.Row("  planner", fmt.Sprintf("%s, term %d, generation %d", proto.PlannerCopy{Planner: f.Planner, Life: f.Life}, f.Term, f.Generation))
	t.Row("  heard", fmt.Sprintf("%s, %d missing; %s refused, %s skipped, %d not read for there were too many", proto.Count(int(f.EventsSeen), "event"), f.EventGaps,
		proto.Count(int(f.Refused), "message"), proto.Count(int(f.UnknownKeys), "unknown key"), f.Shed))
	if f.Others != "" {
		t.Row("  others", f.Others)
	}
	for _, text := range f.Waiting {
		t.Row("  blocked by", text)
	}
	return t.Print(out)
}
