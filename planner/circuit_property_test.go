package planner

import (
	"encoding/json"
	"fmt"
	"maps"
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
	if testing.Short() {
		runs = 40
	}
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
	w.watch(&sum, fail)
	for round := 0; round < 12; round++ {
		list = slices.DeleteFunc(list, func(proto.JobSpec) bool { return r.IntN(4) == 0 })
		for range r.IntN(5) {
			list = append(list, randomJob(r, nextID, &core))
			nextID++
		}
		w.strike(r, &sum)
		if seed%2 == 0 {
			if reply := w.apply(list...); reply.Code != proto.OK {
				fail("refused: %+v", reply)
				return sum
			}
		} else {
			w.crowd(r, &nextID)
		}
		change := w.p.Core.Change
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
		s := w.p.Core.Status()
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
	if r.IntN(2) == 0 {
		j.Collective = proto.Collective(r.IntN(int(proto.CollectiveAllToAll) + 1))
	}
	return j
}

// stored is what the store holds of jobs and of the links that are committed.
type stored struct {
	jobs  []storedJob
	links [][][3]uint32 // of each pair of switches: from, to, job
	back  [][][3]uint32 // before the stage that is not proven
}

type storedJob struct {
	Spec   proto.JobSpec `json:"spec"`
	Shares []sched.Share `json:"shares,omitempty"`
	Wants  []sched.Want  `json:"wants,omitempty"`
	Links  []int         `json:"links,omitempty"`
	Paths  []storedPath  `json:"paths,omitempty"`
	Found  bool          `json:"found,omitempty"`
}

type storedPath struct{ Spine, A, B, Count int }

// read gives what the store holds.
func (w *coreWorld) read() stored {
	type links struct {
		Links [][3]uint32 `json:"links"`
	}
	take := func(raw []byte, v any) {
		if err := json.Unmarshal(raw, v); err != nil {
			w.t.Fatal(err)
		}
	}
	pairs := w.fab.Core.Switches()
	if w.fab.Core.Wiring != fabric.Uniform {
		pairs /= 2
	}
	out := stored{links: make([][][3]uint32, pairs)}
	keys := slices.Sorted(maps.Keys(w.store))
	for _, k := range keys {
		var at int
		switch prefix, rest, _ := strings.Cut(k, "/"); prefix {
		case "job":
			var j storedJob
			take(w.store[k], &j)
			out.jobs = append(out.jobs, j)
		case "deck":
			var l links
			take(w.store[k], &l)
			at, _ = strconv.Atoi(rest)
			out.links[at] = l.Links
		}
	}
	out.back = slices.Clone(out.links)
	if raw := w.store["stage"]; raw != nil {
		var stage struct {
			Back map[int]links `json:"back"`
		}
		take(raw, &stage)
		for at, l := range stage.Back { // any order: by index
			out.back[at] = l.Links
		}
	}
	return out
}

// crowd gives the planner jobs whose links are drawn at random, with no regard
// for locality: so ports are full and in each other's way, which the placement
// of real jobs hardly ever leads to. It puts them into the store that a planner
// then starts with.
func (w *coreWorld) crowd(r *rand.Rand, nextID *int) {
	c := w.fab.Core
	clear(w.staying)
	leaf, pod := map[[2]int]int{}, map[[2]int]int{}
	podOf := func(leaf int) int { return leaf / c.LeavesPerPod }
	key := func(id proto.JobID) string { return fmt.Sprintf("job/%010d", id) }
	for _, j := range w.read().jobs {
		if r.IntN(4) == 0 {
			delete(w.store, key(j.Spec.Job))
			continue
		}
		w.staying[j.Spec.Job] = true
		for _, x := range j.Paths {
			for _, end := range [2]int{x.A, x.B} {
				leaf[[2]int{end, x.Spine}] += x.Count
				pod[[2]int{podOf(end), x.Spine}] += x.Count
			}
		}
	}
	for range 1 + r.IntN(6) {
		j := storedJob{Spec: spec(*nextID, 2, 1, 1)}
		*nextID++
		for range 20 {
			x := storedPath{r.IntN(c.SpinesPerPod), r.IntN(c.Leaves()), r.IntN(c.Leaves()), 1}
			p, q := podOf(x.A), podOf(x.B)
			ends := [4]int{leaf[[2]int{x.A, x.Spine}], leaf[[2]int{x.B, x.Spine}], pod[[2]int{p, x.Spine}], pod[[2]int{q, x.Spine}]}
			if x.A >= x.B || p == q || ends[0] >= c.LeafLinks || ends[1] >= c.LeafLinks || max(ends[2], ends[3]) >= c.SpinePorts ||
				slices.ContainsFunc(j.Paths, func(o storedPath) bool { return o.A == x.A && o.B == x.B }) {
				continue
			}
			j.Paths = append(j.Paths, x)
			leaf[[2]int{x.A, x.Spine}]++
			leaf[[2]int{x.B, x.Spine}]++
			pod[[2]int{p, x.Spine}]++
			pod[[2]int{q, x.Spine}]++
			j.Shares = []sched.Share{{Pod: p, Leaf: x.A % c.LeavesPerPod, Servers: 1}}
			j.Wants = append(j.Wants, sched.Want{A: x.A, B: x.B, DP: 1})
			j.Links = append(j.Links, 1)
		}
		if len(j.Paths) > 0 {
			raw, err := json.Marshal(j)
			if err != nil {
				w.t.Fatal(err)
			}
			w.store[key(j.Spec.Job)] = raw
		}
	}
	w.start()
	for w.p.Core.Status().Jobs > 0 && w.p.Core.Change.Placed == 0 && w.now < w.next() && w.next() != Never {
		w.run(time.Second) // it listens first, then looks at what it has
	}
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
			a, b := uint16(r.IntN(w.fab.Core.Ports())), uint16(r.IntN(w.fab.Core.Ports()))
			if _, lit := v.light[a]; !lit {
				v.broken[[2]uint16{a, b}] = true
			}
		case 7: // a loss of power
			for a, x := range v.light { // any order: all of them
				v.dead[[2]uint16{a, x.b}] = true
			}
			w.die(int(v.id - proto.FirstSwitch))
		case 8: // somebody at the board
			for a := range uint16(w.fab.Core.Ports()) {
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
// from what the store holds.
func (w *coreWorld) watch(sum *churn, fail func(string, ...any)) {
	old := w.trace
	var jobs []storedJob // those that the stage was cut for; a list may come before it is committed
	w.trace = func(line string) {
		old(line)
		switch {
		case strings.HasPrefix(line, "log circuits prepare:"):
			jobs = nil
			if strings.HasPrefix(line, "log circuits prepare: stage") {
				jobs = w.read().jobs
			}
		case strings.HasPrefix(line, "log circuits generation commit") && jobs != nil:
			sum.stages++
			w.shares(jobs, fail)
		case strings.HasPrefix(line, "log stage is rolled back"):
			sum.rolledBack++
		}
	}
}

// broken: one of the two circuits of a link never comes up.
func (w *coreWorld) broken(at int, l [3]uint32) bool {
	a, b := uint16(l[0]), uint16(l[1])
	if w.fab.Core.Wiring == fabric.Uniform {
		return w.switches[at].broken[[2]uint16{a, b}] || w.switches[at].broken[[2]uint16{b, a}]
	}
	return w.switches[2*at].broken[[2]uint16{a, b}] || w.switches[2*at+1].broken[[2]uint16{b, a}]
}

// shares recounts a stage: of each leaf, the links that it has and those that
// go; and no link is left for another stage to make. A job's links between two
// pods on a spine serve its paths in order.
func (w *coreWorld) shares(jobs []storedJob, fail func(string, ...any)) {
	c := w.fab.Core
	now := w.read()
	uniform, perGroup := c.Wiring == fabric.Uniform, len(now.links)/c.Groups()
	moved, links := make([]int, c.Leaves()), make([]int, c.Leaves())
	was, is := map[proto.JobID]int{}, map[proto.JobID]int{}
	anyBroken := false
	var anyones [][]storedPath // for each link that moves to another spine, the paths it may have served
	// left: a job has fewer paths between two pods on a spine than it had links.
	left := func(j storedJob, h int, of [3]uint32, back [][][3]uint32) bool {
		n := 0
		same := func(p, q uint32) bool { return min(p, q) == min(of[0], of[1]) && max(p, q) == max(of[0], of[1]) }
		for _, x := range j.Paths {
			if x.Spine == h && same(uint32(x.A/c.LeavesPerPod), uint32(x.B/c.LeavesPerPod)) {
				n -= x.Count
			}
		}
		for _, links := range back[h*perGroup : (h+1)*perGroup] {
			for _, l := range links {
				if proto.JobID(l[2]) == j.Spec.Job && same(l[0], l[1]) && (!uniform || l[0] < l[1]) {
					n++
				}
			}
		}
		return n > 0
	}
	for _, j := range jobs {
		id, paths := j.Spec.Job, slices.Clone(j.Paths)
		served := map[[2]int]bool{} // by map and sender
		for at := range now.links {
			for _, l := range now.links[at] {
				if proto.JobID(l[2]) == id && (!uniform || l[0] < l[1]) {
					is[id]++
				}
			}
		}
		for _, away := range [2]bool{false, true} { // a link on its way to another spine is lit where it was
			for at := range now.links {
				for _, l := range now.back[at] {
					if proto.JobID(l[2]) != id || uniform && l[0] > l[1] || away && served[[2]int{at, int(l[0])}] {
						continue
					}
					if !away {
						was[id]++
					}
					broken := w.broken(at, l)
					anyBroken = anyBroken || broken
					stays := slices.ContainsFunc(now.links[at], func(o [3]uint32) bool { return o[0] == l[0] && o[1] == l[1] })
					if !away && !stays && left(j, at/perGroup, l, now.back) {
						continue
					}
					n := slices.IndexFunc(paths, func(x storedPath) bool {
						p, q := uint32(x.A/c.LeavesPerPod), uint32(x.B/c.LeavesPerPod)
						return (away || x.Spine == at/perGroup) && x.Count > 0 && min(p, q) == min(l[0], l[1]) && max(p, q) == max(l[0], l[1])
					})
					if n < 0 || broken {
						continue
					}
					served[[2]int{at, int(l[0])}] = true
					x := &paths[n]
					x.Count--
					links[x.A]++
					links[x.B]++
					if !stays && away { // whose it was of those between the two pods, nobody can say
						anyones = append(anyones, slices.DeleteFunc(slices.Clone(j.Paths), func(y storedPath) bool {
							return y.A/c.LeavesPerPod != x.A/c.LeavesPerPod || y.B/c.LeavesPerPod != x.B/c.LeavesPerPod
						}))
						continue
					}
					if !stays {
						moved[x.A]++
						moved[x.B]++
					}
				}
			}
		}
		granted := 0
		for _, n := range j.Links {
			granted += n
		}
		if id := j.Spec.Job; is[id] < was[id] && is[id] < granted && !anyBroken {
			fail("job %d has %d links after a stage, %d before: one waits for another stage", id, is[id], was[id])
		}
	}
	for _, of := range anyones {
		may := func(leaf int) bool { return (moved[leaf]+1)*1000 <= links[leaf]*c.IotaMille }
		x := of[max(0, slices.IndexFunc(of, func(x storedPath) bool { return may(x.A) && may(x.B) }))]
		moved[x.A]++
		moved[x.B]++
	}
	for leaf, n := range moved {
		if n*1000 > links[leaf]*c.IotaMille {
			fail("leaf %d: %d of %d links move in one stage", leaf, n, links[leaf])
		}
	}
}
