package planner

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/planner/job"
	"ringlight/proto"
)

// Goal: a job of four phases has the links of each in turn. To the next one transceivers
// flip alone, and what mirrors do for the one after comes behind; to another one mirrors
// work in the dark first. Method: the stages are read as they are prepared, and links are
// followed by light; each phase in its order, then one out of it, and over a restart.
func TestPhasesComeByFlips(t *testing.T) {
	w := startedWorld(t, directCore(8, 4))
	one, other := phased(shardJob(1, 6, 4, 0, false), 4), shardJob(2, 2, 4, 0, false)
	if r := w.apply(one, other); r.Code != proto.OK || !w.quiet(10*time.Second) {
		t.Fatalf("%+v\n%s", r, w.show())
	}
	servers := w.shards()[0].Shard.Servers
	rest := w.joined(2)
	var stages []string
	w.trace = func(line string) {
		if strings.Contains(line, "circuits prepare") {
			stages = append(stages, line[strings.Index(line, "stage on"):])
		}
		if text := w.sharedFibre(); text != "" {
			t.Error(text)
		}
		if !reflect.DeepEqual(w.joined(2), rest) {
			t.Errorf("the other job's links are %v, were %v", w.joined(2), rest)
		}
	}
	enter := func(name string) proto.OpReply {
		stages = nil
		r := w.ask(proto.OpRequest{Noun: proto.NounFlip, Job: 1, Name: name})
		if r.Code == proto.OK && !w.quiet(10*time.Second) {
			t.Fatal(w.show())
		}
		return r
	}
	const flips = "stage on 6 switches: 24 circuits removed, 24 made"
	for n, name := range []string{"p1", "p2", "p3", "p0", "p2", "p2", "p1"} {
		r := enter(name)
		phase := int(name[1] - '0')
		if got, want := w.joined(1), asFound(t, &one.Phases[phase].Topology, servers); r.Code != proto.OK || !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: light joins %v, the phase has %v: %+v", name, got, want, r)
		}
		job := w.jobs()[0]
		if job.Phase != name || job.State != proto.JobRealised || job.Realised != job.Granted || r.Change.Moved != 0 {
			t.Errorf("%s: %+v, %+v", name, job, r.Change)
		}
		at := slices.IndexFunc(stages, func(s string) bool { return strings.Contains(s, flips) })
		switch {
		case n == 5: // it is in that phase
			if len(stages) != 0 {
				t.Errorf("%s: %q", name, stages)
			}
		case n == 4 || n == 6: // out of turn: mirrors, flips, and mirrors where what it left is not what comes next
			if len(stages) != 3-n/6 || at != 1 {
				t.Errorf("%s: %q", name, stages)
			}
		case len(stages) != 2 || at != 0:
			t.Errorf("%s: %q", name, stages)
		}
	}
	w.start()
	w.quiet(10 * time.Second)
	if text := w.consistent(); text != "" || w.jobs()[0].Phase != "p1" {
		t.Fatal(text, w.show())
	}
	if r := enter("p2"); r.Code != proto.OK || len(stages) != 2 || !strings.Contains(stages[0], flips) {
		t.Errorf("after a restart: %+v, %q", r, stages)
	}
	for _, c := range []struct {
		job   proto.JobID
		name  string
		code  proto.Code
		limit string
	}{{1, "p4", proto.NotFound, "p0, p1, p2, p3"}, {2, "p0", proto.Invalid, "with phases"}, {9, "p0", proto.NotFound, "1 to 2"}} {
		if r := w.ask(proto.OpRequest{Noun: proto.NounFlip, Job: c.job, Name: c.name}); r.Code != c.code || !strings.Contains(r.Limit, c.limit) {
			t.Errorf("%+v: %+v", c, r)
		}
	}
}

