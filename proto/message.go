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
// and hold ring members only; loopback is the last resort and not listed.
type RingAssignment struct {
	Ring       RingID      `cbor:"1,keyasint"`
	Generation Generation  `cbor:"2,keyasint"` // that last touched the ring
	Position   uint16      `cbor:"3,keyasint"` // from the left end, from 0
	Size       uint16      `cbor:"4,keyasint"` // nodes in the ring
	Policy     Policy      `cbor:"5,keyasint"`
	Envelope   Envelope    `cbor:"6,keyasint"` // over the ring's members
	Left       []Candidate `cbor:"7,keyasint" max:"8"`
	Right      []Candidate `cbor:"8,keyasint" max:"8"`
	// Working candidate of each side as an index into Left and Right; ignored
	// for an empty list.
	LeftWorking  uint8 `cbor:"9,keyasint"`
	RightWorking uint8 `cbor:"10,keyasint"`
	// HoldOffMicros is how long a lost light may come back before a side acts.
	HoldOffMicros uint32 `cbor:"11,keyasint,omitempty"`
	// WaitToRestoreMillis makes the ring revertive: a side goes back to its
	// working candidate that long after it left. 0: it stays.
	WaitToRestoreMillis uint32 `cbor:"12,keyasint,omitempty"`
}

// Desired is the whole of what the planner wants of one node: never a delta.
// It is staged and takes effect by a Decision with the same term, generation
// and plan.
type Desired struct {
	Version    uint8            `cbor:"0,keyasint"`
	Node       NodeID           `cbor:"1,keyasint"`
	Term       Term             `cbor:"2,keyasint"`
	Generation Generation       `cbor:"3,keyasint"`
	Plan       Digest           `cbor:"4,keyasint"`         // names the whole generation's plan
	Rings      []RingAssignment `cbor:"5,keyasint" max:"1"` // at most 1; none: every bundle in loopback
	Decisions  []RingID         `cbor:"6,keyasint"`         // rings on whose topics the decision comes
	BypassSeq  uint64           `cbor:"7,keyasint"`         // the node's bypass count that the plan knows of
	// Circuits are all cross-connects of a switch; a node has none.
	Circuits []Circuit `cbor:"8,keyasint,omitempty" max:"4096"`
	Life     uint64    `cbor:"9,keyasint,omitempty" max:"18446744073709551615"`  // of the planner whose term it is
	Layout   uint64    `cbor:"10,keyasint,omitempty" max:"18446744073709551615"` // fingerprint of the fabric's description
}

// Circuit joins a port of side A of a switch to a port of its side B.
type Circuit struct {
	_   struct{} `cbor:",toarray"`
	A   uint16
	B   uint16
	Job JobID
}

// CircuitReport is the state of one circuit of a switch. Tuned says that the
// power monitors on both sides prove it.
type CircuitReport struct {
	_     struct{} `cbor:",toarray"`
	A     uint16
	B     uint16
	Job   JobID
	State PortState
	Loss  MilliDBm // measured between the two sides, NoPower: not measured
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
	VerbRequest   // Request of an operator for Side: to Bundle, Path; NoRequest clears it
	VerbTry       // light the external Path of Bundle, or in a ring only look at it, and say whether light comes; loopback ends it
	VerbRestart   // start anew as the Software that is installed, the light as it is; asks for FeatureRestart
	VerbBins      // answer with the records of Bins, from Next on
	VerbConnect   // a switch makes the circuits Connect by hand, after it has taken Disconnect away
	VerbFirmware  // bring the modules of all bundles that carry nothing to the firmware Software
)

// Command asks one life of one agent for one act, within a time to live that
// counts from receipt, or from the planner's first sign of life after the one
// that it quotes, whichever was earlier. It is never retained, and refused when
// it is.
type Command struct {
	Version   uint8    `cbor:"0,keyasint"`
	Node      NodeID   `cbor:"1,keyasint"`
	Term      Term     `cbor:"2,keyasint"`
	Session   Session  `cbor:"3,keyasint"`
	Corr      Corr     `cbor:"4,keyasint"`
	TTLMillis uint32   `cbor:"5,keyasint"`
	Verb      Verb     `cbor:"6,keyasint"`
	Bundle    BundleID `cbor:"7,keyasint"`
	Next      uint32   `cbor:"8,keyasint"` // page of an answer
	Seq       uint64   `cbor:"9,keyasint"` // of VerbAckEvents
	Side      Side     `cbor:"10,keyasint,omitempty"`
	Request   Request  `cbor:"11,keyasint,omitempty"`
	Path      Path     `cbor:"12,keyasint,omitempty"` // of VerbRequest: loopback closes the side
	Life      uint64   `cbor:"13,keyasint,omitempty" max:"18446744073709551615"`
	Beat      uint64   `cbor:"14,keyasint,omitempty"` // the planner's last sign of life before it, for its age
	Software  string   `cbor:"15,keyasint,omitempty"` // of VerbRestart: that must be installed; none: any. Of VerbFirmware: the version
	Alone     bool     `cbor:"16,keyasint,omitempty"` // of VerbTry: the other end only looks, no light comes from it

	Bins       *BinScope `cbor:"17,keyasint,omitempty"` // of VerbBins
	Pattern    Pattern   `cbor:"18,keyasint,omitempty"` // of VerbTry of a fibre whose bit errors are counted
	Connect    []string  `cbor:"19,keyasint,omitempty"` // of VerbConnect, such as 7A-9B
	Disconnect []string  `cbor:"20,keyasint,omitempty"`
}

