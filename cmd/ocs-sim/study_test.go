package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ringlight/cmd/cli"
)

const (
	exitDone   = cli.Done
	exitFailed = cli.Failed
	exitUsage  = cli.BadInput
)

func run(args []string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = program().Run(context.Background(), args, cli.Terminal{In: strings.NewReader(""), Out: &o, Err: &e})
	return code, o.String(), e.String()
}

// printed runs a command line and returns its exit code and standard output.
func printed(t *testing.T, args ...string) (int, string) {
	t.Helper()
	code, out, _ := run(args)
	return code, out
}

func faultFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "faulty.json")
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// Goal: the waste of one fault list is printed in the form that scripts rely
// on, and nothing else.
// Method: keys and one count; line by default, ring when asked for.
func TestStudyWasteOfAFaultList(t *testing.T) {
	name := faultFile(t, "[7, 8]")
	for topology, want := range map[string]int{"line": 56, "ring": 24} {
		args := []string{"study", "waste", "-faulty", name, "-nodes", "16", "-gpus", "4", "-tp", "32", "-json"}
		if topology == "ring" {
			args = append(args, "-topology", "ring")
		}
		code, text := printed(t, args...)
		var out map[string]map[string]map[string]int
		dec := json.NewDecoder(strings.NewReader(text))
		if err := dec.Decode(&out); err != nil || code != exitDone {
			t.Fatalf("%s: exit %d, %v: %s", topology, code, err, text)
		}
		if _, err := dec.Token(); err != io.EOF || len(out) != 1 {
			t.Errorf("%s: more than one object of models: %s", topology, text)
		}
		var models []string
		for m, w := range out["models"] {
			models = append(models, m)
			if _, ok := w["wasted_gpus"]; !ok || len(w) != 1 {
				t.Errorf("%s: %s has %v", topology, m, w)
			}
		}
		slices.Sort(models)
		if got := strings.Join(models, " "); got != "big-switch infinitehbd-k2 infinitehbd-k3 infinitehbd-k3-wired nvl-36 nvl-576 nvl-72 sip-ring tpuv4" {
			t.Errorf("%s: models %s", topology, got)
		}
		if got := out["models"]["infinitehbd-k2"]["wasted_gpus"]; got != want {
			t.Errorf("%s: K=2 wastes %d, want %d", topology, got, want)
		}
	}
}

// Goal: every study prints JSON, writes its files and names what it refuses.
// Method: one small run of each; one flag of each that is out of range.
func TestStudies(t *testing.T) {
	t.Setenv(traceVariable, "")
	dir := t.TempDir()
	for _, c := range []struct{ args, bad, field string }{
		{"waste -nodes 100 -tp 8,32 -runs 2", "-siblings near", "siblings"},
		{"waste -nodes 100 -tp 8 -runs 2 -chart time", "-gpus 3 -tp 9", "gpus"},
		{"waste -iid -nodes 100 -ratios 0,0.1 -runs 2", "-ratios 0.2,0.1", "ratios"},
		{"jobscale -nodes 100 -tp 8 -runs 2", "-runs 0", "runs"},
		{"wait -nodes 100 -tp 8 -runs 2 -scales 0.8,0.9", "-repair never", "repair"},
		{"disruption -nodes 100 -tp 8 -runs 1", "-k 9", "k"},
		{"crosstor -gpus-total 512 -nodes-per-domain 32 -runs 1", "-k 9", "k"},
		{"cost -nodes 100 -runs 2", "-gpu-cost 0", "gpu-cost"},
		{"bounds -runs 3", "-gpus-total 7", "gpus-total"},
		{"mfu", "-model llama405b-mha", "model"},
		{"jct -jobs 60 -lambda 60,120 -strategies best,vclos,ocs,sr -queue fifo,easy -runs 2", "-runs 0", "runs"},
		{"compare -jobs 40 -runs 1 -loads 0.5,0.7 -fault-rates 0,2", "-ring 30", "ring"},
		{"topology -servers 16 -degree 4 -gbps 100 -models bert,dlrm -batch 128 -shared 0", "-degree 3", "degree"},
		{"rewire -pods 8 -groups 1 -spine-ports 4 -length 1", "-spine-ports 3", "spine-ports"},
	} {
		csv, svg := filepath.Join(dir, "out.csv"), filepath.Join(dir, "out.svg")
		args := append([]string{"study"}, strings.Fields(c.args)...)
		code, text := printed(t, append(args, "-json", "-csv", csv, "-svg", svg)...)
		var out struct {
			Study      string
			Notes      []string
			Comparison []any
		}
		if err := json.Unmarshal([]byte(text), &out); code != exitDone || err != nil || out.Study != args[1] || len(out.Notes) == 0 || out.Comparison == nil {
			t.Errorf("%s: exit %d, %v: %.200s", c.args, code, err, text)
		}
		for _, name := range []string{csv, svg} {
			if info, err := os.Stat(name); err != nil || info.Size() < 100 {
				t.Errorf("%s: %s: %v", c.args, filepath.Base(name), err)
			}
			os.Remove(name)
		}
		code, text = printed(t, append(append(args, strings.Fields(c.bad)...), "-json")...)
		var refused struct {
			Error struct{ Code, Field, Limit, Message string }
		}
		if err := json.Unmarshal([]byte(text), &refused); code != exitUsage || err != nil || refused.Error.Field != c.field || refused.Error.Limit == "" {
			t.Errorf("%s %s: exit %d, %v: %s", c.args, c.bad, code, err, text)
		}
	}
}

