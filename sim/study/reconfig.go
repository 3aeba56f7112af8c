package study

import (
	"fmt"
	"slices"
	"time"

	"ringlight/planner/model"
	"ringlight/planner/topo"
)

// One topology for a job against one that follows its traffic while it runs:
// OCS-reconfig of [TOPO] sec 5 and App. E.4. What is unsent is looked at every
// period; where that wants other links, all is dark for as long as mirrors move.

// ReconfigConfig is the comparison.
type ReconfigConfig struct {
	Servers       int `flag:"servers" usage:"servers of a job"`
	GPUsPerServer int `flag:"gpus" usage:"GPUs of a server"`
	Degree        int `flag:"degree" usage:"interfaces of a server"`
	Gbps          int `flag:"gbps" usage:"bandwidth of an interface, Gb/s"`
	Models        []*model.Model
	Period        time.Duration `flag:"period" usage:"between two looks at what is unsent"`
	Dark          time.Duration `flag:"dark" usage:"while links are made"`
	Iterations    int           `flag:"iterations" usage:"of a job"`
	Drawn
}

// DefaultReconfig is the paper's: every 50 ms, 10 ms dark.
func DefaultReconfig() ReconfigConfig {
	return ReconfigConfig{Servers: 128, GPUsPerServer: 4, Degree: 4, Gbps: 100, Models: each([]string{"candle", "vgg", "bert", "dlrm", "ncf", "resnet50"}, model.Named),
		Period: 50 * time.Millisecond, Dark: 10 * time.Millisecond, Iterations: 20, Drawn: Drawn{Seed: 1}}
}

// Validate checks the sizes.
func (c ReconfigConfig) Validate() error {
	if err := within([]span{
		{"servers", c.Servers, 4, 256}, {"gpus", c.GPUsPerServer, 1, 64}, {"degree", c.Degree, 2, topo.MaxDegree}, {"gbps", c.Gbps, 1, 10_000},
		{"iterations", c.Iterations, 1, 1000}, {"period", int(c.Period.Milliseconds()), 1, 10_000}, {"dark", int(c.Dark.Milliseconds()), 0, 1000},
	}...); err != nil {
		return err
	}
	switch {
	case c.Degree%2 != 0:
		return invalid("degree", "even: links of the one topology are bidirectional", "%d is not", c.Degree)
	case c.Dark >= c.Period:
		return invalid("dark", "less than period", "%v is not", c.Dark)
	}
	return nil
}

// ReconfigJob is one model, milliseconds of an iteration.
type ReconfigJob struct {
	Model     string  `json:"model"`
	ComputeMS float64 `json:"compute_ms" table:"1" column:"compute, ms"`
	OneMS     float64 `json:"one_topology_ms" table:"1" column:"one topology"` // found once, the better of the two methods
	ForwardMS float64 `json:"reconfig_forward_ms" table:"1" column:"reconfig, passed on"`
	DirectMS  float64 `json:"reconfig_direct_ms" table:"1" column:"reconfig, direct"` // servers pass nothing on
	IdealMS   float64 `json:"ideal_ms" table:"1" column:"Ideal"`
	Changes   float64 `json:"changes_per_iteration" table:"2" column:"changes an iteration"` // of ForwardMS
	Gain      float64 `json:"reconfig_to_one_ratio" table:"2" column:"reconfig/one"`         // the better of both
}

// ReconfigResult is all of them.
type ReconfigResult struct {
	Servers int           `json:"servers"`
	Degree  int           `json:"degree"`
	Gbps    int           `json:"gbps"`
	Jobs    []ReconfigJob `json:"jobs"`
	Report
}

// Reconfig compares, model by model.
func Reconfig(c ReconfigConfig) (*ReconfigResult, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	out := &ReconfigResult{Servers: c.Servers, Degree: c.Degree, Gbps: c.Gbps}
	t := TopologyConfig{Servers: c.Servers, GPUsPerServer: c.GPUsPerServer, Drawn: Drawn{Seed: c.Seed}}
	for n, m := range c.Models {
		hand, err := t.byHand(m, c.Degree)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name, err)
		}
		ideal, err := model.Evaluate(m, t.cluster(), hand.Strategy, model.Switch{Servers: c.Servers}, int64(c.Degree*c.Gbps)*1e9)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name, err)
		}
		groups, demands, err := m.Traffic(t.cluster(), hand.Strategy)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name, err)
		}
		j := ReconfigJob{Model: m.Name, ComputeMS: float64(ideal.Compute) / 1e6, IdealMS: msOf(ideal), OneMS: min(msOf(at(hand.totient, c.Gbps)), msOf(at(hand.random, c.Gbps)))}
		for _, forward := range []bool{true, false} {
			r := &reconfigRun{c: c, forward: forward}
			for range c.Iterations {
				r.now += ideal.Compute
				r.send(onRings(groups))
				r.send(demands)
			}
			mean := float64(r.now) / float64(c.Iterations) / 1e6
			if j.DirectMS = mean; forward {
				j.ForwardMS, j.Changes = mean, float64(r.changes)/float64(c.Iterations)
			}
		}
		j.Gain = min(j.ForwardMS, j.DirectMS) / j.OneMS
		out.Jobs = append(out.Jobs, j)
		c.report(n+1, len(c.Models))
	}
	out.Title = fmt.Sprintf("One topology and one that follows traffic, %d servers, degree %d, %d Gb/s", c.Servers, c.Degree, c.Gbps)
	out.note("Every %v what is unsent is looked at; where that wants other links, all is dark for %v. Models are divided by hand, as study topology does, and no traffic is hidden by compute.", c.Period, c.Dark)
	out.note("Passed on: pairs without a link go over others by fewest hops, all advance alike, as the fullest link lets them. Direct: they wait for the next look. AllReduce is a ring through its group as it is; ratio: the better of both.")
	return out, nil
}

