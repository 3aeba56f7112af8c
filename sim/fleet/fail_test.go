package fleet

import (
	"slices"
	"strings"
	"testing"

	"ringlight/planner/fabric"
)

// Goal: whatever of a core of pods, of leaves in their place, or of leaves and spines, fails, no circuit and no route
// is over it, jobs are whole or short of it by name, and who has nothing of it keeps
// its light, with agents, planner and broker dying in the middle of stages.
// Method: seeds with parts of all kinds, and of leaves and spines whose light alone tells; of servers joined directly ocs-sim core -fail.
func TestPartsFail(t *testing.T) {
	seeds := uint64(4)
	if testing.Short() {
		seeds = 1
	}
	leaves := fabric.DefaultLeafSpine()
	*leaves.LeafSpine = fabric.LeafSpine{Leaves: 4, Spines: 4, GPUsPerLeaf: 8, Switches: 8, AnyToAny: true}
	leaves.GPUsPerServer = 2
	bare := fabric.DefaultCore(8)
	bare.LeavesPerPod, bare.SpinesPerPod, bare.SpinePorts, bare.Spineless = 1, 4, 2, true
	for name, c := range map[string]*fabric.Core{"pods": fabric.DefaultCore(4), "leaves": leaves, "leaves on mirrors": bare} { // any order: each by itself
		t.Run(name, func(t *testing.T) {
			f, err := fabric.New(fabric.Params{Name: "core", Core: c})
			if err != nil {
				t.Fatal(err)
			}
			failed, noticed, short, routes := 0, 0, 0, 0
			for seed := uint64(1); seed <= seeds; seed++ {
				kinds := Fails
				if seed%2 == 0 {
					kinds = []string{"leaves", "spines"}
				}
				r, err := New(Config{Fabric: f, Seed: seed, Jobs: Failing(c, seed, JobLists(c, seed, 4), kinds), Faults: Strikes(seed, 100)})
				if err != nil {
					t.Fatal(err)
				}
				res, err := r.Do()
				if err != nil {
					t.Fatal(err)
				}
				if res.Violations > 0 {
					t.Errorf("seed %d: %v", seed, res.ViolationList)
				}
				failed, noticed, short, routes = failed+res.Core.Failed, noticed+res.Core.Noticed, short+res.Core.Short, routes+res.Core.Routes
			}
			if t.Logf("%d parts failed, %d noticed by light, %d times a job was short, %d routes", failed, noticed, short, routes); failed == 0 || routes == 0 || short*noticed == 0 && !testing.Short() {
				t.Error("nothing was tried")
			}
		})
	}
}

// Goal: what fails comes back, and each kind is drawn where a core has it.
// Method: entries of many seeds, on every kind of core.
func TestWhatFailsComesBack(t *testing.T) {
	for kind, c := range map[string]*fabric.Core{"pods": fabric.DefaultCore(4), "leaves": fabric.DefaultLeafSpine(), "direct": fabric.DefaultDirect()} { // any order: each by itself
		var gone []string
		drawn := map[string]bool{}
		for seed := range uint64(40) {
			for _, entry := range Failing(c, seed, []string{noJobs, noJobs, noJobs}, Fails) {
				word, part := entryOf(entry)
				switch _, known := c.Part(part); {
				case word == "":
				case !known:
					t.Errorf("%s: %q is no part", kind, entry)
				case word == partBack:
					gone = slices.DeleteFunc(gone, func(x string) bool { return x == part })
				default:
					gone = append(gone, part)
					drawn[strings.Trim(part, "0123456789/")+word] = true
				}
			}
			if len(gone) > 0 {
				t.Fatalf("%s, seed %d: %v stay out", kind, seed, gone)
			}
		}
		if len(drawn) < 5 {
			t.Errorf("%s: only %v", kind, drawn)
		}
	}
}
