package ocs

import (
	"time"

	"ringlight/proto"
)

// Timing is what calibration measured of a bundle's hardware: how long it takes
// to see light come or go, and from a Select to the settled path.
type Timing struct {
	DetectMax, DetectMin time.Duration
	SwitchMax, SwitchMin time.Duration
}

// Envelope is t as the planner gets it; skew is the time between the first and
// the last laser of a dying node. A lower bound under a microsecond is told as
// one: nothing happens in no time, and 0 stands for what nobody has measured.
func (t Timing) Envelope(skew time.Duration) proto.Envelope {
	least := func(d time.Duration) uint32 { return uint32(max(d/time.Microsecond, 1)) }
	return proto.Envelope{
		DetectMaxMicros: max(micros(t.DetectMax), 1), DetectMinMicros: least(t.DetectMin),
		SwitchMaxMicros: max(micros(t.SwitchMax), 1), SwitchMinMicros: least(t.SwitchMin),
		SkewMicros: micros(skew),
	}
}

// micros rounds up: an upper bound must stay one.
func micros(d time.Duration) uint32 {
	return uint32((d + time.Microsecond - 1) / time.Microsecond)
}

// Join is the narrowest envelope that holds t and o; a zero one holds nothing.
func (t Timing) Join(o Timing) Timing {
	switch {
	case t == Timing{}:
		return o
	case o == Timing{}:
		return t
	}
	return Timing{
		DetectMax: max(t.DetectMax, o.DetectMax), DetectMin: min(t.DetectMin, o.DetectMin),
		SwitchMax: max(t.SwitchMax, o.SwitchMax), SwitchMin: min(t.SwitchMin, o.SwitchMin),
	}
}

// FlagRaises is how often a module with a controller raised a flag of its own.
type FlagRaises struct {
	Module int    `json:"module"`
	Flag   string `json:"flag"` // as CMIS names it
	Times  uint32 `json:"times"`
}

// Flags are those that modules raised, as health rounds have read them.
func (t *Transceiver) Flags() (raised []FlagRaises) {
	if set := t.drive.controllers(); set != nil {
		for i := range set.Modules {
			for flag, times := range set.Modules[i].Flags.Raised {
				raised = append(raised, FlagRaises{i, flag, times})
			}
		}
	}
	return raised
}

// Status is how a bundle stands.
type Status struct {
	Machine    State
	Ready      bool       // a lit path may be selected
	Calibrated bool       //
	Path       proto.Path // set in the hardware
	Target     proto.Path // asked for
	State      proto.PortState
	Lit        [proto.NumPaths]bool
	Expected   proto.MilliDBm // own light on Path, weakest module
	Measured   proto.MilliDBm
	Timing     Timing
	// Calibration in force, nil for none.
	Calibration *Calibration
	LimitErrors uint32 // codes that the limits cut down
	BusErrors   uint32 // bus work that failed, retries included
	Progress    Progress
	Err         error // why not Ready
}

// Progress of a calibration.
type Progress struct {
	Step         string
	Measurements uint32
	Elapsed      time.Duration
	Done         int // modules
}

// Status is how the bundle stands.
func (t *Transceiver) Status() Status {
	s := Status{
		Machine: t.state, Ready: t.state == Idle && t.cfg.Calibration != nil, Calibrated: t.cfg.Calibration != nil,
		Path: t.path, Target: t.target, State: t.portState(), Lit: t.lit,
		Expected: t.verify.expected, Measured: t.verify.measured,
		Calibration: t.cfg.Calibration, LimitErrors: t.heat.limitErrors, BusErrors: t.busErrors, Err: t.err,
	}
	if t.cfg.Calibration != nil {
		s.Timing = t.cfg.Calibration.Timing
	} else if s.Err == nil && t.state == Idle {
		s.Err = ErrNotCalibrated
	}
	s.Progress, _ = t.drive.progress()
	return s
}
