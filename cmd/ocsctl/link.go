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

// linkJSON is the form that scripts rely on.
type linkJSON struct {
	Fibre   string        `json:"fibre"`
	A       linkEndJSON   `json:"a"`
	B       linkEndJSON   `json:"b"`
	State   string        `json:"state"`
	Ring    *proto.RingID `json:"ring"`
	Since   *string       `json:"since"`    // null: not known
	NextTry *string       `json:"next_try"` // null: it is used as it is
	// Qualified is how its bit errors were last counted, and when; null: never.
	Qualified *qualifiedJSON `json:"qualified"`
}

// qualifiedJSON is the form that scripts rely on.
type qualifiedJSON struct {
	Fibre      string   `json:"fibre"`
	Result     string   `json:"result"`
	BER        *float64 `json:"ber"`        // of the worst lane; null, as what follows: not tried
	Confidence *float64 `json:"confidence"` // null too: bad by its light
	LossDB     *float64 `json:"loss_db"`
	BudgetDB   *float64 `json:"budget_db"`
	Seconds    *float64 `json:"seconds"`
	At         *string  `json:"at"`
	Text       string   `json:"text"`
}

func qualifiedOf(s *proto.Qualification) qualifiedJSON {
	j := qualifiedJSON{Fibre: s.Fibre, Result: s.Result.String(), At: moment(s.AtMillis), Text: s.Text}
	number := func(v, of float64) *float64 {
		v /= of
		return &v
	}
	if s.Bits > 0 && s.Percent > 0 {
		j.BER, j.Confidence, j.Seconds = number(float64(s.Errors), float64(s.Bits)), number(float64(s.Percent), 100), number(float64(s.Micros), 1e6)
	}
	if s.Budget > 0 {
		j.BudgetDB = number(float64(s.Budget), 1000)
	}
	if s.Loss != proto.NoPower {
		j.LossDB = number(float64(s.Loss), 1000)
	}
	return j
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
	var last *qualifiedJSON
	if s.Qualified != nil {
		last = new(qualifiedOf(s.Qualified))
	}
	return linkJSON{s.Fibre, end(&s.A), end(&s.B), s.State.String(), known(&s.Ring), moment(s.SinceMillis), moment(s.NextMillis), last}
}

func linksIn(r *proto.OpReply) []proto.LinkStatus { return r.Links }

func link(ctx context.Context, c *clientFlags, args []string, out io.Writer) error {
	var f filters
	f.register(c.flags)
	all := c.flags.Bool("all", false, "qualify: every fibre")
	words, err := c.read(args, help("link"))
	switch {
	case err != nil:
		return err
	case len(words) == 1 && (words[0] == "list" || words[0] == "qualify" && !*all):
		links, err := list(ctx, c, &proto.OpRequest{Noun: proto.NounLinks}, linksIn, linkOf)
		if words[0] == "qualify" {
			found := []qualifiedJSON{}
			for i := range links {
				if links[i].Qualified != nil {
					found = append(found, *links[i].Qualified)
				}
			}
			return c.printQualified(out, found, err)
		}
		links = slices.DeleteFunc(links, func(l linkJSON) bool {
			return f.state != "" && f.state != l.State || f.ring != 0 && (l.Ring == nil || uint(*l.Ring) != f.ring)
		})
		return c.answer(out, map[string][]linkJSON{"links": links}, err, func() { linkRows(out, links) })
	case len(words) > 0 && words[0] == "qualify" && *all == (len(words) == 1):
		return qualify(ctx, c, words[1:], out)
	case len(words) == 2 && words[0] == "clear":
		q := proto.OpRequest{Noun: proto.NounClearFibre, Bundle: -1, Name: words[1]}
		_, err := c.change(ctx, &q)
		return c.answer(out, clearedJSON{words[1], true}, err, func() { cli.Say(out, "what was held against fibre %s is forgotten", words[1]) })
	}
	return wrongUsage("link", "list, clear FIBRE, qualify, qualify FIBRE... or qualify -all", "%q", words)
}

// qualifyEvery is how often it is asked whether a count has ended. chosen: one of a few
// fibres takes as long.
const qualifyEvery = 200 * time.Millisecond

// qualify counts the bit errors of fibres, none: of all, and waits for the end. Exit 1 when
// one is bad.
func qualify(ctx context.Context, c *clientFlags, names []string, out io.Writer) error {
	q := proto.OpRequest{Noun: proto.NounQualify, Names: names, Author: c.author()}
	var all []qualifiedJSON
	err := c.with(ctx, func(cl *client) error {
		_, err := cl.Ask(ctx, q)
		q.DryRun = true
		for running := true; running && err == nil; {
			running, all = false, []qualifiedJSON{}
			if err = cl.Listen(ctx, qualifyEvery); err == nil {
				err = cl.Pages(ctx, q, func(r *proto.OpReply) {
					running = running || r.Running
					for i := range r.Bits {
						all = append(all, qualifiedOf(&r.Bits[i]))
					}
				})
			}
		}
		return err
	})
	bad := 0
	for i := range all {
		if all[i].Result == proto.Bad.String() {
			bad++
		}
	}
	if err = c.printQualified(out, all, err); err == nil && bad > 0 {
		err = fmt.Errorf("%d of %s: bad", bad, proto.Count(len(all), "fibre"))
	}
	return err
}

func (c *clientFlags) printQualified(out io.Writer, all []qualifiedJSON, err error) error {
	return c.answer(out, map[string][]qualifiedJSON{"links": all}, err, func() {
		rows(out, "FIBRE\tRESULT\tAT\tBER\tLOSS DB\tWHY", all, func(x qualifiedJSON) string {
			ber, loss := "-", "-"
			if x.BER != nil {
				ber = fmt.Sprintf("%.1e", *x.BER)
			}
			if x.LossDB != nil {
				loss = fmt.Sprintf("%.1f", *x.LossDB)
			}
			return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s", x.Fibre, x.Result, localTime(x.At), ber, loss, x.Text)
		})
	})
}

func linkRows(out io.Writer, all []linkJSON) {
	rows(out, "FIBRE\tENDS\tSTATE\tRING\tSINCE\tNEXT TRY", all, func(l linkJSON) string {
		return fmt.Sprintf("%s\t%d/%d %s, %d/%d %s\t%s\t%s\t%s\t%s", l.Fibre, l.A.Node, l.A.Bundle, l.A.Port, l.B.Node, l.B.Bundle, l.B.Port, l.State, orDash(l.Ring), localTime(l.Since), localTime(l.NextTry))
	})
}

// localTime is a moment of the answer on the clock of who reads it.
func localTime(text *string) string {
	if text == nil {
		return "-"
	}
	t, _ := time.Parse(time.RFC3339Nano, *text) // our own
	return t.Local().Format("2006-01-02 15:04:05")
}
