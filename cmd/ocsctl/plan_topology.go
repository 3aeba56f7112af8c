package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"ringlight/cmd/cli"
	"ringlight/planner/topo"
)

type topologyInput struct {
	topo.Request
	groups []topologyGroup
	mp     []topologyDemand
}

// topologyGroup is a group as it is written: a list, or how many neighbours.
type topologyGroup struct {
	Group json.RawMessage
	Bytes int64
}

// topologyDemand is [from, to, bytes].
type topologyDemand topo.Demand

func (d *topologyDemand) UnmarshalJSON(data []byte) error {
	var list []*int64
	if err := json.Unmarshal(data, &list); err != nil || len(list) != 3 || list[0] == nil || list[1] == nil || list[2] == nil {
		return errors.New("not [from,to,bytes]")
	}
	d.From, d.To, d.Bytes = clampInt(*list[0]), clampInt(*list[1]), *list[2]
	return nil
}

// clampInt keeps a number out of range out of range where an int is 32 bits.
func clampInt(v int64) int { return int(max(-1, min(v, 1<<30))) }

func (in *topologyInput) keys() []planKey {
	return []planKey{
		{"servers", &in.Servers, "an integer"}, {"degree", &in.Degree, "an integer"}, {"bidirectional", &in.Bidirectional, "true or false"},
		{"allreduce", &in.groups, `[{"group":[server,..] or a number,"bytes":integer},..]`}, {"mp", &in.mp, "[[from,to,bytes],..], integers"},
		{"method", &in.Method, "random or totient"}, {"seed", &in.Seed, "an integer, 0 or more"},
	}
}

// readTopology gives the request and its topology.
func readTopology(data []byte) (*topologyInput, *topo.Topology, error) {
	in := new(topologyInput)
	if err := decodePlan(data, in.keys()); err != nil {
		return nil, nil, err
	}
	for i, g := range in.groups {
		if err := in.addGroup(fmt.Sprintf("allreduce[%d].group", i), g); err != nil {
			return nil, nil, err
		}
	}
	for _, d := range in.mp {
		in.MP = append(in.MP, topo.Demand(d))
	}
	t, err := topo.Find(in.Request)
	return in, t, usageAt("", err)
}

func (in *topologyInput) addGroup(field string, g topologyGroup) error {
	var list []*int
	var every int
	switch {
	case json.Unmarshal(g.Group, &list) == nil && list != nil:
		servers := make([]int, len(list))
		for i, s := range list {
			if s == nil {
				return wrongUsage(fmt.Sprintf("%s[%d]", field, i), "an integer", "null")
			}
			servers[i] = *s
		}
		in.AllReduce = append(in.AllReduce, topo.Group{Servers: servers, Bytes: g.Bytes})
		return nil
	case json.Unmarshal(g.Group, &every) != nil || string(g.Group) == "null":
		return wrongUsage(field, "a list of servers, or how many neighbours are a group", "%s", cli.Clip(string(g.Group)))
	case every < 2 || in.Servers > topo.MaxServers || in.Servers%every != 0:
		return wrongUsage(field, fmt.Sprintf("2 or more that divide the servers, %d", in.Servers), "%d", every)
	}
	for s := 0; s < in.Servers; s++ {
		if s%every == 0 {
			in.AllReduce = append(in.AllReduce, topo.Group{Bytes: g.Bytes})
		}
		last := &in.AllReduce[len(in.AllReduce)-1]
		last.Servers = append(last.Servers, s)
	}
	return nil
}

type topologyHops struct {
	Mean float64 `json:"mean"`
	Max  int     `json:"max"`
}

type topologyOutput struct {
	Rings   [][]int      `json:"rings"`
	Links   [][3]int     `json:"links"`
	Hops    topologyHops `json:"hops"`
	Tax     float64      `json:"tax_ratio"`
	Fullest int64        `json:"fullest_link_bytes"`
}

func planTopology(text []byte, _ func() ([]byte, error)) (any, error) {
	_, t, err := readTopology(text)
	if err != nil {
		return nil, err
	}
	o := topologyOutput{Rings: [][]int{}, Links: [][3]int{}, Fullest: t.Fullest,
		Hops: topologyHops{float64(t.Hops.Sum) / float64(t.Hops.Pairs), t.Hops.Max}, Tax: float64(t.Carried) / float64(t.Asked)}
	for _, r := range t.Rings {
		if r.Group >= 0 {
			o.Rings = append(o.Rings, r.Order)
		}
	}
	for _, l := range t.Links() {
		o.Links = append(o.Links, [3]int{l.A, l.B, l.Count})
	}
	return o, nil
}

type explainedRing struct {
	Ring   int    `json:"ring"`
	Group  *int   `json:"group"`
	Layers []int  `json:"layers"`
	Text   string `json:"text"`
}

type explainTopologyOutput struct {
	Method  topo.Method     `json:"method"`
	Degree  int             `json:"degree_allreduce"`
	Text    string          `json:"text"`
	Jumps   []int           `json:"jumps"`
	First   []int           `json:"first_jump"`
	Reduce  int64           `json:"fullest_link_allreduce_bytes"`
	Send    int64           `json:"fullest_link_mp_bytes"`
	Rings   []explainedRing `json:"rings"`
	Layers  [][]int         `json:"layers"`
	Relayed [][]int         `json:"mp_paths"`
}

// explainTopology says what each layer carries and by which way traffic goes.
func explainTopology(text []byte) (any, error) {
	in, t, err := readTopology(text)
	if err != nil {
		return nil, err
	}
	o := explainTopologyOutput{Method: t.Method, Degree: t.Reduce, Reduce: t.FullestReduce, Send: t.FullestSend,
		Text:  fmt.Sprintf("%d of %d interfaces are for rings, the others for matchings of servers that send each other most", t.Reduce, in.Degree),
		Rings: []explainedRing{}, Layers: [][]int{}, Relayed: [][]int{}, Jumps: append([]int{}, t.Jumps...), First: []int{}}
	if len(t.Jumps) > 0 {
		o.First = topo.CoinChangeMod(t.Servers, t.Jumps, t.Bidirectional).Jump
	}
	for i, r := range t.Rings {
		e := explainedRing{Ring: i, Layers: r.Layers}
		if r.Group >= 0 {
			e.Group = &r.Group
		}
		switch {
		case !t.Bidirectional:
			e.Text = "each server's fibre out leads to the next, its fibre in comes from the one before"
		case t.Layers[r.Layers[0]].Paired(r.Order[0]):
			e.Text = "two matchings: both fibres of an interface end at one peer"
		default:
			e.Text = "an odd ring is no two matchings: the first layer carries it forward, the second backward"
		}
		o.Rings = append(o.Rings, e)
	}
	for _, l := range t.Layers {
		o.Layers = append(o.Layers, l.To)
	}
	for _, d := range in.MP {
		o.Relayed = append(o.Relayed, t.Routes.Path(d.From, d.To))
	}
	return o, nil
}
