package hbd

import (
	"slices"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

// walk says which path a bundle is on, and whether it has its light.
type walk func(n proto.NodeID, b proto.BundleID) (proto.Path, bool)

// gpuOrder is the ring's GPUs in the order in which light meets them, as its
// nodes report their bundles now: nil where they do not form one closed ring. In a step
// of an exchange it is that of the ring that they are otherwise.
func (r *ringView) gpuOrder() []proto.RingGPU {
	if r.step > 0 && r.hasLight() {
		return r.coming(func(_, _ proto.NodeID) bool { return false })
	}
	return r.order(func(n proto.NodeID, b proto.BundleID) (proto.Path, bool) { return r.pl.nodes[n].litPath(b) })
}

// coming is the order in which light will meet the GPUs of its nodes that are usable,
// once they have done what they are told.
func (r *ringView) coming(broken func(a, b proto.NodeID) bool) []proto.RingGPU {
	alive := slices.DeleteFunc(slices.Clone(r.nodes), func(id proto.NodeID) bool { return !r.pl.nodes[id].usable() })
	told := map[fabric.Port]bool{}
	for at, id := range alive {
		for _, step := range [2]int{-1, +1} {
			if c := r.pl.candidates(alive, at, step, broken); len(c) > 0 {
				told[fabric.Port{Node: id, Bundle: c[0].Bundle, Path: c[0].Path}] = true
			}
		}
	}
	return r.order(func(n proto.NodeID, b proto.BundleID) (proto.Path, bool) {
		for _, path := range [2]proto.Path{proto.External1, proto.External2} {
			if told[fabric.Port{Node: n, Bundle: b, Path: path}] {
				return path, true
			}
		}
		return proto.Loopback, true
	})
}

// order follows light along the paths that bundles are on, nil where that is not one
// closed ring.
//
// A node's GPUs stand in a cycle. Between g and g+1 is bundle g, of which the
// upper half is the right of g and the lower half the left of g+1, or, beyond
// the bundles, a cable. A bundle in loopback joins its halves, as a cable does;
// a straight fibre joins upper half to lower, a crossed one like to like. The
// ring begins at its leftmost live node, behind the first bundle there that turns
// light back, and goes to the right.
func (r *ringView) order(on walk) []proto.RingGPU {
	alive := slices.DeleteFunc(slices.Clone(r.nodes), func(id proto.NodeID) bool { return !r.pl.nodes[id].usable() })
	if len(alive) == 0 {
		return nil
	}
	want := len(alive) * r.pl.fab.GPUsPerNode
	at, right := proto.RingGPU{Node: alive[0], GPU: r.firstGPU(alive[0], on)}, true
	order := make([]proto.RingGPU, 0, want)
	for range want {
		order = append(order, at)
		next, in, ok := r.beside(at, right, on)
		if !ok {
			return nil
		}
		at, right = next, !in
		if at == order[0] {
			break
		}
	}
	if at != order[0] || len(order) != want {
		return nil
	}
	return order
}

// firstGPU is the GPU behind the first bundle of a node that turns light back.
func (r *ringView) firstGPU(id proto.NodeID, on walk) uint8 {
	for b := range min(r.pl.fab.Bundles, r.pl.fab.GPUsPerNode) {
		if path, _ := on(id, proto.BundleID(b)); path == proto.Loopback {
			return uint8((b + 1) % r.pl.fab.GPUsPerNode)
		}
	}
	return 0
}

// beside is the GPU that a side of a GPU is joined to by light, and whether it
// is entered from its right.
func (r *ringView) beside(g proto.RingGPU, right bool, on walk) (next proto.RingGPU, fromRight, ok bool) {
	gpus := r.pl.fab.GPUsPerNode
	gap, step := int(g.GPU), 1
	if !right {
		gap, step = (gap+gpus-1)%gpus, gpus-1
	}
	home := proto.RingGPU{Node: g.Node, GPU: uint8((int(g.GPU) + step) % gpus)}
	if gap >= r.pl.fab.Bundles {
		return home, !right, true
	}
	path, tuned := on(g.Node, proto.BundleID(gap))
	if path == proto.Loopback || !tuned {
		return home, !right, tuned
	}
	far, crossed, ok := r.pl.fab.At(fabric.Port{Node: g.Node, Bundle: proto.BundleID(gap), Path: path})
	if !ok || !slices.Contains(r.nodes, far.Node) {
		return home, right, false
	}
	if back, tuned := on(far.Node, far.Bundle); back != far.Path || !tuned {
		return home, right, false // it listens elsewhere
	}
	fromRight = right == crossed // upper half of its bundle: the right of the GPU before it
	next = proto.RingGPU{Node: far.Node, GPU: uint8(int(far.Bundle) % gpus)}
	if !fromRight {
		next.GPU = uint8((int(far.Bundle) + 1) % gpus)
	}
	return next, fromRight, true
}

// litPath is the path that a bundle is on by its node's word, and whether it
// has its light.
func (n *node) litPath(b proto.BundleID) (proto.Path, bool) {
	if x, ok := n.Device.Report.Bundle(b); ok {
		return x.Path, x.State.Lit()
	}
	return proto.Loopback, false
}
