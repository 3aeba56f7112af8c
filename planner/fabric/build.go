package fabric

import (
	"cmp"
	"slices"

	"ringlight/proto"
)

// Params is a description that has no fibres yet: New adds those of the default wiring.
type Params = Fabric

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
	p.Topology = cmp.Or(p.Topology, Line)
	p.SpareLayout = cmp.Or(p.SpareLayout, Beside)
	f := &p
	if n := len(p.Spans); n > 0 {
		f.K = p.Spans[n-1]
	}
	f.Bundles = defaultBundles(len(f.Reach()))
	if p.Core != nil && p.Nodes == 0 {
		f = &Fabric{Name: p.Name, Core: p.Core, ServerNames: p.ServerNames, Topology: Line, SpareLayout: Beside}
	}
	if err := f.validateSizes(); err != nil {
		return nil, err
	}
	if err := f.validateCore(); err != nil {
		return nil, err
	}
	f.connect()
	return f, nil
}

// defaultBundles is the number of bundles a node needs for so many spans each way:
// two offsets a bundle, but never both directions of the first hop on one.
func defaultBundles(k int) int { return max(2, k) }

// defaultPort is the bundle and path that the default wiring gives an offset by the
// place of its hops among k spans, from -k to +k, 0 excluded. Offsets go in pairs
// {-1,-2}, {+1,+2}, {-3,-4}, {+3,+4} and so on; an odd k >= 3 leaves -k and +k, which
// share the last bundle; k = 1 has one offset a bundle.
func defaultPort(k, offset int) (proto.BundleID, proto.Path) {
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

// AllFibres are the fibres of the description, or those of the default wiring.
func (f *Fabric) AllFibres() []Fibre {
	if f.Fibres != nil {
		return f.Fibres
	}
	return slices.AppendSeq(make([]Fibre, 0, f.Nodes*len(f.Reach())), f.wiring)
}

// wiring goes through the fibres of the default wiring, in order of node and
// hop. Every link over the seam of a ring is crossed, backups included: a ring
// closed with straight links would be two GPU cycles.
func (f *Fabric) wiring(yield func(Fibre) bool) {
	spans := f.Reach()
	for n := range f.Nodes {
		for i := 1; i <= len(spans); i++ {
			a := Port{Node: proto.NodeID(n)}
			a.Bundle, a.Path = defaultPort(len(spans), i)
			if b, crossed, ok := f.wired(n, i, spans); ok && !yield(Fibre{A: a, B: b, Crossed: crossed}) {
				return
			}
		}
	}
}

// wired is where the default wiring leads from a node by the i-th of its spans, or to
// the left by the -i-th.
func (f *Fabric) wired(n, i int, spans Spans) (to Port, crossed, ok bool) {
	if i < 0 {
		to.Node = f.offset(n, -spans[-i-1])
	} else {
		to.Node = f.offset(n, spans[i-1])
	}
	to.Bundle, to.Path = defaultPort(len(spans), -i)
	return to, i > 0 == (int(to.Node) < n), to.Node != noNode
}

// connect makes the index of what hangs on which port; Validate has passed.
// Fibres laid as by default need neither list nor index: a place in the order
// says where each leads.
func (f *Fabric) connect() {
	if f.Fibres != nil && slices.Equal(f.Fibres, slices.AppendSeq(make([]Fibre, 0, len(f.Fibres)), f.wiring)) {
		f.Fibres = nil
	}
	f.peers, f.offsets = nil, nil
	f.shelve()
	if f.reach = f.Reach(); f.Fibres == nil {
		f.offsets = make([]int, f.Bundles*2)
		k := len(f.reach)
		for i := -k; i <= k; i++ {
			bundle, path := defaultPort(k, i)
			if i != 0 && int(bundle) < f.Bundles { // a short order needs fewer
				f.offsets[int(bundle)*2+int(path-proto.External1)] = i
			}
		}
	} else {
		f.peers = make([]end, f.Nodes*f.Bundles*2)
	}
	for _, x := range f.Fibres {
		f.peers[f.index(x.A)] = end{x.B, x.Crossed, true}
		f.peers[f.index(x.B)] = end{x.A, x.Crossed, true}
	}
	f.byName = map[string]proto.NodeID{}
	for i, name := range f.NodeNames {
		if name != "" {
			f.byName[name] = proto.NodeID(i)
		}
	}
}
