package agent

import (
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/proto"
)

func TestDbg(t *testing.T) {
	f := startFleet(&fleet{t: t, decide: fleetDecide, health: 20 * time.Second, make: func(m int) (hal.Board, error) { return hal.DefaultCMIS(4, 2, m, false) }}, 4, 1).join()
	x := f.nodes[1]
	f.world.SetSupply(1, false)
	f.run(10*time.Second, nil)
	f.world.SetSupply(1, true)
	opt := x.agent.optics.(*nodeOptics)
	var last string
	f.run(60*time.Second, func() bool {
		s := opt.bundles[0].optics.Status()
		line := s.Machine.String() + " " + s.Path.String() + " " + s.Target.String() + " " + s.State.String()
		if opt.bundles[0].remedy {
			line += " remedy"
		}
		if opt.manual.ops[0] != nil {
			line += " manual"
		}
		var r proto.Reported
		x.host.View().Report(&r)
		line += " node:" + r.Bundles[0].Path.String() + " " + r.Bundles[0].State.String()
		if line != last && f.world.Now() > 5*time.Second {
			t.Log(f.world.Now(), line)
		}
		last = line
		return false
	})
	for _, l := range f.trace[40:] {
		t.Log(l)
	}
}
