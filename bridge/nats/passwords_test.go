package nats

import (
	"os"
	"strings"
	"testing"
	"time"

	"ringlight/proto"
	"ringlight/proto/mqtt"
)

// Goal: where passwords say who comes, rights are those of the same table, and a password can be
// changed while messages flow. Method: every cell again, by users; files that are wrong, each in
// one thing; another password told to the broker, then to the client, which comes back by
// itself; one taken away.
func TestNATSNeighboursKnowPasswords(t *testing.T) {
	for _, k := range kinds[:2] {
		t.Run(k.name, func(t *testing.T) {
			s := withPasswords(t, k.name, k.make())
			c := rights(s)
			t.Logf("%d cells of publications, %d of subscriptions, %d of wills", c.tried["publishes"], c.tried["hears"], c.tried["will"])
			for _, w := range c.wrong { // that mosquitto's patterns are for everybody is in the table
				if k.name != "mosquitto" || !strings.Contains(w, " hears ") || !strings.HasSuffix(w, "/3/decision: true") && !strings.HasSuffix(w, "/trust: true") && !strings.HasSuffix(w, "/planner/state: true") {
					t.Error(w)
				}
			}
			for _, l := range c.ears { // any order: all
				l.Close()
			}
			s.wrongLogins()
			s.changed()
		})
	}
}

func (s *site) wrongLogins() {
	s.t.Helper()
	url, id := s.broker.url(holder(s.t, seven)), s.broker.id(holder(s.t, seven))
	good, err := os.ReadFile(s.loginOf(seven))
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = os.WriteFile(s.loginOf(seven), good, 0o600) }()
	for what, text := range map[string]string{"": string(good), "another password": seven + ":x", "another's name": strings.Replace(string(good), seven, eight, 1), "a name that is no user": "f1/n/99:x"} { // any order
		if err := os.WriteFile(s.loginOf(seven), []byte(text), 0o600); err != nil {
			s.t.Fatal(err)
		}
		l, _, in := s.connectAt(url, s.keys[seven], id, "")
		if in != (what == "") {
			s.t.Errorf("%s %q: let in %v", s.kind, what, in)
		}
		l.Abandon()
	}
	cfg := s.config(url, s.keys[seven])
	cfg.ClientID, cfg.PasswordFile = id, ""
	l, err := mqtt.Dial(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	for l.Err() == nil || l.Stats().Attempts < 3 {
		if l.Up() {
			s.t.Fatalf("%s: let in without a password", s.kind)
		}
		<-time.After(time.Millisecond)
	}
	l.Abandon()
}

func (s *site) changed() {
	id := s.broker.id(holder(s.t, seven))
	planner := s.up(plannerA, s.broker.id(holder(s.t, plannerA)), f1.Presence(7))
	live, other := s.up(seven, id), s.up(eight, s.broker.id(holder(s.t, eight)))
	next := s.t.TempDir()
	s.password(next, seven)
	s.broker.tell()
	for end := time.Now().Add(5 * time.Second); live.Stats().Losses == 0 || live.Stats().Attempts < 4; <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("%s: who came with the former password stays: %+v", s.kind, live.Stats())
		}
	}
	if live.Up() {
		s.t.Error("the former password is good")
	}
	if err := os.Rename(strings.Replace(s.loginOf(seven), s.logins, next, 1), s.loginOf(seven)); err != nil {
		s.t.Fatal(err)
	}
	for end := time.Now().Add(5 * time.Second); !live.Up(); <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("%s: the new password is not read: %v", s.kind, live.Err())
		}
	}
	_ = live.Send(proto.Packet{Topic: f1.Presence(7), Payload: []byte("back")})
	if !s.comes(planner, "back", 5*time.Second) {
		s.t.Error("it says nothing with its new password")
	}
	s.revoke(seven, "")
	for end := time.Now().Add(5 * time.Second); live.Up(); <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("%s: whose password was taken away stays", s.kind)
		}
	}
	before := live.Stats()
	for live.Stats().Attempts < before.Attempts+3 {
		<-time.After(time.Millisecond)
	}
	if live.Stats().Connects != before.Connects || other.Stats().Losses+planner.Stats().Losses > 0 {
		s.t.Errorf("%s: %+v, then %+v; others %+v", s.kind, before, live.Stats(), other.Stats())
	}
}
