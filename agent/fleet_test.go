package agent

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/proto"
	"ringlight/proto/metric"
	"ringlight/sim"
)

func TestFourNodesBecomeOneRing(t *testing.T) {
	// Goal: from four dark boards to one ring of all GPUs, confirmed by light at
	// both ends of every link, all of it through packets, registers and optics.
	f := newFleet(t, 4, 2)
	f.run(100*time.Millisecond, nil)
	for _, x := range f.nodes {
		if mode := x.host.View().Mode(); mode != proto.ModeUnplanned {
			t.Errorf("node %d is %v before any planner spoke", x.id, mode)
		}
		for b := range 2 {
			for path := range hal.NumLOS {
				if f.world.Lit(sim.Port{Board: sim.BoardID(x.id), Bundle: b, Path: path}) {
					t.Errorf("node %d bundle %d is lit after a cold start", x.id, b)
				}
			}
		}
	}
	f = ringed(t, 4, 2)
	f.run(time.Second, nil)
	f.checkCycle(0, 1, 2, 3)
	for _, x := range f.nodes {
		r := x.last
		if r.Generation != 1 || r.Mode != proto.ModeService || len(r.Bundles) != 2 {
			t.Errorf("node %d reports %+v", x.id, r)
			continue
		}
		for _, b := range r.Bundles {
			if b.State != proto.Tuned {
				t.Errorf("node %d reports bundle %d on %v %v", x.id, b.Bundle, b.Path, b.State)
			}
			if b.Calibration.IsZero() {
				t.Errorf("node %d bundle %d names no calibration", x.id, b.Bundle)
			}
		}
		if r.Measured.DetectMaxMicros != 150 || r.Measured.SkewMicros != 500 {
			t.Errorf("node %d measures %+v", x.id, r.Measured)
		}
	}
}

func TestNeighboursBypassADeadNode(t *testing.T) {
	// Goal: a node that dies is bypassed within a millisecond, light to
	// confirmed light, by its neighbours alone with the broker down; the ledger
	// of each side adds up to what the world saw; the events come when the
	// broker is back.
	f := ringed(t, 4, 2)
	for _, x := range f.nodes {
		f.link(x, false)
	}
	died := f.world.Now()
	f.power(f.nodes[1], false)
	f.must("bypass of node 1", 20*time.Millisecond, func() bool { return f.linkedTo(0, 2) })
	joined := f.world.Now()
	if took := joined - died; took > 2*time.Millisecond {
		t.Errorf("bypass took %v", took)
	}
	f.run(20*time.Millisecond, nil)
	f.checkCycle(0, 2, 3)

	before := []int{len(f.nodes[0].events), 0, len(f.nodes[2].events)}
	for _, x := range f.live() {
		f.link(x, true)
	}
	f.run(10*time.Millisecond, nil)
	for _, n := range []int{0, 2} {
		var switched *proto.Event
		for _, e := range f.nodes[n].events[before[n]:] {
			if e.Kind == proto.EvSwitched {
				switched = &e
			}
		}
		if switched == nil || switched.Ledger == nil {
			t.Errorf("node %d told no switch with a ledger: %+v", n, f.nodes[n].events[before[n]:])
			continue
		}
		l := *switched.Ledger
		at, _ := f.world.LastChange(sim.Port{Board: sim.BoardID(n), Bundle: int(switched.Bundle), Path: int(switched.FromPath - proto.Loopback)})
		saw := time.Duration(switched.AtMicros)*time.Microsecond - at
		total := time.Duration(l.TotalMicros()) * time.Microsecond
		t.Logf("node %d: %v to %v in %v: %+v", n, switched.FromPath, switched.Path, total, l)
		if d := total - saw; d < -2*time.Microsecond || d > 2*time.Microsecond {
			t.Errorf("node %d: the ledger adds up to %v, the world saw %v", n, total, saw)
		}
		if total >= time.Millisecond {
			t.Errorf("node %d was back after %v", n, total)
		}
		page := string(measuredBy(f.nodes[n].agent.status(f.world.Now())))
		for _, want := range []string{`seconds_count{losses="1"} 1`, `seconds_sum{losses="1"} 0.000` + strconv.Itoa(int(l.TotalMicros())), `seconds_count{losses="2"} 0`} { // whose trailing zeros are not written
			if !strings.Contains(page, "\nringlight_agent_bypass_"+strings.TrimRight(want, "0")) {
				t.Errorf("node %d: no bypass_%s", n, want)
			}
		}
		if l.DetectMicros == 0 || l.DecideMicros != uint32(fleetDecide/time.Microsecond) || l.BusMicros == 0 || l.SettleMicros == 0 {
			t.Errorf("node %d: ledger %+v", n, l)
		}
	}
}

func measuredBy(s *Status) []byte {
	var p metric.Page
	metric.AppendAll(&p, Measures, &sight{Status: s, JournalBytes: -1})
	return p.Text
}

