package proto

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// NodeID numbers a node of a fabric in HBD order, from 0.
type NodeID uint32

// FirstSwitch is the lowest NodeID of a switch: switches share topics and
// messages with nodes and have their numbers above them.
const FirstSwitch NodeID = 1 << 20

// IsSwitch tells a switch's number from a node's.
func (n NodeID) IsSwitch() bool { return n >= FirstSwitch }

// JobID numbers the jobs that circuits are for; 0: none.
type JobID uint32

// ByHand is the job of a circuit in a report that an operator has made, and no plan: it stays
// until an operator takes it away, or a plan wants a port of it.
const ByHand JobID = 1<<32 - 1

// Planned is the job that a plan has a circuit for; 0: none.
func (j JobID) Planned() JobID {
	if j == ByHand {
		return 0
	}
	return j
}

// BundleID numbers the OCSTrx bundles of one node, from 0.
type BundleID uint8

// RingID numbers a ring; it is never reused while the fabric lives.
type RingID uint32

// FirstGroup is the lowest RingID that stands for a group of switches, on whose
// decision topic the decisions of its switches come: FirstGroup + group.
const FirstGroup RingID = 1 << 24

// Generation counts the planner's decisions. It only grows: a roll-back is a
// new generation with old content.
type Generation uint64

// Term fences planners: it grows at every start of a planner, and a lower
// term is refused everywhere.
type Term uint64

// Session is drawn at random at every start of an agent. A death note or a
// command that carries another session is not for this life of the agent.
type Session uint64

// MilliDBm is an optical power in thousandths of a dBm, or a loss in
// thousandths of a dB.
type MilliDBm int32

// NoPower is the value of a power that was never measured; it is not zero.
const NoPower MilliDBm = -1 << 31

func (p MilliDBm) String() string {
	if p == NoPower {
		return "-"
	}
	return strconv.FormatFloat(float64(p)/1000, 'f', 2, 64) + " dBm"
}

// Known is nil for a power that was never measured.
func (p MilliDBm) Known() *MilliDBm {
	if p == NoPower {
		return nil
	}
	return &p
}

// Path is where a bundle sends its light and which photodiodes it listens to.
type Path uint8

// The four paths of a bundle ([IHBD] sec 4.1).
const (
	Dark      Path = iota // squelched by Tx-disable
	Loopback              // upper half joined to lower half inside the node
	External1             // both halves on the first outside fibre
	External2             // both halves on the second outside fibre
	numPaths
)

// NumPaths is the number of paths a bundle can take, Dark included.
const NumPaths = int(numPaths)

var pathNames = [...]string{"dark", "loopback", "external1", "external2"}

func (p Path) String() string { return NameOf(pathNames[:], uint8(p)) }

// External reports whether the path leaves the node.
func (p Path) External() bool { return p == External1 || p == External2 }

// ParsePath reads the name of a path.
func ParsePath(s string) (Path, error) {
	for i, n := range pathNames {
		if n == s {
			return Path(i), nil
		}
	}
	return 0, fmt.Errorf("path %q: want dark, loopback, external1 or external2", s)
}

// PortState says what the light of a bundle says; the names are those of the
// switch-abstraction OCS objects.
type PortState uint8

const (
	Blocked  PortState = iota // no light is meant to pass
	Tuning                    // switched, not yet confirmed by light
	Tuned                     // confirmed by the photodiodes
	Failed                    // own optics did not do what was asked
	Unproven                  // there is light, and nobody can say whether it is good
)

// portStates is what there is to know of a state.
var portStates = [...]struct {
	name  string
	light string // the word of the switch abstraction for a circuit's light
	lit   bool

	// Of a state that came after the first release: what a planner has that knows it,
	// and what others are told.
	needs Features
	other PortState
}{
	Blocked:  {name: "blocked", light: "blocked"},
	Tuning:   {name: "tuning", light: "tuning"},
	Tuned:    {name: "tuned", light: "connected", lit: true},
	Failed:   {name: "failed", light: "failed"},
	Unproven: {name: "unproven", light: "connected", lit: true, needs: FeatureUnproven, other: Tuned},
}

// NumPortStates is how many states a port can be in.
const NumPortStates = len(portStates)

// KnownStates are the features of a planner that knows all states.
func KnownStates() (all Features) {
	for i := range portStates {
		all |= portStates[i].needs
	}
	return all
}

