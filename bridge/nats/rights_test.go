package nats

import (
	"crypto/x509"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"ringlight/proto"
	"ringlight/proto/mqtt"
	"ringlight/proto/pki"
)

// site is one nats-server with the configuration that ocsctl pki acl writes.
type site struct {
	t      *testing.T
	folder *pki.Folder
	keys   map[string]pki.Issued
	file   string // of the configuration
	server *server.Server
	// address of the MQTT listener, and its URL
	address, url string
}

func (s *site) issue(f *pki.Folder, role proto.Role, days int, names ...string) {
	s.t.Helper()
	r := pki.Request{Role: role, Days: days}
	for _, name := range names {
		h, err := proto.ParseHolder(name)
		if err != nil {
			s.t.Fatal(err)
		}
		r.Names = append(r.Names, h)
	}
	list, err := f.Issue(r)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, i := range list {
		s.keys[i.Name] = i
	}
}

const spyName = "f1/op/spy" // may do everything

// write writes the configuration: the part that the file itself says a server needs, and
// the file.
func (s *site) write() {
	s.t.Helper()
	var b strings.Builder
	if err := s.folder.NATS(&b); err != nil {
		s.t.Fatal(err)
	}
	text, own := b.String(), ""
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#   ") {
			own += line[4:]
		}
	}
	dir := s.folder.Dir
	own = strings.NewReplacer("127.0.0.1:4222", "127.0.0.1:-1", "0.0.0.0:8883", s.address, `"ca.pem"`, `"`+dir+`/ca.pem"`, `"f1-broker`, `"`+dir+`/f1-broker`, "-NAME.", "-b.",
		"/var/lib/nats", dir+"/js").Replace(own)
	own = strings.Join(deleteLine(strings.Split(own, "\n"), "cluster {"), "\n") // one server alone
	head, tail, found := strings.Cut(text, `"CN=`+spyName+`"`)
	_, tail, foundEnd := strings.Cut(tail, "} }\n")
	if !found || !foundEnd {
		s.t.Fatal("the spy is not listed")
	}
	if err := os.WriteFile(s.file, []byte(own+head+`"CN=`+spyName+`" }`+"\n"+tail), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func freeAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func deleteLine(lines []string, begin string) (out []string) {
	for _, l := range lines {
		if !strings.HasPrefix(l, begin) {
			out = append(out, l)
		}
	}
	return out
}

func newSite(t *testing.T) *site {
	t.Helper()
	dir := t.TempDir()
	s := &site{t: t, address: freeAddress(t), keys: map[string]pki.Issued{}, file: filepath.Join(dir, "nats.conf")}
	var err error
	if s.folder, err = pki.Init(filepath.Join(dir, "pki"), "f1", "cluster.example"); err != nil {
		t.Fatal(err)
	}
	s.issue(s.folder, proto.RolePlanner, 1, "f1/planner/a")
	s.issue(s.folder, proto.RoleNode, 1, "f1/n/7", "f1/n/8")
	s.issue(s.folder, proto.RoleView, 1, "f1/op/alice", spyName)
	if _, err := s.folder.Broker(pki.Request{Days: 1, Hosts: []string{"127.0.0.1"}}, "b"); err != nil {
		t.Fatal(err)
	}
	s.write()
	s.start()
	return s
}

func (s *site) start() {
	s.t.Helper()
	opts, err := server.ProcessConfigFile(s.file)
	if err != nil {
		s.t.Fatal(err)
	}
	opts.NoSigs = true
	if s.server, err = server.NewServer(opts); err != nil {
		s.t.Fatal(err)
	}
	s.server.Start()
	if !s.server.ReadyForConnections(20 * time.Second) {
		s.t.Fatal("nats-server does not start")
	}
	s.t.Cleanup(func() { s.server.Shutdown(); s.server.WaitForShutdown() })
	s.url = "mqtts://" + s.address
}

// connect gives the link's first word: that it is up, or what was refused; false when it
// is not let in.
func (s *site) connect(name, id, will string, subs ...string) (*mqtt.Link, proto.PacketKind, bool) {
	s.t.Helper()
	key, ca := s.keys[name], filepath.Join(s.folder.Dir, "ca.pem")
	cfg := mqtt.Config{Broker: s.url, ClientID: id, CAFile: ca, CertFile: key.CertFile, KeyFile: key.KeyFile, Subscriptions: subs, Ordered: true, Uncached: true, MinReconnect: 20 * time.Millisecond, MaxReconnect: 50 * time.Millisecond}
	if will != "" {
		cfg.Will = &proto.Packet{Topic: will, Payload: []byte("gone")}
	}
	l, err := mqtt.Dial(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(l.Abandon)
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case p := <-l.Recv():
			return l, p.Kind, true
		case <-look.C:
			if l.Err() != nil && l.Stats().Attempts > 2 {
				return l, 0, false
			}
		}
	}
}

