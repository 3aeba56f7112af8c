package study

import (
	"errors"
	"slices"
	"testing"
	"time"

	"ringlight/proto"
	"ringlight/sim/trace"
	"ringlight/sim/workload"
)

// compared runs a cell of each system.
func compared(t *testing.T, c CompareConfig, load, faults int, seed uint64) map[string]CompareRun {
	t.Helper()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	out := map[string]CompareRun{}
	for _, s := range c.Systems {
		r, err := c.Run(CompareCell{s, load, faults, seed})
		if err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		out[s] = r
	}
	return out
}

// oneJob is a list of one, which sends a quarter of its time, or as experts do.
func oneJob(gpus int32, p workload.Pattern) CompareConfig {
	c := DefaultCompare()
	model := uint8(slices.IndexFunc(workload.Models[:], func(m workload.Model) bool { return m.Name == "vgg16-4" }))
	if p == workload.AllToAll {
		model = uint8(slices.IndexFunc(workload.Models[:], func(m workload.Model) bool { return m.Name == "moe" }))
	}
	c.List, c.Load, c.Loads, c.FaultRates = []workload.Job{{Duration: time.Hour, GPUs: gpus, Volume: 1000, Estimate: 1000, Model: model, Pattern: p}}, 0, nil, nil
	return c
}

// Goal: one job and no fault: every system takes what can be worked out by hand.
// Method: with M bytes of gradients, n GPUs in servers of T, ports of B and R to
// others of a server, a switch takes 2(T-1)/T M/R in servers and 2(n/T-1)/(n/T)
// M/T/B between them, a quarter of the hour; rings of 32 take 2*31/32 M/R, and
// M/32/B between two. Experts send b to each other: (n-T)b/B by ports, n^2/4 b/R
// around a ring.
func TestCompareOfOneJobByHand(t *testing.T) {
	const setup = 2400
	near := func(what string, got int64, seconds float64) {
		t.Helper()
		if want := seconds * 1000; float64(got) < want*0.9995 || float64(got) > want*1.0005+1 {
			t.Errorf("%s: %d ms, by hand %.0f", what, got, want)
		}
	}
	for _, p := range []workload.Pattern{workload.Ring, workload.HalvingDoubling} {
		runs := compared(t, oneJob(64, p), 0, 0, 1)
		mOverB := 900 / (2*0.75/10 + 2*15.0/16/4)
		near("switch", runs[SystemSwitch].JRT, 3600)
		near("ideal", runs[SystemIdeal].JRT, 2700+2*63.0/64*mOverB/10)
		near("rings", runs[SystemInfiniteHBD].JRT, 2700+2*31.0/32*mOverB/10+mOverB/32)
		near("pods", runs[SystemLumosCore].JRT, 3600) // in one pod
		near("ocs-vclos", runs[SystemVClos].JRT-setup, 3600)
		near("topoopt", runs[SystemTopoOpt].JRT-setup, 3600)
		near("balanced", runs[SystemBalanced].JRT, 3600)
		if r := runs[SystemECMP].JRT; r < 3600_000 {
			t.Errorf("ecmp: %d ms", r)
		}
	}
	runs := compared(t, oneJob(32, workload.AllToAll), 0, 0, 1) // in one leaf, one ring
	bOverB := 3600 * 0.258 / 28
	mOverB := 3600 * 0.0897 / (2*0.75/10 + 2*7.0/8/4)
	compute := 3600 * (1 - 0.258 - 0.0897)
	near("ideal, experts", runs[SystemIdeal].JRT, compute+28*bOverB/10+2*31.0/32*mOverB/10)
	near("rings, experts", runs[SystemInfiniteHBD].JRT, compute+32*32/4*bOverB/10+2*31.0/32*mOverB/10)
	for _, s := range []string{SystemSwitch, SystemLumosCore, SystemVClos, SystemBalanced, SystemECMP} {
		near(s+", experts", runs[s].JRT, 3600)
	}
	// Of seven other servers four are neighbours, so a byte takes 10/7 hops or
	// more, and links are no fuller than twice that.
	least := 3600 + 3600*0.258*(10.0/7-1)
	if r := float64(runs[SystemTopoOpt].JRT) / 1000; r < least || r > least+3600*0.258*10/7 {
		t.Errorf("topoopt: experts go over several hops: %.0f s, at least %.0f", r, least)
	}
}

