package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/planner/jobapi/client"
)

// Goal: a task begins when its job has light on just its nodes, and fails where nobody asked,
// where the light is another's or of a start before, and where it does not come; a job of
// other nodes begins at once.
// Method: a planner whose job changes at each look.
func TestTaskBeginsOnLight(t *testing.T) {
	const view = `{"id":"c-7","generation":1,"state":"%s","cause":"2 of 4 links","wish":{"tp":8,"rings":1,"nodes":["%s"],"owner":"%s"}}`
	for _, x := range []struct {
		nodes string
		looks []string // state, nodes, owner; "": no job; the last stays
		args  string
		want  string // in the error; "": it begins
	}{
		{"n[0-1]", []string{"", "waiting n[0-1] slurm/c", "forming n[0-1] slurm/c", "ready n[0-1] slurm/c"}, "", ""},
		{"n[0-1]", []string{"ready n[2-3] slurm/c", "ready n[0-1] slurm/c"}, "", ""}, // of the start before
		{"n[0-1]", []string{"degraded n[0-3] slurm/c"}, "", ""},                      // a step later, on fewer
		{"n[0-1]", []string{""}, "-asked 1ms", "no job"},
		{"n[0-1]", []string{"ready n[0-1] alice"}, "-asked 1ms", "is not of slurm/c on n[0-1]"},
		{"n[0-1]", []string{"ready n[1-2] slurm/c"}, "-asked 1ms", "is not of slurm/c on n[0-1]"},
		{"n[0-1]", []string{"forming n[0-1] slurm/c"}, "-wait 1ms", "c-7 is forming: 2 of 4 links"},
		{"n[0-1]", []string{"down n[0-1] slurm/c"}, "-wait 1ms", "c-7 is down"},
		{"login1", []string{""}, "", ""},
		{"n0,login1", []string{"ready n0,login1 slurm/c"}, "", "login1 is not in fabric f1"},
	} {
		look := 0
		srv := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet {
				t.Errorf("%s %s", r.Method, r.URL)
			}
			if strings.HasSuffix(r.URL.Path, "/topology") {
				fmt.Fprint(out, `{"fabric":"f1","gpus_per_node":4,"tp":8,"rings":[],"nodes":[{"host":"n0"},{"host":"n1"},{"host":"n2"},{"host":"n3"}]}`)
				return
			}
			f := strings.Fields(x.looks[min(look, len(x.looks)-1)])
			if look++; len(f) == 0 {
				out.WriteHeader(http.StatusNotFound)
				fmt.Fprint(out, `{"error":{"code":"not found","field":"id","message":"id: no job"}}`)
				return
			}
			fmt.Fprintf(out, view, f[0], f[1], f[2])
		}))
		t.Setenv("SLURM_JOB_ID", "7")
		t.Setenv("SLURM_CLUSTER_NAME", "c")
		t.Setenv("SLURM_JOB_NODELIST", x.nodes)
		code, out, errs := typed(t, append([]string{"lit", "-http", srv.URL}, strings.Fields(x.args)...)...)
		if (code == 0) != (x.want == "") || !strings.Contains(errs, x.want) || out != "" {
			t.Errorf("%+v: exit %d: %s%s", x, code, out, errs)
		}
		srv.Close()
	}
}

// Goal: light that has just come stays for a time when Slurm takes the job back, for a script
// that is about to begin; older light, and light on its way, is given back at once.
// Method: the epilog against a planner whose job is of such an age; an hour where it does not wait.
func TestLightStaysForAScriptThatBegins(t *testing.T) {
	t.Setenv("SLURM_JOB_ID", "7")
	t.Setenv("SLURM_CLUSTER_NAME", "c")
	t.Setenv("SLURM_JOB_NODELIST", "n[0-1]")
	for _, x := range []struct {
		state string
		age   time.Duration
		stays time.Duration
	}{
		{"ready", 0, 50 * time.Millisecond},
		{"degraded", 0, 50 * time.Millisecond},
		{"ready", time.Hour, time.Hour},
		{"forming", 0, time.Hour},
	} {
		var asked, released time.Time
		srv := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodDelete:
				released = time.Now()
				fmt.Fprint(out, `{}`)
			case r.URL.Query().Has("watch"):
				fmt.Fprintf(out, "event: ready\ndata: {\"generation\":4,\"event\":\"ready\",\"at_ms\":%d}\n\nevent: degraded\ndata: {\"generation\":5,\"event\":\"degraded\"}\n\n", time.Now().Add(-x.age).UnixMilli())
			default:
				asked = time.Now()
				fmt.Fprintf(out, `{"id":"c-7","generation":5,"state":%q}`, x.state)
			}
		}))
		code, _, errs := typed(t, "epilog", "-http", srv.URL, "-stays", x.stays.String())
		if code != 0 || released.IsZero() || x.stays < time.Hour && released.Sub(asked) < x.stays {
			t.Errorf("%+v: exit %d: %s; asked %v, released %v", x, code, errs, asked, released)
		}
		srv.Close()
	}
}

