package core

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ringlight/planner/fabric"
	"ringlight/planner/journal"
	"ringlight/proto"
)

// Jobs that asked by name stand in the one list with those that an operator
// numbers, and are placed, lit and mended like them. No list ends them: who asked
// gives them back.

// firstNamed numbers jobs that have a name. chosen: above what people count by hand.
const firstNamed = 1 << 20

// Claims are the circuits held by jobs that asked by name.
type Claims struct{ c *Circuits }

// ClaimsOf are the claims on these circuits.
func ClaimsOf(c *Circuits) Claims { return Claims{c} }

// Lent is what a job holds.
type Lent struct {
	proto.JobStatus
	GPUs  int
	Told  bool   // every link that it was granted is in what is committed
	Quiet bool   // nothing is under way that would bring it more
	Lost  int    // GPUs of it that are out
	Out   string // the part with which the first of them is gone
	Why   string // that is out
	Dark  string // the first circuit of it that light does not prove
}

// Ready: jobs can be taken.
func (x Claims) Ready() bool { return x.c.heard && x.c.root.Busy() == "" }

// Out reports whether a server is out, and why.
func (x Claims) Out(server int) (why string, is bool) {
	part, is := x.c.Evidence.out.servers[server]
	return x.c.Evidence.out.why[part], is
}

// Moved reports, once, whether anything may be otherwise than it was.
func (x Claims) Moved() bool {
	was := x.c.agenda.unreported
	x.c.agenda.unreported = false
	return was
}

// Unreported: Moved has something to report.
func (x Claims) Unreported() bool { return x.c.agenda.unreported }

// Check says what is wrong with a job, if anything.
func (x Claims) Check(s proto.JobSpec) *proto.Error {
	s.Job = x.number()
	if err := x.c.jobs.check([]proto.JobSpec{s}, x.c.designer); err != nil {
		err.Field = strings.TrimPrefix(err.Field, "jobs[0].")
		return err
	}
	return nil
}

// number is one that no job has.
func (x Claims) number() proto.JobID {
	n := max(firstNamed, x.c.named+1)
	for _, j := range x.c.jobs.all {
		n = max(n, j.spec.Job+1)
	}
	return n
}

// with is the list with one more job.
func (x Claims) with(owner string, s proto.JobSpec) (list []*job, added *job) {
	s.Job = x.number()
	added = &job{spec: s, owner: owner}
	added.placed.Job = x.c.jobs.domains(&s)
	return append(copyJobs(x.c.jobs.all), added), added
}

// Trial says why a job would wait now, "" when it would not, and how many
// replicas of such a one would not.
func (x Claims) Trial(s proto.JobSpec) (most int, why string) {
	all := x.c.jobs.domains(&s).DP
	if why = x.wouldWait(s); why == "" {
		return all, ""
	}
	if s.Topology != nil || s.Phases != nil || s.On != nil {
		return 0, why // its traffic is between so many servers, or it is of these
	}
	s.Servers = 0
	for low, high := 1, all-1; low <= high; {
		mid := (low + high) / 2
		dp := mid // or the next below of which there can be a job at all
		for s.DP = uint32(dp); dp >= low && x.Check(s) != nil; s.DP = uint32(dp) {
			dp--
		}
		switch {
		case dp < low:
			low = mid + 1
		case x.wouldWait(s) == "":
			most, low = dp, mid+1
		default:
			high = dp - 1
		}
	}
	return most, why
}

func (x Claims) wouldWait(s proto.JobSpec) string {
	if len(x.c.jobs.all) >= proto.MaxJobs {
		return fmt.Sprintf("%d jobs are there, the most that there can be", len(x.c.jobs.all))
	}
	list, added := x.with("", s)
	x.c.designer.at(x.c.Evidence.standing()).start(list)
	if added.runs() {
		return ""
	}
	return cmp.Or(added.why, "its servers are another job's")
}

// Claim enters a job into the list, where it has servers at once or waits its
// turn; 0: the list is full. It is called when Ready.
func (x Claims) Claim(owner string, s proto.JobSpec) proto.JobID {
	if len(x.c.jobs.all) >= proto.MaxJobs {
		return 0
	}
	list, added := x.with(owner, s)
	x.c.named = added.spec.Job
	takeList(x.c, x.c.design(list, true))
	return added.spec.Job
}

// Release takes a job out of the list.
func (x Claims) Release(id proto.JobID) {
	if x.c.jobs.find(id) == nil {
		return
	}
	list := slices.DeleteFunc(copyJobs(x.c.jobs.all), func(j *job) bool { return j.spec.Job == id })
	takeList(x.c, x.c.design(list, true))
}

