package member

import (
	"strings"
	"testing"
	"time"

	"ringlight/proto"
)

// Goal: what one device alone says of the planner's numbers is an alarm that names the
// number, as long as it stands; who takes it back, or says nothing more, is no voice.
// Method: reports of a device of a planner in term 3 that gave 100 generations.
func TestWhatOneDeviceClaims(t *testing.T) {
	for _, c := range []struct {
		name  string
		says  proto.Reported
		claim string
	}{
		{"the planner's own", proto.Reported{SeenTerm: 3, SeenLife: 0, StagedTerm: 3, StagedGeneration: 100}, ""},
		{"a higher term", proto.Reported{SeenTerm: 9}, "a planner of term 9; ours is 3"},
		{"another life", proto.Reported{SeenTerm: 3, SeenLife: 5}, "a planner of term 3; ours is 3"},
		{"a generation that it holds", proto.Reported{SeenTerm: 3, Term: 3, Generation: 101, StagedTerm: 3, StagedGeneration: 7}, "generation 101 of term 3; the last that was given is 100"},
		{"one that it has staged", proto.Reported{SeenTerm: 3, Term: 3, Generation: 7, StagedTerm: 3, StagedGeneration: 102}, "generation 102 of term 3"},
		{"one of another term", proto.Reported{SeenTerm: 3, StagedTerm: 2, StagedGeneration: 102}, ""},
	} {
		w := newWorld()
		d := present(w)
		say := func(m proto.Reported, seq uint64) {
			m.Version, m.Session, m.Seq = 1, 7, seq
			w.t.Reported(d, &m, false)
			w.t.Numbers.Alone()
		}
		told := func(when, want string) {
			t.Helper()
			if got := w.t.Numbers.Claims(d); (got == "") != (want == "") || !strings.Contains(got, want) {
				t.Errorf("%s, %s: %q, want %q", c.name, when, got, want)
			}
		}
		w.j.Now = time.Minute
		say(c.says, 2)
		told("at once", c.claim)
		w.j.Now += claimStands
		told("as long as it stands", c.claim)
		w.j.Now += time.Second
		told("after that", "")
		w.t.Numbers.Alone()
		told("and it is not said again", "")
		say(c.says, 3)
		told("said again", c.claim)
		say(proto.Reported{SeenTerm: 3}, 4)
		w.j.Now += claimStands + time.Second
		w.t.Numbers.Alone()
		if terms, _ := w.t.Numbers.Voices(nil); len(terms) > 0 {
			t.Errorf("%s, taken back: terms %v", c.name, terms)
		}
	}
}

// Goal: that the store is an older copy is shown by two devices that hold the same
// decision, which it does not know; one alone is named, and nothing follows from it.
func TestOneDeviceContradictsNoStore(t *testing.T) {
	for _, other := range []proto.Generation{0, 8, 10} { // that the other device holds; the store knows 8
		w := newWorld()
		for i, gen := range []proto.Generation{10, other} {
			d := &w.t.Devices[i]
			w.t.Presence(d, &proto.Presence{Version: 1, Node: d.ID, Session: 7, Online: true})
			w.t.Reported(d, &proto.Reported{Version: 1, Node: d.ID, Session: 7, Seq: 1, Term: 3, Generation: gen}, false)
			d.Want = Target{Decided: &Decided{Term: 3, Gen: 8}}
		}
		both := other == 10
		w.t.Numbers.Decided = 8
		if got := w.t.Numbers.Contradicted(); got != both {
			t.Errorf("the other holds %d: %t", other, got)
		}
		if got := w.t.Numbers.Claims(&w.t.Devices[0]); strings.Contains(got, "holds generation 10, the store's last is 8") == both {
			t.Errorf("the other holds %d: %q", other, got)
		}
	}
}
