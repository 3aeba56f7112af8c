package proto

// The messages of protocol major 1. Maps have integer keys; a key is never
// reused. Leaf records are arrays and never change. See schema.cddl.

// Version is the protocol's major number; a receiver refuses any other.
const Version = 1

// Digest is the first 16 bytes of a SHA-256.
type Digest [16]byte

// Corr pairs a reply with its request.
type Corr [16]byte

// Envelope bounds the detect and switch times of a set of bundles, in
// microseconds: largest and smallest detect time, largest and smallest switch
// time, and the skew between the first and the last laser of a dying node.
type Envelope struct {
	_               struct{} `cbor:",toarray"`
	DetectMaxMicros uint32
	DetectMinMicros uint32
	SwitchMaxMicros uint32
	SwitchMinMicros uint32
	SkewMicros      uint32
}

// Candidate is one way on for one side of a node, over one fibre.
type Candidate struct {
	_       struct{} `cbor:",toarray"`
	Bundle  BundleID
	Path    Path
	Peer    NodeID
	Others  bool // the peer has other candidates for its side of this gap
	Crossed bool // the fibre joins upper half to upper half
}

// RingAssignment is a node's place in one ring. Candidates are nearest first
// and hold ring members only; loopback is the last word and not listed.
type RingAssignment struct {
	Ring       RingID      `cbor:"1,keyasint"`
	Generation Generation  `cbor:"2,keyasint"` // that last touched the ring
	Position   uint16      `cbor:"3,keyasint"` // from the left end, from 0
	Size       uint16      `cbor:"4,keyasint"` // nodes in the ring
	Policy     Policy      `cbor:"5,keyasint"`
	Envelope   Envelope    `cbor:"6,keyasint"` // over the ring's members
	Left       []Candidate `cbor:"7,keyasint"`
	Right      []Candidate `cbor:"8,keyasint"`
	// Working candidate of each side as an index into Left and Right; ignored
	// for an empty list.
	LeftWorking  uint8 `cbor:"9,keyasint"`
	RightWorking uint8 `cbor:"10,keyasint"`
}

// Desired is the whole of what the planner wants of one node: never a delta.
// It is staged and takes effect by a Decision with the same term, generation
// and plan.
type Desired struct {
	Version    uint8            `cbor:"0,keyasint"`
	Node       NodeID           `cbor:"1,keyasint"`
	Term       Term             `cbor:"2,keyasint"`
	Generation Generation       `cbor:"3,keyasint"`
	Plan       Digest           `cbor:"4,keyasint"` // names the whole generation's plan
	Rings      []RingAssignment `cbor:"5,keyasint"` // at most 1; none: every bundle in loopback
	Decisions  []RingID         `cbor:"6,keyasint"` // rings on whose topics the decision comes
	BypassSeq  uint64           `cbor:"7,keyasint"` // the node's bypass count that the plan knows of
}

// Verdict of a decision.
type Verdict uint8

const (
	Commit Verdict = iota + 1
	Abort
)

// Decision settles a generation. All rings it touches commit or abort
// together; the per-ring topics only fan it out.
type Decision struct {
	Version    uint8      `cbor:"0,keyasint"`
	Ring       RingID     `cbor:"1,keyasint"`
	Term       Term       `cbor:"2,keyasint"`
	Generation Generation `cbor:"3,keyasint"`
	Plan       Digest     `cbor:"4,keyasint"`
	Verdict    Verdict    `cbor:"5,keyasint"`
}

// Verb of a Command.
type Verb uint8

const (
	VerbReannounce Verb = iota + 1 // send presence and reported again
	VerbEvents                     // answer with the last events
	VerbAbort                      // drop the staged generation
	VerbHostFault                  // the host's GPUs are gone
	VerbHostOK                     // the host is well again
	VerbDrain
	VerbUndrain
	VerbCalibrate // one bundle that carries nothing
	VerbAckEvents // the planner has every event up to and including Seq
)

// Command asks one life of one agent for one act, within a time to live
// counted from receipt. It is never retained.
type Command struct {
	Version   uint8    `cbor:"0,keyasint"`
	Node      NodeID   `cbor:"1,keyasint"`
	Term      Term     `cbor:"2,keyasint"`
	Session   Session  `cbor:"3,keyasint"`
	Corr      Corr     `cbor:"4,keyasint"`
	TTLMillis uint32   `cbor:"5,keyasint"`
	Verb      Verb     `cbor:"6,keyasint"`
	Bundle    BundleID `cbor:"7,keyasint"`
	Next      uint32   `cbor:"8,keyasint"` // page of an events answer
	Seq       uint64   `cbor:"9,keyasint"` // of VerbAckEvents
}

