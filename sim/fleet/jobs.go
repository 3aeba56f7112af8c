package fleet

import (
	"fmt"
	"strings"
	"time"

	"ringlight/mzi/detmath"
	"ringlight/planner/fabric"
	"ringlight/proto"
)

// jobForm is a job in a list of them: servers, and GPUs or stages of its
// domains. A collective that is no ring follows after another stroke.
const jobForm = "%d:%d/%d/%d/%d"

// noJobs is an empty list.
const noJobs = "none"

// parseJobs reads a list of jobs: JOB:SERVERS/TP/EP/PP or
// JOB:SERVERS/TP/EP/PP/COLLECTIVE, one after the other, or of a leaf-spine or
// direct core as parseAlone and parseDirect have them.
func parseJobs(text string) ([]proto.JobSpec, error) {
	list := []proto.JobSpec{}
	if text == noJobs {
		return list, nil
	}
	for word := range strings.FieldsSeq(text) {
		var s proto.JobSpec
		var more string
		alone, ok, err := parseAlone(word)
		if !ok && err == nil {
			alone, ok, err = parseDirect(word)
		}
		if err != nil {
			return nil, err
		} else if ok {
			list = append(list, alone)
			continue
		}
		form := strings.SplitN(word, "/", 5)
		if len(form) == 5 {
			var wrong *proto.Error
			if s.Collective, wrong = proto.ParseCollective(form[4]); wrong != nil {
				return nil, fmt.Errorf("job %q: %w", word, wrong)
			}
			word = strings.Join(form[:4], "/")
		}
		if n, _ := fmt.Sscanf(word+" .", jobForm+"%s", &s.Job, &s.Servers, &s.TP, &s.EP, &s.PP, &more); n != 6 || more != "." {
			return nil, fmt.Errorf("job %q", word)
		}
		list = append(list, s)
	}
	if len(list) > proto.MaxJobs {
		return nil, fmt.Errorf("%d jobs, at most %d", len(list), proto.MaxJobs)
	}
	return list, nil
}

// JobLists draws job lists for a core that follow one another, as a script has
// them: in each some jobs have ended, some go on and some are new. Each new one
// does one of the collectives; where none are given, all have rings.
func JobLists(core *fabric.Core, seed uint64, lists int, mix ...proto.Collective) []string {
	if core.LeafSpine != nil {
		return aloneLists(core, seed, lists)
	}
	type job struct {
		text    string
		servers int
	}
	draw, kind := random{seed: detmath.Hash(seed, streamJobs)}, random{seed: detmath.Hash(seed, streamCollectives)}
	servers := core.Servers()
	var out []string
	var list []job
	id := 0
	for range lists {
		used := 0
		going := list[:0]
		for _, j := range list {
			if !draw.chance(350_000) {
				going = append(going, j)
				used += j.servers
			}
		}
		list = going
		for tries := 0; used < servers && tries < 4; tries++ {
			tp, pp := 1<<draw.below(2), 1<<draw.below(2)
			whole := tp * pp // servers of a replica
			n := (2 + draw.below(max(2, servers/2))) / whole * whole
			if n == 0 || used+n > servers {
				continue
			}
			id++
			text := fmt.Sprintf(jobForm, id, n, tp*core.GPUsPerServer, 1, pp)
			if len(mix) > 0 {
				if c := mix[kind.below(len(mix))]; c != proto.CollectiveRing {
					text += "/" + c.String()
				}
			}
			list = append(list, job{text, n})
			used += n
		}
		text := noJobs
		if len(list) > 0 {
			words := make([]string, len(list))
			for i := range list {
				words[i] = list[i].text
			}
			text = strings.Join(words, " ")
		}
		out = append(out, text)
	}
	return out
}

// streamJobs is the stream of job lists, beside those of station.go.
const streamJobs = 64

// streamCollectives is that of what jobs do.
const streamCollectives = 66

// Strikes draws one fault in each of the first commits of a run, and one more
// in some: an agent dies in the middle of every stage, the planner or the
// broker in some of them.
func Strikes(seed uint64, commits int) []Fault {
	draw := random{seed: detmath.Hash(seed, streamFaults)}
	var out []Fault
	for n := range commits {
		f := Fault{Commit: n + 1, Verb: AgentCrash, At: draw.between(0, 150*time.Millisecond), Node: proto.FirstSwitch,
			Stage: 1 + draw.below(1<<16), For: draw.between(10*time.Millisecond, 5*time.Second)}
		out = append(out, f)
		if draw.chance(300_000) {
			f.At, f.For = draw.between(0, 500*time.Millisecond), draw.between(time.Second, 8*time.Second)
			f.Verb = []Verb{AgentCrash, PlannerKill, BrokerDown}[draw.below(3)]
			if f.Stage = 1 + draw.below(1<<16); f.Verb != AgentCrash {
				f.Node, f.Stage = 0, 0
			}
			out = append(out, f)
		}
	}
	return out
}

// jobs applies one list of jobs after the other. Where nothing follows it waits
// for the events too: a list stands before they are all told, since one that was
// lost on its way is sent again up to 16 s later.
func (r *Run) jobs() error {
	p := r.planners[0]
	for n, list := range r.cfg.Jobs {
		what := fmt.Sprintf("job list %d", n)
		if err := r.until("a planner for "+what, time.Second, listWithin, func() bool { return p.host != nil && p.up }); err != nil {
			return err
		}
		r.inject.operate(&Fault{Verb: JobsApply, Jobs: list})
		if err := r.runTo(r.now + time.Second); err != nil {
			return err
		}
		if err := r.until(what, coreEvery, listWithin, r.coreStands); err != nil {
			return err
		}
		r.audit.done(false)
	}
	if r.cfg.Span > 0 {
		return nil
	}
	return r.tell(func() bool { return r.audit.lost() == 0 })
}
