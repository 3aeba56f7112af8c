package study

import (
	"fmt"
	"sort"
)

// bill is what a system has for the network of one GPU.
type bill struct {
	ports, modules, cables, fibres int // of packet switches; transceivers, copper to a leaf, fibre pairs
	circuit                        int // ports of circuit switches
	panel, flips                   int // ports of patch panels, 1x2 switches
	rings                          int // K of OCSTrx rings
}

// bills: leaves and spines are three ports, and two modules and a fibre
// between; copper joins a GPU with its leaf. Circuits between leaves and spines
// are two more ports and a fibre; LumosCore has a port of a spine for each below
// and the circuit above it. TopoOpt has two ports of patch panels and a 1x2
// switch an interface for its look-ahead ([TOPO] App. G). A packet switch of 128
// ports reaches 8,192 GPUs in two tiers.
var bills = map[string]bill{
	SystemBalanced:    {ports: 3, modules: 2, cables: 1, fibres: 1},
	SystemECMP:        {ports: 3, modules: 2, cables: 1, fibres: 1},
	SystemInfiniteHBD: {ports: 3, modules: 2, cables: 1, fibres: 1, rings: 2},
	SystemVClos:       {ports: 3, modules: 2, cables: 1, fibres: 2, circuit: 2},
	SystemLumosCore:   {ports: 4, modules: 3, cables: 1, fibres: 2, circuit: 1},
	SystemTopoOpt:     {modules: 1, fibres: 1, panel: 2, flips: 1},
}

// ofTable8 is a part of [IHBD] Table 8, whose price and power go with its rate
// but for fibres and circuit switches.
func ofTable8(architecture, part string) Part {
	return *firstOf(interconnect(architecture).Parts, func(p Part) bool { return p.Name == part })
}

// ocsRadix of the circuit switch of Table 8, whose 6,400 GBps are ports of 50.
const ocsRadix = 6400 / 50

// table8 is what a bill costs at a rate, in cents and milliwatts a GPU, by
// [IHBD] Table 8; patch panels and 1x2 switches, which it lacks, by [TOPO]
// Table 2, and they take no power. ringGbps is of a GPU around its ring.
func (b bill) table8(gbps, ringGbps int) (cents, milliwatts int) {
	hpn, tpu := "Alibaba HPN", "TPUv4"
	byRate := func(count int, p Part) {
		cents += count * p.Cents * gbps / (8 * p.GBps)
		milliwatts += count * p.Milliwatts * gbps / (8 * p.GBps)
	}
	byRate(b.ports, ofTable8(hpn, "EPS"))
	byRate(b.modules, ofTable8(hpn, "optical module"))
	byRate(b.cables, ofTable8(hpn, "DAC cable"))
	cents += b.fibres * ofTable8(hpn, "fibre").Cents
	ocs := ofTable8(tpu, "OCS")
	cents += b.circuit*ocs.Cents/ocsRadix + 100*(b.panel*panelPort+b.flips*oneByTwo)
	milliwatts += b.circuit * ocs.Milliwatts / ocsRadix
	if b.rings > 0 {
		x := interconnect(fmt.Sprintf("InfiniteHBD (K=%d)", b.rings))
		cents += x.cents() / x.GPUs * ringGbps / (8 * x.GBps)
		milliwatts += x.milliwatts() / x.GPUs * ringGbps / (8 * x.GBps)
	}
	return cents, milliwatts
}

// Price is a system as it is bought: rates and prices a GPU, without what is
// in its server.
type Price struct {
	System string `json:"system"`
	Gbps   int    `json:"gbps"`               // of a GPU's port
	Ring   int    `json:"ring_gbps"`          // of a GPU around its ring; 0: there is none
	Cents  int    `json:"cents_per_gpu"`      // by [IHBD] Table 8
	MW     int    `json:"milliwatts_per_gpu"` // the same
	Table2 int    `json:"topoopt_cents_per_gpu,omitempty"`
	Built  bool   `json:"built"` // somebody can

	dollars string `column:"dollars_gpu"`
	watts   string `column:"watts_gpu"`
	table2  string `column:"topoopt_dollars"`
}

// bill of a system; K is a choice.
func (c CompareConfig) bill(system string) (bill, bool) {
	b, ok := bills[system]
	if b.rings > 0 {
		b.rings = c.Hops
	}
	return b, ok
}

func (c CompareConfig) priceAt(system string, gbps int) Price {
	b, built := c.bill(system)
	p := Price{System: system, Gbps: gbps, Built: built}
	if b.rings > 0 {
		p.Ring = c.ScaleUp * gbps / c.Cluster.Gbps
	}
	if built {
		p.Cents, p.MW = b.table8(gbps, p.Ring)
		p.dollars, p.watts = quotient(p.Cents, 100), quotient(p.MW, 1000)
		if p.Table2 = b.table2(gbps); p.Table2 > 0 {
			p.table2 = quotient(p.Table2, 100)
		}
	}
	return p
}

// budget is what a GPU's network may cost, in cents: what is said, or what the
// dearest system does at the rate of the cluster.
func (c CompareConfig) budget() (cents int) {
	if c.Dollars > 0 {
		return c.Dollars * 100
	}
	for _, s := range c.Systems {
		cents = max(cents, c.priceAt(s, c.Cluster.Gbps).Cents)
	}
	return cents
}

// priced is a system as the budget has it: at one rate, or with one price at
// the highest whole rate that it buys. What nobody builds has the rate of the
// cluster.
func (c CompareConfig) priced(system string) (Price, error) {
	p := c.priceAt(system, c.Cluster.Gbps)
	if c.Budget != BudgetCost || !p.Built {
		return p, nil
	}
	budget := c.budget()
	if least := c.priceAt(system, 1).Cents; least > budget {
		return p, invalid("dollars", fmt.Sprintf("at least %d, what %s costs at 1 Gb/s", (least+99)/100, system), "%d buy none", budget/100)
	}
	more := sort.Search(maxCompareGbps, func(more int) bool { return c.priceAt(system, more+2).Cents > budget })
	return c.priceAt(system, more+1), nil
}

// maxCompareGbps that a budget buys; chosen: a hundred times the workload's.
const maxCompareGbps = 10_000

// rates of a GPU on a system.
func (p Price) rates(c CompareConfig) rates {
	r := rates{c.Cluster.GPUsPerServer, int64(c.ScaleUp) * 1e9, int64(p.Gbps) * 1e9}
	if p.Ring > 0 {
		r.near = int64(p.Ring) * 1e9
	}
	return r
}
