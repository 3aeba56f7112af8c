package sched_test

import (
	"fmt"

	"ringlight/planner/sched"
	"ringlight/planner/wiring"
)

// From a job list to paths over spines: a cluster runs two jobs; one ends,
// others come, and what they need is spread beside the one that stays. What
// the spines then carry between pods is what planner/wiring realises.
func Example() {
	// Four pods of two leaves with four servers each. Every leaf has two links
	// to each of two spines.
	core := sched.Core{
		Leaves:        wiring.Leaves{PodOf: []int32{0, 0, 1, 1, 2, 2, 3, 3}, Pods: 4, Spines: 2, Tau: 2},
		GPUsPerServer: 2, Servers: []int{4, 4, 4, 4, 4, 4, 4, 4},
	}
	inForce, _ := core.SpreadNeed(wiring.Topology{Pods: len(core.PodOf)}) // nothing yet
	var running []sched.Placed

	deploy := func(jobs ...sched.Job) {
		for _, j := range jobs {
			placed, err := core.Admit(running, j) // A.4, A.6, A.12
			if err != nil {
				fmt.Println("waits:", err)
				continue
			}
			running = append(running, placed)
		}
		need, err := core.Need(running) // paths between leaves
		if err != nil {
			fmt.Println(err)
			return
		}
		if inForce, err = core.Respread(need, inForce); err != nil { // paths by spine; those in use stay
			fmt.Println(err)
			return
		}
		fmt.Printf("%d jobs run\n", len(running))
		for h, paths := range inForce.Spine {
			fmt.Printf("  spine %d: leaf to leaf, paths: %v\n", h, paths.Links)
		}
	}
	deploy(sched.Job{TP: 2, EP: 1, PP: 2, DP: 5}, sched.Job{TP: 4, EP: 1, PP: 1, DP: 7})
	running = running[1:]
	deploy(sched.Job{TP: 2, EP: 1, PP: 3, DP: 2}, sched.Job{TP: 4, EP: 1, PP: 2, DP: 3})
	// Output:
	// 2 jobs run
	//   spine 0: leaf to leaf, paths: [{0 2 1} {0 3 1} {1 4 1} {1 5 1}]
	//   spine 1: leaf to leaf, paths: [{0 2 1} {0 3 1} {1 4 1} {1 5 1}]
	// 3 jobs run
	//   spine 0: leaf to leaf, paths: [{0 2 1} {0 6 1} {1 4 1} {1 5 1} {2 6 1}]
	//   spine 1: leaf to leaf, paths: [{0 6 1} {1 4 1} {1 5 1} {2 6 1} {2 7 1}]
}
