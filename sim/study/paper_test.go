package study

import (
	"os"
	"strings"
	"testing"

	"ringlight/sim/trace"
)

// traceVariable names the public trace where the tests run.
const traceVariable = "RINGLIGHT_TRACE"

// near fails unless got lies between two bounds.
func near(t *testing.T, what string, got, low, high float64) {
	t.Helper()
	if !(got >= low && got <= high) {
		t.Errorf("%s: %.6f, want %.6f to %.6f", what, got, low, high)
	}
}

func tp32() Size {
	s := DefaultSize()
	s.TPs = []int{32}
	return s
}

func wasteOf(t *testing.T, tr *trace.Trace, adjacent bool) map[Model]WasteRow {
	t.Helper()
	res, err := WasteOnTrace(ClusterConfig{Size: tp32(), Source: Source{tr, "trace"}, Layout: Layout{Seed: 1, Adjacent: adjacent}, Runs: 20})
	if err != nil {
		t.Fatal(err)
	}
	out := map[Model]WasteRow{}
	for _, row := range res.Rows {
		out[row.Model] = row
	}
	return out
}

// On the production trace InfiniteHBD with K = 3 wastes 0.15 % of its GPUs at
// TP-32, NVL-72 10.31 % and TPUv4 6.76 %; on the public part of it 0.14 to
// 0.15, 10.3 and 5.7, and K = 2 at most 0.18 when siblings are apart.
// Replay of the public trace over 9,792 GPUs, mean of 20 seeds.
// Reference: [IHBD] sec 1, 6.2, App. A
func TestWasteOnThePublicTrace(t *testing.T) {
	name := os.Getenv(traceVariable)
	if name == "" {
		t.Skip(traceVariable + " names no trace")
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tr, err := trace.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	apart, adjacent := wasteOf(t, tr, false), wasteOf(t, tr, true)
	near(t, "K=3", apart[IHBDK3].Mean, 0.0014, 0.0015)
	near(t, "K=2, siblings apart", apart[IHBDK2].Mean, 0.0014, 0.0018)
	near(t, "K=2, siblings adjacent", adjacent[IHBDK2].Mean, 0.008, 0.012)
	near(t, "NVL-72", apart[NVL72].Mean, 0.101, 0.105)
	near(t, "TPUv4", apart[TPUv4].Mean, 0.054, 0.060)
}

// The same on generated traces, whose share of faulty servers varies by a
// tenth: the bounds are wider by that.
// Reference: [IHBD] sec 1, 6.2, App. A
func TestWasteOnGeneratedTraces(t *testing.T) {
	apart, adjacent := wasteOf(t, nil, false), wasteOf(t, nil, true)
	near(t, "K=3", apart[IHBDK3].Mean, 0.0013, 0.0016)
	near(t, "K=2, siblings apart", apart[IHBDK2].Mean, 0.0013, 0.0020)
	near(t, "K=2, siblings adjacent", adjacent[IHBDK2].Mean, 0.007, 0.013)
	near(t, "NVL-72", apart[NVL72].Mean, 0.100, 0.107)
	near(t, "TPUv4", apart[TPUv4].Mean, 0.050, 0.064)
}

// With K = 3 waste is that of the ideal switch in nearly all faults, NVL-36
// and NVL-72 waste a ninth at TP-16, and SiP-Ring and TPUv4 grow with the
// group.
// Independent faults of 5 % of the nodes.
// Reference: [IHBD] sec 6.2, Fig. 10, 18
func TestWasteByArchitecture(t *testing.T) {
	res, err := WasteIID(IIDConfig{Size: DefaultSize(), Ratios: []float64{0, 0.05}, Runs: 50, Drawn: Drawn{Seed: 1}})
	if err != nil {
		t.Fatal(err)
	}
	at := func(m Model, tp int, f float64) float64 {
		for _, r := range res.Rows {
			if r.Model == m && r.TP == tp && r.Ratio == f {
				return r.Mean
			}
		}
		t.Fatalf("no row for %s", m)
		return 0
	}
	near(t, "K=3 above the switch, TP-32", at(IHBDK3, 32, 0.05)-at(BigSwitch, 32, 0.05), 0, 0.0005)
	near(t, "K=2 above the switch, TP-32", at(IHBDK2, 32, 0.05)-at(BigSwitch, 32, 0.05), 0.001, 0.02)
	near(t, "NVL-36, TP-16, no faults", at(NVL36, 16, 0), 4.0/36, 4.0/36)
	near(t, "NVL-72, TP-32, no faults", at(NVL72, 32, 0), 8.0/72, 8.0/72)
	near(t, "NVL-576, TP-64, no faults", at(NVL576, 64, 0), 0, 0)
	for _, m := range []Model{SiPRing, TPUv4} {
		if at(m, 64, 0.05) < 2*at(m, 16, 0.05) {
			t.Errorf("%s wastes %.4f at TP-64 and %.4f at TP-16", m, at(m, 64, 0.05), at(m, 16, 0.05))
		}
	}
}

// Goal: InfiniteHBD and NVL-576 carry the largest jobs; SiP-Ring's shrink with the
// group.
// The smallest number of usable GPUs over generated traces.
// Reference: [IHBD] sec 6.2, Fig. 11
func TestLargestJob(t *testing.T) {
	res, err := JobScale(ClusterConfig{Size: DefaultSize(), Layout: Layout{Seed: 1}, Runs: 5})
	if err != nil {
		t.Fatal(err)
	}
	always := func(m Model, tp int) int {
		return res.row(func(r JobScaleRow) bool { return r.Model == m && r.TP == tp }).Always
	}
	for _, tp := range res.tps() {
		get := func(m Model) int { return always(m, tp) }
		for _, m := range []Model{NVL36, NVL72, NVL576, TPUv4, SiPRing} {
			if get(IHBDK3) < get(m) {
				t.Errorf("TP-%d: K=3 carries %d, %s %d", tp, get(IHBDK3), m, get(m))
			}
		}
		if tp >= 16 && get(NVL576) < max(get(NVL36), get(NVL72), get(SiPRing)) {
			t.Errorf("TP-%d: NVL-576 carries %d", tp, get(NVL576))
		}
	}
	first, last := always(SiPRing, 8), always(SiPRing, 64)
	if last >= first*9/10 {
		t.Errorf("SiP-Ring carries %d at TP-8 and %d at TP-64", first, last)
	}
}

func (r *JobScaleResult) tps() []int {
	var out []int
	for _, row := range r.Rows {
		if n := len(out); n == 0 || out[n-1] != row.TP {
			out = append(out, row.TP)
		}
	}
	return out
}

// NVL-36 and NVL-72 wait most with small groups, SiP-Ring and TPUv4 with large
// ones; InfiniteHBD hardly ever waits at 90 %.
// Jobs of 85 and 90 % on generated traces with the mean repair time.
// Reference: [IHBD] sec 6.2, Fig. 12, 19
func TestWaitingForRepairs(t *testing.T) {
	res, err := Wait(WaitConfig{ClusterConfig: ClusterConfig{Size: DefaultSize(), Layout: Layout{Seed: 1}, Runs: 5}, Scales: []float64{0.85, 0.9}})
	if err != nil {
		t.Fatal(err)
	}
	at := func(m Model, tp int, scale float64) float64 {
		for _, r := range res.Rows {
			if r.Model == m && r.TP == tp && r.Scale == scale {
				return r.Wait
			}
		}
		t.Fatalf("no row for %s", m)
		return 0
	}
	near(t, "K=3, TP-32, 90 %", at(IHBDK3, 32, 0.9), 0, 0)
	near(t, "NVL-72, TP-16, 90 %", at(NVL72, 16, 0.9), 1, 1)
	near(t, "SiP-Ring, TP-16, 90 %", at(SiPRing, 16, 0.9), 0, 0.02)
	near(t, "TPUv4, TP-64, 85 %", at(TPUv4, 64, 0.85), 0.02, 0.5)
	near(t, "NVL-72, TP-64, 85 %", at(NVL72, 64, 0.85), 0, at(TPUv4, 64, 0.85))
}

// Every cell of Table 6 follows from Table 8 but the power of NVL-36x2.
// Exact sums, printed with two digits.
// Reference: [IHBD] Tables 6, 8
func TestTable6(t *testing.T) {
	got := differing()
	if len(got) != 1 || got[0] != "NVL-36x2, watts per GPU: 152.12, printed 150.33" {
		t.Errorf("differing cells: %q", got)
	}
	cells := 0
	for _, p := range printedCosts {
		for _, x := range interconnects {
			if x.Name == p.name {
				cells += len(x.cells())
			}
		}
	}
	if cells != 28 {
		t.Errorf("%d cells compared, want 28", cells)
	}
}

// Goal: InfiniteHBD has the lowest aggregate cost at any fault ratio; K = 2 is
// cheaper than K = 3 up to 12.1 %.
// Independent faults, TP-32; the price of a GPU that fits must be one that is
// asked for GPUs.
// Reference: [IHBD] sec 6.5, Fig. 13d
func TestAggregateCost(t *testing.T) {
	cfg := CostConfig{GPUCost: DefaultGPUCost, IIDConfig: IIDConfig{Size: tp32(), Ratios: CostRatios(), Runs: 50, Drawn: Drawn{Seed: 1}}}
	res, err := Cost(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if res.Crossing == nil || res.FitCost == nil {
		t.Fatal("K = 2 and K = 3 never cost the same")
	}
	near(t, "crossing", *res.Crossing, 0.10, 0.14)
	near(t, "price that fits", float64(*res.FitCost), 20_000, 40_000)
	best := map[float64]AggregateRow{}
	for _, row := range res.Aggregate {
		if b, ok := best[row.Ratio]; !ok || row.Aggregate < b.Aggregate {
			best[row.Ratio] = row
		}
	}
	for f, row := range best {
		if !strings.HasPrefix(row.Name, "InfiniteHBD") {
			t.Errorf("at %.3f faults %s is cheapest", f, row.Name)
		}
	}
}

// The bound of the waste is 2 (Nt - R) Ps^K, and what is drawn stays below it,
// and below it without its spare factor R.
// The six cells of the table.
// Reference: [IHBD] App. C, Table 7
func TestTable7(t *testing.T) {
	res, err := Bounds(BoundsConfig{Runs: 200, Drawn: Drawn{Seed: 1}})
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range res.Rows {
		near(t, paperBounds[i].printed, row.Printed, row.Paper*0.985, row.Paper*1.015)
		if row.Simulated > row.Sound || row.Sound > row.Printed {
			t.Errorf("R=%d K=%d: drawn %.6f, bound %.6f, printed %.6f", row.GPUsNode, row.K, row.Simulated, row.Sound, row.Printed)
		}
		if row.K == 2 && row.Simulated < row.Sound/20 {
			t.Errorf("R=%d K=%d: drawn %.6f is no waste to speak of", row.GPUsNode, row.K, row.Simulated)
		}
	}
}

// The model has the sizes of the paper's: 469 and 1,161 billion parameters.
// Reference: [IHBD] sec 6.3, App. B
func TestModelSizes(t *testing.T) {
	near(t, Nets[0].Name, Nets[0].params(), 469.2e9, 469.3e9)
	near(t, Nets[1].Name, Nets[1].params(), 1161.2e9, 1161.3e9)
}

// The best TP grows from 16 to 64 and the gain over TP-8 to 3.37.
// All MFUs of Table 2 within 0.55 % (one of its figures has three digits only:
// 0.57), gains within 0.5 %, and the paper's
// strategies within 1.5 % of our best.
// Reference: [IHBD] Table 2
func TestTable2(t *testing.T) {
	res, err := MFU(nil)
	if err != nil {
		t.Fatal(err)
	}
	wantTP := []int{16, 16, 32, 32, 32, 64, 64}
	for i, row := range res.Rows[:len(paperTable2)] {
		near(t, "MFU", row.Best.MFU, row.PaperMFU*0.9945, row.PaperMFU*1.0055)
		near(t, "MFU at TP-8", row.TP8.MFU, row.PaperTP8*0.9945, row.PaperTP8*1.0057)
		near(t, "gain", row.Improve, row.PaperGain*0.995, row.PaperGain*1.005)
		near(t, "regret of the paper's strategy", row.Regret, 0, 0.015)
		if row.Best.TP != wantTP[i] || row.TP8.TP != 8 {
			t.Errorf("%d GPUs: TP-%d and TP-%d are best, want TP-%d and TP-8", row.GPUs, row.Best.TP, row.TP8.TP, wantTP[i])
		}
	}
}

// GPT-MoE is best without expert parallelism; MFUs of Table 5 within 3.5 %.
// As labelled, the first row of the table does not fit in memory.
// Reference: [IHBD] Table 5
func TestTable5(t *testing.T) {
	res, err := MFU(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range res.Rows[len(paperTable2):] {
		near(t, "MFU", row.Best.MFU, row.PaperMFU*0.965, row.PaperMFU*1.035)
		if row.Best.EP != 1 {
			t.Errorf("%d GPUs: EP %d is best", row.GPUs, row.Best.EP)
		}
	}
	p := paperTable5[0]
	if m := Nets[1].memory(Strategy{p.tp, p.pp, p.dp, p.ep}); m <= memoryBytes {
		t.Errorf("as labelled the first row takes %.3g bytes and fits", m)
	}
	if m := Nets[1].memory(Strategy{p.tp, p.dp, p.pp, p.ep}); m > memoryBytes {
		t.Errorf("swapped the first row takes %.3g bytes and does not fit", m)
	}
}

// EP is better than TP with balanced experts and worse from 10 % imbalance on.
// Every column within 2.7 %.
// Reference: [IHBD] Table 4
func TestTable4(t *testing.T) {
	res, err := MFU(nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Experts) != len(paperTable4) {
		t.Fatalf("%d columns", len(res.Experts))
	}
	for _, e := range res.Experts {
		near(t, "MFU", e.MFU, e.PaperMFU*0.973, e.PaperMFU*1.027)
	}
	if e := res.Experts; !(e[1].MFU > e[0].MFU && e[2].MFU < e[0].MFU && e[3].MFU < e[2].MFU && e[4].MFU < e[3].MFU) {
		t.Errorf("order of the columns: %+v", e)
	}
}

// At 90 % scale and 5 % faults the paper claims 1.72 % of cross-ToR traffic;
// the exact method needs at most 1.0 % with domains of 128 and 256 nodes and
// 0.3 % with 1,024 and more, and at 85 % scale none up to 6 % faults from 512
// on and next to none at 7 %. The baseline has about 10 %.
// 8,192 GPUs, TP-32, 0.1 M.
// Reference: [IHBD] sec 6.4, Fig. 13b, 13c
func TestCrossTor(t *testing.T) {
	cfg := DefaultCrossTor()
	cfg.Runs, cfg.Seed = 4, 1
	for i, c := range []struct {
		domain        int
		scale, faults float64
		most          float64
	}{
		{128, 0.9, 0.05, 0.01}, {256, 0.9, 0.05, 0.01}, {1024, 0.9, 0.05, 0.003}, {2048, 0.9, 0.05, 0.003},
		{512, 0.85, 0.05, 0}, {512, 0.85, 0.06, 0}, {1024, 0.85, 0.06, 0}, {512, 0.85, 0.07, 0.001}, {2048, 0.85, 0.07, 0.001},
	} {
		if testing.Short() && i%3 != 0 {
			continue
		}
		rows := cfg.rows(CrossTorRow{Figure: "13b", GPUs: cfg.GPUs, Scale: c.scale, Faults: c.faults, Domain: c.domain})
		for _, row := range rows {
			if row.Fits != cfg.Runs {
				t.Errorf("%+v: %s fits in %d runs", c, row.Method, row.Fits)
			}
		}
		near(t, "exact", rows[0].Tenth, 0, c.most)
		near(t, "paper's method", rows[1].Tenth, rows[0].Tenth, 0.1)
		near(t, "baseline", rows[2].Tenth, 0.09, 0.1)
	}
}

// The method is not sensitive to the size of the cluster.
// A quarter to twice 8,192 GPUs at 85 % and 5 % faults.
// Reference: [IHBD] sec 6.4, Fig. 13a
func TestCrossTorBySize(t *testing.T) {
	cfg := DefaultCrossTor()
	cfg.Runs, cfg.Seed = 3, 1
	for _, gpus := range []int{2048, 4096, 8192, 16384} {
		near(t, "exact", cfg.rows(CrossTorRow{Figure: "13a", GPUs: gpus, Scale: 0.85, Faults: 0.05, Domain: 512})[0].Tenth, 0, 0.001)
	}
}
