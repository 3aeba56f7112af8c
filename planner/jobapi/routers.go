package jobapi

import (
	"net/http"

	"ringlight/planner/job"
	"ringlight/proto"
)

// routers tells what routers must hold, at once or when there is news.
func (a *API) routers(w http.ResponseWriter, r *http.Request) error {
	if !r.URL.Query().Has("news") {
		return a.showRouters(w, r)
	}
	return a.poll(w, r, "news", func(known uint64) (heard, error) {
		all, err := a.readRouters(r)
		return heard{complete: all.News == known, answer: all}, err
	})
}

func (a *API) readRouters(r *http.Request) (routers, error) {
	return from(r.Context(), a, func(t *job.Table) (routers, error) { return routers{t.News(), t.Routers()}, nil })
}

func (a *API) showRouters(w http.ResponseWriter, r *http.Request) error {
	all, err := a.readRouters(r)
	if err != nil {
		return err
	}
	return write(w, all)
}

// routed takes what somebody read back from a router.
func (a *API) routed(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if err := job.CheckID(id); err != nil {
		return err
	}
	return a.word(w, r, r.PathValue("router")+"/"+id)
}

// said takes what somebody read back from a router of a port.
func (a *API) said(w http.ResponseWriter, r *http.Request) error {
	return a.word(w, r, r.PathValue("router")+"/ports/"+r.PathValue("port"))
}

func (a *API) word(w http.ResponseWriter, r *http.Request, name string) error {
	text, err := body(w, r)
	if err != nil {
		return err
	}
	if _, err := a.source.Ask(r.Context(), proto.OpRequest{Noun: proto.NounRouted, Bundle: -1, Name: name, Text: proto.Part(text), Author: author(r)}); err != nil {
		return err
	}
	return a.showRouters(w, r)
}
