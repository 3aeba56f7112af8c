package agent

import (
	"math"
	"time"

	"ringlight/hal"
	"ringlight/ocs"
	"ringlight/ocs/box"
	"ringlight/ocs/circuit"
	"ringlight/ocs/mems"
	"ringlight/proto"
)

// Never is the time of a timer that is not running.
const Never = time.Duration(math.MaxInt64)

// Config is what an agent is told at birth. What has a key goes into the head of
// its recordings.
type Config struct {
	Fabric string       `json:"fabric"`
	Node   proto.NodeID `json:"node"`
	Board  *hal.Board   `json:"board"`
	// Calibrations by bundle; nil or missing: not calibrated. They are shared
	// and never written.
	Calibrations []*ocs.Calibration `json:"-"`
	Session      proto.Session      `json:"session"` // drawn at random at every start
	Boot         uint64             `json:"boot"`    // names the boot of the machine
	Software     string             `json:"software"`
	Host         string             `json:"host,omitempty"` // and process, for people
	// Restarts: whoever runs it starts it anew when it asks; else NoRestart says why not.
	Restarts  bool   `json:"restarts,omitempty"`
	NoRestart string `json:"-"`
	// Features are what the link can do that carries its messages.
	Features proto.Features `json:"features,omitempty"`
	Seed     uint64         `json:"seed"` // of calibration searches
	// HealthPeriod is the time of one round over all modules; 0:
	// DefaultHealthPeriod, negative: no rounds.
	HealthPeriod time.Duration `json:"health_ns"`
	// Lock is how the cells of its bundles are held in service; zero: not.
	Lock ocs.LockConfig `json:"lock"`
	// HealthModules is how many modules are read in a period, 0: all. The
	// samples are told when every module has had its turn. Ten thousand nodes
	// on one processor can afford one.
	HealthModules int `json:"health_modules"`
	// Decide is the modelled time of one decision for ledgers on a virtual
	// clock, where thinking takes none; whoever steps the agent submits its
	// work that much later. 0: the clock is real, the ledger has what was
	// measured.
	Decide time.Duration `json:"decide_ns"`
	// Prompt is how soon the thread that answers edges runs, where that is not
	// for the simulator to say: it widens the node's envelope.
	Prompt *hal.Prompt `json:"prompt,omitempty"`
	// Of a switch, a board with mirrors: what its maker measured.
	Factory *mems.Factory `json:"-"`
	// Thresholds of the power at every port of a side; not set: no alarms.
	Thresholds [hal.NumSides]circuit.Thresholds `json:"-"`
	// Box is a commercial switch in place of a board, with so many ports on
	// either side.
	Box      *box.Config `json:"-"`
	BoxPorts int         `json:"-"`
	// Lines serves one client of a switch in the language of a box; nil: there
	// are no clients. ScriptsFirst lets them change circuits while a planner's
	// generation is in force.
	Lines        func(*circuit.Served) LineServer `json:"-"`
	ScriptsFirst bool                             `json:"-"`
	// Labels of ports, such as 3A, and what keeps them when a tool has set some.
	Labels     map[string]string             `json:"-"`
	KeepLabels func(map[string]string) error `json:"-"`
	// Wall is the time of day at now, in seconds since 1970 UTC; nil: 1970 began at 0.
	Wall func(now time.Duration) int64 `json:"-"`
}

// DefaultHealthPeriod is chosen: a case warms up in minutes.
const DefaultHealthPeriod = 10 * time.Second

// InputKind tells which field of an Input is set.
type InputKind uint8

const (
	InPacket     InputKind = iota + 1 // Packet, received At
	InHardware                        // Hardware; levels of lines before the first Poll come as edges
	InPersisted                       // ID of the record that is on disk now
	InAsk                             // Ask, of someone on this host
	InSendFailed                      // the link lost what it took
	InLine                            // Line of the client ID; nil: it is gone
	InAlarm                           // Alarm, of the runner: somebody should know
	InRestart                         // what OutRestart asked for can be; Text says why not
	InJournal                         // the journal cannot be written, Text says why; "": it can be again
	InFirmware                        // what OutFirmware asked for is Line, in a recording only ID, its length; Text says why not
	InRequest                         // Line, of a tool that drives a switch: the client ID's; nil: it is gone
)

// Input is one thing that happened to the agent.
type Input struct {
	Kind     InputKind
	Packet   proto.Packet
	At       time.Duration // when Packet came in, where it had to wait; 0: now
	Hardware hal.Event
	ID       uint64
	Ask      Ask
	Line     []byte `json:",omitempty"`
	Alarm    Alarm
	Text     string `json:",omitempty"`
}

