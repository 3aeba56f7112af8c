package study

import (
	"errors"
	"testing"
	"time"

	"ringlight/proto"
	"ringlight/sim/flow"
	"ringlight/sim/workload"
)

func lumosRuns(t *testing.T, c LumosConfig) map[LumosCell]LumosRun {
	t.Helper()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	out := map[LumosCell]LumosRun{}
	for _, cell := range c.Cells() {
		r, err := c.Run(cell)
		if err != nil {
			t.Fatal(err)
		}
		out[cell] = r
	}
	return out
}

// sameTime tells whether two times agree but for what integers round.
func sameTime(a, b int64) bool { return max(a, b)-min(a, b) <= 1+max(a, b)/100_000 }

// On the ideal network a job takes as long as it says. On ports of half the rate
// on which nobody meets it takes longer by what it sends, which is what [LUMOS]
// calls uncoverable; at the full rate nothing. Circuits are no faster than the
// ideal, and the order of the three is the paper's.
// Method: mean running times against sums over the jobs, which no flow enters.
// Reference: [LUMOS] sec 6.1, 6.4
func TestLumosJobsTakeWhatTheySend(t *testing.T) {
	c := DefaultLumos()
	c.Jobs, c.Runs, c.Seed = 150, 1, 4
	ideal := c.Cases[0]
	ideal.Routing, ideal.Name = RouteIdeal, "ideal"
	fast := ideal
	fast.Gbps = fastGbps
	c.Cases = append(c.Cases, ideal, fast)
	runs := lumosRuns(t, c)
	base := c.Cases[0].LumosInputs
	jobs := c.lumosJobs(base.cell(LumosClos, c.Seed))
	var alone, slower int64
	for _, j := range jobs {
		alone += j.Duration.Milliseconds()
		slower += j.Duration.Milliseconds() * (10_000 + j.reduce + j.exchange + j.forward) / 10_000
	}
	n := int64(len(jobs))
	best, core, clos := runs[base.cell(LumosBest, c.Seed)], runs[base.cell(LumosCore, c.Seed)], runs[base.cell(LumosClos, c.Seed)]
	if !sameTime(best.JRT, alone/n) {
		t.Errorf("ideal network: %d ms, jobs say %d", best.JRT, alone/n)
	}
	if r := runs[ideal.cell(LumosClos, c.Seed)]; !sameTime(r.JRT, slower/n) || r.Gbps != 800 {
		t.Errorf("ports of %d Gb/s: %d ms, want %d", r.Gbps, r.JRT, slower/n)
	}
	if r := runs[fast.cell(LumosClos, c.Seed)]; !sameTime(r.JRT, alone/n) {
		t.Errorf("ports of %d Gb/s: %d ms, want %d", r.Gbps, r.JRT, alone/n)
	}
	if core.JRT < best.JRT || clos.JRT < slower/n-1 || core.JCT > clos.JCT || core.Across == 0 || core.Granted == 0 || core.Granted > core.Asked {
		t.Errorf("best %+v\ncore %+v\nclos %+v", best, core, clos)
	}
}

// No two flows of a job's rings meet on a circuit: where ports are short it is
// the pipelines that share.
// Method: jobs one after the other in a core that is full, flows of a circuit
// counted.
// Reference: [LUMOS] sec 2.4, 4.2, A.12
func TestLumosRingsHaveTheirLinks(t *testing.T) {
	c := DefaultLumos()
	c.Jobs = 300
	r, err := c.newRun(c.Cases[0].cell(LumosCore, 3))
	if err != nil {
		t.Fatal(err)
	}
	whole, cut, oldest := 0, 0, 0
	for job := range r.jobs {
		servers, why, err := r.place(job)
		for ; servers == nil && oldest < job; oldest++ {
			r.free(oldest)
			servers, why, err = r.place(job)
		}
		if servers == nil {
			t.Fatal(why, err)
		}
		s := r.seats[job]
		if err := r.elements(s); err != nil {
			t.Fatal(err)
		}
		met := map[flow.Link]int{}
		for _, f := range reduced(r, s, job) {
			for _, l := range f.Path {
				met[l]++
			}
		}
		for n, w := range s.placed.Wants {
			links := s.placed.Links[n]
			for _, pair := range [][2]int{{w.A, w.B}, {w.B, w.A}} {
				if len(s.circuit[pair]) != links {
					t.Fatalf("job %d: %d circuits from %d to %d, granted %d", job, len(s.circuit[pair]), pair[0], pair[1], links)
				}
				for _, l := range s.circuit[pair] {
					if met[l.circuit] > 1 {
						t.Errorf("job %d: %d flows of rings on a circuit from %d to %d", job, met[l.circuit], pair[0], pair[1])
					}
				}
			}
			if links == w.Links() {
				whole++
			} else {
				cut++
			}
		}
	}
	if whole == 0 || cut == 0 {
		t.Errorf("%d pairs have their links, %d do not: this shows little", whole, cut)
	}
}