// Goal: a job whose server cannot be told goes to no phase by halves: all of it stays as it
// is, and says for whom it waits, until that server is back; asked for another phase
// meanwhile it goes there by a flip. Method: a server's agent is away when the phase is asked
// for, or dies as it is to prepare.
func TestNoServerGoesToAPhaseAlone(t *testing.T) {
	for _, when := range []string{"away", "prepare", "another"} {
		w := startedWorld(t, directCore(8, 4))
		one := phased(shardJob(1, 6, 4, 0, false), 3)
		if w.apply(one); !w.quiet(10 * time.Second) {
			t.Fatal(w.show())
		}
		server := w.shards()[0].Shard.Servers[2]
		at := w.fab.Core.ServerSwitch(server)
		before := w.joined(1)
		if when != "prepare" {
			w.die(at)
			w.run(time.Second)
		} else {
			w.switches[at].dieAt = when
		}
		w.trace = func(line string) {
			if strings.Contains(line, "circuits generation committed") {
				t.Errorf("%s: %s", when, line)
			}
		}
		if r := w.ask(proto.OpRequest{Noun: proto.NounFlip, Job: 1, Name: "p1"}); r.Code != proto.OK {
			t.Fatalf("%s: %+v", when, r)
		}
		w.run(5 * time.Second)
		if job := w.jobs()[0]; job.State == proto.JobRealised || !strings.Contains(job.Reason, "goes to phase p1: server") || !reflect.DeepEqual(w.joined(1), before) {
			t.Errorf("%s: %+v", when, job)
		}
		var stages []string
		w.trace = func(line string) {
			if strings.Contains(line, "circuits prepare: stage") {
				stages = append(stages, line)
			}
		}
		phase := 1
		if when == "another" {
			phase = 2
			w.ask(proto.OpRequest{Noun: proto.NounFlip, Job: 1, Name: "p2"})
			w.run(time.Second)
		}
		w.switches[at].dieAt = ""
		w.birth(at)
		if !w.quiet(10*time.Second) || !reflect.DeepEqual(w.joined(1), asFound(t, &one.Phases[phase].Topology, w.shards()[0].Shard.Servers)) {
			t.Errorf("%s: %s", when, w.show())
		}
		if !slices.ContainsFunc(stages, func(s string) bool { return strings.Contains(s, "stage on 6 switches: 24 circuits removed, 24 made") }) {
			t.Errorf("%s: no flip of all six: %q", when, stages)
		}
	}
}

