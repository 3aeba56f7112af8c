package jobapi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ringlight/planner"
	"ringlight/planner/fabric"
	"ringlight/planner/job"
	"ringlight/proto"
)

// source is a planner in service that has heard of one node alone, on a clock that
// stands but for its own timers.
type source struct {
	mu    sync.Mutex
	host  *planner.Host
	now   time.Duration
	reply []proto.Packet
	asked uint16
	disk  map[string][]byte
}

func (s *source) Now() (time.Duration, uint64) {
	return s.now, 1_000_000 + uint64(s.now.Milliseconds())
}
func (s *source) Log(*planner.Line) {}
func (s *source) Send(p proto.Packet) {
	if strings.HasSuffix(p.Topic, "/rep") {
		s.reply = append(s.reply, p)
	}
}

func (s *source) run(d time.Duration) {
	for end := s.now + d; ; {
		for {
			if records, due := s.host.Transaction(); due {
				for _, r := range records {
					s.disk[r.Key] = r.Value
				}
				s.host.Stored()
			} else if _, more := s.host.Step(); !more {
				break
			}
		}
		next := s.host.Next()
		if next > end {
			s.now = end
			return
		}
		s.now = max(s.now, next)
		s.host.Tick()
	}
}

func (s *source) Read(_ context.Context, f func(*planner.Planner)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.host.Planner())
	return nil
}

func (s *source) Ask(_ context.Context, q proto.OpRequest) (*proto.OpReply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	q.Version, q.TTLMillis, q.Corr = proto.Version, 5000, proto.Corr{byte(s.asked), byte(s.asked >> 8), 1}
	payload, err := proto.Encode(&q)
	if err != nil {
		return nil, err
	}
	s.reply = nil
	s.host.Deliver(proto.Packet{Kind: proto.Publish, Topic: proto.Topics{Fabric: "f1"}.Request("api"), Payload: payload})
	s.run(time.Millisecond)
	for _, p := range s.reply {
		var r proto.OpReply
		if _, err := proto.Decode(p.Payload, &r); err == nil && r.Corr == q.Corr {
			if r.Code != proto.OK {
				return nil, &proto.Error{Code: r.Code, Field: r.Field, Limit: r.Limit, Reason: r.Reason}
			}
			return &r, nil
		}
	}
	return nil, fmt.Errorf("no answer")
}

// served is the API of such a planner, of 64 nodes.
func served(t *testing.T) (url string, s *source) {
	t.Helper()
	s = &source{disk: map[string][]byte{}}
	s.begin(t)
	mux := http.NewServeMux()
	New(s, func(*http.Request) error { return nil }).Mount(mux)
	h := httptest.NewServer(mux)
	t.Cleanup(h.Close)
	return h.URL, s
}

// begin starts a planner from what the disk holds, and brings it into service.
func (s *source) begin(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var st planner.State
	for _, key := range slices.Sorted(maps.Keys(s.disk)) {
		if s.disk[key] != nil {
			st = append(st, planner.Record{Key: key, Value: s.disk[key]})
		}
	}
	cfg, err := planner.Start(st, fabric.Default(), 7)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Alone = true
	s.host = planner.NewHost(cfg, s)
	s.host.Deliver(proto.Packet{Kind: proto.LinkUp})
	topics := proto.Topics{Fabric: "f1"}
	say := func(topic string, m any) {
		payload, err := proto.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		s.host.Deliver(proto.Packet{Kind: proto.Publish, Topic: topic, Payload: payload})
	}
	say(topics.Presence(0), &proto.Presence{Version: proto.Version, Session: 1, Online: true, Boot: 1, GPUs: 4, Bundles: 2, Modules: 8, Mode: proto.ModeService})
	say(topics.Reported(0), &proto.Reported{Version: proto.Version, Session: 1, Seq: 1, Mode: proto.ModeService, Bundles: bothDark()})
	s.run(5 * time.Minute)
}

// bothDark are the bundles of a node that is in no ring.
func bothDark() []proto.BundleReport {
	light := proto.BundleReport{Path: proto.Loopback, State: proto.Tuned, Measured: -3200, Expected: -3000, Lit: 1 << proto.Loopback, Calibration: proto.Digest{1}}
	other := light
	other.Bundle = 1
	return []proto.BundleReport{light, other}
}

