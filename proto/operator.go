package proto

import "strconv"

// Questions of operators to the planner, and its answers.

// MaxPage bounds the items of one page of an answer.
const MaxPage = 256

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
	NounRequest // Request for the side of Node that faces Peer
	NounCore    // the layer of optical switches
	NounCircuits
	NounJobs
	NounJob    // Job, with its circuits; Page pages those
	NounApply  // Jobs are all that should run
	NounClear  // forget what keeps Node, which may be a switch, out of plans
	NounTables // of Job, or of all jobs; with Name routes its routes as JSON, in pages as Next has them
	NounFlip   // Job, which stands by, starts, and those that have its servers end; with Name it goes to that phase, with one of Jobs to links for its Topology, which was measured; without Job, Rings go to the step Name of an exchange, or to PhaseRing
	NounStatus // where the fabric stands, at a glance
	NounAlarms // what is not as it should be, a page at a time
	NounAck    // Alarm is known: Author and Reason stay with it until it is over
	// A description is longer than a message: it comes and goes in parts.
	NounDescription // of the fabric, as JSON; Page is the first byte wanted
	NounOffer       // Text is the part at Page of one of Size bytes and digest Plan; the answer's Next is what is there
	NounEdit        // the one of digest Plan is planned for from now on; Rings may end for it, and others move where Moves says so
	NounTrace       // how Generation came into force: of rings, or where Node is a switch's number, of circuits
	// Agents start anew as Software, wave after wave; DryRun: which, and what would be left.
	NounRollout
	NounRolloutStop   // ends with the wave under way
	NounRolloutStatus // how it stands
	NounSubmit        // Name is a job's, Text its wish as JSON: rings are found for it
	NounRelease       // Name is a job's, Text its owner: its rings are given back
	NounAudit         // the audit chain, a line a record from place Page on, its head last
	NounQuarantine    // nothing that Node says counts, and its ring is formed without it; Reason
	NounLift          // ends that
	NounClearFibre    // Name is a fibre's: what is held against it is forgotten
	NounLinks         // all fibres
	NounRouted        // Name is ROUTER/JOB or ROUTER/ports/PORT, Text what that router was read back to hold or do, as JSON
	NounBins          // records of Bins of Node; Page pages them
	// Names are fibres, none: all; the bit errors of those that no ring uses are counted.
	// DryRun: what the last count came to.
	NounQualify
	NounConnect // the switch Node makes the circuits Names, such as 7A-9B, by hand, after it has taken Gone away: at ports that no plan has
	NounResumed // Name is a job's, Text its owner: it computes again after the event Page, restored
)

// PhaseRing is the phase of a job's rings that no step of an exchange is.
const PhaseRing = "ring"

// ExchangeStep is the phase of a step, from 1, of an exchange.
func ExchangeStep(step uint8) string { return "exchange-" + strconv.Itoa(int(step)) }

// TablesAsRoutes is the name in NounTables that asks for routes.
const TablesAsRoutes = "routes"

// MaxPart bounds Part. chosen: it fits MaxPayload beside everything else.
const MaxPart = 48 << 10

// Part is a part of a description.
type Part string

// PartOf is what a page from a byte on has of a text, and where the next begins; 0: none.
func PartOf(text []byte, page uint64) (p Part, next uint64) {
	from := min(page, uint64(len(text)))
	if end := from + MaxPart; end < uint64(len(text)) {
		return Part(text[from:end]), end
	}
	return Part(text[from:]), 0
}

