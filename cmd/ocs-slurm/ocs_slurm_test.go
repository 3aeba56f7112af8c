package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ringlight/cmd/cli"
	"ringlight/cmd/cli/clitest"
	"ringlight/planner/job"
)

func typed(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = program().Run(context.Background(), args, cli.Terminal{In: strings.NewReader(""), Out: &o, Err: &e})
	return code, o.String(), e.String()
}

// Goal: help of every command fits 80 columns.
func TestHelpFitsAScreen(t *testing.T) {
	lines := [][]string{{"-h"}, {"help"}}
	for _, c := range program().Commands {
		lines = append(lines, append(strings.Fields(c.Name), "-h"))
	}
	for _, args := range lines {
		_, out, _ := typed(t, args...)
		clitest.Fits(t, strings.Join(args, " "), out)
	}
}

// Goal: what is not acceptable is exit 2 and names the field.
// Method: a table of command lines and environments.
func TestBadInput(t *testing.T) {
	for _, x := range []struct{ line, env, want string }{
		{"prolog", "", "SLURM_JOB_ID"},
		{"epilog", "SLURM_JOB_ID=7x", "SLURM_JOB_ID"},
		{"env", "SLURM_JOB_ID=7 SLURM_CLUSTER_NAME=a/b", "id"},
		{"env -task", "SLURM_PROCID=0", "RINGLIGHT_FILES"},
		{"prolog -http nowhere", "SLURM_JOB_ID=7", "http"},
		{"topology -format slurm-torus", "", "format"},
		{"topology -format json", "", "format"},
		{"watch -every 1ms", "", "every"},
		{"watch now", "", "now"},
	} {
		for _, key := range []string{"SLURM_JOB_ID", "SLURM_CLUSTER_NAME", "SLURM_PROCID", "RINGLIGHT_FILES"} {
			t.Setenv(key, "")
		}
		for pair := range strings.FieldsSeq(x.env) {
			key, value, _ := strings.Cut(pair, "=")
			t.Setenv(key, value)
		}
		if code, _, errs := typed(t, strings.Fields(x.line)...); code != 2 || !strings.Contains(errs, x.want) {
			t.Errorf("%s, %s: exit %d: %s", x.line, x.env, code, errs)
		}
	}
}

func fabric(states ...job.Standing) *job.Topology {
	top := &job.Topology{Fabric: "f1", GPUsPerNode: 4, TP: 16}
	for i, s := range states {
		top.Nodes = append(top.Nodes, job.FabricNode{Host: fmt.Sprintf("n%d", i), State: s})
		if s != job.Well {
			top.Nodes[i].Cause = "why | \"n" + fmt.Sprint(i) + "\"\n"
		}
	}
	return top
}

// Goal: the wish of a job follows from its nodes and its comment; a job of other
// nodes asks for nothing; what no queueing helps is told apart.
// Method: a table on a fabric of rings of four nodes.
func TestWishOfAJob(t *testing.T) {
	top := fabric(make([]job.Standing, 12)...)
	for _, x := range []struct{ nodes, comment, want string }{
		{"n[0-7]", "", "16 x 2"},
		{"n[0-8]", "", "16 x 2"}, // one is its spare
		{"n[0-1]", "", "8 x 1"},
		{"n[0-7]", "mine ringlight:tp=32 yours", "32 x 1"},
		{"n[0-7]", "ringlight:tp=64", "hopeless"},
		{"n[0-7]", "ringlight:pp=2", "hopeless"},
		{"n[0-7]", "ringlight:", "hopeless"},
		{"login[0-7]", "", "nothing"},
		{"login0", "ringlight:tp=4", "hopeless"},
		{"n0,login0", "", "hopeless"},
		{"n[0", "", "hopeless"},
	} {
		w, err := wish(top, slurmJob{nodes: x.nodes, comment: x.comment})
		got := "nothing"
		switch {
		case errors.As(err, new(hopeless)):
			got = "hopeless"
		case err != nil:
			got = err.Error()
		case w != nil:
			got = fmt.Sprintf("%d x %d", w.TP, w.Rings)
			if len(w.Nodes) != 1 || string(w.Nodes[0]) != x.nodes {
				t.Errorf("%s: %v", x.nodes, w.Nodes)
			}
		}
		if got != x.want {
			t.Errorf("%s, %q: %s, want %s", x.nodes, x.comment, got, x.want)
		}
	}
}

