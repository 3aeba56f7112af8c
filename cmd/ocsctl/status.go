package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"ringlight/cmd/cli"
	"ringlight/planner/health"
	"ringlight/proto"
)

// statusJSON is the form that scripts rely on.
type statusJSON struct {
	Fabric  string           `json:"fabric"`
	Health  string           `json:"health"`
	Checks  []checkJSON      `json:"checks"` // those that find something, the worst first, then the others
	Broker  brokerJSON       `json:"broker"`
	Planner plannerJSON      `json:"planner"`
	Nodes   proto.NodeCounts `json:"nodes"`
	Rings   proto.RingCounts `json:"rings"`
	Spares  uint32           `json:"spares"`
	Wanted  wantedJSON       `json:"wanted"`
	GPUs    uint32           `json:"gpus_in_rings"`
	Links   linksJSON        `json:"links"`
	Alarms  []raisedJSON     `json:"alarms"` // those that nobody acknowledged
	Breaks  []proto.Break    `json:"breaks_next"`
	Ageing  []proto.Ageing   `json:"ages_next"`         // near their limits, the first first
	Missing []string         `json:"missing,omitempty"` // what nobody says who answers

	found []proto.AlarmStatus
	leads string // what is said of it first: of what nobody acknowledged the gravest, and where that comes from
}

type brokerJSON struct {
	URL       string `json:"url"`
	Connected bool   `json:"connected"`
}

type plannerJSON struct {
	ID         uint64              `json:"id"`
	Host       string              `json:"host"`
	Term       proto.Term          `json:"term"`
	Generation proto.Generation    `json:"generation"`
	Leader     bool                `json:"leader"`
	Life       uint64              `json:"life"` // of the process: copies of one store share the id
	SinceMS    uint64              `json:"since_ms,omitempty"`
	Standbys   []proto.PlannerCopy `json:"standbys"`
}

type linksJSON struct {
	Total     uint32 `json:"total"`
	Confirmed uint32 `json:"confirmed"`
	Unproven  uint32 `json:"unproven"`
}

// checkJSON is what a check finds of one subject, or that it finds nothing.
type checkJSON struct {
	Name    string  `json:"name"`
	State   string  `json:"state"`
	Subject string  `json:"subject"`
	Text    string  `json:"text"`
	Cause   string  `json:"cause"`
	Remedy  string  `json:"remedy"`
	Since   *string `json:"since"` // null: not known
	Under   string  `json:"under,omitempty"`
}

// brief is an alarm in a few words.
func brief(a *proto.AlarmStatus) string {
	if strings.Contains(a.What, a.Subject) {
		return a.What
	}
	return a.Subject + ": " + a.What
}

// wantedJSON is what the description asks for.
type wantedJSON struct {
	Rings  uint32 `json:"rings"`
	GPUs   uint32 `json:"gpus_in_rings"`
	Spares uint32 `json:"spares"`
}

type raisedJSON struct {
	alarmLine
	More int `json:"consequences"` // alarms that follow from it
}

func status(ctx context.Context, c *clientFlags, args []string, out io.Writer) error {
	if err := c.readNone(args, help("status")); err != nil {
		return err
	}
	var s *proto.Status
	var found []proto.AlarmStatus
	var alone *kept // no planner answers
	var silent error
	j := statusJSON{Alarms: []raisedJSON{}}
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
		found, err = every(ctx, cl, proto.OpRequest{Noun: proto.NounAlarms}, alarmsIn, func(a *proto.AlarmStatus) proto.AlarmStatus { cl.knowsWhere(a); return *a })
		return err
	}); err != nil {
		return err
	}
	planner := ""
	if alone != nil {
		s, found = alone.status()
		planner, j.Missing = alone.lastWord(), missing
	}
	j.judge(s.Health, found)
	j.Broker = brokerJSON{c.broker, true}
	j.Planner = plannerJSON{s.Planner.Planner, s.Planner.Host, s.Term, s.Generation, alone == nil, s.Planner.Life, s.Since, listOf(s.Standbys)}
	j.Nodes, j.Rings, j.Breaks, j.Ageing = s.Nodes, s.Rings, listOf(s.Breaks), listOf(s.Ageing)
	j.Spares, j.Links, j.GPUs, j.Wanted = s.Spares, linksJSON{s.Links, s.Confirmed, s.Unproven}, s.GPUs, wantedJSON{s.RingsWanted, s.GPUWanted, s.SparesWanted}
	if silent == nil && (j.Health == proto.HealthFailed.String() || j.Health == proto.HealthNotInService.String()) {
		silent = fmt.Errorf("fabric %s: %s", j.Fabric, j.Health)
	}
	return errors.Join(c.print(out, j, func() { j.text(out, s, planner) }), cli.Answered(silent))
}

