package live

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

// CoreChange is one job list and what became of it.
type CoreChange struct {
	Change          int           `json:"change"` // 0: the first list
	Came            []proto.JobID `json:"jobs_came"`
	Ended           []proto.JobID `json:"jobs_ended"`
	Waiting         []proto.JobID `json:"jobs_without_room"`
	JobsPlaced      int           `json:"jobs_placed"`
	Stages          int           `json:"stages"`
	Generations     int           `json:"generations"` // given out, of stages and of what was told again
	LinksKept       int           `json:"links_kept"`
	LinksMoved      int           `json:"links_moved"`
	WorstMoved      int           `json:"worst_leaf_moved"` // most links of a leaf that moved at once,
	WorstOf         int           `json:"worst_leaf_links"` // of so many
	CircuitsPlanned int           `json:"circuits_planned"`
	CircuitsLit     int           `json:"circuits_lit"`   // of those, by the boards' own light
	CircuitsTuned   int           `json:"circuits_tuned"` // of those, as the planner knows
	CircuitsKept    int           `json:"circuits_kept"`
	StrayPairs      int           `json:"stray_pairs"`      // idle ports that mirrors at rest join by chance
	CircuitsDropped int           `json:"circuits_dropped"` // stayed in the plan, and were dark at some moment
	LinksAsked      int           `json:"links_asked"`
	LinksGranted    int           `json:"links_granted"`
	LinksRealised   int           `json:"links_realised"`
	CircuitsMoved   int           `json:"circuits_moved"`
	DarkMicros      int64         `json:"dark_us_max"`   // of a circuit that moved: last light over its old ports to first over its new ones
	MadeMicros      int64         `json:"switch_us_max"` // from the first mirror moved on a switch to its last circuit proven
	Killed          *int          `json:"killed_switch"` // whose agent was killed in a stage; null: none
	Equal           bool          `json:"equal"`         // light and plan are the same on every switch
	Millis          int64         `json:"wall_ms"`
}

// Spread are times in microseconds.
type Spread struct {
	P50 int64 `json:"p50"`
	Max int64 `json:"max"`
	N   int   `json:"n"`
}

// CoreResult is what a core run found.
type CoreResult struct {
	Kind            fabric.Kind  `json:"kind"`
	Pods            int          `json:"pods"` // 0: of a leaf-spine core
	LeavesPerPod    int          `json:"leaves_per_pod"`
	SpinesPerPod    int          `json:"spines_per_pod"`
	Leaves          int          `json:"leaves"` // in all
	Groups          int          `json:"groups"`
	Switches        int          `json:"switches"`
	SwitchPorts     int          `json:"switch_ports"`
	Servers         int          `json:"servers"`
	GPUsTotal       int          `json:"gpus_total"`
	Wiring          string       `json:"wiring"`
	Iota            float64      `json:"iota"`
	Term            uint64       `json:"term"`
	Generation      uint64       `json:"generation"`
	JobsPlaced      int          `json:"jobs_placed"` // at the end
	CircuitsPlanned int          `json:"circuits_planned"`
	CircuitsLit     int          `json:"circuits_lit"`
	LinksAsked      int          `json:"links_asked"`
	LinksGranted    int          `json:"links_granted"`
	LinksRealised   int          `json:"links_realised"`
	Stages          int          `json:"stages"` // in all
	LinksMoved      int          `json:"links_moved"`
	WorstMovedShare float64      `json:"worst_moved_share"` // of a leaf's links in one stage
	DarkMicros      Spread       `json:"dark_us"`           // of each circuit that moved
	SwitchMicros    Spread       `json:"switch_us"`         // of a switch in a stage: first mirror moved to last circuit proven
	CircuitsDropped int          `json:"circuits_dropped"`
	AgentsKilled    int          `json:"agents_killed"`
	Equal           bool         `json:"equal"` // after every change
	Changes         []CoreChange `json:"changes"`

	darks []int64
}

func newCoreResult(c *fabric.Core) *CoreResult {
	servers := c.Servers()
	return &CoreResult{Kind: cmp.Or(c.Kind, fabric.KindPods), Leaves: c.Leaves(), Pods: c.Pods, LeavesPerPod: c.LeavesPerPod, SpinesPerPod: c.SpinesPerPod, Groups: c.Groups(), Switches: c.Switches(),
		SwitchPorts: c.SwitchSize(), Servers: servers, GPUsTotal: servers * c.GPUsPerServer, Wiring: string(c.Wiring), Iota: float64(c.IotaMille) / 1000}
}

// finish sums up.
func (r *coreRun) finish() {
	s, x := r.now(), r.result
	x.Term, x.Generation = uint64(r.term), uint64(s.Generation)
	x.Equal = true
	for i := range x.Changes {
		c := &x.Changes[i]
		x.Stages += c.Stages
		x.LinksMoved += c.LinksMoved
		x.CircuitsDropped += c.CircuitsDropped
		x.WorstMovedShare = max(x.WorstMovedShare, share(c.WorstMoved, c.WorstOf))
		x.Equal = x.Equal && c.Equal
		x.JobsPlaced, x.CircuitsPlanned, x.CircuitsLit = c.JobsPlaced, c.CircuitsPlanned, c.CircuitsLit
		x.LinksAsked, x.LinksGranted, x.LinksRealised = c.LinksAsked, c.LinksGranted, c.LinksRealised
	}
	x.DarkMicros = spreadOf(x.darks)
	made := make([]int64, len(r.made))
	for i, m := range r.made {
		made[i] = int64(m)
	}
	x.SwitchMicros = spreadOf(made)
	r.screen.line("%d changes  %d stages, %d links moved, worst share of a leaf %.0f %% (bound %.0f %%), circuits that moved dark p50 %.1f ms, max %.1f ms*, agents killed %d, circuits dropped %d, light as planned: %v",
		max(0, len(x.Changes)-1), x.Stages, x.LinksMoved, 100*x.WorstMovedShare, 100*x.Iota, float64(x.DarkMicros.P50)/1000, float64(x.DarkMicros.Max)/1000,
		x.AgentsKilled, x.CircuitsDropped, x.Equal)
	r.screen.line("* by the boards' own light, with the mirrors of the MEMS model; other times are wall clock")
	r.screen.line("look closer: ocs-sim core -hold, then ocsctl circuit list")
}

