package procs

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"os"
	"time"

	"ringlight/mzi/detmath"
	"ringlight/proto"
	"ringlight/proto/guard"
	"ringlight/proto/mqtt"
	"ringlight/proto/seal"
	"ringlight/sim/hostile"
)

// liarPatience is how long the planner may take to tell what a node reports.
const liarPatience = 10 * time.Second

// liar speaks for a node whose certificate and key it holds, and nothing else: all it
// says is the node's own word, sealed as it must be, and false.
type liar struct {
	Fabric   string
	Node     proto.NodeID
	Broker   string // for nodes
	Identity string // folder with the node's key, certificate and authorities
	Sent     uint64 // messages

	key  ed25519.PrivateKey
	born proto.Presence
	said proto.Reported
	link *mqtt.Link
	at   proto.Topics
}

// untruth is what a node says over and over.
type untruth struct {
	Name    string
	Member  bool // of a ring, else a spare
	Beside  bool // its agent lives; else it was killed, and its light stays
	Answers bool // it is what it says to a prepare
	Named   bool // a sender of it must be named: it claims what only a planner may say, or stands in a plan's way
	every   time.Duration
	times   int // 0: until the end
	say     func(l *liar, i uint64) (proto.TopicKind, []byte)
	answer  func(d *proto.Desired, s proto.Session, i uint64) *proto.Ack // nil result: none
}

// untruths are so many: L1, L2 and what a member may answer, and others by chance.
func untruths(seed uint64, want int) (list []untruth) {
	report := func(change func(r *proto.Reported, i uint64)) func(*liar, uint64) (proto.TopicKind, []byte) {
		return func(l *liar, i uint64) (proto.TopicKind, []byte) {
			r := hostile.Truth(proto.TopicReported, &l.born, &l.said, l.Sent).(*proto.Reported)
			change(r, i)
			return proto.TopicReported, hostile.Encode(r)
		}
	}
	birth := func(step uint64) func(*liar, uint64) (proto.TopicKind, []byte) {
		return func(l *liar, i uint64) (proto.TopicKind, []byte) {
			b := l.born
			b.SeenTerm += proto.Term(step * i)
			return proto.TopicPresence, hostile.Encode(&b)
		}
	}
	far := func(r *proto.Reported, i uint64) { r.StagedGeneration += proto.Generation(1_048_000 * i) }
	answers := func(code proto.Code) func(*proto.Desired, proto.Session, uint64) *proto.Ack {
		return func(d *proto.Desired, s proto.Session, i uint64) *proto.Ack {
			a := hostile.Answer(d, s, code)
			a.CurrentGeneration += proto.Generation(1_048_000 * i)
			return a
		}
	}
	silent := func(*proto.Desired, proto.Session, uint64) *proto.Ack { return nil }
	for _, member := range []bool{false, true} {
		list = append(list,
			untruth{Name: "L1: three reports of a staged generation", Member: member, Beside: true, Named: true, every: 100 * time.Millisecond, times: 3, say: report(far)},
			untruth{Name: "L1: such a report each second", Member: member, Named: true, every: time.Second, say: report(far)},
			untruth{Name: "L1: such a report each 5 ms", Member: member, Named: true, every: 5 * time.Millisecond, say: report(far)},
			untruth{Name: "L2: a birth each second, a million terms on", Member: member, Named: true, every: time.Second, say: birth(1_000_000)},
			untruth{Name: "L2: a birth each 10 ms, a term on", Member: member, Named: true, every: 10 * time.Millisecond, say: birth(1)})
	}
	list = append(list, untruth{Name: "L1: answers stale, with a far generation", Member: true, Answers: true, Named: true, every: time.Second, answer: answers(proto.Stale)},
		untruth{Name: "L3: answers conflict", Member: true, Answers: true, Named: true, every: time.Second, answer: answers(proto.Conflict)},
		untruth{Name: "L3: answers nothing", Member: true, Answers: true, Named: true, every: time.Second, answer: silent})
	var all []hostile.Lie
	for _, m := range []any{&proto.Presence{}, &proto.Reported{}, &proto.Ack{}, &proto.Event{}, &proto.Health{}} {
		all = append(all, hostile.Lies(m)...)
	}
	random := detmath.Stream(seed, 25)
	for i := range max(0, want-len(list)) {
		x := &all[random.Below(len(all))]
		list = append(list, untruth{Name: x.String(), Member: i%2 == 1, every: 10 * time.Millisecond, say: func(l *liar, i uint64) (proto.TopicKind, []byte) {
			return x.Kind(), x.Tell(hostile.Truth(x.Kind(), &l.born, &l.said, l.Sent), i)
		}})
	}
	return list[:want]
}

