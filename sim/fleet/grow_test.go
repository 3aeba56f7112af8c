package fleet

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
)

// growingCores are of four pods, of both wirings, of leaves and spines, and of servers.
var growingCores = []fabric.Core{
	{Pods: 4, LeavesPerPod: 2, SpinesPerPod: 2, SpinePorts: 4, SwitchPorts: 8, LeafLinks: 2, ServersPerLeaf: 2, GPUsPerServer: 4, Wiring: fabric.Interleaved, IotaMille: 500},
	{Pods: 4, LeavesPerPod: 3, SpinesPerPod: 1, SpinePorts: 7, SwitchPorts: 8, LeafLinks: 2, ServersPerLeaf: 2, GPUsPerServer: 4, Wiring: fabric.Uniform, IotaMille: 1000},
	{Kind: fabric.KindLeafSpine, GPUsPerServer: 4, SwitchPorts: 64, LeafSpine: &fabric.LeafSpine{Leaves: 6, Spines: 3, GPUsPerLeaf: 8, Switches: 4, AnyToAny: true}},
	{Kind: fabric.KindDirect, GPUsPerServer: 4, SwitchPorts: 64, Direct: &fabric.Direct{Servers: 8, Degree: 2}},
}

// ofKind adds what runs of a kind need.
func ofKind(t *testing.T, c *Config) {
	t.Helper()
	if c.Fabric.Core.Direct != nil {
		var err error
		if c.Optics, err = catalogue(); err != nil {
			t.Fatal(err)
		}
		c.Modules = 1
	}
}

// Goal: a core of four pods becomes one of eight and of six while jobs run, one of six
// leaves of ten and of eight, one of eight servers of fourteen and of six, and agents,
// planner and broker die in the middle: no circuit of a job goes for an edit, jobs are
// placed on what is new once light has proven it, and in the end light passes exactly
// where the last commits say.
// Method: production agents and planner on simulated mirrors, of all kinds; jobs in
// the way of an edit are drained, and end where there is no other place.
// RINGLIGHT_CORE_SEEDS sets the number of seeds.
func TestACoreGrowsUnderJobs(t *testing.T) {
	first, seeds := uint64(1), uint64(8)
	if n, err := strconv.ParseUint(os.Getenv("RINGLIGHT_CORE_SEEDS"), 10, 32); err == nil {
		seeds = n
	}
	if n, err := strconv.ParseUint(os.Getenv("RINGLIGHT_CORE_SEED"), 10, 64); err == nil {
		first, seeds = n, 1
	}
	var sum CoreResult
	for seed := first; seed < first+seeds; seed++ {
		res := coreRun(t, growingCores, seed, func(c *Config) {
			unit, _, _ := Unit(c.Fabric.Core)
			to := map[string][]int{"pods": {8, 6}, "leaves": {10, 8}, "servers": {14, 6}}[unit]
			c.Jobs = Growing(c.Fabric.Core, seed, 9, to, true, everyCollective...)
			ofKind(t, c)
		})
		if res.Violations > 0 {
			t.Fatalf("seed %d: %v", seed, res.ViolationList)
		}
		add(&sum, res.Core)
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
		if parts := r.planners[0].host.Planner().Circuits.Parts(); res.Violations > 0 || res.Core.Grown != 1 || !slices.Equal(parts, want) {
			t.Errorf("%s: %v are out, %d edits, %v", edit, parts, res.Core.Grown, res.ViolationList)
		}
	}
}

// Goal: of a new leaf or server the fibres that carry no light stay out by name, each by
// itself, and everything else is let in.
// Method: an input without light of a leaf; a server's second fibre that ends nowhere.
func TestNewFibresOfLeavesAndServersAreProven(t *testing.T) {
	for seed, x := range map[uint64]struct {
		edit string
		mutant
		want []string
	}{
		2: {"leaves=8 spines=4", mutant{dead: func(s, port int) bool { return s == 2 && port == 26 }}, []string{"switch2/a26", "switch2/b26"}},
		3: {"servers=10", mutant{plug: func(layer, port int) int {
			if layer == 1 && port == 19 {
				return -1
			}
			return port
		}}, []string{"switch1/a19", "switch1/b19"}},
	} {
		k := growingCores[seed]
		f, err := fabric.New(fabric.Params{Name: "f", Core: &k})
		if err != nil {
			t.Fatal(err)
		}
		lists := Growing(&k, seed, 4, nil, true)
		cfg := Config{Fabric: f, Seed: seed, Health: 10 * time.Second, Jobs: append(lists[:2:2], coreEdit+x.edit, lists[2], lists[3]), Faults: Strikes(seed, 60), mutant: &x.mutant}
		ofKind(t, &cfg)
		r, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		res, err := r.Do()
		if err != nil {
			t.Fatal(err)
		}
		if parts := r.planners[0].host.Planner().Circuits.Parts(); res.Core.Grown != 1 || !slices.Equal(parts, x.want) {
			t.Errorf("%s: %v are out, %d edits, %v", x.edit, parts, res.Core.Grown, res.ViolationList)
		}
		for _, v := range res.ViolationList {
			if !strings.Contains(v, "what is new is proven") {
				t.Error(v)
			}
		}
	}
}
