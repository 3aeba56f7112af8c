package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ringlight/planner"
	"ringlight/proto"
	"ringlight/proto/cert"
)

// Goal: what would be open to strangers is refused before anything is
// attempted, and says how it may be had.
func TestHTTPAddresses(t *testing.T) {
	for addr, limit := range map[string]string{ // any order
		"127.0.0.1:0": "", "localhost:0": "", "[::1]:0": "", "unix:/tmp/x": "",
		"0.0.0.0:80": "-ca", ":80": "-ca", "192.0.2.1:80": "-ca", "example.org:80": "-ca", "127.0.0.1": "host:port", "unix:": "unix:PATH",
	} {
		err := (&Config{State: "x", Listen: "127.0.0.1:0", HTTP: addr, Insecure: true}).Check()
		var wire *proto.Error
		if (err != nil) != (limit != "") || err != nil && (!errors.As(err, &wire) || wire.Field != "http" || !strings.Contains(wire.Limit, limit)) {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

// Goal: a page whose name was bent to this machine reads nothing, and nobody
// changes anything. Method: requests with foreign names and other methods.
func TestHTTPLetsInWhoOnlyReadsUnderItsOwnName(t *testing.T) {
	s, err := startHTTP(HTTPConfig{Addr: "127.0.0.1:0"}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "in") }))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(s.URL(), "http://"))
	for _, c := range []struct {
		method, host string
		status       int
	}{
		{"GET", "127.0.0.1:" + port, 200}, {"HEAD", "localhost:" + port, 200}, {"GET", "[::1]:" + port, 200}, {"GET", "localhost", 200},
		{"GET", "rebind.example:" + port, 421}, {"GET", "127.0.0.1.example", 421}, {"GET", "192.0.2.1", 421},
		{"POST", "127.0.0.1:" + port, 405}, {"DELETE", "localhost", 405}, {"OPTIONS", "localhost", 405},
	} {
		r, _ := http.NewRequest(c.method, s.URL(), nil)
		r.Host = c.host
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		got.Body.Close()
		if got.StatusCode != c.status {
			t.Errorf("%s of %s: %s", c.method, c.host, got.Status)
		}
	}
}

// Goal: a socket is for this machine's users of one group, a left-over one is
// no obstacle, and one in use is.
func TestHTTPOnASocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "view.sock")
	left, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	left.(*net.UnixListener).SetUnlinkOnClose(false)
	left.Close()
	s, err := startHTTP(HTTPConfig{Addr: "unix:" + path}, http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if again, err := startHTTP(HTTPConfig{Addr: "unix:" + path}, http.NotFoundHandler()); err == nil {
		t.Error("two servers on one socket")
		again.Close()
	}
	client := http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", path) }}}
	got, err := client.Get("http://anything/")
	if err != nil || got.StatusCode != http.StatusNotFound {
		t.Error(got, err)
	}
}

// Goal: nobody else may open a socket, not for a moment either. Method: somebody who looks
// all the time, while 300 are made, where files are anybody's unless one says otherwise.
func TestSocketIsNeverAnybodys(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	path, done, open := filepath.Join(t.TempDir(), "s"), make(chan struct{}), make(chan fs.FileMode, 1)
	go func() {
		defer close(open)
		for {
			select {
			case <-done:
				return
			default:
			}
			if info, err := os.Lstat(path); err == nil && info.Mode().Perm()&^0o660 != 0 {
				open <- info.Mode()
				return
			}
		}
	}()
	for range 300 {
		l, err := listen(unixPrefix + path)
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
	}
	close(done)
	if mode, seen := <-open; seen {
		t.Errorf("it was %v", mode)
	}
}

// Goal: over TLS only who has a certificate of the authority is let in, and
// only under a name of the server's own certificate. Method: the same client
// with and without; the address is loopback's, the configuration another's.
func TestHTTPWantsCertificates(t *testing.T) {
	dir := t.TempDir()
	ca, caFile, _ := certificate(t, dir, "ca", nil)
	own, certFile, keyFile := certificate(t, dir, "server", &ca)
	config, err := cert.Server(caFile, certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := http.Server{Handler: guarded(certified(config.Certificates[0].Leaf), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))}
	go s.Serve(tls.NewListener(l, config))
	defer s.Close()
	pool := x509.NewCertPool()
	pool.AddCert(ca.Leaf)
	get := func(host string, certs ...tls.Certificate) (int, error) {
		client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: certs}}}
		r, _ := http.NewRequest("GET", "https://"+l.Addr().String(), nil)
		r.Host = host
		got, err := client.Do(r)
		if err != nil {
			return 0, err
		}
		return got.StatusCode, got.Body.Close()
	}
	if status, err := get("127.0.0.1"); err == nil {
		t.Error("without a certificate:", status)
	}
	if status, err := get("127.0.0.1", own); err != nil || status != 200 {
		t.Error("with a certificate:", status, err)
	}
	if status, err := get("rebind.example", own); err != nil || status != 421 {
		t.Error("another name:", status, err)
	}
}

func certificate(t *testing.T, dir, name string, parent *tls.Certificate) (cert tls.Certificate, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, IsCA: parent == nil, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	signer, signKey := tmpl, any(key)
	if parent != nil {
		signer, signKey = parent.Leaf, parent.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, signer, &key.PublicKey, signKey)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key")
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: raw}} { // any order
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if cert, err = tls.LoadX509KeyPair(certFile, keyFile); err != nil {
		t.Fatal(err)
	}
	return cert, certFile, keyFile
}

// Goal: the planner answers while it runs, on every address that it is to listen on, and
// who asks as it ends is not left waiting.
func TestHTTPOfARunningPlanner(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	url, ended := make(chan string, 1), make(chan error, 1)
	var asked *server
	socket := filepath.Join(t.TempDir(), "s")
	cfg := Config{Fabric: testFabric(), Listen: "127.0.0.1:0", State: filepath.Join(t.TempDir(), "p.db"), HTTP: "127.0.0.1:0, unix:" + socket, HTTPReady: func(u string) { url <- u }}
	go func() { ended <- Run(ctx, cfg) }()
	loopback, unix, _ := strings.Cut(<-url, ",")
	if unix != "unix:"+socket {
		t.Errorf("the second address is %q", unix)
	}
	local := http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", socket) }}}
	for base, c := range map[string]*http.Client{loopback: http.DefaultClient, "http://planner": &local} { // any order: each by itself
		got, err := c.Get(base + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(got.Body)
		got.Body.Close()
		if got.StatusCode != 200 || !strings.HasPrefix(string(text), "ok: term ") {
			t.Errorf("%s: %s: %s", base, got.Status, text)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	asked = &server{reads: make(chan func(*planner.Planner)), ended: make(chan struct{})}
	close(asked.ended)
	if err := asked.Read(t.Context(), func(*planner.Planner) {}); !errors.Is(err, errEnded) {
		t.Error(err)
	}
}
