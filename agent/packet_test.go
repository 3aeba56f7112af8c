package agent

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/hal/boardfile"
	"ringlight/node"
	"ringlight/proto"
)

// rig is an agent whose board never answers: it adopts what it cannot read
// after its patience, and is then all protocol.
type rig struct {
	t    *testing.T
	host *Host
	a    *Agent // inside it
	now  time.Duration
	sent []proto.Packet
	// The disk: records wait here until sync.
	records []savedRecord
	slow    bool
}

const testSession = 77

func newRig(t *testing.T, j Journal) *rig {
	t.Helper()
	board, err := boardfile.Default(4, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, now: time.Second}
	r.host = NewHost(Config{Fabric: "f1", Node: 5, Board: &board, Session: testSession, HealthPeriod: -1}, j, r, nil)
	r.a = r.host.agent
	r.poll()
	r.now += node.BoardPatience
	r.poll()
	r.in(proto.Packet{Kind: proto.LinkUp})
	return r
}

func (r *rig) poll() {
	r.t.Helper()
	if err := r.host.Settle(r.now); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) Submit(time.Duration, Work) error { return nil }

func (r *rig) Send(_ time.Duration, p proto.Packet) error {
	if p.Kind == proto.Publish {
		r.sent = append(r.sent, p)
	}
	return nil
}

func (r *rig) Persist(now time.Duration, id uint64, record *Record) error {
	if r.slow {
		r.records = append(r.records, savedRecord{id, record.Encode()})
	} else {
		r.host.Deliver(now, Input{Kind: InPersisted, ID: id})
	}
	return nil
}

// later lets time pass to when the agent wants it, up to d.
func (r *rig) later(d time.Duration) {
	for end := r.now + d; ; {
		if r.host.Next() > end {
			r.now = end
			r.poll()
			return
		}
		r.now = r.host.Next()
		r.poll()
	}
}

func (r *rig) in(p proto.Packet) {
	r.t.Helper()
	r.host.Deliver(r.now, Input{Kind: InPacket, Packet: p})
	r.poll()
}

func (r *rig) message(topic string, msg any) {
	r.t.Helper()
	payload, err := proto.Encode(msg)
	if err != nil {
		r.t.Fatal(err)
	}
	r.in(proto.Packet{Topic: topic, Payload: payload})
}

// take removes what was sent on a kind of topic.
func take[M any](r *rig, kind proto.TopicKind) []M {
	r.t.Helper()
	var out []M
	rest := r.sent[:0]
	for _, p := range r.sent {
		topic, err := proto.ParseTopic(p.Topic)
		if err != nil {
			r.t.Fatal(err)
		}
		if topic.Kind != kind {
			rest = append(rest, p)
			continue
		}
		if p.Retain != kind.Retain() || p.QoS != kind.QoS() {
			r.t.Errorf("%s: retain %v, QoS %d", p.Topic, p.Retain, p.QoS)
		}
		var m M
		if _, err := proto.Decode(p.Payload, &m); err != nil {
			r.t.Fatal(err)
		}
		out = append(out, m)
	}
	r.sent = rest
	return out
}

func desired(term proto.Term, gen proto.Generation) *proto.Desired {
	return &proto.Desired{Version: proto.Version, Node: 5, Term: term, Generation: gen, Plan: proto.Digest{1, byte(gen)}, Decisions: []proto.RingID{0}}
}

func command(verb proto.Verb, corr byte) *proto.Command {
	return &proto.Command{Version: proto.Version, Node: 5, Term: 9, Session: testSession, Corr: proto.Corr{corr}, TTLMillis: 1000, Verb: verb}
}

