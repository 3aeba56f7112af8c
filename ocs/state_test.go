package ocs

import (
	"testing"

	"ringlight/hal"
	"ringlight/mzi"
)

// Goal: the search's matrix is the board's.
// Method: every wire.
func TestMatrixIsTheBoards(t *testing.T) {
	for stage := range hal.MatrixStages - 1 {
		for port := range hal.Lanes {
			if mzi.Wire(stage, port) != hal.MatrixWire(stage, port) {
				t.Errorf("stage %d port %d: search says %d, board %d", stage, port, mzi.Wire(stage, port), hal.MatrixWire(stage, port))
			}
		}
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
