package fleet

import (
	"testing"
	"time"

	"ringlight/planner/fabric"
)

// Goal: agents on simulated boards carry out the steps of Binary Exchange, and rings that
// lose members in one are mended. Method: three rings with a spare each go through their
// steps for eight minutes, with and without faults, and all checkers look on.
func TestExchangeIsCarriedOut(t *testing.T) {
	for _, rate := range []float64{0, 60} {
		if testing.Short() && rate == 0 {
			continue
		}
		cfg := testConfig(t, 8, 2, 32, fabric.Line)
		f, err := fabric.New(fabric.Params{Name: "f1", Nodes: 27, GPUsPerNode: 4, Spans: fabric.Spans{1, 2, 4}, TP: 32, Spares: 3})
		if err != nil {
			t.Fatal(err)
		}
		cfg.Fabric, cfg.Exchange, cfg.Span = f, true, 8*time.Minute
		cfg.Faults = Random(f, cfg.Modules, cfg.Seed, cfg.Span, rate)
		res := run(t, cfg)
		clean(t, res)
		if len(res.Exchange) != 4 {
			t.Fatalf("%+v", res.Exchange)
		}
		for _, x := range res.Exchange {
			if x.Dark.N < 25 || rate == 0 && (x.Ended > 0 || x.Refused > 0 || *x.Dark.Max > time.Second.Microseconds()) || x.Step > 0 && x.Sends != 335 {
				t.Errorf("at rate %v: %+v", rate, x)
			}
		}
	}
}

// Goal: a planner that has lost its store takes a ring over in the step that its members
// say it is in, so that a pair that died meanwhile, whose light nobody else misses, keeps
// nobody in pairs.
func TestExchangeIsTakenOver(t *testing.T) {
	cfg := testConfig(t, 8, 2, 32, fabric.Line)
	f, err := fabric.New(fabric.Params{Name: "f1", Nodes: 20, GPUsPerNode: 4, Spans: fabric.Spans{1, 2, 4}, TP: 32, Spares: 4})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Fabric, cfg.Exchange, cfg.Span = f, true, 100*time.Second
	cfg.Faults = script(t, "61s planner lose for 25s", "62.5s node dark 6", "62.5s node dark 7") // in their first step
	clean(t, run(t, cfg))
}
