package agent

import (
	"strings"
	"testing"
	"time"

	"ringlight/proto"
)

// restarts makes nodes whose agents are started anew: looks says why they cannot,
// and ended counts lives that are over.
func restarts(f *fleet, why string) (_ *fleet, ended *int) {
	ended = new(int)
	f.run(time.Second, nil)
	for _, x := range f.nodes {
		x.agent.cfg.Restarts = true
		x.host.Restart = func(string) { x.host.Deliver(f.world.Now(), Input{Kind: InRestart, Text: why}) }
		x.host.End = func() { *ended++ }
		f.link(x, true)
	}
	return f, ended
}

func (f *fleet) beat(features proto.Features) {
	f.publish(proto.Topics{Fabric: "f1"}.Planner(), &proto.PlannerState{Version: proto.Version, Planner: 9, Online: true, Term: f.term, Seq: 1, PeriodMillis: 2000, Features: features})
}

func (f *fleet) restart(x *fleetNode, software string) proto.Ack {
	delete(f.acks, x.id)
	f.publish(proto.Topics{Fabric: "f1"}.Command(x.id), &proto.Command{Version: proto.Version, Node: x.id, Term: f.term, Session: x.agent.cfg.Session, Corr: proto.Corr{byte(f.world.Now()), 1},
		TTLMillis: 1000, Verb: proto.VerbRestart, Software: software})
	f.run(50*time.Millisecond, nil)
	return f.acks[x.id]
}

// Goal: a planner's word ends the life, after it was answered and all is on disk.
// Method: the command; the ack was sent before the end.
func TestRestartIsAnsweredFirst(t *testing.T) {
	f, ended := restarts(newFleet(t, 2, 1), "")
	f.beat(proto.FeatureRestart)
	x, answered := f.nodes[0], false
	x.host.End = func() { *ended++; answered = f.acks[x.id].Phase == proto.PhaseCommand && !x.disk.Busy() }
	if a := f.restart(x, "v2"); a.Code != proto.OK || *ended != 1 || !answered {
		t.Errorf("answered %v before the end: %v, ended %d times", a.Code, answered, *ended)
	}
}

// Goal: what cannot be started is refused with the reason, and the life goes on.
func TestRestartIsRefused(t *testing.T) {
	f, ended := restarts(newFleet(t, 2, 1), "ocs-agent is v1, wanted is v2")
	f.beat(proto.FeatureRestart)
	if a := f.restart(f.nodes[0], "v2"); a.Code != proto.HardwareFailed || !strings.Contains(a.Reason, "wanted is v2") {
		t.Errorf("%+v", a)
	}
	f.nodes[1].agent.cfg.Restarts, f.nodes[1].agent.cfg.NoRestart = false, "its configuration came from stdin"
	if a := f.restart(f.nodes[1], "v2"); a.Code != proto.Unsupported || !strings.Contains(a.Reason, "stdin") {
		t.Errorf("%+v", a)
	}
	if *ended != 0 {
		t.Errorf("%d lives are over", *ended)
	}
	if f.nodes[0].agent.presence().Features != proto.FeatureRestart || f.nodes[1].agent.presence().Features != 0 {
		t.Error("what cannot restart says that it can, or the other way round")
	}
}

// Goal: a bundle that somebody works on is not cut off.
func TestRestartWaitsForACalibration(t *testing.T) {
	f, _ := restarts(newFleet(t, 2, 1), "")
	f.beat(proto.FeatureRestart)
	f.run(time.Second, nil)
	x := f.nodes[0]
	x.host.Ask(f.world.Now(), Ask{Verb: AskCalibrate, Bundle: 1}, func(a *Answer) { t.Fatalf("%+v", a.Err) })
	f.poll(x)
	if a := f.restart(x, ""); a.Code != proto.Busy || !strings.Contains(a.Reason, "bundle 1") {
		t.Errorf("%+v", a)
	}
}

