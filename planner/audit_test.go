package planner

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/planner/audit"
	"ringlight/planner/journal"
	"ringlight/proto"
)

// stored is the audit chain as the store has it.
func (w *fleet) stored() string {
	w.t.Helper()
	text, err := AuditOf(w.state())
	if err != nil {
		w.t.Fatal(err)
	}
	return text
}

// chain is the audit chain as an operator gets it, which must be whole.
func (w *fleet) chain() (out []string) {
	w.t.Helper()
	text := ""
	for page := uint64(0); ; {
		r := w.ask(proto.OpRequest{Noun: proto.NounAudit, Bundle: -1, Page: page})
		if text += string(r.Text); r.Next == 0 {
			break
		}
		page = r.Next
	}
	lines, records, head := audit.Parse(text)
	if bad := audit.Verify(lines, head, nil); bad != nil {
		w.t.Fatal(bad)
	}
	for _, r := range records {
		out = append(out, fmt.Sprintf("%d %s %s: %s; %s %s", r.Term, r.Kind, r.Who, r.What, r.Why, r.Result))
	}
	return out
}

func has(lines []string, words ...string) bool {
	return slices.ContainsFunc(lines, func(l string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(l, w) })
	})
}

// Goal: every act and every decision is in the chain, with who, what, why and what it
// came to; over a restart and a change of leader it is one chain; what asks only is
// not in it. Method: a day of an operator, a death, three planners.
func TestActsAndDecisionsAreChained(t *testing.T) {
	w := small(t, 18, 2, 32, 2)
	w.run(time.Second)
	if got := w.chain(); !has(got, "1 start planner", "term 1 begins") || !has(got, "1 decision planner", "generation 1 for ") {
		t.Fatalf("%q", got)
	}
	before := len(w.chain())
	w.ask(proto.OpRequest{Noun: proto.NounNodes, Bundle: -1})
	w.ask(proto.OpRequest{Noun: proto.NounDrain, Node: 3, Bundle: -1, DryRun: true})
	if after := w.chain(); len(after) != before {
		t.Errorf("questions are in it: %q", after[before:])
	}
	w.ask(proto.OpRequest{Noun: proto.NounHostFault, Node: 9, Bundle: -1, Author: "alice", Reason: "xid 79"})
	w.ask(proto.OpRequest{Noun: proto.NounClear, Node: 99, Bundle: -1, Author: "bob"})
	got := w.chain()[before:]
	for _, want := range [][]string{
		{"act alice: host fault node 9; xid 79"}, {"answer alice: host fault node 9; ", " ok"}, {"act bob: clear node 99"}, {"answer bob: clear node 99", "not_found"},
	} {
		if !has(got, want...) {
			t.Errorf("no %q in %q", want, got)
		}
	}
	w.die(4)
	w.run(3 * time.Second)
	if got := w.chain(); !has(got, "decision planner: generation 3 for 8 nodes; node 4 leaves") {
		t.Errorf("no decision about node 4: %q", got)
	}
	for term := 2; term <= 3; term++ {
		w.start()
		w.run(10 * time.Second)
		if got := w.chain(); !has(got, fmt.Sprintf("%d start planner", term)) || !has(got, "1 act alice") {
			t.Errorf("term %d: %q", term, got)
		}
	}
}

// Goal: a roll-out of modules' firmware does not read as one of agents' software.
func TestFirmwareIsChainedAsSuch(t *testing.T) {
	q := proto.OpRequest{Noun: proto.NounRollout, Software: "1.2.0"}
	software := describe(&q)
	q.Firmware = true
	if got := describe(&q); software != "rollout 1.2.0" || got != "rollout firmware 1.2.0" {
		t.Errorf("%q, %q", software, got)
	}
}

// Goal: an act is on disk before anything comes of it, also when it is never
// answered. Method: what the planner asks for when told to command an agent, in order.
func TestActIsStoredBeforeItIsDone(t *testing.T) {
	w := small(t, 18, 2, 32, 2)
	w.run(time.Second)
	q := proto.OpRequest{Version: proto.Version, TTLMillis: 5000, Corr: proto.Corr{9}, Noun: proto.NounHostFault, Node: 9, Bundle: -1}
	payload, err := proto.Encode(&q)
	if err != nil {
		t.Fatal(err)
	}
	stored := false
	for _, a := range w.p.Step(Event{Kind: Packet, At: w.now, Packet: proto.Packet{Kind: proto.Publish, Topic: w.topics.Request("x"), Payload: payload}}, nil) {
		stored = stored || a.Kind == Persist && HeadOf(a.Records) != ""
		if a.Kind == Send && a.Packet.Topic == w.topics.Command(9) && !stored {
			t.Error("the agent is told before the act is stored")
		}
	}
	if !stored {
		t.Error("the act is not stored")
	}
}

// Goal: who may not ask is written down, often enough and not so often that it pushes
// others out. Method: 500 refusals at once, and one an hour later.
func TestRefusalsAreChained(t *testing.T) {
	w := small(t, 18, 2, 32, 2)
	w.run(time.Second)
	before := len(w.chain())
	deny := func() {
		w.asked++
		q := proto.OpRequest{Version: proto.Version, TTLMillis: 5000, Corr: proto.Corr{7, byte(w.asked), byte(w.asked >> 8)}, Noun: proto.NounDrain, Node: 3, Bundle: -1, Author: "eve"}
		payload, err := proto.Encode(&q)
		if err != nil {
			t.Fatal(err)
		}
		w.step(Event{Kind: Packet, Packet: proto.Packet{Kind: proto.Publish, Topic: w.topics.Request("eve"), Payload: payload, By: "f/op/eve", Denied: "eve is view, this takes operate"}})
	}
	for range 500 {
		deny()
	}
	w.run(time.Second)
	if got := w.chain()[before:]; len(got) != refusalsAtOnce || !has(got, "refused f/op/eve: drain node 3", "denied") {
		t.Errorf("%d records: %q", len(got), got)
	}
	w.run(time.Hour)
	deny()
	_, records, _ := audit.Parse(w.stored())
	if last := records[len(records)-1]; last.Skipped != 500-refusalsAtOnce || !last.Sealed || last.Message == "" {
		t.Errorf("%+v", last)
	}
}

