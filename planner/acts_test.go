package planner

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ringlight/planner/audit"
	"ringlight/proto"
)

// op is an operator whose key the link knows.
type op struct {
	w    *fleet
	name string
	n    int
}

// ask asks, and gives the number of the question.
func (o *op) ask(q proto.OpRequest) proto.Corr {
	o.n++
	q.Corr = proto.Corr{byte(o.n), byte(o.n >> 8), o.name[0]}
	o.again(q)
	return q.Corr
}

func (o *op) again(q proto.OpRequest) {
	o.w.t.Helper()
	q.Version, q.TTLMillis, q.Bundle, q.Term, q.Beat = proto.Version, max(q.TTLMillis, 5000), -1, o.w.p.j.Term, o.w.p.pulse.beat
	payload, err := proto.Encode(&q)
	if err != nil {
		o.w.t.Fatal(err)
	}
	o.w.step(Event{Kind: Packet, Packet: proto.Packet{Kind: proto.Publish, Topic: o.w.topics.Request(o.name), Payload: payload, By: "f/op/" + o.name}})
}

// answers counts what was said about a question.
func (w *fleet) answers(c proto.Corr, code proto.Code) (n int) {
	for _, r := range w.replies {
		if r.Corr == c && r.Code == code {
			n++
		}
	}
	return n
}

// Goal: what an act came to is in the chain, however late the agent says so, and whoever
// asks again is told. Method: an agent's answer that is on its way until the operator
// was told that there was none.
func TestLateAnswerIsChained(t *testing.T) {
	w := small(t, 18, 2, 32, 2)
	w.run(time.Second)
	w.replies = nil
	alice := op{w: w, name: "alice"}
	q := proto.OpRequest{Noun: proto.NounHostFault, Node: 9}
	q.Corr = alice.ask(q)
	held := w.up
	w.up = nil
	w.run(2 * askTimeout)
	if w.answers(q.Corr, proto.Expired) != 1 || w.answers(q.Corr, proto.OK) != 0 {
		t.Fatalf("%+v", w.replies)
	}
	w.up = append(w.up, held...)
	w.run(time.Second)
	alice.again(q)
	w.run(time.Second)
	if w.answers(q.Corr, proto.OK) != 1 {
		t.Errorf("asked again: %+v", w.replies)
	}
	if got := w.chain(); !has(got, "answer f/op/alice: host fault node 9; ", "expired") || !has(got, "answer f/op/alice: host fault node 9; the agent answered 3", " ok") {
		t.Errorf("%q", got)
	}
	if len(w.p.asks.late) != 0 {
		t.Errorf("%d are listened for", len(w.p.asks.late))
	}
}

// Goal: an act that takes longer than acts are known has its answer in the chain.
// Method: a drain of two minutes that nothing can end, and another operator after one.
func TestSlowActIsAnsweredInTheChain(t *testing.T) {
	w := small(t, 9, 2, 32, 1)
	w.nodes[3].slow = true
	alice, bob := op{w: w, name: "alice"}, op{w: w, name: "bob"}
	alice.ask(proto.OpRequest{Noun: proto.NounDrain, Node: 3, TTLMillis: 120_000})
	w.run(actMemory + 10*time.Second)
	bob.ask(proto.OpRequest{Noun: proto.NounClear, Node: 5})
	w.run(time.Minute)
	if got := w.chain(); !has(got, "answer f/op/alice: drain node 3") {
		t.Errorf("%q", got)
	}
}

