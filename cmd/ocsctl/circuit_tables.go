package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"ringlight/cmd/cli"
	"ringlight/planner/job"
	"ringlight/proto"
)

// tableJSON is the form that scripts rely on: what one leaf or spine does with
// the traffic of one job.
type tableJSON struct {
	Job     proto.JobID `json:"job"`
	Switch  string      `json:"switch"`            // leaf or spine
	Number  uint16      `json:"number"`            // of the leaf or spine
	Virtual uint32      `json:"virtual"`           // virtual leaf, or virtual spine: the VRF
	Sends   [][2]uint16 `json:"sends,omitempty"`   // port, uplink: by source, in the order of ranks
	Reaches [][3]uint16 `json:"reaches,omitempty"` // leaf, port, uplink: by destination
	Ports   []uint16    `json:"ports,omitempty"`   // of a spine, by virtual leaf
}

func tableOf(x *proto.RoutingTable) tableJSON {
	j := tableJSON{Job: x.Job, Switch: cli.Either(x.Spine, "spine", "leaf"), Number: x.Number, Virtual: x.Virtual, Ports: x.Ports}
	for _, s := range x.Sends {
		j.Sends = append(j.Sends, [2]uint16{s.Port, s.Uplink})
	}
	for _, r := range x.Reaches {
		j.Reaches = append(j.Reaches, [3]uint16{r.Leaf, r.Port, r.Uplink})
	}
	return j
}

func circuitTables(ctx context.Context, c *clientFlags, id proto.JobID, out io.Writer) error {
	all, err := list(ctx, c, &proto.OpRequest{Noun: proto.NounTables, Job: id}, func(r *proto.OpReply) []proto.RoutingTable { return r.Tables }, tableOf)
	return c.answer(out, map[string][]tableJSON{"tables": all}, err, func() {
		rows(out, "JOB\tAT\tVIRTUAL\tROUTES", all, func(t tableJSON) string {
			return fmt.Sprintf("%d\t%s %d\t%d\t%s", t.Job, t.Switch, t.Number, t.Virtual, t.routes())
		})
	})
}

// circuitRoutes prints what each device is told of a job, 0: of all.
func circuitRoutes(ctx context.Context, c *clientFlags, id proto.JobID, output string, out io.Writer) error {
	all := []job.DeviceRoutes{}
	err := c.with(ctx, func(cl *client) error {
		ids := []proto.JobID{id}
		if id == 0 {
			var err error
			ids, err = every(ctx, cl, proto.OpRequest{Noun: proto.NounJobs}, func(r *proto.OpReply) []proto.JobStatus { return r.Jobs }, func(s *proto.JobStatus) proto.JobID { return s.Job })
			if err != nil {
				return err
			}
		}
		for _, id := range ids {
			text, err := cl.text(ctx, proto.OpRequest{Noun: proto.NounTables, Job: id, Name: proto.TablesAsRoutes})
			if err != nil {
				return err
			}
			of, err := job.WriteRoutes([]byte(text), output)
			if err != nil {
				return cli.AsUsage(err)
			}
			all = append(all, of...)
		}
		return nil
	})
	return c.answer(out, map[string][]job.DeviceRoutes{"devices": all}, err, func() {
		for _, x := range all {
			fmt.Fprint(out, x.Text)
		}
	})
}

// routes writes port>uplink, leaf/port>uplink of what is reached, and of a VRF
// the port to each virtual leaf.
func (t *tableJSON) routes() string {
	var words []string
	for _, s := range t.Sends {
		words = append(words, fmt.Sprintf("%d>%d", s[0], s[1]))
	}
	for _, r := range t.Reaches {
		words = append(words, fmt.Sprintf("%d/%d>%d", r[0], r[1], r[2]))
	}
	for _, p := range t.Ports {
		words = append(words, fmt.Sprint(p))
	}
	return strings.Join(words, " ")
}
