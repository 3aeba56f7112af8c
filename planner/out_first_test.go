package planner

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/job"
	"ringlight/proto"
)

// everyPart are the names of all parts of a core, of a server's GPUs the first.
func everyPart(c *fabric.Core) (names []string) {
	for _, f := range partForms(c) {
		inner := 1
		if len(f.most) > 1 && !strings.Contains(f.form, "gpu") {
			inner = f.most[1]
		}
		for n := range f.most[0] {
			for m := range inner {
				name := fmt.Sprintf(f.form, []any{n, m}[:len(f.most)]...)
				if _, ok := c.Part(name); ok {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

// Goal: a job that comes when something is out already is whole, or degraded or waits with
// the name of the part; it stays in no state on the way.
// Method: every part of every kind of core out, then a job that takes much of it.
func TestJobThatComesLaterIsToldWhatIsOut(t *testing.T) {
	for _, k := range circuitKinds {
		t.Run(k.name, func(t *testing.T) {
			told := map[job.State]int{}
			for i, name := range everyPart(k.core()) {
				if testing.Short() && i%3 != 0 {
					continue
				}
				w := startedWorld(t, k.core())
				if r := w.drain(proto.NounDrain, name); r.Code != proto.OK {
					t.Fatalf("%s: %+v", name, r)
				}
				w.quiet(time.Minute)
				w.put("a", k.some)
				w.quiet(time.Minute)
				w.run(3 * time.Second)
				v := w.job("a")
				told[v.State]++
				degraded := v.State == job.Degraded && strings.HasPrefix(v.Cause, w.fab.PartName(name)+" is out")
				if v.State != job.Ready && !degraded && !(v.State == job.Waiting && strings.HasSuffix(v.Cause, "; "+name+" is out")) {
					t.Errorf("%s is out: %s %q, %d of %d links, %d GPUs", name, v.State, v.Cause, v.Confirmed, v.Links, v.GPUsTotal)
				}
				if text := w.unlit(); text != "" {
					t.Error(text)
				}
				w.drain(proto.NounUndrain, name)
				w.quiet(time.Minute)
				w.run(3 * time.Second)
				if v := w.job("a"); v.State != job.Ready {
					t.Errorf("%s is back: %s %q", name, v.State, v.Cause)
				}
			}
			t.Log(told)
		})
	}
}

// Goal: any one part of a core of leaves and spines or of servers joined directly, and any
// two, cost a job no more GPUs than went with them; it is whole or degraded by the name of
// one of them, its light is as it is told, and it is ready when they are back.
// Method: all single parts but ports and interfaces, and 15 pairs of them, on a job that
// takes much of the core; every pair with RINGLIGHT_PAIRS=all.
func TestAnyTwoPartsCostNoMoreThanTheyAre(t *testing.T) {
	for _, k := range circuitKinds[1:] {
		t.Run(k.name, func(t *testing.T) {
			names := slices.DeleteFunc(everyPart(k.core()), func(name string) bool {
				return strings.Contains(name, "/a") || strings.Contains(name, "/b") || strings.Contains(name, "/if")
			})
			var pairs [][]string
			for i := range names {
				for j := range i {
					pairs = append(pairs, []string{names[i], names[j]})
				}
			}
			if os.Getenv("RINGLIGHT_PAIRS") == "" {
				rand.New(rand.NewPCG(26, 2)).Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
				pairs = pairs[:15]
			}
			for _, name := range names {
				pairs = append(pairs, []string{name})
			}
			w, told := startedWorld(t, k.core()), map[job.State]int{}
			w.put("a", k.some)
			w.run(3 * time.Second)
			whole := w.job("a").GPUsTotal
			for _, out := range pairs {
				gone := 0
				for _, name := range out {
					w.drain(proto.NounDrain, name)
					p, _ := w.fab.Core.Part(name)
					if gone += len(p.GPUs); len(p.GPUs) == 0 {
						gone += len(p.Servers) * w.fab.Core.GPUsPerServer
					}
				}
				w.quiet(10 * time.Minute)
				w.run(time.Second)
				v := w.job("a")
				told[v.State]++
				named := slices.ContainsFunc(out, func(name string) bool { return strings.HasPrefix(v.Cause, w.fab.PartName(name)+" is out") })
				if v.State != job.Ready && !(v.State == job.Degraded && named) || v.GPUsTotal < whole-gone || v.State == job.Ready && v.GPUsTotal != whole {
					t.Fatalf("%v out: %s %q, %d GPUs of %d, %d are gone", out, v.State, v.Cause, v.GPUsTotal, whole, gone)
				}
				if text := w.unlit(); text != "" {
					t.Fatal(text)
				}
				for _, name := range out {
					w.drain(proto.NounUndrain, name)
				}
				w.quiet(10 * time.Minute)
				w.run(time.Second)
				if v := w.job("a"); v.State != job.Ready || v.GPUsTotal != whole {
					t.Fatalf("%v back: %s %q, %d GPUs", out, v.State, v.Cause, v.GPUsTotal)
				}
			}
			t.Log(len(pairs), told)
		})
	}
}
