package hal

import (
	"errors"
	"slices"
)

// One error per cause. A Completion's Err matches exactly one of them with
// errors.Is.
var (
	ErrNoDevice        = errors.New("no such bus or device")
	ErrAddressNACK     = errors.New("address not acknowledged")
	ErrByteNACK        = errors.New("byte not acknowledged")
	ErrClockStretch    = errors.New("clock stretched too long")
	ErrTimeout         = errors.New("deadline exceeded")
	ErrBusStuck        = errors.New("bus stuck low")
	ErrArbitrationLost = errors.New("arbitration lost")
	ErrCRC             = errors.New("check sum wrong")
	ErrOutOfRange      = errors.New("out of range")
	ErrUnsupported     = errors.New("not supported by this bus")
	ErrQueueFull       = errors.New("bus queue full")
	ErrQuarantined     = errors.New("quarantined after repeated errors")
	ErrClosed          = errors.New("board closed")
	ErrRelieved        = errors.New("another thread has taken over")
	ErrInUse           = errors.New("in use by another driver")
)

// causes are all causes of a failed bus operation. Their order is part of what sockets
// and recordings hold: only ever add at the end.
var causes = []error{ErrNoDevice, ErrAddressNACK, ErrByteNACK, ErrClockStretch, ErrTimeout, ErrBusStuck, ErrArbitrationLost, ErrCRC, ErrOutOfRange,
	ErrUnsupported, ErrQueueFull, ErrQuarantined, ErrClosed, ErrRelieved, ErrInUse}

// Caused reports whether err matches one of these causes.
func Caused(err error) bool {
	return slices.ContainsFunc(causes, func(cause error) bool { return errors.Is(err, cause) })
}

// otherCause is the number of an error that is none of them.
const otherCause = 0xFF

// CauseNumber is a cause as sockets and recordings write it; 0: there is no error.
func CauseNumber(err error) uint8 {
	if err == nil {
		return 0
	}
	if errors.Is(err, ErrQuarantined) { // which names its device's last error too
		err = ErrQuarantined
	}
	if i := slices.IndexFunc(causes, func(cause error) bool { return errors.Is(err, cause) }); i >= 0 {
		return uint8(1 + i)
	}
	return otherCause
}

// NumberedError is an error as it was written: it has its text, and matches its cause,
// where that is known here.
func NumberedError(number uint8, text string) error {
	if number == 0 {
		return nil
	}
	e := &numbered{text: text}
	if int(number) <= len(causes) {
		e.cause = causes[number-1]
	}
	return e
}

type numbered struct {
	text  string
	cause error
}

func (e *numbered) Error() string { return e.text }
func (e *numbered) Unwrap() error { return e.cause }

// silences are causes that say nothing of what a device was asked.
var silences = []error{ErrAddressNACK, ErrByteNACK, ErrClockStretch, ErrTimeout, ErrBusStuck, ErrArbitrationLost, ErrCRC, ErrQuarantined}

// Silent reports whether err is that of a bus or chip that does not answer, as
// after the loss of its supply.
func Silent(err error) bool {
	return slices.ContainsFunc(silences, func(cause error) bool { return errors.Is(err, cause) })
}
