package server

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"

	"ringlight/proto"
	"ringlight/proto/mqtt"
	"ringlight/proto/pki"
	"ringlight/proto/seal"
)

// published records the topics that a broker took.
type published struct {
	mochi.HookBase
	mu     sync.Mutex
	topics map[string]bool
}

func (h *published) ID() string           { return "published" }
func (h *published) Provides(b byte) bool { return b == mochi.OnPublished }
func (h *published) OnPublished(_ *mochi.Client, pk packets.Packet) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.topics[pk.TopicName] = true
}

// named is a broker with rights by name, and the keys of its clients.
type named struct {
	t      *testing.T
	broker *Broker
	folder *pki.Folder
	trust  *seal.Trust
	took   *published
	keys   map[string]pki.Issued
	mu     sync.Mutex
}

func newNamed(t *testing.T) *named {
	t.Helper()
	n := &named{t: t, keys: map[string]pki.Issued{}, took: &published{topics: map[string]bool{}}}
	var err error
	if n.folder, err = pki.Init(t.TempDir(), "f1", "cluster.example"); err != nil {
		t.Fatal(err)
	}
	n.issue(n.folder, proto.RolePlanner, "f1/planner/a")
	n.issue(n.folder, proto.RoleNode, "f1/n/7", "f1/n/8")
	n.issue(n.folder, proto.RoleView, "f1/op/alice")
	n.trust = n.folder.Trust
	own := n.keys["f1/planner/a"]
	ca, _ := n.folder.Files()
	if n.broker, err = StartBrokerWith(BrokerConfig{Listen: "127.0.0.1:0", CAFile: ca, CertFile: own.CertFile, KeyFile: own.KeyFile,
		Trust: func() *seal.Trust { n.mu.Lock(); defer n.mu.Unlock(); return n.trust }}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.broker.Close() })
	if err := n.broker.server.AddHook(n.took, nil); err != nil {
		t.Fatal(err)
	}
	return n
}

func (n *named) issue(f *pki.Folder, role proto.Role, names ...string) {
	n.t.Helper()
	r := pki.Request{Role: role, Days: 1}
	for _, name := range names {
		h, err := proto.ParseHolder(name)
		if err != nil {
			n.t.Fatal(err)
		}
		r.Names = append(r.Names, h)
	}
	list, err := f.Issue(r)
	if err != nil {
		n.t.Fatal(err)
	}
	for _, i := range list {
		n.keys[i.Name] = i
	}
}

var clientIDs = map[string]string{"f1/n/7": "f1-n7", "f1/n/8": "f1-n8", "f1/planner/a": "f1-planner-1", "f1/op/alice": "f1-op-alice-1"}

// connect gives the link's first word: that it is up, or what was refused; "" when it
// is not let in.
func (n *named) connect(key pki.Issued, id, will string, subs ...string) (*mqtt.Link, proto.PacketKind, bool) {
	n.t.Helper()
	ca, _ := n.folder.Files()
	cfg := mqtt.Config{Broker: n.broker.URL(), ClientID: id, CAFile: ca, CertFile: key.CertFile, KeyFile: key.KeyFile, Subscriptions: subs, MinReconnect: 20 * time.Millisecond, MaxReconnect: 50 * time.Millisecond}
	if will != "" {
		cfg.Will = &proto.Packet{Topic: will, Payload: []byte("gone"), QoS: 1}
	}
	l, err := mqtt.Dial(cfg)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(l.Abandon)
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case p := <-l.Recv():
			if p.Kind == proto.Publish {
				continue // what the broker still had for this client's connection before
			}
			return l, p.Kind, true
		case <-look.C:
			if err := l.Err(); err != nil && l.Stats().Attempts > 1 {
				return l, 0, false
			}
		}
	}
}

// Goal: rights are those of the table, cell by cell, as a broker grants them. Method:
// every holder subscribes and publishes on every topic over TLS; a publication that is
// not allowed ends the connection, and nothing of it is handed on.
func TestRightsOnTheEmbeddedBroker(t *testing.T) {
	n := newNamed(t)
	f1 := proto.Topics{Fabric: "f1"}
	topics := []string{f1.Desired(7), f1.Command(7), f1.Ack(7), f1.Reported(7), f1.Presence(7), f1.Health(7), f1.Event(7), f1.Desired(8), f1.Ack(8), f1.Presence(8),
		f1.Planner(), f1.Decision(3), f1.Trust(), f1.Request("alice"), f1.Reply("alice"), f1.Request("bob"), f1.Reply("bob"), "ocs/v1/f2/planner/state", "x"}
	cells := 0
	for _, name := range []string{"f1/n/7", "f1/planner/a", "f1/op/alice"} {
		h, _ := proto.ParseHolder(name)
		for _, topic := range append([]string{"#", "ocs/v1/f1/#", "ocs/v1/f1/n/+/ack", "ocs/v1/+/planner/state"}, topics...) {
			l, word, in := n.connect(n.keys[name], clientIDs[name], "", topic)
			for tries := 0; !in && tries < 5; tries++ { // a machine too busy to connect says nothing of rights
				l.Abandon()
				l, word, in = n.connect(n.keys[name], clientIDs[name], "", topic)
			}
			want := proto.Refused
			if h.Grants().Allow(false, topic) {
				want = proto.LinkUp
			}
			if cells++; !in || word != want {
				t.Errorf("%s subscribes to %s: %v, want %v", name, topic, word, want)
			}
			l.Abandon()
		}
		for _, topic := range topics {
			n.took.mu.Lock()
			clear(n.took.topics)
			n.took.mu.Unlock()
			l, _, in := n.connect(n.keys[name], clientIDs[name], "")
			if !in {
				t.Fatalf("%s is not let in: %v", name, l.Err())
			}
			for i, topic := range []string{topic, "not/allowed"} { // by which the connection ends
				_ = l.Send(proto.Packet{Kind: proto.Publish, Topic: topic, Payload: []byte{0xa0}, QoS: 1}) // ended already
				for l.Up() && l.Stats().Sent <= uint64(i) {
					<-time.After(time.Millisecond) // telemetry leaves last
				}
			}
			for p := range l.Recv() {
				if p.Kind == proto.LinkDown {
					break
				}
			}
			l.Abandon()
			n.took.mu.Lock()
			if cells++; n.took.topics[topic] != h.Grants().Allow(true, topic) || n.took.topics["not/allowed"] {
				t.Errorf("%s publishes on %s: %v", name, topic, n.took.topics[topic])
			}
			n.took.mu.Unlock()
		}
	}
	t.Logf("%d cells", cells)
}