// PageOf is a page of an answer: of n items those from a number on, and the number of the
// item after them; 0: there is none. number is nil where items are numbered by place.
func PageOf[T any](n int, from uint64, number func(i int) uint64, item func(i int) T) (page []T, next uint64) {
	for i := range n {
		at := uint64(i)
		if number != nil {
			at = number(i)
		}
		switch {
		case at < from:
		case len(page) == MaxPage:
			return page, at
		default:
			page = append(page, item(i))
		}
	}
	return page, 0
}

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
	// DryRun asks what NounDrain, NounUndrain, NounRequest or NounApply would do.
	DryRun  bool      `cbor:"8,keyasint,omitempty"`
	Side    Side      `cbor:"9,keyasint,omitempty"`             // of NounRequest
	Request Request   `cbor:"10,keyasint,omitempty"`            // of NounRequest
	Peer    *NodeID   `cbor:"11,keyasint,omitempty"`            // of NounRequest: the candidate; none = loopback
	Job     JobID     `cbor:"12,keyasint,omitempty"`            // of NounJob and NounTables
	Jobs    []JobSpec `cbor:"13,keyasint,omitempty" max:"1024"` // of NounApply, NounFlip
	// Term and Beat are the planner's last sign of life that the client heard:
	// an act that quotes one is refused 30 s later.
	Term Term   `cbor:"14,keyasint,omitempty"`
	Beat uint64 `cbor:"15,keyasint,omitempty"`
	// Author and Reason of an act, for those who come after.
	Author string `cbor:"16,keyasint,omitempty"`
	Reason string `cbor:"17,keyasint,omitempty"`
	Alarm  string `cbor:"18,keyasint,omitempty"` // of NounAck
	// Of NounOffer and NounEdit.
	Text       Part       `cbor:"19,keyasint,omitempty" max:"49152"`
	Size       uint32     `cbor:"20,keyasint,omitempty"`
	Plan       *Digest    `cbor:"21,keyasint,omitempty"`
	Rings      []RingID   `cbor:"22,keyasint,omitempty"`
	Moves      bool       `cbor:"23,keyasint,omitempty"`
	Generation Generation `cbor:"24,keyasint,omitempty"` // of NounTrace
	Software   string     `cbor:"25,keyasint,omitempty"` // of NounRollout
	Name       string     `cbor:"26,keyasint,omitempty"` // of NounSubmit, NounRelease, NounRouted, NounResumed and NounClearFibre; a server or leaf of the core, of NounDrain and NounUndrain
	Revision   uint64     `cbor:"27,keyasint,omitempty"` // of NounSubmit and NounRelease: refused where the job is at another; 0: whatever it is at
	Bins       *BinScope  `cbor:"28,keyasint,omitempty"` // of NounBins; none: all, by quarters of an hour
	Names      []string   `cbor:"29,keyasint,omitempty"` // of NounQualify and NounConnect
	Gone       []string   `cbor:"30,keyasint,omitempty"` // of NounConnect
	Firmware   bool       `cbor:"31,keyasint,omitempty"` // of NounRollout: Software is that of the modules
}

// EditStatus is what an edit of a fabric comes to. Nothing is changed where
// something is refused or dark.
type EditStatus struct {
	Changes []string `cbor:"1,keyasint" json:"changes"`                    // by key; none: it is as asked for already
	Refused []string `cbor:"2,keyasint,omitempty" json:"refused"`          // where light would be lost, and what would let it
	Dark    []string `cbor:"3,keyasint,omitempty" json:"dark_fibres"`      // new fibres that show no light
	Drains  []NodeID `cbor:"4,keyasint,omitempty" json:"drains"`           // that carry a ring, and have no place any more
	Ends    []RingID `cbor:"5,keyasint,omitempty" json:"ends"`             // that may end
	Told    uint32   `cbor:"6,keyasint,omitempty" json:"rings_told_again"` // rings that are told again, with the light they have
	Tried   uint32   `cbor:"7,keyasint,omitempty" json:"fibres_tried"`     // new fibres, by light
	Untried uint32   `cbor:"8,keyasint,omitempty" json:"fibres_untried"`   // new fibres of which both nodes are away or carry a ring, or that take a place in use
	Unheard uint32   `cbor:"9,keyasint,omitempty" json:"nodes_expected"`   // nodes and switches that are expected
	Done    bool     `cbor:"10,keyasint,omitempty" json:"done"`
	OneWay  uint32   `cbor:"11,keyasint,omitempty" json:"fibres_tried_one_way"` // of those tried, lit from one end: the other is of a node in a ring
	Ports   uint32   `cbor:"12,keyasint,omitempty" json:"ports_to_prove"`       // of circuit switches, new ones, that light proves before a job gets them
}

// Cost is what an operator's request would touch.
type Cost struct {
	Rings      []RingID `cbor:"1,keyasint"`           // that change
	Jobs       uint32   `cbor:"2,keyasint"`           // rings in service whose traffic stops; one ring carries one job
	Links      uint32   `cbor:"3,keyasint"`           // that go dark or move
	GPUs       uint32   `cbor:"4,keyasint"`           // fewer in rings afterwards
	DarkMicros uint64   `cbor:"5,keyasint"`           // of the longest interruption of one ring
	Joins      []NodeID `cbor:"6,keyasint,omitempty"` // spares that step in
	Stages     uint32   `cbor:"7,keyasint"`           // generations, one after the other
}

