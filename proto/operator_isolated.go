package proto

// What operators are told of jobs that are alone on their links.

// WaitCause is what a job that waits lacks.
type WaitCause uint8

const (
	WaitUnknown WaitCause = iota
	WaitGPU               // GPUs, or whole idle servers
	WaitNetwork           // links or ports: of servers there are enough
	WaitTurn              // nothing: others are before it
)

var waitCauseNames = [...]string{"none", "gpu", "network", "turn"}

func (c WaitCause) String() string { return NameOf(waitCauseNames[:], uint8(c)) }

// Seat is what a job has of one server.
type Seat struct {
	_      struct{} `cbor:",toarray"`
	Leaf   uint16
	Server uint16 // of the leaf
	GPUs   uint16
}

// PortRoute sends what comes from a port to an uplink. A leaf's ports to GPUs
// are numbered by server and GPU, its uplinks by optical switch and port there,
// or where links are fixed by spine.
type PortRoute struct {
	_      struct{} `cbor:",toarray"`
	Port   uint16
	Uplink uint16
}

// Reach is by which uplink a port of another leaf is reached.
type Reach struct {
	_      struct{} `cbor:",toarray"`
	Leaf   uint16
	Port   uint16
	Uplink uint16
}

// RoutingTable is what one leaf or spine does with the traffic of one job
// between leaves: to be put into the switch as it is.
type RoutingTable struct {
	Job     JobID  `cbor:"1,keyasint"`
	Spine   bool   `cbor:"2,keyasint,omitempty"` // else of a leaf
	Number  uint16 `cbor:"3,keyasint"`           // of the leaf or spine
	Virtual uint32 `cbor:"4,keyasint"`           // virtual leaf, or virtual spine: a VRF of its own
	// Sends is by source, in the order of ranks: a port's traffic goes over its
	// uplink whatever its destination. Virtual leaves have all the same map, so
	// that the n-th uplinks end at the same virtual spine.
	Sends []PortRoute `cbor:"5,keyasint,omitempty" max:"1024"`
	// Reaches is by destination, for ports without a route in Sends: the larger
	// of two leaves that are joined directly.
	Reaches []Reach `cbor:"6,keyasint,omitempty" max:"1024"`
	// Ports of a spine, by virtual leaf: what is for a port of that leaf leaves
	// there. Numbered by optical switch and port there, or where links are fixed
	// by leaf.
	Ports []uint16 `cbor:"7,keyasint,omitempty" max:"4096"`
}
