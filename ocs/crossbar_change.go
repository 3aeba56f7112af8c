package ocs

import (
	"slices"

	"ringlight/hal"
)

// check finds what forbids a change of a switch of so many ports on either
// side; at is the circuit that a port is in.
func (ch *Change) check(portsA, portsB int, at func(side int, port uint16) (CrossPair, bool)) error {
	bad := func(p CrossPair, err error) error { return &CircuitError{p, err} }
	inside := func(p CrossPair) bool { return int(p.A) < portsA && int(p.B) < portsB }
	for _, p := range ch.Remove {
		if !inside(p) {
			return bad(p, hal.ErrOutOfRange)
		}
		if have, any := at(hal.SideA, p.A); ch.Mode == ChangeSafe && (!any || have != p) {
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
		if ch.Mode != ChangeSafe {
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
