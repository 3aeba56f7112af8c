package proto

// What operators are told at a glance.

// Status is where a fabric stands. Alarms are asked for by themselves.
type Status struct {
	Planner    PlannerCopy   `cbor:"1,keyasint"` // in service: it answers
	Term       Term          `cbor:"2,keyasint"`
	Generation Generation    `cbor:"3,keyasint"`
	Standbys   []PlannerCopy `cbor:"4,keyasint,omitempty"`
	Nodes      NodeCounts    `cbor:"5,keyasint"`
	Rings      RingCounts    `cbor:"6,keyasint"`
	Spares     uint32        `cbor:"7,keyasint"` // well, free, and in no ring
	Links      uint32        `cbor:"8,keyasint"` // that the committed generation wants lit
	Confirmed  uint32        `cbor:"9,keyasint"` // of those, by the light of both ends
	Alarms     uint32        `cbor:"10,keyasint,omitempty"`
	Acked      uint32        `cbor:"11,keyasint,omitempty"`          // of those, acknowledged
	Breaks     []Break       `cbor:"12,keyasint,omitempty" max:"64"` // the worst first
	Switches   uint32        `cbor:"13,keyasint,omitempty"`
	SwitchesOn uint32        `cbor:"14,keyasint,omitempty"` // of those, online
	Waiting    []string      `cbor:"15,keyasint,omitempty"` // what is waited for, and for whom
	Since      uint64        `cbor:"16,keyasint,omitempty"` // wall clock in ms, when the planner's service began

	Health       HealthState `cbor:"17,keyasint,omitempty"`
	RingsWanted  uint32      `cbor:"18,keyasint,omitempty"`
	GPUs         uint32      `cbor:"19,keyasint,omitempty"` // in rings that have light
	GPUWanted    uint32      `cbor:"20,keyasint,omitempty"` // in rings
	SparesWanted uint32      `cbor:"21,keyasint,omitempty"`
	Unproven     uint32      `cbor:"22,keyasint,omitempty"`          // links confirmed, whose light nobody can call good at an end
	Ageing       []Ageing    `cbor:"23,keyasint,omitempty" max:"64"` // what is near its limit, the first first
}

// Ageing is what lasers or heaters of a module take, on its way to a limit.
type Ageing struct {
	Node   NodeID   `cbor:"1,keyasint" json:"node"`
	Bundle BundleID `cbor:"2,keyasint" json:"bundle"`
	Module uint8    `cbor:"3,keyasint" json:"module"`
	What   string   `cbor:"4,keyasint" json:"what"` // laser_bias, microampere; heater_power, microwatt
	Is     int32    `cbor:"5,keyasint" json:"is"`
	Limit  int32    `cbor:"6,keyasint" json:"limit"`
	Days   uint32   `cbor:"7,keyasint" json:"days_left"` // 0: less than one, or it is reached
}

// PlannerCopy is a process of a planner.
type PlannerCopy struct {
	Planner uint64 `cbor:"1,keyasint,omitempty" max:"18446744073709551615" json:"id"`
	Life    uint64 `cbor:"2,keyasint,omitempty" max:"18446744073709551615" json:"life"`
	Host    string `cbor:"3,keyasint,omitempty" json:"host"`
	Behind  uint64 `cbor:"4,keyasint,omitempty" json:"behind"` // batches of the store that it has yet to read
}

// NodeCounts are nodes by state: Online and Silent are all of them, the others
// are of either.
type NodeCounts struct {
	_        struct{} `cbor:",toarray"`
	Total    uint32   `json:"total"`
	Online   uint32   `json:"online"` // its agent speaks, and answers
	Silent   uint32   `json:"silent"`
	Isolated uint32   `json:"isolated"` // own optics failed
	HostDown uint32   `json:"host_down"`
	Drained  uint32   `json:"drained"`
}

