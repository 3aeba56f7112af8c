package planner

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

// hear gives the planner a message as it comes from the broker.
func (w *fleet) hear(topic string, kind proto.TopicKind, msg any) {
	payload, err := proto.Encode(msg)
	if err != nil {
		w.t.Fatal(err)
	}
	w.step(Event{Kind: Packet, Packet: proto.Packet{Kind: proto.Publish, Topic: topic, Payload: payload, QoS: kind.QoS()}})
}

// Goal: no number that a device says ends the planner or is gone on from, the
// device is named with field and limit, and its next good word heals it.
// Method: each number of each message at its highest, and just beyond a jump;
// then a node fails, and its ring is repaired.
func TestFarNumbersAreNotBelieved(t *testing.T) {
	forge := map[string]func(w *fleet, n uint64) (string, proto.TopicKind, any){
		"presence seen_term": func(w *fleet, n uint64) (string, proto.TopicKind, any) {
			return w.topics.Presence(8), proto.TopicPresence, &proto.Presence{Version: 1, Node: 8, Session: w.nodes[8].session, Online: true, SeenTerm: proto.Term(n)}
		},
		"presence generation": func(w *fleet, n uint64) (string, proto.TopicKind, any) {
			return w.topics.Presence(8), proto.TopicPresence, &proto.Presence{Version: 1, Node: 8, Session: w.nodes[8].session, Online: true, Generation: proto.Generation(n)}
		},
		"reported seen_term": func(w *fleet, n uint64) (string, proto.TopicKind, any) {
			return w.topics.Reported(8), proto.TopicReported, &proto.Reported{Version: 1, Node: 8, Session: w.nodes[8].session, Seq: 50, SeenTerm: proto.Term(n)}
		},
		"reported generation": func(w *fleet, n uint64) (string, proto.TopicKind, any) {
			return w.topics.Reported(8), proto.TopicReported, &proto.Reported{Version: 1, Node: 8, Session: w.nodes[8].session, Seq: 50, Generation: proto.Generation(n)}
		},
		"reported staged_generation": func(w *fleet, n uint64) (string, proto.TopicKind, any) {
			return w.topics.Reported(8), proto.TopicReported, &proto.Reported{Version: 1, Node: 8, Session: w.nodes[8].session, Seq: 50, StagedGeneration: proto.Generation(n)}
		},
		"reported seq": func(w *fleet, n uint64) (string, proto.TopicKind, any) {
			return w.topics.Reported(8), proto.TopicReported, &proto.Reported{Version: 1, Node: 8, Session: w.nodes[8].session, Seq: n}
		},
		"ack current_generation": func(w *fleet, n uint64) (string, proto.TopicKind, any) {
			return w.topics.Ack(8), proto.TopicAck, &proto.Ack{Version: 1, Node: 8, Session: w.nodes[8].session, Phase: proto.PhasePrepare, Code: proto.Stale, Term: 1, Generation: 1, CurrentGeneration: proto.Generation(n)}
		},
		"ack current_term": func(w *fleet, n uint64) (string, proto.TopicKind, any) {
			return w.topics.Ack(8), proto.TopicAck, &proto.Ack{Version: 1, Node: 8, Session: w.nodes[8].session, Phase: proto.PhaseCommand, CurrentTerm: proto.Term(n)}
		},
	}
	for name, f := range forge { // any order: each is judged by itself
		for _, n := range []uint64{proto.MaxCount, proto.MaxCount - 1, 100 + 1<<20} {
			w := small(t, 9, 2, 32, 0)
			log := ""
			w.trace = func(line string) { log += line + "\n" }
			topic, kind, msg := f(w, n)
			w.hear(topic, kind, msg)
			_, field, _ := strings.Cut(name, " ")
			if why := w.p.Rings.Agenda.Facts(8, -1); !slices.ContainsFunc(why, func(l proto.WhyLine) bool {
				return strings.Contains(l.Text, fmt.Sprintf("not believed: %s %d (limit ", field, n))
			}) {
				t.Errorf("%s %d: why says %+v", name, n, why)
			}
			if w.p.Overview().Refused != 1 || !strings.Contains(log, "not believed") {
				t.Errorf("%s %d: %d refused\n%s", name, n, w.p.Overview().Refused, log)
			}
			w.nodes[8].lastSent = nil
			w.light() // it says how it is
			w.die(4)
			w.run(2 * time.Second)
			if o := w.p.Overview(); o.InService != 1 || o.Term != 1 || o.Generation > 9 || o.Spares != 0 {
				t.Errorf("%s %d: %+v\n%s", name, n, o, log)
			}
		}
	}
}

