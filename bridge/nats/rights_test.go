package nats

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/proto"
	"ringlight/proto/mqtt"
)

// cells tries every cell of the table of rights at a broker: those with rights listen, each on
// all that it may hear, and a planner marks the ends of silences.
type cells struct {
	*site
	ears   map[string]*mqtt.Link
	mouth  *mqtt.Link
	said   int
	tried  map[string]int
	wrong  []string // what is otherwise than in the table
	barred bool     // who has a foreign will
}

var f1 = proto.Topics{Fabric: "f1"}

// subjects are tried; each may surely publish on a topic that a planner hears.
var subjects = map[string]string{seven: f1.Presence(7), plannerA: f1.Planner(), alice: f1.Request("alice"), tokenOfNine: f1.Enrol(9, proto.TopicEnrolCSR)}

var hearers = []string{"f1/planner/b", seven, eight, alice, bob, tokenOfNine}

var topics = []string{f1.Desired(7), f1.Command(7), f1.Ack(7), f1.Reported(7), f1.Presence(7), f1.Health(7), f1.Event(7), f1.CSR(7), f1.CRT(7),
	f1.Desired(8), f1.Command(8), f1.Ack(8), f1.Presence(8), f1.CRT(8), f1.Enrol(9, proto.TopicEnrolCSR), f1.Enrol(9, proto.TopicEnrolCRT),
	f1.Planner(), f1.Decision(3), f1.Trust(), f1.Request("alice"), f1.Reply("alice"), f1.Request("bob"), f1.Reply("bob"), "ocs/v1/f2/planner/state", "ocs/x"}

// once: a broker knows one connection of it, whatever it asks for.
func once(name string) bool {
	return strings.HasPrefix(name, "f1/n/") || strings.HasPrefix(name, "f1/enrol/")
}

// mark is a topic by which a planner reaches a holder.
func mark(h proto.Holder) string {
	switch h.Kind {
	case proto.HolderNode:
		return f1.Desired(h.Node)
	case proto.HolderEnrol:
		return f1.Enrol(h.Node, proto.TopicEnrolCRT)
	case proto.HolderOperator:
		return f1.Reply(h.ID)
	}
	return f1.Planner()
}

// listen has a holder listen on all that the table lets it hear, with one more id.
func (c *cells) listen(name, more string) *mqtt.Link {
	h := holder(c.t, name)
	var subs []string
	for _, g := range h.Grants() {
		if g.Receive {
			subs = append(subs, g.Filter)
		}
	}
	id := c.broker.id(h)
	if !once(name) {
		id += more
	}
	return c.up(name, id, subs...)
}

func (c *cells) say(l *mqtt.Link, topic string) (payload string) {
	c.said++
	payload = fmt.Sprint("m", c.said)
	sent := l.Stats().Sent
	if l.Send(proto.Packet{Topic: topic, Payload: []byte(payload)}) == nil {
		for l.Up() && l.Stats().Sent == sent { // telemetry leaves last
			<-time.After(100 * time.Microsecond)
		}
	}
	return payload
}

// heard reads on until one of two messages; when neither comes it is a failure. A link
// delivers telemetry last: what should come may come behind the mark.
func (c *cells) heard(l *mqtt.Link, payload, last string, want bool) bool {
	c.t.Helper()
	found, end := false, time.After(10*time.Second)
	for {
		select {
		case p := <-l.Recv():
			switch text := string(p.Payload); {
			case p.Kind == proto.LinkDown:
				c.t.Fatalf("%s: %s while %s is waited for", c.kind, text, last)
			case p.Kind == proto.Publish && text == payload:
				found = true
			case p.Kind == proto.Publish && text == last:
				return found || c.comes(l, payload, map[bool]time.Duration{true: 5 * time.Second, false: 2 * time.Millisecond}[want])
			}
		case <-end:
			c.t.Fatalf("%s: %s did not come", c.kind, last)
		}
	}
}

