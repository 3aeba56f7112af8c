package hostile

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"ringlight/mzi/detmath"
	"ringlight/proto"
	"ringlight/proto/guard"
	"ringlight/proto/mqtt"
	"ringlight/proto/seal"
)

// Seals are what a stranger has got hold of where messages are sealed: the key of one
// node, and, as whoever is the broker has, all that was ever said and the way to all.
type Seals struct {
	Node      int
	NodeKey   string // file
	TrustFile string
	Token     string // of a node that has a key besides, file
	TokenNode int
	// Of an operator who may operate, to ask whether all is well.
	Cert, Key string
	// Where clients find the broker that is not to be trusted, host:port, and what shows
	// them that it is theirs.
	Listen, ListenCert, ListenKey string

	Control  string // unix socket of ocs-sim agents -control
	Bypasses int    // measured quietly, and as many under the attack
	Rate     int    // messages a second
}

// voices speak at once. chosen: one does not sign fast enough.
const voices = 4

// breath is how often each speaks. chosen: at 6,000 a second three messages each time; the
// sixty of 10 ms at once are judged on the processors that all the nodes here share.
const breath = 2 * time.Millisecond

// way is how a message is made that nobody may believe.
type way int

const (
	plain    way = iota // forged, not sealed
	stolen              // forged, with a node's own key
	foreign             // forged, with a key that nobody trusts
	spoilt              // a genuine one with a bit turned, the seal's key the true one's
	swapped             // a genuine one on a topic of another
	replayed            // a genuine one again
	retained            // ... as if the broker had kept it
	late                // ... lateAfter and more after it was said
	ways
)

var wayNames = [ways]string{"plain", "node's key", "own key", "spoilt", "swapped", "replayed", "retained", "late"}

// lateAfter is how old what is told late is. chosen: what an act may be.
const lateAfter = 30 * time.Second

// impostor makes messages that nobody may believe. Each voice has its own.
type impostor struct {
	s      *stranger
	voice  int
	random *detmath.Random
	term   proto.Term
	life   uint64
	beat   uint64
	stolen ed25519.PrivateKey
	own    ed25519.PrivateKey
	ownKey proto.PublicKey
	token  proto.PEM
	counts [][ways]int // by row of kinds
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
	if err == nil {
		err = s.enrol(ctx)
	}
	pause(ctx, 2*time.Second)
	s.ear.since = time.Now()
	stop()
	if e := <-heard; !errors.Is(e, context.Canceled) {
		err = errors.Join(err, e)
	}
	return err
}

// enrol has a node ask for a key with its token, and for another one with that, so
// that these have been said too.
func (s *stranger) enrol(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "ringlight-enrol-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	node := proto.NodeID(s.cfg.Seals.TokenNode)
	id, err := guard.OpenIdentity(dir, s.cfg.Fabric, node, nil)
	if err != nil {
		return err
	}
	l, err := mqtt.Dial(mqtt.Config{Broker: s.cfg.Broker, ClientID: fmt.Sprintf("enrol-%d", s.random.Next()>>32), Subscriptions: append(id.Enrolling(), s.topics.CRT(node)), Ordered: true})
	if err != nil {
		return err
	}
	defer l.Close()
	ctx, stop := context.WithTimeout(ctx, 30*time.Second)
	defer stop()
	if err := id.Enrol(ctx, s.cfg.Seals.Token, l); err != nil {
		return fmt.Errorf("hostile: enrol: %w", err)
	}
	pair, _, _ := guard.IdentityFiles(dir)
	file, err := os.ReadFile(pair)
	if err != nil {
		return err
	}
	key, err := seal.ParseKey(file)
	if err != nil {
		return err
	}
	next := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{67}, ed25519.SeedSize))
	topic := s.topics.CSR(node)
	if err := l.Send(proto.Packet{Kind: proto.Publish, Topic: topic, QoS: 1, Payload: seal.Sign(key, topic, seal.Sign(next, topic,
		raw(&proto.CertRequest{Version: proto.Version, Node: node, Public: publicOf(next)})))}); err != nil {
		return err
	}
	pause(ctx, time.Second) // for the answer, and for it to leave
	return nil
}

