package core

import (
	"slices"

	"ringlight/proto"
)

// designer is what differs between kinds of core: which jobs there can be,
// where they go and which circuits that takes. All that is done with circuits
// afterwards is the same.
type designer interface {
	// at is the designer of where circuits stand.
	at(from standing) designer
	// check says what is wrong with a job whose numbers are right, if anything.
	check(s *proto.JobSpec, bad wrongJob) *proto.Error
	// design finds out what jobs come to from what is committed, and changes
	// nothing. The jobs are its own; list says that they are a new list.
	design(jobs []*job, list bool) design
	// start lets those of a new list start whose turn it is, as design does, and
	// looks for no circuits.
	start(jobs []*job)
	// places are the GPUs of a job by rank.
	places(j *job) []Place
	// lost is how many links of a job nothing carries though it was given them, and
	// the part with which the first of them is gone, if it is.
	lost(j *job) (links int, part string)
	// describe fills in what an operator who asks for this one job sees beyond
	// its state.
	describe(j *job, s *proto.JobStatus)
}

// wrongJob makes the error about a field of a job of a list.
type wrongJob func(field, limit, format string, args ...any) *proto.Error

// standing is what a design starts from.
type standing struct {
	known *jobList               // as committed
	maps  []crossMap             // as committed
	bad   map[slot]proto.Session // circuits that did not come up, and in whose life
	able  []bool                 // by map: its switches can be told
	dark  uint32                 // microseconds, the longest that a change took so far
	out   out                    // what nobody is given
	nowMS int64                  // wall clock: only for durations that operators declare
}

// design is what a job list comes to.
type design struct {
	jobs   []*job
	maps   []crossMap
	stages [][]mapSet
	change proto.ChangeStatus
}

// design is what jobs come to from there.
func (c *Circuits) design(jobs []*job, list bool) design {
	return c.designer.at(c.Evidence.standing()).design(copyJobs(jobs), list)
}

// failed: a circuit of a link did not come up, or is out.
func (s *standing) failed(of []slot) bool {
	return slices.ContainsFunc(of, func(x slot) bool { return s.bad[x] != 0 || s.out.hits(x) != "" })
}

// notDirect refuses what is only of servers joined directly.
func notDirect(s *proto.JobSpec, bad wrongJob) *proto.Error {
	switch {
	case s.Topology != nil:
		return bad("topology", "a direct core", "given, and this one has leaves")
	case len(s.Phases) > 0:
		return bad("phases", "a direct core", "given, and this one has leaves")
	case s.Next != 0:
		return bad("next", "a direct core", "%d, and this one has leaves", s.Next)
	}
	return nil
}

// accountAlone fills in the figures of a design in which jobs share no link.
func (d *design) accountAlone(from *standing) {
	s, c := &d.change, from.out.layout
	s.Stages = uint32(len(d.stages))
	runs := map[proto.JobID]bool{}
	for _, j := range d.jobs {
		runs[j.spec.Job] = j.runs()
	}
	for at, m := range d.maps {
		made, gone := c.difference(from.maps[at], m)
		s.Created += uint32(made)
		s.Removed += uint32(gone)
		c.links(at, from.maps[at], func(i, j int32, id proto.JobID) {
			switch link := c.slots(at, i, j); {
			case !runs[id], sendsBeside(link, from.maps, id), sendsBeside(link, d.maps, id): // or is dark
			case m.to[i] == j && m.job[i] == id:
				s.Kept++
			default:
				s.Moved++
			}
		})
	}
	if s.Moved > 0 {
		s.DarkMicros = from.dark
	}
	d.accountJobs(&from.out)
}
