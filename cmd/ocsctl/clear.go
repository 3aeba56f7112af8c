package main

import (
	"context"
	"io"

	"ringlight/proto"
)

func clearNode(ctx context.Context, c *clientFlags, args []string, out io.Writer) error {
	words, err := c.read(args, help("clear"))
	if err != nil {
		return err
	}
	if len(words) != 1 {
		return wrongUsage("clear", "NODE", "%q", words)
	}
	q := proto.OpRequest{Noun: proto.NounClear, Bundle: -1}
	if err := c.placeArg(words[0], &q.Node, nil); err != nil {
		return err
	}
	r, err := c.one(ctx, &q)
	if err != nil {
		return err
	}
	was := "" // what kept it out
	for i := range r.Why {
		was = r.Why[i].Text
	}
	return c.print(out, map[string]any{"node": q.Node, "was": was}, func() { c.say(out, "node %d cleared; it was: %s", q.Node, was) })
}
