package live

import (
	"fmt"
	"slices"
	"time"

	"ringlight/proto"
)

// Verdict is an error when the run shows what must not be.
func (r *Result) Verdict() error {
	switch {
	case r.RingsOpen > 0:
		return fmt.Errorf("%s open", proto.Count(r.RingsOpen, "ring"))
	case r.EventsLost > 0:
		return fmt.Errorf("%s lost", proto.Count(int(r.EventsLost), "event"))
	case r.LinksConfirmed != r.LinksTotal:
		return fmt.Errorf("%d of %d links confirmed", r.LinksConfirmed, r.LinksTotal)
	}
	return nil
}

// Outcome of a fault.
const (
	Bypassed = "bypassed" // its neighbours found each other
	Closed   = "closed"   // its neighbours went into loopback
	Idle     = "idle"     // it carried nothing
)

// Result is what a demo run found; its JSON form is fixed.
type Result struct {
	Nodes           int           `json:"nodes"`
	GPUsPerNode     int           `json:"gpus_per_node"`
	GPUsTotal       int           `json:"gpus_total"`
	Rings           int           `json:"rings"`
	Spares          int           `json:"spares"`
	Generation      uint64        `json:"generation"`
	Term            uint64        `json:"term"`
	LinksTotal      int           `json:"links_total"`
	LinksConfirmed  int           `json:"links_confirmed"`
	Faults          []FaultResult `json:"faults"`
	EventsQueued    uint64        `json:"events_queued"`
	EventsDelivered uint64        `json:"events_delivered"`
	EventsLost      uint64        `json:"events_lost"`
	RingsOpen       int           `json:"rings_open"`
	GPUWasteRatio   float64       `json:"gpu_waste_ratio"`
	GPUWasteIdeal   float64       `json:"gpu_waste_ideal"`
	CommitMillis    int64         `json:"commit_ms"`
	Costs           string        `json:"costs,omitempty"` // where the latencies of calls come from; "": docs/board.md
}

// FaultResult is one fault and what became of it.
type FaultResult struct {
	Day          float64       `json:"day"`
	Node         proto.NodeID  `json:"node"`
	Kind         string        `json:"kind"`
	Outcome      string        `json:"outcome"`
	BypassMicros *int64        `json:"bypass_us"`
	Ledger       *LedgerMicros `json:"ledger"`
	RingClosed   bool          `json:"ring_closed"`
}

// LedgerMicros splits a bypass from the physical loss of light to the last
// side's confirmed light; the parts add up to it.
type LedgerMicros struct {
	Detect  int64 `json:"detect"`
	Holdoff int64 `json:"holdoff"`
	Decide  int64 `json:"decide"` // modelled
	Bus     int64 `json:"bus"`
	Settle  int64 `json:"settle"`
	Confirm int64 `json:"confirm"`
}

// Total is the sum of the parts.
func (l LedgerMicros) Total() int64 {
	return l.Detect + l.Holdoff + l.Decide + l.Bus + l.Settle + l.Confirm
}

// Summary counts the outcomes and gives the percentiles of the bypass times.
type Summary struct {
	Bypassed, Closed, Idle int
	P50, P99, Max          time.Duration
}

// Summary of the faults.
func (r *Result) Summary() Summary {
	var s Summary
	var times []int64
	for _, f := range r.Faults {
		switch f.Outcome {
		case Bypassed:
			s.Bypassed++
			times = append(times, *f.BypassMicros)
		case Closed:
			s.Closed++
		default:
			s.Idle++
		}
	}
	if len(times) == 0 {
		return s
	}
	slices.Sort(times)
	at := func(percent int) time.Duration {
		// The smallest time that is not exceeded by so many percent.
		i := (len(times)*percent + 99) / 100
		return time.Duration(times[max(0, i-1)]) * time.Microsecond
	}
	s.P50, s.P99, s.Max = at(50), at(99), at(100)
	return s
}