type answer struct {
	status int
	text   string
	etag   string
	allow  string
	job    job.View
	Error  struct{ Code, Field, Limit, Message string }
}

func ask(t *testing.T, method, url, body string, match ...string) (a answer) {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range match {
		r.Header.Set("If-Match", m)
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	text, _ := io.ReadAll(got.Body)
	a.status, a.text, a.etag, a.allow = got.StatusCode, string(text), got.Header.Get("ETag"), got.Header.Get("Allow")
	_ = json.Unmarshal(text, &a) // files are no JSON
	_ = json.Unmarshal(text, &a.job)
	return a
}

// describes: openapi.json has such an answer of a route.
func describes(t *testing.T, method, path string, status int) bool {
	t.Helper()
	var d struct {
		Paths map[string]map[string]struct{ Responses map[string]any }
	}
	if err := json.Unmarshal(openapi, &d); err != nil {
		t.Fatal(err)
	}
	for of, ops := range d.Paths { // any order: one is it
		is := regexp.MustCompile("^" + regexp.MustCompile("{[a-z]+}").ReplaceAllString(of, "[^/]+") + "$")
		if is.MatchString(path) && ops[strings.ToLower(method)].Responses[fmt.Sprint(status)] != nil {
			return true
		}
	}
	return false
}

// Goal: what is not acceptable is refused with its field and limit, and nothing is
// reserved.
// Method: a table of bad requests; afterwards there is no job.
func TestBadRequestsAreRefused(t *testing.T) {
	url, _ := served(t)
	for _, c := range []struct {
		method, path, body string
		status             int
		field              string
	}{
		{"PUT", "/v1/jobs/a", `{"tp":32,"nodes":["n99"]}`, 400, "nodes[0]"},
		{"PUT", "/v1/jobs/a", `{"tp":32,"exclude":[0,64]}`, 400, "exclude[1]"},
		{"PUT", "/v1/jobs/a", `{"tp":32,"nodes":["n[0-"]}`, 400, "nodes[0]"},
		{"PUT", "/v1/jobs/a", `{"tp":30}`, 400, "tp"},
		{"PUT", "/v1/jobs/a", `{"tp":0}`, 400, "tp"},
		{"PUT", "/v1/jobs/a", `{"tp":-4}`, 400, "tp"},
		{"PUT", "/v1/jobs/a", `{"tp":4096}`, 400, "tp"},
		{"PUT", "/v1/jobs/a", `{"tp":32,"rings":9}`, 409, "rings"},
		{"PUT", "/v1/jobs/a", `{"tp":32,"rings":8,"spares":1}`, 409, "rings"},
		{"PUT", "/v1/jobs/a", `{"tp":32,"rings":4097}`, 400, "rings"},
		{"PUT", "/v1/jobs/a", `{"tp":32,"rings":-1}`, 400, "rings"},
		{"PUT", "/v1/jobs/a", `{"tp":32,"spares":-1}`, 400, "spares"},
		{"PUT", "/v1/jobs/a", `{"tp":32,"hold_ms":-1}`, 400, "hold_ms"},
		{"PUT", "/v1/jobs/a", `{"tp":32,"hold_ms":604800001}`, 400, "hold_ms"},
		{"PUT", "/v1/jobs/a", `{"tp":32,"prefer":"near"}`, 400, "prefer"},
		{"PUT", "/v1/jobs/a", `{"tp":32,"prefer":"cross_tor"}`, 400, "prefer"},
		{"PUT", "/v1/jobs/a", `{"tp":32,"policy":"die"}`, 400, "policy"},
		{"PUT", "/v1/jobs/a", `{"tp":32,"owner":"me and you"}`, 400, "owner"},
		{"PUT", "/v1/jobs/a", `{"tp":32,"owner":"` + strings.Repeat("o", 81) + `"}`, 400, "owner"},
		{"PUT", "/v1/jobs/a", `{"tp":32,"colour":"red"}`, 400, "body"},
		{"PUT", "/v1/jobs/a", `{"tp":"32"}`, 400, "tp"},
		{"PUT", "/v1/jobs/a", `{"tp":32}{"tp":32}`, 400, "body"},
		{"PUT", "/v1/jobs/a", `{"tp":32,"tp":16}`, 400, "tp"},
		{"PUT", "/v1/jobs/a", `{"tp":32,"node_order":1,"tp":32}`, 400, "body"},
		{"PUT", "/v1/jobs/a", `[]`, 400, "body"},
		{"PUT", "/v1/jobs/a", ``, 400, "body"},
		{"PUT", "/v1/jobs/a", `{"tp":32,"circuits":{"dp":4}}`, 400, "circuits"},
		{"PUT", "/v1/jobs/a", `{"tp":32,"nodes":["` + strings.Repeat("x", 47<<10) + `"]}`, 400, "nodes[0]"},
		{"PUT", "/v1/jobs/a", strings.Repeat(" ", 10<<20) + `{"tp":32}`, 413, "body"},
		{"PUT", "/v1/jobs/" + strings.Repeat("j", 300), `{"tp":32}`, 400, "id"},
		{"PUT", "/v1/jobs/" + strings.Repeat("j", 65), `{"tp":32}`, 400, "id"},
		{"PUT", "/v1/jobs/a%2Fb", `{"tp":32}`, 400, "id"},
		{"PUT", "/v1/jobs/a%00", `{"tp":32}`, 400, "id"},
		{"PUT", "/v1/jobs/a?dry_run=no", `{"tp":32}`, 400, "dry_run"},
		{"PUT", "/v1/jobs/a?dry_run=false", `{"tp":32}`, 400, "dry_run"},
		{"PUT", "/v1/jobs/a?dryrun", `{"tp":32}`, 400, "dryrun"}, // it would reserve
		{"PUT", "/v1/jobs/a?%zz", `{"tp":32}`, 400, "query"},
		{"PUT", "/v1/jobs/a?dry_run", `{"tp":30}`, 400, "tp"},
		{"GET", "/v1/jobs/a", ``, 404, "id"},
		{"GET", "/v1/jobs/a?watch=0", ``, 404, "id"},
		{"GET", "/v1/jobs/a?watch=-1", ``, 400, "watch"},
		{"GET", "/v1/jobs/a?watch=0&wait_ms=60001", ``, 400, "wait_ms"},
		{"GET", "/v1/jobs/a?wach=0", ``, 400, "wach"},
		{"GET", "/v1/jobs/a/files/ranks?generation=x", ``, 400, "generation"},
		{"GET", "/v1/jobs/a/files/ranks?pp=0", ``, 400, "pp"},
		{"DELETE", "/v1/jobs/a", ``, 404, "id"},
		{"DELETE", "/v1/jobs/" + strings.Repeat("j", 300), ``, 400, "id"},
		{"POST", "/v1/jobs/a/replace", `{"out":3}`, 404, "id"},
		{"POST", "/v1/jobs/a/replace", `{"in":3}`, 400, "body"},
		{"POST", "/v1/jobs/a/replace", strings.Repeat(" ", 10<<20), 413, "body"},
		{"POST", "/v1/jobs/a/phase", `{"phase":"p1"}`, 404, "id"},
		{"POST", "/v1/jobs/a/phase", `{}`, 400, "body"},
		{"POST", "/v1/jobs/a/traffic", `{"mp":[[0,1,5]]}`, 404, "id"},
		{"POST", "/v1/jobs/a/traffic", `{"mp":[[0,70000,5]]}`, 400, "topology.mp[0]"},
		{"POST", "/v1/jobs/a/traffic", `{"mp":[[0,1,5]],"method":"x"}`, 400, "topology.method"},
		{"POST", "/v1/jobs/a/traffic?dry_run=no", `{"mp":[[0,1,5]]}`, 400, "dry_run"},
		{"GET", "/v1/topology?format=png", ``, 400, "format"},
		{"GET", "/v1/jobs?limit=0", ``, 400, "limit"},
		{"GET", "/v1/jobs?limit=1001", ``, 400, "limit"},
		{"GET", "/v1/jobs?continue=b", ``, 400, "continue"},
		{"GET", "/v1/events?watch=-1", ``, 400, "watch"},
		{"PUT", "/v1/jobs/a", `{"tp":32,"labels":{"":"x"}}`, 400, "labels"},
		{"PUT", "/v1/jobs/a", `{"tp":32,"labels":{"team":"a b"}}`, 400, "labels"},
		{"GET", "/v1/", ``, 404, "path"},
		{"GET", "/v1/job/a", ``, 404, "path"},
		{"PUT", "/v1/jobs/a/b", ``, 404, "path"},
		{"POST", "/v1/jobs", ``, 405, "method"},
		{"PATCH", "/v1/jobs/a", ``, 405, "method"},
		{"DELETE", "/v1/topology", ``, 405, "method"},
	} {
		a := ask(t, c.method, url+c.path, c.body)
		if a.status != c.status || a.Error.Field != c.field || a.Error.Limit == "" || a.Error.Message == "" {
			t.Errorf("%s %.60s %.60s: %d %+v, want %d %s", c.method, c.path, c.body, a.status, a.Error, c.status, c.field)
		}
		if path, _, _ := strings.Cut(c.path, "?"); c.field == "method" && a.allow == "" || c.field != "method" && c.field != "path" && !describes(t, c.method, path, a.status) {
			t.Errorf("%s %.60s: %d is not described, or nothing is allowed", c.method, path, a.status)
		}
	}
	if a := ask(t, "GET", url+"/v1/jobs", ""); strings.TrimSpace(a.text) != `{"jobs":[],"number":0}` {
		t.Errorf("something was reserved: %s", a.text)
	}
}

// Goal: a job with rings is asked for a step of an exchange as one with circuits is for a
// phase, and hears why it cannot be while it waits for its rings. Method: a phase that there
// is none of, a step, and the way back.
func TestRingsHavePhases(t *testing.T) {
	url, _ := served(t)
	ask(t, "PUT", url+"/v1/jobs/a", `{"tp":32}`)
	for _, c := range []struct {
		phase  string
		status int
	}{{"p1", 404}, {"exchange-3", 409}, {"ring", 409}} {
		if a := ask(t, "POST", url+"/v1/jobs/a/phase", `{"phase":"`+c.phase+`"}`); a.status != c.status || c.status != 200 && a.Error.Field != "phase" {
			t.Errorf("%s: %d %+v %s", c.phase, a.status, a.Error, a.text)
		}
	}
}

// Goal: who changes or releases a job names its owner; a list has those of one.
// Method: two jobs, of an owner and of nobody, asked for under every name.
func TestJobsHaveOwners(t *testing.T) {
	url, _ := served(t)
	ask(t, "PUT", url+"/v1/jobs/c-777", `{"tp":32}`)
	ask(t, "PUT", url+"/v1/jobs/c-1", `{"tp":32,"owner":"slurm/c"}`)
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"DELETE", "c-777?owner=slurm/c", "", 409},
		{"DELETE", "c-1", "", 409},
		{"DELETE", "c-1?owner=slurm/d", "", 409},
		{"POST", "c-1/replace", `{"out":0}`, 409},
		{"GET", "c-1/files/ranks?owner=slurm/d", "", 409},
		{"GET", "c-1/files/ranks?owner=slurm/c", "", 409}, // no light
		{"PUT", "c-1", `{"tp":32,"owner":"slurm/d"}`, 409},
		{"PUT", "c-1", `{"tp":32}`, 409},
		{"PUT", "c-1", `{"tp":32,"owner":"slurm/c"}`, 200},
		{"DELETE", "c-1?owner=slurm/c", "", 200},
		{"DELETE", "c-1?owner=slurm/c", "", 200},
		{"DELETE", "c-777", "", 200},
	} {
		if a := ask(t, c.method, url+"/v1/jobs/"+c.path, c.body); a.status != c.status {
			t.Errorf("%s %s: %d %s, want %d", c.method, c.path, a.status, a.text, c.status)
		}
		if c.path == "c-1" && c.method == "DELETE" {
			if a := ask(t, "GET", url+"/v1/jobs?owner=slurm/c", ""); !strings.Contains(a.text, "c-1") || strings.Contains(a.text, "c-777") {
				t.Errorf("%s", a.text)
			}
		}
	}
}