func (s *site) up(name, id string, subs ...string) *mqtt.Link {
	s.t.Helper()
	l, word, in := s.connect(name, id, "", subs...)
	if !in || word != proto.LinkUp {
		s.t.Fatalf("%s: %v (%v)", name, word, l.Err())
	}
	return l
}

// came takes what comes until the last topic, and reports whether the other was there.
func (s *site) came(l *mqtt.Link, topic, last string) (ok bool) {
	s.t.Helper()
	end := time.After(10 * time.Second)
	for {
		select {
		case p := <-l.Recv():
			switch {
			case p.Kind != proto.Publish:
				s.t.Fatalf("%v while %s is waited for", p.Kind, last)
			case p.Topic == last:
				return ok
			}
			ok = ok || p.Topic == topic
		case <-end:
			s.t.Fatalf("%s did not come", last)
		}
	}
}

// heard reports whether a message on a topic comes: within a moment, or, when it must, in
// a long one.
func (s *site) heard(l *mqtt.Link, topic string, must bool) bool {
	end := time.After(map[bool]time.Duration{true: 10 * time.Second, false: 50 * time.Millisecond}[must])
	for {
		select {
		case p := <-l.Recv():
			if p.Kind == proto.Publish && p.Topic == topic {
				return true
			}
		case <-end:
			return false
		}
	}
}

func say(l *mqtt.Link, topic string) {
	defer func(sent uint64) { // telemetry leaves last
		for l.Up() && l.Stats().Sent == sent {
			<-time.After(time.Millisecond)
		}
	}(l.Stats().Sent)
	_ = l.Send(proto.Packet{Kind: proto.Publish, Topic: topic, Payload: []byte{0xa0}}) // who listens notices what is missing
}

// Goal: the generated users give nats-server the rights of the table, cell by cell. Method:
// every holder subscribes and publishes on every topic over TLS; somebody with all rights
// sees what comes through.
func TestNATSGrantsTheTable(t *testing.T) {
	s := newSite(t)
	spy := s.up(spyName, "spy", "ocs/#")
	f1 := proto.Topics{Fabric: "f1"}
	topics := []string{f1.Desired(7), f1.Command(7), f1.Ack(7), f1.Reported(7), f1.Presence(7), f1.Health(7), f1.Event(7), f1.Desired(8), f1.Ack(8), f1.Presence(8),
		f1.Planner(), f1.Decision(3), f1.Trust(), f1.Request("alice"), f1.Reply("alice"), f1.Request("bob"), f1.Reply("bob"), "ocs/v1/f2/planner/state", "ocs/x"}
	cells := 0
	for name, sure := range map[string]string{"f1/n/7": f1.Presence(7), "f1/planner/a": f1.Planner(), "f1/op/alice": f1.Request("alice")} { // any order: independent
		h, _ := proto.ParseHolder(name)
		for _, topic := range append([]string{"#", "ocs/v1/f1/#", "ocs/v1/f1/n/+/ack", "ocs/v1/+/planner/state"}, topics...) {
			l, word, in := s.connect(name, "sub", "", topic)
			want := proto.Refused
			if h.Grants().Allow(false, topic) {
				want = proto.LinkUp
			}
			if cells++; !in || word != want {
				t.Errorf("%s subscribes to %s: %v, want %v", name, topic, word, want)
			}
			l.Abandon()
		}
		l := s.up(name, "pub")
		for _, topic := range topics {
			if topic == sure {
				continue
			}
			say(l, topic)
			say(l, sure)
			if cells++; s.came(spy, topic, sure) != h.Grants().Allow(true, topic) {
				t.Errorf("%s publishes on %s: want %v", name, topic, h.Grants().Allow(true, topic))
			}
		}
		l.Abandon()
		for _, topic := range topics { // the same of wills
			gone, word, in := s.connect(name, "will", topic)
			if cells++; in && word == proto.LinkUp {
				gone.Abandon()
			}
			if got, want := s.heard(spy, topic, h.Grants().Allow(true, topic)), h.Grants().Allow(true, topic); got != want {
				t.Errorf("%s with a will on %s: came %v, want %v", name, topic, got, want)
			}
		}
	}
	t.Logf("%d cells", cells)
}

// own writes a certificate for a holder's key with other times, signed by the root.
func (s *site) own(name string, from, until time.Time) pki.Issued {
	s.t.Helper()
	roots, _ := filepath.Glob(filepath.Join(s.folder.Dir, "root-*.key"))
	root, err := pki.ReadKey(roots[0])
	if err != nil {
		s.t.Fatal(err)
	}
	read := func(file string) *x509.Certificate {
		text, err := os.ReadFile(file)
		if err != nil {
			s.t.Fatal(err)
		}
		block, _ := pem.Decode(text)
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			s.t.Fatal(err)
		}
		return c
	}
	ca, c := read(filepath.Join(s.folder.Dir, "ca.pem")), read(s.keys[name].CertFile)
	c.NotBefore, c.NotAfter = from, until
	der, err := x509.CreateCertificate(nil, c, ca, c.PublicKey, root)
	if err != nil {
		s.t.Fatal(err)
	}
	i := s.keys[name]
	i.CertFile = filepath.Join(s.t.TempDir(), "cert.pem")
	if err := os.WriteFile(i.CertFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return i
}