// Phase that an Ack answers.
type Phase uint8

const (
	PhasePrepare  Phase = iota + 1 // answers a Desired
	PhaseCommit                    // answers a Decision
	PhaseCommand                   // answers a Command
	PhaseProtocol                  // answers something that was not understood
)

// Code is the result of an Ack or a Reply. Codes are only ever added.
type Code uint8

const (
	OK             Code = iota
	Stale               // lower term or generation; Current* say what is in force
	Conflict            // equal term and generation with another plan, or an older bypass count
	Invalid             // understood, not acceptable; Field and Limit say why
	NotStaged           // a decision for something never prepared here
	Expired             // time to live over
	WrongSession        // for another life of this agent
	NotCalibrated       // a bundle of the plan has no calibration
	Busy                // try again later
	Unsupported         // unknown verb or feature
	Malformed           // not CBOR of the agreed form
	TooLarge            // over the size limit
	WrongVersion        // another protocol major
	WrongNode           // addressed to another node than its topic
	NotFound            // no such node, ring or bundle
	HardwareFailed      // the optics did not do it
	Duplicate           // already done; the answer is the first one's
)

// Ack is an agent's answer. Persisted state is on disk before it leaves.
type Ack struct {
	Version           uint8      `cbor:"0,keyasint"`
	Node              NodeID     `cbor:"1,keyasint"`
	Session           Session    `cbor:"2,keyasint"`
	Phase             Phase      `cbor:"3,keyasint"`
	Code              Code       `cbor:"4,keyasint"`
	Term              Term       `cbor:"5,keyasint"` // echoed
	Generation        Generation `cbor:"6,keyasint"` // echoed
	Plan              Digest     `cbor:"7,keyasint"` // echoed
	Corr              Corr       `cbor:"8,keyasint"` // echoed
	CurrentTerm       Term       `cbor:"9,keyasint"`
	CurrentGeneration Generation `cbor:"10,keyasint"`
	Field             string     `cbor:"11,keyasint,omitempty"`
	Limit             string     `cbor:"12,keyasint,omitempty"`
	Reason            string     `cbor:"13,keyasint,omitempty"`
	Events            []Event    `cbor:"14,keyasint,omitempty"`
	Next              uint32     `cbor:"15,keyasint,omitempty"` // next page, 0 = none
}

// Ledger splits one switch into microseconds that add up to its total, from
// the physical loss of light to confirmed light.
type Ledger struct {
	_             struct{} `cbor:",toarray"`
	DetectMicros  uint32
	HoldoffMicros uint32
	DecideMicros  uint32 // modelled on the virtual clock
	BusMicros     uint32
	SettleMicros  uint32
	ConfirmMicros uint32
}

// TotalMicros is the sum of the parts.
func (l Ledger) TotalMicros() uint32 {
	return l.DetectMicros + l.HoldoffMicros + l.DecideMicros + l.BusMicros + l.SettleMicros + l.ConfirmMicros
}

// Cause says why a bundle or side is as it is. Codes are only ever added.
type Cause uint8

const (
	CauseNone         Cause = iota
	CausePlan               // a committed generation
	CauseLightLost          // signal fail of the selected path
	CauseLateLight          // light of a candidate while closed
	CauseGoToLight          // light of a candidate while searching
	CauseProbe              // light of the probe path
	CauseRetry              // back to the lost candidate once more
	CauseNoCandidate        // search over, none answered
	CauseHostFault          // the host's GPUs are gone
	CauseHostReturned       //
	CauseOwnFault           // own transmitter, diode or heater
	CauseAdopted            // found so at start
	CauseOperator           // asked for by a person
	CauseColdStart          // dark since power-up
	CausePeerSilent         // peer banned
)

// EventKind names what happened; MessageID gives its registry name.
type EventKind uint8

const (
	EvLightLost       EventKind = iota + 1 // a selected path lost its light
	EvLightFound                           // a selected path has its light
	EvSwitched                             // a side moved; Ledger tells in what time
	EvRestored                             // steady light after a switch
	EvClosed                               // a side closed into loopback
	EvBanned                               // a candidate is not tried for now
	EvIsolated                             // the node took itself out
	EvReturned                             // the node asks to be let in again
	EvHostFault                            //
	EvHostOK                               //
	EvAdopted                              // light found at start differs from the journal
	EvApplied                              // a generation took effect
	EvRefused                              // a message was refused
	EvAlarm                                // raised or cleared, see Alarm and Resolved
	EvCalibrated                           //
	EvPathFailed                           // own optics did not follow
	EvBoundNotMet                          // the derived timers miss the 1 ms target
	EvSplitBrain                           // same generation, other plan
	EvStarted                              // the agent started
	EvLightUnselected                      // light appeared or went on a path not selected
)

