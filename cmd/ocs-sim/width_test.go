package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ringlight/cmd/cli/clitest"
	"ringlight/sim/fleet"
)

// Goal: help and answers of every command fit 80 columns, and help, manual page and
// completion know every command and flag.
func TestEverythingFitsAScreen(t *testing.T) {
	_, man, _ := run([]string{"man"})
	_, bash, _ := run([]string{"completion", "bash"})
	for _, c := range program().Commands {
		code, out, errs := run(append(strings.Fields(c.Name), "-h"))
		if code != exitDone || !strings.Contains(out, "usage: ocs-sim "+c.Name) || !strings.Contains(out, "example: ocs-sim "+c.Name) {
			t.Errorf("%s -h: exit %d %s%s", c.Name, code, out, errs)
		}
		clitest.Fits(t, c.Name+" -h", out)
		if _, again, _ := run(append([]string{"help"}, strings.Fields(c.Name)...)); again != out {
			t.Errorf("help %s says otherwise", c.Name)
		}
		if head := strings.Join(append([]string{c.Name}, c.Forms...), " "); !strings.Contains(man, ".SS "+strings.ReplaceAll(head, "-", `\-`)+"\n") || !strings.Contains(bash, c.Name) {
			t.Errorf("%s: not in the manual page, or in completion", c.Name)
		}
	}
	for _, q := range []string{"-h", "study", "study -h", "fleece", "study waste -nods 5", "mfu", "study mfu", "study bounds -runs 3", "study waste -nodes 100 -tp 8,32 -runs 2",
		"study crosstor -gpus-total 512 -nodes-per-domain 32 -runs 1", "study rewire -pods 8 -groups 1 -spine-ports 4 -length 1"} {
		_, out, errs := run(strings.Fields(q))
		clitest.Fits(t, q, out)
		if errs != "" && !strings.HasPrefix(errs, "ocs-sim: ") {
			t.Errorf("%s: %q", q, errs)
		}
	}
	var b bytes.Buffer
	big := int64(math.MaxInt32)
	spread := fleet.Spread{N: 1 << 20, P50: &big, P99: &big, Max: &big}
	printFleet(&b, &fleet.Result{Nodes: 10000, GPUsPerNode: 8, Costs: strings.Repeat("measured ", 30), BypassMicros: map[string]fleet.Spread{"1": spread, "2": spread, "3": spread},
		SplitRepair: spread, Interruptions: 1 << 30, DarkMicros: 1 << 40, TraceSHA256: strings.Repeat("0", 64), Core: &fleet.CoreResult{Switches: 1 << 20, CoreCounts: fleet.CoreCounts{Looks: 1 << 30}}})
	clitest.Fits(t, "fleet", b.String())
}

// Goal: words and flags in any order, what was meant, and errors once.
func TestCommandLine(t *testing.T) {
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"-gpus-total 1024 study mfu", "tp", exitDone},
		{"study -gpus-total 1024 mfu", "waste", exitUsage}, // of which study a flag is, nobody knows yet
		{"dmeo", "did you mean demo?", exitUsage},
		{"study bonds", "did you mean bounds?", exitUsage},
		{"study waste -nodse 5", "did you mean -nodes?", exitUsage},
		{"version", version, exitDone},
		{"study all", "out: none is given: want a folder", exitUsage},
		{"study all -out x -only wast", "want waste, ", exitUsage},
	} {
		code, out, errs := run(strings.Fields(c.args))
		if all := out + errs; code != c.code || !strings.Contains(all, c.want) {
			t.Errorf("%s: exit %d: %s", c.args, code, all)
		}
	}
	code, out, errs := run(strings.Fields("demo -days 0 -json"))
	if code != exitUsage || strings.Count(out, "\n") != 1 || strings.Count(errs, "\n") != 1 || !strings.Contains(out, `"field":"days"`) {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
}

// Goal: a folder of studies shows every chart and names the table, the command and
// the version of each, and the same command writes the same bytes.
func TestStudyAll(t *testing.T) {
	t.Setenv(traceVariable, "")
	var first map[string]string
	for range 2 {
		dir := filepath.Join(t.TempDir(), "new", "studies")
		code, out, errs := run([]string{"study", "all", "-out", dir, "-only", "bounds,mfu", "-seed", "7"})
		if code != exitDone || !strings.Contains(out, "2 studies written") || strings.Count(errs, " s of processor time") != 2 {
			t.Fatalf("exit %d: %s%s", code, out, errs)
		}
		files := map[string]string{}
		list, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range list {
			text, err := os.ReadFile(filepath.Join(dir, f.Name()))
			if err != nil {
				t.Fatal(err)
			}
			files[f.Name()] = string(text)
		}
		if first == nil {
			first = files
		}
		for _, name := range []string{"README.md", "bounds.svg", "bounds.csv", "mfu.svg", "mfu.csv"} {
			if files[name] == "" || files[name] != first[name] {
				t.Errorf("%s: missing, or not the same twice", name)
			}
		}
		if len(files) != 5 {
			t.Errorf("%d files", len(files))
		}
	}
	for _, want := range []string{"![Bound of the GPU waste](bounds.svg)", "(mfu.csv)", "`ocs-sim study bounds -seed 7`", "Version " + version + ", seed 7, faults of the built-in generator", "| Table 7, R=4, K=2 |"} {
		if !strings.Contains(first["README.md"], want) {
			t.Errorf("the index lacks %q", want)
		}
	}
	if !strings.Contains(first["bounds.svg"], ">ocs-sim study bounds -seed 7 ("+version+")<") {
		t.Error("the picture does not say where it comes from")
	}
}
