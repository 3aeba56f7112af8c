package core

import (
	"math/rand/v2"
	"slices"
	"testing"

	"ringlight/planner/fabric"
	"ringlight/planner/journal"
	"ringlight/planner/member"
	"ringlight/proto"
)

// nobody is a planner above that asks for nothing.
type nobody struct{}

func (nobody) Voiced()                           {}
func (nobody) Answer(*member.Device, *proto.Ack) {}
func (nobody) Busy() string                      { return "" }

func spec(id, servers, tp, pp int) proto.JobSpec {
	return proto.JobSpec{Job: proto.JobID(id), TP: uint32(tp), EP: 1, PP: uint32(pp), Servers: uint32(servers)}
}

// largeCircuits is a core of 128 pods and 16 groups of 16 switches on which
// jobs came and went until it is well used.
func largeCircuits(b *testing.B) (*Circuits, []proto.JobSpec) {
	k := fabric.Core{Pods: 128, LeavesPerPod: 8, SpinesPerPod: 16, SpinePorts: 16, SwitchPorts: 128, LeafLinks: 2,
		ServersPerLeaf: 4, GPUsPerServer: 8, Wiring: fabric.Interleaved, IotaMille: 125}
	c := New(&k, journal.New(), nobody{})
	for s := range c.Evidence.switches {
		d := c.Evidence.switches[s].Device
		c.Table.Presence(d, &proto.Presence{Node: d.ID, Session: 1, Online: true, Ports: 128})
		c.Table.Reported(d, &proto.Reported{Node: d.ID, Session: 1}, false)
	}
	r := rand.New(rand.NewPCG(1, 3))
	var list []proto.JobSpec
	for id := 1; id < 400; id++ {
		pp := 2 << r.IntN(3)
		list = append(list, spec(id, (8+r.IntN(56)+pp-1)/pp*pp, 8, pp))
	}
	d := c.design(c.jobs.list(list), true)
	c.jobs.all, c.Evidence.maps = d.jobs, d.maps
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
		d = c.design(c.jobs.list(next), true)
	}
	b.ReportMetric(float64(d.change.Moved), "links_moved")
	b.ReportMetric(float64(d.change.Kept), "links_kept")
}

// BenchmarkSearchOfAGroup is the search of one such group with its budget,
// which a change needs where free ports do not do.
func BenchmarkSearchOfAGroup(b *testing.B) {
	c, list := largeCircuits(b)
	d := c.design(c.jobs.list(list[len(list)/10:]), true)
	of := c.designer.(interleaved)
	of.from = c.Evidence.standing()
	lots := of.lots(0, d.jobs)
	g := of.planGroup(0, lots)
	for b.Loop() {
		if _, ok := of.rewire(0, c.Evidence.maps[:c.Evidence.layout.groupMaps()], g.stay, lots); !ok {
			b.Fatal("the links do not fit")
		}
	}
}

// BenchmarkLookAtCircuits is what a look costs that has nothing to do, such as
// after a switch came back.
func BenchmarkLookAtCircuits(b *testing.B) {
	c, _ := largeCircuits(b)
	for b.Loop() {
		if d := c.design(c.jobs.all, false); len(d.stages) > 0 {
			b.Fatal("there is something to do")
		}
	}
}

// BenchmarkTurnOfJobs is what a change of the list costs the planner on 2,048
// GPUs of 64 leaves, 32 spines and 32 switches, well used: a tenth of the jobs
// ends, others come, and some wait.
func BenchmarkTurnOfJobs(b *testing.B) {
	k := fabric.DefaultLeafSpine()
	k.LeafSpine.Leaves, k.Spines = 64, 32
	c := New(k, journal.New(), nobody{})
	for s := range c.Evidence.switches {
		d := c.Evidence.switches[s].Device
		c.Table.Presence(d, &proto.Presence{Node: d.ID, Session: 1, Online: true, Ports: uint16(k.Ports())})
		c.Table.Reported(d, &proto.Reported{Node: d.ID, Session: 1}, false)
	}
	r := rand.New(rand.NewPCG(1, 3))
	alone := func(id int) proto.JobSpec {
		return proto.JobSpec{Job: proto.JobID(id), TP: 1, EP: 1, PP: 1, DP: uint32(1 << r.IntN(8))}
	}
	var list []proto.JobSpec
	for id := 1; id < 150; id++ {
		list = append(list, alone(id))
	}
	d := c.design(c.jobs.list(list), true)
	c.jobs.all, c.Evidence.maps = d.jobs, d.maps
	list = slices.DeleteFunc(list, func(s proto.JobSpec) bool { return slices.Contains(d.change.Waiting, s.Job) })
	next := slices.Clone(list[len(list)/10:])
	for id := range 40 {
		next = append(next, alone(1000+id))
	}
	for b.Loop() {
		d = c.design(c.jobs.list(next), true)
	}
	b.ReportMetric(float64(d.change.Placed), "placed")
	b.ReportMetric(float64(len(d.change.Waiting)), "waiting")
	b.ReportMetric(float64(d.change.Kept), "links_kept")
}