// Goal: who asks for the files of a job as it was is told that it is another by now,
// and as it is.
func TestFileOfAnotherTimeIsRefused(t *testing.T) {
	url, _ := served(t)
	now := ask(t, "PUT", url+"/v1/jobs/a", `{"tp":32}`).job.Generation
	if now == 0 {
		t.Fatal("the job has no event")
	}
	for gen, stale := range map[uint64]bool{now: false, now + 1: true} { // any order: each by itself
		a := ask(t, "GET", fmt.Sprintf("%s/v1/jobs/a/files/ranks?generation=%d", url, gen), "")
		if is := a.status == 409 && a.Error.Field == "generation" && a.Error.Limit == fmt.Sprint(now); is != stale {
			t.Errorf("event %d of %d: %d %s", gen, now, a.status, a.text)
		}
	}
}

// Goal: one name is one job, whoever asks for it at the same time; what it was asked
// for with counts, not how that is written.
func TestOneNameIsOneJob(t *testing.T) {
	url, _ := served(t)
	var all sync.WaitGroup
	var mu sync.Mutex
	status := map[string]map[int]int{}
	for i := range 64 {
		body := []string{`{"tp":32,"rings":2}`, `{"rings":2,"policy":"wait","tp":32,"hold_ms":600000}`, `{"tp":64,"rings":2}`}[i%3]
		all.Go(func() {
			a := ask(t, "PUT", url+"/v1/jobs/one", body)
			mu.Lock()
			defer mu.Unlock()
			key := body[len(body)-1:] + fmt.Sprint(strings.Contains(body, "64,"))
			if status[key] == nil {
				status[key] = map[int]int{}
			}
			status[key][a.status]++
		})
	}
	all.Wait()
	small, large := status["}false"], status["}true"]
	if !(small[200] == 43 && large[409] == 21 || small[409] == 43 && large[200] == 21) {
		t.Errorf("%v", status)
	}
	if a := ask(t, "GET", url+"/v1/jobs/one", ""); a.job.Generation != 1 || a.job.State != job.Waiting {
		t.Errorf("%+v", a.job)
	}
}

