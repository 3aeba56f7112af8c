package isolate

// Tables is a placement as forwarding, to be put into the switches as it is
// (ACL or policy route at leaves, one VRF of each virtual spine at spines).
// What stays within a leaf needs no table.
type Tables struct {
	Leaves []LeafTable
	VRFs   []VRF
}

// LeafTable is what one leaf does with the job's traffic to other leaves: that
// of one virtual leaf there.
type LeafTable struct {
	Virtual, Leaf int
	// Sends is by source, in the order of ranks: what a port sends goes over
	// this uplink, whatever its destination.
	Sends []Route
	// Reaches is by destination, for ports that have no route in Sends: the
	// larger of two leaves that are joined directly.
	Reaches []Route
}

// Route joins a port to an uplink of the leaf.
type Route struct {
	Leaf, Port int // of a GPU: Port is server * GPUs of a server + GPU
	Uplink     int // of the leaf the table is for; see State.Uplink
}

// VRF is one virtual spine: a routing table of its own at its spine. What is
// for a port in Sends of virtual leaf v leaves by Ports[v].
type VRF struct {
	Virtual, Spine int
	Ports          []int // of the spine, numbered as by State.PortOf, or where links are fixed by leaf
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
	if p.S == 0 {
		return s.joined(p)
	}
	t := Tables{VRFs: make([]VRF, p.S)}
	for v := range p.L {
		leaf, _ := s.rank(p, v*p.S)
		own := LeafTable{Virtual: v, Leaf: leaf}
		for i, virtual := range p.Map {
			_, port := s.rank(p, v*p.S+i)
			up, _ := s.ends(p, v*p.S+virtual)
			own.Sends = append(own.Sends, Route{leaf, port, up})
		}
		t.Leaves = append(t.Leaves, own)
		for virtual := range p.S {
			at := v*p.S + virtual
			_, down := s.ends(p, at)
			f := &t.VRFs[virtual]
			f.Virtual, f.Spine = virtual, p.Links[at].Spine
			f.Ports = append(f.Ports, down)
		}
	}
	return t
}

// ends are the ports of a link at its leaf and its spine.
func (s *State) ends(p Placement, link int) (up, down int) {
	l := p.Links[link]
	if s.core.Optics == nil {
		return s.Uplink(l), s.downlink(l)
	}
	c := p.Circuits[link]
	return s.PortOf(c.Switch, c.A), s.PortOf(c.Switch, c.B)
}

// joined is the forwarding of two leaves that are joined directly; within a
// leaf there is none.
func (s *State) joined(p Placement) Tables {
	if len(p.Circuits) == 0 {
		return Tables{}
	}
	own, far := LeafTable{Leaf: p.Circuits[0].A.Number}, LeafTable{Virtual: 1, Leaf: p.Circuits[0].B.Number}
	for i, at := range p.Map {
		c := p.Circuits[at]
		leaf, port := s.rank(p, i)
		own.Sends = append(own.Sends, Route{leaf, port, s.PortOf(c.Switch, c.A)})
		far.Reaches = append(far.Reaches, Route{leaf, port, s.PortOf(c.Switch, c.B)})
	}
	return Tables{Leaves: []LeafTable{own, far}}
}
