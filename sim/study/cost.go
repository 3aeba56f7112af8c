package study

import (
	"fmt"
	"slices"
	"strings"
)

// Part is one row of [IHBD] Table 8. Money in cents, power in milliwatts, so
// that sums are exact.
type Part struct {
	Name       string `json:"name"`
	Quantity   int    `json:"quantity"`
	Cents      int    `json:"unit_cents"`
	GBps       int    `json:"unit_gbps"`
	Milliwatts int    `json:"unit_mw"`
}

// Interconnect is one architecture of [IHBD] Table 8.
type Interconnect struct {
	Name  string // as in Table 6
	Model Model  // its behaviour under faults; empty: not simulated
	GPUs  int
	GBps  int // of each GPU
	Parts []Part
}

// interconnects are [IHBD] Table 8, in its order.
var interconnects = []Interconnect{
	{"TPUv4", TPUv4, 4096, 300, []Part{
		{"OCS", 48, 80_000_00, 6400, 108_000}, {"DAC cable", 5120, 63_60, 50, 100},
		{"optical module", 6144, 360_00, 50, 12_000}, {"fibre", 6144, 6_80, 50, 0}}},
	{"NVL-36", NVL36, 36, 900, []Part{{"NVLink switch", 9, 28_000_00, 3600, 275_000}, {"DAC cable", 2592, 35_60, 25, 100}}},
	{"NVL-72", NVL72, 72, 900, []Part{{"NVLink switch", 18, 28_000_00, 3600, 275_000}, {"DAC cable", 5184, 35_60, 25, 100}}},
	{"NVL-36x2", "", 72, 900, []Part{
		{"NVLink switch", 36, 28_000_00, 3600, 275_000}, {"DAC cable", 6480, 35_60, 25, 100}, {"ACC cable", 162, 320_00, 200, 2_500}}},
	{"NVL-576", NVL576, 576, 900, []Part{
		{"NVLink switch", 432, 28_000_00, 3600, 275_000}, {"DAC cable", 41472, 35_60, 25, 100},
		{"optical module", 4608, 850_00, 200, 25_000}, {"fibre", 4608, 6_80, 200, 0}}},
	{"Alibaba HPN", "", 16320, 50, []Part{
		{"EPS", 360, 14_960_00, 6400, 3_145_000}, {"DAC cable", 32640, 35_60, 25, 100},
		{"optical module", 28800, 360_00, 50, 12_000}, {"fibre", 14400, 6_80, 50, 0}}},
	{"InfiniteHBD (K=2)", IHBDK2, 4, 800, []Part{{"DAC cable", 4, 199_60, 200, 100}, {"OCSTrx", 16, 600_00, 100, 12_000}, {"fibre", 16, 6_80, 100, 0}}},
	{"InfiniteHBD (K=3)", IHBDK3, 4, 800, []Part{{"DAC cable", 2, 199_60, 200, 100}, {"OCSTrx", 24, 600_00, 100, 12_000}, {"fibre", 24, 6_80, 100, 0}}},
}

// interconnect finds an interconnect by name.
func interconnect(name string) *Interconnect {
	return firstOf(interconnects, func(x Interconnect) bool { return x.Name == name })
}

// printedCosts is [IHBD] Table 6, as printed.
var printedCosts = []struct {
	name  string
	cells []string // as Interconnect.cells
}{
	{"TPUv4", []string{"1567.20", "19.39", "5.22", "0.06"}},
	{"NVL-36", []string{"9563.20", "75.95", "10.63", "0.08"}},
	{"NVL-72", []string{"9563.20", "75.95", "10.63", "0.08"}},
	{"NVL-36x2", []string{"17924.00", "150.33", "19.92", "0.17"}},
	{"NVL-576", []string{"30417.60", "413.45", "33.80", "0.46"}},
	{"InfiniteHBD (K=2)", []string{"2626.80", "48.10", "3.28", "0.06"}},
	{"InfiniteHBD (K=3)", []string{"3740.60", "72.05", "4.68", "0.09"}},
}

// cents of all parts.
func (x Interconnect) cents() int {
	return sumOf(x.Parts, func(p Part) int { return p.Quantity * p.Cents })
}

// milliwatts of all parts.
func (x Interconnect) milliwatts() int {
	return sumOf(x.Parts, func(p Part) int { return p.Quantity * p.Milliwatts })
}

// equalGBps is the bandwidth to which the interconnects are brought in the
// aggregate cost: that of an InfiniteHBD GPU. [IHBD] sec 6.5 normalises "by
// GPU count and per-GPU bandwidth"; without it TPUv4, with 300 GBps, would be
// cheaper than InfiniteHBD and Fig. 13d could not be.
const equalGBps = 800

// DefaultGPUCost in dollars. chosen: the paper names no price of a GPU; at
// this one K = 2 and K = 3 cost the same at its 12.1 % of faulty nodes (the
// result says which price fits exactly).
const DefaultGPUCost = 30_000