// Goal: nobody comes in under another's client id, with another's will, with a key
// that is not trusted, or a name that is not that key's, nor throws anybody off by trying.
// Method: one thing wrong each, while the node whose id it is is connected.
func TestWhoIsLetIn(t *testing.T) {
	n := newNamed(t)
	f1 := proto.Topics{Fabric: "f1"}
	stranger, err := pki.Init(t.TempDir(), "f1", "other.example")
	if err != nil {
		t.Fatal(err)
	}
	good := n.keys["f1/n/7"]
	n.issue(stranger, proto.RoleNode, "f1/n/7")
	strange := n.keys["f1/n/7"]
	// Of the same authority, but in no edition that this broker knows.
	n.issue(n.folder, proto.RoleNode, "f1/n/9")
	carrier, err := n.folder.Broker(pki.Request{Days: 1, Hosts: []string{"127.0.0.1"}}, "b")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		key      pki.Issued
		id, will string
		in       bool
	}{
		{"a node", good, "f1-n7", f1.Presence(7), true},
		{"under another's id", good, "f1-n8", "", false},
		{"under a planner's id", good, "f1-planner-1", "", false},
		{"with another's will", good, "f1-n7", f1.Presence(8), false},
		{"with a planner's will", good, "f1-n7", f1.Planner(), false},
		{"a stranger's authority", strange, "f1-n7", "", false},
		{"a key of no edition", n.keys["f1/n/9"], "f1-n9", "", false},
		{"a broker's", carrier, "f1-planner-1", "", false},
		{"an operator as another", n.keys["f1/op/alice"], "f1-op-bob-1", "", false},
	} {
		key := n.keys["f1/n/8"]
		if c.id == "f1-n7" {
			key = good
		}
		whose, _, there := n.connect(key, c.id, "")
		l, _, in := n.connect(c.key, c.id, c.will)
		if in != c.in {
			t.Errorf("%s: let in %v (%v)", c.name, in, l.Err())
		}
		if there && !in && whose.Stats().Losses > 0 {
			t.Errorf("%s: it was refused, and ended another's connection", c.name)
		}
		l.Abandon()
		whose.Abandon()
	}
	h := n.broker.limits // nothing is kept of who was refused
	for end := time.Now().Add(10 * time.Second); ; <-time.After(time.Millisecond) {
		h.mu.Lock()
		kept := len(h.client) + len(h.names) + len(h.conns)
		h.mu.Unlock()
		if kept == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d accounts of clients that are gone", kept)
		}
	}
}

// Goal: who is revoked is thrown out at once and does not come back, others stay; a
// new root changes nothing for who is trusted. Method: live connections of two nodes,
// a revocation, a new root.
func TestRevokedConnectionsEnd(t *testing.T) {
	n := newNamed(t)
	seven, _, in7 := n.connect(n.keys["f1/n/7"], "f1-n7", "")
	eight, _, in8 := n.connect(n.keys["f1/n/8"], "f1-n8", "")
	if !in7 || !in8 {
		t.Fatal("not let in")
	}
	change := func() {
		n.mu.Lock()
		n.trust = n.folder.Trust
		n.mu.Unlock()
		n.broker.Revoke()
	}
	if err := n.folder.NewRoot(); err != nil {
		t.Fatal(err)
	}
	change()
	if _, err := n.folder.Revoke("f1/n/7", ""); err != nil {
		t.Fatal(err)
	}
	change()
	if p := <-seven.Recv(); p.Kind != proto.LinkDown {
		t.Fatalf("the revoked node hears %v", p.Kind)
	}
	for seven.Stats().Attempts < 4 {
		<-time.After(5 * time.Millisecond)
	}
	if seven.Up() || seven.Stats().Connects != 1 || !eight.Up() || eight.Stats().Losses != 0 {
		t.Errorf("node 7 up %v after %+v, node 8 up %v", seven.Up(), seven.Stats(), eight.Up())
	}
	if why := seven.Err(); why == nil || !strings.Contains(strings.ToLower(why.Error()), "not auth") {
		t.Errorf("node 7 is told: %v", why)
	}
	if list, _ := filepath.Glob(filepath.Join(n.folder.Dir, "root-*.key")); len(list) != 2 {
		t.Errorf("roots: %q", list)
	}
}
