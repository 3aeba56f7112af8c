package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"ringlight/cmd/cli"
	"ringlight/planner/fabric"
	"ringlight/proto"
)

const pmLimit = "a node, switch-N, or a fibre; behind it: " + proto.BinsLimit

// pmEnd is a place on one device.
type pmEnd struct {
	node  proto.NodeID
	scope proto.BinScope
	at    string // "": of the only one
}

func pm(ctx context.Context, c *clientFlags, args []string, out io.Writer) error {
	length := c.flags.String("bins", proto.BinsQuarter, proto.BinsHelp)
	words, err := c.read(args, help("pm"))
	if err != nil {
		return err
	}
	if len(words) != 1 || words[0] == "" {
		return wrongUsage("subject", pmLimit, "%q", cli.Clip(strings.Join(words, " ")))
	}
	first, rest, _ := strings.Cut(words[0], "/")
	id, _, err := parsePlace(first)
	byName := err != nil && fabric.IsNodeName(words[0]) && !strings.HasPrefix(first, "switch-")
	if err != nil && !byName {
		return err
	}
	scope, err := proto.ParseBinScope(rest, *length, id.IsSwitch())
	if err != nil && (!byName || proto.AsError(err).Field == "bins") { // of a name the rest is not known yet
		return cli.AsUsage(err)
	}
	r, lines := proto.Records{Subject: words[0], Bins: []proto.BinJSON{}}, []string{}
	var away error
	err = c.with(ctx, func(cl *client) error {
		ends := []pmEnd{{node: id, scope: scope}}
		if byName {
			if ends, err = c.pmNamed(ctx, cl, words[0], *length); err != nil {
				return err
			}
		}
		for _, e := range ends {
			if e.at != "" {
				lines = append(lines, e.at)
			}
			lines = append(lines, proto.BinsHead)
			err := cl.Pages(ctx, proto.OpRequest{Noun: proto.NounBins, Node: e.node, Bundle: -1, Bins: &e.scope}, func(p *proto.OpReply) {
				for i := range p.Bins {
					r.Bins, lines = append(r.Bins, p.Bins[i].JSON(e.at)), append(lines, p.Bins[i].Line())
				}
			})
			away = errors.Join(away, err)
		}
		if len(r.Bins) == 0 {
			return away
		}
		return nil
	})
	if err != nil {
		return err
	}
	return errors.Join(c.print(out, r, func() { fmt.Fprintln(out, strings.Join(lines, "\n")) }), cli.Answered(away))
}

// pmNamed finds the ends of a fibre, or a node that was told by name.
func (c *clientFlags) pmNamed(ctx context.Context, cl *client, word, length string) (ends []pmEnd, err error) {
	links, err := every(ctx, cl, proto.OpRequest{Noun: proto.NounLinks, Bundle: -1}, linksIn, linkOf)
	if err != nil {
		return nil, err
	}
	for _, l := range links {
		if l.Fibre != word {
			continue
		}
		for _, e := range []linkEndJSON{l.A, l.B} {
			place := fmt.Sprintf("%d/%s", e.Bundle, e.Port)
			s, err := proto.ParseBinScope(place, length, false)
			if err != nil {
				return nil, err
			}
			ends = append(ends, pmEnd{e.Node, s, fmt.Sprintf("%d/%s", e.Node, place)})
		}
		return ends, nil
	}
	first, rest, _ := strings.Cut(word, "/")
	ends = make([]pmEnd, 1)
	if ends[0].scope, err = proto.ParseBinScope(rest, length, false); err != nil {
		return nil, cli.AsUsage(err)
	}
	c.named = append(c.named, named{"subject", first, &ends[0].node, nil})
	return ends, c.findNamed(ctx, cl)
}
