package fabric

import "ringlight/proto"

// Params are what the default wiring is built from.
type Params struct {
	Name        string
	Nodes       int
	GPUsPerNode int
	K           int
	TP          int
	RingSizes   []RingSize // of rings that are not of TP
	Spares      int
	Topology    Topology // empty: line
	SpareLayout SpareLayout
	Moves       Moves // empty: few
	MovePriceMS int

	NodesPerToR    int // 0: where nodes stand in the data centre network is not known
	NodesPerDomain int

	Core *Core // nil: no switches between pods; with one, Nodes may be 0

	NodeNames []string
}

// DefaultParams are the values behind Default.
func DefaultParams() Params {
	return Params{Name: "f1", Nodes: 64, GPUsPerNode: 4, K: 2, TP: 32, Topology: Line, SpareLayout: Beside}
}

// Default is f1: 64 nodes of 4 GPUs, K = 2, TP-32, a line.
func Default() *Fabric {
	f, err := New(DefaultParams())
	if err != nil {
		panic("fabric: the default does not validate: " + err.Error())
	}
	return f
}

// New builds a fabric with the default wiring.
func New(p Params) (*Fabric, error) {
	if p.Topology == "" {
		p.Topology = Line
	}
	if p.SpareLayout == "" {
		p.SpareLayout = Beside
	}
	f := &Fabric{
		Name: p.Name, Nodes: p.Nodes, GPUsPerNode: p.GPUsPerNode, Bundles: DefaultBundles(p.K), K: p.K,
		Topology: p.Topology, TP: p.TP, RingSizes: p.RingSizes, Spares: p.Spares, SpareLayout: p.SpareLayout, Moves: p.Moves, MovePriceMS: p.MovePriceMS,
		NodesPerToR: p.NodesPerToR, NodesPerDomain: p.NodesPerDomain, Core: p.Core, NodeNames: p.NodeNames,
	}
	if p.Core != nil && p.Nodes == 0 {
		f = &Fabric{Name: p.Name, Core: p.Core, Topology: Line, SpareLayout: Beside}
	}
	if err := f.validateSizes(); err != nil {
		return nil, err
	}
	if f.Core != nil {
		if err := f.Core.Validate(); err != nil {
			return nil, err
		}
	}
	f.wire()
	f.connect()
	return f, nil
}

// DefaultBundles is the number of bundles a node needs for K hops each way:
// two offsets a bundle, but never both directions of the first hop on one.
func DefaultBundles(k int) int { return max(2, k) }

// DefaultPort is the bundle and path that the default wiring gives an offset
// from -K to +K, 0 excluded. Offsets go in pairs {-1,-2}, {+1,+2}, {-3,-4},
// {+3,+4} and so on; an odd K >= 3 leaves -K and +K, which share the last
// bundle; K = 1 has one offset a bundle.
func DefaultPort(k, offset int) (proto.BundleID, proto.Path) {
	hop, right := offset, true
	if offset < 0 {
		hop, right = -offset, false
	}
	if k%2 == 1 && hop == k && k > 1 {
		if right {
			return proto.BundleID(k - 1), proto.External2
		}
		return proto.BundleID(k - 1), proto.External1
	}
	bundle := (hop - 1) / 2 * 2
	if right {
		bundle++
	}
	if hop%2 == 1 {
		return proto.BundleID(bundle), proto.External1
	}
	return proto.BundleID(bundle), proto.External2
}

// wire lays the fibres of the default wiring, in order of node and hop. Every
// link over the seam of a ring is crossed, backups included: a ring closed
// with straight links would be two GPU cycles.
func (f *Fabric) wire() {
	f.Fibres = make([]Fibre, 0, f.Nodes*f.K)
	for n := range f.Nodes {
		for hop := 1; hop <= f.K; hop++ {
			to := f.offset(n, hop)
			if to == noNode {
				continue
			}
			a, b := Port{Node: proto.NodeID(n)}, Port{Node: to}
			a.Bundle, a.Path = DefaultPort(f.K, hop)
			b.Bundle, b.Path = DefaultPort(f.K, -hop)
			f.Fibres = append(f.Fibres, Fibre{A: a, B: b, Crossed: int(to) < n})
		}
	}
}
