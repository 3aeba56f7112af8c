package core

import (
	"cmp"
	"slices"

	"ringlight/planner/fabric"
	"ringlight/planner/isolate"
)

// Leaves and spines: which links a job has in place of those that carry nothing.

// owned is whose ports and links are somebody's.
type owned struct {
	ports [][]bool
	links map[isolate.Link]bool
}

func (o *owned) set(c *isolated, p *isolate.Placement, is bool) {
	for n := range p.Circuits {
		o.circuit(c, p.Circuits[n], is)
	}
	if c.shape.Optics == nil {
		for _, l := range p.Links {
			o.links[l] = is
		}
	}
}

func (o *owned) circuit(c *isolated, x isolate.Circuit, is bool) {
	o.ports[x.Switch][c.port(x.A)], o.ports[x.Switch][c.port(x.B)] = is, is
}

// carries: a link of a job that has light, or can have it; no fixed link that is out.
func (c *isolated) carries(j *job, p *isolate.Placement, n int) bool {
	if len(p.Circuits) == 0 {
		_, gone := c.out.links[fabric.LeafLink(p.Links[n])]
		return !gone
	}
	x := p.Circuits[n]
	a, b := c.port(x.A), c.port(x.B)
	lit := c.maps[x.Switch].to[a] == b && c.maps[x.Switch].job[a] == j.spec.Job
	return !c.failed(c.slots(x.Switch, a, b)) && (lit || c.able[x.Switch])
}

func links(p *isolate.Placement) int { return max(len(p.Links), len(p.Circuits)) }

// mend finds others for links of jobs that carry nothing: they are out, did not come up,
// or their switch could not be told so far and cannot now. It takes the same leaf and
// spine over another switch, else another spine for all that go to that one; where
// something is out and neither does, the job goes elsewhere as a whole, if it can.
func (c *isolated) mend(jobs []*job) {
	o := owned{make([][]bool, len(c.maps)), map[isolate.Link]bool{}}
	for at, m := range c.maps {
		o.ports[at] = make([]bool, len(m.to))
		for port := range m.to {
			o.ports[at][port] = c.isFound(m, port)
		}
	}
	for _, j := range jobs {
		if j.own != nil {
			o.set(c, &j.own.Placement, true)
		}
	}
	for _, j := range jobs {
		if j.own == nil {
			continue
		}
		own, moved := *j.own, false
		own.Circuits, own.Links = slices.Clone(own.Circuits), slices.Clone(own.Links)
		for n := range links(&own.Placement) {
			if !c.carries(j, &own.Placement, n) {
				moved = c.elsewhere(&own.Placement, n, &o) || moved
			}
		}
		gone := func(n int) bool { return c.partOf(&own.Placement, n) != "" }
		for v := range own.S {
			if slices.ContainsFunc(identity(own.L), func(row int) bool { return gone(row*own.S + v) }) {
				moved = c.otherSpine(&own.Placement, v, &o) || moved
			}
		}
		if slices.ContainsFunc(identity(links(&own.Placement)), gone) {
			if p, cause := c.placeOf(j, jobs); cause == isolate.Fits {
				o.set(c, &own.Placement, false)
				o.set(c, &p, true)
				own, moved = seat{Placement: p, SinceMS: own.SinceMS}, true
			}
		}
		if moved {
			j.own = &own
		}
	}
}

// partOf is the part with which a link is gone; "": it is there, with light or without.
func (c *isolated) partOf(p *isolate.Placement, n int) string {
	if len(p.Circuits) == 0 {
		return c.out.links[fabric.LeafLink(p.Links[n])]
	}
	x := p.Circuits[n]
	return c.out.hits(c.slots(x.Switch, c.port(x.A), c.port(x.B))...)
}

func identity(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// elsewhere takes the same link over ports of another switch, or another of fixed links.
func (c *isolated) elsewhere(p *isolate.Placement, n int, o *owned) bool {
	if len(p.Circuits) == 0 {
		was := p.Links[n]
		return c.freeLink(was.Leaf, was.Spine, o, func(l isolate.Link) {
			o.links[was], o.links[l], p.Links[n] = false, true, l
		})
	}
	x := p.Circuits[n]
	return c.freeCircuit(x.A, x.B, x.Switch, o, func(y isolate.Circuit) {
		o.circuit(c, x, false)
		o.circuit(c, y, true)
		p.Circuits[n] = y
	})
}

// otherSpine takes all links of a virtual spine to another spine.
func (c *isolated) otherSpine(p *isolate.Placement, virtual int, o *owned) bool {
	for spine := range c.fab.Spines {
		next := *p
		next.Circuits, next.Links = slices.Clone(p.Circuits), slices.Clone(p.Links)
		done := 0
		for ; done < p.L; done++ {
			n := done*p.S + virtual
			was := p.Links[n]
			if spine == was.Spine {
				break
			}
			found := false
			if len(p.Circuits) == 0 {
				found = c.freeLink(was.Leaf, spine, o, func(l isolate.Link) { o.links[l], next.Links[n] = true, l })
			} else {
				found = c.freeCircuit(p.Circuits[n].A, isolate.End{Spine: true, Number: spine}, -1, o, func(y isolate.Circuit) {
					o.circuit(c, y, true)
					next.Circuits[n], next.Links[n] = y, isolate.Link{Leaf: was.Leaf, Spine: spine, Nth: was.Nth}
				})
			}
			if !found {
				break
			}
		}
		back := &next // what was taken for nothing
		if done == p.L {
			back = p
		}
		for row := range done {
			n := row*p.S + virtual
			if len(p.Circuits) == 0 {
				o.links[back.Links[n]] = false
			} else {
				o.circuit(c, back.Circuits[n], false)
			}
		}
		if done == p.L {
			*p = next
			return true
		}
	}
	return false
}

// freeLink is a fixed link that is nobody's.
func (c *isolated) freeLink(leaf, spine int, o *owned, take func(isolate.Link)) bool {
	for nth := range c.fab.FixedLinks() {
		l := isolate.Link{Leaf: leaf, Spine: spine, Nth: nth}
		if _, gone := c.out.links[fabric.LeafLink(l)]; !gone && !o.links[l] {
			take(l)
			return true
		}
	}
	return false
}

// freeCircuit joins two, of whatever ports and switch, by ports that are nobody's; over
// one switch only where no other does.
func (c *isolated) freeCircuit(a, b isolate.End, last int, o *owned, take func(isolate.Circuit)) bool {
	ports := func(e isolate.End) int {
		if e.Spine {
			return c.fab.SpinePortsPerSwitch()
		}
		return c.fab.LeafPorts()
	}
	order := slices.DeleteFunc(identity(len(c.maps)), func(at int) bool { return at == last })
	if last >= 0 {
		order = append(order, last)
	}
	for _, at := range order {
		if !c.able[at] {
			continue
		}
		for i := range ports(a) {
			for k := range ports(b) {
				a.Port, b.Port = i, k
				y := isolate.Circuit{Switch: at, A: a, B: b}
				if p, q := c.port(a), c.port(b); !o.ports[at][p] && !o.ports[at][q] && !c.failed(c.slots(at, p, q)) {
					take(y)
					return true
				}
			}
		}
	}
	return false
}

// lost are links that carry nothing.
func (c isolated) lost(j *job) (lost int, part string) {
	if j.own == nil {
		return 0, ""
	}
	for n := range links(&j.own.Placement) {
		if !c.carries(j, &j.own.Placement, n) {
			lost++
			part = cmp.Or(part, c.partOf(&j.own.Placement, n))
		}
	}
	return lost, part
}
