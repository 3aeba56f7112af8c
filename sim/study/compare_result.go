package study

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"ringlight/planner/isolate"
	"ringlight/sim/workload"
)

// CompareRun is one simulation: times at places (JRT), without one (JWT) and
// from arrival to end (JCT).
type CompareRun struct {
	System      string     `json:"system"`
	Load        int        `json:"load_mille"`
	Faults      int        `json:"fault_rate"`
	Seed        uint64     `json:"seed"`
	Jobs        int        `json:"jobs"`
	JRT         int64      `json:"jrt_ms"`
	JWT         int64      `json:"jwt_ms"`
	JCT         JCTSpread  `json:"jct_ms"`
	Makespan    int64      `json:"makespan_ms"`
	Utilisation float64    `json:"utilisation_ratio"` // GPU time at places, of all there is until the last end
	Computing   float64    `json:"computing_ratio"`   // of the GPU time at places: steps that count, without what they send
	Stretch     float64    `json:"stretch"`           // GPU time of steps of jobs on several servers, of that on the switch
	Blocked     JCTBlocked `json:"blocked"`
	Restarts    int        `json:"restarts"`       // of jobs that lost a server
	Lost        int64      `json:"lost_gpu_hours"` // of steps that did not end, and of reloading
}

// compareRun is a simulation under way.
type compareRun struct {
	*line
	CompareRun
	*outages
	jobs    []workload.Job
	talks   []talk
	blocked []bool // was counted
}

// Run simulates a cell.
func (c CompareConfig) Run(cell CompareCell) (CompareRun, error) {
	r, err := c.newRun(cell)
	if err == nil {
		err = r.run()
	}
	if err != nil {
		return CompareRun{}, err
	}
	return r.sum(c), nil
}

func (c CompareConfig) newRun(cell CompareCell) (*compareRun, error) {
	r := &compareRun{jobs: c.compareJobs(cell)}
	r.System, r.Load, r.Faults, r.Seed, r.Jobs = cell.System, cell.Load, cell.Faults, cell.Seed, len(r.jobs)
	r.talks = each(r.jobs, func(j workload.Job) talk { return talkOf(j, c.Cluster.GPUsPerServer, c.Checkpoint) })
	if err := c.check(cell, r.jobs, r.talks); err != nil {
		return nil, err
	}
	house, sim, err := c.house(cell, r.jobs, r.talks)
	if err != nil {
		return nil, err
	}
	r.line = newLine(house, sim, c.Cluster.GPUsTotal()/c.Cluster.GPUsPerServer, arrivalsOf(r.jobs), each(r.talks, func(t talk) int64 { return t.steps }))
	r.setup, r.reload, r.refused, r.blocked = c.Setup, c.Reload, r.full, make([]bool, len(r.jobs))
	if r.outages, err = c.faults(cell); err != nil {
		return nil, err
	}
	r.hazards = r
	return r, nil
}

// check refuses jobs that the empty system has no place for.
func (c CompareConfig) check(cell CompareCell, jobs []workload.Job, talks []talk) error {
	h, _, err := c.house(cell, jobs, talks)
	if err != nil {
		return err
	}
	seen := map[[2]int]bool{}
	for i, j := range jobs {
		key := [2]int{int(j.GPUs), int(links(j))}
		if seen[key] {
			continue
		}
		seen[key] = true
		if int(j.GPUs) > c.Cluster.GPUsTotal() {
			return invalid("gpus", fmt.Sprintf("the %d GPUs there are", c.Cluster.GPUsTotal()), "job %d asks for %d", i+1, j.GPUs)
		}
		servers, why, err := h.place(i)
		if err != nil {
			return err
		}
		if servers == nil {
			return invalid("gpus", "what the empty cluster has room for on "+cell.System, "job %d asks for %d: %s", i+1, j.GPUs, why)
		}
		h.free(i)
	}
	return nil
}

