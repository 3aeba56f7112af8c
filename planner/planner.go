package planner

import (
	"math"
	"time"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

// Never is the deadline of a machine that waits for nothing.
const Never = time.Duration(math.MaxInt64)

// Config of a Planner; Start makes one from a store.
type Config struct {
	Fabric    *fabric.Fabric
	Store     State      // what the store holds
	Term      proto.Term // of this start, already in the store
	PlannerID uint64     // kept in the store
}

// EventKind says what an Event tells the planner.
type EventKind uint8

const (
	Tick      EventKind = iota + 1 // Next has come
	Packet                         // Packet.Kind Publish: a message came
	LinkUp                         // connected, every subscription granted
	LinkDown                       // the broker is out of reach
	Persisted                      // the records of Persist are on disk
)

// Event is one thing the planner is told. At is monotonic and alone decides;
// WallMillis is for people who read logs.
type Event struct {
	Kind       EventKind
	At         time.Duration
	WallMillis uint64
	Packet     proto.Packet // of a Packet event
	Persist    uint64       // of a Persisted event: the action's number
}

// ActionKind says what an Action asks for.
type ActionKind uint8

const (
	Send    ActionKind = iota + 1 // Packet, Publish
	Persist                       // Records, in one transaction; answer with Persisted
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
// about. Zero fields do not apply, but Node and Ring count where their Has is
// set.
type Line struct {
	Level      Level
	Message    string
	Rule       string // which rule decided
	HasNode    bool
	Node       proto.NodeID
	Ring       proto.RingID
	Generation proto.Generation
	Term       proto.Term
	Text       string
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

// Subscriptions are the topics that a planner's link subscribes, at QoS 1.
func Subscriptions(fabricName string) []string {
	return []string{
		"ocs/v1/" + fabricName + "/n/+/ack",
		"ocs/v1/" + fabricName + "/n/+/reported",
		"ocs/v1/" + fabricName + "/n/+/presence",
		"ocs/v1/" + fabricName + "/n/+/event",
		"ocs/v1/" + fabricName + "/planner/state",
		"ocs/v1/" + fabricName + "/op/+/req",
	}
}

// Planner is the machine. New makes one.
type Planner struct {
	cfg Config
}

// New makes a planner that waits for its link.
func New(cfg Config) *Planner { return &Planner{cfg: cfg} }

// Step takes one event and appends what is to be done.
func (p *Planner) Step(ev Event, out []Action) []Action { return out }

// Next is the monotonic time at which the planner wants a Tick.
func (p *Planner) Next() time.Duration { return Never }

// Overview tells where the planner stands.
func (p *Planner) Overview() Overview { return Overview{} }

// Rings are the planner's rings, by id.
func (p *Planner) Rings() []proto.RingStatus { return nil }

// Will is the planner's death note: the packet that its link registers.
func (p *Planner) Will() proto.Packet { return proto.Packet{} }