// Lent is what each job that has a name has.
func (x Claims) Lent() map[proto.JobID]*Lent {
	c, e, out := x.c, x.c.Evidence, map[proto.JobID]*Lent{}
	lit, _, _ := e.lit()
	made, d := e.out.made(e.maps), c.designer.at(e.standing())
	for _, j := range c.jobs.all {
		if j.owner != "" {
			s := c.jobStatus(j, lit)
			gpus, _, part := e.lost(d, j)
			out[j.spec.Job] = &Lent{JobStatus: s, GPUs: j.placed.GPUs(), Told: made[s.Job] >= int(s.Granted), Quiet: c.Quiet(), Lost: gpus, Out: part, Why: e.out.why[part]}
		}
	}
	for s := range e.switches {
		for _, w := range e.wanted(s) {
			if l := out[w.Job]; l != nil && l.Dark == "" && l.Realised < l.Granted && e.out.hits(slot{s, w.A, w.B}) == "" {
				if state := e.stateOf(s, w); !state.Lit() {
					l.Dark = fmt.Sprintf("switch %d: port %d to %d is %s", s, w.A, w.B, state)
					if why := e.switches[s].whyUnable(); why != "" {
						l.Dark = fmt.Sprintf("switch %d: %s", s, why)
					}
				}
			}
		}
	}
	return out
}

// Describe is a job with where its ranks are.
func (x Claims) Describe(id proto.JobID) (s proto.JobStatus) {
	if j := x.c.jobs.find(id); j != nil {
		lit, _, _ := x.c.Evidence.lit()
		s = x.c.jobStatus(j, lit)
		describe(x.c, j, &s)
	}
	return s
}

// Ranks are a job's GPUs in the order of its ranks.
func (x Claims) Ranks(id proto.JobID) Ranks {
	if j := x.c.jobs.find(id); j != nil {
		return ranksOf(x.c.Evidence.fab, x.c.designer, j)
	}
	return Ranks{}
}

// Routes gives, outside of a step, what leaves, spines and servers do with a job's
// packets, and why some have no route.
func (x Claims) Routes(id proto.JobID) func() ([]Route, string) {
	j := x.c.jobs.find(id)
	if j == nil {
		return nil
	}
	from := x.c.Evidence.standing()
	from.maps, from.bad = slices.Clone(from.maps), maps.Clone(from.bad)
	d := x.c.designer.at(from)
	return func() ([]Route, string) { return routesOf(d, j) } // a job is replaced, never changed
}

// Stamp stands for where a job is and what of that is gone: as long as it is the same,
// so are its routes.
func (x Claims) Stamp(id proto.JobID) string {
	stamp := fmt.Sprintf("%s %d", x.c.jobs.saved[id], x.c.Evidence.lapses)
	if x.c.Evidence.fab.Backup {
		stamp += fmt.Sprintf(" %d", x.c.Table.Numbers.Decided)
	}
	return stamp
}

// Parts are those that are out, in order.
func (x Claims) Parts() []string { return slices.Sorted(maps.Keys(x.c.Evidence.out.why)) }

// IDs are the numbers of all jobs.
func (x Claims) IDs() (ids []proto.JobID) {
	for _, j := range x.c.jobs.all {
		ids = append(ids, j.spec.Job)
	}
	return ids
}

// Links are a job's links between leaves and spines, where jobs are alone on them.
func (x Claims) Links(id proto.JobID) (out []fabric.LeafLink) {
	if j := x.c.jobs.find(id); j != nil && j.own != nil {
		for _, l := range j.own.Links {
			out = append(out, fabric.LeafLink(l))
		}
	}
	return out
}

// takeList makes a design the wanted one.
func takeList(c *Circuits, d design) {
	was := c.jobs.all
	c.jobs.all, c.Change, c.Stages.todo = d.jobs, d.change, nil
	c.agenda.unreported = true
	c.saveJobs()
	c.j.Note(journal.Info, "job list taken", journal.Note{Rule: "apply", Node: -1, Cause: proto.CauseOperator,
		Text: fmt.Sprintf("%d jobs, %d wait, %d stages", len(d.jobs), len(d.change.Waiting), len(d.stages))})
	noteStarts(c, was)
	if c.Stages.rests() && !c.Stages.open.active() {
		c.Stages.todo = d.stages
	}
	c.agenda.replan(0)
}

// named are the jobs of a list that it cannot end.
func (l *jobList) named() (out []*job) {
	for _, j := range l.all {
		if j.owner != "" {
			out = append(out, j)
		}
	}
	return out
}

// refuseNamed says which job of a list has a number that one with a name has, or
// that there are too many.
func (l *jobList) refuseNamed(list []proto.JobSpec) *proto.Error {
	for i, s := range list {
		if j := l.find(s.Job); j != nil && j.owner != "" {
			return &proto.Error{Code: proto.Invalid, Field: fmt.Sprintf("jobs[%d].id", i), Limit: "a number that no job has", Reason: fmt.Sprintf("%d is job %s, which was asked for by name", s.Job, j.owner)}
		}
	}
	if n := len(l.named()); len(list)+n > proto.MaxJobs {
		return &proto.Error{Code: proto.Invalid, Field: "jobs", Limit: fmt.Sprintf("at most %d beside the %d that have names", proto.MaxJobs-n, n), Reason: fmt.Sprint(len(list))}
	}
	return nil
}