// full counts a head that has no place, once, and gives up where it never has.
func (r *compareRun) full(job int, why isolate.Cause, waited time.Duration) error {
	switch {
	case r.blocked[job]:
	case why == isolate.ByNetwork:
		r.Blocked.Network++
	default:
		r.Blocked.GPU++
	}
	if r.blocked[job] = true; waited > maxWait {
		return invalid("gpus", fmt.Sprintf("jobs that find their servers in order within %v", maxWait), "job %d asks for %d and waits for ever on %s, fault rate %d", job+1, r.jobs[job].GPUs, r.System, r.Faults)
	}
	return nil
}

// strike has servers fail and come back. A job that has lost one leaves all that it has.
func (r *compareRun) strike(now time.Duration) {
	out, back := r.until(now)
	for _, s := range out {
		r.Restarts += r.lose(s)
		r.fails(s, true)
	}
	for _, s := range back {
		r.fails(s, false)
	}
}

func (r *compareRun) sum(c CompareConfig) CompareRun {
	out := r.CompareRun
	var jrt, jwt int64
	var held, computed, talked, onSwitch, lost float64 // GPU seconds
	jct := make([]int64, len(r.jobs))
	port := rates{c.Cluster.GPUsPerServer, int64(c.ScaleUp) * 1e9, int64(c.Cluster.Gbps) * 1e9}
	for i, j := range r.jobs {
		t, gpus := &r.talks[i], float64(j.GPUs)
		run, wait := r.ran(i), r.waited(i)
		jrt, jwt, jct[i] = jrt+run.Milliseconds(), jwt+wait.Milliseconds(), (run + wait).Milliseconds()
		spent := r.spent[i]
		if r.resumed[i] {
			spent += r.reload // the last time
		}
		steps := time.Duration(t.steps)
		held += float64(gpus * run.Seconds())
		lost += float64(gpus * spent.Seconds())
		computed += float64(gpus * (t.compute * steps).Seconds())
		if !t.silent() {
			talked += float64(gpus * (run - spent).Seconds())
			onSwitch += float64(gpus * ((t.compute + port.takes(t.parts)) * steps).Seconds())
		}
		out.Makespan = max(out.Makespan, r.lives[i].ended.Milliseconds())
	}
	n := int64(len(r.jobs))
	slices.Sort(jct)
	out.JRT, out.JWT, out.Lost = jrt/n, jwt/n, int64(lost/3600)
	out.JCT = JCTSpread{(jrt + jwt) / n, quantile(jct, 500), quantile(jct, 900), quantile(jct, 990)}
	out.Utilisation = held * 1000 / (float64(c.Cluster.GPUsTotal()) * float64(max(1, out.Makespan)))
	out.Computing, out.Stretch = computed/max(held, 1e-9), 1
	if onSwitch > 0 {
		out.Stretch = talked / onSwitch
	}
	return out
}

// CompareRow is the mean of the runs of a system at a load and a fault rate.
type CompareRow struct {
	Price
	Load        int      `json:"load_mille" table:"3m,omitzero" column:"load"` // 0: as the list stands
	Faults      int      `json:"fault_rate" column:"faults"`
	Runs        int      `json:"runs"`
	JRT         int64    `json:"jrt_ms" table:"1m" column:"jrt_s"`
	JWT         int64    `json:"jwt_ms" table:"1m" column:"jwt_s"`
	JCT         int64    `json:"jct_ms" table:"1m" column:"jct_s"`
	Least       int64    `json:"jct_ms_least" table:"1m" column:"jct_least_s"` // of the runs
	Most        int64    `json:"jct_ms_most" table:"1m" column:"jct_most_s"`
	P50         int64    `json:"jct_ms_p50"`
	P99         int64    `json:"jct_ms_p99" table:"1m" column:"jct_p99_s"`
	OfSwitch    *float64 `json:"jct_of_switch_ratio,omitempty" table:"4" column:"jct_of_switch"` // same jobs and faults
	FaultCost   *float64 `json:"jct_added_by_faults_ratio,omitempty" table:"1%" column:"faults_add"`
	Stretch     float64  `json:"stretch" table:"4"`
	Utilisation float64  `json:"utilisation_ratio" table:"1%" column:"utilisation"`
	Computing   float64  `json:"computing_ratio" table:"1%" column:"computing"`
	GPU         float64  `json:"blocked_gpu" table:"1"`
	Network     float64  `json:"blocked_network" table:"1"`
	Restarts    float64  `json:"restarts" table:"1"`
	Lost        float64  `json:"lost_gpu_hours" table:"0" column:"lost_gpu_h"`
}

