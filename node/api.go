package node

import (
	"math"
	"time"

	"ringlight/proto"
)

// Never is the time of a timer that is not running.
const Never = time.Duration(math.MaxInt64)

// Config is what a node cannot learn from anyone.
type Config struct {
	ID      proto.NodeID
	Bundles int
}

// EventKind names what a Step is told.
type EventKind uint8

const (
	Tick       EventKind = iota // time has passed; due timers run after every other kind too
	Adopt                       // once, first: what the hardware was found to do (Lits)
	Light                       // the filtered light of Bundle, Path is now Lit
	Switched                    // Bundle has settled on Path; of a cross-connect: every circuit of the last Connect has, or has failed
	PathFailed                  // own optics of Bundle did not do Path, or are too hot (Module, Lane, Text)
	PathOK                      // own optics of Bundle are well again: remediated
	Ready                       // Bundle can switch: calibrated, codes staged
	Unready                     // Bundle cannot switch for now: being calibrated, or its bus or chips do not answer (Text)
	Stage                       // a desired state (Desired, Digest)
	Decide                      // a decision (Decision)
	DropStaged                  // forget the staged generation; Term is the sender's
	HeardTerm                   // a live planner spoke in Term
	HostFault                   // the host says its GPUs are gone (Text)
	HostOK                      // the host is well again
	Drain                       // an operator takes the node out
	Undrain                     //
	Degrade                     // signal degrade of Bundle, Path: Lit = it has begun
	Request                     // an operator's Request for Side: to Bundle, Path; see Refuses
	Circuit                     // of a cross-connect: how Circuits stand now (Expected, Text of the first)
	Hold                        // of a cross-connect: an operator's Override of Port of Array
	ByHand                      // of a cross-connect: somebody at the board changed it to Circuits, no longer what was planned
)

// Event is one thing that happened, at a time of the agent's monotonic clock.
// The machine keeps no reference to Lits; it keeps Desired, which must not be
// changed afterwards.
type Event struct {
	At       time.Duration
	Kind     EventKind
	Bundle   proto.BundleID
	Path     proto.Path
	Lit      bool
	Noted    time.Duration // of Light: when the hardware noted it; 0: unknown
	Lits     []BundleLight
	Desired  *proto.Desired
	Digest   proto.Digest // of the raw bytes of Desired
	Decision *proto.Decision
	Term     proto.Term
	Life     uint64 // of the planner that spoke in Term; 0: it does not say
	Module   uint8
	Lane     uint8
	Text     string
	Side     proto.Side
	Request  proto.Request
	// Of a cross-connect. Adopt and Ready have all circuits that the hardware carries;
	// Lit says that light passes elsewhere too, Text that it cannot be read.
	Circuits []proto.CircuitReport
	Expected proto.MilliDBm // loss that the factory measured
	Array    uint8          // side of a cross-connect, 0 = A
	Port     uint16
	Override proto.Override
	Stays    bool // of ByHand: what is new stays until a plan wants its ports
}

// BoardPatience is how long a board may say nothing before it counts as broken: a node's
// or a switch's at its start, a node's that was asked to move light. One that is broken
// says so sooner, by an error, after three tries of some 25 ms; one that says nothing is
// late, as on a machine that is busy. To take it for lost would only ask more light of
// it, and void what is planned. chosen: 3,000 boards simulated by one thread beside 20
// busy programs were up to 2 s late, 16 s where all of them moved light at once.
const BoardPatience = 20 * time.Second

// BundleLight is one bundle as the hardware was found at start.
type BundleLight struct {
	Bundle proto.BundleID
	Path   proto.Path // the path it is on
	Lit    uint8      // bit p: path p has light
	Ready  bool       // it can switch now
	Unread bool       // nothing was heard of it yet but its light: the journal says where it was
}

// ActionKind names what a Step asks for.
type ActionKind uint8

