package ocs_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"ringlight/ocs"
	"ringlight/sim"
)

// FuzzLimitsCMIS is FuzzLimits with a CMIS module: no sequence of calls, faults,
// restarts and rubbish takes a heater beyond its limits or ends in a panic, in a
// search, in a change of the lanes or between.
func FuzzLimitsCMIS(f *testing.F) {
	f.Add([]byte{0, 1, 5, 9, 2, 0, 3, 7, 5, 5, 0, 2, 6, 200})
	f.Add([]byte{10, 255, 5, 100, 0, 1, 5, 50, 3, 200, 5, 10})
	f.Add([]byte{12, 0, 6, 255, 9, 100, 6, 255, 0, 3, 6, 100})
	f.Add([]byte{3, 1, 4, 90, 15, 0, 5, 40, 8, 0, 0, 1, 6, 90, 3, 2, 5, 1, 9, 9, 6, 200})
	f.Add([]byte{12, 1, 6, 90, 10, 0, 6, 200, 12, 1, 5, 3, 15, 0, 6, 50, 8, 0, 6, 100, 14, 2, 6, 90})
	f.Fuzz(func(t *testing.T, ops []byte) {
		m := &misuse{rig: newCMISRig(t, 1, false, sim.DefaultMCITiming()), rng: rand.New(rand.NewPCG(uint64(len(ops)), 1))}
		m.cal = m.optics[0].Status().Calibration
		m.boot([]*ocs.Calibration{m.cal})
		m.rig.run(200 * time.Millisecond)
		for i := 0; i+1 < min(len(ops), 60); i += 2 {
			op, arg := ops[i], ops[i+1]
			if op%limitOps == 14 {
				op = 9 // the simulator exchanges modules of chips alone
			}
			m.step(op, arg)
			checkLimits(t, m.rig)
			if t.Failed() {
				t.Fatalf("after operation %d: %d with %d", i/2, op%limitOps, arg)
			}
		}
		m.rig.run(20 * time.Millisecond)
		checkLimits(t, m.rig)
	})
}
