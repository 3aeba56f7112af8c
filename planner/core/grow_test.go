package core

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/journal"
	"ringlight/proto"
)

// growing is a core whose store is kept, and whose switches have the light that they
// are told.
type growing struct {
	t     *testing.T
	c     *Circuits
	store map[string][]byte
	dead  map[slot]bool              // circuits without light
	unlit func(s int, a uint16) bool // ports into which none comes; nil: none
	now   time.Duration
}

// record keeps what is stored in f.
func (g *growing) record(f func()) {
	g.c.j.Begin(g.now, 0, nil)
	f()
	for _, a := range g.c.j.End() {
		g.keep(a.Records...)
	}
}

func (g *growing) keep(records ...journal.Record) {
	for _, r := range records {
		if g.store[r.Key] = r.Value; r.Value == nil {
			delete(g.store, r.Key)
		}
	}
}

// realise commits a design, as a stage would, and has it shown by light.
func (g *growing) realise(d design) {
	g.record(func() {
		for at := range d.maps {
			g.keep(journal.Encode(mapKey(at), recordOf(d.maps[at])))
		}
		g.c.jobs.all, g.c.Evidence.maps, g.c.heard, g.c.Table.Numbers.Fresh = d.jobs, d.maps, true, false
		g.c.saveJobs()
		g.show()
	})
}

func (g *growing) show() {
	c := g.c
	for s := range c.Evidence.switches {
		d, at := c.Evidence.switches[s].Device, s
		if !d.Heard() {
			c.Table.Presence(d, &proto.Presence{Node: d.ID, Session: 1, Online: true, Ports: 64})
		}
		at, _ = c.Evidence.layout.mapOf(s)
		m := &proto.Reported{Node: d.ID, Session: 1}
		for _, x := range c.Evidence.layout.circuitsOf(s, c.Evidence.maps[at]) {
			state, loss := proto.Tuned, proto.MilliDBm(0)
			if g.unlit != nil && g.unlit(s, x.A) {
				state, loss = proto.Tuning, proto.NoPower
			}
			if g.dead[slot{s, x.A, x.B}] {
				state = proto.Failed
				c.Evidence.bad[slot{s, x.A, x.B}] = 1
			}
			m.Circuits = append(m.Circuits, proto.CircuitReport{A: x.A, B: x.B, Job: x.Job, State: state, Loss: loss})
		}
		c.Table.Reported(d, m, false)
		c.Evidence.switches[s].Unassigned = false
	}
}

// again is a planner that starts from the store.
func (g *growing) again() *Circuits {
	c := New(g.c.Evidence.fab, journal.New(), nobody{})
	var st journal.State
	for _, key := range slices.Sorted(maps.Keys(g.store)) {
		st = append(st, journal.Record{Key: key, Value: g.store[key]})
		for _, prefix := range Prefixes {
			if rest, is := strings.CutPrefix(key, prefix); is {
				if err := c.Restore(prefix, rest, g.store[key]); err != nil {
					g.t.Fatalf("%s: %v", key, err)
				}
			}
		}
	}
	if err := c.RestoreStage(st); err != nil {
		g.t.Fatal(err)
	}
	return c
}

// same compares what is known of jobs, circuits and parts.
func (g *growing) same(o *Circuits) {
	g.t.Helper()
	c := g.c
	if !maps.Equal(c.jobs.saved, o.jobs.saved) || !maps.Equal(c.Evidence.out.why, o.Evidence.out.why) || len(c.Evidence.maps) != len(o.Evidence.maps) || len(c.Evidence.switches) != len(o.Evidence.switches) {
		g.t.Fatalf("%d jobs and %v out, stored %d and %v", len(c.jobs.saved), c.Evidence.out.why, len(o.jobs.saved), o.Evidence.out.why)
	}
	for at := range c.Evidence.maps {
		if !c.Evidence.maps[at].equal(o.Evidence.maps[at]) {
			g.t.Fatalf("map %d is %v, stored as %v", at, c.Evidence.maps[at], o.Evidence.maps[at])
		}
	}
}

