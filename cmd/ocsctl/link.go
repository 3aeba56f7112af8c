package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"ringlight/cmd/cli"
	"ringlight/proto"
)

const linkHelp = `list has every fibre: lit, both ends have light; dark, a ring wants it and it has
none, or it lost its light at both ends while both nodes were well and carries no
ring until the next try; doubted, it was dark and no light has proven it since;
idle, no ring uses it. SINCE is - where nobody knows.
clear forgets that a fibre is held to be cut: a ring that lacks a node takes it at
once. FIBRE is its label in the description, or its two nodes, as 17-18.

  ocsctl link list -state dark
  ocsctl link clear 17-18
`

// linkJSON is the form that scripts rely on.
type linkJSON struct {
	Fibre   string        `json:"fibre"`
	A       linkEndJSON   `json:"a"`
	B       linkEndJSON   `json:"b"`
	State   string        `json:"state"`
	Ring    *proto.RingID `json:"ring"`
	Since   *string       `json:"since"`    // null: not known
	NextTry *string       `json:"next_try"` // null: it is used as it is
}

type linkEndJSON struct {
	Node   proto.NodeID    `json:"node"`
	Bundle proto.BundleID  `json:"bundle"`
	Port   string          `json:"port"`
	State  string          `json:"state"`
	Light  *proto.MilliDBm `json:"measured_mdbm"` // null: never measured
}

type clearedJSON struct {
	Fibre   string `json:"fibre"`
	Cleared bool   `json:"cleared"`
}

func linkOf(s *proto.LinkStatus) linkJSON {
	end := func(e *proto.JointEnd) linkEndJSON {
		return linkEndJSON{e.Node, e.Bundle, e.Path.String(), e.State.String(), e.Measured.Known()}
	}
	return linkJSON{s.Fibre, end(&s.A), end(&s.B), s.State.String(), known(&s.Ring), moment(s.SinceMillis), moment(s.NextMillis)}
}

func link(ctx context.Context, args []string, out io.Writer) error {
	var c clientFlags
	var f filters
	fs := cli.NewFlags("link")
	f.register(fs)
	words, err := c.read(fs, args, linkHelp)
	switch {
	case err != nil:
		return err
	case len(words) == 1 && words[0] == "list":
		all, err := list(ctx, &c, &proto.OpRequest{Noun: proto.NounLinks}, func(r *proto.OpReply) []proto.LinkStatus { return r.Links }, linkOf)
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(l linkJSON) bool {
			return f.state != "" && f.state != l.State || f.ring != 0 && (l.Ring == nil || uint(*l.Ring) != f.ring)
		})
		return c.print(out, map[string][]linkJSON{"links": all}, func() { table(out, func(w io.Writer) { linkRows(w, all) }) })
	case len(words) == 2 && words[0] == "clear":
		q := proto.OpRequest{Noun: proto.NounClearFibre, Bundle: -1, Name: words[1]}
		if _, err := c.change(ctx, &q); err != nil {
			return err
		}
		return c.print(out, clearedJSON{words[1], true}, func() { cli.Say(out, "what was held against fibre %s is forgotten", words[1]) })
	}
	return wrongUsage("link", "list, or clear FIBRE", "%q", words)
}

func linkRows(w io.Writer, all []linkJSON) {
	fmt.Fprintln(w, "FIBRE\tENDS\tSTATE\tRING\tSINCE\tNEXT TRY")
	at := func(text *string) string {
		if text == nil {
			return "-"
		}
		t, _ := time.Parse(time.RFC3339Nano, *text) // our own
		return t.Local().Format("2006-01-02 15:04:05")
	}
	for i := range all {
		l := &all[i]
		ring := "-"
		if l.Ring != nil {
			ring = fmt.Sprint(*l.Ring)
		}
		fmt.Fprintf(w, "%s\t%d/%d %s, %d/%d %s\t%s\t%s\t%s\t%s\n", l.Fibre, l.A.Node, l.A.Bundle, l.A.Port, l.B.Node, l.B.Bundle, l.B.Port, l.State, ring, at(l.Since), at(l.NextTry))
	}
}
