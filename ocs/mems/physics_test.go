package mems_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"ringlight/ocs/circuit"
	"ringlight/proto"
	"ringlight/sim"
)

// Goal: of mirrors that are not the default board's what is said of a circuit is
// so when they have come to rest: tuned ones are, and those that failed lose more.
// Method: boards of another loss, of more ageing and of less damping; random
// permutations; the light itself a while later.
func TestMirrorsThatAreNotOurs(t *testing.T) {
	for _, row := range []struct {
		name string
		ph   sim.MirrorPhysics
		may  int // circuits that may fail
	}{
		{"nothing", sim.MirrorPhysics{}, 0},
		{"quartic loss", sim.MirrorPhysics{Quartic: 1}, 0},
		{"ageing x2", sim.MirrorPhysics{Ageing: 2}, 0},
		{"ageing x4", sim.MirrorPhysics{Ageing: 4}, 2},
		{"damping 0.1", sim.MirrorPhysics{Damping: 0.1}, 0},
		{"damping 0.05", sim.MirrorPhysics{Damping: 0.05}, 2},
	} {
		tuned, failed := 0, 0
		var worst, off proto.MilliDBm
		for seed := range uint64(8) {
			r := newRigOf(t, 24, 100+seed, row.ph)
			perm := rand.New(rand.NewPCG(seed, 1)).Perm(24)
			r.apply(circuit.Change{Create: pairs(24, func(a int) int { return perm[a] })})
			said := r.x.Circuits(nil)
			r.until(200*time.Millisecond, func() bool { return false })
			for _, c := range said {
				truth := proto.MilliDBm(r.world.MirrorLoss(r.id, int(c.Pair.A), int(c.Pair.B)))
				off = max(off, truth-c.Loss, c.Loss-truth)
				if c.State == proto.Tuned {
					tuned++
					worst = max(worst, truth-c.Factory)
				} else if failed++; truth < c.Factory+500 {
					t.Errorf("%s: seed %d: %v failed with %d, factory %d: %v", row.name, seed, c.Pair, truth, c.Factory, c.Err)
				}
			}
			if n := r.world.PulledIn(r.id); n != 0 {
				t.Errorf("%s: %d mirrors pulled in", row.name, n)
			}
		}
		t.Logf("%-14s %3d tuned, %2d failed, worst %d mdB over the factory's, %d mdB from what was said", row.name, tuned, failed, worst, off)
		if worst > 500 || off > 100 || failed > row.may {
			t.Errorf("%s: %d failed, worst of %d tuned is %d mdB over the factory's, %d mdB from what was said", row.name, failed, tuned, worst, off)
		}
	}
}
