package ocs

import (
	"testing"

	"ringlight/hal"
	"ringlight/hal/ltc2688"
	"ringlight/mzi"
)

// Goal: no code that the guard lets pass takes a heater or a module beyond its
// limits, whoever asks for what.
// Method: the largest code on every register of heaters of every plausible
// resistance; volts, current and power reckoned here from the code let through.
func TestGuardHoldsEveryLimit(t *testing.T) {
	for _, milliohm := range []uint32{0, 1, 900_000, 950_000, 1_000_000, 1_050_000, 2_000_000} {
		var g guard
		module := 0.0
		for k := range hal.CellsPerMod {
			if milliohm != 0 {
				g.know(k, milliohm)
			}
			worst := 0.0
			for register := range 2 {
				code := g.allow(k, register, 0xFFFF)
				volt := 10 * float64(code) / 65536
				// Unknown, and implausibly small: the least plausible.
				ohm := max(float64(milliohm), 900_000) / 1000
				milliwatt := 1000 * volt * volt / ohm
				if volt > 8.5 || volt/ohm > 10e-3 || milliwatt > 60 {
					t.Errorf("%d mOhm: cell %d gets %.3f V, %.2f mA, %.2f mW", milliohm, k, volt, 1000*volt/ohm, milliwatt)
				}
				worst = max(worst, milliwatt)
			}
			module += worst
		}
		if module > 2000 {
			t.Errorf("%d mOhm: the module gets %.1f mW", milliohm, module)
		}
		if g.cuts != 2*hal.CellsPerMod {
			t.Errorf("%d mOhm: %d cuts counted, want every one", milliohm, g.cuts)
		}
	}
}

// Goal: the guard leaves alone what is within the limits, and gives heat back
// that was taken away.
// Method: half the limit everywhere; then a full module, one heater cooled,
// another warmed.
func TestGuardLeavesGoodCodesAlone(t *testing.T) {
	var g guard
	code := ltc2688.Code(span, 5_000_000)
	for k := range hal.CellsPerMod {
		g.know(k, 1_000_000)
		for register := range 2 {
			if got := g.allow(k, register, code); got != code {
				t.Errorf("cell %d: %#x became %#x", k, code, got)
			}
		}
	}
	if g.cuts != 0 {
		t.Errorf("%d cuts", g.cuts)
	}
	full := ltc2688.Code(span, 7_700_000)
	for k := range hal.CellsPerMod {
		g.allow(k, 0, full)
	}
	if g.allow(hal.CellsPerMod-1, 0, full) == full {
		t.Fatal("36 heaters of 59 mW fit into 2 W")
	}
	g.allow(0, 0, 0)
	g.allow(0, 1, 0)
	g.allow(1, 0, 0)
	g.allow(1, 1, 0)
	g.allow(2, 0, 0)
	g.allow(2, 1, 0)
	if got := g.allow(hal.CellsPerMod-1, 0, full); got != full {
		t.Errorf("heat given back is not to be had: %#x of %#x", got, full)
	}
}

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
