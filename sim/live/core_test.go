package live

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/sim/fleet"
)

// Goal: a job list and its changes become light over a real broker, the light
// of every switch is what the planner wants, a killed agent's stage completes,
// and no circuit that stays goes dark.
// Method: a small core, three changes; judged by the boards, not by what
// agents or planner say.
func TestCoreBecomesLight(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // a bound on a hang
	defer cancel()
	core := DemoCore(4)
	core.LeavesPerPod, core.SpinePorts, core.SpinesPerPod = 2, 4, 2
	var story strings.Builder
	res, err := Core(ctx, CoreConfig{Core: core, Changes: 3, Seed: 2, Listen: "127.0.0.1:0", Screen: &story})
	if err != nil {
		t.Fatalf("%v\n%s", err, story.String())
	}
	if err := res.Verdict(); err != nil {
		t.Errorf("%v\n%s", err, story.String())
	}
	if res.Switches != 8 || res.JobsPlaced == 0 || res.CircuitsPlanned == 0 || res.Stages == 0 || res.AgentsKilled != 1 || res.SwitchMicros.N == 0 || len(res.Changes) != 4 {
		t.Errorf("%+v", res)
	}
	raw, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"jobs_placed", "circuits_planned", "circuits_lit", "stages", "worst_moved_share", "dark_us", "iota", "links_realised", "links_asked", "equal"} {
		if !strings.Contains(string(raw), `"`+key+`":`) {
			t.Errorf("the result has no %s", key)
		}
	}
}

// Goal: a verdict names what was not kept.
// Method: one broken promise each.
func TestCoreVerdict(t *testing.T) {
	good := func() *CoreResult {
		return &CoreResult{Iota: 0.25, JobsPlaced: 1, Changes: []CoreChange{{JobsPlaced: 1, WorstMoved: 2, WorstOf: 8, CircuitsPlanned: 4, CircuitsLit: 4, Equal: true}}}
	}
	if err := good().Verdict(); err != nil {
		t.Error(err)
	}
	for want, breakIt := range map[string]func(*CoreResult){ // any order: each is judged by itself
		"no job":      func(r *CoreResult) { r.JobsPlaced = 0 },
		"3 lit":       func(r *CoreResult) { r.Changes[0].CircuitsLit, r.Changes[0].Equal = 3, false },
		"were dark":   func(r *CoreResult) { r.Changes[0].CircuitsDropped = 1 },
		"over 25 %":   func(r *CoreResult) { r.Changes[0].WorstMoved = 3 },
		"no job has ": func(r *CoreResult) { r.Changes = nil },
		"too busy":    func(r *CoreResult) { r.Changes[0].CircuitsDropped, r.SwitchMicros.Max = 1, 24_558_392 },
	} {
		r := good()
		breakIt(r)
		if err := r.Verdict(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Goal: a stage with an interface that sends and hears nobody, as its sender is gone, is no
// stage without light: the fabric comes to rest.
// Method: the seed in which such a stage was rolled back without end.
func TestInterfaceThatOnlySendsIsNotDark(t *testing.T) {
	core := fabric.DefaultDirect()
	core.Direct.Servers = 16
	r, err := CoreSeeds(t.Context(), CoreSeedsConfig{Core: core, Seed: 35, Runs: 1, Lists: 7, Fail: fleet.Fails, Replay: func(uint64) string { return "again" }})
	if err == nil {
		err = r.Verdict()
	}
	if err != nil || r.Failed == 0 {
		t.Errorf("%v: %+v", err, r)
	}
}
