package heater

import (
	"testing"

	"ringlight/hal"
)

// known is a driver of a module that is cold.
func known() *Driver {
	d := For(new(hal.Module))
	d.Cold()
	return d
}

// Goal: no code that the limits let pass takes a heater or a module beyond its
// limits, whoever asks for what.
// Method: the largest code on every register of heaters of every plausible
// resistance; volts, current and power reckoned here from the code let through.
func TestEveryLimitHolds(t *testing.T) {
	for _, milliohm := range []uint32{0, 1, 900_000, 950_000, 1_000_000, 1_050_000, 2_000_000} {
		g := known()
		module := 0.0
		for k := range hal.BenesCells {
			if milliohm != 0 {
				g.Know(k, milliohm)
			}
			worst := 0.0
			for register := range 2 {
				code := g.Allow(k, register, 0xFFFF).Code()
				volt := 10 * float64(code) / 65536
				// Unknown, and implausibly small: the least plausible.
				ohm := max(float64(milliohm), 450_000) / 1000
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
		most := Codes{}
		for k := range most[:hal.BenesCells] {
			most[k] = [2]uint16{0xFFFF, 0xFFFF}
		}
		if _, cuts := g.AllowAll(&most); cuts != hal.BenesCells+hal.CellMatrix {
			t.Errorf("%d mOhm: %d cuts counted, want every one", milliohm, cuts)
		}
	}
}

// Goal: the limits leave alone what is within the limits, and gives heat back
// that was taken away.
// Method: half the limit everywhere; then a full module, one heater cooled,
// another warmed.
func TestGoodCodesAreLeftAlone(t *testing.T) {
	g := known()
	code := hal.HeaterCode(5_000_000)
	for k := range hal.BenesCells {
		g.Know(k, 1_000_000)
		for register := range 2 {
			if got := g.Allow(k, register, code).Code(); got != code {
				t.Errorf("cell %d: %#x became %#x", k, code, got)
			}
		}
	}
	full := hal.HeaterCode(7_700_000)
	for k := range hal.BenesCells {
		g.Allow(k, 0, full)
	}
	if g.Allow(hal.BenesCells-1, 0, full).Code() == full {
		t.Fatal("36 heaters of 59 mW fit into 2 W")
	}
	g.Allow(0, 0, 0)
	g.Allow(0, 1, 0)
	g.Allow(1, 0, 0)
	g.Allow(1, 1, 0)
	g.Allow(2, 0, 0)
	g.Allow(2, 1, 0)
	if got := g.Allow(hal.BenesCells-1, 0, full).Code(); got != full {
		t.Errorf("heat given back is not to be had: %#x of %#x", got, full)
	}
}

// Goal: a heater that turns out to be another is judged anew, and so is what it leaves
// to the rest.
// Method: the last heater's share of a module that is full; then the others are known
// to be of more resistance, and of less again.
func TestWhatIsHeldIsJudgedAnew(t *testing.T) {
	g := known()
	full := hal.HeaterCode(7_300_000)
	last := hal.BenesCells - 1
	for k := range last {
		g.Know(k, 900_000)
		g.Allow(k, 0, full)
	}
	before := g.Allow(last, 0, 0xFFFF).Code()
	for k := range last {
		g.Know(k, 1_100_000)
	}
	if after := g.Allow(last, 0, 0xFFFF).Code(); after <= before {
		t.Errorf("others draw less, and it gets %#x after %#x", after, before)
	}
	for k := range last {
		g.Know(k, 900_000)
	}
	if after := g.Allow(last, 0, 0xFFFF).Code(); after != before {
		t.Errorf("others may draw more, and it gets %#x, want %#x", after, before)
	}
}