// Goal: a model is a file of one's own; one without layers, or none, is refused
// by the field.
// Method: both files, on eight servers.
func TestTopologyStudyReadsModels(t *testing.T) {
	for _, c := range []struct {
		layers, field string
		code          int
	}{{`[{"kind":"dense","count":2,"inputs":64,"outputs":64}]`, "", exitDone}, {`[]`, "layers", exitUsage}} {
		name := filepath.Join(t.TempDir(), "mine.json")
		if err := os.WriteFile(name, []byte(`{"name":"mine","batch_per_gpu":8,"bytes_per_value":4,"layers":`+c.layers+`}`), 0o644); err != nil {
			t.Fatal(err)
		}
		for file, field := range map[string]string{name: c.field, name + ".no": "models"} { // any order: independent
			code, text := printed(t, "study", "topology", "-json", "-servers", "8", "-degree", "4", "-gbps", "100", "-batch", "128", "-shared", "0", "-models", file)
			var out struct {
				Models []struct{ Model string }
				Error  struct{ Field, Limit string }
			}
			err := json.Unmarshal([]byte(text), &out)
			if field == "" && (err != nil || code != c.code || len(out.Models) != 2 || out.Models[0].Model != "mine") {
				t.Errorf("%s: exit %d, %v: %.200s", file, code, err, text)
			}
			if field != "" && (err != nil || code != exitUsage || out.Error.Field != field || out.Error.Limit == "") {
				t.Errorf("%s: exit %d, %v: %s", file, code, err, text)
			}
		}
	}
}

