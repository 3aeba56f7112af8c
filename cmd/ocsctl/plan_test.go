package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"ringlight/cmd/cli"
	"ringlight/planner/ring"
	"ringlight/proto"
)

// planRun runs a verb on inputs as files.
func planRun(t *testing.T, verb string, inputs ...string) (code int, out, errs string) {
	t.Helper()
	args := []string{"plan", verb, "-json"}
	for i, in := range inputs {
		name := filepath.Join(t.TempDir(), fmt.Sprintf("in%d.json", i))
		if err := os.WriteFile(name, []byte(in), 0o644); err != nil {
			t.Fatal(err)
		}
		args = append(args, name)
	}
	return ctl(t, args...)
}

// sameJSON compares two texts as JSON.
func sameJSON(t *testing.T, got, want string) bool {
	t.Helper()
	var a, b any
	if err := json.Unmarshal([]byte(got), &a); err != nil {
		t.Fatalf("%q: %v", got, err)
	}
	if err := json.Unmarshal([]byte(want), &b); err != nil {
		t.Fatalf("%q: %v", want, err)
	}
	return reflect.DeepEqual(a, b)
}

const ringIn = `{"nodes":16,"gpus_per_node":4,"k":3,"topology":"line","tp":24,"faulty":[4,5,7,8]`
const sizesIn = `{"nodes":18,"gpus_per_node":4,"k":2,"topology":"line","tp":16,"ring_sizes":[{"tp":32,"rings":1}],"faulty":[2]`
const jobIn = `{"nodes":16,"gpus_per_node":4,"k":2,"topology":"line","tp":16,"faulty":[3],"nodes_per_tor":2,"nodes_per_domain":8,"gpus_total":48`

// Goal: the output is the agreed JSON, key by key.
// Method: small inputs with answers worked out by hand.
func TestPlanOutput(t *testing.T) {
	for _, c := range []struct {
		verb, in, want string
	}{
		{"ring", ringIn + `}`, `{"groups":[[6,9,10,11,12,13]],"idle":[0,1,2,3,14,15],"moved":0,"lost_to_wiring":1}`},
		{"ring", ringIn + `,"shared_bundle":false}`, `{"groups":[[0,1,2,3,6,9],[10,11,12,13,14,15]],"idle":[],"moved":0,"lost_to_wiring":0}`},
		{"ring", ringIn + `,"running":[[0,1,2,3],[9,10,11,12,13,14]]}`, `{"groups":[[9,10,11,12,13,14]],"idle":[0,1,2,3,6,15],"moved":4,"lost_to_wiring":1}`},
		{"ring", `{"nodes":6,"gpus_per_node":4,"k":2,"topology":"ring","tp":8,"faulty":[0,1,3,4]}`, `{"groups":[],"idle":[2,5],"moved":0,"lost_to_wiring":0}`},
		{"ring", `{"nodes":6,"gpus_per_node":4,"k":2,"topology":"ring","tp":8,"faulty":[1,2,3,4]}`, `{"groups":[[5,0]],"idle":[],"moved":0,"lost_to_wiring":0}`},
		{"ring", sizesIn + `}`, `{"groups":[[0,1,3,4,5,6,7,8],[9,10,11,12],[13,14,15,16]],"idle":[17],"moved":0,"lost_to_wiring":0}`},
		{"ring", sizesIn + `,"running":[[0,1,2,3],[4,5,6,7,8,9,10,11]]}`, `{"groups":[[0,1,3,4],[5,6,7,8,9,10,11,12],[13,14,15,16]],"idle":[17],"moved":2,"lost_to_wiring":0}`},
		{"orchestrate", jobIn + `}`, `{"groups":[[8,10,12,14],[9,11,13,15],[0,2,4,6]],"inner_sets":[[0,1]],"cross_tor_flows":0,"inner_flows":8,"unaligned_groups":1}`},
		{"orchestrate", jobIn + `,"method":"paper","running":[[0,2,4,6]]}`, `{"groups":[[8,10,12,14],[9,11,13,15],[0,2,4,6]],"inner_sets":[[0,1]],"cross_tor_flows":0,"inner_flows":8,"unaligned_groups":1,"moved":0}`},
	} {
		code, out, errs := planRun(t, c.verb, c.in)
		if code != 0 || errs != "" || !sameJSON(t, out, c.want) {
			t.Errorf("%s %s:\nexit %d %s%s\nwant %s", c.verb, c.in, code, errs, out, c.want)
		}
	}
}

