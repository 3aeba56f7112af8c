package hal

import "errors"

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
)
