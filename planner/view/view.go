package view

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strconv"
	"time"

	"ringlight/planner"
	"ringlight/proto"
	"ringlight/proto/limit"
)

//go:embed static
var static embed.FS

// Source is the planner that is watched.
type Source interface {
	// Read runs f in the planner's goroutine between two of its steps.
	Read(ctx context.Context, f func(*planner.Planner)) error
	// Ask asks what an operator would.
	Ask(ctx context.Context, q proto.OpRequest) (*proto.OpReply, error)
}

// policy keeps pages to what is served here.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// View serves the pages of one planner.
type View struct {
	source Source
	broker string
	hub    hub
	next   outlook
	trends trends
	asks   chan struct{} // room for questions under way
}

// maxAsks at once leave most of the planner's room to operators. chosen.
const maxAsks = 16

// New makes a view of a planner; broker is where ocsctl finds it.
func New(broker string, s Source) *View {
	return &View{source: s, broker: broker, asks: make(chan struct{}, maxAsks),
		hub: hub{source: s, now: time.Now, viewers: map[chan message]string{}}, next: outlook{source: s, now: time.Now}}
}

// Mount adds the pages to what a server shows.
func (v *View) Mount(mux *http.ServeMux) {
	files, err := fs.Sub(static, "static")
	if err != nil {
		panic("view: " + err.Error()) // it is in the binary
	}
	page := http.FileServerFS(files)
	add := func(pattern string, h http.Handler) {
		mux.Handle("GET "+pattern, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Security-Policy", policy)
			w.Header().Set("Referrer-Policy", "no-referrer")
			w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
			h.ServeHTTP(w, r)
		}))
	}
	add("/{$}", page)
	add("/view/static/", http.StripPrefix("/view/static/", page))
	add("/view/snapshot", http.HandlerFunc(v.snapshot))
	add("/view/stream", http.HandlerFunc(v.stream))
	add("/view/log", http.HandlerFunc(v.log))
	for pattern, get := range map[string]func(*http.Request) (any, error){ // any order
		"/view/fabric": v.about, "/view/status": v.status, "/view/next": v.breaks, "/view/node/{id}": v.node, "/view/ring/{id}": v.ring,
		"/view/why/{node}": v.why, "/view/why/{node}/{bundle}": v.why, "/view/lines": v.lines,
	} {
		add(pattern, answer(get))
	}
}

// answer writes what is found as JSON.
func answer(get func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, err := get(r)
		w.Header().Set("Content-Type", "application/json")
		if err != nil {
			e := map[string]string{"code": "failed", "message": err.Error()}
			status := http.StatusServiceUnavailable
			if wire, ok := errors.AsType[*proto.Error](err); ok {
				e["code"], e["field"], e["limit"] = wire.Code.String(), wire.Field, wire.Limit
				switch wire.Code {
				case proto.NotFound:
					status = http.StatusNotFound
				case proto.Invalid:
					status = http.StatusBadRequest
				}
			}
			w.WriteHeader(status)
			v = map[string]any{"error": e}
		}
		_ = json.NewEncoder(w).Encode(v) // who went away asks again
	}
}

func (v *View) snapshot(w http.ResponseWriter, r *http.Request) {
	raw, edition, err := v.hub.snapshot(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Ringlight-Fabric", edition.String())
	_, _ = w.Write(raw)
}

// quiet is how long a stream may say nothing. chosen: a page whose stream says
// nothing for longer holds the planner for gone.
const quiet = 2 * time.Second

// stream tells what changes from a sequence number on, until the viewer is too
// slow or a number is missing: then event "again" sends him for a snapshot.
func (v *View) stream(w http.ResponseWriter, r *http.Request) {
	from := cmp.Or(r.Header.Get("Last-Event-ID"), r.FormValue("from"))
	seq, err := strconv.ParseUint(from, 10, 64)
	if err != nil {
		http.Error(w, "from: want the sequence number of a snapshot", http.StatusBadRequest)
		return
	}
	frames, err := v.hub.join(r.Context(), seq, limit.Peer(r.RemoteAddr))
	if err != nil {
		w.Header().Set("Retry-After", "5")
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer v.hub.leave(frames)
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	alive := time.Tick(quiet)
	fmt.Fprintf(w, "retry: 1000\nevent: alive\ndata: %d\n\n", seq)
	for {
		if out.Flush() != nil {
			return
		}
		select {
		case m, ok := <-frames:
			if !ok {
				fmt.Fprint(w, "event: again\ndata: 0\n\n")
				_ = out.Flush()
				return
			}
			fmt.Fprintf(w, "id: %d\ndata: %s\n\n", m.seq, m.text)
		case <-alive:
			fmt.Fprint(w, "event: alive\ndata: 0\n\n")
		case <-r.Context().Done():
			return
		}
	}
}
