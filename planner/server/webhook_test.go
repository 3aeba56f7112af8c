package server

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/proto"
	"ringlight/sim/freeport"
)

// event is a CloudEvent of an alarm.
type event struct {
	SpecVersion, ID, Source, Type, Subject, DataContentType string
	Time                                                    time.Time
	Data                                                    struct{ ID, Severity, Host, What, Check string }
}

// receiver takes events; of its first answers so many are failures.
func receiver(t *testing.T, fails int) (url string, got chan event) {
	got = make(chan event, 1000)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		var e event
		if err := json.Unmarshal(text, &e); err != nil || r.Method != "POST" || r.Header.Get("Content-Type") != "application/cloudevents+json; charset=utf-8" {
			t.Errorf("%s %v: %s, %v", r.Method, r.Header, text, err)
		}
		if fails--; fails >= 0 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		got <- e
	}))
	t.Cleanup(srv.Close)
	return srv.URL, got
}

// Goal: whoever starts repairs is told of each alarm once as it begins and once as it is over;
// what was not taken comes again, first; one that ended and began between two looks is both.
func TestAlarmsAreToldOnce(t *testing.T) {
	url, got := receiver(t, 2)
	h := teller{post: hook(url, "f1"), told: map[string]alarm{}}
	var taken []string
	look := func(stand ...alarm) {
		now := map[string]alarm{}
		for _, a := range stand {
			now[a.ID] = a
		}
		err := h.tell(t.Context(), now)
		for len(got) > 0 {
			e := <-got
			taken = append(taken, strings.TrimPrefix(e.Type, "dev.ringlight.alarm.")+" "+e.ID)
		}
		if err != nil {
			taken = append(taken, err.Error())
		}
	}
	a := alarm{AlarmStatus: proto.AlarmStatus{ID: "3/a", SinceMillis: 5}}
	b := alarm{AlarmStatus: proto.AlarmStatus{ID: "3/b", SinceMillis: 6}}
	later := alarm{AlarmStatus: proto.AlarmStatus{ID: "3/b", SinceMillis: 5006}}
	look(a, b)
	look(a, b)
	look(a, b)
	look(a, alarm{AlarmStatus: proto.AlarmStatus{ID: "3/b", SinceMillis: 7}}) // the same, by another clock
	look(later)
	look()
	want := []string{"the answer is 502 Bad Gateway: it says nothing", "the answer is 502 Bad Gateway: it says nothing", "begun 3/a/5/begun", "begun 3/b/6/begun",
		"over 3/a/5/over", "over 3/b/6/over", "begun 3/b/5006/begun", "over 3/b/5006/over"}
	if !slices.Equal(taken, want) {
		t.Errorf("told\n%s\nwant\n%s", strings.Join(taken, "\n"), strings.Join(want, "\n"))
	}
}

// Goal: an alarm is not taken by what a redirect leads to, which is not told of it.
func TestRedirectTakesNoAlarm(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			http.Redirect(w, r, "/login", http.StatusFound)
		}
	}))
	defer srv.Close()
	h := teller{post: hook(srv.URL, "f1"), told: map[string]alarm{}}
	if err := h.tell(t.Context(), map[string]alarm{"3/a": {}}); err == nil || !strings.Contains(err.Error(), "302 Found") || len(h.told) > 0 {
		t.Errorf("%v, told %v", err, h.told)
	}
}

// Goal: a planner tells of what stands, in its own words.
// Method: a planner of eight nodes of which none is there.
func TestPlannerTellsItsWebhook(t *testing.T) {
	url, got := receiver(t, 0)
	inProcess(t, Config{Fabric: testFabric(), Listen: "127.0.0.1:0", State: filepath.Join(t.TempDir(), "p.db"), Webhook: url})
	for deadline := time.After(time.Minute); ; {
		select {
		case e := <-got:
			if e.SpecVersion != "1.0" || e.Source != "/ringlight/f1" || e.DataContentType != "application/json" || e.Time.IsZero() || e.Data.ID == "" || e.Data.Severity == "" || e.Data.What == "" || e.Data.Check == "" || e.Subject == "" {
				t.Fatalf("%+v", e)
			}
			if e.Data.ID == "nodes/none" && e.Type == "dev.ringlight.alarm.begun" {
				return
			}
		case <-deadline:
			t.Fatal("nodes that are not heard are not told of")
		}
	}
}

func TestWebhookIsAnAddress(t *testing.T) {
	for _, bad := range []string{"nowhere", "ftp://a/b", "http://", "http://a b/"} {
		if err := (&Config{State: "x", Webhook: bad}).Check(); err == nil || !strings.Contains(err.Error(), "webhook") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// Goal: the example of docs/alerts.md cordons a node once while it has critical alarms, and
// asks again when kubectl fails.
// Method: it runs with a kubectl that writes down what it is told and fails at first.
func TestExampleCordonsNodes(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	stub := "#!/bin/sh\necho \"$@\" >>" + log + "\n[ -e " + dir + "/once ] || { : >" + dir + "/once; exit 1; }\n"
	if err := os.WriteFile(filepath.Join(dir, "kubectl"), []byte(stub), 0o700); err != nil {
		t.Fatal(err)
	}
	address := freeport.Address()
	script := exec.Command(python, "../../docs/monitoring/repair.py", address)
	script.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	if err := script.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = script.Process.Kill(); _ = script.Wait() }()
	h := teller{post: hook("http://"+address, "f1"), told: map[string]alarm{}}
	of := func(id, severity string) alarm {
		return alarm{AlarmStatus: proto.AlarmStatus{ID: id, SinceMillis: 1}, Severity: severity, Host: "gpu-7"}
	}
	both := map[string]alarm{"7/a": of("7/a", "Critical"), "7/b": of("7/b", "Critical"), "7/c": of("7/c", "Warning")}
	for _, stand := range []map[string]alarm{both, {"7/b": both["7/b"]}, {}} {
		deadline := time.After(time.Minute)
		for err := error(nil); ; {
			if err = h.tell(t.Context(), stand); err == nil {
				break
			}
			select {
			case <-time.After(50 * time.Millisecond):
			case <-deadline:
				t.Fatal(err)
			}
		}
	}
	said, err := os.ReadFile(log)
	if want := "cordon gpu-7\ncordon gpu-7\nuncordon gpu-7\n"; err != nil || string(said) != want {
		t.Errorf("%v: kubectl was told\n%s, want\n%s", err, said, want)
	}
}
