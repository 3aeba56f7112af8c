package live

import (
	"math"
	"testing"
	"time"
)

// Goal: waste is the time mean of healthy GPUs in no full group, and the ideal
// what a big switch over the same healthy GPUs would leave over.
// Method: a day without a fault and a day with one, by hand.
func TestWasteIsATimeMean(t *testing.T) {
	w := waste{groupNodes: 8, nodes: 64, since: 2 * time.Hour}
	w.until(26*time.Hour, 64, 7) // eight spares
	w.until(50*time.Hour, 63, 7) // one of them gone
	real, ideal := w.ratios()
	if want := (8.0 + 7.0) / 128; math.Abs(real-want) > 1e-12 {
		t.Errorf("waste %v, want %v", real, want)
	}
	if want := (0.0 + 7.0) / 128; math.Abs(ideal-want) > 1e-12 {
		t.Errorf("ideal %v, want %v", ideal, want)
	}
	if r, i := (&waste{}).ratios(); r != 0 || i != 0 {
		t.Errorf("no time gives %v, %v", r, i)
	}
}
