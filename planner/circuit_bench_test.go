package planner

import (
	"math/rand/v2"
	"slices"
	"testing"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

// largeCircuits is a core of 128 pods and 16 groups of 16 switches on which
// jobs came and went until it is well used.
func largeCircuits(b *testing.B) (*circuits, []proto.JobSpec) {
	k := fabric.Core{Pods: 128, LeavesPerPod: 8, SpinesPerPod: 16, SpinePorts: 16, SwitchPorts: 128, LeafLinks: 2,
		ServersPerLeaf: 4, GPUsPerServer: 8, Wiring: fabric.Interleaved, IotaMille: 125}
	c := newCircuits(&k)
	for s := range c.switches {
		c.switches[s].online, c.switches[s].report = true, &proto.Reported{}
	}
	r := rand.New(rand.NewPCG(1, 3))
	var list []proto.JobSpec
	for id := 1; id < 400; id++ {
		pp := 2 << r.IntN(3)
		list = append(list, spec(id, (8+r.IntN(56)+pp-1)/pp*pp, 8, pp))
	}
	d := c.design(c.admit(c.list(list)))
	c.jobs, c.decks = d.jobs, d.decks
	list = slices.DeleteFunc(list, func(s proto.JobSpec) bool { return slices.Contains(d.change.Waiting, s.Job) })
	return c, list
}

// BenchmarkChangeOfJobs is what a change of the list costs the planner at 128
// pods and 16 groups of 16 switches: a tenth of the jobs ends, others come.
func BenchmarkChangeOfJobs(b *testing.B) {
	c, list := largeCircuits(b)
	next := slices.Clone(list[len(list)/10:])
	for id := range len(list)/10 + 1 {
		next = append(next, spec(1000+id, 16+8*(id%4), 8, 4))
	}
	var d design
	for b.Loop() {
		d = c.design(c.admit(c.list(next)))
	}
	b.ReportMetric(float64(d.change.Moved), "links_moved")
	b.ReportMetric(float64(d.change.Kept), "links_kept")
}

// BenchmarkSearchOfAGroup is the search of one such group with its budget,
// which a change needs where free ports do not do.
func BenchmarkSearchOfAGroup(b *testing.B) {
	c, list := largeCircuits(b)
	d := c.design(c.admit(c.list(list[len(list)/10:])))
	lots := c.lots(0, d.jobs)
	g := c.planGroup(0, lots)
	for b.Loop() {
		if _, ok := c.rewire(0, c.decks[:c.groupDecks()], g.stay, lots); !ok {
			b.Fatal("the links do not fit")
		}
	}
}

// BenchmarkLookAtCircuits is what a look costs that has nothing to do, such as
// after a switch came back.
func BenchmarkLookAtCircuits(b *testing.B) {
	c, _ := largeCircuits(b)
	for b.Loop() {
		if d := c.design(copyJobs(c.jobs)); len(d.stages) > 0 {
			b.Fatal("there is something to do")
		}
	}
}
