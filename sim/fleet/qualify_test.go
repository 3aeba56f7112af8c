package fleet

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/mzi/detmath"
	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/sim"
)

// bench is a fabric of one ring and nodes beside it that are in none, and what the
// planner answered about bits.
type bench struct {
	*Run
	t    testing.TB
	said []*proto.OpReply
}

func newBench(t testing.TB, nodes, spares, modules int, seed uint64) *bench {
	o, err := catalogue()
	if err != nil {
		t.Fatal(err)
	}
	return newBenchOf(t, o, nodes, spares, modules, seed, nil)
}

func newBenchOf(t testing.TB, o *Optics, nodes, spares, modules int, seed uint64, first func(*bench)) *bench {
	b := &bench{t: t}
	f, err := fabric.New(fabric.Params{Name: "f1", Nodes: nodes, GPUsPerNode: 4, K: 2, TP: 16, Topology: fabric.Line, Spares: spares, SpareLayout: fabric.AtEnd})
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Fabric: f, Modules: modules, Seed: seed, Health: time.Minute, HealthModules: 1, Optics: o, Replay: t.Name()}
	cfg.mutant = &mutant{rewrite: func(_ *Run, p proto.Packet) proto.Packet {
		r := new(proto.OpReply)
		if topic, err := proto.ParseTopic(p.Topic); err == nil && topic.Kind == proto.TopicReply {
			if _, err := proto.Decode(p.Payload, r); err == nil {
				b.said = append(b.said, r)
			}
		}
		return p
	}}
	if b.Run, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	if first != nil {
		first(b)
	}
	if err := b.start(); err != nil {
		t.Fatal(err)
	}
	b.run(2 * time.Second)
	return b
}

func (b *bench) run(d time.Duration) {
	b.t.Helper()
	if err := b.runTo(b.now + d); err != nil {
		b.t.Fatal(err)
	}
}

// answer asks a question and gives its answer.
func (b *bench) answer(q proto.OpRequest) *proto.OpReply {
	b.t.Helper()
	b.asked++
	q.Corr, q.Bundle = corrOf(b.asked), -1
	for range 20 {
		b.inject.ask(q)
		b.run(500 * time.Millisecond)
		for _, r := range b.said {
			if r.Corr == q.Corr {
				return r
			}
		}
	}
	b.t.Fatalf("%v is not answered", q.Noun)
	return nil
}

// qualify counts bits and gives what came of it, and in what time.
func (b *bench) qualify(names ...string) (map[string]proto.Qualification, time.Duration) {
	b.t.Helper()
	began := b.now
	if r := b.answer(proto.OpRequest{Noun: proto.NounQualify, Names: names}); r.Code != proto.OK {
		b.t.Fatalf("%v: %+v", names, r)
	}
	out := map[string]proto.Qualification{}
	for running := true; running; {
		running = false
		for q := (proto.OpRequest{Noun: proto.NounQualify, DryRun: true}); ; {
			r := b.answer(q)
			running = running || r.Running
			for _, x := range r.Bits {
				out[x.Fibre] = x
			}
			if q.Page = r.Next; q.Page == 0 {
				break
			}
		}
	}
	return out, b.now - began
}

// quiet: no module makes or checks patterns, and no node but those of a ring is lit.
func (b *bench) quiet(what string) {
	b.t.Helper()
	for _, st := range b.nodes {
		for bundle := range b.cfg.Fabric.Bundles {
			for m := range b.cfg.Modules {
				if in := b.world.Inside(st.board, bundle, m); in.Makes|in.Checks != 0 {
					b.t.Errorf("%s: node %d bundle %d module %d makes patterns on %02x, checks %02x", what, st.id, bundle, m, in.Makes, in.Checks)
				}
			}
		}
	}
}

