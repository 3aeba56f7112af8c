package hbd

import (
	"fmt"
	"slices"
	"testing"

	"ringlight/proto"
)

// Goal: what it costs to lose a node on a copy does not grow with the fabric.
// Method: all nodes of fabrics in service, some out already so that spares lie
// out of reach of some rings.
func BenchmarkOutlook(b *testing.B) {
	for _, nodes := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			h := standing(b, nodes, nodes/64)
			o := h.Evidence.Outlook()
			o.Try(0)
			for b.Loop() {
				if o.next = (o.next + 7919) % (2 * nodes); o.Try(1) {
					o.next, o.Losses = 0, nil
				}
			}
		})
	}
}

// Goal: a copy stays as it is when it has been tried: every look leaves the
// index as one that is made anew. Method: try all, compare, try all again.
func TestAnOutlookLeavesNoTrace(t *testing.T) {
	h := standing(t, 593, 1)
	o := h.Evidence.Outlook()
	for range 2 {
		o.next, o.Losses = 0, nil
		if !o.Try(2 * len(o.of)) {
			t.Fatal("not all were tried")
		}
		fresh := h.Evidence.Outlook()
		fresh.Try(0)
		for _, r := range o.rings {
			if got, want := fmt.Sprint(o.index.Members(r.id)), fmt.Sprint(fresh.index.Members(r.id)); got != want {
				t.Fatalf("ring %d: %s, was %s", r.id, got, want)
			}
		}
	}
	for id := 0; id < len(o.of); id += 5 {
		if o.of[id] == 0 {
			continue
		}
		fresh := h.Evidence.Outlook()
		fresh.next = 2 * id
		for fresh.next < 2*id+2 && !fresh.Try(1) {
		}
		other := func(l Loss) bool { return l.Node != proto.NodeID(id) }
		mine, alone := slices.DeleteFunc(slices.Clone(o.Losses), other), slices.DeleteFunc(fresh.Losses, other)
		if fmt.Sprint(mine) != fmt.Sprint(alone) {
			t.Errorf("node %d: %v after the others, %v alone", id, mine, alone)
		}
	}
	if n := len(o.Losses); n == 0 || n == 2*len(o.of)-1 {
		t.Errorf("%d of %d losses matter: does the test still see it?", n, len(o.of))
	}
}
