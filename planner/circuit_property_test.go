package planner

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/sched"
	"ringlight/proto"
)

// Whatever happens to switches and planner while jobs come and go: no circuit
// of a job that stays is taken away by a change that does not need its port,
// no leaf has more than its share moving at once, on a switch nothing comes
// before what has its ports has gone, and in the end what is wanted, what is
// reported and what is lit are the same.
// Method: random job lists on several cores; switches die in prepare, in
// commit and after it, refuse, stay mute, have broken mirrors, lose their power,
// are changed by hand, and come back; lists come in the middle of another's
// stages; the broker goes away; the planner restarts with its store, in the middle of a write too.
// RINGLIGHT_CIRCUIT_RUNS sets the number of seeds, RINGLIGHT_CIRCUIT_SEED names
// one to run again.
func TestCircuitsUnderChurnAndFailures(t *testing.T) {
	runs := 120
	if n, err := strconv.Atoi(os.Getenv("RINGLIGHT_CIRCUIT_RUNS")); err == nil {
		runs = n
	}
	var sum churn
	if one, err := strconv.ParseUint(os.Getenv("RINGLIGHT_CIRCUIT_SEED"), 10, 64); err == nil {
		churnRun(t, one)
		return
	}
	for seed := range runs {
		sum.add(churnRun(t, uint64(seed)))
		if t.Failed() {
			return
		}
	}
	t.Logf("%d runs: %+v", runs, sum)
	if sum.moved == 0 || sum.rolledBack == 0 || sum.short == 0 || sum.stages < 10*runs/2 {
		t.Errorf("the test shows little: %+v", sum)
	}
}

// churn counts what a run saw.
type churn struct {
	lists, stages, moved, rolledBack, restarts, outages, deaths, short, applies int
}

func (c *churn) add(o churn) {
	c.lists += o.lists
	c.stages += o.stages
	c.moved += o.moved
	c.rolledBack += o.rolledBack
	c.restarts += o.restarts
	c.outages += o.outages
	c.deaths += o.deaths
	c.short += o.short
	c.applies += o.applies
}

var churnCores = []fabric.Core{
	{Pods: 4, LeavesPerPod: 4, SpinesPerPod: 2, SpinePorts: 8, SwitchPorts: 8, LeafLinks: 2, ServersPerLeaf: 2, GPUsPerServer: 4, Wiring: fabric.Interleaved, IotaMille: 250},
	{Pods: 6, LeavesPerPod: 2, SpinesPerPod: 4, SpinePorts: 4, SwitchPorts: 8, LeafLinks: 2, ServersPerLeaf: 2, GPUsPerServer: 8, Wiring: fabric.Interleaved, IotaMille: 500},
	{Pods: 5, LeavesPerPod: 4, SpinesPerPod: 8, SpinePorts: 4, SwitchPorts: 8, LeafLinks: 1, ServersPerLeaf: 2, GPUsPerServer: 8, Wiring: fabric.Interleaved, IotaMille: 125},
	{Pods: 8, LeavesPerPod: 4, SpinesPerPod: 1, SpinePorts: 8, SwitchPorts: 8, LeafLinks: 2, ServersPerLeaf: 1, GPUsPerServer: 4, Wiring: fabric.Interleaved, IotaMille: 1000},
	{Pods: 8, LeavesPerPod: 2, SpinesPerPod: 2, SpinePorts: 4, SwitchPorts: 8, LeafLinks: 2, ServersPerLeaf: 1, GPUsPerServer: 4, Wiring: fabric.Interleaved, IotaMille: 500},
	{Pods: 8, LeavesPerPod: 1, SpinesPerPod: 1, SpinePorts: 2, SwitchPorts: 8, LeafLinks: 2, ServersPerLeaf: 4, GPUsPerServer: 4, Wiring: fabric.Interleaved, IotaMille: 1000},
	{Pods: 8, LeavesPerPod: 1, SpinesPerPod: 2, SpinePorts: 2, SwitchPorts: 8, LeafLinks: 2, ServersPerLeaf: 4, GPUsPerServer: 4, Wiring: fabric.Interleaved, IotaMille: 500},
	{Pods: 8, LeavesPerPod: 2, SpinesPerPod: 2, SpinePorts: 4, SwitchPorts: 8, LeafLinks: 2, ServersPerLeaf: 1, GPUsPerServer: 4, Wiring: fabric.Interleaved, IotaMille: 500, Backup: true},
	{Pods: 4, LeavesPerPod: 3, SpinesPerPod: 2, SpinePorts: 7, SwitchPorts: 8, LeafLinks: 2, ServersPerLeaf: 2, GPUsPerServer: 4, Wiring: fabric.Uniform, IotaMille: 250},
}