// Goal: a job that does not fit is exit 1, the best that would is on stdout.
func TestPlanImpossible(t *testing.T) {
	for _, method := range []string{"exact", "paper"} {
		in := strings.Replace(jobIn, `"gpus_total":48`, `"gpus_total":64`, 1) + `,"method":"` + method + `"}`
		for _, verb := range []string{"orchestrate", "explain"} {
			code, out, errs := planRun(t, verb, in)
			if code != 1 || !sameJSON(t, out, `{"groups":[],"best_gpus_total":48}`) || !strings.Contains(errs, "gpus_total") {
				t.Errorf("%s %s: exit %d %s%s", verb, method, code, errs, out)
			}
		}
	}
}

// Goal: what is wrong with an input is exit 2 with its key and limit.
// Method: one defect each in an input that is right otherwise.
// Goal: a value of another kind is named by key and line, in no words of the
// decoder's. Method: an input over three lines, one value changed.
func TestPlanMisfitNamesKeyAndLine(t *testing.T) {
	for _, c := range []struct{ verb, old, new, want string }{
		{"ring", `"nodes":16`, `"nodes":"seven"`, `nodes: "seven" on line 3: want an integer`},
		{"ring", `[4,5,7,8]`, "[4,\n\"five\"]", `faulty: [1] is "five" on line 4: want an array of integers`},
		{"topology", `"bytes":1000`, `"bytes":"many"`, `allreduce: [0].bytes is "many" on line 3: want [{"group"`},
		{"topology", `"bytes":1000`, `"bytes":1,"byte":2`, `allreduce: there is no key "byte": want [{"group"`},
	} {
		in := ringIn + "}"
		if c.verb == "topology" {
			in = topologyIn
		}
		if !strings.Contains(in, c.old) {
			t.Fatalf("%s is not in %s", c.old, in)
		}
		if code, _, errs := planRun(t, c.verb, "\n\n"+strings.Replace(in, c.old, c.new, 1)); code != 2 || !strings.Contains(errs, c.want) {
			t.Errorf("exit %d, %s\nwant %s", code, errs, c.want)
		}
	}
}

