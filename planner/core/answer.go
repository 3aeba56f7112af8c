package core

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ringlight/proto"
)

// Answers reports whether a noun is about jobs and circuits.
func Answers(n proto.Noun) bool {
	switch n {
	case proto.NounCore, proto.NounCircuits, proto.NounJobs, proto.NounJob, proto.NounApply, proto.NounTables, proto.NounFlip:
		return true
	}
	return false
}

// Answer answers an operator about jobs and circuits.
func (c *Circuits) Answer(q *proto.OpRequest, r *proto.OpReply) {
	switch q.Noun {
	case proto.NounCore:
		r.Core = new(c.Status())
	case proto.NounCircuits:
		c.Evidence.circuitsPage(q.Page, 0, r)
	case proto.NounJobs:
		c.jobsPage(q, r)
	case proto.NounJob:
		j := c.jobs.find(q.Job)
		if j == nil {
			r.Refuse(&proto.Error{Code: proto.NotFound, Field: "job", Limit: c.jobs.limit(), Reason: fmt.Sprintf("no job %d", q.Job)})
			return
		}
		lit, _, _ := c.Evidence.lit()
		s := c.jobStatus(j, lit)
		describe(c, j, &s)
		r.Jobs = []proto.JobStatus{s}
		c.Evidence.circuitsPage(q.Page, q.Job, r)
	case proto.NounTables:
		tablesPage(c, q, r)
	case proto.NounApply:
		c.applyJobs(q, r)
	case proto.NounFlip:
		flip(c, q, r)
	}
}

func (l *jobList) limit() string {
	if len(l.all) == 0 {
		return "there are no jobs"
	}
	return fmt.Sprintf("one of the %d from %d to %d", len(l.all), l.all[0].spec.Job, l.all[len(l.all)-1].spec.Job)
}

// applyJobs takes a job list, or says what it would do.
func (c *Circuits) applyJobs(q *proto.OpRequest, r *proto.OpReply) {
	if err := c.jobs.check(q.Jobs, c.designer); err != nil {
		r.Refuse(err)
		return
	}
	if err := c.jobs.refuseNamed(q.Jobs); err != nil {
		r.Refuse(err)
		return
	}
	list := append(c.jobs.list(q.Jobs), c.jobs.named()...)
	slices.SortFunc(list, func(a, b *job) int { return cmp.Compare(a.spec.Job, b.spec.Job) })
	takeJobs(c, list, q, r)
}

// takeJobs makes a list what is wanted, or says what that would do.
func takeJobs(c *Circuits, list []*job, q *proto.OpRequest, r *proto.OpReply) {
	if !c.heard || c.root.Busy() != "" {
		r.Refuse(&proto.Error{Code: proto.Busy, Reason: "the planner is looking round first"})
		return
	}
	d := c.design(list, true)
	r.Change = &d.change
	if !q.DryRun {
		takeList(c, d)
	}
}

// Pages of circuits go by switch and port of side A: page = switch<<16 | port.
func (e *evidence) circuitsPage(from uint64, of proto.JobID, r *proto.OpReply) {
	for s := int(min(from>>16, uint64(len(e.switches)))); s < len(e.switches); s++ {
		for _, x := range e.At(s) {
			page := uint64(s)<<16 | uint64(x.A)
			if page < from || of != 0 && x.Job != of {
				continue
			}
			if len(r.Circuits) == proto.MaxPage {
				r.Next = page
				return
			}
			r.Circuits = append(r.Circuits, x)
		}
	}
}

// At are the circuits that are wanted at a switch, as they are there, and those that
// operators have made at other ports.
func (e *evidence) At(s int) (list []proto.CircuitStatus) {
	v := &e.switches[s]
	for _, x := range e.wanted(s) {
		status := proto.CircuitStatus{Switch: v.ID, A: x.A, B: x.B, Job: x.Job, Loss: proto.NoPower}
		if m := e.reportOf(s, x.A, x.B); m != nil {
			status.State, status.Loss = m.State, m.Loss
		}
		list = append(list, status)
	}
	if !v.Known {
		return list
	}
	for _, r := range v.Whole().Circuits {
		if r.Job == proto.ByHand && !slices.ContainsFunc(list, func(x proto.CircuitStatus) bool { return x.A == r.A }) {
			list = append(list, proto.CircuitStatus{Switch: v.ID, A: r.A, B: r.B, Job: r.Job, State: r.State, Loss: r.Loss})
		}
	}
	slices.SortFunc(list, func(x, y proto.CircuitStatus) int { return cmp.Compare(x.A, y.A) })
	return list
}