// Goal: a planner whose store holds a damaged chain serves all the same, says so as an
// alarm and in the chain, and the damage stays to be found. Method: a record of a
// store changed, another deleted, between two lives.
func TestDamagedChainIsSaid(t *testing.T) {
	w := small(t, 18, 2, 32, 2)
	w.run(time.Second)
	w.ask(proto.OpRequest{Noun: proto.NounClear, Node: 3, Bundle: -1, Author: "bob"})
	key := fmt.Sprintf("%s%016x", journal.PrefixAudit, 2)
	w.store[key] = []byte(strings.Replace(string(w.store[key]), "generation", "Generation", 1))
	w.start()
	w.run(10 * time.Second)
	alarms := w.ask(proto.OpRequest{Noun: proto.NounAlarms, Bundle: -1}).Alarms
	if i := slices.IndexFunc(alarms, func(a proto.AlarmStatus) bool { return a.ID == "audit/damaged" }); i < 0 || !strings.Contains(alarms[i].Why, "record 2 is not what record 3") {
		t.Errorf("%+v", alarms)
	}
	lines, _, head := audit.Parse(w.stored())
	bad := audit.Verify(lines, head, nil)
	if len(bad) != 1 || !strings.Contains(bad[0], "record 2 ") || !strings.Contains(strings.Join(lines, ""), `"term 2 begins","why":"record 2 is not`) {
		t.Errorf("%q in %q", bad, lines)
	}
}

// Goal: an older store put back, and one that was lost whole, are told in the chain by what
// agents know, as an alarm at once and by verify ever after; a restart and a wish for a
// higher term are neither. Method: stores of before between two lives.
func TestOlderStoreIsSaid(t *testing.T) {
	for _, c := range []struct{ put, want string }{
		{"the same", ""},
		{"that of term 1", "term 3 is known to 18 of 18 devices, and ours is 2"},
		{"that of before a decision", "holds generation 2, the store's last is 1"},
		{"none", "term 3 is known to 18 of 18 devices, and ours is 1"},
	} {
		w := small(t, 18, 2, 32, 2)
		w.run(time.Second)
		older := maps.Clone(w.store)
		w.start()
		w.run(10 * time.Second)
		w.start()
		w.run(10 * time.Second)
		before := maps.Clone(w.store)
		w.ask(proto.OpRequest{Noun: proto.NounDrain, Node: 3, Bundle: -1, Author: "mallory"})
		w.run(10 * time.Second)
		switch c.put {
		case "that of before a decision":
			w.store = before
		case "that of term 1":
			w.store = older
		case "none":
			w.store = map[string][]byte{}
		}
		w.start()
		w.run(time.Minute)
		alarms := w.ask(proto.OpRequest{Noun: proto.NounAlarms, Bundle: -1}).Alarms
		if said := slices.ContainsFunc(alarms, func(a proto.AlarmStatus) bool {
			return a.ID == "audit/damaged" && strings.Contains(a.Why, c.want)
		}); said != (c.want != "") {
			t.Errorf("%s: %+v", c.put, alarms)
		}
		w.start()
		w.run(time.Minute)
		lines, _, head := audit.Parse(w.stored())
		bad := audit.Verify(lines, head, nil)
		if (len(bad) > 0) != (c.want != "") || !strings.Contains(strings.Join(bad, "; "), c.want) {
			t.Errorf("%s: %q", c.put, bad)
		}
	}
}

// Goal: a chain that was taken away as a whole, head and all, is missed: by an alarm, and
// by verify for as long as the record of the next start is kept. Method: every record of
// the chain deleted from a store between two lives.
func TestErasedChainIsMissed(t *testing.T) {
	w := small(t, 18, 2, 32, 2)
	w.run(time.Second)
	w.ask(proto.OpRequest{Noun: proto.NounClear, Node: 3, Bundle: -1, Author: "bob"})
	for key := range w.store { // any order: all of them go
		if key == journal.KeyAudit || strings.HasPrefix(key, journal.PrefixAudit) {
			delete(w.store, key)
		}
	}
	if text, err := AuditOf(w.state()); text != "" || err == nil || !strings.Contains(err.Error(), "the store knows term 1") {
		t.Errorf("before the next start: %q, %v", text, err)
	}
	w.start()
	w.run(10 * time.Second)
	alarms := w.ask(proto.OpRequest{Noun: proto.NounAlarms, Bundle: -1}).Alarms
	if !slices.ContainsFunc(alarms, func(a proto.AlarmStatus) bool {
		return a.ID == "audit/damaged" && strings.Contains(a.Why, "taken away")
	}) {
		t.Errorf("%+v", alarms)
	}
	w.start()
	w.run(10 * time.Second)
	lines, _, head := audit.Parse(w.stored())
	if bad := audit.Verify(lines, head, nil); len(bad) != 1 || !strings.Contains(bad[0], "the store knows term 1, and no record is here") {
		t.Errorf("%q", bad)
	}
}
