package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ringlight/proto"
	"ringlight/proto/guard"
	"ringlight/proto/pki"
)

// visitor is who asks over HTTPS, on one connection while that lasts.
type visitor struct {
	name     string
	own      *tls.Certificate
	all, act bool // he reads all; changes jobs
	health   bool // he reads whether the planner is there
	revoked  bool
	client   *http.Client
}

// httpRoutes are what the planner serves.
var httpRoutes = []struct {
	method, path, body string
	health, acts       bool
}{
	{"GET", "/healthz", "", true, false}, {"GET", "/readyz", "", true, false}, {"GET", "/leader", "", true, false},
	{"GET", "/metrics", "", false, false}, {"GET", "/metrics/nodes", "", false, false},
	{"GET", "/", "", false, false}, {"GET", "/view/static/view.css", "", false, false}, {"GET", "/view/snapshot", "", false, false},
	{"GET", "/view/stream?from=0", "", false, false}, {"GET", "/view/log", "", false, false}, {"GET", "/view/fabric", "", false, false},
	{"GET", "/view/status", "", false, false}, {"GET", "/view/next", "", false, false}, {"GET", "/view/node/0", "", false, false},
	{"GET", "/view/ring/x", "", false, false}, {"GET", "/view/why/0", "", false, false}, {"GET", "/view/why/0/1", "", false, false}, {"GET", "/view/lines", "", false, false},
	{"GET", "/v1/jobs", "", false, false}, {"GET", "/v1/jobs/j", "", false, false}, {"GET", "/v1/jobs/j?watch=0&wait_ms=1", "", false, false},
	{"GET", "/v1/jobs/j/files/ranks", "", false, false}, {"GET", "/v1/topology", "", false, false}, {"GET", "/v1/openapi.json", "", false, false},
	{"PUT", "/v1/jobs/k?dry_run", `{"tp":16}`, false, true}, {"PUT", "/v1/jobs/k", `{"tp":16}`, false, true}, {"DELETE", "/v1/jobs/k", "", false, true}, {"POST", "/v1/jobs/j/replace", `{"out":0}`, false, true},
}

// ask gives a status, and whether the connection was there already.
func (v *visitor) ask(ctx context.Context, method, url, body string, watch bool) (got *http.Response, reused bool, err error) {
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) { reused = c.Reused }})
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, false, err
	}
	if watch {
		r.Header.Set("Accept", "text/event-stream")
	}
	got, err = v.client.Do(r)
	return got, reused, err
}

// status asks once, and reads what comes.
func (v *visitor) status(t *testing.T, method, url, body string) (status int, reused bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	got, reused, err := v.ask(ctx, method, url, body, false)
	if err != nil {
		t.Fatalf("%s: %s %s: %v", v.name, method, url, err)
	}
	if !strings.Contains(url, "/view/stream") {
		_, _ = io.Copy(io.Discard, got.Body) // the connection is used again
	}
	got.Body.Close()
	return got.StatusCode, reused
}

