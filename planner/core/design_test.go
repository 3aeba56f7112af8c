package core

import (
	"math"
	"testing"

	"ringlight/mzi/detmath"
	"ringlight/planner/fabric"
	"ringlight/proto"
)

// The search of a group keeps as much on many pods as on few.
// Method: full groups of pods on circles, a job each; a tenth of the circles
// turn into others. Four thousand steps whatever the size kept a sixth of 128
// pods.
func TestSearchOfAGroupScales(t *testing.T) {
	for _, pods := range []int{64, 128} {
		k := fabric.Core{Pods: pods, LeavesPerPod: 8, SpinesPerPod: 1, SpinePorts: 16, SwitchPorts: 128, LeafLinks: 2,
			ServersPerLeaf: 4, GPUsPerServer: 8, Wiring: fabric.Interleaved, IotaMille: 250}
		c := readyCircuits(&k)
		of := c.designer.(interleaved)
		of.from = c.Evidence.standing()
		r := detmath.Random(1)
		wanted := map[between]int{}
		all := 0
		for m := range of.from.maps {
			var turn []int32
			for i := range int32(pods) {
				of.from.maps[m].to[i], of.from.maps[m].job[i] = (i+int32(m)+1)%int32(pods), proto.JobID(1)
				if r.Below(10) == 0 {
					turn = append(turn, i)
				}
			}
			for i := range int32(pods) {
				all++
				to := of.from.maps[m].to[i]
				for n, x := range turn {
					if x == i {
						to = of.from.maps[m].to[turn[(n+1)%len(turn)]]
					}
				}
				if to == i {
					to = of.from.maps[m].to[i]
				}
				wanted[between{1, min(i, to), max(i, to)}]++
			}
		}
		var lots []lot
		for i := range int32(pods) {
			for j := i; j < int32(pods); j++ {
				if n := wanted[between{1, i, j}]; n > 0 {
					lots = append(lots, lot{1, i, j, n})
				}
			}
		}
		maps, ok := of.rewire(0, of.from.maps, of.from.maps, lots)
		kept := 0
		for m := range maps {
			for i, j := range maps[m].to {
				if of.from.maps[m].to[i] == j {
					kept++
				}
			}
		}
		t.Logf("%d pods: %d of %d links kept", pods, kept, all)
		if !ok || 100*kept < 80*all {
			t.Errorf("%d pods: %d of %d links kept, %v", pods, kept, all, ok)
		}
	}
}

// Goal: links move for a tenth and no less, however much is sent. Method: both sides of it,
// of a byte and of the most that fits.
func TestATenthIsWorthAMove(t *testing.T) {
	for _, c := range []struct {
		now, then int64
		is        bool
	}{{1, 1, false}, {1, 0, true}, {9, 8, true}, {11, 10, false}, {1000, 900, true}, {1000, 901, false}, {1, 2, false},
		{math.MaxInt64 - 9, math.MaxInt64 / 2, true}, {math.MaxInt64 / 2, math.MaxInt64 - 9, false}, {1 << 62, 1<<62 - 1<<58, false}} {
		if is := worth(c.now, c.then); is != c.is {
			t.Errorf("from %d to %d: %v", c.now, c.then, is)
		}
	}
}
