package trace

import "testing"

// Goal: nodes are servers of a seeded shuffle; beyond 400 the trace is there
// again, shifted in time, with the same share of faulty servers.
// Method: lay a generated trace over 400 and over 1200 nodes and add up.
func TestNodesBeyondTheServersAreShiftedCopies(t *testing.T) {
	tr := Generate(3)
	down := func(n int) (total float64, ever int) {
		open := make([]int, n)
		seen := make([]bool, n)
		for _, e := range tr.Nodes(n, 3, tr.Span+1) {
			d := days(tr.Span - e.At)
			if e.Start {
				open[e.Node]++
				seen[e.Node] = true
				total += d
			} else {
				open[e.Node]--
				total -= d
			}
			if (open[e.Node] == 0) != (e.After == None) || open[e.Node] < 0 {
				t.Fatalf("node %d at %v: %d open, after %v", e.Node, e.At, open[e.Node], e.After)
			}
		}
		for _, s := range seen {
			if s {
				ever++
			}
		}
		return total, ever
	}
	one, ever := down(400)
	if ever != 231 {
		t.Errorf("%d of 400 nodes ever fail, want 231", ever)
	}
	three, ever3 := down(1200)
	if ever3 != 3*231 {
		t.Errorf("%d of 1200 nodes ever fail, want %d", ever3, 3*231)
	}
	if d := three - 3*one; d > 0.001 || d < -0.001 {
		t.Errorf("three copies are down %.4f days, one %.4f", three, one)
	}
	if a, b := tr.Nodes(64, 3, tr.Span), tr.Nodes(64, 4, tr.Span); len(a) == len(b) && a[0].Node == b[0].Node && a[0].At == b[0].At {
		t.Error("seeds 3 and 4 give the same nodes")
	}
	for _, e := range tr.Nodes(64, 3, 30*Day) {
		if e.At >= 30*Day {
			t.Errorf("event at %v in the first 30 days", e.At)
		}
	}
}

// Goal: each class of fault does to a node what the board or host shows.
// Method: a table of the classes that matter.
func TestEffectOfAClass(t *testing.T) {
	for class, want := range map[string]Effect{
		"Power Supply": NodeDark, "System Crash": NodeDark, "GPU": HostFault, "NIC": HostFault,
		"Parameter Plane Cable": HostFault, "Test": HostFault, "Unknown Error": HostFault,
	} {
		if got := (Fault{Class: class}).Effect(); got != want {
			t.Errorf("%s: %v, want %v", class, got, want)
		}
	}
}

// Goal: the worst of a node's open faults counts.
// Method: a supply fails while a GPU is out, and each ends in turn.
func TestWorstOpenFaultCounts(t *testing.T) {
	gpu, psu := Fault{"H", "GPU", "x"}, Fault{"H", "Power Supply", "y"}
	tr := &Trace{Servers: 1, Span: 5 * Day, Events: []Event{
		{Day, 0, true, gpu}, {2 * Day, 0, true, psu}, {3 * Day, 0, false, gpu}, {4 * Day, 0, false, psu},
	}}
	var got []Effect
	for _, e := range tr.Nodes(1, 1, 9*Day) {
		got = append(got, e.Before, e.After)
	}
	if want := []Effect{None, HostFault, HostFault, NodeDark, NodeDark, NodeDark, NodeDark, None}; !equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
