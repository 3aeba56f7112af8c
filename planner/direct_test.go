package planner

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/topo"
	"ringlight/proto"
)

func directCore(servers, degree int) *fabric.Core {
	return &fabric.Core{Kind: fabric.KindDirect, GPUsPerServer: 4, Direct: &fabric.Direct{Servers: servers, Degree: degree}}
}

// shardJob asks for servers of a direct core, with all-to-all traffic of some
// kind where mp says so.
func shardJob(id, servers, degree, next int, mp bool) proto.JobSpec {
	t := &proto.JobTopology{Degree: uint32(degree), Bidirectional: degree%2 == 0, Seed: uint64(id)}
	group := proto.Reduce{Bytes: 1 << 30}
	for x := range servers {
		group.Servers = append(group.Servers, uint16(x))
		if to := (x*7 + 3) % servers; mp && to != x {
			t.MP = append(t.MP, proto.Demand{From: uint16(x), To: uint16(to), Bytes: 1 << 28})
		}
	}
	t.AllReduce = []proto.Reduce{group}
	return proto.JobSpec{Job: proto.JobID(id), TP: 1, EP: 1, PP: 1, Servers: uint32(servers), Next: proto.JobID(next), Topology: t}
}

// sharded is what the store says that a job has.
type sharded struct {
	Spec  proto.JobSpec `json:"spec"`
	Shard *struct {
		Servers  []int
		Path     []uint8
		Layers   [][]int
		Active   bool
		Phase    int
		Measured []proto.JobTopology
	} `json:"shard"`
}

// phased gives a job that many phases, each with traffic of its own.
func phased(s proto.JobSpec, phases int) proto.JobSpec {
	for p := range phases {
		t := *s.Topology
		t.Seed += uint64(p)
		if t.MP = nil; p > 0 {
			for x := range int(s.Servers) {
				if to := (x + p) % int(s.Servers); to != x {
					t.MP = append(t.MP, proto.Demand{From: uint16(x), To: uint16(to), Bytes: 1 << 28})
				}
			}
		}
		s.Phases = append(s.Phases, proto.JobPhase{Name: fmt.Sprint("p", p), Topology: t})
	}
	s.Topology = nil
	return s
}

// traffic is that of the phase that a job is in.
func (s *sharded) traffic() *proto.JobTopology {
	if len(s.Shard.Measured) > 0 {
		return &s.Shard.Measured[s.Shard.Phase]
	}
	if len(s.Spec.Phases) > 0 {
		return &s.Spec.Phases[s.Shard.Phase].Topology
	}
	return s.Spec.Topology
}

func (w *coreWorld) shards() (out []sharded) {
	for k, raw := range w.store { // any order: sorted below
		if strings.HasPrefix(k, "job/") {
			var s sharded
			if err := json.Unmarshal(raw, &s); err != nil {
				w.t.Fatal(err)
			}
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b sharded) int { return int(a.Spec.Job) - int(b.Spec.Job) })
	return out
}

// sharedFibre says what two jobs have in common that nobody may share.
func (w *coreWorld) sharedFibre() string {
	fibres, runs := map[[2]int]proto.JobID{}, map[int]proto.JobID{}
	for _, j := range w.shards() {
		if j.Shard == nil {
			continue
		}
		for rank, s := range j.Shard.Servers {
			at := [2]int{s, int(j.Shard.Path[rank])}
			if other, taken := fibres[at]; taken {
				return fmt.Sprintf("jobs %d and %d share fibre %d of server %d", other, j.Spec.Job, at[1], s)
			}
			if other, taken := runs[s]; taken && j.Shard.Active {
				return fmt.Sprintf("jobs %d and %d run on server %d", other, j.Spec.Job, s)
			}
			if fibres[at] = j.Spec.Job; j.Shard.Active {
				runs[s] = j.Spec.Job
			}
			if at[1] = 1 - at[1]; j.Shard.Active && len(j.Spec.Phases)+len(j.Shard.Measured) > 1 {
				if other, taken := fibres[at]; taken {
					return fmt.Sprintf("jobs %d and %d, which has phases, share fibre %d of server %d", other, j.Spec.Job, at[1], s)
				}
				fibres[at] = j.Spec.Job
			}
		}
	}
	return ""
}