// Alarm is a fault that somebody should know of.
type Alarm struct {
	Bundle   proto.BundleID
	Path     proto.Path
	Module   uint8 // 0 where it cannot be named
	Text     string
	Resolved bool
}

// OutputKind tells which field of an Output is set.
type OutputKind uint8

const (
	OutSend      OutputKind = iota + 1 // Packet; a subscription too
	OutSubmit                          // Op on Bus
	OutPersist                         // append Saved to the journal, then deliver InPersisted with ID
	OutAnswer                          // Answer to an Ask
	OutCalibrate                       // Calibration of Bundle is new: keep it
	OutLine                            // Record is what a client, ID, is answered; none: it is sent away
	OutRestart                         // is the software Text, "" any, there to be started? Then deliver InRestart
	OutEnd                             // this life is over, and all that it said on disk: start it anew
	OutFirmware                        // the file of the modules' firmware Text is wanted: deliver InFirmware
	OutBins                            // Record is a row of the records, to be kept at slot ID: see package pm
	OutLog                             // Text for a log: a state changed (Level 0), degraded (1), needs a person (2)
)

// Output is one thing to be done.
type Output struct {
	Kind        OutputKind
	Bus         hal.BusID
	Bundle      proto.BundleID
	Level       uint8
	Op          *hal.Op
	Packet      proto.Packet
	ID          uint64
	Record      []byte
	Saved       *Record
	Answer      *Answer
	Calibration *ocs.Calibration
	Text        string
}

// AskVerb is what someone on the host wants.
type AskVerb uint8

const (
	AskStatus    AskVerb = iota + 1
	AskCalibrate         // Bundle, which must carry nothing
	AskPath              // Bundle to Path, which must carry nothing
	AskHostFault         // the GPUs are gone, Text says why
	AskHostOK
	AskHold // of a switch: Override of Port of Array
	// AskRelease lets the device Text out of quarantine, "" all; the runner
	// answers it.
	AskRelease
	AskPeek // the register Text; the runner answers it
	AskPoke // Value into it, of a bundle that is dark
	AskDump // the memory of Module of Bundle, of kind cmis
	// AskRestart starts the agent anew when the planner gives leave within Value
	// milliseconds, or else where it protects nothing.
	AskRestart
	AskBins     // records of Bins from bin Value on
	AskFirmware // of a planner alone: modules of Bundle are to take other firmware
)

// Ask is a question of someone on the host; Answer.ID is its ID.
type Ask struct {
	ID     uint64
	Verb   AskVerb
	Bundle proto.BundleID
	Path   proto.Path
	Text   string
	Module int
	Value  uint32

	Array    uint8 // side of a switch, 0 = A
	Port     uint16
	Override proto.Override
	Bins     *proto.BinScope
	Image    []byte `json:"-"` // of AskFirmware; none: Text says why
}

// Answer ends an Ask. Err is nil when it was done.
type Answer struct {
	ID       uint64        `json:"-"`
	Err      *proto.Error  `json:"error,omitempty"`
	Status   *Status       `json:"status,omitempty"`
	Took     time.Duration `json:"took_ns,omitempty"`         // on the board's clock, of AskPath and AskCalibrate
	Ledger   *proto.Ledger `json:"ledger,omitempty"`          // of AskPath
	Modelled []string      `json:"ledger_modelled,omitempty"` // parts of the ledger that were not measured
	Released int           `json:"released,omitempty"`        // devices, of AskRelease
	Value    uint32        `json:"value,omitempty"`           // of AskPeek and AskPoke
	Bits     int           `json:"bits,omitempty"`            // of the register
	Image    []byte        `json:"image,omitempty"`           // of AskDump
	Failing  []Failing     `json:"failing,omitempty"`         // of AskCalibrate: the modules that it failed on
	Text     string        `json:"text,omitempty"`            // of the verb metrics
	Bins     []proto.Bin   `json:"bins,omitempty"`
	Next     uint32        `json:"next,omitempty"` // of AskBins: where to go on, 0: these were all
}

// Failing is a module that a calibration failed on.
type Failing struct {
	Module uint8  `json:"module"`
	Cell   *uint8 `json:"cell"` // nil: no cell of it
	Cause  string `json:"cause"`
}