func churnRun(t *testing.T, seed uint64) churn {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 3))
	core := churnCores[int(seed)%len(churnCores)]
	w := startedWorld(t, &core)
	var sum churn
	var list []proto.JobSpec
	nextID := 1
	w.trace = func(line string) {
		if os.Getenv("RINGLIGHT_TRACE_CIRCUITS") != "" {
			fmt.Println(w.now, line)
		}
	}
	fail := func(format string, args ...any) {
		t.Errorf("seed %d at %v: %s\n%s", seed, w.now, fmt.Sprintf(format, args...), w.show())
	}
	for round := 0; round < 12; round++ {
		list = slices.DeleteFunc(list, func(proto.JobSpec) bool { return r.IntN(4) == 0 })
		for range r.IntN(5) {
			list = append(list, randomJob(r, nextID, &core))
			nextID++
		}
		w.strike(r, &sum)
		w.watch(&sum, fail)
		if seed%2 == 0 {
			if reply := w.apply(list...); reply.Code != proto.OK {
				fail("refused: %+v", reply)
				return sum
			}
		} else {
			w.crowd(r, &nextID)
		}
		change := w.p.Change()
		sum.lists++
		sum.moved += int(change.Moved)
		if change.Worst*1000 > change.WorstOf*uint32(core.IotaMille) {
			fail("%d of %d links of a leaf move at once", change.Worst, change.WorstOf)
		}
		if r.IntN(4) == 0 { // the next list comes in the middle of this one's stages
			w.run(time.Duration(r.IntN(120)) * time.Millisecond)
			continue
		}
		if r.IntN(5) == 0 {
			w.outage(time.Duration(r.IntN(100)) * time.Second)
			sum.outages++
		}
		if r.IntN(3) == 0 {
			w.holdDisk = r.IntN(3) == 0
			w.run(time.Duration(r.IntN(200)) * time.Millisecond)
			w.holdDisk = false
			w.start()
			sum.restarts++
		}
		w.run(time.Duration(r.IntN(2000)) * time.Millisecond)
		if r.IntN(3) == 0 {
			w.run(time.Duration(r.IntN(120)) * time.Second)
		}
		w.repair()
		if !w.quiet(10 * time.Minute) {
			fail("no rest")
			return sum
		}
		if d := w.consistent(); d != "" {
			fail("%s", d)
			return sum
		}
		if len(w.badMove) > 0 {
			fail("%v", w.badMove)
			return sum
		}
		s := w.p.CoreStatus()
		if s.Realised < s.Granted {
			sum.short++
		}
	}
	sum.applies = w.applies
	return sum
}

func randomJob(r *rand.Rand, id int, core *fabric.Core) proto.JobSpec {
	j := spec(id, 1+r.IntN(core.LeavesPerPod*core.ServersPerLeaf*2), core.GPUsPerServer, 1)
	if j.Servers%2 == 0 && r.IntN(2) == 0 {
		j.PP = 2
	}
	if r.IntN(2) == 0 { // one link between two pods, which is where links get in each other's way
		j.TP, j.PP = 1, 1
	}
	return j
}

// crowd gives the planner jobs whose links are drawn at random, with no regard
// for locality: so ports are full and in each other's way, which the placement
// of real jobs hardly ever leads to.
func (w *coreWorld) crowd(r *rand.Rand, nextID *int) {
	c := w.p.core
	var jobs []*job
	clear(w.staying)
	leaf, pod := map[[2]int]int{}, map[[2]int]int{}
	for _, j := range c.jobs {
		if r.IntN(4) == 0 {
			continue
		}
		jobs = append(jobs, j)
		w.staying[j.spec.Job] = true
		for _, x := range j.paths {
			for _, end := range [2]int{x.A, x.B} {
				leaf[[2]int{end, x.Spine}] += x.Count
				pod[[2]int{int(c.sched.PodOf[end]), x.Spine}] += x.Count
			}
		}
	}
	for range 1 + r.IntN(6) {
		j := &job{spec: spec(*nextID, 2, 1, 1)}
		*nextID++
		for range 20 {
			x := path{r.IntN(c.core.SpinesPerPod), r.IntN(c.core.Leaves()), r.IntN(c.core.Leaves()), 1}
			p, q := int(c.sched.PodOf[x.A]), int(c.sched.PodOf[x.B])
			ends := [4]int{leaf[[2]int{x.A, x.Spine}], leaf[[2]int{x.B, x.Spine}], pod[[2]int{p, x.Spine}], pod[[2]int{q, x.Spine}]}
			if x.A >= x.B || p == q || ends[0] >= c.core.LeafLinks || ends[1] >= c.core.LeafLinks || max(ends[2], ends[3]) >= c.core.SpinePorts || j.between(x.A, x.B) > 0 {
				continue
			}
			j.add(x)
			leaf[[2]int{x.A, x.Spine}]++
			leaf[[2]int{x.B, x.Spine}]++
			pod[[2]int{p, x.Spine}]++
			pod[[2]int{q, x.Spine}]++
			j.placed.Shares = []sched.Share{{Pod: p, Leaf: x.A % c.core.LeavesPerPod, Servers: 1}}
			j.placed.Wants = append(j.placed.Wants, sched.Want{A: x.A, B: x.B, DP: 1})
			j.placed.Links = append(j.placed.Links, 1)
		}
		if len(j.paths) > 0 {
			jobs = append(jobs, j)
		}
	}
	c.jobs, c.stages = jobs, nil
	c.dirty, c.planAt = true, w.now
	w.step(Event{Kind: Tick})
}

