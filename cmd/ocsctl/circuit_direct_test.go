package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ringlight/cmd/cli"
	"ringlight/planner/fabric"
	"ringlight/proto"
)

// A topology that cannot be is refused by field, before anybody is asked.
// Method: a table of lists; nothing listens anywhere.
func TestBadTopologiesAreRefused(t *testing.T) {
	const ring = `"allreduce":[{"group":4,"bytes":10}]`
	for topology, field := range map[string]string{ // any order: each is judged by itself
		`{"degree":3,"bidirectional":true,` + ring + `}`:                                      "topology.degree",
		`{"degree":0,` + ring + `}`:                                                           "topology.degree",
		`{"degree":4,"rings":2}`:                                                              "topology.rings",
		`{"degree":4,"servers":4,` + ring + `}`:                                               "topology.servers",
		`{"degree":4,"allreduce":[{"group":[0,1],"bytes":10}]}`:                               "topology.allreduce",
		`{"degree":4,"allreduce":[{"group":[0,9],"bytes":10}]}`:                               "topology.allreduce[0].group[1]",
		`{"degree":4,"allreduce":[{"group":3,"bytes":10}]}`:                                   "topology.allreduce[0].group",
		`{"degree":4,"mp":[[0,1]]}`:                                                           "topology.mp",
		`{"degree":4,"mp":[[1,1,5]]}`:                                                         "topology.mp[0]",
		`{"degree":4,"method":"best",` + ring + `}`:                                           "topology.method",
		`{"degree":4,"model":"gpt9"}`:                                                         "topology.model",
		`{"degree":4,"model":"dlrm",` + ring + `}`:                                            "topology.model",
		`{"degree":4,"model":{"name":"x","batch_per_gpu":1,"bytes_per_value":2,"layers":[]}}`: "topology.model.layers",
		`{"degree":5,"bidirectional":true,"model":"dlrm"}`:                                    "topology.degree",
		`[]`: "topology.input",
	} {
		_, err := parseJobs([]byte(`{"jobs":[{"id":9,"servers":1},{"id":1,"servers":4,"topology":` + topology + `}]}`))
		var use *usageError
		if !errors.As(err, &use) || use.Field != "jobs[1]."+field || use.Limit == "" {
			t.Errorf("%s: %+v, want field %s", topology, err, field)
		}
	}
	_, err := parseJobs([]byte(`{"jobs":[{"id":1,"gpus_total":16,"topology":{"degree":4,` + ring + `}}]}`))
	if err == nil || !strings.Contains(err.Error(), "jobs[0].servers") {
		t.Errorf("no servers: %v", err)
	}
}

