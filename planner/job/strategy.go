package job

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"ringlight/planner/core"
	"ringlight/planner/fabric"
	"ringlight/planner/model"
	"ringlight/planner/topo"
	"ringlight/proto"
)

// Divided is a model whose traffic a job of servers joined directly has, and how it is
// divided among them. The request names the model; the strategy is searched for before
// the wish is taken, and stands in it from then on.
type Divided struct {
	Model       json.RawMessage `json:"model,omitempty"`        // a name, or a model as a file has it
	LinkMbps    uint32          `json:"link_mbps,omitempty"`    // of an interface; absent: 100 Gb/s
	ServerBytes int64           `json:"server_bytes,omitempty"` // that weights may take on a server; absent: no limit
	GPUBytes    int64           `json:"gpu_bytes,omitempty"`    // and on each of its GPUs
	ShareLayers bool            `json:"share_layers,omitempty"` // among 2 or 4 servers
	Strategy    *Strategy       `json:"strategy,omitempty"`

	groups  []topo.Group // of the strategy
	demands []topo.Demand
}

// Strategy divides a model: servers are ranks of servers, stage by stage.
type Strategy struct {
	Stages int   `json:"stages"`
	Share  []int `json:"share"`           // by layer: how many neighbours share it
	Table  []int `json:"table,omitempty"` // by table: its server, -1: every one has it
	// What an iteration takes by the search, in nanoseconds.
	Compute int64 `json:"compute_ns"`
	Reduce  int64 `json:"reduce_ns"`
	Send    int64 `json:"send_ns"`
}

func (s *Strategy) of() model.Strategy {
	return model.Strategy{Stages: s.Stages, Share: s.Share, Table: s.Table}
}

// defaultMbps is the rate of an interface where a wish does not say. chosen:
// [TOPO] sec 5.
const defaultMbps = 100_000

// maxDivided is how many servers a strategy is searched for. chosen: some seconds of
// a processor; more are divided by the client.
const maxDivided = 128

// wrongModel names the field of an error as one of the topology.
func wrongModel(err error) error {
	var m *model.Error
	var t *topo.Error
	switch {
	case errors.As(err, &m):
		field := m.Field
		if field != "server_bytes" && field != "gpu_bytes" {
			field = "model." + field
		}
		return proto.Wrong("circuits.topology."+field, m.Limit, "%s", m.Reason)
	case errors.As(err, &t):
		return proto.Wrong("circuits.topology."+t.Field, t.Limit, "%s", t.Reason)
	}
	return err
}

// named reads a model, or finds the shipped one of that name.
func (d *Divided) named() (*model.Model, error) {
	var name string
	if json.Unmarshal(d.Model, &name) != nil {
		m, err := model.Read(d.Model)
		return m, wrongModel(err)
	}
	m := model.Named(name)
	if m == nil {
		return nil, proto.Wrong("circuits.topology.model", "one of "+strings.Join(model.Names(), ", ")+", or a model itself", "%.80q", name)
	}
	return m, nil
}

func (d *Divided) cluster(servers, gpus int) model.Cluster {
	return model.Cluster{Servers: servers, GPUsPerServer: gpus, ServerBytes: d.ServerBytes, GPUBytes: d.GPUBytes, ShareLayers: d.ShareLayers}
}

// fill finds the traffic of a strategy that is there.
func (t *Traffic) fill(servers, gpus int) error {
	switch {
	case t.Model == nil && (t.Strategy != nil || t.LinkMbps != 0 || t.ServerBytes != 0 || t.GPUBytes != 0 || t.ShareLayers):
		return proto.Wrong("circuits.topology.model", "a model, with strategy, link_mbps, server_bytes, gpu_bytes or share_layers", "absent")
	case t.Model != nil && len(t.AllReduce)+len(t.MP) > 0:
		return proto.Wrong("circuits.topology.model", "without allreduce and mp", "given beside them")
	case t.ServerBytes < 0 || t.GPUBytes < 0:
		return proto.Wrong("circuits.topology.server_bytes", "0 and up, as gpu_bytes", "%d and %d", t.ServerBytes, t.GPUBytes)
	case t.Strategy == nil || t.Model == nil:
		return nil
	}
	m, err := t.named()
	if err == nil {
		t.groups, t.demands, err = m.Traffic(t.cluster(servers, gpus), t.Strategy.of())
	}
	return wrongModel(err)
}