// Goal: Slurm is told of lost and drained nodes at once, of silent ones late, of
// a well one only where the drain is ours, and of nothing twice.
// Method: what sinfo would say, look after look.
func TestOnlyDifferencesAreTold(t *testing.T) {
	w := watcher{patience: 30 * time.Second, silent: map[string]time.Time{}}
	begin := time.Unix(1000, 0)
	sinfo := "n0|idle|none\nn1|idle|none\nn2|allocated|none\nn3|drained|a fan\nn4|draining|ringlight: old\nn5|down*|Not responding\n"
	top := fabric(job.Well, job.Lost, job.Silent, job.Well, job.Well, job.Drained, job.Lost)
	told := func(after time.Duration) string {
		var out []string
		for _, c := range w.changes(top, sinfo, begin.Add(after)) {
			out = append(out, fmt.Sprintf("%s: %s", strings.Join(c.hosts, ","), c.reason))
		}
		return strings.Join(out, "; ")
	}
	if got := told(0); got != "n1: ringlight: why    n1; n4: ; n5: ringlight: why    n5" {
		t.Error(got)
	}
	sinfo = "n0|idle|none\nn1|drained|ringlight: why    n1\nn2|allocated|none\nn3|drained|a fan\nn4|idle|none\nn5|drained*|ringlight: why    n5\n"
	if got := told(29 * time.Second); got != "" {
		t.Error(got)
	}
	if got := told(30 * time.Second); got != "n2: ringlight: why    n2" {
		t.Error(got)
	}
	top.Nodes[2].State, top.Nodes[1].Cause = job.Well, "another"
	if got := told(31 * time.Second); got != "n1: ringlight: another" {
		t.Error(got)
	}
}

// Goal: where jobs wait beside idle nodes Slurm is had to look at them, each pace and when
// they change, by a word that changes nothing. Method: queues, nodes and times, and what Slurm is told.
func TestSlurmIsHadToLookAtItsQueue(t *testing.T) {
	for _, x := range []struct {
		sinfo, queue, show string
		after              time.Duration // the last nudge
		want               string
	}{
		{"n1|idle|none\nn2|idle|none\n", "7|Resources\n", " DelayBoot=00:00:00 ", time.Second, "update JobId=7 DelayBoot=0"}, // one more is idle
		{"n1|idle|none\n", "6|Resources\n", " DelayBoot=00:00:00 ", time.Second, "update JobId=6 DelayBoot=0"},               // another is first
		{"n0|allocated|none\nn1|idle|none\n", "4|BeginTime\n7|Resources\n8|Priority\n", " DelayBoot=00:00:00 ", 5 * time.Second, "update JobId=7 DelayBoot=0"},
		{"n1|idle|none\n", "7|Resources\n", " DelayBoot=00:00:00 ", 4 * time.Second, ""},
		{"n1|idle|none\n", "7|Resources\n", " DelayBoot=00:01:00 ", time.Minute, ""},
		{"n1|idle|none\n", "7|JobHeldUser\n8|BeginTime\n", " DelayBoot=00:00:00 ", time.Minute, ""},
		{"n1|drained|none\n", "7|Resources\n", " DelayBoot=00:00:00 ", time.Minute, ""},
	} {
		got, begin := "", time.Unix(1000, 0)
		w := watcher{pace: 5 * time.Second, nudged: begin, nudgedOf: "7\nn1|idle|none\n", run: func(_ context.Context, name string, args ...string) (string, error) {
			switch {
			case name == "squeue":
				return x.queue, nil
			case args[0] == "-o":
				return x.show, nil
			}
			got = strings.Join(args, " ")
			return "", nil
		}}
		if err := w.nudge(t.Context(), x.sinfo, begin.Add(x.after)); err != nil || got != x.want {
			t.Errorf("%+v: %q %v", x, got, err)
		}
	}
}

