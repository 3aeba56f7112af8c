package agent

import (
	"testing"
	"time"

	"ringlight/ocs"
	"ringlight/proto"
)

// Goal: report and status say what of a path in service the lock holds, and the
// planner hears of a change that has no other cause.
// Method: the first node of a ring of two, in loopback on one side and on external
// 1 on the other, with the lock always on, and off.
func TestReportSaysWhatIsHeld(t *testing.T) {
	f := startFleet(&fleet{t: t, decide: fleetDecide, health: 2 * time.Second, lock: ocs.LockConfig{Mode: ocs.LockAlways}}, 2, 1).join()
	x := f.nodes[0]
	told := func() [2]proto.Held { return [2]proto.Held{x.last.Bundles[0].Held, x.last.Bundles[1].Held} }
	f.must("a report of what is held", 10*time.Second, func() bool { return told() == [2]proto.Held{proto.HeldMZIs, proto.HeldAll} })
	s := x.host.Status(f.world.Now()).Bundles
	if s[0].Path != "loopback" || s[0].Held != "drift lock on MZIs, not on the matrix" || s[0].NotHeld != "no diode tells the lanes of the matrix apart" {
		t.Errorf("%s: %q (%s)", s[0].Path, s[0].Held, s[0].NotHeld)
	}
	if s[1].Path != "external1" || s[1].Held != "drift lock on" || s[1].NotHeld != "" {
		t.Errorf("%s: %q (%s)", s[1].Path, s[1].Held, s[1].NotHeld)
	}

	f = startFleet(&fleet{t: t, decide: fleetDecide, health: 2 * time.Second}, 2, 1).join()
	x = f.nodes[0]
	f.run(10*time.Second, nil)
	if b := x.host.Status(f.world.Now()).Bundles[0]; told() != [2]proto.Held{} || b.Held != "drift lock off" || b.NotHeld != "the lock is off" {
		t.Errorf("no lock: report %v, status %q (%s)", told(), b.Held, b.NotHeld)
	}
}