// Goal: no network of ports is faster than the switch, nothing than the ideal;
// nobody computes more than there is; what jobs ask for is what they get.
// Method: a few hundred jobs with faults, every system, two workloads.
func TestCompareLaws(t *testing.T) {
	struck := 0
	for _, kind := range []string{"w2", "philly"} {
		c := DefaultCompare()
		c.Workload = workload.Config{Kind: kind, Jobs: 250}
		for _, faults := range []int{0, 8} {
			runs := compared(t, c, 700, faults, 5)
			ideal, port := runs[SystemIdeal], runs[SystemSwitch]
			for name, r := range runs {
				if name != SystemInfiniteHBD && name != SystemIdeal && faults == 0 && r.JRT < port.JRT-1 {
					t.Errorf("%s, %s: JRT %d ms, the switch %d", kind, name, r.JRT, port.JRT)
				}
				if faults == 0 && (r.JRT < ideal.JRT-1 || r.Stretch < ideal.Stretch-1e-6) {
					t.Errorf("%s, %s: JRT %d ms, the ideal %d", kind, name, r.JRT, ideal.JRT)
				}
				if d := r.JCT.Mean - r.JRT - r.JWT; d < -1 || d > 1 || r.JWT < 0 {
					t.Errorf("%s, %s: JCT %d is not JRT %d and JWT %d", kind, name, r.JCT.Mean, r.JRT, r.JWT)
				}
				if r.Utilisation <= 0 || r.Utilisation > 1 || r.Computing <= 0 || r.Computing > 1 {
					t.Errorf("%s, %s: utilisation %v, computing %v", kind, name, r.Utilisation, r.Computing)
				}
				if struck += r.Restarts; faults == 0 && r.Restarts+int(r.Lost) > 0 {
					t.Errorf("%s, %s: %d restarts without a fault", kind, name, r.Restarts)
				}
			}
		}
	}
	if struck == 0 {
		t.Error("no fault has struck anybody: this shows little")
	}
}

// Goal: all that a system has is there again after its last job, whatever failed.
// Method: after a run with many faults and repairs, jobs of the whole cluster
// find a place on each.
func TestCompareLeavesNothing(t *testing.T) {
	c := DefaultCompare()
	c.Workload.Jobs = 200
	for _, s := range Systems {
		r, err := c.newRun(CompareCell{s, 700, 16, 3})
		if err == nil {
			err = r.run()
		}
		if err != nil {
			t.Fatal(err)
		}
		for server, open := range r.outages.open {
			if len(r.on[server]) > 0 {
				t.Fatalf("%s: jobs %v are still on server %d", s, r.on[server], server)
			}
			if open > 0 {
				r.house.withhold(server, false)
			}
		}
		r.jobs[0].GPUs, r.talks[0].gpus, r.jobs[0].Pattern = 512, 512, workload.Ring
		if servers, why, err := r.house.place(0); len(servers) != 128 || err != nil {
			t.Errorf("%s: a job of all GPUs gets %d servers: %v, %v", s, len(servers), why, err)
		}
	}
}

// naive is when jobs of the whole cluster end, one after the other, worked out
// from the list of outages alone.
func naive(c CompareConfig, o *outages, t talk, arrivals []time.Duration, step time.Duration) (ends []time.Duration) {
	type span struct{ from, to time.Duration }
	var bad []span // some server is out
	down := map[int]int{}
	since := time.Duration(-1)
	for range 4 { // rounds of the trace
		for range o.events {
			e, at := o.events[o.at], o.next()
			if o.at++; o.at == len(o.events) {
				o.at, o.round = 0, o.round+o.span
			}
			was := len(down)
			if down[e.node]--; e.out {
				down[e.node] += 2
			}
			if down[e.node] == 0 {
				delete(down, e.node)
			}
			if was == 0 && len(down) > 0 {
				if k := len(bad) - 1; k >= 0 && bad[k].to == at {
					since, bad = bad[k].from, bad[:k]
				} else {
					since = at
				}
			} else if was > 0 && len(down) == 0 {
				bad = append(bad, span{since, at})
			}
		}
	}
	var now time.Duration
	for _, arrival := range arrivals {
		now = max(now, arrival)
		left, ready := t.steps, time.Duration(0)
		for left > 0 {
			next := span{1 << 62, 1 << 62}
			for _, b := range bad {
				if b.to > now {
					next = b
					break
				}
			}
			if next.from <= now { // wait for the repair
				now = next.to
				continue
			}
			run := max(0, next.from-now-ready)
			steps := min(left, int64(run/step))
			if left -= steps; left == 0 {
				now += ready + time.Duration(steps)*step
				continue
			}
			now, ready = next.to, c.Reload
		}
		ends = append(ends, now)
	}
	return ends
}

