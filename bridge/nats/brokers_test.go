package nats

import (
	"crypto/x509"
	"encoding/pem"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	planning "ringlight/planner/server"
	"ringlight/proto"
	"ringlight/proto/mqtt"
	"ringlight/proto/pki"
	"ringlight/proto/seal"
	"ringlight/sim/freeport"
)

// broker is one under trial, with the configuration that ocsctl pki writes.
type broker interface {
	start(s *site)
	// tell has the broker hear of what changed in the folder, as the pages say.
	tell()
	// restart ends the broker and starts it again, nil where nobody needs that.
	restart()
	url(h proto.Holder) string
	id(h proto.Holder) string // client id of a holder's own
	carrier() string          // its certificate, PEM
}

// kinds are the brokers of the table of docs/security.md, in its order.
var kinds = []struct {
	name string
	make func() broker
}{
	{"embedded", func() broker { return &embedded{} }},
	{"mosquitto", func() broker { return &mosquitto{} }},
	{"nats", func() broker { return &natsServer{} }},
}

// site is a fabric's keys and a broker.
type site struct {
	t      *testing.T
	kind   string
	broker broker
	folder *pki.Folder
	ca     string // of the clients
	keys   map[string]pki.Issued
	logins string // folder with passwords, which say who comes where there is one
}

const (
	seven, eight     = "f1/n/7", "f1/n/8"
	plannerA, alice  = "f1/planner/a", "f1/op/alice"
	bob, tokenOfNine = "f1/op/bob", "f1/enrol/9"
)

func newSite(t *testing.T, kind string, b broker) *site {
	t.Helper()
	s := &site{t: t, kind: kind, broker: b, keys: map[string]pki.Issued{}}
	var err error
	if s.folder, err = pki.Init(filepath.Join(t.TempDir(), "pki"), "f1", "cluster.example"); err != nil {
		t.Fatal(err)
	}
	s.issue(s.folder, proto.RolePlanner, 1, plannerA)
	s.issue(s.folder, proto.RoleNode, 1, seven, eight)
	s.issue(s.folder, proto.RoleView, 1, alice, bob)
	s.ca, _ = s.folder.Files()
	b.start(s)
	return s
}

// withPasswords is a site where brokers know users, and nobody's certificate.
func withPasswords(t *testing.T, kind string, b broker) *site {
	t.Helper()
	s := &site{t: t, kind: kind, broker: b, keys: map[string]pki.Issued{}, logins: t.TempDir()}
	var err error
	if s.folder, err = pki.Init(filepath.Join(t.TempDir(), "pki"), "f1", "cluster.example"); err != nil {
		t.Fatal(err)
	}
	s.issue(s.folder, proto.RolePlanner, 1, plannerA) // for TLS of the planner's own broker
	s.password(s.logins, hearers[:5]...)
	s.password(s.logins, plannerA)
	s.ca, _ = s.folder.Files()
	b.start(s)
	return s
}

func (s *site) password(out string, names ...string) {
	s.t.Helper()
	r := pki.Request{Out: out}
	for _, name := range names {
		r.Names = append(r.Names, holder(s.t, name))
		s.keys[name] = pki.Issued{Name: name, CertFile: s.keys[name].CertFile, KeyFile: s.keys[name].KeyFile}
	}
	if _, err := s.folder.Passwords(r); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) loginOf(name string) string {
	return filepath.Join(s.logins, strings.ReplaceAll(name, "/", "-")+".password")
}

