package proto

import (
	"strconv"
	"strings"
)

// TopicKind is what a topic carries.
type TopicKind uint8

const (
	TopicPlanner  TopicKind = iota + 1 // PlannerState
	TopicDesired                       // Desired
	TopicCommand                       // Command
	TopicDecision                      // Decision
	TopicAck                           // Ack
	TopicReported                      // Reported
	TopicPresence                      // Presence
	TopicHealth                        // Health
	TopicEvent                         // Event
	TopicRequest                       // OpRequest
	TopicReply                         // OpReply
	TopicTrust                         // Trust, always sealed
	TopicCSR                           // CertRequest of a node for another key, sealed by both
	TopicCRT                           // CertAnswer to a node, always sealed
	TopicEnrolCSR                      // CertRequest of the holder of a token, sealed by it and the new key
	TopicEnrolCRT                      // CertAnswer to the holder of a token, always sealed
)

var topicNames = [...]string{"none", "planner/state", "desired", "cmd", "decision", "ack",
	"reported", "presence", "health", "event", "req", "rep", "trust", "csr", "crt", "csr", "crt"}

func (k TopicKind) String() string { return NameOf(topicNames[:], uint8(k)) }

// Retain reports whether the broker keeps the last message of the topic for
// those who come later. What it keeps is a cache, never the truth.
func (k TopicKind) Retain() bool {
	switch k {
	case TopicPlanner, TopicDesired, TopicDecision, TopicReported, TopicPresence, TopicTrust, TopicCRT:
		return true
	}
	return false
}

// QoS of the topic's publications and subscriptions.
func (k TopicKind) QoS() byte {
	if k == TopicHealth {
		return 0
	}
	return 1
}

// ofNode lists the topics below ocs/v1/{fabric}/n/{node}.
func (k TopicKind) ofNode() bool {
	switch k {
	case TopicDesired, TopicCommand, TopicAck, TopicReported, TopicPresence, TopicHealth, TopicEvent, TopicCSR, TopicCRT:
		return true
	}
	return false
}

func (k TopicKind) ofEnrolment() bool { return k == TopicEnrolCSR || k == TopicEnrolCRT }

// Nested reports whether what is in a message's seal may be sealed again: by a new
// key, or by a former root.
func (k TopicKind) Nested() bool { return k == TopicTrust || k == TopicCSR || k == TopicEnrolCSR }

const topicRoot = "ocs/v1/"

// AnyFabric in Topics.Fabric builds filters that match every fabric.
const AnyFabric = "+"

// Topics builds the topics of one fabric.
type Topics struct{ Fabric string }

func (t Topics) node(n NodeID, k TopicKind) string {
	return topicRoot + t.Fabric + "/n/" + strconv.FormatUint(uint64(n), 10) + "/" + topicNames[k]
}

// Enrol is a topic for the holder of a node's token.
func (t Topics) Enrol(n NodeID, k TopicKind) string {
	return topicRoot + t.Fabric + "/enrol/" + strconv.FormatUint(uint64(n), 10) + "/" + topicNames[k]
}

func (t Topics) CSR(n NodeID) string { return t.node(n, TopicCSR) }
func (t Topics) CRT(n NodeID) string { return t.node(n, TopicCRT) }

// EveryEnrolment is the filter for one topic of all holders of tokens.
func (t Topics) EveryEnrolment(k TopicKind) string {
	return topicRoot + t.Fabric + "/enrol/+/" + topicNames[k]
}

func (t Topics) Planner() string          { return topicRoot + t.Fabric + "/planner/state" }
func (t Topics) Trust() string            { return topicRoot + t.Fabric + "/trust" }
func (t Topics) Desired(n NodeID) string  { return t.node(n, TopicDesired) }
func (t Topics) Command(n NodeID) string  { return t.node(n, TopicCommand) }
func (t Topics) Ack(n NodeID) string      { return t.node(n, TopicAck) }
func (t Topics) Reported(n NodeID) string { return t.node(n, TopicReported) }
func (t Topics) Presence(n NodeID) string { return t.node(n, TopicPresence) }
func (t Topics) Health(n NodeID) string   { return t.node(n, TopicHealth) }
func (t Topics) Event(n NodeID) string    { return t.node(n, TopicEvent) }
func (t Topics) Decision(r RingID) string {
	return topicRoot + t.Fabric + "/ring/" + strconv.FormatUint(uint64(r), 10) + "/decision"
}

// Request and Reply of one operator's client.
func (t Topics) Request(client string) string { return topicRoot + t.Fabric + "/op/" + client + "/req" }
func (t Topics) Reply(client string) string   { return topicRoot + t.Fabric + "/op/" + client + "/rep" }

// EveryNode is the filter for one topic of all nodes.
func (t Topics) EveryNode(k TopicKind) string {
	if !k.ofNode() {
		panic("proto: " + k.String() + " is not a topic of a node")
	}
	return topicRoot + t.Fabric + "/n/+/" + topicNames[k]
}

