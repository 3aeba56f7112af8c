package fleet

import (
	"os"
	"strings"
	"testing"
	"time"

	"ringlight/agent"
	"ringlight/hal"
	"ringlight/planner/fabric"
)

// mixedRun runs the script that kills a node, a switch's agent and the planner
// in one run of one fleet.
func mixedRun(t *testing.T, m *mutant) (*Run, *Result) {
	t.Helper()
	file, err := os.Open("testdata/node_switch_planner.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cfg := testConfig(t, 16, 3, 64, fabric.Line)
	cfg.Fabric = mixed(t, 16, 3, 64, fabric.Line)
	cfg.Span, cfg.mutant = 5*time.Minute, m
	if cfg.Faults, err = ParseScript(file); err != nil {
		t.Fatal(err)
	}
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	res, err := r.Do()
	if err != nil {
		t.Fatal(err)
	}
	return r, res
}

// Goal: nodes and circuit switches are one fleet: when a node, a switch's agent
// and the planner die in one run, every checker of both is satisfied.
// Method: a script with all three in the middle of a stage, twice.
func TestNodeSwitchAndPlannerDieInOneRun(t *testing.T) {
	r, res := mixedRun(t, nil)
	clean(t, res)
	if got := res.bypasses[1]; len(got) == 0 || got[0] <= 0 || got[0] >= 1000 {
		t.Errorf("the loss of node 5 was bypassed in %v us, want a time under 1000", got)
	}
	if c := res.Core; c.Killed < 2 || c.Commits < 4 || c.Looks == 0 || c.Switches != 8 {
		t.Errorf("the switches: %+v", c)
	}
	if life := r.planners[0].life; life < 7 { // three more, and each death counts, too
		t.Errorf("the planner is in life %d", life)
	}
	for _, st := range []*station{r.stations[5], r.stations[9], r.stations[16+3]} {
		if st.life < 2 || st.host == nil {
			t.Errorf("%s is in life %d", st.name(), st.life)
		}
	}
}

// Goal: in such a run a defect of a node and one of a switch are both found.
// Method: a node that does not see its light go; switches that forget their
// plan when they die.
func TestMixedRunFindsDefectsOfBothKinds(t *testing.T) {
	for want, m := range map[string]*mutant{ // any order: independent
		"node 4": {unheard: func(st *station, e *hal.Edge) bool { return st.id == 4 && !e.High }},
		"switch ": {restored: func(st *station, j *agent.Journal) {
			if st.id.IsSwitch() {
				*j = agent.Journal{Last: j.Last, Acked: j.Acked, Reserved: j.Reserved, Events: j.Events}
			}
		}},
	} {
		_, res := mixedRun(t, m)
		if found := strings.Join(res.ViolationList, "\n"); !strings.Contains(found, ": "+want) {
			t.Errorf("want a violation of %q, got %q", want, res.ViolationList)
		}
	}
}

// Goal: no random mix of faults of nodes, switches, planner and broker breaks
// an invariant of either.
// Method: a small fleet of both, many faults, a bad network.
func TestRandomFaultsOfBothKindsBreakNothing(t *testing.T) {
	seeds := uint64(3)
	if testing.Short() {
		seeds = 1
	}
	for seed := uint64(1); seed <= seeds; seed++ {
		cfg := testConfig(t, 24, 3, 32, fabric.Line)
		cfg.Fabric = mixed(t, 24, 3, 32, fabric.Line)
		cfg.Seed = seed
		cfg.Rates = Rates{Loss: 2000, Repeat: 2000, Reorder: 2000}
		cfg.Faults = Random(cfg.Fabric, cfg.Modules, seed, cfg.Span, 60)
		res := run(t, cfg)
		clean(t, res)
		if res.Faults == 0 || res.Core.Commits == 0 || res.Core.Looks == 0 || res.Core.Realised != res.Core.Granted {
			t.Errorf("seed %d: %+v, %+v", seed, res, res.Core)
		}
	}
}
