package cmis

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// What an OCSTrx adds; the layout is in the package comment.
const (
	Trigger       = CustomLower
	TriggerAnswer = 65
	TriggerCount  = 66
	InForce       = 67
	TriggerTook   = 68
	Applied       = 70
	StatusBytes   = 7 // from Trigger on
	LockMode      = 71
	LockState     = 72
	LockBytes     = 6 // from LockMode on
	Bias          = 77
	BiasBytes     = Lanes
	BiasMicroamp  = 500 // of a count

	Apply       = 160
	ApplyAnswer = 161
	Levels      = 128
	LaneLevels  = 144
	Raised      = 160
	Cells       = 36
	Lanes       = 8
)

// Bits of a trigger.
const (
	TriggerValid = 1 << 7
	TriggerUpper = 1 << 4
	TriggerLower = 1 << 5
	TriggerPath  = 3
	triggerBits  = TriggerValid | TriggerUpper | TriggerLower | TriggerPath
)

// Answer is what came of a trigger or of Apply.
type Answer uint8

const (
	AnswerNone        Answer = iota // none yet
	AnswerDone                      //
	AnswerUnderWay                  //
	AnswerNotStaged                 // codes are missing, or were staged and not applied
	AnswerLowPower                  // the module is not in ModuleReady
	AnswerBadValue                  // no such path, or a code beyond a limit
	AnswerInService                 // lasers are in force: no calibration now
	AnswerCalibrating               // not while being calibrated
)

var answerNames = [...]string{"none", "done", "under way", "not staged", "low power", "bad value", "in service", "being calibrated"}

func (a Answer) String() string { return nameOf(answerNames[:], uint8(a)) }

// ValidTrigger reports whether a module takes the byte for a trigger.
func ValidTrigger(b byte) bool {
	return b&TriggerValid != 0 && b&^triggerBits == 0 && b&TriggerPath != 3
}

// ErrNotOCSTrx is a module without the custom pages of one.
var ErrNotOCSTrx = errors.New("no OCSTrx behind the management interface")

// Control is what page B0h says.
type Control struct {
	Trigger, Staging, Counters, Calibration, Lock, Bias, Carry, Own bool

	TriggerMax, SettleMax time.Duration
}

// controlBytes are bytes 128-139 of page B0h.
const controlBytes = 12

const controlMagic = "OCST"

// Control bits of byte 133.
const (
	controlTrigger = 1 << iota
	controlStaging
	controlCounters
	controlCalibration
	controlLock
	controlBias
	controlCarry
	controlOwn
)

// Bytes is c as a module holds it.
func (c Control) Bytes() [controlBytes]byte {
	var b [controlBytes]byte
	copy(b[:], controlMagic)
	b[4] = 1
	for i, on := range []bool{c.Trigger, c.Staging, c.Counters, c.Calibration, c.Lock, c.Bias, c.Carry, c.Own} {
		if on {
			b[5] |= 1 << i
		}
	}
	binary.BigEndian.PutUint16(b[6:], uint16(c.TriggerMax/time.Microsecond))
	binary.BigEndian.PutUint16(b[8:], uint16(c.SettleMax/time.Microsecond))
	b[10], b[11] = Cells, Lanes
	return b
}

// ParseControl reads bytes 128-139 of page B0h.
func ParseControl(b []byte) (Control, error) {
	switch {
	case len(b) < controlBytes:
		return Control{}, fmt.Errorf("%w: %d bytes", ErrNotOCSTrx, len(b))
	case string(b[:4]) != controlMagic:
		return Control{}, fmt.Errorf("%w: page B0h starts with %q", ErrNotOCSTrx, b[:4])
	case b[4] != 1:
		return Control{}, fmt.Errorf("%w: format %d", ErrNotOCSTrx, b[4])
	case b[10] != Cells || b[11] != Lanes:
		return Control{}, fmt.Errorf("%w: %d cells, %d lanes", ErrNotOCSTrx, b[10], b[11])
	}
	return Control{
		Trigger: b[5]&controlTrigger != 0, Staging: b[5]&controlStaging != 0, Counters: b[5]&controlCounters != 0,
		Calibration: b[5]&controlCalibration != 0, Lock: b[5]&controlLock != 0, Bias: b[5]&controlBias != 0, Carry: b[5]&controlCarry != 0, Own: b[5]&controlOwn != 0,
		TriggerMax: time.Duration(binary.BigEndian.Uint16(b[6:])) * time.Microsecond,
		SettleMax:  time.Duration(binary.BigEndian.Uint16(b[8:])) * time.Microsecond,
	}, nil
}

// Status is bytes 64-70 of lower memory.
type Status struct {
	Trigger byte
	Answer  Answer
	Count   uint8
	InForce byte
	Took    time.Duration
	Applied bool
}

// ParseStatus reads StatusBytes bytes from Trigger on.
func ParseStatus(b []byte) (Status, error) {
	if len(b) < StatusBytes {
		return Status{}, fmt.Errorf("cmis: status of %d bytes: %w", len(b), errShort)
	}
	return Status{Trigger: b[0], Answer: Answer(b[1]), Count: b[2], InForce: b[3],
		Took: time.Duration(binary.BigEndian.Uint16(b[4:])) * time.Microsecond, Applied: b[6]&1 != 0}, nil
}

// LockPhase is how the lock of a module's controller stands.
type LockPhase uint8

const (
	LockOff     LockPhase = iota // nothing is held
	LockSeeking                  // no look has come to its end since it began, or since the path
	LockHolding                  // the last look left no cell of the path under what is asked
	LockLost                     // it left one there
)

var lockPhaseNames = [...]string{"off", "seeking", "holding", "lost"}

func (p LockPhase) String() string { return nameOf(lockPhaseNames[:], uint8(p)) }

// Lock is bytes 71-76 of lower memory.
type Lock struct {
	On    bool
	Phase LockPhase
	Looks uint8 // that came to their end, modulo 256
	Cell  uint8 // of the largest error
	// Microrad is the largest error that the last look found, and trimmed.
	Microrad int32
	// Spread is how far the cells of the path have moved each by itself since the codes
	// were applied, rms, microradian up to LockSpreadMost: that or more.
	Spread int32
}

const (
	lockPhaseBits = 3
	lockSpread    = 2000 // microradian
	// LockSpreadMost is the largest Spread that there is room for.
	LockSpreadMost = lockSpread * (0xff >> 2)
)

// LockStateOf is byte 72.
func LockStateOf(p LockPhase, spread int32) byte {
	return byte(p)&lockPhaseBits | byte(min((spread+lockSpread-1)/lockSpread, LockSpreadMost/lockSpread))<<2
}

// ParseLock reads LockBytes bytes from LockMode on.
func ParseLock(b []byte) (Lock, error) {
	if len(b) < LockBytes {
		return Lock{}, fmt.Errorf("cmis: lock of %d bytes: %w", len(b), errShort)
	}
	return Lock{On: b[0] == 1, Phase: LockPhase(b[1] & lockPhaseBits), Spread: lockSpread * int32(b[1]>>2), Looks: b[2], Cell: b[3],
		Microrad: 10 * int32(binary.BigEndian.Uint16(b[4:]))}, nil
}
