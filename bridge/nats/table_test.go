package nats

import (
	"encoding/pem"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ringlight/proto"
	"ringlight/proto/mqtt"
	"ringlight/proto/pki"
)

var update = flag.Bool("update", false, "write the table of docs/security.md anew")

const (
	page       = "../../docs/security.md"
	head, tail = "<!-- by make rights -->\n", "<!-- end -->\n"
)

// Words of the table. What stands out is what a broker cannot do.
const (
	asAbove    = "as above"
	refused    = "refused"
	letIn      = "**let in**"
	taken      = "let in"
	closed     = "closed"
	ownID      = "gets its own in its place"
	throwsOff  = "**ends the other's connection**"
	mute       = "**stays, says and hears nothing**"
	stays      = "**stays**"
	untilOther = "**stays** until the other key comes"
)

// answers are what a broker does, by what is asked.
type answers map[string]string

// asks in the order of the page.
var asks = []string{"publish", "subscribe", "a will on a foreign topic", "a node under another's client id", "an operator under a node's client id", "a stranger's authority", "an ended certificate",
	"a certificate that begins later, as where the broker's clock is at 1970", "a new name that the broker was not told of", "a revoked name comes", "is connected, when it is revoked",
	"a revoked key comes, of a name that has another", "is connected, when it is revoked ", "the root is changed under load", "a node of a root that was taken away comes"}

// Goal: what docs/security.md says of rights on three brokers is so, in every cell, with the
// configuration that ocsctl pki writes; what a broker cannot do is tried too, so that the page
// says it as long as it is so. Method: production links at each broker; the table is compared, or
// written anew with -update.
func TestNATSAndOthersKeepTheTable(t *testing.T) {
	all, lacking := map[string]answers{}, false
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			defer func() { lacking = lacking || t.Skipped() }()
			a := answers{}
			all[k.name] = a
			site := func() *site { return newSite(t, k.name, k.make()) }
			a.cells(site())
			a.ids(site())
			a.strangers(site())
			a.revokedName(site())
			a.revokedKey(site())
			a.root(site())
		})
	}
	if t.Failed() || lacking {
		return
	}
	var b strings.Builder
	b.WriteString("| | the planner's own | mosquitto 2.0 | nats-server 2.15 |\n| --- | --- | --- | --- |\n")
	for _, ask := range asks {
		fmt.Fprintf(&b, "| %s |", strings.TrimSpace(ask))
		for _, k := range kinds {
			fmt.Fprintf(&b, " %s |", all[k.name][ask])
		}
		b.WriteString("\n")
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), head)
	was, after, ok2 := strings.Cut(rest, tail)
	switch {
	case !ok || !ok2:
		t.Fatalf("%s has no place for the table", page)
	case was == b.String():
	case *update:
		if err := os.WriteFile(page, []byte(before+head+b.String()+tail+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s says otherwise: type make rights. It is\n%s", page, b.String())
	}
}

func (a answers) cells(s *site) {
	c := rights(s)
	s.t.Logf("%d cells of publications, %d of subscriptions, %d of wills", c.tried["publishes"], c.tried["hears"], c.tried["will"])
	a["publish"], a["subscribe"], a["a will on a foreign topic"] = asAbove, asAbove, "does not come"
	if c.barred {
		a["a will on a foreign topic"] = "is not let in"
	}
	var who, more []string
	for _, w := range c.wrong {
		word := strings.Fields(w)
		if word[1] != "hears" || word[3] != "true" {
			s.t.Error(w)
			continue
		}
		who = append(who, map[proto.HolderKind]string{proto.HolderPlanner: "planners", proto.HolderOperator: "operators", proto.HolderEnrol: "tokens"}[holder(s.t, word[0]).Kind])
		more = append(more, "`"+strings.NewReplacer("ocs/v1/f1/", "", "/3/", "/+/", ":", "").Replace(word[2])+"`")
	}
	if len(who) > 0 {
		slices.Sort(who)
		slices.Sort(more)
		a["subscribe"] = fmt.Sprintf("**more**: %s read all of %s", strings.Join(slices.Compact(who), ", "), strings.Join(slices.Compact(more), ", "))
	}
}

// moment is long enough for what a broker does at once. It bounds what is not seen.
const moment = 200 * time.Millisecond

func (a answers) ids(s *site) {
	id := s.broker.id(holder(s.t, seven))
	for ask, name := range map[string]string{"a node under another's client id": eight, "an operator under a node's client id": alice} { // any order: independent
		first := s.up(seven, id)
		other, _, in := s.connect(name, id, "")
		<-time.After(moment)
		switch lost := first.Stats().Losses; {
		case !in && lost == 0:
			a[ask] = refused
		case in && lost == 0 && other.Up():
			a[ask] = ownID
		case lost > 0:
			a[ask] = throwsOff
		default:
			s.t.Errorf("%s: let in %v, %d losses", ask, in, lost)
		}
		other.Abandon()
		first.Close()
	}
}

func (a answers) strangers(s *site) {
	stranger, err := pki.Init(filepath.Join(s.t.TempDir(), "pki"), "f1", "other.example")
	if err != nil {
		s.t.Fatal(err)
	}
	now, good := time.Now(), s.keys[seven]
	expired, early := s.own(seven, now.AddDate(0, -2, 0), now.AddDate(0, -1, 0)), s.own(seven, now.Add(time.Hour), now.Add(2*time.Hour))
	s.issue(stranger, proto.RoleNode, 1, seven)
	strange := s.keys[seven]
	s.issue(s.folder, proto.RoleNode, 1, "f1/n/9") // the broker is not told
	carrier := pki.Issued{CertFile: s.broker.carrier(), KeyFile: strings.TrimSuffix(s.broker.carrier(), ".pem") + ".key"}
	url, id := s.broker.url(holder(s.t, seven)), s.broker.id(holder(s.t, seven))
	for ask, key := range map[string]pki.Issued{"": good, asks[5]: strange, asks[6]: expired, asks[7]: early} { // any order: independent
		l, _, in := s.connectAt(url, key, id, "")
		if a[ask] = refused; in {
			if a[ask] = letIn; ask == asks[7] {
				a[ask] = taken
			}
		}
		l.Abandon()
	}
	if a[""] == refused || a[asks[5]] != refused || a[asks[6]] != refused {
		s.t.Errorf("a node %s, a stranger %s, an ended certificate %s", a[""], a[asks[5]], a[asks[6]])
	}
	l, _, in := s.connect("f1/n/9", s.broker.id(holder(s.t, "f1/n/9")), "")
	if a[asks[8]] = refused; in {
		a[asks[8]] = letIn
	}
	l.Abandon()
	// A broker's own certificate is trusted with nothing.
	if s.kind != "embedded" {
		ear := s.up(plannerA, s.broker.id(holder(s.t, plannerA)), f1.Planner(), f1.EveryNode(proto.TopicPresence))
		if l, _, in := s.connectAt(s.broker.url(holder(s.t, plannerA)), carrier, "carrier", ""); in {
			_ = l.Send(proto.Packet{Topic: f1.Planner(), Payload: []byte("carried")})
			if s.comes(ear, "carried", moment) {
				s.t.Error("a broker's certificate speaks as a planner")
			}
			l.Abandon()
		}
	}
}

// ended waits until a link is down for good.
func (s *site) ended(l *mqtt.Link) bool {
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
		if l.Stats().Losses > 0 && l.Stats().Attempts > 3 && !l.Up() {
			return l.Stats().Connects == 1
		}
	}
	return false
}