func TestBadMessagesChangeNothing(t *testing.T) {
	// Goal: a message that is malformed, oversized, replayed, stale, of another
	// major, node, session or fabric, or too old is answered with what was wrong
	// with it, counted, and changes nothing.
	// Method: a node with a staged generation; each bad message alone.
	topics := proto.Topics{Fabric: "f1"}
	encode := func(msg any) []byte {
		b, err := proto.Encode(msg)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	patched := func(msg any, patch func(b []byte)) []byte {
		b := encode(msg)
		patch(b)
		return b
	}
	other := desired(9, 4)
	other.Node = 6
	conflict := desired(9, 4)
	conflict.Plan[0] = 99
	foreign := command(proto.VerbDrain, 2)
	foreign.Session++
	old := command(proto.VerbDrain, 3)
	stale := command(proto.VerbDrain, 4)
	stale.Term = 8
	seq := command(proto.VerbAckEvents, 6)
	seq.Seq = 1 << 40
	verb := command(200, 7)
	bundle := command(proto.VerbCalibrate, 8)
	bundle.Bundle = 9
	decision := &proto.Decision{Version: proto.Version, Ring: 3, Term: 9, Generation: 4, Plan: proto.Digest{1, 4}, Verdict: proto.Commit}
	for _, c := range []struct {
		name    string
		topic   string
		payload []byte
		waited  time.Duration
		code    proto.Code
		field   string
	}{
		{"not CBOR", topics.Desired(5), []byte("hello"), 0, proto.Malformed, ""},
		{"empty", topics.Command(5), nil, 0, proto.Malformed, ""},
		{"torn", topics.Desired(5), encode(desired(9, 5))[:20], 0, proto.Malformed, ""},
		{"oversized", topics.Desired(5), make([]byte, proto.MaxPayload+1), 0, proto.TooLarge, ""},
		{"unknown major", topics.Desired(5), patched(desired(9, 5), func(b []byte) { b[2] = 2 }), 0, proto.WrongVersion, "version"},
		{"another node's payload", topics.Desired(5), encode(other), 0, proto.WrongNode, "node"},
		{"another node's topic", topics.Desired(6), encode(other), 0, proto.WrongNode, "topic"},
		{"another fabric", proto.Topics{Fabric: "f2"}.Desired(5), encode(desired(9, 5)), 0, proto.NotFound, "topic"},
		{"a topic that is ours to write", topics.Reported(5), nil, 0, proto.Unsupported, "topic"},
		{"no topic at all", "ocs/v1/f1/n/5", nil, 0, proto.Malformed, "topic"},
		{"stale generation", topics.Desired(5), encode(desired(9, 3)), 0, proto.Stale, "generation"},
		{"stale term", topics.Desired(5), encode(desired(8, 9)), 0, proto.Stale, "term"},
		{"same generation, other plan", topics.Desired(5), encode(conflict), 0, proto.Conflict, "plan"},
		{"decision on another ring's topic", topics.Decision(4), encode(decision), 0, proto.Invalid, "ring"},
		{"another life", topics.Command(5), encode(foreign), 0, proto.WrongSession, "session"},
		{"expired", topics.Command(5), encode(old), 2 * time.Second, proto.Expired, "ttl_millis"},
		{"command of an old planner", topics.Command(5), encode(stale), 0, proto.Stale, "term"},
		{"acknowledges what never was", topics.Command(5), encode(seq), 0, proto.Invalid, "seq"},
		{"unknown verb", topics.Command(5), encode(verb), 0, proto.Unsupported, "verb"},
		{"no such bundle", topics.Command(5), encode(bundle), 0, proto.NotFound, "bundle"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, Journal{})
			r.message(topics.Desired(5), desired(9, 4))
			if acks := take[proto.Ack](r, proto.TopicAck); len(acks) != 1 || acks[0].Code != proto.OK || acks[0].Phase != proto.PhasePrepare {
				t.Fatalf("staging: %+v", acks)
			}
			r.later(time.Second)
			take[proto.Event](r, proto.TopicEvent)
			seen := command(proto.VerbAckEvents, 1)
			seen.Seq = r.a.outbox.last
			r.message(topics.Command(5), seen)
			r.later(time.Second)
			refused := take[proto.Reported](r, proto.TopicReported)
			before := r.host.View().State()

			r.host.Deliver(r.now, Input{Kind: InPacket, Packet: proto.Packet{Topic: c.topic, Payload: c.payload}, At: r.now - c.waited})
			r.poll()
			acks := take[proto.Ack](r, proto.TopicAck)
			if len(acks) != 1 || acks[0].Code != c.code || !strings.HasPrefix(acks[0].Field, c.field) || acks[0].Reason == "" && acks[0].Limit == "" {
				t.Fatalf("answers %+v, want one of code %v about %q", acks, c.code, c.field)
			}
			r.later(time.Second)
			if after := r.host.View().State(); !reflect.DeepEqual(before, after) {
				t.Errorf("state changed from %+v to %+v", before, after)
			}
			told := take[proto.Reported](r, proto.TopicReported)
			if len(told) == 0 || told[len(told)-1].RefusedMessages != refused[len(refused)-1].RefusedMessages+1 {
				t.Errorf("refused messages are not counted: %+v", told)
			}
			events := take[proto.Event](r, proto.TopicEvent)
			if c.code == proto.Conflict { // two planners at one generation: that is news
				if len(events) != 1 || events[0].Kind != proto.EvSplitBrain {
					t.Errorf("events %+v, want one of a split brain", events)
				}
			} else if len(events) != 0 {
				t.Errorf("events %+v", events)
			}
		})
	}
}

