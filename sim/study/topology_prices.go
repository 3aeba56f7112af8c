package study

// Prices of network components in dollars ([TOPO] Table 2).
type linkPrice struct{ gbps, transceiver, nic, port int }

var topoPrices = []linkPrice{{10, 20, 185, 94}, {25, 39, 185, 144}, {40, 39, 354, 144}, {100, 99, 678, 187}, {200, 198, 815, 374}}

const (
	panelPort = 100
	ocsPort   = 520
	oneByTwo  = 25
	fibre     = 150 // 30 cents a metre, 500 m in the mean ([TOPO] appendix G)
	// A full-bisection Fat-tree of three tiers has five switch ports a host, and
	// as many transceivers beside the NIC's, on three links.
	fatTreePorts, fatTreeLinks = 5, 3
)

// topoGbps are the speeds that have prices.
func topoGbps() []int {
	var out []int
	for _, p := range topoPrices {
		out = append(out, p.gbps)
	}
	return out
}

func topoPrice(gbps int) linkPrice {
	for _, p := range topoPrices {
		if p.gbps == gbps {
			return p
		}
	}
	panic("study: a speed without a price")
}

// directCost is a server's share of direct links over patch panels, active and
// look-ahead, or over OCSes alone. One NIC price is for two interfaces.
func directCost(degree, gbps int, ocs bool) int {
	p := topoPrice(gbps)
	each := p.transceiver + fibre
	if ocs {
		each += ocsPort
	} else {
		each += 2*panelPort + oneByTwo
	}
	return degree*p.nic/2 + degree*each
}

// idealCost is a server's share of a Fat-tree with its whole bandwidth: degree
// links side by side behind one NIC.
func idealCost(degree, gbps int) int {
	p := topoPrice(gbps)
	return p.nic + degree*(fatTreePorts*p.port+(fatTreePorts+1)*p.transceiver+fatTreeLinks*fibre)
}

// fatTreeMbps is the bandwidth of a host in a full-bisection Fat-tree of equal
// cost, with prices on straight lines between those of the table and beyond the
// last.
func fatTreeMbps(dollars int) int {
	cost := func(p linkPrice) int {
		return p.nic + fatTreePorts*p.port + (fatTreePorts+1)*p.transceiver + fatTreeLinks*fibre
	}
	at := 1
	for at < len(topoPrices)-1 && cost(topoPrices[at]) < dollars {
		at++
	}
	a, b := topoPrices[at-1], topoPrices[at]
	return 1000*a.gbps + 1000*(b.gbps-a.gbps)*(dollars-cost(a))/(cost(b)-cost(a))
}
