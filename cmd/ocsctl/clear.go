package main

import (
	"context"
	"io"

	"ringlight/cmd/cli"
	"ringlight/proto"
)

type clearJSON struct {
	Node proto.NodeID `json:"node"`
	Was  string       `json:"was"` // what kept it out
}

const clearHelp = `ocsctl clear NODE [flags]

Forgets what keeps a node or switch out of plans - two agents with its number,
a refused plan, numbers that were not believed, an answer that did not come -
and asks it to announce itself. What is still wrong keeps it out again. Its
light is not touched. A switch's number is 1048576 and up.

  ocsctl clear 17
`

func clearNode(ctx context.Context, args []string, out io.Writer) error {
	var c clientFlags
	words, err := c.read(cli.NewFlags("clear"), args, clearHelp)
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
