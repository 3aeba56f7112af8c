package fleet

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Spread is a distribution in few numbers; a percentile only where there are
// enough values for one.
type Spread struct {
	P50 *int64 `json:"p50"`
	P99 *int64 `json:"p99"`
	Max *int64 `json:"max"`
	N   int    `json:"n"`
}

// enough values for a percentile of what happens all the time, and of what is
// rare. chosen: two lie beyond the 99th; one does.
const enough, enoughRare = 200, 101

func spreadOf(values []int64, enough int) Spread {
	s := Spread{N: len(values)}
	if s.N == 0 {
		return s
	}
	v := slices.Sorted(slices.Values(values))
	s.Max = &v[s.N-1]
	if s.N >= enough {
		s.P50, s.P99 = &v[(s.N-1)/2], &v[(s.N*99+99)/100-1]
	}
	return s
}

// Waste as ratios of all GPUs.
type Waste struct {
	Mean   float64 `json:"mean" add:"sum"`
	P99    float64 `json:"p99" add:"max"`
	Ideal  float64 `json:"ideal" add:"sum"`
	Static float64 `json:"static" add:"sum"`
}

// CoreResult is what a run found at the circuit switches.
type CoreResult struct {
	Switches int `json:"switches"`
	CoreCounts
	Virtual float64 `json:"virtual_s" add:"sum"`
	// Dark interfaces of servers that are joined directly; nil: there are none.
	Dark *DarkTimes `json:"dark,omitempty"`
}

// CoreCounts are what happened at the circuit switches, of a run or of several.
type CoreCounts struct {
	Commits    int    `json:"commits" add:"sum"`                     // generations that were committed
	Killed     int    `json:"agents_killed_in_stages" add:"sum"`     // that died after a commit of theirs
	Struck     int    `json:"strikes" add:"sum"`                     // faults after a commit, in all
	Looks      int    `json:"looks_at_circuits_that_stay" add:"sum"` // at circuits that had to
	Failed     int    `json:"parts_failed" add:"sum"`
	Noticed    int    `json:"parts_noticed" add:"sum"` // of these, by their light alone
	Short      int    `json:"jobs_short" add:"sum"`    // times that one was found so at rest, by name
	Routes     int    `json:"routes_followed" add:"sum"`
	Grown      int    `json:"edits" add:"sum"`                      // of the core, and
	Refused    int    `json:"edits_refused" add:"sum"`              // for what was in their way
	GaveWay    int    `json:"jobs_gave_way" add:"sum"`              // that found no other place, and ended for one
	Turns      int    `json:"phases_asked" add:"sum"`               // that jobs were to go to
	Measured   int    `json:"traffic_measured" add:"sum"`           // times that what a job sends was told, and
	Followed   int    `json:"traffic_followed" add:"sum"`           // that its links moved for it
	FullestWas uint64 `json:"traffic_fullest_bytes" add:"sum"`      // sums over these: what the fullest circuit carried, and
	FullestIs  uint64 `json:"traffic_fullest_then_bytes" add:"sum"` // afterwards
	Realised   uint32 `json:"links_realised" add:"sum"`
	Granted    uint32 `json:"links_granted" add:"sum"`
	DarkMicros int64  `json:"longest_tuning_us" add:"max"` // of one switch in one stage
}

// DarkTimes is for how long interfaces were dark, in microseconds.
type DarkTimes struct {
	Flip    Spread `json:"flip_us"`    // from one job's light to the next's, whose mirrors stood ready
	Mirrors Spread `json:"mirrors_us"` // the same where mirrors had to move
	Tuned   Spread `json:"tuned_us"`   // what mirrors of a layer took until all circuits of a change were tuned
	Board   Spread `json:"board_us"`   // of switches of transceivers, what their own board takes: decide, bus, settle
	Ledger  Spread `json:"ledger_us"`  // the whole ledger, until the far side's light is known

	flips, boards, ledgers, mirrors, tunings []int64
}

// String is the times in lines.
func (d *DarkTimes) String() string {
	var b strings.Builder
	for _, x := range []struct {
		what string
		s    Spread
	}{{"dark, no mirror moved", d.Flip}, {"dark, mirrors moved", d.Mirrors}, {"  and a layer is tuned", d.Tuned}, {"a flip on its board", d.Board}, {"  to the far light", d.Ledger}} {
		if x.s.P99 != nil {
			fmt.Fprintf(&b, "%-22s p50 %6d us, p99 %6d us, max %6d us, %d\n", x.what, *x.s.P50, *x.s.P99, *x.s.Max, x.s.N)
		} else {
			fmt.Fprintf(&b, "%-22s %d\n", x.what, x.s.N)
		}
	}
	return b.String()
}

