package hostile

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"ringlight/proto"
)

// attack is one row of the table. run gives how often it was tried.
type attack struct {
	name, what string
	run        func(ctx context.Context, s *stranger) (int, error)
	// back is how long after it all may take to be as before; 0: backPatience.
	back time.Duration
}

// backSoon is for floods and what holds connections. chosen: whoever was
// thrown out comes back within two tries.
const backSoon = 10 * time.Second

var attacks = []attack{
	{"numbers", "terms, generations and sequence numbers as high as they go, of nodes and of a planner", aloud(numbers), 0},
	{"mutants-planner", "mutants of genuine messages to the planner", mutantsToPlanner, 0},
	{"mutants-agents", "mutants of plans, decisions and commands to all agents", mutantsToAgents, 0},
	{"replay", "genuine messages again: in order, backwards, shuffled", aloud(replay), 0},
	{"stale", "old terms and generations, another plan under the same number, another node's", aloud(stale), 0},
	{"sign-of-life", "one message of a planner that is not there, with a higher term and beat", aloud(signOfLife), 0},
	{"forged", "plans and commits of a planner that is none, with the same and a higher term", forgedPlanner, 0},
	{"duplicate", "a second agent with the number of one in service", duplicate, 0},
	{"views", "death notes, old births and far event numbers in the name of others", aloud(views), 0},
	{"retained", "commands that the broker keeps, and commands of a former life", aloud(retainedCommands), 0},
	{"operator", "operators' requests again", aloud(operatorReplay), 0},
	{"plans", "plans that nobody decides on, and harmless commands, to all agents", plans, 0},
	{"sealed", "forged, swapped, replayed, late and spoilt messages of every kind, by the broker, with a node's own key and all that was ever said", sealedAttack, 0},
	{"jobs", "lists of jobs for a fabric of circuits, and mutants of them", jobLists, 0},
	{"mqtt", "mutants of MQTT packets", mutantsOfMQTT, backSoon},
	{"flood", "10,000 messages a second to the planner and to one agent", flood, backSoon},
	{"half-connects", "connections that begin a CONNECT and say no more", halfConnects, backSoon},
	{"descriptors", "as many clients as the broker has descriptors for", descriptors, backSoon},
	{"never-read", "subscribers to everything that read nothing, and long messages", neverRead, backSoon},
	{"topics", "topics of thousands of levels", aloud(endlessTopics), backSoon},
	{"half-questions", "the agent's socket: connections that begin a question", halfQuestions, backSoon},
	{"deaf-listeners", "the agent's socket: listeners to the recording that read nothing", deafListeners, backSoon},
	{"deaf-askers", "the agent's socket: questions whose answers nobody reads", deafAskers, backSoon},
}

// aloud is an attack of one who publishes: it was tried as often as he spoke.
func aloud(say func(context.Context, *stranger, *speaker)) func(context.Context, *stranger) (int, error) {
	return func(ctx context.Context, s *stranger) (int, error) {
		w, err := s.speaker()
		if err != nil {
			return 0, err
		}
		defer w.Close()
		say(ctx, s, w)
		return w.sent, nil
	}
}

// session of a node as its birth told it, and the topics it speaks on.
func (s *stranger) session(n int) proto.Session { return s.birth[n].Session }

func (s *stranger) presence(n int) proto.Presence {
	p := s.birth[n]
	p.Version, p.Node = proto.Version, proto.NodeID(n)
	return p
}

