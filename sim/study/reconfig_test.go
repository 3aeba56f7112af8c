package study

import (
	"errors"
	"testing"
	"time"

	"ringlight/planner/model"
	"ringlight/planner/topo"
	"ringlight/proto"
)

// Goal: links follow traffic at a look, dark for as long as they are made; what
// has none is passed on or waits. Method: rings of four servers with one
// interface, 8 ms a link, by hand: made at once (10 ms dark), used again, then
// the other way round, which is three hops (24 ms) or waits for the look at 50 ms.
func TestLinksFollowTraffic(t *testing.T) {
	ring := func(step int) (out []topo.Demand) {
		for s := range 4 {
			out = append(out, topo.Demand{From: s, To: (s + step) % 4, Bytes: 100_000_000})
		}
		return out
	}
	for forward, want := range map[bool][3]time.Duration{true: {18, 26, 50}, false: {18, 26, 68}} { // any order: each by itself
		r := &reconfigRun{c: ReconfigConfig{Servers: 4, Degree: 1, Gbps: 100, Period: 50 * time.Millisecond, Dark: 10 * time.Millisecond}, forward: forward}
		for n, step := range []int{1, 1, 3} {
			r.send(ring(step))
			if got := time.Duration(r.now); got != want[n]*time.Millisecond {
				t.Errorf("passed on %v: ring %d is sent at %v, want %v ms", forward, n, got, want[n])
			}
		}
	}
}

// A job that only reduces keeps its links, and one that sends much else is
// slower than on one topology found for it. Reference: [TOPO] sec 5.3
func TestOneTopologyBeatsReconfiguration(t *testing.T) {
	c := DefaultReconfig()
	c.Servers, c.Iterations = 16, 10
	c.Models = []*model.Model{model.Named("vgg"), model.Named("dlrm")}
	r, err := Reconfig(c)
	if err != nil {
		t.Fatal(err)
	}
	if v := r.Jobs[0]; v.Changes > 0.2 || v.Gain < 1 || v.Gain > 1.05 {
		t.Errorf("%+v", v)
	}
	if d := r.Jobs[1]; d.Gain < 1.1 || d.OneMS < d.IdealMS {
		t.Errorf("%+v", d)
	}
}

func TestReconfigConfigIsChecked(t *testing.T) {
	for field, change := range map[string]func(*ReconfigConfig){ // any order: each by itself
		"servers":    func(c *ReconfigConfig) { c.Servers = 1 },
		"degree":     func(c *ReconfigConfig) { c.Degree = 5 },
		"gbps":       func(c *ReconfigConfig) { c.Gbps = 0 },
		"iterations": func(c *ReconfigConfig) { c.Iterations = 0 },
		"period":     func(c *ReconfigConfig) { c.Period = 0 },
		"dark":       func(c *ReconfigConfig) { c.Dark = c.Period },
	} {
		c := DefaultReconfig()
		change(&c)
		var wrong *proto.Error
		if _, err := Reconfig(c); !errors.As(err, &wrong) || wrong.Field != field || wrong.Limit == "" {
			t.Errorf("%s: %v", field, err)
		}
	}
}
