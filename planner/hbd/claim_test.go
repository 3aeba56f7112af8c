package hbd

import (
	"testing"

	"ringlight/planner/journal"
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
