package fleet

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/mzi/detmath"
	"ringlight/ocs"
	"ringlight/planner/fabric"
	"ringlight/sim"
)

// catalogue is calibrated once for all tests; two personalities suffice where
// the optics are not what is tested.
var catalogue = sync.OnceValues(func() (*Optics, error) {
	o := &Optics{Personalities: sim.Catalogue(nil, 1, 2)}
	for i, p := range o.Personalities {
		c, _, err := o.Calibrate(p, detmath.Hash(1, uint64(i)), nil)
		if err != nil {
			return nil, err
		}
		o.Calibrated = append(o.Calibrated, c)
	}
	return o, nil
})

func testConfig(t testing.TB, nodes, k, tp int, topology fabric.Topology) Config {
	t.Helper()
	o, err := catalogue()
	if err != nil {
		t.Fatal(err)
	}
	f, err := fabric.New(fabric.Params{Name: "f1", Nodes: nodes, GPUsPerNode: 4, K: k, TP: tp, Topology: topology})
	if err != nil {
		t.Fatal(err)
	}
	return Config{Fabric: f, Modules: 1, Seed: 1, Span: time.Hour, Health: time.Minute, HealthModules: 1, Optics: o, Replay: t.Name()}
}

func run(t testing.TB, cfg Config) *Result {
	t.Helper()
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	res, err := r.Do()
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func clean(t *testing.T, res *Result) {
	t.Helper()
	for _, v := range res.ViolationList {
		t.Error(v)
	}
	if res.EventsLost != 0 {
		t.Errorf("%d events lost", res.EventsLost)
	}
}

func script(t *testing.T, lines ...string) []Fault {
	t.Helper()
	f, err := ParseScript(strings.NewReader(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Goal: no random mix of faults breaks an invariant.
// Method: small fleets, K = 2, 3 and 4, many faults, a bad network.
func TestRandomFaultsBreakNothing(t *testing.T) {
	seeds := uint64(3)
	if testing.Short() {
		seeds = 1
	}
	for k := 2; k <= 4; k++ {
		for seed := uint64(1); seed <= seeds; seed++ {
			t.Run(fmt.Sprintf("k%d/seed%d", k, seed), func(t *testing.T) {
				cfg := testConfig(t, 40, k, 32, fabric.Line)
				cfg.Seed = seed
				cfg.Rates = Rates{Loss: 2000, Repeat: 2000, Reorder: 2000}
				cfg.Faults = Random(cfg.Fabric, cfg.Modules, seed, cfg.Span, 25)
				res := run(t, cfg)
				clean(t, res)
				if res.Faults == 0 || res.EventsTotal == 0 || res.Looks == 0 {
					t.Errorf("nothing happened: %+v", res)
				}
			})
		}
	}
}

// Goal: no random mix of faults breaks an invariant where fibres lead to n +- 2^i.
// Method: three and four spans, a line and a ring, so many faults that rings are split.
// Reference: [IHBD] sec 7
func TestRandomFaultsOverPowersBreakNothing(t *testing.T) {
	for count, topology := range map[int]fabric.Topology{3: fabric.Line, 4: fabric.Ring} { // any order: each by itself
		if testing.Short() && count == 4 {
			continue
		}
		cfg := testConfig(t, 40, 2, 32, topology)
		f, err := fabric.New(fabric.Params{Name: "f1", Nodes: 40, GPUsPerNode: 4, Spans: fabric.Powers(count), TP: 32, Topology: topology})
		if err != nil {
			t.Fatal(err)
		}
		cfg.Fabric = f
		cfg.Faults = Random(f, cfg.Modules, cfg.Seed, cfg.Span, 100)
		res := run(t, cfg)
		clean(t, res)
		if res.Faults < 100 || res.Splits == 0 || len(res.BypassMicros) == 0 {
			t.Errorf("%d spans: %d faults, %d splits: too little happened", count, res.Faults, res.Splits)
		}
	}
}

// Goal: fabrics of one or two nodes run like any other: without a fibre, or with a
// reach beyond both ends.
// Method: many random faults, more than enough for each kind to come.
func TestRandomFaultsOfTheSmallestFabrics(t *testing.T) {
	for _, c := range [][3]int{{1, 1, 4}, {1, 4, 4}, {2, 3, 8}, {2, 4, 4}} { // nodes, K, GPUs of a ring
		cfg := testConfig(t, c[0], c[1], c[2], fabric.Line)
		cfg.Faults = Random(cfg.Fabric, cfg.Modules, cfg.Seed, cfg.Span, 2000)
		if res := run(t, cfg); res.Violations != 0 || res.Faults < 50 {
			t.Errorf("%d nodes, K %d: %d faults, %v", c[0], c[1], res.Faults, res.ViolationList)
		}
	}
}

// Goal: a fabric whose boards' calls are late, one in a hundred and nearly one in
// three, starts and serves; an agent that starts on such a board may take longer
// to close what changed while it was away, and is not blamed for that.
// Method: the optics are calibrated with the same late calls; random faults, and
// an agent that is dead while its neighbour loses power, again and again.
func TestLateCallsBreakNothing(t *testing.T) {
	for _, ratio := range []float64{0.01, 0.3} {
		ph := sim.DefaultPhysics()
		ph.LateCall = ratio
		cfg := testConfig(t, 9, 2, 32, fabric.Line)
		cfg.Optics = &Optics{Personalities: sim.Catalogue(&ph, 1, 1), Physics: &ph}
		c, _, err := cfg.Optics.Calibrate(cfg.Optics.Personalities[0], 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Optics.Calibrated = []*ocs.Calibration{c}
		if e := c.Timing.Envelope(0); e.Usable() != nil {
			t.Errorf("%v: %v", ratio, e.Usable())
		}
		for i := range 12 {
			at := 4 * i
			cfg.Faults = append(cfg.Faults, script(t, fmt.Sprintf("%dm agent crash 5", at+1), fmt.Sprintf("%dm1s node dark 6", at+1),
				fmt.Sprintf("%dm agent start 5", at+2), fmt.Sprintf("%dm node on 6", at+3))...)
		}
		res := run(t, cfg)
		clean(t, res)
		if res.Faults != 48 || res.GPUWaste.Mean > 0.3 {
			t.Errorf("%v: %d faults, waste %.2f", ratio, res.Faults, res.GPUWaste.Mean)
		}
	}
}

// Goal: rings of several sizes in one fabric are formed, mended and waste no
// more than their sizes ask for.
// Method: rings of 16, 8 and 4 nodes on 40; hosts that fail and come back; the
// light judges.
func TestRingsOfSeveralSizes(t *testing.T) {
	cfg := testConfig(t, 40, 2, 32, fabric.Line)
	p := fabric.DefaultParams()
	p.Nodes, p.TP, p.RingSizes = 40, 32, []fabric.RingSize{{TP: 64, Rings: 1}, {TP: 16, Rings: 2}}
	var err error
	if cfg.Fabric, err = fabric.New(p); err != nil {
		t.Fatal(err)
	}
	cfg.Faults = script(t, "1m host fault 7", "6m host ok 7", "12m host fault 20", "17m host ok 20", "24m host fault 38", "29m host ok 38")
	res := run(t, cfg)
	clean(t, res)
	// A node out of 40 for a twelfth of the hour, three times over: its ring's
	// others are wasted at most.
	if most := (15.0/40 + 7.0/40 + 3.0/40) / 12 * 1.2; res.GPUWaste.Mean > most || res.GPUWaste.Mean == 0 {
		t.Errorf("waste %.4f, want at most %.4f", res.GPUWaste.Mean, most)
	}
}

// Goal: the same seed gives the same run, another seed another one.
// Method: the hash over every edge, packet and fault.
func TestSameSeedSameRun(t *testing.T) {
	hash := func(seed uint64) string {
		cfg := testConfig(t, 16, 3, 32, fabric.Line)
		cfg.Seed, cfg.Span = seed, 20*time.Minute
		cfg.Rates = Rates{Loss: 1000, Repeat: 1000, Reorder: 1000}
		cfg.Faults = Random(cfg.Fabric, cfg.Modules, seed, cfg.Span, 50)
		return run(t, cfg).TraceSHA256
	}
	a, b, c := hash(1), hash(1), hash(2)
	t.Logf("seed 1: %s", a) // to compare machines
	if a != b {
		t.Errorf("seed 1 gave %s and then %s", a, b)
	}
	if a == c {
		t.Error("seeds 1 and 2 gave the same run")
	}
}

// Goal: one and two adjacent losses are bypassed within a millisecond, with
// the broker down.
// Method: a script of losses in the middle of a ring.
func TestLossesAreBypassedWithoutBroker(t *testing.T) {
	cfg := testConfig(t, 16, 3, 64, fabric.Line)
	cfg.Span = 5 * time.Minute
	cfg.Faults = script(t, "1s broker down", "10s node dark 5 group 1", "20s node dark 10 group 2", "20.0003s node dark 11 group 2")
	res := run(t, cfg)
	clean(t, res)
	for n := 1; n <= 2; n++ {
		if got := res.bypasses[n]; len(got) != 1 || got[0] <= 0 || got[0] >= 1000 {
			t.Errorf("%d adjacent: bypassed in %v us, want one time under 1000", n, got)
		}
	}
	if res.Splits != 0 || res.Interruptions != 2 {
		t.Errorf("%d splits, %d interruptions", res.Splits, res.Interruptions)
	}
}

// Goal: each planted defect is found by a checker of its invariants.
// Method: the defect stands where it would show outside the machines.
func TestCheckersFindPlantedDefects(t *testing.T) {
	for _, c := range defects {
		t.Run(c.name, func(t *testing.T) {
			nodes, tp := 16, 64
			switch c.name {
			case "light of a stranger":
				tp = 32 // two rings
			case "a spare that is never used":
				nodes = 20
			}
			cfg := testConfig(t, nodes, 3, tp, fabric.Line)
			cfg.Span = 10 * time.Second
			if c.invariants[0] == "usable and out" {
				cfg.Span = restAfter + restAgain + restGrace + 10*time.Second // until nothing excuses it
			}
			cfg.Faults = script(t, c.script)
			clean(t, run(t, cfg))
			cfg.mutant = c.plant()
			res := run(t, cfg)
			for _, v := range res.ViolationList {
				for _, want := range c.invariants {
					if strings.HasPrefix(v, want) {
						return
					}
				}
			}
			t.Errorf("want a violation of one of %q, got %q", c.invariants, res.ViolationList)
		})
	}
}

// Goal: whatever goes wrong says seed, virtual time and the command that shows
// it again: a violation, an error, and a panic of a machine alike.
// Method: a planted defect of the first and of the last kind.
func TestFailureSaysHowToSeeItAgain(t *testing.T) {
	cfg := testConfig(t, 16, 3, 64, fabric.Line)
	cfg.Seed, cfg.Span, cfg.Replay = 7, 10*time.Second, "ocs-sim fleet -seed 7"
	cfg.Faults = script(t, "1s node dark 5")
	cfg.mutant = &mutant{unheard: func(st *station, e *hal.Edge) bool { return st.id == 4 && !e.High }}
	said := run(t, cfg).ViolationList
	cfg.mutant = &mutant{at: 2 * time.Second, act: func(*Run) { panic("broken invariant") }}
	func() {
		defer func() { said = append(said, fmt.Sprint(recover())) }()
		run(t, cfg)
	}()
	if len(said) < 2 {
		t.Fatalf("said %q", said)
	}
	for _, s := range said {
		for _, want := range []string{"seed 7", "at ", "again: ocs-sim fleet -seed 7"} {
			if !strings.Contains(s, want) {
				t.Errorf("%q does not say %q", s, want)
			}
		}
	}
}

// Goal: a clock's two directions agree.
// Method: the first moment that shows a time, for all drifts.
func TestClockInverts(t *testing.T) {
	for drift := int64(-maxDrift); drift <= maxDrift; drift += 7 {
		c := clock{base: 3 * time.Second, drift: drift}
		for local := time.Duration(1); local < 400*24*time.Hour; local = local*3 + 12345 {
			at := c.world(local)
			if c.local(at) < local || c.local(at-1) >= local {
				t.Fatalf("drift %d: %v shows at %v, %v before", drift, local, c.local(at), c.local(at-1))
			}
		}
	}
}

// Goal: events of a node may come in any order and more than once.
// Method: the counter behind "nothing lost".
func TestDeliveryCountsGaps(t *testing.T) {
	var d delivery
	for _, step := range []struct{ hand, upTo uint64 }{{1, 1}, {3, 1}, {3, 1}, {5, 1}, {2, 3}, {1, 3}, {4, 5}} {
		if d.hand(step.hand); d.upTo != step.upTo {
			t.Fatalf("after %d everything up to %d, want %d", step.hand, d.upTo, step.upTo)
		}
	}
	if len(d.ahead) != 0 {
		t.Errorf("ahead: %v", d.ahead)
	}
}

// Goal: a node whose network was cut for less than the keep-alive time is
// heard as if nothing had happened.
// Method: a short cut, long past, then a loss that its neighbours tell.
func TestShortCutOfALinkIsForgotten(t *testing.T) {
	cfg := testConfig(t, 16, 3, 64, fabric.Line)
	cfg.Span = 2 * time.Minute
	cfg.Faults = script(t, "1s link cut 4", "6s link mend 4", "10s link cut 6", "14s link mend 6", "20s link cut 6", "60s node dark 5", "70s link mend 6")
	clean(t, run(t, cfg))
}
