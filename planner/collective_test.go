package planner

import (
	"fmt"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

// lightBetween counts the links of a job between pods that pass light both
// ways.
func (w *coreWorld) lightBetween(id proto.JobID) map[string]int {
	circuits := map[string]int{}
	for _, of := range w.wanted() {
		for _, x := range of {
			if x.Job == id && x.State == proto.Tuned {
				circuits[fmt.Sprintf("%d-%d", min(x.A, x.B), max(x.A, x.B))]++
			}
		}
	}
	for pair := range circuits { // any order: each by itself
		circuits[pair] /= 2
	}
	return circuits
}

// The core takes every collective from the job list to light: a halving and
// doubling joins pods that differ in one bit with half of a pod's GPUs each, a
// double tree is both trees with a link a rail, an all-to-all a full mesh.
// Circuits stay for all phases, so one list is one set of circuits; a job whose
// collective alone changes is a new one, and one with the same keeps its
// circuits.
// Method: one job over four pods of 16 GPUs and as many ports; what passes
// light against figures counted by hand.
// Reference: [LUMOS] A.5.1, A.5.3, A.5.4, A.7
func TestCollectivesBecomeLight(t *testing.T) {
	core := fabric.DefaultCore(4)
	core.ServersPerLeaf = 1
	w := startedWorld(t, core)
	job := proto.JobSpec{Job: 7, TP: 4, EP: 1, PP: 1, Servers: 16}
	for n, want := range []string{
		"map[0-1:4 1-2:4 2-3:4]",
		"map[0-1:8 0-2:8 1-3:8 2-3:8]",
		"map[0-1:4 0-2:4 1-2:8 1-3:4 2-3:4]",
		"map[0-1:4 0-2:4 0-3:4 1-2:4 1-3:4 2-3:4]",
	} {
		c := proto.Collective(n)
		job.Collective = c
		for range 2 {
			r := w.apply(job)
			if r.Code != proto.OK || !w.quiet(time.Minute) {
				t.Fatalf("%v: %+v %s", c, r, w.show())
			}
		}
		if stages := w.p.Core.Change.Stages; stages != 0 {
			t.Errorf("%v: the same list again takes %d stages", c, stages)
		}
		if d := w.consistent(); d != "" {
			t.Errorf("%v: %s", c, d)
		}
		if got := fmt.Sprint(w.lightBetween(7)); got != want {
			t.Errorf("%v: light on %s, want %s", c, got, want)
		}
		if jobs := w.jobs(); len(jobs) != 1 || jobs[0].Collective != c || jobs[0].State != proto.JobRealised {
			t.Errorf("%v: %+v", c, jobs)
		}
	}
}

// A collective that this planner does not know, and one that a core of leaves
// and spines does not need, are refused by field, and nothing is done.
// Method: a number beyond the last; another than a ring.
func TestWrongCollectiveIsRefused(t *testing.T) {
	for _, c := range []struct {
		core *fabric.Core
		job  proto.JobSpec
		of   proto.Collective
	}{{smallCore(), spec(2, 8, 4, 1), 9}, {leafSpine(4, 4, 8, 2, 4), alone(2, 8), proto.CollectiveAllToAll}} {
		w := startedWorld(t, c.core)
		first := c.job
		first.Job = 1
		c.job.Collective = c.of
		r := w.apply(first, c.job)
		if r.Code != proto.Invalid || r.Field != "jobs[1].collective" || r.Limit == "" {
			t.Errorf("%+v", r)
		}
		if len(w.jobs()) != 0 {
			t.Errorf("%+v", w.jobs())
		}
	}
}
