package procs

import (
	"testing"

	"ringlight/planner/fabric"
)

// What a soak takes away leaves rings that can be whole: no other ring moves for one,
// so a spare has to stand where fibres reach.
// Rings of 4 of 16 nodes at K 2, by hand.
func TestWhoCanBeLost(t *testing.T) {
	f, err := fabric.New(procsParams)
	if err != nil {
		t.Fatal(err)
	}
	p := &procs{}
	p.f = f
	far := []procRing{{Ring: 1, Nodes: []int{0, 1, 3, 4}}, {Ring: 2, Nodes: []int{7, 9, 10, 11}}, {Ring: 3, Nodes: []int{12, 13, 14, 15}}}
	near := []procRing{far[0], {Ring: 2, Nodes: []int{7, 8, 9, 10}}, far[2]}
	for _, c := range []struct {
		rings []procRing
		a, b  int
		want  bool
	}{
		{far, 13, 13, false}, // every spare is beyond another ring
		{near, 13, 13, true}, // 11 joins
		{far, 10, 10, true},  // 8 joins
		{far, 12, 13, false}, // 13 has no other way to join 14 and 15 to 12 but by leaving
		{near, 12, 13, true}, // 11, 12, 14, 15 or 11, 13, 14, 15
		{near, 10, 10, true}, // 6 or 8
		{near, 0, 1, true},   // 0, 2, 3, 4
		{near, 14, 15, true}, // 11, 12, 13, 14
		{far, 14, 15, false}, // 12, 13 and one of the two
	} {
		if got := p.mends(c.rings, c.a, c.b); got != c.want {
			t.Errorf("rings %v without %d-%d: mended %v, want %v", c.rings, c.a, c.b, got, c.want)
		}
	}
}
