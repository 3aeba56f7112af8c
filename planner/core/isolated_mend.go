package core

import (
	"cmp"
	"slices"

	"ringlight/planner/fabric"
	"ringlight/planner/isolate"
)

// Leaves and spines: which links a job has in place of those that carry nothing.

// taken are ports, by switch, that are somebody's.
type taken map[[2]int32]bool

func (o taken) set(c *isolated, p *isolate.Placement, is bool) {
	for _, x := range p.Circuits {
		o[[2]int32{int32(x.Switch), c.port(x.A)}], o[[2]int32{int32(x.Switch), c.port(x.B)}] = is, is
	}
}

// carries: a link of a job that has light, or can have it; no fixed link that is out.
func (c *isolated) carries(j *job, p *isolate.Placement, n int) bool {
	if len(p.Circuits) == 0 {
		_, gone := c.from.out.links[fabric.LeafLink(p.Links[n])]
		return !gone
	}
	x := p.Circuits[n]
	a, b := c.port(x.A), c.port(x.B)
	lit := c.from.maps[x.Switch].to[a] == b && c.from.maps[x.Switch].job[a] == j.spec.Job
	return !c.from.failed(c.layout.slots(x.Switch, a, b)) && (lit || c.from.able[x.Switch])
}

func links(p *isolate.Placement) int { return max(len(p.Links), len(p.Circuits)) }

// mend finds others for links of jobs that carry nothing: they are out, did not come up,
// or their switch could not be told so far and cannot now. It takes the same leaf and
// spine over another switch. A job of which a part is out then has the place where it
// loses least, be it where it is. One of which nothing is out is never moved.
func (c *isolated) mend(jobs []*job) {
	o := taken{}
	for at, m := range c.from.maps {
		for port := range m.to {
			o[[2]int32{int32(at), int32(port)}] = c.isFound(m, port)
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
		own.Circuits = slices.Clone(own.Circuits)
		for n := range own.Circuits {
			if !c.carries(j, &own.Placement, n) {
				moved = c.elsewhere(&own.Placement, n, o) || moved
			}
		}
		if moved {
			j.own = &own
		}
		if lost := c.ranksLost(j); lost > 0 {
			if p, better := c.besides(j, jobs).Refit(own.Placement, lost, c.isOut); better {
				o.set(c, &own.Placement, false)
				o.set(c, &p, true)
				j.own = &seat{Placement: p, SinceMS: own.SinceMS}
			}
		}
	}
}

// ranksLost are ranks of a job whose GPU is out or whose link carries nothing; 0: no part
// of it is out.
func (c *isolated) ranksLost(j *job) (lost int) {
	p, places, gone := &j.own.Placement, c.places(j), false
	for r := range max(len(places), links(p)) {
		link, out := r, r < len(places) && c.from.out.at(places[r]) != ""
		if p.S > 0 {
			link = r/p.S*p.S + p.Map[r%p.S]
		}
		dark := link < links(p) && !c.carries(j, p, link)
		if gone = gone || out || dark && c.partOf(p, link) != ""; out || dark {
			lost++
		}
	}
	if !gone {
		return 0
	}
	return lost
}

// isOut: a GPU of a server is.
func (c *isolated) isOut(w isolate.Server, gpu int) bool {
	return c.from.out.at(Place{w.Leaf*c.fab.LeafServers() + w.Server, gpu}) != ""
}

// partOf is the part with which a link is gone; "": it is there, with light or without.
func (c *isolated) partOf(p *isolate.Placement, n int) string {
	if len(p.Circuits) == 0 {
		return c.from.out.links[fabric.LeafLink(p.Links[n])]
	}
	x := p.Circuits[n]
	return c.from.out.hits(c.layout.slots(x.Switch, c.port(x.A), c.port(x.B))...)
}

// elsewhere makes the same link by ports of another switch, of its own only where no
// other does.
func (c *isolated) elsewhere(p *isolate.Placement, n int, o taken) bool {
	was := p.Circuits[n]
	ports := func(e isolate.End) int {
		if e.Spine {
			return c.fab.SpinePortsPerSwitch()
		}
		return c.fab.LeafPorts()
	}
	order := append(isolate.Identity[int](len(c.from.maps)), was.Switch)
	for _, at := range slices.Delete(order, was.Switch, was.Switch+1) {
		x := isolate.Circuit{Switch: at, A: was.A, B: was.B}
		for i := 0; i < ports(x.A)*ports(x.B) && c.from.able[at]; i++ {
			x.A.Port, x.B.Port = i/ports(x.B), i%ports(x.B)
			a, b := c.port(x.A), c.port(x.B)
			if !o[[2]int32{int32(at), a}] && !o[[2]int32{int32(at), b}] && !c.from.failed(c.layout.slots(at, a, b)) {
				o.set(c, &isolate.Placement{Circuits: []isolate.Circuit{was}}, false)
				o.set(c, &isolate.Placement{Circuits: []isolate.Circuit{x}}, true)
				p.Circuits[n] = x
				return true
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
