package study

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"ringlight/planner/model"
	"ringlight/planner/topo"
)

// One topology for a job against one for each phase of its iteration: experts,
// pipeline, AllReduce. When links move is planned from the times of the phases, so
// that they do while GPUs compute or other links send.

// PhasesConfig is the comparison.
type PhasesConfig struct {
	Servers       int `flag:"servers" usage:"servers of a job"`
	GPUsPerServer int `flag:"gpus" usage:"GPUs of a server"`
	Degree        int `flag:"degree" usage:"interfaces of a server"`
	Gbps          int `flag:"gbps" usage:"bandwidth of an interface, Gb/s"`
	Models        []*model.Model
	Stages        []int           `flag:"stages" usage:"stages of a pipeline, for models without tables"`
	Dark          []time.Duration `flag:"switching" usage:"for so long links are dark that move"`
	Drawn
}

// DefaultPhases is eight GPUs of a rail on four interfaces, by switches from the
// fastest to the slowest.
func DefaultPhases() PhasesConfig {
	return PhasesConfig{Servers: 32, GPUsPerServer: 8, Degree: 4, Gbps: 100, Models: each([]string{"dlrm", "bert", "vgg", "gpt-moe"}, model.Named), Stages: []int{1, 4},
		Dark: []time.Duration{10 * time.Microsecond, 100 * time.Microsecond, time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond}}
}

// Validate checks the sizes.
func (c PhasesConfig) Validate() error {
	spans := []span{{"servers", c.Servers, 4, 128}, {"gpus", c.GPUsPerServer, 1, 64}, {"degree", c.Degree, 2, topo.MaxDegree}, {"gbps", c.Gbps, 1, 10_000}}
	spans = append(spans, each(c.Stages, func(s int) span { return span{"stages", s, 1, c.Servers / 2} })...)
	spans = append(spans, each(c.Dark, switching)...)
	if err := within(spans...); err != nil {
		return err
	}
	switch {
	case c.Degree%2 != 0:
		return invalid("degree", "even: half of the interfaces may be for the next phase", "%d is not", c.Degree)
	case slices.ContainsFunc(c.Stages, func(s int) bool { return c.Servers%s != 0 }):
		return invalid("stages", fmt.Sprintf("divisors of the servers, %d", c.Servers), "%v has others", c.Stages)
	case len(c.Stages) == 0 || len(c.Dark) == 0:
		return invalid("switching", "one time of switching, and one number of stages, or more", "none given")
	}
	return nil
}

// PhasesRow is a model divided in one way, with one switch; milliseconds of an
// iteration.
type PhasesRow struct {
	Model     string  `json:"model"`
	Stages    int     `json:"stages"`
	DarkMS    float64 `json:"switching_ms" table:"2" column:"switching, ms"`
	ComputeMS float64 `json:"compute_ms" table:"1" column:"compute, ms"`
	OneMS     float64 `json:"one_topology_ms" table:"1" column:"one topology"`
	PhasesMS  float64 `json:"phases_ms" table:"1" column:"by phase"`
	WaitMS    float64 `json:"dark_ms" table:"2" column:"of it dark"` // what is not hidden
	IdealMS   float64 `json:"ideal_ms" table:"1" column:"Ideal"`
	Changes   int     `json:"changes_per_iteration" column:"changes"`
	Gain      float64 `json:"phases_to_one_ratio" table:"3" column:"by phase/one"`
	OverIdeal float64 `json:"phases_to_ideal_ratio" table:"3" column:"by phase/Ideal"`
}

// PhasesResult is all of them.
type PhasesResult struct {
	rowsOf[PhasesRow]
	Report
}

