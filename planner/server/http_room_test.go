package server

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"ringlight/proto/mqtt"
)

// dialFrom connects from a local address.
func dialFrom(t *testing.T, address, to string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	c, err := d.Dial("tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// said sends and reads the first line of what comes back.
func said(t *testing.T, c net.Conn, text string) string {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(c)
	line, err := in.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(line, " 200 ") { // the rest of it
		for l := ""; l != "\r\n"; {
			if l, err = in.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
	}
	return strings.TrimSpace(line)
}

// Goal: who keeps connections, and asks nothing or never ends asking, keeps nobody from
// the pages. Method: a running planner; more idle connections than it takes, all of one
// address; then from another one as many that promise a body and do not send it, while the
// pages are asked for from the first, and one more of the other is refused.
func TestHTTPMakesRoom(t *testing.T) {
	var most syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &most); err != nil || most.Cur < 5*maxHTTP {
		t.Skipf("skipped: %d descriptors are too few for both ends (%v)", most.Cur, err)
	}
	at := make(chan string, 1)
	inProcess(t, Config{Fabric: testFabric(), Listen: "127.0.0.1:0", State: filepath.Join(t.TempDir(), "p.db"), HTTP: "127.0.0.1:0", HTTPReady: func(u string) { at <- u }})
	url := <-at
	to := strings.TrimPrefix(url, "http://")
	pages := func(when string) {
		t.Helper()
		for _, page := range []string{"/healthz", "/readyz", "/metrics"} {
			own := &http.Transport{}
			got, err := (&http.Client{Transport: own}).Get(url + page)
			if err != nil {
				t.Errorf("%s: %v", when, err)
				continue
			}
			text, err := io.ReadAll(got.Body)
			// Nobody has been heard of, so it is not ready yet, and says so.
			if err != nil || got.StatusCode != 200 && !(page == "/readyz" && got.StatusCode == 503) || len(text) == 0 {
				t.Errorf("%s: %s: %s, %v: %.80s", when, page, got.Status, err, text)
			}
			defer own.CloseIdleConnections() // it stays, as a scraper's
		}
	}
	const ask = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
	first := dialFrom(t, "127.0.0.1", to)
	said(t, first, ask)
	for range maxHTTP + 30 {
		said(t, dialFrom(t, "127.0.0.1", to), ask)
	}
	if n, err := io.Copy(io.Discard, first); n > 100 { // a short text, and the end
		t.Errorf("who was idle longest still has its connection: %d, %v", n, err)
	}
	pages("beside idle ones")
	const half = "PUT /v1/jobs/j HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n"
	for range maxHTTP {
		if got := said(t, dialFrom(t, "127.0.0.2", to), half); got != "HTTP/1.1 100 Continue" {
			t.Fatal(got)
		}
	}
	pages("beside half requests")
	refused := dialFrom(t, "127.0.0.2", to)
	if text, _ := io.ReadAll(refused); len(text) > 0 {
		t.Errorf("the address that has most is let in once more: %s", text)
	}
}

// pipes is a listener of ends of pipes.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// Goal: a body that is promised has to come, whether anybody reads it or not. Method: on a
// clock of its own, requests without theirs; and one without any, which may last.
func TestBodiesHaveToCome(t *testing.T) {
	for _, c := range []struct {
		head string
		read bool          // by the handler
		work time.Duration // of the handler after that
		ends time.Duration
	}{
		{"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n", false, 0, bodyPatience},
		{"PUT /v1/jobs/j HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n", true, 0, bodyPatience},
		{"GET / HTTP/1.1\r\nHost: localhost\r\n", false, time.Hour, time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			in := make(pipes)
			s := http.Server{Handler: guarded(mqtt.IsLoopback, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if c.read {
					_, _ = io.ReadAll(r.Body) // it ends, and that is all
				}
				select {
				case <-time.After(c.work):
				case <-r.Context().Done():
				}
			}))}
			go s.Serve(in)
			here, there := net.Pipe()
			in <- here
			begin := time.Now()
			go io.WriteString(there, c.head+"\r\n")
			_, _ = io.Copy(io.Discard, io.LimitReader(there, 12)) // HTTP/1.1 200, or the end
			if d := time.Since(begin); d != c.ends {
				t.Errorf("%.20q ended after %v, want %v", c.head, d, c.ends)
			}
			there.Close()
			close(in)
			s.Close()
		})
	}
}
