package core

import (
	"cmp"
	"fmt"
	"slices"

	"ringlight/planner/fabric"
	"ringlight/planner/isolate"
	"ringlight/planner/journal"
	"ringlight/proto"
)

// stored is a turn as it is stored; nil: of another kind of core.
func (t turn) stored() *turn {
	if t.Came == 0 {
		return nil
	}
	return &t
}

// checkOwners keeps damaged records from giving two jobs the same: what jobs
// own together must be there.
func (l *jobList) checkOwners() error {
	for _, j := range l.all {
		switch {
		case j.own != nil && l.fab.LeafSpine == nil:
			return fmt.Errorf("%s: belongs to a leaf-spine core", jobKey(j.spec.Job))
		case j.shard != nil && l.fab.Direct == nil:
			return fmt.Errorf("%s: belongs to a direct core", jobKey(j.spec.Job))
		case j.turn.Came != 0 && !l.fab.Alone():
			return fmt.Errorf("%s: belongs to a core with a queue", jobKey(j.spec.Job))
		}
	}
	switch {
	case l.fab.Direct != nil:
		return l.checkShards()
	case l.fab.LeafSpine == nil:
		return l.checkServers()
	}
	s := newIsolated(l.fab).shape.Empty()
	for _, j := range l.all {
		switch p := j.own; {
		case len(j.placed.Shares) > 0 || len(j.paths) > 0:
			return fmt.Errorf("%s: of a core of pods", jobKey(j.spec.Job))
		case j.turn.Came == 0 && !j.found:
			return fmt.Errorf("%s: it never came", jobKey(j.spec.Job))
		case j.turn.AtMS < 0 || j.turn.AtMS > proto.MaxCount || j.turn.Passed < 0 || j.turn.Passed > proto.MaxJump:
			return fmt.Errorf("%s: came at %d, passed by %d", jobKey(j.spec.Job), j.turn.AtMS, j.turn.Passed)
		case p == nil:
		case !p.whole(l.fab):
			return fmt.Errorf("%s: %d x %d, %d servers, %d links, %d circuits, map of %d, since %d", jobKey(j.spec.Job), p.L, p.S, len(p.Servers), len(p.Links), len(p.Circuits), len(p.Map), p.SinceMS)
		default:
			if err := s.Take(isolate.JobID(j.spec.Job), p.Placement); err != nil {
				return fmt.Errorf("%s: %w", jobKey(j.spec.Job), err)
			}
		}
	}
	return l.checkGPUs()
}

// whole: the parts of a seat fit each other, so that its tables can be written.
// That they are there is for isolate to say.
func (s *seat) whole(fab *fabric.Core) bool {
	ranks, ends := len(s.Servers)*fab.GPUsPerServer, len(s.Map)
	switch {
	case s.SinceMS < 0 || s.SinceMS > proto.MaxCount || len(s.Servers) == 0 || s.GPUs < 1 || s.GPUs > ranks:
		return false
	case s.S == 0 && (len(s.Links) > 0 || len(s.Map) != len(s.Circuits) || len(s.Map) > ranks):
		return false
	case s.S == 0:
	case s.S < 0 || s.L < 1 || s.S > ranks || s.L > ranks || s.L*s.S != ranks || len(s.Links) != ranks || len(s.Map) != s.S:
		return false
	case len(s.Circuits) != len(s.Links) && (fab.LeafSpine.Switches > 0 || len(s.Circuits) > 0):
		return false
	}
	if slices.ContainsFunc(s.Map, func(at int) bool { return at < 0 || at >= ends }) {
		return false
	}
	for n, x := range s.Circuits { // those of a leaf begin at it
		if x.A.Spine || s.S > 0 && (!x.B.Spine || x.A.Number != s.Links[n].Leaf || x.B.Number != s.Links[n].Spine) {
			return false
		}
	}
	return true
}

// describe: its seats are all that there is.
func (c isolated) describe(*job, *proto.JobStatus) {}

