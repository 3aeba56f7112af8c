package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/planner"
	"ringlight/planner/fabric"
	"ringlight/planner/job"
	"ringlight/planner/server"
	"ringlight/proto"
	"ringlight/proto/mqtt"
	"ringlight/sim/live"
)

// A job list that cannot be is refused by field, before anybody is asked.
// Method: a table of lists; nothing listens anywhere.
func TestBadJobListsAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ list, field string }{ // any order: each is judged by itself
		"not JSON":          {`jobs`, "jobs"},
		"no list":           {`{}`, "jobs"},
		"unknown key":       {`{"jobs":[{"id":1,"tp":4,"servers":2,"replicas":3}]}`, "jobs"},
		"unknown key above": {`{"jobs":[],"job":1}`, "jobs"},
		"something follows": {`{"jobs":[]}{}`, "jobs"},
		"no id":             {`{"jobs":[{"tp":4,"servers":2}]}`, "jobs[0].id"},
		"an id twice":       {`{"jobs":[{"id":7,"servers":1},{"id":8,"servers":1},{"id":7,"servers":2}]}`, "jobs[2].id"},
		"no size":           {`{"jobs":[{"id":1,"tp":4}]}`, "jobs[0].servers"},
		"tp 0":              {`{"jobs":[{"id":1,"tp":0,"servers":1}]}`, "jobs[0].tp"},
		"pp 0":              {`{"jobs":[{"id":1,"pp":0,"servers":1}]}`, "jobs[0].pp"},
		"negative":          {`{"jobs":[{"id":1,"servers":-1}]}`, "jobs"},
		"a fraction":        {`{"jobs":[{"id":1,"servers":1.5}]}`, "jobs"},
		"collective":        {`{"jobs":[{"id":1,"servers":1,"collective":"tree"}]}`, "jobs[0].collective"},
		"gpus_total 0":      {`{"jobs":[{"id":1,"gpus_total":0}]}`, "jobs[0].gpus_total"},
		"two sizes":         {`{"jobs":[{"id":1,"gpus_total":4,"servers":1}]}`, "jobs[0].gpus_total"},
		"duration":          {`{"jobs":[{"id":1,"servers":1,"duration_ms":9007199254740992}]}`, "jobs[0].duration_ms"},
		"too many":          {`{"jobs":[` + strings.Repeat(`{"id":1},`, 1024) + `{"id":2}]}`, "jobs"},
	} {
		_, err := parseJobs([]byte(c.list))
		var use *usageError
		if !errors.As(err, &use) || use.Field != c.field || use.Limit == "" {
			t.Errorf("%s: %v, want field %s", name, err, c.field)
		}
	}
	jobs, err := parseJobs([]byte(`{"jobs":[{"id":2,"tp":8,"servers":6,"pods":[0,3],"collective":"ring"},{"id":1,"pp":2,"dp":3,"collective":"double-tree"}]}`))
	if err != nil || len(jobs.specs) != 2 {
		t.Fatalf("%+v, %v", jobs, err)
	}
	if a, b := jobs.specs[0], jobs.specs[1]; a.TP != 8 || a.EP != 1 || b.PP != 2 || b.DP != 3 || len(a.Pods) != 2 ||
		a.Collective != proto.CollectiveRing || b.Collective != proto.CollectiveDoubleTree {
		t.Errorf("%+v", jobs)
	}
	jobs, err = parseJobs([]byte(`{"jobs":[{"id":2,"gpus_total":48,"duration_ms":1000,"deadline_ms":2000,"may_pause_ms":30}]}`))
	if err != nil || jobs.specs[0].DP != 48 || jobs.specs[0].TP != 1 || jobs.specs[0].DurationMillis != 1000 || jobs.specs[0].DeadlineMillis != 2000 || jobs.specs[0].MayPauseMillis != 30 {
		t.Errorf("%+v, %v", jobs, err)
	}
	if jobs, err := parseJobs([]byte(`{"jobs":[]}`)); err != nil || len(jobs.specs) != 0 {
		t.Errorf("an empty list ends all jobs: %v, %v", jobs, err)
	}
}