// Goal: a comparison has every system of one list at each load and fault rate,
// the same bytes whatever runs side by side; a budget is what all may cost.
func TestStudyCompare(t *testing.T) {
	t.Setenv(traceVariable, "")
	list := faultFile(t, "arrival_ms,gpus,duration_ms,model\n0,64,50000,moe\n10,40,60000000,vgg16-4\n20,8,1000,none\n")
	var first string
	for _, n := range []string{"1", "3"} {
		code, text := printed(t, "study", "compare", "-workload", list, "-json", "-runs", "2", "-parallel", n, "-budget", "cost", "-dollars", "2000", "-loads", "0.6", "-fault-rates", "4")
		if first == "" {
			first = text
		}
		if code != exitDone || text != first {
			t.Fatalf("%s side by side: exit %d: %s", n, code, text)
		}
	}
	var out struct {
		Rows []struct {
			System string
			Gbps   int
			Cents  int   `json:"cents_per_gpu"`
			JCT    int64 `json:"jct_ms"`
		}
		Runs []any
	}
	if err := json.Unmarshal([]byte(first), &out); err != nil {
		t.Fatal(err)
	}
	if len(out.Rows) != 8*4 || len(out.Runs) != 8*4*2 {
		t.Fatalf("%d rows of %d runs", len(out.Rows), len(out.Runs))
	}
	for _, r := range out.Rows {
		if r.Cents > 200_000 || r.JCT == 0 || r.Cents > 0 && r.Gbps <= 100 {
			t.Errorf("%+v", r)
		}
	}
	for field, args := range map[string][]string{
		"jobs": {"-workload", list, "-jobs", "5"}, "dollars": {"-budget", "cost", "-dollars", "50"}, "load": {"-load", "1.5"},
		"gpus": {"-workload", faultFile(t, "arrival_ms,gpus,duration_ms\n0,513,5\n")}, "systems": {"-systems", "best"}, "workload": {"-workload", "nowhere.csv"},
	} {
		code, text := printed(t, append([]string{"study", "compare", "-json"}, args...)...)
		var refused struct {
			Error struct{ Code, Field, Limit, Message string }
		}
		if err := json.Unmarshal([]byte(text), &refused); code != exitUsage || err != nil || refused.Error.Field != field || refused.Error.Limit == "" {
			t.Errorf("%v: exit %d, %v: %s", args, code, err, text)
		}
	}
}

// Goal: the same bytes whatever runs side by side, from generators and from a
// list of one's own; a list or cluster that is none is refused with its line
// or field.
func TestStudyJCT(t *testing.T) {
	list := faultFile(t, "arrival_ms,gpus,duration_ms,model\n0,64,50000,moe\n10,40,60000,vgg16-4\n20,8,1000,none\n")
	for _, what := range []string{"-jobs 80 -lambda 60 -runs 3", "-workload " + list, "-workload philly -cluster 2048 -jobs 50 -estimate-error 0.2 -queue easy"} {
		var first string
		for _, n := range []string{"1", "2", "7"} {
			args := append([]string{"study", "jct", "-json", "-clock=false", "-strategies", "best,ocs,ecmp", "-parallel", n}, strings.Fields(what)...)
			code, text := printed(t, args...)
			if first == "" {
				first = text
			}
			if code != exitDone || text != first || strings.Contains(text, "decide_us") {
				t.Fatalf("%s, %s side by side: exit %d: %s", what, n, code, text)
			}
		}
		var out struct{ Runs []map[string]any }
		if err := json.Unmarshal([]byte(first), &out); err != nil {
			t.Fatal(err)
		}
		for _, r := range out.Runs {
			for _, key := range []string{"strategy", "queue", "jrt_ms", "jwt_ms", "jct_ms", "stability_ms", "blocked", "utilisation_ratio"} {
				if _, ok := r[key]; !ok {
					t.Errorf("%s: no %s in %v", what, key, r)
				}
			}
		}
	}
	cut, large := faultFile(t, "arrival_ms,gpus,duration_ms\n0,8,1000\n9,8,10"), faultFile(t, "arrival_ms,gpus,duration_ms\n0,8,1000\n0,513,5\n")
	none, cluster := faultFile(t, "arrival_ms,gpus,duration_ms\n0,8,0\n"), faultFile(t, `{"leaves":16,"uplink":32}`)
	for args, want := range map[string]string{
		"-workload " + cut: "line 3", "-workload " + large: "line 3", "-workload " + none: "line 2", "-cluster " + cluster: "cluster", "-workload " + list + " -lambda 5": "lambda",
		"-cluster nowhere": "cluster", "-workload nowhere": "workload", "-strategies best,slow": "slow", "-queue lifo": "lifo", "-parallel 0": "parallel", "-sharing much": "much",
		"-estimate-error 2": "estimate-error", "-lambda 0": "lambda", "-jobs 0": "jobs",
	} {
		code, text := printed(t, append([]string{"study", "jct", "-json"}, strings.Fields(args)...)...)
		if code != exitUsage || !strings.Contains(text, want) {
			t.Errorf("%s: exit %d: %s", args, code, text)
		}
	}
}

