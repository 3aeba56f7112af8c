package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"ringlight/cmd/cli"
	"ringlight/planner/audit"
	"ringlight/proto"
)

// errAudit is what verify ends with when the chain is not as it was written.
var errAudit = errors.New("the audit chain is not as it was written")

// auditFilter chooses of the records.
type auditFilter struct {
	who, what, kind *string
	since           *time.Duration
}

func (f *auditFilter) passes(r *audit.Record, now time.Time) bool {
	return strings.Contains(r.Who, *f.who) && strings.Contains(r.What, *f.what) && (*f.kind == "" || string(r.Kind) == *f.kind) &&
		(*f.since == 0 || time.UnixMilli(int64(r.AtMillis)).After(now.Add(-*f.since)))
}

func auditNoun(ctx context.Context, c *clientFlags, args []string, out io.Writer) error {
	f := auditFilter{c.flags.String("who", "", "list: only what this `NAME` did"), c.flags.String("what", "", "list: only with this `TEXT` in what was done"),
		c.flags.String("kind", "", "list: only this `KIND`: start, act, answer, refused, decision"), c.flags.Duration("since", 0, "list: only of the last `TIME`")}
	raw := c.flags.Bool("raw", false, "list: the lines as they are kept, all of them, for verify")
	after := c.flags.Uint64("after", 0, "follow: only records after this `NUMBER`")
	known := c.flags.String("known", "", "verify: `NUMBER:SHA256` of a newest record that was kept elsewhere")
	words, err := c.read(args, help("audit"))
	if err != nil {
		return err
	}
	if len(words) == 0 {
		words = []string{"list"}
	}
	var end *audit.Head
	if *known != "" {
		h, err := audit.ParseHead(*known)
		if err != nil {
			return wrongUsage("known", "NUMBER:SHA256, as verify prints it", "%q", cli.Clip(*known))
		}
		end = &h
	}
	switch verify, follow := words[0] == "verify", words[0] == "follow"; {
	case words[0] != "list" && !verify && !follow || len(words) > 2 || len(words) == 2 && !verify:
		return wrongUsage("audit", "list, follow, or verify [FILE]", "%q", cli.Clip(strings.Join(words, " ")))
	case !follow && *after != 0:
		return wrongUsage("after", "with follow", "with %s", words[0])
	case follow && (*raw || *f.who+*f.what+*f.kind+*known != "" || *f.since != 0):
		return wrongUsage("audit", "-after alone with follow", "flags of list or verify")
	case follow:
		return c.with(ctx, func(cl *client) error { return auditFollow(ctx, cl, out, *after) })
	case verify && (*raw || *f.who+*f.what+*f.kind != "" || *f.since != 0):
		return wrongUsage("audit", "-known alone with verify", "flags of list")
	case !verify && end != nil:
		return wrongUsage("known", "with verify", "with list")
	case !slices.Contains([]audit.Kind{"", audit.Start, audit.Act, audit.Answer, audit.Refused, audit.Decision}, audit.Kind(*f.kind)):
		return wrongUsage("kind", "start, act, answer, refused or decision", "%q", *f.kind)
	case *f.since < 0:
		return wrongUsage("since", "a time ago, 24h", "%v", *f.since)
	}
	text, err := c.auditText(ctx, words[1:])
	if err != nil {
		return err
	}
	switch {
	case words[0] == "verify":
		return c.auditVerify(out, text, end)
	case *raw:
		_, err := io.WriteString(out, text)
		return err
	}
	_, all, _ := audit.Parse(text)
	kept := slices.DeleteFunc(append([]audit.Record{}, all...), func(r audit.Record) bool { return !f.passes(&r, time.Now()) })
	return c.print(out, map[string][]audit.Record{"records": kept}, func() { printAudit(out, kept) })
}

// auditEvery is how often the planner is asked for more. chosen: a person does not wait.
const auditEvery = time.Second

