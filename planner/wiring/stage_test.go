package wiring

import (
	"slices"
	"strings"
	"testing"

	"ringlight/mzi/detmath"
)

// No stage moves more than iota of any leaf's links, every change is in one
// stage, and two are enough where two can be.
// Method: random changes and bounds.
// Reference: [LUMOS] A.8, eq. 45 and 46 as a share of links
func TestStagesKeepEveryLeafConnected(t *testing.T) {
	r := detmath.Random(1)
	refused := 0
	for range 2000 {
		links := make([]int, 1+r.Below(8))
		for a := range links {
			links[a] = 1 + r.Below(20)
		}
		changes := make([]Change, r.Below(12))
		for n := range changes {
			for a := range links {
				if m := r.Below(3); r.Below(3) == 0 && m > 0 {
					changes[n].Moved = append(changes[n].Moved, LeafLinks{a, min(m, links[a])})
				}
			}
		}
		iota := 100 + r.Below(900)
		stages, err := Stages(changes, links, iota)
		if err != nil {
			refused++
			alone := false
			for _, c := range changes {
				for _, m := range c.Moved {
					alone = alone || m.Links*1000 > links[m.Leaf]*iota
				}
			}
			if !alone {
				t.Fatalf("refused though every change is within the bound: %v", err)
			}
			continue
		}
		if moved, of := Worst(changes, links, stages); moved*1000 > of*iota {
			t.Fatalf("%d of %d links move at once, the bound is %d thousandths", moved, of, iota)
		}
		var all []int
		for _, s := range stages {
			all = append(all, s...)
		}
		slices.Sort(all)
		if len(all) != len(changes) || len(all) > 0 && (all[0] != 0 || all[len(all)-1] != len(all)-1 || len(slices.Compact(all)) != len(changes)) {
			t.Fatalf("stages %v do not hold each of %d changes once", stages, len(changes))
		}
	}
	if refused == 0 || refused == 2000 {
		t.Errorf("%d of 2000 refused: the test shows nothing", refused)
	}
	half := Change{[]LeafLinks{{0, 2}}}
	stages, err := Stages([]Change{half, half}, []int{4}, 500)
	if err != nil || len(stages) != 2 || len(stages[0]) != 1 || len(stages[1]) != 1 {
		t.Errorf("two halves at a bound of a half: %v, %v", stages, err)
	}
	if _, err := Stages([]Change{half}, []int{4}, 400); err == nil || !strings.Contains(err.Error(), "2/4") {
		t.Errorf("a change beyond the bound: %v", err)
	}
	for _, iota := range []int{0, 1001} {
		if _, err := Stages(nil, nil, iota); err == nil {
			t.Errorf("iota %d was accepted", iota)
		}
	}
}

// A switch never gets a command for a port that is taken, and ends where it
// should; circuits that stay get none.
// Method: random old and new permutations, each command applied to a switch
// that refuses conflicts.
func TestStepsNeverConflict(t *testing.T) {
	r := detmath.Random(3)
	for range 300 {
		g := randomGroup(t, &r, 2+r.Below(12), 2*(1+r.Below(6)), r.Below(2)*200, r.Below(1000))
		wanted, err := Rewire(g, 1, 1+r.Below(2000))
		if err != nil {
			t.Fatal(err)
		}
		oldOdd, wantedOdd := g.Old.Mirror(), wanted.Mirror()
		for k := range g.Old.Switches {
			apply(t, g.Old.Row(k), wanted.Row(k), Steps(g.Old.Row(k), wanted.Row(k)))
			apply(t, oldOdd.Row(k), wantedOdd.Row(k), Steps(oldOdd.Row(k), wantedOdd.Row(k)))
		}
	}
}

func apply(t *testing.T, old, want []int32, steps []Step) {
	t.Helper()
	in := slices.Clone(old)
	out := make([]bool, len(old))
	for _, j := range old {
		if j >= 0 {
			out[j] = true
		}
	}
	for _, s := range steps {
		switch {
		case s.Create && (in[s.In] >= 0 || out[s.Out]):
			t.Fatalf("%v: a port is taken", s)
		case !s.Create && in[s.In] != int32(s.Out):
			t.Fatalf("%v: there is no such circuit", s)
		case old[s.In] == want[s.In]:
			t.Fatalf("%v: this circuit was to stay", s)
		case s.Create:
			in[s.In] = int32(s.Out)
		default:
			in[s.In] = None
		}
		out[s.Out] = s.Create
	}
	if !slices.Equal(in, want) {
		t.Fatalf("ends with %v, want %v", in, want)
	}
}