func holder(t *testing.T, name string) proto.Holder {
	t.Helper()
	h, err := proto.ParseHolder(name)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (s *site) issue(f *pki.Folder, role proto.Role, days int, names ...string) {
	s.t.Helper()
	r := pki.Request{Role: role, Days: days, Out: s.t.TempDir()}
	for _, name := range names {
		r.Names = append(r.Names, holder(s.t, name))
	}
	list, err := f.Issue(r)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, i := range list {
		s.keys[i.Name] = i
	}
}

// embedded is the planner's own broker.
type embedded struct {
	s  *site
	b  *planning.Broker
	mu sync.Mutex
	t  *seal.Trust
}

func (e *embedded) start(s *site) {
	e.s, e.t = s, s.folder.Trust
	own := s.keys[plannerA]
	cfg := planning.BrokerConfig{Listen: "127.0.0.1:0", CAFile: s.ca, CertFile: own.CertFile, KeyFile: own.KeyFile,
		Trust: func() *seal.Trust { e.mu.Lock(); defer e.mu.Unlock(); return e.t }}
	if s.logins != "" {
		cfg.Passwords = filepath.Join(s.folder.Dir, "passwords")
	}
	var err error
	if e.b, err = planning.StartBrokerWith(cfg); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { e.b.Close() })
}

func (e *embedded) tell() {
	e.mu.Lock()
	e.t = e.s.folder.Trust
	e.mu.Unlock()
	if e.s.logins != "" {
		<-time.After(1100 * time.Millisecond) // it looks at the file once a second
	}
	e.b.Revoke()
}

func (e *embedded) restart()                {}
func (e *embedded) url(proto.Holder) string { return e.b.URL() }
func (e *embedded) carrier() string         { return e.s.keys[plannerA].CertFile }
func (e *embedded) id(h proto.Holder) string {
	switch h.Kind {
	case proto.HolderNode:
		return proto.Topics{Fabric: h.Fabric}.NodeClient(h.Node)
	case proto.HolderPlanner:
		return h.Fabric + "-planner-" + h.ID
	case proto.HolderEnrol:
		return h.EnrolClient()
	}
	return h.OperatorClient("1")
}

// mosquitto is a process with the folder of ocsctl pki mosquitto.
type mosquitto struct {
	s             *site
	binary, conf  string
	nodes, others string
	cmd           *exec.Cmd
}

func (m *mosquitto) start(s *site) {
	m.s = s
	var err error
	if m.binary, err = exec.LookPath("mosquitto"); err != nil {
		if m.binary = "/usr/sbin/mosquitto"; exec.Command("test", "-x", m.binary).Run() != nil {
			s.t.Skip("mosquitto is not installed")
		}
	}
	m.nodes, m.others = freeport.Address(), freeport.Address()
	dir := filepath.Join(s.folder.Dir, pki.KindMosquitto)
	if _, err := s.folder.Configure(pki.KindMosquitto, pki.Server{Name: "b", Hosts: []string{"127.0.0.1"}, Days: 30, At: dir, Listen: m.nodes, Others: m.others, ByPassword: s.logins != ""}); err != nil {
		s.t.Fatal(err)
	}
	m.conf = filepath.Join(dir, "mosquitto.conf")
	if os.Getuid() == 0 { // it would become another user, who may not enter here
		m.conf = filepath.Join(s.t.TempDir(), "mosquitto.conf")
		text, err := os.ReadFile(filepath.Join(dir, "mosquitto.conf"))
		if err != nil || os.WriteFile(m.conf, append([]byte("user root\n"), text...), 0o600) != nil {
			s.t.Fatal(err)
		}
	}
	s.t.Cleanup(m.stop)
	m.run()
}

func (m *mosquitto) run() {
	m.cmd = exec.Command(m.binary, "-c", m.conf)
	if err := m.cmd.Start(); err != nil {
		m.s.t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); ; <-time.After(10 * time.Millisecond) {
		if c, err := net.Dial("tcp", m.others); err == nil {
			c.Close()
			break
		} else if time.Now().After(end) {
			m.s.t.Fatal(err)
		}
	}
	m.s.up(bob, m.id(holder(m.s.t, bob))+"-first").Close() // from here on it hears signals
}

func (m *mosquitto) stop() { _ = m.cmd.Process.Kill(); _ = m.cmd.Wait() }
func (m *mosquitto) restart() {
	m.stop()
	m.run()
}

// tell: a signal is heard between two rounds of its loop, of 100 ms at most.
func (m *mosquitto) tell() {
	if err := m.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		m.s.t.Fatal(err)
	}
	<-time.After(moment)
}

