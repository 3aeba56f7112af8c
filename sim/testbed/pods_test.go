package testbed

import (
	"os"
	"path/filepath"
	"testing"

	"ringlight/planner/fabric"
)

// Goal: light between pods that route by BGP goes and comes, and where routers drain
// their ports first no datagram is lost; nothing is left of routers afterwards.
// Method: two links of a spine and then a pair of switches, out and in, with FRR and the
// command of operators.
func TestDrainedLightLosesNothing(t *testing.T) {
	long(t)
	if err := LacksRouters(); err != nil {
		t.Skip(err)
	}
	ocsctl := commands(t)
	core := fabric.DefaultCore(2)
	core.LeavesPerPod, core.SpinesPerPod, core.SpinePorts, core.Backup = 2, 2, 4, true
	core.Drain = &fabric.Drain{WithinMillis: 30_000}
	f, err := fabric.New(fabric.Params{Name: "pods", Core: core})
	if err != nil {
		t.Fatal(err)
	}
	cfg := PodsConfig{Config: bedOf(t, 4), Ocsctl: ocsctl, Drain: true, Changes: 4, Flows: 4, Rate: 50, Parts: [][]string{{"switch0/a0", "switch2/a0"}, {"switch4"}}}
	cfg.Fabric, cfg.HTTP = f, "127.0.0.1:0"
	changes, err := Pods(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range changes {
		if c.Moved == 0 || c.Sent == 0 || c.Lost > 0 || c.In != (i%2 == 1) {
			t.Errorf("%+v", c)
		}
	}
	self, _ := ownerOf(os.Getpid())
	if _, err := os.Stat(filepath.Join(os.TempDir(), self.name("frr"))); err == nil || len(changes) != cfg.Changes {
		t.Errorf("%d changes; the folder of routers is there: %v", len(changes), err)
	}
}