// Wrong command lines of circuit are exit 2 and name the field.
// Method: a table; nothing listens anywhere.
func TestCircuitUsage(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "jobs.json")
	if err := os.WriteFile(bad, []byte(`{"jobs":[{"id":1}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, field := range map[string]string{ // any order: each is judged by itself
		"circuit":              "circuit",
		"circuit list 3":       "circuit",
		"circuit show":         "circuit",
		"circuit show 0":       "job",
		"circuit show x":       "job",
		"circuit apply":        "circuit",
		"circuit apply /no/it": "file",
		"circuit plan " + bad:  "jobs[0].servers",

		"circuit connect switch-3":                "circuit",
		"circuit connect 3 1A-2B":                 "switch",
		"circuit connect switch-3 1A-2B -dry-run": "circuit",
	} {
		code, out, errs := ctl(t, append(strings.Fields(args), "-json")...)
		if code != 2 || !strings.Contains(out, `"field":"`+field+`"`) {
			t.Errorf("%s: %d %s %s", args, code, out, errs)
		}
	}
	if code, out, _ := ctl(t, "circuit", "-h"); code != 0 || !strings.Contains(out, "ocsctl circuit plan jobs.json") {
		t.Errorf("help: %d %s", code, out)
	}
}

// The whole way: a job list by ocsctl, a planner with a real store, production
// agents on simulated MEMS switches, and the circuits listed with their loss.
// Method: apply, list, show, plan and apply again over an embedded broker; and
// lists that only the planner can refuse, which are exit 2 too.
func TestCircuitsAgainstARunningCore(t *testing.T) {
	t.Parallel()
	core := fabric.DefaultCore(4)
	core.LeavesPerPod, core.SpinePorts = 2, 4
	broker, file := coreRig(t, core), filepath.Join(t.TempDir(), "jobs.json")
	write := func(list string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(list), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(v any, args ...string) (code int, out string) {
		t.Helper()
		code, out, errs := ctl(t, append(append([]string{"circuit"}, args...), "-broker", broker, "-fabric", "f1", "-json")...)
		if v != nil && code == 0 {
			if err := json.Unmarshal([]byte(out), v); err != nil {
				t.Fatalf("%v: %v\n%s", args, err, out)
			}
		}
		return code, out + errs
	}
	write(`{"jobs":[{"id":1,"tp":4,"servers":10},{"id":2,"tp":4,"servers":10,"pods":[2,3]}]}`)
	var planned, applied changeJSON
	if code, out := run(&planned, "plan", file); code != 0 || !planned.DryRun || planned.Created == 0 || planned.Placed != 2 {
		t.Fatalf("plan: %d %s", code, out)
	}
	if code, out := run(&applied, "apply", file); code != 0 || applied.Created != planned.Created || applied.Granted != planned.Granted {
		t.Fatalf("apply: %d %s, planned was %+v", code, out, planned)
	}
	var list struct {
		Core     proto.CoreStatus
		Jobs     []jobStatusJSON
		Circuits []circuitJSON
	}
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); { // a bound on a hang
		if code, out := run(&list, "list"); code != 0 {
			t.Fatalf("list: %d %s", code, out)
		}
		if list.Core.Quiet && list.Core.Realised == applied.Granted {
			break
		}
	}
	if list.Core.Tuned != list.Core.Circuits || int(list.Core.Circuits) != len(list.Circuits) || list.Core.Circuits != planned.Created || len(list.Jobs) != 2 {
		t.Errorf("%+v", list)
	}
	for _, x := range list.Circuits {
		if x.State != "tuned" || x.Loss == nil || *x.Loss <= 0 || x.Job == 0 {
			t.Errorf("%+v", x)
		}
	}
	x := list.Circuits[0]
	for _, port := range []string{fmt.Sprintf("switch-%d/%dA", x.Switch, x.PortA+1), fmt.Sprintf("switch-%d/%db", x.Switch, x.PortB+1)} {
		var got proto.Records
		has := map[string]int32{}
		for end := time.Now().Add(30 * time.Second); len(has) < 3 && time.Now().Before(end); { // a round a second; a bound on a hang
			code, out, errs := ctl(t, "pm", port, "-json", "-broker", broker)
			if err := json.Unmarshal([]byte(out), &got); code != 0 || err != nil || got.Subject != port {
				t.Fatalf("%s: %d %s %s", port, code, out, errs)
			}
			for _, b := range got.Bins {
				has[b.Quantity] = b.Avg
			}
		}
		if loss := has["insertion_loss"]; len(has) != 3 || has["switch_time"] <= 0 || loss < int32(*x.Loss)-300 || loss > int32(*x.Loss)+300 {
			t.Errorf("%s: %v, its circuit loses %v", port, has, *x.Loss)
		}
	}
	if code, out, _ := ctl(t, "pm", fmt.Sprintf("switch-%d/999A", x.Switch), "-json", "-broker", broker); code != 2 || !strings.Contains(out, `"field":"port","limit":"1 to `) {
		t.Errorf("%d %s", code, out)
	}
	byHand(t, x, run)
	var one struct {
		jobStatusJSON
		Circuits []circuitJSON
	}
	if code, out := run(&one, "show", "2"); code != 0 || one.State != "realised" || len(one.Circuits) == 0 || len(one.Servers) == 0 || one.Servers[0].Pod < 2 || len(one.Domains) != 1 || len(one.Domains[0]) != 10 {
		t.Errorf("show: %d %s", code, out)
	}
	if code, out := run(nil, "show", "9"); code != 2 || !strings.Contains(out, `"not_found"`) {
		t.Errorf("show of no job: %d %s", code, out)
	}
	for bad, field := range map[string]string{ // any order: each is judged by itself
		`{"jobs":[{"id":3,"tp":4,"servers":1000}]}`:           "jobs[0].servers",
		`{"jobs":[{"id":3,"tp":4,"dp":1000}]}`:                "jobs[0].dp",
		`{"jobs":[{"id":3,"tp":4,"servers":2,"pods":[0,4]}]}`: "jobs[0].pods",
		`{"jobs":[{"id":3,"tp":3,"servers":3}]}`:              "jobs[0].tp",
		`{"jobs":[{"id":3,"tp":4,"servers":3,"dp":2}]}`:       "jobs[0].servers",
	} {
		write(bad)
		if code, out := run(nil, "apply", file); code != 2 || !strings.Contains(out, `"field":"`+field+`"`) {
			t.Errorf("%s: %d %s", bad, code, out)
		}
	}
	if code, out, _ := ctl(t, "circuit", "list", "-broker", broker); code != 0 || !strings.Contains(out, "SWITCH") || !strings.Contains(out, "realised") {
		t.Errorf("list for people: %d %s", code, out)
	}
	write(`{"jobs":[]}`)
	if code, out := run(nil, "apply", file); code != 2 || !strings.Contains(out, `"field":"jobs"`) || !strings.Contains(out, "1, 2") {
		t.Errorf("jobs left out by mistake: %d %s", code, out)
	}
	if code, out := run(&planned, "plan", file); code != 0 || len(planned.Ended) != 2 || planned.Removed != applied.Created {
		t.Errorf("plan of the end of all jobs: %d %s", code, out)
	}
	if code, out := run(&applied, "apply", file, "-prune"); code != 0 || applied.Removed != planned.Removed || len(applied.Ended) != 2 {
		t.Errorf("end of all jobs: %d %s", code, out)
	}
}

