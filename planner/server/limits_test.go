package server

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"syscall"
	"testing"
	"time"

	"ringlight/proto"
	"ringlight/proto/mqtt"
)

// A broker that ran out of descriptors listens again.
// A listener that fails three times and then has a connection.
func TestGateOutlivesAShortageOfDescriptors(t *testing.T) {
	here, there := net.Pipe()
	defer there.Close()
	var log bytes.Buffer
	g := &gate{Listener: &shortListener{fails: 3, conn: here}, log: slog.New(slog.NewTextHandler(&log, nil)), patience: time.Minute}
	conn, err := g.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if g.open.Load() != 1 {
		t.Errorf("%d connections open", g.open.Load())
	}
	conn.Close()
	conn.Close()
	if g.open.Load() != 0 {
		t.Errorf("%d connections open after two calls of Close", g.open.Load())
	}
	if _, err := g.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a closed listener: %v", err)
	}
	if n := bytes.Count(log.Bytes(), []byte("cannot accept")); n != 1 {
		t.Errorf("%d log lines for three failures within a second", n)
	}
}

type shortListener struct {
	fails int
	conn  net.Conn
}

func (l *shortListener) Accept() (net.Conn, error) {
	if l.fails > 0 {
		l.fails--
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	if c := l.conn; c != nil {
		l.conn = nil
		return c, nil
	}
	return nil, net.ErrClosed
}
func (l *shortListener) Close() error   { return nil }
func (l *shortListener) Addr() net.Addr { return &net.TCPAddr{} }

// Half a CONNECT is not kept; nobody else pays for it.
// Four bytes of one, and a read until the broker ends it.
func TestBrokerEndsHalfAConnect(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{Listener: l, log: slog.New(slog.DiscardHandler), patience: 50 * time.Millisecond}
	defer g.Close()
	done := make(chan error, 1)
	go func() {
		conn, err := g.Accept()
		if err == nil {
			_, err = io.ReadFull(conn, make([]byte, 8))
		}
		done <- err
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.Write([]byte{0x10, 0x20, 0x00, 0x04})
	var timeout net.Error
	if err := <-done; !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("half a CONNECT ends with %v", err)
	}
}

// A subscriber that does not read is thrown out before it costs more than its
// queue, and others get everything.
// Forty megabytes to a reader and to a client that only subscribes.
func TestBrokerThrowsOutWhoDoesNotRead(t *testing.T) {
	b := startBroker(t, "127.0.0.1:0")
	slow, err := net.Dial("tcp", b.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	slow.(*net.TCPConn).SetReadBuffer(4096)
	slow.Write([]byte{0x10, 15, 0, 4, 'M', 'Q', 'T', 'T', 4, 2, 0, 60, 0, 3, 's', 'l', 'o'})
	slow.Write([]byte{0x82, 8, 0, 1, 0, 3, 't', '/', '#', 0})
	if _, err := io.ReadFull(slow, make([]byte, 9)); err != nil { // CONNACK, SUBACK
		t.Fatal(err)
	}
	link := func(id string, subs ...string) *mqtt.Link {
		l, err := mqtt.Dial(mqtt.Config{Broker: b.URL(), ClientID: id, Subscriptions: subs, Ordered: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.Close)
		if p := <-l.Recv(); p.Kind != proto.LinkUp {
			t.Fatal(p.Kind)
		}
		return l
	}
	reader, writer := link("reader", "t/#"), link("writer")
	const messages = 700
	worst := int64(0)
	for i := range messages {
		if err := writer.Send(proto.Packet{Topic: "t/x", Payload: make([]byte, 60_000), QoS: 1}); err != nil {
			t.Fatal(i, err)
		}
		if p := <-reader.Recv(); p.Kind != proto.Publish || len(p.Payload) != 60_000 {
			t.Fatalf("message %d: %v of %d bytes", i, p.Kind, len(p.Payload))
		}
		worst = max(worst, b.limits.queued.Load())
	}
	if worst > maxQueuedBytes+1<<20 {
		t.Errorf("%d bytes were queued for one client", worst)
	}
	if n, err := io.Copy(io.Discard, slow); n > messages*60_000/2 || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the slow client got %d bytes and then %v", n, err)
	}
}

// A topic that costs the broker more than a message is worth is refused.
func TestBrokerRefusesEndlessTopics(t *testing.T) {
	b := startBroker(t, "127.0.0.1:0")
	h := b.limits
	h.line.allow(time.Now())
	for topic, want := range map[string]bool{
		"ocs/v1/f1/node/7/reported":                         true,
		string(bytes.Repeat([]byte{'x'}, maxTopicLength)):   true,
		string(bytes.Repeat([]byte{'x'}, maxTopicLength+1)): false,
		string(bytes.Repeat([]byte("x/"), maxTopicLevels)):  false,
	} {
		if got := h.OnACLCheck(b.server.NewClient(nil, "", "one", false), topic, true); got != want {
			t.Errorf("%.40s: %v", topic, got)
		}
	}
}