// Goal: with a lost store, one node that claims a far generation does not lead
// the planner away from all others. Method: it claims it while all are
// gathered; the rings are adopted as they are, and a repair is taken.
func TestLostStoreGoesOnFromMostNodes(t *testing.T) {
	w := small(t, 9, 2, 32, 0)
	clear(w.store)
	w.start()
	w.hear(w.topics.Reported(8), proto.TopicReported, &proto.Reported{Version: 1, Node: 8, Session: w.nodes[8].session, Seq: 50, Generation: 1 << 39})
	w.run(10 * time.Second)
	if o := w.p.Overview(); o.InService != 1 || o.Generation > 9 {
		t.Fatalf("%+v", o)
	}
}

// filler makes any valid message: numbers at random, near zero, or at a limit.
type filler struct{ *rand.Rand }

func (f filler) number() uint64 {
	switch f.IntN(6) {
	case 0:
		return proto.MaxCount - f.Uint64N(3)
	case 1:
		return f.Uint64N(proto.MaxCount)
	case 2:
		return 1<<20 + f.Uint64N(100)
	}
	return f.Uint64N(12)
}

func (f filler) fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if f.IntN(2) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Name != "_" {
				f.fill(v.Field(i))
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), f.IntN(4), 4))
		for i := range v.Len() {
			f.fill(v.Index(i))
		}
	case reflect.Array:
		v.Index(0).SetUint(f.Uint64N(3))
	case reflect.Bool:
		v.SetBool(f.IntN(2) == 0)
	case reflect.String:
		v.SetString([]string{"", "f", "text"}[f.IntN(3)])
	case reflect.Int8, reflect.Int16, reflect.Int32:
		v.SetInt(int64(f.number()) - 1)
	default:
		v.SetUint(f.number())
	}
}

// Goal: nothing valid that comes from the broker ends the planner.
// Method: messages of every kind filled at random between those of a living
// fleet, with the sessions and nodes that there are more often than not;
// FuzzMessages is more of the same.
func TestRandomMessages(t *testing.T) {
	for seed := range uint64(30) {
		randomMessages(t, seed, 300)
	}
}

func FuzzMessages(f *testing.F) {
	f.Add(uint64(1000))
	f.Fuzz(func(t *testing.T, seed uint64) { randomMessages(t, seed, 60) })
}

func randomMessages(t *testing.T, seed uint64, n int) {
	fill := filler{rand.New(rand.NewPCG(seed, 0x706c616e))}
	fab, err := fabric.New(fabric.Params{Name: "f", Nodes: 9, GPUsPerNode: 4, K: 2, TP: 16, Spares: 1})
	if err != nil {
		t.Fatal(err)
	}
	w := newFleet(t, fab)
	w.start()
	defer func() {
		if r := recover(); r != nil {
			t.Fatalf("seed %d: %v", seed, r)
		}
	}()
	for i := range w.nodes {
		w.birth(proto.NodeID(i), true)
	}
	if fill.IntN(2) == 0 {
		w.run(time.Second)
	}
	for range n {
		w.hearAny(fill)
		if w.exit != "" {
			w.start()
		}
		w.run(time.Duration(fill.IntN(1500)) * time.Millisecond)
	}
}

