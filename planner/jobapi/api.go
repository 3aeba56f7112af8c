package jobapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"ringlight/planner"
	"ringlight/planner/job"
	"ringlight/proto"
)

// Source is the planner that is asked.
type Source interface {
	// Read runs f in the planner's goroutine between two of its steps.
	Read(ctx context.Context, f func(*planner.Planner)) error
	// Ask does what an operator asks for.
	Ask(ctx context.Context, q proto.OpRequest) (*proto.OpReply, error)
}

// API serves the jobs of one planner.
type API struct {
	source Source
	may    func(*http.Request) error // why the client may not act; nil: it may
	hub    hub
	search chan struct{} // of a strategy, or of links for traffic: one at a time
}

// New makes the API of a planner.
func New(s Source, may func(*http.Request) error) *API {
	return &API{source: s, may: may, hub: hub{source: s, waiting: map[chan struct{}]string{}}, search: make(chan struct{}, 1)}
}

// route is one thing that can be asked for.
type route struct {
	method, path, name, short string
	query                     []parameter
	revised                   bool // it may be made conditional on the job's revision
	serve                     func(*API, http.ResponseWriter, *http.Request) error
	body                      any // what is sent, nil: nothing
	answer                    any // what comes back; nil: text
}

type parameter struct{ name, about string }

// ofOwner is asked of whoever changes a job.
var ofOwner = parameter{"owner", "whose job it is: refused where its wish says another; absent: nobody's"}

// jobs is the answer to a list.
type jobs struct {
	Jobs     []*job.View `json:"jobs"`
	Number   uint64      `json:"number"`             // of the last event of any job, to watch from
	Continue string      `json:"continue,omitempty"` // for the next page; absent: this is the last
}

// tidings is the answer of a long poll for nodes and all jobs.
type tidings struct {
	Events   []job.Event `json:"events"`
	Complete bool        `json:"complete"` // false: some before them are not kept any more; the list and the topology have all that counts
	Number   uint64      `json:"number"`   // of the last event there is; where complete is false, watch from it
}

// news is the answer to a long poll.
type news struct {
	Events   []job.Event `json:"events"`
	Complete bool        `json:"complete"` // false: some before them are not kept any more; the job has all that counts
	Job      *job.View   `json:"job"`
}

// routers is the answer about what holds routes.
type routers struct {
	News    uint64       `json:"news"` // counts what has happened to any job
	Routers []job.Router `json:"routers"`
}

// exchange asks for another node in one's place.
type exchange struct {
	Out    job.Name `json:"out"`
	Reason string   `json:"reason,omitempty"`
}

