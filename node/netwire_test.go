package node

import (
	"math/rand/v2"
	"time"

	"ringlight/proto"
)

// layout is what the nodes of a network are wired to and planned as: a line,
// or a ring whose links over the seam, from the last node to the first, are
// crossed. straight leaves them straight: then a closed ring is two cycles.
type layout struct {
	k        int
	count    int
	member   []bool
	wrap     bool
	straight bool
	form     bool // links are not up yet: a plan is committed
}

// leastWrap is the number of nodes from which no two fibres of a wrapped
// fabric join the same two nodes.
func leastWrap(k int) int { return 2*k + 1 }

// newNetwork wires nodes; members are in one ring, whose links are up already
// unless form is set.
func newNetwork(rng *rand.Rand, l layout, trace func(string, ...any)) *network {
	n := &network{rng: rng, layout: l, env: defaultEnvelope, nodes: make([]*netNode, l.count), trace: trace}
	bundles := l.k
	for i := range n.nodes {
		nd := &netNode{m: New(Config{ID: proto.NodeID(i), Bundles: bundles}), alive: true, agent: true, member: l.member[i],
			bundles: make([]netBundle, bundles), ports: make([][proto.NumPaths]netPort, bundles),
			fibres: make([][proto.NumPaths]port, bundles), tickAt: Never}
		for b := range nd.fibres {
			nd.bundles[b] = netBundle{path: proto.Loopback, target: proto.Loopback}
			for p := range nd.fibres[b] {
				nd.fibres[b][p] = nowhere
			}
		}
		n.nodes[i] = nd
	}
	for i, nd := range n.nodes {
		for off := -l.k; off <= l.k; off++ {
			j := i + off
			if l.wrap {
				j = (j + l.count) % l.count
			}
			b, p, ok := bundleFor(l.k, off)
			if !ok || j < 0 || j >= l.count {
				continue
			}
			pb, pp, _ := bundleFor(l.k, -off)
			nd.fibres[b][p] = port{j, pb, pp}
		}
	}
	n.plan(1)
	if l.form {
		for i := range n.nodes {
			n.adopt(i)
			n.prepare(i)
			n.push(n.between(0, 3000), netCommit, port{node: i}, 0)
		}
		n.run(200 * time.Millisecond)
		return n
	}
	for _, nd := range n.nodes {
		if !nd.member {
			nd.saved = State{SeenTerm: 1, Applied: &Held{Desired: nd.desired}, Bundles: make([]BundleRecord, bundles)}
			for b := range nd.bundles {
				nd.saved.Bundles[b].Path = proto.Loopback
			}
			nd.m.Restore(nd.saved)
			continue
		}
		r := &nd.desired.Rings[0]
		if len(r.Left) > 0 {
			nd.bundles[r.Left[0].Bundle] = netBundle{path: r.Left[0].Path, target: r.Left[0].Path}
		}
		if len(r.Right) > 0 {
			nd.bundles[r.Right[0].Bundle] = netBundle{path: r.Right[0].Path, target: r.Right[0].Path}
		}
		nd.saved = State{SeenTerm: 1, Applied: &Held{Desired: nd.desired}, Bundles: make([]BundleRecord, bundles)}
		for b := range nd.bundles {
			nd.saved.Bundles[b].Path = nd.bundles[b].path
		}
		nd.m.Restore(nd.saved)
	}
	for i, nd := range n.nodes {
		for b := range nd.ports {
			for p := range nd.ports[b] {
				lit := n.lightAt(port{i, b, p})
				nd.ports[b][p].light, nd.ports[b][p].found = lit, lit
			}
		}
	}
	for i := range n.nodes {
		n.adopt(i)
	}
	n.run(10 * time.Millisecond)
	return n
}

// plan writes the desired state of every node for the present members.
func (n *network) plan(gen proto.Generation) {
	var ring []int
	for i, nd := range n.nodes {
		if nd.member {
			ring = append(ring, i)
		}
	}
	lists := func(pos, dir int) (list []proto.Candidate) {
		for q, off := pos+dir, 0; ; q += dir {
			at := (q + len(ring)) % len(ring)
			if at == pos || at != q && !n.wrap {
				break
			}
			off = (ring[at] - ring[pos]) * dir
			if off < 0 {
				off += n.count
			}
			b, p, ok := bundleFor(n.k, off*dir)
			if !ok {
				break
			}
			list = append(list, proto.Candidate{Bundle: proto.BundleID(b), Path: proto.Path(p), Peer: proto.NodeID(ring[at]), Crossed: n.crossed(ring[pos], dir*off)})
		}
		return list
	}
	type pair struct{ left, right []proto.Candidate }
	all := map[int]pair{}
	for pos, i := range ring {
		all[i] = pair{lists(pos, -1), lists(pos, 1)}
	}
	for i, nd := range n.nodes {
		nd.desired = proto.Desired{Version: proto.Version, Node: proto.NodeID(i), Term: 1, Generation: gen,
			Plan: proto.Digest{byte(gen)}, Decisions: []proto.RingID{1}, BypassSeq: nd.m.bypassSeq}
	}
	for pos, i := range ring {
		a := all[i]
		for k := range a.left {
			a.left[k].Others = len(all[int(a.left[k].Peer)].right) > 1
		}
		for k := range a.right {
			a.right[k].Others = len(all[int(a.right[k].Peer)].left) > 1
		}
		n.nodes[i].desired.Rings = []proto.RingAssignment{{Ring: 1, Generation: gen, Position: uint16(pos), Size: uint16(len(ring)),
			Envelope: n.env, Left: a.left, Right: a.right}}
	}
}

// crossed: the link from node i over so many hops passes the seam.
func (n *network) crossed(i, off int) bool {
	return n.wrap && !n.straight && (i+off < 0 || i+off >= n.count)
}
