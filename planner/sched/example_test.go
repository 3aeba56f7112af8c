package sched_test

import (
	"fmt"

	"ringlight/planner/sched"
	"ringlight/planner/wiring"
)

// From a job list to cross-connects in stages: a cluster runs two jobs; one
// ends, others come, and what they need is rolled out beside the one that
// stays.
func Example() {
	// Four pods of two leaves with four servers each. Every leaf has two links
	// to each of two spines, so a spine has four ports towards the core: a
	// group is four switches, two of them even.
	core := sched.Core{
		Leaves:        wiring.Leaves{PodOf: []int32{0, 0, 1, 1, 2, 2, 3, 3}, Pods: 4, Spines: 2, Tau: 2},
		GPUsPerServer: 2, Servers: []int{4, 4, 4, 4, 4, 4, 4, 4},
	}
	const switches, seed, steps, iota = 2, 7, 4000, 500

	// The groups as they are, and the spread in force with them: nothing yet.
	groups := make([]wiring.Half, core.Spines)
	for h := range groups {
		groups[h] = wiring.NewHalf(core.Pods, switches)
	}
	inForce, _ := core.SpreadNeed(wiring.Topology{Pods: len(core.PodOf)})
	var running []sched.Placed

	deploy := func(jobs ...sched.Job) {
		stay, err := core.Need(running)
		if err != nil {
			fmt.Println(err)
			return
		}
		if inForce, err = inForce.Keep(stay); err != nil { // paths of jobs that ended carry nothing
			fmt.Println(err)
			return
		}
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
		next, err := core.Respread(need, inForce) // paths by spine; those in use stay
		if err != nil {
			fmt.Println(err)
			return
		}
		wanted := make([]wiring.Half, core.Spines)
		kept, were := 0, 0
		for h, links := range next.Groups() { // links between pods, by group
			g := wiring.Group{Topology: links, Old: groups[h]}
			if wanted[h], err = wiring.Rewire(g, wiring.Seed(seed, h), steps); err != nil {
				fmt.Println(err)
				return
			}
			kept += wanted[h].Kept(groups[h])
			were += groups[h].Circuits()
		}
		rollout, err := inForce.Rollout(groups, wanted, iota) // A.8
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%d jobs run, %d of %d even circuits stay\n", len(running), kept, were)
		for n, stage := range rollout.Stages {
			for _, w := range stage {
				fmt.Printf("  stage %d, group %d, switch %d: %v\n", n+1, w.Group, w.Switch, w.Steps)
			}
		}
		groups, inForce = wanted, next
	}
	deploy(sched.Job{TP: 2, EP: 1, PP: 2, DP: 5}, sched.Job{TP: 4, EP: 1, PP: 1, DP: 7})
	running = running[1:]
	deploy(sched.Job{TP: 2, EP: 1, PP: 3, DP: 2}, sched.Job{TP: 4, EP: 1, PP: 2, DP: 3})
	// Output:
	// 2 jobs run, 0 of 0 even circuits stay
	//   stage 1, group 0, switch 0: [+0>2 +2>0]
	//   stage 1, group 0, switch 1: [+0>2 +2>0]
	//   stage 1, group 0, switch 2: [+0>1 +1>0]
	//   stage 1, group 0, switch 3: [+0>1 +1>0]
	//   stage 1, group 1, switch 0: [+0>2 +2>0]
	//   stage 1, group 1, switch 1: [+0>2 +2>0]
	//   stage 1, group 1, switch 2: [+0>1 +1>0]
	//   stage 1, group 1, switch 3: [+0>1 +1>0]
	// 3 jobs run, 5 of 8 even circuits stay
	//   stage 1, group 0, switch 0: [+1>3]
	//   stage 1, group 0, switch 1: [+3>1]
	//   stage 1, group 0, switch 2: [-1>0 +3>0]
	//   stage 1, group 0, switch 3: [-0>1 +0>3]
	//   stage 1, group 1, switch 0: [+1>3 +3>1]
	//   stage 1, group 1, switch 1: [+1>3 +3>1]
	//   stage 1, group 1, switch 2: [-0>1 -1>0 +0>3]
	//   stage 1, group 1, switch 3: [-0>1 -1>0 +3>0]
}
