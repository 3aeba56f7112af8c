package study

import "fmt"

// What [CROSS] sec 6.2 prints for its largest core of 128 pods with 256 ports
// each, and that core here.
const (
	crossSeconds   = 19.37
	crossUniform   = 0.701
	crossPorts     = 32768
	crossShortfall = "within 4 %"
)

func (r *RewireResult) describe() {
	r.Title = fmt.Sprintf("Rewiring of a core, %d ports", r.Ports)
	r.note("%d pods, %d groups (spines of a pod), %d ports a spine: %d ports; %d topologies after the first", r.Pods, r.Groups, r.SpinePorts, r.Ports, r.Length)
	r.note("generator: in every group each pod has the same number of ports in use, joined in pairs at random, never a pod with itself; for the next topology a share of the links (churn) is drawn, taken, and their ports joined anew; seed %d", r.Seed)
	r.note("each method changes its own configuration into the next; the first is Euler walks, or the method itself on uniform wiring; Helios does not look at what is there")
	r.note("circuits are those of the even half under interleaved wiring, links under uniform; upper_bound is the sum over pairs of min(asked, there), which nobody reaches with all ports in use")
	r.note("greedy keeps all that can stay because it does not realise all that is asked")
	r.note("LTRR is a cosine ([CROSS] eq. 15) and cannot see a proportional shortfall: read it beside links realised of links asked")
	r.note("times are of one core, all groups one after the other; the search has a budget of steps (column steps), not of time, and keeps more with more")
	var idle, churn = r.Rows[0].Idle, r.Rows[0].Churn
	search, published, greedy := r.of(idle, churn, MethodSearch), r.of(idle, churn, MethodPublished), r.of(idle, churn, MethodGreedy)
	what := fmt.Sprintf("idle %s, churn %s", percent(idle, 1), percent(churn, 0))
	r.compare("LTRR of interleaved wiring, "+what, decimals(search.LTRR, 3), "1", "the same theorem; every topology is realised exactly")
	r.compare("LTRR of uniform wiring, "+what, decimals(greedy.LTRR, 3), decimals(crossUniform, 3),
		fmt.Sprintf("the paper's is the ILP with a relaxed demand at %d ports; a greedy that puts links first realises %s of those asked", crossPorts, percent(share(greedy.Realised, greedy.Asked), 1)))
	r.compare("published method: kept of what can stay, "+what, percent(published.keptOfBound, 1), crossShortfall+" of the ILP",
		fmt.Sprintf("the paper does not state its topologies; on these the search keeps %s", percent(search.keptOfBound, 1)))
	if r.Ports == crossPorts && published.MeanMS != nil {
		r.compare(fmt.Sprintf("published method: time at %d ports, %s", crossPorts, what), decimals(*published.MeanMS, 0)+" ms", fmt.Sprintf("up to %.2f s", crossSeconds),
			"the same steps with a flow solver of our own")
	}
}

// of is the row of a method in the sequence of an idle share and a churn, both
// as given; nil: there is none.
func (r *RewireResult) of(idle, churn float64, method string) *RewireRow {
	return r.row(func(x RewireRow) bool { return x.Idle == idle && x.Churn == churn && x.Method == method })
}

// Table is a row a method and sequence.
func (r *RewireResult) Table() Table {
	return tableOf(r.Rows, "idle", "churn", "method", "ltrr", "ltrr_worst", "links_realised", "links_asked",
		"circuits_kept", "circuits_before", "kept_of_before", "upper_bound", "kept_of_bound", "likeness", "steps", "ms_mean", "ms_worst")
}

// Charts are, for every idle share, what is kept and what is realised, and
// the times if they were taken.
func (r *RewireResult) Charts() []Chart {
	var out []Chart
	panel := func(title, label string, percent bool, of func(RewireRow) (float64, bool)) {
		for _, row := range r.Rows {
			v, ok := of(row)
			if !ok {
				continue
			}
			c := panelOf(&out, fmt.Sprintf("%s, %s of ports idle", title, shortPercent(row.Idle)), Chart{XLabel: "links that the next topology changes", YLabel: label, YPercent: percent, YLog: !percent})
			c.bar(shortPercent(row.Churn), row.Method, v)
		}
	}
	panel("Circuits kept", "% of the upper bound", true, func(row RewireRow) (float64, bool) { return row.keptOfBound, true })
	panel("Links realised", "% of the links asked", true, func(row RewireRow) (float64, bool) { return share(row.Realised, max(1, row.Asked)), true })
	panel("Time to change the topology", "ms, mean", false, func(row RewireRow) (float64, bool) {
		if row.MeanMS == nil {
			return 0, false
		}
		return *row.MeanMS, true
	})
	return out
}

// shortPercent has a digit only where it says something.
func shortPercent(v float64) string {
	if n := int(float64(v*1000) + 0.5); n%10 != 0 {
		return percent(v, 1)
	}
	return percent(v, 0)
}