// Severity of an event, in Redfish's words.
type Severity uint8

const (
	SeverityOK Severity = iota
	SeverityWarning
	SeverityCritical
)

// Event is one thing that happened on a node. Seq counts per node and never
// repeats over restarts. The agent sends it again until the planner says, by
// VerbAckEvents, that it has it; the planner drops what it has seen.
type Event struct {
	Version      uint8      `cbor:"0,keyasint"`
	Node         NodeID     `cbor:"1,keyasint"`
	Session      Session    `cbor:"2,keyasint"`
	Seq          uint64     `cbor:"3,keyasint"`
	Kind         EventKind  `cbor:"4,keyasint"`
	Severity     Severity   `cbor:"5,keyasint"`
	AtMicros     uint64     `cbor:"6,keyasint"` // uptime of the agent's clock
	Bundle       BundleID   `cbor:"7,keyasint"`
	Path         Path       `cbor:"8,keyasint"` // path it is about, or the new one
	FromPath     Path       `cbor:"9,keyasint"` // path before
	Side         Side       `cbor:"10,keyasint"`
	Ring         RingID     `cbor:"11,keyasint"`
	Peer         NodeID     `cbor:"12,keyasint"`
	Cause        Cause      `cbor:"13,keyasint"`
	Ledger       *Ledger    `cbor:"14,keyasint,omitempty"`
	Measured     MilliDBm   `cbor:"15,keyasint"`
	Expected     MilliDBm   `cbor:"16,keyasint"`
	Count        uint32     `cbor:"17,keyasint"` // merged occurrences, 1 for a single one
	FirstMicros  uint64     `cbor:"18,keyasint"`
	Resolved     bool       `cbor:"19,keyasint"`
	Module       uint8      `cbor:"20,keyasint"` // where it names one
	Lane         uint8      `cbor:"21,keyasint"`
	Text         string     `cbor:"22,keyasint,omitempty"`
	Generation   Generation `cbor:"23,keyasint"`
	SideBypassed bool       `cbor:"24,keyasint"` // the side stands on another candidate than planned
}

// BundleReport is the state of one bundle.
type BundleReport struct {
	Bundle      BundleID  `cbor:"1,keyasint"`
	Path        Path      `cbor:"2,keyasint"`
	State       PortState `cbor:"3,keyasint"`
	Override    Override  `cbor:"4,keyasint"`
	SinceMicros uint64    `cbor:"5,keyasint"`
	Cause       Cause     `cbor:"6,keyasint"`
	Expected    MilliDBm  `cbor:"7,keyasint"`
	Measured    MilliDBm  `cbor:"8,keyasint"`
	Lit         uint8     `cbor:"9,keyasint"`  // bit p: path p has light
	Flaps       uint32    `cbor:"10,keyasint"` // losses of the selected light, ever
	Calibration Digest    `cbor:"11,keyasint"` // zero: not calibrated
}

// SideReport is the state of one side.
type SideReport struct {
	Ring    RingID    `cbor:"1,keyasint"`
	Side    Side      `cbor:"2,keyasint"`
	State   SideState `cbor:"3,keyasint"`
	Request Request   `cbor:"4,keyasint"`
	Working uint8     `cbor:"5,keyasint"` // planned candidate
	Current int8      `cbor:"6,keyasint"` // candidate in use, -1 = none
	Peer    NodeID    `cbor:"7,keyasint"` // peer of the candidate in use
	Banned  uint8     `cbor:"8,keyasint"` // bit i: candidate i
}

// Alarm is a standing condition.
type Alarm struct {
	Kind        EventKind `cbor:"1,keyasint"`
	Severity    Severity  `cbor:"2,keyasint"`
	Bundle      BundleID  `cbor:"3,keyasint"`
	SinceMicros uint64    `cbor:"4,keyasint"`
	Text        string    `cbor:"5,keyasint,omitempty"`
}

