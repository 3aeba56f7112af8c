package proto

import (
	"slices"
	"strings"
)

// What operators ask and are told of jobs and circuits.

// MaxJobs is how many jobs one list may have. chosen: each takes some 20
// bytes, and more jobs than that share no core.
const MaxJobs = 1024

// Collective is how the replicas of a job exchange what each has; its circuits
// follow from it.
type Collective uint8

const (
	CollectiveRing Collective = iota
	CollectiveHalvingDoubling
	CollectiveDoubleTree
	CollectiveAllToAll
)

var collectiveNames = [...]string{"ring", "halving-doubling", "double-tree", "all-to-all"}

func (c Collective) String() string { return NameOf(collectiveNames[:], uint8(c)) }

// ParseCollective reads a name; none is a ring.
func ParseCollective(name string) (Collective, *Error) {
	if name == "" {
		return CollectiveRing, nil
	}
	n := slices.Index(collectiveNames[:], name)
	if n < 0 {
		return 0, Wrong("collective", strings.Join(collectiveNames[:], ", "), "%q", name)
	}
	return Collective(n), nil
}

// Check names the collective where it is none of those that there are.
func (c Collective) Check() *Error {
	if int(c) >= len(collectiveNames) {
		return Wrong("collective", strings.Join(collectiveNames[:], ", "), "%s", c)
	}
	return nil
}

// JobSpec is a job as an operator asks for it.
type JobSpec struct {
	Job     JobID    `cbor:"1,keyasint"`                      // from 1
	TP      uint32   `cbor:"2,keyasint"`                      // GPUs of a tensor parallel domain
	EP      uint32   `cbor:"3,keyasint"`                      // of an expert parallel one
	PP      uint32   `cbor:"4,keyasint"`                      // stages of a pipeline
	DP      uint32   `cbor:"5,keyasint"`                      // replicas; 0: as many as Servers hold
	Servers uint32   `cbor:"6,keyasint"`                      // wanted; 0: as many as the domains need
	Pods    []uint16 `cbor:"7,keyasint,omitempty" max:"1024"` // where it may be; none: anywhere
	// Collective is absent from what knows of rings alone.
	Collective Collective `cbor:"8,keyasint,omitempty" json:",omitempty"`
	// Of a leaf-spine core.
	DurationMillis uint64 `cbor:"9,keyasint,omitempty" json:",omitempty"`  // as declared; 0: not known
	DeadlineMillis uint64 `cbor:"10,keyasint,omitempty" json:",omitempty"` // to end so long after it came; 0: none
	MayPauseMillis uint64 `cbor:"11,keyasint,omitempty" json:",omitempty"` // how long it may be dark to make room; 0: it is never moved
	// Of a direct core.
	Topology *JobTopology `cbor:"12,keyasint,omitempty" json:",omitempty"`            // nil: one AllReduce of all servers, over all interfaces
	Next     JobID        `cbor:"13,keyasint,omitempty" json:",omitempty"`            // it gets the servers of this job when that ends, and is provisioned meanwhile
	On       []uint32     `cbor:"14,keyasint,omitempty" max:"4096" json:",omitempty"` // servers by number: those or none; absent: any
	Phases   []JobPhase   `cbor:"15,keyasint,omitempty" max:"16" json:",omitempty"`   // in place of Topology; it begins with the first
}

// JobPhase is a part of an iteration that has links of its own.
type JobPhase struct {
	Name     string      `cbor:"1,keyasint"`
	Topology JobTopology `cbor:"2,keyasint"`
}

// PhaseNames are those of a job's phases, in their order.
func (s *JobSpec) PhaseNames() (names []string) {
	for i := range s.Phases {
		names = append(names, s.Phases[i].Name)
	}
	return names
}