// Goal: a job that is released is answered as released, however many were released
// since it was asked for; who asked first is not forgotten first.
func TestReleasedJobsAreRemembered(t *testing.T) {
	url, _ := served(t)
	ask(t, "PUT", url+"/v1/jobs/old", `{"tp":32}`)
	for i := range 300 {
		id := fmt.Sprintf("%s/v1/jobs/j%d", url, i)
		ask(t, "PUT", id, `{"tp":32}`)
		ask(t, "DELETE", id, "")
	}
	if a := ask(t, "DELETE", url+"/v1/jobs/old", ""); a.status != 200 || a.job.State != job.Released || a.job.Generation != 2 {
		t.Errorf("%d %s", a.status, a.text)
	}
	if a := ask(t, "DELETE", url+"/v1/jobs/old", ""); a.status != 200 || a.job.Generation != 2 {
		t.Errorf("released twice: %d %s", a.status, a.text)
	}
	if a := ask(t, "GET", url+"/v1/jobs/j0", ""); a.status != 404 {
		t.Errorf("the first that was released is still there: %d", a.status)
	}
}

// Goal: events go on with their numbers when a name is asked for again; who knows
// of more than there is, of a planner that has lost its store, is told so at once
// and goes on with what there is.
func TestWatchOverNumbers(t *testing.T) {
	url, _ := served(t)
	of := url + "/v1/jobs/a"
	ask(t, "PUT", of, `{"tp":32}`)
	ask(t, "DELETE", of, "")
	ask(t, "PUT", of, `{"tp":64}`)
	poll := func(query string) (n news, took time.Duration) {
		began := time.Now()
		a := ask(t, "GET", of+query, "")
		if err := json.Unmarshal([]byte(a.text), &n); err != nil {
			t.Fatalf("%s: %s", query, a.text)
		}
		return n, time.Since(began)
	}
	n, _ := poll("?watch=0")
	if len(n.Events) != 3 || n.Events[0].Event != "waiting" || n.Events[1].Event != "released" || n.Events[2].Event != "waiting" || n.Events[2].Generation != 3 || !n.Complete || n.Job.Wish.TP != 64 {
		t.Errorf("%+v", n)
	}
	if n, _ := poll("?watch=3&wait_ms=50"); len(n.Events) != 0 || !n.Complete {
		t.Errorf("%+v", n)
	}
	if n, took := poll("?watch=99&wait_ms=20000"); len(n.Events) != 0 || n.Complete || n.Job.Generation != 3 || took > 10*time.Second {
		t.Errorf("from the future: %+v after %v", n, took)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r, _ := http.NewRequestWithContext(ctx, "GET", of, nil)
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Last-Event-ID", "99")
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	lines := bufio.NewScanner(got.Body)
	var heard []string
	for lines.Scan() {
		if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			heard = append(heard, id)
		} else if event, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			heard = append(heard, event)
			if event == "missed" {
				ask(t, "DELETE", of, "")
			} else {
				break
			}
		}
	}
	if text := strings.Join(heard, " "); text != "3 missed 4 released" {
		t.Errorf("%q", text)
	}
}

