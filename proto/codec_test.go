package proto

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// A sender refuses what a receiver would refuse, and says the same.
func TestEncodeRefusesWhatDecodeWould(t *testing.T) {
	many := Desired{Version: Version, Node: 9, Term: 1, Generation: 1, Decisions: []RingID{1},
		Rings: []RingAssignment{{Ring: 1, Generation: 1, Size: 2, Left: make([]Candidate, MaxCandidates+1)}}}
	for i := range many.Rings[0].Left {
		many.Rings[0].Left[i] = Candidate{Bundle: BundleID(i), Path: External1}
	}
	big := OpReply{Version: Version}
	for range MaxPage {
		big.Why = append(big.Why, WhyLine{Text: strings.Repeat("x", MaxText)})
	}
	for _, c := range []struct {
		name string
		msg  any
		code Code
		says string
	}{
		{"no version", Decision{Term: 1, Generation: 1, Verdict: Commit}, WrongVersion, "version"},
		{"too many candidates", many, TooLarge, "rings[0].left: 9 elements"},
		{"long text", Ack{Version: Version, Session: 1, Phase: PhaseCommit, Reason: strings.Repeat("x", MaxText+1)}, TooLarge, "reason: 513 bytes"},
		{"text not UTF-8", Ack{Version: Version, Session: 1, Phase: PhaseCommit, Reason: "\xc3\x28"}, Malformed, "reason"},
		{"too large in all", big, TooLarge, "limit: 65536 bytes"},
		{"event without count", Event{Version: Version, Session: 1, Seq: 1, Kind: EvStarted}, Invalid, "count: 0"},
		{"ledger that wraps", Event{Version: Version, Session: 1, Seq: 1, Count: 1, Kind: EvSwitched, Ledger: &Ledger{BusMicros: 1 << 31, SettleMicros: 1 << 31}}, Invalid, "ledger"},
		{"event inside an answer", Ack{Version: Version, Session: 1, Phase: PhaseCommand, Events: []Event{testEvent(), {Version: Version}}}, Invalid, "events[1].session"},
		{"report inside an answer", OpReply{Version: Version, Nodes: []NodeStatus{{Reported: &Reported{Version: Version, Session: 1, Sides: []SideReport{{Current: -2}}}}}}, Invalid, "nodes[0].reported.sides[0].current"},
		{"endless command", Command{Version: Version, Term: 1, Session: 1, Verb: VerbDrain, TTLMillis: MaxTTLMillis + 1}, Invalid, "limit: 1 to 600000"},
		{"question about bundle -2", OpRequest{Version: Version, TTLMillis: 1, Noun: NounNode, Bundle: -2}, Invalid, "bundle: -2 (limit: -1 to 15)"},
	} {
		dst := []byte("kept")
		out, err := AppendEncode(dst, c.msg)
		if e := AsError(err); err == nil || e.Code != c.code || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %v saying %q", c.name, err, c.code, c.says)
		}
		if !bytes.Equal(out, dst) {
			t.Errorf("%s: a refused message left %d bytes", c.name, len(out)-len(dst))
		}
	}
}

// An invalid message is still there to be echoed; any other refusal leaves
// nothing behind of it or of an earlier one.
func TestDecodeLeavesWhatAnAnswerNeeds(t *testing.T) {
	decision := Decision{Version: Version, Ring: 3, Term: 2, Generation: 300, Verdict: Commit}
	good := mustEncode(t, decision)
	bad := append(bytes.Clone(good[:len(good)-1]), 9)
	var got Decision
	if _, err := Decode(bad, &got); !errors.Is(err, &Error{Code: Invalid}) && AsError(err).Code != Invalid || got.Generation != 300 {
		t.Errorf("invalid: %v, %+v", err, got)
	}
	var a Ack
	_, err := Decode(bad, &got)
	a.Refuse(err)
	if a.Code != Invalid || a.Field != "verdict" || a.Limit != "1 to 2" || a.Reason != "9" {
		t.Errorf("answer %+v", a)
	}
	if _, err := Decode(good[:5], &got); err == nil || got != (Decision{}) {
		t.Errorf("truncated: %v, %+v", err, got)
	}
}

