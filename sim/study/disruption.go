package study

import (
	"fmt"
	"slices"

	"ringlight/planner/fabric"
	"ringlight/planner/ring"
	"ringlight/proto"
)

// DisruptionRow is what faults do to running groups at one group size and K:
// means over all faults and repairs of all runs.
type DisruptionRow struct {
	TP          int     `json:"tp"`
	K           int     `json:"k"`
	Powers      bool    `json:"powers"` // fibres to n +- 2^i, i < K, instead of n +- 1 .. K
	Faults      int     `json:"faults"`
	Repairs     int     `json:"repairs"`
	PaperFault  float64 `json:"paper_groups_per_fault" table:"3"` // touched by placing anew
	OursFault   float64 `json:"groups_per_fault" table:"3"`
	PaperRepair float64 `json:"paper_groups_per_repair" table:"3"`
	OursRepair  float64 `json:"groups_per_repair" table:"3"`
	PaperWaste  float64 `json:"paper_waste" table:"6"` // mean over events, of all GPUs
	OursWaste   float64 `json:"waste" table:"6"`
}

// DisruptionResult compares [IHBD] Alg. 2 with placement that changes little.
type DisruptionResult struct {
	Header
	Moves fabric.Moves `json:"moves"`
	rowsOf[DisruptionRow]
	Report
}

// Disruption replays a trace and counts the running groups that each event
// touches: by placing from nothing, as the paper does, and by mending as the
// running planner does (ring.Mend) where a fabric without spares lets so many
// whole rings move.
//
// With powers each K above 2 is looked at with fibres to n +- 2^i too; at 2 and below
// those are the same.
func Disruption(cfg ClusterConfig, ks []int, powers bool, moves fabric.Moves) (*DisruptionResult, error) {
	if len(ks) == 0 {
		return nil, invalid("k", "at least one number of hops", "none given")
	}
	for _, k := range ks {
		if k < 1 || k > cfg.GPUsPerNode || cfg.Ring && cfg.Nodes < 2*k+1 {
			return nil, invalid("k", fmt.Sprintf("1 to gpus (%d), and on a ring at least 2k+1 nodes", cfg.GPUsPerNode), "%d is not", k)
		}
		if reach := fabric.Powers(min(k, 32))[min(k, 32)-1]; powers && (reach > fabric.MaxBundles || cfg.Ring && cfg.Nodes < 2*reach+1) {
			return nil, invalid("k", fmt.Sprintf("at most 4 with powers, and on a ring at least 2^k+1 nodes: no fibre spans over %d hops", fabric.MaxBundles), "%d is not", k)
		}
	}
	if !slices.Contains([]fabric.Moves{fabric.MoveAny, fabric.MoveFew, fabric.MoveNone}, moves) {
		return nil, invalid("moves", "any, few or none", "%q is not", moves)
	}
	res := &DisruptionResult{Header: Header{Study: "disruption"}, Moves: moves}
	for _, tp := range cfg.TPs {
		for _, k := range ks {
			if res.Rows = append(res.Rows, DisruptionRow{TP: tp, K: k}); powers && k > 2 {
				res.Rows = append(res.Rows, DisruptionRow{TP: tp, K: k, Powers: true})
			}
		}
	}
	err := cfg.each(&res.Header, func(_ int, c *cluster, s schedule) {
		events := c.events(s)
		for i, row := range res.Rows {
			o := ring.Order{Nodes: c.Nodes, K: row.K, Wrap: c.Ring, Shared: row.K%2 == 1 && row.K > 1}
			if row.Powers {
				spans := fabric.Powers(row.K)
				o.K, o.Lacks = spans[row.K-1], ring.LacksOf(spans)
			}
			res.Rows[i].replay(o, row.TP/c.GPUsPerNode, ring.MovesOf(moves), events)
		}
	})
	if err != nil {
		return nil, err
	}
	for i := range res.Rows {
		res.Rows[i].average(cfg.Nodes)
	}
	res.describe()
	return res, nil
}

// events are the flips of places in HBD order.
func (c *cluster) events(s schedule) []flipAt {
	return each(s.flips, func(f flipAt) flipAt { f.node = c.place[f.node]; return f })
}

// mender is running groups of one size, mended event by event.
type mender struct {
	t     *ring.Tracker
	size  int
	next  proto.RingID
	whole map[proto.RingID]bool
}

func newMender(m ring.Mend) mender {
	return mender{t: ring.NewTracker(m), size: m.Sizes[0].Size, next: 1, whole: map[proto.RingID]bool{}}
}

// put lays a group that is there from the start.
func (m *mender) put(nodes []proto.NodeID) {
	m.t.Put(ring.Group{ID: m.next, Nodes: nodes, Size: m.size})
	m.whole[m.next] = true
	m.next++
}

// touch is what a look did to groups that ran.
type touch struct{ all, moved, along int } // moved: whole ones that lost no node; along: for ToRs alone

// turn mends after a node went out or came back.
func (m *mender) turn(node int) touch {
	m.t.Refresh(proto.NodeID(node))
	return m.look(m.t.Concerned(proto.NodeID(node))...)
}