// CompareResult is the comparison: the rows of the table, which are without
// faults and with them, then those of the curves.
type CompareResult struct {
	Study     string     `json:"study"`
	Workload  string     `json:"workload"`
	Jobs      int        `json:"jobs"`
	GPUsTotal int        `json:"gpus_total"`
	Cluster   JCTCluster `json:"cluster"`
	Budget    string     `json:"budget"`
	Trace     string     `json:"faults"`
	Load      int        `json:"load_mille"`
	FaultRate int        `json:"fault_rate"`
	Seed      uint64     `json:"seed"`
	rowsOf[CompareRow]
	Runs []CompareRun `json:"runs"`
	Report
}

// Result puts the runs of all cells, in their order, together.
func (c CompareConfig) Result(runs []CompareRun) *CompareResult {
	r := &CompareResult{Study: "compare", Workload: c.Workload.Kind, Jobs: runs[0].Jobs, GPUsTotal: c.Cluster.GPUsTotal(), Cluster: c.Cluster,
		Budget: c.Budget, Trace: c.Source.Name, Load: c.Load, FaultRate: c.FaultRate, Seed: c.Seed, Runs: runs}
	if c.List != nil {
		r.Workload = c.Name
	}
	if c.Trace == nil {
		r.Trace = "generator"
	}
	for i := 0; i < len(runs); i += c.Runs {
		price, _ := c.priced(runs[i].System) // Validate has asked
		r.Rows = append(r.Rows, rowOf(price, runs[i:i+c.Runs]))
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		if s := r.of(SystemSwitch, row.Load, row.Faults); s != nil {
			row.OfSwitch = new(share(int(row.JCT), max(1, int(s.JCT))))
		}
		if s := r.of(row.System, row.Load, 0); s != nil && row.Faults > 0 {
			row.FaultCost = new(share(int(row.JCT), max(1, int(s.JCT))) - 1)
		}
	}
	r.describe(c)
	return r
}

func rowOf(p Price, runs []CompareRun) CompareRow {
	n := int64(len(runs))
	row := CompareRow{Price: p, Load: runs[0].Load, Faults: runs[0].Faults, Runs: len(runs), Least: runs[0].JCT.Mean}
	for _, r := range runs {
		row.JRT, row.JWT, row.JCT = row.JRT+r.JRT, row.JWT+r.JWT, row.JCT+r.JCT.Mean
		row.P50, row.P99 = row.P50+r.JCT.P50, row.P99+r.JCT.P99
		row.Least, row.Most = min(row.Least, r.JCT.Mean), max(row.Most, r.JCT.Mean)
		row.Stretch += r.Stretch / float64(n)
		row.Utilisation += r.Utilisation / float64(n)
		row.Computing += r.Computing / float64(n)
		row.GPU += float64(r.Blocked.GPU) / float64(n)
		row.Network += float64(r.Blocked.Network) / float64(n)
		row.Restarts += float64(r.Restarts) / float64(n)
		row.Lost += float64(r.Lost) / float64(n)
	}
	row.JRT, row.JWT, row.JCT, row.P50, row.P99 = row.JRT/n, row.JWT/n, row.JCT/n, row.P50/n, row.P99/n
	return row
}

func (r *CompareResult) of(system string, load, faults int) *CompareRow {
	return r.row(func(x CompareRow) bool { return x.System == system && x.Load == load && x.Faults == faults })
}

// Table is a row a system, load and fault rate: means of the runs, in seconds.
func (r *CompareResult) Table() Table {
	return tableOf(r.Rows, "load", "faults", "system", "gbps", "dollars_gpu", "watts_gpu", "topoopt_dollars", "jrt_s", "jwt_s", "jct_s", "jct_p99_s", "jct_of_switch", "jct_least_s", "jct_most_s",
		"faults_add", "restarts", "lost_gpu_h", "stretch", "utilisation", "computing", "blocked_gpu", "blocked_network")
}

