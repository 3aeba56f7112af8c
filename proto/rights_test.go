package proto

import "testing"

// Goal: what each kind of holder may do on each kind of topic is a table; the names
// of others, wildcards beyond one's own and other fabrics are refused. Method: the
// table written a second time, as letters: p publish, r receive.
func TestRights(t *testing.T) {
	f1 := Topics{Fabric: "f1"}
	table := map[string][4]string{ // node 7, planner a, operator alice, a token for node 7
		f1.Desired(7): {"r", "p", ""}, f1.Command(7): {"r", "p", ""}, f1.Ack(7): {"p", "r", ""}, f1.Reported(7): {"p", "r", ""},
		f1.Presence(7): {"p", "r", "r"}, f1.Health(7): {"p", "r", ""}, f1.Event(7): {"p", "r", "r"},
		f1.Desired(8): {"", "p", ""}, f1.Command(8): {"", "p", ""}, f1.Ack(8): {"", "r", ""}, f1.Presence(8): {"", "r", "r"}, f1.Event(8): {"", "r", "r"},
		f1.Planner(): {"r", "pr", "r"}, f1.Decision(3): {"r", "p", ""}, f1.Trust(): {"r", "p", "", "r"},
		f1.CSR(7): {"p", "r", ""}, f1.CRT(7): {"r", "pr", ""}, f1.CSR(8): {"", "r", ""}, f1.CRT(8): {"", "pr", ""},
		f1.Enrol(7, TopicEnrolCSR): {"", "r", "", "p"}, f1.Enrol(7, TopicEnrolCRT): {"", "p", "", "r"}, f1.Enrol(8, TopicEnrolCSR): {"", "r"}, f1.Enrol(8, TopicEnrolCRT): {"", "p"},
		f1.Request("alice"): {"", "r", "p"}, f1.Reply("alice"): {"", "p", "r"}, f1.Request("bob"): {"", "r", ""}, f1.Reply("bob"): {"", "p", ""},
		f1.EveryNode(TopicAck): {"", "r", ""}, f1.EveryNode(TopicEvent): {"", "r", "r"}, f1.EveryRequest(): {"", "r", ""}, f1.EveryDecision(): {"r", "p", ""},
		"ocs/v1/f1/op/+/rep": {"", "p", ""}, "ocs/v1/f1/n/+/desired": {"", "p", ""},
		"#": {}, "ocs/#": {}, "ocs/v1/f1/#": {}, "ocs/v1/f1/n/7/#": {}, "ocs/v1/+/planner/state": {}, "ocs/v1/f2/planner/state": {}, "ocs/v1/f2/n/7/desired": {},
		"ocs/v1/f1/n/7": {}, "ocs/v1/f1/n/7/desired/x": {}, "$SYS/#": {}, "+/+/+/+/+/+": {}, "ocs/v1/f1/n/70/desired": {"", "p", ""},
	}
	for i, name := range []string{"f1/n/7", "f1/planner/a", "f1/op/alice", "f1/enrol/7"} {
		h, err := ParseHolder(name)
		if err != nil {
			t.Fatal(err)
		}
		for topic, want := range table { // any order: the cells are independent
			got := ""
			if h.Grants().Allow(true, topic) {
				got = "p"
			}
			if h.Grants().Allow(false, topic) {
				got += "r"
			}
			if got != want[i] {
				t.Errorf("%s on %s: %q, want %q", name, topic, got, want[i])
			}
		}
		for id, owner := range map[string]string{"f1-n7": "f1/n/7", "f1-n8": "", "f1-planner-99": "f1/planner/a", "f1-op-alice-3": "f1/op/alice", "f1-op-alice": "", "f1-op-bob-3": "", "": "", "f1/enrol/7": "f1/enrol/7", "f1/enrol/8": ""} { // any order: independent
			if h.OwnsClient(id) != (owner == name) {
				t.Errorf("%s as client %q: %v", name, id, !(owner == name))
			}
		}
	}
}