// look mends what an event concerns, and carries it out.
func (m *mender) look(ids ...proto.RingID) (did touch) {
	r := m.t.Look(ids, false)
	did.along = r.Along
	did.all = len(r.Gone)
	for _, id := range r.Gone {
		delete(m.whole, id)
	}
	for i := range r.Groups {
		g := &r.Groups[i]
		if m.whole[g.ID] && !slices.ContainsFunc(m.t.Members(g.ID), func(n proto.NodeID) bool { return !m.t.Usable(n) }) {
			did.moved++
		}
		if did.all++; g.ID == 0 {
			g.ID = m.next
			m.next++
			did.all--
		}
		if delete(m.whole, g.ID); len(g.Nodes) == m.size {
			m.whole[g.ID] = true
		}
	}
	m.t.Carry(r)
	return did
}

// replay adds up what events do, which change one node each: what a placement from nothing
// after each does to running groups, and what mending them does. A group is touched when its
// members change or when it ends; new groups do not count.
func (d *DisruptionRow) replay(o ring.Order, size, moves int, events []flipAt) {
	down := make([]bool, o.Nodes)
	usable := func(n proto.NodeID) bool { return !down[n] }
	m := newMender(ring.Mend{Order: o, Sizes: []ring.Demand{{Size: size, Want: o.Nodes / size}}, Moves: moves, Usable: usable, Free: usable, Spread: true})
	anew := ring.Problem{Order: o, Size: size, Usable: usable, Want: -1}
	m.look()
	placed, well := ring.Place(anew), o.Nodes
	for _, e := range events {
		events, ours, scratch := &d.Faults, &d.OursFault, &d.PaperFault
		if down[e.node] = e.out; e.out {
			well--
		} else {
			events, ours, scratch = &d.Repairs, &d.OursRepair, &d.PaperRepair
			well++
		}
		*events++
		*ours += float64(m.turn(e.node).all)
		now := ring.Place(anew)
		*scratch += float64(notIn(placed, now))
		placed = now
		d.OursWaste += float64(well - size*len(m.whole))
		d.PaperWaste += float64(well - size*len(now))
	}
}

// notIn is the number of groups of before that are not in after.
func notIn(before, after [][]proto.NodeID) int {
	at := make(map[proto.NodeID]int, len(after))
	for i, g := range after {
		at[g[0]] = i
	}
	n := 0
	for _, g := range before {
		if i, ok := at[g[0]]; !ok || !slices.Equal(after[i], g) {
			n++
		}
	}
	return n
}

// hops is K, and of which fibres.
func (r DisruptionRow) hops() string {
	if r.Powers {
		return fmt.Sprintf("%d of n +- 2^i", r.K)
	}
	return fmt.Sprint(r.K)
}

// average makes means over the events, and shares of the nodes, of what was added up.
func (r *DisruptionRow) average(nodes int) {
	faults, repairs := float64(max(1, r.Faults)), float64(max(1, r.Repairs))
	r.PaperFault, r.OursFault = r.PaperFault/faults, r.OursFault/faults
	r.PaperRepair, r.OursRepair = r.PaperRepair/repairs, r.OursRepair/repairs
	all := float64(max(1, r.Faults+r.Repairs) * nodes)
	r.PaperWaste, r.OursWaste = r.PaperWaste/all, r.OursWaste/all
}

func (r *DisruptionResult) describe() {
	r.Title = fmt.Sprintf("Running groups that faults touch, %d GPUs (%s)", r.GPUsTotal, r.Faults)
	r.note("a group is touched when its members change or it ends; new groups do not count; %d run(s)", r.Runs)
	r.note("the paper's method places from nothing after each event ([IHBD] Alg. 2, with components that pass the last index kept whole); ours mends as the running planner does without spares, moves %s; odd K under the constraint of our wiring", r.Moves)
	r.faultNotes(&r.Report)
	why := map[fabric.Moves]string{
		fabric.MoveAny:  "placing from nothing shifts every group behind the fault, ours those up to the nearest idle nodes",
		fabric.MoveFew:  "at most 8 whole groups move for one, so some stay short",
		fabric.MoveNone: "a whole group never moves, so many stay short",
	}[r.Moves]
	for _, row := range r.Rows {
		r.compare(fmt.Sprintf("groups touched per fault, TP-%d, K=%s", row.TP, row.hops()), decimals(row.OursFault, 2), decimals(row.PaperFault, 2)+" (its method, run here)",
			fmt.Sprintf("waste %s and %s; %s", percent(row.OursWaste, 3), percent(row.PaperWaste, 3), why))
	}
}

// Table has what is ours before the paper's.
func (r *DisruptionResult) Table() Table {
	return tableOf(r.Rows, "tp", "k", "powers", "faults", "repairs", "groups_per_fault", "paper_groups_per_fault", "groups_per_repair", "paper_groups_per_repair", "waste", "paper_waste")
}

// Charts are groups touched by faults and by repairs.
func (r *DisruptionResult) Charts() []Chart {
	faults := Chart{Title: "By a fault", YLabel: "running groups touched, mean"}
	repairs := Chart{Title: "By a repair", YLabel: "running groups touched, mean"}
	for _, row := range r.Rows {
		name := fmt.Sprintf("TP-%d K=%s", row.TP, row.hops())
		faults.bar(name, "mended (ours)", row.OursFault)
		faults.bar(name, "placed from nothing ([IHBD] Alg. 2)", row.PaperFault)
		repairs.bar(name, "mended (ours)", row.OursRepair)
		repairs.bar(name, "placed from nothing ([IHBD] Alg. 2)", row.PaperRepair)
	}
	return []Chart{faults, repairs}
}