// Charts draws the iterations.
func (r *ReconfigResult) Charts() []Chart {
	c := Chart{Title: "Time of an iteration", YLabel: "ms, mean", YLog: true}
	for _, j := range r.Jobs {
		c.bar(j.Model, "one topology", j.OneMS)
		c.bar(j.Model, "reconfig, passed on", j.ForwardMS)
		c.bar(j.Model, "reconfig, direct", j.DirectMS)
		c.bar(j.Model, "Ideal", j.IdealMS)
	}
	return []Chart{c}
}

// onRings is what AllReduce sends on a ring through each group as it is.
func onRings(groups []topo.Group) (out []topo.Demand) {
	for _, g := range groups {
		for i, s := range g.Servers {
			out = append(out, topo.Demand{From: s, To: g.Servers[(i+1)%len(g.Servers)], Bytes: g.Bytes / int64(len(g.Servers))})
		}
	}
	return out
}

// reconfigRun is a job over time, in nanoseconds.
type reconfigRun struct {
	c       ReconfigConfig
	forward bool
	now     int64
	next    int64 // look at what is unsent
	links   []topo.Link
	changes int
}

// send lets time pass until everything is sent.
func (r *reconfigRun) send(demands []topo.Demand) {
	unsent := slices.DeleteFunc(slices.Clone(demands), func(d topo.Demand) bool { return d.Bytes <= 0 })
	period := int64(r.c.Period)
	if r.next < r.now { // looks that nobody had anything to say at
		r.next = (r.now + period - 1) / period * period
	}
	for len(unsent) > 0 {
		if r.now == r.next {
			r.look(unsent)
		}
		if r.forward {
			r.passOn(unsent)
		} else {
			r.direct(unsent)
		}
		unsent = slices.DeleteFunc(unsent, func(d topo.Demand) bool { return d.Bytes <= 0 })
	}
}

// look makes the links that what is unsent wants, and is dark for it.
func (r *reconfigRun) look(unsent []topo.Demand) {
	r.next += int64(r.c.Period)
	if links := topo.Reconfigure(r.c.Servers, r.c.Degree, unsent); !slices.Equal(links, r.links) {
		r.links = links
		r.changes++
		r.now += int64(r.c.Dark)
	}
}

func (r *reconfigRun) nanos(bytes int64) int64 { return nanosAt(r.c.Gbps, bytes) }

// nanosAt is how long an interface takes for some bytes.
func nanosAt(gbps int, bytes int64) int64 { return (8*bytes + int64(gbps) - 1) / int64(gbps) }

// passOn sends until all is sent or the next look: all pairs advance alike, as
// the fullest link allows, which is how the time of one topology is counted.
func (r *reconfigRun) passOn(unsent []topo.Demand) {
	fullest := topo.Forward(r.c.Servers, r.links, unsent)
	if fullest < 0 {
		r.now = r.next // no links yet, or not to everybody
		return
	}
	whole, left := r.nanos(fullest), r.next-r.now
	if whole <= left {
		r.now += whole
		for i := range unsent {
			unsent[i].Bytes = 0
		}
		return
	}
	for i := range unsent {
		d := &unsent[i]
		d.Bytes -= min(d.Bytes, max(1, int64(float64(d.Bytes)*float64(left)/float64(whole))))
	}
	r.now = r.next
}

// direct sends what has links of its own; the rest waits for the next look.
func (r *reconfigRun) direct(unsent []topo.Demand) {
	wide := map[[2]int]int64{}
	for _, l := range r.links {
		wide[[2]int{l.A, l.B}] = int64(l.Count)
	}
	left, longest, waits := r.next-r.now, int64(0), false
	for i := range unsent {
		d := &unsent[i]
		n := wide[[2]int{d.From, d.To}]
		took := int64(-1)
		if n > 0 {
			took = r.nanos((d.Bytes + n - 1) / n)
		}
		if took >= 0 && took <= left {
			d.Bytes, longest = 0, max(longest, took)
			continue
		}
		waits = true
		if n > 0 {
			d.Bytes -= min(d.Bytes, left*int64(r.c.Gbps)/8*n)
		}
	}
	if r.now += longest; waits {
		r.now = r.next
	}
}

// Table is a row a model.
func (r *ReconfigResult) Table() Table { return tableOf(r.Jobs) }