func TestRepeatedCommandIsDoneOnce(t *testing.T) {
	// Goal: a command that comes again is not done again, and the answer says
	// so; after 64 others it is forgotten.
	r := newRig(t, Journal{})
	topic := r.a.topics.Command(5)
	r.message(topic, command(proto.VerbHostFault, 1))
	r.message(topic, command(proto.VerbHostOK, 2))
	take[proto.Ack](r, proto.TopicAck)
	r.message(topic, command(proto.VerbHostFault, 1))
	acks := take[proto.Ack](r, proto.TopicAck)
	if len(acks) != 1 || acks[0].Code != proto.Duplicate || acks[0].Field != "corr" || acks[0].Corr != (proto.Corr{1}) {
		t.Errorf("answer %+v, want duplicate", acks)
	}
	if mode := r.host.View().Mode(); mode == proto.ModeHostDown {
		t.Error("the host fault was taken twice")
	}
	for i := range keptCommands {
		r.message(topic, command(proto.VerbReannounce, byte(10+i)))
	}
	take[proto.Ack](r, proto.TopicAck)
	r.message(topic, command(proto.VerbHostFault, 1))
	if acks := take[proto.Ack](r, proto.TopicAck); len(acks) != 1 || acks[0].Code != proto.OK || r.host.View().Mode() != proto.ModeHostDown {
		t.Errorf("after %d others: %+v", keptCommands, acks)
	}
}

func TestAnswersWaitForTheDisk(t *testing.T) {
	// Goal: "prepared" leaves only when it is on disk, a repetition of the
	// question too; a refusal that changed nothing does not overtake it.
	r := newRig(t, Journal{})
	r.later(time.Second)
	take[proto.Ack](r, proto.TopicAck)
	r.slow = true
	topic := r.a.topics.Desired(5)
	r.message(topic, desired(9, 4))
	r.message(topic, desired(9, 4))
	if acks := take[proto.Ack](r, proto.TopicAck); len(acks) != 0 {
		t.Fatalf("answered %+v before the disk", acks)
	}
	if len(r.records) != 1 {
		t.Fatalf("%d records", len(r.records))
	}
	var j Journal
	if err := j.Apply(r.records[0].raw); err != nil || j.State == nil || j.State.Staged == nil || j.State.Staged.Desired.Generation != 4 {
		t.Fatalf("record %s (%v)", r.records[0].raw, err)
	}
	for len(r.records) > 0 {
		rec := r.records[0]
		r.records = r.records[1:]
		r.host.Deliver(r.now, Input{Kind: InPersisted, ID: rec.id})
		r.poll()
	}
	acks := take[proto.Ack](r, proto.TopicAck)
	if len(acks) != 2 || acks[0].Code != proto.OK || acks[1].Code != proto.OK {
		t.Errorf("after the disk: %+v", acks)
	}
}

