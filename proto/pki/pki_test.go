package pki

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ringlight/proto"
	"ringlight/proto/seal"
)

func holder(t *testing.T, name string) proto.Holder {
	t.Helper()
	h, err := proto.ParseHolder(name)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func issue(t *testing.T, f *Folder, role proto.Role, names ...string) []Issued {
	t.Helper()
	r := Request{Role: role, Days: 30}
	for _, n := range names {
		r.Names = append(r.Names, holder(t, n))
	}
	list, err := f.Issue(r)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Goal: keys that are made work in TLS and in the trust document, are read by their
// owner alone, and none is ever overwritten. Method: a root, 64 nodes and an
// operator; the same names again; a handshake between a planner and a node.
func TestIssue(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	f, err := Init(dir, "f1", "cluster.example")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Init(dir, "f1", "cluster.example"); err == nil {
		t.Error("a second root in the same folder")
	}
	planner := issue(t, f, proto.RolePlanner, "f1/planner/a")[0]
	var names []string
	for i := range 64 {
		names = append(names, "f1/n/"+string(rune('0'+i/10))+string(rune('0'+i%10)))
		names[i] = strings.Replace(names[i], "n/0", "n/", 1)
	}
	nodes := issue(t, f, proto.RoleNode, names...)
	issue(t, f, proto.RoleOperate, "f1/op/alice")
	if f.Trust.Edition != 4 || len(f.Trust.NodeList()) != 64 {
		t.Errorf("edition %d, %d nodes", f.Trust.Edition, len(f.Trust.NodeList()))
	}
	before, _ := filepath.Glob(filepath.Join(dir, "*"))
	if _, err := f.Issue(Request{Names: []proto.Holder{holder(t, "f1/op/bob"), holder(t, "f1/op/alice")}, Role: proto.RoleView, Days: 30}); err == nil {
		t.Error("alice's key was overwritten")
	}
	if after, _ := filepath.Glob(filepath.Join(dir, "*")); len(after) != len(before) {
		t.Errorf("half of it is left: %q", after)
	}
	for _, name := range before {
		st, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".key") && st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v", name, st.Mode())
		}
	}
	again, err := Open(dir, true)
	if err != nil || again.Trust.Edition != 4 {
		t.Fatal(err)
	}
	for _, one := range append(nodes, planner) {
		k, ok := again.Trust.Find(one.Key)
		key, err := ReadKey(one.KeyFile)
		if err != nil || !ok || k.Holder.String() != one.Name || seal.IDOf(k.Public[:]) != one.Key || !strings.HasPrefix(one.Key.String(), one.ID) {
			t.Fatalf("%s: %v, %v", one.Name, k, err)
		}
		s, _, _ := seal.Open(seal.Sign(key, "t", nil))
		if !s.By(k.Public[:], "t") {
			t.Errorf("%s: its key is not the trusted one", one.Name)
		}
	}
	if name := handshake(t, dir, planner, nodes[7]); name != "f1/n/7" {
		t.Errorf("the planner sees %q", name)
	}
}