// Goal: a job that Slurm runs though its prolog was killed is queued again, or
// cancelled where it cannot be; one whose prolog is at work, has ended or began
// again is left alone, and nothing is left of one that is over.
// Light that is on its way is given back before, at the revision that was seen; one that has
// light gets another look.
// Method: the prolog itself against a planner that looks at its note, then notes of
// prologs that never ended and what squeue says of their jobs.
func TestJobOfAKilledPrologIsQueuedAgain(t *testing.T) {
	dir := t.TempDir()
	note := func(number string) string {
		text, _ := os.ReadFile(filepath.Join(dir, number))
		return string(text)
	}
	during := ""
	srv := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		during = note("7")
		fmt.Fprint(out, `{"fabric":"f1","gpus_per_node":4,"tp":16,"rings":[],"nodes":[]}`)
	}))
	defer srv.Close()
	t.Setenv("SLURM_JOB_ID", "7")
	t.Setenv("SLURM_JOB_NODELIST", "login1")
	if code, _, errs := typed(t, "prolog", "-http", srv.URL, "-notes", dir); code != 0 || !strings.HasPrefix(during, "begun ") || note("7") != "" {
		t.Fatalf("exit %d: %s; note %q, then %q", code, errs, during, note("7"))
	}

	// The light that each note speaks of: on its way, none, changed meanwhile, whole.
	var given []string
	lights := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		name, state := filepath.Base(r.URL.Path), "forming"
		switch name {
		case "c-3":
			out.WriteHeader(http.StatusNotFound)
			fmt.Fprint(out, `{"error":{"code":"not found","field":"id","message":"id: no job"}}`)
			return
		case "c-8":
			state = "ready"
		}
		if r.Method == http.MethodDelete {
			given = append(given, name+" "+r.URL.Query().Get("owner")+" "+r.Header.Get("If-Match"))
			if name == "c-9" {
				out.WriteHeader(http.StatusPreconditionFailed)
				fmt.Fprint(out, `{"error":{"code":"conflict","field":"If-Match","limit":"\"6\"","message":"If-Match: it has light"}}`)
				return
			}
		}
		fmt.Fprintf(out, `{"id":%q,"generation":5,"state":%q}`, name, state)
	}))
	defer lights.Close()
	planner, err := client.New(client.Config{URL: lights.URL})
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]string{"8": "RUNNING", "9": "RUNNING", "1": "RUNNING", "2": "CONFIGURING", "3": "RUNNING", "4": "RUNNING", "5": "", "6": "RUNNING"}
	for number := range states { // any order: each by itself
		if err := os.WriteFile(filepath.Join(dir, number), []byte(strings.Replace(during, " slurm-7 slurm/slurm", " c-"+number+" slurm/c", 1)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var told []string
	w := watcher{planner: planner, notes: dir, say: func(string, ...any) {}, run: func(_ context.Context, name string, args ...string) (string, error) {
		number := args[len(args)-1]
		if name != "squeue" {
			if told = append(told, name+" "+strings.Join(args, " ")); args[0] == "requeue" && number == "3" {
				return "", errors.New("Requested operation is presently disabled")
			}
			return "", nil
		}
		switch number = args[5]; number {
		case "4": // its prolog ends while squeue is asked
			return "4 RUNNING", os.Remove(filepath.Join(dir, "4"))
		case "6": // and this one's begins again
			return "6 RUNNING", os.WriteFile(filepath.Join(dir, "6"), []byte("begun 1"), 0o644)
		}
		return "99 RUNNING\n" + number + " " + states[number] + "\n", nil
	}}
	if err := w.tellReasons(context.Background()); err != nil {
		t.Error(err)
	}
	const why = " AdminComment=ringlight: slurmctld ended its prolog before light was confirmed"
	if got, want := strings.Join(told, "; "), "scontrol requeue 1; scontrol update JobId=1"+why+"; scontrol requeue 3; scancel 3; scontrol update JobId=3"+why; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); fmt.Sprint(left) != fmt.Sprintf("[%[1]s/2 %[1]s/6 %[1]s/8 %[1]s/9]", dir) {
		t.Error(left)
	}
	if got := fmt.Sprint(given); got != `[c-1 slurm/c "5" c-9 slurm/c "5"]` {
		t.Error(got)
	}
	if err := w.tellReasons(context.Background()); err != nil || !slices.Contains(told, "scontrol requeue 8") || slices.Contains(told, "scontrol requeue 9") {
		t.Error(told, err)
	}
}