// reduced are the flows of all phases of a job's collective.
func reduced(r *lumosRun, s *seat, job int) (out []flow.Flow) {
	for _, round := range r.reduce(s, job, r.jobs[job].collective, 1000) {
		out = append(out, round.Flows...)
	}
	return out
}

// A run gives back all it took: servers, circuits, connections.
// Method: the state of each network after its last job.
func TestLumosRunsLeaveNothing(t *testing.T) {
	c := DefaultLumos()
	c.Jobs = 60
	for name, change := range map[string]func(*LumosInputs){ // any order: each by itself
		"lumos": func(*LumosInputs) {}, "helios": func(in *LumosInputs) { in.Workload = "helios" }, "rails": func(in *LumosInputs) { in.Rails = true },
		"balanced": func(in *LumosInputs) { in.Core = RouteBalanced }, "ecmp": func(in *LumosInputs) { in.Core, in.Routing = RouteECMP, RouteECMP },
		"ecmp rails": func(in *LumosInputs) { in.Core, in.Routing, in.Rails = RouteECMP, RouteECMP, true }, "faults": func(in *LumosInputs) { in.Faults, in.Core = 4*gpuFaults, RouteBalanced },
	} {
		in := c.Cases[0].LumosInputs
		change(&in)
		for _, network := range lumosNetworks {
			r, err := c.newRun(in.cell(network, 9))
			if err != nil {
				t.Fatal(err)
			}
			circuits := len(r.spare)
			if err := r.run(); err != nil {
				t.Fatal(err)
			}
			if f, ok := r.hazards.(*gpuFailures); ok {
				for server := range f.out { // any order: each by itself
					r.fails(server, false)
				}
			}
			idle := 0
			for leaf, slots := range r.slots {
				idle += len(slots)
				if len(slots) != r.core.Servers[leaf] {
					t.Fatalf("%s: leaf %d has %d of %d servers", network, leaf, len(slots), r.core.Servers[leaf])
				}
			}
			for l, n := range r.load {
				if n != 0 {
					t.Fatalf("%s: link %d has %d connections", network, l, n)
				}
			}
			if idle*gpusPerServer != in.GPUs || len(r.spare) != circuits || len(r.shared)+len(r.seats)+len(r.lifted) != 0 {
				t.Errorf("%s, %s: %d servers idle, %d of %d circuits free, %d seats", name, network, idle, len(r.spare), circuits, len(r.seats))
			}
		}
	}
}

// Over circuits as over a Clos probing is close to no contention and hashing far from it;
// and circuits are better than the Clos by each of them. Where no two flows meet a job
// takes what it says, but for its setup.
// Reference: [LUMOS] sec 6.5, Fig. 25
func TestLumosWaysOverCircuits(t *testing.T) {
	c := DefaultLumos()
	c.Jobs, c.Runs, c.Seed = 300, 1, 2
	base := c.Cases[0].LumosInputs
	of := map[string]LumosRun{}
	c.Cases = nil
	for _, way := range append([]string{RoutePlanned}, lumosWays...) {
		in := base
		in.Core = way
		if way != RoutePlanned {
			in.Routing = way
		}
		c.Cases = append(c.Cases, LumosCase{way, in})
	}
	for cell, r := range lumosRuns(t, c) { // any order: into a map
		of[cell.Network+cell.Core+cell.Routing] = r
	}
	level := func(network, way string) float64 { return of[network+way].Contention }
	if ideal := level(LumosCore, RouteIdeal); ideal < 1 || ideal > 1.00001 {
		t.Errorf("no two flows meet, and what is sent takes %v times as long", ideal)
	}
	for _, way := range []string{RoutePlanned, RouteBalanced} {
		if l := level(LumosCore, way); l < level(LumosCore, RouteIdeal) || l > 1.2 {
			t.Errorf("%s: %v", way, l)
		}
	}
	if r := of[LumosCore+RoutePlanned]; r.Turned == 0 || r.Turned*20 > r.Placed { // Table 6 has 0.3 to 0.4 %
		t.Errorf("%d of %d links go through another switch", r.Turned, r.Placed)
	}
	if l := level(LumosCore, RouteECMP); l < 2 {
		t.Errorf("by hash: %v", l)
	}
	for _, way := range lumosWays {
		if core, clos := of[LumosCore+way], of[LumosClos+way]; core.JCT >= clos.JCT || core.Contention >= clos.Contention {
			t.Errorf("%s: circuits %d ms, %v; Clos %d ms, %v", way, core.JCT, core.Contention, clos.JCT, clos.Contention)
		}
	}
}

