package planner

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

// gpuCycles walks the GPUs of nodes whose sides are on the first candidates of
// their lists and counts the cycles. A node's GPUs are two arcs: from the lower
// half of its left bundle to the upper half of its right, and from the lower
// half of the right to the upper of the left. A straight link joins upper half
// to lower, a crossed one like to like, a loopback the halves of one bundle.
func gpuCycles(nodes []*proto.Desired) int {
	const lowL, upL, lowR, upR = 0, 1, 2, 3
	joined := make([]int, 4*len(nodes)) // union-find over the halves
	for i := range joined {
		joined[i] = i
	}
	var root func(i int) int
	root = func(i int) int {
		if joined[i] != i {
			joined[i] = root(joined[i])
		}
		return joined[i]
	}
	join := func(a, b int) { joined[root(a)] = root(b) }
	at := map[proto.NodeID]int{}
	for i, d := range nodes {
		at[d.Node] = 4 * i
	}
	for i, d := range nodes {
		join(4*i+lowL, 4*i+upR)
		join(4*i+lowR, 4*i+upL)
		r := &d.Rings[0]
		if len(r.Left) == 0 {
			join(4*i+lowL, 4*i+upL)
		}
		if len(r.Right) == 0 {
			join(4*i+lowR, 4*i+upR)
			continue
		}
		to := at[r.Right[0].Peer]
		if r.Right[0].Crossed {
			join(4*i+upR, to+upL)
			join(4*i+lowR, to+lowL)
		} else {
			join(4*i+upR, to+lowL)
			join(4*i+lowR, to+upL)
		}
	}
	cycles := 0
	for i := range joined {
		if root(i) == i {
			cycles++
		}
	}
	return cycles
}

// wrapped is a fabric whose last node is a neighbour of its first.
func wrapped(t *testing.T, nodes, k int, straight bool) *fabric.Fabric {
	t.Helper()
	f, err := fabric.New(fabric.Params{Name: "f", Nodes: nodes, GPUsPerNode: 4, K: k, TP: 4 * nodes, Topology: fabric.Ring})
	if err != nil {
		t.Fatal(err)
	}
	f.Fibres = f.AllFibres()
	for i := range f.Fibres {
		f.Fibres[i].Crossed = f.Fibres[i].Crossed && !straight
	}
	g, err := fabric.Parse(f.Encode())
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Goal: a ring of all nodes of a wrapped fabric is one cycle of GPUs, whether
// its seam is crossed or straight, since it is planned as a line.
// Method: the GPU walk over what the planner tells each node.
func TestRingRoundTheFabricIsOneCycle(t *testing.T) {
	for _, k := range []int{2, 3, 4} {
		for _, straight := range []bool{false, true} {
			w := newFleet(t, wrapped(t, 12, k, straight))
			w.start()
			for i := range w.nodes {
				w.birth(proto.NodeID(i), true)
			}
			w.run(time.Second)
			var told []*proto.Desired
			for i := range w.nodes {
				told = append(told, w.nodes[i].applied)
			}
			r := w.p.Rings.Placed.Statuses()
			if n := gpuCycles(told); n != 1 || len(r) != 1 || r[0].State != proto.RingInService || len(r[0].Nodes) != 12 {
				t.Errorf("K=%d straight %v: %d cycles, rings %+v", k, straight, n, r)
			}
			if first, last := told[r[0].Nodes[0]].Rings[0], told[r[0].Nodes[11]].Rings[0]; len(first.Left) > 0 || len(last.Right) > 0 {
				t.Errorf("K=%d straight %v: the ends of the line have candidates %v, %v", k, straight, first.Left, last.Right)
			}
		}
	}
}

// Goal: a ring that some other planner closed by light round the fabric is
// adopted over a crossed seam, where it is one cycle, and refused over a
// straight one, where it is two: its nodes are told anew, as a line.
// Method: the store is lost; the nodes report the closed ring.
func TestClosedRingOverAStraightSeamIsNotAdopted(t *testing.T) {
	for _, straight := range []bool{false, true} {
		f := wrapped(t, 8, 2, straight)
		w := newFleet(t, f)
		log := ""
		w.trace = func(line string) { log += line + "\n" }
		var closed []*proto.Desired
		for i := range w.nodes {
			id := proto.NodeID(i)
			list := func(step int) (out []proto.Candidate) {
				for hop := 1; hop <= 2; hop++ {
					peer := proto.NodeID((i + step*hop + 8) % 8)
					link, ok := f.Link(id, peer)
					if !ok {
						t.Fatalf("no fibre from %d to %d", id, peer)
					}
					out = append(out, proto.Candidate{Bundle: link.Local.Bundle, Path: link.Local.Path, Peer: peer, Others: true, Crossed: link.Crossed})
				}
				return out
			}
			d := &proto.Desired{Version: proto.Version, Node: id, Term: 3, Generation: 7, Plan: proto.Digest{9}, Decisions: []proto.RingID{4},
				Rings: []proto.RingAssignment{{Ring: 4, Generation: 7, Position: uint16(i), Size: 8, Envelope: measured, Left: list(-1), Right: list(+1)}}}
			w.nodes[i].applied, w.nodes[i].seen, w.nodes[i].mode = d, 3, proto.ModeService
			closed = append(closed, d)
		}
		if n, want := gpuCycles(closed), map[bool]int{false: 1, true: 2}[straight]; n != want {
			t.Fatalf("straight %v: %d cycles of GPUs, want %d", straight, n, want)
		}
		w.start()
		for i := range w.nodes {
			w.birth(proto.NodeID(i), false)
		}
		w.run(15 * time.Second)
		r := w.p.Rings.Placed.Statuses()
		if len(r) != 1 || len(r[0].Nodes) != 8 {
			t.Fatalf("straight %v: %+v\n%s", straight, r, log)
		}
		refused := strings.Contains(log, "odd number of crossed links")
		kept := slices.IndexFunc(w.nodes, func(n fakeNode) bool { return n.applied.Generation != 7 }) < 0
		if refused != straight || kept == straight || straight && r[0].State != proto.RingInService {
			t.Errorf("straight %v: refused %v, kept %v, %+v\n%s", straight, refused, kept, r, log)
		}
	}
}
