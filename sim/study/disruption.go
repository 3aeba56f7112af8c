package study

import (
	"fmt"

	"ringlight/planner/ring"
	"ringlight/proto"
)

// DisruptionRow is what faults do to running groups at one group size and K:
// means over all faults and repairs of all runs.
type DisruptionRow struct {
	TP          int     `json:"tp"`
	K           int     `json:"k"`
	Faults      int     `json:"faults"`
	Repairs     int     `json:"repairs"`
	PaperFault  float64 `json:"paper_groups_per_fault"` // touched by placing anew
	OursFault   float64 `json:"groups_per_fault"`
	PaperRepair float64 `json:"paper_groups_per_repair"`
	OursRepair  float64 `json:"groups_per_repair"`
	PaperWaste  float64 `json:"paper_waste"` // mean over events, of all GPUs
	OursWaste   float64 `json:"waste"`
}

// DisruptionResult compares [IHBD] Alg. 2 with placement that changes little.
type DisruptionResult struct {
	Header
	Rows []DisruptionRow `json:"rows"`
	Report
}

// Disruption replays a trace and counts the running groups that each event
// touches: by placing from nothing, as the paper does, and by the planner's
// tracker, which keeps as many groups as there can be just the same.
func Disruption(cfg ClusterConfig, ks []int) (*DisruptionResult, error) {
	if len(ks) == 0 {
		return nil, invalid("k", "at least one number of hops", "none given")
	}
	for _, k := range ks {
		if k < 1 || k > cfg.GPUsPerNode || cfg.Ring && cfg.Nodes < 2*k+1 {
			return nil, invalid("k", fmt.Sprintf("1 to gpus (%d), and on a ring at least 2k+1 nodes", cfg.GPUsPerNode), "%d is not", k)
		}
	}
	res := &DisruptionResult{}
	for _, tp := range cfg.TPs {
		for _, k := range ks {
			res.Rows = append(res.Rows, DisruptionRow{TP: tp, K: k})
		}
	}
	sums := make([]ring.Disruption, len(res.Rows))
	err := cfg.each(&res.Header, func(_ int, c *cluster, s schedule) {
		events := c.events(s)
		for i, row := range res.Rows {
			o := ring.Order{Nodes: c.Nodes, K: row.K, Wrap: c.Ring, Shared: row.K%2 == 1 && row.K > 1}
			add(&sums[i], ring.Disrupt(o, row.TP/c.GPUsPerNode, func(proto.NodeID) bool { return true }, events, nil))
		}
	})
	if err != nil {
		return nil, err
	}
	for i := range res.Rows {
		res.Rows[i].fill(sums[i], cfg.Nodes)
	}
	res.Study = "disruption"
	res.describe()
	return res, nil
}

func add(sum *ring.Disruption, d ring.Disruption) {
	sum.Faults += d.Faults
	sum.Repairs += d.Repairs
	for _, t := range []struct{ to, from *ring.Toll }{{&sum.Scratch, &d.Scratch}, {&sum.Ours, &d.Ours}} {
		t.to.TouchedByFaults += t.from.TouchedByFaults
		t.to.TouchedByRepairs += t.from.TouchedByRepairs
		t.to.Idle += t.from.Idle
	}
}

// events are the flips as places in HBD order.
func (c *cluster) events(s schedule) []ring.Fault {
	down := make([]bool, c.Nodes)
	out := make([]ring.Fault, len(s.flips))
	for i, f := range s.flips {
		place := f.node
		if c.place != nil {
			place = c.place[f.node]
		}
		out[i] = ring.Fault{Node: proto.NodeID(place), Back: down[place]}
		down[place] = !down[place]
	}
	return out
}

func (r *DisruptionRow) fill(d ring.Disruption, nodes int) {
	r.Faults, r.Repairs = d.Faults, d.Repairs
	faults, repairs := max(1, d.Faults), max(1, d.Repairs)
	r.PaperFault, r.OursFault = share(d.Scratch.TouchedByFaults, faults), share(d.Ours.TouchedByFaults, faults)
	r.PaperRepair, r.OursRepair = share(d.Scratch.TouchedByRepairs, repairs), share(d.Ours.TouchedByRepairs, repairs)
	all := max(1, d.Faults+d.Repairs) * nodes
	r.PaperWaste, r.OursWaste = share(d.Scratch.Idle, all), share(d.Ours.Idle, all)
}

func (r *DisruptionResult) describe() {
	r.note("a group is touched when its members change or it ends; new groups do not count; %d run(s)", r.Runs)
	r.note("the paper's method places from nothing after each event ([IHBD] Alg. 2, with components that pass the last index kept whole); both keep as many groups as there can be, with odd K under the constraint of our wiring")
	r.faultNotes(&r.Report)
	for _, row := range r.Rows {
		r.compare(fmt.Sprintf("groups touched per fault, TP-%d, K=%d", row.TP, row.K), decimals(row.OursFault, 2), decimals(row.PaperFault, 2)+" (its method, run here)",
			fmt.Sprintf("same waste (%s, %s); placing from nothing shifts every group behind the fault, ours those up to the nearest idle node", percent(row.OursWaste, 3), percent(row.PaperWaste, 3)))
	}
}

// Table of the result.
func (r *DisruptionResult) Table() Table {
	t := Table{Columns: []string{"tp", "k", "faults", "repairs", "groups_per_fault", "paper_groups_per_fault", "groups_per_repair", "paper_groups_per_repair", "waste", "paper_waste"}}
	for _, row := range r.Rows {
		t.add(row.TP, row.K, row.Faults, row.Repairs, decimals(row.OursFault, 3), decimals(row.PaperFault, 3), decimals(row.OursRepair, 3), decimals(row.PaperRepair, 3), ratio(row.OursWaste), ratio(row.PaperWaste))
	}
	return t
}

// Charts are groups touched by faults and by repairs.
func (r *DisruptionResult) Charts() []Chart {
	faults := Chart{Title: "by a fault", YLabel: "groups touched, mean"}
	repairs := Chart{Title: "by a repair", YLabel: "groups touched, mean"}
	for _, row := range r.Rows {
		name := fmt.Sprintf("TP-%d K%d", row.TP, row.K)
		faults.Categories, repairs.Categories = append(faults.Categories, name), append(repairs.Categories, name)
		faults.point("ours", 0, row.OursFault)
		faults.point("from nothing", 0, row.PaperFault)
		repairs.point("ours", 0, row.OursRepair)
		repairs.point("from nothing", 0, row.PaperRepair)
	}
	return []Chart{faults, repairs}
}
