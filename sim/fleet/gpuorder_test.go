package fleet

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"ringlight/mzi/detmath"
	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/sim"
)

// Goal: the order of GPUs that the planner gives out for a ring is that of the
// light, and none is given out while light does not close the ring.
// Method: random fabrics (K 2 and 3, line and wrapped, 4 and 8 GPUs a node,
// seams straight and crossed), random losses and returns; at moments of calm and
// a moment after each loss every ring's order is compared with the walk of the
// simulator, which looks at optics alone. RINGLIGHT_ORDERS sets their number.
func TestGPUOrderIsTheWalkOfLight(t *testing.T) {
	runs := 12
	if n, err := strconv.Atoi(os.Getenv("RINGLIGHT_ORDERS")); err == nil {
		runs = n
	}
	given, withheld, late := 0, 0, 0
	for seed := range uint64(runs) {
		rnd := detmath.Stream(77, seed)
		nodes, k := 7+rnd.Below(12), 2+rnd.Below(2)
		size := 2 + rnd.Below(min(nodes-2, 8))
		gpus := 4 << rnd.Below(2)
		topology := []fabric.Topology{fabric.Line, fabric.Ring}[rnd.Below(2)]
		cfg := testConfig(t, nodes, k, 4*size, topology)
		f, err := fabric.New(fabric.Params{Name: "f1", Nodes: nodes, GPUsPerNode: gpus, K: k, TP: gpus * size, Topology: topology})
		if err != nil {
			t.Fatal(err)
		}
		cfg.Fabric, cfg.Seed, cfg.Span = f, seed, 40*time.Second
		out := map[int]bool{}
		for i := range 4 { // a loss or a return every 8 s
			n := rnd.Below(nodes)
			verb := "dark"
			if out[n] {
				verb = "on"
			}
			out[n] = !out[n]
			cfg.Faults = append(cfg.Faults, script(t, fmt.Sprintf("%ds node %s %d", 2+8*i, verb, n))...)
		}
		moments := []time.Duration{time.Second}
		for i := range 4 {
			at := time.Duration(2+8*i) * time.Second
			moments = append(moments, at+300*time.Millisecond, at+7*time.Second)
		}
		next := 0
		cfg.mutant = &mutant{at: moments[0], act: func(r *Run) {
			calm := next%2 == 0
			p := r.planners[0].host.Planner()
			for _, ring := range p.Rings.Placed.Statuses() {
				s := p.Rings.Placed.Ring(ring.Ring)
				alive := slices.DeleteFunc(slices.Clone(s.Nodes), func(id proto.NodeID) bool { return !r.world.Powered(r.stations[id].board) })
				if len(alive) == 0 {
					continue
				}
				first := sim.GPU{Board: r.stations[alive[0]].board}
				if len(s.GPUOrder) > 0 {
					g := s.GPUOrder[0]
					first = sim.GPU{Board: r.stations[g.Node].board, Index: int(g.GPU)}
				}
				walk, closed := r.world.Strand(first, nil)
				whole := closed && len(walk) == gpus*len(alive)
				var light []proto.RingGPU
				for _, g := range walk {
					light = append(light, proto.RingGPU{Node: proto.NodeID(g.Board), GPU: uint8(g.Index)})
				}
				switch {
				case len(s.GPUOrder) == 0 && whole && calm:
					t.Errorf("seed %d, %v: ring %d is closed by light over %v and no order is given out", seed, moments[next], s.Ring, alive)
				case len(s.GPUOrder) == 0:
					withheld++
				case whole && slices.Equal(s.GPUOrder, light):
					given++
				case !calm: // the reports of that moment are under way
					late++
				default:
					t.Errorf("seed %d, %v: ring %d: order %v, light %v, closed %v", seed, moments[next], s.Ring, s.GPUOrder, light, closed)
				}
			}
			if next++; next < len(moments) {
				r.agenda.Push(r.epoch+moments[next], task{kind: taskMutant})
			}
		}}
		clean(t, run(t, cfg))
	}
	t.Logf("%d fabrics: %d orders as the light goes, %d withheld, %d a moment after a loss not yet as the light", runs, given, withheld, late)
	if given < 10*runs {
		t.Error("too few rings were looked at")
	}
}
