package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"

	"ringlight/proto"
)

// ringJSON is the form that scripts rely on.
type ringJSON struct {
	Ring           proto.RingID     `json:"ring"`
	Nodes          []proto.NodeID   `json:"nodes"`
	GPUsTotal      uint32           `json:"gpus_total"`
	State          string           `json:"state"`
	Generation     proto.Generation `json:"generation"`
	Links          uint16           `json:"links"`
	LinksConfirmed uint16           `json:"links_confirmed"`
}

func ringOf(s *proto.RingStatus) ringJSON {
	return ringJSON{s.Ring, append([]proto.NodeID{}, s.Nodes...), s.GPUs, s.State.String(), s.Generation, s.Links, s.LinksConfirmed}
}

const ringHelp = `ocsctl ring list | show RING [flags]

A ring is in_service when all its members report the generation that last
touched it and light confirms every link; degraded when it is closed with
fewer GPUs.

  ocsctl ring list
  ocsctl ring show 3 -json
`

func ringNoun(ctx context.Context, args []string, out io.Writer) error {
	var c clientFlags
	fs := flag.NewFlagSet("ring", flag.ContinueOnError)
	c.register(fs)
	words, err := parse(fs, args)
	if err != nil {
		return help(out, fs, err, ringHelp)
	}
	switch {
	case len(words) == 1 && words[0] == "list":
		return ringList(ctx, &c, out)
	case len(words) == 2 && words[0] == "show":
		id, err := strconv.ParseUint(words[1], 10, 32)
		if err != nil {
			return wrongUsage("ring", "an integer from 1", "%q", words[1])
		}
		r, err := c.one(ctx, proto.OpRequest{Noun: proto.NounRing, Ring: proto.RingID(id), Bundle: -1})
		if err != nil {
			return err
		}
		return printRings(out, &c, ringsOf(r.Rings), true)
	}
	return wrongUsage("ring", "list, or show RING", "%q", strings.Join(words, " "))
}

func ringsOf(list []proto.RingStatus) []ringJSON {
	out := make([]ringJSON, 0, len(list))
	for i := range list {
		out = append(out, ringOf(&list[i]))
	}
	return out
}

func ringList(ctx context.Context, c *clientFlags, out io.Writer) error {
	cl, err := c.dial(ctx)
	if err != nil {
		return err
	}
	defer cl.close()
	rings := []ringJSON{}
	err = cl.pages(ctx, proto.OpRequest{Noun: proto.NounRings, Bundle: -1}, func(r *proto.OpReply) { rings = append(rings, ringsOf(r.Rings)...) })
	if err != nil {
		return err
	}
	return printRings(out, c, rings, false)
}

func printRings(out io.Writer, c *clientFlags, rings []ringJSON, one bool) error {
	if c.json {
		if one {
			return printJSON(out, rings[0])
		}
		return printJSON(out, map[string][]ringJSON{"rings": rings})
	}
	return table(out, func(w io.Writer) {
		fmt.Fprintln(w, "RING\tSTATE\tGPUS\tLINKS\tGENERATION\tNODES")
		for _, r := range rings {
			fmt.Fprintf(w, "%d\t%s\t%d\t%d/%d\t%d\t%s\n", r.Ring, r.State, r.GPUsTotal, r.LinksConfirmed, r.Links, r.Generation, spans(r.Nodes))
		}
	})
}

// spans writes 1-4,6 for 1 2 3 4 6.
func spans(nodes []proto.NodeID) string {
	var b strings.Builder
	for i := 0; i < len(nodes); {
		j := i
		for j+1 < len(nodes) && nodes[j+1] == nodes[j]+1 {
			j++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatUint(uint64(nodes[i]), 10))
		if j > i {
			b.WriteString("-" + strconv.FormatUint(uint64(nodes[j]), 10))
		}
		i = j + 1
	}
	return b.String()
}
