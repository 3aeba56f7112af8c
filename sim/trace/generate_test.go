package trace

import (
	"os"
	"reflect"
	"testing"
	"time"
)

const meanSeeds = 40

// Goal: the generator has the statistics of the public trace.
// Method: exact counts for every seed; time shares as the mean over seeds.
func TestGeneratorReproducesTheTrace(t *testing.T) {
	var share, p99 float64
	for seed := range uint64(meanSeeds) {
		s := measure(Generate(seed))
		if s.Faults != 584 || s.Faulty != 231 || s.MostOfOne != 14 {
			t.Errorf("seed %d: %d faults of %d servers, most of one %d; want 584, 231, 14", seed, s.Faults, s.Faulty, s.MostOfOne)
		}
		if got := days(s.MedianRepair); got < 0.80 || got > 0.90 {
			t.Errorf("seed %d: median repair %.2f days, want about 0.85", seed, got)
		}
		if got := days(s.MeanRepair); got < 5.2 || got > 5.6 {
			t.Errorf("seed %d: mean repair %.2f days, want about 5.4", seed, got)
		}
		if s.MaxBurst < 19 {
			t.Errorf("seed %d: largest burst %d, want at least 19", seed, s.MaxBurst)
		}
		for class, want := range map[string]int{"GPU": 158, "Power Supply": 26, "NIC": 30, "Parameter Plane Cable": 40, "System Crash": 1} {
			if s.Class[class] != want {
				t.Errorf("seed %d: %d faults of %s, want %d", seed, s.Class[class], class, want)
			}
		}
		if s.P99Share < 0.045 || s.P99Share > 0.125 {
			t.Errorf("seed %d: p99 share %.4f is far from 0.0775", seed, s.P99Share)
		}
		share += s.MeanShare / meanSeeds
		p99 += s.P99Share / meanSeeds
	}
	if share < 0.0220 || share > 0.0240 {
		t.Errorf("mean share of faulty servers %.4f, want about 0.023", share)
	}
	if p99 < 0.070 || p99 > 0.085 {
		t.Errorf("p99 share of faulty servers %.4f, want about 0.0775", p99)
	}
}

// Goal: the figures that the generator is built on are those of the file.
// Method: measure the public trace where it is named.
func TestPublicTraceHasTheseFigures(t *testing.T) {
	name := os.Getenv("RINGLIGHT_TRACE")
	if name == "" {
		t.Skip("RINGLIGHT_TRACE names no trace")
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	real, err := Read(f)
	if err != nil {
		t.Fatal(err)
	}
	s, g := measure(real), measure(Generate(1))
	if s.Faults != g.Faults || s.Faulty != g.Faulty || s.MostOfOne != g.MostOfOne || !reflect.DeepEqual(s.Class, g.Class) {
		t.Errorf("counts differ: file %+v, generator %+v", s, g)
	}
	if s.MeanShare < 0.0225 || s.MeanShare > 0.0235 || s.P99Share != 0.0775 {
		t.Errorf("share: mean %.4f, p99 %.4f; want 0.0230, 0.0775", s.MeanShare, s.P99Share)
	}
	if m := days(s.MedianRepair); m < 0.84 || m > 0.86 {
		t.Errorf("median repair %.3f days, want 0.85", m)
	}
	t.Logf("file      %+v\ngenerator %+v", s, g)
}

// Goal: same seed, same trace; another seed, another; and it is well formed.
// Method: compare; walk the events as a reader would.
func TestGenerateIsDeterministicAndSound(t *testing.T) {
	a := Generate(7)
	if !reflect.DeepEqual(a, Generate(7)) {
		t.Error("seed 7 gives two traces")
	}
	if reflect.DeepEqual(a, Generate(8)) {
		t.Error("seeds 7 and 8 give the same trace")
	}
	open := make([]int, a.Servers)
	overlaps := 0
	var last time.Duration
	for i, e := range a.Events {
		if e.At < last || e.At < 0 || e.At > a.Span {
			t.Fatalf("event %d at %v after %v of %v", i, e.At, last, a.Span)
		}
		last = e.At
		if !e.Start {
			open[e.Server]--
		} else if open[e.Server]++; open[e.Server] > 1 {
			overlaps++
		}
		if open[e.Server] < 0 {
			t.Fatalf("event %d: server %d ends what never started", i, e.Server)
		}
	}
	if overlaps > 4 {
		t.Errorf("%d overlapping faults, the public trace has 2", overlaps)
	}
}

func days(d time.Duration) float64 { return d.Hours() / 24 }