// circuits are those of jobs, by switch.
func (g *growing) circuits() (out []string) {
	for s := range g.c.Evidence.switches {
		at, _ := g.c.Evidence.layout.mapOf(s)
		for _, x := range g.c.Evidence.layout.circuitsOf(s, g.c.Evidence.maps[at]) {
			if x.Job != 0 {
				out = append(out, fmt.Sprintf("switch %d: %d to %d of job %d", s, x.A, x.B, x.Job))
			}
		}
	}
	return out
}

// edit makes a core another one, if nobody is in the way, and reports whether it did.
func (g *growing) edit(to *fabric.Core) (done bool) {
	before := g.circuits()
	if refused := GrowthOf(g.c).Against(to); len(refused) > 0 {
		for _, text := range refused {
			if !strings.HasPrefix(text, "job ") {
				g.t.Fatal(text)
			}
		}
		return false
	}
	g.c.Stages.todo = nil
	g.record(func() { g.keep(GrowthOf(g.c).Refit(to)...) })
	g.same(g.again())
	for range 7 { // a stage for what is new, of a server's fibres one each, one for what shows no light, one without either
		list := false
		g.record(func() { list = g.c.Evidence.prove() })
		g.realise(g.c.design(g.c.jobs.all, list))
		g.same(g.again())
	}
	if after := g.circuits(); slices.ContainsFunc(before, func(x string) bool { return !slices.Contains(after, x) }) {
		g.t.Fatalf("circuits moved: %v, then %v", before, after)
	}
	return true
}

var growingOf = []fabric.Core{
	{Pods: 3, LeavesPerPod: 2, SpinesPerPod: 2, SpinePorts: 4, SwitchPorts: 64, LeafLinks: 2, ServersPerLeaf: 2, GPUsPerServer: 4, Wiring: fabric.Interleaved, IotaMille: 500},
	{Pods: 3, LeavesPerPod: 3, SpinesPerPod: 1, SpinePorts: 6, SwitchPorts: 64, LeafLinks: 1, ServersPerLeaf: 2, GPUsPerServer: 4, Wiring: fabric.Interleaved, IotaMille: 500, Backup: true},
	{Pods: 4, LeavesPerPod: 2, SpinesPerPod: 1, SpinePorts: 5, SwitchPorts: 64, LeafLinks: 2, ServersPerLeaf: 2, GPUsPerServer: 4, Wiring: fabric.Uniform, IotaMille: 500},
	{Kind: fabric.KindLeafSpine, GPUsPerServer: 4, SwitchPorts: 64, LeafSpine: &fabric.LeafSpine{Leaves: 6, Spines: 3, GPUsPerLeaf: 8, Switches: 4, AnyToAny: true, FirstSpinePort: 12, PortsPerSpine: 4}},
	{Kind: fabric.KindDirect, GPUsPerServer: 4, SwitchPorts: 64, Direct: &fabric.Direct{Servers: 8, Degree: 2, SecondPort: 8}},
}

// drawEdit is a core with other sizes.
func drawEdit(was *fabric.Core, r *rand.Rand) *fabric.Core {
	to := *was
	switch {
	case was.LeafSpine != nil:
		l := *was.LeafSpine
		to.LeafSpine = &l
		l.Leaves, l.Spines = max(2, l.Leaves+r.IntN(7)-3), max(1, l.Spines+r.IntN(3)-1)
		return &to
	case was.Direct != nil:
		d := *was.Direct
		to.Direct = &d
		d.Servers = max(2, d.Servers+r.IntN(9)-4)
		return &to
	}
	switch r.IntN(3) {
	case 0:
		to.SpinesPerPod = max(1, to.SpinesPerPod+r.IntN(3)-1)
	case 1:
		if to.SpinesPerPod == 1 {
			to.SpinePorts = max(to.LeavesPerPod*to.LeafLinks, to.SpinePorts+2*r.IntN(3)-2)
		}
	default:
		to.LeavesPerPod, to.ServersPerLeaf = max(1, to.LeavesPerPod+r.IntN(3)-1), max(1, to.ServersPerLeaf+r.IntN(3)-1)
	}
	to.Pods = max(2, to.Pods+r.IntN(5)-2)
	return &to
}