// Goal: watchers of one address leave places to others, and who gives his is told by the
// end of what he watches. Method: all places taken by one; two more come, one of another
// address; a stream and a long poll whose places go.
func TestWatchersOfOneAddressLeavePlaces(t *testing.T) {
	_, s := served(t)
	full := hub{source: s, waiting: map[chan struct{}]string{}}
	taken := map[chan struct{}]bool{}
	for range maxWatch {
		c, err := full.join("a")
		if err != nil {
			t.Fatal(err)
		}
		taken[c] = true
	}
	var busy *proto.Error
	if _, err := full.join("a"); !errors.As(err, &busy) || busy.Code != proto.Busy {
		t.Errorf("one more: %v", err)
	}
	mine, err := full.join("b")
	if err != nil || full.waiting[mine] != "b" || len(full.waiting) != maxWatch {
		t.Errorf("of another address: %v, %d watch", err, len(full.waiting))
	}
	for c := range taken { // any order: one has gone
		if full.waiting[c] == "" {
			for range c { // ends: it was closed
			}
		}
		full.leave(c)
	}
	full.leave(mine)

	a := New(s, func(*http.Request) error { return nil })
	mux := http.NewServeMux()
	a.Mount(mux)
	h := httptest.NewServer(mux)
	defer h.Close()
	of := h.URL + "/v1/jobs/a"
	ask(t, "PUT", of, `{"tp":32}`)
	for _, accept := range []string{"text/event-stream", ""} {
		told := make(chan string)
		go func() {
			r, _ := http.NewRequest("GET", of+"?watch=1&wait_ms=60000", nil)
			r.Header.Set("Accept", accept)
			got, err := http.DefaultClient.Do(r)
			if err != nil {
				told <- err.Error()
				return
			}
			text, err := io.ReadAll(got.Body)
			got.Body.Close()
			told <- fmt.Sprint(string(text), err)
		}()
		for gone := false; !gone; <-time.After(time.Millisecond) {
			a.hub.mu.Lock()
			for c := range a.hub.waiting { // any order: there is one
				gone = true
				delete(a.hub.waiting, c)
				close(c)
			}
			a.hub.mu.Unlock()
		}
		if text := <-told; !strings.Contains(text, ": events\n") && !strings.Contains(text, `"events":[],"complete":true`) && !strings.Contains(text, `"events":null,"complete":true`) {
			t.Errorf("%q is told %s", accept, text)
		}
	}
}