// Goal: phases that cannot be are refused with their field and limit.
func TestPhasesThatCannotBe(t *testing.T) {
	w := startedWorld(t, directCore(8, 2))
	for name, c := range map[string]struct {
		change       func(*proto.JobSpec)
		field, limit string
	}{
		"one":             {func(s *proto.JobSpec) { s.Phases = s.Phases[:1] }, "phases", "2 and up"},
		"no name":         {func(s *proto.JobSpec) { s.Phases[1].Name = "" }, "phases[1].name", "each once"},
		"a name twice":    {func(s *proto.JobSpec) { s.Phases[1].Name = "p0" }, "phases[1].name", "each once"},
		"beside topology": {func(s *proto.JobSpec) { s.Topology = &s.Phases[0].Topology }, "topology", "none beside phases"},
		"over the ports":  {func(s *proto.JobSpec) { s.Phases[2].Topology.Degree = 4 }, "phases[2].topology.degree", "1 to 2"},
		"sends to itself": {func(s *proto.JobSpec) { s.Phases[1].Topology.MP = []proto.Demand{{From: 2, To: 2, Bytes: 1}} }, "phases[1].topology.mp[0]", "two servers"},
	} { // any order: each by itself
		s := phased(shardJob(1, 4, 2, 0, false), 3)
		c.change(&s)
		if r := w.apply(s); r.Code != proto.Invalid || r.Field != "jobs[0]."+c.field || !strings.Contains(r.Limit, c.limit) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	pods := startedWorld(t, smallCore())
	if r := pods.apply(phased(shardJob(1, 4, 2, 0, false), 2)); r.Code != proto.Invalid || r.Field != "jobs[0].phases" {
		t.Errorf("on a core of pods: %+v", r)
	}
}

// Goal: a job that was asked for by name is ready in one phase after another, says in
// which, and what it waits for on the way; its routes are those of the phase.
func TestNamedJobGoesThroughItsPhases(t *testing.T) {
	w := startedWorld(t, directCore(8, 4))
	const traffic = `{"degree":4,"bidirectional":true,"allreduce":[{"servers":[0,1,2,3,4,5],"bytes":1000000}]`
	wish := `{"circuits":{"servers":6,"phases":[{"name":"dp","topology":` + traffic + `}},{"name":"experts","topology":` + traffic + `,"mp":[[0,3,900000000],[3,0,900000000]]}}]}}`
	if r := w.put("a", wish); r.Code != proto.OK {
		t.Fatalf("%+v", r)
	}
	w.run(10 * time.Second)
	a := w.job("a")
	if a.State != job.Ready || a.Circuits.Phase != "dp" || a.Links != a.Confirmed || a.Links == 0 {
		t.Fatalf("%+v", a)
	}
	for _, phase := range []string{"experts", "dp", "experts"} {
		before := w.job("a")
		if r := w.ask(proto.OpRequest{Noun: proto.NounFlip, Job: before.Circuits.Job, Name: phase}); r.Code != proto.OK {
			t.Fatalf("%+v", r)
		}
		if a = w.job("a"); a.State == job.Ready {
			t.Errorf("ready in phase %s before it has light", a.Circuits.Phase)
		}
		w.run(2 * time.Second)
		if a = w.job("a"); a.State != job.Ready || a.Circuits.Phase != phase || a.Links != a.Confirmed || w.unlit() != "" {
			t.Errorf("%+v\n%s", a, w.heard("a"))
		}
		events, _, _ := w.p.Jobs.Events("a", before.Generation)
		var told []string
		for _, e := range events {
			told = append(told, e.Event)
		}
		if got := strings.Join(told, " "); got != "repairing ready restored" || !strings.Contains(events[0].Cause, "goes to phase "+phase) {
			t.Errorf("told: %s, %+v", got, events[0])
		}
	}
	if got, err := w.p.Jobs.Try("b", wish); err != nil || got.Feasible || got.Most != 0 || !strings.Contains(got.Why, "gpu") {
		t.Errorf("a trial beside it: %+v %v", got, err)
	}
	if r := w.put("b", strings.Replace(wish, "1000000", "0", 1)); r.Code != proto.Invalid || r.Field != "circuits.phases[0].topology.allreduce[0].bytes" {
		t.Errorf("%+v", r)
	}
	if r := w.put("b", strings.Replace(wish, `"degree":4`, `"model":"dlrm","degree":4`, 1)); r.Code != proto.Invalid || r.Field != "circuits.phases[0].topology.model" {
		t.Errorf("%+v", r)
	}
}

// Goal: a job whose traffic is not what it said gets links for what was measured, by a flip,
// and back; for a deviation under a tenth nothing moves, nor for what cannot be. Method:
// links are followed by light; a trial first; a restart; another job that stands by.
func TestLinksFollowMeasuredTraffic(t *testing.T) {
	w := startedWorld(t, directCore(8, 4))
	one := shardJob(1, 6, 4, 0, false)
	if w.apply(one); !w.quiet(10 * time.Second) {
		t.Fatal(w.show())
	}
	servers := w.shards()[0].Shard.Servers
	before := w.joined(1)
	measure := func(dry bool, mp ...proto.Demand) proto.OpReply {
		said := *one.Topology
		said.MP = mp
		r := w.ask(proto.OpRequest{Noun: proto.NounFlip, Job: 1, DryRun: dry, Jobs: []proto.JobSpec{{Job: 1, Topology: &said}}})
		if !w.quiet(10 * time.Second) {
			t.Fatal(w.show())
		}
		return r
	}
	little := proto.Demand{From: 0, To: 3, Bytes: 1 << 20}
	var much []proto.Demand
	for x := range uint16(6) {
		much = append(much, proto.Demand{From: x, To: (x + 3) % 6, Bytes: 4 << 30})
	}
	if r := measure(false, little); r.Code != proto.OK || r.Change.Stages != 0 || r.Change.FullestNow == 0 || !reflect.DeepEqual(w.joined(1), before) {
		t.Errorf("for little: %+v %+v", r, r.Change)
	}
	if r := measure(true, much...); r.Code != proto.OK || r.Change.Stages != 2 || r.Change.FullestThen*10 > r.Change.FullestNow*9 || !reflect.DeepEqual(w.joined(1), before) {
		t.Errorf("a trial: %+v %+v", r, r.Change)
	}
	measured := *one.Topology
	measured.MP = much
	if r := measure(false, much...); r.Code != proto.OK || !reflect.DeepEqual(w.joined(1), asFound(t, &measured, servers)) {
		t.Errorf("for much: %+v %+v, light joins %v", r, r.Change, w.joined(1))
	}
	if r := measure(false, much...); r.Change.Stages != 0 || r.Change.FullestNow != r.Change.FullestThen {
		t.Errorf("again: %+v", r.Change)
	}
	w.start()
	if !w.quiet(10*time.Second) || w.consistent() != "" || w.jobs()[0].State != proto.JobRealised || w.jobs()[0].Realised != w.jobs()[0].Granted {
		t.Fatal(w.show(), w.consistent())
	}
	if r := measure(false); r.Code != proto.OK || !reflect.DeepEqual(w.joined(1), before) {
		t.Errorf("back: %+v %+v, light joins %v", r, r.Change, w.joined(1))
	}
	if r := measure(false, proto.Demand{From: 2, To: 2, Bytes: 1}); r.Code != proto.Invalid || r.Field != "topology.mp[0]" {
		t.Errorf("to itself: %+v", r)
	}
	if r := measure(false); r.Code != proto.OK {
		t.Errorf("%+v", r)
	}
	nothing := proto.OpRequest{Noun: proto.NounFlip, Job: 1, Jobs: []proto.JobSpec{{Job: 1, Topology: &proto.JobTopology{}}}}
	if r := w.ask(nothing); r.Code != proto.Invalid || r.Field != "topology" {
		t.Errorf("nothing was measured: %+v", r)
	}
	at := w.fab.Core.ServerSwitch(servers[3])
	w.die(at)
	w.run(time.Second)
	if r := measure(false, much...); r.Code != proto.Conflict || !strings.Contains(r.Reason, "cannot be told") || w.jobs()[0].State != proto.JobRealised {
		t.Errorf("a server's agent is gone: %+v; %+v", r, w.jobs()[0])
	}
	if w.birth(at); !w.quiet(10 * time.Second) {
		t.Fatal(w.show())
	}
	flips := func() (n int) { // matrices that take turns, as fast as they can be told
		for turn := range 200 {
			said := *one.Topology
			if turn%2 > 0 {
				said.MP = much
			}
			if r := w.ask(proto.OpRequest{Noun: proto.NounFlip, Job: 1, Jobs: []proto.JobSpec{{Job: 1, Topology: &said}}}); r.Code == proto.OK && r.Change.Stages > 0 {
				n++
			} else if r.Code != proto.OK && (r.Code != proto.Conflict || !strings.Contains(r.Limit, "have light")) {
				t.Errorf("turn %d: %+v", turn, r)
			}
			if n > 0 && w.jobs()[0].State == proto.JobRealised {
				return n
			}
			w.run(time.Millisecond)
		}
		return n
	}
	if n := flips(); n != 1 || !w.quiet(10*time.Second) {
		t.Errorf("before its links had light it was moved %d times; %s", n, w.show())
	}
	if w.apply(one, shardJob(2, 6, 4, 1, false)); !w.quiet(10 * time.Second) {
		t.Fatal(w.show())
	}
	if r := measure(false, much...); r.Code != proto.Conflict || !strings.Contains(r.Reason, "job 2 stands by") || w.joined(1) == nil {
		t.Errorf("beside another: %+v", r)
	}
}