// Lit reports whether light passes, be it proven to be good or not.
func (s PortState) Lit() bool { return int(s) < NumPortStates && portStates[s].lit }

// Light is what a circuit's light is called by operators of switches.
func (s PortState) Light() string {
	if int(s) < NumPortStates {
		return portStates[s].light
	}
	return portStates[Failed].light
}

// ToldAs is a state in words that a planner with features knows.
func (s PortState) ToldAs(known Features) PortState {
	for int(s) < NumPortStates && !known.Has(portStates[s].needs) {
		s = portStates[s].other
	}
	return s
}

func (s PortState) String() string {
	if int(s) < NumPortStates {
		return portStates[s].name
	}
	return NameOf(nil, uint8(s))
}

// Override is an operator's hold on a port, stronger than any plan.
type Override uint8

const (
	Normal Override = iota
	ForceBlocked
	PoweredOff
)

var overrideNames = [...]string{"normal", "force_blocked", "powered_off"}

func (o Override) String() string { return NameOf(overrideNames[:], uint8(o)) }

// Held is what of a bundle's path in service its agent holds against drift.
type Held uint8

const (
	HeldNothing Held = iota // or the agent does not say
	HeldOnDrift             // MZIs, once light is found on their wrong side
	HeldMZIs                // MZIs, and not the matrix behind them
	HeldAll                 // all cells of the path
)

var heldNames = [...]string{"nothing", "mzis_on_drift", "mzis", "all"}

func (h Held) String() string { return NameOf(heldNames[:], uint8(h)) }

// Of tells people what the drift lock of path p acts on; empty where nothing is lit.
// The matrix is a part of the loopback only.
func (h Held) Of(p Path) string {
	text := "drift lock on MZIs"
	switch {
	case p == Dark:
		return ""
	case h == HeldNothing:
		return "drift lock off"
	case h == HeldAll:
		return "drift lock on"
	case h == HeldOnDrift:
		text = "drift lock on MZIs once they drift"
	case h != HeldMZIs:
		return "drift lock " + h.String()
	}
	if p == Loopback {
		text += ", not on the matrix"
	}
	return text
}

// Holding tells people what the drift lock of a bundle's path acts on, and how long
// the path had been in use when the node last reported; empty where nothing is lit.
func (m *Reported) Holding(b *BundleReport) string {
	text := b.Held.Of(b.Path)
	if text == "" {
		return ""
	}
	used := time.Duration(max(m.UptimeMicros, b.SinceMicros)-b.SinceMicros) * time.Microsecond
	return b.Path.String() + ": " + text + " (last report: " + used.Round(time.Second).String() + " on this path)"
}

// Features are what an agent or planner can do beside what the protocol's first
// minor asks of all: a bit each, only ever added. Who needs one of another looks
// for its bit first, so that a release works with the one before it and after.
type Features uint64

// FeatureRestart: an agent starts itself anew when told to, a planner gives leave
// for that to agents that ask.
const FeatureRestart Features = 1 << 0

// FeatureUnproven: a planner knows the port state Unproven.
const FeatureUnproven Features = 1 << 6

// How far the sender is with seals, which come in one step after the other.
const (
	FeatureSeals   Features = 1 << 1 // it reads what is sealed
	FeatureSealed  Features = 1 << 2 // it seals what it says
	FeatureJudges  Features = 1 << 3 // it looks at seals, and tells of those that are not as they must be
	FeatureEnforce Features = 1 << 4 // it reads nothing without one
	// FeatureSealedReports: of a planner, that what agents say is to be sealed, too.
	FeatureSealedReports Features = 1 << 5
)

// UnsealedPlanner begins the text of an agent's alarm that what it hears of planners is
// not sealed as it must be.
const UnsealedPlanner = "what planners say is not sealed as it must be: "

// Release is the version that a software's name has, however it is written: what agents
// say of themselves, ringlight v1.2, or v1.2 alone.
func Release(software string) string { return strings.TrimPrefix(software, "ringlight ") }

// Has reports whether all of f are there.
func (a Features) Has(f Features) bool { return a&f == f }

// Side is one of the two ends at which a node hangs in its ring.
type Side uint8

const (
	Left Side = iota
	Right
)

