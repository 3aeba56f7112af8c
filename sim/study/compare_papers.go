package study

import "fmt"

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