// JobTopology is what a job sends in one iteration, and over what. Servers are
// numbered by rank.
type JobTopology struct {
	Degree        uint32   `cbor:"1,keyasint"` // interfaces of each server
	Bidirectional bool     `cbor:"2,keyasint,omitempty" json:",omitempty"`
	AllReduce     []Reduce `cbor:"3,keyasint,omitempty" max:"256" json:",omitempty"`
	MP            []Demand `cbor:"4,keyasint,omitempty" max:"4096" json:",omitempty"`
	Method        Method   `cbor:"5,keyasint,omitempty" json:",omitempty"`
	Seed          uint64   `cbor:"6,keyasint,omitempty" json:",omitempty"`
}

// Reduce is a group that reduces among itself, and what that sends in all.
type Reduce struct {
	_       struct{} `cbor:",toarray"`
	Servers []uint16 `max:"4096"`
	Bytes   uint64
}

// Demand is what one server sends another.
type Demand struct {
	_        struct{} `cbor:",toarray"`
	From, To uint16
	Bytes    uint64
}

// Method is how the rings of a topology are drawn.
type Method uint8

const (
	MethodAuto Method = iota // random where there is traffic besides AllReduce
	MethodRandom
	MethodTotient
)

var methodNames = [...]string{"auto", "random", "totient"}

func (m Method) String() string { return NameOf(methodNames[:], uint8(m)) }

// ParseMethod reads a name; none is MethodAuto.
func ParseMethod(name string) (Method, *Error) {
	if name == "" {
		return MethodAuto, nil
	}
	n := slices.Index(methodNames[:], name)
	if n < 0 {
		return 0, Wrong("method", "auto, random or totient", "%q", name)
	}
	return Method(n), nil
}

// JobState is how far a job is.
type JobState uint8

const (
	JobWaiting  JobState = iota // no servers, or no ports
	JobPlacing                  // has servers, not all its circuits
	JobRealised                 // every link it was granted is there by light
	JobAdopted                  // found by its circuits; nobody said what it is
	JobShort                    // at rest, with fewer links than it was granted
	JobStandby                  // provisioned beside the job that has its servers
)

var jobStateNames = [...]string{"waiting", "placing", "realised", "adopted", "short", "standby"}

func (s JobState) String() string { return NameOf(jobStateNames[:], uint8(s)) }

// LeafServers is a number of servers at one leaf.
type LeafServers struct {
	_       struct{} `cbor:",toarray"`
	Pod     uint16   `json:"pod"`
	Leaf    uint16   `json:"leaf"` // of the pod
	Servers uint16   `json:"servers"`
}

// JobStatus is the planner's view of one job.
type JobStatus struct {
	Job      JobID         `cbor:"1,keyasint"`
	State    JobState      `cbor:"2,keyasint"`
	Servers  []LeafServers `cbor:"3,keyasint" max:"4096"`
	Asked    uint32        `cbor:"4,keyasint"`           // links it wants
	Granted  uint32        `cbor:"5,keyasint"`           // links that its leaves' ports allow
	Realised uint32        `cbor:"6,keyasint"`           // links there by light, both ways
	Reason   string        `cbor:"7,keyasint,omitempty"` // why it waits or is short
	// Domains is the leaf of each tensor parallel domain, of its first server
	// where it has several, by stage of the pipeline and then replica: the order
	// of ranks. Only for a single job.
	Domains []uint16 `cbor:"8,keyasint,omitempty" max:"4096"`
	Stages  uint32   `cbor:"9,keyasint,omitempty"` // of the pipeline, with Domains
	// Collective is that of the spec.
	Collective Collective `cbor:"10,keyasint,omitempty"`
	// Of a leaf-spine core.
	Cause WaitCause `cbor:"11,keyasint,omitempty"`            // why it waits
	Seats []Seat    `cbor:"12,keyasint,omitempty" max:"4096"` // in the order of ranks; only for a single job
	// Of a direct core, where seats have no leaf.
	Next  JobID  `cbor:"13,keyasint,omitempty"`          // whose servers it gets
	Rings []Ring `cbor:"14,keyasint,omitempty" max:"64"` // only for a single job
	// Owner is the name that it was asked for by; absent: a list has it.
	Owner string `cbor:"15,keyasint,omitempty"`
	// Phase is the one of a job of several whose links it has.
	Phase string `cbor:"16,keyasint,omitempty"`
}

