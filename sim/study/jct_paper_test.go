package study

import (
	"testing"
	"time"

	"ringlight/sim/workload"
)

// meanJCT runs a strategy and queue on so many seeds and gives the mean completion,
// and the heads that the network blocked.
func meanJCT(t *testing.T, kind, strategy, queue string, lambda, seeds int) (jct int64, network int) {
	t.Helper()
	c := DefaultJCT()
	c.Workload.Kind = kind
	for seed := range uint64(seeds) {
		r, err := c.Run(JCTCell{strategy, queue, time.Duration(lambda) * time.Second, seed + 1})
		if err != nil {
			t.Fatal(err)
		}
		jct, network = jct+r.JCT.Mean/int64(seeds), network+r.Blocked.Network
	}
	return jct, network
}

// With circuits, isolated jobs complete as with one big switch, and none is
// blocked by the network; on fixed links the core must be less full for that.
// Reference: [VCLOS] sec 9.6, Tables 2 and 5
func TestIsolationByCircuitsCostsNothing(t *testing.T) {
	for _, kind := range []string{"w1", "w2"} {
		if testing.Short() && kind == "w2" {
			continue
		}
		for _, lambda := range []int{100, 140} {
			best, _ := meanJCT(t, kind, StrategyBest, "fifo", lambda, 5)
			ocs, network := meanJCT(t, kind, StrategyOCS, "fifo", lambda, 5)
			vclos, blocked := meanJCT(t, kind, StrategyVClos, "fifo", lambda, 5)
			t.Logf("%s at %d s: best %d, ocs %.4f, vclos %.4f of it; blocked by the network %d and %d", kind, lambda, best/1000,
				float64(ocs)/float64(best), float64(vclos)/float64(best), network, blocked)
			if float64(ocs) > 1.01*float64(best) || network > 5 {
				t.Errorf("%s at %d s: ocs %d, best %d ms; %d blocked", kind, lambda, ocs, best, network)
			}
			if vclos <= ocs || blocked < 50 {
				t.Errorf("%s at %d s: vclos %d, ocs %d ms; %d blocked", kind, lambda, vclos, ocs, blocked)
			}
		}
	}
}

// A better queue needs less of the network: EASY saves a third and more of
// what first come first served takes on a full core.
// Reference: [VCLOS] sec 9.7
func TestEASYSavesOnAFullCore(t *testing.T) {
	for kind, most := range map[string]float64{"w1": 0.85, "w2": 0.70} {
		fifo, _ := meanJCT(t, kind, StrategyBest, "fifo", 100, 2)
		if easy, _ := meanJCT(t, kind, StrategyBest, "easy", 100, 2); float64(easy) > most*float64(fifo) {
			t.Errorf("%s: easy %d, fifo %d ms", kind, easy, fifo)
		}
	}
}

// Jobs that share the core run longer: by source routing least, by hash most.
// Isolated ones take what they take alone.
// Reference: [VCLOS] sec 9.4, Fig. 13a
func TestSharingTheCoreSlowsJobs(t *testing.T) {
	c := DefaultJCT()
	jrt := map[string]int64{}
	for _, s := range Strategies {
		r, err := c.Run(JCTCell{s, "fifo", 120 * time.Second, 1})
		if err != nil {
			t.Fatal(err)
		}
		jrt[s] = r.JRT
	}
	if jrt[StrategyOCS] != jrt[StrategyBest] || jrt[StrategyVClos] != jrt[StrategyBest] ||
		jrt[StrategySR] <= jrt[StrategyBest] || jrt[StrategyBalanced] <= jrt[StrategySR] || jrt[StrategyECMP] <= jrt[StrategyBalanced] {
		t.Error(jrt)
	}
}

// Jobs on any GPUs run longer by what GPUs of a server would say to each other, and wait
// longer by that; the more, the fuller the core is. Their links stay their own.
// Reference: [VCLOS] sec 6.1, Table 5
func TestRelaxedLocalityCostsTime(t *testing.T) {
	before := 1.0
	for _, lambda := range []int{140, 120, 100} {
		if testing.Short() && lambda == 120 {
			continue
		}
		ocs, _ := meanJCT(t, "w1", StrategyOCS, "fifo", lambda, 2)
		relaxed, network := meanJCT(t, "w1", StrategyRelax, "fifo", lambda, 2)
		if of := float64(relaxed) / float64(ocs); of < before+0.1 || network > 20 {
			t.Errorf("at %d s: %.3f of ocs, less than 0.1 over %.3f; %d blocked by the network", lambda, of, before, network)
		} else {
			before = of
		}
	}
}

// Goal: a job between servers takes as much longer as its links are slower, of what it
// says alone; where it fits a server, or says nothing, no longer. Method: by hand.
func TestJobApartTakesLonger(t *testing.T) {
	r := DefaultJCTCluster(16).rates()
	j := asked(0, 2, 1000)
	j.Pattern, j.Volume = workload.HalvingDoubling, 1000
	says := j.Duration / workload.Shares * time.Duration(j.AllReduce())
	for gpus, want := range map[[2]int]time.Duration{{0, 1}: 0, {6, 7}: 0, {3, 4}: 9 * says, {0, 511}: 9 * says} { // any order: each by itself
		if got := r.apart(j, gpus[:]); says == 0 || (got-want).Abs() > time.Millisecond {
			t.Errorf("on %v: %v longer, want %v", gpus, got, want)
		}
	}
	if j.Pattern = workload.Alone; r.apart(j, []int{3, 4}) != 0 {
		t.Error("a job that says nothing takes longer")
	}
}