// Charts are completion and waiting by system, what faults add by their rate,
// completion by load, and prices.
func (r *CompareResult) Charts() []Chart {
	bars := Chart{Title: "Running (JRT) and waiting (JWT), with faults", YLabel: "mean of the jobs, s"}
	prices := Chart{Title: "Price of the network, by two price lists", YLabel: "dollars per GPU"}
	byFaults := Chart{Title: "Completion by fault rate", XLabel: "fault traces at once", YLabel: "mean JCT, s", YFit: true}
	ofFaults := Chart{Title: "Completion by fault rate, against one big switch", XLabel: "fault traces at once", YLabel: "JCT / JCT of the switch", YFit: true}
	byLoad := Chart{Title: "Completion by load", XLabel: "GPUs asked for, share of all", YLabel: "mean JCT, s", YFit: true}
	ofLoad := Chart{Title: "Completion by load, against one big switch", XLabel: "GPUs asked for, share of all", YLabel: "JCT / JCT of the switch", YFit: true}
	rows := slices.Clone(r.Rows)
	slices.SortStableFunc(rows, func(a, b CompareRow) int { return cmp.Or(cmp.Compare(a.Load, b.Load), cmp.Compare(a.Faults, b.Faults)) })
	for _, x := range rows {
		both := func(jct, of *Chart, at float64) {
			jct.point(x.System, at, float64(x.JCT)/1000)
			if x.OfSwitch != nil {
				of.point(x.System, at, *x.OfSwitch)
			}
		}
		if x.Load == r.Load {
			both(&byFaults, &ofFaults, float64(x.Faults))
		}
		if x.Faults == r.FaultRate && x.Load > 0 {
			both(&byLoad, &ofLoad, float64(x.Load)/1000)
		}
		if x.Load != r.Load || x.Faults != r.FaultRate {
			continue
		}
		bars.bar(x.System, "JRT", float64(x.JRT)/1000)
		bars.bar(x.System, "JWT", float64(x.JWT)/1000)
		if x.Built {
			prices.bar(x.System, "[IHBD] Table 8", float64(x.Cents)/100)
			prices.bar(x.System, "[TOPO] Table 2", orAbsent(float64(x.Table2)/100)) // which has no price for rings
		}
	}
	return []Chart{bars, prices, byFaults, ofFaults, byLoad, ofLoad}
}

func (r *CompareResult) describe(c CompareConfig) {
	r.Title = fmt.Sprintf("Systems compared, %d GPUs, %d jobs of %s", r.GPUsTotal, r.Jobs, r.Workload)
	k := c.Cluster
	r.note("%d GPUs in servers of %d, leaves of %d; every system has the same GPUs: %d Gb/s to others of the server, and a port to the network; budget: %s", r.GPUsTotal, k.GPUsPerServer, k.Uplinks, c.ScaleUp, c.Budget)
	if c.Budget == BudgetCost {
		r.note("every system that is built may cost %d dollars a GPU by [IHBD] Table 8, and its port (and ring) is as fast as that buys", c.budget()/100)
	}
	r.note("jobs, arrivals, what each sends and faults are the same for every system; first come first served, the head blocks; %d run(s), seeds %d to %d", c.Runs, c.Seed, c.Seed+uint64(c.Runs)-1)
	r.note("a job is steps of %v at most: it computes, each GPU sends each other one so many bytes (experts), and gradients are reduced, nothing hidden; on an idle switch of %d Gb/s, for which the models' shares were measured, it takes its duration; a job in one server takes it everywhere", c.Checkpoint, referenceGbps)
	for _, s := range c.Systems {
		if text := carries[s]; text != "" {
			r.note("%s: %s", s, text)
		}
	}
	r.note("faults: servers of %s from a drawn day on, fault_rate traces over each other; a job that loses a server leaves all it has, goes back to its place in the queue and to its last step, and reloads for %v; circuits of a job take %v before it runs; the trace has no faults of switches or fibres between them", r.Trace, c.Reload, c.Setup)
	r.note("prices a GPU, without what is in the server: parts of [IHBD] Table 8, those of packet switches, transceivers and copper by rate, circuit ports and fibres by number; topoopt_dollars by [TOPO] Table 2 with half a card an interface, which has no rings")
	r.note("stretch: running time of jobs on several servers, without what faults took, of that on the switch; utilisation: GPU time at places of all until the last end; computing: of that, what was computed and kept")
	r.compareWithPapers(c)
}