func (c *Circuits) jobsPage(q *proto.OpRequest, r *proto.OpReply) {
	lit, _, _ := c.Evidence.lit()
	id := func(i int) uint64 { return uint64(c.jobs.all[i].spec.Job) }
	r.Jobs, r.Next = proto.PageOf(len(c.jobs.all), q.Page, id, func(i int) proto.JobStatus { return c.jobStatus(c.jobs.all[i], lit) })
}

// Halve drops the second half of a page of circuits or jobs and makes Next
// point to it.
func Halve(r *proto.OpReply) bool {
	switch {
	case len(r.Circuits) > 1:
		x := r.Circuits[len(r.Circuits)/2]
		r.Next = uint64(x.Switch-proto.FirstSwitch)<<16 | uint64(x.A)
		r.Circuits = r.Circuits[:len(r.Circuits)/2]
	case len(r.Tables) > 1:
		r.Next = tablePage(&r.Tables[len(r.Tables)/2])
		r.Tables = r.Tables[:len(r.Tables)/2]
	case len(r.Jobs) > 1:
		r.Next = uint64(r.Jobs[len(r.Jobs)/2].Job)
		r.Jobs = r.Jobs[:len(r.Jobs)/2]
	default:
		return false
	}
	return true
}

// lit counts each job's links that have light both ways, as far as anybody can say, and all
// circuits that have, and of how many nobody can call it good. Of a job that stands by it is
// the mirrors' light.
func (e *evidence) lit() (links map[proto.JobID]int, circuits, unproven int) {
	links = map[proto.JobID]int{}
	tuned := func(s slot) bool { return e.stateOf(s.sw, proto.Circuit{A: s.a, B: s.b}).Lit() }
	for at, d := range e.maps {
		e.layout.links(at, d, func(i, j int32, id proto.JobID) {
			way := e.layout.slots(at, i, j)
			if x := e.jobs.find(id); x != nil && x.standsBy() {
				way = way[:1]
			}
			if !sendsBeside(way, e.maps, id) && e.out.hits(way...) == "" && !slices.ContainsFunc(way, func(s slot) bool { return !tuned(s) }) {
				links[id]++
			}
		})
	}
	for s := range e.switches {
		for _, x := range e.wanted(s) {
			if k := (slot{s, x.A, x.B}); tuned(k) && e.out.hits(k) == "" {
				circuits++
				if e.stateOf(s, x) == proto.Unproven {
					unproven++
				}
			}
		}
	}
	return links, circuits, unproven
}

func (c *Circuits) jobStatus(j *job, lit map[proto.JobID]int) proto.JobStatus {
	s := proto.JobStatus{Job: j.spec.Job, Owner: j.owner, Asked: uint32(j.asked()), Granted: uint32(j.granted()), Reason: proto.Clip(j.why),
		Collective: j.spec.Collective}
	for _, x := range j.placed.Shares {
		s.Servers = append(s.Servers, proto.LeafServers{Pod: uint16(x.Pod), Leaf: uint16(x.Leaf), Servers: uint16(x.Servers)})
	}
	s.Cause = j.turn.waiting
	if j.own != nil {
		s.Servers = j.own.leaves()
	}
	if s.Next = j.spec.Next; j.shard != nil {
		s.Servers = []proto.LeafServers{{Servers: uint16(len(j.shard.Servers))}}
		if names := j.spec.PhaseNames(); len(names) > 0 {
			s.Phase = names[j.shard.Phase]
		}
	}
	s.Realised = uint32(lit[j.spec.Job])
	turns := turning(j, c.Evidence.layout, c.Evidence.maps)
	if turns {
		s.Realised = 0 // what has light is of the phase before
	}
	switch {
	case j.found:
		s.State = proto.JobAdopted
		s.Asked = uint32(c.Evidence.out.made(c.Evidence.maps)[j.spec.Job])
		s.Granted = s.Asked
	case !j.runs():
		s.State = proto.JobWaiting
	case j.standsBy():
		s.State = proto.JobStandby
	case turns:
		s.State, s.Reason = proto.JobPlacing, proto.Clip(strings.TrimSuffix("it goes to "+j.goes()+": "+j.why, ": "))
	case s.Realised >= s.Granted:
		s.State = proto.JobRealised
	case c.Quiet():
		s.State, s.Reason = proto.JobShort, proto.Clip(c.whyShort(j))
	default:
		s.State, s.Reason = proto.JobPlacing, proto.Clip(c.Stages.awaits())
	}
	return s
}