// judge takes what the checks found.
func (j *statusJSON) judge(s proto.HealthState, found []proto.AlarmStatus) {
	j.Health, j.found = max(s, health.Worst(found)).String(), found
	finds, known, of := map[string]bool{}, map[string]bool{}, map[string]*proto.AlarmStatus{}
	rank := uint32(0)
	for i := range found {
		a := &found[i]
		finds[a.Check], of[a.ID] = true, a
		j.Checks = append(j.Checks, checkJSON{a.Check, a.State.String(), a.Subject, a.What, a.Why, a.Remedy, moment(a.SinceMillis), a.Under})
		if known[a.ID] = a.AckMillis != 0 || known[a.Under]; a.Under == "" && a.AckMillis == 0 {
			j.Alarms = append(j.Alarms, raisedJSON{alarmLine: alarmOf(a)})
		} else if a.Under != "" && !known[a.Under] && len(j.Alarms) > 0 {
			j.Alarms[len(j.Alarms)-1].More++
		}
		if r := 1 + one(a.State.String() == j.Health) + 2*one(!known[a.ID]); r > rank {
			rank, j.leads = r, ": "+brief(a)
			root := a
			for of[root.Under] != nil {
				root = of[root.Under]
			}
			if root != a {
				j.leads += ", from " + brief(root)
			}
			if root.AckMillis != 0 {
				j.leads += ", acknowledged by " + root.AckAuthor
			}
		}
	}
	for i := range health.Checks {
		c := checkJSON{Name: health.Checks[i].Name, State: proto.HealthOK.String(), Text: health.Checks[i].Looks}
		if j.Health == proto.HealthNotInService.String() {
			c.State, c.Cause = j.Health, "not known: nobody plans"
		}
		if !finds[c.Name] {
			j.Checks = append(j.Checks, c)
		}
	}
}

// moment is a time of the wall clock, nil where it is not known.
func moment(millis uint64) *string {
	if millis == 0 {
		return nil
	}
	return new(time.UnixMilli(int64(millis)).UTC().Format(time.RFC3339Nano))
}

// known is nil for what is zero where nobody knows it.
func known[T comparable](v *T) *T {
	if *v == *new(T) {
		return nil
	}
	return v
}

// text is the answer for people: how it is in one word, then each part. planner is
// what is said of one that does not answer.
func (j *statusJSON) text(out io.Writer, s *proto.Status, planner string) {
	cli.Say(out, "%s", j.Fabric+" "+j.Health+j.leads)
	t := cli.Table{Screen: cli.ScreenOf(out)}
	t.Row("  broker", j.Broker.URL)
	spares := fmt.Sprintf(", %s (%d wanted)", proto.Count(int(j.Spares), "spare"), j.Wanted.Spares)
	wanted := fmt.Sprintf("; %d of %d wanted GPUs in rings", j.GPUs, j.Wanted.GPUs)
	if planner == "" {
		planner = fmt.Sprintf("%s, term %d, generation %d", s.Planner, s.Term, s.Generation)
	} else {
		spares, wanted = ", by what agents said last", ""
	}
	t.Row("  planner", planner)
	if s.Since > 0 {
		t.Row("  in service", "since "+when(&s.Since))
	}
	for _, x := range s.Standbys {
		text := x.String()
		if x.Behind > 0 {
			text += ", " + proto.Count(int(x.Behind), "batch") + " of the store behind"
		}
		t.Row("  standby", text)
	}
	n := j.Nodes
	apart := some([]count{{n.Isolated, "isolated"}, {n.HostDown, "host down"}, {n.Drained, "drained"}})
	if apart != "" {
		apart = " (" + apart + ")"
	}
	t.Row("  nodes", counts(n.Total, []count{{n.Online, "online"}, {n.Silent, "silent"}})+apart+spares)
	r := j.Rings
	t.Row("  rings", counts(r.Total, []count{{r.InService, "in service"}, {r.Degraded, "degraded"}, {r.Forming, "forming"}, {r.Down, "down"}})+wanted)
	links := fmt.Sprintf("%d of %d confirmed by light", j.Links.Confirmed, j.Links.Total)
	if j.Nodes.Silent > 0 && len(j.Missing) > 0 || j.inRings("offline", "silent", "unreachable") {
		links += ", ends at silent nodes as last heard"
	}
	if j.inRings("board_silent") {
		links += ", ends at boards that do not answer as last read"
	}
	if n := int(j.Links.Unproven); n > 0 {
		links += fmt.Sprintf(", %d of them unproven", n)
	}
	t.Row("  links", links)
	if s.Switches > 0 {
		t.Row("  switches", fmt.Sprintf("%d of %d online", s.SwitchesOn, s.Switches))
	}
	if len(j.Ageing) > 0 {
		t.Row("  ages next", agesText(j.Ageing))
	}
	for _, w := range s.Waiting {
		t.Row("  blocked by", w)
	}
	alarms := cli.Either(len(j.Alarms) > 0, strconv.Itoa(len(j.Alarms)), "none")
	if s.Acked > 0 {
		alarms += fmt.Sprintf(", and %d acknowledged", s.Acked)
	}
	t.Row("  alarms", alarms)
	t.Print(out)
	if len(j.Alarms) > 0 {
		list := cli.Table{Screen: cli.ScreenOf(out)}
		for _, a := range j.Alarms[:min(len(j.Alarms), maxShown)] {
			list.Row("    "+a.Severity, when(a.SinceMS), a.line())
		}
		if more := len(j.Alarms) - maxShown; more > 0 {
			list.Row("    ...", "", fmt.Sprintf("%d more: ocsctl alarm list", more))
		}
		list.Print(out)
	}
	if len(j.Missing) > 0 {
		cli.Say(out, "  not known without a planner: %s", strings.Join(j.Missing, "; "))
		return
	}
	fmt.Fprintln(out, "  breaks next")
	list := cli.Table{Screen: cli.ScreenOf(out)}
	for i := range j.Breaks[:min(len(j.Breaks), maxShown)] {
		list.Row("    lose "+j.Breaks[i].Lose, breakText(&j.Breaks[i]))
	}
	switch {
	case len(j.Breaks) > 0:
	case j.Rings.InService == 0 && s.Switches == 0:
		list.Row("    -", "no ring is in service: nothing is left to break")
	default:
		list.Row("    nothing", "the loss of any one node, fibre or switch is made good, if fibres that no ring uses are whole")
	}
	list.Print(out)
}

