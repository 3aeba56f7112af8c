package pki

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"ringlight/proto"
)

// site is mosquitto with a listener for nodes, one for the rest, and one without TLS
// for whoever watches.
type site struct {
	t                    *testing.T
	folder               *Folder
	nodes, others, plain string
	pool                 *x509.CertPool
	will                 string // of the next client: its topic
}

func startMosquitto(t *testing.T) *site {
	t.Helper()
	binary, err := exec.LookPath("mosquitto")
	if err != nil {
		if binary = "/usr/sbin/mosquitto"; exec.Command(binary, "-h").Run() == nil {
			t.Log("not on the path")
		} else if _, err := os.Stat(binary); err != nil {
			t.Skip("mosquitto is not installed")
		}
	}
	s := &site{t: t, pool: x509.NewCertPool()}
	dir := t.TempDir()
	if s.folder, err = Init(dir, "f1", "cluster.example"); err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct {
		role proto.Role
		name string
	}{{proto.RolePlanner, "f1/planner/a"}, {proto.RoleNode, "f1/n/7"}, {proto.RoleNode, "f1/n/8"}, {proto.RoleView, "f1/op/alice"}} {
		issue(t, s.folder, one.role, one.name)
	}
	if _, err := s.folder.Broker(Request{Days: 1}, "b"); err != nil {
		t.Fatal(err)
	}
	acl, err := os.Create(filepath.Join(dir, "acl"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.folder.Mosquitto(acl); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(acl, "\nuser spy\ntopic readwrite #")
	acl.Close()
	conf := "persistence false\nallow_anonymous true\nacl_file " + acl.Name() + "\n"
	for i, at := range []*string{&s.nodes, &s.others, &s.plain} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		*at = l.Addr().String()
		l.Close()
		host, port, _ := net.SplitHostPort(*at)
		conf += fmt.Sprintf("listener %s %s\n", port, host)
		if i < 2 {
			conf += fmt.Sprintf("cafile %[1]s/ca.pem\ncertfile %[1]s/f1-broker-b.pem\nkeyfile %[1]s/f1-broker-b.key\nrequire_certificate true\nuse_identity_as_username true\n", dir)
		}
		if i == 0 {
			conf += "use_username_as_clientid true\n"
		}
	}
	file := filepath.Join(dir, "mosquitto.conf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "-c", file)
	if os.Getuid() == 0 { // it would become another user, who may not read the keys
		conf += "user root\n"
		if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	pem, _ := os.ReadFile(filepath.Join(dir, caName))
	s.pool.AppendCertsFromPEM(pem)
	for end := time.Now().Add(10 * time.Second); ; <-time.After(10 * time.Millisecond) {
		if c, err := net.Dial("tcp", s.plain); err == nil {
			c.Close()
			return s
		} else if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// client connects as a holder, or, with an empty name, as who watches.
func (s *site) client(name, id string) (paho.Client, chan paho.Message, error) {
	heard := make(chan paho.Message, 100)
	o := paho.NewClientOptions().SetClientID(id).SetAutoReconnect(false).SetConnectTimeout(5 * time.Second).SetProtocolVersion(4).
		SetDefaultPublishHandler(func(_ paho.Client, m paho.Message) { heard <- m })
	if name == "" {
		o.AddBroker("tcp://" + s.plain).SetUsername("spy")
	} else {
		at := s.others
		if h, _ := proto.ParseHolder(name); h.Kind == proto.HolderNode {
			at = s.nodes
		}
		file := filepath.Join(s.folder.Dir, fileName(name))
		pair, err := tls.LoadX509KeyPair(file+".pem", file+".key")
		if err != nil {
			s.t.Fatal(err)
		}
		o.AddBroker("ssl://" + at).SetTLSConfig(&tls.Config{RootCAs: s.pool, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13})
	}
	if s.will != "" {
		o.SetWill(s.will, "gone", 1, false)
	}
	c := paho.NewClient(o)
	token := c.Connect()
	token.Wait()
	s.t.Cleanup(func() { c.Disconnect(0) })
	return c, heard, token.Error()
}

func (s *site) say(c paho.Client, topic string) {
	if t := c.Publish(topic, 1, false, "x"); !t.WaitTimeout(5*time.Second) || t.Error() != nil {
		s.t.Fatalf("publish on %s: %v", topic, t.Error())
	}
}

// came takes what comes until the last topic, and reports whether the other was there.
func (s *site) came(heard chan paho.Message, topic, last string) (ok bool) {
	for {
		select {
		case m := <-heard:
			if m.Topic() == last {
				return ok
			}
			ok = ok || m.Topic() == topic
		case <-time.After(5 * time.Second):
			s.t.Fatalf("%s did not come", last)
		}
	}
}

// Goal: the generated list gives mosquitto the rights of the table, cell by cell, but
// for what it is said to give operators more. Method: every holder publishes and
// listens over TLS, somebody with all rights sees what comes through.
func TestMosquittoGrantsTheTable(t *testing.T) {
	s := startMosquitto(t)
	spy, seen, err := s.client("", "spy")
	if err != nil {
		t.Fatal(err)
	}
	spy.Subscribe("ocs/#", 1, nil).Wait()
	f1 := proto.Topics{Fabric: "f1"}
	topics := []string{f1.Desired(7), f1.Command(7), f1.Ack(7), f1.Reported(7), f1.Presence(7), f1.Health(7), f1.Event(7), f1.Desired(8), f1.Ack(8), f1.Presence(8),
		f1.Decision(3), f1.Trust(), f1.Request("alice"), f1.Reply("alice"), f1.Request("bob"), f1.Reply("bob"), "ocs/v1/f2/planner/state"}
	cells := 0
	for name, sure := range map[string]string{"f1/n/7": f1.Presence(7), "f1/planner/a": f1.Planner(), "f1/op/alice": f1.Request("alice")} { // any order: independent
		h, _ := proto.ParseHolder(name)
		c, heard, err := s.client(name, "id-"+fileName(name))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, topic := range topics {
			c.Subscribe(topic, 1, nil).Wait()
		}
		c.Subscribe(f1.Planner(), 1, nil).Wait()
		for _, topic := range topics {
			if topic != sure {
				s.say(c, topic)
				s.say(c, sure)
				if cells++; s.came(seen, topic, sure) != h.Grants().Allow(true, topic) {
					t.Errorf("%s publishes on %s: want %v", name, topic, h.Grants().Allow(true, topic))
				}
				for len(heard) > 0 {
					<-heard // its own
				}
			}
			s.say(spy, topic)
			s.say(spy, f1.Planner())
			got, want := s.came(heard, topic, f1.Planner()), h.Grants().Allow(false, topic)
			if more := h.Kind != proto.HolderNode && (topic == f1.Decision(3) || topic == f1.Trust()); got != (want || more) {
				t.Errorf("%s hears %s: %v", name, topic, got)
			}
			cells++
			s.came(seen, topic, f1.Planner())
		}
		c.Disconnect(0)
	}
	t.Logf("%d cells", cells)
}

// Goal: a node throws no other off by its client id, leaves no will in its name, and no
// stranger comes in, nor a certificate before or after its time. Method: two nodes under
// one id, of which mosquitto makes two; a will beside one's own; a foreign authority.
func TestMosquittoBindsNames(t *testing.T) {
	s := startMosquitto(t)
	seven, _, err := s.client("f1/n/7", "same")
	if err != nil {
		t.Fatal(err)
	}
	eight, _, err := s.client("f1/n/8", "same")
	if err != nil {
		t.Fatal(err)
	}
	s.say(seven, proto.Topics{Fabric: "f1"}.Presence(7))
	if !seven.IsConnectionOpen() || !eight.IsConnectionOpen() {
		t.Error("one threw the other off")
	}
	spy, seen, err := s.client("", "spy")
	if err != nil {
		t.Fatal(err)
	}
	spy.Subscribe("ocs/#", 1, nil).Wait()
	f1, before := proto.Topics{Fabric: "f1"}, ""
	for _, topic := range []string{f1.Presence(7), f1.Presence(8), f1.Planner(), ""} {
		s.will = topic
		c, _, err := s.client("f1/n/7", "same") // throws the one before off, whose will comes
		if err != nil {
			t.Fatal(err)
		}
		s.say(c, f1.Event(7))
		if came := s.came(seen, before, f1.Event(7)); before != "" && came != (before == f1.Presence(7)) {
			t.Errorf("node 7's will on %s: came %v", before, came)
		}
		before = topic
	}
	for name, when := range map[string]time.Time{"f1/n/20": time.Now().AddDate(0, -1, 0), "f1/n/21": time.Now().AddDate(0, 1, 0)} { // any order
		s.folder.now = func() time.Time { return when }
		issue(t, s.folder, proto.RoleNode, name)
		if _, _, err := s.client(name, "same"); err == nil {
			t.Errorf("a certificate of %v was let in", when)
		}
	}
	other, err := Init(filepath.Join(t.TempDir(), "other"), "f1", "cluster.example")
	if err != nil {
		t.Fatal(err)
	}
	issue(t, other, proto.RoleNode, "f1/n/7")
	s.folder = other
	if _, _, err := s.client("f1/n/7", "same"); err == nil {
		t.Error("a stranger's authority was let in")
	}
}