// EveryRequest is the filter for the requests of all operators, EveryDecision
// for the decisions of all rings.
func (t Topics) EveryRequest() string  { return topicRoot + t.Fabric + "/op/+/req" }
func (t Topics) EveryDecision() string { return topicRoot + t.Fabric + "/ring/+/decision" }

// Of a node that publishes or listens, the client id.
func (t Topics) NodeClient(n NodeID) string {
	return t.Fabric + "-n" + strconv.FormatUint(uint64(n), 10)
}

// PlannerClient is the client id of a planner.
func (t Topics) PlannerClient(planner uint64) string {
	return t.Fabric + "-planner-" + strconv.FormatUint(planner, 10)
}

// Topic is a parsed topic. Only the parts that its kind has are set.
type Topic struct {
	Fabric string
	Kind   TopicKind
	Node   NodeID
	Ring   RingID
	Client string
}

// String builds the topic again.
func (t Topic) String() string {
	b := Topics{t.Fabric}
	switch {
	case t.Kind == TopicPlanner:
		return b.Planner()
	case t.Kind == TopicTrust:
		return b.Trust()
	case t.Kind == TopicDecision:
		return b.Decision(t.Ring)
	case t.Kind == TopicRequest:
		return b.Request(t.Client)
	case t.Kind == TopicReply:
		return b.Reply(t.Client)
	case t.Kind.ofEnrolment():
		return b.Enrol(t.Node, t.Kind)
	case t.Kind.ofNode():
		return b.node(t.Node, t.Kind)
	}
	return t.Kind.String()
}

// ParseTopic reads a topic, strictly: only what a builder above can have made
// is accepted, no wildcards, no leading zeros, names as CheckName wants them.
func ParseTopic(s string) (Topic, error) {
	bad := func(reason string) (Topic, error) {
		return Topic{}, &Error{Code: Malformed, Field: "topic", Reason: Clip(strconv.Quote(s) + ": " + reason)}
	}
	rest, ok := strings.CutPrefix(s, topicRoot)
	if !ok {
		major, _, more := strings.Cut(strings.TrimPrefix(s, "ocs/v"), "/")
		if _, isNumber := parseID(major); isNumber && more {
			return Topic{}, &Error{Code: WrongVersion, Field: "topic", Limit: topicRoot, Reason: Clip(strconv.Quote(s))}
		}
		return bad("want " + topicRoot + "...")
	}
	var part [5]string
	n := 0
	for more := true; more; n++ {
		if n == len(part) {
			return bad("too many levels")
		}
		part[n], rest, more = strings.Cut(rest, "/")
	}
	t := Topic{Fabric: part[0]}
	if err := CheckName("fabric", t.Fabric); err != nil {
		return bad(err.Error())
	}
	if n == 3 && part[1] == "planner" && part[2] == "state" {
		t.Kind = TopicPlanner
		return t, nil
	}
	if n == 2 && part[1] == "trust" {
		t.Kind = TopicTrust
		return t, nil
	}
	if n != 4 {
		return bad("unknown form")
	}
	switch part[1] {
	case "n":
		id, ok := parseID(part[2])
		if !ok {
			return bad("node is not a decimal number below 2^32")
		}
		t.Node = NodeID(id)
		for k := TopicPlanner; k <= TopicCRT; k++ {
			if k.ofNode() && topicNames[k] == part[3] {
				t.Kind = k
				return t, nil
			}
		}
	case "ring":
		id, ok := parseID(part[2])
		if !ok {
			return bad("ring is not a decimal number below 2^32")
		}
		t.Ring = RingID(id)
		if part[3] == "decision" {
			t.Kind = TopicDecision
			return t, nil
		}
	case "enrol":
		id, ok := parseID(part[2])
		if !ok {
			return bad("node is not a decimal number below 2^32")
		}
		t.Node = NodeID(id)
		for k := TopicEnrolCSR; k <= TopicEnrolCRT; k++ {
			if topicNames[k] == part[3] {
				t.Kind = k
				return t, nil
			}
		}
	case "op":
		if err := CheckName("client", part[2]); err != nil {
			return bad(err.Error())
		}
		t.Client = part[2]
		switch part[3] {
		case "req":
			t.Kind = TopicRequest
			return t, nil
		case "rep":
			t.Kind = TopicReply
			return t, nil
		}
	}
	return bad("unknown form")
}

func parseID(s string) (uint32, bool) {
	if s == "" || len(s) > 1 && s[0] == '0' || s[0] == '+' {
		return 0, false
	}
	id, err := strconv.ParseUint(s, 10, 32)
	return uint32(id), err == nil
}

// CheckName checks a fabric's or client's name: 1 to MaxName of a-z, 0-9 and
// the hyphen, so that it can stand in a topic of any broker.
func CheckName(field, s string) error {
	const limit = "1 to 64 of a-z 0-9 -"
	if s == "" || len(s) > MaxName {
		return Wrong(field, limit, "%d characters", len(s))
	}
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return Wrong(field, limit, "%q", s)
		}
	}
	return nil
}