// RingCounts are rings by state.
type RingCounts struct {
	_         struct{} `cbor:",toarray"`
	Total     uint32   `json:"total"`
	InService uint32   `json:"in_service"`
	Degraded  uint32   `json:"degraded"`
	Forming   uint32   `json:"forming"`
	Down      uint32   `json:"down"`
}

// Break is what the loss of one thing would take down, on top of what is down.
type Break struct {
	Lose  string `cbor:"1,keyasint" json:"lose"`                           // node 7, fibre 7-8, switch 3
	Rings uint32 `cbor:"2,keyasint" json:"rings_down"`                     // that would be degraded, or gone
	GPUs  uint32 `cbor:"3,keyasint" json:"gpus_lost"`                      // fewer in rings
	Links uint32 `cbor:"4,keyasint,omitempty" json:"links_dark,omitempty"` // of jobs, through a switch, that would be dark
	Jobs  uint32 `cbor:"5,keyasint,omitempty" json:"jobs,omitempty"`       // whose they are
	Down  uint32 `cbor:"6,keyasint,omitempty" json:"jobs_down,omitempty"`  // of those jobs, without any other link
	Text  string `cbor:"7,keyasint,omitempty" json:"text,omitempty"`       // what it comes to, in the words of ring list
}

// AlarmStatus is something that is not as it should be.
type AlarmStatus struct {
	ID          string   `cbor:"1,keyasint" json:"id"`       // where and what, such as 7/offline; the same as long as it stands
	SinceMillis uint64   `cbor:"2,keyasint" json:"since_ms"` // planner's wall clock; 0: not known
	Severity    Severity `cbor:"3,keyasint" json:"-"`
	Node        *NodeID  `cbor:"4,keyasint,omitempty" json:"node,omitempty"` // or switch; none: of no single one
	Ring        RingID   `cbor:"5,keyasint,omitempty" json:"ring,omitempty"`
	What        string   `cbor:"6,keyasint" json:"what"`
	Why         string   `cbor:"7,keyasint,omitempty" json:"why,omitempty"`
	// Of an acknowledged one.
	AckAuthor string `cbor:"8,keyasint,omitempty" json:"-"`
	AckReason string `cbor:"9,keyasint,omitempty" json:"-"`
	AckMillis uint64 `cbor:"10,keyasint,omitempty" json:"-"`

	Check   string      `cbor:"11,keyasint,omitempty" json:"check"`   // that found it
	Subject string      `cbor:"12,keyasint,omitempty" json:"subject"` // node 7, ring 3, fibre 7-8, store
	State   HealthState `cbor:"13,keyasint,omitempty" json:"-"`       // that the fabric has for it at least
	Remedy  string      `cbor:"14,keyasint,omitempty" json:"remedy,omitempty"`
	Under   string      `cbor:"15,keyasint,omitempty" json:"under,omitempty"` // id of the alarm that it follows from
	Peer    *NodeID     `cbor:"16,keyasint,omitempty" json:"peer,omitempty"`  // of a fibre: the other end
	// ServiceAffecting: it, or what follows from it, takes light or capacity from a ring or a job now.
	ServiceAffecting bool `cbor:"17,keyasint,omitempty" json:"service_affecting"`
}

// LinkStatus is a fibre.
type LinkStatus struct {
	Fibre       string         `cbor:"1,keyasint"` // its label, or its two nodes
	A           JointEnd       `cbor:"2,keyasint"`
	B           JointEnd       `cbor:"3,keyasint"`
	State       FibreState     `cbor:"4,keyasint"`
	Ring        RingID         `cbor:"5,keyasint,omitempty"`
	SinceMillis uint64         `cbor:"6,keyasint,omitempty"` // planner's wall clock; 0: not known
	NextMillis  uint64         `cbor:"7,keyasint,omitempty"` // when it is tried again
	Qualified   *Qualification `cbor:"8,keyasint,omitempty"` // when its bit errors were last counted; absent: never
}
