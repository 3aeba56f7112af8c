package isolate

import (
	"testing"

	"ringlight/mzi/detmath"
)

// network walks what the tables of one job say.
type network struct {
	t      *testing.T
	tables Tables
	far    map[[2]int]End   // of a leaf and its uplink
	back   map[[2]int]int   // of a spine and its port: the leaf
	vrf    map[[2]int]int   // of a leaf and its uplink: the virtual spine
	load   map[[3]int]int   // flows by kind (up, down, across), leaf or spine, and port
	ports  [][2]int         // of ranks: leaf and port
	sends  map[[3]int]int   // table's leaf, then source
	reach  map[[3]int]int   // table's leaf, then destination
	down   []map[[2]int]int // of a virtual spine: port by destination
}

func walk(t *testing.T, s *State, p Placement) *network {
	n := &network{t: t, tables: s.Tables(p), far: map[[2]int]End{}, back: map[[2]int]int{}, vrf: map[[2]int]int{},
		sends: map[[3]int]int{}, reach: map[[3]int]int{}, down: make([]map[[2]int]int, p.S)}
	for at, c := range p.Circuits {
		n.far[[2]int{c.A.Number, s.PortOf(c.Switch, c.A)}] = c.B
		if c.B.Spine {
			n.back[[2]int{c.B.Number, s.PortOf(c.Switch, c.B)}] = c.A.Number
			n.vrf[[2]int{c.A.Number, s.PortOf(c.Switch, c.A)}] = at % p.S
		} else {
			n.far[[2]int{c.B.Number, s.PortOf(c.Switch, c.B)}] = c.A
		}
	}
	for at, l := range p.Links {
		if len(p.Circuits) == 0 {
			n.far[[2]int{l.Leaf, s.Uplink(l)}] = End{Spine: true, Number: l.Spine}
			n.vrf[[2]int{l.Leaf, s.Uplink(l)}] = at % p.S
			port := l.Nth // as Tables numbers them: by leaf
			for leaf := range l.Leaf {
				port += s.core.Links[leaf][l.Spine]
			}
			n.back[[2]int{l.Spine, port}] = l.Leaf
		}
	}
	virtual := map[[2]int]int{} // of a source: its virtual leaf
	for _, leaf := range n.tables.Leaves {
		for _, r := range leaf.Sends {
			n.sends[[3]int{leaf.Leaf, r.Leaf, r.Port}] = r.Uplink
			virtual[[2]int{r.Leaf, r.Port}] = leaf.Virtual
		}
		for _, r := range leaf.Reaches {
			n.reach[[3]int{leaf.Leaf, r.Leaf, r.Port}] = r.Uplink
		}
	}
	for _, f := range n.tables.VRFs {
		n.down[f.Virtual] = map[[2]int]int{}
		for to, v := range virtual { // any order: into a map
			n.down[f.Virtual][to] = f.Ports[v]
		}
	}
	for _, w := range p.Servers {
		for g := range w.GPUs {
			n.ports = append(n.ports, [2]int{w.Leaf, w.Server*s.core.GPUsPerServer + g})
		}
	}
	return n
}

// send follows one flow by the tables and counts it on its links.
func (n *network) send(from, to int) {
	a, b := n.ports[from], n.ports[to]
	if a[0] == b[0] {
		return
	}
	up, ok := n.sends[[3]int{a[0], a[0], a[1]}]
	if !ok {
		if up, ok = n.reach[[3]int{a[0], b[0], b[1]}]; !ok {
			n.t.Fatalf("no way from rank %d to %d", from, to)
		}
	}
	n.load[[3]int{0, a[0], up}]++
	far := n.far[[2]int{a[0], up}]
	leaf := far.Number
	if far.Spine {
		virtual := n.vrf[[2]int{a[0], up}]
		if n.tables.VRFs[virtual].Spine != far.Number {
			n.t.Fatalf("virtual spine %d is not at spine %d", virtual, far.Number)
		}
		down, ok := n.down[virtual][b]
		if !ok {
			n.t.Fatalf("no way down to rank %d", to)
		}
		n.load[[3]int{1, far.Number, down}]++
		leaf = n.back[[2]int{far.Number, down}]
	}
	if leaf != b[0] {
		n.t.Fatalf("rank %d's flow to %d ends at leaf %d", from, to, leaf)
	}
}

// Goal: what the tables say reaches every rank from every other, each step of
// the pairwise exchange with one flow on each directed link.
// Method: random jobs on random part-filled cores; each flow is followed port
// by port.
func TestTablesDeliver(t *testing.T) {
	r := detmath.Stream(13, 0)
	joined, clos, several := 0, 0, 0
	for range scale(150) {
		T := 1 << r.Below(3)
		c := Clos(4+r.Below(4), 8, T, 8)
		if r.Below(2) == 0 {
			c = Optical(4+r.Below(4), 8, T, 4, []int{2, 4, 8}[r.Below(3)])
			c.Optics.AnyToAny = r.Below(2) == 0
		}
		s := c.Empty()
		for id := range 8 {
			p, why := s.Place(1 + r.Below(24))
			if why != Fits {
				continue
			}
			if err := s.Take(JobID(id), p); err != nil {
				t.Fatal(err)
			}
			if r.Below(3) == 0 && id > 0 {
				s.Release(JobID(r.Below(id)))
			}
			n := walk(t, s, p)
			if p.Stage == 0 {
				continue
			}
			for step := 1; step < len(n.ports); step++ {
				n.load = map[[3]int]int{}
				for from := range n.ports {
					n.send(from, (from+step)%len(n.ports))
				}
				for at, load := range n.load {
					if load > 1 {
						t.Fatalf("%d flows at %v in step %d of %+v", load, at, step, p)
					}
				}
			}
			switch {
			case p.S > 0:
				clos++
				leaves := map[int]bool{}
				for _, l := range p.Links {
					leaves[l.Leaf] = true
				}
				if p.L > len(leaves) {
					several++
				}
			case p.L == 2:
				joined++
			}
		}
	}
	if joined < 20 || clos < 50 || several < 10 {
		t.Errorf("%d joined, %d Clos, %d of them with several virtual leaves on a leaf", joined, clos, several)
	}
}
