package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"ringlight/proto"
	"ringlight/proto/guard"
	"ringlight/proto/pki"
)

// Goal: over HTTP a machine's certificate changes nothing in any mode, and where seals are
// enforced an admin's alone does. Method: every kind of name in every mode, with keys and
// certificates of ocsctl pki.
func TestWhoActsOverHTTP(t *testing.T) {
	dir := t.TempDir()
	folder, err := pki.Init(filepath.Join(dir, "pki"), "f1", "cluster.example")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for name, role := range map[string]proto.Role{"f1/n/7": proto.RoleNode, "f1/planner/a": proto.RolePlanner, "f1/op/alice": proto.RoleAdmin, "f1/op/bob": proto.RoleOperate} { // any order
		h, err := proto.ParseHolder(name)
		if err != nil {
			t.Fatal(err)
		}
		list, err := folder.Issue(pki.Request{Names: []proto.Holder{h}, Role: role, Days: 30})
		if err != nil {
			t.Fatal(err)
		}
		files[name] = list[0].CertFile
	}
	broker, err := folder.Broker(pki.Request{Days: 30, Hosts: []string{"b.example"}}, "b")
	if err != nil {
		t.Fatal(err)
	}
	files["f1/broker/b"] = broker.CertFile
	if _, err := folder.Issuer(pki.Request{Days: 30}, "i"); err != nil {
		t.Fatal(err)
	}
	tokens, err := folder.Tokens(pki.Request{Days: 7, Names: []proto.Holder{{Fabric: "f1", Kind: proto.HolderNode, ID: "7", Node: 7}}})
	if err != nil {
		t.Fatal(err)
	}
	files["f1/enrol/7"] = tokens[0].CertFile
	_, trust := folder.Files()
	for _, mode := range []guard.Mode{guard.Off, guard.Warn, guard.Enforce} {
		s := &server{cfg: Config{Seals: Seals{Mode: mode}}}
		if mode.On() {
			if s.guard, err = guard.New(guard.Config{Mode: mode, Fabric: "f1", Role: proto.RolePlanner, KeyFile: filepath.Join(dir, "pki", "f1-planner-a.key"), TrustFile: trust, Kept: filepath.Join(dir, string(mode))}); err != nil {
				t.Fatal(err)
			}
		}
		below := mode != guard.Enforce
		for name, may := range map[string]bool{"": below, "unix": true, "f1/op/alice": true, "f1/op/bob": below, "somebody else's": below, "f1/n/7": false, "f1/enrol/7": false, "f1/planner/a": false, "f1/broker/b": false} { // any order
			r, _ := http.NewRequest(http.MethodPut, "https://127.0.0.1/v1/jobs/j", nil)
			switch {
			case name == "unix":
				r = r.WithContext(context.WithValue(context.Background(), http.LocalAddrContextKey, net.Addr(&net.UnixAddr{Name: "/run/x", Net: "unix"})))
			case files[name] != "":
				r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{certificateIn(t, files[name])}}
			case name != "":
				ca, _, _ := certificate(t, t.TempDir(), name, nil)
				r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{ca.Leaf}}
			}
			if err := s.mayAct(r); (err == nil) != may {
				t.Errorf("%s, %q: %v", mode, name, err)
			}
		}
	}
}

// certificateIn is the first of a file.
func certificateIn(t *testing.T, file string) *x509.Certificate {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for b, rest := pem.Decode(raw); b != nil; b, rest = pem.Decode(rest) {
		if b.Type == "CERTIFICATE" {
			c, err := x509.ParseCertificate(b.Bytes)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
	}
	t.Fatal(file)
	return nil
}
