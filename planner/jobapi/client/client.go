package client

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"ringlight/planner/job"
	"ringlight/proto"
	"ringlight/proto/cert"
)

// Config says where a planner is.
type Config struct {
	URL      string // http://host:port, https://host:port or unix:PATH; several copies with commas
	CAFile   string // PEM files, with https
	CertFile string
	KeyFile  string
	// Retry is how long a planner may be away; 0: not at all.
	Retry time.Duration
	// Waits tells what is waited for; nil: nobody.
	Waits func(why string)
}

// Client of one planner, or of its copies.
type Client struct {
	cfg    Config
	copies []place
	now    *atomic.Uint64 // the copy that was there last, counted on
	// owner of the jobs that are asked for, listed, changed and released; "": nobody,
	// and lists have those of all.
	owner string
}

// place is where one copy serves.
type place struct {
	base string
	http http.Client
}

// As is the same client for the jobs of an owner.
func (c *Client) As(owner string) *Client {
	as := *c
	as.owner = owner
	return &as
}

// mine adds the owner to an address.
func (c *Client) mine(path string) string {
	if c.owner == "" {
		return path
	}
	return path + "?" + url.Values{"owner": {c.owner}}.Encode()
}

const unixPrefix = "unix:"

// answerTime is how long a planner that is there may take to be reached, and to
// begin an answer: one that stands still, or whose host is gone, is away. chosen: it
// answers in milliseconds, and a stream of events begins at once. Shorter in a test.
var answerTime = 10 * time.Second

// New makes a client. The error is a *proto.Error.
func New(cfg Config) (*Client, error) {
	c := &Client{cfg: cfg, now: new(atomic.Uint64)}
	for to := range strings.SplitSeq(cfg.URL, ",") {
		p, err := cfg.place(strings.TrimSpace(to))
		if err != nil {
			return nil, err
		}
		c.copies = append(c.copies, p)
	}
	return c, nil
}

func (cfg *Config) place(to string) (place, error) {
	refuse := func(reason string) (place, error) {
		return place{}, &proto.Error{Code: proto.Invalid, Field: "http", Limit: "http://host:port, https://host:port or unix:PATH", Reason: reason}
	}
	dial := net.Dialer{Timeout: answerTime}
	t := &http.Transport{MaxIdleConns: 4, IdleConnTimeout: 30 * time.Second, ResponseHeaderTimeout: answerTime, DialContext: dial.DialContext}
	if path, unix := strings.CutPrefix(to, unixPrefix); unix {
		if path == "" {
			return refuse("no path")
		}
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dial.DialContext(ctx, "unix", path)
		}
		return place{"http://planner", http.Client{Transport: t}}, nil
	}
	u, err := url.Parse(to)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return refuse(fmt.Sprintf("%.80q", to))
	}
	if u.Scheme == "https" {
		if t.TLSClientConfig, err = cert.Client(u.Hostname(), cfg.CAFile, cfg.CertFile, cfg.KeyFile); err != nil {
			return place{}, err
		}
	}
	return place{strings.TrimRight(to, "/"), http.Client{Transport: t}}, nil
}

// refusal is how the API says no.
type refusal struct {
	Error struct{ Code, Field, Limit, Message string }
}