// hearAny gives the planner one message of any kind.
func (w *fleet) hearAny(fill filler) {
	id := proto.NodeID(fill.IntN(10))
	msg := []any{&proto.Presence{}, &proto.Reported{}, &proto.Ack{}, &proto.Event{}, &proto.Health{}, &proto.OpRequest{}, &proto.PlannerState{}}[fill.IntN(7)]
	v := reflect.ValueOf(msg).Elem()
	fill.fill(v)
	v.FieldByName("Version").SetUint(proto.Version)
	if s := v.FieldByName("Session"); s.IsValid() && id < 9 && fill.IntN(4) > 0 {
		s.SetUint(uint64(w.nodes[id].session))
	}
	if s := v.FieldByName("Node"); s.IsValid() {
		s.SetUint(uint64(id))
	}
	topic, retain := "", fill.IntN(4) == 0
	switch msg.(type) {
	case *proto.Presence:
		topic = w.topics.Presence(id)
	case *proto.Reported:
		topic = w.topics.Reported(id)
	case *proto.Ack:
		topic = w.topics.Ack(id)
	case *proto.Event:
		topic = w.topics.Event(id)
	case *proto.Health:
		topic = w.topics.Health(id)
	case *proto.OpRequest:
		topic = w.topics.Request("a")
	case *proto.PlannerState:
		topic = w.topics.Planner()
	}
	payload, err := proto.Encode(msg)
	if err != nil {
		return // not valid: the decoder's, which has tests of its own
	}
	w.step(Event{Kind: Packet, Packet: proto.Packet{Kind: proto.Publish, Topic: topic, Payload: payload, QoS: 1, Retain: retain}})
}

// Goal: an operator's act is done once, and only near the time at which it was
// asked for. Method: a host fault for a node: retained, in time, again, and
// quoting old signs of life; the node counts how often it is told.
func TestActHasAPlaceInTime(t *testing.T) {
	w := small(t, 9, 2, 32, 1)
	w.run(time.Minute)
	told := func(corr byte, retain bool, by, denied string, term proto.Term, beat uint64) (code proto.Code, times int) {
		before := len(w.nodes[3].events)
		w.replies = nil
		payload, err := proto.Encode(&proto.OpRequest{Version: proto.Version, TTLMillis: 5000, Corr: proto.Corr{9, corr}, Noun: proto.NounHostFault, Node: 3, Bundle: -1, Term: term, Beat: beat})
		if err != nil {
			t.Fatal(err)
		}
		w.step(Event{Kind: Packet, Packet: proto.Packet{Kind: proto.Publish, Topic: w.topics.Request("ctl-1"), Payload: payload, Retain: retain, By: by, Denied: denied}})
		w.run(100 * time.Millisecond)
		if len(w.replies) != 1 {
			t.Fatalf("%d replies", len(w.replies))
		}
		return w.replies[0].Code, len(w.nodes[3].events) - before
	}
	for _, c := range []struct {
		name  string
		corr  byte
		keep  bool
		term  proto.Term
		back  uint64 // signs of life ago
		want  proto.Code
		times int
		by    string // who sealed it
		no    string // why that is not enough
	}{
		{name: "retained", corr: 1, keep: true, want: proto.Expired},
		{name: "long past", corr: 2, term: 1, back: 16, want: proto.Expired},
		{name: "of another term", corr: 3, term: 2, want: proto.Expired},
		{name: "in time", corr: 4, term: 1, back: 10, times: 1},
		{name: "again", corr: 4, term: 1, back: 10},
		{name: "without a beat", corr: 5, times: 1},
		{name: "sealed, without a beat", corr: 6, by: "f/op/alice", want: proto.Expired},
		{name: "sealed, in time", corr: 7, by: "f/op/alice", term: 1, back: 10, times: 1},
		{name: "denied", corr: 8, no: "not sealed", term: 1, want: proto.Denied},
		{name: "denied, with the number of an act", corr: 7, no: "not sealed", term: 1, want: proto.Denied},
		{name: "the act again after that", corr: 7, by: "f/op/alice", term: 1, back: 10},
	} {
		w.setMode(3, proto.ModeService)
		w.run(time.Second)
		beat := uint64(0)
		if c.term > 0 {
			beat = w.p.pulse.beat - c.back
		}
		if code, times := told(c.corr, c.keep, c.by, c.no, c.term, beat); code != c.want || times != c.times {
			t.Errorf("%s: %s, told %d times, want %s, %d", c.name, code, times, c.want, c.times)
		}
	}
}

