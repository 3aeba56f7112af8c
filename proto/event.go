package proto

import "fmt"

// Events, alarms and why they happened.

// Ledger splits one switch into microseconds that add up to its total, from
// the loss of light to confirmed light. A LedgerMark beside it says what of it
// was measured.
type Ledger struct {
	_             struct{} `cbor:",toarray"`
	DetectMicros  uint32   // light gone to edge noted
	HoldoffMicros uint32
	DecideMicros  uint32 // edge noted to work on the bus, without the hold-off
	BusMicros     uint32
	SettleMicros  uint32
	ConfirmMicros uint32
}

// TotalMicros is the sum of the parts.
func (l Ledger) TotalMicros() uint32 {
	return l.DetectMicros + l.HoldoffMicros + l.DecideMicros + l.BusMicros + l.SettleMicros + l.ConfirmMicros
}

// LedgerMark tells which parts of a ledger are modelled; all others were
// measured. The zero mark, which no message spells out, is that of a simulated
// board on its virtual clock: there the instant at which the light went is
// known, and deciding, which takes no virtual time, is a constant.
type LedgerMark uint8

// Bits of a mark are only ever added.
const (
	// DetectModelled: nothing on real hardware sees the light go. The mean of
	// what the calibration measured stands for it.
	DetectModelled LedgerMark = 1 << iota
	DecideModelled
	// RealClock is set in every mark but that of a virtual clock.
	RealClock LedgerMark = 1 << 7
)

// Modelled names the modelled parts.
func (m LedgerMark) Modelled() []string {
	if m == 0 {
		m = DecideModelled
	}
	var parts []string
	if m&DetectModelled != 0 {
		parts = append(parts, "detect")
	}
	if m&DecideModelled != 0 {
		parts = append(parts, "decide")
	}
	return parts
}

// Text is the ledger in words; * stands behind what is modelled.
func (l Ledger) Text(m LedgerMark) string {
	star := map[string]string{}
	for _, part := range m.Modelled() {
		star[part] = "*"
	}
	return fmt.Sprintf("detect %d%s, hold-off %d, decide %d%s, bus %d, settle %d, confirm %d", l.DetectMicros, star["detect"],
		l.HoldoffMicros, l.DecideMicros, star["decide"], l.BusMicros, l.SettleMicros, l.ConfirmMicros)
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
	CauseRestore            // wait-to-restore is over
	CauseDegraded           // signal degrade of the selected path
	CauseRemedy             // tried again while isolated
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
	_                                      // 13 is reserved
	EvAlarm                                // raised or cleared, see Alarm and Resolved
	EvCalibrated                           //
	EvPathFailed                           // own optics did not follow
	EvBoundNotMet                          // the derived timers miss the 1 ms target
	EvSplitBrain                           // same generation, other plan
	EvStarted                              // the agent started
	EvLightUnselected                      // light appeared or went on a path not selected
	EvRequest                              // an operator's request for a side was taken, or, Resolved, is over
	EvRemedy                               // failed optics are tried again; Resolved: they are well
	EvJournal                              // the journal cannot be written: no plan is taken; Resolved: it can be
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
	SideBypassed bool       `cbor:"24,keyasint"`           // the side stands on another candidate than planned
	PortA        uint16     `cbor:"25,keyasint,omitempty"` // of the circuit that a switch's event is about
	PortB        uint16     `cbor:"26,keyasint,omitempty"`
	Job          JobID      `cbor:"27,keyasint,omitempty"` // of that circuit; 0: none, or the event is about no circuit
	// BypassSeq is the node's bypass count when this happened, so that a plan
	// need not wait for the next report to quote it.
	BypassSeq  uint64     `cbor:"28,keyasint,omitempty"`
	LedgerMark LedgerMark `cbor:"29,keyasint,omitempty"` // of Ledger; 0: of a virtual clock
}

// Alarm is a standing condition.
type Alarm struct {
	Kind        EventKind `cbor:"1,keyasint"`
	Severity    Severity  `cbor:"2,keyasint"`
	Bundle      BundleID  `cbor:"3,keyasint"`
	SinceMicros uint64    `cbor:"4,keyasint"`
	Text        string    `cbor:"5,keyasint,omitempty"`
	PortA       uint16    `cbor:"6,keyasint,omitempty"` // of a switch's circuit
	PortB       uint16    `cbor:"7,keyasint,omitempty"`
}