func (s *site) revoke(name, key string) {
	s.t.Helper()
	if _, err := s.folder.Revoke(name, key); err != nil {
		s.t.Fatal(err)
	}
	s.broker.tell()
}

func (a answers) revokedName(s *site) {
	id := func(name string) string { return s.broker.id(holder(s.t, name)) }
	ear := s.up(plannerA, id(plannerA), f1.EveryNode(proto.TopicPresence))
	live, other := s.up(seven, id(seven), f1.Desired(7), f1.Trust()), s.up(eight, id(eight))
	s.revoke(seven, "")
	switch {
	case s.kind != "mosquitto":
		if a[asks[10]] = closed; !s.ended(live) {
			a[asks[10]] = stays
		}
	default:
		_ = live.Send(proto.Packet{Topic: f1.Presence(7), Payload: []byte("said")})
		_ = ear.Send(proto.Packet{Topic: f1.Desired(7), Payload: []byte("told")})
		_ = ear.Send(proto.Packet{Topic: f1.Trust(), Payload: []byte("told")})
		if a[asks[10]] = mute; s.comes(ear, "said", moment) || s.comes(live, "told", moment) || live.Stats().Losses > 0 {
			s.t.Error("a revoked name that is connected says or hears something, or is not connected")
		}
	}
	// It comes again, from elsewhere, which may not be by taking over.
	again, _, in := s.connect(seven, id(seven), "")
	if a[asks[9]] = refused; in {
		a[asks[9]] = letIn
	}
	again.Abandon()
	if !other.Up() || other.Stats().Losses > 0 || ear.Stats().Losses > 0 {
		s.t.Errorf("others lost their connections: %+v", other.Stats())
	}
	if s.kind == "mosquitto" { // what ends the connection, too
		s.broker.restart()
		if !s.ended(live) {
			s.t.Error("a restart did not end the connection")
		}
		for end := time.Now().Add(5 * time.Second); !other.Up(); <-time.After(5 * time.Millisecond) {
			if time.Now().After(end) {
				s.t.Fatal("node 8 is not back after a restart")
			}
		}
	}
}