func (f *fleet) asksRestart(x *fleetNode, wait time.Duration) (ans **Answer) {
	ans = new(*Answer)
	x.host.Ask(f.world.Now(), Ask{Verb: AskRestart, Value: uint32(wait.Milliseconds())}, func(a *Answer) { *ans = a })
	f.poll(x)
	return ans
}

// Goal: who asks on the host waits for the planner, which hears of it, and for no
// longer than was said; a planner that gives no leave is not waited for.
// Method: nodes whose sides lie in no ring, so that the agent goes in the end; a node
// in a ring stays.
func TestLeaveIsAskedFor(t *testing.T) {
	f, ended := restarts(newFleet(t, 2, 1), "")
	f.beat(proto.FeatureRestart)
	x := f.nodes[0]
	ans := f.asksRestart(x, 5*time.Second)
	f.run(time.Second, nil)
	if !x.last.AsksRestart || *ans != nil || *ended != 0 {
		t.Fatalf("asks %v, answered %+v, ended %d", x.last.AsksRestart, *ans, *ended)
	}
	if a := f.restart(x, ""); a.Code != proto.OK || *ended != 1 || *ans == nil || (*ans).Err != nil {
		t.Errorf("leave: %+v, answered %+v, ended %d", a, *ans, *ended)
	}

	f, ended = restarts(newFleet(t, 2, 1), "")
	x = f.nodes[0]
	f.beat(0) // of a release that knows of no such thing
	ans = f.asksRestart(x, 5*time.Second)
	f.run(time.Second, nil)
	if *ended != 1 || x.last.AsksRestart || *ans == nil || (*ans).Err != nil {
		t.Errorf("asks %v of one that does not know it, answered %+v, ended %d", x.last.AsksRestart, *ans, *ended)
	}
}

// Goal: without an answer a node that protects a ring stays, and says for what.
func TestWithoutLeaveARingIsNotLeft(t *testing.T) {
	f, ended := restarts(ringed(t, 2, 1), "")
	f.beat(proto.FeatureRestart)
	x := f.nodes[0]
	ans := f.asksRestart(x, 2*time.Second)
	f.run(3*time.Second, nil)
	if *ans == nil || (*ans).Err == nil || !strings.Contains((*ans).Err.Reason, "carries ring") || *ended != 0 || x.last.AsksRestart {
		t.Errorf("answered %+v, ended %d, asks %v", *ans, *ended, x.last.AsksRestart)
	}
}

// Goal: a switch, which protects nothing, asks nobody, unless it makes circuits.
// Method: it is asked while a commit's mirrors move, and when they stand.
func TestASwitchAsksNobody(t *testing.T) {
	r := newSwitchRig(t, 8)
	r.start()
	ended := 0
	r.host.agent.cfg.Restarts = true
	r.host.Restart = func(string) { r.host.Deliver(r.world.Now(), Input{Kind: InRestart}) }
	r.host.End = func() { ended++ }
	ask := func() (ans *Answer) {
		r.host.Ask(r.world.Now(), Ask{Verb: AskRestart, Value: 60_000}, func(a *Answer) { ans = a })
		r.poll()
		r.run(10*time.Millisecond, nil)
		return ans
	}
	d := r.desired(shift(6, 8, 3)...)
	r.prepare(d)
	r.decide(d, proto.Commit)
	for r.spi == 0 {
		r.step(r.world.Now() + time.Second)
	}
	if a := ask(); a == nil || a.Err == nil || a.Err.Code != proto.Busy || ended != 0 {
		t.Fatalf("in a change: %+v, ended %d", a, ended)
	}
	r.must("done", time.Second, func() bool { return r.done(d) })
	r.run(time.Second, nil)
	if a := ask(); a == nil || a.Err != nil || ended != 1 {
		t.Errorf("%+v, ended %d", a, ended)
	}
	r.checkLight(d.Circuits...)
}
