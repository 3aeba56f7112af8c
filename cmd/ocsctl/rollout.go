package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"ringlight/cmd/cli"
	"ringlight/proto"
)

type rolloutJSON struct {
	State    string        `json:"state"`
	Software string        `json:"software"`
	Firmware bool          `json:"firmware"` // software is that of the modules
	Author   string        `json:"author"`
	SinceMS  uint64        `json:"since_ms"`
	Reason   string        `json:"reason"`
	Node     *proto.NodeID `json:"node"` // that it stopped for
	Wave     uint32        `json:"wave"`
	Nodes    struct {
		Total     uint32 `json:"total"`
		Current   uint32 `json:"current"`   // online with the software
		Restarted uint32 `json:"restarted"` // by this roll-out, and back
		Left      uint32 `json:"left"`      // cannot be restarted now
	} `json:"nodes"`
	Waits    string              `json:"waits"`
	UnderWay []proto.RolloutNode `json:"under_way"`
	Waves    []proto.RolloutWave `json:"waves"` // of plan
	Left     []proto.RolloutNode `json:"left"`
}

func rolloutOf(s *proto.RolloutStatus) rolloutJSON {
	j := rolloutJSON{State: s.State.String(), Software: s.Software, Firmware: s.Firmware, Author: s.Author, SinceMS: s.SinceMillis, Reason: s.Reason, Node: s.Node, Wave: s.Wave, Waits: s.Waiting,
		UnderWay: listOf(s.UnderWay), Waves: listOf(s.Waves), Left: listOf(s.Left)}
	j.Nodes.Total, j.Nodes.Current, j.Nodes.Restarted, j.Nodes.Left = s.Nodes, s.Current, s.Back, s.LeftTotal
	return j
}

func rolloutNoun(ctx context.Context, c *clientFlags, args []string, out io.Writer) error {
	wait := c.flags.Bool("wait", false, "run: tell how it goes, until it is over")
	firmware := c.flags.Bool("firmware", false, "plan, run: VERSION is that of the modules' firmware, such as 1.2.0")
	words, err := c.read(args, help("rollout"))
	verb := strings.Join(words[:min(1, len(words))], "")
	noun, known := map[string]proto.Noun{"plan": proto.NounRollout, "run": proto.NounRollout, "stop": proto.NounRolloutStop, "status": proto.NounRolloutStatus}[verb]
	named := noun == proto.NounRollout && known
	switch {
	case err != nil:
		return err
	case !known || len(words) > 2 || named != (len(words) == 2):
		return wrongUsage("rollout", "plan VERSION, run VERSION, status, stop", "%q", cli.Clip(strings.Join(words, " ")))
	case *wait && verb != "run":
		return wrongUsage("wait", "with run", "%s", verb)
	case *firmware && !named:
		return wrongUsage("firmware", "with plan or run", "%s", verb)
	}
	q := proto.OpRequest{Noun: noun, DryRun: verb == "plan", Author: c.author(), Firmware: *firmware}
	if named {
		if q.Software = words[1]; proto.Release(q.Software) == "" || proto.Clip(q.Software) != q.Software {
			return wrongUsage("software", fmt.Sprintf("what ocs-agent version prints, at most %d bytes", proto.MaxText), "%q", cli.Clip(q.Software))
		}
	}
	if q.DryRun {
		return c.rolloutPlan(ctx, q, out)
	}
	return c.with(ctx, func(cl *client) error {
		r, err := cl.Ask(ctx, q)
		if duplicate(err) && verb == "run" {
			r, err = cl.Ask(ctx, proto.OpRequest{Noun: proto.NounRolloutStatus})
		}
		if err != nil {
			return err
		}
		j, err := rolloutIn(r)
		if *wait && err == nil {
			j, err = follow(ctx, cl, j, tellWave(c, out))
		}
		if err != nil {
			return err
		}
		if err := c.print(out, j, func() { printRollout(out, &j) }); err != nil {
			return err
		}
		if *wait && j.State != "done" {
			return fmt.Errorf("the roll-out stopped: %s", j.Reason)
		}
		return nil
	})
}

func rolloutIn(r *proto.OpReply) (rolloutJSON, error) {
	if r.Rollout == nil {
		return rolloutJSON{}, fmt.Errorf("the planner's answer has no roll-out; is it of this release?")
	}
	return rolloutOf(r.Rollout), nil
}

