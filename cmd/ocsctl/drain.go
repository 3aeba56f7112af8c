package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"ringlight/cmd/cli"
	"ringlight/proto"
)

type costJSON struct {
	Node     proto.NodeID   `json:"node"`
	Verb     string         `json:"verb"`
	DryRun   bool           `json:"dry_run"`
	Done     bool           `json:"done"`
	Rings    []proto.RingID `json:"rings"`
	Jobs     uint32         `json:"jobs"`
	Links    uint32         `json:"links"`
	FewerGPU uint32         `json:"gpus_total_fewer"`
	DarkUS   uint64         `json:"dark_us"` // estimate, of the ring that is dark longest
	Joins    []proto.NodeID `json:"joins"`
	Stages   uint32         `json:"stages"`
	Note     string         `json:"note,omitempty"` // what is still to come
}

func costOf(id proto.NodeID, verb string, dry bool, c *proto.Cost) costJSON {
	if c == nil {
		c = new(proto.Cost)
	}
	return costJSON{Node: id, Verb: verb, DryRun: dry, Done: !dry, Rings: listOf(c.Rings), Jobs: c.Jobs, Links: c.Links, FewerGPU: c.GPUs, DarkUS: c.DarkMicros, Joins: listOf(c.Joins), Stages: c.Stages}
}

func (c *clientFlags) printCost(out io.Writer, j *costJSON) {
	if j.Verb == "lift" {
		c.say(out, "node %d is no longer quarantined: it is asked who it is, and told where it stands", j.Node)
		return
	}
	did := cli.Either(j.DryRun, "would be ", "is ") + map[string]string{"drain": "drained", "undrain": "let in again", "quarantine": "quarantined"}[j.Verb]
	joins := "no spare steps in"
	if len(j.Joins) > 0 {
		joins = proto.Nodes(j.Joins, "joins", "join")
	}
	rings := proto.Count(len(j.Rings), "ring")
	if len(j.Rings) > 0 {
		rings += strings.NewReplacer("[", " (", "]", ")", " ", ", ").Replace(fmt.Sprint(j.Rings))
	}
	text := fmt.Sprintf("node %d %s: %s touched, %d in service, %s, %s fewer in rings, %s, dark for about %s", j.Node, did, rings, j.Jobs,
		proto.Count(int(j.Links), "link"), proto.Count(int(j.FewerGPU), "GPU"), joins, proto.Spell(time.Duration(j.DarkUS)*time.Microsecond))
	if len(j.Rings) == 0 && j.Jobs+j.Links+j.FewerGPU == 0 && len(j.Joins) == 0 {
		text = fmt.Sprintf("node %d %s: no ring is touched", j.Node, did)
	}
	c.say(out, "%s", text)
	if j.Note != "" {
		c.say(out, "%s", j.Note)
	}
}

