package planner

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/journal"
	"ringlight/proto"
)

// Goal: what is claimed of the test of bit errors holds: of 10,000 good links with every one
// of 128 lanes at a tenth of the limit not more than 1-C are rejected, of 10,000 with one
// lane at the limit not more are accepted, and without errors it ends at the stated number
// of bits. Method: draws by math/rand's own method of Poisson's numbers from exponential
// gaps, looked at after each 1/20 of the bits that a good lane takes, as a planner looks.
func TestConfidenceIsWhatIsClaimed(t *testing.T) {
	const p1, links = 10_000, 10_000 // 1e-8
	for _, percent := range []int{90, 99} {
		claim := 1 - float64(percent)/100
		good, bad := bounds(percent)
		if errs := [2]float64{float64(good)/1000 - math.Log(claim), float64(bad)/1000 - math.Log(128/claim)}; math.Abs(errs[0]) > 0.001 || math.Abs(errs[1]) > 0.001 {
			t.Errorf("%d %%: bounds %d and %d are off by %v", percent, good, bad, errs)
		}
		need := uint64(-math.Log(claim) / (0.9 * 1e-8))
		if likelihood(0, need*1001/1000, p1) > good || likelihood(0, need*999/1000, p1) <= good {
			t.Errorf("%d %%: %d bits without an error are not what it takes", percent, need)
		}
		rng := rand.New(rand.NewPCG(uint64(percent), 34))
		// lane says whether one of a ratio is called good.
		lane := func(ratio float64) bool {
			step := need / 20
			errors, next := uint64(0), rng.ExpFloat64()/ratio
			for n := step; ; n += step {
				for next < float64(n) {
					errors++
					next += rng.ExpFloat64() / ratio
				}
				switch l := likelihood(errors, n, p1); {
				case l <= good:
					return true
				case l >= bad:
					return false
				}
			}
		}
		rejected, accepted := 0, 0
		for range links {
			for range 128 {
				if !lane(1e-9) {
					rejected++
					break
				}
			}
			if lane(1e-8) {
				accepted++
			}
		}
		t.Logf("%d %%: %d of %d links of 128 lanes at p0 rejected, %d with a lane at p1 accepted, at most %.0f claimed", percent, rejected, links, accepted, claim*links)
		if float64(rejected) > claim*links || float64(accepted) > claim*links {
			t.Errorf("%d %%: %d rejected, %d accepted of %d", percent, rejected, accepted, links)
		}
	}
}

// Goal: results of fibres that an edit takes away, or lays elsewhere, are forgotten, others kept, in
// the store too. Method: two results as a planner stored them, an edit without the node of one, then
// another planner.
func TestResultsGoWithTheirFibre(t *testing.T) {
	w := editable(t, fabric.Params{Nodes: 6, K: 2, TP: 16, Spares: 2}, fabric.Params{Nodes: 6, K: 2, TP: 16, Spares: 2})
	for _, name := range []string{"2-3", "4-5"} {
		r := journal.Encode(prefixQualified+name, &proto.Qualification{Fibre: name, Result: proto.Good, Loss: 5100, AtMillis: 77, Text: "no error"})
		w.store[r.Key] = r.Value
	}
	check := func(when string, want ...string) {
		t.Helper()
		var got []string
		for _, l := range w.ask(proto.OpRequest{Noun: proto.NounLinks, Bundle: -1}).Links {
			if q := l.Qualified; q != nil && *q == (proto.Qualification{Fibre: l.Fibre, Result: proto.Good, Loss: 5100, AtMillis: 77, Text: "no error"}) && w.store[prefixQualified+l.Fibre] != nil {
				got = append(got, l.Fibre)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	restart := func() {
		w.start()
		w.run(10 * time.Second)
	}
	restart()
	check("from the store", "2-3", "4-5")
	if r := w.edit(w.of(fabric.Params{Nodes: 5, K: 2, TP: 16, Spares: 1}), false); r.Edit == nil || !r.Edit.Done {
		t.Fatalf("%+v %+v", r, r.Edit)
	}
	check("without node 5", "2-3")
	restart()
	if check("another planner", "2-3"); w.store[prefixQualified+"4-5"] != nil {
		t.Error("the store has it still")
	}
}

// Goal: a fibre of whose bits nothing was told before its first ring, because an agent was
// busy, is tried again and not used for its light alone; where nothing can count them, or an
// agent is busy for ever, a ring still comes. Method: node 1 is busy so many times.
func TestABusyAgentIsAskedAgainForItsBits(t *testing.T) {
	for _, c := range []struct {
		name   string
		counts bool
		busy   int
		want   proto.Qualified
		most   int // steps of trials that node 1 is asked for
	}{
		{"at once", true, 0, proto.Good, 19},
		{"busy twice", true, 2, proto.Good, 25},
		{"busy for ever", true, 1 << 30, proto.NotTried, 31},
		{"none counts", false, 0, proto.NotTried, 13},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := described(t, fabric.Params{Nodes: 4, K: 2, TP: 16})
			f.Qualify = &fabric.Qualify{BeforeUse: true}
			f, err := fabric.Parse(f.Encode())
			if err != nil {
				t.Fatal(err)
			}
			w := newFleet(t, f)
			w.start()
			for i := range w.nodes {
				w.nodes[i].counts = c.counts
				w.birth(proto.NodeID(i), true)
			}
			w.nodes[1].busy = c.busy
			w.run(20 * time.Second)
			for _, l := range w.ask(proto.OpRequest{Noun: proto.NounLinks, Bundle: -1}).Links {
				if l.Fibre != "0-1" {
					continue
				}
				if got := w.p.edits.last[l.Fibre]; (got != nil && got.Result == proto.Good) != (c.want == proto.Good) || l.State != proto.FibreLit {
					t.Errorf("fibre %s is %v: %+v", l.Fibre, l.State, got)
				}
			}
			if rings := w.p.Rings.Placed.Statuses(); len(rings) != 1 || len(rings[0].Nodes) != 4 {
				t.Errorf("rings %+v", rings)
			}
			if n := w.nodes[1].tried; n > c.most {
				t.Errorf("node 1 was asked %d times, at most %d", n, c.most)
			}
		})
	}
}
