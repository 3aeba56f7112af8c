package isolate

// Tables is a placement as forwarding, to be put into the switches as it is
// (ACL or policy route at leaves, one VRF of each virtual spine at spines).
// What stays within a leaf needs no table.
type Tables struct {
	Leaves []LeafTable
	VRFs   []VRF
}

// LeafTable is what one leaf does with the job's traffic to other leaves.
type LeafTable struct {
	Leaf int
	// Sends is by source: what a port sends goes over this uplink, whatever
	// its destination.
	Sends []Route
	// Reaches is by destination, for ports that have no route in Sends: the
	// larger of two leaves that are joined directly.
	Reaches []Route
}

// Route joins a port to an uplink of the leaf.
type Route struct {
	Leaf, Port int // of a GPU: Port is server * GPUs of a server + GPU
	Uplink     int // of the leaf the table is for; see State.Uplink and State.PortOf
}

// VRF is one virtual spine: a routing table of its own at its spine, with a
// port for each virtual leaf, by which the GPUs of that leaf are reached.
type VRF struct {
	Virtual, Spine int
	Ports          []int   // of the spine, by virtual leaf; with optics see State.PortOf, without by leaf
	Reaches        []Route // of GPUs: Uplink is the port of the spine
}

// Uplink numbers the uplinks of a leaf through, by spine, without optics.
func (s *State) Uplink(l Link) int {
	return int(s.links.unit(l.Leaf, l.Spine, l.Nth) - s.links.start[l.Leaf*s.links.columns])
}

// PortOf numbers the ports of a leaf or spine through, by switch.
func (s *State) PortOf(at int, e End) int {
	p := s.side(e)
	return int(p.unit(e.Number, at, e.Port) - p.start[e.Number*p.columns])
}

// downlink numbers the ports of a spine through by leaf, without optics.
func (s *State) downlink(l Link) int {
	n := 0
	for leaf := range l.Leaf {
		n += int(s.links.start[leaf*s.links.columns+l.Spine+1] - s.links.start[leaf*s.links.columns+l.Spine])
	}
	return n + l.Nth
}

// rank is the port of a rank at its leaf.
func (s *State) rank(p Placement, r int) (leaf, port int) {
	t := s.core.GPUsPerServer
	w := p.Servers[r/t]
	return w.Leaf, w.Server*t + r%t
}

// Tables gives the forwarding of a placement on this core.
func (s *State) Tables(p Placement) Tables {
	var t Tables
	table := func(leaf int) *LeafTable {
		for n := range t.Leaves {
			if t.Leaves[n].Leaf == leaf {
				return &t.Leaves[n]
			}
		}
		t.Leaves = append(t.Leaves, LeafTable{Leaf: leaf})
		return &t.Leaves[len(t.Leaves)-1]
	}
	if p.S == 0 {
		for i, at := range p.Map { // two leaves joined directly
			c := p.Circuits[at]
			leaf, port := s.rank(p, i)
			own := table(leaf)
			own.Sends = append(own.Sends, Route{leaf, port, s.PortOf(c.Switch, c.A)})
			far := table(c.B.Number)
			far.Reaches = append(far.Reaches, Route{leaf, port, s.PortOf(c.Switch, c.B)})
		}
		return t
	}
	t.VRFs = make([]VRF, p.S)
	for v := range p.L {
		for i, virtual := range p.Map {
			leaf, port := s.rank(p, v*p.S+i)
			at := v*p.S + virtual
			l := p.Links[at]
			up := 0
			if s.core.Optics == nil {
				up = s.Uplink(l)
			} else {
				up = s.PortOf(p.Circuits[at].Switch, p.Circuits[at].A)
			}
			own := table(leaf)
			own.Sends = append(own.Sends, Route{leaf, port, up})
		}
		for virtual := range p.S {
			at := v*p.S + virtual
			l := p.Links[at]
			down := 0
			if s.core.Optics == nil {
				down = s.downlink(l)
			} else {
				down = s.PortOf(p.Circuits[at].Switch, p.Circuits[at].B)
			}
			f := &t.VRFs[virtual]
			f.Virtual, f.Spine = virtual, l.Spine
			f.Ports = append(f.Ports, down)
			for i := range p.S {
				leaf, port := s.rank(p, v*p.S+i)
				f.Reaches = append(f.Reaches, Route{leaf, port, down})
			}
		}
	}
	return t
}
