package gnmi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
)

// bench is a planner that .ci/gnmi.sh has started.
type bench struct {
	t               *testing.T
	addr, keys, web string
}

func atBench(t *testing.T) *bench {
	b := &bench{t, os.Getenv("RINGLIGHT_GNMI"), os.Getenv("RINGLIGHT_GNMI_KEYS"), os.Getenv("RINGLIGHT_GNMI_HTTP")}
	if b.addr == "" {
		t.Skip("RINGLIGHT_GNMI names no planner: make bench-gnmi")
	}
	return b
}

func (b *bench) tls(who string) *tls.Config {
	pem, err := os.ReadFile(filepath.Join(b.keys, "ca.pem"))
	if err != nil {
		b.t.Fatal(err)
	}
	c := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "127.0.0.1", NextProtos: []string{"h2"}}
	c.RootCAs.AppendCertsFromPEM(pem)
	if who != "" {
		own, err := tls.LoadX509KeyPair(filepath.Join(b.keys, "f1-op-"+who+".pem"), filepath.Join(b.keys, "f1-op-"+who+".key"))
		if err != nil {
			b.t.Fatal(err)
		}
		c.Certificates = []tls.Certificate{own}
	}
	return c
}

func (b *bench) client(who string) pb.GNMIClient {
	conn, err := grpc.NewClient(b.addr, grpc.WithTransportCredentials(credentials.NewTLS(b.tls(who))))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { conn.Close() })
	return pb.NewGNMIClient(conn)
}

// measure is the planner's own word for something, over HTTP.
func (b *bench) measure(name string) float64 {
	got, err := http.Get(b.web + "/metrics")
	if err != nil {
		b.t.Fatal(err)
	}
	defer got.Body.Close()
	raw, _ := io.ReadAll(got.Body)
	for line := range strings.Lines(string(raw)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			f, _ := strconv.ParseFloat(strings.TrimSpace(value), 64)
			return f
		}
	}
	b.t.Fatalf("no measure %s", name)
	return 0
}

// load is what the planner does in a span.
func (b *bench) load(span time.Duration) string {
	const sum, count, cpu = "ringlight_step_seconds_sum", "ringlight_step_seconds_count", "process_cpu_seconds_total"
	s, n, c := b.measure(sum), b.measure(count), b.measure(cpu)
	<-time.After(span)
	s, n, c = b.measure(sum)-s, b.measure(count)-n, b.measure(cpu)-c
	return fmt.Sprintf("%.0f us a step (%.0f of them), %.1f %% of a processor, %.0f MiB", s/max(n, 1)*1e6, n, 100*c/span.Seconds(), b.measure("process_resident_memory_bytes")/(1<<20))
}

