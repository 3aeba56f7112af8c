package server

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/planner"
	"ringlight/proto"
	"ringlight/proto/pki"
	"ringlight/proto/seal"
)

// office is an issuer without a planner, whose clock and answers are the test's.
type office struct {
	*issuer
	t      *testing.T
	folder *pki.Folder
	issued pki.Issued
	clock  time.Time
	said   []proto.CertAnswer
}

func newOffice(t *testing.T) *office {
	t.Helper()
	dir := t.TempDir()
	o := &office{t: t, clock: time.Now().Add(-2 * time.Hour)}
	var err error
	if o.folder, err = pki.Init(filepath.Join(dir, "pki"), "f1", "cluster.example"); err != nil {
		t.Fatal(err)
	}
	if o.issued, err = o.folder.Issuer(pki.Request{Days: 30}, "a"); err != nil {
		t.Fatal(err)
	}
	o.begin(filepath.Join(dir, "state.trust.keys"))
	return o
}

// begin is a planner's next life, with the register in a file.
func (o *office) begin(file string) {
	o.t.Helper()
	r, err := openRegister(file)
	if err != nil {
		o.t.Fatal(err)
	}
	ca, _ := o.folder.Files()
	o.issuer = newIssuer(o.issued.KeyFile, ca, false, r, slog.New(slog.DiscardHandler))
	o.trust, o.now, o.send = func() *seal.Trust { return o.folder.Trust }, func() time.Time { return o.clock }, o.hear
	o.open()
	o.leads.Store(true)
	o.meet()
	o.t.Cleanup(func() { r.file.Close() })
}

func (o *office) hear(p proto.Packet) error {
	a, _, err := o.folder.Trust.Issued(p.Payload, p.Topic)
	if err != nil {
		o.t.Fatal(err)
	}
	o.said = append(o.said, a)
	return nil
}

// Goal: nodes that are away keep no other from changing its key. Method: 1,000 nodes, of
// which only the last ten answer; all are to change.
func TestWhoIsAwayKeepsNobodyFromRenewal(t *testing.T) {
	o := newOffice(t)
	const nodes, away = 1000, 990
	for n := range proto.NodeID(nodes) {
		o.register.take(entry{Node: n, Public: proto.PublicKey{byte(n), byte(n >> 8), 1}, Issuer: o.public(), Since: o.clock.Unix(), Until: uint64(o.clock.Unix()) + 86400})
	}
	if err := o.folder.Renewal(); err != nil {
		t.Fatal(err)
	}
	asked := map[proto.NodeID]bool{}
	for range 2 * nodes / demandsAtOnce {
		o.demand()
		for _, a := range o.said {
			asked[a.Node] = true
		}
		o.said, o.clock = nil, o.clock.Add(time.Second)
	}
	for n := proto.NodeID(away); n < nodes; n++ {
		if !asked[n] {
			t.Errorf("node %d is not asked while others are away", n)
		}
	}
}

// token is one of the root's, for a node.
type token struct {
	node proto.NodeID
	key  ed25519.PrivateKey
	cert proto.PEM
}

// token makes a token as the root does, made so long after now.
func (o *office) token(n proto.NodeID, made time.Duration) token {
	o.t.Helper()
	must := func(err error) {
		o.t.Helper()
		if err != nil {
			o.t.Fatal(err)
		}
	}
	roots, err := filepath.Glob(filepath.Join(o.folder.Dir, "root-*.key"))
	must(err)
	root, err := pki.ReadKey(roots[0])
	must(err)
	file, _ := o.folder.Files()
	raw, err := os.ReadFile(file)
	must(err)
	b, _ := pem.Decode(raw)
	ca, err := x509.ParseCertificate(b.Bytes)
	must(err)
	public, key, err := ed25519.GenerateKey(rand.Reader)
	must(err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: fmt.Sprintf("f1/enrol/%d", n), SerialNumber: fmt.Sprint(o.folder.Trust.Edition)},
		NotBefore: o.clock.Add(made - time.Hour), NotAfter: o.clock.Add(240 * time.Hour), KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, ca, public, root)
	must(err)
	return token{n, key, proto.PEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))}
}

func keyFor(who string) ed25519.PrivateKey {
	seed := make([]byte, ed25519.SeedSize)
	copy(seed, who)
	return ed25519.NewKeyFromSeed(seed)
}

// ask has somebody ask with a token, and says why not; "" when he is let in.
func (o *office) ask(k token, who string) string {
	o.t.Helper()
	topic := proto.Topics{Fabric: "f1"}.Enrol(k.node, proto.TopicEnrolCSR)
	key := keyFor(who)
	b, err := proto.Encode(proto.CertRequest{Version: proto.Version, Node: k.node, Public: proto.PublicKey(key.Public().(ed25519.PublicKey)), Token: k.cert})
	if err != nil {
		o.t.Fatal(err)
	}
	o.said = nil
	o.meet()
	o.take(proto.Packet{Kind: proto.Publish, Topic: topic, Sealed: seal.Sign(k.key, topic, seal.Sign(key, topic, b))})
	if len(o.said) == 0 {
		return "no answer"
	}
	if a := o.said[0]; !a.Vouches() {
		return a.Refused
	}
	return ""
}