// Any circuit that a flow takes joins the pods of its ends, through a spine that both
// leaves have. Method: jobs one after the other, each path followed link by link.
func TestLumosPathsLeadToTheirEnd(t *testing.T) {
	for _, way := range []string{RoutePlanned, RouteBalanced, RouteECMP} {
		for _, rails := range []bool{false, true} {
			c := DefaultLumos()
			c.Jobs = 150
			in := c.Cases[0].LumosInputs
			in.Core, in.Rails = way, rails
			r, err := c.newRun(in.cell(LumosCore, 3))
			if err != nil {
				t.Fatal(err)
			}
			oldest, across := 0, 0
			for job := range r.jobs {
				servers, why, err := r.place(job)
				for ; servers == nil && oldest < job; oldest++ {
					r.free(oldest)
					servers, why, err = r.place(job)
				}
				s := r.seats[job]
				if servers == nil || r.elements(s) != nil {
					t.Fatal(why, err)
				}
				joins := map[flow.Link][3]int{}
				for _, o := range r.seats { // any order: into a map
					for pair, lanes := range o.circuit {
						for _, l := range lanes {
							joins[l.circuit] = [3]int{l.spine, pair[0] / r.leaves, pair[1] / r.leaves}
						}
					}
				}
				for _, f := range append(reduced(r, s, job), r.exchange(s, job, &r.jobs[job], 1)...) {
					from, to := int(f.Path[0]), int(f.Path[len(f.Path)-1])-r.gpus
					a, b := r.leaf(from), r.leaf(to)
					x := joins[f.Path[len(f.Path)/2]]
					switch {
					case rails && from%r.perServer != to%r.perServer:
						t.Fatalf("from GPU %d to %d", from, to)
					case a == b:
						if len(f.Path) != 2 {
							t.Fatalf("%v in a leaf", f.Path)
						}
					case rails && a/r.leaves == b/r.leaves:
						t.Fatalf("%v between leaves of a pod with rails", f.Path)
					case a/r.leaves != b/r.leaves:
						if across++; len(f.Path) != 5 || x != [3]int{x[0], a / r.leaves, b / r.leaves} || f.Path[1] != r.up(a, x[0]) || f.Path[3] != r.down(b, x[0]) {
							t.Fatalf("%s: %v from leaf %d to %d, the circuit is of spine, pods %v", way, f.Path, a, b, x)
						}
					}
				}
			}
			if across == 0 {
				t.Errorf("%s: nothing crossed pods: this shows little", way)
			}
		}
	}
}

// Failing GPUs cost jobs time on every network, more where more fail, and the order of
// the networks stays; four of five failures are hard, and a restarted job does what was
// left to do.
// Reference: [LUMOS] sec 6.5, Fig. 8d
func TestLumosGPUsFail(t *testing.T) {
	c := DefaultLumos()
	c.Jobs, c.Runs, c.Seed = 300, 1, 3
	base := c.Cases[0].LumosInputs
	for _, times := range []int{1, 4} {
		in := base
		in.Faults = times * gpuFaults
		c.Cases = append(c.Cases, LumosCase{"faults", in})
	}
	runs := lumosRuns(t, c)
	for _, network := range lumosNetworks {
		none, some, many := runs[c.Cases[0].cell(network, 3)], runs[c.Cases[1].cell(network, 3)], runs[c.Cases[2].cell(network, 3)]
		if none.Restarts != 0 || some.Restarts == 0 || many.Restarts <= some.Restarts || none.JRT >= some.JRT || some.JRT >= many.JRT || none.JRT*2 < some.JRT {
			t.Errorf("%+v\n%+v\n%+v", none, some, many)
		}
		if all := many.Soft + many.Hard; many.Hard*100 < all*60 || many.Hard*100 > all*95 || some.Contention != 0 {
			t.Errorf("%d of %d hard", many.Hard, all)
		}
	}
	for _, k := range c.Cases {
		if best, core, clos := runs[k.cell(LumosBest, 3)], runs[k.cell(LumosCore, 3)], runs[k.cell(LumosClos, 3)]; best.JCT > core.JCT || core.JCT > clos.JCT {
			t.Errorf("%s %d: %d, %d, %d ms", k.Name, k.Faults, best.JCT, core.JCT, clos.JCT)
		}
	}
}

