package fleet

import (
	"testing"
	"time"

	"ringlight/planner/fabric"
)

// Goal: a node that dies while the broker is down is not held to be there for the birth that
// the broker kept, whether it is idle or a member.
// Method: both die, the broker comes back with what it had 10 s before, and the planner is
// looked at two minutes later.
func TestWhoDiesWithTheBrokerIsFound(t *testing.T) {
	cfg := testConfig(t, 20, 3, 64, fabric.Line)
	cfg.Span = 4 * time.Minute
	cfg.Rates = Rates{}
	cfg.Faults = script(t, "1m broker down", "61s node dark 18", "61s node dark 5", "65s broker up 10s")
	looked := false
	cfg.mutant = &mutant{at: 185 * time.Second, act: func(r *Run) {
		looked = true
		p := r.planners[0].host.Planner()
		if o := p.Overview(); o.Online != 18 || o.InService != 1 {
			t.Errorf("%d online, %d rings in service; want 18, 1: %v", o.Online, o.InService, p.Status().Waiting)
		}
	}}
	run(t, cfg)
	if !looked {
		t.Error("nobody looked")
	}
}