// maxGPUCost in dollars; chosen: anything dearer is a slip of the keyboard.
const maxGPUCost = 10_000_000

// CostConfig is Table 6 and Fig. 13d.
type CostConfig struct {
	IIDConfig
	GPUCost int `flag:"gpu-cost" usage:"price of a GPU in dollars"`
}

// CostRatios are 0 to 20 % in steps of half a per cent: the paper's crossing
// lies in the middle.
func CostRatios() []float64 {
	return ladder(0, 40, 200)
}

// UnitCost is one row of [IHBD] Table 6: dollars and watts.
type UnitCost struct {
	Name      string  `json:"architecture"`
	GPUCost   float64 `json:"cost_per_gpu"`
	GPUWatts  float64 `json:"watts_per_gpu"`
	GBpsCost  float64 `json:"cost_per_gbps"`
	GBpsWatts float64 `json:"watts_per_gbps"`
}

// cells are the figures with two digits from exact quotients.
func (x Interconnect) cells() []string {
	return []string{
		quotient(x.cents(), x.GPUs*100), quotient(x.milliwatts(), x.GPUs*1000),
		quotient(x.cents(), x.GPUs*x.GBps*100), quotient(x.milliwatts(), x.GPUs*x.GBps*1000),
	}
}

// quotient prints a/b with two digits, a half to the even one.
func quotient(a, b int) string {
	hundredths, rest := 100*a/b, 100*a%b
	if 2*rest > b || 2*rest == b && hundredths%2 == 1 {
		hundredths++
	}
	return fmt.Sprintf("%d.%02d", hundredths/100, hundredths%100)
}

// AggregateRow is what one architecture costs at a fault ratio.
type AggregateRow struct {
	Name         string  `json:"architecture"`
	Ratio        float64 `json:"fault_ratio"`
	Lost         float64 `json:"lost_gpu_ratio"`       // wasted and faulty
	Interconnect float64 `json:"interconnect_per_gpu"` // dollars, at equalGBps
	Aggregate    float64 `json:"aggregate_per_gpu"`    // dollars per GPU of the cluster
}

// CostResult is Table 6 and Fig. 13d.
type CostResult struct {
	Header
	TP        int            `json:"tp"`
	GPUCost   int            `json:"gpu_cost"`
	Table6    []UnitCost     `json:"table6"`
	Differing []string       `json:"table6_cells_that_differ"`
	Aggregate []AggregateRow `json:"aggregate"`
	Crossing  *float64       `json:"k2_k3_crossing"`     // fault ratio at which K = 2 and K = 3 cost the same
	FitCost   *int           `json:"gpu_cost_for_paper"` // the price that puts the crossing at the paper's
	Report
}

// paperCrossing is the fault ratio up to which K = 2 is cheaper ([IHBD] sec
// 6.5).
const paperCrossing = 0.121

// Cost computes Table 6 from Table 8 and the aggregate cost under independent
// faults.
func Cost(cfg CostConfig) (*CostResult, error) {
	if cfg.GPUCost < 1 || cfg.GPUCost > maxGPUCost {
		return nil, invalid("gpu-cost", fmt.Sprintf("1 to %d dollars", maxGPUCost), "%d is out of range", cfg.GPUCost)
	}
	if len(cfg.TPs) != 1 {
		return nil, invalid("tp", "one group size", "%d given", len(cfg.TPs))
	}
	waste, err := WasteIID(cfg.IIDConfig)
	if err != nil {
		return nil, err
	}
	res := &CostResult{Header: waste.Header, TP: cfg.TPs[0], GPUCost: cfg.GPUCost}
	res.Study = "cost"
	for _, x := range interconnects {
		gpu, watts, gbps := share(x.cents(), x.GPUs*100), share(x.milliwatts(), x.GPUs*1000), float64(x.GBps)
		res.Table6 = append(res.Table6, UnitCost{x.Name, gpu, watts, gpu / gbps, watts / gbps})
		if x.Model == "" {
			continue
		}
		per := float64(gpu/gbps) * equalGBps
		for _, row := range waste.Rows {
			if row.Model == x.Model {
				lost := row.Ratio + row.Mean
				res.Aggregate = append(res.Aggregate, AggregateRow{x.Name, row.Ratio, lost, per, per + float64(float64(cfg.GPUCost)*lost)})
			}
		}
	}
	res.Differing = differing()
	res.cross()
	res.describe(cfg)
	return res, nil
}

// differing names the cells of Table 6 that Table 8 does not give.
func differing() (out []string) {
	for _, p := range printedCosts {
		ours := interconnect(p.name).cells()
		for i, column := range []string{"cost per GPU", "watts per GPU", "cost per GBps", "watts per GBps"} {
			if ours[i] != p.cells[i] {
				out = append(out, fmt.Sprintf("%s, %s: %s, printed %s", p.name, column, ours[i], p.cells[i]))
			}
		}
	}
	return out
}