// Goal: an act that was done is not done again, however many came since and however
// long the planner had no broker; whoever quotes a later sign of life is heard.
// Method: one act; then more than are known at once in a minute, or a link that is
// down for longer than acts are known, in which no sign of life passes; then the same
// bytes again.
func TestActIsNotForgottenTooSoon(t *testing.T) {
	for _, cut := range []bool{false, true} {
		w := small(t, 9, 2, 32, 1)
		w.run(10 * time.Second)
		act := func(corr int, noun proto.Noun) []byte {
			payload, err := proto.Encode(&proto.OpRequest{Version: proto.Version, TTLMillis: 5000, Corr: proto.Corr{8, byte(corr >> 8), byte(corr)}, Noun: noun, Node: 3, Bundle: -1, Term: 1, Beat: w.p.pulse.beat})
			if err != nil {
				t.Fatal(err)
			}
			return payload
		}
		told := func(payload []byte) (proto.Code, int) {
			before := len(w.nodes[3].events)
			w.replies = nil
			w.raw(w.topics.Request("ctl-1"), payload)
			w.run(100 * time.Millisecond)
			if len(w.replies) != 1 {
				t.Fatalf("%d replies", len(w.replies))
			}
			return w.replies[0].Code, len(w.nodes[3].events) - before
		}
		first := act(1, proto.NounHostFault)
		if code, times := told(first); code != proto.OK || times != 1 {
			t.Fatalf("%s, told %d times", code, times)
		}
		w.setMode(3, proto.ModeService)
		if cut {
			w.step(Event{Kind: LinkDown})
			w.run(2 * time.Minute)
			w.step(Event{Kind: LinkUp})
		} else {
			w.run(4 * time.Second)
			for i := range maxActs + 10 {
				w.raw(w.topics.Request("ctl-1"), act(2+i, proto.NounClear))
			}
		}
		told(act(5000, proto.NounClear)) // one that makes others be forgotten
		if code, times := told(first); code != proto.Expired && code != proto.Busy || times != 0 {
			t.Errorf("link lost %v: again: %s, told %d times", cut, code, times)
		}
		w.run(4 * time.Second)
		if code, times := told(act(5001, proto.NounHostFault)); code != proto.OK || times != 1 {
			t.Errorf("link lost %v: a later one: %s, told %d times", cut, code, times)
		}
	}
}

// Goal: two agents with one number are named within 5 s, no generation is made
// for their flapping, the ring stays; one that is alone is taken again after a
// while, or at once when an operator says so.
// Method: births and death notes of two lives in turn, a second apart.
func TestTwoAgentsWithOneNumber(t *testing.T) {
	w := small(t, 9, 2, 32, 1)
	mine, gen := w.nodes[3].session, w.p.Overview().Generation
	flap := func(from, to proto.Session) {
		w.nodes[3].session = from
		w.will(3)
		w.nodes[3].session = to
		w.birthNote(&w.nodes[3])
		w.nodes[3].lastSent = nil
		w.light()
		w.run(time.Second)
	}
	for i := range 60 {
		flap(mine, mine+1)
		flap(mine+1, mine)
		if s := strings.Join(w.p.waits(), "; "); i == 1 && !strings.Contains(s, "two agents claim") {
			t.Fatalf("after 4 s: %s", s)
		}
	}
	if o := w.p.Overview(); o.Generation > gen+2 || o.InService != 1 {
		t.Errorf("%+v, was at generation %d", o, gen)
	}
	r := w.ask(proto.OpRequest{Noun: proto.NounClear, Node: 3, Bundle: -1})
	w.run(5 * time.Second)
	if o := w.p.Overview(); r.Code != proto.OK || len(r.Why) != 1 || !strings.Contains(r.Why[0].Text, "two agents") || !o.Quiet || len(w.p.waits()) > 0 {
		t.Errorf("%+v %+v %q", r, o, w.p.waits())
	}
}