// Goal: what changes a job can be made conditional on the revision that one has seen, and
// is refused, by its own status, once it has another; without a condition it is not.
// Method: a job that is asked for, released under an old and under its own revision; one
// that is not there; what is no revision.
func TestRevisionIsACondition(t *testing.T) {
	url, s := served(t)
	const wish = `{"tp":32}`
	if a := ask(t, "PUT", url+"/v1/jobs/a", wish, `"3"`); a.status != 412 || a.Error.Field != "If-Match" || a.Error.Limit != `"0"` {
		t.Errorf("of a job that is not there: %d %+v", a.status, a.Error)
	}
	first := ask(t, "PUT", url+"/v1/jobs/a", wish)
	if first.status != 200 || first.etag != fmt.Sprintf("%q", fmt.Sprint(first.job.Generation)) {
		t.Fatalf("%d, ETag %s of %+v", first.status, first.etag, first.job)
	}
	if a := ask(t, "PUT", url+"/v1/jobs/a", wish, first.etag); a.status != 200 || a.etag != first.etag {
		t.Errorf("the same wish at its own revision: %d, ETag %s", a.status, a.etag)
	}
	for _, bad := range []string{`7`, `*`, `W/"1"`, `"x"`, `"0"`, `"1", "2"`} {
		if a := ask(t, "DELETE", url+"/v1/jobs/a", "", bad); a.status != 400 || a.Error.Field != "header If-Match" {
			t.Errorf("%s: %d %+v", bad, a.status, a.Error)
		}
	}
	ask(t, "DELETE", url+"/v1/jobs/a", "")
	ask(t, "PUT", url+"/v1/jobs/a", wish)
	s.run(time.Second)
	if a := ask(t, "DELETE", url+"/v1/jobs/a", "", first.etag); a.status != 412 {
		t.Errorf("at an old revision: %d %s", a.status, a.text)
	}
	now := ask(t, "GET", url+"/v1/jobs/a", "")
	if now.job.State == job.Released {
		t.Error("it was released all the same")
	}
	if a := ask(t, "DELETE", url+"/v1/jobs/a", "", now.etag); a.status != 200 || a.job.State != job.Released || a.etag == now.etag {
		t.Errorf("at its own: %d %s", a.status, a.text)
	}
}

