package hostile

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"ringlight/mzi/detmath"
	"ringlight/proto"
	"ringlight/proto/guard"
	"ringlight/proto/seal"
)

// Seals are what a stranger has got hold of where messages are sealed: the key of one
// node, and, as whoever holds the broker has, all that was ever said.
type Seals struct {
	Node      int
	NodeKey   string // file
	TrustFile string
	// Of an operator who may operate, to ask whether all is well.
	Cert, Key string
}

// voices speak at once, each some 900 messages a second: a broker reads a thousand of
// each. More of them starve an operator on whose topic they speak, which is a flood's
// business, and told there.
const voices = 6

// impostor makes messages that nobody may believe.
type impostor struct {
	s       *stranger
	random  *detmath.Random
	genuine []proto.Packet // sealed, as they were said
	stolen  ed25519.PrivateKey
	own     ed25519.PrivateKey
	trust   *seal.Trust
}

// history makes the fabric say something of every kind, and keeps it: plans of former
// generations, decisions, commands and an operator's acts.
func (s *stranger) history(ctx context.Context) error {
	if s.cfg.Seals == nil {
		return nil
	}
	listening, stop := context.WithCancel(ctx)
	heard := make(chan error, 1)
	go func() { heard <- s.hear(listening, time.Hour) }()
	pause(ctx, time.Second)
	node := proto.NodeID(s.cfg.Nodes / 3)
	for _, noun := range []proto.Noun{proto.NounDrain, proto.NounUndrain, proto.NounHostFault, proto.NounHostOK} {
		if _, err := s.asker.Ask(ctx, proto.OpRequest{Noun: noun, Node: node}); err != nil && proto.AsError(err).Code != proto.Duplicate {
			stop()
			return fmt.Errorf("hostile: history: %v: %w", noun, err)
		}
		pause(ctx, time.Second)
	}
	_, err := s.asker.settled(ctx, backPatience)
	pause(ctx, 2*time.Second)
	stop()
	if e := <-heard; !errors.Is(e, context.Canceled) {
		err = errors.Join(err, e)
	}
	return err
}

// sealedAttack has forged, swapped, replayed and spoilt messages of every kind said,
// a million at full scale. No term and no generation may move.
func sealedAttack(ctx context.Context, s *stranger) (int, error) {
	if s.cfg.Seals == nil {
		return 0, fmt.Errorf("no seals given, not tried")
	}
	im, err := newImpostor(s)
	if err != nil {
		return 0, err
	}
	before, err := s.asker.ask(ctx, proto.NounFabric)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	var all sync.WaitGroup
	n, sent := s.scaled(1_000_000)/voices, make([]int, voices)
	for v := range voices {
		w, err := s.speaker()
		if err != nil {
			return 0, err
		}
		each := *im
		each.random = detmath.Stream(s.cfg.Seed, uint64(v)+1)
		all.Go(func() {
			defer w.Close()
			for i := range n {
				p := each.message(i)
				if ctx.Err() != nil { // on a loaded machine: as many as there was time for
					break
				}
				w.say(ctx, p.Topic, p.Payload, p.QoS, p.Retain)
				pause(ctx, time.Millisecond)
			}
			settleLink(ctx, w)
			sent[v] = w.sent
		})
	}
	all.Wait()
	total := 0
	for _, k := range sent {
		total += k
	}
	after, err := s.asker.ask(context.WithoutCancel(ctx), proto.NounFabric)
	if err != nil {
		return total, fmt.Errorf("began %d ms ago: %w", time.Since(began).Milliseconds(), err)
	}
	if before.Fabric.Term != after.Fabric.Term || before.Fabric.Generation != after.Fabric.Generation {
		return total, fmt.Errorf("%w: term %d became %d, generation %d became %d", errFell, before.Fabric.Term, after.Fabric.Term, before.Fabric.Generation, after.Fabric.Generation)
	}
	return total, fmt.Errorf("began %d ms ago; term %d and generation %d as before; %d genuine messages played again", time.Since(began).Milliseconds(), after.Fabric.Term, after.Fabric.Generation, len(im.genuine))
}

// settleLink waits until what was said has left.
func settleLink(ctx context.Context, w *speaker) {
	for last := uint64(0); ctx.Err() == nil; {
		pause(ctx, 200*time.Millisecond)
		now := w.Stats().Sent
		if now == last {
			return
		}
		last = now
	}
}

func newImpostor(s *stranger) (*impostor, error) {
	im := &impostor{s: s, own: ed25519.NewKeyFromSeed(bytes.Repeat([]byte{66}, ed25519.SeedSize))}
	raw, err := os.ReadFile(s.cfg.Seals.NodeKey)
	if err == nil {
		im.stolen, err = seal.ParseKey(raw)
	}
	if err != nil {
		return nil, err
	}
	if raw, err = os.ReadFile(s.cfg.Seals.TrustFile); err != nil {
		return nil, err
	}
	if im.trust, err = seal.ReadTrust(raw); err != nil {
		return nil, err
	}
	kinds := map[proto.TopicKind]int{}
	for _, p := range s.heard {
		if t, err := proto.ParseTopic(p.Topic); err == nil && p.Sealed != nil {
			kinds[t.Kind]++
			im.genuine = append(im.genuine, p)
		}
	}
	for _, k := range []proto.TopicKind{proto.TopicPlanner, proto.TopicDesired, proto.TopicDecision, proto.TopicCommand, proto.TopicRequest, proto.TopicAck, proto.TopicEvent, proto.TopicPresence, proto.TopicReported, proto.TopicTrust} {
		if kinds[k] == 0 {
			return nil, fmt.Errorf("hostile: heard no sealed %v", k)
		}
	}
	return im, nil
}

