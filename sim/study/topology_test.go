package study

import (
	"errors"
	"math"
	"strings"
	"testing"

	"ringlight/planner/model"
	"ringlight/proto"
)

// Goal: OCSes cost 1.33 times patch panels, an Ideal switch 3.2 times direct
// links, each within 2 %, and a Fat-tree of equal cost has 136 Gb/s a host.
// Method: prices of Table 2 for degree 4 at 100 Gb/s and 8 at 200.
// Reference: [TOPO] sec 5.2, Table 2.
func TestCostOfDirectLinks(t *testing.T) {
	near := func(what string, got, want float64) {
		if math.Abs(got-want) > 0.02*want {
			t.Errorf("%s: %.3f, want %.2f", what, got, want)
		}
	}
	a, b := float64(directCost(4, 100, false)), float64(directCost(8, 200, false))
	ocsA, ocsB := float64(directCost(4, 100, true))/a, float64(directCost(8, 200, true))/b
	idealA, idealB := float64(idealCost(4, 100))/a, float64(idealCost(8, 200))/b
	near("OCS at 100", ocsA, 1.363)
	near("OCS at 200", ocsB, 1.301)
	near("OCS", (ocsA+ocsB)/2, 1.33)
	near("Ideal at 100", idealA, 2.64)
	near("Ideal at 200", idealB, 3.68)
	near("Ideal", (idealA+idealB)/2, 3.2)
	near("Fat-tree", float64(fatTreeMbps(directCost(4, 100, false))), 136_000)
}

// Goal: CANDLE, whose iteration is AllReduce, is 2.8 times as fast as on a
// Fat-tree of equal cost, within 5 %, and as fast as on an Ideal switch.
// Method: 128 servers of degree 4 at 100 Gb/s, data parallel.
// Reference: [TOPO] sec 5.3, Fig. 11a.
func TestCandleGainsWhatThePaperSays(t *testing.T) {
	c := DefaultTopology()
	c.Gbps = []int{100}
	jobs, err := c.job(model.Named("candle"), 4)
	if err != nil {
		t.Fatal(err)
	}
	if j := jobs[0]; math.Abs(j.Gain-2.8) > 0.05*2.8 || j.OverIdeal > 1.01 {
		t.Errorf("gain %.2f, over Ideal %.2f", j.Gain, j.OverIdeal)
	}
}

// Goal: all-to-all beside AllReduce slows regular rings of degree 4 below the
// Fat-tree's speed at 80 %, by 1.1, when the network alone counts.
// Method: eq. 1 without compute, with the slowdown that the routes have.
// Reference: [TOPO] sec 5.4, Fig. 12a.
func TestAllToAllTurnsTheTable(t *testing.T) {
	c := DefaultTopology()
	h, err := c.hops(4, "totient")
	if err != nil {
		t.Fatal(err)
	}
	// Which other rings the paper's 5.7 hops could be of: none with two jumps.
	for p := 3; p < 64; p += 2 {
		if got := regularHops(128, 1, p); got > 5.65 && got < 5.75 {
			t.Errorf("jumps 1 and %d give %.2f hops", p, got)
		}
	}
	if got := regularHops(128, 1, 11); math.Abs(got-h.Mean) > 1e-9 {
		t.Errorf("%v hops by jumps, %v over the links", got, h.Mean)
	}
	fat := 1.8 * 400e3 / float64(fatTreeMbps(directCost(4, 100, false)))
	if got := (1 + 0.8*h.Slowdown) / fat; math.Abs(got-1.1) > 0.02*1.1 {
		t.Errorf("direct / Fat-tree %.3f, want 1.1", got)
	}
}

// Goal: on shared Fat-trees jobs are never faster than alone there, and direct
// links never faster than Ideal.
// Method: one draw of each load.
func TestSharedClusterIsNeverFasterThanAlone(t *testing.T) {
	c := DefaultTopology()
	c.Shared = 1
	rows, err := c.shared(func() {})
	if err != nil || len(rows) != len(sharedJobs)*len(sharedNetworks) {
		t.Fatal(len(rows), err)
	}
	r := &TopologyResult{Shared: rows}
	r.describe(c)
	if len(r.Comparison) != 7 || len(r.Charts()) != 1 {
		t.Errorf("%d comparisons, %d charts", len(r.Comparison), len(r.Charts()))
	}
	by := map[string]*TopologyShared{}
	for _, r := range rows {
		by[r.Network] = r
		if len(by) == len(sharedNetworks) {
			// Rings of rounds round up, so a thousandth is no gain.
			if by[NetFatTree].MeanMS < 0.999*by[NetApart].MeanMS || by[NetDirect].MeanMS < by[NetIdeal].MeanMS || by[NetOversub].MeanMS < 0.999*by[NetIdeal].MeanMS {
				t.Errorf("%d jobs: %+v", r.Jobs, by)
			}
			clear(by)
		}
	}
}

// Goal: what cannot be run is refused by field and limit.
// Method: one defect each.
func TestTopologyConfigIsChecked(t *testing.T) {
	for field, spoil := range map[string]func(*TopologyConfig){ // any order
		"servers": func(c *TopologyConfig) { c.Servers = 3 }, "degree": func(c *TopologyConfig) { c.Degrees = []int{3} },
		"gbps": func(c *TopologyConfig) { c.Gbps = []int{50} }, "batch": func(c *TopologyConfig) { c.Batches = []int{0} },
		"shared": func(c *TopologyConfig) { c.Shared = -1 }, "gpus": func(c *TopologyConfig) { c.GPUsPerServer = 0 },
	} {
		c := DefaultTopology()
		spoil(&c)
		var refused *proto.Error
		if _, err := Topology(c); !errors.As(err, &refused) || refused.Field != field || strings.TrimSpace(refused.Limit) == "" {
			t.Errorf("%s: %v", field, err)
		}
	}
}