// Goal: lists have the jobs of some labels, page by page, each that stays once, in the
// order of arrival, whatever comes and goes between two pages.
// Method: jobs of two teams, pages of two; one is released and one comes meanwhile.
func TestListsByLabelAndPage(t *testing.T) {
	url, _ := served(t)
	for i, labels := range []string{`{"team":"a","stage":"1"}`, `{"team":"b"}`, `{"team":"a"}`, `{}`, `{"team":"a","stage":"2"}`} {
		if a := ask(t, "PUT", fmt.Sprintf("%s/v1/jobs/j%d", url, i), `{"tp":32,"labels":`+labels+`}`); a.status != 200 {
			t.Fatal(a.text)
		}
	}
	page := func(query string) (names []string, next string) {
		t.Helper()
		var l jobs
		if err := json.Unmarshal([]byte(ask(t, "GET", url+"/v1/jobs"+query, "").text), &l); err != nil {
			t.Fatal(err)
		}
		for _, v := range l.Jobs {
			names = append(names, v.ID)
		}
		return names, l.Continue
	}
	for query, want := range map[string]string{"": "[j0 j1 j2 j3 j4]", "?labels=team": "[j0 j1 j2 j4]", "?labels=team=a": "[j0 j2 j4]", "?labels=team=a,stage": "[j0 j4]",
		"?labels=stage=2,team=a": "[j4]", "?labels=team=": "[]", "?labels=team=a&limit=3": "[j0 j2 j4]", "?owner=x&labels=team": "[]"} {
		if got, next := page(query); fmt.Sprint(got) != want || next != "" {
			t.Errorf("%s: %v, %q, want %s", query, got, next, want)
		}
	}
	got, next := page("?limit=2")
	ask(t, "DELETE", url+"/v1/jobs/j1", "")
	ask(t, "PUT", url+"/v1/jobs/j5", `{"tp":32}`)
	for next != "" {
		var more []string
		more, next = page("?limit=2&continue=" + next)
		got = append(got, more...)
	}
	if fmt.Sprint(got) != "[j0 j1 j2 j3 j4 j5]" {
		t.Errorf("pages of two: %v", got)
	}
}

