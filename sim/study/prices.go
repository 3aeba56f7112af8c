package study

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