// Goal: the time line with faults is right: who waits, what is done twice, when
// everybody ends.
// Method: jobs of all GPUs, which every fault hits, against a reference that
// knows only the times of faults.
func TestCompareWithFaultsIsTheNaiveOne(t *testing.T) {
	const all = 128
	struck := 0
	for seed := uint64(1); seed <= 12; seed++ {
		c := DefaultCompare()
		c.Cluster = DefaultJCTCluster(4)
		c.Load, c.Loads, c.FaultRates = 0, nil, nil
		for i := range 20 {
			c.List = append(c.List, workload.Job{Arrival: time.Duration(i) * 400 * time.Hour, Duration: time.Duration(20+seed*37%200) * time.Hour, GPUs: all,
				Volume: 1000, Estimate: 1000, Model: 17, Pattern: workload.AllToAll})
		}
		c.Trace = sparse(trace.Generate(seed))
		cell := CompareCell{SystemSwitch, 0, 1, seed}
		r, err := c.newRun(cell)
		if err != nil {
			t.Fatal(err)
		}
		o, err := c.faults(cell)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.run(); err != nil {
			t.Fatal(err)
		}
		w, err := r.house.work(0, 1)
		if err != nil {
			t.Fatal(err)
		}
		want := naive(c, o, r.talks[0], r.arrivals, w.step)
		for i := range want {
			if got := r.lives[i].ended; got != want[i] {
				t.Fatalf("seed %d, job %d ends at %v, want %v", seed, i, got, want[i])
			}
		}
		struck += r.Restarts
	}
	if struck < 10 {
		t.Errorf("%d restarts: this shows little", struck)
	}
}

// sparse is every fifth fault of a trace, so that all servers are in order now
// and then.
func sparse(t *trace.Trace) *trace.Trace {
	out := &trace.Trace{Servers: t.Servers, Span: t.Span}
	n := 0
	for _, e := range fixedRepair(t, 9*time.Hour).Events {
		if e.Server%5 == 0 {
			out.Events = append(out.Events, e)
			n++
		}
	}
	return out
}