// RingStatus is the planner's view of one ring.
type RingStatus struct {
	Ring           RingID     `cbor:"1,keyasint"`
	Nodes          []NodeID   `cbor:"2,keyasint" max:"4096"`
	GPUs           uint32     `cbor:"3,keyasint"`
	State          RingState  `cbor:"4,keyasint"`
	Generation     Generation `cbor:"5,keyasint"`
	Links          uint16     `cbor:"6,keyasint"`
	LinksConfirmed uint16     `cbor:"7,keyasint"`
	// Joints are its links, left to right; only of a single ring.
	Joints []Joint `cbor:"8,keyasint,omitempty" max:"4096"`
	// GPUOrder is its live GPUs in the order in which light meets them, from the
	// left; only of a single ring, empty while light does not close it.
	GPUOrder []RingGPU `cbor:"9,keyasint,omitempty" max:"4096"`
	// Job has it; absent: nobody's.
	Job      string `cbor:"10,keyasint,omitempty"`
	Exchange uint8  `cbor:"11,keyasint,omitempty"` // step of an exchange, from 1: members are joined in pairs; 0: it is a ring
}

// RingGPU is one GPU of a ring.
type RingGPU struct {
	_    struct{} `cbor:",toarray"`
	Node NodeID
	GPU  uint8 // of the node, from 0: bundle i lies between i and i+1
}

// Joint is a link of a ring: the fibre between two neighbours, and the light
// that each has from it.
type Joint struct {
	_         struct{} `cbor:",toarray"`
	A, B      JointEnd
	Fibre     string // the label on it
	Confirmed bool   // by the light of both ends
}

// JointEnd is one end of a link.
type JointEnd struct {
	_        struct{} `cbor:",toarray"`
	Node     NodeID
	Bundle   BundleID
	Path     Path
	State    PortState
	Measured MilliDBm
	Expected MilliDBm
	Losses   uint32 // of light, since the agent began
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
	Reason     string     `cbor:"8,keyasint,omitempty"`  // why not usable
	Reported   *Reported  `cbor:"9,keyasint,omitempty"`  // only for a single node
	Drain      *DrainNote `cbor:"10,keyasint,omitempty"` // an operator keeps it out
	Name       string     `cbor:"11,keyasint,omitempty"` // what people call it
	Features   Features   `cbor:"12,keyasint,omitempty"` // of its birth
}