func (m *mosquitto) url(h proto.Holder) string {
	if h.Kind == proto.HolderNode || h.Kind == proto.HolderEnrol {
		return "mqtts://" + m.nodes
	}
	return "mqtts://" + m.others
}

func (m *mosquitto) id(h proto.Holder) string { return h.String() }
func (m *mosquitto) carrier() string {
	return filepath.Join(m.s.folder.Dir, pki.KindMosquitto, "f1-broker-b.pem")
}

// natsServer is one with the folder of ocsctl pki nats.
type natsServer struct {
	s             *site
	address, conf string
	server        *server.Server
}

func (n *natsServer) start(s *site) {
	n.s, n.address = s, freeport.Address()
	dir := filepath.Join(s.folder.Dir, pki.KindNATS)
	if _, err := s.folder.Configure(pki.KindNATS, pki.Server{Name: "b", Hosts: []string{"127.0.0.1"}, Days: 30, At: dir, Listen: n.address}); err != nil {
		s.t.Fatal(err)
	}
	opts, err := server.ProcessConfigFile(filepath.Join(dir, "nats.conf"))
	if err != nil {
		s.t.Fatal(err)
	}
	opts.NoSigs = true
	if n.server, err = server.NewServer(opts); err != nil {
		s.t.Fatal(err)
	}
	n.server.Start()
	if !n.server.ReadyForConnections(20 * time.Second) {
		s.t.Fatal("nats-server does not start")
	}
	s.t.Cleanup(func() { n.server.Shutdown(); n.server.WaitForShutdown() })
}

func (n *natsServer) tell() {
	if err := n.server.Reload(); err != nil {
		n.s.t.Fatal(err)
	}
}

func (n *natsServer) restart()                 {}
func (n *natsServer) url(proto.Holder) string  { return "mqtts://" + n.address }
func (n *natsServer) id(h proto.Holder) string { return h.String() }
func (n *natsServer) carrier() string {
	return filepath.Join(n.s.folder.Dir, pki.KindNATS, "f1-broker-b.pem")
}

// connect gives the link's first word: that it is up, or what was refused; false when it
// is not let in.
func (s *site) connect(name, id, will string, subs ...string) (*mqtt.Link, proto.PacketKind, bool) {
	s.t.Helper()
	return s.connectAt(s.broker.url(holder(s.t, name)), s.keys[name], id, will, subs...)
}

// config is how a holder comes.
func (s *site) config(url string, key pki.Issued) mqtt.Config {
	cfg := mqtt.Config{Broker: url, CAFile: s.ca, CertFile: key.CertFile, KeyFile: key.KeyFile, Ordered: true, Uncached: true, MinReconnect: 20 * time.Millisecond, MaxReconnect: 50 * time.Millisecond}
	if s.logins != "" {
		cfg.CertFile, cfg.KeyFile, cfg.PasswordFile = "", "", s.loginOf(key.Name)
	}
	return cfg
}

func (s *site) connectAt(url string, key pki.Issued, id, will string, subs ...string) (*mqtt.Link, proto.PacketKind, bool) {
	s.t.Helper()
	cfg := s.config(url, key)
	cfg.ClientID, cfg.Subscriptions = id, subs
	if topic, text, ok := strings.Cut(will, " "); ok {
		cfg.Will = &proto.Packet{Topic: topic, Payload: []byte(text)}
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
		s.t.Fatalf("%s: %s: %v (%v)", s.kind, name, word, l.Err())
	}
	return l
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
	ca, c := read(s.ca), read(s.keys[name].CertFile)
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

// token gives a node a token, by an issuer.
func (s *site) token(n proto.NodeID) {
	s.t.Helper()
	h := f1.NodeHolder(n)
	if _, err := s.folder.Issuer(pki.Request{Days: 30}, "i"); err != nil {
		s.t.Fatal(err)
	}
	list, err := s.folder.Tokens(pki.Request{Names: []proto.Holder{h}, Days: 1, Out: s.t.TempDir()})
	if err != nil {
		s.t.Fatal(err)
	}
	s.keys[list[0].Name] = list[0]
}