// Goal: an agent whose journal cannot be written says so at once: to who waits for a plan
// to be on disk, to who sends another, in its report and on the host; it keeps what it has,
// and takes plans again when it can write.
// Method: a disk that takes nothing, and does again.
func TestJournalThatCannotBeWritten(t *testing.T) {
	r := newRig(t, Journal{})
	topic := r.a.topics.Desired(5)
	r.message(topic, desired(9, 4))
	r.later(time.Second)
	r.sent, r.slow = nil, true
	r.message(topic, desired(9, 5))
	r.host.Deliver(r.now, Input{Kind: InJournal, Text: "no space left on device"})
	r.poll()
	r.message(topic, desired(9, 6))
	acks := take[proto.Ack](r, proto.TopicAck)
	if len(acks) != 2 {
		t.Fatalf("answers %+v", acks)
	}
	for i, a := range acks {
		if a.Phase != proto.PhasePrepare || a.Generation != proto.Generation(5+i) || a.Code != proto.HardwareFailed || a.Field != "journal" || a.Reason != "no space left on device" {
			t.Errorf("answer %+v", a)
		}
	}
	said := func() (n int, staged proto.Generation) {
		r.later(time.Second)
		for _, m := range take[proto.Reported](r, proto.TopicReported) {
			n, staged = 0, m.StagedGeneration
			for _, a := range m.Alarms {
				if a.Kind == proto.EvJournal && a.Severity == proto.SeverityCritical && a.Text == "no space left on device" {
					n++
				}
			}
		}
		return n, staged
	}
	if n, staged := said(); n != 1 || staged != 0 {
		t.Errorf("reported %d times, generation %d staged", n, staged)
	}
	if err := r.a.restart.blocker(); err == nil {
		t.Error("it would start anew and forget")
	}
	r.slow = false
	for _, rec := range r.records {
		r.host.Deliver(r.now, Input{Kind: InPersisted, ID: rec.id})
	}
	r.host.Deliver(r.now, Input{Kind: InJournal})
	r.poll()
	if n, _ := said(); n != 0 {
		t.Error("the alarm still stands")
	}
	r.message(topic, desired(9, 7))
	if acks := take[proto.Ack](r, proto.TopicAck); len(acks) != 1 || acks[0].Code != proto.OK {
		t.Errorf("when it can write again: %+v", acks)
	}
	r.host.Deliver(r.now, Input{Kind: InJournal, Text: "no space left on device"})
	r.message(topic, desired(9, 7)) // which the broker keeps
	if acks := take[proto.Ack](r, proto.TopicAck); len(acks) != 1 || acks[0].Code != proto.OK {
		t.Errorf("what is on disk: %+v", acks)
	}
	var told []bool
	for _, e := range take[proto.Event](r, proto.TopicEvent) {
		if e.Kind == proto.EvJournal {
			told = append(told, e.Resolved)
		}
	}
	if want := []bool{false, true}; !slices.Equal(told[:min(2, len(told))], want) {
		t.Errorf("events, resolved: %v", told)
	}
}

