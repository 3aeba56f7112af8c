package trace

import (
	"errors"
	"io"
	"time"
)

// Servers of the public trace: 400 were watched, of which only those that
// ever failed appear in it ([IHBD] App. A, the trace's own description).
const Servers = 400

// Event is a record with its server's number instead of its name.
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

// Read takes a whole trace. Servers are numbered in order of appearance.
func Read(r io.Reader) (*Trace, error) {
	in := NewReader(r)
	t := &Trace{}
	number := map[string]int{}
	for {
		rec, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		n, known := number[rec.Server]
		if !known {
			n = len(number)
			number[rec.Server] = n
		}
		t.Events = append(t.Events, Event{rec.At, n, rec.Start, rec.Fault})
		t.Span = rec.At
	}
	if len(t.Events) == 0 {
		return nil, errors.New("trace: no records")
	}
	t.Servers = max(Servers, len(number))
	return t, nil
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
