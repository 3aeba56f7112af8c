package ocs_test

import (
	"math"
	"slices"
	"testing"

	"ringlight/hal"
	"ringlight/mzi"
	"ringlight/proto"
)

// permutations calls visit with every permutation of the lanes.
func permutations(visit func(mzi.Permutation)) {
	var each func(p mzi.Permutation, k int)
	each = func(p mzi.Permutation, k int) {
		if k == hal.Lanes {
			visit(p)
			return
		}
		for i := k; i < hal.Lanes; i++ {
			p[k], p[i] = p[i], p[k]
			each(p, k+1)
			p[k], p[i] = p[i], p[k]
		}
	}
	each(mzi.Permutation{0, 1, 2, 3, 4, 5, 6, 7}, 0)
}

// Goal: any permutation of the lanes is realised: each lane comes out where it
// must, with little loss and little of the others.
// Method: one module calibrated by production code; codes of all 40,320
// permutations by production code; the light by the simulator's truth. Crosstalk
// is what all seven others send to an output, against its own lane.
func TestEveryPermutationOfTheLanes(t *testing.T) {
	r := calibrated(t, 1, proto.Dark)
	m := r.optics[0].Status().Calibration.Modules[0]
	var losses, crosstalk []int32
	seen, realised, every := 0, 0, 1
	if testing.Short() {
		every = 8
	}
	permutations(func(p mzi.Permutation) {
		if seen++; seen%every != 0 {
			return
		}
		both, err := m.LaneCodes(standardOptics(), p)
		if err != nil {
			t.Fatalf("%v: %v", p, err)
		}
		var codes [hal.CellsPerMod]uint16
		for k := range codes {
			codes[k] = both[k][0]
		}
		light := r.world.LaneTruth(r.id, 0, 0, &codes)
		good := true
		for in, out := range p {
			loss := -light[in][out]
			others := 0.0
			for j := range light {
				if j != in {
					others += math.Pow(10, float64(light[j][out])/10_000)
				}
			}
			x := int32(10_000*math.Log10(others)) - light[in][out]
			losses, crosstalk = append(losses, loss), append(crosstalk, x)
			good = good && loss < 2_000 && x < -18_000
		}
		if good {
			realised++
		} else {
			t.Errorf("%v: not realised: %v", p, light)
		}
	})
	if seen != 40_320 || realised != seen/every {
		t.Errorf("%d permutations realised", realised)
	}
	slices.Sort(losses)
	slices.Sort(crosstalk)
	n := len(losses)
	t.Logf("%d permutations realised; path loss p50 %.2f worst %.2f dB, crosstalk p50 %.1f p99 %.1f worst %.1f dB", realised,
		float64(losses[n/2])/1000, float64(losses[n-1])/1000, float64(crosstalk[n/2])/1000, float64(crosstalk[n-n/100-1])/1000, float64(crosstalk[n-1])/1000)
}

// Goal: the codes of the loopback's own permutation are those of the
// calibration; what is no permutation is refused.
// Method: code by code; two lanes to one.
func TestLaneCodesOfTheCalibration(t *testing.T) {
	r := calibrated(t, 1, proto.Dark)
	m := r.optics[0].Status().Calibration.Modules[0]
	codes, err := m.LaneCodes(standardOptics(), mzi.Halves(hal.Lanes))
	if err != nil {
		t.Fatal(err)
	}
	for k := range codes {
		for register := range codes[k] {
			// A microwatt of the power for pi is a quarter of a milliradian.
			if d := int(codes[k][register]) - int(m.Codes[k][register]); d < -4 || d > 4 {
				t.Errorf("cell %d register %d: %d, calibrated %d", k, register, codes[k][register], m.Codes[k][register])
			}
		}
	}
	if _, err := m.LaneCodes(standardOptics(), mzi.Permutation{}); err == nil {
		t.Error("eight lanes to one: accepted")
	}
}

// standardOptics are those of the default board.
func standardOptics() *hal.Optics {
	o := hal.Standard()
	return &o
}
