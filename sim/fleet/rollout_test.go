package fleet

import (
	"os"
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
)

func rolled(t *testing.T, m *mutant, lines ...string) *Result {
	t.Helper()
	cfg := testConfig(t, 64, 2, 32, fabric.Line)
	cfg.Span, cfg.mutant, cfg.Faults = 4*time.Minute, m, script(t, lines...)
	return run(t, cfg)
}

// Goal: all agents become the next release and the one before again, while nodes are
// lost, the broker goes and the planner is killed in the middle of a wave: no light
// changes that no fault took, nothing is lost, and the next planner goes on.
func TestRolloutUnderFaults(t *testing.T) {
	raw, err := os.ReadFile("testdata/rollout.txt")
	if err != nil {
		t.Fatal(err)
	}
	res := rolled(t, nil, strings.Split(string(raw), "\n")...)
	clean(t, res)
	if x := res.Rollout; x == nil || x.State != "done" || x.Software != "v1" || x.Current != 64 || x.Waves < 5 {
		t.Errorf("%+v", x)
	}
}

// Goal: a release that comes back otherwise stops the roll-out at the one node, by name,
// and so does a node at which another one is installed.
// Method: agents that darken their board at their start, as if it were new: the boards'
// record is broken, and the neighbours tell; a node whose package failed.
func TestRolloutStopsAtABadRelease(t *testing.T) {
	res := rolled(t, &mutant{born: func(r *Run, st *station) {
		if st.installed == "v2" {
			darken(r, st)
		}
	}}, "5s rollout run v2")
	if x := res.Rollout; x.State != "stopped" || x.Current != 1 || x.Waves != 1 || !strings.HasPrefix(x.Reason, "node 0: ") {
		t.Errorf("%+v", x)
	}
	if res.Violations == 0 {
		t.Error("light went and no checker saw it")
	}

	res = rolled(t, nil, "5s agent install 6 v1", "6s rollout run v2")
	clean(t, res)
	if x := res.Rollout; x.State != "stopped" || x.Waves != 2 || x.Current != 10 || !strings.Contains(x.Reason, "node 6: it refused to start: hardware_failed: software: ocs-agent is v1, wanted is v2") {
		t.Errorf("%+v", x)
	}
}

// Goal: stop ends with the wave under way.
func TestRolloutEndsWithItsWave(t *testing.T) {
	res := rolled(t, nil, "5s rollout run v2", "10s rollout stop")
	clean(t, res)
	if x := res.Rollout; x.State != "stopped" || x.Waves != 2 || x.Current != 11 || x.Reason != "stopped" {
		t.Errorf("%+v", x)
	}
}
