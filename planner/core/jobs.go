package core

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"ringlight/planner/fabric"
	"ringlight/planner/sched"
	"ringlight/planner/wiring"
	"ringlight/proto"
)

// job is one job: what was asked for, where it is, and which way its links go.
type job struct {
	spec    proto.JobSpec
	placed  sched.Placed // no shares: it waits
	servers []int        // of the shares one by one: which server of its leaf; nil: not known
	paths   []path       // by spine and leaves
	ways    []way        // of paths, and within pods
	laid    bool         // those within pods are found
	strayed bool         // it had to leave servers
	found   bool         // known by its circuits only
	owner   string       // that asked for it by name; "": an operator's list did
	own     *seat        // of leaves and spines; nil: it waits
	shard   *shard       // of servers joined directly; nil: it waits
	turn    turn
	why     string // why it waits
}

// path is a number of links between two leaves over one spine of their pods.
type path struct {
	Spine, A, B, Count int
}

func (j *job) runs() bool {
	return len(j.placed.Shares) > 0 || j.found || j.own != nil || j.shard != nil
}

func (j *job) asked() int {
	n := j.circuits()
	for _, w := range j.placed.Wants {
		n += w.Links()
	}
	return n
}

func (j *job) granted() int {
	n := j.circuits()
	for _, l := range j.placed.Links {
		n += l
	}
	return n
}

// lacks: some link of a job that runs has no path.
func (j *job) lacks() bool {
	n := j.granted()
	for _, x := range j.paths {
		n -= x.Count
	}
	return n > 0
}

// circuits is how many circuits a job holds that shares no link.
func (j *job) circuits() int {
	switch {
	case j.own != nil:
		return len(j.own.Circuits)
	case j.shard != nil:
		return j.shard.links()
	}
	return 0
}

// jobList is the jobs that operators asked for, by id.
type jobList struct {
	fab   *fabric.Core
	all   []*job
	saved map[proto.JobID]string // records as stored
}

// find finds a job by its id.
func (l *jobList) find(id proto.JobID) *job {
	at, ok := slices.BinarySearchFunc(l.all, id, func(j *job, id proto.JobID) int { return cmp.Compare(j.spec.Job, id) })
	if !ok {
		return nil
	}
	return l.all[at]
}

// domains are a job's, the replicas counted from its servers where they are
// not given.
func (l *jobList) domains(s *proto.JobSpec) sched.Job {
	j := sched.Job{TP: int(s.TP), EP: int(s.EP), PP: int(s.PP), DP: int(s.DP), Collective: sched.Collective(s.Collective)}
	if s.DP == 0 && s.TP > 0 && s.PP > 0 {
		j.DP = int(s.Servers) * l.fab.GPUsPerServer / (int(s.TP) * int(s.PP))
	}
	return j
}

// check says what is wrong with a job list, if anything.
func (l *jobList) check(list []proto.JobSpec, of designer) *proto.Error {
	seen := map[proto.JobID]int{}
	for i := range list {
		s := &list[i]
		bad := func(field, limit, format string, args ...any) *proto.Error {
			return &proto.Error{Code: proto.Invalid, Field: fmt.Sprintf("jobs[%d].%s", i, field), Limit: limit, Reason: fmt.Sprintf(format, args...)}
		}
		if before, twice := seen[s.Job]; twice {
			return bad("id", "each id once", "jobs[%d] is job %d too", before, s.Job)
		}
		seen[s.Job] = i
		if s.Job == 0 {
			return bad("id", "1 and up", "0 stands for no job")
		}
		if e := s.Collective.Check(); e != nil {
			return bad(e.Field, e.Limit, "%s", e.Reason)
		}
		if s.DP == 0 && s.Servers == 0 {
			return bad("servers", "servers, or dp", "neither is given")
		}
		all := l.fab.Servers()
		if int(s.Servers) > all {
			return bad("servers", fmt.Sprintf("at most the %d there are", all), "%d", s.Servers)
		}
		j := l.domains(s)
		if err := j.Validate(); err != nil {
			e, _ := errors.AsType[*wiring.Error](err)
			return bad(e.Field, e.Limit, "%s", e.Reason)
		}
		need := (j.GPUs() + l.fab.GPUsPerServer - 1) / l.fab.GPUsPerServer
		if need > all {
			return bad("dp", fmt.Sprintf("at most the %d servers there are", all), "tp %d, pp %d, dp %d take %d servers", j.TP, j.PP, j.DP, need)
		}
		if s.Servers != 0 && s.Servers != uint32(need) {
			return bad("servers", fmt.Sprintf("%d, what tp %d, pp %d, dp %d take", need, j.TP, j.PP, j.DP), "%d", s.Servers)
		}
		slices.Sort(s.On)
		s.On = slices.Compact(s.On)
		if n := len(s.On); n > 0 && (n != need || int(s.On[n-1]) >= all) {
			return bad("nodes", fmt.Sprintf("%s of %d, what it takes", proto.Count(need, "server"), all), "%d, up to %d", n, s.On[n-1])
		}
		if err := of.check(s, bad); err != nil {
			return err
		}
	}
	return nil
}

