package main

import (
	"context"
	"io"

	"ringlight/proto"
)

type clearJSON struct {
	Node proto.NodeID `json:"node"`
	Was  string       `json:"was"` // what kept it out
}

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
	j := clearJSON{Node: q.Node}
	for i := range r.Why {
		j.Was = r.Why[i].Text
	}
	return c.print(out, j, func() { c.say(out, "node %d cleared; it was: %s", j.Node, j.Was) })
}
