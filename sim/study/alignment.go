package study

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"ringlight/mzi/detmath"
	"ringlight/planner/fabric"
	"ringlight/planner/ring"
	"ringlight/proto"
	"ringlight/sim/trace"
)

// AlignmentConfig is rings in racks of several sizes, through a trace.
type AlignmentConfig struct {
	ClusterConfig
	K      int     `flag:"k" usage:"hops that a fibre may span"`
	Racks  []int   `flag:"servers-per-rack" usage:"servers of 8 GPUs under a ToR switch, every size as often as the others"`
	Domain int     `flag:"racks-per-domain" usage:"racks under the same aggregation switches"`
	Scale  float64 `flag:"scale" usage:"rings that are wanted, of those that fit"`
	Moves  fabric.Moves
}

// DefaultAlignment takes what fits 10,000 GPUs. chosen: two to four servers of some
// 10 kW in a rack, and a tenth of the rings not wanted, so that losses can be made good.
func DefaultAlignment() AlignmentConfig {
	return AlignmentConfig{K: 3, Racks: []int{2, 3, 4}, Domain: 64, Scale: 0.9, Moves: fabric.MoveFew}
}

// Alignment is what is done about ToRs.
type Alignment string

const (
	Blind Alignment = "blind" // nothing
	First Alignment = "first" // in the first placement
	Kept  Alignment = "kept"  // and in mending: rings go along
)

// AlignmentRow is one day, or with day -1 all of them.
type AlignmentRow struct {
	Day   int       `json:"day"`
	TP    int       `json:"tp"`
	Align Alignment `json:"align"`
	Rings int       `json:"whole_rings"`                                  // at the end of the day, or on average
	M     float64   `json:"cross_tor_of_inner" table:"4"`                 // at the end of the day, or on average
	Tenth float64   `json:"cross_tor_ratio" table:"4"`                    // 0.1 M
	Moved int       `json:"rings_moved"`                                  // whole ones that lost no node
	Along int       `json:"rings_gone_along"`                             // of those, for ToRs alone
	Waste float64   `json:"waste" table:"4"`                              // healthy GPUs in no whole ring, of all
	Per   float64   `json:"moved_per_event,omitempty" table:"2,omitzero"` // losses and returns
}

// AlignmentResult is the share of traffic that leaves its ToR, day by day.
type AlignmentResult struct {
	Header
	K     int          `json:"k"`
	Racks []int        `json:"servers_per_rack"`
	ToRs  int          `json:"tors"`
	Scale float64      `json:"scale"`
	Moves fabric.Moves `json:"moves"`
	rowsOf[AlignmentRow]
	Report
}