// joined follows a job's links through what switches and transceivers carry:
// which server hears which, by layer. Counted by hand, not by the fabric.
func (w *coreWorld) joined(id proto.JobID) map[[2]int]int {
	d := w.fab.Core.Direct
	out := map[[2]int]int{}
	for layer := range d.Degree {
		for a, x := range w.switches[layer].light { // any order: into a map
			if x.job != id {
				continue
			}
			from, to := int(a)%d.Servers, int(x.b)%d.Servers
			sends, hears := w.switches[d.Degree+from].light[uint16(layer)], w.switches[d.Degree+to].light[uint16(layer)]
			if sends.job == id && hears.job == id && int(sends.b) == layer+int(a)/d.Servers*d.Degree && int(hears.b) == layer+int(x.b)/d.Servers*d.Degree {
				out[[2]int{layer, from}] = to
			}
		}
	}
	return out
}

// asFound is what joined must be: the topology that planner/topo finds.
func asFound(t *testing.T, traffic *proto.JobTopology, servers []int) map[[2]int]int {
	t.Helper()
	r := topo.Request{Servers: len(servers), Degree: int(traffic.Degree), Bidirectional: traffic.Bidirectional, Seed: traffic.Seed}
	for _, g := range traffic.AllReduce {
		group := topo.Group{Bytes: int64(g.Bytes)}
		for _, x := range g.Servers {
			group.Servers = append(group.Servers, int(x))
		}
		r.AllReduce = append(r.AllReduce, group)
	}
	for _, d := range traffic.MP {
		r.MP = append(r.MP, topo.Demand{From: int(d.From), To: int(d.To), Bytes: int64(d.Bytes)})
	}
	found, err := topo.Find(r)
	if err != nil {
		t.Fatal(err)
	}
	out := map[[2]int]int{}
	for layer, l := range found.Layers {
		for a, b := range l.To {
			if b >= 0 {
				out[[2]int{layer, servers[a]}] = servers[b]
			}
		}
	}
	return out
}

// Goal: four jobs of degree 4 on 32 servers have, by light, the links that their
// topologies have, and rings whose order is that light. Method: each link is
// followed from interface to interface through transceivers and layers.
func TestDirectJobsHaveTheirTopologies(t *testing.T) {
	w := startedWorld(t, directCore(32, 4))
	jobs := []proto.JobSpec{shardJob(1, 8, 4, 0, false), shardJob(2, 12, 4, 0, true), shardJob(3, 5, 4, 0, true), shardJob(4, 7, 4, 0, false)}
	if r := w.apply(jobs...); r.Code != proto.OK || r.Change.Placed != 4 {
		t.Fatalf("%+v", r)
	}
	if !w.quiet(10 * time.Second) {
		t.Fatal(w.show())
	}
	if text := w.sharedFibre() + w.consistent(); text != "" {
		t.Fatal(text)
	}
	for n, s := range w.shards() {
		got := w.joined(s.Spec.Job)
		if want := asFound(t, jobs[n].Topology, s.Shard.Servers); !reflect.DeepEqual(got, want) {
			t.Errorf("job %d: light joins %v, its topology has %v", s.Spec.Job, got, want)
		}
		r := w.tell(proto.OpRequest{Noun: proto.NounJob, Job: s.Spec.Job})
		if len(r.Jobs[0].Rings) == 0 || len(r.Jobs[0].Seats) != len(s.Shard.Servers) || r.Jobs[0].State != proto.JobRealised {
			t.Fatalf("%+v", r.Jobs[0])
		}
		for _, ring := range r.Jobs[0].Rings {
			for i, from := range ring.Servers {
				to := ring.Servers[(i+1)%len(ring.Servers)]
				if !slices.ContainsFunc(ring.Layers, func(l uint16) bool { return got[[2]int{int(l), int(from)}] == int(to) }) {
					t.Errorf("job %d: ring %v has %d before %d, and no light from one to the other", s.Spec.Job, ring, from, to)
				}
			}
		}
	}
}

