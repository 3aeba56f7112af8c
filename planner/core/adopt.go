package core

import (
	"cmp"
	"fmt"
	"slices"

	"ringlight/planner/journal"
	"ringlight/planner/member"
	"ringlight/proto"
)

// Gathered ends the first look round: what is there and not known is adopted,
// and everything is judged.
func (c *Circuits) Gathered() {
	c.heard, c.agenda.unreported = true, true
	if c.Table.Numbers.Contradicted() {
		forget(c)
	}
	c.Table.Numbers.Find()
	if c.Table.Numbers.Fresh {
		c.adopt()
	}
	c.Stages.open.since = c.j.Now
	for _, p := range c.drains.of { // any order: each
		p.asked = c.j.Now
	}
	for s := range c.Evidence.switches {
		v := &c.Evidence.switches[s]
		if v.Want.Gen == 0 && v.Known && !v.Unassigned {
			c.adoptSwitch(v)
		}
		v.judge(c)
	}
	c.Table.SweepNow()
	c.agenda.replan(0)
}

// adopt takes what switches carry as what is wanted, when the store
// knows nothing. Of a pair the one with the later generation is believed.
func (c *Circuits) adopt() {
	c.Table.Numbers.Fresh = false
	links, known, silent := 0, []int(nil), []int(nil) // maps
	for at := range c.Evidence.maps {
		var from *switchView
		for _, s := range c.Evidence.layout.switchesOf(at) {
			v := &c.Evidence.switches[s]
			if m := v.Report; m.Gen > 0 && (from == nil || m.Gen > from.Report.Gen) {
				from = v
			}
		}
		if from == nil {
			silent = append(silent, at)
			continue
		}
		c.Evidence.maps[at] = c.Evidence.mapFrom(from)
		links += c.findJobs(at)
		known = append(known, at)
	}
	if c.Evidence.fab.Direct != nil {
		known = append(known, c.Evidence.lightAsLayers(silent)...)
	}
	if len(known) == 0 {
		return
	}
	c.Table.Numbers.Decided = c.Table.Numbers.Gen
	var records []journal.Record
	for _, at := range known {
		records = append(records, journal.Encode(mapKey(at), recordOf(c.Evidence.maps[at])))
	}
	c.j.Persist(append(records, journal.Encode(keyHead, head{c.Table.Numbers.Gen}))...)
	c.saveJobs()
	c.j.Note(journal.Info, "circuits adopted", journal.Note{Rule: "adopt", Node: -1, Gen: c.Table.Numbers.Gen, Text: fmt.Sprintf("%d links of %d jobs as their switches report them", links, len(c.jobs.all))})
}

// lightAsLayers gives servers joined directly that say nothing of circuits - they lost power,
// or are not heard yet - those by which layers join them to others of their job, and tells
// which: the fibre of an interface whose other end is used, or that other interfaces of the
// server use for that job, or the only one of the two that a job has.
func (e *evidence) lightAsLayers(silent []int) (lit []int) {
	cold, joined := make([]bool, len(e.maps)), make([][]bool, e.fab.Mirrors()) // by switch; by layer and port, for a job
	for _, at := range silent {
		cold[at] = true
	}
	for layer := range joined {
		joined[layer] = make([]bool, len(e.maps[layer].to))
		for a, b := range e.maps[layer].to {
			if b >= 0 && e.maps[layer].job[a] != 0 {
				joined[layer][a], joined[layer][b] = true, true
			}
		}
	}
	lights := func(layer int, port, far int32, id proto.JobID) bool {
		own, other := e.layout.pathSlot(layer, port), e.layout.pathSlot(layer, far)
		d, end := e.maps[own.sw], e.maps[other.sw]
		if id == 0 || !cold[own.sw] || !e.layout.free(d, int32(own.a), int32(own.b)) {
			return false
		}
		server, path := e.fab.PortEnd(int(port))
		is := end.to[other.a] == int32(other.b) && end.job[other.a] == id || !joined[layer][e.fab.Port(server, 1-path)]
		for face := range e.fab.Degree {
			is = is || d.to[face] == int32(e.fab.PathPort(face, path)) && d.job[face] == id
		}
		if is {
			e.layout.put(d, int32(own.a), int32(own.b), id)
		}
		return is
	}
	for more := true; more; {
		more = false
		for layer := range e.fab.Mirrors() {
			for a, b := range e.maps[layer].to {
				if id := e.maps[layer].job[a]; b >= 0 {
					more = lights(layer, int32(a), b, id) || lights(layer, b, int32(a), id) || more
				}
			}
		}
	}
	return slices.DeleteFunc(silent, func(at int) bool { return e.maps[at].equal(e.layout.bare(at)) })
}