func TestRestartChangesNoLight(t *testing.T) {
	// Goal: a killed agent adopts what it finds: no register is written, no
	// light moves, nothing is told but the start; then it still protects.
	f := ringed(t, 4, 2)
	x := f.nodes[2]
	f.run(time.Second, nil)
	last := f.lastChanges()
	f.kill(x)
	f.run(50*time.Millisecond, nil)
	x.submit = 0
	f.boot(x)
	f.link(x, true)
	from := len(x.events)
	f.must("adopted", 3*time.Second, func() bool { return x.agent.adopted })
	f.run(time.Second, nil)
	if x.submit != 0 {
		t.Errorf("%d switching ops after a restart", x.submit)
	}
	if now := f.lastChanges(); now != last {
		t.Errorf("light changed at a restart")
	}
	for _, e := range x.events[from:] {
		if e.Kind != proto.EvStarted {
			t.Errorf("told %v after a restart: %+v", e.Kind, e)
		}
	}
	if n := len(x.events); n == from {
		t.Error("the start was not told")
	}
	for i := 1; i < 4; i++ {
		if !f.linkedTo(i-1, i) {
			t.Errorf("nodes %d and %d do not work on each other", i-1, i)
		}
	}
	f.power(f.nodes[1], false)
	f.must("bypass after a restart", 20*time.Millisecond, func() bool { return f.linkedTo(0, 2) })
}

// lastChanges is when any light of the fleet changed last.
func (f *fleet) lastChanges() (at time.Duration) {
	for i := range f.nodes {
		for b := range 2 {
			for path := range hal.NumLOS {
				t, _ := f.world.LastChange(sim.Port{Board: sim.BoardID(i), Bundle: b, Path: path})
				at = max(at, t)
			}
		}
	}
	return at
}

func TestLightLostWhileTheAgentWasDeadIsTold(t *testing.T) {
	// Goal: what changed without an agent is acted on and told at its start.
	f := ringed(t, 4, 2)
	f.run(time.Second, nil)
	x := f.nodes[2]
	f.kill(x)
	f.run(10*time.Millisecond, nil)
	f.power(f.nodes[3], false)
	f.run(10*time.Millisecond, nil)
	from := len(x.events)
	f.boot(x)
	f.link(x, true)
	f.must("closed", time.Second, func() bool { return f.standing(x, proto.Right).State == proto.SideClosed })
	f.run(100*time.Millisecond, nil)
	kinds := map[proto.EventKind]int{}
	for _, e := range x.events[from:] {
		kinds[e.Kind]++
	}
	if kinds[proto.EvStarted] != 1 || kinds[proto.EvAdopted] == 0 || kinds[proto.EvClosed] == 0 {
		t.Errorf("told %v", kinds)
	}
	f.checkCycle(0, 1, 2)
}

func TestReturnedNodeListensAndTheTornTailRepeatsNothing(t *testing.T) {
	// Goal: a node that lost its power comes back in loopback and asks to be let
	// in; a crash that loses the unsynced tail of the journal loses no number:
	// what comes after is numbered behind everything that was sent.
	f := ringed(t, 4, 2)
	f.run(time.Second, nil)
	x := f.nodes[1]
	sent := x.events[len(x.events)-1].Seq
	// A loss of light whose events are on their way to the disk when the power
	// goes: they are lost with it, and were never sent.
	if err := f.world.Cut(sim.Port{Board: 1, Bundle: 1, Path: hal.LOSExternal1}, sim.In); err != nil {
		t.Fatal(err)
	}
	if !f.run(5*time.Millisecond, func() bool { return x.disk.Busy() }) {
		t.Fatal("nothing was to be persisted")
	}
	f.power(x, false)
	if err := f.world.Mend(sim.Port{Board: 1, Bundle: 1, Path: hal.LOSExternal1}, sim.In); err != nil {
		t.Fatal(err)
	}
	f.run(50*time.Millisecond, nil)
	if !f.linkedTo(0, 2) {
		t.Error("node 1 was not bypassed")
	}
	f.power(x, true)
	f.link(x, true)
	from := len(x.events)
	f.must("listening", 5*time.Second, func() bool {
		return x.agent.adopted && f.standing(x, proto.Left).State == proto.SideClosed && f.standing(x, proto.Right).State == proto.SideClosed
	})
	f.run(100*time.Millisecond, nil)
	told := false
	for _, e := range x.events[from:] {
		if e.Seq <= sent {
			t.Errorf("number %d was given out twice: %+v", e.Seq, e)
		}
		told = told || e.Kind == proto.EvReturned
	}
	if !told {
		t.Errorf("its return was not told: %+v", x.events[from:])
	}
	f.checkCycle(0, 2, 3)
	if !f.linkedTo(0, 2) || !f.linkedTo(2, 3) {
		t.Error("the return disturbed the ring")
	}
}

func TestHostFaultGoesDarkAndComesBack(t *testing.T) {
	// Goal: without GPUs a node leaves the ring by going dark; well again, it
	// waits in loopback.
	f := ringed(t, 4, 2)
	x := f.nodes[1]
	f.deliver(x, Input{Kind: InAsk, Ask: Ask{ID: 1, Verb: AskHostFault, Text: "xid 79"}})
	f.must("bypass", 20*time.Millisecond, func() bool { return f.linkedTo(0, 2) })
	for b := range 2 {
		if s := x.agent.optics.(*nodeOptics).bundles[b].optics.Status(); s.Path != proto.Dark {
			t.Errorf("bundle %d is on %v", b, s.Path)
		}
	}
	f.checkCycle(0, 2, 3)
	f.deliver(x, Input{Kind: InAsk, Ask: Ask{ID: 2, Verb: AskHostOK}})
	f.must("loopback", 20*time.Millisecond, func() bool {
		return f.world.Lit(sim.Port{Board: 1, Bundle: 0, Path: hal.LOSLoopback}) && f.world.Lit(sim.Port{Board: 1, Bundle: 1, Path: hal.LOSLoopback})
	})
	f.checkCycle(0, 2, 3)
}