// Goal: what a second agent with a number says of itself moves a ring at most as a
// restart would: from the moment at which the first one is back nothing is planned for
// the number. Method: two lives take the connection from each other, as brokers have it
// with death notes; the second one is in no ring and says that its host is down.
func TestSecondAgentIsHeldAtTheFirstReturn(t *testing.T) {
	w := small(t, 9, 2, 32, 1)
	n := &w.nodes[3]
	mine, gen := n.session, w.p.Overview().Generation
	var took []proto.Generation
	for range 4 {
		n.session = mine
		w.will(3)
		w.hear(w.topics.Presence(3), proto.TopicPresence, &proto.Presence{Version: 1, Node: 3, Session: mine + 1, Online: true})
		w.hear(w.topics.Reported(3), proto.TopicReported, &proto.Reported{Version: 1, Node: 3, Session: mine + 1, Seq: 1, Mode: proto.ModeHostDown})
		w.run(300 * time.Millisecond)
		took = append(took, w.p.Overview().Generation-gen)
		n.session = mine + 1
		w.will(3)
		n.session = mine
		w.birthNote(n)
		n.lastSent = nil
		w.light()
		w.run(300 * time.Millisecond)
		took = append(took, w.p.Overview().Generation-gen)
	}
	t.Log("generations after each birth:", took)
	if last := took[len(took)-1]; last > took[0] {
		t.Errorf("generations after each birth: %v", took)
	}
	if s := strings.Join(w.p.waits(), "; "); !strings.Contains(s, "two agents claim") {
		t.Errorf("not named: %s", s)
	}
}

// Goal: the ring of a disputed number stays in service, whoever of the two spoke
// last: the other one knows nothing of the ring, and its light is not the ring's.
// Method: between the births of the one that is there, others are born that hold
// no plan and report so; then the light next to it goes, which its ring shows.
func TestDisputedNodeKeepsItsRing(t *testing.T) {
	w := small(t, 9, 2, 32, 1)
	n := &w.nodes[3]
	mine, gen := n.session, w.p.Overview().Generation
	for i := range 3 {
		w.will(3)
		other := mine + 100 + proto.Session(i)
		w.hear(w.topics.Presence(3), proto.TopicPresence, &proto.Presence{Version: 1, Node: 3, Session: other, Online: true})
		w.hear(w.topics.Reported(3), proto.TopicReported, &proto.Reported{Version: 1, Node: 3, Session: other, Seq: 1})
		w.birthNote(n)
		w.run(500 * time.Millisecond)
		n.lastSent = nil
		w.light()
	}
	w.hear(w.topics.Presence(3), proto.TopicPresence, &proto.Presence{Version: 1, Node: 3, Session: mine + 110, Online: true})
	w.hear(w.topics.Reported(3), proto.TopicReported, &proto.Reported{Version: 1, Node: 3, Session: mine + 110, Seq: 1})
	if s := strings.Join(w.p.waits(), "; "); !strings.Contains(s, "two agents claim") {
		t.Fatalf("not disputed: %s", s)
	}
	for range 30 {
		w.run(time.Second)
		if o := w.p.Overview(); o.InService != 1 || o.LinksConfirmed != o.LinksTotal || o.Generation > gen+1 {
			t.Fatalf("%+v", o)
		}
	}
	w.die(4)
	w.run(2 * time.Second)
	if o := w.p.Overview(); o.InService != 0 {
		t.Errorf("a neighbour died: %+v", o)
	}
}

// Goal: one word of a life that is not there makes no dispute of an agent whose
// link is poor. Method: one stray birth, then the agent's own losses.
func TestPoorLinkIsNoDispute(t *testing.T) {
	w := small(t, 9, 2, 32, 1)
	n := &w.nodes[3]
	w.hear(w.topics.Presence(3), proto.TopicPresence, &proto.Presence{Version: 1, Node: 3, Session: n.session + 100, Online: true})
	for range 5 {
		w.will(3)
		w.birthNote(n)
		w.run(time.Second)
	}
	if s := w.p.waits(); len(s) > 0 || w.p.Overview().InService != 1 {
		t.Errorf("%q %+v", s, w.p.Overview())
	}
}

