package planner

import (
	"encoding/json"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/job"
	"ringlight/proto"
)

// Goal: a job that names a model is told which server holds what of it, by name. The
// same wish is the same job.
func TestJobHasItsStrategy(t *testing.T) {
	core := &fabric.Core{Kind: fabric.KindDirect, GPUsPerServer: 4, Direct: &fabric.Direct{Servers: 16, Degree: 4}}
	for _, wish := range []string{
		`{"circuits":{"servers":8,"topology":{"degree":4,"bidirectional":true,"model":"dlrm"}}}`,
		`{"circuits":{"servers":8,"topology":{"degree":4,"bidirectional":true,"model":"dlrm","link_mbps":400000,"server_bytes":43000000000}}}`,
	} {
		w := startedWorld(t, core)
		text, err := job.Divide(w.fab, []byte(wish))
		if err != nil {
			t.Fatal(err)
		}
		again, err := job.Divide(w.fab, []byte(wish))
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
		for rank, x := range printed.Circuits.Strategy.Servers {
			if x.Host != w.fab.ServerName(rank) {
				t.Errorf("rank %d is on %s", rank, x.Host)
			}
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
			_, err = f.p.Jobs.Try("a", string(text))
		}
		if e := proto.AsError(err); e == nil || e.Field != field || e.Limit == "" {
			t.Errorf("%s: %v, want %s", topology, err, field)
		}
	}
	if r := f.put("a", `{"circuits":{"servers":8,"topology":{"degree":4,"model":"dlrm"}}}`); r.Code != proto.Invalid || r.Field != "circuits.topology.model" {
		t.Errorf("%+v", r)
	}
}
