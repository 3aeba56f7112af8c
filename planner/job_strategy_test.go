package planner

import (
	"encoding/json"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/job"
	"ringlight/planner/model"
	"ringlight/proto"
)

// Goal: a job that names a model is told which server holds what of it, with the
// memory that it takes, never over what was given; the traffic that its links are for
// is that of just this strategy, and the iteration takes as long as the search said;
// another link rate is another time. The same wish is the same job.
// Method: two models on eight servers; bytes of each server counted by hand from the
// model; the topology found anew from what is printed.
func TestJobHasItsStrategy(t *testing.T) {
	core := &fabric.Core{Kind: fabric.KindDirect, GPUsPerServer: 4, Direct: &fabric.Direct{Servers: 16, Degree: 4}}
	for _, c := range []struct {
		wish   string
		server int64 // bytes, at most
		mbps   int64
	}{
		{`{"circuits":{"servers":8,"topology":{"degree":4,"bidirectional":true,"model":"dlrm"}}}`, 1 << 60, 100_000},
		{`{"circuits":{"servers":8,"topology":{"degree":4,"bidirectional":true,"model":"dlrm","link_mbps":400000,"server_bytes":43000000000}}}`, 43_000_000_000, 400_000},
	} {
		w := startedWorld(t, core)
		text, err := job.Divide(w.fab, []byte(c.wish))
		if err != nil {
			t.Fatal(err)
		}
		again, err := job.Divide(w.fab, []byte(c.wish))
		if err != nil || string(again) != string(text) {
			t.Errorf("divided twice: %v\n%s\n%s", err, text, again)
		}
		if r := w.put("a", string(text)); r.Code != proto.OK {
			t.Fatalf("%+v", r)
		}
		w.run(5 * time.Second)
		v := w.job("a")
		if v.State != job.Ready || v.Circuits.Strategy == nil || len(v.Circuits.Strategy.Servers) != 8 {
			t.Fatalf("%+v %+v", v, v.Circuits)
		}
		raw, _ := json.Marshal(v)
		var printed struct {
			Circuits struct{ Strategy job.Held }
		}
		if err := json.Unmarshal(raw, &printed); err != nil {
			t.Fatal(err)
		}
		h := printed.Circuits.Strategy
		m := model.Named("dlrm")
		var table []int64
		for _, e := range m.Embeddings {
			for range e.Count {
				table = append(table, e.Rows*int64(e.Dimension)*int64(m.BytesPerValue))
			}
		}
		dense, held := int64(0), make([]bool, len(table))
		for _, l := range m.Layers {
			dense += int64(l.Count) * int64(l.Inputs) * int64(l.Outputs) * int64(m.BytesPerValue)
		}
		for rank, x := range h.Servers {
			bytes := int64(0)
			for _, k := range x.Tables {
				bytes += table[k]
				held[k] = true
			}
			if x.ServerBytes != dense+bytes || x.ServerBytes > c.server || x.GPUBytes < dense+bytes/4 || x.Host != w.fab.ServerName(rank) {
				t.Errorf("server %d has %+v, by hand %d and %d", rank, x, dense, bytes)
			}
		}
		for k, is := range held {
			if !is {
				t.Errorf("nobody has table %d", k)
			}
		}
		p, err := model.Wire(m, model.Cluster{Servers: 8, GPUsPerServer: 4}, model.Strategy{Stages: h.Stages, Share: h.Share, Table: h.Table}, model.Wiring{Degree: 4, Bidirectional: true, Bits: c.mbps * 1_000_000})
		if err != nil || p.Time != (model.Time{Compute: h.Compute, Reduce: h.Reduce, Send: h.Send}) {
			t.Errorf("%v: %+v, printed %+v", err, p.Time, h.Strategy)
		}
		if links := len(p.Topology.Links()); len(v.Circuits.Orders) != len(p.Topology.Rings) || links == 0 {
			t.Errorf("%d rings for %d", len(v.Circuits.Orders), len(p.Topology.Rings))
		}
	}
}

// Goal: a model that cannot be divided so, and one that nobody divided, are refused by
// field and limit.
func TestBadModelsAreRefused(t *testing.T) {
	f := startedWorld(t, &fabric.Core{Kind: fabric.KindDirect, GPUsPerServer: 4, Direct: &fabric.Direct{Servers: 16, Degree: 4}})
	for topology, field := range map[string]string{ // any order: each by itself
		`{"degree":4,"model":"gpt9"}`:                                           "circuits.topology.model",
		`{"degree":4,"model":{"name":"x"}}`:                                     "circuits.topology.model.batch_per_gpu",
		`{"degree":4,"model":"dlrm","server_bytes":1000}`:                       "circuits.topology.server_bytes",
		`{"degree":4,"model":"dlrm","gpu_bytes":1000}`:                          "circuits.topology.gpu_bytes",
		`{"degree":4,"model":"dlrm","server_bytes":-1}`:                         "circuits.topology.server_bytes",
		`{"degree":4,"model":"dlrm","mp":[[0,1,5]]}`:                            "circuits.topology.model",
		`{"degree":4,"link_mbps":5}`:                                            "circuits.topology.model",
		`{"degree":4,"model":"dlrm","strategy":{"stages":3}}`:                   "circuits.topology.model.stages",
		`{"degree":0,"model":"dlrm"}`:                                           "circuits.topology.degree",
		`{"degree":4,"bidirectional":true,"model":"dlrm","method":"whichever"}`: "circuits.topology.method",
	} {
		wish := `{"circuits":{"servers":8,"topology":` + topology + `}}`
		text, err := job.Divide(f.fab, []byte(wish))
		if err == nil {
			_, err = JobsOf(f.p).Try("a", string(text))
		}
		if e := proto.AsError(err); e == nil || e.Field != field || e.Limit == "" {
			t.Errorf("%s: %v, want %s", topology, err, field)
		}
	}
	if r := f.put("a", `{"circuits":{"servers":8,"topology":{"degree":4,"model":"dlrm"}}}`); r.Code != proto.Invalid || r.Field != "circuits.topology.model" {
		t.Errorf("%+v", r)
	}
}
