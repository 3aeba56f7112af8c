package journal

import (
	"fmt"
	"math"
	"time"

	"ringlight/proto"
)

// Never is the deadline of a machine that waits for nothing.
const Never = time.Duration(math.MaxInt64)

// commandTTLMillis is how long a command holds. chosen: none waits for a lost
// broker.
const commandTTLMillis = 10_000

// ActionKind says what an Action asks for.
type ActionKind uint8

const (
	Send    ActionKind = iota + 1 // Packet, Publish
	Persist                       // Records, in one transaction, in order; answer with Persisted
	Log                           // Line, for the shell's log
	Exit                          // Reason; stop with exit code 1
)

// Level of a log line.
type Level uint8

const (
	Info  Level = iota // a state changed
	Warn               // degraded
	Error              // needs a person
)

// Line is one entry for the shell's log: a constant message and what it is
// about. Fields that do not apply are zero, Node is -1.
type Line struct {
	Level      Level
	Message    string
	Rule       string // which rule decided
	Node       int64
	Ring       proto.RingID
	Generation proto.Generation
	Text       string
	Term       proto.Term // the planner's own; 0: it has none yet
	Corr       proto.Corr // of the operator's request that it comes of
}

// Action is one thing the planner asks of its shell, in order.
type Action struct {
	Kind    ActionKind
	Packet  proto.Packet
	Persist uint64 // number of a Persist action
	Records []Record
	Line    Line
	Reason  string
}

// Outbox is what a step asks for so far, and what everything that is sent
// carries.
type Outbox struct {
	Now     time.Duration // of the step, monotonic
	Wall    uint64        // of the step, milliseconds, for people
	Topics  proto.Topics
	Planner uint64
	Life    uint64 // of the planner, drawn at its start
	Layout  uint64 // fingerprint of the fabric's description
	Term    proto.Term
	Asked   proto.Corr // of the operator's request that is being answered
	Beat    uint64     // number of the planner's last sign of life
	LinkUp  bool
	Stood   time.Duration // when it last ended to stand still for long, 0: it did not
	// Mute: it draws a picture for those who look on. Nothing is stored or logged, and
	// nobody but they and other planners is told anything.
	Mute bool

	out      []Action
	commands uint64 // given out
	persists uint64 // Persist actions given out
}

// Begin starts a step that appends to out.
func (o *Outbox) Begin(now time.Duration, wall uint64, out []Action) {
	o.Now, o.Wall, o.out = now, wall, out
}

// End gives what the step asked for.
func (o *Outbox) End() []Action {
	out := o.out
	o.out = nil
	return out
}

// Exit asks the shell to stop.
func (o *Outbox) Exit(reason string) { o.out = append(o.out, Action{Kind: Exit, Reason: reason}) }

// Line tells the shell's log alone.
func (o *Outbox) Line(l Line) {
	if o.Mute {
		return
	}
	l.Term, l.Corr = o.Term, o.Asked
	o.out = append(o.out, Action{Kind: Log, Line: l})
}

// Persist puts records into the store; the number comes back when they are on
// disk.
func (o *Outbox) Persist(records ...Record) uint64 {
	o.persists++
	if o.Mute {
		return o.persists
	}
	o.out = append(o.out, Action{Kind: Persist, Persist: o.persists, Records: records})
	return o.persists
}

// Send publishes a message. What we encode is always valid; a message that is
// not is a broken invariant of ours.
func (o *Outbox) Send(topic string, kind proto.TopicKind, msg any) {
	payload, err := proto.Encode(msg)
	if err != nil {
		panic("planner: own message is refused: " + err.Error())
	}
	o.SendRaw(topic, kind, payload)
}

// SendRaw publishes what is encoded already.
func (o *Outbox) SendRaw(topic string, kind proto.TopicKind, payload []byte) {
	if o.Mute && kind != proto.TopicReply {
		return
	}
	o.SendPacket(proto.Packet{Kind: proto.Publish, Topic: topic, Payload: payload, QoS: kind.QoS(), Retain: kind.Retain()})
}

// SendPacket publishes a packet as it is.
func (o *Outbox) SendPacket(p proto.Packet) { o.out = append(o.out, Action{Kind: Send, Packet: p}) }

// Command sends a command to one life of an agent and returns its correlation.
func (o *Outbox) Command(id proto.NodeID, session proto.Session, c proto.Command) proto.Corr {
	o.commands++
	seed := fmt.Appendf(nil, "%d/%d/%d/%d", o.Planner, o.Life, o.Term, o.commands)
	c.Version, c.Node, c.Term, c.Life, c.Session = proto.Version, id, o.Term, o.Life, session
	c.Beat = o.Beat
	c.Corr, c.TTLMillis = proto.Corr(proto.DigestOf(seed)), commandTTLMillis
	o.Send(o.Topics.Command(id), proto.TopicCommand, &c)
	return c.Corr
}
