package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"ringlight/cmd/cli"
	"ringlight/proto"
)

// The names of seals' alarms: of what the planner hears, of what agents hear of it.
const unsealedAlarm = "/unsealed"

type sealJSON struct {
	Next    int        `json:"next"`    // number of the step that is not done; 0: all are
	Offline int        `json:"offline"` // nodes and switches of which nothing is known
	Steps   []sealStep `json:"steps"`
}

type sealStep struct {
	Step    string        `json:"step"`
	Done    int           `json:"done"`
	Of      int           `json:"of"`
	Refused []sealRefused `json:"refused"` // if it were done now
}

type sealRefused struct {
	Who string `json:"who"` // node, switch-N, operator-NAME or planner
	Why string `json:"why"`
}

func sealNoun(ctx context.Context, c *clientFlags, args []string, out io.Writer) error {
	words, err := c.read(args, help("seal"))
	if err != nil {
		return err
	}
	if len(words) != 1 || words[0] != "check" {
		return wrongUsage("seal", "check", "%q", cli.Clip(strings.Join(words, " ")))
	}
	j, err := found(ctx, c, func(cl *client) (sealJSON, error) { return sealsOf(ctx, cl) })
	if err != nil {
		return err
	}
	if err := c.print(out, j, func() { printSeals(out, &j) }); err != nil {
		return err
	}
	if j.Next != 0 && len(j.Steps[j.Next-1].Refused) > 0 {
		return fmt.Errorf("step %d, %s, would leave %s unheard", j.Next, j.Steps[j.Next-1].Step, proto.Count(len(j.Steps[j.Next-1].Refused), "sender"))
	}
	return nil
}

// sealsOf asks how far everybody is, and weighs the steps.
func sealsOf(ctx context.Context, cl *client) (j sealJSON, err error) {
	r, err := cl.Ask(ctx, proto.OpRequest{Noun: proto.NounFabric})
	if err != nil {
		return j, err
	}
	if r.Fabric == nil {
		return j, errors.New("the planner does not say how far it is")
	}
	alarms, err := every(ctx, cl, proto.OpRequest{Noun: proto.NounAlarms}, alarmsIn, alarmOf)
	if err != nil {
		return j, err
	}
	w := weighed{planner: r.Fabric.Features, alarms: alarms}
	look := func(r *proto.OpReply) {
		for i := range r.Nodes {
			w.device(&r.Nodes[i])
		}
	}
	if err = cl.Pages(ctx, proto.OpRequest{Noun: proto.NounNodes}, look); err != nil {
		return j, err
	}
	err = cl.Pages(ctx, proto.OpRequest{Noun: proto.NounNodes, Page: uint64(proto.FirstSwitch)}, look)
	if errors.Is(err, &proto.Error{Code: proto.Unsupported}) {
		err = nil // no switches
	}
	return w.steps(), err
}

// weighed is how far everybody is.
type weighed struct {
	planner proto.Features
	alarms  []alarmLine

	online, offline, looking, enforcing int
	blind, careless, plain, doubting    []sealRefused
}

func (w *weighed) device(s *proto.NodeStatus) {
	if !s.Online {
		w.offline++
		return
	}
	w.online++
	who, f := placeOf(s.Node), s.Features
	add := func(list *[]sealRefused, why string) { *list = append(*list, sealRefused{who, why}) }
	if !f.Has(proto.FeatureSeals) {
		add(&w.blind, "its software cannot read sealed messages")
	}
	if !f.Has(proto.FeatureSealed) {
		add(&w.plain, "it does not seal what it reports")
	}
	if f.Has(proto.FeatureEnforce) {
		w.enforcing++
	}
	if !f.Has(proto.FeatureJudges) {
		add(&w.careless, "it does not look at seals: what it would refuse is not known")
		return
	}
	if f.Has(proto.FeatureSealed) {
		w.looking++
	}
	for i := range w.alarms {
		if a := &w.alarms[i]; a.Node != nil && *a.Node == s.Node && strings.HasPrefix(a.Why, proto.UnsealedPlanner) {
			add(&w.doubting, a.Why)
			return
		}
	}
}

func (w *weighed) steps() sealJSON {
	planner := func(step string, f proto.Features, refused []sealRefused) sealStep {
		return sealStep{"planner " + step, int(one(w.planner.Has(f))), 1, refused}
	}
	unheard := w.plain
	for i := range w.alarms {
		if who, is := strings.CutSuffix(w.alarms[i].ID, unsealedAlarm); is {
			unheard = append(unheard, sealRefused{who, w.alarms[i].Why})
		}
	}
	j := sealJSON{Offline: w.offline, Steps: []sealStep{
		planner("warn", proto.FeatureJudges, w.blind),
		{Step: "agents warn", Done: w.looking, Of: w.online},
		planner("reports", proto.FeatureSealedReports, nil),
		{Step: "agents enforce", Done: w.enforcing, Of: w.online, Refused: append(w.careless, w.doubting...)},
		planner("enforce", proto.FeatureEnforce, unheard),
	}}
	if w.planner.Has(proto.FeatureEnforce) {
		j.Steps[2].Refused = unheard // it does not only look
	}
	for i := range j.Steps {
		s := &j.Steps[i]
		if s.Refused = listOf(s.Refused); s.Done < s.Of && j.Next == 0 {
			j.Next = i + 1
		}
	}
	return j
}

func printSeals(out io.Writer, j *sealJSON) {
	const most = 20
	n := 0
	rows(out, "STEP\tDONE\tWOULD BE REFUSED", j.Steps, func(s sealStep) string {
		n++
		return fmt.Sprintf("%d %s\t%d/%d\t%d", n, s.Step, s.Done, s.Of, len(s.Refused))
	})
	if j.Offline > 0 {
		fmt.Fprintf(out, "%d offline: not known\n", j.Offline)
	}
	if j.Next == 0 {
		cli.Say(out, "every message is sealed, and nothing else is read")
		return
	}
	s := &j.Steps[j.Next-1]
	for i, r := range s.Refused {
		if i == most {
			fmt.Fprintf(out, "and %d more\n", len(s.Refused)-most)
			break
		}
		cli.Say(out, "%s: %s", r.Who, r.Why)
	}
	if len(s.Refused) == 0 {
		cli.Say(out, "step %d, %s, refuses nobody", j.Next, s.Step)
	}
}
