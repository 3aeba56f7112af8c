package hal

import (
	"bytes"
	"math"
	"time"
)

// BusID is the index of a bus in Board.Buses.
type BusID uint8

// LineID is the index of an input line in Board.Lines.
type LineID uint16

// Class orders the work that waits for one bus; a lower value goes first.
type Class uint8

const (
	ClassSwitch       Class = iota // moves light
	ClassVerify                    // confirms a switch
	ClassSafety                    // temperature, rail, limits
	ClassHousekeeping              // everything else
	NumClasses        = 4
)

// DefaultDeadline bounds one Op from its start on the wire: SMBus's 25 ms,
// which a stretched or stuck bus exceeds and a healthy one never does.
const DefaultDeadline = 25 * time.Millisecond

// Msg is one message on the wire.
//
// On I2C it writes W and then, after a repeated start, fills R; either may be
// empty but not both. On SPI, Addr is the chip select, W holds whole frames of
// Frame bytes with the select raised between them, and R, when not nil, is as
// long as W and takes what came back.
//
// On a text line W is sent as it is, if there is any, and R takes what comes
// back up to the byte Frame; the rest of R is zeros. Frame 0: each W has a connection of
// its own, and R takes what has arrived, nothing at the connection's end.
type Msg struct {
	Addr  uint16
	Frame uint8
	W, R  []byte
	// Secret is a part of W, a password, that nobody but the other end is told;
	// R may echo it.
	Secret []byte
}

// Redact is b as it may be recorded or logged.
func (m *Msg) Redact(b []byte) []byte {
	if len(m.Secret) == 0 {
		return b
	}
	return bytes.ReplaceAll(b, m.Secret, []byte("***"))
}

// Op is one piece of bus work: messages carried out back to back with nothing
// of another Op between them. The first that fails ends it. An Op and its
// buffers belong to the bus from Submit until its Completion.
type Op struct {
	Token    uint64 // the submitter's; comes back in the completion
	Class    Class
	Deadline time.Duration // 0 = DefaultDeadline
	Msgs     []Msg
}

// BusOp is an Op that is to be submitted, and where.
type BusOp struct {
	Bus BusID
	Op  *Op
}

// Never is the time of a deadline that is not running.
const Never = time.Duration(math.MaxInt64)

// Completion tells how an Op went. Err is nil or matches one of the causes in
// errors.go.
type Completion struct {
	Bus        BusID
	Op         *Op
	Start, End time.Duration // on the board's monotonic clock
	Msg        int           // the message that failed
	Err        error
}

// Edge is a change of an input line as the host saw it, some time after it
// happened on the board.
type Edge struct {
	Line LineID
	High bool
	// At is when the host noted it, on the board's clock: on Linux the kernel's
	// stamp of the interrupt, however late the thread that waits for it woke up.
	At time.Duration
	// Origin is when the light itself changed, where the board can tell, as a
	// simulated one can; 0: unknown. It is for ledgers, never for decisions.
	Origin time.Duration
}

// Event is what comes back from a board: exactly one of the two is set.
type Event struct {
	Completion *Completion
	Edge       *Edge
}
