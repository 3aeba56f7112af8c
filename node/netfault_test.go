package node

import (
	"fmt"

	"ringlight/proto"
)

func (n *network) fault(e netEvent, i int, nd *netNode) {
	if n.trace != nil {
		n.trace("%9v n%d fault kind %d %v", n.now, i, e.kind, e.port)
	}
	switch e.kind {
	case netDeath:
		nd.alive = false
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
		nd.agent = false
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
		n.step(i, Event{Kind: HostFault})
	case netHostOK:
		n.step(i, Event{Kind: HostOK})
	case netFail:
		n.lost = n.now
		n.step(i, Event{Kind: PathFailed, Bundle: proto.BundleID(e.port.bundle), Path: nd.bundles[e.port.bundle].path})
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
			}
		}
		if out > 2 {
			bad = append(bad, fmt.Sprintf("node %d has %d bundles outside", i, out))
		}
	}
	return bad
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
// beyond K, and with odd K no node that needs both -K and +K.
func (n *network) joinable(in func(i int) bool) bool {
	last, gap := -1, 0
	for i := range n.nodes {
		if !in(i) {
			continue
		}
		if last >= 0 {
			g := i - last
			if g > n.k || n.k == 3 && g == 3 && gap == 3 {
				return false
			}
			gap = g
		}
		last = i
	}
	return true
}
