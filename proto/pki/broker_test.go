package pki

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ringlight/proto"
)

func read(t *testing.T, elem ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(elem...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// lists are the lists of revoked certificates, each judged by its authority.
func lists(t *testing.T, crl string, by ...*x509.Certificate) (out []*x509.RevocationList) {
	t.Helper()
	for b, rest := pem.Decode([]byte(crl)); b != nil; b, rest = pem.Decode(rest) {
		l, err := x509.ParseRevocationList(b.Bytes)
		if err != nil || len(out) == len(by) || l.CheckSignatureFrom(by[len(out)]) != nil {
			t.Fatalf("list %d: %v", len(out), err)
		}
		out = append(out, l)
	}
	if len(out) != len(by) {
		t.Fatalf("%d lists, want %d", len(out), len(by))
	}
	return out
}

// Goal: what brokers are told follows each edition: whose name has no key left, which certificates
// of one that has another are revoked, and nobody who came back. Method: the files of
// both brokers, read again after a revocation of each kind; a folder of before the register.
// The brokers themselves judge them in bridge/nats.
func TestBrokersAreToldOfEachEdition(t *testing.T) {
	dir := t.TempDir()
	f, err := Init(dir, "f1", "cluster.example")
	if err != nil {
		t.Fatal(err)
	}
	first := issue(t, f, proto.RoleNode, "f1/n/7", "f1/n/8")
	if err := os.Remove(filepath.Join(dir, registerName)); err != nil { // as it was before there was one
		t.Fatal(err)
	}
	if f, err = Open(dir, true); err != nil {
		t.Fatal(err)
	}
	r := Request{Names: []proto.Holder{holder(t, "f1/n/8")}, Role: proto.RoleNode, Days: 30, Out: filepath.Join(dir, "next")}
	if _, err := f.Issue(r); err != nil {
		t.Fatal(err)
	}
	s := Server{Name: "b", Days: 30, At: "/at", Listen: ":8883", Others: ":8884"}
	if _, err := f.Configure(KindMosquitto, s); err == nil || !strings.Contains(err.Error(), "host") {
		t.Errorf("without a certificate and a host: %v", err)
	}
	s.Hosts = []string{"broker.example"}
	for _, kind := range []string{KindMosquitto, KindNATS, KindMosquitto} { // again: with the key that there is
		if _, err := f.Configure(kind, s); err != nil {
			t.Fatal(err)
		}
	}
	was := lists(t, read(t, dir, "mosquitto", crlName), f.ca)[0]
	if _, err := f.Revoke("f1/n/7", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Revoke("f1/n/8", first[1].ID); err != nil {
		t.Fatal(err)
	}
	now := lists(t, read(t, dir, "mosquitto", crlName), f.ca)[0]
	if now.Number.Cmp(was.Number) <= 0 || !now.ThisUpdate.After(was.ThisUpdate) || !now.NextUpdate.Equal(f.ca.NotAfter) {
		t.Errorf("number %v after %v, of %v after %v, to %v", now.Number, was.Number, now.ThisUpdate, was.ThisUpdate, now.NextUpdate)
	}
	if len(was.RevokedCertificateEntries) != 0 || len(now.RevokedCertificateEntries) != 2 {
		t.Fatalf("%d revoked, then %d", len(was.RevokedCertificateEntries), len(now.RevokedCertificateEntries))
	}
	for _, i := range first {
		c, err := readCert(i.CertFile)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, e := range now.RevokedCertificateEntries {
			found = found || e.SerialNumber.Cmp(c.SerialNumber) == 0
		}
		if !found {
			t.Errorf("%s is not in the list", i.CertFile)
		}
	}
	acl, users := read(t, dir, "mosquitto", "acl"), read(t, dir, "nats", "users.conf")
	if !strings.Contains(acl, "user f1/n/7\ntopic deny #\n") || strings.Contains(acl, "user f1/n/8") {
		t.Errorf("access list:\n%s", acl)
	}
	if strings.Contains(users, "f1/n/7") || strings.Contains(users, first[1].ID) || strings.Count(users, "CN=f1/n/8") != 1 {
		t.Errorf("users:\n%s", users)
	}

	// A node is back with a key, or is going to be with a token, of an issuer that has a list.
	r.Names, r.Out = []proto.Holder{holder(t, "f1/n/7")}, filepath.Join(dir, "again")
	if _, err := f.Issue(r); err != nil {
		t.Fatal(err)
	}
	i, err := f.Issuer(Request{Days: 30}, "i")
	if err != nil {
		t.Fatal(err)
	}
	by, err := readCert(i.CertFile)
	if err != nil {
		t.Fatal(err)
	}
	if now = lists(t, read(t, dir, "mosquitto", crlName), f.ca, by)[0]; len(now.RevokedCertificateEntries) != 2 {
		t.Error("what was revoked is not any more")
	}
	denied := func() bool { return strings.Contains(read(t, dir, "mosquitto", "acl"), "user f1/n/9\ntopic deny #\n") }
	if _, err := f.Revoke("f1/n/9", ""); err != nil || !denied() || strings.Contains(read(t, dir, "mosquitto", "acl"), "f1/n/7") {
		t.Errorf("node 9 is denied %v (%v)\n%s", denied(), err, read(t, dir, "mosquitto", "acl"))
	}
	if _, err := f.Tokens(Request{Names: []proto.Holder{holder(t, "f1/n/9")}, Days: 1, Out: filepath.Join(dir, "tokens")}); err != nil || denied() {
		t.Errorf("node 9 has a token, and is denied %v (%v)", denied(), err)
	}
	before := f.ca
	if err := f.NewRoot(); err != nil {
		t.Fatal(err)
	}
	if now = lists(t, read(t, dir, "mosquitto", crlName), f.ca, before, by)[1]; len(now.RevokedCertificateEntries) != 2 || read(t, dir, "mosquitto", caName) != read(t, dir, caName) {
		t.Error("under a new root, what the former one revoked is not any more, or brokers do not know it")
	}
	// A site's own authority is told to lack a list until there is one, and keeps it.
	other, err := Init(filepath.Join(dir, "site"), "site", "site.example")
	if err != nil {
		t.Fatal(err)
	}
	add := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(read(t, dir, name)+text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if lacks := f.Unlisted(); len(lacks) != 0 {
		t.Errorf("%v lack a list", lacks)
	}
	add(caName, read(t, dir, "site", caName))
	if lacks := f.Unlisted(); len(lacks) != 1 || lacks[0] != other.ca.Subject.String() {
		t.Errorf("%v lack a list, want %v", lacks, other.ca.Subject)
	}
	add(crlName, read(t, dir, "site", crlName))
	if _, err := f.Revoke("f1/n/8", ""); err != nil || len(f.Unlisted()) != 0 {
		t.Errorf("%v: %v lack a list", err, f.Unlisted())
	}
	lists(t, read(t, dir, "mosquitto", crlName), f.ca, before, other.ca, by)
	if err := os.Remove(filepath.Join(dir, crlName)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Configure(KindMosquitto, s); err == nil || !strings.Contains(err.Error(), "issuer") {
		t.Errorf("an issuer of which there is no list: %v", err)
	}
}

// Goal: passwords are known as mosquitto knows them, both ways, and a file of users with anything
// else in it is refused whole. Method: mosquitto_passwd writes what we check; bridge/nats has
// mosquitto check what we write.
func TestUsersAreMosquittos(t *testing.T) {
	dir := t.TempDir()
	f, err := Init(dir, "f1", "cluster.example")
	if err != nil {
		t.Fatal(err)
	}
	r := Request{Names: []proto.Holder{holder(t, "f1/n/7"), holder(t, "f1/op/alice")}}
	if _, err := f.Passwords(r); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Passwords(r); err == nil {
		t.Error("a password was overwritten")
	}
	users, err := ReadUsers(filepath.Join(dir, usersName))
	if err != nil {
		t.Fatal(err)
	}
	name, password, _ := strings.Cut(strings.TrimSpace(read(t, dir, "f1-n-7.password")), ":")
	if name != "f1/n/7" || !users.Check(name, password) || users.Check(name, password+"x") || users.Check("f1/op/alice", password) || users.Check("f1/n/8", password) || users.Check("f1/n/8", "") {
		t.Error("who is let in is wrong")
	}
	good := read(t, dir, usersName)
	for what, text := range map[string]string{"an empty line": "\n" + good, "a name that is none": strings.Replace(good, "f1/n/7", "root", 1), "rounds without end": strings.Replace(good, "$101$", "$99999999$", 1),
		"no hash": "f1/n/7:secret\n", "another hash": strings.Replace(good, "$7$", "$6$", 1), "cut": good[:len(good)-20]} { // any order
		file := filepath.Join(t.TempDir(), "users")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadUsers(file); err == nil {
			t.Errorf("%s is taken", what)
		}
	}
	if _, err := f.Revoke("f1/n/7", ""); err != nil || strings.Contains(read(t, dir, usersName), "f1/n/7") {
		t.Errorf("revoked, and known: %v", err)
	}
	if _, err := f.Revoke("f1/op/alice", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Passwords(Request{Names: r.Names, Out: filepath.Join(dir, "next")}); err != nil {
		t.Errorf("after the last one was revoked: %v", err)
	}
	binary, err := exec.LookPath("mosquitto_passwd")
	if err != nil {
		t.Skip("mosquitto_passwd is not installed")
	}
	file := filepath.Join(dir, "theirs")
	if out, err := exec.Command(binary, "-c", "-b", file, "f1/n/9", "se:cret").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if users, err = ReadUsers(file); err != nil || !users.Check("f1/n/9", "se:cret") || users.Check("f1/n/9", "secret") {
		t.Errorf("what mosquitto_passwd wrote: %v", err)
	}
}