var sideNames = [...]string{"left", "right"}

func (s Side) String() string { return NameOf(sideNames[:], uint8(s)) }

// Request is the reason that holds a side where it is, in rising precedence
// (ITU-T G.808.1, G.873.1).
type Request uint8

const (
	NoRequest Request = iota
	DoNotRevert
	WaitToRestore
	ManualSwitch
	SignalDegrade
	SignalFail
	ForcedSwitch
	Lockout
)

var requestNames = [...]string{"no_request", "do_not_revert", "wait_to_restore",
	"manual_switch", "signal_degrade", "signal_fail", "forced_switch", "lockout"}

func (r Request) String() string { return NameOf(requestNames[:], uint8(r)) }

// SideState is the state of one side of a node's protection machine.
type SideState uint8

const (
	SideEnd     SideState = iota // no candidate: the ring ends here, loopback
	SideWork                     // on a candidate, with light
	SideSwitch                   // a path is being switched
	SideListen                   // switched, waiting for the peer's light
	SideClosing                  // on the way into loopback
	SideClosed                   // loopback, listening for light after the deadline
)

var sideStateNames = [...]string{"end", "work", "switch", "listen", "closing", "closed"}

func (s SideState) String() string { return NameOf(sideStateNames[:], uint8(s)) }

// SideTimer names what a side waits for.
type SideTimer uint8

const (
	TimerNone    SideTimer = iota
	TimerHoldOff           // lost light may come back
	TimerRestore           // wait-to-restore
	TimerPlan              // for light of the planned candidate, before it is asked
	TimerSteady            // light, before a switch counts as restored
	TimerBan               // steady light that lifts a ban
)

var sideTimerNames = [...]string{"none", "hold_off", "wait_to_restore", "planned_light", "steady_light", "ban"}

func (t SideTimer) String() string { return NameOf(sideTimerNames[:], uint8(t)) }

// Mode is the standing of a whole node.
type Mode uint8

const (
	ModeUnplanned Mode = iota // cold start, no valid term heard yet: dark
	ModeService               // follows its plan
	ModeIsolated              // own optics failed: loopback, remediating
	ModeHostDown              // the host says its GPUs are gone: dark
	ModeDrained               // an operator took it out
)

var modeNames = [...]string{"unplanned", "service", "isolated", "host_down", "drained"}

func (m Mode) String() string { return NameOf(modeNames[:], uint8(m)) }

// Policy says what a side does on a loss.
type Policy uint8

const (
	PolicyBypass Policy = iota // act at once
	PolicyHold                 // report, act only when told
)

var policyNames = [...]string{"bypass", "hold"}

func (p Policy) String() string { return NameOf(policyNames[:], uint8(p)) }

// RingState is the planner's word on a ring.
type RingState uint8

const (
	RingForming RingState = iota
	RingInService
	RingDegraded
	RingDown
)

var ringStateNames = [...]string{"forming", "in_service", "degraded", "down"}

func (s RingState) String() string { return NameOf(ringStateNames[:], uint8(s)) }

// HealthState is how a fabric is, or as much of it as one check looks at: the worse the higher.
type HealthState uint8

const (
	HealthOK           HealthState = iota
	HealthDegraded                 // it works, with less than is wanted
	HealthFailed                   // something that is wanted does not work
	HealthNotInService             // nobody plans, so that nobody knows
)

var healthStateNames = [...]string{"ok", "degraded", "failed", "not_in_service"}

func (s HealthState) String() string { return NameOf(healthStateNames[:], uint8(s)) }

// FibreState is how a fibre is, by light.
type FibreState uint8

const (
	FibreIdle    FibreState = iota // no ring uses it
	FibreLit                       // both ends have light
	FibreDark                      // a ring wants it and it has none, or it is held to be cut
	FibreDoubted                   // it was held to be cut, and no light has proven it since
)

var fibreStateNames = [...]string{"idle", "lit", "dark", "doubted"}

func (s FibreState) String() string { return NameOf(fibreStateNames[:], uint8(s)) }

// NameOf keeps an unknown code, or one that has no name any more, readable
// instead of losing it.
func NameOf(names []string, code uint8) string {
	if int(code) < len(names) && names[code] != "" {
		return names[code]
	}
	return "unknown(" + strconv.Itoa(int(code)) + ")"
}
