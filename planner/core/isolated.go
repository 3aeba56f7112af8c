package core

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"ringlight/planner/fabric"
	"ringlight/planner/isolate"
	"ringlight/proto"
)

// Leaves and spines: each job alone on what it has. Which servers, links and
// ports a job gets and whose turn it is are decided by planner/isolate; here
// that becomes maps.

// isolated designs a core of leaves and spines.
type isolated struct {
	fab    *fabric.Core
	layout layout
	shape  isolate.Core
	rules  isolate.Rules
	empty  *isolate.Queue // before the empty core: what it has room for
	from   standing
	found  map[proto.JobID]bool // known by their circuits only
}

// seat is what a job owns, and since when.
type seat struct {
	isolate.Placement
	SinceMS int64
	Which   []int `json:",omitempty"` // of the GPUs of one server, where it has a part of it
}

// turn is a job's place in the queue.
type turn struct {
	Came    uint64 // how many came before it, and it; 0: not of this kind
	AtMS    int64  // when it came
	Passed  int    // by jobs that came later
	waiting proto.WaitCause
}

// undeclared is how long a job is taken to run that does not say. chosen: no
// job waits for its end.
const undeclared = int64(1) << 50

func newIsolated(fab *fabric.Core) isolated {
	l := fab.LeafSpine
	c := isolated{fab: fab, layout: layout{fab}, rules: isolate.Rules{MoveMS: int64(l.MoveMillis)}}
	if l.Switches > 0 {
		c.shape = isolate.Optical(l.Leaves, l.GPUsPerLeaf, fab.GPUsPerServer, l.Spines, l.Switches)
		c.shape.Optics.AnyToAny = l.AnyToAny
		for h := range c.shape.Optics.Spine {
			c.shape.Optics.Spine[h] = slices.Repeat([]int{l.SpinePortsPerSwitch()}, l.Switches)
		}
	} else {
		c.shape = isolate.Clos(l.Leaves, l.GPUsPerLeaf, fab.GPUsPerServer, l.Spines)
	}
	order, ok := isolate.OrderOf(string(l.Policy()))
	if !ok {
		panic("core: invariant: a fabric's queue is one of isolate's: " + string(l.Policy()))
	}
	c.rules.Order = order
	c.empty = isolate.NewQueue(c.shape.Empty(), c.rules)
	return c
}

// asQueued is a job as the queue knows it.
func asQueued(j *job) isolate.Job {
	q := isolate.Job{ID: isolate.JobID(j.spec.Job), GPUs: j.placed.GPUs(), DurationMS: int64(j.spec.DurationMillis), MayPauseMS: int64(j.spec.MayPauseMillis), Passed: j.turn.Passed}
	if j.spec.On != nil {
		q.MayPauseMS = 0
	}
	q.DurationMS = cmp.Or(q.DurationMS, undeclared)
	if d := int64(j.spec.DeadlineMillis); d > 0 {
		q.DeadlineMS = j.turn.AtMS + d
	}
	return q
}

func (c isolated) check(s *proto.JobSpec, bad wrongJob) *proto.Error {
	if len(s.Pods) > 0 {
		return bad("pods", "none: there are leaves and spines", "%d pods", len(s.Pods))
	}
	if s.Collective != proto.CollectiveRing {
		return bad("collective", "none: what a job owns carries any", "%s", s.Collective)
	}
	if err := notDirect(s, bad); err != nil {
		return err
	}
	j := job{spec: *s}
	j.placed.Job = (&jobList{fab: c.fab}).domains(s)
	var wrong *isolate.Error
	switch err := c.empty.Check(asQueued(&j)); {
	case err == nil && s.On == nil:
		return nil
	case err == nil:
		if _, why := c.besides(&j, nil).Place(j.placed.GPUs()); why != isolate.Fits {
			return bad("nodes", "servers of one leaf, or as many of each leaf as make a virtual Clos", "%s: not of these", why)
		}
		return nil
	case errors.As(err, &wrong) && wrong.Field != "gpus_total":
		return bad(wrong.Field, wrong.Limit, "%s", wrong.Reason)
	case s.DP == 0:
		return bad("servers", wrong.Limit, "%s", wrong.Reason)
	}
	return bad("dp", wrong.Limit, "%s", wrong.Reason)
}

// design lets jobs start whose turn it is, and wants the circuits of those that
// run. What else is lit stays until its ports are needed, unassigned. Nothing
// that runs is moved, but where it allows it, and circuits that carry nothing:
// those that did not come up.
func (c isolated) design(jobs []*job, list bool) design {
	c.admit(jobs, list)
	d := design{jobs: jobs, maps: c.carry(jobs)}
	c.from.out.loops(c.from.able, d.maps)
	if sets := changedMaps(c.from.maps, d.maps); len(sets) > 0 {
		d.stages = [][]mapSet{sets}
	}
	d.accountAlone(&c.from)
	return d
}

func (c isolated) at(from standing) designer {
	c.from = from
	return c
}

func (c isolated) start(jobs []*job) { c.admit(jobs, true) }

