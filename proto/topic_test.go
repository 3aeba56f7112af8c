package proto

import (
	"errors"
	"strings"
	"testing"
)

// Every topic a builder makes is parsed back to its parts.
func TestTopicsParseBack(t *testing.T) {
	b := Topics{"f1"}
	for _, c := range []struct {
		topic string
		want  Topic
		text  string
	}{
		{b.Planner(), Topic{Fabric: "f1", Kind: TopicPlanner}, "ocs/v1/f1/planner/state"},
		{b.Desired(0), Topic{Fabric: "f1", Kind: TopicDesired}, "ocs/v1/f1/n/0/desired"},
		{b.Command(63), Topic{Fabric: "f1", Kind: TopicCommand, Node: 63}, "ocs/v1/f1/n/63/cmd"},
		{b.Ack(63), Topic{Fabric: "f1", Kind: TopicAck, Node: 63}, "ocs/v1/f1/n/63/ack"},
		{b.Reported(63), Topic{Fabric: "f1", Kind: TopicReported, Node: 63}, "ocs/v1/f1/n/63/reported"},
		{b.Presence(63), Topic{Fabric: "f1", Kind: TopicPresence, Node: 63}, "ocs/v1/f1/n/63/presence"},
		{b.Health(63), Topic{Fabric: "f1", Kind: TopicHealth, Node: 63}, "ocs/v1/f1/n/63/health"},
		{b.Event(4294967295), Topic{Fabric: "f1", Kind: TopicEvent, Node: 4294967295}, "ocs/v1/f1/n/4294967295/event"},
		{b.Decision(7), Topic{Fabric: "f1", Kind: TopicDecision, Ring: 7}, "ocs/v1/f1/ring/7/decision"},
		{b.Request("ctl-9"), Topic{Fabric: "f1", Kind: TopicRequest, Client: "ctl-9"}, "ocs/v1/f1/op/ctl-9/req"},
		{b.Trust(), Topic{Fabric: "f1", Kind: TopicTrust}, "ocs/v1/f1/trust"},
		{b.CSR(7), Topic{Fabric: "f1", Kind: TopicCSR, Node: 7}, "ocs/v1/f1/n/7/csr"},
		{b.CRT(7), Topic{Fabric: "f1", Kind: TopicCRT, Node: 7}, "ocs/v1/f1/n/7/crt"},
		{b.Enrol(7, TopicEnrolCSR), Topic{Fabric: "f1", Kind: TopicEnrolCSR, Node: 7}, "ocs/v1/f1/enrol/7/csr"},
		{b.Enrol(7, TopicEnrolCRT), Topic{Fabric: "f1", Kind: TopicEnrolCRT, Node: 7}, "ocs/v1/f1/enrol/7/crt"},
		{b.Reply("ctl-9"), Topic{Fabric: "f1", Kind: TopicReply, Client: "ctl-9"}, "ocs/v1/f1/op/ctl-9/rep"},
	} {
		got, err := ParseTopic(c.topic)
		if c.topic != c.text || err != nil || got != c.want || got.String() != c.text {
			t.Errorf("%s: %+v, %v, want %+v (%s)", c.topic, got, err, c.want, c.text)
		}
	}
	if b.EveryNode(TopicAck) != "ocs/v1/f1/n/+/ack" || b.EveryRequest() != "ocs/v1/f1/op/+/req" ||
		b.EveryDecision() != "ocs/v1/f1/ring/+/decision" || (Topics{AnyFabric}).EveryNode(TopicPresence) != "ocs/v1/+/n/+/presence" {
		t.Error("filters")
	}
	if b.NodeClient(3) != "f1-n3" || b.PlannerClient(12) != "f1-planner-12" {
		t.Error("client ids")
	}
}

func TestBadTopicsAreRefused(t *testing.T) {
	for s, code := range map[string]Code{ // any order: the cases are independent
		"":                           Malformed,
		"ocs/v1":                     Malformed,
		"ocs/v2/f1/n/1/desired":      WrongVersion,
		"ocs/v1/f1/n/01/desired":     Malformed,
		"ocs/v1/f1/n/-1/desired":     Malformed,
		"ocs/v1/f1/n/+1/desired":     Malformed,
		"ocs/v1/f1/n//desired":       Malformed,
		"ocs/v1/f1/n/+/desired":      Malformed,
		"ocs/v1/f1/n/4294967296/ack": Malformed,
		"ocs/v1/f1/n/1/desired/x":    Malformed,
		"ocs/v1/f1/n/1/decision":     Malformed,
		"ocs/v1/f1/n/1/req":          Malformed,
		"ocs/v1/F1/n/1/ack":          Malformed,
		"ocs/v1//n/1/ack":            Malformed,
		"ocs/v1/f1/op/a.b/req":       Malformed,
		"ocs/v1/f1/planner":          Malformed,
		"ocs/v1/f1/trust/x":          Malformed,
		"ocs/v1/f1/planner/state/":   Malformed,
		"ocs/v1/f1/ring/1/desired":   Malformed,
		"ocs/v1/" + strings.Repeat("a", 65) + "/planner/state": Malformed,
	} {
		if _, err := ParseTopic(s); !errors.Is(err, &Error{Code: code}) && AsError(err).Code != code {
			t.Errorf("%q: %v, want %v", s, err, code)
		}
	}
}

// Presence and desired state stay at the broker for those who come later;
// commands never do, or an old one would act on a new life.
func TestWhatTheBrokerKeeps(t *testing.T) {
	for k := TopicPlanner; k <= TopicEnrolCRT; k++ {
		want := k == TopicPlanner || k == TopicDesired || k == TopicDecision || k == TopicReported || k == TopicPresence || k == TopicTrust || k == TopicCRT
		if k.Retain() != want {
			t.Errorf("%v: retain %v", k, k.Retain())
		}
		if qos := k.QoS(); (qos == 0) != (k == TopicHealth) || qos > 1 {
			t.Errorf("%v: QoS %d", k, qos)
		}
	}
}
