package planner

import (
	"reflect"
	"testing"
	"time"

	"ringlight/proto"
)

// Goal: a planner without its store adopts jobs by their circuits, gives their
// servers to nobody, and lets them go when a list is without them.
func TestLostStoreAdoptsDirectJobs(t *testing.T) {
	w := startedWorld(t, directCore(8, 2))
	w.apply(shardJob(1, 4, 2, 0, false))
	w.quiet(10 * time.Second)
	before := w.joined(1)
	clear(w.store)
	w.start()
	if !w.quiet(time.Minute) {
		t.Fatal(w.show())
	}
	w.apply(shardJob(1, 4, 2, 0, false), shardJob(2, 4, 2, 0, false), shardJob(3, 2, 2, 0, false))
	if !w.quiet(time.Minute) || !reflect.DeepEqual(w.joined(1), before) {
		t.Fatalf("%v, was %v: %s", w.joined(1), before, w.show())
	}
	if jobs := w.jobs(); jobs[0].State != proto.JobAdopted || jobs[1].State != proto.JobRealised || jobs[2].State != proto.JobWaiting {
		t.Fatal(w.show())
	}
	w.apply(shardJob(2, 4, 2, 0, false), shardJob(3, 2, 2, 0, false))
	if !w.quiet(time.Minute) || w.jobs()[1].State != proto.JobRealised || w.consistent() != "" {
		t.Fatal(w.show(), w.consistent())
	}
}

// Goal: a planner tells nobody a decision of its predecessor's term. Method: a server loses
// power under one planner and is born under the next, before it reports.
func TestNoDecisionIsOfAFormerTerm(t *testing.T) {
	w := startedWorld(t, directCore(8, 2))
	w.apply(shardJob(1, 4, 2, 0, false))
	w.quiet(10 * time.Second)
	s := w.fab.Core.Direct.ServerSwitch(w.shards()[0].Shard.Servers[0])
	v := &w.switches[s]
	w.die(s)
	v.applied, v.staged = nil, nil
	clear(v.light)
	w.forgotten()
	w.start()
	w.quiet(time.Minute)
	v.up = true
	v.session += 1000
	w.birthNote(v)
	w.run(500 * time.Millisecond)
	if pk, told := w.retained[w.topics.Decision(w.fab.Core.GroupID(0))]; told {
		var d proto.Decision
		if w.decode(pk, &d); d.Term != w.p.j.Term {
			t.Errorf("a decision of term %d, of a planner of term %d", d.Term, w.p.j.Term)
		}
	}
	w.report(v)
	if !w.quiet(time.Minute) || w.consistent() != "" {
		t.Error(w.consistent(), w.show())
	}
}

// Goal: servers that lost power while the planner lost its store have their job's light again:
// the layers have it still, and those that it runs with. Method: one, two and all servers of
// a job lose what they were told; they are back before the planner starts, or long after; and
// beside the job, on its other fibres, stands another or none.
func TestLostStoreAndPowerBringLightBack(t *testing.T) {
	for _, beside := range []bool{false, true} {
		for dead := 1; dead <= 4; dead *= 2 {
			for _, late := range []bool{false, true} {
				if beside && dead == 4 {
					continue // nobody can tell which of the two ran
				}
				w := startedWorld(t, directCore(8, 2))
				list := []proto.JobSpec{shardJob(1, 4, 2, 0, false), shardJob(2, 4, 2, 1, false)}
				if !beside {
					list = list[:1]
				}
				w.apply(list...)
				w.quiet(10 * time.Second)
				before := w.joined(1)
				servers := w.shards()[0].Shard.Servers
				clear(w.store)
				var dark []int
				for _, server := range servers[:dead] {
					s := w.fab.Core.Direct.ServerSwitch(server)
					dark = append(dark, s)
					w.die(s)
					v := &w.switches[s]
					v.applied, v.staged = nil, nil
					clear(v.light)
				}
				w.forgotten()
				for _, s := range dark {
					if !late {
						w.birth(s)
					}
				}
				w.start()
				w.run(30 * time.Second)
				for _, s := range dark {
					if late {
						w.birth(s)
					}
				}
				if !w.quiet(time.Minute) || len(before) != 8 || !reflect.DeepEqual(w.joined(1), before) {
					t.Errorf("%d dead, late %t, beside another %t: %v, was %v: %s", dead, late, beside, w.joined(1), before, w.show())
				}
			}
		}
	}
}
