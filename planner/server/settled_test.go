package server

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ringlight/planner"
	"ringlight/planner/job"
	"ringlight/planner/jobapi/client"
)

// slowStore commits what has jobs in it when it is let.
type slowStore struct {
	Store
	held, let chan struct{}
	once      *atomic.Bool
}

func (s slowStore) Commit(records []planner.Record) error {
	for _, r := range records {
		if strings.HasPrefix(r.Key, "wish/") && !s.once.Swap(true) {
			close(s.held)
			<-s.let
		}
	}
	return s.Store.Commit(records)
}

// Goal: nobody reads of a job what is not on disk yet, and other readers do not
// wait for the disk.
// Method: a store whose commit of a job waits; the job is read meanwhile.
func TestJobsAreReadWhenStored(t *testing.T) {
	t.Parallel()
	b := startBroker(t, "127.0.0.1:0")
	startAgents(t, b.URL(), 0)
	op := startOperator(t, b.URL())
	at := make(chan string, 1)
	slow := slowStore{held: make(chan struct{}), let: make(chan struct{}), once: &atomic.Bool{}}
	cfg := testConfig(b.URL(), "unused")
	file := t.TempDir() + "/planner.db"
	cfg.Open = func(context.Context) (Store, error) {
		s, err := openBolt(file)
		slow.Store = s
		return slow, err
	}
	cfg.HTTP, cfg.HTTPReady = "127.0.0.1:0", func(url string) { at <- url }
	inProcess(t, cfg)
	url := <-at
	op.rings("in service", allInService(2))
	ask := func(ctx context.Context, method, path, body string) (status int, err error) {
		r, err := http.NewRequestWithContext(ctx, method, url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0, err
		}
		return got.StatusCode, got.Body.Close()
	}
	asked := make(chan int, 1)
	go func() {
		status, _ := ask(t.Context(), http.MethodPut, "/v1/jobs/a", `{"tp":4}`)
		asked <- status
	}()
	<-slow.held
	early, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if status, err := ask(early, http.MethodGet, "/v1/jobs/a", ""); err == nil {
		t.Errorf("a job that is not stored was read: %d", status)
	}
	if status, err := ask(t.Context(), http.MethodGet, "/healthz", ""); err != nil || status != http.StatusOK {
		t.Errorf("others wait for the disk: %d, %v", status, err)
	}
	close(slow.let)
	if status := <-asked; status != http.StatusOK {
		t.Errorf("asked for: %d", status)
	}
	if status, err := ask(t.Context(), http.MethodGet, "/v1/jobs/a", ""); err != nil || status != http.StatusOK {
		t.Errorf("%d, %v", status, err)
	}
}

// Goal: what a planner before this one left of a job is not told as what is so: who asks
// waits until the light is known. Method: a job is ready; its planner is begun anew where
// no agent is, and asked before and after they are.
func TestJobsAreReadWhenHeard(t *testing.T) {
	t.Parallel()
	at := make(chan string, 1)
	begin := func(state string) (b *Broker, url string, stop func() error) {
		b = startBroker(t, "127.0.0.1:0")
		cfg := testConfig(b.URL(), state)
		cfg.HTTP, cfg.HTTPReady = "127.0.0.1:0", func(url string) { at <- url }
		stop = inProcess(t, cfg)
		return b, "http://" + strings.TrimPrefix(<-at, "http://"), stop
	}
	ask := func(ctx context.Context, url string) (v job.View, err error) {
		c, err := client.New(client.Config{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Get(ctx, "a")
		if err == nil {
			v = *got
		}
		return v, err
	}
	state := t.TempDir() + "/planner.db"
	b, url, stop := begin(state)
	startAgents(t, b.URL(), 0)
	c, err := client.New(client.Config{URL: url, Retry: patience})
	if err == nil {
		_, err = c.Put(t.Context(), "a", &job.Wish{TP: 4, Rings: 1})
	}
	if err == nil {
		err = c.Follow(t.Context(), "a", 0, func(e *job.Event) bool { return e.Event != string(job.Ready) })
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	b, url, _ = begin(state)
	early, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if v, err := ask(early, url); err == nil {
		t.Errorf("nobody was heard, and the job is told: %+v", v)
	}
	startAgents(t, b.URL(), 0)
	if v, err := ask(t.Context(), url); err != nil || v.State == job.Ready && v.GPUsTotal != 4 {
		t.Errorf("%+v, %v", v, err)
	}
}