// Goal: a plan that somebody else had a node commit, in the planner's own name
// and with a later generation, is noticed by the node's report and planned over, by a
// term of the planner's own, once. Method: a member of a ring is out of it by such a plan; a spare is in it.
func TestForgedPlanIsPlannedOver(t *testing.T) {
	for _, id := range []proto.NodeID{3, 8} {
		w := small(t, 9, 2, 32, 1)
		before := fmt.Sprint(w.p.Rings.Placed.Statuses()[0].Nodes)
		d := &proto.Desired{Version: proto.Version, Node: id, Term: 1, Generation: 101, Decisions: []proto.RingID{0}, Life: w.p.j.Life}
		if id == 8 {
			d.Rings = w.nodes[3].applied.Rings
		}
		d.Plan = proto.DigestOf([]byte("forged"))
		w.nodes[id].applied = d
		w.nodes[id].lastSent = nil
		w.light()
		w.run(5 * time.Second)
		if o := w.p.Overview(); o.InService != 1 || o.Pending != 0 || o.Term != 2 || o.Generation >= 101 || fmt.Sprint(w.p.Rings.Placed.Statuses()[0].Nodes) != before {
			t.Errorf("node %d: %+v %v", id, o, w.p.Rings.Placed.Statuses())
		}
	}
}

// Goal: one member that names higher terms and generations than were given moves
// neither, is named, and its fabric is repaired meanwhile; an operator's word goes on
// from its term. Method: births and reports of a spare and a member, as L1 and L2 of the
// liar's bench, and a ring that loses a node.
func TestOneVoiceMovesNothing(t *testing.T) {
	w := small(t, 18, 2, 32, 2)
	n := &w.nodes[17]
	for i := range 5 {
		w.hear(w.topics.Presence(17), proto.TopicPresence, &proto.Presence{Version: 1, Node: 17, Session: n.session, Online: true, SeenTerm: 1 + proto.Term(i+1)*1000})
		w.hear(w.topics.Reported(17), proto.TopicReported, &proto.Reported{Version: 1, Node: 17, Session: n.session, Seq: 100 + uint64(i), SeenTerm: 1,
			StagedTerm: 1, StagedGeneration: proto.Generation(i+1) * 1_000_000})
		w.run(time.Second)
	}
	alarms := w.ask(proto.OpRequest{Noun: proto.NounAlarms, Bundle: -1}).Alarms
	if !slices.ContainsFunc(alarms, func(a proto.AlarmStatus) bool { return a.ID == "17/claim" && *a.Node == 17 }) {
		t.Errorf("not named: %+v", alarms)
	}
	w.die(3)
	w.run(2 * time.Second)
	if o := w.p.Overview(); o.Term != 1 || o.Generation > 10 || o.InService != 2 {
		t.Errorf("%+v %+v", o, w.p.Rings.Placed.Statuses())
	}
	w.hear(w.topics.Presence(17), proto.TopicPresence, &proto.Presence{Version: 1, Node: 17, Session: n.session, Online: true, SeenTerm: 9})
	w.ask(proto.OpRequest{Noun: proto.NounClear, Node: 17, Bundle: -1})
	w.run(10 * time.Second)
	if o := w.p.Overview(); o.Term != 10 {
		t.Errorf("cleared: %+v", o)
	}
}

// Goal: where two planners had one term, and one gave way, a node that heard that one first is
// in its ring again by itself; where the other was never heard to have it, nothing moves.
// Method: a node takes nothing of ours, as its term is of the other's life; its ring loses a
// member.
func TestWhoHeardTheOtherPlannerFirstIsToldAgain(t *testing.T) {
	for _, heard := range []bool{true, false} {
		w := small(t, 18, 2, 32, 2)
		life := w.p.j.Life + 1
		m := proto.PlannerState{Version: proto.Version, Planner: life, Life: life, Online: true, Term: w.p.j.Term, PeriodMillis: 2000, Fabric: w.fab.Name, Layout: layoutOf(w.fab)}
		for m.Seq = 1; heard && m.Seq < 3; m.Seq++ {
			w.hear(w.topics.Planner(), proto.TopicPlanner, &m)
			w.run(BeatPeriod)
		}
		w.nodes[3].life, w.nodes[3].lastSent = life, nil
		w.report(&w.nodes[3])
		if m.Online, m.Standby = false, true; heard {
			w.hear(w.topics.Planner(), proto.TopicPlanner, &m)
		}
		w.run(time.Second)
		w.die(4)
		w.run(20 * time.Second)
		term := proto.Term(1)
		if heard {
			term = 2
		}
		if o := w.p.Overview(); o.Term != term || heard && (o.InService != 2 || w.nodes[3].life != w.p.j.Life) {
			t.Errorf("heard %t: %+v %+v", heard, o, w.p.Rings.Placed.Statuses())
		}
	}
}
