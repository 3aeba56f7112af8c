package ring

import (
	"math/rand/v2"
	"testing"

	"ringlight/proto"
)

// Goal: idle nodes that are brought together a few groups at a time make the
// group whole that would cost too many moves at once, with no more moves in all
// than it had cost at once, and no group loses a node meanwhile.
// Method: random losses on fabrics without spares, looked at until nothing is to
// be had for a few; then looks that may fetch, each against those before.
func TestIdleNodesAreFetchedAFewGroupsAtATime(t *testing.T) {
	const size, fetch = 4, 3
	done := 0
	for seed := range uint64(80) {
		rng := rand.New(rand.NewPCG(seed, 7))
		o := Order{Nodes: 200 + rng.IntN(200), K: 1 + rng.IntN(3), Wrap: seed%2 == 0}
		o.Shared = o.K%2 == 1 && o.K > 1
		out := make([]bool, o.Nodes)
		well := func(n proto.NodeID) bool { return !out[n] }
		tr := NewTracker(Mend{Order: o, Sizes: []Demand{{size, o.Nodes / size}}, Usable: well, Free: well, Spread: true, Moves: 8})
		next := proto.RingID(1)
		carry := func() Result {
			r := tr.Look(nil, false)
			for i := range r.Groups {
				if r.Groups[i].ID == 0 {
					r.Groups[i].ID = next
					next++
				}
			}
			tr.Carry(r)
			return r
		}
		carry()
		for range 2 + rng.IntN(5) {
			n := proto.NodeID(rng.IntN(o.Nodes))
			out[n] = true
			tr.Refresh(n)
			tr.Carry(tr.Look(tr.Concerned(n), true))
		}
		for len(carry().Groups) > 0 {
		}
		for {
			whole, before := wholeIn(tr), carry().Dearer
			if before == 0 {
				break
			}
			moved := 0
			for looks := 0; wholeIn(tr) == whole; looks++ {
				tr.Fetch = fetch
				r := carry()
				tr.Fetch = 0
				if r.Fetched > fetch || r.Fetched == 0 && r.Dearer > 0 || looks > before {
					t.Fatalf("seed %d: look %d moved %d groups, want 1 to %d; %d left", seed, looks, r.Fetched, fetch, r.Dearer)
				}
				if moved += r.Fetched; r.Dearer == 0 && r.Fetched == 0 {
					break // what is left costs no more than a few
				}
				if wholeIn(tr) < whole {
					t.Fatalf("seed %d: %d groups whole, %d before", seed, wholeIn(tr), whole)
				}
			}
			if moved > before {
				t.Fatalf("seed %d: %d groups moved for one, %d at once", seed, moved, before)
			}
			if done++; wholeIn(tr) == whole {
				break
			}
		}
	}
	if done < 20 {
		t.Errorf("only %d groups had to be fetched for", done)
	}
}