// describe adds what is wanted only when this one job is asked for.
func describe(c *Circuits, j *job, s *proto.JobStatus) {
	s.Seats = seatsOf(c.Evidence.fab, c.designer.places(j))
	c.designer.describe(j, s)
}

// whyShort names what is out, or the first switch that keeps links from being made.
func (c *Circuits) whyShort(j *job) string {
	if _, links, part := c.Evidence.lost(c.designer.at(c.Evidence.standing()), j); part != "" {
		return fmt.Sprintf("%s is out: %s; %s of %d lost", part, c.Evidence.out.why[part], proto.Count(links, "link"), j.granted())
	}
	for s := range c.Evidence.switches {
		if why := c.Evidence.switches[s].whyUnable(); why != "" {
			return fmt.Sprintf("switch %d: %s", s, why)
		}
	}
	if len(c.Evidence.bad) > 0 {
		first := slices.MinFunc(slices.Collect(maps.Keys(c.Evidence.bad)), func(x, y slot) int { return cmp.Or(x.sw-y.sw, int(x.a)-int(y.a), int(x.b)-int(y.b)) })
		return fmt.Sprintf("switch %d: port %d to %d did not come up; %s in all", first.sw, first.a, first.b, proto.Count(len(c.Evidence.bad), "circuit"))
	}
	return "no free ports without moving more of a leaf's links than iota_mille allows"
}

// Waits says whose answers the circuits wait for.
func (c *Circuits) Waits() (out []string) {
	if text := c.Stages.Txn.Waits(); text != "" {
		out = append(out, "circuits: "+text)
	}
	if text := c.Stages.awaits(); text != "" {
		out = append(out, "circuits: "+text)
	}
	if c.Stages.open.active() {
		out = append(out, fmt.Sprintf("circuits: a stage on %d switches waits for its light", len(c.Stages.open.sw)))
	}
	return out
}

// Status tells where the circuits stand; of none it is empty.
func (c *Circuits) Status() proto.CoreStatus {
	if c == nil {
		return proto.CoreStatus{}
	}
	s := proto.CoreStatus{Generation: c.Table.Numbers.Gen, Switches: uint32(len(c.Evidence.switches)), Jobs: uint32(len(c.jobs.all)), Quiet: c.Quiet(), DarkMicros: c.Evidence.dark}
	for i := range c.Evidence.switches {
		if c.Evidence.switches[i].Online() {
			s.Online++
		}
		for _, x := range c.Evidence.wanted(i) {
			if c.Evidence.out.hits(slot{i, x.A, x.B}) == "" {
				s.Circuits++
			}
		}
	}
	lit, circuits, unproven := c.Evidence.lit()
	s.Tuned, s.Unproven = uint32(circuits), uint32(unproven)
	there := c.Evidence.out.made(c.Evidence.maps)
	for _, j := range c.jobs.all {
		s.Realised += uint32(lit[j.spec.Job])
		if j.found {
			s.Asked += uint32(there[j.spec.Job])
			s.Granted += uint32(there[j.spec.Job])
		}
		if j.runs() {
			s.Placed++
		}
		s.Asked += uint32(j.asked())
		s.Granted += uint32(j.granted())
	}
	return s
}

// Facts is what holds now at a switch, of all its circuits or of one port of
// side A.
func (c *Circuits) Facts(id proto.NodeID, port int16) (out []proto.WhyLine) {
	s := int(id - proto.FirstSwitch)
	v := &c.Evidence.switches[s]
	fact := func(b int16, rule, text string) {
		out = append(out, proto.WhyLine{AtMillis: c.j.Wall, Node: id, Bundle: b, Rule: rule, Text: proto.Clip(text), Measured: proto.NoPower, Expected: proto.NoPower, Gen: v.Want.Gen})
	}
	for _, x := range c.Evidence.wanted(s) {
		if (port < 0 || int(x.A) == int(port)) && len(out) < proto.MaxPage/2 {
			fact(port, "circuit", fmt.Sprintf("port %d to %d, job %d: %s", x.A, x.B, x.Job, c.Evidence.stateOf(s, x)))
		}
	}
	if why := v.whyUnable(); why != "" {
		fact(-1, "unable", why)
	}
	if why := c.Stages.awaits(); why != "" {
		fact(-1, "drain", why)
	}
	return out
}