// admit lets jobs start whose turn it is.
func (c *isolated) admit(jobs []*job, list bool) {
	c.found = map[proto.JobID]bool{}
	for _, j := range jobs {
		if j.found {
			c.found[j.spec.Job] = true
		}
	}
	if list {
		arrive(jobs, c.from.nowMS)
	}
	c.mend(jobs)
	for _, j := range jobs { // whoever names its servers waits for nobody's turn
		if !j.runs() && j.spec.On != nil {
			p, cause := c.besides(j, jobs).Place(j.placed.GPUs())
			if cause == isolate.Fits {
				j.own = &seat{Placement: p, SinceMS: c.from.nowMS}
			}
			j.turn.waiting, j.why = proto.WaitGPU, fmt.Sprintf("%s: its servers are another job's or out, or no free links join them", cause)
		}
	}
	q, of := c.queue(jobs), &jobList{all: jobs}
	for _, s := range q.Start(c.from.nowMS) {
		of.find(proto.JobID(s.Job.ID)).own = &seat{Placement: s.Placement, SinceMS: c.from.nowMS}
		for _, m := range s.Moves {
			j := of.find(proto.JobID(m.Job))
			j.own = &seat{Placement: m.To, SinceMS: j.own.SinceMS}
		}
	}
	c.number(jobs)
	c.sayWhy(jobs, q)
}

// as is the core as a job sees it: what it does not ask for is out.
func (c isolated) as(s *proto.JobSpec) *isolated {
	c.from.out = c.from.out.only(s, c.fab.Servers())
	return &c
}

// besides is what other jobs leave of it.
func (c *isolated) besides(j *job, jobs []*job) *isolate.State {
	return c.as(&j.spec).queue(slices.DeleteFunc(slices.Clone(jobs), func(x *job) bool { return x == j })).State()
}

// arrive numbers the jobs that are new, in order of their ids.
func arrive(jobs []*job, nowMS int64) {
	last := uint64(0)
	for _, j := range jobs {
		last = max(last, j.turn.Came)
	}
	for _, j := range jobs {
		if j.turn.Came == 0 {
			last++
			j.turn = turn{Came: last, AtMS: nowMS}
		}
	}
}

// queue is the owners of servers and ports, and the jobs that wait. Ports that nobody can be given - of
// switches that cannot be told, of circuits that did not come up, of jobs that
// are known by their circuits only - are withheld, and with the last the servers
// of their leaves, of which nobody knows which are theirs.
func (c *isolated) queue(jobs []*job) *isolate.Queue {
	s := c.shape.Empty()
	for at, m := range c.from.maps {
		var left isolate.Placement
		c.layout.links(at, m, func(i, j int32, _ proto.JobID) { left.Circuits = append(left.Circuits, c.circuit(at, i, j)) })
		if err := s.Take(0, left); err != nil {
			panic("core: invariant: a map has each port once: " + err.Error())
		}
		s.Release(0) // they stay lit
	}
	q := isolate.NewQueue(s, c.rules)
	adopt := func(j isolate.Job, p isolate.Placement, ends int64) {
		if err := q.Adopt(j, p, ends); err != nil {
			panic("core: invariant: what jobs own is checked: " + err.Error())
		}
	}
	for _, j := range jobs {
		if j.own != nil {
			w := asQueued(j)
			adopt(w, j.own.Placement, j.own.SinceMS+w.DurationMS)
		}
	}
	for x := range c.from.out.ports { // any order: each is a port, withheld or not
		s.Withhold(x.Switch, c.end(int32(x.Port)), true)
	}
	for at, m := range c.from.maps {
		for port := range m.to {
			if !c.from.able[at] || c.isFound(m, port) {
				s.Withhold(at, c.end(int32(port)), false)
			}
		}
	}
	for l := range c.from.out.links { // any order: each is a link, withheld or not
		s.WithholdLink(isolate.Link(l))
	}
	for b := range c.from.bad { // any order: each is a port, withheld or not
		s.Withhold(b.sw, c.end(int32(b.a)), false)
		s.Withhold(b.sw, c.end(int32(b.b)), false)
	}
	c.adoptFound(jobs, adopt)
	var waiting []*job
	for _, j := range jobs {
		if !j.runs() && j.spec.On == nil {
			waiting = append(waiting, j)
		}
	}
	slices.SortFunc(waiting, func(a, b *job) int { return cmp.Compare(a.turn.Came, b.turn.Came) })
	for _, j := range waiting {
		if err := q.Submit(asQueued(j)); err != nil {
			panic("core: invariant: a list is checked: " + err.Error())
		}
	}
	return q
}

// isFound: a port carries a job that is known by its circuits only.
func (c *isolated) isFound(m crossMap, port int) bool {
	return m.to[port] >= 0 && c.found[m.job[port]]
}