// do asks each copy once, or as long as the planner may be away. A copy that does not
// answer, or does not lead, is passed over until the others were asked. What is said is
// sent as JSON; nil: nothing.
func (c *Client) do(ctx context.Context, method, path string, what any, header map[string]string) (*http.Response, error) {
	var body []byte
	if what != nil {
		var err error
		if body, err = json.Marshal(what); err != nil {
			return nil, err
		}
	}
	end := time.Now().Add(c.cfg.Retry)
	for asked := 1; ; asked++ {
		at := c.now.Load()
		to := &c.copies[at%uint64(len(c.copies))]
		r, err := http.NewRequestWithContext(ctx, method, to.base+path, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		for k, v := range header { // any order
			r.Header.Set(k, v)
		}
		got, err := to.http.Do(r)
		if err == nil && got.StatusCode == http.StatusOK {
			return got, nil
		}
		away := err
		if err == nil {
			text, _ := io.ReadAll(io.LimitReader(got.Body, 64<<10))
			got.Body.Close()
			var no refusal
			if json.Unmarshal(text, &no) != nil || no.Error.Message == "" {
				return nil, fmt.Errorf("%s %s: %s", method, path, got.Status)
			}
			away = &proto.Error{Code: codeOf(got.StatusCode, no.Error.Code), Field: no.Error.Field, Limit: no.Error.Limit, Reason: reason(no)}
			if got.StatusCode != http.StatusServiceUnavailable {
				return nil, away
			}
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		c.now.CompareAndSwap(at, at+1)
		if asked%len(c.copies) != 0 {
			continue
		}
		if !time.Now().Before(end) {
			if errors.As(away, new(*proto.Error)) {
				return nil, away
			}
			return nil, &proto.Error{Code: proto.Expired, Field: "http", Limit: "a planner that serves it; see ocs-planner run -http", Reason: away.Error()}
		}
		if c.cfg.Waits != nil {
			c.cfg.Waits("a planner at " + c.cfg.URL + ": " + away.Error())
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// reason is what the message says beside code, field and limit.
func reason(no refusal) string {
	if no.Error.Field == "" {
		return no.Error.Message
	}
	_, after, ok := strings.Cut(no.Error.Message, no.Error.Field+": ")
	if !ok {
		return no.Error.Message
	}
	if i := strings.LastIndex(after, " (limit: "); i >= 0 {
		after = after[:i]
	}
	return after
}

func codeOf(status int, name string) proto.Code {
	switch {
	case status == http.StatusNotFound:
		return proto.NotFound
	case status == http.StatusConflict:
		return proto.Conflict
	case status == http.StatusServiceUnavailable && name == proto.Busy.String():
		return proto.Busy
	case status == http.StatusServiceUnavailable, status == http.StatusGatewayTimeout:
		return proto.Expired
	case status == http.StatusForbidden:
		return proto.Denied
	}
	return proto.Invalid
}

// take asks and reads the answer.
func (c *Client) take(ctx context.Context, method, path string, what, answer any) error {
	got, err := c.do(ctx, method, path, what, map[string]string{"Content-Type": "application/json"})
	if err != nil {
		return err
	}
	defer got.Body.Close()
	return json.NewDecoder(got.Body).Decode(answer)
}

func (c *Client) view(ctx context.Context, method, path string, what any) (*job.View, error) {
	var v job.View
	if err := c.take(ctx, method, path, what, &v); err != nil {
		return nil, err
	}
	return &v, nil
}

func of(id string) string { return "/v1/jobs/" + url.PathEscape(id) }

// Put asks for a job.
func (c *Client) Put(ctx context.Context, id string, w *job.Wish) (*job.View, error) {
	owned := *w
	owned.Owner = cmp.Or(w.Owner, c.owner)
	return c.view(ctx, http.MethodPut, of(id), &owned)
}

// Try says what a wish would get now.
func (c *Client) Try(ctx context.Context, id string, w *job.Wish) (t job.Trial, err error) {
	err = c.take(ctx, http.MethodPut, of(id)+"?dry_run", w, &t)
	return t, err
}

// Get is a job as it stands.
func (c *Client) Get(ctx context.Context, id string) (*job.View, error) {
	return c.view(ctx, http.MethodGet, of(id), nil)
}

// Release gives a job back.
func (c *Client) Release(ctx context.Context, id string) (*job.View, error) {
	return c.view(ctx, http.MethodDelete, c.mine(of(id)), nil)
}

// ReleaseAt gives a job back that is at a revision still, the generation of its view.
func (c *Client) ReleaseAt(ctx context.Context, id string, revision uint64) error {
	got, err := c.do(ctx, http.MethodDelete, c.mine(of(id)), nil, map[string]string{job.FieldRevision: strconv.Quote(strconv.FormatUint(revision, 10))})
	if err == nil {
		err = got.Body.Close()
	}
	return err
}

// Replace has a node of a job drained, so that a spare takes its place.
func (c *Client) Replace(ctx context.Context, id, out, reason string) (*job.View, error) {
	return c.view(ctx, http.MethodPost, c.mine(of(id)+"/replace"), map[string]string{"out": out, "reason": reason})
}

// Phase has a job's links be those of another of its phases.
func (c *Client) Phase(ctx context.Context, id, phase string) (*job.View, error) {
	return c.view(ctx, http.MethodPost, c.mine(of(id)+"/phase"), map[string]string{"phase": phase})
}

// Traffic says what a job was measured to send, as its topology has it, and gets what that
// comes to.
func (c *Client) Traffic(ctx context.Context, id string, measured any, dry bool) (now, then uint64, moves bool, err error) {
	var got struct {
		Moves bool
		Now   uint64 `json:"fullest_link_bytes"`
		Then  uint64 `json:"fullest_link_then_bytes"`
	}
	path := c.mine(of(id) + "/traffic")
	if dry {
		path += map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")] + "dry_run"
	}
	err = c.take(ctx, http.MethodPost, path, measured, &got)
	return got.Now, got.Then, got.Moves, err
}

// List are the jobs that are not released.
func (c *Client) List(ctx context.Context) ([]*job.View, error) {
	var all struct{ Jobs []*job.View }
	err := c.take(ctx, http.MethodGet, c.mine("/v1/jobs"), nil, &all)
	return all.Jobs, err
}

// Topology is how the fabric stands.
func (c *Client) Topology(ctx context.Context) (*job.Topology, error) {
	var t job.Topology
	if err := c.take(ctx, http.MethodGet, "/v1/topology", nil, &t); err != nil {
		return nil, err
	}
	return &t, nil
}

// Routes are those of a job on one router, in a dialect, and their digest.
func (c *Client) Routes(ctx context.Context, id, router, dialect string, s job.Split) (text []byte, digest string, err error) {
	q := url.Values{"hosts": {s.Hosts.String()}, "ports": {s.Ports.String()}}
	text, of, err := c.file(ctx, id, "routes_"+router+"."+dialect, q)
	return text, of.Get(job.DigestHeader), err
}

// Routers is what routers must hold of the routes of jobs; with news what there is
// beyond an answer of that number, or after a time.
func (c *Client) Routers(ctx context.Context, news uint64, wait time.Duration) (uint64, []job.Router, error) {
	path := "/v1/routers"
	if wait > 0 {
		path += fmt.Sprintf("?news=%d&wait_ms=%d", news, wait.Milliseconds())
	}
	var all struct {
		News    uint64
		Routers []job.Router
	}
	err := c.take(ctx, http.MethodGet, path, nil, &all)
	return all.News, all.Routers, err
}

// Routed says what was read back from a router of a job.
func (c *Client) Routed(ctx context.Context, router, id string, got job.Routed) error {
	return c.word(ctx, router, "/jobs/"+url.PathEscape(id), got)
}

// Said says what was read back from a router of a port.
func (c *Client) Said(ctx context.Context, router, port string, got job.PortSaid) error {
	return c.word(ctx, router, "/ports/"+url.PathEscape(port), got)
}

func (c *Client) word(ctx context.Context, router, of string, got any) error {
	r, err := c.do(ctx, http.MethodPut, "/v1/routers/"+url.PathEscape(router)+of, got, map[string]string{"Content-Type": "application/json"})
	if err != nil {
		return err
	}
	return r.Body.Close()
}

// File is a file of a job, at a generation of it; 0: as it is.
func (c *Client) File(ctx context.Context, id, name string, s job.Split, generation uint64) ([]byte, error) {
	q := url.Values{"generation": {strconv.FormatUint(generation, 10)}}
	for name, n := range map[string]int{"pp": s.PP, "cp": s.CP} { // any order: sorted when they are written
		if n != 0 {
			q.Set(name, strconv.Itoa(n))
		}
	}
	for name, p := range map[string]netip.Prefix{"hosts": s.Hosts, "ports": s.Ports} { // any order, as before
		if p.IsValid() {
			q.Set(name, p.String())
		}
	}
	text, _, err := c.file(ctx, id, name, q)
	return text, err
}

func (c *Client) file(ctx context.Context, id, name string, q url.Values) ([]byte, http.Header, error) {
	got, err := c.do(ctx, http.MethodGet, of(id)+"/files/"+url.PathEscape(name)+"?"+q.Encode(), nil, nil)
	if err != nil {
		return nil, nil, err
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	return text, got.Header, err
}

// Follow calls f for each event of a job after a number, once and in order,
// until f says that it is enough. A planner that starts anew is waited for.
func (c *Client) Follow(ctx context.Context, id string, after uint64, f func(*job.Event) (more bool)) error {
	for {
		got, err := c.do(ctx, http.MethodGet, of(id)+"?watch="+strconv.FormatUint(after, 10), nil, map[string]string{"Accept": "text/event-stream"})
		if err != nil {
			return err
		}
		more, err := c.stream(got.Body, &after, f)
		got.Body.Close()
		if !more || err != nil {
			return err
		}
	}
}

// stream reads events to their end.
func (c *Client) stream(body io.Reader, after *uint64, f func(*job.Event) bool) (more bool, err error) {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 16<<20)
	kind := ""
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), ": ")
		switch key {
		case "event":
			kind = value
		case "data":
			if kind == "missed" {
				return false, errors.New("more has happened to the job than is kept: see the job itself")
			}
			var e job.Event
			if err := json.Unmarshal([]byte(value), &e); err != nil {
				return false, err
			}
			if e.Generation <= *after {
				continue
			}
			*after = e.Generation
			if !f(&e) {
				return false, nil
			}
		}
	}
	return true, nil // the planner went away
}
