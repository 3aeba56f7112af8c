package wiring

import (
	"errors"
	"slices"
	"testing"

	"ringlight/mzi/detmath"
)

// Backups fill idle ports and leave every circuit of a job where it is; those
// that were there stay unless a job has taken a port of theirs; no more than
// one port a switch stays idle each way, and every pair of pods has a path.
// Method: sequences of random topologies that jobs want, rewired and filled;
// the circuits compared one by one.
// Reference: [LUMOS] Fig. 10
func TestBackupsStayOutOfTheWay(t *testing.T) {
	r := detmath.Random(6)
	const pods, ports, groups = 16, 8, 6
	var want []Topology
	now := make([]Half, groups)
	for h := range now {
		want = append(want, randomTopology(&r, pods, ports, 500))
		now[h] = NewHalf(pods, ports/2)
	}
	for range 12 {
		jobs := make([]Half, groups)
		for h := range want {
			want[h] = churned(&r, want[h], 200)
			var err error
			if jobs[h], err = Rewire(Group{want[h], now[h]}, 1, 2000); err != nil {
				t.Fatal(err)
			}
		}
		full, err := FillIdle(jobs, now)
		if err != nil {
			t.Fatal(err)
		}
		mesh := make([]int, pods*pods)
		for h := range full {
			if err := full[h].checkPermutations("even"); err != nil {
				t.Fatal(err)
			}
			for k := range full[h].Switches {
				checkFilled(t, jobs[h].Row(k), now[h].Row(k), full[h].Row(k))
			}
			for _, l := range full[h].Links() {
				mesh[int(l.I)*pods+int(l.J)] += int(l.Count)
			}
		}
		joined := 0
		for i := range pods {
			for j := i + 1; j < pods; j++ {
				if mesh[i*pods+j] > 0 {
					joined++
				}
			}
		}
		if joined < pods*(pods-1)/2*8/10 {
			t.Errorf("%d of %d pairs of pods have a link", joined, pods*(pods-1)/2)
		}
		now = full
	}
	var e *Error
	if _, err := FillIdle(now, now[:2]); !errors.As(err, &e) || e.Field != "groups" {
		t.Errorf("groups missing: %v", err)
	}
	if _, err := FillIdle([]Half{NewHalf(2, 1)}, []Half{NewHalf(3, 1)}); !errors.As(err, &e) || e.Field != "groups" {
		t.Errorf("other pods: %v", err)
	}
}

// checkFilled judges one switch: what jobs want, what was there, what is.
func checkFilled(t *testing.T, jobs, was, is []int32) {
	t.Helper()
	idle := 0
	for i, j := range is {
		switch {
		case jobs[i] >= 0 && j != jobs[i]:
			t.Fatalf("a job's circuit from %d to %d leads to %d", i, jobs[i], j)
		case int(j) == i && jobs[i] != j:
			t.Fatalf("a backup from pod %d to itself", i)
		case j < 0:
			idle++
		}
		// A circuit that was there goes only for a port that a job has.
		if was[i] >= 0 && j != was[i] && jobs[i] < 0 && !slices.Contains(jobs, was[i]) {
			t.Fatalf("a backup from %d to %d moved for nothing", i, was[i])
		}
	}
	if idle > 1 {
		t.Fatalf("%d ports idle", idle)
	}
}
