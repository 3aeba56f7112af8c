package sim

import (
	"math"
	"testing"
)

// Goal: the bit errors of a receiver follow from its light as the textbook has it, and so
// many are drawn as are expected. Method: math.Erfc, which the simulator may not use, over
// five decades of light; the mean and the variance of 20,000 draws at each of six means.
func TestBitErrorsFollowTheLight(t *testing.T) {
	var m module
	for dbm := -20.0; dbm <= -8; dbm += 0.25 {
		milliwatt := math.Pow(10, dbm/10)
		q := milliwatt / math.Pow(10, sensitivityDBm/10) * sensitivityQ
		want := 0.5 * math.Erfc(q/math.Sqrt2)
		if got := m.errorRatio(milliwatt); math.Abs(got-want) > 0.012*want {
			t.Errorf("%.2f dBm: %.3e, want %.3e", dbm, got, want)
		}
	}
	if got := m.errorRatio(math.Pow(10, sensitivityDBm/10)); got < 0.9e-12 || got > 1.4e-12 {
		t.Errorf("at the sensitivity %.2e, want 1e-12", got)
	}
	for _, mean := range []float64{0.01, 0.5, 3, 29, 31, 4000} {
		const draws = 20_000
		var sum, squares float64
		for i := range uint64(draws) {
			n := float64(poisson(mean, derive(7, i)))
			sum, squares = sum+n, squares+n*n
		}
		got := sum / draws
		variance := squares/draws - got*got
		if off := math.Sqrt(mean / draws); math.Abs(got-mean) > 5*off || math.Abs(variance-mean) > 0.08*mean+5*off {
			t.Errorf("mean %g: %g, variance %g", mean, got, variance)
		}
	}
}