// Goal: whatever pods, leaves, servers, spines and switches come and go at the end of their numbers, no
// circuit of a job goes for it, what is stored is what is known, what is new is let in
// by light alone, and what comes of it has room for what a core has that was never
// another one.
// Method: edits and job lists drawn by seed; after each edit jobs are released, and a
// list is placed on the grown core and on a new one.
func TestCoresGrowAndShrink(t *testing.T) {
	done, refused := 0, 0
	draw := func(k *fabric.Core, r *rand.Rand, id int) proto.JobSpec {
		for {
			s := spec(id, 1+r.IntN(k.Servers()/2), 4, 1)
			if k.Alone() {
				s.TP = 1
			}
			if (&jobList{fab: k}).check([]proto.JobSpec{s}, designerOf(k)) == nil {
				return s
			}
		}
	}
	for seed := range uint64(60) {
		k := growingOf[seed%5]
		r := rand.New(rand.NewPCG(seed, 0x960))
		g := &growing{t: t, c: readyCircuits(&k), store: map[string][]byte{}}
		g.c.heard, g.c.Table.Numbers.Fresh = true, false
		id := 0
		for range 8 {
			var list []proto.JobSpec
			for _, j := range g.c.jobs.all {
				if r.IntN(3) > 0 && j.runs() {
					list = append(list, j.spec)
				}
			}
			for range 1 + r.IntN(3) {
				id++
				list = append(list, draw(g.c.Evidence.fab, r, id))
			}
			g.realise(g.c.design(g.c.jobs.list(list), true))
			to := drawEdit(g.c.Evidence.fab, r)
			was := &fabric.Fabric{Name: "f", Core: g.c.Evidence.fab}
			if to.Validate() != nil || was.MayBecome(&fabric.Fabric{Name: "f", Core: to}) != nil {
				continue
			}
			if !g.edit(to) {
				refused++
				continue
			}
			done++
			if len(g.c.Evidence.out.why) > 0 {
				t.Fatalf("seed %d: %v", seed, g.c.Evidence.out.why)
			}
			fresh := readyCircuits(to)
			list = nil
			for n := range 1 + r.IntN(4) {
				list = append(list, draw(to, r, 1000+n))
			}
			a, b := g.c.design(g.c.jobs.list(list), true), fresh.design(fresh.jobs.list(list), true)
			if a.change.Granted != b.change.Granted || a.change.Realised != b.change.Realised || !slices.Equal(a.change.Waiting, b.change.Waiting) {
				t.Fatalf("seed %d: grown: %+v, new: %+v", seed, a.change, b.change)
			}
		}
	}
	t.Logf("%d edits, %d refused for jobs in the way", done, refused)
	if done < 100 || refused < 20 {
		t.Error("this shows little")
	}
}

// Goal: a new port without light stays out by name, its neighbours do not, and no job
// has a circuit over it.
// Method: two ports of new pods are dead on some switches.
func TestNewPortsWithoutLightStayOut(t *testing.T) {
	k := growingOf[0]
	g := &growing{t: t, c: readyCircuits(&k), store: map[string][]byte{}, dead: map[slot]bool{{0, 3, 3}: true, {5, 4, 4}: true}}
	g.c.heard, g.c.Table.Numbers.Fresh = true, false
	to := k
	to.Pods = 5
	if !g.edit(&to) {
		t.Fatal("refused")
	}
	var gone []string
	for _, s := range []string{"switch0/%c3", "switch5/%c4"} {
		// The other switch of a pair has the way back, which is of no use alone.
		var n, p int
		fmt.Sscanf(strings.Replace(s, "%c", "a", 1), "switch%d/a%d", &n, &p)
		for _, sw := range []int{n &^ 1, n | 1} {
			gone = append(gone, fmt.Sprintf("switch%d/a%d", sw, p), fmt.Sprintf("switch%d/b%d", sw, p))
		}
	}
	if parts := slices.Sorted(maps.Keys(g.c.Evidence.out.why)); !slices.Equal(parts, slices.Sorted(slices.Values(gone))) || len(g.c.Evidence.bad) > 0 {
		t.Fatalf("out: %v, bad: %v", g.c.Evidence.out.why, g.c.Evidence.bad)
	}
	g.realise(g.c.design(g.c.jobs.list([]proto.JobSpec{spec(1, 20, 4, 1)}), true))
	for _, x := range g.circuits() {
		if strings.HasPrefix(x, "switch 0: 3 ") || strings.HasPrefix(x, "switch 5: 4 ") {
			t.Error(x)
		}
	}
	if n := len(g.circuits()); n == 0 {
		t.Error("no circuits")
	}
}

