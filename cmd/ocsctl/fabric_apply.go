package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"ringlight/cmd/cli"
	"ringlight/planner/fabric"
	"ringlight/proto"
)

// editJSON is the form that scripts rely on.
type editJSON struct {
	DryRun bool `json:"dry_run"`
	*proto.EditStatus
}

// fabricGet writes the description that is planned for.
func fabricGet(ctx context.Context, c *clientFlags, args []string, out io.Writer) error {
	file := c.flags.String("o", "-", "file to write, - for stdout")
	if err := c.readNone(args, help("fabric-edit")); err != nil {
		return err
	}
	f, err := found(ctx, c, func(cl *client) (*fabric.Fabric, error) { return cl.description(ctx) })
	if err != nil {
		return err
	}
	return write(out, *file, f.Encode())
}

// fabricEdit is diff, which says what an apply would change, and apply, which makes it so.
func fabricEdit(ctx context.Context, c *clientFlags, args []string, out io.Writer) error {
	verb := strings.TrimPrefix(c.flags.Name(), "fabric ")
	dry := c.flags.Bool("dry-run", verb == "diff", "answer what would be done, change nothing")
	drains := c.flags.Bool("drain", false, "drain nodes first that are to go and carry a ring")
	end := c.flags.String("end", "", "rings that may end, RING,..")
	sheet := c.flags.String("cabling", "", "CSV file with the fibres, in place of those of FILE")
	move := c.flags.Bool("move", false, "rings may move so that one more is whole, as far as the description's moves say")
	reason := c.flags.String("reason", "", "why, with -drain")
	words, err := c.read(args, help("fabric-edit"))
	if err != nil {
		return err
	}
	if len(words) != 1 {
		return wrongUsage("file", verb+" FILE", "%q", strings.Join(words, " "))
	}
	f, err := fabricFile(words[0])
	if err != nil {
		return err
	}
	if f, err = recable(f, *sheet); err != nil {
		return err
	}
	ends, err := ringList(*end)
	if err != nil {
		return err
	}
	*dry = *dry || verb == "diff"
	var s *proto.EditStatus
	if err := c.with(ctx, func(cl *client) error {
		is, err := cl.description(ctx)
		if err == nil {
			err = is.MayBecome(f)
		}
		if err != nil {
			return err
		}
		q := proto.OpRequest{Noun: proto.NounEdit, DryRun: *dry, Author: c.author(), Rings: ends, Moves: *move}
		if s, err = cl.edit(ctx, q, f); err != nil || !*drains || *dry || len(s.Drains) == 0 {
			return err
		}
		for _, id := range s.Drains {
			why := fmt.Sprintf("%s; the fabric is to have %d nodes", *reason, f.Nodes)
			if _, err := cl.Ask(ctx, proto.OpRequest{Noun: proto.NounDrain, Node: id, Author: c.author(), Reason: proto.Clip(strings.TrimPrefix(why, "; "))}); err != nil && !duplicate(err) {
				return fmt.Errorf("drain of node %d: %w", id, err)
			}
		}
		s, err = cl.edit(ctx, q, f)
		return err
	}); err != nil {
		return err
	}
	return printEdit(out, c, s, *dry)
}

// ringList reads RING,..
func ringList(text string) (out []proto.RingID, err error) {
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		id, err := number("end", part, 1)
		if err != nil {
			return nil, err
		}
		out = append(out, proto.RingID(id))
	}
	if len(out) > proto.MaxArray {
		return nil, wrongUsage("end", fmt.Sprintf("at most %d rings", proto.MaxArray), "%d", len(out))
	}
	return out, nil
}

// description asks for all parts of what is planned for.
func (cl *client) description(ctx context.Context) (*fabric.Fabric, error) {
	text, err := cl.text(ctx, proto.OpRequest{Noun: proto.NounDescription, Bundle: -1})
	if err != nil {
		return nil, err
	}
	f, err := fabric.Parse([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("the planner's description: %w", err)
	}
	return f, nil
}

// edit offers a description in parts, and asks for it to be planned for.
func (cl *client) edit(ctx context.Context, q proto.OpRequest, f *fabric.Fabric) (*proto.EditStatus, error) {
	text := f.Encode()
	plan := proto.DigestOf(text)
	for at := 0; at < len(text); {
		part := text[at:min(at+proto.MaxPart, len(text))]
		r, err := cl.Ask(ctx, proto.OpRequest{Noun: proto.NounOffer, Bundle: -1, Page: uint64(at), Text: proto.Part(part), Size: uint32(len(text)), Plan: &plan})
		if err != nil {
			return nil, err
		}
		if r.Next <= uint64(at) {
			return nil, fmt.Errorf("the planner has %d bytes of the description, %d were sent: another one is offered at the same time", r.Next, at+len(part))
		}
		at = int(r.Next) // it may have the rest from before
	}
	q.Plan, q.Bundle = &plan, -1
	r, err := cl.Ask(ctx, q)
	if err != nil {
		return nil, err
	}
	if r.Edit == nil {
		return nil, fmt.Errorf("the planner's answer has no edit")
	}
	return r.Edit, nil
}

func printEdit(out io.Writer, c *clientFlags, s *proto.EditStatus, dry bool) error {
	s.Changes, s.Refused, s.Dark, s.Drains, s.Ends = listOf(s.Changes), listOf(s.Refused), listOf(s.Dark), listOf(s.Drains), listOf(s.Ends)
	j := editJSON{dry, s}
	if err := c.print(out, j, func() { editText(out, &j) }); err != nil {
		return err
	}
	if n := len(s.Refused) + len(s.Dark); n > 0 {
		return &cli.NoSolution{Why: "the fabric stays as it is, for " + proto.Count(n, "reason")}
	}
	return nil
}

func editText(out io.Writer, j *editJSON) {
	if len(j.Changes) == 0 {
		fmt.Fprintln(out, "nothing differs: the planner plans for this description")
		return
	}
	for _, text := range j.Changes {
		fmt.Fprintln(out, text)
	}
	for _, text := range append(j.Refused, j.Dark...) {
		fmt.Fprintln(out, "refused:", text)
	}
	if len(j.Refused)+len(j.Dark) > 0 {
		return
	}
	what := cli.Either(j.DryRun, "it can be applied", "the fabric is changed")
	if j.Ports > 0 {
		cli.Say(out, "new: %s of circuit switches; light proves each before a job gets it", proto.Count(int(j.Ports), "port"))
	}
	cli.Say(out, "%s: %s sent again, %d end; %s tested by light, %d of them from one end; %d untested (their nodes are away or in rings); %s not heard yet",
		what, proto.Count(int(j.Told), "ring"), len(j.Ends), proto.Count(int(j.Tried), "new fibre"), j.OneWay, j.Untried, proto.Count(int(j.Unheard), "node"))
}
