package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"ringlight/cmd/cli"
	"ringlight/proto"
)

// statusJSON is the form that scripts rely on.
type statusJSON struct {
	Fabric  string       `json:"fabric"`
	Broker  brokerJSON   `json:"broker"`
	Planner plannerJSON  `json:"planner"`
	Nodes   nodesJSON    `json:"nodes"`
	Rings   ringsJSON    `json:"rings"`
	Spares  uint32       `json:"spares"`
	Links   linksJSON    `json:"links"`
	Alarms  []raisedJSON `json:"alarms"` // those that nobody acknowledged
	Breaks  []breakJSON  `json:"breaks_next"`
	Missing []string     `json:"missing,omitempty"` // what nobody says who answers
}

type brokerJSON struct {
	URL       string `json:"url"`
	Connected bool   `json:"connected"`
}

type plannerJSON struct {
	ID         uint64           `json:"id"`
	Host       string           `json:"host"`
	Term       proto.Term       `json:"term"`
	Generation proto.Generation `json:"generation"`
	Leader     bool             `json:"leader"`
	Life       uint64           `json:"life"` // of the process: copies of one store share the id
	SinceMS    uint64           `json:"since_ms,omitempty"`
	Standbys   []standbyJSON    `json:"standbys"`
}

type standbyJSON struct {
	ID     uint64 `json:"id"`
	Host   string `json:"host"`
	Life   uint64 `json:"life"`
	Behind uint64 `json:"behind"` // batches of the store that it has yet to read
}

type nodesJSON struct {
	Total    uint32 `json:"total"`
	Online   uint32 `json:"online"`
	Silent   uint32 `json:"silent"`
	Isolated uint32 `json:"isolated"`
	HostDown uint32 `json:"host_down"`
	Drained  uint32 `json:"drained"`
}

type ringsJSON struct {
	Total     uint32 `json:"total"`
	InService uint32 `json:"in_service"`
	Degraded  uint32 `json:"degraded"`
	Forming   uint32 `json:"forming"`
	Down      uint32 `json:"down"`
}

type linksJSON struct {
	Total     uint32 `json:"total"`
	Confirmed uint32 `json:"confirmed"`
}

type raisedJSON struct {
	SinceMS  uint64        `json:"since_ms"`
	Severity string        `json:"severity"`
	Node     *proto.NodeID `json:"node"` // null: of no single one
	What     string        `json:"what"`
	Why      string        `json:"why"`
}

type breakJSON struct {
	Lose  string `json:"lose"`
	Rings uint32 `json:"rings_down"`
	GPUs  uint32 `json:"gpus_lost"`
	// Of a switch: links of jobs that would be dark, whose, and jobs without any other.
	Links uint32 `json:"links_dark,omitempty"`
	Jobs  uint32 `json:"jobs,omitempty"`
	Down  uint32 `json:"jobs_down,omitempty"`
}

const statusHelp = `Where the fabric stands, at a glance: the broker, the planner in service and
those that stand by, nodes and rings by state, spares, links with light, alarms
that nobody acknowledged, and what breaks next: what the loss of one more node, fibre or switch
would take down, tried on a copy. Where no planner answers it says what stands by
what the agents said last, and what is missing, and exits 1.

  ocsctl status
  ocsctl status -json | jq .rings.degraded
`

func status(ctx context.Context, args []string, out io.Writer) error {
	var c clientFlags
	if _, err := c.readNone(cli.NewFlags("status"), args, statusHelp); err != nil {
		return err
	}
	var s *proto.Status
	var alarms []alarmLine
	var alone *kept // no planner answers
	var silent error
	j := statusJSON{Alarms: []raisedJSON{}, Breaks: []breakJSON{}}
	if err := c.with(ctx, func(cl *client) error {
		r, err := cl.Ask(ctx, proto.OpRequest{Noun: proto.NounStatus})
		if j.Fabric = cl.Topics.Fabric; unanswered(err) {
			silent = err
			alone, err = askBroker(ctx, cl)
			return err
		}
		if err != nil {
			return err
		}
		s = r.Status
		alarms, err = askAlarms(ctx, cl)
		return err
	}); err != nil {
		return err
	}
	planner := ""
	if alone != nil {
		s, j.Alarms = alone.status()
		planner, j.Missing = alone.lastWord(), missing
	}
	j.Broker = brokerJSON{c.broker, true}
	j.Planner = plannerJSON{s.Planner.Planner, s.Planner.Host, s.Term, s.Generation, alone == nil, s.Planner.Life, s.Since, []standbyJSON{}}
	for _, x := range s.Standbys {
		j.Planner.Standbys = append(j.Planner.Standbys, standbyJSON{x.Planner, x.Host, x.Life, x.Behind})
	}
	n, r := s.Nodes, s.Rings
	j.Nodes = nodesJSON{n.Total, n.Online, n.Silent, n.Isolated, n.HostDown, n.Drained}
	j.Rings = ringsJSON{r.Total, r.InService, r.Degraded, r.Forming, r.Down}
	j.Spares, j.Links = s.Spares, linksJSON{s.Links, s.Confirmed}
	for _, a := range alarms {
		if a.Acknowledged == nil {
			j.Alarms = append(j.Alarms, raisedJSON{a.SinceMS, a.Severity, a.Node, a.What, a.Why})
		}
	}
	for _, b := range s.Breaks {
		j.Breaks = append(j.Breaks, breakJSON{b.Lose, b.Rings, b.GPUs, b.Links, b.Jobs, b.Down})
	}
	return errors.Join(c.print(out, j, func() error { return j.text(out, s, planner) }), cli.Answered(silent))
}