// settled waits until a broker has judged what a subject said before a sure message, and
// reports whether a planner heard it meanwhile.
func (c *cells) settled(l *mqtt.Link, said, sure string) (heard bool) {
	c.t.Helper()
	payload, end := c.say(l, sure), time.After(10*time.Second)
	for {
		select {
		case p := <-c.ears[hearers[0]].Recv():
			switch string(p.Payload) {
			case payload:
				return heard
			case said:
				heard = true
			}
		case p := <-l.Recv():
			if p.Kind == proto.LinkDown { // so the planner's own broker says no
				return heard
			}
		case <-end:
			c.t.Fatalf("%s: %s was not taken", c.kind, sure)
		}
	}
}

func (c *cells) judge(what, name, topic string, got, want bool) {
	if c.tried[what]++; got != want {
		c.wrong = append(c.wrong, fmt.Sprintf("%s %s %s: %v", name, what, topic, got))
	}
}

// ear is who may hear a topic.
func ear(t *testing.T, topic string, not string) string {
	i := slices.IndexFunc(hearers, func(name string) bool { return name != not && holder(t, name).Grants().Allow(false, topic) })
	if i < 0 {
		return ""
	}
	return hearers[i]
}

// rights tries all.
func rights(s *site) *cells {
	if s.logins == "" {
		s.issue(s.folder, proto.RolePlanner, 1, "f1/planner/b")
		if s.kind != "nats" { // whose list has no tokens
			s.token(9)
		}
		s.broker.tell()
	}
	c := &cells{site: s, ears: map[string]*mqtt.Link{}, tried: map[string]int{}}
	c.mouth = c.up("f1/planner/b", s.broker.id(holder(s.t, "f1/planner/b"))+"mouth")
	for _, name := range hearers {
		if _, ok := s.keys[name]; ok {
			c.ears[name] = c.listen(name, "ear")
		}
	}
	for name, sure := range subjects { // any order: independent
		if _, ok := s.keys[name]; !ok {
			continue
		}
		if c.ears[name] != nil && once(name) {
			c.ears[name].Close()
		}
		c.publishes(name, sure)
		c.subscribes(name)
		c.wills(name)
		if once(name) {
			c.ears[name] = c.listen(name, "ear")
		}
	}
	return c
}

func (c *cells) publishes(name, sure string) {
	h := holder(c.t, name)
	var l *mqtt.Link
	for _, topic := range topics {
		by := ear(c.t, topic, "")
		if topic == sure || c.ears[by] == nil {
			continue
		}
		if l == nil || !l.Up() {
			if l != nil {
				l.Abandon()
			}
			l = c.listen(name, "subject")
			if once(name) {
				c.ears[name] = l
			}
		}
		payload := c.say(l, topic)
		heard := c.settled(l, payload, sure)
		if c.ears[by] == l && !l.Up() { // thrown out before it could hear itself
			c.judge("publishes", name, topic, false, h.Grants().Allow(true, topic))
			continue
		}
		end := c.say(c.mouth, mark(holder(c.t, by)))
		c.judge("publishes", name, topic, heard || c.heard(c.ears[by], payload, end, h.Grants().Allow(true, topic)), h.Grants().Allow(true, topic))
	}
	l.Close()
}