func TestPlanRefuses(t *testing.T) {
	swap := func(in, old, with string) string {
		if !strings.Contains(in, old) {
			t.Fatalf("%s is not in %s", old, in)
		}
		return strings.Replace(in, old, with, 1)
	}
	r, j := ringIn+`}`, jobIn+`}`
	for _, c := range []struct{ verb, in, field string }{
		{"ring", swap(r, `"nodes":16`, `"nodes":0`), "nodes"},
		{"ring", swap(r, `"nodes":16`, `"nodes":1048577`), "nodes"},
		{"ring", swap(r, `"nodes":16`, `"nodes":1e30`), "nodes"},
		{"ring", swap(r, `"nodes":16`, `"nodes":"16"`), "nodes"},
		{"ring", swap(r, `"nodes":16,`, ``), "nodes"},
		{"ring", swap(r, `"gpus_per_node":4`, `"gpus_per_node":0`), "gpus_per_node"},
		{"ring", swap(r, `"k":3`, `"k":5`), "k"},
		{"ring", swap(r, `"k":3`, `"k":0`), "k"},
		{"ring", swap(r, `"k":3`, `"K":3`), "K"},
		{"ring", swap(r, `"line"`, `"torus"`), "topology"},
		{"ring", swap(r, `"tp":24`, `"tp":26`), "tp"},
		{"ring", swap(r, `"tp":24`, `"tp":0`), "tp"},
		{"ring", swap(r, `"tp":24`, `"tp":68`), "tp"},
		{"ring", swap(r, `[4,5,7,8]`, `[4,5,4]`), "faulty[2]"},
		{"ring", swap(r, `[4,5,7,8]`, `[16]`), "faulty[0]"},
		{"ring", swap(r, `[4,5,7,8]`, `[-1]`), "faulty[0]"},
		{"ring", swap(r, `[4,5,7,8]`, `[4.5]`), "faulty"},
		{"ring", swap(r, `[4,5,7,8]`, `4`), "faulty"},
		{"ring", ringIn + `,"running":[[1,2],[2,3]]}`, "running[1][0]"},
		{"ring", ringIn + `,"running":[[1,99]]}`, "running[0][1]"},
		{"ring", ringIn + `,"running":[[]]}`, "running[0]"},
		{"ring", ringIn + `,"shared_bundle":1}`, "shared_bundle"},
		{"ring", ringIn + `,"spares":1}`, "spares"},
		{"ring", ringIn + `,"ring_sizes":[{"tp":16,"rings":1}]}`, "ring_sizes[0].tp"},
		{"ring", ringIn + `,"ring_sizes":[{"tp":48,"rings":2}]}`, "ring_sizes[0].rings"},
		{"ring", ringIn + `,"ring_sizes":[{"tp":48,"groups":1}]}`, "ring_sizes"},
		{"ring", sizesIn + `,"running":[[0,1]]}`, "running[0]"},
		{"explain", sizesIn + `}`, "ring_sizes"},
		{"ring", ringIn + `,"nodes":16}`, "nodes"},
		{"ring", r + `{}`, "input"},
		{"ring", ringIn, "input"},
		{"ring", `[]`, "input"},
		{"ring", ``, "input"},
		{"orchestrate", swap(j, `"nodes_per_tor":2`, `"nodes_per_tor":3`), "nodes_per_tor"},
		{"orchestrate", swap(j, `"nodes_per_tor":2`, `"nodes_per_tor":0`), "nodes_per_tor"},
		{"orchestrate", swap(j, `"nodes_per_domain":8`, `"nodes_per_domain":7`), "nodes_per_domain"},
		{"orchestrate", swap(j, `"nodes_per_domain":8`, `"nodes_per_domain":18`), "nodes_per_domain"},
		{"orchestrate", swap(j, `"gpus_total":48`, `"gpus_total":0`), "gpus_total"},
		{"orchestrate", jobIn + `,"method":"best"}`, "method"},
		{"explain", jobIn + `,"method":"best"}`, "method"},
		{"explain", swap(r, `"tp":24`, `"tp":26`), "tp"},
	} {
		code, out, errs := planRun(t, c.verb, c.in)
		var got struct{ Error cli.ErrorJSON }
		if err := json.Unmarshal([]byte(out), &got); err != nil || code != 2 || got.Error.Field != c.field || got.Error.Limit == "" || !strings.Contains(errs, got.Error.Limit) {
			t.Errorf("%s %s: exit %d %s%s, want field %s", c.verb, c.in, code, errs, out, c.field)
		}
	}
	for _, args := range []string{"plan", "plan rings", "plan ring a b", "plan diff a", "plan ring /no/such/file", "plan diff - -"} {
		if code, _, errs := ctl(t, strings.Fields(args)...); code != 2 || errs == "" {
			t.Errorf("%s: exit %d %s", args, code, errs)
		}
	}
	for _, args := range []string{"plan -h", "plan ring -h", "plan orchestrate -h", "plan diff -h", "plan explain -h"} {
		if code, out, _ := ctl(t, strings.Fields(args)...); code != 0 || !strings.Contains(out, "ocsctl plan") {
			t.Errorf("%s: exit %d %s", args, code, out)
		}
	}
}

// Goal: diff names what changes, group by group.
func TestPlanDiff(t *testing.T) {
	before := `{"groups":[[0,1,2],[3,4,5],[6,7,8]],"idle":[9],"moved":0,"lost_to_wiring":0}`
	after := `{"groups":[[0,1,2],[3,5,9],[10,11,12]]}`
	code, out, errs := planRun(t, "diff", before, after)
	want := `{"unchanged":1,"changed":[{"from":1,"to":1,"left":[4],"joined":[9]}],"ended":[2],"new":[2],"moved":4,"sides_switched":14}`
	if code != 0 || !sameJSON(t, out, want) {
		t.Errorf("exit %d %s%s, want %s", code, errs, out, want)
	}
	for _, bad := range []string{`{}`, `{"groups":[[]]}`, `{"groups":[[1,1]]}`, `{"groups":[[-1]]}`, `{"groups":[1]}`} {
		if code, _, _ := planRun(t, "diff", before, bad); code != 2 {
			t.Errorf("%s: exit %d", bad, code)
		}
	}
}

