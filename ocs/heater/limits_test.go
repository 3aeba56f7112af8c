package heater

import (
	"testing"

	"ringlight/hal"
)

// Goal: no code that the limits let pass takes a heater or a module beyond its
// limits, whoever asks for what.
// Method: the largest code on every register of heaters of every plausible
// resistance; volts, current and power reckoned here from the code let through.
func TestEveryLimitHolds(t *testing.T) {
	for _, milliohm := range []uint32{0, 1, 900_000, 950_000, 1_000_000, 1_050_000, 2_000_000} {
		var g Limits
		module := 0.0
		for k := range hal.CellsPerMod {
			if milliohm != 0 {
				g.Know(k, milliohm)
			}
			worst := 0.0
			for register := range 2 {
				code := g.Allow(k, register, 0xFFFF).Code()
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
		if g.Cuts() != 2*hal.CellsPerMod {
			t.Errorf("%d mOhm: %d cuts counted, want every one", milliohm, g.Cuts())
		}
	}
}

// Goal: the limits leave alone what is within the limits, and gives heat back
// that was taken away.
// Method: half the limit everywhere; then a full module, one heater cooled,
// another warmed.
func TestGoodCodesAreLeftAlone(t *testing.T) {
	var g Limits
	code := hal.HeaterCode(5_000_000)
	for k := range hal.CellsPerMod {
		g.Know(k, 1_000_000)
		for register := range 2 {
			if got := g.Allow(k, register, code).Code(); got != code {
				t.Errorf("cell %d: %#x became %#x", k, code, got)
			}
		}
	}
	if g.Cuts() != 0 {
		t.Errorf("%d cuts", g.Cuts())
	}
	full := hal.HeaterCode(7_700_000)
	for k := range hal.CellsPerMod {
		g.Allow(k, 0, full)
	}
	if g.Allow(hal.CellsPerMod-1, 0, full).Code() == full {
		t.Fatal("36 heaters of 59 mW fit into 2 W")
	}
	g.Allow(0, 0, 0)
	g.Allow(0, 1, 0)
	g.Allow(1, 0, 0)
	g.Allow(1, 1, 0)
	g.Allow(2, 0, 0)
	g.Allow(2, 1, 0)
	if got := g.Allow(hal.CellsPerMod-1, 0, full).Code(); got != full {
		t.Errorf("heat given back is not to be had: %#x of %#x", got, full)
	}
}
