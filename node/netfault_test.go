package node

import (
	"fmt"
	"slices"
	"time"

	"ringlight/proto"
)

func (n *network) fault(e netEvent, i int, nd *netNode) {
	if n.trace != nil {
		n.trace("%9v n%d fault kind %d %v", n.now, i, e.kind, e.port)
	}
	switch e.kind {
	case netDeath:
		nd.alive, nd.inbox = false, nil
		first := n.rng.IntN(len(nd.bundles))
		for b := range nd.bundles {
			skew := n.between(0, n.env.SkewMicros)
			if b == first {
				skew = 0
			}
			n.push(n.now+skew, netLasers, port{i, b, 0}, 0)
		}
	case netLasers:
		nd.bundles[e.port.bundle].dead = true
		n.relight(i, e.port.bundle)
		n.lost = n.now
	case netReturn:
		if nd.alive {
			return
		}
		nd.alive = true
		for b := range nd.bundles {
			nd.bundles[b] = netBundle{tag: nd.bundles[b].tag + 1}
		}
		nd.m = New(Config{ID: proto.NodeID(i), Bundles: len(nd.bundles)})
		nd.m.Restore(nd.saved)
		nd.agent, nd.tickAt = true, Never
		n.adopt(i)
	case netCrash:
		nd.agent, nd.inbox = false, nil
	case netRestart:
		if nd.agent || !nd.alive {
			return
		}
		nd.agent = true
		for b := range nd.bundles { // whatever was on its way has arrived
			nd.bundles[b].path, nd.bundles[b].tag = nd.bundles[b].target, nd.bundles[b].tag+1
			n.relight(i, b)
		}
		nd.m = New(Config{ID: proto.NodeID(i), Bundles: len(nd.bundles)})
		nd.m.Restore(nd.saved)
		nd.tickAt = Never
		n.adopt(i)
	case netHost:
		n.lost = n.now
		n.tell(i, Event{Kind: HostFault})
	case netHostOK:
		n.tell(i, Event{Kind: HostOK})
	case netFail:
		n.lost = n.now
		n.tell(i, Event{Kind: PathFailed, Bundle: proto.BundleID(e.port.bundle), Path: nd.bundles[e.port.bundle].path})
	case netHang:
		b := &nd.bundles[e.port.bundle]
		b.hung = n.now + time.Duration(e.tag)*time.Microsecond
	case netDegrade:
		n.tell(i, Event{Kind: Degrade, Bundle: proto.BundleID(e.port.bundle), Path: proto.Path(e.port.path), Lit: e.tag == 0})
	case netDrain:
		if e.tag == 0 {
			n.lost = n.now
			n.tell(i, Event{Kind: Drain})
		} else {
			n.tell(i, Event{Kind: Undrain})
		}
	case netRequest:
		n.tell(i, Event{Kind: Request, Side: proto.Side(e.tag & 1), Request: proto.Request(e.tag >> 1), Bundle: proto.BundleID(e.port.bundle), Path: proto.Path(e.port.path)})
	case netCut, netMend:
		nd.ports[e.port.bundle][e.port.path].cut = e.kind == netCut
		n.follow(e.port)
		n.lost = n.now
	}
}

// halves lists what is not closed: a live node's bundle that is outside
// without a peer that is live, on the same fibre, and seen both ways.
func (n *network) halves() []string {
	var bad []string
	for i, nd := range n.nodes {
		if !nd.alive {
			continue
		}
		out := 0
		for b := range nd.bundles {
			p := nd.bundles[b].path
			if nd.bundles[b].target != p {
				bad = append(bad, fmt.Sprintf("node %d bundle %d still moves", i, b))
			}
			if !p.External() {
				continue
			}
			out++
			f := nd.fibres[b][p]
			if f == nowhere || !n.nodes[f.node].alive || n.nodes[f.node].bundles[f.bundle].path != proto.Path(f.path) ||
				!nd.ports[b][p].light || !n.nodes[f.node].ports[f.bundle][f.path].light {
				bad = append(bad, fmt.Sprintf("node %d bundle %d %s is open, sides %v", i, b, p, nd.m.Sides(nil)))
			} else if !n.listed(i, b, p) {
				bad = append(bad, fmt.Sprintf("node %d bundle %d %s has light of a stranger, node %d", i, b, p, f.node))
			}
		}
		if out > 2 {
			bad = append(bad, fmt.Sprintf("node %d has %d bundles outside", i, out))
		}
	}
	return bad
}