// checkStored keeps a damaged record from becoming a broken index later.
func (l *jobList) checkStored(j *job) error {
	leaf := func(n int) bool { return n >= 0 && n < l.fab.Leaves() }
	for _, s := range j.placed.Shares {
		if s.Pod < 0 || s.Pod >= l.fab.Pods || s.Leaf < 0 || s.Leaf >= l.fab.LeavesPerPod || s.Servers < 1 {
			return fmt.Errorf("no such leaf: %+v", s)
		}
	}
	if e := j.spec.Collective.Check(); e != nil {
		return e
	}
	if len(j.placed.Wants) != len(j.placed.Links) {
		return fmt.Errorf("%d wants, %d answers", len(j.placed.Wants), len(j.placed.Links))
	}
	for _, w := range j.placed.Wants {
		if !leaf(w.A) || !leaf(w.B) {
			return fmt.Errorf("no such leaf: %+v", w)
		}
	}
	for _, x := range j.paths {
		if !leaf(x.A) || !leaf(x.B) || x.Spine < 0 || x.Spine >= l.fab.SpinesPerPod || x.Count < 1 {
			return fmt.Errorf("no such path: %+v", x)
		}
	}
	for _, w := range j.ways {
		if !leaf(w.A) || !leaf(w.B) || w.Spine < 0 || w.Spine >= l.fab.SpinesPerPod || min(w.UpA, w.UpB) < 0 || max(w.UpA, w.UpB) >= l.fab.LeafLinks || w.Map < -1 || w.Map >= l.fab.Switches() || w.From < 0 || w.From >= l.fab.Pods {
			return fmt.Errorf("no such way: %+v", w)
		}
	}
	return nil
}

// list makes jobs of a list that was checked: those with the same words as
// before stay where they are.
func (l *jobList) list(specs []proto.JobSpec) []*job {
	var out []*job
	for i := range specs {
		s := specs[i]
		if old := l.find(s.Job); old != nil && (l.fab.Alone() && old.found || !old.found && sameSpec(&old.spec, &s)) {
			again := *old
			s.Pods, s.On = old.spec.Pods, old.spec.On
			again.spec = s // what it declares may have changed
			out = append(out, &again)
			continue
		}
		s.Pods, s.On = slices.Clone(s.Pods), slices.Clone(s.On)
		out = append(out, &job{spec: s, placed: sched.Placed{Job: l.domains(&s)}})
	}
	slices.SortFunc(out, func(a, b *job) int { return cmp.Compare(a.spec.Job, b.spec.Job) })
	return out
}

func sameSpec(a, b *proto.JobSpec) bool {
	x, y := *a, *b
	x.Pods, y.Pods = nil, nil
	return slices.Equal(a.Pods, b.Pods) && slices.Equal(a.On, b.On) && x.Job == y.Job && x.TP == y.TP && x.EP == y.EP && x.PP == y.PP && x.DP == y.DP && x.Servers == y.Servers &&
		x.Collective == y.Collective && reflect.DeepEqual(x.Topology, y.Topology) && reflect.DeepEqual(x.Phases, y.Phases)
}

// copyJobs are jobs that may be changed.
func copyJobs(jobs []*job) []*job {
	out := make([]*job, len(jobs))
	for n, j := range jobs {
		k := *j
		k.paths = slices.Clone(j.paths)
		out[n] = &k
	}
	return out
}

// between counts a job's links between two leaves.
func (j *job) between(a, b int) int {
	n := 0
	for _, x := range j.paths {
		if x.A == a && x.B == b {
			n += x.Count
		}
	}
	return n
}

// drop takes links off a path.
func (j *job) drop(x path) {
	for n := range j.paths {
		if p := &j.paths[n]; p.Spine == x.Spine && p.A == x.A && p.B == x.B {
			p.Count -= x.Count
		}
	}
	j.paths = slices.DeleteFunc(j.paths, func(p path) bool { return p.Count == 0 })
}

func (j *job) add(x path) {
	for n := range j.paths {
		if p := &j.paths[n]; p.Spine == x.Spine && p.A == x.A && p.B == x.B {
			p.Count += x.Count
			return
		}
	}
	j.paths = append(j.paths, x)
	slices.SortFunc(j.paths, func(a, b path) int {
		return cmp.Or(cmp.Compare(a.Spine, b.Spine), cmp.Compare(a.A, b.A), cmp.Compare(a.B, b.B))
	})
}
