package study

import "testing"

// within2 compares with a figure that a paper prints.
func within2(t *testing.T, what string, got, want float64) {
	t.Helper()
	if got < want*0.98 || got > want*1.02 {
		t.Errorf("%s: %.4f, the paper has %.4f", what, got, want)
	}
}

// A ring at the paper's rate costs and takes what the paper prints for it; the
// Clos below it as much as the one of Alibaba's that the paper lists, whose
// spines have fewer ports than its leaves have uplinks.
// Method: bills at 6.4 Tb/s a ring and 400 Gb/s a port.
// Reference: [IHBD] Tables 6, 8
func TestInfiniteHBDCosts(t *testing.T) {
	for _, x := range []struct {
		k              int
		dollars, watts float64
	}{{2, 2626.80, 48.10}, {3, 3740.60, 72.05}} {
		cents, mw := bill{rings: x.k}.table8(0, 6400)
		fibres, _ := bill{fibres: 1}.table8(0, 0)
		if fibres != 680 {
			t.Errorf("a fibre costs %d cents", fibres)
		}
		within2(t, "ring, dollars", float64(cents)/100, x.dollars)
		within2(t, "ring, watts", float64(mw)/1000, x.watts)
	}
	clos, mw := bills[SystemBalanced].table8(400, 0)
	for _, x := range interconnects {
		if x.Name != "Alibaba HPN" {
			continue
		}
		// It has 2.82 ports, two cables of half the rate and 1.76 modules a GPU.
		own := float64(x.cents()) / float64(x.GPUs)
		ports := 128 * float64(x.Parts[0].Quantity) / float64(x.GPUs)
		modules := float64(x.Parts[2].Quantity) / float64(x.GPUs)
		port, module := float64(x.Parts[0].Cents)/128, float64(x.Parts[2].Cents)
		within2(t, "Clos, cents", float64(clos), own+(3-ports)*port+(2-modules)*module)
	}
	within2(t, "Clos, watts", float64(mw)/1000, 3*3145.0/128+2*12+0.2)
}
