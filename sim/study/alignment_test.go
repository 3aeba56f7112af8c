package study

import "testing"

// Over months of faults rings that go along meet far oftener than those that were only
// placed so, and these oftener than blind ones; the price is rings moved, and not GPUs.
func TestAlignmentIsKept(t *testing.T) {
	cfg := DefaultAlignment()
	cfg.ClusterConfig = ClusterConfig{Size: Size{Nodes: 480, GPUsPerNode: 4, Ring: true, TPs: []int{32}}, Runs: 1, Layout: Layout{Seed: 3}}
	res, err := Alignments(cfg)
	if err != nil {
		t.Fatal(err)
	}
	mean := map[Alignment]AlignmentRow{}
	for _, row := range res.Rows {
		if row.Day < 0 {
			mean[row.Align] = row
		}
	}
	blind, first, kept := mean[Blind], mean[First], mean[Kept]
	if !(2*kept.M < first.M && first.M < blind.M) || blind.M == 0 {
		t.Errorf("flows between ToRs: kept %.3f, first %.3f, blind %.3f", kept.M, first.M, blind.M)
	}
	if blind.Along+first.Along != 0 || kept.Along == 0 || kept.Moved < kept.Along {
		t.Errorf("moved for ToRs: %d, %d, %d of %d", blind.Along, first.Along, kept.Along, kept.Moved)
	}
	if kept.Rings < first.Rings-1 {
		t.Errorf("whole rings: %d kept, %d first", kept.Rings, first.Rings)
	}
	if days := int(res.Days + 0.999); len(res.Rows) != 3*(days+1) {
		t.Errorf("%d rows of %v days", len(res.Rows), res.Days)
	}
	for _, spoil := range []func(c *AlignmentConfig){func(c *AlignmentConfig) { c.K = 5 }, func(c *AlignmentConfig) { c.Racks = nil }, func(c *AlignmentConfig) { c.Racks = []int{49} },
		func(c *AlignmentConfig) { c.Domain = 0 }, func(c *AlignmentConfig) { c.Scale = 1.1 }, func(c *AlignmentConfig) { c.Runs = 2 }} {
		bad := cfg
		spoil(&bad)
		if _, err := Alignments(bad); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}
