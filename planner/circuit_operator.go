package planner

import (
	"fmt"

	"ringlight/proto"
)

// onCircuitRequest answers an operator about jobs and circuits. It reports
// whether the noun was one of those.
func (p *Planner) onCircuitRequest(q *proto.OpRequest, r *proto.OpReply) bool {
	switch q.Noun {
	case proto.NounCore, proto.NounCircuits, proto.NounJobs, proto.NounJob, proto.NounApply:
	default:
		return false
	}
	c := p.core
	if c == nil {
		r.Refuse(&proto.Error{Code: proto.Unsupported, Field: "fabric", Limit: "a fabric with a core", Reason: "this one has no optical switches between pods"})
		return true
	}
	switch q.Noun {
	case proto.NounCore:
		s := p.CoreStatus()
		r.Core = &s
	case proto.NounCircuits:
		p.circuitsPage(q.Page, 0, r)
	case proto.NounJobs:
		p.jobsPage(q, r)
	case proto.NounJob:
		j := c.job(q.Job)
		if j == nil {
			r.Refuse(&proto.Error{Code: proto.NotFound, Field: "job", Limit: c.jobLimit(), Reason: fmt.Sprintf("no job %d", q.Job)})
			return true
		}
		lit, _ := p.lit()
		s := p.jobStatus(j, lit)
		s.Domains, s.Stages = c.ranks(j)
		r.Jobs = []proto.JobStatus{s}
		p.circuitsPage(q.Page, q.Job, r)
	case proto.NounApply:
		p.applyJobs(q, r)
	}
	return true
}

func (c *circuits) jobLimit() string {
	if len(c.jobs) == 0 {
		return "there are no jobs"
	}
	return fmt.Sprintf("one of the %d from %d to %d", len(c.jobs), c.jobs[0].spec.Job, c.jobs[len(c.jobs)-1].spec.Job)
}

// applyJobs takes a job list, or says what it would do.
func (p *Planner) applyJobs(q *proto.OpRequest, r *proto.OpReply) {
	c := p.core
	if err := c.checkJobs(q.Jobs); err != nil {
		r.Refuse(err)
		return
	}
	if !c.heard || p.state == fenced || p.state == raising || p.state == gathering {
		r.Refuse(&proto.Error{Code: proto.Busy, Reason: "the planner is looking round first"})
		return
	}
	list := c.list(q.Jobs)
	d := c.design(c.admit(list))
	r.Change = &d.change
	if q.DryRun {
		return
	}
	c.jobs, c.change, c.stages = d.jobs, d.change, nil
	p.saveJobs()
	p.note(Info, "job list taken", note{Rule: "apply", Node: -1, Cause: proto.CauseOperator,
		Text: fmt.Sprintf("%d jobs, %d wait, %d stages", len(list), len(d.change.Waiting), len(d.stages))})
	if c.state == circuitsResting && !c.open.active() {
		c.stages = d.stages
	}
	p.replanCircuits(0)
}

// Pages of circuits go by switch and port of side A: page = switch<<16 | port.
func (p *Planner) circuitsPage(from uint64, of proto.JobID, r *proto.OpReply) {
	c := p.core
	for s := int(min(from>>16, uint64(len(c.switches)))); s < len(c.switches); s++ {
		at, _ := c.deckOf(s)
		for _, x := range c.circuitsOf(s, c.decks[at]) {
			page := uint64(s)<<16 | uint64(x.A)
			if page < from || of != 0 && x.Job != of {
				continue
			}
			if len(r.Circuits) == proto.MaxPage {
				r.Next = page
				return
			}
			status := proto.CircuitStatus{Switch: c.switches[s].id, A: x.A, B: x.B, Job: x.Job, Loss: proto.NoPower}
			if m := c.reportOf(s, x.A, x.B); m != nil {
				status.State, status.Loss = m.State, m.Loss
			}
			r.Circuits = append(r.Circuits, status)
		}
	}
}

func (p *Planner) jobsPage(q *proto.OpRequest, r *proto.OpReply) {
	lit, _ := p.lit()
	for _, j := range p.core.jobs {
		if uint64(j.spec.Job) < q.Page {
			continue
		}
		if len(r.Jobs) == proto.MaxPage {
			r.Next = uint64(j.spec.Job)
			return
		}
		r.Jobs = append(r.Jobs, p.jobStatus(j, lit))
	}
}