// ringKept fails when the light of the ring has changed since.
func (b *bench) ringKept(since time.Duration, what string) {
	b.t.Helper()
	for _, st := range b.nodes[:4] {
		for bundle := range b.cfg.Fabric.Bundles {
			path, _ := b.world.Selected(st.board, bundle)
			if at, lit := b.world.LastChange(sim.Port{Board: st.board, Bundle: bundle, Path: path}); at >= since || !lit {
				b.t.Errorf("%s: node %d bundle %d: light on path %d turned %t at %v, asked for at %v", what, st.id, bundle, path, lit, at, since)
			}
		}
	}
}

func port(f fabric.Fibre, end int) (proto.NodeID, int, int) {
	p := [2]fabric.Port{f.A, f.B}[end]
	return p.Node, int(p.Bundle), int(p.Path - proto.Loopback)
}

// made are the defects that are made of the fibre 8-9 or its ends, and what is to be
// said of it.
var made = []struct {
	name, result, says string
	make               func(b *bench, f fabric.Fibre) error
}{
	{"sound", "good", "no error", func(*bench, fabric.Fibre) error { return nil }},
	{"dirty connector at one end", "bad", "module 1 loses it both ways: a dirty connector", dirt(0, 5000)},
	{"dirty connector at the other", "bad", "module 1 loses it both ways: a dirty connector", dirt(1, 5000)},
	{"so dirty that bits fall over", "bad", "errors in", dirt(0, 6500)},
	{"bent fibre", "bad", "the fibre is bent or damaged", func(b *bench, f fabric.Fibre) error { return b.world.Bend(SimPort(f.A), 4000) }},
	{"ageing lasers", "bad", "launches 2.8 dB less than at its calibration: its lasers age", func(b *bench, f fabric.Fibre) error {
		if err := b.world.Bend(SimPort(f.A), 3000); err != nil { // which a young laser bears
			return err
		}
		return breaks(0, sim.LaserAged, 2800)(b, f)
	}},
	{"dead lasers of a module", "not_tried", "node 8: reported by the node: isolated", breaks(0, sim.LaserAged, 20_000)}, // whose loopback told before
	{"dead laser of a lane", "bad", "module 1 of node 8 launches 0.4 dB less than at its calibration: 1 lane of it, a dead laser", breaks(0, sim.LaserDead, 3)},
	{"noisy receiver", "bad", "within the budget: stray light of its own matrix, or a noisy receiver", breaks(1, sim.Deaf, 8000)},
	{"cut", "bad", "shows no light at nodes 8 and 9", func(b *bench, f fabric.Fibre) error { return b.world.Cut(SimPort(f.A), sim.Both) }},
	{"cut one way", "bad", "shows no light at node 9", func(b *bench, f fabric.Fibre) error { return b.world.Cut(SimPort(f.A), sim.Out) }},
	{"plugged in crosswise", "bad", "shows no light", func(b *bench, f fabric.Fibre) error {
		other := named(b, "10-11")
		b.world.Unplug(SimPort(f.A))
		b.world.Unplug(SimPort(other.A))
		if err := b.world.Connect(SimPort(f.A), SimPort(other.B), sim.Fibre{LossMilliDB: fibreLoss}); err != nil {
			return err
		}
		return b.world.Connect(SimPort(other.A), SimPort(f.B), sim.Fibre{LossMilliDB: fibreLoss})
	}},
	{"in another port", "bad", "shows no light", func(b *bench, f fabric.Fibre) error {
		b.world.Unplug(SimPort(f.A))
		return nil
	}},
	{"crosstalk: a lane's light leaks into the loopback", "bad", "a cell leads it astray, as stray light into 1 lane of its own receiver", breaks(1, sim.HeaterStuck, hal.CellMZI1+2)},
	{"retimer that does not answer", "not_tried", "address not acknowledged", func(b *bench, f fabric.Fibre) error {
		node, bundle, _ := port(f, 0)
		return b.world.Inject(b.nodes[node].board, sim.Fault{Kind: sim.ChipGone, Bus: b.board.Bundles[bundle].Modules[0].Slow, Addr: 0x58})
	}},
}

