package live

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/sim/fleet"
)

// Goal: several seeds at once are the same runs as each alone, and their hash
// is that over the hashes in the order of the seeds.
// Method: three seeds together, then one after the other.
func TestSeedsTogetherAreTheSameRuns(t *testing.T) {
	cfg := FleetConfig{
		Params:  fabric.Params{Name: "f1", Nodes: 16, GPUsPerNode: 4, K: 3, TP: 32, Topology: fabric.Line},
		Modules: 1, Seed: 5, Runs: 3, Span: 10 * time.Minute, Health: time.Minute, FaultRate: 100, Catalogue: 1,
		Rates:  fleet.Rates{Loss: 1000, Repeat: 1000, Reorder: 1000},
		Replay: func(seed uint64) string { return fmt.Sprintf("seed %d", seed) },
	}
	all, err := Fleet(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	sum, faults := sha256.New(), 0
	for seed := uint64(5); seed < 8; seed++ {
		cfg.Seed, cfg.Runs = seed, 1
		one, err := Fleet(context.Background(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		sum.Write([]byte(one.TraceSHA256))
		faults += one.Faults
	}
	if want := hex.EncodeToString(sum.Sum(nil)); all.TraceSHA256 != want || all.Runs != 3 || all.Faults != faults || faults == 0 {
		t.Errorf("together %s, %d runs, %d faults; one by one %s, %d faults", all.TraceSHA256, all.Runs, all.Faults, want, faults)
	}
}