// Goal: one watch tells what happens to all jobs, each event once, by a number that goes
// on over a start of the planner; who is too far behind, or ahead, is told so.
// Method: two jobs, a watch that stops in between, a planner that is begun anew from its
// store, and a stream.
func TestWatchOfAllResumes(t *testing.T) {
	url, s := served(t)
	var seen []string
	last := uint64(0)
	look := func(want ...string) {
		t.Helper()
		var n tidings
		if err := json.Unmarshal([]byte(ask(t, "GET", fmt.Sprintf("%s/v1/events?wait_ms=0&watch=%d", url, last), "").text), &n); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range n.Events {
			if e.Number != last+1 || e.HandOver != nil {
				t.Errorf("event %d after %d: %+v", e.Number, last, e)
			}
			last = e.Number
			got = append(got, fmt.Sprintf("%s %d %s", e.Job, e.Generation, e.Event))
		}
		if !n.Complete || n.Number != last || !slices.Equal(got, want) {
			t.Errorf("complete %v, number %d: %q, want %q", n.Complete, n.Number, got, want)
		}
		seen = append(seen, got...)
	}
	look()
	ask(t, "PUT", url+"/v1/jobs/b", `{"tp":32}`)
	look("b 1 waiting")
	ask(t, "PUT", url+"/v1/jobs/a", `{"tp":32}`)
	ask(t, "DELETE", url+"/v1/jobs/b", "")
	s.begin(t)
	look("a 1 waiting", "b 2 released")
	ask(t, "DELETE", url+"/v1/jobs/a", "")
	look("a 2 released")
	look()
	var l jobs
	if err := json.Unmarshal([]byte(ask(t, "GET", url+"/v1/jobs", "").text), &l); err != nil || l.Number != last {
		t.Errorf("a list is at %d, the events at %d: %v", l.Number, last, err)
	}
	if a := ask(t, "GET", url+"/v1/events?wait_ms=0&watch=1000", ""); !strings.Contains(a.text, `"complete":false,"number":4`) {
		t.Errorf("who is ahead: %s", a.text)
	}
	r, err := http.NewRequestWithContext(t.Context(), "GET", url+"/v1/events?watch=0", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Last-Event-ID", "2")
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	lines := bufio.NewScanner(got.Body)
	for _, want := range []string{"id: 3", "event: released", "id: 4", "event: released"} {
		for lines.Scan() && !strings.HasPrefix(lines.Text(), want[:4]) {
		}
		if lines.Text() != want {
			t.Errorf("%q, want %q", lines.Text(), want)
		}
	}
}

// Goal: who watches all is told of a node that is drained and of its return, by numbers
// that go on when the planner starts anew. Method: a node says that it is drained and
// that it serves again, between planners of one disk.
func TestNodesAreToldOf(t *testing.T) {
	url, s := served(t)
	says := func(seq uint64, mode proto.Mode) {
		s.mu.Lock()
		defer s.mu.Unlock()
		m := &proto.Reported{Version: proto.Version, Session: 1, Seq: seq, Mode: mode, Bundles: bothDark()}
		payload, err := proto.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		s.host.Deliver(proto.Packet{Kind: proto.Publish, Topic: proto.Topics{Fabric: "f1"}.Reported(0), Payload: payload})
		s.run(time.Second)
	}
	hears := func(after uint64, want string) tidings {
		t.Helper()
		var n tidings
		if err := json.Unmarshal([]byte(ask(t, "GET", fmt.Sprintf("%s/v1/events?wait_ms=0&watch=%d", url, after), "").text), &n); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range n.Events {
			got = append(got, fmt.Sprintf("%d %s of %s", e.Number, e.Event, e.Node))
		}
		if !n.Complete || strings.Join(got, ", ") != want || n.Events == nil {
			t.Fatalf("after %d: %+v, want %s", after, n, want)
		}
		return n
	}
	hears(0, "")
	says(2, proto.ModeDrained)
	hears(0, "1 drained of 0")
	says(3, proto.ModeService)
	hears(1, "2 well of 0")
	says(4, proto.ModeDrained)
	s.begin(t) // the node serves
	hears(0, "1 drained of 0, 2 well of 0, 3 drained of 0, 4 well of 0")
	hears(3, "4 well of 0")
}