var routes = []route{
	{method: "GET", path: "/v1/jobs", name: "listJobs", short: "every job that is not released, who came first first",
		query: []parameter{{"owner", "those of this owner alone; absent: of all"}, {"labels", "those alone that have all of these: name=value, or a name for any value, with commas between"},
			{"limit", "at most so many, 1 to 1000; absent: all"}, {"continue", "what the page before ended with"}}, serve: (*API).list, answer: jobs{}},
	{method: "PUT", path: "/v1/jobs/{id}", name: "putJob", short: "ask for a job; the same wish under the same name is the same job",
		query: []parameter{{"dry_run", "say what it would get, and reserve nothing"}}, revised: true, serve: (*API).put, body: job.Wish{}, answer: job.View{}},
	{method: "GET", path: "/v1/jobs/{id}", name: "getJob", short: "a job as it stands; with watch, what happens to it after an event, as server-sent events where they are accepted",
		query: []parameter{{"watch", "the number of the last event that is known, 0: none"}, {"wait_ms", "how long to wait for one, at most 60000; absent: 30000"}}, serve: (*API).get, answer: job.View{}},
	{method: "DELETE", path: "/v1/jobs/{id}", name: "releaseJob", short: "give a job's rings and spares back", query: []parameter{ofOwner}, revised: true, serve: (*API).release, answer: job.View{}},
	{method: "POST", path: "/v1/jobs/{id}/replace", name: "replaceNode", short: "drain a node of the job, so that a spare takes its place", query: []parameter{ofOwner}, serve: (*API).replace, body: exchange{}, answer: job.View{}},
	{method: "POST", path: "/v1/jobs/{id}/phase", name: "enterPhase", short: "have the job's links be those of another of its phases, or its rings go to a step of an exchange or back; it is ready again when they have light", query: []parameter{ofOwner}, serve: (*API).phase, body: phase{}, answer: job.View{}},
	{method: "POST", path: "/v1/jobs/{id}/traffic", name: "reportTraffic", short: "say what the job was measured to send; its links move where that relieves the fullest one by a tenth",
		query: []parameter{ofOwner, {"dry_run", "say what it would come to, and move nothing"}}, serve: (*API).traffic, body: job.Traffic{}, answer: follows{}},
	{method: "POST", path: "/v1/jobs/{id}/resumed", name: "resumeJob", short: "say that the job computes again after its last event, restored: what that takes is the price at which rings move, where the fabric has none", query: []parameter{ofOwner}, serve: (*API).resumed, body: resumed{}, answer: job.View{}},
	{method: "GET", path: "/v1/jobs/{id}/files/{name}", name: "getJobFile", short: "a file for the launcher, by the order of the light",
		query: []parameter{{"pp", "rings of one pipeline; absent: 1, of circuits their stages"}, {"cp", "rings or domains that share a sequence; absent: 1"},
			{"hosts", "network of the addresses of GPUs, in files with routes; absent: " + job.DefaultHosts.String()}, {"ports", "and of ports of leaves and spines; absent: " + job.DefaultPorts.String()}, {"generation", "refuse where the job is not at this event any more"}, {"owner", "refuse where the job is another's; absent: whosoever"}}, serve: (*API).file},
	{method: "GET", path: "/v1/events", name: "watchJobs", short: "what happens to any node or job after an event, as server-sent events where they are accepted; who is which rank is with each job's own",
		query: []parameter{{"watch", "the number of the last event that is known, of a list or of an event; absent: 0, none"}, {"wait_ms", "how long to wait for one, at most 60000; absent: 30000"}}, serve: (*API).all, answer: tidings{}},
	{method: "GET", path: "/v1/routers", name: "listRouters", short: "what leaves, spines and servers must hold of the routes of jobs, and are known to hold, and ports that they are asked to drain",
		query: []parameter{{"news", "the number of the last answer that is known: wait for another"}, {"wait_ms", "how long to wait, at most 60000; absent: 30000"}}, serve: (*API).routers, answer: routers{}},
	{method: "PUT", path: "/v1/routers/{router}/jobs/{id}", name: "putRouterJob", short: "say what was read back from a router: the digest of the job's routes, none, or why it does not hold what it must", serve: (*API).routed, body: job.Routed{}, answer: routers{}},
	{method: "PUT", path: "/v1/routers/{router}/ports/{port}", name: "putRouterPort", short: "say what was read back from a router: that no packet uses a port, that they may, or why it does not do what it must", serve: (*API).said, body: job.PortSaid{}, answer: routers{}},
	{method: "GET", path: "/v1/topology", name: "getTopology", short: "every ring and node as they stand: for schedulers",
		query: []parameter{{"format", strings.Join(job.TopologyFormats, ", ") + "; absent: json"}}, serve: (*API).topology, answer: job.Topology{}},
	{method: "GET", path: "/v1/openapi.json", name: "getDescription", short: "this description", serve: (*API).description},
}

const (
	anyPath     = "/v1/"
	fieldMethod = "method"
)

// Mount adds the API to what a server shows.
func (a *API) Mount(mux *http.ServeMux) {
	mux.HandleFunc(anyPath, a.unknown(mux))
	safe := http.NewCrossOriginProtection() // no page of another site acts through a browser
	for _, r := range routes {
		mux.Handle(r.method+" "+r.path, safe.Handler(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			err := r.asks(req)
			if err == nil && r.method != http.MethodGet {
				err = a.may(req)
			}
			if err == nil {
				err = r.serve(a, w, req)
			}
			if err != nil {
				Refuse(w, err)
			}
		})))
	}
}

// asks says which parameter of a request nobody knows: one that was meant for
// dry_run must not reserve.
func (r *route) asks(req *http.Request) error {
	given, err := url.ParseQuery(req.URL.RawQuery)
	if err != nil {
		return &proto.Error{Code: proto.Invalid, Field: "query", Limit: "name=value, with & between", Reason: err.Error()}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.ContainsFunc(r.query, func(p parameter) bool { return p.name == name }) {
			names := make([]string, len(r.query))
			for i, p := range r.query {
				names[i] = p.name
			}
			limit := cmp.Or(strings.Join(names, ", "), "no parameter")
			return &proto.Error{Code: proto.Invalid, Field: proto.Clip(name), Limit: limit, Reason: "not known"}
		}
	}
	return nil
}