// What a job sends is given, or what a model sends that is divided as it is
// fastest. Method: lists read, the model's traffic checked by what it must have.
func TestJobsWithTopologies(t *testing.T) {
	f, err := parseJobs([]byte(`{"jobs":[{"id":1,"servers":4,"next":7,"topology":{"degree":4,"bidirectional":true,"seed":5,"method":"totient",
		"allreduce":[{"group":2,"bytes":10},{"group":[0,2],"bytes":7}],"mp":[[1,2,30]]}},
		{"id":2,"servers":4},{"id":3,"servers":8,"topology":{"degree":4,"bidirectional":true,"model":"dlrm"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := proto.JobTopology{Degree: 4, Bidirectional: true, Seed: 5, Method: proto.MethodTotient, MP: []proto.Demand{{From: 1, To: 2, Bytes: 30}},
		AllReduce: []proto.Reduce{{Servers: []uint16{0, 1}, Bytes: 10}, {Servers: []uint16{2, 3}, Bytes: 10}, {Servers: []uint16{0, 2}, Bytes: 7}}}
	if s := f.specs[0]; s.Next != 7 || s.Topology == nil || !reflect.DeepEqual(*s.Topology, want) {
		t.Errorf("%+v", s.Topology)
	}
	if f.specs[1].Topology != nil {
		t.Errorf("%+v", f.specs[1])
	}
	if d := f.specs[2].Topology; len(d.AllReduce) == 0 || len(d.AllReduce[0].Servers) != 8 {
		t.Errorf("%+v", d)
	}
}

// Ranks of a ring are the GPUs of its servers, as the job numbers them.
// Method: two servers of two GPUs, in the other order.
func TestRingsAreInRanks(t *testing.T) {
	rings := ringsOf(&proto.JobStatus{Seats: []proto.Seat{{Server: 5, GPUs: 2}, {Server: 3, GPUs: 2}, {Server: 8, GPUs: 2}},
		Rings: []proto.Ring{{Group: 1, Servers: []uint16{8, 5, 3}, Layers: []uint16{0, 1}}}})
	if len(rings) != 1 || !slices.Equal(rings[0].Ranks, []int{4, 5, 0, 1, 2, 3}) || rings[0].Group != 1 {
		t.Errorf("%+v", rings)
	}
}

// Servers joined directly are described by flags, and nonsense is refused.
// Method: fabric new, read back.
func TestFabricNewDirect(t *testing.T) {
	code, out, errs := ctl(t, strings.Fields("fabric new -core direct -servers 16 -degree 6 -gpus-per-server 8")...)
	f, err := fabric.Parse([]byte(out))
	if code != 0 || err != nil || f.Core.Direct == nil || *f.Core.Direct != (fabric.Direct{Servers: 16, Degree: 6}) || f.Core.GPUsPerServer != 8 {
		t.Fatalf("%d %s %v %s", code, errs, err, out)
	}
	for args, field := range map[string]string{"-degree 9": "core.degree", "-servers 1": "core.servers", "-leaves 4": "leaves", "-pods 3": "pods", "-wiring uniform": "wiring"} { // any order: each is judged by itself
		code, out, _ := ctl(t, append([]string{"fabric", "new", "-json", "-core", "direct"}, strings.Fields(args)...)...)
		var e struct{ Error cli.ErrorJSON }
		if json.Unmarshal([]byte(out), &e); code != 2 || e.Error.Field != field || e.Error.Limit == "" {
			t.Errorf("%s: %d %s", args, code, out)
		}
	}
	if code, out, _ := ctl(t, "fabric", "new", "-json", "-degree", "4"); code != 2 || !strings.Contains(out, "-core direct") {
		t.Errorf("%d %s", code, out)
	}
	for _, file := range []string{`"kind":"pods","servers":4,"degree":2`, `"kind":"direct","leaves":4`, `"kind":"direct","servers":4,"degree":2,"pods":3`, `"kind":"direct"`} {
		if _, err := fabric.Parse([]byte(`{"name":"f","core":{"gpus_per_server":4,` + file + `}}`)); err == nil {
			t.Errorf("%s is taken", file)
		}
	}
}

// Goal: a job is provisioned beside another and flips, told as scripts and
// people rely on. Method: a planner, and production agents on simulated boards
// of four layers' mirrors and six servers' transceivers.
func TestFlipAgainstARunningCore(t *testing.T) {
	t.Parallel()
	core := fabric.DefaultDirect()
	*core.Direct = fabric.Direct{Servers: 6, Degree: 2}
	broker, file := coreRig(t, core), filepath.Join(t.TempDir(), "jobs.json")
	run := func(v any, args ...string) (code int, out string) {
		t.Helper()
		code, out, errs := ctl(t, append(args, "-broker", broker, "-fabric", "f1", "-json")...)
		if v != nil && code == 0 {
			if err := json.Unmarshal([]byte(out), v); err != nil {
				t.Fatalf("%v: %v\n%s", args, err, out)
			}
		}
		return code, out + errs
	}
	apply := func(jobs string) (c changeJSON) {
		t.Helper()
		if err := os.WriteFile(file, []byte(`{"jobs":[`+jobs+`]}`), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, out := run(&c, "circuit", "apply", file); code != 0 {
			t.Fatalf("%d %s", code, out)
		}
		return c
	}
	job := func(id, state string) (one struct {
		jobStatusJSON
		Circuits []circuitJSON
	}) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); time.Now().Before(end); { // a bound on a hang
			if run(&one, "circuit", "show", id); one.State == state && one.Realised == one.Granted {
				return one
			}
		}
		t.Fatalf("job %s: %+v", id, one)
		return one
	}
	const first = `{"id":1,"servers":5,"topology":{"degree":2,"bidirectional":true,"allreduce":[{"group":5,"bytes":10}]}}`
	apply(first)
	job("1", "realised")
	apply(first + `,{"id":2,"servers":4,"next":1}`)
	if one := job("2", "standby"); one.Next != 1 || len(one.Rings) != 1 || len(one.Rings[0].Ranks) != 16 || len(one.Circuits) != 8 {
		t.Errorf("%+v", one)
	}
	if code, out := run(nil, "circuit", "flip", "1"); code != 2 || !strings.Contains(out, `"field":"job"`) {
		t.Errorf("%d %s", code, out)
	}
	var c changeJSON
	if code, out := run(&c, "circuit", "flip", "2", "-dry-run"); code != 0 || !c.DryRun || len(c.Ended) != 0 {
		t.Errorf("%d %s", code, out)
	}
	job("1", "realised")
	if code, out := run(&c, "circuit", "flip", "2"); code != 0 || !slices.Equal(c.Ended, []proto.JobID{1}) || c.Placed != 1 {
		t.Errorf("%d %s", code, out)
	}
	one := job("2", "realised")
	if code, out, _ := ctl(t, "circuit", "show", "2", "-broker", broker); code != 0 || !strings.Contains(out, "ring 0 of group 0") {
		t.Errorf("%d %s", code, out)
	}
	var told whyJSON
	seat := "switch-" + strconv.Itoa(2+int(one.Seats[0][1]))
	if code, out := run(&told, "why", seat+"/1"); code != 0 || told.Node != nil || *told.Switch != 2+int(one.Seats[0][1]) || !strings.Contains(out, "external2") || !strings.Contains(out, "settle") {
		t.Errorf("%d %s", code, out)
	}
	if code, out := run(nil, "why", "switch-8"); code != 2 || !strings.Contains(out, "0 to 7") {
		t.Errorf("%d %s", code, out)
	}
}
