package sched

import (
	"errors"
	"slices"
	"testing"

	"ringlight/planner/wiring"
)

// Two pods of one leaf: the pipelines want a link for each replica and rail,
// the replicas' ring fits beside them in time.
// Method: the arrangement of Fig. 5's kind, counted by hand.
// Reference: [LUMOS] A.6, A.12
func TestNeedOfTwoPods(t *testing.T) {
	// Rows are stages: one row split, four columns that cross once each.
	leafOf := [][]int{{0, 0, 0, 0}, {0, 0, 1, 1}, {1, 1, 1, 1}}
	wants, err := needOf(Ring, [][][]int{leafOf}, []int32{0, 1}, 8)
	if err != nil {
		t.Fatal(err)
	}
	if want := []Want{{0, 1, 8, 4 * 8}}; !slices.Equal(wants, want) {
		t.Errorf("%v, want %v", wants, want)
	}
	same, err := needOf(Ring, [][][]int{leafOf}, []int32{0, 0}, 8)
	if err != nil || len(same) != 0 {
		t.Errorf("within one pod: %v, %v", same, err)
	}
}

// A ring through leaves goes out and back: a pair of pods wants one flow each
// way, and a ring's wrap crosses no further pod.
// Method: rings through pods of two members and more.
// Reference: [LUMOS] A.5.1, A.12
func TestNeedOfRings(t *testing.T) {
	podOf := []int32{0, 0, 1, 1, 2, 2}
	wants, err := needOf(Ring, [][][]int{{{0, 1, 2, 3, 4, 5}}}, podOf, 1)
	if err != nil {
		t.Fatal(err)
	}
	want := []Want{{0, 2, 1, 0}, {1, 3, 1, 0}, {2, 4, 1, 0}, {3, 5, 1, 0}}
	if !slices.Equal(wants, want) {
		t.Errorf("%v, want %v", wants, want)
	}
	for _, bad := range [][][]int{{{0, 9}}, {{0, -1}}, {{0}, {0, 1}}, {{}}} {
		if _, err := needOf(Ring, [][][]int{bad}, podOf, 1); err == nil {
			t.Errorf("%v was accepted", bad)
		}
	}
	if _, err := needOf(Ring, [][][]int{{{0}}}, podOf, 0); err == nil {
		t.Error("no rails were accepted")
	}
}

// What fits is granted in full; what does not is cut until no leaf is over,
// pipelines before replicas, and never below one link a pair. Refused is only
// what even one link a pair does not fit.
// Method: thousands of random wants.
// Reference: [LUMOS] A.12, steps 1 and 2
func TestFitShares(t *testing.T) {
	r := lcg(3)
	full, shared, refused := 0, 0, 0
	for range 3000 {
		used := make([]int, 2+r.below(6))
		ports := 2 + r.below(12)
		for a := range used {
			used[a] = r.below(ports)
		}
		var wants []Want
		for a := range used {
			for b := a + 1; b < len(used); b++ {
				if r.below(2) == 0 {
					wants = append(wants, Want{a, b, r.below(6), 1 + r.below(6)})
				}
			}
		}
		all, least, pairs := slices.Clone(used), slices.Clone(used), make([]int, len(used))
		for _, w := range wants {
			for _, a := range []int{w.A, w.B} {
				all[a] += w.Links()
				least[a]++
				pairs[a]++
			}
		}
		got, err := Fit(wants, used, ports)
		impossible := false
		for a := range used {
			impossible = impossible || pairs[a] > 0 && least[a] > ports
		}
		if errors.Is(err, ErrNoRoom) {
			refused++
			if !impossible {
				t.Fatalf("%v, used %v of %d: refused", wants, used, ports)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		load, cut := slices.Clone(used), false
		for n, w := range wants {
			if got[n] < 1 || got[n] > w.Links() {
				t.Fatalf("%+v gets %d", w, got[n])
			}
			cut = cut || got[n] < w.Links()
			load[w.A] += got[n]
			load[w.B] += got[n]
		}
		if slices.Max(load) > ports {
			t.Fatalf("%v, used %v of %d: load %v", wants, used, ports, load)
		}
		if fits := slices.Max(all) <= ports; fits == cut {
			t.Fatalf("%v, used %v of %d: fits %v, cut %v", wants, used, ports, fits, cut)
		}
		if cut {
			shared++
		} else {
			full++
		}
	}
	if full < 100 || shared < 100 || refused < 100 {
		t.Errorf("%d full, %d shared, %d refused: the test shows little", full, shared, refused)
	}
	got, err := Fit([]Want{{0, 1, 2, 6}, {0, 2, 4, 4}}, []int{0, 0, 0}, 7)
	if err != nil || !slices.Equal(got, []int{3, 4}) {
		t.Errorf("pipelines and replicas on one leaf: %v, %v; want pipelines to share", got, err)
	}
	for _, bad := range []Want{{0, 0, 1, 1}, {0, 9, 1, 1}, {-1, 0, 1, 1}, {0, 1, 0, 0}, {0, 1, -1, 2}} {
		if _, err := Fit([]Want{bad}, []int{0, 0}, 8); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
}

// What cannot be placed at all is refused by field.
// Method: a table.
func TestBadJobsAreRefused(t *testing.T) {
	good := Cluster{GPUsPerServer: 8, Idle: [][]int{{4}}}
	for name, c := range map[string]struct { // any order: each is judged by itself
		cluster Cluster
		job     Job
		field   string
	}{
		"no tp":       {good, Job{0, 1, 1, 1, Ring}, "tp"},
		"no ep":       {good, Job{1, 0, 1, 1, Ring}, "ep"},
		"no pp":       {good, Job{1, 1, 0, 1, Ring}, "pp"},
		"no dp":       {good, Job{1, 1, 1, 0, Ring}, "dp"},
		"too large":   {good, Job{1 << 10, 1, 1 << 10, 2, Ring}, "dp"},
		"no such":     {good, Job{1, 1, 1, 1, collectives}, "collective"},
		"no gpus":     {Cluster{0, nil}, Job{1, 1, 1, 1, Ring}, "gpus_per_server"},
		"below none":  {Cluster{8, [][]int{{1, -1}}}, Job{1, 1, 1, 1, Ring}, "idle[0][1]"},
		"beyond most": {Cluster{8, [][]int{{maxServers, 1}}}, Job{1, 1, 1, 1, Ring}, "idle[0][1]"},
	} {
		_, err := Place(c.cluster, c.job)
		var e *wiring.Error
		if !errors.As(err, &e) || e.Field != c.field {
			t.Errorf("%s: %v, want field %s", name, err, c.field)
		}
	}
	for name, err := range map[string]error{ // any order: each is judged by itself
		"ring":          second(ringRanks(0, 2)),
		"hierarchical":  second(HierarchicalRing(1, 0)),
		"arrange":       second(arrange([]int{1}, 1, 2)),
		"arrange none":  second(arrange([]int{1}, 0, 2)),
		"arrange below": second(arrange([]int{-1, 3}, 1, 2)),
	} {
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func second[T any](_ T, err error) error { return err }