// Add takes the times of another run.
func (d *DarkTimes) Add(o *DarkTimes) {
	d.flips, d.boards = append(d.flips, o.flips...), append(d.boards, o.boards...)
	d.ledgers, d.mirrors, d.tunings = append(d.ledgers, o.ledgers...), append(d.mirrors, o.mirrors...), append(d.tunings, o.tunings...)
	d.Tuned = spreadOf(d.tunings, enough)
	d.Flip, d.Board, d.Ledger, d.Mirrors = spreadOf(d.flips, enough), spreadOf(d.boards, enough), spreadOf(d.ledgers, enough), spreadOf(d.mirrors, enough)
}

func (r *Run) coreResult() *CoreResult {
	if r.audit.circuits == nil {
		return nil
	}
	s := r.coreStatus()
	var dark *DarkTimes
	if x := r.audit.circuits.shines; x != nil {
		dark = new(DarkTimes)
		dark.Add(&DarkTimes{flips: x.flips, boards: x.boards, ledgers: x.ledgers, mirrors: x.mirrors, tunings: x.tunings})
	}
	counts := r.atCore
	counts.Realised, counts.Granted = s.Realised, s.Granted
	return &CoreResult{Switches: len(r.switches), CoreCounts: counts, Virtual: r.now.Seconds(), Dark: dark}
}

// Add takes the counts of another run.
func (c *CoreCounts) Add(o *CoreCounts) { add(c, o) }

// add adds up the fields of two runs whose tag add is sum, and has the larger of those where
// it is max.
func add[R any](to, from *R) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[R]()) {
		x, y := reflect.ValueOf(to).Elem().FieldByIndex(f.Index), reflect.ValueOf(from).Elem().FieldByIndex(f.Index)
		switch how := f.Tag.Get("add"); {
		case how == "":
		case how == "max" && x.CanInt():
			x.SetInt(max(x.Int(), y.Int()))
		case how == "max":
			x.SetFloat(max(x.Float(), y.Float()))
		case x.CanInt():
			x.SetInt(x.Int() + y.Int())
		case x.CanUint():
			x.SetUint(x.Uint() + y.Uint())
		default:
			x.SetFloat(x.Float() + y.Float())
		}
	}
}

// Result is what a run found. Merge puts several together.
type Result struct {
	Nodes         int               `json:"nodes"`
	GPUsPerNode   int               `json:"gpus_per_node"`
	K             int               `json:"k"`
	TP            int               `json:"tp"`
	Seed          uint64            `json:"seed"`
	Runs          int               `json:"runs"`
	Hours         float64           `json:"hours"`
	Faults        int               `json:"faults" add:"sum"`
	Violations    int               `json:"violations" add:"sum"`
	ViolationList []string          `json:"violation_list"`
	EventsLost    uint64            `json:"events_lost" add:"sum"`
	EventsTotal   uint64            `json:"events_total" add:"sum"`
	BypassMicros  map[string]Spread `json:"bypass_us"`
	SplitRepair   Spread            `json:"split_repair_ms"`
	SplitParts    []SplitParts      `json:"split_parts"`
	Splits        int               `json:"splits" add:"sum"`
	GPUWaste      Waste             `json:"gpu_waste"`
	Interruptions int               `json:"interruptions" add:"sum"`
	DarkMicros    int64             `json:"dark_us_total" add:"sum"`
	Moves         int               `json:"moves" add:"sum"` // of interruptions: whole rings that a plan moved
	MovedMicros   int64             `json:"moves_dark_us" add:"sum"`
	Exchange      []FlipTook        `json:"exchange,omitempty"`
	Polls         uint64            `json:"polls" add:"sum"`
	Looks         uint64            `json:"looks" add:"sum"`
	Rests         int               `json:"rests" add:"sum"` // looks at a fabric at rest that found in use all that can be
	Steps         uint64            `json:"steps" add:"sum"`
	EventsPerS    float64           `json:"events_per_s"` // filled in by whoever has a clock
	RSSMiB        int64             `json:"rss_mib"`      // by whoever has an operating system
	HealthSeconds float64           `json:"health_s"`
	HealthModules int               `json:"health_modules"` // read by a node in each health period; 0: all
	Modules       int               `json:"modules"`
	TraceSHA256   string            `json:"trace_sha256"`
	Core          *CoreResult       `json:"core,omitempty"`
	Rollout       *RolloutResult    `json:"rollout,omitempty"`
	Costs         string            `json:"costs,omitempty"` // where the latencies of calls come from; "": docs/board.md

	bypasses map[int][]int64
	repairs  []repair
}