// Goal: over HTTPS each kind of key reads and does what its row of docs/security.md says,
// and nothing from its revocation on: not on a new connection, not on one that is open, and
// what it watches ends. Method: a planner that enforces seals; every kind on every route,
// before and after an edition that revokes all of them but one.
func TestKeysOverHTTP(t *testing.T) {
	t.Parallel()
	r := layRack(t, 2)
	r.http = "0.0.0.0:0" // beyond loopback, so by TLS
	issue := func(name string, role proto.Role) *tls.Certificate {
		h, err := proto.ParseHolder(name)
		r.must(err)
		list, err := r.folder.Issue(pki.Request{Names: []proto.Holder{h}, Role: role, Days: 30})
		r.must(err)
		c, err := tls.LoadX509KeyPair(list[0].CertFile, list[0].KeyFile)
		r.must(err)
		return &c
	}
	visitors := []*visitor{
		{name: "f1/op/stays", own: issue("f1/op/stays", proto.RoleView), all: true, health: true},
		{name: "f1/op/viewer", own: issue("f1/op/viewer", proto.RoleView), all: true, health: true, revoked: true},
		{name: "f1/op/operator", own: issue("f1/op/operator", proto.RoleOperate), all: true, health: true, revoked: true},
		{name: "f1/op/admin", own: issue("f1/op/admin", proto.RoleAdmin), all: true, health: true, act: true, revoked: true},
		{name: "f1/planner/b", own: issue("f1/planner/b", proto.RolePlanner), all: true, health: true, revoked: true},
		{name: "f1/n/7", own: issue("f1/n/7", proto.RoleNode), health: true, revoked: true},
	}
	one, err := r.folder.Broker(pki.Request{Days: 30, Hosts: []string{"b.example"}}, "b")
	r.must(err)
	load := func(certFile, keyFile string) *tls.Certificate {
		c, err := tls.LoadX509KeyPair(certFile, keyFile)
		r.must(err)
		return &c
	}
	token := r.node(1, "none").token
	visitors = append(visitors, &visitor{name: "f1/broker/b", own: load(one.CertFile, one.KeyFile)}, &visitor{name: "f1/enrol/1", own: load(token, token)})
	r.start("127.0.0.1:0")
	agent := r.node(1, "n1") // without one the planner waits
	r.must(agent.enrol(t.Context(), nil))
	agent.serve()
	vouched := r.node(0, "n0")
	r.must(vouched.enrol(t.Context(), nil))
	pair, ca, _ := guard.IdentityFiles(vouched.state)
	visitors = append(visitors, &visitor{name: "f1/n/0", own: load(pair, pair), health: true, revoked: true})

	url := "https://127.0.0.1" + r.http[strings.LastIndex(r.http, ":"):]
	pem, err := os.ReadFile(ca)
	r.must(err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	for _, v := range visitors {
		own := &http.Transport{MaxConnsPerHost: 1, TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{*v.own}}}
		v.client = &http.Client{Transport: own}
		defer own.CloseIdleConnections()
	}
	r.wait("a job", func() bool { // while the planner looks round, it takes none
		got, _ := visitors[3].status(t, "PUT", url+"/v1/jobs/j", `{"tp":16}`)
		return got == 200
	})
	sweep := func(v *visitor, revoked bool) {
		for _, route := range httpRoutes {
			may := !revoked && (v.all && (!route.acts || v.act) || v.health && route.health)
			if got, _ := v.status(t, route.method, url+route.path, route.body); (got != 403) != may || got == 404 || got == 405 {
				t.Errorf("%s (revoked %v): %s %s: %d, want let %v", v.name, revoked, route.method, route.path, got, may)
			}
		}
		if v.health && !revoked { // it has an open connection from here on
			v.status(t, "GET", url+"/healthz", "")
		}
	}
	watched := map[string]chan struct{}{}
	watch := func(v *visitor, path string) {
		other := *v
		own := v.client.Transport.(*http.Transport).Clone()
		other.client = &http.Client{Transport: own}
		t.Cleanup(own.CloseIdleConnections)
		got, _, err := other.ask(t.Context(), "GET", url+path, "", true)
		if err != nil || got.StatusCode != 200 {
			t.Fatal(v.name, path, got, err)
		}
		ends := make(chan struct{})
		watched[v.name+path] = ends
		go func() {
			defer close(ends)
			_, _ = io.Copy(io.Discard, got.Body) // to its end
			got.Body.Close()
		}()
	}
	for _, v := range visitors {
		sweep(v, false)
	}
	watch(visitors[0], "/v1/jobs/j?watch=0")
	watch(visitors[1], "/v1/jobs/j?watch=0")

	for _, v := range visitors {
		if v.revoked {
			_, err := r.folder.Revoke(v.name, "")
			r.must(err)
		}
	}
	r.wait("the edition to hold", func() bool {
		fresh := *visitors[1]
		own := fresh.client.Transport.(*http.Transport).Clone()
		fresh.client = &http.Client{Transport: own}
		defer own.CloseIdleConnections()
		status, reused := fresh.status(t, "GET", url+"/healthz", "")
		return status == 403 && !reused
	})
	for _, v := range visitors {
		if v.health {
			if got, reused := v.status(t, "GET", url+"/healthz", ""); !reused || (got == 403) != v.revoked {
				t.Errorf("%s, on a connection that is open (%v): %d", v.name, reused, got)
			}
		}
		sweep(v, v.revoked)
	}
	select {
	case <-watched["f1/op/viewer/v1/jobs/j?watch=0"]:
	case <-time.After(20 * time.Second):
		t.Error("who is revoked goes on watching")
	}
	select {
	case <-watched["f1/op/stays/v1/jobs/j?watch=0"]:
		t.Error("who is not revoked watches no more")
	default:
	}
}

// Goal: where no document is looked at names alone say what a machine reads; where one is,
// in warn too, it has to name the key, by the file as it is now, whether the broker is there
// or not. Method: names of every kind, in every mode; a revocation that no message tells of.
func TestWhoReadsOverHTTP(t *testing.T) {
	folder, err := pki.Init(filepath.Join(t.TempDir(), "pki"), "f1", "cluster.example")
	if err != nil {
		t.Fatal(err)
	}
	n := &named{t: t, folder: folder, keys: map[string]pki.Issued{}}
	n.issue(folder, proto.RolePlanner, "f1/planner/a")
	n.issue(folder, proto.RoleView, "f1/op/alice")
	n.issue(folder, proto.RoleNode, "f1/n/7")
	_, trust := folder.Files()
	reads := func(s *server, name, path string) bool {
		leaf := &x509.Certificate{}
		leaf.Subject.CommonName = name
		if k, ok := n.keys[name]; ok {
			leaf = certificateIn(t, k.CertFile)
		}
		r, _ := http.NewRequest("GET", "https://127.0.0.1"+path, nil)
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}}
		return s.maySee(r) == nil
	}
	guarded := func() *server {
		g, err := guard.New(guard.Config{Mode: guard.Warn, Fabric: "f1", Role: proto.RolePlanner, KeyFile: n.keys["f1/planner/a"].KeyFile, TrustFile: trust})
		if err != nil {
			t.Fatal(err)
		}
		return &server{guard: g}
	}
	for mode, s := range map[guard.Mode]*server{guard.Off: {}, guard.Warn: guarded()} { // any order
		off := mode == guard.Off
		for name, may := range map[string][2]bool{ // any order; health, all
			"f1/op/alice": {true, true}, "f1/planner/a": {true, true}, "f1/n/7": {true, false},
			"f1/op/bob": {off, off}, "f1/planner/b": {off, off}, "f1/n/8": {off, false}, "f1/broker/b": {false, false}, "f1/enrol/7": {false, false}, "prometheus": {off, off},
		} {
			for i, path := range []string{"/healthz", "/v1/jobs"} {
				if got := reads(s, name, path); got != may[i] {
					t.Errorf("%s: %s reads %s: %v", mode, name, path, got)
				}
			}
		}
	}
	s := guarded()
	if _, err := folder.Revoke("f1/op/alice", ""); err != nil {
		t.Fatal(err)
	}
	if reads(s, "f1/op/alice", "/v1/jobs") {
		t.Error("the file has revoked her")
	}
}