// Goal: the same bytes whatever runs side by side, from a generator and from a
// list of one's own; what is out of range is refused by field, before anything
// runs.
func TestStudyLumos(t *testing.T) {
	list := faultFile(t, "arrival_ms,gpus,duration_ms\n0,64,500000\n10,2048,600000\n20,8,100000\n")
	for what, cases := range map[string]int{"-jobs 20 -runs 2": 23, "-workload " + list: 20, "-jobs 30 -vary=false -routing ecmp": 1} { // any order: independent
		if testing.Short() && cases == 23 {
			continue
		}
		var first string
		for _, n := range []string{"1", "5"} {
			code, text := printed(t, append([]string{"study", "lumos-jct", "-json", "-parallel", n}, strings.Fields(what)...)...)
			if first == "" {
				first = text
			}
			if code != exitDone || text != first {
				t.Fatalf("%s, %s side by side: exit %d: %s", what, n, code, text)
			}
		}
		var out struct{ Gains, Runs []map[string]any }
		if err := json.Unmarshal([]byte(first), &out); err != nil || len(out.Gains) != cases {
			t.Fatalf("%s: %d cases, %v", what, len(out.Gains), err)
		}
		for _, key := range []string{"case", "jrt_saved_ratio", "jct_saved_ratio", "paths_moved_ratio"} {
			if _, ok := out.Gains[0][key]; !ok {
				t.Errorf("%s: no %s in %v", what, key, out.Gains[0])
			}
		}
	}
	for args, field := range map[string]string{ // any order: independent
		"-gpus-total 4095": "gpus-total", "-gpus-total 65536": "gpus-total", "-load 1.5": "load", "-load -1": "load", "-communication 3": "communication", "-ep 48": "ep",
		"-setup-ms -1": "setup-ms", "-routing best": "routing", "-core-routing best": "core-routing", "-gpu-faults -1": "gpu-faults", "-collective tree": "collective", "-workload nowhere": "workload", "-workload " + list + " -jobs 5": "jobs", "-runs 0": "runs", "-steps 0": "steps", "-parallel 0": "parallel",
	} {
		code, text := printed(t, append([]string{"study", "lumos-jct", "-json"}, strings.Fields(args)...)...)
		var refused struct{ Error struct{ Field, Limit string } }
		if err := json.Unmarshal([]byte(text), &refused); code != exitUsage || err != nil || refused.Error.Field != field {
			t.Errorf("%s: exit %d, %v: %s", args, code, err, text)
		}
	}
}

// Goal: the best strategy for a number of GPUs in one flat object; nothing
// that fits is exit code 1.
func TestStudyBestStrategy(t *testing.T) {
	code, text := printed(t, "study", "mfu", "-gpus-total", "8192", "-model", "llama405b-mha", "-tp-max", "8", "-json")
	var out struct {
		Model          string
		GPUs           int `json:"gpus_total"`
		TP, PP, DP, EP int
		MFU            float64
	}
	if err := json.Unmarshal([]byte(text), &out); code != exitDone || err != nil {
		t.Fatalf("exit %d, %v: %s", code, err, text)
	}
	if out.TP != 8 || out.TP*out.PP*out.DP != 8192 || out.GPUs != 8192 || out.MFU < 0.34 || out.MFU > 0.36 {
		t.Errorf("got %+v", out)
	}
	if code, text := printed(t, "study", "mfu", "-gpus-total", "1025", "-json"); code != exitFailed || !strings.Contains(text, `"error"`) {
		t.Errorf("exit %d: %s", code, text)
	}
}

