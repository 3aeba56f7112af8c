package study

import (
	"fmt"

	"ringlight/planner/isolate"
)

// paperMark ends the name of a series that [VCLOS] printed.
const paperMark = ", paper"

// What [VCLOS] prints for 512 GPUs and 5,000 jobs, in seconds. Its order is
// OCS-vClos, vClos, Best, source routing, balanced ECMP, ECMP,
// OCS-Relax.
var vclosOrder = []string{StrategyOCS, StrategyVClos, StrategyBest, StrategySR, StrategyBalanced, StrategyECMP, StrategyRelax}

// vclosTable5 is JCT by lambda, FIFO.
var vclosTable5 = map[int64][7]float64{
	100_000: {7800.5, 9799.6, 7514.3, 10083.5, 12267.1, 35032.9, 24313.3},
	110_000: {6368.0, 6981.5, 6131.8, 7449.6, 8622.5, 25055.6, 13768.4},
	120_000: {5229.9, 5550.6, 5053.0, 6228.6, 7105.4, 23545.4, 11291.4},
	130_000: {4491.5, 4710.4, 4340.7, 4955.6, 5436.9, 13118.7, 7586.6},
	140_000: {4025.4, 4105.1, 3986.5, 4209.3, 4764.5, 11395.6, 5917.9},
}

// vclosTable6 is JCT by queue at a lambda of 120 s. The EDF figure of
// OCS-vClos is misprinted ("1.170.0").
var vclosTable6 = map[string][7]float64{
	isolate.EDF.String():    {0, 4401.4, 4176.5, 4685.5, 5020.9, 7658.6},
	isolate.Fewest.String(): {4081.6, 4137.2, 4029.9, 4250.5, 4607.8, 6667.6},
}

// vclosTable7 is JCT with the sizes of TPUv4, of which the lambda is not
// printed; of the running times only that of OCS-vClos is legible.
var (
	vclosTable7 = [7]float64{11958.1, 11958.9, 11958.1, 11973.7, 12021.8, 22808.7}
	vclosJRT7   = 3856.1
)

// vclosTable2 is heads blocked by GPU and network by lambda, of vClos and
// OCS-vClos.
var vclosTable2 = map[int64]map[string][2]int{
	100_000: {StrategyVClos: {1311, 264}, StrategyOCS: {1180, 172}},
	110_000: {StrategyVClos: {988, 250}, StrategyOCS: {1047, 161}},
	120_000: {StrategyVClos: {878, 218}, StrategyOCS: {920, 129}},
	130_000: {StrategyVClos: {726, 145}, StrategyOCS: {705, 98}},
}

// vclosLambda is the default of the paper.
const vclosLambda = 120_000

// What sec 9.4 says of running times: those of OCS-vClos are so much shorter.
var vclosJRT = map[string]float64{StrategySR: 0.031, StrategyBalanced: 0.0617}

// likePaper says whether the paper has such a cluster and such jobs.
func (r *JCTResult) likePaper() bool {
	return r.GPUsTotal == 512 && r.Cluster.GPUsPerServer == 4 && r.Jobs == 5000
}

// paperJCT is what the paper prints for a row, 0 if nothing.
func (r *JCTResult) paperJCT(m JCTMean) float64 {
	row, ok := [7]float64{}, false
	switch {
	case !r.likePaper():
	case r.Workload == "tpuv4":
		row, ok = vclosTable7, m.Queue == isolate.FIFO.String()
	case r.Workload != "w1":
	case m.Queue == isolate.FIFO.String():
		row, ok = vclosTable5[m.LambdaMS]
	case m.LambdaMS == vclosLambda:
		row, ok = vclosTable6[m.Queue]
	}
	for i, s := range vclosOrder {
		if ok && s == m.Strategy {
			return row[i]
		}
	}
	return 0
}

func (r *JCTResult) paperBlocked(m JCTMean) (gpu, network int) {
	if !r.likePaper() || r.Workload != "w1" || m.Queue != isolate.FIFO.String() {
		return 0, 0
	}
	b := vclosTable2[m.LambdaMS][m.Strategy]
	return b[0], b[1]
}

