package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
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
		return aloneLists(core, seed, lists, allServers(core))
	}
	return jobLists(core, seed, lists, allServers(core), mix)
}

// jobLists are those of a core between pods, for as many servers as each list may have.
func jobLists(core *fabric.Core, seed uint64, lists int, room func(list int) int, mix []proto.Collective) []string {
	type job struct {
		text    string
		servers int
	}
	draw, kind := random{seed: detmath.Hash(seed, streamJobs)}, random{seed: detmath.Hash(seed, streamCollectives)}
	var out []string
	var list []job
	id := 0
	for n := range lists {
		used, servers := 0, room(n)
		going := list[:0]
		for _, j := range list {
			if !draw.chance(350_000) && used+j.servers <= servers {
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
		out = append(out, listOf(list, func(j job) string { return j.text }))
	}
	return out
}

// listOf is a list of jobs as a script has it.
func listOf[J any](list []J, word func(J) string) string {
	return cmp.Or(strings.Join(each(list, word), " "), noJobs)
}

// each is what of says to every one of a list, in its order.
func each[S, T any](list []S, of func(S) T) (out []T) {
	for _, x := range list {
		out = append(out, of(x))
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
		var err error
		switch kind, text := entryOf(list); kind {
		case "":
			r.inject.operate(&Fault{Verb: JobsApply, Jobs: list})
		case coreEdit:
			err = r.audit.circuits.grows(text)
		case goTraffic:
			err = r.audit.circuits.counted(text)
		case goPhases:
			var asks []proto.OpRequest
			asks, err = parsePhases(text)
			for _, q := range asks {
				r.asked++
				q.Corr = corrOf(r.asked)
				r.inject.ask(q)
				r.atCore.Turns++
			}
		default:
			err = r.audit.circuits.fails(kind, text)
		}
		if err != nil {
			return err
		}
		if err := r.runTo(r.now + time.Second); err != nil {
			return err
		}
		if err := r.until(what, coreEvery, listWithin, r.coreStands); err != nil {
			return err
		}
		r.audit.done(false)
		r.audit.circuits.still = false
	}
	if r.cfg.Span > 0 {
		return nil
	}
	return r.tell(func() bool { return r.audit.lost() == 0 })
}

// parseDirect reads a job of a direct core: JOB:SERVERSs/DEGREE, with mp behind
// the degree where every server also sends to others, *N where it does so in the second
// of N phases and the next but one in the third, and >JOB where it is next to one. ok: it
// has that form.
func parseDirect(word string) (s proto.JobSpec, ok bool, err error) {
	if !strings.Contains(word, "s/") {
		return s, false, nil
	}
	form, next, follows := strings.Cut(word, ">")
	form, many, _ := strings.Cut(form, "*")
	form, mp := strings.CutSuffix(form, "mp")
	t := new(proto.JobTopology)
	var more string
	if n, _ := fmt.Sscanf(form+" .", "%d:%ds/%d%s", &s.Job, &s.Servers, &t.Degree, &more); n != 4 || more != "." {
		return s, false, fmt.Errorf("job %q", word)
	}
	if follows {
		if n, _ := fmt.Sscanf(next+" .", "%d%s", &s.Next, &more); n != 2 || more != "." {
			return s, false, fmt.Errorf("job %q", word)
		}
	}
	s.TP, s.EP, s.PP, s.Topology = 1, 1, 1, t
	t.Bidirectional, t.Seed = t.Degree%2 == 0, uint64(s.Job)
	all := proto.Reduce{Bytes: 1 << 30}
	for x := range s.Servers {
		all.Servers = append(all.Servers, uint16(x))
		if to := (x*7 + 3) % s.Servers; mp && to != x {
			t.MP = append(t.MP, proto.Demand{From: uint16(x), To: uint16(to), Bytes: 1 << 26})
		}
	}
	if s.Servers > 1 {
		t.AllReduce = []proto.Reduce{all}
	}
	if many == "" {
		return s, true, nil
	}
	phases, err := strconv.Atoi(many)
	if err != nil || phases < 2 || phases > maxPhases || s.Servers < 2 {
		return s, false, fmt.Errorf("job %q: phases", word)
	}
	for p := range phases {
		t := *t
		for x := range s.Servers * uint32(min(p, 1)) {
			if to := (x + uint32(p)) % s.Servers; to != x {
				t.MP = append(slices.Clip(t.MP), proto.Demand{From: uint16(x), To: uint16(to), Bytes: 1 << 28})
			}
		}
		s.Phases = append(s.Phases, proto.JobPhase{Name: phaseName(p), Topology: t})
	}
	s.Topology = nil
	return s, true, nil
}

// allServers: a list may have all servers of a core.
func allServers(core *fabric.Core) func(int) int { return func(int) int { return core.Servers() } }

func directLists(core *fabric.Core, seed uint64, lists int, room func(list int) int, ahead bool) []string {
	type job struct{ id, servers, degree, mp, next int }
	draw := random{seed: detmath.Hash(seed, streamJobs)}
	degree := core.Degree
	var out []string
	var list []job
	id := 0
	fresh := func(servers, next int) job {
		id++
		d := 1 + draw.below(degree)
		if draw.chance(700_000) {
			d = degree
		}
		return job{id, servers, d, draw.below(2), next}
	}
	for n := range lists {
		all, gone := room(n), map[int]bool{}
		for _, j := range list {
			if j.next == 0 && draw.chance(400_000) || j.servers > all {
				gone[j.id] = true
			}
		}
		list = slices.DeleteFunc(list, func(j job) bool { return gone[j.id] })
		used, waited := 0, map[int]bool{}
		for n := range list {
			j := &list[n]
			if gone[j.next] {
				j.next = 0
			}
			if waited[j.next] = true; j.next == 0 {
				used += j.servers
			}
		}
		for _, j := range slices.Clone(list) {
			if ahead && j.next == 0 && !waited[j.id] && draw.chance(600_000) {
				list = append(list, fresh(2+draw.below(j.servers-1), j.id))
			}
		}
		for tries := 0; used < all && tries < 4; tries++ {
			if n := 2 + draw.below(max(2, all/2)); used+n <= all {
				list = append(list, fresh(n, 0))
				used += n
			}
		}
		out = append(out, listOf(list, func(j job) string {
			text := fmt.Sprintf("%d:%ds/%d", j.id, j.servers, j.degree)
			if j.mp > 0 {
				text += "mp"
			}
			if j.next > 0 {
				text += fmt.Sprintf(">%d", j.next)
			}
			return text
		}))
	}
	return out
}

// parseAlone reads a job of a leaf-spine core: JOB:GPUSg, JOB:GPUSg/DURATION
// or JOB:GPUSg/DURATION/PAUSE, with what it declares to take and how long it may
// be dark to make room. ok: it has that form.
func parseAlone(word string) (s proto.JobSpec, ok bool, err error) {
	form := strings.Split(word, "/")
	if !strings.HasSuffix(form[0], "g") {
		return s, false, nil
	}
	var more string
	if n, _ := fmt.Sscanf(form[0]+" .", "%d:%dg%s", &s.Job, &s.DP, &more); n != 3 || more != "." || len(form) > 3 {
		return s, false, fmt.Errorf("job %q", word)
	}
	s.TP, s.EP, s.PP = 1, 1, 1
	for n, to := range [2]*uint64{&s.DurationMillis, &s.MayPauseMillis} {
		if n+1 >= len(form) {
			break
		}
		d, err := time.ParseDuration(form[n+1])
		if err != nil || d < 0 {
			return s, false, fmt.Errorf("job %q: %q is no duration", word, form[n+1])
		}
		*to = uint64(d.Milliseconds())
	}
	return s, true, nil
}

// aloneLists draws lists of jobs of all sizes that the empty core has room for,
// for up to one and a half times what there is: some wait.
func aloneLists(core *fabric.Core, seed uint64, lists int, room func(list int) int) []string {
	type job struct{ id, gpus int }
	draw := random{seed: detmath.Hash(seed, streamJobs)}
	sizes := AloneSizes(core)
	var out []string
	var list []job
	id := 0
	for n := range lists {
		used, all := 0, room(n)*core.GPUsPerServer
		list = slices.DeleteFunc(list, func(job) bool { return draw.chance(350_000) })
		for _, j := range list {
			used += j.gpus
		}
		for tries := 0; used < all && tries < 6; tries++ {
			n := sizes[draw.below(len(sizes))]
			for again := 0; n <= core.GPUsPerLeaf && again < 2; again++ { // most go beyond a leaf
				n = sizes[draw.below(len(sizes))]
			}
			if used+n <= all*3/2 {
				id++
				list = append(list, job{id, n})
				used += n
			}
		}
		out = append(out, listOf(list, func(j job) string { return fmt.Sprintf("%d:%dg/%ds", j.id, j.gpus, 60+j.gpus) }))
	}
	return out
}

// AloneSizes are numbers of GPUs, up to half of all: parts of a server, servers
// of a leaf, and l x s of whole servers.
func AloneSizes(core *fabric.Core) []int {
	t, leaf, spines := core.GPUsPerServer, core.GPUsPerLeaf, core.Spines
	var sizes []int
	add := func(n int) {
		if n <= core.Leaves()*leaf/2 && !slices.Contains(sizes, n) {
			sizes = append(sizes, n)
		}
	}
	for n := 1; n <= t; n++ {
		add(n)
	}
	for n := t; n <= leaf; n += t {
		add(n)
	}
	for l := 2; l <= core.Leaves(); l++ {
		for s := t; s <= min(spines, leaf); s += t {
			add(l * s)
		}
	}
	return sizes
}