// Divide searches a strategy for a wish that names a model and has none, and gives
// the wish with it. It takes seconds of a processor, and is not for a planner's step.
func Divide(f *fabric.Fabric, text []byte) ([]byte, error) {
	var w Wish
	if json.Unmarshal(text, &w) != nil || w.Circuits == nil || w.Circuits.Topology == nil || w.Circuits.Topology.Model == nil || w.Circuits.Topology.Strategy != nil {
		return text, nil // the next reader reports what is wrong with it
	}
	if _, err := parseWish(f, text); err != nil && proto.AsError(err).Field != "circuits.topology.model" {
		return nil, err
	}
	t := w.Circuits.Topology
	if n := w.Circuits.Servers; n < 2 || n > maxDivided || f.Core == nil || f.Core.Direct == nil {
		return nil, proto.Wrong("circuits.servers", fmt.Sprintf("2 to %d of a direct core, with model", maxDivided), "%d", n)
	}
	m, err := t.named()
	if err != nil {
		return nil, err
	}
	p, err := model.Alternate(m, t.cluster(int(w.Circuits.Servers), f.Core.GPUsPerServer), model.Wiring{Degree: int(t.Degree), Bidirectional: t.Bidirectional,
		Method: topo.Method(t.Method), Bits: int64(cmp.Or(t.LinkMbps, defaultMbps)) * 1_000_000, Seed: t.Seed})
	if err != nil {
		return nil, wrongModel(err)
	}
	t.Strategy = &Strategy{p.Strategy.Stages, p.Strategy.Share, p.Strategy.Table, p.Time.Compute, p.Time.Reduce, p.Time.Send}
	return json.Marshal(&w)
}

// Divider gives Divide for the fabric as it is, to be called outside of a step.
func (t *Table) Divider() func(text []byte) ([]byte, error) {
	f := t.fab()
	return func(text []byte) ([]byte, error) { return Divide(f, text) }
}

// Held is a strategy by the names of servers.
type Held struct {
	Strategy
	Servers []Holding `json:"servers"` // by rank
}

// Holding is what one server has.
type Holding struct {
	Host   string `json:"host"`
	Stage  int    `json:"stage"`
	Layers []int  `json:"layers"` // by number
	Part   []int  `json:"part"`   // of each layer: which of share parts
	Tables []int  `json:"tables"`
	// Bytes of weights that it has to hold, and each of its GPUs.
	ServerBytes int64 `json:"server_bytes"`
	GPUBytes    int64 `json:"gpu_bytes"`
}

// held says which server holds what; nil: nobody divided a model.
func (w *Wish) held(f *fabric.Fabric, r core.Ranks) *Held {
	t := w.Circuits.Topology
	if t == nil || t.Strategy == nil || len(r.Servers) != int(w.Circuits.Servers) {
		return nil
	}
	m, err := t.named()
	if err != nil {
		return nil // it was checked
	}
	all, err := model.Holdings(m, t.cluster(len(r.Servers), f.Core.GPUsPerServer), t.Strategy.of())
	if err != nil {
		return nil
	}
	out := &Held{Strategy: *t.Strategy, Servers: []Holding{}}
	for rank, h := range all {
		out.Servers = append(out.Servers, Holding{f.ServerName(r.Servers[rank]), h.Stage, h.Layers, h.Part, append([]int{}, h.Tables...), h.ServerBytes, h.GPUBytes})
	}
	return out
}