// text is the answer for people: how it is in one word, then each part. planner is
// what is said of one that does not answer.
func (j *statusJSON) text(out io.Writer, s *proto.Status, planner string) error {
	health := "OK"
	switch r := j.Rings; {
	case planner != "":
		health = "no planner"
	case r.Down > 0:
		health = "down"
	case r.Degraded+r.Forming > 0:
		health = "degraded"
	case len(j.Alarms) > 0:
		health = "Warning"
	}
	t := cli.Table{Screen: cli.ScreenOf(out)}
	t.Row("fabric "+j.Fabric, health)
	t.Row("  broker", j.Broker.URL)
	spares := ", " + proto.Count(int(j.Spares), "spare")
	if planner == "" {
		planner = fmt.Sprintf("%s, term %d, generation %d", s.Planner, s.Term, s.Generation)
	} else {
		spares = ", by what agents said last"
	}
	t.Row("  planner", planner)
	if s.Since > 0 {
		t.Row("  in service", "since "+when(s.Since))
	}
	for _, x := range s.Standbys {
		text := x.String()
		if x.Behind > 0 {
			text += ", " + proto.Count(int(x.Behind), "batch") + " of the store behind"
		}
		t.Row("  standby", text)
	}
	n := j.Nodes
	t.Row("  nodes", counts(n.Total, []count{{n.Online, "online"}, {n.Silent, "silent"}, {n.Isolated, "isolated"}, {n.HostDown, "host down"}, {n.Drained, "drained"}})+spares)
	r := j.Rings
	t.Row("  rings", counts(r.Total, []count{{r.InService, "in service"}, {r.Degraded, "degraded"}, {r.Forming, "forming"}, {r.Down, "down"}}))
	t.Row("  links", fmt.Sprintf("%d of %d confirmed by light", j.Links.Confirmed, j.Links.Total))
	if s.Switches > 0 {
		t.Row("  switches", fmt.Sprintf("%d of %d online", s.SwitchesOn, s.Switches))
	}
	for _, w := range s.Waiting {
		t.Row("  waits", w)
	}
	alarms := proto.Count(len(j.Alarms), "alarm")
	if s.Acked > 0 {
		alarms += fmt.Sprintf(", and %d acknowledged", s.Acked)
	}
	t.Row("  alarms", alarms)
	if err := t.Print(out); err != nil {
		return err
	}
	if len(j.Alarms) > 0 {
		list := cli.Table{Screen: cli.ScreenOf(out)}
		for _, a := range j.Alarms[:min(len(j.Alarms), maxShown)] {
			since := when(a.SinceMS)
			if a.SinceMS == 0 { // an agent has no clock of ours
				since = "-"
			}
			list.Row("    "+a.Severity, since, a.line())
		}
		if more := len(j.Alarms) - maxShown; more > 0 {
			list.Row("    ...", "", fmt.Sprintf("%d more: ocsctl alarm list", more))
		}
		if err := list.Print(out); err != nil {
			return err
		}
	}
	if len(j.Missing) > 0 {
		return cli.Say(out, "  not known without a planner: %s", strings.Join(j.Missing, "; "))
	}
	fmt.Fprintln(out, "  breaks next")
	list := cli.Table{Screen: cli.ScreenOf(out)}
	for _, b := range j.Breaks[:min(len(j.Breaks), maxShown)] {
		list.Row("    lose "+b.Lose, b.text())
	}
	if len(j.Breaks) == 0 {
		list.Row("    nothing", "the loss of any one more node, fibre or switch is made good")
	}
	return list.Print(out)
}

// maxShown keeps an overview on a screen.
const maxShown = 5

func (a *raisedJSON) line() string {
	text := a.What
	if a.Node != nil {
		text = placeOf(*a.Node) + ": " + text
	}
	if a.Why != "" && a.Why != a.What {
		text += " (" + a.Why + ")"
	}
	return text
}

func (b *breakJSON) text() string {
	if b.Links > 0 {
		text := fmt.Sprintf("%s of %s dark until moved", proto.Count(int(b.Links), "link"), proto.Count(int(b.Jobs), "job"))
		if b.Down > 0 {
			text += fmt.Sprintf("; %d without any other", b.Down)
		}
		return text
	}
	if b.Rings == 0 && b.GPUs == 0 {
		return "its ring is in pieces until the planner has mended it"
	}
	return fmt.Sprintf("%s down, %s fewer in rings", proto.Count(int(b.Rings), "ring"), proto.Count(int(b.GPUs), "GPU"))
}

type count struct {
	n    uint32
	what string
}

// counts says how many there are, and of what kind those are of which there is any.
func counts(total uint32, parts []count) string {
	var out []string
	for _, p := range parts {
		if p.n > 0 {
			out = append(out, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	return strings.TrimSuffix(strconv.Itoa(int(total))+": "+strings.Join(out, ", "), ": ")
}

// when is a moment for people, with its date and zone.
func when(millis uint64) string {
	return time.UnixMilli(int64(millis)).Format("2006-01-02 15:04:05 -0700")
}

// placeOf is a node or a switch as people name it.
func placeOf(id proto.NodeID) string {
	if n := switchOf(id); n != nil {
		return "switch " + strconv.Itoa(*n)
	}
	return fmt.Sprintf("node %d", id)
}
