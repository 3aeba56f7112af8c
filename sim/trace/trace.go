package trace

import "time"

// Servers of the public trace: 400 were watched, of which only those that
// ever failed appear in it ([IHBD] App. A, the trace's own description).
const Servers = 400

// Event is a fault of a server, by number, that starts or ends.
type Event struct {
	At     time.Duration
	Server int
	Start  bool
	Fault  Fault
}

// Trace is a whole trace in order of time.
type Trace struct {
	// Servers is how many were watched; those that never failed have the
	// highest numbers.
	Servers int
	Span    time.Duration // events lie in 0 .. Span
	Events  []Event
}

// Effect is what a fault does to a node as its board and its neighbours see
// it.
type Effect uint8

const (
	None      Effect = iota // nothing is wrong
	HostFault               // the host says that its GPUs are gone; the board lives
	NodeDark                // the whole node loses its power
)

var effectNames = [...]string{"none", "host_fault", "node_dark"}

func (e Effect) String() string {
	if int(e) < len(effectNames) {
		return effectNames[e]
	}
	return "unknown"
}

// Effect of the fault. A server that loses its supply or crashes takes its
// board with it; everything else, a dead cable or network card included,
// leaves the board alive and is the host's word.
func (f Fault) Effect() Effect {
	switch f.Class {
	case "Power Supply", "System Crash":
		return NodeDark
	}
	return HostFault
}
