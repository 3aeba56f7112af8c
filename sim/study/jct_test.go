package study

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"ringlight/proto"
	"ringlight/sim/workload"
)

// smallJCT is two leaves of 4 GPUs in servers of 2.
func smallJCT(jobs ...workload.Job) JCTConfig {
	c := DefaultJCT()
	c.Cluster = JCTCluster{Leaves: 2, Uplinks: 4, GPUsPerServer: 2, Spines: 4, Gbps: 100}
	c.Cluster.OCS.Spines, c.Cluster.OCS.Switches = 2, 4
	c.List, c.Name, c.Gaps = jobs, "by hand", []time.Duration{0}
	return c
}

// asked is a job without traffic, in seconds.
func asked(arrival, gpus, duration int) workload.Job {
	return workload.Job{Arrival: time.Duration(arrival) * time.Second, GPUs: int32(gpus), Duration: time.Duration(duration) * time.Second, Estimate: 1000, Slack: 4000}
}

func runJCT(t *testing.T, c JCTConfig, strategy, queue string) JCTRun {
	t.Helper()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	r, err := c.Run(JCTCell{Strategy: strategy, Queue: queue, Gap: c.Gaps[0], Seed: c.Seed})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Goal: running, waiting, blocked heads and utilisation are those of a list
// that is solved by hand.
// Method: 8 GPUs. Job 1 has 6 until 100 s; job 2 wants 4 and waits for it,
// and under FIFO job 3, which would fit, waits behind; under EASY it does not.
func TestJobsByHand(t *testing.T) {
	c := smallJCT(asked(0, 6, 100), asked(10, 4, 50), asked(20, 2, 30))
	fifo := runJCT(t, c, StrategyBest, "fifo")
	// Starts 0, 100, 100; ends 100, 150, 130.
	want := JCTRun{Strategy: "best", Queue: "fifo", Seed: c.Seed, Jobs: 3, JRT: 60_000, JWT: 56_666, JCT: JCTSpread{116_666, 110_000, 140_000, 140_000},
		Blocked: JCTBlocked{GPU: 1}, OverCore: 1, Stretch: 1, Utilisation: (600. + 200 + 60) / (150 * 8), Makespan: 150_000}
	if fifo != want {
		t.Errorf("fifo: %+v, want %+v", fifo, want)
	}
	if easy := runJCT(t, c, StrategyBest, "easy"); easy.JWT != 30_000 || easy.JCT.P50 != 100_000 {
		t.Errorf("easy: %+v", easy)
	}
}

// Goal: a large job is passed as often as patience says, and no more.
// Method: 8 GPUs; a job of 8 waits behind one of 4, and jobs of 4 keep coming
// so that it never finds 8 free unless it becomes the head.
func TestPatienceMakesAHead(t *testing.T) {
	jobs := []workload.Job{asked(0, 4, 100), asked(1, 8, 10)}
	for i := range 40 {
		jobs = append(jobs, asked(2+50*i, 4, 100))
	}
	longest := func(patience int) int64 {
		c := smallJCT(jobs...)
		c.Patience = patience
		return runJCT(t, c, StrategyBest, "fewest").JCT.P99 // of 42: the longest
	}
	if some, none := longest(3), longest(0); some > 400_000 || none < 2_000_000 {
		t.Errorf("the large job ends after %d ms with patience 3, %d ms without", some, none)
	}
}

// Goal: a job that no virtual Clos holds is refused before anything runs.
// Method: 6 GPUs in servers of 2 are 3 x 2 or one leaf, of 2 leaves with 4.
func TestJobsThatNoVirtualClosHolds(t *testing.T) {
	c := smallJCT(asked(0, 6, 100))
	_, err := c.Run(JCTCell{Strategy: StrategyVClos, Queue: "fifo"})
	var e *proto.Error
	if !errors.As(err, &e) || e.Field != "gpus" || e.Limit == "" {
		t.Errorf("6 GPUs on 2 leaves of 4: %v", err)
	}
}

// Goal: stability is the mean of the deviations of jobs alike.
// Method: two jobs of one model and size that take 10 and 30 s: 10 s; one
// alone has none and does not count.
func TestStabilityOfJobsAlike(t *testing.T) {
	jobs := []workload.Job{asked(0, 2, 10), asked(0, 2, 30), asked(0, 4, 99)}
	if got := stability(jobs, []int64{10_000, 30_000, 99_000}); got != 10_000 {
		t.Errorf("%d ms", got)
	}
}

// Goal: Best under FIFO is what a naive simulation by seconds gives.
// Method: servers of one GPU, so that only their number counts; every job
// starts at the first event at which all before it have started and GPUs
// enough are free.
func TestBestAgainstANaiveQueue(t *testing.T) {
	c := DefaultJCT()
	c.Cluster.GPUsPerServer = 1
	c.Workload.Jobs, c.Seed = 2000, 9
	cell := JCTCell{StrategyBest, "fifo", 100 * time.Second, 9}
	got, err := c.Run(cell)
	if err != nil {
		t.Fatal(err)
	}
	jobs := c.jobs(cell)
	ends := make([]time.Duration, len(jobs))
	var waited, start time.Duration
	for i, j := range jobs {
		// The earliest time from which enough of those before have ended.
		for start = max(start, j.Arrival); ; {
			free, next := int32(512), time.Duration(1<<62)
			for k, before := range jobs[:i] {
				if ends[k] > start {
					free, next = free-before.GPUs, min(next, ends[k])
				}
			}
			if free >= j.GPUs {
				break
			}
			start = next
		}
		ends[i] = start + j.Duration
		waited += start - j.Arrival
	}
	if want := waited.Milliseconds() / int64(len(jobs)); got.JWT != want || want == 0 {
		t.Errorf("waits %d ms, naively %d ms", got.JWT, want)
	}
}

// Goal: a job that meets nobody takes its duration on a shared core, however
// it communicates, in how many steps, and however flows share links.
// Method: one job of every pattern after another, source routing, on the paper's
// cluster; none may end early, nor later than rounding explains.
func TestJobAloneTakesItsDuration(t *testing.T) {
	for n := range 8 {
		c, steps := DefaultJCT(), 1+n%2*6
		c.Sharing = []string{"rounds", "phases", "equal", "fullest"}[n/2]
		c.Steps, c.Gaps, c.Name = steps, []time.Duration{0}, "alone"
		for i, p := range []workload.Pattern{workload.HalvingDoubling, workload.Ring, workload.AllToAll} {
			for k, gpus := range []int32{48, 64} {
				j := asked((2*i+k)*2000, int(gpus), 1000)
				j.Pattern, j.Volume, j.Model = p, 1000, 0
				if p == workload.AllToAll {
					j.Model = 17
				}
				c.List = append(c.List, j)
			}
		}
		r := runJCT(t, c, StrategySR, "fifo")
		late := int64(0)
		if c.Sharing == "fullest" {
			late = 200 // the weights of its links are rounded up
		}
		if r.OverCore != len(c.List) || r.JRT < 1_000_000 || r.JRT > 1_000_000+late || r.JWT != 0 {
			t.Errorf("%s, %d steps: %+v", c.Sharing, steps, r)
		}
	}
}

// Goal: the figures do not depend on which cell runs first, and another seed
// gives others.
func TestCellsShareNothing(t *testing.T) {
	c := DefaultJCT()
	c.Workload.Jobs, c.Runs, c.Gaps = 120, 2, []time.Duration{20 * time.Second}
	text := func(reverse bool) string {
		cells := c.Cells()
		runs := make([]JCTRun, len(cells))
		for i := range cells {
			if reverse {
				i = len(cells) - 1 - i
			}
			var err error
			if runs[i], err = c.Run(cells[i]); err != nil {
				t.Fatal(err)
			}
		}
		b, err := json.Marshal(c.Result(runs))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if forth, back := text(false), text(true); forth != back {
		t.Errorf("forth %s\nback %s", forth, back)
	}
	before := text(false)
	if c.Seed++; text(false) == before {
		t.Error("the seed changes nothing")
	}
}

// Goal: every strategy and queue runs, and decisions are timed when asked for.
func TestEveryStrategyAndQueue(t *testing.T) {
	c := DefaultJCT()
	c.Workload.Jobs, c.Queues = 100, QueueOrders()
	ticks := time.Duration(0)
	c.Clock = func() time.Duration { ticks += time.Microsecond; return ticks }
	var runs []JCTRun
	for _, cell := range c.Cells() {
		cell.Gap = 10 * time.Second // busier than the table says
		r, err := c.Run(cell)
		if err != nil {
			t.Fatal(err)
		}
		if r.JCT.Mean != r.JRT+r.JWT && r.JCT.Mean != r.JRT+r.JWT+1 || r.JWT == 0 || r.Decide == nil || r.Decide.Max != 1 || r.Decide.N < 100 {
			t.Errorf("%+v", r)
		}
		r.LambdaMS = cell.Gap.Milliseconds()
		runs = append(runs, r)
	}
	res := c.Result(runs)
	if text := res.Table().CSV(); strings.Count(text, "\n") != 1+len(c.Queues)*len(c.Strategies) {
		t.Error(text)
	}
	if len(res.Notes) == 0 || len(res.Charts()) != len(c.Queues) {
		t.Errorf("%d notes, %d charts", len(res.Notes), len(res.Charts()))
	}
}

// Goal: what cannot be is refused with field and limit.
func TestRefusedJCT(t *testing.T) {
	for field, change := range map[string]func(*JCTConfig){
		"runs":                    func(c *JCTConfig) { c.Runs = 0 },
		"patience":                func(c *JCTConfig) { c.Patience = -1 },
		"steps":                   func(c *JCTConfig) { c.Steps = 0 },
		"strategies":              func(c *JCTConfig) { c.Strategies = []string{"best", "best"} },
		"queue":                   func(c *JCTConfig) { c.Queues = []string{"lifo"} },
		"sharing":                 func(c *JCTConfig) { c.Sharing = "fair" },
		"lambda":                  func(c *JCTConfig) { c.Gaps[0] = 0 },
		"jobs":                    func(c *JCTConfig) { c.Workload.Jobs = 0 },
		"cluster.leaves":          func(c *JCTConfig) { c.Cluster.Leaves = 0 },
		"cluster.gpus_per_server": func(c *JCTConfig) { c.Cluster.GPUsPerServer = 33 },
		"cluster.uplinks":         func(c *JCTConfig) { c.Cluster.Spines = 5 },
		"cluster.spines":          func(c *JCTConfig) { c.Cluster.Spines = 33 },
		"cluster.ocs.switches":    func(c *JCTConfig) { c.Cluster.OCS.Switches = 0 },
	} {
		c := DefaultJCT()
		change(&c)
		var e *proto.Error
		if err := c.Validate(); !errors.As(err, &e) || e.Field != field || e.Limit == "" {
			t.Errorf("%s: %v", field, err)
		}
	}
	for text, field := range map[string]string{
		`{"leaves":16,"gpus":4}`: "cluster", `{"leaves":"x"}`: "cluster", `{} {}`: "cluster", ``: "cluster", `{"leaves":-1}`: "cluster.leaves",
	} {
		var e *proto.Error
		if _, err := ReadJCTCluster([]byte(text)); !errors.As(err, &e) || e.Field != field {
			t.Errorf("%s: %v", text, err)
		}
	}
	c, err := ReadJCTCluster([]byte(`{"leaves":8,"ocs":{"spines":4}}`))
	if err != nil || c.GPUsTotal() != 256 || c.OCS.Switches != 32 || c.Uplinks != 32 {
		t.Errorf("%+v, %v", c, err)
	}
}
