package study

import (
	"syscall"
	"testing"
	"time"

	"ringlight/sim/trace"
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

// Goal: a lost node costs what the configuration says and no more: its job the
// reload, or the repair without bypass and spares; the other jobs nothing; a
// lost spare darkens its ring for the time of a bypass.
// Method: one fault of ten hours in 30 days, on a node of a job and on a
// spare, against the iterations that the lost time is worth.
func TestFaultsCostWhatTheyMay(t *testing.T) {
	c := FaultsConfig{Days: 30, Spares: 1, Bypass: 12 * time.Millisecond, Reload: time.Hour}
	const members = faultRings * ringNodes
	gpu := trace.Fault{Level: "Hardware Failure", Class: "GPU"}
	lose := func(node, nodes int) *trace.Trace { // which server a node is, is drawn
		for server := range nodes {
			tr := &trace.Trace{Servers: nodes, Span: 30 * 24 * time.Hour, Events: []trace.Event{
				{At: time.Hour, Server: server, Start: true, Fault: gpu}, {At: 11 * time.Hour, Server: server, Fault: gpu}}}
			if e := tr.Nodes(nodes, 1, tr.Span); len(e) == 2 && e[0].Node == node {
				return tr
			}
		}
		t.Fatalf("no server is node %d", node)
		return nil
	}
	for _, k := range []struct {
		name         string
		node         int
		bypass       bool
		spares       int
		wait, reload int64 // hours
		dark         int64
	}{
		{"member, bypass", 3, true, 1, 0, 1, 0},
		{"member, bypass, no spare", 3, true, 0, 10, 1, 0},
		{"member, none", 3, false, 1, 10, 1, 0},
		{"spare, bypass", members, true, 1, 0, 0, 12000},
		{"spare, none", members, false, 1, 10, 1, 0},
	} {
		c.Spares, c.Trace = k.spares, lose(k.node, members+k.spares)
		got, err := c.play(1, k.bypass)
		if err != nil {
			t.Fatal(err)
		}
		period := c.Days * 24 * 3600 * int(time.Second) / int(got.Ideal/int64(got.Jobs))
		lost := int(got.Ideal - got.Iterations)
		want := int(k.wait+k.reload) * 3600 * int(time.Second) / period
		if got.WaitS != k.wait*3600 || got.ReloadS != k.reload*3600 || got.DarkUS != k.dark || lost < want || lost > want+2 {
			t.Errorf("%s: %+v, lost %d iterations, want %d", k.name, *got, lost, want)
		}
	}
}