// Ring is an order in which servers of a job reduce over direct links.
type Ring struct {
	_       struct{} `cbor:",toarray"`
	Group   int16    `json:"group"` // of the job's AllReduce; -1: no group's
	Servers []uint16 `max:"4096" json:"servers"`
	Layers  []uint16 `max:"64" json:"layers"` // of its links: one, or two of a bidirectional one
}

// CircuitStatus is the planner's view of one circuit.
type CircuitStatus struct {
	_      struct{} `cbor:",toarray"`
	Switch NodeID
	A      uint16
	B      uint16
	Job    JobID
	State  PortState // as its switch reports it; Blocked: not reported
	Loss   MilliDBm
}

// CoreStatus is the planner's view of all circuits.
type CoreStatus struct {
	Generation Generation `cbor:"1,keyasint" json:"generation"` // of circuits, given out last
	Switches   uint32     `cbor:"2,keyasint" json:"switches"`
	Online     uint32     `cbor:"3,keyasint" json:"switches_online"`
	Jobs       uint32     `cbor:"4,keyasint" json:"-"`
	Placed     uint32     `cbor:"5,keyasint" json:"-"`               // jobs that have servers
	Circuits   uint32     `cbor:"6,keyasint" json:"circuits_wanted"` // wanted
	Tuned      uint32     `cbor:"7,keyasint" json:"circuits_tuned"`  // of those, there by light
	Asked      uint32     `cbor:"8,keyasint" json:"links_asked"`     // links
	Granted    uint32     `cbor:"9,keyasint" json:"links_granted"`
	Realised   uint32     `cbor:"10,keyasint" json:"links_realised"`
	Quiet      bool       `cbor:"11,keyasint" json:"quiet"`                       // no stage under way, nothing wanted that is not told
	DarkMicros uint32     `cbor:"12,keyasint" json:"dark_us_max"`                 // longest that any switch reported
	Unproven   uint32     `cbor:"13,keyasint,omitempty" json:"circuits_unproven"` // of the tuned, whose light nobody can call good
}

// ChangeStatus is what a new job list would do, or does.
type ChangeStatus struct {
	Placed   uint32  `cbor:"1,keyasint" json:"jobs_placed"`             // jobs with servers
	Waiting  []JobID `cbor:"2,keyasint" max:"1024" json:"jobs_waiting"` // jobs without
	Stages   uint32  `cbor:"3,keyasint" json:"stages"`                  // one after the other
	Created  uint32  `cbor:"4,keyasint" json:"circuits_created"`        // circuits
	Removed  uint32  `cbor:"5,keyasint" json:"circuits_removed"`        // circuits, of jobs that end and of moves
	Moved    uint32  `cbor:"6,keyasint" json:"links_moved"`             // links of jobs that stay, in all stages
	Kept     uint32  `cbor:"7,keyasint" json:"links_kept"`              // links of jobs that stay, not touched
	Worst    uint32  `cbor:"8,keyasint" json:"worst_leaf_moved"`        // most links of a leaf that move at once,
	WorstOf  uint32  `cbor:"9,keyasint" json:"worst_leaf_links"`        // of so many
	Asked    uint32  `cbor:"10,keyasint" json:"links_asked"`            // links, of all jobs
	Granted  uint32  `cbor:"11,keyasint" json:"links_granted"`
	Realised uint32  `cbor:"12,keyasint" json:"links_realised"` // of Granted: those that there are circuits for
	// DarkMicros is for how long a moved link is dark, as measured on changes
	// before, or 0 when nothing moves or was ever measured.
	DarkMicros uint32 `cbor:"13,keyasint" json:"dark_us"`
	// Of a flip for traffic that was measured: bytes of it on the fullest link, as links
	// are, and as they would be.
	FullestNow  uint64 `cbor:"14,keyasint,omitempty" json:"fullest_link_bytes,omitempty"`
	FullestThen uint64 `cbor:"15,keyasint,omitempty" json:"fullest_link_then_bytes,omitempty"`
}
