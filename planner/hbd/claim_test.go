package hbd

import (
	"encoding/json"
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
		s := c.Share(Want{Size: 8, Rings: 1, Spares: 2})
		if len(s.New) != 1 || len(s.Spares) != 2 {
			t.Fatalf("%+v", s)
		}
		c.Claim("a", 8, s, func([]proto.RingID) []journal.Record { return nil })
		for _, n := range s.Spares {
			if p.Placed.free(n) {
				t.Errorf("node %d is not kept while the claim is under way", n)
			}
		}
		if given {
			c.Unclaim("a")
		} else {
			carry(p, p.proposal)
		}
		for _, n := range s.Spares {
			if kept := p.Placed.kept[n] != ""; kept == given {
				t.Errorf("given up %t: node %d is kept: %t", given, n, kept)
			}
		}
	}
}

// Goal: a job that gives its ring back while that is mended leaves none behind, neither in the
// planner nor in the store, which holds the ring as the generation made it.
// Method: a member dies; the release comes while the others are asked, and while the decision
// is on its way to the disk.
func TestAReleaseDuringARepairLeavesNothing(t *testing.T) {
	for _, deciding := range []bool{false, true} {
		p := standing(t, 80, 16)
		c, stored, last := ClaimsOf(p), map[string]ringRecord{}, uint64(0)
		keep := func() {
			for _, a := range p.j.End() {
				for _, r := range a.Records {
					var is ringRecord
					if json.Unmarshal(r.Value, &is) == nil && len(is.Nodes) > 0 {
						stored[r.Key] = is
					}
				}
				if a.Kind == journal.Persist {
					last = a.Persist
				}
			}
		}
		r := p.Placed.rings[1]
		p.j.Persist(c.Claim("a", r.size, Share{Stock: []proto.RingID{r.id}}, func([]proto.RingID) []journal.Record { return nil })...)
		was := slices.Clone(r.nodes)
		turns(p, was[3], proto.ModeHostDown)
		var q *proposal
		for range 20 {
			if p.j.Now += 2 * settleWait; q == nil {
				q = p.look()
			}
		}
		if q == nil || len(q.rings) != 1 || q.rings[0].id != r.id {
			t.Fatalf("nothing is mended: %+v", q)
		}
		p.prepare(q)
		if deciding {
			for _, part := range p.txn.Parts {
				p.Table.Ack(part.Device, &proto.Ack{Session: 1, Phase: proto.PhasePrepare, Term: p.txn.Term, Generation: p.txn.Gen, Plan: p.txn.Plan})
			}
			if !p.Deciding() {
				t.Fatal("not decided")
			}
			keep()
			decision := last
			if records := c.Release("a"); len(records) > 0 {
				p.j.Persist(records...)
			}
			keep()
			p.Persisted(decision)
			keep()
		} else {
			p.j.Persist(c.Release("a")...)
			for _, part := range p.txn.Parts {
				p.Table.Ack(part.Device, &proto.Ack{Session: 1, Phase: proto.PhasePrepare, Term: p.txn.Term, Generation: p.txn.Gen, Plan: p.txn.Plan})
			}
			keep()
			p.Persisted(last)
		}
		is, on := p.Placed.ring(r.id), stored[ringKey(r.id)]
		if is.owner != "" || on.Job != "" || !slices.Equal(on.Nodes, is.nodes) || slices.Equal(is.nodes, was) {
			t.Errorf("decided %t: ring of %q on %v, stored of %q on %v; it was on %v", deciding, is.owner, is.nodes, on.Job, on.Nodes, was)
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