// Pattern is what a VerbTry asks for besides light.
type Pattern uint8

const (
	NoPattern    Pattern = iota
	PatternAhead         // patterns follow when the path is lit
	PatternMake          // every lane sends a pattern
	PatternCheck         // and is checked from now on
	PatternCount         // what was counted since
	numPatterns
)

// ModuleBits is the light of a module on a fibre, in thousandths of a dBm a lane, and
// what its checkers have counted.
type ModuleBits struct {
	_            struct{} `cbor:",toarray"`
	Launched     MilliDBm // NoPower: not read
	Lost         MilliDBm // of it, since calibration
	Upper, Lower MilliDBm // that comes to either half
	Bits         []uint64 `max:"8"` // by lane
	Errors       []uint64 `max:"8"` // among them
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
	Denied              // its sender may not, or is not known
)

// Ack is an agent's answer. Persisted state is on disk before it leaves.
type Ack struct {
	Version           uint8        `cbor:"0,keyasint"`
	Node              NodeID       `cbor:"1,keyasint"`
	Session           Session      `cbor:"2,keyasint"`
	Phase             Phase        `cbor:"3,keyasint"`
	Code              Code         `cbor:"4,keyasint"`
	Term              Term         `cbor:"5,keyasint"` // echoed
	Generation        Generation   `cbor:"6,keyasint"` // echoed
	Plan              Digest       `cbor:"7,keyasint"` // echoed
	Corr              Corr         `cbor:"8,keyasint"` // echoed
	CurrentTerm       Term         `cbor:"9,keyasint"`
	CurrentGeneration Generation   `cbor:"10,keyasint"`
	Field             string       `cbor:"11,keyasint,omitempty"`
	Limit             string       `cbor:"12,keyasint,omitempty"`
	Reason            string       `cbor:"13,keyasint,omitempty"`
	Events            []Event      `cbor:"14,keyasint,omitempty"`
	Next              uint32       `cbor:"15,keyasint,omitempty"` // next page, 0 = none
	BypassSeq         uint64       `cbor:"16,keyasint,omitempty"` // with Conflict: the node's present bypass count
	Bins              []Bin        `cbor:"17,keyasint,omitempty"`
	Bits              []ModuleBits `cbor:"18,keyasint,omitempty" max:"8"` // of PatternCount, by module
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
	Lit         uint8     `cbor:"9,keyasint"`            // bit p: path p has light
	Flaps       uint32    `cbor:"10,keyasint"`           // losses of the selected light, ever
	Calibration Digest    `cbor:"11,keyasint"`           // zero: not calibrated
	Held        Held      `cbor:"12,keyasint,omitempty"` // of the path, against drift; absent: nothing, or the agent does not say
}

// LeastLightBelow is how far own light may lie below what calibration saw until
// its path counts as not there. chosen: half of the light.
const LeastLightBelow MilliDBm = 3000

// Margin is how much more of a bundle's own light may go until its path counts as
// not there; false where it was not measured.
func (b *BundleReport) Margin() (MilliDBm, bool) {
	if b.Measured == NoPower || b.Expected == NoPower {
		return 0, false
	}
	return b.Measured - b.Expected + LeastLightBelow, true
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
	// Timer is what the side waits for, until UntilMicros of the agent's clock.
	Timer       SideTimer `cbor:"9,keyasint,omitempty"`
	UntilMicros uint64    `cbor:"10,keyasint,omitempty"`
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
	Bundles          []BundleReport   `cbor:"15,keyasint" max:"16"`
	Sides            []SideReport     `cbor:"16,keyasint"`
	Alarms           []Alarm          `cbor:"17,keyasint"`
	Measured         Envelope         `cbor:"18,keyasint"`                                      // over the node's own bundles
	LastEvent        uint64           `cbor:"19,keyasint"`                                      // highest event sequence given out
	Dropped          uint64           `cbor:"20,keyasint"`                                      // telemetry dropped, events never
	RefusedMessages  uint64           `cbor:"21,keyasint"`                                      // messages refused
	UnknownKeys      uint64           `cbor:"22,keyasint"`                                      // keys skipped
	Circuits         []CircuitReport  `cbor:"23,keyasint,omitempty" max:"4096"`                 // of a switch
	DarkMicros       uint32           `cbor:"24,keyasint,omitempty"`                            // of a switch: from the first mirror moved for the applied generation to the last circuit proven
	SeenLife         uint64           `cbor:"25,keyasint,omitempty" max:"18446744073709551615"` // of the planner that SeenTerm is of
	Layout           uint64           `cbor:"26,keyasint,omitempty" max:"18446744073709551615"` // that the applied generation was made for
	Drained          bool             `cbor:"27,keyasint,omitempty"`                            // an operator took the node out besides what Mode says
	AsksRestart      bool             `cbor:"28,keyasint,omitempty"`                            // somebody there asks for leave to restart the agent
	Answers          *Corr            `cbor:"29,keyasint,omitempty"`                            // the last reannounce that it was asked with: so it is younger than that
}