// halveCircuits makes a page of circuits or jobs shorter; see halve.
func (p *Planner) halveCircuits(r *proto.OpReply) bool {
	switch {
	case len(r.Circuits) > 1:
		x := r.Circuits[len(r.Circuits)/2]
		r.Next = uint64(x.Switch-proto.FirstSwitch)<<16 | uint64(x.A)
		r.Circuits = r.Circuits[:len(r.Circuits)/2]
	case len(r.Jobs) > 1:
		r.Next = uint64(r.Jobs[len(r.Jobs)/2].Job)
		r.Jobs = r.Jobs[:len(r.Jobs)/2]
	default:
		return false
	}
	return true
}

// made counts each job's links in decks.
func made(decks []deck, c *circuits) map[proto.JobID]int {
	out := map[proto.JobID]int{}
	for _, d := range decks {
		c.links(d, func(_, _ int32, id proto.JobID) { out[id]++ })
	}
	return out
}

// lit counts each job's links that light proves both ways, and all circuits
// that it proves.
func (p *Planner) lit() (links map[proto.JobID]int, circuits int) {
	c := p.core
	links = map[proto.JobID]int{}
	for at, d := range c.decks {
		c.links(d, func(i, j int32, id proto.JobID) {
			good := 0
			for _, s := range c.slots(at, i, j) {
				if c.stateOf(s.sw, proto.Circuit{A: s.a, B: s.b}) == proto.Tuned {
					good++
				}
			}
			circuits += good
			if good == 2 {
				links[id]++
			}
		})
	}
	return links, circuits
}

func (p *Planner) jobStatus(j *job, lit map[proto.JobID]int) proto.JobStatus {
	s := proto.JobStatus{Job: j.spec.Job, Asked: uint32(j.asked()), Granted: uint32(j.granted()), Reason: proto.Clip(j.why)}
	for _, x := range j.placed.Shares {
		s.Servers = append(s.Servers, proto.LeafServers{Pod: uint16(x.Pod), Leaf: uint16(x.Leaf), Servers: uint16(x.Servers)})
	}
	s.Realised = uint32(lit[j.spec.Job])
	switch {
	case j.found:
		s.State = proto.JobAdopted
		s.Asked = uint32(made(p.core.decks, p.core)[j.spec.Job])
		s.Granted = s.Asked
	case !j.runs():
		s.State = proto.JobWaiting
	case s.Realised >= s.Granted:
		s.State = proto.JobRealised
	case p.circuitsQuiet():
		s.State, s.Reason = proto.JobShort, proto.Clip(p.whyShort())
	default:
		s.State = proto.JobPlacing
	}
	return s
}

// ranks are the leaves of a job's domains in the order of its ranks. A job of
// more than fit a message has none.
func (c *circuits) ranks(j *job) (leaves []uint16, stages uint32) {
	const most = 4096 // of JobStatus.Domains
	if len(j.placed.Shares) == 0 || j.placed.PP*j.placed.DP > most {
		return nil, 0
	}
	elements, err := c.sched.Elements(j.placed.Job, j.placed.Shares)
	if err != nil {
		return nil, 0
	}
	for _, row := range elements[0] {
		for _, leaf := range row {
			leaves = append(leaves, uint16(leaf))
		}
	}
	return leaves, uint32(j.placed.PP)
}

// whyShort names the first switch that keeps links from being made.
func (p *Planner) whyShort() string {
	c := p.core
	for s := range c.switches {
		if why := c.switches[s].whyUnable(); why != "" {
			return fmt.Sprintf("switch %d: %s", s, why)
		}
	}
	if len(c.bad) > 0 {
		return fmt.Sprintf("%d circuits did not come up", len(c.bad))
	}
	return "no free ports without moving more of a leaf's links than iota_mille allows"
}

// CoreStatus tells where the circuits stand. Without a core it is empty.
func (p *Planner) CoreStatus() proto.CoreStatus {
	c := p.core
	if c == nil {
		return proto.CoreStatus{}
	}
	s := proto.CoreStatus{Generation: c.gen, Switches: uint32(len(c.switches)), Jobs: uint32(len(c.jobs)), Quiet: p.circuitsQuiet(), DarkMicros: c.dark}
	for i := range c.switches {
		if c.switches[i].online {
			s.Online++
		}
		at, _ := c.deckOf(i)
		s.Circuits += uint32(len(c.circuitsOf(i, c.decks[at])))
	}
	lit, circuits := p.lit()
	s.Tuned = uint32(circuits)
	there := made(c.decks, c)
	for _, j := range c.jobs {
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

// Change is what the job list taken last came to. Without a core it is empty.
func (p *Planner) Change() proto.ChangeStatus {
	if p.core == nil {
		return proto.ChangeStatus{}
	}
	return p.core.change
}
