package proto

// How one generation came into force.

// TraceStage is what a mark is about.
type TraceStage uint8

const (
	TraceAsked     TraceStage = iota + 1 // something changed that a plan may answer
	TracePrepare                         // the plan is made and goes out
	TracePrepared                        // Node has it on disk
	TraceDecided                         // all have; the decision goes to the store
	TraceStored                          // it is on disk, and told
	TraceApplied                         // Node has acted on it, by its own clock
	TraceConfirmed                       // Node reports it
	TraceSwitched                        // Node's light is confirmed on another way: Ledger
)

// TraceMark is one moment of a generation. Moments of a node's own clock are put
// on the planner's by the quickest of its reports.
type TraceMark struct {
	Stage    TraceStage `cbor:"1,keyasint"`
	AtMicros uint64     `cbor:"2,keyasint"`           // of the planner's clock, from its start
	Node     *NodeID    `cbor:"3,keyasint,omitempty"` // or switch; none: the planner
	Text     string     `cbor:"4,keyasint,omitempty"`
	Ledger   *Ledger    `cbor:"5,keyasint,omitempty"`
	Peer     NodeID     `cbor:"6,keyasint,omitempty"` // with Ledger
	Side     Side       `cbor:"7,keyasint,omitempty"` // with Ledger
}
