package guard

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ringlight/proto"
	"ringlight/proto/seal"
)

// site is a root, a planner, two nodes and three operators.
type site struct {
	t       *testing.T
	dir     string
	edition uint64
	without string // who is not trusted any more
}

var topics = proto.Topics{Fabric: "f1"}

func keyOf(name string) ed25519.PrivateKey {
	seed := bytes.Repeat([]byte{1}, ed25519.SeedSize)
	copy(seed, name)
	return ed25519.NewKeyFromSeed(seed)
}

func (s *site) keyFile(name string) string {
	s.t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(keyOf(name))
	file := filepath.Join(s.dir, strings.ReplaceAll(name, "/", "-")+".key")
	if err == nil {
		err = os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return file
}

func (s *site) trust(root string, former ...string) *seal.Trust {
	s.t.Helper()
	s.edition++
	m := proto.Trust{Fabric: "f1", Edition: s.edition}
	var nodes []seal.Key
	for name, role := range map[string]proto.Role{"f1/planner/a": proto.RolePlanner, "f1/op/vic": proto.RoleView, "f1/op/olga": proto.RoleOperate, "f1/op/ada": proto.RoleAdmin, "f1/n/7": 0, "f1/n/8": 0} { // any order: a set
		var k proto.PublicKey
		copy(k[:], keyOf(name).Public().(ed25519.PublicKey))
		h, _ := proto.ParseHolder(name)
		switch {
		case name == s.without:
		case role == 0:
			nodes = append(nodes, seal.Key{Public: k, Holder: h})
		default:
			m.Keys = append(m.Keys, proto.TrustedKey{Public: k, Name: name, Role: role})
		}
	}
	var old []ed25519.PrivateKey
	for _, name := range former {
		old = append(old, keyOf(name))
	}
	t, err := seal.WriteTrust(m, nodes, keyOf(root), old...)
	if err != nil {
		s.t.Fatal(err)
	}
	return t
}

func (s *site) file() string { return filepath.Join(s.dir, "trust.cose") }

func (s *site) write(t *seal.Trust) {
	s.t.Helper()
	if err := os.WriteFile(s.file(), t.File(), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func newSite(t *testing.T) *site {
	s := &site{t: t, dir: t.TempDir()}
	s.write(s.trust("root"))
	return s
}

func (s *site) guard(cfg Config) *Guard {
	s.t.Helper()
	cfg.Fabric, cfg.TrustFile = "f1", s.file()
	if cfg.Mode == "" {
		cfg.Mode = Enforce
	}
	g, err := New(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	return g
}

// comes gives a guard what a link would.
func comes(g *Guard, topic string, payload []byte) (p proto.Packet, read bool) {
	p = proto.Packet{Kind: proto.Publish, Topic: topic, Payload: payload}
	if s, rest, err := seal.Open(payload); err == nil && len(rest) == 0 {
		p.Payload, p.Sealed = s.Payload, payload
	}
	read = g.Open(&p) == proto.Passes
	return p, read
}

func request(t *testing.T, noun proto.Noun) []byte {
	b, err := proto.Encode(&proto.OpRequest{Version: proto.Version, Corr: proto.Corr{1}, TTLMillis: 1000, Noun: noun, Bundle: -1})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Goal: what is read by whom, in every mode, is a table. Method: one message of each
// kind: plain, sealed by each holder, sealed for another topic, with a bit turned.
func TestWhatIsRead(t *testing.T) {
	s := newSite(t)
	keys := map[proto.Role]string{proto.RolePlanner: s.keyFile("f1/planner/a"), proto.RoleNode: s.keyFile("f1/n/7")}
	desired, ack, health := topics.Desired(7), topics.Ack(7), topics.Health(7)
	body := []byte{0xa0}
	by := func(name, topic string) []byte { return seal.Sign(keyOf(name), topic, body) }
	spoilt := by("f1/planner/a", desired)
	spoilt[len(spoilt)-1] ^= 1
	for _, c := range []struct {
		name    string
		topic   string
		payload []byte
		role    proto.Role // of the reader
		reports bool
		good    bool // read by enforce
		by      string
	}{
		{"a plan, sealed", desired, by("f1/planner/a", desired), proto.RoleNode, false, true, "f1/planner/a"},
		{"a plan, plain", desired, body, proto.RoleNode, false, false, ""},
		{"a plan by a node", desired, by("f1/n/7", desired), proto.RoleNode, false, false, ""},
		{"a plan by an admin", desired, by("f1/op/ada", desired), proto.RoleNode, false, false, ""},
		{"a plan by a stranger", desired, by("f1/planner/x", desired), proto.RoleNode, false, false, ""},
		{"a plan of another node", desired, by("f1/planner/a", topics.Desired(8)), proto.RoleNode, false, false, ""},
		{"a plan spoilt", desired, spoilt, proto.RoleNode, false, false, ""},
		{"a plan and more", desired, append(by("f1/planner/a", desired), 0), proto.RoleNode, false, false, ""},
		{"a sign of life, plain", topics.Planner(), body, proto.RoleNode, false, false, ""},
		{"an answer, plain", ack, body, proto.RolePlanner, false, true, ""},
		{"an answer, plain, to who wants seals", ack, body, proto.RolePlanner, true, false, ""},
		{"an answer, sealed", ack, by("f1/n/7", ack), proto.RolePlanner, true, true, "f1/n/7"},
		{"an answer, sealed, to who wants none", ack, by("f1/n/8", ack), proto.RolePlanner, false, true, ""},
		{"an answer of another", ack, by("f1/n/8", ack), proto.RolePlanner, true, false, ""},
		{"health, plain", health, body, proto.RolePlanner, true, true, ""},
		{"another fabric's", "ocs/v1/f2/n/7/desired", body, proto.RoleNode, false, true, ""},
		{"deleted", desired, nil, proto.RoleNode, false, true, ""},
	} {
		for _, mode := range []Mode{Warn, Enforce} {
			g := s.guard(Config{Mode: mode, Role: c.role, KeyFile: keys[c.role], Reports: c.reports})
			p, ok := comes(g, c.topic, c.payload)
			if ok != (c.good || mode == Warn) || p.By != c.by {
				t.Errorf("%s, %s: read %v, by %q", c.name, mode, ok, p.By)
			}
			if n := g.Counts(); (n.Refused.Sum()+n.Doubted.Sum() == 0) != c.good {
				t.Errorf("%s, %s: %+v", c.name, mode, n)
			}
		}
	}
	if g, err := New(Config{Mode: Off}); g != nil || err != nil {
		t.Error("a guard where none is wanted")
	}
}

// Goal: an operator asks what the role allows, and hears why when it does not.
// Method: three roles, and nobody, ask three questions.
func TestOperatorsRights(t *testing.T) {
	s := newSite(t)
	g := s.guard(Config{Role: proto.RolePlanner, KeyFile: s.keyFile("f1/planner/a")})
	for who, may := range map[string]string{"vic": "v", "olga": "vo", "ada": "voa", "": ""} { // any order: independent
		for letter, noun := range map[string]proto.Noun{"v": proto.NounStatus, "o": proto.NounDrain, "a": proto.NounApply} { // any order: independent
			topic, payload := topics.Request("ctl-1"), request(t, noun)
			if who != "" {
				topic = topics.Request(who)
				payload = seal.Sign(keyOf("f1/op/"+who), topic, payload)
			}
			p, ok := comes(g, topic, payload)
			if !ok || (p.Denied == "") != strings.Contains(may, letter) || who != "" && p.By != "f1/op/"+who {
				t.Errorf("%q asks %v: read %v, denied %q, by %q", who, noun, ok, p.Denied, p.By)
			}
		}
	}
	if p, _ := comes(g, topics.Request("ada"), seal.Sign(keyOf("f1/op/vic"), topics.Request("ada"), request(t, proto.NounApply))); p.Denied == "" || p.By != "" {
		t.Errorf("vic asked as ada: %+v", p)
	}
}

// Goal: signatures are checked so often and no oftener, and what is known is not
// checked again. Method: a flood of wrong seals on one topic of a node, then true
// messages there and elsewhere.
func TestFloodOfSealsIsBounded(t *testing.T) {
	s := newSite(t)
	g := s.guard(Config{Role: proto.RoleNode})
	plan := seal.Sign(keyOf("f1/planner/a"), topics.Desired(7), []byte{0xa0})
	if _, ok := comes(g, topics.Desired(7), plan); !ok {
		t.Fatal("a plan is not read")
	}
	for i := range 2000 {
		bad := bytes.Clone(plan)
		bad[len(bad)-1-i%32] ^= byte(1 + i%255)
		if _, ok := comes(g, topics.Desired(7), bad); ok {
			t.Fatal("a wrong seal is read")
		}
	}
	if g.afford(topics.Desired(7), time.Now()) {
		t.Error("the share of the topic is not used up")
	}
	if _, ok := comes(g, topics.Desired(7), plan); !ok {
		t.Error("what is known is not read")
	}
	if _, ok := comes(g, topics.Command(7), seal.Sign(keyOf("f1/planner/a"), topics.Command(7), []byte{0xa0})); !ok {
		t.Error("another topic has nothing left")
	}
}

// Goal: the highest edition that was ever seen holds, over restarts and against
// older files; a revoked key has no word from then on. Method: editions told over
// the link, by file, and by people who make mistakes.
func TestHighestEditionHolds(t *testing.T) {
	s := newSite(t)
	kept := filepath.Join(s.dir, "state", "trust.cose")
	cfg := Config{Role: proto.RoleNode, Kept: kept}
	g := s.guard(cfg)
	tell := func(tr *seal.Trust) { comes(g, topics.Trust(), tr.Sealed()) }
	reads := func() bool {
		_, ok := comes(g, topics.Desired(7), seal.Sign(keyOf("f1/planner/a"), topics.Desired(7), []byte{0xa0}))
		return ok
	}
	if !reads() {
		t.Fatal("a plan is not read")
	}
	second := s.trust("root")
	s.without = "f1/planner/a"
	third := s.trust("root")
	tell(third)
	if reads() {
		t.Error("a revoked planner is heard")
	}
	tell(second)
	tell(s.trust("thief"))
	if g.Trust().Edition != 3 || g.Counts().Refused == (Tally{}) {
		t.Errorf("edition %d", g.Trust().Edition)
	}
	if g = s.guard(cfg); g.Trust().Edition != 3 || reads() {
		t.Errorf("after a restart with the old file: edition %d", g.Trust().Edition)
	}
	s.without = ""
	newRoot := s.trust("root2", "root")
	tell(newRoot)
	tell(s.trust("root")) // the old root has no word any more
	if g.Trust().Edition != newRoot.Edition || !reads() {
		t.Errorf("a new root: edition %d", g.Trust().Edition)
	}
	// A file that somebody replaces while it runs.
	for _, c := range []struct {
		put  *seal.Trust
		want uint64
	}{{second, newRoot.Edition}, {s.trust("root2"), s.edition}} {
		s.write(c.put)
		g.looked, g.read = time.Time{}, time.Time{}
		if reads(); g.Trust().Edition != c.want {
			t.Errorf("after a file of edition %d: %d, want %d", c.put.Edition, g.Trust().Edition, c.want)
		}
	}
	// The same once more, as a site's tools bring it, is no error; an older one is.
	var said bytes.Buffer
	g.log = slog.New(slog.NewTextHandler(&said, nil))
	for _, c := range []struct {
		put  []byte
		says string
	}{{g.Trust().File(), ""}, {second.File(), "not taken"}} {
		if err := os.WriteFile(s.file(), c.put, 0o600); err != nil {
			t.Fatal(err)
		}
		g.looked, g.read = time.Time{}, time.Time{}
		if reads(); !strings.Contains(said.String(), c.says) || c.says == "" && said.Len() > 0 {
			t.Errorf("%q, want %q", said.String(), c.says)
		}
	}
	// The root is lost: by hand, a new one that nothing sealed but itself.
	s.edition = 0
	s.write(s.trust("root3"))
	if g = s.guard(cfg); g.Trust().Edition != 1 || g.Trust().Root == second.Root {
		t.Errorf("the file of a new site does not hold: edition %d", g.Trust().Edition)
	}
	if err := os.WriteFile(kept, []byte("spoilt"), 0o600); err != nil {
		t.Fatal(err)
	}
	if g = s.guard(cfg); g.Trust().Edition != 1 {
		t.Error("a spoilt copy stops it")
	}
}

// Goal: a configuration that protects less than it seems to is refused, by key.
// Method: one thing wrong at a time.
func TestWrongConfigurations(t *testing.T) {
	s := newSite(t)
	bare := filepath.Join(s.dir, "bare.cose")
	if err := os.WriteFile(bare, s.trust("root").Sealed(), 0o600); err != nil {
		t.Fatal(err)
	}
	good := Config{Mode: Enforce, Fabric: "f1", Role: proto.RolePlanner, KeyFile: s.keyFile("f1/planner/a"), TrustFile: s.file(), Reports: true}
	if _, err := New(good); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		field string
		spoil func(*Config)
	}{ // any order: independent
		"mode":     {"seal", func(c *Config) { c.Mode = "on" }},
		"trust":    {"trust", func(c *Config) { c.TrustFile = "" }},
		"missing":  {"trust", func(c *Config) { c.TrustFile = "none" }},
		"no trust": {"trust", func(c *Config) { c.TrustFile = c.KeyFile }},
		"fabric":   {"trust", func(c *Config) { c.Fabric = "f2" }},
		"nodes":    {"trust", func(c *Config) { c.TrustFile = bare }},
		"key":      {"key", func(c *Config) { c.KeyFile = "" }},
		"no key":   {"key", func(c *Config) { c.KeyFile = c.TrustFile }},
	} {
		cfg := good
		c.spoil(&cfg)
		if _, err := New(cfg); err == nil || proto.AsError(err).Field != c.field {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Goal: what a broker kept by a key that counts no more is not read, and raises no alarm;
// the same said anew is refused, and so is what is kept with a wrong signature or none.
// Method: a planner's state by a key that was revoked, retained and not.
func TestWhatIsKeptByAFormerKey(t *testing.T) {
	s := newSite(t)
	s.without = "f1/planner/a"
	s.write(s.trust("root"))
	topic := topics.Desired(7)
	sealed := seal.Sign(keyOf("f1/planner/a"), topic, request(t, proto.NounFabric))
	broken := sealed[:len(sealed)-1]
	for _, c := range []struct {
		what    string
		payload []byte
		retain  bool
		want    proto.Passage
		refused uint64
	}{
		{"kept", sealed, true, proto.Kept, 0},
		{"said", sealed, false, proto.Stopped, 1},
		{"kept, not sealed", request(t, proto.NounFabric), true, proto.Stopped, 1},
		{"kept, in no form", broken, true, proto.Stopped, 1},
	} {
		g := s.guard(Config{Mode: Enforce, Role: proto.RoleNode})
		p := proto.Packet{Kind: proto.Publish, Topic: topic, Payload: c.payload, Retain: c.retain}
		if seal.IsSealed(c.payload) {
			p.Sealed = c.payload
		}
		if got := g.Open(&p); got != c.want || g.Counts().Refused.Sum() != c.refused {
			t.Errorf("%s: %v, %d refused; want %v, %d", c.what, got, g.Counts().Refused, c.want, c.refused)
		}
	}
}