// Alignments runs all ways through the same trace in the same racks.
func Alignments(cfg AlignmentConfig) (*AlignmentResult, error) {
	switch {
	case cfg.K < 1 || cfg.K > cfg.GPUsPerNode || cfg.Ring && cfg.Nodes < 2*cfg.K+1:
		return nil, invalid("k", "1 to gpus, and on a ring at least 2k+1 nodes", "%d is not", cfg.K)
	case len(cfg.Racks) == 0 || slices.Min(cfg.Racks) < 1 || slices.Max(cfg.Racks) > maxRack:
		return nil, invalid("servers-per-rack", fmt.Sprintf("1 to %d", maxRack), "%v are not", cfg.Racks)
	case cfg.Domain < 1:
		return nil, invalid("racks-per-domain", "at least 1", "%d is not", cfg.Domain)
	case !(cfg.Scale > 0 && cfg.Scale <= 1):
		return nil, invalid("scale", "above 0, up to 1", "%g is not", cfg.Scale)
	case cfg.Runs != 1:
		return nil, invalid("runs", "1: days of one run are shown", "%d", cfg.Runs)
	}
	res := &AlignmentResult{Header: Header{Study: "alignment"}, K: cfg.K, Racks: cfg.Racks, Scale: cfg.Scale, Moves: cfg.Moves}
	err := cfg.each(&res.Header, func(_ int, c *cluster, s schedule) {
		var racks *ring.Racks
		racks, c.place = cfg.shelve()
		res.ToRs, res.Siblings = len(racks.Domain), "in one rack"
		events := c.events(s)
		for _, tp := range cfg.TPs {
			for _, how := range []Alignment{Blind, First, Kept} {
				a := newAligned(&cfg, racks, tp, how)
				res.Rows = append(res.Rows, a.replay(s.span, events)...)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	res.describe()
	return res, nil
}

// maxRack bounds the servers of a rack; chosen: no rack has more units.
const maxRack = 48

// shelve puts the servers into racks and says where in HBD order each node stands:
// the order goes through the first nodes of all racks, then the second, the largest
// racks first, so that sub-lines run side by side as far as racks have nodes.
func (c *AlignmentConfig) shelve() (*ring.Racks, []int) {
	halves := serverGPUs / c.GPUsPerNode
	r := detmath.Stream(c.Seed, streamRacks)
	var sizes []int // servers of each rack
	for left := (c.Nodes + halves - 1) / halves; left > 0; left -= sizes[len(sizes)-1] {
		sizes = append(sizes, min(left, c.Racks[r.Next()%uint64(len(c.Racks))]))
	}
	slices.SortFunc(sizes, func(a, b int) int { return b - a })
	racks := &ring.Racks{}
	first, nodes := make([]int, len(sizes)), 0 // of each rack, its first node
	for rack, size := range sizes {
		racks.Domain = append(racks.Domain, int32(rack/c.Domain))
		first[rack], nodes = nodes, nodes+size*halves
	}
	place := make([]int, c.Nodes)
	for line := 0; len(racks.ToR) < c.Nodes; line++ {
		for rack, size := range sizes {
			if n := first[rack] + line; line < size*halves && n < c.Nodes {
				place[n] = len(racks.ToR)
				racks.ToR = append(racks.ToR, int32(rack))
			}
		}
	}
	return racks, place
}

// aligned is the rings of one way.
type aligned struct {
	mender
	row   AlignmentRow
	racks *ring.Racks
	order ring.Order
	down  []bool
	want  int
}

func newAligned(c *AlignmentConfig, racks *ring.Racks, tp int, how Alignment) *aligned {
	size := tp / c.GPUsPerNode
	a := &aligned{row: AlignmentRow{TP: tp, Align: how}, racks: racks, down: make([]bool, c.Nodes), want: int(float64(c.Scale * float64(c.Nodes/size))),
		order: ring.Order{Nodes: c.Nodes, K: c.K, Wrap: c.Ring, Shared: c.K%2 == 1 && c.K > 1}}
	usable := func(n proto.NodeID) bool { return !a.down[n] }
	m := ring.Mend{Order: a.order, Sizes: []ring.Demand{{Size: size, Want: a.want}}, Moves: ring.MovesOf(c.Moves), Usable: usable, Free: usable, Spread: true}
	if how == Kept {
		m.Racks = racks
	}
	a.mender = newMender(m)
	if how != Blind {
		o := ring.Orchestrate(a.job(size))
		for _, nodes := range o.Groups {
			a.put(nodes)
		}
	}
	a.look()
	return a
}

func (a *aligned) job(size int) ring.Job {
	return ring.Job{Deployment: ring.Deployment{Nodes: a.order.Nodes}, Racks: a.racks, K: a.order.K, Wrap: a.order.Wrap, Shared: a.order.Shared, Size: size, Want: a.want,
		Faulty: func(n proto.NodeID) bool { return a.down[n] }}
}

// replay goes through all events and looks at what there is at the end of each day.
func (a *aligned) replay(span time.Duration, events []flipAt) (rows []AlignmentRow) {
	all := a.row
	all.Day = -1
	rings, next, well := 0, 0, a.order.Nodes
	for day := 0; time.Duration(day)*trace.Day < span; day++ {
		row := a.row
		row.Day = day
		for ; next < len(events) && events[next].at < time.Duration(day+1)*trace.Day; next++ {
			e := events[next]
			if a.down[e.node] = e.out; e.out {
				well--
			} else {
				well++
			}
			did := a.turn(e.node)
			row.Moved, row.Along = row.Moved+did.moved, row.Along+did.along
		}
		groups := each(slices.Sorted(maps.Keys(a.whole)), a.t.Members)
		o := a.job(a.size).Judge(groups)
		row.Rings, row.M, row.Tenth = len(groups), o.M(), o.M()/10
		row.Waste = share(well-len(groups)*a.size, a.order.Nodes)
		rings, all.M, all.Waste = rings+row.Rings, all.M+row.M, all.Waste+row.Waste
		all.Moved, all.Along = all.Moved+row.Moved, all.Along+row.Along
		rows = append(rows, row)
	}
	days := max(1, len(rows))
	all.Rings, all.M, all.Waste = rings/days, all.M/float64(days), all.Waste/float64(days)
	all.Tenth, all.Per = all.M/10, share(all.Moved, max(1, len(events)))
	return append(rows, all)
}

func (r *AlignmentResult) describe() {
	r.Title = fmt.Sprintf("Traffic that leaves its ToR, day by day, racks of %v servers (%s)", r.Racks, r.Faults)
	r.note("%d nodes of %d GPUs in %d racks of %v servers, drawn from seed %d; the HBD order goes through the first nodes of all racks, then the second, the largest racks first; K = %d", r.Nodes, r.GPUsNode, r.ToRs, r.Racks, r.Seed, r.K)
	r.note("wanted is %s of the rings that fit; mended as the running planner does, moves %s; at the end of each day whole rings are joined to sets of two and more, those whose ranks meet first, and M = flows between ToRs / all", percent(r.Scale, 0), r.Moves)
	r.note("rings_moved counts whole rings that lost no node and have other nodes after a loss or a return; rings_gone_along those of them that moved for ToRs alone")
	r.faultNotes(&r.Report)
	for _, row := range r.Rows {
		if row.Day < 0 {
			r.compare(fmt.Sprintf("inner flows between ToRs, TP-%d, %s, mean of %.0f days", row.TP, row.Align, r.Days), percent(row.M, 2), "no figure for real racks",
				fmt.Sprintf("%s rings moved a loss or return, %d in all, %d for ToRs alone; waste %s", decimals(row.Per, 2), row.Moved, row.Along, percent(row.Waste, 2)))
		}
	}
}

// Table is what a person reads: the means, and every thirtieth day.
func (r *AlignmentResult) Table() Table {
	rows := slices.DeleteFunc(slices.Clone(r.Rows), func(x AlignmentRow) bool { return x.Day >= 0 && x.Day%30 != 0 })
	slices.SortStableFunc(rows, func(a, b AlignmentRow) int { return cmp.Compare(a.Day, b.Day) })
	return tableOf(rows, "day", "tp", "align", "whole_rings", "cross_tor_of_inner", "cross_tor_ratio", "rings_moved", "rings_gone_along", "moved_per_event", "waste")
}

// Charts are the share by day, for each TP.
func (r *AlignmentResult) Charts() (out []Chart) {
	for _, row := range r.Rows {
		if row.Day >= 0 {
			title := fmt.Sprintf("TP-%d", row.TP)
			panelOf(&out, title, Chart{Title: title, XLabel: "day", YLabel: "inner flows between ToRs, % of all", YPercent: true}).point(string(row.Align), float64(row.Day), row.M)
		}
	}
	return out
}