// inRings: a check finds something of a node in a ring.
func (j *statusJSON) inRings(checks ...string) bool {
	return slices.ContainsFunc(j.found, func(a proto.AlarmStatus) bool { return a.Ring != 0 && slices.Contains(checks, a.Check) })
}

// maxShown keeps an overview on a screen.
const maxShown = 5

func (a *raisedJSON) line() string {
	text := a.text()
	if a.Node != nil && !strings.Contains(a.What, a.Subject) {
		text = placeOf(*a.Node) + ": " + text
	}
	if a.More > 0 {
		text += "; from it " + cli.Either(a.More == 1, "follows", "follow") + " " + proto.Count(a.More, "alarm")
	}
	return text
}

func breakText(b *proto.Break) string {
	if b.Links > 0 {
		text := fmt.Sprintf("%s of %s dark until moved", proto.Count(int(b.Links), "link"), proto.Count(int(b.Jobs), "job"))
		if b.Down > 0 {
			text += fmt.Sprintf("; %d without any other", b.Down)
		}
		return text
	}
	return b.Text
}

// agesText is what is worn first.
func agesText(all []proto.Ageing) string {
	a := &all[0]
	what, unit, left := "lasers", "mA", "their limit"
	if a.What == "heater_power" {
		what, unit = "heaters", "mW"
	}
	if a.Days > 0 {
		left = proto.Count(int(a.Days), "day") + " left"
	}
	text := fmt.Sprintf("%s, module %d/%d: %s at %.1f of %.1f %s, %s", placeOf(a.Node), a.Bundle, a.Module, what, float64(a.Is)/1000, float64(a.Limit)/1000, unit, left)
	if more := len(all) - 1; more > 0 {
		text += fmt.Sprintf("; %d more: -json", more)
	}
	return text
}

type count struct {
	n    uint32
	what string
}

// counts says how many there are, and of what kind those are of which there is any.
func counts(total uint32, parts []count) string {
	return strings.TrimSuffix(strconv.Itoa(int(total))+": "+some(parts), ": ")
}

// some says of what there is any, and how many.
func some(parts []count) string {
	var out []string
	for _, p := range parts {
		if p.n > 0 {
			out = append(out, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	return strings.Join(out, ", ")
}

// when is a moment for people, with its date and zone; nil: nobody knows.
func when(millis *uint64) string {
	if millis == nil {
		return "-"
	}
	return time.UnixMilli(int64(*millis)).Format("2006-01-02 15:04:05 -0700")
}

// placeOf is a node or a switch as people name it.
func placeOf(id proto.NodeID) string {
	if n := switchOf(id); n != nil {
		return "switch " + strconv.Itoa(*n)
	}
	return fmt.Sprintf("node %d", id)
}
