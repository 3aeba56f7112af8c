package study

import (
	"syscall"
	"testing"
	"time"
)

func smallFlows() FlowsConfig {
	c := DefaultFlows()
	c.Leaves, c.Spines, c.GPUsPerLeaf, c.MaxGPUs, c.Jobs, c.AllToAllJobs, c.Sets, c.Live = 8, 8, 16, 64, 20, 10, 2, 1000
	c.Patterns = FlowPatterns
	return c
}

// Goal: skipping, merging and folding change no time, whatever the pattern.
// Method: the hash over the ends of all jobs, abridged and not; fewer rates
// are solved abridged.
func TestFlowsAbridgedAsUnabridged(t *testing.T) {
	c := smallFlows()
	c.Memory = func() int64 { return 0 }
	res, err := Flows(c)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(res.Rows); i += 2 {
		short, full := res.Rows[i], res.Rows[i+1]
		if short.Hash != full.Hash || short.Flows != full.Flows || short.Rounds != full.Rounds {
			t.Errorf("%s: %+v, want %+v", short.Pattern, *short, *full)
		}
		if short.Solved > full.Solved {
			t.Errorf("%s: %d rates solved abridged, %d unabridged", short.Pattern, short.Solved, full.Solved)
		}
	}
	if len(res.Rows) != 8 || len(res.Models) != 8 || res.Memory == nil {
		t.Errorf("%d rows, %d models, memory %v", len(res.Rows), len(res.Models), res.Memory)
	}
}

// Goal: the model phases is within 2 % of rounds where rounds are alike.
// Method: the sets of the study, rings; of the other patterns the study says
// how far off it is.
func TestPhasesWithinTwoPercentOnRings(t *testing.T) {
	c := smallFlows()
	c.Patterns, c.Jobs, c.Sets, c.Live = []string{PatternRing}, 1, 25, 0
	res, err := Flows(c)
	if err != nil {
		t.Fatal(err)
	}
	if m := res.Models[0]; m.Pattern != PatternRing || m.Sharing != "phases" || m.Within2 != m.Sets {
		t.Errorf("%+v", m)
	}
}

// benchmarkFlows counts flows a second of processor time, routing apart.
func benchmarkFlows(b *testing.B, pattern string, abridged bool, jobs int) {
	c := DefaultFlows()
	c.Clock = func() time.Duration { // of the processor: others may be at work
		var use syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
			b.Fatal(err)
		}
		return time.Duration(use.Utime.Nano())
	}
	var flows int64
	var ms float64
	for range b.N {
		row, err := c.run(pattern, 0, jobs, abridged)
		if err != nil {
			b.Fatal(err)
		}
		flows += row.Flows
		ms += *row.CPUMS
	}
	b.ReportMetric(float64(flows)/ms*1000, "flows/cpu-s")
}

func BenchmarkFlowsRing(b *testing.B)               { benchmarkFlows(b, PatternRing, true, 300) }
func BenchmarkFlowsRingUnabridged(b *testing.B)     { benchmarkFlows(b, PatternRing, false, 300) }
func BenchmarkFlowsAllToAll(b *testing.B)           { benchmarkFlows(b, PatternAllToAll, true, 60) }
func BenchmarkFlowsAllToAllUnabridged(b *testing.B) { benchmarkFlows(b, PatternAllToAll, false, 60) }