func TestClipKeepsCharactersWhole(t *testing.T) {
	s := strings.Repeat("x", MaxText-1) + "µ"
	if got := Clip(s); got != s[:MaxText-1] {
		t.Errorf("%d bytes", len(got))
	}
	if got := Clip("a\xffb"); got != "a\uFFFDb" {
		t.Errorf("%q", got)
	}
	if got := Clip("short"); got != "short" {
		t.Error(got)
	}
}

// The plan's digest names the content: any order of nodes gives the same, any
// change another, and what the desired states quote of it does not matter.
func TestPlanDigest(t *testing.T) {
	a, b := testDesired(), testDesired()
	b.Node = 20
	b.Rings = nil
	one, err := PlanDigest([]Desired{a, b})
	if err != nil {
		t.Fatal(err)
	}
	a.Plan, b.Plan = one, one
	if two, err := PlanDigest([]Desired{b, a}); err != nil || two != one {
		t.Errorf("%v, %v, %v", one, two, err)
	}
	b.BypassSeq++
	if three, _ := PlanDigest([]Desired{a, b}); three == one {
		t.Error("a changed plan kept its digest")
	}
	if one.IsZero() || len(one.String()) != 32 {
		t.Error(one)
	}
	if _, err := PlanDigest([]Desired{{}}); err == nil {
		t.Error("a plan that cannot be sent has a digest")
	}
}

func BenchmarkEncodeDesired(b *testing.B) {
	d := testDesired()
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if buf, err = AppendEncode(buf[:0], &d); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(buf)), "bytes")
}

func BenchmarkDecodeDesired(b *testing.B) {
	d := testDesired()
	payload, err := Encode(&d)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(payload, &d); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeEvent(b *testing.B) {
	e := testEvent()
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if buf, err = AppendEncode(buf[:0], &e); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeReported(b *testing.B) {
	payload, err := Encode(testReported())
	if err != nil {
		b.Fatal(err)
	}
	var m Reported
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(payload, &m); err != nil {
			b.Fatal(err)
		}
	}
}

// Goal: every state of a port that has a name can be reported, of a bundle and of a
// circuit, and none beyond.
// Method: one report a state, encoded and decoded.
func TestEveryPortStateIsReported(t *testing.T) {
	for s := range PortState(NumPortStates + 1) {
		r := testReported()
		r.Bundles[0].State = s
		payload, err := Encode(&r)
		if named := int(s) < NumPortStates; named != (err == nil) {
			t.Errorf("a bundle that is %v: %v", s, err)
		} else if named {
			var got Reported
			if _, err := Decode(payload, &got); err != nil || got.Bundles[0].State != s {
				t.Errorf("%v became %v, %v", s, got.Bundles[0].State, err)
			}
		}
	}
}

// A refusal is told in one way, and without what it does not say.
// With and without field and limit.
func TestAckWords(t *testing.T) {
	for _, c := range []struct {
		a    Ack
		want string
	}{
		{Ack{Code: NotStaged, Reason: "no plan"}, NotStaged.Words() + ": no plan"},
		{Ack{Code: Invalid, Field: "tp", Limit: "at most 8", Reason: "9"}, "invalid: tp: 9 (limit: at most 8)"},
	} {
		if got := c.a.Words(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// Goal: no planner is told a state that it does not know, and of no light that it is gone.
// Method: every state, to planners of which each lacks one feature, and to one with none.
func TestStatesAreToldInWordsThatAreKnown(t *testing.T) {
	for s := range PortState(NumPortStates) {
		if got := s.ToldAs(KnownStates()); got != s {
			t.Errorf("%v is told as %v to who knows all", s, got)
		}
		if got := s.ToldAs(0); portStates[got].needs != 0 || got.Lit() != s.Lit() {
			t.Errorf("%v is told as %v to who knows none", s, got)
		}
		if needs := portStates[s].needs; needs != 0 && s.ToldAs(KnownStates()&^needs) == s {
			t.Errorf("%v is told to who does not know it", s)
		}
	}
}