// Goal: of a new server each fibre by itself is let in by light, or stays out by name.
// Method: one fibre whose mirrors are dead, one whose server hears nothing.
func TestNewFibresWithoutLightStayOut(t *testing.T) {
	k := growingOf[4]
	g := &growing{t: t, c: readyCircuits(&k), store: map[string][]byte{}, dead: map[slot]bool{{0, 16, 16}: true, {2 + 9, 1, 3}: true}}
	g.c.heard, g.c.Table.Numbers.Fresh = true, false
	to, d := k, *k.Direct
	to.Direct, d.Servers = &d, 10
	if !g.edit(&to) {
		t.Fatal("refused")
	}
	if parts := slices.Sorted(maps.Keys(g.c.Evidence.out.why)); !slices.Equal(parts, []string{"switch0/a16", "switch0/b16", "switch1/a19", "switch1/b19"}) || len(g.c.Evidence.bad) > 0 {
		t.Fatalf("out: %v, bad: %v", g.c.Evidence.out.why, g.c.Evidence.bad)
	}
	g.realise(g.c.design(g.c.jobs.list([]proto.JobSpec{{Job: 1, TP: 4, EP: 1, PP: 1, Servers: 10}}), true))
	for _, x := range g.circuits() {
		if strings.HasPrefix(x, "switch 0: 16 ") || strings.HasPrefix(x, "switch 1: 19 ") {
			t.Error(x)
		}
	}
	if j := g.c.jobs.find(1); j.shard == nil || len(g.circuits()) != 2*j.shard.links()+len(j.shard.Servers)*k.Degree-j.shard.links() {
		t.Errorf("%+v, %q", j.shard, j.why)
	}
}

// Goal: leaves with fixed links come and go at the end of their numbers while jobs run:
// no job moves or loses a link, one whose leaf is to go is named and nothing is done, and
// those that waited have room on what is new.
// Method: four leaves, full; eight; four, with a job in the way; six and four without it.
func TestFixedLeavesGrowAndShrink(t *testing.T) {
	core := func(leaves int) *fabric.Core {
		return &fabric.Core{Kind: fabric.KindLeafSpine, GPUsPerServer: 2, LeafSpine: &fabric.LeafSpine{Leaves: leaves, Spines: 4, GPUsPerLeaf: 8}}
	}
	g := &growing{t: t, c: readyCircuits(core(4)), store: map[string][]byte{}}
	g.c.heard, g.c.Table.Numbers.Fresh = true, false
	list := []proto.JobSpec{{Job: 1, TP: 1, EP: 1, PP: 1, DP: 16}, {Job: 2, TP: 1, EP: 1, PP: 1, DP: 16}, {Job: 3, TP: 1, EP: 1, PP: 1, DP: 16}}
	g.realise(g.c.design(g.c.jobs.list(list), true))
	first, second := *g.c.jobs.find(1).own, *g.c.jobs.find(2).own
	stays := func() {
		t.Helper()
		if a, b := g.c.jobs.find(1).own, g.c.jobs.find(2).own; !reflect.DeepEqual(*a, first) || !reflect.DeepEqual(*b, second) {
			t.Fatalf("%+v, %+v; then %+v, %+v", first, second, *a, *b)
		}
	}
	if g.c.jobs.find(3).own != nil {
		t.Fatal("three jobs fit four leaves")
	}
	if !g.edit(core(8)) {
		t.Fatal("refused")
	}
	g.realise(g.c.design(g.c.jobs.all, true))
	if stays(); g.c.jobs.find(3).own == nil {
		t.Fatal("no room on eight leaves")
	}
	if g.edit(core(4)) {
		t.Fatal("the leaves of job 3 went")
	}
	if refused := GrowthOf(g.c).Against(core(4)); len(refused) != 1 || !strings.HasPrefix(refused[0], "job 3 has something of leaf") {
		t.Fatalf("%q", refused)
	}
	g.realise(g.c.design(g.c.jobs.list(list[:2]), true))
	if !g.edit(core(6)) || !g.edit(core(4)) {
		t.Fatal("refused, and job 3 is gone")
	}
	stays()
}
