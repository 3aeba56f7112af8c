package planner

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/planner/job"
	"ringlight/proto"
)

// drain takes a server out, or lets it in.
func (w *coreWorld) drain(noun proto.Noun, name string) proto.OpReply {
	return w.ask(proto.OpRequest{Noun: noun, Node: proto.FirstSwitch - 1, Name: name, Author: "test", Reason: "fan"})
}

// serversOf are the hosts of a job's ranks.
func serversOf(v *job.View) (hosts []string) {
	for _, d := range v.Circuits.Domains {
		for _, g := range d.GPUs {
			if len(hosts) == 0 || hosts[len(hosts)-1] != g.Host {
				hosts = append(hosts, g.Host)
			}
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// Goal: on every kind of core a server that is taken out is given to nobody; a job that
// has it gets another, and no other job moves; without another it is degraded by name with
// what is left, whole again with the server; over restarts too.
// Method: servers of a job one after the other until there is none, then all back.
func TestServersAreTakenOut(t *testing.T) {
	for _, k := range circuitKinds {
		t.Run(k.name, func(t *testing.T) {
			w := startedWorld(t, k.core())
			if r := w.put("a", k.some); r.Code != proto.OK {
				t.Fatalf("%+v", r)
			}
			w.run(3 * time.Second)
			gpus, gone, whole := w.job("a").GPUsTotal, []string{}, 0
			need := len(serversOf(w.job("a")))
			for w.job("a").State == job.Ready {
				out := serversOf(w.job("a"))[0]
				if r := w.drain(proto.NounDrain, out); r.Code != proto.OK || r.Change == nil {
					t.Fatalf("%+v", r)
				}
				if gone = append(gone, out); len(gone)%2 == 0 {
					w.start()
				}
				w.quiet(10 * time.Minute)
				w.run(3 * time.Second)
				v := w.job("a")
				lost := 0
				for _, host := range serversOf(v) {
					if slices.Contains(gone, host) {
						lost++
					}
				}
				switch {
				case lost == 0 && v.State == job.Ready && v.GPUsTotal == gpus:
					whole++
				case lost == 1 && v.State == job.Degraded && v.Cause == "server "+out+" is out: fan" && v.GPUsTotal < gpus:
				default:
					t.Fatalf("%d gone, %d of them its own: %s %s, %d of %d GPUs\n%s", len(gone), lost, v.State, v.Cause, v.GPUsTotal, gpus, w.show())
				}
				if text := w.consistent(); text != "" {
					t.Fatal(text)
				}
				if text := w.unlit(); text != "" {
					t.Fatal(text)
				}
				checkOrder(t, w, v, gone)
			}
			idle := w.fab.Core.Servers() - need
			if t.Logf("%d servers were idle, and it was mended %d times", idle, whole); whole == 0 || whole > idle || w.fab.Core.Direct != nil && whole < idle {
				t.Error("that is not what there is room for")
			}
			for s := range w.fab.Core.Servers() {
				if name := w.fab.ServerName(s); !slices.Contains(gone, name) && !slices.Contains(serversOf(w.job("a")), name) {
					gone = append(gone, name)
					w.drain(proto.NounDrain, name)
				}
			}
			w.put("b", fmt.Sprintf(`{"circuits":{"gpus_total":%d}}`, w.fab.Core.GPUsPerServer))
			if w.run(3 * time.Second); w.job("b").State != job.Waiting {
				t.Errorf("a server that is out was given away: %+v", w.job("b"))
			}
			for _, name := range gone {
				w.drain(proto.NounUndrain, name)
			}
			w.run(3 * time.Second)
			if a, b := w.job("a"), w.job("b"); a.State != job.Ready || a.GPUsTotal != gpus || b.State != job.Ready {
				t.Errorf("all are back: %s %s, %s %s", a.State, a.Cause, b.State, b.Cause)
			}
			if !strings.Contains(w.heard("a"), "degraded") {
				t.Error(w.heard("a"))
			}
			if r := w.drain(proto.NounDrain, "nobody"); r.Code != proto.NotFound || r.Field != "server" {
				t.Errorf("%+v", r)
			}
		})
	}
}

// checkOrder compares the last event that has members with the servers that a job has.
func checkOrder(t *testing.T, w *coreWorld, v *job.View, gone []string) {
	t.Helper()
	events, _, err := w.p.Jobs.Events("a", 0)
	if err != nil {
		t.Fatal(err)
	}
	events = slices.DeleteFunc(events, func(e job.Event) bool { return e.HandOver == nil })
	var want []job.GPU
	for _, d := range v.Circuits.Domains {
		want = append(want, slices.DeleteFunc(slices.Clone(d.GPUs), func(g job.GPU) bool { return slices.Contains(gone, g.Host) })...)
	}
	last := &events[len(events)-1]
	if !slices.Equal(last.Members, want) {
		t.Fatalf("event %d, %s: members %v, want %v", last.Generation, last.Event, last.Members, want)
	}
	out := gone[len(gone)-1]
	for i := len(events) - 1; ; i-- {
		e := &events[i]
		if e.Event == job.Replaced && (e.Out == out || e.In == "" && len(e.Lost) > 0) || e.Event == string(job.Degraded) && len(e.Lost) > 0 {
			return
		}
		if i == 0 {
			t.Fatalf("no event says that %s is replaced or lost: %+v", out, events)
		}
	}
}