func (im *impostor) below(n int) int { return im.random.Below(n) }

// message is the i-th of one voice: each way for each kind, over and over.
func (im *impostor) message(i int) proto.Packet {
	switch i % 6 {
	case 0: // swapped: on a topic of another
		p := im.genuineOne()
		p.Topic = im.genuineOne().Topic
		return p
	case 1: // replayed, long after
		p := im.genuineOne()
		p.Retain = i%5 == 0
		return p
	case 2: // spoilt: the seal's key is the true one's
		p := im.genuineOne()
		p.Payload = bytes.Clone(p.Payload)
		p.Payload[17+im.below(len(p.Payload)-17)] ^= byte(1 << im.below(8))
		return p
	}
	topic, msg := im.lie(i / 6)
	p := proto.Packet{Topic: topic, Payload: raw(msg)}
	switch i % 6 {
	case 4:
		p.Payload = seal.Sign(im.stolen, topic, p.Payload)
	case 5:
		p.Payload = seal.Sign(im.own, topic, p.Payload)
	}
	return p
}

func (im *impostor) genuineOne() proto.Packet {
	p := im.genuine[im.below(len(im.genuine))]
	return proto.Packet{Topic: p.Topic, Payload: p.Sealed}
}

// lie is a well formed message of each kind in turn that would move something.
func (im *impostor) lie(i int) (topic string, msg any) {
	s := im.s
	id := proto.NodeID(im.below(s.cfg.Nodes))
	if int(id) == s.cfg.Seals.Node { // of itself a node may say what it likes
		id = (id + 1) % proto.NodeID(s.cfg.Nodes)
	}
	term, life := s.state.Term+proto.Term(im.below(2)), s.state.Life
	switch i % 9 {
	case 0:
		if d, ok := s.plan(int(id)); ok {
			d.Term, d.Life, d.Generation, d.Rings = term, life, d.Generation+1+proto.Generation(im.below(50)), nil
			d.Plan, _ = proto.PlanDigest([]proto.Desired{d})
			return s.topics.Desired(d.Node), &d
		}
		fallthrough
	case 1:
		d := proto.Decision{Version: proto.Version, Ring: proto.RingID(im.below(9)), Term: term, Generation: proto.Generation(1 + im.below(50)), Verdict: proto.Commit}
		return s.topics.Decision(d.Ring), &d
	case 2:
		return s.topics.Command(id), &proto.Command{Version: proto.Version, Node: id, Term: term, Session: s.session(int(id)), Corr: proto.Corr{byte(i), byte(i >> 8), byte(i >> 16), 9},
			TTLMillis: 600_000, Verb: proto.VerbHostFault, Life: life}
	case 3:
		return s.topics.Planner(), &proto.PlannerState{Version: proto.Version, Planner: 99, Online: true, Term: term + 5, Seq: uint64(1 + im.below(1000)), PeriodMillis: 2000, Fabric: s.cfg.Fabric, Life: 99, Takeover: true}
	case 4:
		return s.topics.Presence(id), &proto.Presence{Version: proto.Version, Node: id, Session: s.session(int(id))}
	case 5:
		return s.topics.Reported(id), &proto.Reported{Version: proto.Version, Node: id, Session: s.session(int(id)), Seq: proto.MaxCount / 2, SeenTerm: term + 5, Mode: proto.ModeHostDown}
	case 6:
		return s.topics.Ack(id), &proto.Ack{Version: proto.Version, Node: id, Session: s.session(int(id)), Phase: proto.PhasePrepare, Code: proto.Stale, Term: term, CurrentTerm: term + 5}
	case 7:
		return s.topics.Event(id), &proto.Event{Version: proto.Version, Node: id, Session: s.session(int(id)), Seq: uint64(1 + im.below(1<<20)), Kind: proto.EvIsolated, Count: 1, Measured: proto.NoPower, Expected: proto.NoPower}
	}
	q := proto.OpRequest{Version: proto.Version, Corr: proto.Corr{byte(i), byte(i >> 8), byte(i >> 16), 7}, TTLMillis: 10_000, Noun: proto.NounHostFault, Node: id, Bundle: -1, Term: s.state.Term, Beat: s.state.Seq}
	return s.topics.Request("alice"), &q
}

// sealer seals what the watcher asks.
func (c *Config) sealer() (*guard.Sealer, string, error) {
	if c.Seals == nil {
		return nil, "", nil
	}
	g, h, err := guard.NewSealer(c.Seals.Cert, c.Seals.Key)
	return g, h.ID, err
}