func (s *stranger) newImpostor(voice int) (*impostor, error) {
	im := &impostor{s: s, voice: voice, random: detmath.Stream(s.cfg.Seed, uint64(voice)+1), term: s.state.Term, life: s.state.Life, beat: s.state.Seq,
		own: ed25519.NewKeyFromSeed(bytes.Repeat([]byte{66}, ed25519.SeedSize)), counts: make([][ways]int, len(kinds))}
	im.ownKey = publicOf(im.own)
	raw, err := os.ReadFile(s.cfg.Seals.NodeKey)
	if err == nil {
		im.stolen, err = seal.ParseKey(raw)
	}
	if err != nil {
		return nil, err
	}
	if raw, err = os.ReadFile(s.cfg.Seals.Token); err != nil {
		return nil, err
	}
	for b, rest := pem.Decode(raw); b != nil; b, rest = pem.Decode(rest) {
		if b.Type == "CERTIFICATE" && im.token == "" {
			im.token = proto.PEM(pem.EncodeToMemory(b))
		}
	}
	return im, nil
}

func (im *impostor) below(n int) int { return im.random.Below(n) }

// message is the i-th of a voice: each way for each kind, over and over.
func (im *impostor) message(i int) (row int, how way, p proto.Packet, ok bool) {
	row, how = i%len(kinds), way(i/len(kinds)%int(ways))
	k := &kinds[row]
	switch how {
	case plain, stolen, foreign:
		id := proto.NodeID(im.below(im.s.cfg.Nodes))
		if int(id) == im.s.cfg.Seals.Node { // of itself a node may say what it likes
			id = (id + 1) % proto.NodeID(im.s.cfg.Nodes)
		}
		topic, msg := k.lie(im, id, i)
		p = proto.Packet{Topic: topic, Payload: raw(msg)}
		if key := map[way]ed25519.PrivateKey{stolen: im.stolen, foreign: im.own}[how]; key != nil {
			p.Payload = seal.Sign(key, topic, p.Payload)
		}
		return row, how, p, true
	case late:
		p, ok = im.s.ear.one(k.topic, im.random, lateAfter)
		return row, how, p, ok
	}
	if p, ok = im.s.ear.one(k.topic, im.random, 0); !ok {
		return row, how, p, false
	}
	switch how {
	case spoilt:
		p.Payload = bytes.Clone(p.Payload)
		p.Payload[im.below(len(p.Payload))] ^= byte(1 << im.below(8))
	case swapped: // its like of another, or another kind
		other := kinds[im.below(len(kinds))].topic
		if im.below(2) == 0 {
			other = k.topic
		}
		q, found := im.s.ear.one(other, im.random, 0)
		if ok = found && q.Topic != p.Topic; ok {
			p.Payload = q.Payload
		}
	case retained:
		p.Retain = true
	}
	return row, how, p, ok
}

// say brings a message to the readers of its kind.
func (im *impostor) say(row int, p proto.Packet) bool {
	s := im.s
	t, err := proto.ParseTopic(p.Topic)
	if err != nil {
		return false
	}
	switch kinds[row].to {
	case planners:
		return s.front.inject(s.front.planner(), p)
	case operators:
		return s.front.inject(s.topics.Fabric+"-"+t.Client, p) || s.front.inject(s.front.planner(), p)
	}
	id := t.Node
	if !kindOfNode(t.Kind) {
		id = proto.NodeID(im.below(s.cfg.Nodes))
	}
	return s.front.inject(s.topics.NodeClient(id), p)
}

func kindOfNode(k proto.TopicKind) bool {
	return slices.Contains([]proto.TopicKind{proto.TopicDesired, proto.TopicCommand, proto.TopicCRT, proto.TopicEnrolCRT}, k)
}

// assault has all voices speak until ctx ends or so many were said, while the broker
// does as it likes with what is genuine.
func (s *stranger) assault(ctx context.Context, total int, counts [][ways]int) (said int, err error) {
	s.front.mood(true, s.ear.sample(s.random))
	defer s.front.mood(false, nil)
	var all sync.WaitGroup
	list := make([]*impostor, voices)
	for v := range list {
		if list[v], err = s.newImpostor(v); err != nil {
			return 0, err
		}
		im := list[v]
		all.Go(func() {
			tick := time.NewTicker(breath)
			defer tick.Stop()
			for i, done := s.turn, 0; done < total/voices; <-tick.C {
				for range max(1, s.cfg.Seals.Rate*int(breath/time.Millisecond)/voices/1000) {
					row, how, p, ok := im.message(i*voices + v)
					if i++; ok && im.say(row, p) {
						im.counts[row][how]++
						done++
					}
				}
				if ctx.Err() != nil {
					return
				}
			}
		})
	}
	all.Wait()
	for _, im := range list {
		for row := range im.counts {
			for how, n := range im.counts[row] {
				counts[row][how] += n
				said += n
			}
		}
	}
	s.turn += said/voices + 1
	return said, nil
}