// auditFollow writes each record after a number, as it is kept, until ctx ends.
func auditFollow(ctx context.Context, cl *client, out io.Writer, last uint64) error {
	place := uint64(1) << 52 // behind all: the head alone is told
	for {
		text, err := cl.text(ctx, proto.OpRequest{Noun: proto.NounAudit, Bundle: -1, Page: place})
		lines, records, head := audit.Parse(text)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			fmt.Fprintln(os.Stderr, "ocsctl:", err) // it is asked again
		case len(lines) != len(records):
			return errAudit
		case head == nil || head.Seq == last:
		case head.Seq < last:
			return fmt.Errorf("%w: it ends with record %d, and record %d was there: the planner has an older store, or another", errAudit, head.Seq, last)
		case place > 0 && (len(lines) == 0 || records[0].Seq > last+1):
			place = 0 // from the oldest that is kept
			continue
		default:
			for i := range records {
				if records[i].Seq > last {
					fmt.Fprintln(out, lines[i])
				}
			}
			place, last = place+uint64(len(lines)), head.Seq
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(auditEvery):
		}
	}
}

// maxAuditFile bounds a chain in a file. chosen: as many records as are kept, of the
// longest that there are.
const maxAuditFile = 256 << 20

// auditText reads the chain: of a file, or of the planner.
func (c *clientFlags) auditText(ctx context.Context, file []string) (string, error) {
	if len(file) == 0 {
		return found(ctx, c, func(cl *client) (string, error) {
			return cl.text(ctx, proto.OpRequest{Noun: proto.NounAudit, Bundle: -1})
		})
	}
	raw, long, err := cli.ReadBounded(os.Stdin, file[0], maxAuditFile)
	switch {
	case err != nil:
		err = cli.Usage("audit", "a readable file", "%w", err)
	case long:
		err = cli.Usage("audit", "at most 256 MiB", "more")
	}
	return string(raw), err
}

// auditJSON is the form that scripts rely on.
type auditJSON struct {
	Whole    bool        `json:"whole"`
	Records  int         `json:"records"`
	Newest   *audit.Head `json:"newest"`
	Problems []string    `json:"problems"`
}

func (c *clientFlags) auditVerify(out io.Writer, text string, known *audit.Head) error {
	lines, _, head := audit.Parse(text)
	problems := audit.Verify(lines, head, known)
	if len(lines) == 0 && head == nil && len(problems) == 0 {
		problems = []string{"neither a record nor a head: there was no planner yet, or all was taken away"}
	}
	said := auditJSON{Whole: len(problems) == 0, Records: len(lines), Newest: head, Problems: append([]string{}, problems...)}
	err := c.print(out, said, func() {
		for _, p := range problems {
			fmt.Fprintln(out, p)
		}
		if len(problems) > 0 {
			return
		}
		fmt.Fprintf(out, "%s, each as it was written; keep this elsewhere, for -known:\n%s\n", proto.Count(len(lines), "record"), head)
		if known == nil {
			fmt.Fprintln(out, "whether more came after it, only -known can tell")
		}
	})
	if err == nil && len(problems) > 0 {
		err = errAudit
	}
	return err
}

func printAudit(out io.Writer, all []audit.Record) {
	proto.Printable(&all)
	if len(all) == 0 {
		fmt.Fprintln(out, "no records")
		return
	}
	rows(out, "NUMBER\tWHEN\tWHO\tWHAT", all, func(r audit.Record) string {
		who, text := r.Who, r.What
		if r.Sealed {
			who += " *"
		}
		if why := cmp.Or(r.Reason, r.Result); why != "" {
			text += ": " + why
		}
		if r.Why != "" {
			text += " (" + r.Why + ")"
		}
		if r.Skipped > 0 {
			text += fmt.Sprintf(" [%d refusals more before]", r.Skipped)
		}
		if r.Kind == audit.Act || r.Kind == audit.Refused {
			text = "asks: " + text
		}
		return fmt.Sprintf("%d\t%s\t%s\t%s", r.Seq, when(&r.AtMillis), who, text)
	})
}
