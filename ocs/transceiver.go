package ocs

import (
	"math"
	"time"

	"ringlight/hal"
	"ringlight/proto"
)

// Never is the time of a deadline that is not running.
const Never = time.Duration(math.MaxInt64)

// Config is what a Transceiver is told at birth.
type Config struct {
	Board  *hal.Board
	Bundle proto.BundleID
	Latch  *Latch
	// Calibration of the bundle; nil: it can only be dark or calibrated. It is
	// shared and never written.
	Calibration *Calibration
	Seed        uint64 // of calibration searches
}

// BusOp is bus work to be submitted. Its Op's token has 56 bits of ours; the
// top 8 are the caller's, who brings the completion back.
type BusOp struct {
	Bus hal.BusID
	Op  *hal.Op
}

// Transceiver is all modules of one bundle, driven as one.
type Transceiver struct {
	cfg   Config
	state State
}

// New makes a Transceiver; it does nothing before Start.
func New(cfg Config) *Transceiver { return &Transceiver{cfg: cfg} }

// Start reads the hardware back and adopts it.
func (t *Transceiver) Start(now time.Duration) {}

// Select asks for a path.
func (t *Transceiver) Select(now time.Duration, p proto.Path) error { return ErrNotReady }

// Calibrate starts to find every cell.
func (t *Transceiver) Calibrate(now time.Duration) error { return ErrNotReady }

// Light tells the filtered light of a path.
func (t *Transceiver) Light(now time.Duration, p proto.Path, lit bool) {}

// Poll takes completions and puts out bus work.
func (t *Transceiver) Poll(now time.Duration, done []*hal.Completion, out []BusOp) ([]BusOp, time.Duration) {
	return out, Never
}

// TakeEvents appends what was found since the last call.
func (t *Transceiver) TakeEvents(buf []Event) []Event { return buf }

// Status is how the bundle stands.
func (t *Transceiver) Status() Status { return Status{} }

// HealthRound reads the health of the next module.
func (t *Transceiver) HealthRound(now time.Duration) {}

// Samples appends the newest health samples.
func (t *Transceiver) Samples(now time.Duration, dst []proto.Sample) []proto.Sample { return dst }
