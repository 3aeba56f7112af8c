package study

// Prices of network components in dollars ([TOPO] Table 2).
type linkPrice struct{ gbps, transceiver, nic, port int }

var topoPrices = []linkPrice{{10, 20, 185, 94}, {25, 39, 185, 144}, {40, 39, 354, 144}, {100, 99, 678, 187}, {200, 198, 815, 374}}

const (
	panelPort = 100
	ocsPort   = 520
	oneByTwo  = 25
	fibre     = 150 // 30 cents a metre, 500 m in the mean ([TOPO] appendix G)
)

// topoGbps are the speeds that have prices.
func topoGbps() []int {
	var out []int
	for _, p := range topoPrices {
		out = append(out, p.gbps)
	}
	return out
}

// topoPrice is in cents, on straight lines between the speeds of the table, and
// beyond its ends on its first and last.
func topoPrice(gbps int) linkPrice {
	i := 1
	for i < len(topoPrices)-1 && topoPrices[i].gbps < gbps {
		i++
	}
	a, b := topoPrices[i-1], topoPrices[i]
	line := func(x, y int) int { return 100*x + 100*(y-x)*(gbps-a.gbps)/(b.gbps-a.gbps) }
	return linkPrice{gbps, line(a.transceiver, b.transceiver), line(a.nic, b.nic), line(a.port, b.port)}
}

// links is what a bill costs without a network card, in cents, with a
// transceiver at each end of copper too.
func (b bill) links(gbps int) int {
	p := topoPrice(gbps)
	return b.ports*p.port + (b.modules+2*b.cables)*p.transceiver + 100*((b.fibres+b.cables)*fibre+b.circuit*ocsPort+b.panel*panelPort+b.flips*oneByTwo)
}

// table2 is the whole bill in cents, one NIC price for two interfaces; 0: the
// table has no price for rings.
func (b bill) table2(gbps int) int {
	if b.rings > 0 {
		return 0
	}
	return b.links(gbps) + topoPrice(gbps).nic/2
}

// directCost is a server's share of direct links over patch panels, active and
// look-ahead, or over OCSes alone.
func directCost(degree, gbps int, ocs bool) int {
	b := bills[SystemTopoOpt]
	if ocs {
		b = bill{modules: 1, fibres: 1, circuit: 1}
	}
	return degree * b.table2(gbps) / 100
}

// fatTree is a host of a full-bisection Fat-tree of three tiers: five ports, and
// as many transceivers beside the NIC's, on three links.
var fatTree = bill{ports: 5, modules: 6, fibres: 3}

// idealCost is a server's share of a Fat-tree with its whole bandwidth: degree
// links side by side behind one NIC.
func idealCost(degree, gbps int) int {
	return (degree*fatTree.links(gbps) + topoPrice(gbps).nic) / 100
}

// fatTreeMbps is the bandwidth of a host in a full-bisection Fat-tree of equal
// cost, with prices on straight lines between those of the table and beyond the
// last.
func fatTreeMbps(dollars int) int {
	cost := func(p linkPrice) int { return idealCost(1, p.gbps) }
	at := 1
	for at < len(topoPrices)-1 && cost(topoPrices[at]) < dollars {
		at++
	}
	a, b := topoPrices[at-1], topoPrices[at]
	return 1000*a.gbps + int(1000*int64(b.gbps-a.gbps)*int64(dollars-cost(a))/int64(cost(b)-cost(a)))
}