// RolloutResult is how the roll-out of a script stands at its end.
type RolloutResult struct {
	State    string `json:"state"`
	Software string `json:"software"`
	Current  int    `json:"current"` // nodes that run it
	Waves    int    `json:"waves"`
	Reason   string `json:"reason,omitempty"`
}

// rollout is nil where the script has none.
func (r *Run) rollout() *RolloutResult {
	if !r.inject.rolls || r.planners[0].host == nil {
		return nil
	}
	s := r.planners[0].host.Planner().Rollout.Status()
	return &RolloutResult{State: s.State.String(), Software: s.Software, Current: int(s.Current), Waves: int(s.Wave), Reason: s.Reason}
}

func (r *Run) result() *Result {
	f := r.cfg.Fabric
	res := &Result{Nodes: f.Nodes, GPUsPerNode: f.GPUsPerNode, K: f.K, TP: f.TP, Seed: r.cfg.Seed, Runs: 1, Hours: r.cfg.Span.Hours(),
		Violations: r.audit.violations, ViolationList: append([]string{}, r.audit.list...), EventsLost: r.audit.lost(),
		Splits: r.measure.splits, Interruptions: r.measure.interrupted, DarkMicros: r.measure.dark.Microseconds(),
		Moves: r.measure.moved, MovedMicros: r.measure.movedDark.Microseconds(), Exchange: r.flips.took(),
		Polls: r.polls, Looks: r.audit.looks, Rests: r.audit.rests, Steps: r.steps, HealthSeconds: r.cfg.Health.Seconds(), HealthModules: r.cfg.HealthModules, Modules: r.cfg.Modules,
		TraceSHA256: r.tracer.hash(), bypasses: r.measure.bypasses, Core: r.coreResult(), Rollout: r.rollout(), Costs: r.cfg.Costs.Source}
	for i := range r.cfg.Faults {
		if f := &r.cfg.Faults[i]; f.Commit == 0 && f.At < r.cfg.Span {
			res.Faults++
		}
	}
	res.Faults += r.atCore.Struck
	for _, st := range r.stations {
		res.EventsTotal += max(st.disk.Journal.Last, st.disk.Journal.Acked)
	}
	res.repairs = r.measure.repairs
	w := &res.GPUWaste
	w.Mean, w.P99, w.Ideal, w.Static = r.measure.ratios()
	res.spread()
	return res
}

func (res *Result) spread() {
	res.BypassMicros = map[string]Spread{}
	for n := 1; n <= 3; n++ {
		res.BypassMicros[strconv.Itoa(n)] = spreadOf(res.bypasses[n], enough)
	}
	res.SplitRepair, res.SplitParts = partsOf(res.repairs)
}

// Merge adds the results of other seeds, in their order; the waste is the
// mean, its p99 the largest. The hash is the caller's.
func (res *Result) Merge(others ...*Result) {
	all := 1 + len(others)
	for _, o := range others {
		add(res, o)
		add(&res.GPUWaste, &o.GPUWaste)
		if res.Core != nil {
			add(res.Core, o.Core)
		}
		res.ViolationList = append(res.ViolationList, o.ViolationList...)
		for n := 1; n <= 3; n++ {
			res.bypasses[n] = append(res.bypasses[n], o.bypasses[n]...)
		}
		res.repairs = append(res.repairs, o.repairs...)
	}
	res.Runs = all
	res.GPUWaste.Mean /= float64(all)
	res.GPUWaste.Ideal /= float64(all)
	res.GPUWaste.Static /= float64(all)
	res.ViolationList = res.ViolationList[:min(len(res.ViolationList), maxViolations)]
	res.spread()
}

// Steps is how many things have happened, Violations how many invariants broke.
func (r *Run) Steps() uint64   { return r.steps }
func (r *Run) Violations() int { return r.audit.violations }