func (o *office) want(what, got, want string) {
	o.t.Helper()
	if got != want && (want == "" || !strings.Contains(got, want)) {
		o.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func (o *office) stolen(want int) {
	o.t.Helper()
	if list := o.register.stolen(o.folder.Trust); len(list) != want {
		o.t.Errorf("%d tokens are known as stolen, want %d", len(list), want)
	}
}

const (
	twice = "the token was used by another key"
	later = "came by a token that was made later"
	lost  = "was put back without its register"
)

// Goal: a token is good once, and its first key may ask again, whatever becomes of the
// planner: another copy that heard nothing takes over, the process starts anew, the store is
// put back from a copy of before the token was used, the file is lost, both are, and whoever
// leads has everything in store and file again. Method: an issuer for each of these lives.
func TestTokensAreUsedOnceOverLives(t *testing.T) {
	o := newOffice(t)
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	store := &shared{state: map[string][]byte{}}
	life := func(name string) {
		t.Helper()
		for len(store.open) > 0 {
			store.open[0].Close()
		}
		o.begin(file(name))
		o.store, _ = store.view(t.Context())
		o.met = false
		o.meet()
	}
	takeOver := func(name string) {
		t.Helper()
		was := store.open[0]
		o.begin(file(name))
		o.store, _ = store.view(t.Context())
		o.leads.Store(false)
		o.meet()
		if err := was.Commit([]planner.Record{{Key: "log", Value: []byte("x")}}); err != nil {
			t.Fatal(err)
		}
		o.clock = o.clock.Add(meetEvery)
		o.meet()
		was.Close()
		o.leads.Store(true)
	}
	life("a")
	used, next := o.token(7, 0), o.token(8, 0)
	o.want("first", o.ask(used, "true"), "")
	o.want("again", o.ask(used, "true"), "")
	before := maps.Clone(store.state)
	o.want("thief", o.ask(used, "thief"), twice)
	for _, name := range []string{"a", "b"} { // a restart, then another copy, which node 8 asks and whose file stays
		if name == "a" {
			life(name)
		} else {
			takeOver(name)
		}
		o.stolen(1)
		if _, ok := o.folder.Trust.Find(seal.IDOf(keyFor("true").Public().(ed25519.PublicKey))); ok {
			t.Error("the test looks at the wrong place")
		}
		if _, ok := o.register.find(seal.IDOf(keyFor("true").Public().(ed25519.PublicKey))); !ok {
			t.Errorf("planner %s does not know node 7's key", name)
		}
		o.want(name+": thief", o.ask(used, "thief"), twice)
		o.want(name+": again", o.ask(used, "true"), "")
	}
	o.want("another node, whose token is not of this life", o.ask(next, "eight"), "")
	store.state = maps.Clone(before) // of before node 8 came
	life("b")
	o.want("store put back: thief", o.ask(next, "thief"), twice)
	o.want("store put back: again", o.ask(next, "eight"), "")
	life("c") // the file is lost; the store has all
	o.want("file lost: thief", o.ask(next, "thief"), twice)
	o.want("file lost: again", o.ask(used, "true"), "")
	o.want("file lost: an unused token of before", o.ask(o.token(9, -time.Hour), "nine"), lost)
	store.state = before
	life("d")
	o.want("both lost: the token that was used meanwhile", o.ask(next, "thief"), lost)
	o.clock = o.clock.Add(time.Hour)
	o.want("both lost: a new token", o.ask(o.token(8, 0), "eight"), "")
	life("d")
	o.want("and a life later", o.ask(next, "thief"), later)
}

// Goal: who does not lead its store vouches for nobody, and remembers nothing of it. Method:
// the reign ends before the store is written.
func TestWhoDoesNotLeadVouchesForNobody(t *testing.T) {
	o := newOffice(t)
	store := &shared{state: map[string][]byte{}}
	s, _ := store.view(t.Context())
	o.store = s
	o.ask(o.token(6, 0), "six") // it has met the store
	store.lose(true)
	k := o.token(7, 0)
	o.want("first", o.ask(k, "true"), "no answer")
	store.mu.Lock()
	store.down = false
	store.elect()
	store.mu.Unlock()
	o.want("another, when it leads again", o.ask(k, "other"), "")
}

// Goal: the register grows with nodes, not with time, in the file and in the store, and
// forgets no token that would count. Method: a node changes its key 600 times and comes
// with ten tokens; then a life later all but the last one are tried again.
func TestRegisterDoesNotGrow(t *testing.T) {
	o := newOffice(t)
	store := &shared{state: map[string][]byte{}}
	s, _ := store.view(t.Context())
	o.store, o.met = s, false
	var all []token
	for i := range 10 {
		k := o.token(7, time.Duration(i)*time.Minute)
		all = append(all, k)
		o.want("token", o.ask(k, fmt.Sprint("true", i)), "")
		o.want("thief", o.ask(k, "thief"), twice)
		for j := range 60 {
			key := keyFor(fmt.Sprint(i, " ", j)).Public().(ed25519.PublicKey)
			if !o.keep(entry{Node: 7, Public: proto.PublicKey(key), Issuer: o.public(), Since: o.clock.Unix(), Until: 1}) {
				t.Fatal("not kept")
			}
			o.register.used(seal.Key{Public: proto.PublicKey(key), Holder: proto.Topics{Fabric: "f1"}.NodeHolder(7), Role: proto.RoleNode})
		}
	}
	raw, err := os.ReadFile(o.register.name)
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(raw, []byte{'\n'}); lines > slackLines+16 || len(store.state) > 8 {
		t.Errorf("%d lines, %d records: %v", lines, len(store.state), slices.Sorted(maps.Keys(store.state)))
	}
	o.begin(o.register.name)
	o.store, o.met = s, false
	for i, k := range all[:9] {
		o.want(fmt.Sprint("token ", i), o.ask(k, fmt.Sprint("true", i)), later)
	}
	o.want("the last, by another", o.ask(all[9], "other"), twice)
	o.stolen(1)
	if len(store.state) > 4 {
		t.Errorf("%d records when all have met: %v", len(store.state), slices.Sorted(maps.Keys(store.state)))
	}
}