// Reported is what a node is, retained, and coalesced over at least 200 ms.
type Reported struct {
	Version          uint8            `cbor:"0,keyasint"`
	Node             NodeID           `cbor:"1,keyasint"`
	Session          Session          `cbor:"2,keyasint"`
	Seq              uint64           `cbor:"3,keyasint"` // of this message, per session
	UptimeMicros     uint64           `cbor:"4,keyasint"`
	Mode             Mode             `cbor:"5,keyasint"`
	SeenTerm         Term             `cbor:"6,keyasint"` // highest term heard
	Term             Term             `cbor:"7,keyasint"` // of the applied generation
	Generation       Generation       `cbor:"8,keyasint"` // applied
	Plan             Digest           `cbor:"9,keyasint"`
	StagedTerm       Term             `cbor:"10,keyasint"`
	StagedGeneration Generation       `cbor:"11,keyasint"`
	StagedPlan       Digest           `cbor:"12,keyasint"`
	BypassSeq        uint64           `cbor:"13,keyasint"`
	Rings            []RingAssignment `cbor:"14,keyasint"` // as applied
	Bundles          []BundleReport   `cbor:"15,keyasint"`
	Sides            []SideReport     `cbor:"16,keyasint"`
	Alarms           []Alarm          `cbor:"17,keyasint"`
	Measured         Envelope         `cbor:"18,keyasint"` // over the node's own bundles
	LastEvent        uint64           `cbor:"19,keyasint"` // highest event sequence given out
	Dropped          uint64           `cbor:"20,keyasint"` // telemetry dropped, events never
	RefusedMessages  uint64           `cbor:"21,keyasint"` // messages refused
	UnknownKeys      uint64           `cbor:"22,keyasint"` // keys skipped
}

// Presence is an agent's birth, or its death note when Online is false: then
// only Version, Node and Session are set.
type Presence struct {
	Version       uint8      `cbor:"0,keyasint"`
	Node          NodeID     `cbor:"1,keyasint"`
	Session       Session    `cbor:"2,keyasint"`
	Online        bool       `cbor:"3,keyasint"`
	Boot          uint64     `cbor:"4,keyasint"`
	Software      string     `cbor:"5,keyasint,omitempty"`
	Minor         uint8      `cbor:"6,keyasint"`
	GPUs          uint8      `cbor:"7,keyasint"`
	Bundles       uint8      `cbor:"8,keyasint"`
	Modules       uint8      `cbor:"9,keyasint"` // per bundle
	Mode          Mode       `cbor:"10,keyasint"`
	SeenTerm      Term       `cbor:"11,keyasint"`
	Term          Term       `cbor:"12,keyasint"`
	Generation    Generation `cbor:"13,keyasint"`
	Plan          Digest     `cbor:"14,keyasint"`
	Measured      Envelope   `cbor:"15,keyasint"`
	UnsentEvents  uint32     `cbor:"16,keyasint"`
	TelemetryMask uint32     `cbor:"17,keyasint"` // sensors present
}

// Sensor names what a health sample measures.
type Sensor uint8

const (
	SensorCase      Sensor = iota + 1 // millikelvin
	SensorRail                        // microwatt
	SensorUpperPath                   // MilliDBm, half-sum of the selected path
	SensorLowerPath                   // MilliDBm
	SensorTxTap                       // MilliDBm
)

// Sample is one reading. A sensor that was never read is absent.
type Sample struct {
	_         struct{} `cbor:",toarray"`
	Bundle    BundleID
	Module    uint8
	Sensor    Sensor
	Value     int32
	AgeMillis uint32
}

// Health is a node's periodic telemetry; it is the first thing dropped.
type Health struct {
	Version uint8    `cbor:"0,keyasint"`
	Node    NodeID   `cbor:"1,keyasint"`
	Session Session  `cbor:"2,keyasint"`
	Seq     uint64   `cbor:"3,keyasint"`
	Samples []Sample `cbor:"4,keyasint"`
}

// PlannerState is the planner's sign of life. A retained one proves nothing.
type PlannerState struct {
	Version      uint8  `cbor:"0,keyasint"`
	Planner      uint64 `cbor:"1,keyasint"` // id kept in its store
	Online       bool   `cbor:"2,keyasint"`
	Term         Term   `cbor:"3,keyasint"`
	Seq          uint64 `cbor:"4,keyasint"` // beat number
	PeriodMillis uint32 `cbor:"5,keyasint"`
	Fabric       string `cbor:"6,keyasint,omitempty"`
}

// Noun of an operator's request.
type Noun uint8

const (
	NounFabric Noun = iota + 1
	NounNodes
	NounNode
	NounRings
	NounRing
	NounWhy
	NounEvents
	NounDrain
	NounUndrain
	NounHostFault
	NounHostOK
)

