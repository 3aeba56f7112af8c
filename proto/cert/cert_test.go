package cert_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ringlight/planner/server"
	"ringlight/proto"
	"ringlight/proto/cert"
	"ringlight/proto/mqtt"
	"ringlight/proto/pki"
)

// site is a broker and its folder.
type site struct {
	t      *testing.T
	kind   string // embedded or mosquitto
	folder *pki.Folder
	url    string
	dir    string
	reread func() // makes the broker look at its files
}

// brokers runs a test against both: the embedded one, and mosquitto where it is.
func brokers(t *testing.T, run func(*site)) {
	for _, kind := range []string{"embedded", "mosquitto"} {
		t.Run(kind, func(t *testing.T) {
			s := &site{t: t, kind: kind, dir: t.TempDir(), reread: func() {}}
			var err error
			if s.folder, err = pki.Init(s.dir, "f1", "cluster.example"); err != nil {
				t.Fatal(err)
			}
			one, err := s.folder.Broker(pki.Request{Days: 30}, "b")
			if err != nil {
				t.Fatal(err)
			}
			if kind == "embedded" {
				ca, _ := s.folder.Files()
				b, err := server.StartBrokerWith(server.BrokerConfig{Listen: "127.0.0.1:0", CAFile: ca, CertFile: one.CertFile, KeyFile: one.KeyFile})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { b.Close() })
				s.url = b.URL()
			} else {
				s.mosquitto(one)
			}
			run(s)
		})
	}
}

func (s *site) mosquitto(own pki.Issued) {
	binary, err := exec.LookPath("mosquitto")
	if err != nil {
		if binary = "/usr/sbin/mosquitto"; exec.Command("test", "-x", binary).Run() != nil {
			s.t.Skip("mosquitto is not installed")
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	file := filepath.Join(s.dir, "mosquitto.conf")
	ca, _ := s.folder.Files()
	conf := fmt.Sprintf("user root\nallow_anonymous true\nlistener %s 127.0.0.1\ncafile %s\ncertfile %s\nkeyfile %s\nrequire_certificate true\nuse_identity_as_username true\n", port, ca, own.CertFile, own.KeyFile)
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.Command(binary, "-c", file)
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	s.reread = func() { cmd.Process.Signal(syscall.SIGHUP) }
	s.url = "mqtts://127.0.0.1:" + port
	for end := time.Now().Add(10 * time.Second); ; <-time.After(10 * time.Millisecond) {
		if c, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			c.Close()
			return
		} else if time.Now().After(end) {
			s.t.Fatal(err)
		}
	}
}

// write makes a certificate that is good from and to as many hours from now.
func (s *site) write(name string, from, to int, hosts ...string) (certFile, keyFile string) {
	s.t.Helper()
	roots, _ := filepath.Glob(filepath.Join(s.dir, "root-*.key"))
	root, err := pki.ReadKey(roots[0])
	if err != nil {
		s.t.Fatal(err)
	}
	ca, _ := s.folder.Files()
	raw, _ := os.ReadFile(ca)
	b, _ := pem.Decode(raw)
	parent, _ := x509.ParseCertificate(b.Bytes)
	file := filepath.Join(s.dir, strings.ReplaceAll(name, "/", "-"))
	keyFile, certFile = file+".key", file+".pem"
	key, err := pki.ReadKey(keyFile)
	if err != nil {
		_, key, _ = ed25519.GenerateKey(rand.Reader)
		der, _ := x509.MarshalPKCS8PrivateKey(key)
		os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)
	}
	now := time.Now()
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(time.Duration(from) * time.Hour), NotAfter: now.Add(time.Duration(to) * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true}
	for _, h := range hosts {
		tmpl.IPAddresses = append(tmpl.IPAddresses, net.ParseIP(h))
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, key.Public(), root)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return certFile, keyFile
}

// dial gives a link that is up, or why it is not.
func (s *site) dial(certFile, keyFile string) (*mqtt.Link, string) {
	s.t.Helper()
	ca, _ := s.folder.Files()
	l, err := mqtt.Dial(mqtt.Config{Broker: s.url, ClientID: fmt.Sprint("c", time.Now().UnixNano()), CAFile: ca, CertFile: certFile, KeyFile: keyFile, Ordered: true,
		Subscriptions: []string{"t/x"}, MinReconnect: 5 * time.Millisecond, MaxReconnect: 20 * time.Millisecond})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(l.Abandon)
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); <-time.After(time.Millisecond) {
		if l.Up() {
			return l, ""
		}
		if err := l.Err(); err != nil && l.Stats().Attempts > 2 {
			return l, err.Error()
		}
	}
	s.t.Fatal("neither up nor refused")
	return nil, ""
}