// Goal: strangers at the socket end, and nobody else notices. Method: each kind many times at
// once, while an operator goes on asking.
func TestStrangers(t *testing.T) {
	b := atBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	var other sync.WaitGroup
	asked, slowest := 0, time.Duration(0)
	op := b.client("bob")
	other.Go(func() {
		for ctx.Err() == nil {
			began := time.Now()
			if _, err := op.Get(t.Context(), &pb.GetRequest{Path: []*pb.Path{at("fabric/rings")}}); err != nil {
				t.Errorf("an operator: %v", err)
			}
			slowest = max(slowest, time.Since(began))
			asked++
			<-time.After(20 * time.Millisecond)
		}
	})
	ended := func(conn net.Conn) error { // by the other side
		conn.SetReadDeadline(time.Now().Add(40 * time.Second))
		_, err := io.Copy(io.Discard, conn)
		if e, ok := err.(net.Error); ok && e.Timeout() {
			return fmt.Errorf("it is still open")
		}
		return nil
	}
	raw := func() (net.Conn, error) { return net.Dial("tcp", b.addr) }
	secure := func(who string) (net.Conn, error) { return tls.Dial("tcp", b.addr, b.tls(who)) }
	streams := b.client("bob")
	var wg sync.WaitGroup
	for _, x := range []struct {
		what string
		n    int
		do   func() error
	}{
		{"connections that say nothing", 200, func() error {
			conn, err := raw()
			if err != nil {
				return err
			}
			defer conn.Close()
			return ended(conn)
		}},
		{"handshakes without a certificate", 100, func() error {
			conn, err := secure("")
			if err != nil {
				return nil
			}
			defer conn.Close()
			return ended(conn)
		}},
		{"handshakes without HTTP/2 after them", 100, func() error {
			conn, err := secure("bob")
			if err != nil {
				return err
			}
			defer conn.Close()
			return ended(conn)
		}},
		{"garbage in place of HTTP/2", 100, func() error {
			conn, err := secure("bob")
			if err != nil {
				return err
			}
			defer conn.Close()
			_, _ = conn.Write([]byte(strings.Repeat("\x00\xffgnmi", 4096)))
			return ended(conn)
		}},
		{"streams without a request", 100, func() error {
			rpc, err := streams.Subscribe(t.Context())
			if err != nil {
				return err
			}
			if _, err = rpc.Recv(); status.Code(err) != codes.DeadlineExceeded {
				return err
			}
			return nil
		}},
		{"requests of 4 MiB", 20, func() error {
			_, err := streams.Get(t.Context(), &pb.GetRequest{Path: []*pb.Path{at("fabric/" + strings.Repeat("x", 4<<20))}})
			if status.Code(err) != codes.ResourceExhausted {
				return err
			}
			return nil
		}},
		{"streams that nobody reads", 20, func() error {
			rpc, err := b.client("bob").Subscribe(t.Context())
			if err != nil {
				return err
			}
			r := subscribe(pb.SubscriptionList_STREAM, pb.SubscriptionMode_SAMPLE, pb.Encoding_JSON_IETF, "fabric", "components")
			if err := rpc.Send(r); err != nil {
				return err
			}
			<-time.After(20 * time.Second)
			for {
				if _, err := rpc.Recv(); err != nil {
					if status.Code(err) != codes.Unavailable {
						return err
					}
					return nil
				}
			}
		}},
	} {
		for range x.n {
			wg.Go(func() {
				if err := x.do(); err != nil {
					t.Errorf("%s: %v", x.what, err)
				}
			})
		}
		t.Logf("ok      %d %s", x.n, x.what)
	}
	wg.Wait()
	cancel()
	other.Wait()
	t.Logf("ok      meanwhile an operator was answered %d times, after %d ms at most; then %s", asked, slowest.Milliseconds(), b.load(time.Second))
}

// Goal: openconfig's collector, unmodified, hears of the planner what the planner has. Method:
// its log has each message; its cache has none, as in 0.14.1 it adds no target to it. It has
// no key of its own, so that a proxy shows one.
func TestCollector(t *testing.T) {
	b := atBench(t)
	binary := os.Getenv("RINGLIGHT_GNMI_COLLECTOR")
	dir := t.TempDir()
	own, err := tls.LoadX509KeyPair(filepath.Join(b.keys, "f1-planner-a.pem"), filepath.Join(b.keys, "f1-planner-a.key"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{own}, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			to, err := tls.Dial("tcp", b.addr, b.tls("bob"))
			if err != nil {
				in.Close()
				continue
			}
			go func() { _, _ = io.Copy(to, in); to.Close() }()
			go func() { _, _ = io.Copy(in, to); in.Close() }()
		}
	}()
	config := filepath.Join(dir, "config")
	if err := os.WriteFile(config, fmt.Appendf(nil, `request: {key: "all" value: {subscribe: {prefix: {} subscription: {path: {elem: {name: "fabric"}}}}}}
target: {key: "f1" value: {addresses: %q request: "all"}}`, l.Addr()), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(binary, "-config_file", config, "-cert_file", filepath.Join(b.keys, "f1-planner-a.pem"), "-key_file", filepath.Join(b.keys, "f1-planner-a.key"), "-port", "0", "-logtostderr", "-v=2")
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	paths := []string{"fabric/nodes", "fabric/rings", "fabric/links"}
	c := b.client("bob")
	for end := time.Now().Add(20 * time.Second); ; <-time.After(100 * time.Millisecond) {
		got, want := tree{}, once(t, c, paths...)
		raw, err := os.ReadFile(log.Name())
		if err != nil {
			t.Fatal(err)
		}
		synced := false
		for line := range strings.Lines(string(raw)) {
			var r pb.SubscribeResponse
			if _, said, ok := strings.Cut(line, "manager.go:148] "); ok && prototext.Unmarshal([]byte(said), &r) == nil {
				synced = synced || r.GetSyncResponse()
				got.take(r.GetUpdate())
			}
		}
		lacks := 0
		for p := range want { // any order: counted
			if _, there := got[p]; !there {
				lacks++
			}
		}
		if synced && lacks == 0 {
			t.Logf("ok      the collector has heard all %d leaves of nodes, rings and fibres", len(want))
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the collector lacks %d leaves of %d, synced %v: %.2000s", lacks, len(want), synced, raw)
		}
	}
}