// Goal: the file is written whole, only where it differs, and Slurm reads it even
// if it could not at once, and from 23.11 not while a job is starting.
// Method: a command that fails once, a queue in which jobs are starting, releases.
func TestTopologyIsWrittenOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "topology.conf")
	calls, broken, starts, release := 0, true, "", "slurm-wlm 23.11.4"
	run := func(_ context.Context, name string, args ...string) (string, error) {
		switch {
		case name == "squeue":
			return starts, nil
		case args[0] == "--version":
			return release, nil
		}
		if calls++; broken {
			return "", errors.New("away")
		}
		return "", nil
	}
	i := 0
	step := func(text string, wantChanged, wantErr bool, wantCalls int) {
		t.Helper()
		changed, err := keep(context.Background(), run, file, []byte(text))
		if got, _ := os.ReadFile(file); changed != wantChanged || (err != nil) != wantErr || calls != wantCalls || string(got) != text {
			t.Errorf("changed %v, %v, %d calls, %q", changed, err, calls, got)
		}
	}
	step("a", false, true, 1)
	broken = false
	step("a", true, false, 2)
	step("a", false, false, 2)
	step("b", true, false, 3)
	starts = "7\n8\n"
	step("c", false, true, 3)
	starts = ""
	step("c", true, false, 4)
	step("c", false, false, 4)
	starts = "9\n"
	for i, release = range []string{"slurm-wlm 26.05.0", "slurm 24.11", "of nobody knows", ""} {
		step(fmt.Sprint("of ", i), false, true, 4)
	}
	release = "slurm-wlm 22.05.8"
	step("d", true, false, 5)
	step("d", false, false, 5)
	if left, _ := filepath.Glob(file + ".*"); left != nil {
		t.Error(left)
	}
}

// Goal: nodes that Slurm takes from a running job, whose light they carry, are given to
// nobody until it ends, and the job is told so once; then they are resumed. What waits,
// starts or ends is not compared. Method: a planner's job of four nodes, and what squeue
// and sinfo say before it is made smaller, after, and at its end.
func TestJobMadeSmallerKeepsItsNodes(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/topology") {
			fmt.Fprint(out, `{"fabric":"f1","gpus_per_node":4,"tp":8,"rings":[],"nodes":[{"host":"n0","state":"well"},{"host":"n1","state":"well"},{"host":"n2","state":"well"},{"host":"n3","state":"lost","cause":"no light"}]}`)
			return
		}
		fmt.Fprint(out, `{"jobs":[{"id":"a-7","generation":4,"wish":{"tp":8,"rings":2,"nodes":["n[0-3]"]}}]}`)
	}))
	defer srv.Close()
	p := newPlanner("watch")
	p.to.URL = srv.URL
	c, err := p.client(0)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	queue, drained := "", map[string]string{"n0": "none", "n1": "none", "n2": "none", "n3": "none"}
	w := watcher{planner: c, patience: time.Second, silent: map[string]time.Time{}, say: func(string, ...any) {}, run: func(_ context.Context, name string, args ...string) (string, error) {
		switch {
		case name == "squeue":
			return queue, nil
		case name == "sinfo":
			out := ""
			for host, why := range drained { // any order, as sinfo's
				out += host + "|" + map[bool]string{true: "idle", false: "drained"}[why == "none"] + "|" + why + "\n"
			}
			return out, nil
		case args[0] == "show":
			return "ClusterName = a\n", nil
		}
		told = append(told, strings.Join(args[1:], " "))
		if host, ok := strings.CutPrefix(args[1], "NodeName="); ok {
			drained[host] = "none"
			if len(args) > 3 {
				drained[host] = strings.TrimPrefix(args[3], "Reason=")
			}
		}
		return "", nil
	}}
	look := func(q, want string) {
		t.Helper()
		queue, told = q, nil
		if err := w.look(t.Context(), time.Unix(1000, 0)); err != nil {
			t.Error(err)
		}
		if got := strings.Join(told, "; "); got != want {
			t.Errorf("%s: %q\nwant %q", q, got, want)
		}
	}
	look("7|RUNNING|n[0-3]\n", "NodeName=n3 State=DRAIN Reason=ringlight: no light")
	look("7|CONFIGURING|n[0-1]\n", "")
	look("7|RUNNING|n[0-1]\n", "NodeName=n2 State=DRAIN Reason=ringlight: job 7 has its light still; "+
		"JobId=7 AdminComment=ringlight: its light cannot be made smaller; n2 drained until it ends")
	look("7|RUNNING|n[0-1]\n", "")
	look("", "NodeName=n2 State=UNDRAIN")
}