// Goal: a certificate that has ended is refused at both ends, and who is refused reads
// whose it is and what to type. Method: one of a node, then one of the broker.
func TestEndedIsRefusedInPlainWords(t *testing.T) {
	brokers(t, func(s *site) {
		certFile, keyFile := s.write("f1/n/7", -2, -1)
		ended := time.Now().Add(-time.Hour) // a moment after the certificate ends
		if _, why := s.dial(certFile, keyFile); !strings.Contains(why, "ocsctl pki renew "+certFile) || !endsAbout(why, ended) {
			t.Errorf("a node's: %q", why)
		}
		if _, err := s.folder.Renew(certFile, 1); err == nil {
			t.Error("renewed, and not trusted")
		}
		certFile, keyFile = s.write("f1/n/7", -2, 1)
		if _, why := s.dial(certFile, keyFile); why != "" {
			t.Error("with a new one for the same key:", why)
		}
		s.write("f1/broker/b", -2, -1, "127.0.0.1")
		s.reread()
		for end := time.Now().Add(5 * time.Second); ; <-time.After(50 * time.Millisecond) { // a signal is heard when it is heard
			_, why := s.dial(certFile, keyFile)
			if strings.Contains(why, "of f1/broker/b, has ended on ") && strings.Contains(why, "ocsctl pki renew") {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("the broker's: %q", why)
			}
		}
	})
}

// endsAbout tells whether a refusal names the minute of a time, or the one before.
func endsAbout(why string, at time.Time) bool {
	const form = "2006-01-02 15:04"
	return strings.Contains(why, "ends on "+at.UTC().Format(form)) || strings.Contains(why, "ends on "+at.Add(-time.Minute).UTC().Format(form))
}

// Goal: without a clock a node connects, to a broker whose certificate is younger than
// anything the node has; what has ended by the latest time that it knows it refuses.
// Method: its clock stands at 1970; the broker's certificate ends before the node's
// own begins, then before the program was built.
func TestClockAt1970(t *testing.T) {
	brokers(t, func(s *site) {
		certFile, keyFile := s.write("f1/n/7", -50, 50)
		if _, why := s.dial(certFile, keyFile); why != "" {
			t.Fatal(why) // mosquitto hears signals from here on
		}
		s.write("f1/broker/b", -1, 50, "127.0.0.1")
		s.reread()
		cert.SetClock(func() time.Time { return time.Unix(0, 0) })
		defer cert.SetClock(time.Now)
		if _, why := s.dial(certFile, keyFile); why != "" {
			t.Error(why)
		}
	})
	s := &site{t: t, dir: t.TempDir()}
	var err error
	if s.folder, err = pki.Init(s.dir, "f1", "cluster.example"); err != nil {
		t.Fatal(err)
	}
	ca, _ := s.folder.Files()
	for _, c := range []struct {
		own, server int // its beginning, the server's end
		built       time.Duration
		ok          bool
	}{{-50, -1, 0, true}, {-50, -51, 0, false}, {-50, -1, -2 * time.Hour, true}, {-50, -3, -2 * time.Hour, false}} {
		cert.SetClock(func() time.Time { return time.Unix(0, 0) })
		if c.built != 0 {
			cert.SetBuilt(fmt.Sprint(time.Now().Add(c.built).Unix()))
		}
		mine, key := s.write("f1/n/7", c.own, 500)
		theirs, theirKey := s.write("f1/broker/b", -100, c.server, "127.0.0.1")
		// The authority's own beginning, an hour ago, is a time that is known too.
		old := filepath.Join(s.dir, "old.pem")
		s.authorityOf(ca, old, -1000)
		why := handshake(t, old, mine, key, theirs, theirKey)
		cert.SetClock(time.Now)
		cert.SetBuilt("")
		if (why == nil) != c.ok {
			t.Errorf("own from %d h, theirs to %d h, built %v: %v", c.own, c.server, c.built, why)
		}
	}
}

