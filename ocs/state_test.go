package ocs

import (
	"slices"
	"testing"

	"ringlight/hal"
	"ringlight/mzi"
)

// Goal: the search's matrix is the board's.
// Method: every coupler, and the wires behind it.
func TestMatrixIsTheBoards(t *testing.T) {
	if o := hal.Standard(); !slices.Equal(mzi.Benes, o.Couplers) {
		t.Errorf("search says %v, board %v", mzi.Benes, o.Couplers)
	}
	waveguide := [hal.Lanes]uint8{0, 1, 2, 3, 4, 5, 6, 7} // at each port
	for stage := range hal.MatrixStages {
		var next [hal.Lanes]uint8
		for port, w := range waveguide {
			if got := hal.Benes[4*stage+port/2][port%2]; got != w {
				t.Errorf("stage %d port %d: coupler on %d, wired to %d", stage, port, got, w)
			}
			if stage < hal.MatrixStages-1 {
				next[hal.MatrixWire(stage, port)] = w
			}
		}
		waveguide = next
	}
}

// Goal: only the changes of state that the diagram shows are possible.
// Method: every pair; an illegal one panics with both names.
func TestOnlyDrawnEdgesAreTaken(t *testing.T) {
	drawn := map[[2]State]bool{
		{Off, Reading}: true, {Reading, Reading}: true, {Reading, Staging}: true, {Reading, Idle}: true, {Reading, Faulted}: true,
		{Staging, Idle}: true, {Staging, Faulted}: true, {Staging, Reading}: true,
		{Idle, Calibrating}: true, {Idle, Staging}: true, {Idle, Reading}: true, {Idle, Faulted}: true,
		{Calibrating, Staging}: true, {Calibrating, Idle}: true, {Calibrating, Faulted}: true, {Calibrating, Reading}: true,
		{Faulted, Reading}: true,
		{Idle, Upgrading}:  true, {Upgrading, Upgrading}: true, {Upgrading, Reading}: true, {Upgrading, Faulted}: true,
	}
	try := func(from, to State) (taken bool) {
		defer func() { recover() }()
		tr := &Transceiver{state: from}
		tr.become(to)
		return tr.state == to
	}
	for from := Off; from < numStates; from++ {
		for to := Off; to < numStates; to++ {
			if got := try(from, to); got != drawn[[2]State{from, to}] {
				t.Errorf("%v to %v: taken %v", from, to, got)
			}
		}
	}
}