func (r *JCTResult) compareWithPaper() {
	for _, m := range r.Means {
		best := r.mean(StrategyBest, m.Queue, m.LambdaMS)
		if best == nil || m.paper == 0 {
			continue
		}
		name := map[bool]string{true: "Table 5", false: "Table 6"}[m.Queue == isolate.FIFO.String()]
		if r.Workload == "tpuv4" {
			name = "Table 7"
		}
		what := fmt.Sprintf("%s, %s, lambda %s, %s: JCT s", name, m.Queue, decimals(float64(m.LambdaMS)/1000, -1), m.Strategy)
		ours, theirs := seconds(m.JCT), decimals(m.paper, 1)
		if best.paper > 0 && m.Strategy != StrategyBest {
			ours += fmt.Sprintf(" (%s of Best)", decimals(*m.OfBest, 3))
			theirs += fmt.Sprintf(" (%s)", decimals(m.paper/best.paper, 3))
		}
		r.compare(what, ours, theirs, r.why(m, *best))
	}
	// The row of OCS that Table 7 has.
	if m := firstOf(r.Means, func(m JCTMean) bool { return m.Strategy == StrategyOCS && r.Workload == "tpuv4" && m.paper > 0 }); m != nil {
		r.compare("Table 7, ocs: JRT s", seconds(m.JRT), decimals(vclosJRT7, 1), "durations of another sample; the paper's are of Helios")
	}
	for _, m := range r.Means {
		if gpu, network := r.paperBlocked(m); gpu > 0 {
			why := fmt.Sprintf("of the blocked heads the network has %s here and %s there", percent(m.Network/(m.GPU+m.Network), 1), percent(share(network, gpu+network), 1))
			if m.Strategy == StrategyOCS {
				why += fmt.Sprintf(": a leaf may hold several virtual leaves here, s may be any; the worst run has %d", m.WorstBlock)
			}
			r.compare(fmt.Sprintf("Table 2, lambda %s, %s: heads blocked by gpu / network", decimals(float64(m.LambdaMS)/1000, -1), m.Strategy),
				decimals(m.GPU, 1)+" / "+decimals(m.Network, 1), fmt.Sprintf("%d / %d", gpu, network), why)
		}
	}
	for _, m := range r.Means {
		paper, ok := vclosJRT[m.Strategy]
		ocs := r.mean(StrategyOCS, m.Queue, m.LambdaMS)
		if !ok || ocs == nil || !r.likePaper() || r.Workload != "w1" || m.LambdaMS != vclosLambda || m.Queue != isolate.FIFO.String() {
			continue
		}
		r.compare("sec 9.4, lambda 120: JRT of ocs against "+m.Strategy, percent(share(int(ocs.JRT-m.JRT), int(m.JRT)), 2), percent(-paper, 2),
			fmt.Sprintf("only jobs on more than one leaf can meet another: here %s of them, which run %s longer; the paper does not say its share", percent(m.OverCore, 1), percent(m.Stretch-1, 1)))
	}
}

// why says from the figures of this study why a row is not the paper's.
func (r *JCTResult) why(m, best JCTMean) string {
	switch m.Strategy {
	case StrategyBest:
		return fmt.Sprintf("another sample of jobs: the %d seeds alone lie between %s and %s", m.Runs, seconds(m.Least), seconds(m.Most))
	case StrategyVClos, StrategyOCS:
		return fmt.Sprintf("no job is slower (JRT %s, Best %s); waiting %s against %s, %s heads blocked by the network", seconds(m.JRT), seconds(best.JRT), seconds(m.JWT), seconds(best.JWT), decimals(m.Network, 1))
	case StrategyRelax:
		return fmt.Sprintf("no link is shared, and what GPUs of a server say goes over the network, %d times slower: JRT %s, Best %s; the paper does not say where its jobs go", serverFaster, seconds(m.JRT), seconds(best.JRT))
	}
	return fmt.Sprintf("%s of the jobs are on more than one leaf and run %s longer, all together %s; the rest is waiting, %s against %s",
		percent(m.OverCore, 1), percent(m.Stretch-1, 1), percent(share(int(m.JRT-best.JRT), int(best.JRT)), 1), seconds(m.JWT), seconds(best.JWT))
}