// DrainNote is who took a node out, and why.
type DrainNote struct {
	Author      string `cbor:"1,keyasint,omitempty" json:"author"`
	Reason      string `cbor:"2,keyasint,omitempty" json:"reason"`
	SinceMillis uint64 `cbor:"3,keyasint,omitempty" json:"since_ms"` // planner's wall clock
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

// Place is what the line is about: 20, 20/1 for one of its bundles, switch-4,
// fabric for none of them.
func (l *WhyLine) Place() string {
	text := strconv.FormatUint(uint64(l.Node), 10)
	if l.Node == ^NodeID(0) {
		return "fabric"
	}
	if l.Node.IsSwitch() {
		text = "switch-" + strconv.FormatUint(uint64(l.Node-FirstSwitch), 10)
	}
	if l.Bundle >= 0 {
		text += "/" + strconv.Itoa(int(l.Bundle))
	}
	return text
}

// Sentence is what the line says to people, with the light that was measured.
func (l *WhyLine) Sentence() string {
	if l.Measured == NoPower {
		return l.Text
	}
	return l.Text + " (measured " + l.Measured.String() + ", expected " + l.Expected.String() + ")"
}

// FabricStatus is the planner's view of itself.
type FabricStatus struct {
	Name           string     `cbor:"1,keyasint" json:"name"`
	Term           Term       `cbor:"2,keyasint" json:"term"`
	Generation     Generation `cbor:"3,keyasint" json:"generation"`
	Nodes          uint32     `cbor:"4,keyasint" json:"nodes"`
	GPUsPerNode    uint32     `cbor:"5,keyasint" json:"gpus_per_node"`
	K              uint32     `cbor:"6,keyasint" json:"k"`
	TP             uint32     `cbor:"7,keyasint" json:"tp"`
	Online         uint32     `cbor:"8,keyasint" json:"online"`
	Pending        uint32     `cbor:"9,keyasint" json:"pending"` // nodes not yet where they should be
	EventsSeen     uint64     `cbor:"10,keyasint" json:"events_seen"`
	EventGaps      uint64     `cbor:"11,keyasint" json:"event_gaps"`
	LinksTotal     uint32     `cbor:"12,keyasint" json:"links"`
	LinksConfirmed uint32     `cbor:"13,keyasint" json:"links_confirmed"`
	Refused        uint64     `cbor:"14,keyasint,omitempty" json:"messages_refused"` // messages to the planner that were not acceptable
	UnknownKeys    uint64     `cbor:"15,keyasint,omitempty" json:"unknown_keys"`     // skipped in those that were
	Shed           uint64     `cbor:"16,keyasint,omitempty" json:"messages_shed"`    // messages to the planner that nobody read: too many came
	Planner        uint64     `cbor:"17,keyasint,omitempty" max:"18446744073709551615" json:"planner"`
	Life           uint64     `cbor:"18,keyasint,omitempty" max:"18446744073709551615" json:"life"` // of the planner, since its start
	Others         string     `cbor:"19,keyasint,omitempty" json:"others,omitempty"`                // what is known of other planners
	Waiting        []string   `cbor:"20,keyasint,omitempty" json:"waiting"`                         // what is waited for, and for whom
	Features       Features   `cbor:"21,keyasint,omitempty" json:"-"`                               // of the planner
}

// LoggedEvent is an event with the planner's number for it.
type LoggedEvent struct {
	Seq      uint64 `cbor:"1,keyasint"`
	AtMillis uint64 `cbor:"2,keyasint"`
	Event    Event  `cbor:"3,keyasint"`
}

// FieldPlanner is the field of a BUSY answer of a planner that is not in
// service: the question may be asked again.
const FieldPlanner = "planner"

// OpReply answers an OpRequest, at most MaxPage items a page.
type OpReply struct {
	Version  uint8           `cbor:"0,keyasint"`
	Corr     Corr            `cbor:"1,keyasint"`
	Code     Code            `cbor:"2,keyasint"`
	Field    string          `cbor:"3,keyasint,omitempty"`
	Limit    string          `cbor:"4,keyasint,omitempty"`
	Reason   string          `cbor:"5,keyasint,omitempty"`
	Next     uint64          `cbor:"6,keyasint"` // 0 = no more
	Fabric   *FabricStatus   `cbor:"7,keyasint,omitempty"`
	Nodes    []NodeStatus    `cbor:"8,keyasint,omitempty"`
	Rings    []RingStatus    `cbor:"9,keyasint,omitempty"`
	Why      []WhyLine       `cbor:"10,keyasint,omitempty"`
	Events   []LoggedEvent   `cbor:"11,keyasint,omitempty"`
	Cost     *Cost           `cbor:"12,keyasint,omitempty"`
	Core     *CoreStatus     `cbor:"13,keyasint,omitempty"`
	Jobs     []JobStatus     `cbor:"14,keyasint,omitempty"`
	Circuits []CircuitStatus `cbor:"15,keyasint,omitempty"`
	Change   *ChangeStatus   `cbor:"16,keyasint,omitempty"`
	Tables   []RoutingTable  `cbor:"17,keyasint,omitempty"`
	Status   *Status         `cbor:"18,keyasint,omitempty"`
	Alarms   []AlarmStatus   `cbor:"19,keyasint,omitempty"`
	Text     Part            `cbor:"20,keyasint,omitempty" max:"49152"` // of NounDescription and NounAudit
	Edit     *EditStatus     `cbor:"21,keyasint,omitempty"`
	Trace    []TraceMark     `cbor:"22,keyasint,omitempty"`
	Rollout  *RolloutStatus  `cbor:"23,keyasint,omitempty"`
	Links    []LinkStatus    `cbor:"24,keyasint,omitempty"`
	Bins     []Bin           `cbor:"25,keyasint,omitempty"`
	Bits     []Qualification `cbor:"26,keyasint,omitempty"` // of NounQualify
	Running  bool            `cbor:"27,keyasint,omitempty"` // of NounQualify: there will be more
}

// Qualified is what a count of bit errors came to.
type Qualified uint8

const (
	NotTried Qualified = iota
	Good               // fewer than are allowed, surely, and within the budget of light
	Bad
)

var qualifiedNames = [...]string{"not_tried", "good", "bad"}

func (q Qualified) String() string { return NameOf(qualifiedNames[:], uint8(q)) }

// Qualification is what came of a count of a fibre's bit errors.
type Qualification struct {
	Fibre    string    `cbor:"1,keyasint" json:"fibre"` // its label, or its two nodes
	Result   Qualified `cbor:"2,keyasint" json:"result"`
	Errors   uint64    `cbor:"3,keyasint,omitempty" json:"errors,omitempty"`  // of the worst lane
	Bits     uint64    `cbor:"4,keyasint,omitempty" json:"bits,omitempty"`    // that it was counted in
	Percent  uint8     `cbor:"5,keyasint,omitempty" json:"percent,omitempty"` // how sure the result is
	Loss     MilliDBm  `cbor:"6,keyasint" json:"loss"`                        // of light, the most of any half of a module, either way; NoPower: not measured
	Budget   MilliDBm  `cbor:"7,keyasint,omitempty" json:"budget,omitempty"`  // most that it may be
	Micros   uint64    `cbor:"8,keyasint,omitempty" json:"micros,omitempty"`  // that bits were counted for
	AtMillis uint64    `cbor:"9,keyasint,omitempty" json:"at_ms,omitempty"`   // planner's wall clock
	Text     string    `cbor:"10,keyasint" json:"text"`
}