// adoptFound lets jobs that are known by their circuits only have all that is
// left of the servers of their leaves. What is left of servers that are out is nobody's.
func (c *isolated) adoptFound(jobs []*job, adopt func(isolate.Job, isolate.Placement, int64)) {
	free := c.used(jobs)
	var gone isolate.Placement
	for server := range c.from.out.servers { // any order: a set
		n, i := server/c.fab.LeafServers(), server%c.fab.LeafServers()
		if left := c.shape.GPUsPerServer - free[[2]int{n, i}]; left > 0 {
			gone.Servers = append(gone.Servers, isolate.Server{Leaf: n, Server: i, GPUs: left})
			free[[2]int{n, i}] = c.shape.GPUsPerServer
		}
	}
	if len(gone.Servers) > 0 {
		slices.SortFunc(gone.Servers, func(a, b isolate.Server) int { return cmp.Or(a.Leaf-b.Leaf, a.Server-b.Server) })
		adopt(isolate.Job{ID: 0, DurationMS: undeclared}, gone, c.from.nowMS+undeclared) // no job has this number
	}
	for _, j := range jobs {
		if !j.found {
			continue
		}
		leaves := map[int]bool{}
		for _, m := range c.from.maps {
			for port, to := range m.to {
				if e := c.end(int32(port)); to >= 0 && m.job[port] == j.spec.Job && !e.Spine {
					leaves[e.Number] = true
				}
			}
		}
		var p isolate.Placement
		for n, servers := range c.shape.Servers {
			for i := range servers {
				if left := c.shape.GPUsPerServer - free[[2]int{n, i}]; leaves[n] && left > 0 {
					p.Servers = append(p.Servers, isolate.Server{Leaf: n, Server: i, GPUs: left})
					free[[2]int{n, i}] = c.shape.GPUsPerServer
				}
			}
		}
		adopt(isolate.Job{ID: isolate.JobID(j.spec.Job), DurationMS: undeclared}, p, c.from.nowMS+undeclared)
	}
}

// end is whose a port is.
func (c *isolated) end(port int32) isolate.End {
	leaf, spine, i := c.fab.EndAt(int(port))
	if leaf < 0 {
		return isolate.End{Spine: true, Number: spine, Port: i}
	}
	return isolate.End{Number: leaf, Port: i}
}

func (c *isolated) circuit(at int, i, j int32) isolate.Circuit {
	return isolate.Circuit{Switch: at, A: c.end(i), B: c.end(j)}
}

func (c *isolated) port(e isolate.End) int32 {
	if e.Spine {
		return int32(c.fab.SpinePort(e.Number, e.Port))
	}
	return int32(c.fab.LeafPort(e.Number, e.Port))
}

// sayWhy gives each waiting job its reason.
func (c *isolated) sayWhy(jobs []*job, q *isolate.Queue) {
	away := 0
	for _, able := range c.from.able {
		if !able {
			away++
		}
	}
	line := q.Waiting()
	for n, w := range line {
		j := (&jobList{all: jobs}).find(proto.JobID(w.ID))
		j.turn.Passed = w.Passed
		switch q.Why(w.ID) {
		case isolate.ByGPU:
			j.turn.waiting = proto.WaitGPU
			j.why = fmt.Sprintf("gpu: wants %d GPUs, %d are free, %d whole servers", w.GPUs, q.State().FreeGPUs(), q.State().IdleServers())
		case isolate.ByNetwork:
			j.turn.waiting = proto.WaitNetwork
			j.why = fmt.Sprintf("network: %d whole servers are idle, and no links join enough of them for %d GPUs%s", q.State().IdleServers(), w.GPUs, c.from.out.named())
			if away > 0 {
				j.why += fmt.Sprintf("; %d switches cannot be told", away)
			}
		default:
			j.turn.waiting, j.why = proto.WaitTurn, fmt.Sprintf("turn: %d before it, job %d first", n, line[0].ID)
		}
	}
	for _, j := range jobs {
		if j.runs() {
			j.turn.waiting, j.why = proto.WaitUnknown, ""
		}
	}
}

// carry is what maps are to hold: the circuits of jobs that run, and of others
// those whose ports are free, unassigned. One that did not come up is not made
// again: what was made with it would be rolled back for its sake. A switch that
// cannot be told keeps what it has.
func (c *isolated) carry(jobs []*job) []crossMap {
	out := cloneMaps(c.from.maps)
	for at := range out {
		if c.from.able[at] {
			out[at] = c.layout.bare(at)
		}
	}
	for _, j := range jobs {
		if j.own == nil {
			continue
		}
		for _, x := range j.own.Circuits {
			a, b := c.port(x.A), c.port(x.B)
			if way := c.layout.slots(x.Switch, a, b); c.from.able[x.Switch] && c.from.out.hits(way...) == "" && (!c.from.failed(way) || c.from.maps[x.Switch].to[a] == b) {
				c.layout.put(out[x.Switch], a, b, j.spec.Job)
			}
		}
	}
	for at, m := range c.from.maps {
		c.layout.links(at, m, func(i, j int32, id proto.JobID) {
			if !c.from.able[at] || c.from.failed(c.layout.slots(at, i, j)) || !c.layout.free(out[at], i, j) {
				return
			}
			if !c.isFound(m, int(i)) {
				id = 0
			}
			c.layout.put(out[at], i, j, id)
		})
	}
	return out
}