// rolloutPlan shows what would be done.
func (c *clientFlags) rolloutPlan(ctx context.Context, q proto.OpRequest, out io.Writer) error {
	all := rolloutJSON{Waves: []proto.RolloutWave{}}
	var lacks error
	err := c.with(ctx, func(cl *client) error {
		err := cl.Pages(ctx, q, func(r *proto.OpReply) {
			var j rolloutJSON
			if j, lacks = rolloutIn(r); lacks == nil {
				j.Waves = append(all.Waves, j.Waves...)
				all = j
			}
		})
		return cmp.Or(err, lacks)
	})
	return c.answer(out, all, err, func() {
		cli.Say(out, "%s: %s of %d, %d run it already, %d are left", all.Software, proto.Count(len(all.Waves), "wave"), all.Nodes.Total, all.Nodes.Current, all.Nodes.Left)
		rows(out, "wave\tnodes\twhich", all.Waves, func(x proto.RolloutWave) string {
			return fmt.Sprintf("%d\t%d\t%s", x.Wave, x.Size, few(x.Nodes, int(x.Size)))
		})
		if len(all.Left) > 0 {
			printLeft(out, &all)
		}
	})
}

// few lists the first nodes of many.
func few(nodes []proto.NodeID, of int) string {
	const most = 10
	text := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(nodes[:min(most, len(nodes))])), " "), "[]")
	if more := of - min(most, len(nodes)); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func printLeft(out io.Writer, j *rolloutJSON) {
	table(out, func(w io.Writer) {
		fmt.Fprintln(w, "left\twhy")
		for _, n := range j.Left {
			fmt.Fprintf(w, "%d\t%s\n", n.Node, n.Why)
		}
		if more := int(j.Nodes.Left) - len(j.Left); more > 0 {
			fmt.Fprintf(w, "...\tand %d more\n", more)
		}
	})
}

func printRollout(out io.Writer, j *rolloutJSON) {
	text := "no roll-out"
	if j.Software != "" {
		text = fmt.Sprintf("roll-out of %s: %s", j.Software, j.State)
	}
	switch {
	case j.Reason != "":
		text += ", " + j.Reason
	case j.Waits != "":
		text += ", blocked by: " + j.Waits
	}
	if j.Software != "" {
		done := cli.Either(j.Firmware, "through", "restarted")
		text += fmt.Sprintf("; wave %d, %s %s, %s", j.Wave, proto.Count(int(j.Nodes.Restarted), "node"), done, j.run("it"))
	}
	cli.Say(out, "%s", text)
	if len(j.UnderWay) > 0 {
		rows(out, "node\tstands", j.UnderWay, func(n proto.RolloutNode) string {
			return fmt.Sprintf("%d\t%s", n.Node, n.Why)
		})
	}
	if len(j.Left) > 0 && j.Software != "" {
		printLeft(out, j)
	}
}

// run is how many run it.
func (j *rolloutJSON) run(what string) string {
	if j.Nodes.Total == 0 {
		return "none was asked since the planner began"
	}
	return fmt.Sprintf("%d of %d run %s", j.Nodes.Current, j.Nodes.Total, what)
}

// tellWave tells a person of each wave.
func tellWave(c *clientFlags, out io.Writer) func(*rolloutJSON) {
	said := ""
	return func(j *rolloutJSON) {
		if c.json || j.State == "done" || j.State == "stopped" {
			return // told at the end
		}
		text := fmt.Sprintf("wave %d: %s", j.Wave, j.run(j.Software))
		for _, n := range j.UnderWay {
			if n.ByHand {
				text += fmt.Sprintf("; restart the agent of node %d there", n.Node)
			}
		}
		if j.Waits != "" {
			text += "; blocked by: " + j.Waits
		}
		if text != said {
			said = text
			cli.Say(out, "%s", text)
		}
	}
}

// follow asks until it is over.
func follow(ctx context.Context, cl *client, j rolloutJSON, tell func(*rolloutJSON)) (rolloutJSON, error) {
	for {
		tell(&j)
		if j.State == "done" || j.State == "stopped" || j.State == "idle" {
			return j, nil
		}
		select {
		case <-ctx.Done():
			return j, ctx.Err()
		case <-time.After(time.Second):
		}
		r, err := cl.Ask(ctx, proto.OpRequest{Noun: proto.NounRolloutStatus})
		if err != nil {
			return j, err
		}
		if j, err = rolloutIn(r); err != nil {
			return j, err
		}
	}
}