func named(b *bench, name string) fabric.Fibre {
	for _, f := range b.cfg.Fabric.AllFibres() {
		if fmt.Sprintf("%d-%d", f.A.Node, f.B.Node) == name {
			return f
		}
	}
	b.t.Fatalf("no fibre %s", name)
	return fabric.Fibre{}
}

// breaks is a fault of module 1 of an end.
func breaks(end int, kind sim.FaultKind, mdb int) func(*bench, fabric.Fibre) error {
	return func(b *bench, f fabric.Fibre) error {
		node, bundle, path := port(f, end)
		return b.world.Inject(b.nodes[node].board, sim.Fault{Kind: kind, Bundle: bundle, Module: 1, Path: path, Index: mdb})
	}
}

func dirt(end, mdb int) func(*bench, fabric.Fibre) error { return breaks(end, sim.Dirt, mdb) }

// Goal: fourteen made defects of a link are found and named, a sound one is good, the
// fibres of a ring are refused by its name and keep their light, and no pattern stays.
// Method: agents, planner and boards on the virtual clock; one defect a fabric.
func TestMadeDefectsAreNamed(t *testing.T) {
	for _, d := range made {
		t.Run(d.name, func(t *testing.T) {
			b := newBench(t, 12, 8, 2, 1)
			f := named(b, "8-9")
			if err := d.make(b, f); err != nil {
				t.Fatal(err)
			}
			since := b.now
			got, took := b.qualify("0-1", "8-9", "10-11")
			x := got["8-9"]
			t.Logf("%v after %v: %.1e, %v of %v: %s", x.Result, took, float64(x.Errors)/math.Max(1, float64(x.Bits)), x.Loss, x.Budget, x.Text)
			if x.Result.String() != d.result || !strings.Contains(x.Text, d.says) {
				t.Errorf("%s: %v %q, want %s and %q", d.name, x.Result, x.Text, d.result, d.says)
			}
			if lit := got["0-1"]; lit.Result != proto.NotTried || !strings.Contains(lit.Text, "carries ring 1") {
				t.Errorf("a lit fibre: %+v", lit)
			}
			b.run(time.Second)
			b.quiet(d.name)
			b.ringKept(since, d.name)
		})
	}
}

// Goal: of good links no more are rejected than is claimed, in the whole of agents,
// planner and boards; how long a link and a fabric take is printed.
// Method: RINGLIGHT_LINKS fibres, 250, of nodes that are in no ring, seeds one after the
// other; good are those whose every lane has at most 1e-9 wrong bits by the simulator's own
// light, and at most 6.1 dB of loss by its construction.
func TestGoodLinksAreNotRejected(t *testing.T) {
	want, err := strconv.Atoi(cmp.Or(os.Getenv("RINGLIGHT_LINKS"), "250"))
	if err != nil {
		t.Fatal(err)
	}
	nodes := 130
	if want > 1000 {
		nodes = 1000
	}
	links, bad, tried := 0, 0, 0
	var longest, total time.Duration
	for seed := uint64(1); links < want; seed++ {
		b := newBench(t, nodes, nodes-4, 1, seed)
		got, took := b.qualify()
		total = max(total, took)
		for name, x := range got { // any order: counted
			switch x.Result {
			case proto.Good:
			case proto.Bad:
				bad++
				t.Logf("seed %d: %s: %s", seed, name, x.Text)
			default:
				if !strings.Contains(x.Text, "carries ring") {
					tried++
					t.Errorf("seed %d: %s is not tried: %s", seed, name, x.Text)
				}
				continue
			}
			longest = max(longest, time.Duration(x.Micros)*time.Microsecond)
			links++
		}
		b.run(time.Second)
		b.quiet("at the end")
	}
	t.Logf("%d links, %d bad, %d not tried; bits of a link counted for at most %v; a fabric of %d nodes %v", links, bad, tried, longest, nodes, total)
	if float64(bad) > 0.01*float64(links) {
		t.Errorf("%d of %d good links are called bad", bad, links)
	}
}

