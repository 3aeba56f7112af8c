package mqtt

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/listeners"

	"ringlight/proto"
	"ringlight/sim/testbroker"
)

// What cannot work or would leave the machine in the clear is refused before
// anything is tried, naming the field.
func TestConfigIsChecked(t *testing.T) {
	for _, c := range []struct {
		cfg   Config
		field string
	}{
		{Config{Broker: "mqtt://127.0.0.1:18830", ClientID: "a"}, ""},
		{Config{Broker: "mqtt://localhost", ClientID: "a"}, ""},
		{Config{Broker: "mqtt://[::1]:1883/", ClientID: "a"}, ""},
		{Config{Broker: "mqtt://192.0.2.1:1883", ClientID: "a", Insecure: true}, ""},
		{Config{Broker: "mqtts://broker.example", ClientID: "a"}, ""},
		{Config{Broker: "mqtt://127.0.0.1:1,mqtt://127.0.0.1:2", ClientID: "a"}, ""},
		{Config{Broker: "mqtt://127.0.0.1:1,mqtt://192.0.2.1:1883", ClientID: "a"}, "broker"},
		{Config{Broker: "mqtt://127.0.0.1:1,", ClientID: "a"}, "broker"},
		{Config{Broker: "mqtt://127.0.0.1" + strings.Repeat(",mqtt://127.0.0.1", 16), ClientID: "a"}, "broker"},
		{Config{Broker: "mqtt://192.0.2.1:1883", ClientID: "a"}, "broker"},
		{Config{Broker: "mqtt://broker.example", ClientID: "a"}, "broker"},
		{Config{Broker: "127.0.0.1:1883", ClientID: "a"}, "broker"},
		{Config{Broker: "tcp://127.0.0.1:1883", ClientID: "a"}, "broker"},
		{Config{Broker: "mqtt://u:p@127.0.0.1", ClientID: "a"}, "broker"},
		{Config{Broker: "mqtt://127.0.0.1/x", ClientID: "a"}, "broker"},
		{Config{Broker: "mqtt://", ClientID: "a"}, "broker"},
		{Config{Broker: "mqtt://127.0.0.1", ClientID: "a", CAFile: "x"}, "broker"},
		{Config{Broker: "mqtt://127.0.0.1"}, "client_id"},
		{Config{Broker: "mqtt://127.0.0.1", ClientID: "a", MinReconnect: 2, MaxReconnect: 1}, "max_reconnect"},
		{Config{Broker: "mqtts://127.0.0.1", ClientID: "a", CAFile: "/nonexistent"}, "ca"},
		{Config{Broker: "mqtts://127.0.0.1", ClientID: "a", CertFile: "/nonexistent"}, "cert"},
	} {
		err := c.cfg.Check()
		if e := proto.AsError(err); c.field == "" && err != nil || c.field != "" && (err == nil || e.Field != c.field || e.Limit == "") {
			t.Errorf("%+v: %v, want field %q", c.cfg, err, c.field)
		}
	}
	if _, err := Dial(Config{Broker: "mqtt://192.0.2.1", ClientID: "a"}); err == nil {
		t.Error("Dial does not check")
	}
}

// pair writes a certificate signed by a parent, or by itself, and its key.
func pair(t *testing.T, dir, name string, parent *tls.Certificate) (cert tls.Certificate, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: parent == nil, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	signer, signKey := tmpl, any(key)
	if parent != nil {
		signer, signKey = parent.Leaf, parent.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, signer, &key.PublicKey, signKey)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	certFile, keyFile = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+"-key.pem")
	for file, text := range map[string][]byte{certFile: certPEM, keyFile: keyPEM} { // any order: two files
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if cert, err = tls.X509KeyPair(certPEM, keyPEM); err != nil {
		t.Fatal(err)
	}
	if cert.Leaf, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return cert, certFile, keyFile
}

// With a private authority and client certificates: our own are let in, a
// link without one is not, and neither is one that trusts somebody else.
func TestClientCertificates(t *testing.T) {
	dir := t.TempDir()
	ca, caFile, _ := pair(t, dir, "authority", nil)
	serverCert, _, _ := pair(t, dir, "broker", &ca)
	_, certFile, keyFile := pair(t, dir, "one", &ca)
	_, strangerFile, _ := pair(t, dir, "stranger", nil)
	pool := x509.NewCertPool()
	pool.AddCert(ca.Leaf)
	server := mochi.New(&mochi.Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	server.AddHook(new(auth.AllowHook), nil)
	listener := listeners.NewTCP(listeners.Config{ID: "tls", Address: "127.0.0.1:0", TLSConfig: &tls.Config{
		Certificates: []tls.Certificate{serverCert}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13}})
	if err := server.AddListener(testbroker.Listener{Listener: listener, Server: server}); err != nil {
		t.Fatal(err)
	}
	if err := server.Serve(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	broker := "mqtts://" + listener.Address()
	l := up(t, Config{Broker: broker, ClientID: "one", CAFile: caFile, CertFile: certFile, KeyFile: keyFile, Subscriptions: []string{"t/a"}})
	echo(t, l, "t/a")
	for _, c := range []struct {
		cfg  Config
		says string
	}{
		{Config{Broker: broker, ClientID: "two", CAFile: caFile}, "certificate required"},
		{Config{Broker: broker, ClientID: "two", CAFile: strangerFile, CertFile: certFile, KeyFile: keyFile}, "unknown authority"},
	} {
		l := dial(t, c.cfg)
		wait := time.After(patience)
		for l.Stats().Attempts < 3 {
			select {
			case <-wait:
				t.Fatalf("%+v", l.Stats())
			case <-time.After(time.Millisecond):
			}
		}
		if err := l.Err(); l.Up() || err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want %q", err, c.says)
		}
	}
}