// Goal: more faults never help: what is out under some traces is out under more
// of them, and a job of all GPUs ends no earlier.
// Method: outages of one to four traces side by side over two rounds; the job
// in one step, which then needs one piece of time without a fault.
func TestMoreFaultsNeverHelp(t *testing.T) {
	c := oneJob(512, workload.Ring)
	c.Checkpoint = 100 * time.Hour
	for seed := uint64(1); seed <= 8; seed++ {
		c.Trace = sparse(trace.Generate(seed))
		var before *outages
		last := int64(0)
		for traces := 0; traces <= 4; traces++ {
			cell := CompareCell{SystemTopoOpt, 0, traces, seed}
			r, err := c.Run(cell)
			if err != nil {
				t.Fatal(err)
			}
			if r.JCT.Mean < last {
				t.Errorf("seed %d: %d traces, the job ends after %d ms; with fewer after %d", seed, traces, r.JCT.Mean, last)
			}
			last = r.JCT.Mean
			o, err := c.faults(cell)
			if err != nil {
				t.Fatal(err)
			}
			if before != nil {
				fewer := *before
				fewer.open = make([]int, len(before.open))
				for day := range 700 {
					at := time.Duration(day) * 24 * time.Hour
					fewer.until(at)
					o.until(at)
					for s := range o.open {
						if fewer.open[s] > 0 && o.open[s] == 0 {
							t.Fatalf("seed %d, day %d: server %d is out by %d traces and not by %d", seed, day, s, traces-1, traces)
						}
					}
				}
			}
			if before, err = c.faults(cell); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Goal: a budget is spent and not overspent.
func TestCompareBudget(t *testing.T) {
	c := DefaultCompare()
	c.Budget = BudgetCost
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	budget, dearest := c.budget(), ""
	for _, s := range c.Systems {
		p, err := c.priced(s)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case !p.Built:
			continue
		case p.Gbps == c.Cluster.Gbps:
			dearest = s
		case p.Gbps < c.Cluster.Gbps:
			t.Errorf("%s has %d Gb/s for more money", s, p.Gbps)
		}
		if p.Cents > budget || c.priceAt(s, p.Gbps+1).Cents <= budget {
			t.Errorf("%s: %d of %d cents at %d Gb/s", s, p.Cents, budget, p.Gbps)
		}
	}
	if dearest != SystemVClos {
		t.Errorf("the dearest at 100 Gb/s is %q", dearest)
	}
	runs := compared(t, oneJobAtCost(), 0, 0, 1)
	if slow := compared(t, oneJob(64, workload.Ring), 0, 0, 1); runs[SystemBalanced].JRT >= slow[SystemBalanced].JRT {
		t.Errorf("a faster Clos takes %d ms, a slower one %d", runs[SystemBalanced].JRT, slow[SystemBalanced].JRT)
	}
}

func oneJobAtCost() CompareConfig {
	c := oneJob(64, workload.Ring)
	c.Budget = BudgetCost
	return c
}

// Goal: what is not acceptable is refused with the flag and what would be.
func TestCompareRefuses(t *testing.T) {
	for field, change := range map[string]func(c *CompareConfig){
		"cluster.leaves":          func(c *CompareConfig) { c.Cluster.Leaves = 1 },
		"cluster.gpus_per_server": func(c *CompareConfig) { c.Cluster.GPUsPerServer = 2 },
		"pod-leaves":              func(c *CompareConfig) { c.PodLeaves = 3 },
		"ring":                    func(c *CompareConfig) { c.Ring = 30 },
		"k":                       func(c *CompareConfig) { c.Hops = 4 },
		"scale-up-gbps":           func(c *CompareConfig) { c.ScaleUp = 99 },
		"budget":                  func(c *CompareConfig) { c.Budget = "none" },
		"dollars":                 func(c *CompareConfig) { c.Dollars = 5 },
		"load":                    func(c *CompareConfig) { c.Load = 0 },
		"fault-rates":             func(c *CompareConfig) { c.FaultRates = []int{65} },
		"fault-rate":              func(c *CompareConfig) { c.FaultRate = -1 },
		"checkpoint-s":            func(c *CompareConfig) { c.Checkpoint = 0 },
		"reload-s":                func(c *CompareConfig) { c.Reload = -time.Second },
		"setup-ms":                func(c *CompareConfig) { c.Setup = time.Hour },
		"systems":                 func(c *CompareConfig) { c.Systems = []string{SystemECMP, SystemECMP} },
		"runs":                    func(c *CompareConfig) { c.Runs = 0 },
		"workload":                func(c *CompareConfig) { c.Workload.Kind = "none" },
		"jobs":                    func(c *CompareConfig) { c.Workload.Jobs = 0 },
		"trace":                   func(c *CompareConfig) { c.Trace = &trace.Trace{} },
	} {
		c := DefaultCompare()
		change(&c)
		var e *proto.Error
		if err := c.Validate(); !errors.As(err, &e) || e.Field != field || e.Limit == "" {
			t.Errorf("%s: %v", field, err)
		}
	}
	poor := DefaultCompare()
	poor.Budget, poor.Dollars = BudgetCost, 100
	var e *proto.Error
	if err := poor.Validate(); !errors.As(err, &e) || e.Field != "dollars" {
		t.Errorf("100 dollars: %v", err)
	}
	big := oneJob(513, workload.Ring)
	if _, err := big.Run(CompareCell{SystemSwitch, 0, 0, 1}); !errors.As(err, &e) || e.Field != "gpus" {
		t.Errorf("513 of 512 GPUs: %v", err)
	}
}