// routes are a job's tables, those of leaves first.
func (c isolated) routes(j *job) []proto.RoutingTable {
	if j.own == nil {
		return nil
	}
	var out []proto.RoutingTable
	t := c.shape.Empty().Tables(c.detour(j))
	for _, l := range t.Leaves {
		x := proto.RoutingTable{Job: j.spec.Job, Number: uint16(l.Leaf), Virtual: uint32(l.Virtual)}
		for _, r := range l.Sends {
			x.Sends = append(x.Sends, proto.PortRoute{Port: uint16(r.Port), Uplink: uint16(r.Uplink)})
		}
		for _, r := range l.Reaches {
			x.Reaches = append(x.Reaches, proto.Reach{Leaf: uint16(r.Leaf), Port: uint16(r.Port), Uplink: uint16(r.Uplink)})
		}
		out = append(out, x)
	}
	for _, v := range t.VRFs {
		x := proto.RoutingTable{Job: j.spec.Job, Spine: true, Number: uint16(v.Spine), Virtual: uint32(v.Virtual)}
		for _, p := range v.Ports {
			x.Ports = append(x.Ports, uint16(p))
		}
		out = append(out, x)
	}
	return out
}

// tablesPage gives the routing tables of a job, or of all.
func tablesPage(c *Circuits, q *proto.OpRequest, r *proto.OpReply) {
	of, ok := c.designer.at(c.Evidence.standing()).(isolated)
	if !ok {
		r.Refuse(&proto.Error{Code: proto.Unsupported, Field: "fabric", Limit: "a leaf-spine core", Reason: "elsewhere no leaf or spine has routes of one job"})
		return
	}
	if q.Job != 0 && c.jobs.find(q.Job) == nil {
		r.Refuse(&proto.Error{Code: proto.NotFound, Field: "job", Limit: c.jobs.limit(), Reason: fmt.Sprintf("no job %d", q.Job)})
		return
	}
	for _, j := range c.jobs.all {
		if q.Job != 0 && j.spec.Job != q.Job || uint64(j.spec.Job) < q.Page>>tableBits {
			continue
		}
		for _, t := range of.routes(j) {
			page := tablePage(&t)
			if page < q.Page {
				continue
			}
			if len(r.Tables) == proto.MaxPage {
				r.Next = page
				return
			}
			r.Tables = append(r.Tables, t)
		}
	}
}

// Pages of tables go by job, leaves before spines, and virtual leaf or spine.
const (
	tableBits = 20 // with the job's they stay below proto.MaxCount
	spineBit  = 1 << (tableBits - 1)
)

func tablePage(t *proto.RoutingTable) uint64 {
	page := uint64(t.Job)<<tableBits | uint64(t.Virtual)
	if t.Spine {
		page |= spineBit
	}
	return page
}

// noteStarts writes down which jobs that are alone start or move, after what
// there was.
func noteStarts(c *Circuits, before []*job) {
	old := jobList{all: before}
	for _, j := range c.jobs.all {
		was := old.find(j.spec.Job)
		message, text := "job starts", ""
		switch {
		case j.shard != nil && was != nil && was.shard != nil && was.shard.Phase != j.shard.Phase:
			if message, text = "job turns to another phase", fmt.Sprintf("%s, %d circuits", j.goes(), j.shard.links()); len(j.shard.Phases) == 0 {
				continue // what it went from is forgotten
			}
		case j.shard != nil && was != nil && was.shard != nil && was.shard.Active == j.shard.Active:
			if text = j.shard.moved(was.shard); text == "" {
				continue
			}
			message = "job moves off what has no light"
		case j.shard != nil:
			if !j.shard.Active {
				message = "job is provisioned"
			} else if was != nil && was.shard != nil {
				message = "job starts by a flip"
			}
			text = fmt.Sprintf("%d servers, %d circuits, %d rings", len(j.shard.Servers), j.shard.links(), len(j.shard.Rings))
		case j.own == nil:
			continue
		default:
			if was != nil && was.own != nil {
				if slices.Equal(was.own.Servers, j.own.Servers) {
					continue
				}
				message = "job moves"
			}
			text = fmt.Sprintf("%d servers of %d leaves, %d circuits, stage %d; passed by %d", len(j.own.Servers), len(j.own.leaves()), len(j.own.Circuits), j.own.Stage, j.turn.Passed)
		}
		c.j.Note(journal.Info, message, journal.Note{Rule: "queue", Node: -1, Cause: proto.CausePlan, Text: fmt.Sprintf("job %d: %s", j.spec.Job, text)})
	}
}

// leaves are the servers of a job by leaf; a part of one counts.
func (s *seat) leaves() (out []proto.LeafServers) {
	for _, w := range s.Servers {
		at, ok := slices.BinarySearchFunc(out, uint16(w.Leaf), func(x proto.LeafServers, leaf uint16) int { return cmp.Compare(x.Leaf, leaf) })
		if !ok {
			out = slices.Insert(out, at, proto.LeafServers{Leaf: uint16(w.Leaf)})
		}
		out[at].Servers++
	}
	return out
}
