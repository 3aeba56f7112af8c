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
	var records []journal.Record
	links := 0
	for at := range c.Evidence.maps {
		var from *switchView
		for _, s := range c.Evidence.layout.switchesOf(at) {
			v := &c.Evidence.switches[s]
			if m := v.Report; m.Gen > 0 && (from == nil || m.Gen > from.Report.Gen) {
				from = v
			}
		}
		if from == nil {
			continue
		}
		c.Evidence.maps[at] = c.Evidence.mapFrom(from)
		links += c.findJobs(at)
		records = append(records, journal.Encode(mapKey(at), recordOf(c.Evidence.maps[at])))
	}
	if len(records) == 0 {
		return
	}
	c.Table.Numbers.Decided = c.Table.Numbers.Gen
	records = append(records, journal.Encode(keyHead, head{c.Table.Numbers.Gen}))
	c.j.Persist(records...)
	c.saveJobs()
	c.j.Note(journal.Info, "circuits adopted", journal.Note{Rule: "adopt", Node: -1, Gen: c.Table.Numbers.Gen, Text: fmt.Sprintf("%d links of %d jobs as their switches report them", links, len(c.jobs.all))})
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
	if alone && c.Evidence.maps[at].equal(c.Evidence.layout.bare(at)) && len(v.Circuits()) > 0 {
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
