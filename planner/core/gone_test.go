package core

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

// look has the planner look again after a while, and light follow it.
func (g *growing) look(after time.Duration) {
	g.show()
	for range 4 {
		list := false
		g.now += after
		g.record(func() { list = g.c.Evidence.watch() })
		g.realise(g.c.design(g.c.jobs.all, list))
		after = time.Second
	}
}

// Goal: a leaf, spine or directly joined server from which no light comes is out by its
// name when that has lasted, its jobs are elsewhere, or short by its name where there is
// no place, and with its light it is let in; of what only one switch misses the fibres are
// out, where leaves and spines have sent into them.
// Method: each device of four cores, with jobs on half of them, or on all.
func TestWhatIsGoneIsNamed(t *testing.T) {
	leafSpine := &fabric.Core{Kind: fabric.KindLeafSpine, GPUsPerServer: 2, LeafSpine: &fabric.LeafSpine{Leaves: 8, Spines: 4, GPUsPerLeaf: 8, Switches: 4, AnyToAny: true}}
	named, moved, short, fibres, servers := 0, 0, 0, 0, 0
	for n, k := range []*fabric.Core{leafSpine, &growingOf[0], &growingOf[2], &growingOf[4]} {
		devices := map[string]bool{}
		for s := range k.Mirrors() {
			for port := range k.Ports() {
				device, _ := k.EndOf(s, port)
				devices[device] = true
			}
		}
		for device := range devices { // any order: each by itself
			for _, jobs := range []int{2, 4} {
				g := &growing{t: t, c: readyCircuits(k), store: map[string][]byte{}}
				g.c.heard, g.c.Table.Numbers.Fresh = true, false
				var list []proto.JobSpec
				for id := range jobs {
					s := proto.JobSpec{Job: proto.JobID(1 + id), TP: 1, EP: 1, PP: 1, DP: 16}
					if k.LeafSpine == nil {
						s = spec(1+id, k.Servers()/jobs, 4, 1)
					}
					if k.Direct != nil { // that each hears two others
						s.Servers = uint32(2 + jobs/2)
					}
					list = append(list, s)
				}
				g.realise(g.c.design(g.c.jobs.list(list), true))
				of := func(s int, a uint16) bool {
					d, _ := k.EndOf(s, int(a))
					if server, is := k.ServerOf(s); is { // who hears it tells of it
						port := k.Port(server, int(g.c.Evidence.maps[s].to[a])/k.Degree)
						d, _ = k.EndOf(int(a), slices.Index(g.c.Evidence.maps[a].to, int32(port)))
					}
					return d == device && (s >= k.Mirrors()) == (k.Direct != nil)
				}
				key := strings.TrimPrefix(device, "server")
				var uses []int
				find := func() {
					uses = nil
					for s := range k.Switches() {
						all := g.c.Evidence.switches[s].Circuits()
						if own := slices.ContainsFunc(all, func(r proto.CircuitReport) bool { return of(s, r.A) }); own && slices.ContainsFunc(all, func(r proto.CircuitReport) bool { return !of(s, r.A) }) {
							uses = append(uses, s)
						}
					}
				}
				find()
				out := func(what string, after time.Duration, want ...string) {
					t.Helper()
					if g.look(after); !slices.Equal(ClaimsOf(g.c).Parts(), want) {
						t.Fatalf("%d, %d jobs: %s, used by switches %v, %s: %v are out", n, jobs, device, uses, what, g.c.Evidence.out.why)
					}
				}
				if len(uses) == 0 {
					continue
				}
				g.unlit = func(s int, a uint16) bool { return of(s, a) && s == uses[0] }
				out("one misses it", time.Second)
				g.look(time.Minute)
				if g.look(time.Minute); k.Direct != nil {
					out("one misses it for long", time.Minute)
				}
				parts := ClaimsOf(g.c).Parts()
				for _, part := range parts {
					if p, _ := k.Part(part); p.Ports[0].Switch != uses[0] || p.Ports[0].Side != 0 || !of(uses[0], uint16(p.Ports[0].Port)) {
						t.Errorf("%d, %d jobs: %s, one misses it for long: %v are out", n, jobs, device, parts)
					}
				}
				for _, r := range g.c.Evidence.switches[uses[0]].Circuits() {
					if r.Job != 0 && of(uses[0], r.A) && k.Direct == nil {
						t.Errorf("%d, %d jobs: %s, switch %d misses it and has %+v; %v are out", n, jobs, device, uses[0], r, parts)
					}
				}
				fibres += len(parts)
				g.unlit = nil
				out("all is well", time.Second)
				find()
				if g.unlit = of; len(uses) < leastDark {
					continue
				}
				out("it is gone just now", time.Second)
				out("it is gone", time.Minute, key)
				named++
				g.same(g.again())
				lacks := func() (any bool) {
					for _, j := range g.c.jobs.all {
						gpus, links, part := g.c.Evidence.lost(g.c.designer.at(g.c.Evidence.standing()), j)
						if any = any || gpus+links > 0; gpus+links > 0 && part != key {
							t.Errorf("%d, %d jobs: %s, job %d is short of %d GPUs and %d links for %q", n, jobs, device, j.spec.Job, gpus, links, part)
						}
					}
					return any
				}
				if k.Direct != nil {
					servers++
				}
				if moved++; lacks() {
					moved--
					short++
				}
				for s := range g.c.Evidence.switches {
					for _, r := range g.c.Evidence.switches[s].Circuits() {
						if r.Job != 0 && of(s, r.A) && k.Direct == nil {
							t.Errorf("%d, %d jobs: %s is gone, and switch %d has %+v", n, jobs, device, s, r)
						}
					}
				}
				g.unlit = nil
				if out("it is back", time.Second); lacks() {
					t.Errorf("%d, %d jobs: %s is back, and some job is short", n, jobs, device)
				}
			}
		}
	}
	t.Logf("%d gone: %d times jobs were whole elsewhere, %d times one was short by name; %d fibres; %d servers joined directly", named, moved, short, fibres, servers)
	if moved == 0 || short == 0 || fibres == 0 || servers == 0 {
		t.Error("this shows little")
	}
}