// status of an error by its code.
func status(err error) int {
	var wire *proto.Error
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return http.StatusRequestEntityTooLarge
	case !errors.As(err, &wire):
		return http.StatusServiceUnavailable
	}
	switch wire.Field {
	case job.FieldRevision:
		return http.StatusPreconditionFailed
	case fieldMethod:
		return http.StatusMethodNotAllowed
	}
	switch wire.Code {
	case proto.NotFound:
		return http.StatusNotFound
	case proto.Invalid, proto.Malformed, proto.TooLarge: // what no message can carry is no better the next time
		return http.StatusBadRequest
	case proto.Conflict, proto.Duplicate:
		return http.StatusConflict
	case proto.Expired:
		return http.StatusGatewayTimeout
	case proto.Denied:
		return http.StatusForbidden
	}
	return http.StatusServiceUnavailable
}

// Refuse answers with an error in the form of the API.
func Refuse(w http.ResponseWriter, err error) {
	e := map[string]string{"code": "failed", "message": err.Error()}
	if wire, ok := errors.AsType[*proto.Error](err); ok {
		e["code"], e["field"], e["limit"] = wire.Code.String(), wire.Field, wire.Limit
	} else if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		e["code"], e["field"], e["limit"] = proto.Invalid.String(), "body", fmt.Sprintf("at most %d bytes", large.Limit)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status(err))
	_ = json.NewEncoder(w).Encode(map[string]any{"error": e}) // who went away asks again
}

func write(w http.ResponseWriter, v any) error {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // who went away asks again
	return nil
}

// author names the client, by its certificate or by the way it came.
func author(r *http.Request) string {
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		return r.TLS.PeerCertificates[0].Subject.CommonName
	}
	if at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && at.Network() == "unix" {
		return "local socket"
	}
	return "loopback"
}

func body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	return io.ReadAll(http.MaxBytesReader(w, r.Body, job.MaxWish))
}

// decode reads a body of a form into x; without what it must have named, if anything, it is none.
func decode(w http.ResponseWriter, r *http.Request, x any, form string, named func() bool) error {
	text, err := body(w, r)
	if err != nil {
		return err
	}
	if err = proto.DecodeFile(text, x); err == nil && named != nil && !named() {
		err = errors.New("it names none")
	}
	if err != nil {
		return &proto.Error{Code: proto.Invalid, Field: "body", Limit: form, Reason: err.Error()}
	}
	return nil
}

// from reads something of the planner's jobs between two of its steps.
func from[T any](ctx context.Context, a *API, read func(*job.Table) (T, error)) (v T, err error) {
	e := a.source.Read(ctx, func(p *planner.Planner) { v, err = read(p.Jobs) })
	return v, cmp.Or(e, err)
}

// read gives a job as it stands.
func (a *API) read(ctx context.Context, id string) (*job.View, error) {
	if err := job.CheckID(id); err != nil {
		return nil, err
	}
	return from(ctx, a, func(t *job.Table) (*job.View, error) { return t.Get(id) })
}

// act has the planner do what a client asks of a job, and shows the job.
func (a *API) act(w http.ResponseWriter, r *http.Request, q proto.OpRequest) error {
	q.Bundle, q.Author = -1, author(r)
	if _, err := a.source.Ask(r.Context(), q); err != nil {
		return err
	}
	return a.show(w, r)
}

