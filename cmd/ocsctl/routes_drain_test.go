package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ringlight/planner/job"
)

// drainPlanner wants a port of one spine drained, one of another in use again, and keeps
// what it is told.
func drainPlanner(t *testing.T) (url string, told map[string]job.PortSaid) {
	told = map[string]job.PortSaid{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/routers", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"news": 1, "routers": []job.Router{
			{Router: "pod0-spine1", Ports: []job.PortDrain{{Port: "ocs2", Drained: true}}},
			{Router: "pod1-spine1", Ports: []job.PortDrain{{Port: "ocs3"}}},
			{Router: "pod2-spine1", Jobs: []job.RouterJob{{Job: "a"}}}}})
	})
	mux.HandleFunc("PUT /v1/routers/{router}/ports/{port}", func(w http.ResponseWriter, r *http.Request) {
		var got job.PortSaid
		text, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(text, &got); err != nil {
			t.Error(err)
		}
		told[r.PathValue("router")+" "+r.PathValue("port")] = got
		fmt.Fprint(w, "{}")
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL, told
}

// Goal: routes drain tells the planner that a port is drained, or in use again, when who
// was asked says so, and else why not; who answers later is not spoken for; an operator
// can speak for a router.
// Method: commands in place of devices, a server that answers in each way.
func TestPortsAreDrained(t *testing.T) {
	url, told := drainPlanner(t)
	drain := func(args ...string) error {
		clear(told)
		return routesDrain(context.Background(), append([]string{"-http", url, "-once"}, args...), io.Discard)
	}
	answer := func(port, routemap, route string) string {
		return fmt.Sprintf("printf 'ringlight-read\\nrouter bgp 1\\n neighbor %s interface remote-as external\\n address-family ipv4 unicast\\n%s address-family ipv6 unicast\\n%[2]sexit\\nringlight-routes\\n%[3]sringlight-end\\n'", port, routemap, route)
	}
	set := `  neighbor ocs2 route-map ringlight-drain in\n`
	for _, x := range []struct{ command, says string }{
		{answer("ocs2", set, ""), ""},
		{answer("ocs2", "", ""), "map of what comes in"},
		{answer("ocs2", set, `10.0.0.0/8 dev ocs2\n`), "1 route by ocs2"},
		{"exit 3", "exit status 3"},
		{"cat >/dev/null", "has no end"},
	} {
		err := drain("-exec", x.command, "-only", "pod0*")
		got := told["pod0-spine1 ocs2"]
		if (err == nil) != (x.says == "") || len(told) != 1 || !strings.Contains(got.Says, x.says) || got.Drained != (x.says == "") {
			t.Errorf("%s: %v, the planner hears %+v", x.command, err, told)
		}
	}
	if err := drain("-exec", answer("ocs3", "", `10.0.0.0/8 dev ocs3\n`), "-only", "pod1*"); err != nil || told["pod1-spine1 ocs3"] != (job.PortSaid{}) || len(told) != 1 {
		t.Errorf("in use: %v %+v", err, told)
	}
	if err := drain("-exec", "sleep 100", "-within", "50ms", "-only", "pod0*"); err == nil || !strings.Contains(told["pod0-spine1 ocs2"].Says, "no answer within 50ms") {
		t.Errorf("one that hangs: %v %+v", err, told)
	}

	ran := filepath.Join(t.TempDir(), "ran")
	err := drain("-exec", "echo >>"+ran, "-only", "pod2*")
	if _, there := os.Stat(ran); err != nil || there == nil || len(told) != 0 {
		t.Errorf("a router without ports is spoken to: %v", err)
	}

	status, asked := http.StatusOK, ""
	tool := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			return // a page that says yes to anything
		}
		w.Header().Set("Location", "/login")
		text, _ := io.ReadAll(r.Body)
		asked += string(text) + "\n"
		w.WriteHeader(status)
		fmt.Fprintln(w, "no such port")
	}))
	defer tool.Close()
	if err := drain("-post", tool.URL); err != nil || told["pod0-spine1 ocs2"] != (job.PortSaid{Drained: true}) || told["pod1-spine1 ocs3"] != (job.PortSaid{}) || len(told) != 2 {
		t.Errorf("%v %+v", err, told)
	}
	if want := `{"drained":true,"port":"ocs2","router":"pod0-spine1"}` + "\n" + `{"drained":false,"port":"ocs3","router":"pod1-spine1"}` + "\n"; asked != want {
		t.Errorf("%s", asked)
	}
	if status = http.StatusAccepted; drain("-post", tool.URL) != nil || len(told) != 0 {
		t.Errorf("who answers later: %+v", told)
	}
	if status = http.StatusConflict; drain("-post", tool.URL) == nil || told["pod0-spine1 ocs2"] != (job.PortSaid{Says: "409 Conflict: no such port"}) {
		t.Errorf("%+v", told)
	}
	if status = http.StatusFound; drain("-post", tool.URL) == nil || told["pod0-spine1 ocs2"] != (job.PortSaid{Says: "302 Found: no such port"}) {
		t.Errorf("it leads elsewhere: %+v", told)
	}
	if tool.Close(); drain("-post", tool.URL, "-within", "5s") == nil || told["pod0-spine1 ocs2"].Says == "" {
		t.Errorf("%+v", told)
	}
	clear(told)
	if err := routesSaid(context.Background(), []string{"-http", url, "pod0-spine1", "ocs2", "drained"}, io.Discard); err != nil || told["pod0-spine1 ocs2"] != (job.PortSaid{Drained: true}) {
		t.Errorf("%v %+v", err, told)
	}
	for _, args := range [][]string{{}, {"-exec", "sh", "-post", tool.URL}, {"-post", "ftp://x"}, {"-post", "x"}, {"-exec", "sh", "-check", "0s"}} {
		if drain(args...) == nil {
			t.Errorf("%v is taken", args)
		}
	}
	if routesSaid(context.Background(), []string{"-http", url, "pod0-spine1", "ocs2", "gone"}, io.Discard) == nil {
		t.Error("a word that nobody knows is taken")
	}
	var out bytes.Buffer
	if err := routesList(context.Background(), []string{"-http", url}, &out); err != nil || !strings.Contains(out.String(), "pod0-spine1  ocs2         to be drained     not confirmed") {
		t.Errorf("%v\n%s", err, &out)
	}
}

// Goal: a port is asked for again soon where it failed, and not again and again where who
// was asked tells the planner himself.
// Method: a follower whose server fails once, then answers later.
func TestDrainsAreAskedForAgain(t *testing.T) {
	url, _ := drainPlanner(t)
	asks := make(chan int, 100)
	n := 0
	tool := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n++
		asks <- n
		w.WriteHeader(map[bool]int{true: http.StatusInternalServerError, false: http.StatusAccepted}[n == 1])
	}))
	defer tool.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Second)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- routesDrain(ctx, []string{"-http", url, "-only", "pod0*", "-post", tool.URL}, io.Discard)
	}()
	for range 2 {
		select {
		case <-asks:
		case err := <-ended:
			t.Fatalf("it ends, or asks once: %v", err)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
