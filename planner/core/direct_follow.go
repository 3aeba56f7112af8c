package core

import (
	"cmp"
	"fmt"
	"slices"

	"ringlight/planner/topo"
	"ringlight/proto"
)

// A job whose traffic is not what it said gets links for what was measured, if these are
// worth a move. They are found as at its start, joined on the fibres that it does not use,
// and taken by a flip: as two phases, of which the first is forgotten afterwards.

// worth says whether the fullest link is relieved by a tenth at least. chosen: what
// iterations differ by is less, and a flip costs some of one.
func worth(now, then int64) bool { return now-then >= (now+9)/10 } // ten times as much need not fit

// followTraffic has a job go to links for measured traffic, or says what that would bring.
func followTraffic(j *job, c *Circuits, q *proto.OpRequest, r *proto.OpReply) {
	refuse := func(code proto.Code, field, limit, format string, args ...any) {
		r.Refuse(&proto.Error{Code: code, Field: field, Limit: limit, Reason: fmt.Sprintf(format, args...)})
	}
	d := c.designer.at(c.Evidence.standing()).(direct)
	switch {
	case j.shard == nil || !j.shard.Active || len(j.shard.Servers) < 2:
		refuse(proto.Conflict, "job", "one that runs on 2 servers and up", "job %d does not", q.Job)
		return
	case len(j.spec.Phases) > 0:
		refuse(proto.Conflict, "job", "one without phases", "job %d has %d", q.Job, len(j.spec.Phases))
		return
	}
	lit, _, _ := c.Evidence.lit()
	if s, why := c.jobStatus(j, lit), d.silent(j.shard); why != "" || s.State == proto.JobPlacing { // it would wait, and go for what is old by then
		refuse(proto.Conflict, "job", "one whose links have light, on devices that can be told", "job %d: %s", q.Job, cmp.Or(why, s.Reason, "its links are on their way"))
		return
	}
	floor := d.floor(c.jobs.all)
	for _, x := range j.shard.Servers {
		if of := floor.look[x]; of != nil && of != j {
			refuse(proto.Conflict, "job", "one whose other fibres are free", "job %d stands by on those of server %d", of.spec.Job, x)
			return
		}
	}
	t := q.Jobs[0].Topology
	if t == nil || len(t.AllReduce)+len(t.MP) == 0 {
		refuse(proto.Invalid, "topology", "allreduce or mp that the job was measured to send", "neither is given")
		return
	}
	n := len(j.shard.Servers)
	was := *d.traffic(j.topology())
	sent := was
	sent.AllReduce, sent.MP = t.AllReduce, t.MP
	if err := d.checkTopology(&sent, n, "topology", proto.Wrong); err != nil {
		r.Refuse(err)
		return
	}
	of, found := d.request(&sent, n), d.wires(&sent, n)
	now, then := of.Over(j.shard.layers(), j.shard.Rings).Fullest, of.Over(found.layers(), found.Rings).Fullest
	if r.Change = nothing(); worth(now, then) {
		s := *j.shard
		s.Phases, s.Phase, s.Ahead, s.Measured = []wires{s.wires, found}, 0, 1, []proto.JobTopology{was, sent}
		list := copyJobs(c.jobs.all)
		(&jobList{all: list}).find(q.Job).shard = s.turned(1)
		takeJobs(c, list, q, r)
	}
	r.Change.FullestNow, r.Change.FullestThen = uint64(now), uint64(then)
}

// nothing is a change that changes nothing: what is under way goes on.
func nothing() *proto.ChangeStatus { return &proto.ChangeStatus{Waiting: []proto.JobID{}} }

func (w *wires) layers() []topo.Layer {
	out := make([]topo.Layer, len(w.Layers))
	for l, to := range w.Layers {
		out[l].To = to
	}
	return out
}

// goes says where a job goes that is turning.
func (j *job) goes() string {
	if len(j.spec.Phases) > 0 {
		return "phase " + j.spec.Phases[j.shard.Phase].Name
	}
	return "links for measured traffic"
}

// followed forgets links that jobs went from, so that their fibres are free.
func (c *direct) followed(jobs []*job) {
	for _, j := range jobs {
		if j.shard != nil && len(j.shard.Measured) > 1 && !turning(j, c.layout, c.from.maps) {
			s := *j.shard
			s.Measured = slices.Clone(s.Measured[s.Phase:][:1])
			s.Phases, s.Phase, s.Ahead = nil, 0, 0
			j.shard = &s
		}
	}
}