// cross finds where K = 3 becomes as cheap as K = 2, between two ratios of the
// sweep, and the price of a GPU that would put it where the paper has it.
func (r *CostResult) cross() {
	of := map[string][]AggregateRow{}
	for _, row := range r.Aggregate {
		of[row.Name] = append(of[row.Name], row)
	}
	two, three := of["InfiniteHBD (K=2)"], of["InfiniteHBD (K=3)"]
	for i := 1; i < len(two); i++ {
		a, b := two[i-1].Aggregate-three[i-1].Aggregate, two[i].Aggregate-three[i].Aggregate
		if r.Crossing == nil && a < 0 && b >= 0 {
			r.Crossing = new(two[i-1].Ratio + float64((two[i].Ratio-two[i-1].Ratio)*(-a/(b-a))))
		}
		if two[i-1].Ratio <= paperCrossing && paperCrossing <= two[i].Ratio {
			part := (paperCrossing - two[i-1].Ratio) / (two[i].Ratio - two[i-1].Ratio)
			from, to := two[i-1].Lost-three[i-1].Lost, two[i].Lost-three[i].Lost
			if gain := from + float64((to-from)*part); gain > 0 {
				r.FitCost = new(int((three[0].Interconnect - two[0].Interconnect) / gain))
			}
		}
	}
}

func (r *CostResult) describe(cfg CostConfig) {
	r.Title = "Cost of interconnects"
	r.note("Table 6 follows from the parts of Table 8")
	r.note("aggregate cost per GPU of the cluster: price of a GPU x (wasted + faulty share) + interconnect, all interconnects brought to %d GBps per GPU", equalGBps)
	r.note("a GPU costs %d dollars: chosen, the paper names no price", cfg.GPUCost)
	r.note("TP-%d, each node faulty independently, %d draw(s), HBD order is a %s", cfg.TPs[0], cfg.Runs, r.Topology)
	r.compare("cells of Table 6 that differ", strings.Join(r.Differing, "; "), "-", fmt.Sprintf("Table 8 gives the figure on the left; the other %d cells are equal", 4*len(printedCosts)-len(r.Differing)))
	if r.Crossing != nil && r.TP == 32 {
		fit := "no price of a GPU is printed"
		if r.FitCost != nil {
			fit += fmt.Sprintf("; %d dollars would give the paper's figure", *r.FitCost)
		}
		r.compare(fmt.Sprintf("K=2 is cheaper than K=3 up to this fault ratio, GPU at %d dollars", cfg.GPUCost), percent(*r.Crossing, 1), percent(paperCrossing, 1), fit)
	}
	var names []string
	for _, best := range r.Aggregate {
		for _, row := range r.Aggregate {
			if row.Ratio == best.Ratio && row.Aggregate < best.Aggregate {
				best = row
			}
		}
		if !slices.Contains(names, best.Name) {
			names = append(names, best.Name)
		}
	}
	r.compare("cheapest at some fault ratio of the sweep", strings.Join(names, ", "), "InfiniteHBD throughout", "agrees at equal bandwidth; not normalised, TPUv4 would be cheaper without faults")
}

// Table is Table 6, then the aggregate cost at every ratio.
func (r *CostResult) Table() Table {
	t := Table{Columns: []string{"table", "architecture", "fault_ratio", "cost_per_gpu", "watts_per_gpu", "cost_per_gbps", "watts_per_gbps",
		fmt.Sprintf("interconnect_at_%d_gbps", equalGBps), "lost_gpu_ratio", "aggregate_per_gpu"}}
	for _, x := range interconnects {
		c := x.cells()
		t.add("6", x.Name, "", c[0], c[1], c[2], c[3], "", "", "")
	}
	for _, a := range r.Aggregate {
		t.add("13d", a.Name, ratio(a.Ratio), "", "", "", "", decimals(a.Interconnect, 2), ratio(a.Lost), decimals(a.Aggregate, 2))
	}
	return t
}

// Charts are the unit costs and the aggregate cost.
func (r *CostResult) Charts() []Chart {
	unit := Chart{Title: "Interconnect of a GPU ([IHBD] Table 6)", YLabel: "dollars per GB/s"}
	agg := Chart{Title: fmt.Sprintf("With GPUs wasted, %d dollars each, TP-%d ([IHBD] Fig. 13d)", r.GPUCost, r.TP), XLabel: "faulty nodes, % of all", YLabel: "dollars per GPU", XPercent: true}
	short := strings.NewReplacer("InfiniteHBD ", "IHBD ", "Alibaba ", "", "NVL-36x2", "36x2", "(", "", ")", "")
	for _, u := range r.Table6 {
		unit.bar(short.Replace(u.Name), "", u.GBpsCost)
	}
	for _, a := range r.Aggregate {
		agg.point(string(interconnect(a.Name).Model), a.Ratio, a.Aggregate)
	}
	return []Chart{unit, agg}
}
