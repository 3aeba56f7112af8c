package agent

import (
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/proto"
	"ringlight/sim"
)

func TestDeadBusIsToldAndTriedAgain(t *testing.T) {
	// Goal: a bundle whose DACs do not answer at start keeps nobody else out of
	// service, is told as an alarm, and comes back by itself when it is mended.
	// Method: the slow segment of bundle 1 is held low through a restart.
	f := newFleet(t, 2, 1)
	x := f.nodes[0]
	f.link(x, true)
	f.must("ready", 5*time.Second, func() bool { return x.agent.adopted && x.agent.optics.(*nodeOptics).bundles[1].ready })
	f.kill(x)
	bad := sim.Fault{Kind: sim.BusStuck, Bus: x.board.Bundles[1].Modules[0].Slow}
	if err := f.world.Inject(0, bad); err != nil {
		t.Fatal(err)
	}
	f.run(10*time.Millisecond, nil)
	f.boot(x)
	f.link(x, true)
	f.must("adopted without bundle 1", 5*time.Second, func() bool { return x.agent.adopted && x.agent.optics.(*nodeOptics).bundles[0].ready })
	f.run(time.Second, nil)
	if x.agent.optics.(*nodeOptics).bundles[1].ready {
		t.Fatal("bundle 1 is ready without its slow bus")
	}
	alarms := func(resolved bool) (n int) {
		for _, e := range x.events {
			if e.Kind == proto.EvAlarm && e.Bundle == 1 && e.Resolved == resolved {
				n++
			}
		}
		return n
	}
	f.run(2*restartAfter, nil)
	if alarms(false) != 1 {
		t.Errorf("%d alarms, want 1 however often it was tried", alarms(false))
	}
	if err := f.world.Repair(0, bad); err != nil {
		t.Fatal(err)
	}
	f.must("bundle 1 ready", 3*restartAfter, func() bool { return x.agent.optics.(*nodeOptics).bundles[1].ready })
	f.run(time.Second, nil)
	if alarms(true) != 1 {
		t.Errorf("%d alarms resolved, want 1", alarms(true))
	}
}

func TestPathByHand(t *testing.T) {
	// Goal: a person can put a bundle that carries nothing on a path and gets
	// what it took; one that carries a ring is refused; a plan takes it back.
	f := newFleet(t, 3, 1)
	ask := func(x *fleetNode, q Ask) (answer *Answer) {
		t.Helper()
		x.host.Ask(f.world.Now(), q, func(a *Answer) { answer = a })
		f.poll(x)
		f.must("answered", 2*time.Second, func() bool { return answer != nil })
		return answer
	}
	for _, x := range f.nodes {
		f.link(x, true)
	}
	f.must("ready", 5*time.Second, func() bool {
		for _, x := range f.nodes {
			if !x.agent.adopted || !x.agent.optics.(*nodeOptics).bundles[0].ready || !x.agent.optics.(*nodeOptics).bundles[1].ready {
				return false
			}
		}
		return true
	})
	x := f.nodes[1]
	for _, p := range []proto.Path{proto.External2, proto.Loopback, proto.External1, proto.Dark, proto.External1} {
		a := ask(x, Ask{Verb: AskPath, Bundle: 1, Path: p})
		if a.Err != nil || a.Status.Bundles[1].Path != p.String() || !a.Status.Bundles[1].HeldByHand {
			t.Fatalf("%v: %+v %+v", p, a.Err, a.Status.Bundles)
		}
		if l := a.Ledger; l == nil || l.BusMicros == 0 || time.Duration(l.TotalMicros())*time.Microsecond > a.Took+time.Microsecond {
			t.Errorf("%v: ledger %+v in %v", p, l, a.Took)
		}
	}
	if !f.world.Lit(sim.Port{Board: 2, Bundle: 0, Path: hal.LOSExternal1}) {
		t.Error("the neighbour does not see the light")
	}
	for _, q := range []struct {
		ask  Ask
		code proto.Code
	}{
		{Ask{Verb: AskPath, Bundle: 7, Path: proto.Dark}, proto.NotFound},
		{Ask{Verb: AskPath, Bundle: 0, Path: 9}, proto.Invalid},
		{Ask{Verb: 99}, proto.Unsupported},
	} {
		if a := ask(x, q.ask); a.Err == nil || a.Err.Code != q.code {
			t.Errorf("%+v: %+v", q.ask, a)
		}
	}
	f.heard()
	f.commit(f.ring(0, 2))
	f.must("the plan takes the bundle back", time.Second, func() bool { return f.linkedTo(0, 1) && f.linkedTo(1, 2) })
	for _, verb := range []AskVerb{AskPath, AskCalibrate} {
		if a := ask(x, Ask{Verb: verb, Bundle: 1, Path: proto.Loopback}); a.Err == nil || a.Err.Code != proto.Busy {
			t.Errorf("verb %d on a bundle that carries a ring: %+v", verb, a.Err)
		}
	}
	if !f.linkedTo(1, 2) {
		t.Error("a refused question moved light")
	}
}

func TestADrainIsToldBesidesAFault(t *testing.T) {
	// Goal: what an operator said of a node reaches the planner, though something
	// worse keeps it out of service as well; either order, each ended alone.
	f := ringed(t, 4, 1)
	x := f.nodes[1]
	corr := byte(0)
	command := func(verb proto.Verb) {
		corr++
		f.publish(proto.Topics{Fabric: "f1"}.Command(x.id), &proto.Command{Version: proto.Version, Node: x.id, Term: f.term, Session: x.agent.cfg.Session,
			TTLMillis: 1000, Corr: proto.Corr{corr}, Verb: verb})
	}
	told := func(mode proto.Mode, drained bool) {
		t.Helper()
		f.must(mode.String(), time.Second, func() bool { return x.last.Mode == mode && x.last.Drained == drained })
	}
	command(proto.VerbHostFault)
	told(proto.ModeHostDown, false)
	command(proto.VerbDrain)
	told(proto.ModeHostDown, true)
	command(proto.VerbHostOK)
	told(proto.ModeDrained, false) // the mode says it
	command(proto.VerbHostFault)
	told(proto.ModeHostDown, true)
	command(proto.VerbUndrain)
	told(proto.ModeHostDown, false)
	command(proto.VerbHostOK)
	told(proto.ModeService, false)
}