// Goal: a task finds its place, and one that stands elsewhere than light meets it
// is told so, and so is the shell that evaluates it.
// Method: a file of ranks.
func TestTaskFindsItsPlace(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ranks"), []byte("# job a\n# rank host gpu ring position\n0 n1 2 0 0\n1 n2 3 0 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("RINGLIGHT_FILES", dir)
	t.Setenv("SLURM_PROCID", "1")
	t.Setenv("SLURMD_NODENAME", "n2")
	if _, out, errs := typed(t, "env", "-task"); out != "export RINGLIGHT_GPU=3\nexport RINGLIGHT_RING=0\nexport RINGLIGHT_POSITION=1\nexport CUDA_VISIBLE_DEVICES=3\n" {
		t.Error(out, errs)
	}
	t.Setenv("SLURMD_NODENAME", "n1")
	if code, out, errs := typed(t, "env", "-task"); code != 1 || out != "false\n" || !strings.Contains(errs, "rank 1 is on n1") {
		t.Error(code, out, errs)
	}
	var b bytes.Buffer
	if export(&b, "A", "it's $x"); b.String() != "export A='it'\\''s $x'\n" {
		t.Error(b.String())
	}
}

// Goal: what Slurm does not know any more is given back, after its epilog has had
// its time; what waits or runs, and what is of another cluster or of an operator
// who chose such a name, is not.
// Method: a planner's list of jobs and a queue.
func TestOrphansAreGivenBack(t *testing.T) {
	var released []string
	srv := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			released = append(released, filepath.Base(r.URL.Path)+" of "+r.URL.Query().Get("owner"))
			fmt.Fprint(out, `{}`)
			return
		}
		all := map[string]string{"slurm/a": `{"id":"a-1","generation":4},{"id":"a-2","generation":4},{"id":"a-x","generation":4}`, "": `{"id":"a-777","generation":4}`}
		fmt.Fprintf(out, `{"jobs":[%s]}`, all[r.URL.Query().Get("owner")])
	}))
	defer srv.Close()
	t.Setenv("RINGLIGHT_HTTP", srv.URL)
	c, err := newPlanner("watch").client(0)
	if err != nil {
		t.Fatal(err)
	}
	w := watcher{planner: c, say: func(string, ...any) {}, run: func(_ context.Context, name string, _ ...string) (string, error) {
		return map[string]string{"scontrol": "Configuration data\nClusterName             = a\n", "squeue": "2\n"}[name], nil
	}}
	for _, after := range []time.Duration{0, epilogTime - 1, epilogTime} {
		if len(released) > 0 {
			t.Error("too early", released)
		}
		if err := w.sweep(context.Background(), time.Unix(1000, 0).Add(after)); err != nil {
			t.Fatal(err)
		}
	}
	if fmt.Sprint(released) != "[a-1 of slurm/a]" {
		t.Error(released)
	}
}