func TestEventsAreRepeatedUntilAcknowledged(t *testing.T) {
	// Goal: at least once, in order, over losses and a restart; gapless.
	r := newRig(t, Journal{})
	topic := r.a.topics.Command(5)
	r.message(topic, command(proto.VerbHostFault, 1))
	first := take[proto.Event](r, proto.TopicEvent)
	if len(first) < 2 {
		t.Fatalf("events %+v", first)
	}
	for i, e := range first {
		if e.Seq != uint64(i+1) || e.Session != testSession || e.Node != 5 {
			t.Errorf("event %d: %+v", i, e)
		}
	}
	r.later(resendFirst)
	again := take[proto.Event](r, proto.TopicEvent)
	if !reflect.DeepEqual(first, again) {
		t.Errorf("repeated %+v, want %+v", again, first)
	}
	ack := command(proto.VerbAckEvents, 2)
	ack.Seq = uint64(len(first))
	take[proto.Ack](r, proto.TopicAck)
	r.message(topic, ack)
	if acks := take[proto.Ack](r, proto.TopicAck); len(acks) != 0 {
		t.Errorf("an acknowledgement was acknowledged: %+v", acks)
	}
	r.later(time.Minute)
	if more := take[proto.Event](r, proto.TopicEvent); len(more) != 0 {
		t.Errorf("repeated after its acknowledgement: %+v", more)
	}
	// With the link down events queue, and all of them come when it is back.
	r.in(proto.Packet{Kind: proto.LinkDown})
	r.sent = nil
	r.message(topic, command(proto.VerbHostOK, 3))
	r.later(time.Minute)
	if sent := len(r.sent); sent != 0 {
		t.Errorf("%d packets sent into a dead link", sent)
	}
	r.in(proto.Packet{Kind: proto.LinkUp})
	late := take[proto.Event](r, proto.TopicEvent)
	if len(late) == 0 || late[0].Seq != uint64(len(first)+1) {
		t.Errorf("after the outage: %+v", late)
	}
	births := take[proto.Presence](r, proto.TopicPresence)
	if len(births) == 0 || !births[len(births)-1].Online || births[len(births)-1].Session != testSession {
		t.Errorf("births %+v", births)
	}
}

func TestReportsAreCoalesced(t *testing.T) {
	// Goal: many changes at once make one report now and one 200 ms later.
	r := newRig(t, Journal{})
	r.later(time.Second)
	take[proto.Reported](r, proto.TopicReported)
	for i := range 20 {
		r.message(r.a.topics.Command(5), command(proto.VerbReannounce, byte(i)))
	}
	if n := len(take[proto.Reported](r, proto.TopicReported)); n != 1 {
		t.Errorf("%d reports at once", n)
	}
	r.later(coalesce)
	if n := len(take[proto.Reported](r, proto.TopicReported)); n != 1 {
		t.Errorf("%d reports after %v", n, coalesce)
	}
	r.later(time.Minute)
	if n := len(take[proto.Reported](r, proto.TopicReported)); n != 0 {
		t.Errorf("%d reports of nothing", n)
	}
}

// What the link did not deliver is told to the planner as refused.
func TestWhatTheLinkShedsIsReported(t *testing.T) {
	r := newRig(t, Journal{})
	r.later(time.Second)
	before := take[proto.Reported](r, proto.TopicReported)
	r.in(proto.ShedPacket(90_000))
	r.later(time.Second)
	after := take[proto.Reported](r, proto.TopicReported)
	if len(after) != 1 || after[0].RefusedMessages != before[len(before)-1].RefusedMessages+90_000 {
		t.Errorf("%+v", after)
	}
}

func FuzzPacket(f *testing.F) {
	for _, m := range []any{desired(9, 4), command(proto.VerbHostFault, 1), &proto.Decision{Version: 1, Term: 9, Generation: 4, Verdict: 1},
		&proto.PlannerState{Version: 1, Planner: 1, Online: true, Term: 3, PeriodMillis: 1000}} {
		b, err := proto.Encode(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(0), b)
		f.Add(uint8(1), b)
		f.Add(uint8(2), b)
		f.Add(uint8(3), b)
	}
	topics := proto.Topics{Fabric: "f1"}
	kinds := []string{topics.Desired(5), topics.Command(5), topics.Decision(0), topics.Planner()}
	f.Fuzz(func(t *testing.T, kind uint8, payload []byte) {
		r := newRig(t, Journal{})
		r.in(proto.Packet{Topic: kinds[int(kind)%len(kinds)], Payload: payload})
		r.later(10 * time.Second)
	})
}

