package flow

import "testing"

// A leaf spreads connections evenly over its uplinks and does not know where
// others come down: among uplinks with fewest it takes any.
// Reference: [VCLOS] sec 9.3
func TestBalancedKnowsItsOwnUplinks(t *testing.T) {
	n, err := NewLeafSpine(4, 8, 8, 4, 8, 1e9, 1e10)
	if err != nil {
		t.Fatal(err)
	}
	crowded, ways := 0, map[Link]bool{}
	const seeds = 16
	for seed := range uint64(seeds) {
		b, most := n.NewBalanced(seed), int32(0)
		for k := range 12 { // half of the GPUs of leaves 0 to 2, to leaf 3
			p, err := b.Route(k/4*8+k%4, 24+k%8)
			if err != nil {
				t.Fatal(err)
			}
			if b.load[p[1]] > 1 {
				t.Errorf("seed %d: connection %d goes by an uplink with another, of 8", seed, k)
			}
			most = max(most, b.load[p[2]])
			if k == 0 {
				ways[p[1]] = true
			}
		}
		if most > 2 { // 12 on 8 links need not
			crowded++
		}
	}
	if crowded == 0 || len(ways) < 3 {
		t.Errorf("%d of %d seeds crowd a downlink, the first connection has %d ways", crowded, seeds, len(ways))
	}
}
