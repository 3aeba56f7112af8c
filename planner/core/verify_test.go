package core

import (
	"testing"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

// Goal: what a switch reports of a circuit is found without a walk over all of them, also
// where one is by hand, of which nothing is said.
// Method: a switch with one by hand; a look takes no copy.
func TestCircuitIsFoundBesideThoseByHand(t *testing.T) {
	c := readyCircuits(&fabric.Core{Pods: 4, LeavesPerPod: 1, SpinesPerPod: 2, SpinePorts: 4, SwitchPorts: 8, LeafLinks: 2, ServersPerLeaf: 1, GPUsPerServer: 1,
		Wiring: fabric.Interleaved, IotaMille: 1000})
	d := c.Evidence.switches[0].Device
	c.Table.Reported(d, &proto.Reported{Node: d.ID, Session: 1, Seq: 1, Circuits: []proto.CircuitReport{
		{A: 0, B: 1, Job: 3, State: proto.Tuned}, {A: 1, B: 2, Job: proto.ByHand, State: proto.Tuned}, {A: 2, B: 0, Job: 3, State: proto.Failed}}}, false)
	for _, x := range []struct {
		a, b uint16
		want proto.PortState
	}{{0, 1, proto.Tuned}, {0, 2, proto.Blocked}, {1, 2, proto.Blocked}, {2, 0, proto.Failed}, {3, 0, proto.Blocked}} {
		if got := c.Evidence.stateOf(0, proto.Circuit{A: x.a, B: x.b}); got != x.want {
			t.Errorf("%d to %d: %v, want %v", x.a, x.b, got, x.want)
		}
	}
	if n := testing.AllocsPerRun(10, func() { c.Evidence.stateOf(0, proto.Circuit{A: 2}) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
