package mqtt

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"ringlight/proto"
)

// Goal: a planner or an agent without its broker says why, within 5 s, and again only when
// that changes; a denied subscription is an error that names the topic, once.
// Method: a watch is told what links tell, on a clock of the test's own.
func TestLinkWatchSaysWhy(t *testing.T) {
	var out bytes.Buffer
	var why error
	w := Watch{Log: slog.New(slog.NewTextHandler(&out, nil)), Broker: "b", Why: func() error { return why }}
	now := time.Duration(0)
	said := func() string {
		defer out.Reset()
		return out.String()
	}
	pass := func(d time.Duration) string {
		for end := now + d; now < end; {
			now = min(end, w.Next(now))
			w.Look(now)
		}
		return said()
	}
	if got := pass(5 * time.Second); strings.Count(got, "\n") != 1 || !strings.Contains(got, "no answer yet") {
		t.Errorf("5 s without an answer: %q", got)
	}
	why = errors.New("connection refused")
	if got := pass(time.Minute); strings.Count(got, "\n") != 1 || !strings.Contains(got, "connection refused") || !strings.Contains(got, "level=WARN") {
		t.Errorf("a minute of refusals: %q", got)
	}
	why = errors.New("not authorized")
	if got := pass(2 * time.Second); strings.Count(got, "\n") != 1 || !strings.Contains(got, "not authorized") {
		t.Errorf("another reason: %q", got)
	}
	denied := &proto.Packet{Kind: proto.Refused, Topic: "ocs/v1/f1/planner/state", Payload: []byte("refused by the broker")}
	w.Packet(denied, now)
	w.Packet(denied, now)
	why = errors.New("1 subscriptions refused")
	if got := pass(time.Minute); strings.Count(got, "\n") != 1 || !strings.Contains(got, denied.Topic) || !strings.Contains(got, "level=ERROR") {
		t.Errorf("denied: %q", got)
	}
	w.Packet(&proto.Packet{Kind: proto.LinkUp}, now)
	if got := said(); !strings.Contains(got, "broker connected") || w.Next(now) < now+time.Minute {
		t.Errorf("up: %q, next look after %v", got, w.Next(now)-now)
	}
	w.Packet(&proto.Packet{Kind: proto.LinkDown, Payload: []byte("EOF")}, now)
	if got := said(); !strings.Contains(got, "EOF") {
		t.Errorf("lost: %q", got)
	}
	why = errors.New("EOF")
	if got := pass(time.Minute); got != "" {
		t.Errorf("said again: %q", got)
	}
	why = errors.New("no route")
	if got := pass(5 * time.Second); !strings.Contains(got, "no route") {
		t.Errorf("still away: %q", got)
	}
	w.Packet(&proto.Packet{Kind: proto.LinkUp}, now)
	said()
	w.Packet(denied, now)
	if got := said(); !strings.Contains(got, denied.Topic) {
		t.Errorf("denied again in another connection: %q", got)
	}
}

// Goal: who reads a watched link gets all of its words, and the log has the reason
// at once.
// Method: nobody listens at the broker's address.
func TestWatchedLinkSaysWhy(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	link, err := Dial(Config{Broker: "mqtt://" + l.Addr().String(), ClientID: "a"})
	if err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 10)
	watched := WatchLink(link, Watch{Log: slog.New(slog.NewTextHandler(toLines(lines), nil)), Broker: "b", Without: "nothing"})
	select {
	case line := <-lines:
		if !strings.Contains(line, "connection refused") || !strings.Contains(line, "level=WARN") {
			t.Error(line)
		}
	case <-time.After(5 * time.Second):
		t.Error("silent for 5 s")
	}
	watched.Close()
	for range watched.Recv() { // until it is closed
	}
}

type toLines chan string

func (c toLines) Write(p []byte) (int, error) {
	select {
	case c <- string(p):
	default:
	}
	return len(p), nil
}

// Goal: who reads why there is no connection knows where to look.
// Method: the texts of Go's dialler and of the library, and ours.
func TestWhyIsSaidInWords(t *testing.T) {
	refused := fmt.Errorf("network Error : %w", &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1883}, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)})
	unknown := &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "brocker"}}
	for _, c := range []struct {
		err  error
		want string
	}{
		{refused, "nothing listens at 127.0.0.1:1883 (connection refused)"},
		{unknown, "brocker: no such host"},
		{packets.ErrorRefusedNotAuthorised, "the broker refuses us: not Authorized"},
		{errors.New("EOF"), "EOF"},
	} {
		if got := (plain{c.err}).Error(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
