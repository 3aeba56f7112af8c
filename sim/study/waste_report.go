package study

import (
	"fmt"
	"strings"
)

// paperWaste is the mean GPU waste on the paper's full trace at TP-32
// ([IHBD] sec 1).
var paperWaste = []struct {
	model Model
	mean  float64
	why   string
}{
	{IHBDK3, 0.0015, "they agree; a big switch wastes %s, the rest when the healthy GPUs are no multiple of 32"},
	{NVL72, 0.1031, "72 GPUs hold two groups of 32 and eight over; the faults hardly matter"},
	{TPUv4, 0.0676, "the public trace has 2.30 % of its servers out where the paper's full one has 2.66 %"},
}

func (r *WasteResult) describe() {
	r.Title = fmt.Sprintf("GPU waste over %.0f days, %d GPUs (%s)", r.Days, r.GPUsTotal, r.Faults)
	r.note("waste is healthy GPUs in no group over all GPUs, mean over time and %d run(s) with following seeds", r.Runs)
	r.faultNotes(&r.Report)
	r.note("a TPUv4 cube of 64 loses the group-sized block that a fault lies in, so that with groups that divide 64 it wastes what SiP-Ring does; a last partial unit counts with its own size")
	if def := DefaultSize(); r.GPUsTotal != def.GPUsTotal() || r.GPUsNode != def.GPUsPerNode {
		return // the paper's cluster is another
	}
	floor := r.of(BigSwitch, 32)
	for _, p := range paperWaste {
		if row := r.of(p.model, 32); row != nil {
			r.compare("mean waste, TP-32, "+string(p.model), percent(row.Mean, 2), percent(p.mean, 2), strings.Replace(p.why, "%s", percent(floor.Mean, 2), 1))
		}
	}
	if row := r.of(IHBDK2, 32); row != nil && r.Siblings != "none" {
		why := "the paper gives no figure; with the halves of a server adjacent in HBD order it would be about 1 %"
		if r.Siblings == "adjacent" {
			why = "both halves of a server fail together, which is a gap that K = 2 cannot pass; put them apart"
		}
		r.compare("mean waste, TP-32, infinitehbd-k2", percent(row.Mean, 2), "nearly as K = 3 (Fig. 9)", why)
	}
	if row := r.of(NVL72, 16); row != nil {
		r.compare("mean waste, TP-16, nvl-72", percent(row.Mean, 1), "about 11 % (one ninth in reserve)", "the reserve takes the faults: it is used up by as much as they are")
	}
}

// means are a panel of what the paper prints too, where its cluster is drawn.
func (r *WasteResult) means() []Chart {
	c := Chart{Title: "Mean over time, groups of 32 GPUs", YLabel: "healthy GPUs in no group, % of all", YPercent: true, YLog: true}
	for _, model := range Models {
		row := r.of(model, 32)
		if row == nil || r.GPUsTotal != DefaultSize().GPUsTotal() {
			return nil
		}
		name, paper := strings.NewReplacer("infinitehbd-", "ihbd-", "-wired", "w").Replace(string(model)), Absent
		for _, p := range paperWaste {
			if p.model == model {
				paper = p.mean
			}
		}
		c.bar(name, "mean", row.Mean)
		c.bar(name, "mean"+paperMark, paper)
	}
	return []Chart{c}
}

// faultNotes say where the faults came from, for every study of a trace.
func (h Header) faultNotes(r *Report) {
	switch h.Faults {
	case "generator":
		r.note("no trace given: each run draws one with the statistics of the public trace (-trace FILE replays one)")
	default:
		r.note("the trace's servers are shuffled by the seed and repeated with equal shifts in time to fill the cluster; overlapping faults of a server are one outage")
	}
	switch h.Siblings {
	case "apart":
		r.note("nodes are halves of 8-GPU servers, each out with probability %.4f in an outage ([IHBD] App. A), and stand half a cluster apart in HBD order", halfFails)
	case "in one rack":
		r.note("nodes are halves of 8-GPU servers, each out with probability %.4f in an outage ([IHBD] App. A), and stand on different sub-lines of their rack", halfFails)
	case "adjacent":
		r.note("nodes are halves of 8-GPU servers, each out with probability %.4f in an outage ([IHBD] App. A), and stand side by side in HBD order", halfFails)
	}
	r.note("HBD order is a %s", h.Topology)
}