// Goal: the next job is provisioned while the one before it runs untouched, and
// starts by a flip of transceivers alone, when the operator says so or when that
// job ends. Method: three jobs after one another on the same servers; mirrors
// and transceivers that were told are counted.
func TestNextJobStartsWithAFlip(t *testing.T) {
	w := startedWorld(t, directCore(8, 2))
	one, two, three := shardJob(1, 6, 2, 0, false), shardJob(2, 5, 2, 1, false), shardJob(3, 6, 2, 2, false)
	w.apply(one)
	w.quiet(10 * time.Second)
	before := w.joined(1)
	if r := w.apply(one, two, three); r.Code != proto.OK || len(r.Change.Waiting) != 1 || r.Change.Moved != 0 {
		t.Fatalf("%+v", r)
	}
	if !w.quiet(10*time.Second) || !reflect.DeepEqual(w.joined(1), before) || len(w.joined(2)) != 0 {
		t.Fatalf("%v, was %v; of job 2 %v\n%s", w.joined(1), before, w.joined(2), w.show())
	}
	jobs := w.jobs()
	if jobs[1].State != proto.JobStandby || jobs[1].Realised != jobs[1].Granted || jobs[1].Next != 1 || jobs[2].State != proto.JobWaiting || jobs[2].Cause != proto.WaitTurn {
		t.Fatalf("%+v", jobs)
	}
	if r := w.ask(proto.OpRequest{Noun: proto.NounFlip, Job: 1}); r.Code != proto.Invalid || r.Field != "job" {
		t.Errorf("flip to a job that runs: %+v", r)
	}
	if r := w.ask(proto.OpRequest{Noun: proto.NounFlip, Job: 9}); r.Code != proto.NotFound {
		t.Errorf("flip to no job: %+v", r)
	}
	var stages []string
	w.trace = func(line string) {
		if strings.Contains(line, "circuits prepare") {
			stages = append(stages, line)
		}
	}
	if r := w.ask(proto.OpRequest{Noun: proto.NounFlip, Job: 2, DryRun: true}); r.Code != proto.OK || len(w.jobs()) != 3 {
		t.Errorf("%+v", r)
	}
	if r := w.ask(proto.OpRequest{Noun: proto.NounFlip, Job: 2}); r.Code != proto.OK || r.Change.Stages != 2 {
		t.Fatalf("%+v", r)
	}
	if !w.quiet(10 * time.Second) {
		t.Fatal(w.show())
	}
	// Transceivers first and alone: five servers flip. What mirrors do for job 3,
	// which is next now, comes after.
	if len(stages) != 2 || !strings.Contains(stages[0], "stage on 5 switches: 10 circuits removed, 10 made") {
		t.Errorf("%q", stages)
	}
	if got, want := w.joined(2), asFound(t, two.Topology, w.shards()[0].Shard.Servers); !reflect.DeepEqual(got, want) {
		t.Errorf("light joins %v, the topology has %v", got, want)
	}
	if jobs := w.jobs(); len(jobs) != 2 || jobs[0].State != proto.JobRealised || jobs[1].State != proto.JobStandby {
		t.Fatalf("%+v", jobs)
	}
	if r := w.apply(three); r.Code != proto.OK { // job 2 ends
		t.Fatalf("%+v", r)
	}
	if !w.quiet(10*time.Second) || w.jobs()[0].State != proto.JobRealised || w.consistent() != "" {
		t.Fatal(w.show(), w.consistent())
	}
}