// Goal: a server without a clock lets in whose certificate is younger than all that it
// has, and nobody whose certificate had ended before it began. Method: its clock stands at 1970, its
// own certificate begins 50 hours ago.
func TestServerAt1970(t *testing.T) {
	s := &site{t: t, dir: t.TempDir()}
	var err error
	if s.folder, err = pki.Init(s.dir, "f1", "cluster.example"); err != nil {
		t.Fatal(err)
	}
	ca, _ := s.folder.Files()
	old := filepath.Join(s.dir, "old.pem")
	s.authorityOf(ca, old, -1000)
	theirs, theirKey := s.write("f1/broker/b", -50, 100, "127.0.0.1")
	cert.SetClock(func() time.Time { return time.Unix(0, 0) })
	defer cert.SetClock(time.Now)
	for _, c := range []struct {
		from, to int
		ok       bool
	}{{-60, 10, true}, {-1, 10, true}, {24, 48, true}, {-100, -60, false}} {
		mine, key := s.write("f1/n/7", c.from, c.to)
		to, err := cert.Client("127.0.0.1", old, mine, key)
		if err != nil {
			t.Fatal(err)
		}
		at, err := cert.Server(old, theirs, theirKey)
		if err != nil {
			t.Fatal(err)
		}
		a, b := net.Pipe()
		go func() { tls.Client(a, to).Handshake(); io.Copy(io.Discard, a) }()
		if err := tls.Server(b, at).Handshake(); (err == nil) != c.ok {
			t.Errorf("a certificate from %d to %d h from now: %v", c.from, c.to, err)
		}
		a.Close()
	}
}

// authorityOf writes a CA file anew that begins so many hours from now.
func (s *site) authorityOf(from, to string, hours int) {
	raw, _ := os.ReadFile(from)
	b, _ := pem.Decode(raw)
	c, err := x509.ParseCertificate(b.Bytes)
	if err != nil {
		s.t.Fatal(err)
	}
	roots, _ := filepath.Glob(filepath.Join(s.dir, "root-*.key"))
	root, _ := pki.ReadKey(roots[0])
	c.NotBefore = time.Now().Add(time.Duration(hours) * time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, c, c, root.Public(), root)
	if err != nil {
		s.t.Fatal(err)
	}
	os.WriteFile(to, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600)
}

// handshake is what the client says of one over a pipe.
func handshake(t *testing.T, ca, mine, key, theirs, theirKey string) error {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	to, err := cert.Client("127.0.0.1", ca, mine, key)
	if err != nil {
		t.Fatal(err)
	}
	at, err := cert.Server(ca, theirs, theirKey)
	if err != nil {
		t.Fatal(err)
	}
	go tls.Server(b, at).Handshake()
	return tls.Client(a, to).Handshake()
}

// Goal: root, broker's and node's certificates change in place while messages flow:
// no connection ends, none is lost, and who comes new is judged by today's files.
// Method: a message a millisecond between two links; a new root beside the old one,
// the broker's certificate by it, the old root away.
func TestRootChangesUnderLoad(t *testing.T) {
	brokers(t, func(s *site) {
		sevenCert, sevenKey := s.write("f1/n/7", -2, 50)
		eightCert, eightKey := s.write("f1/n/8", -2, 50)
		reader, why := s.dial(sevenCert, sevenKey)
		writer, why2 := s.dial(eightCert, eightKey)
		if why+why2 != "" {
			t.Fatal(why, why2)
		}
		var sent, got atomic.Int64
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			for p := range reader.Recv() {
				if p.Kind == proto.Publish {
					got.Add(1)
				}
			}
		}()
		go func() {
			defer close(stopped)
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					if writer.Send(proto.Packet{Topic: "t/x", Payload: []byte("x"), QoS: 1}) == nil {
						sent.Add(1)
					}
				case <-stop:
					return
				}
			}
		}()
		if err := s.folder.NewRoot(); err != nil { // ca.pem has both now
			t.Fatal(err)
		}
		s.reread()
		ca, _ := s.folder.Files()
		if _, err := s.folder.Renew(filepath.Join(s.dir, "f1-broker-b.pem"), 30); err == nil {
			t.Error("the new root renews what it did not issue")
		}
		fresh, err := s.folder.Broker(pki.Request{Days: 30, Out: filepath.Join(s.dir, "next")}, "b")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range [][2]string{{fresh.KeyFile, "f1-broker-b.key"}, {fresh.CertFile, "f1-broker-b.pem"}} {
			if err := os.Rename(f[0], filepath.Join(s.dir, f[1])); err != nil {
				t.Fatal(err)
			}
			if f[1] == "f1-broker-b.key" && s.kind == "embedded" { // half of a pair
				if _, why := s.dial(sevenCert, sevenKey); why != "" {
					t.Error("between key and certificate:", why)
				}
			}
		}
		s.reread()
		<-time.After(100 * time.Millisecond)
		if _, why := s.dial(sevenCert, sevenKey); why != "" {
			t.Error("a node of the old root at a broker of the new one:", why)
		}
		both, _ := os.ReadFile(ca)
		b, _ := pem.Decode(both)
		if err := os.WriteFile(ca, pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
		s.reread()
		<-time.After(100 * time.Millisecond)
		_, why = s.dial(sevenCert, sevenKey)
		if s.kind == "mosquitto" {
			t.Logf("mosquitto and a root that is away, after its signal: %q", why)
		} else if !strings.Contains(why, "does not know the authority of "+sevenCert) {
			t.Errorf("a node of a root that is away: %q", why)
		}
		close(stop)
		<-stopped
		for end := time.Now().Add(5 * time.Second); got.Load() < sent.Load() && time.Now().Before(end); <-time.After(time.Millisecond) {
		}
		if got.Load() != sent.Load() || sent.Load() < 20 || reader.Stats().Losses+writer.Stats().Losses != 0 {
			t.Errorf("%d of %d messages, %d and %d losses", got.Load(), sent.Load(), reader.Stats().Losses, writer.Stats().Losses)
		}
		t.Logf("%d messages, none lost", sent.Load())
	})
}