// Goal: a command has its place in time: one that a broker kept, or that comes
// long after it was sent, does nothing, and says why.
// Method: a host fault that lives for a second: retained; on time; quoting a
// sign of life after which others came.
func TestCommandHasAPlaceInTime(t *testing.T) {
	beats := func(r *rig, seq uint64, by string) {
		payload, err := proto.Encode(&proto.PlannerState{Version: proto.Version, Planner: 3, Online: true, Term: 9, Seq: seq, PeriodMillis: 2000, Fabric: "f1"})
		if err != nil {
			t.Fatal(err)
		}
		r.in(proto.Packet{Topic: "ocs/v1/f1/planner/state", Payload: payload, By: by})
	}
	for name, c := range map[string]struct {
		retain bool
		beat   uint64
		heard  []uint64
		wait   time.Duration
		by     string
		want   proto.Code
	}{
		"retained":           {retain: true, want: proto.Expired},
		"without a beat":     {heard: []uint64{1, 2}, wait: 3 * time.Second},
		"of the last beat":   {beat: 2, heard: []uint64{1, 2}, wait: 3 * time.Second},
		"just before a beat": {beat: 1, heard: []uint64{1, 2}, wait: 500 * time.Millisecond},
		"late":               {beat: 1, heard: []uint64{1, 2}, wait: 1500 * time.Millisecond, want: proto.Expired},
		"long past":          {beat: 1, heard: []uint64{1, 2, 3}, want: proto.Expired},
		"a far beat":         {beat: 1, heard: []uint64{proto.MaxCount}, want: proto.Expired},
		// What is sealed was true once: the clock that it makes is not turned back, and
		// goes on while a broker keeps all back.
		"sealed, of the last beat":      {beat: 2, heard: []uint64{1, 2}, by: "f1/planner/a", wait: 2500 * time.Millisecond},
		"sealed, kept back":             {beat: 2, heard: []uint64{1, 2}, by: "f1/planner/a", wait: 3500 * time.Millisecond, want: proto.Expired},
		"sealed, an old beat again":     {beat: 1, heard: []uint64{1, 2, 3, 1}, by: "f1/planner/a", want: proto.Expired},
		"not sealed, an old beat again": {beat: 1, heard: []uint64{1, 2, 3, 1}},
	} {
		r := newRig(t, Journal{})
		for _, seq := range c.heard {
			beats(r, seq, c.by)
		}
		r.later(c.wait)
		r.sent = nil
		m := command(proto.VerbHostFault, 1)
		m.Beat = c.beat
		payload, err := proto.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		r.in(proto.Packet{Topic: "ocs/v1/f1/n/5/cmd", Payload: payload, Retain: c.retain})
		acks := take[proto.Ack](r, proto.TopicAck)
		if len(acks) != 1 || acks[0].Code != c.want || c.want != proto.OK && acks[0].Field == "" {
			t.Errorf("%s: %+v, want %s", name, acks, c.want)
		}
	}
}

// Goal: an agent whose link another one takes again and again says so, once;
// one whose broker restarts does not. Method: links that last 1 s, or 6 s.
func TestStolenLinkIsNamed(t *testing.T) {
	for lasts, want := range map[time.Duration]int{time.Second: 1, 6 * time.Second: 0} {
		r := newRig(t, Journal{})
		said := 0
		for range 8 {
			r.later(lasts)
			r.a.packet(r.now, Input{Kind: InPacket, Packet: proto.Packet{Kind: proto.LinkDown}})
			for _, o := range r.a.outs {
				if o.Kind == OutLog && strings.Contains(o.Text, "node number 5") {
					said++
				}
			}
			r.poll()
			r.in(proto.Packet{Kind: proto.LinkUp})
		}
		if said != want {
			t.Errorf("links of %v: said %d times, want %d", lasts, said, want)
		}
	}
}

