package planner

import (
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/job"
	"ringlight/proto"
)

func (w *coreWorld) put(id, wish string) proto.OpReply {
	return w.ask(proto.OpRequest{Noun: proto.NounSubmit, Name: id, Text: proto.Part(wish)})
}

func (w *coreWorld) release(id string) proto.OpReply {
	return w.ask(proto.OpRequest{Noun: proto.NounRelease, Name: id})
}

func (w *coreWorld) job(id string) *job.View {
	w.t.Helper()
	v, err := w.p.Jobs.Get(id)
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

func (w *coreWorld) heard(id string) string {
	events, _, _ := w.p.Jobs.Events(id, 0)
	var out []string
	for _, e := range events {
		out = append(out, e.Event)
	}
	return strings.Join(out, ", ")
}

// unlit is a circuit of a ready job that has no light now, by the mirrors.
func (w *coreWorld) unlit() string {
	wanted := w.wanted()
	for _, v := range listed(w.p) {
		if v.Circuits == nil || v.State != job.Ready {
			continue
		}
		n := 0
		for s := range wanted {
			for _, c := range wanted[s] {
				if c.Job != v.Circuits.Job {
					continue
				}
				n++
				x, ok := w.switches[s].light[c.A]
				if !ok || x.b != c.B || x.tuned > w.now {
					return fmt.Sprintf("job %s is ready, and switch %d has no light from %d to %d: %+v", v.ID, s, c.A, c.B, x)
				}
			}
		}
		if v.Confirmed != v.Links || n < v.Links {
			return fmt.Sprintf("job %s is ready with %d of %d links, %d circuits", v.ID, v.Confirmed, v.Links, n)
		}
	}
	return ""
}

// circuitKinds are kinds of cores, a wish that takes half of each or more, one that takes all, and
// how many replicas or GPUs of that fit beside the first.
var circuitKinds = []struct {
	name      string
	core      func() *fabric.Core
	some, all string
	left      int
}{
	{"pods", smallCore, `{"circuits":{"tp":4,"pp":2,"dp":10}}`, `{"circuits":{"tp":4,"pp":2,"dp":32}}`, 22},
	{"leaves and spines", func() *fabric.Core { return leafSpine(4, 4, 8, 2, 4) }, `{"circuits":{"gpus_total":24}}`, `{"circuits":{"gpus_total":32}}`, 8},
	{"fixed links", func() *fabric.Core { return leafSpine(4, 8, 8, 2, 0) }, `{"circuits":{"gpus_total":16}}`, `{"circuits":{"gpus_total":32}}`, 16},
	{"direct", func() *fabric.Core {
		return &fabric.Core{Kind: fabric.KindDirect, GPUsPerServer: 4, Direct: &fabric.Direct{Servers: 8, Degree: 4}}
	}, `{"circuits":{"servers":6}}`, `{"circuits":{"servers":8}}`, 8},
}

// Goal: circuits are asked for, tried, refused, waited for, watched and given back
// as rings are, on every kind of core; ready means light on every link; no list
// ends such a job.
// Method: a job that takes much of a core, one that then has to wait, and bad ones.
func TestJobGetsCircuits(t *testing.T) {
	for _, k := range circuitKinds {
		t.Run(k.name, func(t *testing.T) {
			w := startedWorld(t, k.core())
			if r := w.put("a", k.some); r.Code != proto.OK {
				t.Fatalf("%+v", r)
			}
			if a := w.job("a"); a.State == job.Ready && a.Links > 0 && w.fab.Core.Switches() > 0 {
				t.Errorf("ready before any light: %+v", a)
			}
			for range 100 {
				w.run(10 * time.Millisecond)
				if text := w.unlit(); text != "" {
					t.Fatal(text)
				}
			}
			a := w.job("a")
			want := "waiting, reserved, forming, ready"
			if a.Links == 0 {
				want = "waiting, ready"
			}
			if a.State != job.Ready || w.heard("a") != want || a.GPUsTotal == 0 || a.Circuits == nil {
				t.Errorf("%+v\n%s\n%s", a, w.heard("a"), w.show())
			}
			if len(a.Circuits.Seats)+len(a.Circuits.Domains) == 0 {
				t.Errorf("nobody knows where its ranks are: %+v", a.Circuits)
			}
			if r := w.put("a", " "+k.some); r.Code != proto.OK || w.job("a").Generation != a.Generation {
				t.Errorf("asked for twice: %+v", r)
			}
			if r := w.put("a", k.all); r.Code != proto.Conflict || r.Field != "id" {
				t.Errorf("another wish under the same name: %+v", r)
			}
			trial, err := w.p.Jobs.Try("b", k.all)
			if err != nil || trial.Feasible || trial.Most != k.left || trial.Why == "" {
				t.Errorf("%+v, %v; want %d", trial, err, k.left)
			}
			if r := w.put("b", strings.Replace(k.all, "}}", `},"policy":"fail"}`, 1)); r.Code != proto.Conflict || r.Field != "circuits" || r.Limit == "" {
				t.Errorf("%+v", r)
			}
			if r := w.put("b", k.all); r.Code != proto.OK {
				t.Fatalf("%+v", r)
			}
			w.run(time.Second)
			if b := w.job("b"); b.State != job.Waiting || b.Cause == "" || w.heard("b") != "waiting" {
				t.Errorf("%+v", b)
			}
			if r := w.apply(); r.Code != proto.OK || w.job("a").State != job.Ready || len(w.jobs()) != 2 {
				t.Errorf("an empty list: %+v\n%s", r, w.show())
			}
			number := w.jobs()[0]
			if number.Owner != "a" {
				t.Errorf("%+v", number)
			}
			if r := w.apply(proto.JobSpec{Job: number.Job, TP: 1, EP: 1, PP: 1, DP: 2}); r.Code != proto.Invalid || r.Field != "jobs[0].id" {
				t.Errorf("%+v", r)
			}
			if r := w.release("a"); r.Code != proto.OK {
				t.Errorf("%+v", r)
			}
			w.run(5 * time.Second)
			if b := w.job("b"); b.State != job.Ready || w.unlit() != "" {
				t.Errorf("%+v\n%s\n%s", b, w.heard("b"), w.show())
			}
			if r := w.release("b"); r.Code != proto.OK || !w.quiet(time.Minute) || len(w.jobs()) != 0 || w.p.Core.Status().Circuits > 0 && k.name == "pods" {
				t.Errorf("%+v\n%s", r, w.show())
			}
		})
	}
}

// Goal: what no core can do is refused with field and limit, and nothing is taken.
func TestBadCircuitsAreRefused(t *testing.T) {
	for _, c := range []struct{ kind, wish, field string }{
		{"pods", `{"circuits":{}}`, "circuits.servers"},
		{"pods", `{"circuits":{"dp":4},"tp":4}`, "tp"},
		{"pods", `{"circuits":{"dp":4},"rings":2}`, "rings"},
		{"pods", `{"circuits":{"dp":4},"spares":1}`, "spares"},
		{"pods", `{"circuits":{"dp":4},"nodes":[]}`, "nodes"},
		{"pods", `{"circuits":{"dp":4},"exclude":["x"]}`, "exclude"},
		{"pods", `{"circuits":{"dp":4},"prefer":"compact"}`, "prefer"},
		{"pods", `{"circuits":{"dp":4},"policy":"shrink"}`, "policy"},
		{"pods", `{"circuits":{"dp":4},"hold_ms":-1}`, "hold_ms"},
		{"pods", `{"circuits":{"tp":0,"dp":4}}`, "circuits.tp"},
		{"pods", `{"circuits":{"tp":4,"dp":1000000}}`, "circuits.dp"},
		{"pods", `{"circuits":{"gpus_total":1000000}}`, "circuits.gpus_total"},
		{"pods", `{"circuits":{"dp":4,"collective":"star"}}`, "circuits.collective"},
		{"pods", `{"circuits":{"dp":4,"pods":[99]}}`, "circuits.pods"},
		{"pods", `{"circuits":{"dp":4,"next":"a"}}`, "circuits.next"},
		{"pods", `{"circuits":{"dp":4,"colour":1}}`, "circuits"},
		{"leaves and spines", `{"circuits":{"dp":4,"pods":[0]}}`, "circuits.pods"},
		{"leaves and spines", `{"circuits":{"gpus_total":33}}`, "circuits.gpus_total"},
		{"leaves and spines", `{"circuits":{"servers":2,"topology":{"degree":2}}}`, "circuits.topology"},
		{"direct", `{"circuits":{"servers":9}}`, "circuits.servers"},
		{"direct", `{"circuits":{"servers":4,"topology":{"degree":9}}}`, "circuits.topology.degree"},
		{"direct", `{"circuits":{"servers":4,"topology":{"degree":2,"mp":[[0,70000,1]]}}}`, "circuits.topology.mp[0]"},
		{"direct", `{"circuits":{"servers":4,"duration_ms":5}}`, "circuits.duration_ms"},
		{"direct", `{"tp":4}`, "tp"},
	} {
		var core *fabric.Core
		for _, k := range circuitKinds {
			if k.name == c.kind {
				core = k.core()
			}
		}
		w := startedWorld(t, core)
		if r := w.put("j", c.wish); (r.Code != proto.Invalid && r.Code != proto.Conflict) || r.Field != c.field || r.Limit == "" {
			t.Errorf("%s: %s: %v %q (limit %q) %s, want %q", c.kind, c.wish, r.Code, r.Field, r.Limit, r.Reason, c.field)
		}
		if _, err := w.p.Jobs.Get("j"); err == nil || len(w.jobs()) != 0 {
			t.Errorf("%s: something is there", c.wish)
		}
	}
	w := small(t, 16, 2, 16, 0)
	if r := w.put("j", `{"circuits":{"dp":4}}`); r.Code != proto.Invalid || r.Field != "circuits" {
		t.Errorf("%+v", r)
	}
}

// Goal: a planner that is killed takes a job of circuits up where it stood, in
// every state, and each event is told once and in order.
// Method: the planner begins anew every so many milliseconds of the life of a job.
func TestJobOfCircuitsLivesOn(t *testing.T) {
	for _, k := range circuitKinds {
		states := map[job.State]bool{}
		for at := time.Duration(0); at < 120*time.Millisecond; at += 7 * time.Millisecond {
			w := startedWorld(t, k.core())
			for s := range w.switches {
				w.switches[s].mute = at < 30*time.Millisecond // it cannot be told yet
			}
			if r := w.put("a", k.some); r.Code != proto.OK {
				t.Fatalf("%+v", r)
			}
			if r := w.put("b", k.all); r.Code != proto.OK {
				t.Fatalf("%+v", r)
			}
			w.run(at)
			states[w.job("a").State], states[w.job("b").State] = true, true
			for s := range w.switches {
				w.switches[s].mute = false
			}
			before, _, _ := w.p.Jobs.Events("a", 0)
			w.start()
			w.run(20 * time.Second)
			after, _, _ := w.p.Jobs.Events("a", 0)
			if a := w.job("a"); a.State != job.Ready || w.unlit() != "" || len(w.jobs()) != 2 || w.job("b").State != job.Waiting || w.heard("b") != "waiting" {
				t.Fatalf("%s at %v: %+v\n%s\n%s", k.name, at, a, w.heard("a"), w.show())
			}
			if len(after) < len(before) || !reflect.DeepEqual(after[:len(before)], before) {
				t.Errorf("%s at %v: %v\nbefore %v", k.name, at, after, before)
			}
			if want := "waiting, reserved, forming, ready"; w.job("a").Links > 0 && w.heard("a") != want {
				t.Errorf("%s at %v: %s", k.name, at, w.heard("a"))
			}
		}
		if len(states) < 4 && k.name != "fixed links" {
			t.Errorf("%s: killed in %v alone", k.name, states)
		}
	}
}

// Goal: light that is lost makes a job degraded, repairing or down, and ready
// again when it is back; a place that does not become ready is given back.
// Method: a switch that loses its power; switches that refuse.
func TestJobOfCircuitsLosesLight(t *testing.T) {
	w := startedWorld(t, leafSpine(4, 4, 8, 2, 4))
	if r := w.put("a", `{"circuits":{"gpus_total":24},"hold_ms":60000}`); r.Code != proto.OK {
		t.Fatalf("%+v", r)
	}
	w.run(time.Second)
	before := w.job("a")
	v := &w.switches[1]
	for a, x := range v.light { // any order: all of them
		v.dead[[2]uint16{a, x.b}] = true
	}
	w.report(v)
	w.run(20 * time.Second)
	if a := w.job("a"); a.State != job.Ready || a.Generation == before.Generation || w.unlit() != "" {
		t.Errorf("%+v\n%s\n%s", a, w.heard("a"), w.show())
	}
	if h := w.heard("a"); !strings.Contains(h, "repairing") && !strings.Contains(h, "degraded") {
		t.Error(h)
	}
	events, _, _ := w.p.Jobs.Events("a", before.Generation)
	if len(events) == 0 || !strings.Contains(events[0].Cause, "switch 1") {
		t.Errorf("%+v", events)
	}

	for s := range w.switches {
		w.switches[s].refuse = proto.HardwareFailed
	}
	w.release("a")
	w.run(time.Second)
	if r := w.put("b", `{"circuits":{"gpus_total":32},"hold_ms":3000}`); r.Code != proto.OK {
		t.Fatalf("%+v", r)
	}
	w.run(8 * time.Second)
	if h := w.heard("b"); strings.Contains(h, "ready") || strings.Count(h, "waiting") < 2 && !strings.HasSuffix(h, "waiting") {
		t.Errorf("%s\n%s", h, w.show())
	}
	for s := range w.switches {
		w.switches[s].refuse = proto.OK
	}
	w.run(3 * time.Minute)
	if b := w.job("b"); b.State != job.Ready || w.unlit() != "" {
		t.Errorf("%+v\n%s\n%s", b, w.heard("b"), w.show())
	}
}

// Goal: a job that is next to another stands by for its servers and is ready when
// that is released.
func TestNextJobIsReadyWhenTheOneBeforeEnds(t *testing.T) {
	w := startedWorld(t, circuitKinds[3].core())
	for _, p := range [][2]string{{"a", `{"circuits":{"servers":8}}`}, {"b", `{"circuits":{"servers":8,"next":"a"},"hold_ms":2000}`}} {
		if r := w.put(p[0], p[1]); r.Code != proto.OK {
			t.Fatalf("%+v", r)
		}
	}
	w.run(10 * time.Second)
	if a, b := w.job("a"), w.job("b"); a.State != job.Ready || b.State != job.Reserved || !strings.Contains(b.Cause, "stands by") {
		t.Errorf("%+v\n%+v\n%s", a, b, w.heard("b"))
	}
	if r := w.ask(proto.OpRequest{Noun: proto.NounFlip, Job: w.job("b").Circuits.Job}); r.Code != proto.Conflict {
		t.Errorf("a flip ended a job that has a name: %+v", r)
	}
	w.release("a")
	w.run(2 * time.Second)
	if b := w.job("b"); b.State != job.Ready || w.unlit() != "" {
		t.Errorf("%+v\n%s\n%s", b, w.heard("b"), w.show())
	}
}

// Goal: whatever is asked for and whatever fails, ready means light on every link,
// events come once and in order over the planner's deaths, and in the end nothing
// is left in the core's list.
// Method: random wishes, releases, lists of an operator, strikes on switches and
// restarts. RINGLIGHT_JOBS sets how many.
func TestJobsOfCircuitsWhateverHappens(t *testing.T) {
	seeds := uint64(8)
	if n, err := strconv.ParseUint(os.Getenv("RINGLIGHT_JOBS"), 10, 32); err == nil {
		seeds = n
	}
	ready := 0
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 11))
		k := circuitKinds[seed%4]
		w := startedWorld(t, k.core())
		at, last := map[string]uint64{}, map[string]string{}
		watch := func() {
			for id := range at { // any order: each by itself
				events, complete, err := w.p.Jobs.Events(id, at[id])
				if err != nil || !complete {
					t.Fatalf("seed %d: %s: %v, complete %v", seed, id, err, complete)
				}
				for _, e := range events {
					if e.Generation != at[id]+1 || e.Event == last[id] {
						t.Fatalf("seed %d: job %s: event %d %s after %d %s", seed, id, e.Generation, e.Event, at[id], last[id])
					}
					at[id], last[id] = e.Generation, e.Event
					if e.Event == string(job.Ready) {
						ready++
					}
				}
			}
		}
		for range 40 {
			id := fmt.Sprintf("j%d", rng.IntN(4))
			switch rng.IntN(8) {
			case 0, 1, 2:
				wish := fmt.Sprintf(`{"circuits":{"servers":%d},"hold_ms":%d,"policy":%q}`, []int{1, 2, 3, 4, 6}[rng.IntN(5)], 1000+rng.IntN(60000), []string{"wait", "wait", "fail"}[rng.IntN(3)])
				if r := w.put(id, wish); r.Code == proto.OK {
					if _, ok := at[id]; !ok {
						at[id] = 0
					}
				} else if r.Code != proto.Conflict && r.Code != proto.Busy {
					t.Fatalf("seed %d: %s: %+v", seed, wish, r)
				}
			case 3:
				w.release(id)
			case 4:
				if len(w.switches) > 0 {
					w.strike(rng, &churn{})
				}
			case 5:
				w.start()
			case 6:
				w.apply([]proto.JobSpec{{Job: 7, TP: 1, EP: 1, PP: 1, Servers: 1}}[:rng.IntN(2)]...)
			case 7:
				w.repair()
			}
			w.run(time.Duration(rng.IntN(3000)) * time.Millisecond)
			watch()
			for _, v := range listed(w.p) {
				if v.State == job.Ready && v.Confirmed != v.Links {
					t.Fatalf("seed %d: ready with %+v", seed, v)
				}
			}
		}
		w.repair()
		w.run(2 * time.Minute)
		watch()
		if text := w.unlit(); text != "" {
			t.Errorf("seed %d: %s", seed, text)
		}
		for id := range at { // any order: all of them
			w.release(id)
		}
		w.apply()
		w.run(time.Minute)
		watch()
		if len(w.jobs()) != 0 {
			t.Errorf("seed %d: jobs are left:\n%s", seed, w.show())
		}
		for id, e := range last {
			if e != string(job.Released) {
				t.Errorf("seed %d: job %s ends with %s", seed, id, e)
			}
		}
	}
	t.Logf("ready %d times", ready)
	if ready < int(seeds) {
		t.Error("too few jobs came to light")
	}
}
