package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"ringlight/proto"
)

type whyJSON struct {
	Node   *proto.NodeID `json:"node"`             // null: of a switch
	Switch *int          `json:"switch,omitempty"` // from 0
	Bundle *int16        `json:"bundle"`           // null: the whole node
	Lines  []whyLineJSON `json:"lines"`            // earliest first; what holds now comes last
}

type whyLineJSON struct {
	Seq        uint64           `json:"seq"` // 0: what holds now, or what only the agent knows
	AtMS       uint64           `json:"at_ms"`
	Node       proto.NodeID     `json:"node"`
	Bundle     *int16           `json:"bundle"`
	Rule       string           `json:"rule"`
	Cause      string           `json:"cause"`
	Text       string           `json:"text"`
	Measured   *proto.MilliDBm  `json:"measured_mdbm"`
	Expected   *proto.MilliDBm  `json:"expected_mdbm"`
	Generation proto.Generation `json:"generation"`

	place, sentence string // for people
}

func why(ctx context.Context, c *clientFlags, args []string, out io.Writer) error {
	all := c.flags.Bool("all", false, "list all that led to it")
	words, err := c.read(args, help("why"))
	if err != nil {
		return err
	}
	if len(words) != 1 {
		return wrongUsage("why", "NODE, NODE/BUNDLE, switch-N or switch-N/PORT", "%q", strings.Join(words, " "))
	}
	q := proto.OpRequest{Noun: proto.NounWhy}
	if err := c.placeArg(words[0], &q.Node, &q.Bundle); err != nil {
		return err
	}
	r, err := c.one(ctx, &q)
	if err != nil {
		return err
	}
	id, bundle := q.Node, q.Bundle
	j := whyJSON{Switch: switchOf(id), Bundle: place(bundle), Lines: []whyLineJSON{}}
	if j.Switch == nil {
		j.Node = &id
	}
	for i := range r.Why {
		l := &r.Why[i]
		j.Lines = append(j.Lines, whyLineJSON{l.Seq, l.AtMillis, l.Node, place(l.Bundle), l.Rule, l.Cause.String(), l.Text, l.Measured.Known(), l.Expected.Known(), l.Gen, l.Place(), l.Sentence()})
	}
	return c.print(out, j, func() { j.print(out, *all, c.say) })
}

// print says how it is; with all also how it came to that: a line for each day,
// what happened on it, and what holds now.
func (j *whyJSON) print(out io.Writer, all bool, say func(out io.Writer, format string, args ...any)) {
	for _, line := range j.answer(!all) {
		say(out, "%s", line)
	}
	if !all {
		return
	}
	table(out, func(w io.Writer) {
		fmt.Fprintln(w, "\nTIME\tWHERE\tCAUSE\tGEN\tWHAT")
		day := ""
		for _, l := range j.Lines {
			at := time.UnixMilli(int64(l.AtMS))
			if today := at.Format("2006-01-02 -0700"); l.Seq != 0 && today != day {
				day = today
				fmt.Fprintf(w, "%s\t\t\t\t\n", day)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\n", clock(l), l.place, l.why(), l.Generation, l.what())
		}
	})
}

func (l *whyLineJSON) why() string {
	return strings.TrimPrefix(strings.ReplaceAll(l.Cause, "_", " "), "none")
}

func (l *whyLineJSON) what() string {
	if strings.HasPrefix(l.Rule, "Ringlight.") || l.Rule == "bundle" { // an event's name is its sentence
		return l.sentence
	}
	return l.Rule + ": " + l.sentence
}

// answer is how it is now, a line each: where it is planned, what is wrong with it,
// its light, and what happened last.
func (j *whyJSON) answer(last bool) (lines []string) {
	var at, wrong, light []string
	who, led := "", 0
	var latest, lost whyLineJSON
	for _, l := range j.Lines {
		if l.Seq != 0 || l.AtMS == 0 {
			if led++; l.Seq != 0 && l.why() != "" {
				latest = l
			}
			if j.Node != nil && l.Node == *j.Node && slices.Contains(losses, l.Rule[strings.LastIndexByte(l.Rule, '.')+1:]) {
				lost = l
			}
			continue
		}
		switch l.Rule {
		case "placement", "circuit":
			at = append(at, l.Text)
		case "check", "usable", "frozen":
			if !slices.ContainsFunc(wrong, func(said string) bool { return strings.Contains(said, l.Text) }) {
				wrong = append(wrong, l.Text)
			}
		case "bundle":
			light = append(light, fmt.Sprintf("bundle %d %s", *l.Bundle, strings.Replace(l.Text, ", 0 losses so far", "", 1)))
		default:
			continue
		}
		if who == "" || len(l.place) < len(who) {
			who = l.place
		}
	}
	if len(at)+len(wrong)+len(light) == 0 {
		return []string{"nothing is known of it now"}
	}
	if !strings.HasPrefix(who, "switch") {
		who = "node " + who
	}
	say := func(name string, parts []string, none string) {
		if text := cmp.Or(strings.Join(parts, "; "), none); text != "" {
			lines = append(lines, name+": "+text)
		}
	}
	say(who, at, "")
	say("wrong", wrong, "nothing")
	say("light", light, "")
	happened := func(name string, l whyLineJSON) {
		if last && l.Seq != 0 {
			lines = append(lines, fmt.Sprintf("%s: %s %s", name, time.UnixMilli(int64(l.AtMS)).Format("2006-01-02 15:04:05.000"), strings.TrimPrefix(l.why()+": "+l.what(), ": ")))
		}
	}
	if lost.Seq != latest.Seq {
		happened("lost", lost)
	}
	happened("last", latest)
	if last && led > 0 {
		lines = append(lines, fmt.Sprintf("-all shows %s that led to it", proto.Count(led, "line")))
	}
	return lines
}

// losses are the rules of lines that tell that a node, its agent or its light went.
var losses = []string{"LightLost", "PathFailed", "Isolated", "HostFault", "dead", "unreachable", "offline", "silent", "step_over"}

func clock(l whyLineJSON) string {
	switch {
	case l.Seq == 0 && l.AtMS == 0:
		return "-"
	case l.Seq == 0:
		return "now"
	}
	return "  " + time.UnixMilli(int64(l.AtMS)).Format("15:04:05.000")
}

func place(bundle int16) *int16 {
	if bundle < 0 {
		return nil
	}
	return &bundle
}

func parsePlace(s string) (proto.NodeID, int16, error) {
	first, second, has := strings.Cut(s, "/")
	field, base := "node", uint32(0)
	if n, of := strings.CutPrefix(first, "switch-"); of {
		first, field, base = n, "switch", uint32(proto.FirstSwitch)
	}
	id, err := number(field, first, 0)
	if err != nil {
		return 0, 0, err
	}
	if id += base; id < base {
		return 0, 0, wrongUsage(field, "a switch of the fabric", "%q", first)
	}
	if !has {
		return proto.NodeID(id), -1, nil
	}
	b, err := strconv.ParseUint(second, 10, 8)
	if err != nil || b >= proto.MaxBundles {
		return 0, 0, wrongUsage("bundle", "an integer from 0 to "+strconv.Itoa(proto.MaxBundles-1), "%q", second)
	}
	return proto.NodeID(id), int16(b), nil
}