// Goal: whatever happens in the middle of a count, no light of a ring changes, no ring
// gets a bundle that makes patterns, and none is made 10 s later.
// Method: RINGLIGHT_ATTACKS counts, 12, each with deaths of agents or planner, power losses,
// cuts, drains, another question or a job's ring at a time drawn within it; the patterns of
// all modules are looked at each millisecond.
func TestCountsThatAreDisturbed(t *testing.T) {
	attacks, err := strconv.Atoi(cmp.Or(os.Getenv("RINGLIGHT_ATTACKS"), "12"))
	if err != nil {
		t.Fatal(err)
	}
	made, results := 0, map[string]int{}
	first, _ := strconv.Atoi(cmp.Or(os.Getenv("RINGLIGHT_FIRST"), "1"))
	for seed := uint64(first); seed < uint64(first+attacks); seed++ {
		b := newBench(t, 12, 8, 2, seed)
		r := random{seed: detmath.Hash(seed, 0x9b5)}
		since, struck, kept := b.now, false, true
		b.asked++
		b.inject.ask(proto.OpRequest{Noun: proto.NounQualify, Corr: corrOf(b.asked), Bundle: -1})
		at := b.now + r.between(0, 1500*time.Millisecond)
		victim := proto.NodeID(4 + r.below(8))
		what := r.below(8)
		for end := b.now + 12*time.Second; b.now < end; {
			if b.now >= at && !struck {
				struck = true
				f := Fault{Node: victim}
				switch what {
				case 0:
					f.Verb, f.For = AgentCrash, time.Second
				case 1:
					f.Verb, f.Node, f.For = PlannerKill, 0, time.Second
				case 2:
					f.Verb, f.Node = PlannerKill, 0 // and stays dead
				case 3:
					f.Verb, f.For = NodeDark, time.Second
				case 4:
					f.Verb, f.For = HostFault, time.Second
				case 5:
					f.Verb, f.Node = NodeDark, 2 // the ring wants another node
					kept = false
				case 6:
					f.Verb, f.For = LinkCut, 3*time.Second
				default:
					f.Verb = Drain
				}
				if err := b.inject.apply(&f); err != nil {
					t.Fatal(err)
				}
				b.asked++ // and both ends are asked once more
				b.inject.ask(proto.OpRequest{Noun: proto.NounQualify, Corr: corrOf(b.asked), Bundle: -1})
			}
			b.run(time.Millisecond)
			for _, st := range b.nodes {
				for bundle := range b.cfg.Fabric.Bundles {
					makes := b.world.Inside(st.board, bundle, 0).Makes
					if makes == 0 {
						continue
					}
					made++
					if st.host == nil {
						continue
					}
					rep := b.audit.reportOf(st)
					path, _ := b.world.Selected(st.board, bundle)
					if len(rep.Rings) > 0 && path != hal.LOSLoopback && rep.Bundles[bundle].State == proto.Tuned {
						for _, s := range rep.Sides {
							c := append(rep.Rings[0].Left, rep.Rings[0].Right...)
							if s.State == proto.SideWork && slices.ContainsFunc(c, func(c proto.Candidate) bool {
								return c.Peer == s.Peer && int(c.Bundle) == bundle && int(c.Path-proto.Loopback) == path
							}) {
								t.Fatalf("seed %d, %d: node %d has ring %d on bundle %d, which makes patterns", seed, what, st.id, s.Ring, bundle)
							}
						}
					}
				}
			}
		}
		b.quiet(fmt.Sprintf("seed %d, attack %d on node %d", seed, what, victim))
		if kept {
			b.ringKept(since, fmt.Sprintf("seed %d, attack %d", seed, what))
		}
		for _, x := range b.said {
			results[x.Code.String()]++
		}
	}
	t.Logf("%d disturbed counts, patterns seen %d times, answers %v", attacks, made, results)
	if made == 0 {
		t.Error("no pattern was ever made")
	}
}
