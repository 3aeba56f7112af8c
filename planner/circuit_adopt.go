package planner

import (
	"cmp"
	"fmt"
	"slices"

	"ringlight/proto"
)

// circuitsGathered ends the first look round: what is there and not known is
// adopted, and everything is judged.
func (p *Planner) circuitsGathered() {
	c := p.core
	if c == nil {
		return
	}
	c.heard = true
	if c.fresh {
		p.adoptCircuits()
	}
	c.open.since = p.now
	for s := range c.switches {
		v := &c.switches[s]
		if v.want.gen == 0 && v.report != nil && !v.unassigned {
			p.adoptSwitch(v)
		}
		p.judgeSwitch(v)
	}
	c.sweepAt = p.now
	p.replanCircuits(0)
}

// adoptCircuits takes what switches carry as what is wanted, when the store
// knows nothing. Of a pair the one with the later generation is believed.
func (p *Planner) adoptCircuits() {
	c := p.core
	c.fresh = false
	var records []Record
	links := 0
	for at := range c.decks {
		var from *switchView
		for _, s := range c.deckSwitches(at) {
			v := &c.switches[s]
			if m := v.report; m != nil && m.Generation > 0 && (from == nil || m.Generation > from.report.Generation) {
				from = v
			}
		}
		if from == nil {
			continue
		}
		c.decks[at] = c.deckFrom(from)
		links += p.findJobs(c.decks[at])
		records = append(records, encodeRecord(deckKey(at), recordOf(c.decks[at])))
	}
	if len(records) == 0 {
		return
	}
	records = append(records, encodeRecord(keyCircuits, circuitsHead{c.gen}))
	p.persist(records)
	p.saveJobs()
	p.note(Info, "circuits adopted", note{Rule: "adopt", Node: -1, Gen: c.gen, Text: fmt.Sprintf("%d links of %d jobs as their switches report them", links, len(c.jobs))})
}

// deckFrom reads a deck off the report of one of its switches. Ports beyond
// the pods and, under uniform wiring, circuits without a way back are not
// ours.
func (c *circuits) deckFrom(v *switchView) deck {
	d := newDeck(c.core.Pods)
	_, odd := c.deckOf(c.index(v))
	in := make([]bool, c.core.Pods)
	for _, r := range v.report.Circuits {
		a, b := int(r.A), int(r.B)
		if odd {
			a, b = b, a
		}
		if a >= c.core.Pods || b >= c.core.Pods || d.to[a] >= 0 || in[b] {
			continue
		}
		if c.uniform() && c.reportOf(c.index(v), r.B, r.A) == nil {
			continue
		}
		d.to[a], d.job[a], in[b] = int32(b), r.Job, true
	}
	return d
}

// findJobs makes jobs of those that a deck names and nobody knows. It returns
// the deck's links.
func (p *Planner) findJobs(d deck) int {
	c := p.core
	links := 0
	c.links(d, func(_, _ int32, id proto.JobID) {
		links++
		if id == 0 || c.job(id) != nil {
			return
		}
		j := &job{spec: proto.JobSpec{Job: id}, found: true}
		at, _ := slices.BinarySearchFunc(c.jobs, id, func(x *job, id proto.JobID) int { return cmp.Compare(x.spec.Job, id) })
		c.jobs = slices.Insert(c.jobs, at, j)
	})
	return links
}

// adoptSwitch takes a switch of which the store knows nothing. Where it
// carries what its deck says, that is that; where the deck is empty and its
// other switch was never heard, the deck is what this one carries; else it is
// told.
func (p *Planner) adoptSwitch(v *switchView) {
	c := p.core
	s := c.index(v)
	at, _ := c.deckOf(s)
	m := v.report
	carries := func() bool {
		want := c.circuitsOf(s, c.decks[at])
		return slices.EqualFunc(want, m.Circuits, func(a proto.Circuit, b proto.CircuitReport) bool { return a.A == b.A && a.B == b.B && a.Job == b.Job })
	}
	if m.Generation == 0 {
		v.unassigned = !carries()
		return
	}
	alone := true
	for _, o := range c.deckSwitches(at) {
		alone = alone && (o == s || c.switches[o].want.gen == 0 && c.switches[o].report == nil)
	}
	if alone && c.decks[at].equal(newDeck(c.core.Pods)) && len(m.Circuits) > 0 {
		c.decks[at] = c.deckFrom(v)
		p.findJobs(c.decks[at])
		p.persist([]Record{encodeRecord(deckKey(at), recordOf(c.decks[at]))})
		p.saveJobs()
	}
	if !carries() {
		v.unassigned = true
		return
	}
	v.want = target{decided: decided{m.Term, m.Generation, m.Plan}}
	p.persist([]Record{encodeRecord(switchKey(v.id), nodeRecord{Term: m.Term, Generation: m.Generation, Plan: m.Plan})})
}