// takeOut is drain, undrain and quarantine.
func takeOut(ctx context.Context, c *clientFlags, args []string, out io.Writer) error {
	verb, text, lift := c.flags.Name(), help("drain"), new(bool)
	noun := map[string]proto.Noun{"drain": proto.NounDrain, "undrain": proto.NounUndrain, "quarantine": proto.NounQuarantine}[verb]
	dry := c.flags.Bool("dry-run", false, "answer what would be touched, change nothing")
	reason := c.flags.String("reason", "", "why, for those who come after")
	if noun == proto.NounQuarantine {
		text, lift = help("quarantine"), c.flags.Bool("lift", false, "end it")
	}
	words, err := c.read(args, text)
	if *lift {
		noun = proto.NounLift
	}
	switch {
	case err != nil:
		return err
	case *lift && (*dry || *reason != ""):
		return wrongUsage("lift", "alone", "with -dry-run or -reason")
	case proto.Clip(*reason) != *reason:
		return wrongUsage("reason", fmt.Sprintf("at most %d bytes of UTF-8", proto.MaxText), "%d bytes", len(*reason))
	case len(words) == 0 || noun != proto.NounDrain && noun != proto.NounUndrain && len(words) > 1:
		return wrongUsage("node", cli.Either(len(words) == 0, "a NODE or several", "one NODE"), "%q", strings.Join(words, " "))
	}
	asks := make([]proto.OpRequest, len(words))
	for i := range asks {
		asks[i] = proto.OpRequest{Noun: noun, DryRun: *dry, Author: c.author(), Reason: *reason}
		if err := c.nodeArg("node", words[i], &asks[i].Node); err != nil {
			return err
		}
	}
	done, errs := []costJSON{}, error(nil)
	err = c.with(ctx, func(cl *client) error {
		for i := range asks {
			q := &asks[i]
			r, err := cl.Ask(ctx, *q)
			if duplicate(err) {
				r, err = &proto.OpReply{}, nil
			}
			if err != nil {
				if errs = errors.Join(errs, err); ctx.Err() != nil || !saidNo(err) {
					return errs // nobody answers; each further node would wait as long
				}
				continue
			}
			j := costOf(q.Node, verb, *dry, r.Cost)
			if j.Note = r.Reason; noun == proto.NounLift {
				j.Verb = "lift"
			}
			if done = append(done, j); !c.json {
				c.printCost(out, &j)
			}
		}
		return errs
	})
	switch {
	case !c.json || len(done) == 0:
		return err
	case len(words) == 1:
		return printJSON(out, done[0])
	}
	return errors.Join(printJSON(out, done), err)
}

var requestNames = map[string]proto.Request{"lockout": proto.Lockout, "forced": proto.ForcedSwitch, "manual": proto.ManualSwitch, "clear": proto.NoRequest}

func switchSide(ctx context.Context, c *clientFlags, args []string, out io.Writer) error {
	if len(args) > 0 && (args[0] == "list" || args[0] == "show") {
		return switches(ctx, c, args, out)
	}
	dry := c.flags.Bool("dry-run", false, "answer what would be touched, change nothing")
	words, err := c.read(args, help("switch"))
	if err != nil {
		return err
	}
	q := &proto.OpRequest{Noun: proto.NounRequest, DryRun: *dry}
	if err := c.requestOf(words, q); err != nil {
		return err
	}
	r, err := c.change(ctx, q)
	if err != nil {
		return err
	}
	j := costOf(q.Node, words[0], *dry, r.Cost)
	text := ": done"
	if *dry {
		text = fmt.Sprintf(" would touch %s and %s, dark for about %s", proto.Count(int(j.Jobs), "job"), proto.Count(int(j.Links), "link"), proto.Spell(time.Duration(j.DarkUS)*time.Microsecond))
	}
	return c.print(out, j, func() { c.say(out, "%s of the %s side of node %d%s", words[0], q.Side, q.Node, text) })
}

// requestOf reads the words of a switch command.
func (c *clientFlags) requestOf(words []string, q *proto.OpRequest) error {
	if len(words) < 3 || len(words) > 4 {
		return wrongUsage("switch", "lockout|forced|manual|clear NODE left|right [PEER|loopback]", "%q", strings.Join(words, " "))
	}
	var known bool
	if q.Request, known = requestNames[words[0]]; !known {
		return wrongUsage("request", "lockout, forced, manual or clear", "%q", words[0])
	}
	if err := c.nodeArg("node", words[1], &q.Node); err != nil {
		return err
	}
	switch words[2] {
	case "left":
	case "right":
		q.Side = proto.Right
	default:
		return wrongUsage("side", "left or right", "%q", words[2])
	}
	named := q.Request == proto.ForcedSwitch || q.Request == proto.ManualSwitch
	if named != (len(words) == 4) || named && words[3] == "loopback" && q.Request == proto.ManualSwitch {
		return wrongUsage("peer", "a node for forced and manual, or loopback for forced; none for lockout and clear", "%q", strings.Join(words[3:], " "))
	}
	if !named || words[3] == "loopback" && q.Request == proto.ForcedSwitch {
		return nil
	}
	q.Peer = new(proto.NodeID)
	return c.nodeArg("peer", words[3], q.Peer)
}
