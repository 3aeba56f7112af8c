package flow

import (
	"fmt"

	"ringlight/mzi/detmath"
)

// LeafSpine is a network of GPUs on leaves and leaves on spines. Uplink u of
// leaf n is a cable to spine u mod spines; it has a link each way. GPUs of
// one server reach each other over links of their own.
type LeafSpine struct {
	Leaves, Spines    int
	GPUsPerLeaf       int
	GPUsPerServer     int
	Uplinks           int // of a leaf
	BitPerS           int64
	ServerBitPerS     int64   // of a GPU inside its server
	bySpine           [][]int // the uplinks that every leaf has to it
	gpus, firstUplink int
}

// NewLeafSpine joins every leaf to the spines in turn.
func NewLeafSpine(leaves, spines, gpusPerLeaf, gpusPerServer, uplinks int, bitPerS, serverBitPerS int64) (*LeafSpine, error) {
	for _, c := range []struct {
		name          string
		value, lo, hi int
	}{
		{"leaves", leaves, 1, 1 << 16}, {"spines", spines, 1, 1 << 16}, {"gpus_per_leaf", gpusPerLeaf, 1, 1 << 12},
		{"gpus_per_server", gpusPerServer, 1, gpusPerLeaf}, {"uplinks", uplinks, 1, 1 << 12},
	} {
		if c.value < c.lo || c.value > c.hi {
			return nil, fmt.Errorf("flow: %s is %d, %d to %d", c.name, c.value, c.lo, c.hi)
		}
	}
	n := &LeafSpine{Leaves: leaves, Spines: spines, GPUsPerLeaf: gpusPerLeaf, GPUsPerServer: gpusPerServer, Uplinks: uplinks,
		BitPerS: bitPerS, ServerBitPerS: serverBitPerS, gpus: leaves * gpusPerLeaf, firstUplink: 4 * leaves * gpusPerLeaf}
	if gpusPerLeaf%gpusPerServer != 0 {
		return nil, fmt.Errorf("flow: gpus_per_leaf is %d, a multiple of gpus_per_server, %d", gpusPerLeaf, gpusPerServer)
	}
	n.bySpine = make([][]int, spines)
	for u := range uplinks {
		n.bySpine[u%spines] = append(n.bySpine[u%spines], u)
	}
	return n, nil
}

// Capacities of all links: per GPU out of and into its server's own network,
// then to and from its leaf; then up and down per uplink.
func (n *LeafSpine) Capacities() []int64 {
	c := make([]int64, n.firstUplink+2*n.Leaves*n.Uplinks)
	for i := range c {
		c[i] = n.BitPerS
		if i < 2*n.gpus {
			c[i] = n.ServerBitPerS
		}
	}
	return c
}

// Up and Down are the links of an uplink.
func (n *LeafSpine) Up(leaf, uplink int) Link {
	return Link(n.firstUplink + leaf*n.Uplinks + uplink)
}

// Down is the link from the uplink's spine to the leaf.
func (n *LeafSpine) Down(leaf, uplink int) Link {
	return n.Up(leaf, uplink) + Link(n.Leaves*n.Uplinks)
}

// Leaf of a GPU.
func (n *LeafSpine) Leaf(gpu int) int { return gpu / n.GPUsPerLeaf }

// Port of a GPU on its leaf.
func (n *LeafSpine) Port(gpu int) int { return gpu % n.GPUsPerLeaf }

// near is the path of a transfer that needs no spine, nil if it needs one.
func (n *LeafSpine) near(from, to int) []Link {
	switch {
	case from/n.GPUsPerServer == to/n.GPUsPerServer:
		return []Link{Link(from), Link(n.gpus + to)}
	case n.Leaf(from) == n.Leaf(to):
		return []Link{Link(2*n.gpus + from), Link(3*n.gpus + to)}
	}
	return nil
}

// over is the path by an uplink of the sender's leaf and one of the
// receiver's; both must lead to one spine.
func (n *LeafSpine) over(from, up, to, down int) ([]Link, error) {
	a, b := n.Leaf(from), n.Leaf(to)
	if up < 0 || up >= n.Uplinks || down < 0 || down >= n.Uplinks {
		return nil, fmt.Errorf("flow: uplinks %d of leaf %d and %d of leaf %d, 0 to %d", up, a, down, b, n.Uplinks-1)
	}
	if up%n.Spines != down%n.Spines {
		return nil, fmt.Errorf("flow: uplink %d of leaf %d and %d of leaf %d lead to no common spine", up, a, down, b)
	}
	return []Link{Link(2*n.gpus + from), n.Up(a, up), n.Down(b, down), Link(3*n.gpus + to)}, nil
}

// Route gives the links that one GPU's transfers to another take, for as long
// as the job lives.
type Route func(from, to int) ([]Link, error)

