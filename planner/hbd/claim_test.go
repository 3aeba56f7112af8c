package hbd

import (
	"slices"
	"testing"

	"ringlight/planner/journal"
	"ringlight/planner/ring"
	"ringlight/proto"
)

// Goal: nodes that a job's claim keeps for it are anybody's again when the claim is
// given up, since the next try may take others; what is committed stays its own.
func TestSparesOfAClaimThatIsGivenUpAreFree(t *testing.T) {
	for _, given := range []bool{true, false} {
		p := standing(t, 80, 16)
		c := ClaimsOf(p)
		s := c.Share(Want{Owner: "a", Size: 8, Rings: 1, Spares: 2})
		if len(s.New) != 1 || len(s.Spares) != 2 {
			t.Fatalf("%+v", s)
		}
		c.Claim("a", 8, s, func([]proto.RingID) []journal.Record { return nil })
		for _, n := range s.Spares {
			if p.free(n) {
				t.Errorf("node %d is not kept while the claim is under way", n)
			}
		}
		if given {
			c.Unclaim("a")
		} else {
			carry(p, p.proposal)
		}
		for _, n := range s.Spares {
			if kept := p.kept[n] != ""; kept == given {
				t.Errorf("given up %t: node %d is kept: %t", given, n, kept)
			}
		}
	}
}

// Goal: spares for rings that stand apart are idle nodes within reach of an end, and no
// more than there are.
func TestSparesAreWithinReach(t *testing.T) {
	for _, c := range []struct {
		wrap  bool
		first proto.NodeID
		count int
		want  []proto.NodeID
	}{
		{false, 4, 9, []proto.NodeID{2, 3, 8, 9}}, {false, 4, 3, []proto.NodeID{2, 3, 8}},
		{false, 0, 9, []proto.NodeID{4, 5}}, {true, 0, 9, []proto.NodeID{14, 15, 4, 5}}, {false, 12, 9, []proto.NodeID{10, 11}},
	} {
		p := ring.Problem{Order: ring.Order{Nodes: 16, K: 2, Wrap: c.wrap}, Usable: func(proto.NodeID) bool { return true }}
		if got := beside(p, [][]proto.NodeID{{c.first, c.first + 1, c.first + 2, c.first + 3}}, c.count); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
