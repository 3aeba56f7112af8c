package guard

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ringlight/proto"
	"ringlight/proto/cert"
	"ringlight/proto/pki"
	"ringlight/proto/seal"
)

// desk is an issuer, as simple as can be: it answers any request.
type desk struct {
	t      *testing.T
	folder *pki.Folder
	key    *pki.IssuerKey
	token  string
	given  []proto.PublicKey // keys that it gave certificates for
	change func(*proto.CertAnswer)
}

var f1 = proto.Topics{Fabric: "f1"}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, change: func(*proto.CertAnswer) {}}
	var err error
	if d.folder, err = pki.Init(filepath.Join(t.TempDir(), "pki"), "f1", "cluster.example"); err != nil {
		t.Fatal(err)
	}
	one, err := d.folder.Issuer(pki.Request{Days: 30}, "a")
	if err != nil {
		t.Fatal(err)
	}
	ca, _ := d.folder.Files()
	if d.key, err = pki.OpenIssuer(one.KeyFile, ca); err != nil {
		t.Fatal(err)
	}
	tokens, err := d.folder.Tokens(pki.Request{Days: 7, Names: []proto.Holder{f1.NodeHolder(7)}})
	if err != nil {
		t.Fatal(err)
	}
	d.token = tokens[0].KeyFile
	return d
}

// answer is what the desk says to a request.
func (d *desk) answer(p proto.Packet, topic string) proto.Packet {
	d.t.Helper()
	outer, _, err := seal.Open(p.Payload)
	if err != nil {
		d.t.Fatal(err)
	}
	inner, _, err := seal.Open(outer.Payload)
	if err != nil {
		d.t.Fatal(err)
	}
	var q proto.CertRequest
	if _, err := proto.Decode(inner.Payload, &q); err != nil || !inner.By(q.Public[:], p.Topic) {
		d.t.Fatal("not sealed by the key that it names", err)
	}
	chain, roots, until, err := d.key.Certify(f1.NodeHolder(q.Node), q.Public, 30)
	if err != nil {
		d.t.Fatal(err)
	}
	d.given = append(d.given, q.Public)
	return d.say(topic, proto.CertAnswer{Version: proto.Version, Node: q.Node, Public: q.Public, Edition: d.folder.Trust.Edition, Until: uint64(until.Unix()), Chain: chain, Roots: roots})
}

func (d *desk) say(topic string, a proto.CertAnswer) proto.Packet {
	d.change(&a)
	b, err := proto.Encode(a)
	if err != nil {
		d.t.Fatal(err)
	}
	return proto.Packet{Kind: proto.Publish, Topic: topic, Sealed: seal.Sign(d.key.Key, topic, b)}
}

// wire is a link on which the desk answers.
type wire struct {
	*desk
	in chan proto.Packet
}

func (w *wire) Recv() <-chan proto.Packet { return w.in }
func (w *wire) Send(p proto.Packet) error {
	w.in <- w.answer(p, f1.Enrol(7, proto.TopicEnrolCRT))
	close(w.in) // nothing more is said
	return nil
}

// enrol is one life of an agent with a token.
func (d *desk) enrol(i *Identity) error {
	w := &wire{d, make(chan proto.Packet, 8)}
	w.in <- proto.Packet{Kind: proto.Publish, Topic: f1.Trust(), Sealed: d.folder.Trust.Sealed()}
	w.in <- proto.Packet{Kind: proto.LinkUp}
	return i.Enrol(context.Background(), d.token, w)
}

var errPower = errors.New("the power is gone")

// cutAt lets the power go at the n-th write: before it, in it, after it.
func cutAt(n int, how int) func(string, []byte) error {
	return func(name string, content []byte) error {
		if n--; n >= 0 {
			return writeFile(name, content)
		}
		switch {
		case n < -1: // nothing is written any more
		case how == 1: // half of it, under a passing name
			os.WriteFile(filepath.Join(filepath.Dir(name), ".trust-123"), content[:len(content)/2], 0o600)
		case how == 2:
			writeFile(name, content)
		}
		return errPower
	}
}

// good holds what a folder has against what is wanted of it: a pair for TLS, that of
// the last key that was given a certificate, by the authority beside it.
func (d *desk) good(dir string) {
	d.t.Helper()
	pair, ca, trust := IdentityFiles(dir)
	if _, err := cert.Client("127.0.0.1", ca, pair, pair); err != nil {
		d.t.Error(err)
	}
	raw, _ := os.ReadFile(pair)
	key, err := seal.ParseKey(raw)
	if err != nil || public(key) != d.given[len(d.given)-1] {
		d.t.Errorf("the key is not the one with the certificate: %v", err)
	}
	if raw, _ = os.ReadFile(trust); len(raw) == 0 {
		d.t.Error("no trust document")
	}
	if st, _ := os.Stat(pair); st.Mode().Perm() != 0o600 {
		d.t.Errorf("mode %v", st.Mode())
	}
	if _, err := New(Config{Mode: Enforce, Fabric: "f1", Role: proto.RoleNode, KeyFile: pair, TrustFile: trust, Kept: trust, Reports: true}); err != nil {
		d.t.Error(err)
	}
}