// OpRequest is an operator's question to the planner.
type OpRequest struct {
	Version   uint8  `cbor:"0,keyasint"`
	Corr      Corr   `cbor:"1,keyasint"`
	TTLMillis uint32 `cbor:"2,keyasint"`
	Noun      Noun   `cbor:"3,keyasint"`
	Node      NodeID `cbor:"4,keyasint"`
	Ring      RingID `cbor:"5,keyasint"`
	Bundle    int16  `cbor:"6,keyasint"` // -1: the whole node
	Page      uint64 `cbor:"7,keyasint"` // 0 = first; else Next of the page before
}

// RingStatus is the planner's view of one ring.
type RingStatus struct {
	Ring           RingID     `cbor:"1,keyasint"`
	Nodes          []NodeID   `cbor:"2,keyasint"`
	GPUs           uint32     `cbor:"3,keyasint"`
	State          RingState  `cbor:"4,keyasint"`
	Generation     Generation `cbor:"5,keyasint"`
	Links          uint16     `cbor:"6,keyasint"`
	LinksConfirmed uint16     `cbor:"7,keyasint"`
}

// NodeStatus is the planner's view of one node.
type NodeStatus struct {
	Node       NodeID     `cbor:"1,keyasint"`
	Online     bool       `cbor:"2,keyasint"`
	Mode       Mode       `cbor:"3,keyasint"`
	Usable     bool       `cbor:"4,keyasint"` // may carry a ring
	Ring       RingID     `cbor:"5,keyasint"` // 0 = none
	Want       Generation `cbor:"6,keyasint"`
	Generation Generation `cbor:"7,keyasint"`
	Reason     string     `cbor:"8,keyasint,omitempty"` // why not usable
	Reported   *Reported  `cbor:"9,keyasint,omitempty"` // only for a single node
}

// WhyLine is one link of a causal chain, earliest first.
type WhyLine struct {
	Seq      uint64     `cbor:"1,keyasint"` // planner's event number, 0 = a standing fact
	AtMillis uint64     `cbor:"2,keyasint"` // planner's wall clock, for people only
	Node     NodeID     `cbor:"3,keyasint"`
	Bundle   int16      `cbor:"4,keyasint"` // -1: the node
	Rule     string     `cbor:"5,keyasint"` // which rule decided
	Cause    Cause      `cbor:"6,keyasint"`
	Text     string     `cbor:"7,keyasint"`
	Measured MilliDBm   `cbor:"8,keyasint"`
	Expected MilliDBm   `cbor:"9,keyasint"`
	Gen      Generation `cbor:"10,keyasint"`
}

// FabricStatus is the planner's view of itself.
type FabricStatus struct {
	Name           string     `cbor:"1,keyasint"`
	Term           Term       `cbor:"2,keyasint"`
	Generation     Generation `cbor:"3,keyasint"`
	Nodes          uint32     `cbor:"4,keyasint"`
	GPUsPerNode    uint32     `cbor:"5,keyasint"`
	K              uint32     `cbor:"6,keyasint"`
	TP             uint32     `cbor:"7,keyasint"`
	Online         uint32     `cbor:"8,keyasint"`
	Pending        uint32     `cbor:"9,keyasint"` // nodes not yet where they should be
	EventsSeen     uint64     `cbor:"10,keyasint"`
	EventGaps      uint64     `cbor:"11,keyasint"`
	LinksTotal     uint32     `cbor:"12,keyasint"`
	LinksConfirmed uint32     `cbor:"13,keyasint"`
}

// LoggedEvent is an event with the planner's number for it.
type LoggedEvent struct {
	Seq      uint64 `cbor:"1,keyasint"`
	AtMillis uint64 `cbor:"2,keyasint"`
	Event    Event  `cbor:"3,keyasint"`
}

// OpReply answers an OpRequest, at most MaxPage items a page.
type OpReply struct {
	Version uint8         `cbor:"0,keyasint"`
	Corr    Corr          `cbor:"1,keyasint"`
	Code    Code          `cbor:"2,keyasint"`
	Field   string        `cbor:"3,keyasint,omitempty"`
	Limit   string        `cbor:"4,keyasint,omitempty"`
	Reason  string        `cbor:"5,keyasint,omitempty"`
	Next    uint64        `cbor:"6,keyasint"` // 0 = no more
	Fabric  *FabricStatus `cbor:"7,keyasint,omitempty"`
	Nodes   []NodeStatus  `cbor:"8,keyasint,omitempty"`
	Rings   []RingStatus  `cbor:"9,keyasint,omitempty"`
	Why     []WhyLine     `cbor:"10,keyasint,omitempty"`
	Events  []LoggedEvent `cbor:"11,keyasint,omitempty"`
}