// Goal: each act has an answer in the chain, also when its planner ended before there
// was one. Method: a planner killed while two acts wait: one that the next goes on
// with, and one that it knows nothing of.
func TestActsOfADeadPlannerAreAnswered(t *testing.T) {
	w := small(t, 9, 2, 32, 1)
	alice := op{w: w, name: "alice"}
	w.nodes[5].mute = true
	alice.ask(proto.OpRequest{Noun: proto.NounHostOK, Node: 5})
	alice.ask(proto.OpRequest{Noun: proto.NounDrain, Node: 3, TTLMillis: 60_000})
	for range 2 {
		w.start()
		w.nodes[5].mute = false
		w.run(15 * time.Second)
	}
	got := strings.Join(w.chain(), "\n")
	for _, want := range []string{"answer f/op/alice: host ok node 5;  expired", "answer f/op/alice: drain node 3;  ok"} {
		if strings.Count(got, want) != 1 {
			t.Errorf("%q in %s", want, got)
		}
	}
}

// Goal: one operator who asks without end takes neither what waits for agents, nor what
// is known of their acts, from the others. Method: a flood by eve at agents that do not
// answer, and of acts that are done at once; bob asks once before and once after.
func TestOneOperatorsFloodIsHisOwn(t *testing.T) {
	w := small(t, 18, 2, 32, 2)
	w.run(time.Second)
	w.replies = nil
	eve, bob := op{w: w, name: "eve"}, op{w: w, name: "bob"}
	q := proto.OpRequest{Noun: proto.NounHostFault, Node: 4}
	q.Corr = bob.ask(q)
	w.run(100 * time.Millisecond)
	w.nodes[9].mute, w.nodes[8].mute = true, true
	for i := range 3 * maxAsks {
		eve.ask(proto.OpRequest{Noun: proto.NounHostOK, Node: 8 + proto.NodeID(i%2)})
	}
	late := bob.ask(proto.OpRequest{Noun: proto.NounHostFault, Node: 5})
	if len(w.p.asks.list) > maxAsks || len(w.p.acts.known) > maxActs {
		t.Errorf("%d wait, %d acts", len(w.p.asks.list), len(w.p.acts.known))
	}
	w.run(100 * time.Millisecond)
	if w.answers(late, proto.OK) != 1 {
		t.Errorf("bob: %+v", w.replies[len(w.replies)-1])
	}
	w.run(2 * askTimeout)
	for range 3000 {
		eve.ask(proto.OpRequest{Noun: proto.NounClear, Node: 1})
	}
	bob.again(q)
	w.run(100 * time.Millisecond)
	if n := w.answers(q.Corr, proto.OK); n != 2 {
		t.Errorf("%d answers to the act and its repetition", n)
	}
	if n := strings.Count(strings.Join(w.chain(), "\n"), "act f/op/bob: host fault node 4"); n != 1 || len(w.p.asks.list)+len(w.p.asks.late) > maxAsks+maxLate {
		t.Errorf("it was done %d times; %d are listened for", n, len(w.p.asks.late))
	}
}

// Goal: nobody pushes out of the chain what others did, by acting often. Method: an hour
// of an operator who acts ten times a second.
func TestChainOutlastsWhoActsOften(t *testing.T) {
	w := small(t, 9, 2, 32, 1)
	eve, bob := op{w: w, name: "eve"}, op{w: w, name: "bob"}
	before := len(w.chain())
	for range 360 {
		for range 100 {
			eve.ask(proto.OpRequest{Noun: proto.NounClear, Node: 1})
		}
		w.run(10 * time.Second)
	}
	_, records, _ := audit.Parse(w.stored())
	if most := 2*(actsAtOnce+360) + refusalsAtOnce + 360 + 10; len(records)-before > most {
		t.Errorf("%d records in an hour, at most %d", len(records)-before, most)
	}
	c := bob.ask(proto.OpRequest{Noun: proto.NounClear, Node: 1})
	if w.answers(c, proto.OK) != 1 {
		t.Errorf("bob: %+v", w.replies[len(w.replies)-1])
	}
	if got := w.chain(); !has(got, "refused f/op/eve: clear node 1; ", "busy") {
		t.Error("no word of what was refused")
	}
	if s := fmt.Sprint(len(w.p.acts.spent)); s != "2" {
		t.Error(s)
	}
}
