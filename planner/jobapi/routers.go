package jobapi

import (
	"net/http"
	"time"

	"ringlight/planner"
	"ringlight/planner/job"
	"ringlight/proto"
	"ringlight/proto/limit"
)

// routers tells what routers must hold, at once or when there is news.
func (a *API) routers(w http.ResponseWriter, r *http.Request) error {
	known, err := number(r, "news", 0, proto.MaxCount, 0)
	if err != nil {
		return err
	}
	wait, err := number(r, "wait_ms", 0, maxWait, 30_000)
	if err != nil {
		return err
	}
	if !r.URL.Query().Has("news") {
		return a.showRouters(w, r)
	}
	woken, err := a.hub.join(limit.Peer(r.RemoteAddr))
	if err != nil {
		return err
	}
	defer a.hub.leave(woken)
	late := time.NewTimer(time.Duration(wait) * time.Millisecond)
	defer late.Stop()
	for {
		now := uint64(0)
		if err := a.source.Read(r.Context(), func(p *planner.Planner) { now = planner.JobsOf(p).News() }); err != nil {
			return err
		}
		if now != known {
			return a.showRouters(w, r)
		}
		select {
		case _, ok := <-woken:
			if !ok {
				return a.showRouters(w, r)
			}
		case <-late.C:
			return a.showRouters(w, r)
		case <-r.Context().Done():
			return nil
		}
	}
}

func (a *API) showRouters(w http.ResponseWriter, r *http.Request) error {
	var all routers
	if err := a.source.Read(r.Context(), func(p *planner.Planner) {
		all = routers{planner.JobsOf(p).News(), planner.JobsOf(p).Routers()}
	}); err != nil {
		return err
	}
	return write(w, all)
}

// routed takes what somebody read back from a router.
func (a *API) routed(w http.ResponseWriter, r *http.Request) error {
	text, err := body(w, r)
	if err != nil {
		return err
	}
	id := r.PathValue("id")
	if err := job.CheckID(id); err != nil {
		return err
	}
	if _, err := a.source.Ask(r.Context(), proto.OpRequest{Noun: proto.NounRouted, Bundle: -1, Name: r.PathValue("router") + "/" + id, Text: proto.Part(text), Author: author(r)}); err != nil {
		return err
	}
	return a.showRouters(w, r)
}
