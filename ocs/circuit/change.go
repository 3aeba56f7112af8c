package circuit

import (
	"errors"
	"fmt"
	"slices"

	"ringlight/hal"
)

// Why a change is refused, and why a circuit is not what it should be.
var (
	ErrNotReady     = errors.New("not ready")
	ErrOutOfService = errors.New("out of service")
	ErrPortInUse    = errors.New("port is in another circuit")
	ErrPortTwice    = errors.New("port named twice")
	ErrNoCircuit    = errors.New("no such circuit")
	ErrNoInput      = errors.New("no light comes in to tune by")
	ErrNotTuned     = errors.New("loss does not come down to what the factory measured")
)

// Error names the circuit that an error is about.
type Error struct {
	Pair Pair
	Err  error
}

func (e *Error) Error() string { return fmt.Sprintf("circuit %v: %v", e.Pair, e.Err) }
func (e *Error) Unwrap() error { return e.Err }

// Mode says what a change does to circuits that are in its way.
type Mode uint8

const (
	Safe      Mode = iota // a port in use refuses the whole change
	Update                // circuits in the way are removed first
	Overwrite             // all circuits but those named are removed first
)

// Change is one act: it is refused as a whole or done as a whole. Circuits are
// removed before any is created.
type Change struct {
	Mode   Mode
	Remove []Pair
	Create []Pair
	// Park sends mirrors in no circuit of which nobody knows where they stand
	// to where they point at nothing.
	Park bool
}

// Check finds what forbids a change of a switch of so many ports on either
// side; at is the circuit that a port is in.
func (ch *Change) Check(portsA, portsB int, at func(side int, port uint16) (Pair, bool)) error {
	bad := func(p Pair, err error) error { return &Error{p, err} }
	inside := func(p Pair) bool { return int(p.A) < portsA && int(p.B) < portsB }
	for _, p := range ch.Remove {
		if !inside(p) {
			return bad(p, hal.ErrOutOfRange)
		}
		if have, any := at(hal.SideA, p.A); ch.Mode == Safe && (!any || have != p) {
			return bad(p, ErrNoCircuit)
		}
	}
	usedA, usedB := make([]bool, portsA), make([]bool, portsB)
	for _, p := range ch.Create {
		if !inside(p) {
			return bad(p, hal.ErrOutOfRange)
		}
		if usedA[p.A] || usedB[p.B] {
			return bad(p, ErrPortTwice)
		}
		usedA[p.A], usedB[p.B] = true, true
		if ch.Mode != Safe {
			continue
		}
		for side, port := range [hal.NumSides]uint16{p.A, p.B} {
			if have, any := at(side, port); any && have != p && !slices.Contains(ch.Remove, have) {
				return bad(p, ErrPortInUse)
			}
		}
	}
	return nil
}