// The result has ours and the paper's side by side, an input at a time, and the
// same bits each time.
// Method: two runs of a short list with all cases.
// Reference: [LUMOS] sec 6.4
func TestLumosResult(t *testing.T) {
	c := DefaultLumos()
	c.Jobs, c.Runs = 40, 1
	c.Vary()
	result := func() *LumosResult {
		of := lumosRuns(t, c)
		var runs []LumosRun
		for _, cell := range c.Cells() {
			runs = append(runs, of[cell])
		}
		return c.Result(runs)
	}
	a, b := result(), result()
	if a.Table().CSV() != b.Table().CSV() {
		t.Error("two runs differ")
	}
	if len(a.Gains) != len(c.Cases) || len(c.Cases) < 10 || len(a.Runs) != 3*len(c.Cases) || len(a.Charts()) != (len(c.Cases)+3)/4 {
		t.Errorf("%d gains of %d cases, %d runs, %d charts", len(a.Gains), len(c.Cases), len(a.Runs), len(a.Charts()))
	}
	if g := a.Gains[0]; g.PaperJRT == nil || *g.PaperJRT != 0.0506 || *g.PaperJCT != 0.161 || a.Gains[1].GPUs != 16384 || *a.Gains[1].PaperJCT != 0.341 || a.Gains[2].PaperJCT != nil {
		t.Errorf("%+v", a.Gains[:3])
	}
	for _, g := range a.Gains {
		differ := 0
		for _, d := range []bool{g.GPUs != 4096, g.Workload != "lumos", g.Load != 655, g.Share != 1000, g.EP != 64, g.Reduce != "ring", g.Setup != 2400, g.Routing != RouteBalanced, g.Core != RoutePlanned, g.Rails, g.Faults != 0, g.LumosInputs.Gbps != 0} {
			if d {
				differ++
			}
		}
		if want := min(1, differ); differ != want || g.Case != "base" && differ == 0 {
			t.Errorf("%s differs in %d inputs", g.Case, differ)
		}
	}
}

// What is out of range is refused by field and limit; a job that does not fit
// the cluster too.
// Method: one wrong input each.
func TestLumosBadInput(t *testing.T) {
	for field, wrong := range map[string]func(*LumosConfig){ // any order: each by itself
		"gpus-total":    func(c *LumosConfig) { c.Cases[0].GPUs = 4100 },
		"load":          func(c *LumosConfig) { c.Cases[0].Load = 0 },
		"communication": func(c *LumosConfig) { c.Cases[0].Share = -1 },
		"ep":            func(c *LumosConfig) { c.Cases[0].EP = 128 },
		"setup-ms":      func(c *LumosConfig) { c.Cases[0].Setup = -1 },
		"routing":       func(c *LumosConfig) { c.Cases[0].Routing = "best" },
		"core-routing":  func(c *LumosConfig) { c.Cases[0].Core = "" },
		"gpu-faults":    func(c *LumosConfig) { c.Cases[0].Faults = maxGPUFaults + 1 },
		"collective":    func(c *LumosConfig) { c.Cases[0].Reduce = "tree" },
		"workload":      func(c *LumosConfig) { c.Cases[0].Workload = "none" },
		"jobs":          func(c *LumosConfig) { c.Jobs = 0 },
		"runs":          func(c *LumosConfig) { c.Runs = 0 },
		"steps":         func(c *LumosConfig) { c.Steps = 0 },
		"cases":         func(c *LumosConfig) { c.Cases = nil },
	} {
		c := DefaultLumos()
		wrong(&c)
		var e *proto.Error
		if err := c.Validate(); !errors.As(err, &e) || e.Field != field || e.Limit == "" {
			t.Errorf("%s: %v", field, err)
		}
	}
	c := DefaultLumos()
	c.List = []workload.Job{{Duration: time.Minute, GPUs: 8192}}
	var e *proto.Error
	if _, err := c.Run(c.Cells()[0]); !errors.As(err, &e) || e.Field != "gpus-total" {
		t.Errorf("a job larger than the cluster: %v", err)
	}
}
