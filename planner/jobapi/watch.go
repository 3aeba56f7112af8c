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
	for range time.Tick(pollEvery) {
		h.mu.Lock()
		if len(h.waiting) == 0 {
			h.running = false
			h.mu.Unlock()
			return
		}
		h.mu.Unlock()
		now := uint64(0)
		ended := h.source.Read(context.Background(), func(p *planner.Planner) { now = p.Jobs.News() }) != nil
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
	if !streams(r) && !r.URL.Query().Has("watch") {
		return a.show(w, r)
	}
	id := r.PathValue("id")
	if err := job.CheckID(id); err != nil {
		return err
	}
	return a.poll(w, r, "watch", func(after uint64) (u heard, err error) {
		n, err := from(r.Context(), a, func(t *job.Table) (n news, err error) {
			if n.Events, n.Complete, err = t.Events(id, after); err == nil {
				n.Job, err = t.Get(id)
			}
			return n, err
		})
		if err != nil {
			return u, err
		}
		return heard{events: n.Events, complete: n.Complete, answer: n, whole: n.Job, last: n.Job.Generation, number: func(e *job.Event) uint64 { return e.Generation }}, nil
	})
}

// all tells what happens to any node or job.
func (a *API) all(w http.ResponseWriter, r *http.Request) error {
	return a.poll(w, r, "watch", func(after uint64) (heard, error) {
		var n tidings
		err := a.source.Read(r.Context(), func(p *planner.Planner) { n.Events, n.Number, n.Complete = p.Jobs.Told(after) })
		whole := map[string]uint64{"number": n.Number}
		return heard{events: n.Events, complete: n.Complete, answer: n, whole: whole, last: n.Number, number: func(e *job.Event) uint64 { return e.Number }}, err
	})
}

// heard is what has happened after an event.
type heard struct {
	events   []job.Event
	complete bool
	answer   any // to a long poll
	whole    any // for a stream that has missed some, which goes on after last
	last     uint64
	number   func(*job.Event) uint64 // that a stream counts by
}

func streams(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/event-stream")
}

// poll answers with what is new after the number of a parameter as soon as something is;
// a watch may be a stream.
func (a *API) poll(w http.ResponseWriter, r *http.Request, parameter string, news func(after uint64) (heard, error)) error {
	after, err := number(r, parameter, 0, proto.MaxCount, 0)
	if err != nil {
		return err
	}
	stream := streams(r) && parameter == "watch"
	if id := r.Header.Get("Last-Event-ID"); stream && id != "" {
		if after, err = strconv.ParseUint(id, 10, 63); err != nil {
			return &proto.Error{Code: proto.Invalid, Field: "Last-Event-ID", Limit: "the number of an event", Reason: fmt.Sprintf("%.40q", id)}
		}
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
		return a.stream(w, r, after, woken, news)
	}
	late := time.After(time.Duration(wait) * time.Millisecond)
	for {
		u, err := news(after)
		if err != nil {
			return err
		}
		if len(u.events) > 0 || !u.complete {
			return write(w, u.answer)
		}
		select {
		case _, ok := <-woken:
			if !ok {
				return write(w, u.answer)
			}
		case <-late:
			return write(w, u.answer)
		case <-r.Context().Done():
			return nil
		}
	}
}

// stream tells events as they come. Where some are not kept any more, "missed" comes
// first, with the job or the number to go on from.
func (a *API) stream(w http.ResponseWriter, r *http.Request, after uint64, woken chan struct{}, news func(after uint64) (heard, error)) error {
	out := http.NewResponseController(w)
	begun := false
	alive := time.Tick(quiet)
	for {
		u, err := news(after)
		if err != nil {
			if begun {
				return nil // the connection ends; the next request is told why
			}
			return err
		}
		if !begun {
			w.Header().Set("Content-Type", "text/event-stream")
			begun = true
			fmt.Fprint(w, ": events\n\n")
		}
		if !u.complete {
			data, _ := json.Marshal(u.whole)
			fmt.Fprintf(w, "id: %d\nevent: missed\ndata: %s\n\n", u.last, data)
			after, u.events = u.last, nil
		}
		for i := range u.events {
			e := &u.events[i]
			data, _ := json.Marshal(e)
			after = u.number(e)
			fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", after, e.Event, data)
		}
		if err := out.Flush(); err != nil {
			return nil // it went away
		}
		if len(u.events) > 0 && after < u.last {
			continue // there are more
		}
		select {
		case _, ok := <-woken:
			if !ok {
				return nil // who comes again is told why
			}
		case <-alive:
			fmt.Fprint(w, ": quiet\n\n")
		case <-r.Context().Done():
			return nil
		}
	}
}