// Goal: command lines that are not acceptable end with exit code 2, help with
// an example.
func TestUnacceptableStudies(t *testing.T) {
	t.Setenv(traceVariable, "")
	bad := faultFile(t, "[1, 1]")
	for _, args := range [][]string{
		{"study"}, {"study", "weather"}, {"study", "waste", "extra"}, {"study", "waste", "-tp", "x"}, {"study", "waste", "-ratios", "x"},
		{"study", "waste", "-trace", filepath.Join(t.TempDir(), "none")}, {"study", "waste", "-trace", bad}, {"study", "waste", "-topology", "star"},
		{"study", "waste", "-faulty", bad, "-nodes", "9", "-gpus", "4", "-tp", "8"},
		{"study", "waste", "-faulty", bad, "-nodes", "9", "-gpus", "4"},
		{"study", "waste", "-faulty", faultFile(t, "{}"), "-nodes", "9", "-tp", "8"},
		{"study", "waste", "-faulty", faultFile(t, "null"), "-nodes", "9", "-tp", "8"},
		{"study", "waste", "-faulty", faultFile(t, "[1] 2"), "-nodes", "9", "-tp", "8"},
		{"study", "waste", "-faulty", faultFile(t, "[9]"), "-nodes", "9", "-tp", "8"},
		{"study", "mfu", "-gpus-total", "0"}, {"study", "mfu", "-tp-max", "8"}, {"study", "mfu", "-gpus-total", "8", "-model", "x"},
		{"study", "mfu", "-gpus-total", "1024", "-svg", "x.svg"},
	} {
		if code, _ := printed(t, args...); code != exitUsage {
			t.Errorf("%q: exit code %d, want %d", args, code, exitUsage)
		}
	}
	for _, s := range studies() {
		if code, text := printed(t, "study", s.name, "-h"); code != exitDone || !strings.Contains(text, "example: ocs-sim study "+s.name) {
			t.Errorf("study %s -h: exit %d: %s", s.name, code, text)
		}
	}
	if code, text := printed(t, "study", "-h"); code != exitDone || !strings.Contains(text, "crosstor") {
		t.Errorf("study -h: exit %d: %s", code, text)
	}
}

// Goal: the bar ends at 100 %, in one line.
func TestProgressBar(t *testing.T) {
	var b bytes.Buffer
	p := bar(&b, "study")
	for i := range 1001 {
		p(i, 1000)
	}
	if text := b.String(); !strings.HasSuffix(text, "100 %\n") || strings.Count(text, "\n") != 1 || strings.Count(text, "\r") != 101 {
		t.Errorf("%q", text)
	}
}

// Goal: the study of flows refuses what is out of its limits by the flag and
// the limit, and prints rows, models and no memory that nobody asked for.
func TestStudyFlows(t *testing.T) {
	for flag, values := range map[string]string{"leaves": "1", "max-gpus": "12", "gpus-per-leaf": "33", "spines": "40", "patterns": "ring,star", "iterations": "0", "live": "99999999", "min-gpus": "0", "compute-us": "0 18446744073709553 9223372036854775807", "days": "-1", "spares": "33", "bypass-us": "-1 18446744073709552 -9223372036854775808", "reload-s": "86401 18446744074 9223372036854775807"} {
		for value := range strings.SplitSeq(values, " ") { // some so large that nanoseconds of them are within the limit
			code, text := printed(t, "study", "flows", "-json", "-"+flag, value)
			var out struct{ Error struct{ Field, Limit string } }
			if err := json.Unmarshal([]byte(text), &out); err != nil || code != exitUsage || out.Error.Field != flag || out.Error.Limit == "" {
				t.Errorf("-%s %s: exit %d: %s", flag, value, code, text)
			}
		}
	}
	code, text := printed(t, "study", "flows", "-json", "-leaves", "4", "-spines", "4", "-gpus-per-leaf", "8", "-max-gpus", "16", "-jobs", "3", "-all-to-all-jobs", "2", "-sets", "1", "-live", "0", "-days", "3")
	var out struct {
		Rows []struct {
			Pattern string  `json:"pattern"`
			Flows   int64   `json:"flows"`
			Hash    string  `json:"trace_sha256"`
			CPU     float64 `json:"cpu_ms"`
		} `json:"rows"`
		Models []struct{ Sharing string } `json:"models"`
		Memory *struct{}                  `json:"memory"`
		Faults []struct{ Iterations int64 }
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil || code != exitDone || len(out.Rows) != 4 || len(out.Models) != 8 || out.Memory != nil || len(out.Faults) != 2 || out.Faults[0].Iterations == 0 {
		t.Errorf("exit %d, %v: %s", code, err, text)
	}
}
