package live

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"ringlight/proto"
)

// Goal: the JSON has exactly the promised fields.
// Method: encode a result and list its keys.
func TestResultHasThePromisedFields(t *testing.T) {
	micros := int64(400)
	r := Result{Faults: []FaultResult{{Outcome: Bypassed, BypassMicros: &micros, Ledger: &LedgerMicros{}}, {Outcome: Closed}}}
	raw, err := json.Marshal(&r)
	if err != nil {
		t.Fatal(err)
	}
	var top struct {
		Faults []map[string]json.RawMessage
	}
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &top); err != nil {
		t.Fatal(err)
	}
	check := func(name string, m map[string]json.RawMessage, want ...string) {
		var got []string
		for k := range m {
			got = append(got, k)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s has %v, want %v", name, got, want)
		}
	}
	check("result", all, "nodes", "gpus_per_node", "gpus_total", "rings", "spares", "generation", "term", "links_total",
		"links_confirmed", "faults", "events_queued", "events_delivered", "events_lost", "rings_open", "gpu_waste_ratio",
		"gpu_waste_ideal", "commit_ms")
	check("fault", top.Faults[0], "day", "node", "kind", "outcome", "bypass_us", "ledger", "ring_closed")
	ledger := map[string]json.RawMessage{}
	if err := json.Unmarshal(top.Faults[0]["ledger"], &ledger); err != nil {
		t.Fatal(err)
	}
	check("ledger", ledger, "detect", "holdoff", "decide", "bus", "settle", "confirm")
	if s := string(top.Faults[1]["bypass_us"]); s != "null" {
		t.Errorf("a closed fault has bypass_us %s, want null", s)
	}
}

// Goal: percentiles are of times that were there.
// Method: 100 bypasses of 1 to 100 us among other outcomes.
func TestSummaryTakesPercentilesOfBypasses(t *testing.T) {
	r := Result{Faults: []FaultResult{{Outcome: Closed}, {Outcome: Idle}}}
	for i := range int64(100) {
		us := 100 - i
		r.Faults = append(r.Faults, FaultResult{Outcome: Bypassed, BypassMicros: &us})
	}
	want := Summary{Bypassed: 100, Closed: 1, Idle: 1, P50: 50 * time.Microsecond, P99: 99 * time.Microsecond, Max: 100 * time.Microsecond}
	if got := r.Summary(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Goal: a run that shows what must not be fails.
// Method: each of the three, alone.
func TestVerdict(t *testing.T) {
	for _, r := range []Result{{RingsOpen: 1}, {EventsLost: 1}, {LinksTotal: 2, LinksConfirmed: 1}} {
		if r.Verdict() == nil {
			t.Errorf("%+v passes", r)
		}
	}
	if err := (&Result{}).Verdict(); err != nil {
		t.Error(err)
	}
}

// Goal: what the planner did between two quiet moments is told once each.
// Method: a ring that swaps a member, one formed, one dissolved, one untouched.
func TestChangesTellWhatHappened(t *testing.T) {
	ring := func(id proto.RingID, gen proto.Generation, nodes ...proto.NodeID) proto.RingStatus {
		return proto.RingStatus{Ring: id, Generation: gen, Nodes: nodes}
	}
	was := &view{rings: []proto.RingStatus{ring(1, 1, 0, 1), ring(2, 1, 3, 4), ring(3, 1, 6, 7)}}
	now := &view{rings: []proto.RingStatus{ring(1, 1, 0, 1), ring(2, 2, 3, 5), ring(4, 2, 8, 9)}}
	now.overview.Generation, now.overview.Degraded = 2, 1
	want := "generation 2: node 5 joins ring 2, node 4 leaves ring 2, ring 4 formed, ring 3 dissolved, 3 rings touched, 1 degraded, in service after 44 ms"
	if got := changes(was, now, 44*time.Millisecond); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
