package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"ringlight/cmd/cli"
	"ringlight/proto"
)

// alarmLine is the form that scripts rely on.
type alarmLine struct {
	ID           string        `json:"id"`
	SinceMS      *uint64       `json:"since_ms"` // null: not known
	Severity     string        `json:"severity"`
	Node         *proto.NodeID `json:"node"` // null: of no single one
	Ring         *proto.RingID `json:"ring"`
	What         string        `json:"what"`
	Why          string        `json:"why"`
	Check        string        `json:"check"`
	Subject      string        `json:"subject"`
	Remedy       string        `json:"remedy"`
	Under        *string       `json:"under"`        // id of the alarm that it follows from; null: it is a cause
	Acknowledged *ackJSON      `json:"acknowledged"` // null: by nobody
	Affects      bool          `json:"service_affecting"`
}

type ackJSON struct {
	Author string `json:"author"`
	Reason string `json:"reason"`
	AtMS   uint64 `json:"at_ms"`
}

func alarmOf(a *proto.AlarmStatus) alarmLine {
	l := alarmLine{ID: a.ID, SinceMS: known(&a.SinceMillis), Ring: known(&a.Ring), Under: known(&a.Under), Check: a.Check, Subject: a.Subject, Remedy: a.Remedy, Severity: a.Severity.String(), Node: a.Node, What: a.What, Why: a.Why, Affects: a.ServiceAffecting}
	if a.AckMillis != 0 {
		l.Acknowledged = &ackJSON{a.AckAuthor, a.AckReason, a.AckMillis}
	}
	return l
}

func alarmsIn(r *proto.OpReply) []proto.AlarmStatus { return r.Alarms }

func alarm(ctx context.Context, c *clientFlags, args []string, out io.Writer) error {
	reason := c.flags.String("reason", "", "ack: what is known, `TEXT`")
	open := c.flags.Bool("open", false, "list: only those that nobody acknowledged")
	words, err := c.read(args, help("alarm"))
	switch {
	case err != nil:
		return err
	case len(words) == 1 && words[0] == "list":
		all, err := found(ctx, c, func(cl *client) ([]alarmLine, error) {
			return every(ctx, cl, proto.OpRequest{Noun: proto.NounAlarms}, alarmsIn, func(a *proto.AlarmStatus) alarmLine { cl.knowsWhere(a); return alarmOf(a) })
		})
		kept := slices.DeleteFunc(all, func(a alarmLine) bool { return *open && a.Acknowledged != nil })
		return c.answer(out, map[string][]alarmLine{"alarms": kept}, err, func() { printAlarms(out, kept) })
	case len(words) == 2 && words[0] == "ack":
		if *reason == "" {
			return wrongUsage("reason", "a text: what is known of it", "-reason is missing")
		}
		r, err := c.change(ctx, &proto.OpRequest{Noun: proto.NounAck, Alarm: words[1], Author: c.author(), Reason: *reason})
		if err != nil {
			return err
		}
		done := alarmLine{ID: words[1]}
		if len(r.Alarms) == 1 {
			done = alarmOf(&r.Alarms[0])
		}
		return c.print(out, done, func() { fmt.Fprintf(out, "%s is acknowledged until it is over\n", done.ID) })
	}
	return wrongUsage("alarm", "list, or ack ALARM", "%q", strings.Join(words, " "))
}

// text is what is wrong, and what to do where that is the cause.
func (a *alarmLine) text() string {
	text := a.What
	if a.Why != "" && a.Why != a.What {
		text += " (" + a.Why + ")"
	}
	if a.Under != nil {
		return ".. " + text
	}
	return text + "; to do: " + a.Remedy
}

func printAlarms(out io.Writer, all []alarmLine) {
	if len(all) == 0 {
		fmt.Fprintln(out, "no alarms")
		return
	}
	rows(out, "ALARM\tSEVERITY\tSINCE\tWHAT", all, func(a alarmLine) string {
		text := a.text()
		if k := a.Acknowledged; k != nil {
			text += fmt.Sprintf(" [known: %s, by %s]", k.Reason, k.Author)
		}
		return fmt.Sprintf("%s\t%s%s\t%s\t%s", a.ID, a.Severity, cli.Either(a.Affects, " *", ""), when(a.SinceMS), text)
	})
}
