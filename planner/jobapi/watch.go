package jobapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"ringlight/planner"
	"ringlight/planner/job"
	"ringlight/proto"
	"ringlight/proto/limit"
)

const (
	// maxWatch at once, shared fairly among addresses. chosen: each has a connection.
	maxWatch = 1536
	// pollEvery is how often the planner is asked whether something is new, while
	// anybody watches. chosen: the neighbours of a dead node have switched within
	// it, and nobody notices its cost.
	pollEvery = 5 * time.Millisecond
	// quiet is how long a stream may say nothing. chosen: less than proxies wait.
	quiet   = 10 * time.Second
	maxWait = 60_000
)

// hub wakes those who watch when any job has news.
type hub struct {
	source  Source
	mu      sync.Mutex
	waiting map[chan struct{}]string // whose it is, by address
	running bool
}

// join enters a watcher; its channel says that something is new, and is closed when
// another address has its place.
func (h *hub) join(peer string) (chan struct{}, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !limit.Room(h.waiting, maxWatch, peer) {
		return nil, &proto.Error{Code: proto.Busy, Field: "watch", Limit: fmt.Sprintf("%d at once", maxWatch), Reason: "so many watch already"}
	}
	c := make(chan struct{}, 1)
	h.waiting[c] = peer
	if !h.running {
		h.running = true
		go h.run()
	}
	return c, nil
}

func (h *hub) leave(c chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.waiting, c)
}

// run asks whether there is news until nobody watches any more.
func (h *hub) run() {
	last := uint64(0)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for range tick.C {
		h.mu.Lock()
		if len(h.waiting) == 0 {
			h.running = false
			h.mu.Unlock()
			return
		}
		h.mu.Unlock()
		now := uint64(0)
		ended := h.source.Read(context.Background(), func(p *planner.Planner) { now = planner.JobsOf(p).News() }) != nil
		if now == last && !ended {
			continue
		}
		last = now
		h.mu.Lock()
		for c := range h.waiting { // any order: all
			select {
			case c <- struct{}{}:
			default: // it knows already
			}
		}
		if ended {
			h.running = false
			h.mu.Unlock()
			return
		}
		h.mu.Unlock()
	}
}

func (a *API) get(w http.ResponseWriter, r *http.Request) error {
	after, err := number(r, "watch", 0, proto.MaxCount, 0)
	if err != nil {
		return err
	}
	stream := strings.Contains(r.Header.Get("Accept"), "text/event-stream")
	if stream && r.Header.Get("Last-Event-ID") != "" {
		if after, err = strconv.ParseUint(r.Header.Get("Last-Event-ID"), 10, 63); err != nil {
			return &proto.Error{Code: proto.Invalid, Field: "Last-Event-ID", Limit: "the number of an event", Reason: fmt.Sprintf("%.40q", r.Header.Get("Last-Event-ID"))}
		}
	}
	if !stream && !r.URL.Query().Has("watch") {
		return a.show(w, r)
	}
	wait, err := number(r, "wait_ms", 0, maxWait, 30_000)
	if err != nil {
		return err
	}
	woken, err := a.hub.join(limit.Peer(r.RemoteAddr))
	if err != nil {
		return err
	}
	defer a.hub.leave(woken)
	if stream {
		return a.stream(w, r, after, woken)
	}
	late := time.NewTimer(time.Duration(wait) * time.Millisecond)
	defer late.Stop()
	for {
		n, err := a.news(r.Context(), r.PathValue("id"), after)
		if err != nil {
			return err
		}
		if len(n.Events) > 0 || !n.Complete {
			return write(w, n)
		}
		select {
		case _, ok := <-woken:
			if !ok {
				return write(w, n)
			}
		case <-late.C:
			return write(w, n)
		case <-r.Context().Done():
			return nil
		}
	}
}

// news are the events of a job after a number.
func (a *API) news(ctx context.Context, id string, after uint64) (n news, err error) {
	if err := job.CheckID(id); err != nil {
		return n, err
	}
	e := a.source.Read(ctx, func(p *planner.Planner) {
		if n.Events, n.Complete, err = planner.JobsOf(p).Events(id, after); err == nil {
			n.Job, err = planner.JobsOf(p).Get(id)
		}
	})
	if e != nil {
		err = e
	}
	return n, err
}

// stream tells a job's events as they come. Where some are not kept any more,
// "missed" comes first, with the job.
func (a *API) stream(w http.ResponseWriter, r *http.Request, after uint64, woken chan struct{}) error {
	out := http.NewResponseController(w)
	begun := false
	alive := time.NewTicker(quiet)
	defer alive.Stop()
	for {
		n, err := a.news(r.Context(), r.PathValue("id"), after)
		if err != nil {
			if begun {
				return nil // the connection ends; the next request is told why
			}
			return err
		}
		if !begun {
			w.Header().Set("Content-Type", "text/event-stream")
			begun = true
			fmt.Fprint(w, ": events of a job\n\n")
		}
		if !n.Complete {
			data, _ := json.Marshal(n.Job)
			fmt.Fprintf(w, "id: %d\nevent: missed\ndata: %s\n\n", n.Job.Generation, data)
			after, n.Events = n.Job.Generation, nil
		}
		for i := range n.Events {
			e := &n.Events[i]
			data, _ := json.Marshal(e)
			fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", e.Generation, e.Event, data)
			after = e.Generation
		}
		if err := out.Flush(); err != nil {
			return nil // it went away
		}
		select {
		case _, ok := <-woken:
			if !ok {
				return nil // who comes again is told why
			}
		case <-alive.C:
			fmt.Fprint(w, ": quiet\n\n")
		case <-r.Context().Done():
			return nil
		}
	}
}
