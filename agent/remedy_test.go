package agent

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ringlight/ocs"
	"ringlight/proto"
	"ringlight/sim"
)

func TestMendedOpticsAskToBeLetIn(t *testing.T) {
	// Goal: a node whose own lasers fail isolates itself, tries them again while
	// it is alone, and is in service again once they shine, without anyone's word.
	// Method: all lasers of one module die, and are mended after the first try.
	f := ringed(t, 4, 1)
	x := f.nodes[1]
	for lane := range 8 {
		if err := f.world.Inject(1, sim.Fault{Kind: sim.LaserDead, Bundle: 1, Module: 0, Index: lane}); err != nil {
			t.Fatal(err)
		}
	}
	f.must("isolated", 5*time.Second, func() bool { return x.host.View().Mode() == proto.ModeIsolated })
	tries := func(resolved bool) (n int) {
		for _, e := range x.events {
			if e.Kind == proto.EvRemedy && e.Resolved == resolved {
				n++
			}
		}
		return n
	}
	f.must("second try", 10*time.Second, func() bool { return tries(false) == 2 })
	if x.host.View().Mode() != proto.ModeIsolated || tries(true) != 0 {
		t.Errorf("mode %v, %d remedies with dead lasers", x.host.View().Mode(), tries(true))
	}
	for lane := range 8 {
		if err := f.world.Repair(1, sim.Fault{Kind: sim.LaserDead, Bundle: 1, Module: 0, Index: lane}); err != nil {
			t.Fatal(err)
		}
	}
	f.must("back in service", 10*time.Minute, func() bool { return x.host.View().Mode() == proto.ModeService })
	f.run(time.Second, nil)
	if tries(true) != 1 || tries(false) > 5 {
		t.Errorf("%d tries, %d helped", tries(false), tries(true))
	}
}

func TestOverTemperatureIsolates(t *testing.T) {
	// Goal: a node with a module that gets too warm leaves its ring with its
	// light still good, stays out while it is warm, and comes back by itself,
	// however many tries were of no use before.
	// Method: a blocked draught for three minutes; health rounds each second.
	f := ringed(t, 4, 1)
	x := f.nodes[1]
	h := &x.agent.optics.(*nodeOptics).health
	h.period, h.next = time.Second, f.world.Now()+time.Second
	hot := sim.Fault{Kind: sim.ModuleHot, Bundle: 1, Module: 0}
	if err := f.world.Inject(1, hot); err != nil {
		t.Fatal(err)
	}
	mode := func() proto.Mode { return x.host.View().Mode() }
	f.must("isolated", 5*time.Second, func() bool { return mode() == proto.ModeIsolated })
	f.run(3*time.Minute, func() bool { return mode() == proto.ModeService })
	if mode() != proto.ModeIsolated {
		t.Errorf("mode %v while a module is too warm", mode())
	}
	if got := x.alarms(); !strings.Contains(got, "case at") || !strings.Contains(got, "that is read again") {
		t.Errorf("while a module is too warm: %q", got)
	}
	if err := f.world.Repair(1, hot); err != nil {
		t.Fatal(err)
	}
	f.must("back in service", 10*time.Minute, func() bool { return mode() == proto.ModeService })
	said := false
	for _, e := range x.events {
		said = said || e.Kind == proto.EvPathFailed && strings.Contains(e.Text, "case at")
	}
	if !said {
		t.Error("no event says that a case was too warm")
	}
}

func TestBrownOutIsToldAndMended(t *testing.T) {
	// Goal: where a dip of a module's supply has put its heaters to rest, while its lasers
	// go on and its lines say that light is there, the node says so within a round of
	// health, and is back in service with all of its own light, by itself.
	// Method: each bundle of each node of a ring, in loopback and on fibres.
	for _, at := range [][2]int{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 1}, {3, 1}} {
		f := startFleet(&fleet{t: t, decide: fleetDecide, health: 10 * time.Second, lock: ocs.LockConfig{Mode: ocs.LockOnDrift}}, 4, 1).join()
		x := f.nodes[at[0]]
		mode := func() proto.Mode { return x.host.View().Mode() }
		if err := f.world.Inject(sim.BoardID(at[0]), sim.Fault{Kind: sim.BrownOut, Bundle: at[1]}); err != nil {
			t.Fatal(err)
		}
		f.must(fmt.Sprintf("%v: isolated", at), 11*time.Second, func() bool { return mode() == proto.ModeIsolated })
		f.must(fmt.Sprintf("%v: back in service", at), 10*time.Second, func() bool { return mode() == proto.ModeService })
		f.run(11*time.Second, nil)
		if own := x.agent.optics.(*nodeOptics).bundles[at[1]]; mode() != proto.ModeService || !own.ready {
			t.Errorf("%v: %v after another round of health", at, mode())
		}
	}
}

func TestOperatorsRequestMovesASide(t *testing.T) {
	// Goal: a request travels as a command, is refused in words when it cannot
	// be, and moves light.
	f := ringed(t, 4, 1)
	x := f.nodes[1]
	side := func() proto.SideReport { return x.sides()[proto.Right] }
	corr := byte(0)
	command := func(c proto.Command) {
		corr++
		c.Version, c.Node, c.Term, c.Session, c.TTLMillis, c.Corr = proto.Version, x.id, f.term, x.agent.cfg.Session, 1000, proto.Corr{corr}
		f.publish(proto.Topics{Fabric: "f1"}.Command(x.id), &c)
	}
	right := x.host.View().State().Applied.Desired.Rings[0].Right
	if len(right) < 2 {
		t.Fatalf("node 1 has %d candidates on its right", len(right))
	}
	command(proto.Command{Verb: proto.VerbRequest, Side: proto.Right, Request: proto.ForcedSwitch, Bundle: right[1].Bundle, Path: right[1].Path})
	f.must("forced", time.Second, func() bool { s := side(); return s.Request == proto.ForcedSwitch && s.Current == 1 })
	command(proto.Command{Verb: proto.VerbRequest, Side: proto.Right, Request: proto.ManualSwitch, Bundle: right[0].Bundle, Path: right[0].Path})
	f.run(10*time.Millisecond, nil)
	if last := f.acks[x.id]; last.Code != proto.Conflict || last.Field != "request" {
		t.Errorf("a lower request is answered %+v", last)
	}
	command(proto.Command{Verb: proto.VerbRequest, Side: proto.Right})
	f.must("back on its plan", 5*time.Second, func() bool {
		s := side()
		return s.Request == proto.NoRequest && s.Current == 0 && s.State == proto.SideWork
	})
}