func (a answers) revokedKey(s *site) {
	id := s.broker.id(holder(s.t, seven))
	old := s.keys[seven]
	s.issue(s.folder, proto.RoleNode, 1, seven) // a second key
	fresh := s.keys[seven]
	s.broker.tell()
	s.keys[seven] = old
	live := s.up(seven, id)
	s.revoke(seven, old.ID)
	if s.kind == "mosquitto" {
		<-time.After(moment)
		if live.Stats().Losses > 0 {
			s.t.Error("mosquitto ends connections of revoked certificates by itself: the page may say so")
		}
		a[asks[12]] = untilOther
	} else {
		a[asks[12]] = closed
	}
	s.keys[seven] = fresh
	other := s.up(seven, id)
	if !s.ended(live) {
		s.t.Error("the connection of the revoked key does not end")
	}
	<-time.After(moment)
	if !other.Up() || other.Stats().Losses > 0 {
		s.t.Errorf("the other key lost its connection: %+v, %v; the revoked one %v", other.Stats(), other.Err(), live.Err())
	}
	other.Close()
	s.keys[seven] = old
	l, _, in := s.connect(seven, id, "")
	if a[asks[11]] = refused; in {
		a[asks[11]] = letIn
	}
	l.Abandon()
}

// root: messages flow while the root, the broker's certificate and at last the authorities change.
func (a answers) root(s *site) {
	id := func(name string) string { return s.broker.id(holder(s.t, name)) }
	reader, writer := s.up(plannerA, id(plannerA), f1.Presence(8)), s.up(eight, id(eight))
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
		for tick := time.NewTicker(time.Millisecond); ; {
			select {
			case <-tick.C:
				if writer.Send(proto.Packet{Topic: f1.Presence(8), Payload: []byte("x")}) == nil {
					sent.Add(1)
				}
			case <-stop:
				tick.Stop()
				return
			}
		}
	}()
	if err := s.folder.NewRoot(); err != nil { // ca.pem has both now
		s.t.Fatal(err)
	}
	s.broker.tell()
	both, err := os.ReadFile(s.ca)
	if err != nil {
		s.t.Fatal(err)
	}
	s.ca = filepath.Join(s.t.TempDir(), "both.pem") // of the clients, to the end
	fresh, err := s.folder.Broker(pki.Request{Days: 30, Hosts: []string{"127.0.0.1"}, Out: s.t.TempDir()}, "b")
	if err != nil || os.WriteFile(s.ca, both, 0o600) != nil {
		s.t.Fatal(err)
	}
	for from, to := range map[string]string{fresh.KeyFile: strings.TrimSuffix(s.broker.carrier(), ".pem") + ".key", fresh.CertFile: s.broker.carrier()} { // any order: half of a pair is not taken
		if err := os.Rename(from, to); err != nil {
			s.t.Fatal(err)
		}
	}
	s.issue(s.folder, proto.RoleNode, 1, "f1/n/9")
	s.broker.tell()
	s.up(seven, id(seven)).Close()
	s.up("f1/n/9", id("f1/n/9")).Close()
	newest, _ := pem.Decode(both)
	authorities := filepath.Join(filepath.Dir(s.broker.carrier()), "ca.pem")
	if s.kind == "embedded" {
		authorities, _ = s.folder.Files()
	}
	if err := os.WriteFile(authorities, pem.EncodeToMemory(newest), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.broker.tell()
	l, _, in := s.connect(seven, id(seven), "")
	if a[asks[14]] = refused; in {
		a[asks[14]] = letIn
	}
	l.Abandon()
	close(stop)
	<-stopped
	for end := time.Now().Add(5 * time.Second); got.Load() < sent.Load() && time.Now().Before(end); <-time.After(time.Millisecond) {
	}
	a[asks[13]] = "no message is lost"
	if got.Load() != sent.Load() || sent.Load() < 20 || reader.Stats().Losses+writer.Stats().Losses != 0 {
		s.t.Errorf("%s: %d of %d messages, %d and %d losses", s.kind, got.Load(), sent.Load(), reader.Stats().Losses, writer.Stats().Losses)
	}
	s.t.Logf("%d messages while the root changed, none lost", sent.Load())
}