func (c *cells) subscribes(name string) {
	h := holder(c.t, name)
	id := c.broker.id(h)
	if !once(name) {
		id += "subject"
	}
	for _, topic := range append([]string{"#", "ocs/v1/f1/#", f1.EveryNode(proto.TopicAck), "ocs/v1/+/planner/state"}, topics...) {
		want := h.Grants().Allow(false, topic)
		l, word, in := c.connect(name, id, "", slices.Compact([]string{topic, mark(h)})...)
		if !in {
			c.t.Fatalf("%s: %s is not let in: %v", c.kind, name, l.Err())
		}
		if word != proto.LinkUp {
			c.judge("hears", name, topic, false, want)
			l.Abandon()
			continue
		}
		// Granted: does anything come? Of a filter, what the table has not.
		for _, said := range topics {
			if topic == said || strings.ContainsAny(topic, "+#") && !h.Grants().Allow(false, said) {
				by := slices.IndexFunc(hearers, func(n string) bool {
					return holder(c.t, n).Grants().Allow(true, said) && (c.ears[n] != nil || n == name)
				})
				if by < 0 {
					continue
				}
				from := c.ears[hearers[by]]
				if hearers[by] == name && once(name) {
					from = l
				}
				payload := c.say(from, said)
				if from != l {
					c.flush(hearers[by], from)
				}
				end := c.say(c.mouth, mark(h))
				c.judge("hears", name, said, c.heard(l, payload, end, h.Grants().Allow(false, said)), h.Grants().Allow(false, said))
			}
		}
		l.Close()
	}
}

// flush waits until a broker has what a holder said.
func (c *cells) flush(name string, from *mqtt.Link) {
	sure, ok := subjects[name]
	if !ok {
		h := holder(c.t, name)
		if sure = f1.Presence(h.Node); h.Kind != proto.HolderNode {
			sure = map[proto.HolderKind]string{proto.HolderOperator: f1.Request(h.ID), proto.HolderPlanner: f1.Planner()}[h.Kind]
		}
	}
	payload := c.say(from, sure)
	c.heard(c.ears[hearers[0]], "", payload, false)
}

func (c *cells) wills(name string) {
	h := holder(c.t, name)
	id := c.broker.id(h)
	if !once(name) {
		id += "subject"
	}
	for _, topic := range topics {
		by := ear(c.t, topic, name)
		if c.ears[by] == nil {
			continue
		}
		want := h.Grants().Allow(true, topic)
		c.said++
		gone := fmt.Sprint("gone", c.said)
		l, word, in := c.connect(name, id, topic+" "+gone)
		if !in || word != proto.LinkUp {
			c.judge("will", name, topic, false, want)
			c.barred = true
			l.Abandon()
			continue
		}
		l.Abandon()
		if want {
			c.judge("will", name, topic, c.comes(c.ears[by], gone, 10*time.Second), true)
			continue
		}
		c.judge("will", name, topic, c.comes(c.ears[by], gone, 30*time.Millisecond), false)
	}
}

// comes reports whether a message comes within a time.
func (s *site) comes(l *mqtt.Link, payload string, within time.Duration) bool {
	for end := time.After(within); ; {
		select {
		case p := <-l.Recv():
			if p.Kind == proto.Publish && string(p.Payload) == payload {
				return true
			}
		case <-end:
			return false
		}
	}
}

// Goal: ocsctl, which asks at QoS 1, works with the same rights. Method: a question of alice
// heard by the planner, and its answer, over links as ocsctl and the planner have them.
func TestOperatorsAskAtNATS(t *testing.T) {
	s := newSite(t, "nats", &natsServer{})
	p := s.up(plannerA, "planner", f1.EveryRequest())
	key := s.keys[alice]
	a, err := mqtt.Dial(mqtt.Config{Broker: s.broker.url(holder(t, alice)), ClientID: "alice", CAFile: s.ca, CertFile: key.CertFile, KeyFile: key.KeyFile, Subscriptions: []string{f1.Reply("alice")}})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if w := <-a.Recv(); w.Kind != proto.LinkUp {
		t.Fatalf("alice hears %v (%v)", w.Kind, a.Err())
	}
	_ = a.Send(proto.Packet{Topic: f1.Request("alice"), Payload: []byte("q"), QoS: 1}) // who listens notices what is missing
	if !s.comes(p, "q", 10*time.Second) {
		t.Fatal("the question did not come")
	}
	_ = p.Send(proto.Packet{Topic: f1.Reply("alice"), Payload: []byte("a")})
	if !s.comes(a, "a", 10*time.Second) {
		t.Fatal("the answer did not come")
	}
}
