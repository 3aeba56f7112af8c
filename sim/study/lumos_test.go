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
		j := &r.jobs[job]
		s, err := r.place(job, j)
		for ; err != nil && oldest < job; oldest++ {
			r.leave(oldest)
			s, err = r.place(job, j)
		}
		if err != nil {
			t.Fatal(err)
		}
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
	for _, kind := range []string{"lumos", "helios"} {
		in := c.Cases[0].LumosInputs
		in.Workload = kind
		for _, network := range lumosNetworks {
			r, err := c.newRun(in.cell(network, 9))
			if err != nil {
				t.Fatal(err)
			}
			circuits := len(r.net.free)
			if err := r.run(); err != nil {
				t.Fatal(err)
			}
			idle := 0
			for leaf, n := range r.idle {
				idle += n
				if n != len(r.slots[leaf]) || n != r.core.Servers[leaf] {
					t.Fatalf("%s: leaf %d has %d of %d servers", network, leaf, n, r.core.Servers[leaf])
				}
			}
			for l, n := range r.load {
				if n != 0 {
					t.Fatalf("%s: link %d has %d connections", network, l, n)
				}
			}
			if idle*gpusPerServer != in.GPUs || len(r.net.free) != circuits || len(r.shared)+len(r.seats) != 0 {
				t.Errorf("%s: %d servers idle, %d of %d circuits free, %d seats", network, idle, len(r.net.free), circuits, len(r.seats))
			}
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
		for _, d := range []bool{g.GPUs != 4096, g.Workload != "lumos", g.Load != 655, g.Share != 1000, g.EP != 64, g.Reduce != "ring", g.Setup != 2400, g.Routing != RouteBalanced, g.LumosInputs.Gbps != 0} {
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