// strike makes some switches fail at some moment of what comes.
func (w *coreWorld) strike(r *rand.Rand, sum *churn) {
	for range r.IntN(3) {
		v := &w.switches[r.IntN(len(w.switches))]
		switch r.IntN(9) {
		case 0, 1, 2:
			v.dieAt = []string{"prepare", "commit", "applied"}[r.IntN(3)]
			sum.deaths++
		case 3:
			w.die(int(v.id - proto.FirstSwitch))
			sum.deaths++
		case 4:
			v.refuse = proto.HardwareFailed
		case 5:
			v.mute = true
		case 6:
			a, b := uint16(r.IntN(w.fab.Core.Pods)), uint16(r.IntN(w.fab.Core.Pods))
			if _, lit := v.light[a]; !lit {
				v.broken[[2]uint16{a, b}] = true
			}
		case 7: // a loss of power
			for a, x := range v.light { // any order: all of them
				v.dead[[2]uint16{a, x.b}] = true
			}
			w.die(int(v.id - proto.FirstSwitch))
		case 8: // somebody at the board
			for a := range uint16(w.fab.Core.Pods) {
				if _, lit := v.light[a]; lit {
					delete(v.light, a)
					break
				}
			}
			v.byHand++
			if v.up {
				w.report(v)
			}
		}
	}
}

// repair brings everything back.
func (w *coreWorld) repair() {
	for s := range w.switches {
		v := &w.switches[s]
		v.dieAt, v.refuse, v.mute = "", proto.OK, false
		if !v.up {
			w.birth(s)
		}
	}
}

// watch counts stages and roll-backs, and checks each stage's moved shares
// from what the planner has committed.
func (w *coreWorld) watch(sum *churn, fail func(string, ...any)) {
	seen := w.p.core.open.since
	p := w.p
	old := w.trace
	var jobs []*job // those that the stage was cut for; a list may come before it is committed
	w.trace = func(line string) {
		old(line)
		switch {
		case w.p != p:
		case strings.HasPrefix(line, "log circuits prepare: stage"):
			jobs = slices.Clone(p.core.jobs)
		case strings.HasPrefix(line, "log circuits generation commit") && p.core.open.kind == stageForward && p.core.open.since != seen:
			seen = p.core.open.since
			sum.stages++
			w.shares(jobs, fail)
		case strings.HasPrefix(line, "log stage is rolled back"):
			sum.rolledBack++
		}
	}
}

// shares recounts a stage: of each leaf, the links that it has and those that
// go; and no link is left for another stage to make. A job's links between two pods on a spine serve its paths in order.
func (w *coreWorld) shares(jobs []*job, fail func(string, ...any)) {
	c := w.p.core
	before := cloneDecks(c.decks)
	for _, b := range c.open.back {
		before[b.at] = b.deck
	}
	moved, links := make([]int, c.core.Leaves()), make([]int, c.core.Leaves())
	for _, j := range jobs {
		paths := slices.Clone(j.paths)
		for at, d := range before {
			c.links(d, func(i, k int32, id proto.JobID) {
				n := slices.IndexFunc(paths, func(x path) bool {
					p, q := c.sched.PodOf[x.A], c.sched.PodOf[x.B]
					return x.Spine == c.groupOf(at) && x.Count > 0 && min(p, q) == min(i, k) && max(p, q) == max(i, k)
				})
				if id != j.spec.Job || n < 0 || c.isBad(at, i, k) {
					return
				}
				x := &paths[n]
				x.Count--
				for _, leaf := range [2]int{x.A, x.B} {
					links[leaf]++
					if c.decks[at].to[i] != k {
						moved[leaf]++
					}
				}
			})
		}
	}
	was, is := made(before, c), made(c.decks, c)
	for _, j := range jobs {
		if id := j.spec.Job; is[id] < was[id] && is[id] < j.granted() && len(c.bad) == 0 {
			fail("job %d has %d links after a stage, %d before: one waits for another stage", id, is[id], was[id])
		}
	}
	for leaf, n := range moved {
		if n*1000 > links[leaf]*c.core.IotaMille {
			fail("leaf %d: %d of %d links move in one stage", leaf, n, links[leaf])
		}
	}
}