// Learn asks as an operator what the node reports, and reads its key.
func (l *liar) Learn(ctx context.Context, planner, ca, cert, key string) error {
	l.at = proto.Topics{Fabric: l.Fabric}
	g, who, err := guard.NewSealer(cert, key)
	if err != nil {
		return err
	}
	link, err := mqtt.Dial(mqtt.Config{Broker: planner, ClientID: who.OperatorClient("liar"), CAFile: ca, CertFile: cert, KeyFile: key, Guard: g,
		Subscriptions: []string{l.at.Reply(who.ID), l.at.Planner()}, Ordered: true})
	if err != nil {
		return err
	}
	defer link.Close()
	a := mqtt.Asker{Link: link, Topics: l.at, Name: who.ID, Wait: liarPatience}
	rand.Read(a.Seed[:])
	r, err := a.Ask(ctx, proto.OpRequest{Noun: proto.NounNode, Node: l.Node})
	if err != nil {
		return err
	}
	l.said = *r.Nodes[0].Reported
	m := &l.said
	l.born = proto.Presence{Version: proto.Version, Node: l.Node, Session: m.Session, Online: true, Boot: 1, Software: "ringlight", Mode: m.Mode,
		SeenTerm: m.SeenTerm, Term: m.Term, Generation: m.Generation, Plan: m.Plan, Measured: m.Measured, Features: r.Nodes[0].Features}
	pair, _, _ := guard.IdentityFiles(l.Identity)
	raw, err := os.ReadFile(pair)
	if err == nil {
		l.key, err = seal.ParseKey(raw)
	}
	return err
}

// Lie connects as the node and lies until ctx ends.
func (l *liar) Lie(ctx context.Context, u *untruth) error {
	pair, ca, _ := guard.IdentityFiles(l.Identity)
	var err error
	if l.link, err = mqtt.Dial(mqtt.Config{Broker: l.Broker, ClientID: l.at.NodeClient(l.Node), CAFile: ca, CertFile: pair, KeyFile: pair,
		Subscriptions: []string{l.at.Desired(l.Node)}, Ordered: true, MinReconnect: 50 * time.Millisecond, MaxReconnect: 500 * time.Millisecond}); err != nil {
		return err
	}
	defer l.link.Close()
	up := time.After(10 * time.Second)
	for on := false; !on; {
		select {
		case p := <-l.link.Recv():
			on = p.Kind == proto.LinkUp
		case <-up:
			return errors.New("the broker does not let it in")
		}
	}
	if !u.Beside {
		l.tell(proto.TopicPresence, hostile.Encode(&l.born))
		l.Sent++
		l.tell(proto.TopicReported, hostile.Encode(hostile.Truth(proto.TopicReported, &l.born, &l.said, l.Sent)))
	}
	clock := time.NewTicker(u.every)
	defer clock.Stop()
	answered := uint64(0)
	for i := uint64(1); u.times == 0 || i <= uint64(u.times); {
		select {
		case <-ctx.Done():
			return nil
		case <-clock.C:
			if u.say != nil {
				l.Sent++
				l.tell(u.say(l, i))
			}
			i++
		case p := <-l.link.Recv():
			var d proto.Desired
			if _, err := proto.Decode(p.Payload, &d); p.Kind != proto.Publish || err != nil || u.answer == nil {
				continue
			}
			answered++
			if a := u.answer(&d, l.said.Session, answered); a != nil {
				l.tell(proto.TopicAck, hostile.Encode(a))
			}
		}
	}
	time.Sleep(100 * time.Millisecond) // for the last to leave
	return nil
}

func (l *liar) tell(kind proto.TopicKind, payload []byte) {
	topic := map[proto.TopicKind]func(proto.NodeID) string{proto.TopicPresence: l.at.Presence, proto.TopicReported: l.at.Reported, proto.TopicAck: l.at.Ack, proto.TopicEvent: l.at.Event, proto.TopicHealth: l.at.Health}[kind](l.Node)
	if kind != proto.TopicHealth {
		payload = seal.Sign(l.key, topic, payload)
	}
	_ = l.link.Send(proto.Packet{Kind: proto.Publish, Topic: topic, Payload: payload, QoS: kind.QoS(), Retain: kind.Retain()})
}