// Goal: one message that all agents hear is not answered by each of them.
// Method: signs of life that cannot be read; they are counted.
func TestUnreadableSignOfLifeIsNotAnswered(t *testing.T) {
	r := newRig(t, Journal{})
	r.sent = nil
	for range 100 {
		r.in(proto.Packet{Kind: proto.Publish, Topic: proto.Topics{Fabric: "f1"}.Planner(), Payload: []byte("hello")})
		r.later(time.Second)
	}
	for _, p := range r.sent {
		if topic, _ := proto.ParseTopic(p.Topic); topic.Kind == proto.TopicAck {
			t.Fatalf("answered: %s", p.Topic)
		}
	}
	if n := r.a.wire.refused; n != 100 {
		t.Errorf("%d counted", n)
	}
}

// A flood of what is refused is not answered with one of answers: a few, then
// one in a while that says how many there were; what is well is answered always.
func TestRefusalsAreFew(t *testing.T) {
	r := newRig(t, Journal{})
	r.sent = nil
	topic := proto.Topics{Fabric: "f1"}.Desired(r.a.cfg.Node)
	const seconds, each = 10, 200
	for range seconds * each {
		r.in(proto.Packet{Kind: proto.Publish, Topic: topic, Payload: []byte("hello")})
		r.later(time.Second / each)
	}
	acks := take[proto.Ack](r, proto.TopicAck)
	said := len(acks)
	for _, a := range acks {
		var n int
		if _, err := fmt.Sscanf(a.Reason, "and %d more", &n); err == nil {
			said += n
		}
	}
	most := refusalBurst + seconds*int(time.Second/refusalInterval) + 1
	if len(acks) > most || len(acks) < refusalBurst || said < seconds*each-each || r.a.wire.refused != seconds*each {
		t.Errorf("%d answers of %d messages, at most %d; they tell of %d, %d counted", len(acks), seconds*each, most, said, r.a.wire.refused)
	}
}

// Goal: where the broker keeps nothing, an agent announces itself anew to each
// connection of a planner, once, and a planner that calls without end is answered once
// a second. Method: signs of life with calls, repeated, of another connection and life.
func TestCalledByThePlanner(t *testing.T) {
	r := newRig(t, Journal{})
	r.later(2 * time.Second)
	for _, c := range []struct {
		life, call uint64
		want       int
	}{{7, 0, 0}, {7, 1, 1}, {7, 1, 0}, {7, 2, 1}, {8, 2, 1}} {
		take[proto.Presence](r, proto.TopicPresence)
		take[proto.Reported](r, proto.TopicReported)
		r.message(r.a.topics.Planner(), &proto.PlannerState{Version: proto.Version, Planner: 9, Online: true, Term: 1, Seq: 1, PeriodMillis: 2000, Life: c.life, Call: c.call})
		take[proto.Reported](r, proto.TopicReported) // of the term
		r.later(2 * time.Second)
		births, reports := take[proto.Presence](r, proto.TopicPresence), take[proto.Reported](r, proto.TopicReported)
		if len(births) != c.want || len(reports) < c.want || c.want == 1 && !births[0].Online {
			t.Errorf("life %d, call %d: %d births, %d reports", c.life, c.call, len(births), len(reports))
		}
	}
	for i := range 100 {
		r.message(r.a.topics.Planner(), &proto.PlannerState{Version: proto.Version, Planner: 9, Online: true, Term: 1, Seq: 1, PeriodMillis: 2000, Life: 8, Call: uint64(3 + i)})
	}
	r.later(2 * time.Second)
	if n := len(take[proto.Presence](r, proto.TopicPresence)); n != 1 {
		t.Errorf("%d births at 100 calls", n)
	}
}
