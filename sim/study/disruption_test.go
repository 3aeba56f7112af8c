package study

import (
	"fmt"
	"testing"

	"ringlight/planner/fabric"
	"ringlight/planner/ring"
)

// walk is a sequence of single faults and repairs round a mean number of
// faulty nodes.
func walk(nodes, mean, events int, seed uint64) []flipAt {
	out := make([]flipAt, 0, events)
	down := make([]bool, nodes)
	count := 0
	for len(out) < events {
		seed = seed*6364136223846793005 + 1442695040888963407
		n := int(seed >> 33 % uint64(nodes))
		if up := seed>>20%uint64(2*mean) < uint64(count); up == down[n] {
			down[n] = !up
			out = append(out, flipAt{node: n, out: !up})
			if count--; !up {
				count += 2
			}
		}
	}
	return out
}

// Goal: where any number of rings may move, mending wastes as little as placing
// from nothing after every event, and touches less than a third of the groups.
// Method: 2,448 nodes, TP-32, a walk round 2.3 % faulty nodes.
func TestMendingDisturbsLess(t *testing.T) {
	for _, k := range []int{2, 3} {
		var d DisruptionRow
		d.replay(ring.Order{Nodes: 2448, K: k, Wrap: true, Shared: k == 3}, 8, ring.Any, walk(2448, 56, 3000, 4))
		if int(d.PaperWaste) != int(d.OursWaste) {
			t.Errorf("K=%d: idle nodes %.0f and %.0f: not the same waste", k, d.OursWaste, d.PaperWaste)
		}
		per := func(x, y float64) string {
			return fmt.Sprintf("%.1f a fault, %.1f a repair", x/float64(d.Faults), y/float64(d.Repairs))
		}
		t.Logf("K=%d: from nothing %s; mended %s", k, per(d.PaperFault, d.PaperRepair), per(d.OursFault, d.OursRepair))
		if 3*(d.OursFault+d.OursRepair) > d.PaperFault+d.PaperRepair {
			t.Errorf("K=%d: %+v", k, d)
		}
	}
}

// Goal: with fibres to n +- 2^i placing from nothing is never better than with fibres of
// every length up to the longest, and mending as a fabric does by default leaves about as
// much idle as there.
// Method: a shorter walk on 408 nodes; three and four spans.
func TestMendingOverPowers(t *testing.T) {
	for _, k := range []int{3, 4} {
		if testing.Short() && k == 4 {
			continue
		}
		spans := fabric.Powers(k)
		all := ring.Order{Nodes: 408, K: spans[k-1], Shared: k == 3}
		some := all
		some.Lacks = ring.LacksOf(spans)
		var a, b DisruptionRow
		few := ring.MovesOf(fabric.MoveFew)
		a.replay(all, 8, few, walk(408, 20, 200, 4))
		b.replay(some, 8, few, walk(408, 20, 200, 4))
		t.Logf("%v: idle nodes %.0f mended, %.0f placed from nothing; with all spans %.0f, %.0f", spans, b.OursWaste, b.PaperWaste, a.OursWaste, a.PaperWaste)
		if b.PaperWaste < a.PaperWaste || b.OursWaste < b.PaperWaste || 2*b.OursWaste > 3*a.OursWaste {
			t.Errorf("%v: idle nodes %.0f mended, %.0f placed from nothing; with all spans %.0f, %.0f", spans, b.OursWaste, b.PaperWaste, a.OursWaste, a.PaperWaste)
		}
	}
}

// Goal: few moves buy little disruption with little waste.
// Method: the same walk with K = 3, at most eight whole groups moved for one.
func TestFewMovesBuyQuiet(t *testing.T) {
	var d DisruptionRow
	d.replay(ring.Order{Nodes: 2448, K: 3, Wrap: true, Shared: true}, 8, ring.MovesOf(fabric.MoveFew), walk(2448, 56, 3000, 4))
	touched, n := d.OursFault+d.OursRepair, float64(d.Faults+d.Repairs)
	extra := d.OursWaste - d.PaperWaste
	t.Logf("%.2f groups touched an event, %.2f %% of the nodes idle more", touched/n, 100*extra/n/2448)
	if touched > 4*n || extra < 0 || extra*20 > n*2448 {
		t.Errorf("%.0f groups touched in %.0f events, %.0f idle nodes more", touched, n, extra)
	}
}