// Goal: who is let in, and what NATS cannot do: it binds no client ids. Method: one thing
// wrong each; what is lacking is asserted too, so that the page says it as long as it is so.
func TestWhoNATSLetsIn(t *testing.T) {
	s := newSite(t)
	stranger, err := pki.Init(filepath.Join(t.TempDir(), "pki"), "f1", "other.example")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	good := s.keys["f1/n/7"]
	expired, early := s.own("f1/n/7", now.AddDate(0, -2, 0), now.AddDate(0, -1, 0)), s.own("f1/n/7", now.AddDate(1, 0, 0), now.AddDate(2, 0, 0))
	s.issue(stranger, proto.RoleNode, 1, "f1/n/7")
	strange := s.keys["f1/n/7"]
	s.issue(s.folder, proto.RoleNode, 1, "f1/n/9") // the broker has not been told
	carrier, err := s.folder.Broker(pki.Request{Days: 1}, "c")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		key  pki.Issued
		id   string
		in   bool
	}{
		{"a node", good, "f1-n7", true},
		{"under another's id, which NATS does not mind", good, "f1-n8", true},
		{"a stranger's authority", strange, "f1-n7", false},
		{"a name that is not listed", s.keys["f1/n/9"], "f1-n9", false},
		{"a broker's certificate", carrier, "f1-x", false},
		{"an expired certificate", expired, "f1-n7", false},
		{"one that begins later, as where the broker's clock is at 1970", early, "f1-n7", false},
	} {
		s.keys["one"] = c.key
		l, _, in := s.connect("one", c.id, "")
		if in != c.in {
			t.Errorf("%s: let in %v (%v)", c.name, in, l.Err())
		}
		l.Abandon()
	}
}

// Goal: a reload ends connections of who is revoked, others stay. Method: live connections
// of two nodes; then a node with a second key, of which NATS knows no difference.
func TestRevokedConnectionsEndAtNATS(t *testing.T) {
	s := newSite(t)
	seven, eight := s.up("f1/n/7", "f1-n7"), s.up("f1/n/8", "f1-n8")
	first := s.keys["f1/n/8"]
	h, _ := proto.ParseHolder("f1/n/8")
	if _, err := s.folder.Issue(pki.Request{Names: []proto.Holder{h}, Role: proto.RoleNode, Days: 1, Out: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]string{"f1/n/7": "", "f1/n/8": first.ID} { // any order
		if _, err := s.folder.Revoke(name, key); err != nil {
			t.Fatal(err)
		}
	}
	s.write()
	if err := s.server.Reload(); err != nil {
		t.Fatal(err)
	}
	select {
	case p := <-seven.Recv():
		if p.Kind != proto.LinkDown {
			t.Fatalf("the revoked node hears %v", p.Kind)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the revoked node stays connected")
	}
	for seven.Stats().Attempts < 4 {
		<-time.After(5 * time.Millisecond)
	}
	if seven.Up() || seven.Stats().Connects != 1 || !eight.Up() || eight.Stats().Losses != 0 {
		t.Errorf("node 7 up %v after %+v, node 8 up %v", seven.Up(), seven.Stats(), eight.Up())
	}
}

// Goal: ocsctl, which asks at QoS 1, works with the same rights. Method: a question of alice
// heard by the planner, and its answer, over links as ocsctl and the planner have them.
func TestOperatorsAskAtNATS(t *testing.T) {
	s := newSite(t)
	f1 := proto.Topics{Fabric: "f1"}
	p := s.up("f1/planner/a", "planner", f1.EveryRequest())
	key := s.keys["f1/op/alice"]
	alice, err := mqtt.Dial(mqtt.Config{Broker: s.url, ClientID: "alice", CAFile: filepath.Join(s.folder.Dir, "ca.pem"), CertFile: key.CertFile, KeyFile: key.KeyFile, Subscriptions: []string{f1.Reply("alice")}})
	if err != nil {
		t.Fatal(err)
	}
	defer alice.Close()
	if w := <-alice.Recv(); w.Kind != proto.LinkUp {
		t.Fatalf("alice hears %v (%v)", w.Kind, alice.Err())
	}
	_ = alice.Send(proto.Packet{Kind: proto.Publish, Topic: f1.Request("alice"), Payload: []byte{0xa0}, QoS: 1})
	s.came(p, "", f1.Request("alice"))
	say(p, f1.Reply("alice"))
	s.came(alice, "", f1.Reply("alice"))
}