// The same for leaves and spines: what runs, what waits and for what, and the
// routes of a job, as lists and for people.
// Method: a job over spines, one in a server, one that waits; over an embedded
// broker with production agents on MEMS switches.
func TestJobsAloneAgainstARunningCore(t *testing.T) {
	core := fabric.DefaultLeafSpine()
	*core.LeafSpine = fabric.LeafSpine{Leaves: 4, Spines: 4, GPUsPerLeaf: 8, Switches: 4}
	core.GPUsPerServer = 2
	broker, file := coreRig(t, core), filepath.Join(t.TempDir(), "jobs.json")
	run := func(v any, args ...string) (code int, out string) {
		t.Helper()
		code, out, errs := ctl(t, append(append([]string{"circuit"}, args...), "-broker", broker, "-fabric", "f1", "-json")...)
		if v != nil && code == 0 {
			if err := json.Unmarshal([]byte(out), v); err != nil {
				t.Fatalf("%v: %v\n%s", args, err, out)
			}
		}
		return code, out + errs
	}
	for bad, field := range map[string]string{ // any order: each is judged by itself
		`{"jobs":[{"id":3,"gpus_total":33}]}`:             "jobs[0].gpus_total",
		`{"jobs":[{"id":3,"dp":33}]}`:                     "jobs[0].dp",
		`{"jobs":[{"id":3,"gpus_total":8,"pods":[0]}]}`:   "jobs[0].pods",
		`{"jobs":[{"id":1,"servers":1},{"id":3,"tp":0}]}`: "jobs[1].tp",
	} {
		if err := os.WriteFile(file, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, out := run(nil, "apply", file); code != 2 || !strings.Contains(out, `"field":"`+field+`"`) {
			t.Errorf("%s: %d %s", bad, code, out)
		}
	}
	if err := os.WriteFile(file, []byte(`{"jobs":[{"id":1,"gpus_total":12},{"id":2,"gpus_total":1},{"id":3,"gpus_total":32},{"id":4,"servers":1}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var applied changeJSON
	if code, out := run(&applied, "apply", file); code != 0 || applied.Placed != 2 || len(applied.Waiting) != 2 || applied.Created != 2*applied.Granted {
		t.Fatalf("apply: %d %s", code, out)
	}
	var list struct {
		Core proto.CoreStatus
		Jobs []jobStatusJSON
	}
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); { // a bound on a hang
		if code, out := run(&list, "list"); code != 0 {
			t.Fatalf("list: %d %s", code, out)
		}
		if list.Core.Quiet && list.Core.Realised == applied.Granted {
			break
		}
	}
	if j := list.Jobs; len(j) != 4 || j[0].State != "realised" || j[1].State != "realised" || j[2].Cause != "gpu" || j[3].Cause != "turn" || !strings.Contains(j[3].Reason, "job 3") {
		t.Errorf("%+v", j)
	}
	var one struct{ jobStatusJSON }
	if code, out := run(&one, "show", "1"); code != 0 || len(one.Seats) != 6 {
		t.Errorf("show: %d %s", code, out)
	}
	var tables struct{ Tables []tableJSON }
	sends, vrfs := 0, 0
	if code, out := run(&tables, "tables", "1"); code != 0 {
		t.Fatalf("tables: %d %s", code, out)
	}
	for _, x := range tables.Tables {
		sends += len(x.Sends)
		if x.Switch == "spine" {
			vrfs++
		}
	}
	if sends != 12 || vrfs == 0 {
		t.Errorf("%d routes, %d VRFs: %+v", sends, vrfs, tables)
	}
	if code, out, _ := ctl(t, "circuit", "tables", "-broker", broker); code != 0 || !strings.Contains(out, "spine") || !strings.Contains(out, ">") {
		t.Errorf("tables for people: %d %s", code, out)
	}
	// Each rank that sends has a rule at its leaf, and the ports that rules lead by are the tables'.
	for output, words := range map[string][2]string{"iproute2": {"lookup 1375", "route replace default via 100."}, "frr": {" set nexthop 100.", "pbr-map ringlight-1"}, "nft": {"meta mark set", "ip route replace default via 100."}} {
		var routes struct{ Devices []job.DeviceRoutes }
		if code, out := run(&routes, "tables", "1", "-o", output); code != 0 || len(routes.Devices) < 3 {
			t.Errorf("%s: %d %s", output, code, out)
		}
		for _, x := range routes.Devices {
			if x.Job != "1" || !strings.Contains(x.Text, words[0]) || !strings.Contains(x.Text, words[1]) {
				t.Errorf("%s: %+v", output, x)
			}
		}
	}
	if code, out, _ := ctl(t, "circuit", "tables", "-o", "iproute2", "-broker", broker); code != 0 || !strings.Contains(out, "# job 1: leaf") {
		t.Errorf("routes of all: %d %s", code, out)
	}
	if code, out := run(nil, "tables", "1", "-o", "eos"); code != 2 || !strings.Contains(out, `"field":"o"`) {
		t.Errorf("no such words: %d %s", code, out)
	}
	if code, out := run(nil, "tables", "9"); code != 2 || !strings.Contains(out, `"not_found"`) {
		t.Errorf("tables of no job: %d %s", code, out)
	}
}

// Ranks in a row on one leaf are written once.
func TestRuns(t *testing.T) {
	if s := runs([]uint16{4, 4, 4, 7, 4}); s != "4x3 7 4" || runs(nil) != "" {
		t.Error(s)
	}
}

// Events of switches name the switch, its ports and their job, and no bundle.
// Method: one event of each kind of agent, for people and as JSON.
func TestWatchNamesSwitches(t *testing.T) {
	line := eventLine(&proto.Event{Node: proto.FirstSwitch + 4, Seq: 3, Kind: proto.EvPathFailed, Severity: proto.SeverityCritical, PortA: 3, PortB: 9, Job: 7, Text: "no light"})
	var people, scripts bytes.Buffer
	if err := errors.Join(show(&people, &line, false), show(&scripts, &line, true)); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(strings.Fields(people.String())[3:], " "), "switch-4 Critical path failed, port 3 to 9, job 7: no light"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, key := range []string{`"switch":4`, `"port_a":3`, `"port_b":9`, `"job":7`} {
		if !strings.Contains(scripts.String(), key) {
			t.Errorf("%s: no %s", scripts.String(), key)
		}
	}
	line = eventLine(&proto.Event{Node: 4, Seq: 3, Kind: proto.EvPathFailed})
	people.Reset()
	if err := show(&people, &line, false); err != nil || !strings.HasSuffix(people.String(), "  4          OK        path failed\n") {
		t.Errorf("%q, %v", people.String(), err)
	}
}

// byHand has the switch of a job's circuit make others by hand, and take them away.
func byHand(t *testing.T, x circuitJSON, run func(v any, args ...string) (code int, out string)) {
	t.Helper()
	name := fmt.Sprintf("switch-%d", x.Switch)
	lists := func(want bool) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); time.Now().Before(end); { // a bound on a hang
			var list struct{ Circuits []circuitJSON }
			if code, out := run(&list, "list"); code != 0 {
				t.Fatalf("list: %d %s", code, out)
			}
			if slices.ContainsFunc(list.Circuits, func(c circuitJSON) bool {
				return c.Switch == x.Switch && c.PortA == 6 && c.PortB == 7 && c.Job == proto.ByHand && c.State == "tuning"
			}) == want {
				return
			}
		}
		t.Errorf("circuit 7A-8B by hand is in the list: %v", !want)
	}
	var did handJSON
	if code, out := run(&did, "connect", name, "7A-8B", "8A-7B"); code != 0 || len(did.Made) != 2 {
		t.Fatalf("%d %s", code, out)
	}
	lists(true)
	taken := fmt.Sprintf("%dA", x.PortA+1)
	if code, out := run(nil, "connect", name, "6A-6B", taken+"-8B"); code != 1 || !strings.Contains(out, "port "+taken+" is the planner's") {
		t.Errorf("a port of a job: %d %s", code, out)
	}
	for _, keys := range [][]string{{"9A-1B"}, {"7A"}, {"7A-8B", "7A-7B"}} {
		if code, out := run(nil, append([]string{"connect", name}, keys...)...); code != 2 || !strings.Contains(out, `"field":"connect"`) {
			t.Errorf("%v: %d %s", keys, code, out)
		}
	}
	if code, out := run(&did, "disconnect", name, "7A-8B", "8A-7B"); code != 0 || len(did.Gone) != 2 {
		t.Errorf("%d %s", code, out)
	}
	lists(false)
}

// coreRig starts a broker, a planner and the agents of a small core.
func coreRig(t *testing.T, core *fabric.Core) (broker string) {
	t.Helper()
	f, err := fabric.New(fabric.Params{Name: "f1", Core: core})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, ran := make(chan string, 1), make(chan error, 1)
	go func() {
		ran <- server.Run(ctx, server.Config{Fabric: f, State: filepath.Join(t.TempDir(), "p.db"), Listen: "127.0.0.1:0",
			Ready: func(b string, _ planner.Config) { ready <- b }})
	}()
	select {
	case broker = <-ready:
	case err := <-ran:
		t.Fatal(err)
	}
	s, err := live.StartCluster(ctx, live.ClusterConfig{Fabric: f, Modules: 1, Seed: 1, Health: time.Second,
		Broker: mqtt.Config{Broker: broker, MinReconnect: 50 * time.Millisecond, MaxReconnect: time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := s.Wait(); err != nil {
			t.Error(err)
		}
		<-ran
	})
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); { // a bound on a hang
		var list struct{ Core proto.CoreStatus }
		if code, out, _ := ctl(t, "circuit", "list", "-json", "-broker", broker, "-fabric", "f1"); code == 0 && json.Unmarshal([]byte(out), &list) == nil && list.Core.Online == uint32(core.Switches()) && list.Core.Quiet {
			return broker
		}
	}
	t.Fatal("the switches do not come up")
	return broker
}