// Presence is an agent's birth, or its death note when Online is false: then
// only Version, Node and Session are set.
type Presence struct {
	Version       uint8      `cbor:"0,keyasint"`
	Node          NodeID     `cbor:"1,keyasint"`
	Session       Session    `cbor:"2,keyasint"`
	Online        bool       `cbor:"3,keyasint"`
	Boot          uint64     `cbor:"4,keyasint" max:"18446744073709551615"`
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
	TelemetryMask uint32     `cbor:"17,keyasint"`           // sensors present
	Ports         uint16     `cbor:"18,keyasint,omitempty"` // of each side of a switch; absent: a node
	Features      Features   `cbor:"19,keyasint,omitempty"`
	Host          string     `cbor:"20,keyasint,omitempty"` // and process, where the agent runs
	Why           string     `cbor:"21,keyasint,omitempty"` // of a death note: why the agent ended; absent: it was lost, or an earlier release
}

// Sensor names what a health sample measures.
type Sensor uint8

const (
	SensorCase      Sensor = iota + 1 // millikelvin
	SensorRail                        // microwatt
	SensorUpperPath                   // MilliDBm, half-sum of the selected path
	SensorLowerPath                   // MilliDBm
	SensorTxTap                       // MilliDBm
	SensorUpperBias                   // microampere, the highest of the half's lasers
	SensorLowerBias                   // microampere
	SensorSerial                      // CRC-32 (IEEE) of the module's serial number, of one that tells bias
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
	// Reported is the number of the last report that was sent, 0: none was.
	Reported uint64 `cbor:"5,keyasint,omitempty"`
	// Prompt is absent of a node whose board is not on a machine of its own.
	Prompt *Prompt `cbor:"6,keyasint,omitempty"`
	// LateMillis is by how much, at least, the agent's work began too late three times since the last one.
	LateMillis uint32 `cbor:"7,keyasint,omitempty"`
}

// Prompt is how soon the thread of an agent runs that answers edges: its
// real-time priority, 0 for none, whether its memory stays in the machine's, and
// how late timed wake-ups came when the agent started.
type Prompt struct {
	_             struct{} `cbor:",toarray"`
	Priority      uint8    `json:"priority"`
	Locked        bool     `json:"memory_locked"`
	WakeP50Micros uint32   `json:"wake_p50_micros"`
	WakeP99Micros uint32   `json:"wake_p99_micros"`
	WakeMaxMicros uint32   `json:"wake_max_micros"`
}

// PlannerState is the planner's sign of life. A retained one proves nothing.
type PlannerState struct {
	Version      uint8    `cbor:"0,keyasint"`
	Planner      uint64   `cbor:"1,keyasint" max:"18446744073709551615"` // id kept in its store
	Online       bool     `cbor:"2,keyasint"`
	Term         Term     `cbor:"3,keyasint"`
	Seq          uint64   `cbor:"4,keyasint"` // beat number
	PeriodMillis uint32   `cbor:"5,keyasint"`
	Fabric       string   `cbor:"6,keyasint,omitempty"`
	Life         uint64   `cbor:"7,keyasint,omitempty" max:"18446744073709551615"`  // drawn at each start: a copied store has another
	Layout       uint64   `cbor:"8,keyasint,omitempty" max:"18446744073709551615"`  // fingerprint of the fabric's description
	Takeover     bool     `cbor:"9,keyasint,omitempty"`                             // it replaces whoever is in service
	Standby      bool     `cbor:"10,keyasint,omitempty"`                            // with Online false: it is alive and waits
	Host         string   `cbor:"11,keyasint,omitempty"`                            // on which it runs
	Election     uint64   `cbor:"12,keyasint,omitempty" max:"18446744073709551615"` // of its store: of those of one election one is in service
	Stored       uint64   `cbor:"13,keyasint,omitempty"`                            // batches of that store that it holds
	Features     Features `cbor:"14,keyasint,omitempty"`
	Call         uint64   `cbor:"15,keyasint,omitempty"` // connection of this life, where the broker keeps nothing: on a new one agents announce themselves again
}