// huge writes a number in place of a marked one.
func huge(b []byte, mark, n uint64) []byte {
	enc := func(n uint64) []byte {
		return []byte{0x1b, byte(n >> 56), byte(n >> 48), byte(n >> 40), byte(n >> 32), byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
	}
	return bytes.Replace(b, enc(mark), enc(n), 1)
}

// marked stands in a message for the number that is to be replaced.
const marked = 0x1d_dead_beef_cafe // below 2^53, in no genuine message

func numbers(ctx context.Context, s *stranger, w *speaker) {
	for _, n := range []uint64{math.MaxUint64, math.MaxUint64 - 1, 1 << 63, proto.MaxCount + 1, proto.MaxCount, proto.MaxCount - 1, 1 << 50} {
		for _, node := range []int{0, s.cfg.Nodes / 2, s.cfg.Nodes - 1} {
			id := proto.NodeID(node)
			p := s.presence(node)
			p.SeenTerm = marked
			w.say(ctx, s.topics.Presence(id), huge(raw(&p), marked, n), 1, false)
			for field := range 7 {
				r := proto.Reported{Version: proto.Version, Node: id, Session: s.session(node), Seq: proto.MaxCount / 2}
				*[]*uint64{(*uint64)(&r.SeenTerm), (*uint64)(&r.Term), (*uint64)(&r.Generation), (*uint64)(&r.StagedTerm),
					(*uint64)(&r.StagedGeneration), &r.BypassSeq, &r.LastEvent}[field] = marked
				w.say(ctx, s.topics.Reported(id), huge(raw(&r), marked, n), 1, false)
			}
			a := proto.Ack{Version: proto.Version, Node: id, Session: s.session(node), Phase: proto.PhasePrepare, Code: proto.Stale, CurrentTerm: marked}
			w.say(ctx, s.topics.Ack(id), huge(raw(&a), marked, n), 1, false)
			e := proto.Event{Version: proto.Version, Node: id, Session: s.session(node), Seq: marked, Kind: proto.EvLightLost, Count: 1,
				Measured: proto.NoPower, Expected: proto.NoPower}
			w.say(ctx, s.topics.Event(id), huge(raw(&e), marked, n), 1, false)
		}
		st := proto.PlannerState{Version: proto.Version, Planner: 99, Online: true, Term: marked, Seq: 1, PeriodMillis: 5000, Fabric: s.cfg.Fabric}
		w.say(ctx, s.topics.Planner(), huge(raw(&st), marked, n), 1, false)
		pause(ctx, 200*time.Millisecond)
	}
}

// mutate changes one to four places of a message.
func (s *stranger) mutate(b []byte) []byte {
	b = bytes.Clone(b)
	for range 1 + s.random.Below(4) {
		if len(b) == 0 {
			return b
		}
		i := s.random.Below(len(b))
		switch s.random.Below(6) {
		case 0:
			b[i] ^= 1 << s.random.Below(8)
		case 1:
			b[i] = byte(s.random.Next())
		case 2:
			b = b[:i]
		case 3:
			b = slices.Insert(b, i, b[i])
		case 4:
			b = slices.Delete(b, i, i+1)
		case 5:
			b = slices.Insert(b, i, 0x1b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, byte(s.random.Next()))
		}
	}
	return b
}

func (s *stranger) mutants(ctx context.Context, count int, of ...proto.TopicKind) (int, error) {
	var genuine []proto.Packet
	for _, p := range s.heard {
		if t, err := proto.ParseTopic(p.Topic); err == nil && slices.Contains(of, t.Kind) {
			genuine = append(genuine, p)
		}
	}
	if len(genuine) == 0 {
		return 0, fmt.Errorf("hostile: heard no message to begin with")
	}
	w, err := s.speaker()
	if err != nil {
		return 0, err
	}
	defer w.Close()
	for range count {
		p := genuine[s.random.Below(len(genuine))]
		w.say(ctx, p.Topic, s.mutate(p.Payload), 0, false)
	}
	return w.sent, nil
}

func mutantsToPlanner(ctx context.Context, s *stranger) (int, error) {
	return s.mutants(ctx, s.scaled(100_000), proto.TopicAck, proto.TopicReported, proto.TopicPresence, proto.TopicEvent, proto.TopicRequest, proto.TopicPlanner)
}

func mutantsToAgents(ctx context.Context, s *stranger) (int, error) {
	for n := range s.cfg.Nodes {
		id := proto.NodeID(n)
		c := proto.Command{Version: proto.Version, Node: id, Term: max(1, s.state.Term), Session: max(1, s.session(n)), TTLMillis: 1000, Verb: proto.VerbReannounce}
		s.heard = append(s.heard, proto.Packet{Topic: s.topics.Command(id), Payload: raw(&c)})
	}
	return s.mutants(ctx, s.scaled(20_000), proto.TopicDesired, proto.TopicDecision, proto.TopicCommand)
}

// plans are those that agents hold with later numbers, staged and never decided
// on, between commands that change nothing.
func plans(ctx context.Context, s *stranger) (int, error) {
	var held []proto.Desired
	for _, p := range s.heard {
		var d proto.Desired
		if t, err := proto.ParseTopic(p.Topic); err != nil || t.Kind != proto.TopicDesired {
			continue
		}
		if _, err := proto.Decode(p.Payload, &d); err == nil {
			held = append(held, d)
		}
	}
	if len(held) == 0 {
		return 0, fmt.Errorf("hostile: heard no plan to begin with")
	}
	w, err := s.speaker()
	if err != nil {
		return 0, err
	}
	defer w.Close()
	verbs := []proto.Verb{proto.VerbReannounce, proto.VerbEvents, proto.VerbAbort}
	for i := range s.scaled(50_000) {
		if i%2 == 0 {
			d := held[s.random.Below(len(held))]
			d.Generation += proto.Generation(s.random.Below(4))
			w.say(ctx, s.topics.Desired(d.Node), raw(&d), 1, false)
			continue
		}
		id := proto.NodeID(s.random.Below(s.cfg.Nodes))
		c := proto.Command{Version: proto.Version, Node: id, Term: max(1, s.state.Term), Session: max(1, s.session(int(id))), TTLMillis: 10_000,
			Verb: verbs[s.random.Below(len(verbs))], Corr: proto.Corr{9, byte(i >> 16), byte(i >> 8), byte(i)}}
		w.say(ctx, s.topics.Command(id), raw(&c), 1, false)
	}
	return w.sent, nil
}

func replay(ctx context.Context, s *stranger, w *speaker) {
	order := make([]int, len(s.heard))
	for i := range order {
		order[i] = i
	}
	total := s.scaled(36_000)
	for round := 0; w.sent < total && ctx.Err() == nil; round++ {
		switch round % 3 {
		case 1:
			slices.Reverse(order)
		case 2:
			s.random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
		for _, i := range order {
			if w.sent == total {
				break
			}
			w.say(ctx, s.heard[i].Topic, s.heard[i].Payload, 1, false)
		}
	}
}

func stale(ctx context.Context, s *stranger, w *speaker) {
	for _, p := range slices.Clone(s.heard) {
		t, err := proto.ParseTopic(p.Topic)
		var d proto.Desired
		if err != nil || t.Kind != proto.TopicDesired {
			continue
		}
		if _, err := proto.Decode(p.Payload, &d); err != nil {
			continue
		}
		try := func(change func(d *proto.Desired), topic proto.NodeID) {
			c := d
			change(&c)
			if b, err := proto.Encode(&c); err == nil {
				w.say(ctx, s.topics.Desired(topic), b, 1, false)
				for _, ring := range c.Decisions {
					dec := proto.Decision{Version: proto.Version, Ring: ring, Term: c.Term, Generation: c.Generation, Plan: c.Plan, Verdict: proto.Commit}
					w.say(ctx, s.topics.Decision(ring), raw(&dec), 1, false)
				}
			}
		}
		next := proto.NodeID((int(t.Node) + 1) % s.cfg.Nodes)
		try(func(d *proto.Desired) { d.Term = 1 }, t.Node)
		try(func(d *proto.Desired) { d.Generation, d.Rings = 1, nil }, t.Node)
		try(func(d *proto.Desired) { d.Rings, d.Plan = nil, proto.DigestOf([]byte("another")) }, t.Node)
		try(func(d *proto.Desired) {}, next)
	}
}

func signOfLife(ctx context.Context, s *stranger, w *speaker) {
	for _, term := range []proto.Term{s.state.Term + 1, s.state.Term + 100} {
		st := proto.PlannerState{Version: proto.Version, Planner: 99, Online: true, Term: term, Seq: 100, PeriodMillis: 5000, Fabric: s.cfg.Fabric}
		w.say(ctx, s.topics.Planner(), raw(&st), 1, false)
		pause(ctx, 3*time.Second)
	}
}

// duplicate is an agent that was given another's number: it takes its client
// id, is born, and reports that it has nothing.
func duplicate(ctx context.Context, s *stranger) (int, error) {
	n := s.cfg.Nodes / 3
	id := proto.NodeID(n)
	begin, count := time.Now(), 0
	for i := 0; time.Since(begin) < s.cfg.Flood && ctx.Err() == nil; i++ {
		w, err := s.link(s.topics.NodeClient(id))
		if err != nil {
			return count, err
		}
		p := s.presence(n)
		p.Session, p.Boot, p.Online = proto.Session(s.random.Next()|1), s.random.Next()|1, true
		r := proto.Reported{Version: proto.Version, Node: id, Session: p.Session, Seq: 1}
		for _, m := range []proto.Packet{{Kind: proto.Publish, Topic: s.topics.Presence(id), Payload: raw(&p), QoS: 1, Retain: true},
			{Kind: proto.Publish, Topic: s.topics.Reported(id), Payload: raw(&r), QoS: 1, Retain: true}} {
			if w.Send(m) == nil {
				count++
			}
		}
		pause(ctx, time.Second)
		w.Close()
	}
	return count, nil
}

func views(ctx context.Context, s *stranger, w *speaker) {
	for n := range min(8, s.cfg.Nodes) {
		id := proto.NodeID(n)
		death := proto.Presence{Version: proto.Version, Node: id, Session: s.session(n)}
		w.say(ctx, s.topics.Presence(id), raw(&death), 1, true)
		old := s.presence(n)
		old.Session = max(1, old.Session-1)
		w.say(ctx, s.topics.Presence(id), raw(&old), 1, true)
		e := proto.Event{Version: proto.Version, Node: id, Session: s.session(n), Seq: 1 << 40, Kind: proto.EvLightUnselected, Count: 1,
			Measured: proto.NoPower, Expected: proto.NoPower}
		w.say(ctx, s.topics.Event(id), raw(&e), 1, false)
	}
}

func retainedCommands(ctx context.Context, s *stranger, w *speaker) {
	for n := range s.cfg.Nodes {
		id := proto.NodeID(n)
		c := proto.Command{Version: proto.Version, Node: id, Term: max(1, s.state.Term), Session: max(1, s.session(n)^2), TTLMillis: 600_000, Verb: proto.VerbHostFault}
		w.say(ctx, s.topics.Command(id), raw(&c), 1, true)
	}
	pause(ctx, 2*time.Second)
	for n := range s.cfg.Nodes { // what a broker keeps comes to the next life; take it back
		w.say(ctx, s.topics.Command(proto.NodeID(n)), nil, 1, true)
	}
}

func operatorReplay(ctx context.Context, s *stranger, w *speaker) {
	for i := range s.scaled(2000) {
		q := proto.OpRequest{Version: proto.Version, Corr: proto.Corr{1, 2, 3, byte(i % 16)}, TTLMillis: 10_000, Noun: proto.NounDrain, Node: proto.NodeID(i % 16 % s.cfg.Nodes), Bundle: -1, DryRun: true}
		w.say(ctx, s.topics.Request("replay"), raw(&q), 1, false)
	}
}

func flood(ctx context.Context, s *stranger) (int, error) {
	ctx, stop := context.WithTimeout(ctx, s.cfg.Flood)
	defer stop()
	last := proto.NodeID(s.cfg.Nodes - 1)
	return Flood(ctx, s.cfg.Broker, s.topics.Reported(0), s.topics.Event(1), s.topics.Request("flood"), s.topics.Desired(last), s.topics.Command(last))
}

func endlessTopics(ctx context.Context, s *stranger, w *speaker) {
	deep := strings.Repeat("a/", 2000)
	for i := range s.scaled(2000) {
		w.say(ctx, fmt.Sprintf("%s%d", deep, i), []byte{1}, 0, true)
	}
	pause(ctx, time.Second)
}