// Source is source routing: what comes from a GPU goes by the uplink that the
// table has for its port, and down to a leaf by the uplink that the table has
// there for the same port. The table is per leaf and port: for a job of
// isolated scheduling its own, else for instance the port itself.
func (n *LeafSpine) Source(table func(leaf, port int) int) Route {
	return func(from, to int) ([]Link, error) {
		if p := n.near(from, to); p != nil {
			return p, nil
		}
		port := n.Port(from)
		return n.over(from, table(n.Leaf(from), port), to, table(n.Leaf(to), port))
	}
}

// ECMP takes any way with equal chance, by a hash of the five-tuple: addresses
// of both, the job's source port, and the port and protocol of RoCEv2.
func (n *LeafSpine) ECMP(seed uint64, sourcePort int) Route {
	return func(from, to int) ([]Link, error) {
		if p := n.near(from, to); p != nil {
			return p, nil
		}
		ways := uint64(0)
		for _, uplinks := range n.bySpine {
			ways += uint64(len(uplinks) * len(uplinks))
		}
		h := detmath.Hash(seed, uint64(from), uint64(to), uint64(sourcePort), 4791, 17) % ways
		for _, uplinks := range n.bySpine {
			k := uint64(len(uplinks))
			if h < k*k {
				return n.over(from, uplinks[h/k], to, uplinks[h%k])
			}
			h -= k * k
		}
		panic("flow: invariant: a way is one of all")
	}
}

// Balanced is switches that know how many connections each of their own ports
// carries: a leaf gives a new one any of its uplinks with fewest, by a seeded
// hash, a spine its port to the leaf with fewest. How full a spine's ports are
// no leaf knows ([VCLOS] sec 9.3).
type Balanced struct {
	net  *LeafSpine
	seed uint64
	load []int32
}

// NewBalanced is a router without load.
func (n *LeafSpine) NewBalanced(seed uint64) *Balanced {
	return &Balanced{n, seed, make([]int32, n.firstUplink+2*n.Leaves*n.Uplinks)}
}

// Route chooses the way with the least load, and adds the flow to its load.
func (b *Balanced) Route(from, to int) ([]Link, error) {
	n := b.net
	if p := n.near(from, to); p != nil {
		return p, nil
	}
	x, y := n.Leaf(from), n.Leaf(to)
	bestUp, bestDown, bestDraw, found := 0, 0, uint64(0), false
	for _, uplinks := range n.bySpine {
		if len(uplinks) == 0 {
			continue
		}
		u, d := uplinks[0], uplinks[0]
		for _, v := range uplinks {
			if b.load[n.Up(x, v)] < b.load[n.Up(x, u)] {
				u = v
			}
			if b.load[n.Down(y, v)] < b.load[n.Down(y, d)] {
				d = v
			}
		}
		load, least := b.load[n.Up(x, u)], b.load[n.Up(x, bestUp)]
		draw := detmath.Hash(b.seed, uint64(from), uint64(to), uint64(u))
		if !found || load < least || load == least && draw < bestDraw {
			bestUp, bestDown, bestDraw, found = u, d, draw, true
		}
	}
	b.load[n.Up(x, bestUp)]++
	b.load[n.Down(y, bestDown)]++
	return n.over(from, bestUp, to, bestDown)
}

// Release takes the load of a path back.
func (b *Balanced) Release(path []Link) {
	for _, l := range path {
		if int(l) >= b.net.firstUplink {
			b.load[l]--
		}
	}
}

// Placed resolves the transfers of one job: rank r runs on GPUs[r]. Each pair
// of ranks is one connection, whose route is asked for once.
type Placed struct {
	GPUs  []int
	Route Route
	Paths [][]Link // in the order in which they were asked for

	known []map[int]int32 // per sender, by receiver: which path
}

// Rounds are the exchanges on the network.
func (p *Placed) Rounds(exchanges []Exchange) ([]Round, error) {
	if p.known == nil {
		p.known = make([]map[int]int32, len(p.GPUs))
	}
	out := make([]Round, 0, len(exchanges))
	for _, e := range exchanges {
		r := Round{make([]Flow, 0, len(e.Transfers)), e.Times}
		for _, t := range e.Transfers {
			if max(t.From, t.To) >= len(p.GPUs) {
				return nil, fmt.Errorf("flow: rank %d of a job of %d", max(t.From, t.To), len(p.GPUs))
			}
			if t.From == t.To || t.Bytes == 0 {
				continue
			}
			k, ok := p.known[t.From][t.To]
			if !ok {
				if p.known[t.From] == nil {
					p.known[t.From] = map[int]int32{}
				}
				path, err := p.Route(p.GPUs[t.From], p.GPUs[t.To])
				if err != nil {
					return nil, err
				}
				k = int32(len(p.Paths))
				p.known[t.From][t.To] = k
				p.Paths = append(p.Paths, path)
			}
			r.Flows = append(r.Flows, Flow{p.Paths[k], t.Bytes})
		}
		if e.Times > 0 {
			out = append(out, r)
		}
	}
	return out, nil
}