func (a *API) show(w http.ResponseWriter, r *http.Request) error {
	v, err := a.read(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	w.Header().Set("ETag", strconv.Quote(strconv.FormatUint(v.Generation, 10)))
	return write(w, v)
}

// isTrial: what is asked is not meant.
func isTrial(r *http.Request) (bool, error) {
	if v := r.URL.Query().Get("dry_run"); v != "" && v != "1" && v != "true" {
		return false, &proto.Error{Code: proto.Invalid, Field: "dry_run", Limit: "1, true or nothing; absent: it is meant", Reason: fmt.Sprintf("%.40q", v)}
	}
	return r.URL.Query().Has("dry_run"), nil
}

func (a *API) put(w http.ResponseWriter, r *http.Request) error {
	text, err := body(w, r)
	if err != nil {
		return err
	}
	if text, err = a.divide(r.Context(), text); err != nil {
		return err
	}
	id := r.PathValue("id")
	if dry, err := isTrial(r); err != nil {
		return err
	} else if dry {
		t, err := from(r.Context(), a, func(t *job.Table) (job.Trial, error) { return t.Try(id, string(text)) })
		if err != nil {
			return err
		}
		return write(w, t)
	}
	if err := job.CheckID(id); err != nil {
		return err // before it is on its way
	}
	at, err := revision(r)
	if err != nil {
		return err
	}
	return a.act(w, r, proto.OpRequest{Noun: proto.NounSubmit, Name: id, Revision: at, Text: proto.Part(text)})
}

// divide searches a strategy for a wish that names a model, outside of the planner's
// goroutine and one at a time.
func (a *API) divide(ctx context.Context, text []byte) ([]byte, error) {
	if !bytes.Contains(text, []byte(`"model"`)) {
		return text, nil
	}
	var of func([]byte) ([]byte, error)
	if err := a.source.Read(ctx, func(p *planner.Planner) { of = p.Jobs.Divider() }); err != nil {
		return nil, err
	}
	done, err := a.alone(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return of(text)
}

// alone waits until nothing else is searched.
func (a *API) alone(ctx context.Context) (done func(), err error) {
	select {
	case a.search <- struct{}{}:
		return func() { <-a.search }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (a *API) release(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if err := job.CheckID(id); err != nil {
		return err
	}
	at, err := revision(r)
	if err != nil {
		return err
	}
	return a.act(w, r, proto.OpRequest{Noun: proto.NounRelease, Name: id, Revision: at, Text: proto.Part(r.URL.Query().Get("owner"))})
}

func (a *API) replace(w http.ResponseWriter, r *http.Request) error {
	var x exchange
	err := decode(w, r, &x, `{"out": NODE}`, nil)
	if err != nil {
		return err
	}
	id := r.PathValue("id")
	node, err := from(r.Context(), a, func(t *job.Table) (proto.NodeID, error) { return t.Member(id, r.URL.Query().Get("owner"), x.Out) })
	if err != nil {
		return err
	}
	reason := "replaced in job " + id
	if x.Reason != "" {
		reason += ": " + x.Reason
	}
	return a.act(w, r, proto.OpRequest{Noun: proto.NounDrain, Node: node, Reason: proto.Clip(reason)})
}

func (a *API) topology(w http.ResponseWriter, r *http.Request) error {
	var t *job.Topology
	if err := a.source.Read(r.Context(), func(p *planner.Planner) { t = p.Jobs.Topology() }); err != nil {
		return err
	}
	text, kind, err := t.Text(cmp.Or(r.URL.Query().Get("format"), "json"))
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(text) // who went away asks again
	return nil
}

// number reads a parameter of a query.
func number(r *http.Request, name string, least, most, absent uint64) (uint64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return absent, nil
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || n < least || n > most {
		return 0, &proto.Error{Code: proto.Invalid, Field: name, Limit: fmt.Sprintf("%d to %d", least, most), Reason: fmt.Sprintf("%.40q", text)}
	}
	return n, nil
}

func (a *API) file(w http.ResponseWriter, r *http.Request) error {
	pp, err := number(r, "pp", 1, 4096, 0)
	if err != nil {
		return err
	}
	cp, err := number(r, "cp", 1, 4096, 1)
	if err != nil {
		return err
	}
	s := job.Split{PP: int(pp), CP: int(cp)}
	for name, to := range map[string]*netip.Prefix{"hosts": &s.Hosts, "ports": &s.Ports} { // any order: each by itself
		if text := r.URL.Query().Get(name); text != "" {
			if *to, err = netip.ParsePrefix(text); err != nil {
				return &proto.Error{Code: proto.Invalid, Field: name, Limit: "a network such as " + job.DefaultHosts.String(), Reason: fmt.Sprintf("%.40q", text)}
			}
		}
	}
	gen, err := number(r, "generation", 0, proto.MaxCount, 0)
	if err != nil {
		return err
	}
	v, err := a.read(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	if owner := r.URL.Query().Get("owner"); owner != "" {
		if err := v.Wish.OwnedBy(owner, v.ID); err != nil {
			return err
		}
	}
	if gen != 0 && gen != v.Generation {
		return &proto.Error{Code: proto.Conflict, Field: "generation", Limit: strconv.FormatUint(v.Generation, 10), Reason: fmt.Sprintf("job %s is at event %d", v.ID, v.Generation)}
	}
	text, kind, err := v.File(r.PathValue("name"), s)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Ringlight-Generation", strconv.FormatUint(v.Generation, 10))
	if d := v.RoutesDigest(r.PathValue("name")); d != "" {
		w.Header().Set(job.DigestHeader, d)
	}
	_, _ = w.Write(text) // who went away asks again
	return nil
}