// carries is what of a job's traffic goes which way.
var carries = map[string]string{
	SystemIdeal:       "all traffic at the rate within a server; nobody can build it, nothing is faster",
	SystemSwitch:      "all that leaves a server by the ports of one switch; nothing that has only these ports is faster",
	SystemInfiniteHBD: "gradients and experts among the GPUs of a ring go around it, at the rate within a server, half each way; between rings of one job by ports and a Clos with balanced ECMP; a job has rings of equal size, as long as it may and finds now",
	SystemLumosCore:   "all that leaves a server by ports: within a pod by the spine whose links have fewest connections, between pods over circuits that the job's collective asked for",
	SystemVClos:       "all that leaves a server by ports, over leaves, spines and circuits that no other job has",
	SystemTopoOpt:     "all that leaves a server by its interfaces, one a GPU, joined directly: gradients by rings, experts over several hops that servers forward at no cost; of each the fullest link counts",
	SystemBalanced:    "all that leaves a server by ports, over the uplink and downlink with fewest connections",
	SystemECMP:        "the same, by hash",
}

// compareWithPapers has what the papers say of their systems beside the rows of
// the table, and which input makes the difference.
func (r *CompareResult) compareWithPapers(c CompareConfig) {
	at := func(system string) *CompareRow { return r.of(system, r.Load, 0) }
	over := func(a, b *CompareRow) string { return decimals(float64(a.JCT)/float64(max(1, b.JCT)), 3) }
	one, clos := at(SystemSwitch), at(SystemBalanced)
	if one == nil || clos == nil {
		return
	}
	for _, x := range []struct{ system, paper, why string }{
		{SystemVClos, "1.010-1.040 ([VCLOS] Table 5)", "%s heads blocked by the network: virtual leaves of any number, see study jct"},
		{SystemBalanced, "1.195-1.633 ([VCLOS] Table 5)", "jobs on several servers run %s as long as on the switch; here few leave their leaf, and experts have no barriers"},
		{SystemECMP, "2.859-4.662 ([VCLOS] Table 5)", "the same, %s; study jct has barriers after each step of experts, and 1.05-2.57"},
	} {
		if row := at(x.system); row != nil {
			what := decimals(row.Stretch, 3)
			if x.system == SystemVClos {
				what = decimals(row.Network, 1)
			}
			r.compare("JCT of "+x.system+", of the switch's", over(row, one), x.paper, fmt.Sprintf(x.why, what))
		}
	}
	if row := at(SystemLumosCore); row != nil {
		r.compare("JRT and JCT that lumoscore saves of clos-balanced", percent(saved(row.JRT, clos.JRT), 1)+", "+percent(saved(row.JCT, clos.JCT), 1), "5.06 %, 16.1-34.1 % ([LUMOS] 6.4)",
			"the paper's Clos has three tiers and slower ports; this one reaches everybody in two at the same rate, where study lumos-jct loses too (case "+caseSameRate+")")
	}
	if row := at(SystemTopoOpt); row != nil {
		r.compare("JCT of clos-balanced, of topoopt's", over(clos, row), "iterations 2.1-3.0 times as long ([TOPO] 5.3)",
			fmt.Sprintf("the paper's Fat-tree of equal price has a third of the bandwidth; here %d and %d Gb/s a GPU; what experts send takes several hops: jobs on several servers run %s as long as on the switch",
				row.Gbps, clos.Gbps, decimals(row.Stretch, 3)))
	}
	if row := at(SystemInfiniteHBD); row != nil {
		ring, _ := (bill{rings: c.Hops}).table8(0, row.Ring)
		r.compare("JRT that infinitehbd saves of clos-balanced", percent(saved(row.JRT, clos.JRT), 1), "- ([IHBD] compares domains, not whole clusters)",
			fmt.Sprintf("its rings carry gradients at the rate within a server; they cost %s dollars a GPU more than the Clos alone", quotient(ring, 100)))
	}
}
