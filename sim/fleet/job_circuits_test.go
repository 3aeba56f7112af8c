package fleet

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/job"
	"ringlight/proto"
)

// Goal: a job that asks for circuits is ready only while light passes on every one
// of them, as the boards have it, and stays so while the planner is dead and after.
// Method: production agents on simulated mirrors, of three kinds of core; two jobs
// are asked for, the first is released; the planner is killed every 40 ms meanwhile.
func TestJobOfCircuitsIsReadyByLight(t *testing.T) {
	optics, err := catalogue()
	if err != nil {
		t.Fatal(err)
	}
	for name, core := range map[string]fabric.Core{ // any order: independent
		"pods": testCores[0], "leaves and spines": aloneCores[0], "direct": *directFabric(t, 8, 4).Core,
	} {
		f, err := fabric.New(fabric.Params{Name: "f", Nodes: 8, GPUsPerNode: 4, K: 2, TP: 16, Core: &core})
		if err != nil {
			t.Fatal(err)
		}
		cfg := Config{Fabric: f, Seed: 3, Health: 10 * time.Second, Span: 60 * time.Second, Optics: optics, Modules: 1}
		for i := range 12 {
			cfg.Faults = append(cfg.Faults, script(t, fmt.Sprintf("%dms planner kill for 1500ms", 5040+i*3040))...)
		}
		wish := fmt.Sprintf(`{"circuits":{"servers":%d}}`, core.Servers()*3/4)
		ask := func(r *Run, noun proto.Noun, id string) {
			q := proto.OpRequest{Noun: noun, Bundle: -1, Corr: proto.Corr{1, byte(noun), id[0], byte(r.now / time.Second)}, Name: id}
			if noun == proto.NounSubmit {
				q.Text = proto.Part(wish) // of a release it is the owner
			}
			r.inject.ask(q)
		}
		heard := map[string][]job.Event{}
		looks, circuits := 0, 0
		asked := time.Duration(0)
		var view *job.View
		cfg.mutant = &mutant{at: 20 * time.Millisecond, act: func(r *Run) {
			r.agenda.Push(r.now+20*time.Millisecond, task{kind: taskMutant})
			up := r.planners[0].host
			if up == nil {
				return
			}
			jobs := up.Planner().Jobs
			if asked < r.now-r.epoch && r.now-r.epoch > 4*time.Second {
				asked = r.now - r.epoch + time.Second // as who waits for an answer does
				if over := r.now-r.epoch > 30*time.Second; over {
					ask(r, proto.NounRelease, "a")
				} else {
					ask(r, proto.NounSubmit, "a")
				}
				if v, err := jobs.Get("b"); err != nil || v.State == job.Waiting {
					ask(r, proto.NounSubmit, "b")
				}
			}
			for _, id := range []string{"a", "b"} {
				v, err := jobs.Get(id)
				if err != nil {
					continue
				}
				events, complete, _ := jobs.Events(id, uint64(len(heard[id])))
				if !complete {
					t.Fatalf("%s: events of %s are lost", name, id)
				}
				for _, e := range events {
					if e.Generation != uint64(len(heard[id])+1) {
						t.Fatalf("%s: event %d of %s after %d", name, e.Generation, id, len(heard[id]))
					}
					heard[id] = append(heard[id], e)
				}
				if id == "b" {
					view = v
				}
				if v.State != job.Ready {
					continue
				}
				looks++
				n := 0
				check := r.audit.circuits
				for s := range check.guarded {
					for _, x := range check.desired[s][check.last[s]] {
						if x.Job != v.Circuits.Job {
							continue
						}
						if n++; !check.passes(s, x.A, x.B) {
							t.Errorf("%s at %v: job %s is ready, and switch %d passes no light from %d to %d", name, r.now-r.epoch, id, s, x.A, x.B)
						}
					}
				}
				if circuits = max(circuits, n); n < v.Links || up.Planner().Core.Status().Quiet && v.Links != v.Confirmed { // one that begins anew has yet to hear of it
					t.Errorf("%s: ready with %d circuits, %d of %d links", name, n, v.Confirmed, v.Links)
				}
			}
		}}
		clean(t, run(t, cfg))
		short := func(id string) (out []string) {
			for _, e := range heard[id] {
				out = append(out, e.Event)
			}
			return out
		}
		if view == nil || view.State != job.Ready || !slices.Contains(short("a"), string(job.Ready)) || circuits == 0 || looks < 100 {
			t.Errorf("%s: %d looks, %d circuits\na: %v\nb: %v\n%+v", name, looks, circuits, short("a"), short("b"), view)
		}
		t.Logf("%s: %d looks at ready jobs of up to %d circuits\na: %v\nb: %v", name, looks, circuits, short("a"), short("b"))
	}
}