// Goal: a job whose nodes cannot carry its rings now is queued again after -place,
// not after -wait: Slurm keeps its nodes from others meanwhile. What it had is given
// back; a job of its name that is not Slurm's is left alone.
// Method: a planner that never has room, one where the name is another's.
func TestJobWithoutRoomIsQueuedAgainSoon(t *testing.T) {
	taken, released := false, ""
	srv := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/topology"):
			fmt.Fprint(out, `{"fabric":"f1","gpus_per_node":4,"tp":8,"rings":[],"nodes":[{"host":"n0"},{"host":"n1"}]}`)
		case r.Method == http.MethodDelete && taken:
			out.WriteHeader(http.StatusConflict)
			fmt.Fprint(out, `{"error":{"code":"conflict","field":"owner","limit":"none","message":"owner: job c-7 is not of \"slurm/c\" (limit: none)"}}`)
		case r.Method == http.MethodDelete:
			released = r.URL.Query().Get("owner")
			fmt.Fprint(out, `{}`)
		case r.Method == http.MethodPut && taken:
			out.WriteHeader(http.StatusConflict)
			fmt.Fprint(out, `{"error":{"code":"conflict","field":"id","limit":"another name","message":"id: another wish (limit: another name)"}}`)
		case r.URL.Query().Has("watch"):
			<-r.Context().Done()
		default:
			fmt.Fprint(out, `{"id":"c-7","generation":1,"state":"waiting","cause":"node n1 is lost"}`)
		}
	}))
	defer srv.Close()
	t.Setenv("SLURM_JOB_ID", "7")
	t.Setenv("SLURM_CLUSTER_NAME", "c")
	t.Setenv("SLURM_JOB_NODELIST", "n[0-1]")
	if code, _, errs := typed(t, "prolog", "-http", srv.URL, "-place", "10ms", "-wait", "1h"); code != 1 || !strings.Contains(errs, "no place on n[0-1] after 10ms: node n1 is lost") || released != "slurm/c" {
		t.Errorf("exit %d: %s; released by %q", code, errs, released)
	}
	taken = true
	if code, _, errs := typed(t, "prolog", "-http", srv.URL); code != 1 || !strings.Contains(errs, "another wish") || strings.Contains(errs, "owner") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if code, _, errs := typed(t, "epilog", "-http", srv.URL); code != 0 {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// Goal: on servers of a core a job asks for circuits on just the nodes that Slurm chose,
// as its comment divides it; nodes of which some are none of the core's are refused.
func TestWishOnServersOfACore(t *testing.T) {
	leaf := 0
	top := &job.Topology{Fabric: "f", Nodes: []job.FabricNode{}, Servers: []job.FabricNode{{Host: "n0", ToR: &leaf}, {Host: "n1", ToR: &leaf}}}
	w, err := wish(top, slurmJob{nodes: "n[0-1]", comment: `x ringlight:{"tp":8,"pp":2} y`})
	if err != nil || w.Circuits == nil || *w.Circuits.TP != 8 || *w.Circuits.PP != 2 || len(w.Nodes) != 1 || w.Nodes[0] != "n[0-1]" {
		t.Errorf("%+v, %v", w, err)
	}
	if w, err := wish(top, slurmJob{nodes: "n1"}); err != nil || w.Circuits == nil || w.TP != 0 {
		t.Errorf("%+v, %v", w, err)
	}
	for _, j := range []slurmJob{{nodes: "n0", comment: "ringlight:tp=4"}, {nodes: "n[0-2]", comment: "ringlight:{}"}} {
		if w, err := wish(top, j); err == nil {
			t.Errorf("%+v: %+v", j, w)
		}
	}
	if text, _, err := top.Text("slurm-tree"); err != nil || string(text) != "SwitchName=leaf0 Nodes=n[0-1]\nSwitchName=fabric Switches=leaf0\n" {
		t.Errorf("%s, %v", text, err)
	}
	if _, _, err := top.Text("slurm-block"); err == nil {
		t.Error("blocks of a core")
	}
}