// Goal: whoever loses power while enrolling goes on from what is on the disk, and asks
// with the same key once anybody heard of it. Method: the power goes at each write,
// before, in and after it; then the next life.
func TestPowerIsCutWhileEnrolling(t *testing.T) {
	d := newDesk(t)
	cuts := 0
	for n := 0; ; n++ {
		whole := false
		for how := range 3 {
			dir := t.TempDir()
			d.given = nil
			i, err := OpenIdentity(dir, "f1", 7, nil)
			if err != nil {
				t.Fatal(err)
			}
			i.write = cutAt(n, how)
			if err := d.enrol(i); err == nil {
				whole = true
				break
			} else if !errors.Is(err, errPower) {
				t.Fatal(err)
			}
			cuts++
			if i, err = OpenIdentity(dir, "f1", 7, nil); err != nil {
				t.Fatal(err)
			}
			if !i.Enrolled() {
				if err := d.enrol(i); err != nil {
					t.Fatalf("write %d, %d: %v", n, how, err)
				}
			}
			for _, k := range d.given {
				if k != d.given[0] {
					t.Errorf("write %d, %d: asked with two keys: the token is lost", n, how)
				}
			}
			d.good(dir)
		}
		if whole {
			break
		}
	}
	if cuts != 12 { // key, authorities, trust document, pair
		t.Errorf("%d cuts", cuts)
	}
}

// Goal: whoever loses power while another key is put in has the former or the new one,
// whole, and comes to the new one. Method: as above, with a demand for another key.
func TestPowerIsCutWhileRenewing(t *testing.T) {
	d := newDesk(t)
	cuts := 0
	for n := 0; n < 3; n++ {
		for how := range 3 {
			dir := t.TempDir()
			d.given = nil
			i, _ := OpenIdentity(dir, "f1", 7, nil)
			if err := d.enrol(i); err != nil {
				t.Fatal(err)
			}
			former := d.given[0]
			live := func(write func(string, []byte) error) {
				i, err := OpenIdentity(dir, "f1", 7, nil)
				if err != nil || !i.Enrolled() {
					t.Fatalf("write %d, %d: no identity: %v", n, how, err)
				}
				pair, _, trust := IdentityFiles(dir)
				g, err := New(Config{Mode: Enforce, Fabric: "f1", Role: proto.RoleNode, KeyFile: pair, TrustFile: trust, Kept: trust, Reports: true, Hear: i.Hear})
				if err != nil {
					t.Fatal(err)
				}
				if write != nil {
					i.write = write
				}
				again := 0
				var asked []proto.Packet
				i.Attach(g, func(p proto.Packet) error { asked = append(asked, p); return nil }, func() { again++ })
				demand := d.say(f1.CRT(7), proto.CertAnswer{Version: proto.Version, Node: 7, Public: former, Renew: true})
				if g.Open(&demand); len(asked) == 0 {
					return // cut, or it has the new one
				}
				a := d.answer(asked[0], f1.CRT(7))
				g.Open(&a)
				if got := public(*g.key.Load()); again == 1 && got != d.given[len(d.given)-1] || again != 1 && got != former {
					t.Errorf("write %d, %d: seals by another key than it shows", n, how)
				}
			}
			live(cutAt(n, how))
			cuts++
			live(nil)
			d.good(dir)
			if d.given[len(d.given)-1] == former {
				t.Errorf("write %d, %d: the former key", n, how)
			}
			for _, k := range d.given[1:] {
				if k != d.given[1] {
					t.Errorf("write %d, %d: a third key", n, how)
				}
			}
		}
	}
}

// Goal: an agent takes no certificate but of its own key and name, no authority that
// the root does not stand for, and no trust document of another root. Method: one
// thing wrong at a time.
func TestWrongAnswersAreNotTaken(t *testing.T) {
	d := newDesk(t)
	other := newDesk(t)
	strange, _ := os.ReadFile(filepath.Join(other.folder.Dir, "ca.pem"))
	for name, spoil := range map[string]func(*proto.CertAnswer){ // any order: each begins anew
		"another's key":       func(a *proto.CertAnswer) { a.Public[0] ^= 1 },
		"another's name":      func(a *proto.CertAnswer) { a.Chain, _, _, _ = d.key.Certify(f1.NodeHolder(8), a.Public, 1) },
		"a certificate":       func(a *proto.CertAnswer) { a.Chain = "none" },
		"a strange authority": func(a *proto.CertAnswer) { a.Roots = proto.PEM(strange) },
		"refused":             func(a *proto.CertAnswer) { *a = proto.CertAnswer{Version: 1, Node: 7, Public: a.Public, Refused: "no"} },
	} {
		d.given, d.change = nil, spoil
		dir := t.TempDir()
		i, _ := OpenIdentity(dir, "f1", 7, nil)
		if err := d.enrol(i); err == nil || i.Enrolled() {
			t.Errorf("%s: taken", name)
		}
		if _, err := os.Stat(filepath.Join(dir, identityName)); err == nil {
			t.Errorf("%s: kept", name)
		}
	}
	d.change = func(*proto.CertAnswer) {}
	dir := t.TempDir()
	i, _ := OpenIdentity(dir, "f1", 7, nil)
	d.given, d.folder = nil, other.folder // whose trust document is of another root
	if err := d.enrol(i); err == nil || i.Enrolled() {
		t.Error("a document of another root was taken")
	}
	os.WriteFile(filepath.Join(dir, identityName), []byte("half"), 0o600)
	if _, err := OpenIdentity(dir, "f1", 7, nil); err == nil || !strings.Contains(err.Error(), "token") {
		t.Error(err)
	}
}
