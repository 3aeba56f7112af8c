package main

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"

	"ringlight/agent"
	"ringlight/cmd/cli"
	"ringlight/proto"
	"ringlight/proto/cert"
	"ringlight/proto/guard"
	"ringlight/proto/mqtt"
	"ringlight/proto/seal"
)

// validateRequests: as at a planner's own socket, beyond this machine everybody shows a
// certificate.
func (c *Config) validateRequests(bad complain) {
	if c.RESTCONF == "" {
		return
	}
	host, _, err := net.SplitHostPort(c.RESTCONF)
	switch {
	case err != nil:
		bad("restconf", "%q: want host:port", c.RESTCONF)
	case !c.Board.isSwitch():
		bad("restconf", "goes with board.ports")
	case !mqtt.IsLoopback(host) && (c.CA == "" || c.Cert == "" || c.Key == ""):
		bad("restconf", "%q: beyond loopback only with ca, cert and key: it is served to those with a certificate alone", c.RESTCONF)
	}
}

// requests is where RESTCONF is served, and to whom; nil: nowhere.
func (c *Config) requests(seals *atomic.Pointer[guard.Guard]) (*agent.Requests, error) {
	if c.RESTCONF == "" {
		return nil, nil
	}
	host, _, _ := net.SplitHostPort(c.RESTCONF) // validated
	q := &agent.Requests{Address: c.RESTCONF}
	if mqtt.IsLoopback(host) {
		q.May = func(r *http.Request, _ *x509.Certificate) error { // a page of a browser may not lead here
			name := r.Host
			if h, _, err := net.SplitHostPort(name); err == nil {
				name = h
			}
			if name != "" && !mqtt.IsLoopback(name) {
				return fmt.Errorf("host %.60q is not this machine", r.Host)
			}
			return nil
		}
		return q, nil
	}
	sealed := guard.Mode(c.Seal).On()
	if sealed && c.Broker == "" { // no link brings one
		g, err := c.guard(&mqtt.Config{}, c.id(), nil, c.logger().Logger)
		if err != nil {
			return nil, cli.AsUsage(err)
		}
		seals.Store(g)
	}
	var err error
	q.TLS, err = cert.Server(c.CA, c.Cert, c.Key)
	q.May = func(r *http.Request, who *x509.Certificate) error { return mayRequest(r, who, sealed, seals.Load()) }
	return q, cli.AsUsage(err)
}

// mayRequest: operators, and where a trust document counts those that it names; it takes
// the role operate to change something.
func mayRequest(r *http.Request, who *x509.Certificate, sealed bool, g *guard.Guard) error {
	name := who.Subject.CommonName
	if h, err := proto.ParseHolder(name); err == nil && h.Kind != proto.HolderOperator {
		return fmt.Errorf("%s is no operator", name)
	}
	if !sealed {
		return nil
	}
	if g == nil {
		return errors.New("this agent has no trust document yet")
	}
	g.Look()
	id, ok := seal.IDOfCertificate(who)
	key, known := g.Trust().Find(id)
	needs := proto.RoleView
	if r.Method != http.MethodGet {
		needs = proto.RoleOperate
	}
	if !ok || !known || key.Role < needs {
		return fmt.Errorf("%s is not trusted with the role %v", name, needs)
	}
	return nil
}

// keepLabels has labels of ports kept in the state folder. Those that cannot be read are
// none, as a new switch has none.
func (c *Config) keepLabels(cfg *agent.Config) {
	file := filepath.Join(c.State, "labels.json")
	if raw, err := os.ReadFile(file); err == nil && json.Unmarshal(raw, &cfg.Labels) != nil {
		cfg.Labels = nil
	}
	cfg.KeepLabels = func(labels map[string]string) error {
		raw, err := json.Marshal(labels)
		if err == nil {
			err = cli.ReplaceFile(file, raw, 0o644)
		}
		if path := (*fs.PathError)(nil); errors.As(err, &path) {
			return fmt.Errorf("labels are not kept: %w", path.Err)
		}
		return err
	}
}