// mapFrom reads a map off the report of one of its switches. Ports beyond
// the pods and, under uniform wiring, circuits without a way back are not
// ours.
func (e *evidence) mapFrom(v *switchView) crossMap {
	at, odd := e.layout.mapOf(v.index())
	d := e.layout.bare(at)
	ports := len(d.to)
	in := make([]bool, ports)
	for _, r := range v.Circuits() {
		a, b := int(r.A), int(r.B)
		if odd {
			a, b = b, a
		}
		if a >= ports || b >= ports || !e.fab.HasPort(v.index(), a) || !e.fab.HasPort(v.index(), b) || d.to[a] >= 0 || in[b] {
			continue
		}
		if e.layout.uniform() && e.reportOf(v.index(), r.B, r.A) == nil {
			continue
		}
		d.to[a], d.job[a], in[b] = int32(b), r.Job, true
	}
	return d
}

// findJobs makes jobs of those that a map names and nobody knows. It returns
// the map's links.
func (c *Circuits) findJobs(at int) int {
	links := 0
	c.Evidence.layout.links(at, c.Evidence.maps[at], func(_, _ int32, id proto.JobID) {
		links++
		if id == 0 || c.jobs.find(id) != nil {
			return
		}
		j := &job{spec: proto.JobSpec{Job: id}, found: true}
		at, _ := slices.BinarySearchFunc(c.jobs.all, id, func(x *job, id proto.JobID) int { return cmp.Compare(x.spec.Job, id) })
		c.jobs.all = slices.Insert(c.jobs.all, at, j)
	})
	return links
}

// adoptSwitch takes a switch of which the store knows nothing. Where it
// carries what its map says, that is that; where the map is empty and its
// other switch was never heard, the map is what this one carries; else it is
// told.
func (c *Circuits) adoptSwitch(v *switchView) {
	s := v.index()
	at, _ := c.Evidence.layout.mapOf(s)
	m := v.Report
	carries := func() bool {
		return slices.EqualFunc(c.Evidence.wanted(s), v.Circuits(), func(a proto.Circuit, b proto.CircuitReport) bool { return a.A == b.A && a.B == b.B && a.Job == b.Job })
	}
	if m.Gen == 0 {
		v.Unassigned = !carries()
		return
	}
	alone := !c.Evidence.out.isNew(s)
	for _, o := range c.Evidence.layout.switchesOf(at) {
		alone = alone && (o == s || c.Evidence.switches[o].Want.Gen == 0 && !c.Evidence.switches[o].Known)
	}
	_, server := c.Evidence.fab.ServerOf(s) // its map is bare, or as others say
	if alone && (server || c.Evidence.maps[at].equal(c.Evidence.layout.bare(at))) && len(v.Circuits()) > 0 {
		c.Evidence.maps[at] = c.Evidence.mapFrom(v)
		c.findJobs(at)
		c.j.Persist(journal.Encode(mapKey(at), recordOf(c.Evidence.maps[at])))
		c.saveJobs()
	}
	if !carries() {
		v.Unassigned = true
		return
	}
	v.Adopt()
	c.j.Persist(member.Record(v.ID, 0, v.Want, false))
}

// forget drops all that the store said of circuits and jobs.
func forget(c *Circuits) {
	c.Stages.Drop()
	records := []journal.Record{{Key: keyHead}, {Key: keyStage}}
	for s := range c.Evidence.switches {
		v := &c.Evidence.switches[s]
		records = append(records, v.Forget())
	}
	for at := range c.Evidence.maps {
		c.Evidence.maps[at] = c.Evidence.layout.bare(at)
		records = append(records, journal.Record{Key: mapKey(at)})
	}
	if c.Stages.state == Verifying {
		c.Stages.become(Resting)
	}
	c.jobs.all, c.Stages.todo, c.Stages.open = nil, nil, openStage{}
	c.Table.Numbers.Fresh = true
	c.j.Persist(append(records, c.jobs.unsaved()...)...)
}