func spreadOf(times []int64) Spread {
	n := len(times)
	if n == 0 {
		return Spread{}
	}
	slices.Sort(times)
	return Spread{P50: times[n/2], Max: times[n-1], N: n}
}

func share(part, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(part) / float64(of)
}

// Verdict is what the run did not keep of what it promises.
func (x *CoreResult) Verdict() error {
	var errs []error
	if len(x.Changes) == 0 || x.JobsPlaced == 0 {
		errs = append(errs, errors.New("no job has servers"))
	}
	for i := range x.Changes {
		c := &x.Changes[i]
		if !c.Equal {
			errs = append(errs, fmt.Errorf("change %d: %d circuits planned, %d lit, %d known to be", c.Change, c.CircuitsPlanned, c.CircuitsLit, c.CircuitsTuned))
		}
		if c.CircuitsDropped > 0 {
			errs = append(errs, fmt.Errorf("change %d: %d circuits that stay were dark", c.Change, c.CircuitsDropped))
		}
		if s := share(c.WorstMoved, c.WorstOf); s > x.Iota {
			errs = append(errs, fmt.Errorf("change %d: %d of %d links of a leaf moved at once, over %.0f %%", c.Change, c.WorstMoved, c.WorstOf, 100*x.Iota))
		}
	}
	if worst := time.Duration(x.SwitchMicros.Max) * time.Microsecond; len(errs) > 0 && worst > lateSwitch {
		errs = append(errs, fmt.Errorf("a switch took %v to move its mirrors, which takes a tenth of a second: this machine is too busy for the run in real time; -runs judges the same on a virtual clock", worst.Round(time.Millisecond)))
	}
	return errors.Join(errs...)
}

// lateSwitch is what only a machine without time for its boards takes to move
// mirrors. chosen: ten times the longest tuning; planners wait for ten times that.
const lateSwitch = time.Second

func (s *screen) coreHead(c *fabric.Core) {
	s.line("core     %s; MEMS switches with %d ports (simulated boards, register level)", c, c.SwitchSize())
}

func (s *screen) coreChange(k *fabric.Core, c *CoreChange) {
	head := fmt.Sprintf("change %-3d", c.Change)
	if c.Change == 0 {
		head = "jobs      "
	}
	s.line("%s%s", head, c.who())
	moved := "nothing that runs is touched"
	if c.LinksMoved > 0 {
		moved = fmt.Sprintf("%d links kept, %d moved, at most %d of %d of a leaf at once (%.0f %%, bound %.0f %%)",
			c.LinksKept, c.LinksMoved, c.WorstMoved, c.WorstOf, 100*share(c.WorstMoved, c.WorstOf), float64(k.IotaMille)/10)
	}
	if c.Change > 0 {
		s.line("          %s: %s", proto.Count(c.Stages, "stage"), moved)
	}
	if c.Killed != nil {
		s.line("          agent of switch %d killed in mid-stage, back after %v: stage complete, %d of the %d circuits that stay went dark", *c.Killed, killedBack, c.CircuitsDropped, c.CircuitsKept)
	}
	dark := ""
	if c.CircuitsMoved > 0 {
		dark = fmt.Sprintf("; %d circuits moved, dark for %.1f ms* at most", c.CircuitsMoved, float64(c.DarkMicros)/1000)
	}
	if c.MadeMicros > 0 {
		dark += fmt.Sprintf("; mirrors moved and proven in %.1f ms*", float64(c.MadeMicros)/1000)
	}
	s.line("          light on %d/%d circuits as planned, links realised %d, granted %d, asked %d%s; in %d ms",
		c.CircuitsLit, c.CircuitsPlanned, c.LinksRealised, c.LinksGranted, c.LinksAsked, dark, c.Millis)
}

// who says which jobs came and went.
func (c *CoreChange) who() string {
	words := []string{fmt.Sprintf("%d run", c.JobsPlaced)}
	for _, l := range []struct {
		what string
		ids  []proto.JobID
	}{{"came", c.Came}, {"ended", c.Ended}, {"find no room", c.Waiting}} {
		if len(l.ids) > 0 && c.Change > 0 {
			words = append(words, fmt.Sprintf("%s %s", jobNames(l.ids), l.what))
		} else if len(l.ids) > 0 && l.what != "came" {
			words = append(words, fmt.Sprintf("%d %s", len(l.ids), l.what))
		}
	}
	return strings.Join(words, ", ")
}

func jobNames(ids []proto.JobID) string {
	parts := make([]string, len(ids))
	for i, id := range ids {
		parts[i] = fmt.Sprint(id)
	}
	if len(ids) == 1 {
		return "job " + parts[0]
	}
	return "jobs " + strings.Join(parts, " ")
}