// Phases compares, model by model.
func Phases(c PhasesConfig) (*PhasesResult, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	out := &PhasesResult{}
	out.Rows = []PhasesRow{}
	for n, m := range c.Models {
		for i, stages := range c.Stages {
			if err := c.divided(out, m, stages); err != nil {
				return nil, fmt.Errorf("%s: %w", m.Name, err)
			}
			c.report(n*len(c.Stages)+i+1, len(c.Models)*len(c.Stages))
		}
	}
	if len(out.Rows) == 0 {
		return nil, invalid("stages", "1 for models with tables", "none of the models can have %v", c.Stages)
	}
	out.Title = fmt.Sprintf("One topology and one for each phase, %d servers, degree %d, %d Gb/s", c.Servers, c.Degree, c.Gbps)
	out.note("Models are divided by hand; a pipeline has four micro-batches a stage, and its stages compute and send at the same time. One topology: the best of what study topology finds, of Algorithm 5 of [TOPO] for all traffic and of all options by phase. Ideal: a switch that is never short but at the servers, phase by phase.")
	out.note("Options by phase: Algorithm 5 for each phase alone, for each two with half of the interfaces each, and in turns, where every two servers have a link of their own for a time. Links begin to move when they carry nothing more; nothing is sent before all are there. Servers pass on for others.")
	out.beside()
	return out, nil
}

// divided adds a model with so many stages, where it can have them.
func (c PhasesConfig) divided(out *PhasesResult, m *model.Model, stages int) error {
	on := model.Cluster{Servers: c.Servers, GPUsPerServer: c.GPUsPerServer, ServerBytes: serverMemory}
	s, err := model.Start(m, on)
	if err != nil {
		return err
	}
	if stages != s.Stages {
		if len(s.Table) > 0 {
			out.note("%s has no rows with stages of %d: its tables are where every stage would want them.", m.Name, stages)
			return nil
		}
		s.Stages = stages
		for u, share := range s.Share {
			s.Share[u] = min(share, c.Servers/stages)
		}
	}
	phases, steps, err := m.Phases(on, s)
	if err != nil {
		return err
	}
	demands := each(phases, func(p model.Phase) []topo.Demand { return slices.Concat(onRings(p.Groups), p.Demands) })
	options, err := c.options(phases, demands)
	if err != nil {
		return err
	}
	row := PhasesRow{Model: m.Name, Stages: stages}
	one, ideal := int64(0), int64(0)
	for _, o := range options {
		if p, ok := topo.Schedule(steps, []*topo.Option{o}, 0); ok && (one == 0 || p.Nanos < one) {
			one = p.Nanos
		}
	}
	for _, step := range steps {
		row.ComputeMS += float64(step.Gap) / 1e6
		ideal += step.Gap + c.ideal(phases[step.Phase])
	}
	row.OneMS, row.IdealMS = float64(one)/1e6, float64(ideal)/1e6
	for _, dark := range c.Dark {
		p, ok := topo.Schedule(steps, append(options, topo.InTurns(c.Servers, c.Degree, demands, c.nanos, int64(dark))), int64(dark))
		if !ok {
			return fmt.Errorf("no links reach all servers")
		}
		row.DarkMS, row.PhasesMS, row.WaitMS, row.Changes = float64(dark)/1e6, float64(p.Nanos)/1e6, float64(p.Dark)/1e6, p.Changes
		row.Gain, row.OverIdeal = row.PhasesMS/row.OneMS, row.PhasesMS/row.IdealMS
		out.Rows = append(out.Rows, row)
	}
	return nil
}

func (c PhasesConfig) nanos(bytes int64) int64 { return nanosAt(c.Gbps, bytes) }

// ideal is a phase on a switch that is never short but at the servers.
func (c PhasesConfig) ideal(p model.Phase) int64 {
	sent, heard := make([]int64, c.Servers), make([]int64, c.Servers)
	for _, d := range slices.Concat(onRings(p.Groups), p.Demands) {
		sent[d.From] += d.Bytes
		heard[d.To] += d.Bytes
	}
	return c.nanos(max(slices.Max(sent), slices.Max(heard)) / int64(c.Degree))
}