// listed: the plan that a node has applied names a path.
func (n *network) listed(i, b int, p proto.Path) bool {
	r := n.nodes[i].m.ring()
	return r != nil && slices.ContainsFunc(slices.Concat(r.Left, r.Right), func(c proto.Candidate) bool {
		return int(c.Bundle) == b && c.Path == p && int(c.Peer) == n.nodes[i].fibres[b][p].node
	})
}

// pieces counts the pieces that the live nodes in service make.
func (n *network) pieces(in func(i int) bool) int {
	group := make([]int, len(n.nodes))
	for i := range group {
		group[i] = i
	}
	var find func(int) int
	find = func(i int) int {
		if group[i] != i {
			group[i] = find(group[i])
		}
		return group[i]
	}
	for i, nd := range n.nodes {
		for b := range nd.bundles {
			if p := nd.bundles[b].path; nd.alive && p.External() {
				if f := nd.fibres[b][p]; f != nowhere {
					group[find(i)] = find(f.node)
				}
			}
		}
	}
	roots := map[int]bool{}
	for i := range n.nodes {
		if in(i) {
			roots[find(i)] = true
		}
	}
	return len(roots)
}

// joinable tells whether fibres could make one ring of the nodes: no gap
// beyond K, and with odd K no node that needs both -K and +K. A wrapped ring
// may lack one link: it is a line then.
func (n *network) joinable(in func(i int) bool) bool {
	var ids, gaps []int
	for i := range n.nodes {
		if in(i) {
			ids = append(ids, i)
		}
	}
	for at := range ids {
		if at+1 < len(ids) {
			gaps = append(gaps, ids[at+1]-ids[at])
		} else if n.wrap {
			gaps = append(gaps, ids[0]+n.count-ids[at])
		}
	}
	broken := 0
	for at, g := range gaps {
		before := 0
		if at > 0 || n.wrap {
			before = gaps[(at+len(gaps)-1)%len(gaps)]
		}
		if g > n.k || n.k == 3 && g == 3 && before == 3 {
			broken++
		}
	}
	return broken == 0 || n.wrap && broken == 1
}

// gpu is one of the k GPUs of a node. Bundle j lies between GPU j, by its upper
// half, and the GPU after it, by its lower.
type gpu struct{ node, at int }

// rings walks the light of the live nodes from GPU to GPU: a straight link
// joins upper half to lower, a crossed one like to like. Each ring is the GPUs
// that the walk passes until it is back at its first; every piece has to be
// closed.
func (n *network) rings() (list [][]gpu) {
	type half struct{ node, bundle, side int }
	seen := map[half]bool{}
	for i, nd := range n.nodes {
		for b := range nd.bundles {
			out := half{i, b, 0}
			if !nd.alive || seen[out] {
				continue
			}
			var ring []gpu
			for !seen[out] {
				seen[out] = true
				in := half{out.node, out.bundle, 1 - out.side}
				if p := n.nodes[out.node].bundles[out.bundle].path; p.External() {
					f := n.nodes[out.node].fibres[out.bundle][p]
					in = half{f.node, f.bundle, 1 - out.side}
					if n.seam(out.node, f.node) {
						in.side = out.side
					}
				}
				seen[in] = true
				// In by one half, over that GPU, out by the half on its other side.
				if in.side == 0 {
					ring = append(ring, gpu{in.node, in.bundle})
					out = half{in.node, (in.bundle + n.k - 1) % n.k, 1}
				} else {
					ring = append(ring, gpu{in.node, (in.bundle + 1) % n.k})
					out = half{in.node, (in.bundle + 1) % n.k, 0}
				}
			}
			list = append(list, ring)
		}
	}
	return list
}

// cycles counts the rings of GPUs.
func (n *network) cycles() int { return len(n.rings()) }

// seam: the fibre between two nodes is crossed, since it passes from the last
// to the first; with leastWrap nodes the shorter way round is the fibre's.
func (n *network) seam(a, b int) bool {
	return n.wrap && !n.straight && max(a-b, b-a) > n.k
}