// sealedAttack brings forged, swapped, replayed, late and spoilt messages of every kind
// to their readers, a million at full scale, while the broker drops, delays, repeats,
// reorders and moves what is genuine. By the boards' own record no light may change, no
// term and no generation may move, and neighbours must bypass a node as they do quietly.
func sealedAttack(ctx context.Context, s *stranger) (int, error) {
	if s.front == nil {
		return 0, fmt.Errorf("no seals given, not tried")
	}
	pause(ctx, lateAfter-time.Since(s.ear.since))
	if none := s.ear.missing(); len(none) > 0 {
		return 0, fmt.Errorf("%w: nothing to begin with: not heard: %s", errFell, strings.Join(none, ", "))
	}
	counts := make([][ways]int, len(kinds))
	note, n, err := s.bypasses(ctx, counts)
	if err == nil {
		err = s.back(ctx, nil, 0)
	}
	if err != nil {
		return n, err
	}
	pause(ctx, 5*time.Second)
	if s.rings, err = s.asker.settled(ctx, backPatience); err != nil {
		return n, err
	}
	if s.cfg.Seals.Rate == 0 {
		return n, errors.New(note)
	}
	before, err := s.asker.ask(ctx, proto.NounFabric)
	if err != nil {
		return n, err
	}
	s.state.Term, s.state.Life = before.Fabric.Term, before.Fabric.Life
	began := time.Now()
	said, err := s.assault(ctx, s.scaled(1_000_000), counts)
	n += said
	if err != nil {
		return n, err
	}
	light, lit := s.light()
	took := time.Since(began)
	after, err := s.asker.ask(context.WithoutCancel(ctx), proto.NounFabric)
	switch {
	case err != nil:
		return n, fmt.Errorf("%w: no answer: %w", errFell, err)
	case lit != nil:
		return n, lit
	}
	s.table += tableOf(counts, s.front)
	note = fmt.Sprintf("%s%d messages in %v, terms raised %d, generations %d, since the boards' last change of light %v", note, said, took.Round(time.Second),
		after.Fabric.Term-before.Fabric.Term, after.Fabric.Generation-before.Fabric.Generation, light.since().Round(time.Second))
	for row, c := range counts {
		for how, k := range c {
			if k == 0 {
				return n, fmt.Errorf("%w: %s, %s: none was said; %s", errFell, kinds[row].path, wayNames[how], note)
			}
		}
	}
	if before.Fabric.Term != after.Fabric.Term || before.Fabric.Generation != after.Fabric.Generation || light.since() < took {
		return n, fmt.Errorf("%w: %s", errFell, note)
	}
	return n, errors.New(note)
}

// tableOf is how many messages were sent, by kind and way, and what the broker did with those
// that were genuine.
func tableOf(counts [][ways]int, f *front) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-22s", "said")
	for _, name := range wayNames {
		fmt.Fprintf(&b, " %10s", name)
	}
	fmt.Fprintf(&b, "   genuine ones dropped, delayed, doubled, overtaken, moved\n")
	f.mu.Lock()
	defer f.mu.Unlock()
	for row, c := range counts {
		fmt.Fprintf(&b, "%-22s", kinds[row].path)
		for _, n := range c {
			fmt.Fprintf(&b, " %10d", n)
		}
		k := f.kept[kinds[row].topic]
		if k == nil {
			k = &whims{}
		}
		fmt.Fprintf(&b, "   %d %d %d %d %d\n", k.dropped, k.delayed, k.doubled, k.overtaken, k.moved)
	}
	return b.String()
}

// sealer seals what the watcher asks.
func (c *Config) sealer() (*guard.Sealer, string, error) {
	if c.Seals == nil {
		return nil, "", nil
	}
	g, h, err := guard.NewSealer(c.Seals.Cert, c.Seals.Key)
	return g, h.ID, err
}