// handshake is TLS 1.3 between a server and a client, and whom the server sees.
func handshake(t *testing.T, dir string, server, client Issued) string {
	t.Helper()
	pem, err := os.ReadFile(filepath.Join(dir, caName))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	pair := func(i Issued) []tls.Certificate {
		c, err := tls.LoadX509KeyPair(i.CertFile, i.KeyFile)
		if err != nil {
			t.Fatal(err)
		}
		return []tls.Certificate{c}
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{MinVersion: tls.VersionTLS13, Certificates: pair(server), ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	seen := make(chan string, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			seen <- err.Error()
			return
		}
		defer c.Close()
		if err := c.(*tls.Conn).Handshake(); err != nil {
			seen <- err.Error()
			return
		}
		seen <- c.(*tls.Conn).ConnectionState().PeerCertificates[0].Subject.CommonName
	}()
	c, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool, Certificates: pair(client)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return <-seen
}

// Goal: rotation has both keys for an edition, revocation takes one edition, and
// who slept through changes of the root goes on. Method: every step, and what a
// device of each former edition makes of the last one.
func TestRotateRevokeAndNewRoot(t *testing.T) {
	dir := t.TempDir()
	f, err := Init(dir, "f1", "cluster.example")
	if err != nil {
		t.Fatal(err)
	}
	old := issue(t, f, proto.RolePlanner, "f1/planner/a")[0]
	first := f.Trust
	list, err := f.Issue(Request{Names: []proto.Holder{holder(t, "f1/planner/a")}, Role: proto.RolePlanner, Days: 30, Out: filepath.Join(dir, "next")})
	if err != nil {
		t.Fatal(err)
	}
	trusts := func(one Issued) bool { _, ok := f.Trust.Find(one.Key); return ok }
	if !trusts(old) || !trusts(list[0]) || f.Trust.Edition != 3 {
		t.Error("not both keys while they change")
	}
	if _, err := f.Revoke("f1/planner/a", old.ID); err != nil || trusts(old) || !trusts(list[0]) || f.Trust.Edition != 4 {
		t.Errorf("the old key is not revoked: %v", err)
	}
	if _, err := f.Revoke("f1/op/nobody", ""); proto.AsError(err).Code != proto.NotFound {
		t.Errorf("nobody: %v", err)
	}
	if _, err := f.Renew(old.CertFile, 30); err == nil {
		t.Error("a certificate of a revoked key was renewed")
	}
	if one, err := f.Renew(list[0].CertFile, 60); err != nil || one.Key != list[0].Key || !one.NotAfter.After(list[0].NotAfter) {
		t.Errorf("not renewed: %v", err)
	}
	history := []*seal.Trust{first, f.Trust}
	for range 10 {
		if err := f.NewRoot(); err != nil {
			t.Fatal(err)
		}
		history = append(history, f.Trust)
		issue(t, f, proto.RoleNode, fmt.Sprint("f1/n/", 20+len(history))) // also an edition later
		for i, was := range history {
			if err := f.Trust.Follows(was); err != nil {
				t.Errorf("after %d new roots, from the %dth: %v", len(history)-2, i, err)
			}
		}
	}
	if reopened, err := Open(dir, true); err != nil {
		t.Error(err)
	} else if name := handshake(t, dir, list[0], issue(t, reopened, proto.RoleNode, "f1/n/9")[0]); name != "f1/n/9" {
		t.Errorf("after new roots: %q", name)
	}
}

// Goal: a root's key that is kept under a passphrase is no use without it, stays under it
// when the root changes, and is what openssl reads. Method: a folder, opened with the words,
// with others, without; openssl takes the key out, where it is there.
func TestRootUnderPassphrase(t *testing.T) {
	dir, words := t.TempDir(), []byte("correct horse battery")
	under := func() ([]byte, error) { return words, nil }
	if _, err := Init(filepath.Join(dir, "short"), "f1", "cluster.example", func() ([]byte, error) { return []byte("short"), nil }); err == nil || !strings.Contains(err.Error(), "at least 12") {
		t.Errorf("a passphrase of 5 bytes: %v", err)
	}
	f, err := Init(dir, "f1", "cluster.example", under)
	if err != nil {
		t.Fatal(err)
	}
	first := f.rootFile(seal.IDOf(f.Trust.Root[:]))
	if f, err = Open(dir, true, under); err != nil {
		t.Fatal(err)
	}
	if err := f.NewRoot(); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{first, f.rootFile(seal.IDOf(f.Trust.Root[:]))} {
		if _, err := ReadKey(file); err == nil {
			t.Errorf("%s is read without its passphrase", file)
		}
	}
	if _, err := Open(dir, false); err != nil {
		t.Errorf("who only reads needs no passphrase: %v", err)
	}
	if f, err = Open(dir, true, under); err == nil { // the former root seals along
		err = f.Seal()
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, ask := range map[string][]Passphrase{"none": nil, "another": {func() ([]byte, error) { return []byte("wrong horse battery"), nil }}} {
		if _, err := Open(dir, true, ask...); err == nil || !strings.Contains(err.Error(), "passphrase") {
			t.Errorf("%s: %v", name, err)
		}
	}
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("openssl is not here: the key is judged by our own reader alone")
	}
	out, err := exec.Command(openssl, "pkey", "-in", first, "-passin", "pass:"+string(words), "-noout", "-text").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "ED25519 Private-Key") {
		t.Errorf("openssl: %v, %s", err, out)
	}
}
