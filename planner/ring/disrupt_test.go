package ring

import (
	"fmt"
	"testing"

	"ringlight/proto"
)

// walk is a sequence of single faults and repairs round a mean number of
// faulty nodes.
func walk(nodes, mean, events int, seed uint64) []Fault {
	out := make([]Fault, 0, events)
	down := make([]bool, nodes)
	count := 0
	for len(out) < events {
		seed = seed*6364136223846793005 + 1442695040888963407
		n := int(seed >> 33 % uint64(nodes))
		if up := seed>>20%uint64(2*mean) < uint64(count); up == down[n] {
			down[n] = !up
			out = append(out, Fault{proto.NodeID(n), up})
			if count--; !up {
				count += 2
			}
		}
	}
	return out
}

// At the same waste the tracker touches less than a third of the groups that
// placement from nothing does.
// 2,448 nodes, TP-32, a walk round 2.3 % faulty nodes.
func TestTrackerDisturbsLess(t *testing.T) {
	for _, k := range []int{2, 3} {
		d := Disrupt(Order{Nodes: 2448, K: k, Wrap: true}, 8, all, walk(2448, 56, 3000, 4), nil)
		if d.Scratch.Idle != d.Ours.Idle {
			t.Errorf("K=%d: idle nodes %d and %d: not the same waste", k, d.Ours.Idle, d.Scratch.Idle)
		}
		per := func(toll Toll) string {
			return fmt.Sprintf("%.1f a fault, %.1f a repair", float64(toll.TouchedByFaults)/float64(d.Faults), float64(toll.TouchedByRepairs)/float64(d.Repairs))
		}
		t.Logf("K=%d: from nothing %s; tracker %s", k, per(d.Scratch), per(d.Ours))
		if 3*(d.Ours.TouchedByFaults+d.Ours.TouchedByRepairs) > d.Scratch.TouchedByFaults+d.Scratch.TouchedByRepairs {
			t.Errorf("K=%d: %+v", k, d)
		}
	}
}

// A limit buys little disruption with little waste.
// 2,448 nodes, TP-32, K = 3: at most eight groups for one.
func TestLimitBuysQuiet(t *testing.T) {
	o, events := Order{Nodes: 2448, K: 3, Wrap: true}, walk(2448, 56, 3000, 4)
	free := Disrupt(o, 8, all, events, nil)
	limited := DisruptWithin(8, o, 8, all, events)
	n := len(events)
	touched := limited.TouchedByFaults + limited.TouchedByRepairs
	extra := limited.Idle - free.Ours.Idle
	t.Logf("%.2f groups touched an event, %.2f %% of the nodes idle more", float64(touched)/float64(n), 100*float64(extra)/float64(n)/2448)
	if touched > 4*n || extra < 0 || extra*20 > n*2448 {
		t.Errorf("%d groups touched in %d events, %d idle nodes more", touched, n, extra)
	}
}