const (
	Select  ActionKind = iota // drive Bundle to Path; a later Select wins over one under way
	Note                      // an event to queue for the planner
	Answer                    // an acknowledgement to send; after a Save of the same Step only when that is on disk
	Save                      // State changed: persist it
	Watch                     // follow the decision topic of Ring
	Unwatch                   // no more
	Remedy                    // try failed optics of Bundle again, by Remedy; PathOK or PathFailed tells how it went
	Connect                   // of a cross-connect: make Change, but not before a Save of the same Step is on disk
)

var actionKindNames = [...]string{"select", "note", "answer", "save", "watch", "unwatch", "remedy", "connect"}

func (k ActionKind) String() string { return nameOf(actionKindNames[:], uint8(k)) }

func nameOf(names []string, code uint8) string {
	if int(code) < len(names) {
		return names[code]
	}
	return "unknown"
}

// Action is one thing to do. The order of actions is part of the contract.
type Action struct {
	Kind   ActionKind
	Bundle proto.BundleID
	Path   proto.Path
	Cause  proto.Cause
	Note   proto.Event // without Session, Seq and Ledger
	Stamps Stamps      // with a Note of EvSwitched or EvLightFound; else all zero
	Ack    proto.Ack   // without Session
	Ring   proto.RingID
	Remedy Remedies
	Change *Change
}

// Change is what a cross-connect is to do to its circuits, in one act.
type Change struct {
	Remove []proto.Circuit // first
	Create []proto.Circuit // then; one that is there already has failed and is tried again
	Again  bool            // of no plan: what failed is tried again
}

// Stamps are the moments of one move that the machine saw; see the package
// comment for the code that turns them into a proto.Ledger.
type Stamps struct {
	Lost      time.Duration // the loss was handed in, or the plan committed
	Decided   time.Duration // the first Select went out
	Settled   time.Duration // the first Switched came back
	Confirmed time.Duration // light of the candidate that won
}

// State is what must survive a crash.
type State struct {
	SeenTerm  proto.Term     `cbor:"1,keyasint"`
	Applied   *Held          `cbor:"2,keyasint"` // nil: never applied any
	Staged    *Held          `cbor:"3,keyasint"` // nil: none
	BypassSeq uint64         `cbor:"4,keyasint"`
	Reasons   uint8          `cbor:"5,keyasint"` // why the node is out of service, see state.go
	Bundles   []BundleRecord `cbor:"6,keyasint"`
	// Requests in force, by side; absent when there are none.
	Requests []RequestRecord `cbor:"7,keyasint,omitempty"`
	// Held are the ports of a cross-connect that an operator holds off.
	Held []HeldPort `cbor:"8,keyasint,omitempty" json:",omitempty"`
	// Moving says that a cross-connect is not known to carry what it applied: it
	// may be in the middle of that, or has lost it.
	Moving bool `cbor:"9,keyasint,omitempty" json:",omitempty"`
	// Failed are the bundles of a node whose own optics failed: bit b, bundle b.
	Failed uint16 `cbor:"10,keyasint,omitempty" json:",omitempty"`
	// SeenLife is the life of the planner that SeenTerm is of.
	SeenLife uint64 `cbor:"11,keyasint,omitempty" max:"18446744073709551615" json:",omitempty"`
	// ByHand are the circuits of a cross-connect that are an operator's.
	ByHand []proto.Circuit `cbor:"12,keyasint,omitempty" json:",omitempty"`
}

// HeldPort is a port of a cross-connect under an operator's override.
type HeldPort struct {
	_        struct{} `cbor:",toarray"`
	Array    uint8    // 0 = side A
	Port     uint16
	Override proto.Override
}

// Held is a desired state with the digest of its raw bytes.
type Held struct {
	Desired proto.Desired `cbor:"1,keyasint"`
	Digest  proto.Digest  `cbor:"2,keyasint"`
}

// BundleRecord is what the journal knows of one bundle.
type BundleRecord struct {
	_     struct{} `cbor:",toarray"`
	Path  proto.Path
	Flaps uint32
}