// Goal: a name is held against the certificate on resumed connections too, and a
// stranger's authority is refused with the file that lacks it.
func TestNamesAndStrangers(t *testing.T) {
	s := &site{t: t, dir: t.TempDir()}
	var err error
	if s.folder, err = pki.Init(s.dir, "f1", "cluster.example"); err != nil {
		t.Fatal(err)
	}
	ca, _ := s.folder.Files()
	mine, key := s.write("f1/n/7", -1, 1)
	theirs, theirKey := s.write("f1/broker/b", -1, 1, "192.0.2.1")
	if err := handshake(t, ca, mine, key, theirs, theirKey); err == nil || !strings.Contains(cert.Explain(err, mine, ca).Error(), "-host 127.0.0.1") {
		t.Error(err)
	}
	other := &site{t: t, dir: t.TempDir()}
	if other.folder, err = pki.Init(other.dir, "f1", "cluster.example"); err != nil {
		t.Fatal(err)
	}
	theirs, theirKey = other.write("f1/broker/b", -1, 1, "127.0.0.1")
	if err := handshake(t, ca, mine, key, theirs, theirKey); err == nil || !strings.Contains(cert.Explain(err, mine, ca).Error(), "not in "+ca) {
		t.Error(err)
	}
}

// Goal: from a root that is known a chain leads to its heirs, any number of them; an issuer,
// which may be stolen, leads to none, nor does a gap.
// Method: hand-made certificates, in every kind of chain.
func TestWhoIsTheHeirOfARoot(t *testing.T) {
	make := func(name string, by *x509.Certificate, with ed25519.PrivateKey, change func(*x509.Certificate)) (*x509.Certificate, ed25519.PrivateKey) {
		t.Helper()
		public, key, _ := ed25519.GenerateKey(rand.Reader)
		c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour),
			IsCA: true, BasicConstraintsValid: true, MaxPathLen: 1, KeyUsage: x509.KeyUsageCertSign}
		if change != nil {
			change(c)
		}
		if by == nil {
			by, with = c, key
		}
		der, err := x509.CreateCertificate(rand.Reader, c, by, public, with)
		if err == nil {
			c, err = x509.ParseCertificate(der)
		}
		if err != nil {
			t.Fatal(err)
		}
		return c, key
	}
	root, rootKey := make("1", nil, nil, nil)
	issuer, issuerKey := make("issuer", root, rootKey, func(c *x509.Certificate) {
		c.MaxPathLen, c.MaxPathLenZero, c.ExtKeyUsage = 0, true, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	})
	rogue, _ := make("rogue", issuer, issuerKey, nil)
	other, otherKey := make("1", nil, nil, nil)
	forged, _ := make("forged", other, otherKey, nil)
	leaf, _ := make("leaf", root, rootKey, func(c *x509.Certificate) { c.IsCA, c.MaxPathLen, c.KeyUsage = false, 0, x509.KeyUsageDigitalSignature })
	chain, by, key := []*x509.Certificate{}, root, rootKey
	for n := range 10 {
		by, key = make(fmt.Sprint(n+2), by, key, nil)
		chain = append([]*x509.Certificate{by}, chain...)
	}
	for name, c := range map[string]struct {
		chain []*x509.Certificate
		want  int
	}{ // any order
		"ten":               {chain, 10},
		"one":               {chain[9:], 1},
		"a gap":             {append(chain[:8:8], chain[9]), 1},
		"none":              {nil, 0},
		"an issuer's":       {[]*x509.Certificate{rogue, issuer}, 0},
		"a wrong signature": {[]*x509.Certificate{forged}, 0},
		"no authority":      {[]*x509.Certificate{leaf}, 0},
	} {
		if got := cert.Heirs([]*x509.Certificate{root}, c.chain); len(got) != c.want {
			t.Errorf("%s: %d heirs, want %d", name, len(got), c.want)
		}
	}
}
