package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"ringlight/cmd/cli"
	"ringlight/planner/job"
	"ringlight/planner/model"
	"ringlight/planner/topo"
	"ringlight/proto"
)

// Jobs of servers that are joined directly.

// modelBits is the rate of an interface by which a model is divided. chosen:
// [TOPO] sec 5.
const modelBits = 100_000_000_000

// readJobTopology reads what a job of so many servers sends, and over what; nil:
// it does not say. Errors name the field within the job.
func readJobTopology(raw json.RawMessage, servers, gpusPerServer int) (*proto.JobTopology, error) {
	if raw == nil {
		return nil, nil
	}
	in := &topologyInput{Request: topo.Request{Servers: servers}}
	var of json.RawMessage
	keys := slices.DeleteFunc(in.keys(), func(k planKey) bool { return k.name == "servers" })
	err := decodePlan(raw, append(keys, planKey{"model", &of, "a name or a model"}))
	for i := 0; i < len(in.groups) && err == nil; i++ {
		err = in.addGroup(fmt.Sprintf("allreduce[%d].group", i), in.groups[i])
	}
	for _, d := range in.mp {
		in.MP = append(in.MP, topo.Demand(d))
	}
	if err == nil && of != nil {
		err = in.divide(of, gpusPerServer)
	}
	if err == nil && len(in.AllReduce)+len(in.MP) > 0 {
		err = in.Check()
	}
	method, wrong := proto.ParseMethod(string(in.Method))
	if err == nil && wrong != nil {
		err = wrong
	}
	if err != nil {
		return nil, inTopology(err)
	}
	t := &proto.JobTopology{Degree: uint32(max(0, in.Degree)), Bidirectional: in.Bidirectional, Method: method, Seed: in.Seed}
	job.AddTraffic(t, in.AllReduce, in.MP)
	return t, nil
}

// inTopology names the field of an error as one of the topology.
func inTopology(err error) error {
	if bad, ok := errors.AsType[*topo.Error](err); ok && bad.Field == "servers" {
		return usageAt("", err)
	}
	if bad, ok := errors.AsType[*model.Error](err); ok {
		return wrongUsage("topology.model."+bad.Field, bad.Limit, "%s", bad.Reason)
	}
	return usageAt("topology.", err)
}

// divide finds what a model sends on so many servers, and with which topology
// it is fastest.
func (in *topologyInput) divide(of json.RawMessage, gpusPerServer int) error {
	if len(in.AllReduce)+len(in.MP) > 0 {
		return wrongUsage("model", "without allreduce and mp", "given beside them")
	}
	var m *model.Model
	var name string
	var err error
	switch {
	case json.Unmarshal(of, &name) != nil:
		if m, err = model.Read(of); err != nil {
			return err
		}
	default:
		if m = model.Named(name); m == nil {
			return wrongUsage("model", "one of "+strings.Join(model.Names(), ", ")+", or a model itself", "%q", name)
		}
	}
	c := model.Cluster{Servers: in.Servers, GPUsPerServer: gpusPerServer}
	p, err := model.Alternate(m, c, model.Wiring{Degree: in.Degree, Bidirectional: in.Bidirectional, Method: in.Method, Bits: modelBits, Seed: in.Seed})
	if err != nil {
		return err
	}
	in.AllReduce, in.MP, err = m.Traffic(c, p.Strategy)
	return err
}

// orderJSON is an order of servers in which a group reduces; the ranks are those
// of the job, server by server, as NCCL numbers its channels' rings.
type orderJSON struct {
	Group   int16    `json:"group"`
	Servers []uint16 `json:"servers"`
	Ranks   []int    `json:"ranks"`
	Layers  []uint16 `json:"layers"`
}

// ringsOf are a job's rings, with ranks where its servers are known.
func ringsOf(x *proto.JobStatus) (out []orderJSON) {
	for _, r := range x.Rings {
		ring := orderJSON{r.Group, r.Servers, []int{}, r.Layers}
		for _, s := range r.Servers {
			first := 0
			for _, seat := range x.Seats {
				if seat.Server == s {
					for g := range int(seat.GPUs) {
						ring.Ranks = append(ring.Ranks, first+g)
					}
				}
				first += int(seat.GPUs)
			}
		}
		out = append(out, ring)
	}
	return out
}

func printRings(out io.Writer, rings []orderJSON) {
	for n, r := range rings {
		fmt.Fprintf(out, "  ring %d of group %d, layers %v: %s\n", n, r.Group, r.Layers, strings.TrimRight("servers "+strings.Trim(fmt.Sprint(r.Servers), "[]"), " "))
	}
}

// circuitFlip lets a job start that stands by, or turn to another phase.
func circuitFlip(ctx context.Context, c *clientFlags, q proto.OpRequest, out io.Writer) error {
	ended := []proto.JobID{}
	var r *proto.OpReply
	err := c.with(ctx, func(cl *client) error {
		before, err := listedJobs(ctx, cl)
		if err != nil {
			return err
		}
		if r, err = cl.Ask(ctx, q); err != nil {
			return err
		}
		after, err := listedJobs(ctx, cl)
		ended = append(ended, slices.DeleteFunc(before, func(x proto.JobID) bool { return slices.Contains(after, x) })...)
		return err
	})
	return printChange(c, r, err, q.DryRun, ended, out)
}

// circuitDrain takes servers out of a core, or lets them in. Its node is none, so that a
// planner that knows nothing of servers refuses it.
func circuitDrain(ctx context.Context, c *clientFlags, q proto.OpRequest, out io.Writer) error {
	r, err := c.one(ctx, &q)
	return printChange(c, r, err, q.DryRun, []proto.JobID{}, out)
}

type handJSON struct {
	Switch int      `json:"switch"`
	Made   []string `json:"connected"`
	Gone   []string `json:"disconnected"`
}

// circuitByHand has a switch make circuits by hand, or take them away.
func circuitByHand(ctx context.Context, c *clientFlags, name string, keys []string, makes bool, reason string, out io.Writer) error {
	id, _, err := parsePlace(name)
	if err == nil && !id.IsSwitch() {
		err = wrongUsage("switch", "switch-N", "%q", cli.Clip(name))
	}
	if err != nil {
		return err
	}
	j := handJSON{Switch: int(id - proto.FirstSwitch), Made: keys, Gone: []string{}}
	if !makes {
		j.Made, j.Gone = j.Gone, keys
	}
	_, err = c.one(ctx, &proto.OpRequest{Noun: proto.NounConnect, Bundle: -1, Node: id, Names: j.Made, Gone: j.Gone, Reason: reason})
	return c.answer(out, j, err, func() {
		if makes {
			c.say(out, "%s makes %s; ocsctl circuit list has their light", name, strings.Join(keys, ", "))
		} else {
			c.say(out, "%s has taken %s away", name, strings.Join(keys, ", "))
		}
	})
}
