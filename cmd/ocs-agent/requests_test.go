package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ringlight/proto"
	"ringlight/proto/cert"
	"ringlight/proto/pki"
)

// Goal: beyond this machine RESTCONF is served over TLS to operators alone: whoever shows no
// certificate, one of another root, or a node's, moves nothing; with a trust document a viewer
// reads and an operator changes.
func TestRequestsAreServedToOperators(t *testing.T) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	ours, err := pki.Init(filepath.Join(dir, "pki"), "f1", "cluster.example")
	must(err)
	theirs, err := pki.Init(filepath.Join(dir, "other"), "f1", "cluster.example")
	must(err)
	issue := func(f *pki.Folder, name string, role proto.Role) pki.Issued {
		t.Helper()
		h, err := proto.ParseHolder(name)
		must(err)
		list, err := f.Issue(pki.Request{Names: []proto.Holder{h}, Role: role, Days: 1, Hosts: []string{"127.0.0.1"}})
		must(err)
		return list[0]
	}
	self := issue(ours, "f1/n/900002", 0)
	who := map[string]pki.Issued{"node": issue(ours, "f1/n/7", 0), "stranger": issue(theirs, "f1/op/eve", proto.RoleAdmin),
		"viewer": issue(ours, "f1/op/bob", proto.RoleView), "operator": issue(ours, "f1/op/ann", proto.RoleOperate)}
	ca, trust := ours.Files()
	_, port, _ := net.SplitHostPort(freeTCP(t))
	cfg, err := readConfig(write(t, "agent.json", fmt.Sprintf(`{"fabric":"f1","node":2,"broker":"","ca":%q,"cert":%q,"key":%q,"seal":"warn","trust":%q,"state":%q,"log_level":"error",
		"restconf":"0.0.0.0:%s","board":{"kind":"sim","ports":8}}`, ca, self.CertFile, self.KeyFile, trust, filepath.Join(dir, "state"), port)))
	must(err)
	must(cfg.Validate())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- cfg.run(ctx, "", cfg.logger().Logger, startedAs("")) }()
	defer func() { stop(); must(<-ended) }()

	ask := func(name, method string) string {
		i := who[name]
		to, err := cert.Client("127.0.0.1", ca, i.CertFile, i.KeyFile)
		must(err)
		c := http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{TLSClientConfig: to}}
		defer c.CloseIdleConnections()
		body := `{"sonic-ocs:OCS_PORT_LIST":[{"simplex_port_id":"1A","label":"` + name + `"}]}`
		r, err := http.NewRequest(method, "https://127.0.0.1:"+port+"/restconf/data/sonic-ocs:sonic-ocs/OCS_PORT/OCS_PORT_LIST=1A", strings.NewReader(body))
		must(err)
		reply, err := c.Do(r)
		if err != nil {
			return err.Error()
		}
		defer reply.Body.Close()
		raw, err := io.ReadAll(reply.Body)
		must(err)
		return reply.Status + string(raw)
	}
	deadline := time.After(time.Minute)
	for got := ""; !strings.HasPrefix(got, "200"); got = ask("operator", http.MethodGet) {
		select {
		case err := <-ended:
			t.Fatal(err)
		case <-deadline:
			t.Fatal(got)
		case <-time.After(50 * time.Millisecond):
		}
	}
	for _, x := range []struct{ who, method, want string }{
		{"nobody", http.MethodGet, "tls"}, {"stranger", http.MethodGet, "tls"}, {"node", http.MethodGet, "403"},
		{"viewer", http.MethodGet, "200"}, {"viewer", http.MethodPatch, "403"}, {"operator", http.MethodPatch, "204"},
		{"nobody", http.MethodPatch, "tls"}, {"stranger", http.MethodPatch, "tls"}, {"node", http.MethodPatch, "403"},
	} {
		if got := ask(x.who, x.method); !strings.Contains(got, x.want) {
			t.Errorf("%s of %s: %s, want %s", x.method, x.who, got, x.want)
		}
	}
	if got := ask("operator", http.MethodGet); !strings.Contains(got, `"label":"operator"`) {
		t.Errorf("the label is %s", got)
	}
	// A head without a body, on a connection that goes on; then what is no request.
	to, err := cert.Client("127.0.0.1", ca, who["operator"].CertFile, who["operator"].KeyFile)
	must(err)
	conn, err := tls.Dial("tcp", "127.0.0.1:"+port, to)
	must(err)
	defer conn.Close()
	_, err = io.WriteString(conn, "HEAD /restconf/data/sonic-ocs:sonic-ocs HTTP/1.1\r\nHost: x\r\n\r\nGET /%zz HTTP/1.1\r\nHost: x\r\n\r\n")
	must(err)
	raw, err := io.ReadAll(conn)
	must(err)
	if head, rest, _ := strings.Cut(string(raw), "\r\n\r\n"); !strings.HasPrefix(head, "HTTP/1.1 405") || !strings.HasPrefix(rest, "HTTP/1.1 400") ||
		!strings.Contains(rest, `"error-tag":"malformed-message"`) || !strings.Contains(rest, "%zz") {
		t.Errorf("%s", raw)
	}
}
