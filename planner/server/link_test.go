package server

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"ringlight/proto"
)

// Goal: a planner without its broker says why, within 5 s, and again only when
// that changes; a denied subscription is an error that names the topic, once.
// Method: a watch is told what links tell, on a clock of the test's own.
func TestLinkWatchSaysWhy(t *testing.T) {
	var out bytes.Buffer
	var why error
	w := linkWatch{log: slog.New(slog.NewTextHandler(&out, nil)), broker: "b", err: func() error { return why }}
	now := time.Duration(0)
	said := func() string {
		defer out.Reset()
		return out.String()
	}
	pass := func(d time.Duration) string {
		for end := now + d; now < end; {
			now = min(end, w.next(now))
			w.look(now)
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
	w.packet(denied, now)
	w.packet(denied, now)
	why = errors.New("1 subscriptions refused")
	if got := pass(time.Minute); strings.Count(got, "\n") != 1 || !strings.Contains(got, denied.Topic) || !strings.Contains(got, "level=ERROR") {
		t.Errorf("denied: %q", got)
	}
	w.packet(&proto.Packet{Kind: proto.LinkUp}, now)
	if got := said(); !strings.Contains(got, "broker connected") || w.next(now) < now+time.Minute {
		t.Errorf("up: %q, next look after %v", got, w.next(now)-now)
	}
	w.packet(&proto.Packet{Kind: proto.LinkDown, Payload: []byte("EOF")}, now)
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
	w.packet(&proto.Packet{Kind: proto.LinkUp}, now)
	said()
	w.packet(denied, now)
	if got := said(); !strings.Contains(got, denied.Topic) {
		t.Errorf("denied again in another connection: %q", got)
	}
}
