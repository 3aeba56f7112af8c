package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"ringlight/cmd/cli"
	"ringlight/planner/isolate"
)

type isolateInput struct {
	Uplinks, GPUsPerServer, GPUsTotal int
	FreeGPUs, FreeLinks               intLists
	OCS                               json.RawMessage
}

func readIsolate(data []byte) (*isolateInput, *isolate.State, error) {
	in := new(isolateInput)
	if err := decodePlan(data, []planKey{
		{"uplinks", &in.Uplinks, "an integer"}, {"gpus_per_server", &in.GPUsPerServer, "an integer"},
		{"free_gpus", &in.FreeGPUs, "[[gpus,..],..]"}, {"gpus_total", &in.GPUsTotal, "an integer"},
		{"free_links", &in.FreeLinks, "[[links,..],..]"}, {"ocs", &in.OCS, "an object"},
	}); err != nil {
		return nil, nil, err
	}
	free, err := in.FreeGPUs.matrix("free_gpus")
	if err != nil {
		return nil, nil, err
	}
	core := isolate.Core{GPUsPerServer: in.GPUsPerServer, Servers: make([]int, len(free))}
	for n, servers := range free {
		core.Servers[n] = len(servers)
	}
	if (in.OCS == nil) != in.FreeLinks.there {
		return nil, nil, wrongUsage("free_links", "either free_links or ocs", "both or neither")
	}
	rows, field := in.FreeLinks.lists, "free_links"
	if in.OCS == nil {
		if core.Links, err = in.FreeLinks.matrix(field); err != nil {
			return nil, nil, err
		}
	} else {
		if core.Optics, err = readOCS(in.OCS); err != nil {
			return nil, nil, err
		}
		rows, field = core.Optics.Leaf, "ocs.leaf"
	}
	s, err := core.With(free)
	if err != nil {
		return nil, nil, isolateUsage(err)
	}
	return in, s, in.check(core, rows, field)
}

// check holds the leaves against their uplinks, and the job against the core.
func (in *isolateInput) check(core isolate.Core, rows [][]int, field string) error {
	if in.Uplinks < 1 {
		return wrongUsage("uplinks", "1 or more", "%d", in.Uplinks)
	}
	for n, row := range rows {
		sum := 0
		for _, links := range row {
			sum += links
		}
		if sum > in.Uplinks {
			return wrongUsage(fmt.Sprintf("%s[%d]", field, n), fmt.Sprintf("at most uplinks, %d", in.Uplinks), "%d in all", sum)
		}
		if gpus := core.Servers[n] * core.GPUsPerServer; gpus > in.Uplinks {
			return wrongUsage(fmt.Sprintf("free_gpus[%d]", n), fmt.Sprintf("at most uplinks, %d GPUs", in.Uplinks), "servers of %d", gpus)
		}
	}
	return isolateUsage(core.Check(in.GPUsTotal))
}

func readOCS(data []byte) (*isolate.Optics, error) {
	var o isolate.Optics
	var leaf, spine intLists
	err := decodePlan(data, []planKey{{"any_to_any", &o.AnyToAny, "true or false"}, {"leaf", &leaf, "[[ports,..],..]"}, {"spine", &spine, "[[ports,..],..]"}})
	if err == nil {
		if o.Leaf, err = leaf.matrix("leaf"); err == nil {
			o.Spine, err = spine.matrix("spine")
		}
	}
	if err != nil {
		return nil, usageAt("ocs.", err)
	}
	return &o, nil
}

// matrix gives the lists, or what is wrong with them.
func (l *intLists) matrix(field string) ([][]int, error) {
	if !l.there {
		return nil, wrongUsage(field, "an array of arrays of integers", "there is none")
	}
	return l.lists, l.sound(field)
}

// sound says what is wrong with those that are there.
func (l *intLists) sound(field string) error {
	if l.wrong == "" {
		return nil
	}
	return wrongUsage(field+l.wrong, "an array of integers, at most nine digits each", "something else")
}

// isolateUsage puts what the planner's mathematics refuses into this command's
// terms.
func isolateUsage(err error) error {
	if refused, ok := errors.AsType[*isolate.Error](err); ok {
		return wrongUsage(strings.Replace(refused.Field, "servers", "free_gpus", 1), refused.Limit, "%s", refused.Reason)
	}
	return err
}

type isolateOutput struct {
	Stage    int      `json:"stage"`
	Servers  [][3]int `json:"servers"`
	L        int      `json:"l"`
	S        int      `json:"s"`
	Links    [][2]int `json:"links"`
	Circuits [][]any  `json:"circuits"`
	Map      []int    `json:"map"`
	Cost     int      `json:"cost"`
}

func planIsolate(text []byte, _ func() ([]byte, error)) (any, error) {
	in, state, err := readIsolate(text)
	if err != nil {
		return nil, err
	}
	p, why := state.Place(in.GPUsTotal)
	if why != isolate.Fits {
		return map[string]string{"cause": why.String()}, &cli.NoSolution{Why: fmt.Sprintf("gpus_total: %d GPUs cannot be placed now: %s", in.GPUsTotal, map[isolate.Cause]string{
			isolate.ByGPU: "too few idle servers", isolate.ByNetwork: "servers enough, no virtual Clos"}[why])}
	}
	o := isolateOutput{Stage: p.Stage, L: p.L, S: p.S, Cost: p.Cost, Servers: [][3]int{}, Links: [][2]int{}, Circuits: [][]any{}, Map: append([]int{}, p.Map...)}
	for _, w := range p.Servers {
		o.Servers = append(o.Servers, [3]int{w.Leaf, w.Server, w.GPUs})
	}
	for _, l := range p.Links {
		o.Links = append(o.Links, [2]int{l.Leaf, l.Spine})
	}
	for _, c := range p.Circuits {
		o.Circuits = append(o.Circuits, []any{c.Switch, side(c.A), c.A.Number, side(c.B), c.B.Number})
	}
	return o, nil
}

func side(e isolate.End) string { return cli.Either(e.Spine, "spine", "leaf") }