// options are links for a job: for all of its phases, for each, and for each two.
func (c PhasesConfig) options(phases []model.Phase, demands [][]topo.Demand) (out []*topo.Option, err error) {
	all := topo.Request{Servers: c.Servers, Degree: c.Degree, Bidirectional: true, Seed: c.Seed}
	for _, p := range phases {
		all.AllReduce = append(all.AllReduce, p.Groups...)
		all.MP = append(all.MP, p.Demands...)
	}
	add := func(links []topo.Link, demands [][]topo.Demand) {
		out = append(out, topo.NewOption(c.Servers, links, demands, c.nanos))
	}
	found, err := topo.Find(all)
	if err != nil {
		return nil, err
	}
	var links []topo.Link
	for _, l := range found.Links() {
		links = append(links, l, topo.Link{A: l.B, B: l.A, Count: l.Count})
	}
	add(inOrder(links), each(phases, func(p model.Phase) []topo.Demand { return slices.Concat(onRingsOf(found, p.Groups), p.Demands) }))
	add(topo.Reconfigure(c.Servers, c.Degree, summed(demands...)), demands)
	for a := range demands {
		add(topo.Reconfigure(c.Servers, c.Degree, summed(demands[a])), demands)
		for b := range demands {
			if a < b {
				half := topo.Reconfigure(c.Servers, c.Degree/2, summed(demands[a]))
				add(inOrder(append(half, topo.Reconfigure(c.Servers, c.Degree/2, summed(demands[b]))...)), demands)
			}
		}
	}
	return out, nil
}

// onRingsOf is what AllReduce sends on the rings that a topology has for it, both
// ways round. groups are all of the request that it was found for, or none.
func onRingsOf(t *topo.Topology, groups []topo.Group) (out []topo.Demand) {
	for i, g := range groups {
		var rings []topo.Group
		for _, r := range t.Rings {
			if r.Group == i {
				back := slices.Clone(r.Order)
				slices.Reverse(back)
				rings = append(rings, topo.Group{Servers: r.Order}, topo.Group{Servers: back})
			}
		}
		if len(rings) == 0 {
			rings = []topo.Group{g}
		}
		for k := range rings {
			rings[k].Bytes = g.Bytes / int64(len(rings))
		}
		out = append(out, onRings(rings)...)
	}
	return out
}

// summed is demands with each pair once.
func summed(demands ...[]topo.Demand) (out []topo.Demand) {
	at := map[[2]int]int{}
	for _, d := range slices.Concat(demands...) {
		pair := [2]int{d.From, d.To}
		if _, ok := at[pair]; !ok {
			at[pair] = len(out)
			out = append(out, topo.Demand{From: d.From, To: d.To})
		}
		out[at[pair]].Bytes += d.Bytes
	}
	return out
}

// inOrder is links with each pair once.
func inOrder(links []topo.Link) (out []topo.Link) {
	slices.SortFunc(links, func(a, b topo.Link) int { return cmp.Or(a.A-b.A, a.B-b.B) })
	for _, l := range links {
		if n := len(out); n > 0 && out[n-1].A == l.A && out[n-1].B == l.B {
			out[n-1].Count += l.Count
			continue
		}
		out = append(out, l)
	}
	return out
}

// beside holds the rows against what others print.
func (r *PhasesResult) beside() {
	less, most, over := 0.0, 0.0, map[float64]PhasesRow{}
	for _, x := range r.Rows {
		if most = max(most, x.Gain); x.OverIdeal > over[x.DarkMS].OverIdeal {
			over[x.DarkMS] = x
		}
		if sent := x.OneMS - x.ComputeMS; sent > 0 {
			less = max(less, 1-(x.PhasesMS-x.ComputeMS)/sent)
		}
	}
	r.note("To stay with one topology is one of the plans: by phase takes at most %s of it.", decimals(most, 3))
	for _, dark := range slices.Sorted(maps.Keys(over)) {
		r.compare("longer than on an electrical switch, at most, switching in "+decimals(dark, 2)+" ms", percent(over[dark].OverIdeal-1, 1),
			"under 6 % at times of switches in production (Opus, arXiv 2602.12521, up to 2,048 GPUs)", fmt.Sprintf("the most is of %s, whose links move %d times an iteration; compute hides nothing that is sent here", over[dark].Model, over[dark].Changes))
	}
	r.compare("less time of sending than on one topology, at most", percent(less, 1), "up to 89.7 % of a collective (SWOT, arXiv 2510.19322)", "a whole iteration here, AllReduce with it, which one ring serves as well")
}

// Charts draws the iterations by time of switching.
func (r *PhasesResult) Charts() []Chart {
	c := Chart{Title: "Time of an iteration, one topology for each phase", YLabel: "share of that on one topology"}
	for _, x := range r.Rows {
		c.bar(decimals(x.DarkMS, 2)+" ms", fmt.Sprintf("%s, %d stages", x.Model, x.Stages), x.Gain)
	}
	return []Chart{c}
}