// Goal: what cannot be is refused with its field and its limit, and nothing of
// the list is done.
func TestDirectJobsThatCannotBe(t *testing.T) {
	w := startedWorld(t, directCore(8, 4))
	good := shardJob(1, 4, 4, 0, false)
	for name, c := range map[string]struct {
		change func(*proto.JobSpec)
		field  string
		limit  string
	}{
		"odd degree":       {func(s *proto.JobSpec) { s.Topology.Degree, s.Topology.Bidirectional = 3, true }, "topology.degree", "even"},
		"over the ports":   {func(s *proto.JobSpec) { s.Topology.Degree = 6 }, "topology.degree", "1 to 4"},
		"no degree":        {func(s *proto.JobSpec) { s.Topology.Degree = 0 }, "topology.degree", "1 to"},
		"disconnected":     {func(s *proto.JobSpec) { s.Topology.AllReduce[0].Servers = []uint16{0, 1} }, "topology.allreduce", "all 4 servers"},
		"not its server":   {func(s *proto.JobSpec) { s.Topology.AllReduce[0].Servers[2] = 9 }, "topology.allreduce[0].group[2]", "0 to 3"},
		"sends to itself":  {func(s *proto.JobSpec) { s.Topology.MP = []proto.Demand{{From: 2, To: 2, Bytes: 1}} }, "topology.mp[0]", "two servers"},
		"no bytes":         {func(s *proto.JobSpec) { s.Topology.AllReduce[0].Bytes = 0 }, "topology.allreduce[0].bytes", "1 to"},
		"no such method":   {func(s *proto.JobSpec) { s.Topology.Method = 7 }, "topology.method", "random"},
		"next to itself":   {func(s *proto.JobSpec) { s.Next = 1 }, "next", "another"},
		"too many servers": {func(s *proto.JobSpec) { s.Servers = 9 }, "servers", "8"},
		"pods":             {func(s *proto.JobSpec) { s.Pods = []uint16{0} }, "pods", "none"},
		"a collective":     {func(s *proto.JobSpec) { s.Collective = proto.CollectiveAllToAll }, "collective", "ring"},
		"a duration":       {func(s *proto.JobSpec) { s.DurationMillis = 5 }, "duration_ms", "leaf-spine"},
	} { // any order: each by itself
		s := shardJob(1, 4, 4, 0, false)
		c.change(&s)
		r := w.apply(shardJob(2, 2, 4, 0, false), s)
		if r.Code != proto.Invalid || r.Field != "jobs[1]."+c.field || !strings.Contains(r.Limit, c.limit) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if len(w.jobs()) != 0 {
		t.Error(w.show())
	}
	for _, other := range []*fabric.Core{leafSpine(4, 4, 8, 2, 8), smallCore()} {
		o := startedWorld(t, other)
		if r := o.apply(good); r.Code != proto.Invalid || r.Field != "jobs[0].topology" {
			t.Errorf("%+v", r)
		}
		if r := o.apply(proto.JobSpec{Job: 1, TP: 1, EP: 1, PP: 1, Servers: 1, Next: 4}); r.Code != proto.Invalid || r.Field != "jobs[0].next" {
			t.Errorf("%+v", r)
		}
		if r := o.ask(proto.OpRequest{Noun: proto.NounFlip, Job: 1}); r.Code != proto.Unsupported {
			t.Errorf("%+v", r)
		}
	}
}

// Goal: no damage of a job's record makes two jobs share anything or the planner
// fail later. Method: every number of two records is changed, one at a time.
func TestDamagedShardsAreRefused(t *testing.T) {
	core := directCore(8, 2)
	w := startedWorld(t, core)
	w.apply(shardJob(1, 4, 2, 0, false), shardJob(2, 3, 2, 1, false))
	if !w.quiet(10 * time.Second) {
		t.Fatal(w.show())
	}
	number := regexp.MustCompile(`-?\d+`)
	refused, lived := 0, 0
	for _, key := range []string{"job/0000000001", "job/0000000002"} {
		was := string(w.store[key])
		for _, at := range number.FindAllStringIndex(was, -1) {
			for _, put := range []string{"-1", "3", "99999999"} {
				w.store[key] = []byte(was[:at[0]] + put + was[at[1]:])
				st := State{}
				for k, v := range w.store { // any order: sorted below
					st = append(st, Record{Key: k, Value: v})
				}
				slices.SortFunc(st, func(a, b Record) int { return strings.Compare(a.Key, b.Key) })
				if _, err := Start(st, w.fab, 7); err != nil {
					refused++
					continue
				}
				lived++
				other := startedStore(t, core, w.store)
				other.tell(proto.OpRequest{Noun: proto.NounJob, Job: 1})
				other.tell(proto.OpRequest{Noun: proto.NounJob, Job: 2})
				other.apply(shardJob(1, 4, 2, 0, false), shardJob(2, 3, 2, 1, false), shardJob(3, 2, 2, 0, false))
				other.run(time.Second)
			}
		}
		w.store[key] = []byte(was)
	}
	if refused < 50 || lived == 0 {
		t.Errorf("%d refused, %d lived with", refused, lived)
	}
}

// Goal: whatever happens to switches, transceivers and planner while jobs come,
// stand by, flip and go: no two jobs ever have one fibre, nor run on one server;
// a job that runs keeps its servers and its light; and in the end what is
// wanted, reported and lit is the same. Method: as for jobs on leaves and spines.
// RINGLIGHT_CIRCUIT_RUNS sets the number of seeds, RINGLIGHT_CIRCUIT_SEED names
// one to run again.
func TestDirectJobsUnderChurnAndFailures(t *testing.T) {
	runs, first := 40, 0
	if n, err := strconv.Atoi(os.Getenv("RINGLIGHT_CIRCUIT_RUNS")); err == nil {
		runs = n
	}
	if one, err := strconv.Atoi(os.Getenv("RINGLIGHT_CIRCUIT_SEED")); err == nil {
		runs, first = 1, one
	}
	var sum directChurn
	for seed := first; seed < first+runs && !t.Failed(); seed++ {
		directRun(t, uint64(seed), &sum)
	}
	t.Logf("%d runs: %+v", runs, sum)
	if runs > 20 && (sum.flips == 0 || sum.turns == 0 || sum.measured == 0 || sum.standby == 0 || sum.restarts == 0 || sum.followed == 0) {
		t.Errorf("the test shows little: %+v", sum)
	}
}

// without counts the links of a shard that mirrors or transceivers never light.
func (w *coreWorld) without(s sharded) (n int) {
	d := w.fab.Core.Direct
	for layer, to := range s.Shard.Layers {
		for a, b := range to {
			if b < 0 {
				continue
			}
			from, at := s.Shard.Servers[a], s.Shard.Servers[b]
			path, hears := int(s.Shard.Path[a]), int(s.Shard.Path[b])
			dark := w.switches[layer].broken[[2]uint16{uint16(from + path*d.Servers), uint16(at + hears*d.Servers)}]
			if s.Shard.Active {
				dark = dark || w.switches[d.Degree+from].broken[[2]uint16{uint16(layer), uint16(layer + path*d.Degree)}] ||
					w.switches[d.Degree+at].broken[[2]uint16{uint16(layer), uint16(layer + hears*d.Degree)}]
			}
			if dark {
				n++
			}
		}
	}
	return n
}

// besides: a fibre, a server or a place changed would leave no link without light.
func (w *coreWorld) besides(s sharded) bool {
	d := w.fab.Core.Direct
	used := map[int]bool{}
	for _, x := range w.shards() {
		if x.Shard != nil && x.Spec.Job != s.Spec.Job {
			for _, server := range x.Shard.Servers {
				used[server] = true
			}
		}
	}
	own := *s.Shard
	try := func(change func()) bool {
		s.Shard.Servers, s.Shard.Path = slices.Clone(own.Servers), slices.Clone(own.Path)
		change()
		return w.without(s) == 0
	}
	for rank, server := range own.Servers {
		if !used[server] && try(func() { s.Shard.Path[rank] = 1 - s.Shard.Path[rank] }) {
			return true
		}
		for y := range d.Servers {
			if !used[y] && !slices.Contains(own.Servers, y) && try(func() { s.Shard.Servers[rank], s.Shard.Path[rank] = y, 0 }) {
				return true
			}
		}
		for r := range own.Servers {
			if try(func() {
				x := s.Shard
				x.Servers[r], x.Servers[rank], x.Path[r], x.Path[rank] = x.Servers[rank], x.Servers[r], x.Path[rank], x.Path[r]
			}) {
				return true
			}
		}
	}
	return false
}

// Goal: a link that does not come up costs a running job no ring: a server takes its other
// fibre, and where that fails too another server; a job that comes later is not given it.
// Method: circuits of a running job that fail one after the other; jobs laid beside and
// after it.
func TestDirectJobMovesOffWhatIsDark(t *testing.T) {
	w := startedWorld(t, directCore(8, 2))
	d := w.fab.Core.Direct
	lit := func(id proto.JobID) sharded {
		t.Helper()
		if !w.quiet(10 * time.Minute) {
			t.Fatalf("no rest\n%s", w.show())
		}
		s := w.shards()[slices.IndexFunc(w.shards(), func(x sharded) bool { return x.Spec.Job == id })]
		if j := w.jobs()[slices.IndexFunc(w.jobs(), func(x proto.JobStatus) bool { return x.Job == id })]; j.State != proto.JobRealised || w.without(s) > 0 {
			t.Fatalf("%+v %+v\n%s", j, s.Shard, w.show())
		}
		if want := asFound(t, s.traffic(), s.Shard.Servers); !reflect.DeepEqual(w.joined(id), want) {
			t.Fatalf("light joins %v, its topology has %v", w.joined(id), want)
		}
		return s
	}
	list := []proto.JobSpec{shardJob(1, 4, 2, 0, false)}
	w.apply(list...)
	first := lit(1)
	fails := func(s sharded, rank int) { // what its interface 0 sends by that fibre
		v := &w.switches[d.Degree+s.Shard.Servers[rank]]
		at := [2]uint16{0, uint16(int(s.Shard.Path[rank]) * d.Degree)}
		v.broken[at], v.dead[at] = true, true
		w.report(v)
	}
	fails(first, 0)
	second := lit(1)
	if !slices.Equal(first.Shard.Servers, second.Shard.Servers) || second.Shard.Path[0] == first.Shard.Path[0] || !slices.Equal(first.Shard.Path[1:], second.Shard.Path[1:]) {
		t.Errorf("from %+v to %+v", first.Shard, second.Shard)
	}
	fails(second, 0)
	third := lit(1)
	if third.Shard.Servers[0] == second.Shard.Servers[0] || !slices.Equal(third.Shard.Servers[1:], second.Shard.Servers[1:]) {
		t.Errorf("from %+v to %+v", second.Shard, third.Shard)
	}
	list = append(list, shardJob(2, 3, 2, 0, false))
	w.apply(list...)
	if s := lit(2); slices.Contains(s.Shard.Servers, first.Shard.Servers[0]) {
		t.Errorf("job 2 has server %d, whose interface has no light: %+v", first.Shard.Servers[0], s.Shard)
	}
	w.apply(list[0], shardJob(3, 4, 2, 0, false))
	w.quiet(10 * time.Minute)
	if j := w.jobs()[1]; j.State != proto.JobWaiting || j.Cause != proto.WaitNetwork || !strings.Contains(j.Reason, "no light") {
		t.Errorf("no four servers can be joined: %+v", j)
	}
}

type directChurn struct{ lists, flips, turns, measured, standby, restarts, followed, mended, short int }

func directRun(t *testing.T, seed uint64, sum *directChurn) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 6))
	w := startedWorld(t, directCore(6+int(seed%3)*3, 2+int(seed)%3))
	d := w.fab.Core.Direct
	fail := func(format string, args ...any) {
		t.Errorf("seed %d at %v: %s\n%s", seed, w.now, fmt.Sprintf(format, args...), w.show())
	}
	at := map[proto.JobID]sharded{}
	w.trace = func(line string) {
		if os.Getenv("RINGLIGHT_TRACE_CIRCUITS") != "" {
			fmt.Println(w.now, line)
		}
		if strings.Contains(line, "starts by a flip") {
			sum.flips++
		}
		if strings.Contains(line, "turns to another phase") {
			sum.turns++
		}
		if text := w.sharedFibre(); text != "" {
			fail("%s", text)
		}
		for _, j := range w.shards() {
			if j.Shard == nil {
				continue
			}
			was, had := at[j.Spec.Job]
			switch now := fmt.Sprint(j.Shard.Servers, j.Shard.Path, j.Shard.Layers); {
			case had && (was.Shard.Phase != j.Shard.Phase || !reflect.DeepEqual(was.Shard.Measured, j.Shard.Measured)): // it turned
			case had && fmt.Sprint(was.Shard.Layers) != fmt.Sprint(j.Shard.Layers):
				fail("job %d has other rings: %v, %v", j.Spec.Job, was.Shard, j.Shard)
			case had && fmt.Sprint(was.Shard.Servers, was.Shard.Path, was.Shard.Layers) != now:
				if sum.mended++; w.without(was) == 0 {
					fail("job %d was at %v, where all may have light, and is at %v", j.Spec.Job, was.Shard, j.Shard)
				}
			}
			at[j.Spec.Job] = j
		}
	}
	var list []proto.JobSpec
	id := 0
	for range 8 {
		list = slices.DeleteFunc(list, func(proto.JobSpec) bool { return r.IntN(3) == 0 })
		for _, j := range slices.Clone(list) {
			if id++; r.IntN(2) == 0 {
				list = append(list, shardJob(id, min(d.Servers, 2+r.IntN(int(j.Servers))), 1+r.IntN(d.Degree), int(j.Job), r.IntN(2) == 0))
			}
		}
		for range r.IntN(3) {
			id++
			list = append(list, shardJob(id, 2+r.IntN(d.Servers/2), 1+r.IntN(d.Degree), 0, r.IntN(2) == 0))
			if r.IntN(3) == 0 {
				list[len(list)-1] = phased(list[len(list)-1], 2+r.IntN(3))
			}
		}
		w.strike(r, &churn{})
		if reply := w.apply(list...); reply.Code != proto.OK {
			fail("refused: %+v", reply)
			return
		}
		sum.lists++
		if r.IntN(3) == 0 {
			w.run(time.Duration(r.IntN(120)) * time.Millisecond)
			for _, j := range w.jobs() {
				if j.State == proto.JobStandby {
					w.ask(proto.OpRequest{Noun: proto.NounFlip, Job: j.Job})
					list = slices.DeleteFunc(list, func(s proto.JobSpec) bool {
						return !slices.ContainsFunc(w.jobs(), func(x proto.JobStatus) bool { return x.Job == s.Job })
					})
					break
				}
			}
		}
		for _, j := range list {
			for n := len(j.Phases) * r.IntN(2); n > 0; n-- {
				w.ask(proto.OpRequest{Noun: proto.NounFlip, Job: j.Job, Name: j.Phases[r.IntN(len(j.Phases))].Name})
				w.run(time.Duration(r.IntN(60)) * time.Millisecond)
			}
			if j.Topology != nil && r.IntN(4) == 0 {
				said := shardJob(int(j.Job), int(j.Servers), int(j.Topology.Degree), 0, len(j.Topology.MP) == 0)
				if x := w.ask(proto.OpRequest{Noun: proto.NounFlip, Job: j.Job, Jobs: []proto.JobSpec{said}}); x.Change != nil && x.Change.FullestNow > 0 && x.Change.FullestThen*1000 <= x.Change.FullestNow*900 {
					sum.measured++
				}
			}
		}
		if r.IntN(3) == 0 {
			w.holdDisk = r.IntN(3) == 0
			w.run(time.Duration(r.IntN(200)) * time.Millisecond)
			w.holdDisk = false
			w.start()
			sum.restarts++
		}
		if w.run(time.Duration(r.IntN(2000)) * time.Millisecond); r.IntN(3) == 0 {
			w.run(time.Duration(r.IntN(120)) * time.Second)
		}
		w.repair()
		if !w.quiet(10 * time.Minute) {
			fail("no rest")
			return
		}
		if text := w.consistent(); text != "" {
			fail("%s", text)
			return
		}
		for _, j := range w.jobs() {
			s := w.shards()[slices.IndexFunc(w.shards(), func(x sharded) bool { return x.Spec.Job == j.Job })]
			switch j.State {
			case proto.JobStandby:
				sum.standby++
			case proto.JobRealised:
				if want := asFound(t, s.traffic(), s.Shard.Servers); !reflect.DeepEqual(w.joined(j.Job), want) {
					fail("job %d: light joins %v, its topology has %v", j.Job, w.joined(j.Job), want)
				}
				sum.followed++
			case proto.JobWaiting:
				if j.Cause == proto.WaitUnknown || j.Reason == "" {
					fail("job %d waits and does not say for what", j.Job)
				}
			case proto.JobShort:
				if !slices.ContainsFunc(w.switches, func(v fakeSwitch) bool { return len(v.broken) > 0 }) {
					fail("job %d is short of light, and nothing is broken", j.Job)
				}
				if sum.short++; w.besides(s) {
					fail("job %d is short of light, and one step would mend it", j.Job)
				}
			default:
				fail("job %d is %v at rest", j.Job, j.State)
			}
		}
		if t.Failed() {
			return
		}
	}
}
