package fleet

import (
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"ringlight/planner"
	"ringlight/planner/fabric"
)

// growingCores are of four pods, of both wirings.
var growingCores = []fabric.Core{
	{Pods: 4, LeavesPerPod: 2, SpinesPerPod: 2, SpinePorts: 4, SwitchPorts: 8, LeafLinks: 2, ServersPerLeaf: 2, GPUsPerServer: 4, Wiring: fabric.Interleaved, IotaMille: 500},
	{Pods: 4, LeavesPerPod: 3, SpinesPerPod: 1, SpinePorts: 7, SwitchPorts: 8, LeafLinks: 2, ServersPerLeaf: 2, GPUsPerServer: 4, Wiring: fabric.Uniform, IotaMille: 1000},
}

// Goal: a core of four pods becomes one of eight and of six while jobs run, and agents,
// planner and broker die in the middle: no circuit of a job goes for an edit, jobs are
// placed on what is new once light has proven it, and in the end light passes exactly
// where the last commits say.
// Method: production agents and planner on simulated mirrors, of both wirings; jobs in
// the way of an edit are drained, and end where there is no other place.
// RINGLIGHT_CORE_SEEDS sets the number of seeds.
func TestACoreGrowsUnderJobs(t *testing.T) {
	first, seeds := uint64(1), uint64(6)
	if n, err := strconv.ParseUint(os.Getenv("RINGLIGHT_CORE_SEEDS"), 10, 32); err == nil {
		seeds = n
	}
	if n, err := strconv.ParseUint(os.Getenv("RINGLIGHT_CORE_SEED"), 10, 64); err == nil {
		first, seeds = n, 1
	}
	var sum CoreResult
	for seed := first; seed < first+seeds; seed++ {
		res := coreRun(t, growingCores, seed, func(c *Config) { c.Jobs = Growing(c.Fabric.Core, seed, 9, []int{8, 6}, everyCollective...) })
		if res.Violations > 0 {
			t.Fatalf("seed %d: %v", seed, res.ViolationList)
		}
		sum.add(res.Core)
	}
	if sum.Grown != 2*int(seeds) || sum.Refused == 0 || sum.Killed < int(seeds)/2 || sum.Looks == 0 || sum.Realised == 0 {
		t.Errorf("this shows nothing: %+v", sum)
	}
	t.Logf("%d seeds: %+v", seeds, sum)
}

// Goal: spines with their switches, and switches of one spine more, join a core under
// jobs, whose agents are there before or come after; a new port whose fibre carries no
// light stays out by name, and everything else is let in.
// Method: as above, with two dead fibres.
func TestACoreGrowsBySwitches(t *testing.T) {
	for seed, edit := range map[uint64]string{1: "spine_ports=9", 2: "spines=3 pods=5"} {
		var r *Run
		k := growingCores[seed%2]
		lists := JobLists(&k, seed, 4)
		f, err := fabric.New(fabric.Params{Name: "f", Core: &k})
		if err != nil {
			t.Fatal(err)
		}
		dead := map[[2]int]bool{{8, 1}: true, {8, 4}: true}
		cfg := Config{Fabric: f, Seed: seed, Health: 10 * time.Second, Jobs: append(lists[:2:2], coreEdit+edit, lists[2], lists[3]), Faults: Strikes(seed, 60),
			mutant: &mutant{dead: func(s, port int) bool { return dead[[2]int{s, port}] }}}
		if os.Getenv("RINGLIGHT_CORE_SEED") != "" {
			cfg.TraceLine = func(line string) { t.Log(line) }
		}
		if r, err = New(cfg); err != nil {
			t.Fatal(err)
		}
		res, err := r.Do()
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"switch8/a1", "switch8/a4", "switch8/b1", "switch8/b4", "switch9/a1", "switch9/a4", "switch9/b1", "switch9/b4"}
		if seed == 1 { // uniform, four pods
			want = []string{"switch8/a1", "switch8/b1"}
		}
		if parts := planner.CircuitsOf(r.planners[0].host.Planner()).Parts(); res.Violations > 0 || res.Core.Grown != 1 || !slices.Equal(parts, want) {
			t.Errorf("%s: %v are out, %d edits, %v", edit, parts, res.Core.Grown, res.ViolationList)
		}
	}
}