// Status is what an agent says of itself on the host.
type Status struct {
	Fabric   string         `json:"fabric"` // that it runs for
	Reported proto.Reported `json:"reported"`
	Bundles  []BundleStatus `json:"bundles"`
	Switch   *SwitchStatus  `json:"switch,omitempty"`
	LinkUp   bool           `json:"link_up"`
	Unacked  int            `json:"events_unacked"` // that the planner has not acknowledged
	UptimeUS int64          `json:"uptime_us"`
	LateUS   int64          `json:"late_us"`           // by which, at least, its work began too late three times in a round of telemetry
	Samples  []proto.Sample `json:"samples,omitempty"` // the last health round's
	bypasses passed
	calls    *calls
	// Of a running agent.
	Quarantine []QuarantineStatus `json:"quarantine,omitempty"`
	Recorder   *RecorderStatus    `json:"recorder,omitempty"`
	Prompt     *PromptStatus      `json:"prompt,omitempty"` // on real hardware
}

// PromptStatus is how soon the thread that answers edges runs.
type PromptStatus struct {
	proto.Prompt
	LostEdges uint64   `json:"lost_edges"`
	Missing   []string `json:"missing,omitempty"` // what the machine refused, and why
}

// QuarantineStatus is a device that is kept off its bus.
type QuarantineStatus struct {
	Device  string `json:"device"` // bus/address, or bus/mux.channel/address
	SinceUS int64  `json:"since_us"`
	Absent  bool   `json:"absent"` // it did not acknowledge its address since
	Cause   string `json:"cause"`  // the last error
}

// RecorderStatus is how the bus recorder stands.
type RecorderStatus struct {
	Bytes     int    `json:"bytes"`
	Limit     int    `json:"limit"`   // bytes that it comes to, and then keeps to
	Entries   uint64 `json:"entries"` // since the agent's start
	Whole     bool   `json:"whole"`   // nothing is forgotten yet
	Listeners int    `json:"listeners"`
}

// SwitchStatus is how a circuit switch stands, in words.
type SwitchStatus struct {
	Ports    int             `json:"ports"`
	Busy     bool            `json:"busy"`
	Reason   string          `json:"reason,omitempty"` // why it is out of service
	DarkUS   int64           `json:"dark_us"`          // of the last change
	Circuits []CircuitStatus `json:"circuits"`
	Held     []string        `json:"held"` // ports that an operator holds off
}

// CircuitStatus is one circuit.
type CircuitStatus struct {
	Circuit string         `json:"circuit"` // ports from 1, such as 3A-17B
	A       uint16         `json:"a"`       // ports from 0
	B       uint16         `json:"b"`
	Job     proto.JobID    `json:"job"`
	State   string         `json:"state"`
	Loss    proto.MilliDBm `json:"loss_mdb"`
	Factory proto.MilliDBm `json:"factory_mdb"`
	Moves   int            `json:"moves"` // of the last tuning
	TookUS  int64          `json:"took_us"`
	Reason  string         `json:"reason,omitempty"`
}

// BundleStatus is how the optics of one bundle stand, in words.
type BundleStatus struct {
	Bundle       proto.BundleID   `json:"bundle"`
	Machine      string           `json:"machine"`
	Ready        bool             `json:"ready"`
	Calibrated   bool             `json:"calibrated"`
	Path         string           `json:"path"`
	Target       string           `json:"target"`
	State        string           `json:"state"`
	Lit          []string         `json:"lit"`           // paths with light
	Expected     *proto.MilliDBm  `json:"expected_mdbm"` // nil: never measured
	Measured     *proto.MilliDBm  `json:"measured_mdbm"`
	LimitErrors  uint32           `json:"limit_errors"`
	BusErrors    uint32           `json:"bus_errors"`
	Step         string           `json:"step,omitempty"` // of a calibration under way
	Modules      int              `json:"modules_done"`
	Measurements uint32           `json:"measurements"`
	ElapsedUS    int64            `json:"elapsed_us"`
	ReadUS       int64            `json:"read_us"`            // age of the newest reading of its modules, 0: there is none
	Reason       string           `json:"reason,omitempty"`   // why it is not ready
	HeldByHand   bool             `json:"held_by_hand"`       // until the planner's next plan
	Held         string           `json:"held,omitempty"`     // what of the path in use is held against drift; none of the dark
	NotHeld      string           `json:"not_held,omitempty"` // why not all of it
	Unproven     string           `json:"unproven,omitempty"` // why nobody can say whether its light is good
	Hold         []ocs.Hold       `json:"hold,omitempty"`     // of each module, once the lock took hold of one
	Flags        []ocs.FlagRaises `json:"flags,omitempty"`    // that CMIS modules raised; a path without light raises RxLOS
}