// Goal: explain says the rule of each group and idle node.
func TestPlanExplain(t *testing.T) {
	code, out, errs := planRun(t, "explain", ringIn+`,"running":[[9,10,11,12,13,14]]}`)
	var r explainRing
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 {
		t.Fatalf("exit %d %s%s", code, errs, out)
	}
	if len(r.Components) != 1 || fmt.Sprint(r.Components[0].Pinned) != "[6]" || r.Components[0].Bound != 2 {
		t.Errorf("components %+v", r.Components)
	}
	if len(r.Groups) != 1 || r.Groups[0].Rule != ring.RuleKept || r.Groups[0].Was == nil || len(r.Idle) != 6 || r.Idle[0].Rule != ring.RuleWiring {
		t.Errorf("groups %+v idle %+v", r.Groups, r.Idle)
	}
	code, out, errs = planRun(t, "explain", jobIn+`}`)
	var j explainJob
	if err := json.Unmarshal([]byte(out), &j); err != nil || code != 0 {
		t.Fatalf("exit %d %s%s", code, errs, out)
	}
	if j.Rule != ring.RuleWithinDomains || fmt.Sprint(j.Domains) != "[{0 4 1 1 0 1} {1 4 0 2 2 0}]" || len(j.Groups) != 3 || j.Groups[2].Rule != "unaligned" || j.Groups[2].Set != nil {
		t.Errorf("%+v", j)
	}
}

// Whatever the input, the verbs answer or name a key; a placement is sound.
func FuzzPlan(f *testing.F) {
	f.Add([]byte(ringIn + `}`))
	f.Add([]byte(ringIn + `,"running":[[0,1,2,3],[9,10,11,12,13,14]],"shared_bundle":false}`))
	f.Add([]byte(jobIn + `}`))
	f.Add([]byte(strings.Replace(jobIn, `"line"`, `"ring"`, 1) + `,"method":"paper"}`))
	f.Add([]byte(`{"groups":[[0,1],[2]]}`))
	f.Add([]byte(`{"nodes":16,"nodes":16}`))
	f.Add([]byte(`{"":0}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, verb := range []planVerb{planRing, planOrchestrate, planExplain} {
			var in orchestrateInput
			if decodePlan(data, in.keys()) == nil && in.Nodes > 512 {
				return // right, but slow
			}
			var out bytes.Buffer
			err := planRow{run: verb}.answer(planFiles(bytes.NewReader(data), nil), &out)
			var use *usageError
			var none *cli.NoSolution
			if err != nil && !errors.As(err, &none) && (!errors.As(err, &use) || use.Field == "" || use.Limit == "") {
				t.Fatalf("%q: %v", data, err)
			}
			if err != nil {
				continue
			}
			soundPlan(t, &in, out.Bytes())
		}
		if _, err := readGroups(data); err != nil {
			var use *usageError
			if !errors.As(err, &use) {
				t.Fatal(err)
			}
		}
	})
}

// soundPlan checks the groups of a ring plan.
func soundPlan(t *testing.T, in *orchestrateInput, out []byte) {
	t.Helper()
	var o struct {
		Groups []json.RawMessage
		Idle   []proto.NodeID
	}
	if err := json.Unmarshal(out, &o); err != nil {
		return // an explanation
	}
	if err := in.ringInput.check(); err != nil {
		t.Fatal(err)
	}
	p := in.problem()
	used := map[proto.NodeID]bool{}
	for _, raw := range o.Groups {
		var g []proto.NodeID
		if json.Unmarshal(raw, &g) != nil || in.NodesPerToR > 0 {
			return
		}
		if err := p.Check(g); err != nil || len(g) != p.Size {
			t.Fatalf("group %v: %v", g, err)
		}
		for _, n := range g {
			if used[n] || !p.Usable(n) {
				t.Fatalf("node %d of %v is taken or faulty", n, g)
			}
			used[n] = true
		}
	}
}

// Goal: a plan that takes long ends at an interrupt, with nothing printed.
// Method: an input that never comes, and a context that ends.
func TestPlanHearsAnInterrupt(t *testing.T) {
	for name := range planVerbs {
		if name == "diff" { // reads files
			continue
		}
		in, feed := io.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		var out bytes.Buffer
		ended := make(chan error, 1)
		go func() {
			ended <- planVerbs[name].command(name)(ctx, []string{"-json"}, cli.Terminal{In: in, Out: &out, Err: io.Discard})
		}()
		if _, err := feed.Write([]byte("{")); err != nil { // it reads
			t.Fatal(err)
		}
		cancel()
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "interrupted after") || out.Len() > 0 {
			t.Errorf("plan %s: %v, %q", name, err, out.String())
		}
		feed.Close()
	}
}
