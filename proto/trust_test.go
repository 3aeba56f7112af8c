package proto

import (
	"errors"
	"strings"
	"testing"
)

func testTrust() Trust {
	return Trust{Version: Version, Fabric: "f1", Edition: 1, Root: PublicKey{9}, Keys: []TrustedKey{
		{Public: PublicKey{1}, Name: "f1/planner/a", Role: RolePlanner}, {Public: PublicKey{2}, Name: "f1/op/alice", Role: RoleOperate}}}
}

// Goal: a trust document that says something else than it seems to is refused, by
// field. Method: one thing wrong at a time.
func TestWrongTrustIsRefused(t *testing.T) {
	for field, spoil := range map[string]func(*Trust){ // any order: each begins anew
		"fabric":            func(m *Trust) { m.Fabric = strings.Repeat("f", MaxTrustFabric+1) },
		"edition":           func(m *Trust) { m.Edition = 0 },
		"root":              func(m *Trust) { m.Root = PublicKey{} },
		"keys[1].public":    func(m *Trust) { m.Keys[1].Public = m.Keys[0].Public },
		"keys[0].public":    func(m *Trust) { m.Keys[0].Public = m.Root }, // or who holds it could write trust
		"keys[0].role":      func(m *Trust) { m.Keys[0].Role = RoleAdmin },
		"keys[1].role":      func(m *Trust) { m.Keys[1].Role = RolePlanner },
		"keys[1].name":      func(m *Trust) { m.Keys[1].Name = "f2/op/alice" },
		"issuers[0].public": func(m *Trust) { m.Issuers = []PublicKey{m.Keys[0].Public} },
		"ended[0].edition":  func(m *Trust) { m.Ended = []EndedKeys{{7, m.Edition + 1}} },
		"renew":             func(m *Trust) { m.Renew = m.Edition + 1 },
		"keys[2].role":      func(m *Trust) { m.Keys = append(m.Keys, TrustedKey{PublicKey{7}, "f1/enrol/7", RoleView}) },
		"node_keys":         func(m *Trust) { m.NodeKeys = 1<<20 + 1 },
	} {
		m := testTrust()
		spoil(&m)
		var e *Error
		if err := m.Validate(); !errors.As(err, &e) || e.Field != field || e.Code != Invalid {
			t.Errorf("%s: %v", field, err)
		}
	}
	for _, name := range []string{"", "f1", "f1/op", "f1/op/", "f1/op/Alice", "f1/x/7", "f1/n/07", "f1/n/x", "f1/n/7/8", "F1/n/7", "f1/op/" + strings.Repeat("a", 60), strings.Repeat("f", 49) + "/n/7"} {
		if h, err := ParseHolder(name); err == nil {
			t.Errorf("%q is %+v", name, h)
		}
	}
}

// Goal: nobody speaks for another. Method: every kind of holder on every topic.
func TestWhoSpeaksWhere(t *testing.T) {
	f1, f2 := Topics{"f1"}, Topics{"f2"}
	holders := map[string]Role{"f1/n/7": RoleNode, "f1/planner/a": RolePlanner, "f1/op/alice": RoleView}
	may := map[string]string{}
	for _, k := range []TopicKind{TopicAck, TopicReported, TopicPresence, TopicHealth, TopicEvent} {
		may[f1.node(7, k)] = "f1/n/7"
	}
	for _, s := range []string{f1.Planner(), f1.Desired(7), f1.Desired(8), f1.Command(7), f1.Decision(1), f1.Reply("alice")} {
		may[s] = "f1/planner/a"
	}
	may[f1.Request("alice")] = "f1/op/alice"
	for _, s := range []string{f1.Ack(8), f1.Presence(8), f1.Request("bob"), f1.Trust(), f2.Ack(7), f2.Planner(), f2.Desired(7), f2.Request("alice")} {
		may[s] = ""
	}
	for s, who := range may { // any order: the cases are independent
		topic, err := ParseTopic(s)
		if err != nil {
			t.Fatal(err)
		}
		for name, role := range holders { // any order: likewise
			h, err := ParseHolder(name)
			if err != nil || h.String() != name {
				t.Fatal(h, err)
			}
			if got := h.Speaks(role, topic); got != (name == who) {
				t.Errorf("%s on %s: %v", name, s, got)
			}
		}
	}
}

// Goal: every question has the role that it takes; one of the future takes the
// highest. Method: all nouns, and one more.
func TestWhatAQuestionTakes(t *testing.T) {
	want := map[Noun]Role{NounConnect: RoleOperate, NounQualify: RoleOperate, NounDrain: RoleOperate, NounUndrain: RoleOperate, NounRequest: RoleOperate, NounHostFault: RoleOperate, NounHostOK: RoleOperate, NounClear: RoleOperate, NounQuarantine: RoleOperate, NounLift: RoleOperate, NounClearFibre: RoleOperate,
		NounAck: RoleOperate, NounApply: RoleAdmin, NounFlip: RoleAdmin, NounEdit: RoleAdmin, NounOffer: RoleAdmin, NounRollout: RoleAdmin, NounRolloutStop: RoleAdmin, NounSubmit: RoleAdmin, NounRelease: RoleAdmin, NounRouted: RoleAdmin, NounResumed: RoleAdmin, NounResumed + 1: RoleAdmin}
	dry := map[Noun]Role{NounConnect: RoleOperate, NounDrain: RoleView, NounUndrain: RoleView, NounRequest: RoleView, NounHostFault: RoleOperate, NounHostOK: RoleOperate, NounClear: RoleOperate, NounLift: RoleOperate, NounClearFibre: RoleOperate,
		NounAck: RoleOperate, NounApply: RoleView, NounFlip: RoleView, NounEdit: RoleView, NounOffer: RoleAdmin, NounRolloutStop: RoleAdmin, NounSubmit: RoleAdmin, NounRelease: RoleAdmin, NounRouted: RoleAdmin, NounResumed: RoleAdmin, NounResumed + 1: RoleAdmin}
	for n := NounFabric; n <= NounResumed+1; n++ {
		role := func(list map[Noun]Role) Role {
			if r := list[n]; r != 0 {
				return r
			}
			return RoleView
		}
		for is, list := range map[bool]map[Noun]Role{false: want, true: dry} { // any order: both are looked at
			if got := (&OpRequest{Noun: n, DryRun: is}).Needs(); got != role(list) {
				t.Errorf("noun %d, dry %v: takes %v", n, is, got)
			}
		}
	}
}
