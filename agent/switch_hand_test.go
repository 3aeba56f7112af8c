package agent

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/ocs/circuit"
	"ringlight/proto"
)

// refusing is a crossbar that takes no change.
type refusing struct {
	crossbar
	err error
}

func (x refusing) Apply(time.Duration, circuit.Change) error { return x.err }

func TestCircuitsByHandStay(t *testing.T) {
	// Goal: circuits that an operator has made through the planner stay over plans that do not
	// want their ports, over a restart and a kill in the middle of a plan, and go when one does; ports of a plan are refused by
	// name. Method: commands and plans, judged by light and by the report.
	r := newSwitchRig(t, 8)
	r.start()
	r.roll(shift(3, 8, 3)...) // 1A-4B 2A-5B 3A-6B
	corr := byte(0)
	connect := func(gone string, keys ...string) proto.Ack {
		t.Helper()
		r.acks = nil
		corr++
		c := &proto.Command{Version: proto.Version, Node: switchNode, Term: r.term, Session: proto.Session(100 + r.life), Corr: proto.Corr{corr}, TTLMillis: 5000,
			Verb: proto.VerbConnect, Connect: keys, Disconnect: strings.Fields(gone)}
		r.publish(switchTopics.Command(switchNode), c)
		r.must("an answer", time.Second, func() bool { return len(r.acks) > 0 })
		return r.acks[0]
	}
	hand := func() (n int) {
		for _, c := range r.last.Circuits {
			if c.Job == proto.ByHand && c.State == proto.Tuned && r.lit(proto.Circuit{A: c.A, B: c.B}) {
				n++
			}
		}
		return n
	}
	plan := func(circuits ...proto.Circuit) {
		t.Helper()
		d := r.desired(circuits...)
		if a := r.prepare(d); a.Code != proto.OK {
			t.Fatalf("prepare: %+v", a)
		}
		r.decide(d, proto.Commit)
		r.must("the plan", 3*time.Second, func() bool {
			return r.last.Generation == d.Generation && !slices.ContainsFunc(d.Circuits, func(c proto.Circuit) bool { return !r.lit(c) })
		})
	}
	if a := connect("", "7A-7B", "8A-8B"); a.Code != proto.OK {
		t.Fatalf("%+v", a)
	}
	r.must("light of two", 3*time.Second, func() bool { return hand() == 2 })
	for _, x := range []struct {
		gone, key string
		code      proto.Code
		says      string
	}{
		{"", "1A-8B", proto.Conflict, "port 1A is the planner's: its generation 1 has circuit 1A-4B there"},
		{"2A-5B", "", proto.Conflict, "port 2A is the planner's"},
		{"", "9A-8B", proto.Invalid, "1A to 8A"},
		{"", "8A", proto.Invalid, "8A"},
		{"", "8B-8A", proto.Invalid, "8B"},
	} {
		if a := connect(x.gone, strings.Fields(x.key)...); a.Code != x.code || !strings.Contains(a.Reason, x.says) {
			t.Errorf("%+v: %v %s", x, a.Code, a.Reason)
		}
	}
	r.run(time.Second, nil)
	if hand() != 2 {
		t.Errorf("%+v after refusals", r.last.Circuits)
	}
	plan(shift(4, 8, 2)...) // 1A-3B 2A-4B 3A-5B 4A-6B
	r.run(time.Second, nil)
	if hand() != 2 {
		t.Errorf("%+v after another plan", r.last.Circuits)
	}
	r.kill()
	r.boot()
	r.start()
	if hand() != 2 {
		t.Errorf("%+v after a restart", r.last.Circuits)
	}
	for cut := range 2 { // the agent dies before its plan's mirrors stand, the second time of one that wants a port of 8A-8B
		d := r.desired(append(shift(3, 8, 3-cut), []proto.Circuit{{A: 7, B: 0, Job: 9}}[:cut]...)...)
		r.prepare(d)
		r.spi = 0
		r.decide(d, proto.Commit)
		r.must("a mirror moves", time.Second, func() bool { return r.spi > 0 })
		r.kill()
		r.boot()
		r.start()
		if r.last.Generation != 0 || hand() != 2-cut {
			t.Errorf("%+v after a kill in the middle of a plan", r.last)
		}
		r.publish(switchTopics.Desired(switchNode), d)
		r.decide(d, proto.Commit)
		r.must("the plan after all", 3*time.Second, func() bool { return r.last.Generation == d.Generation })
		if hand() != 2-cut {
			t.Errorf("%+v after that plan", r.last.Circuits)
		}
	}
	plan(shift(4, 8, 2)...)
	if a := connect("", "8A-8B"); a.Code != proto.OK {
		t.Fatalf("%+v", a)
	}
	r.must("light of two again", 3*time.Second, func() bool { return hand() == 2 })
	plan(append(shift(3, 8, 2), proto.Circuit{A: 6, B: 7, Job: 9})...) // both have a port of 7A-8B
	r.run(time.Second, nil)
	if hand() != 0 || r.lit(proto.Circuit{A: 6, B: 6}) || r.lit(proto.Circuit{A: 7, B: 7}) {
		t.Errorf("%+v after a plan that wants their ports", r.last.Circuits)
	}
	o := r.agent.optics.(*crossOptics)
	own := o.cross
	for _, x := range []struct {
		err  error
		code proto.Code
	}{{circuit.ErrNotReady, proto.Busy}, {hal.ErrQueueFull, proto.Busy}, {circuit.ErrOutOfService, proto.HardwareFailed}} {
		o.cross = refusing{own, x.err}
		if a := connect("", "8A-7B"); a.Code != x.code {
			t.Errorf("%v: %+v", x.err, a)
		}
	}
	o.cross = own
	if a := connect("", "8A-7B"); a.Code != proto.OK {
		t.Fatalf("%+v", a)
	}
	r.must("light again", 3*time.Second, func() bool { return hand() == 1 })
	if a := connect("8A-7B"); a.Code != proto.OK {
		t.Fatalf("%+v", a)
	}
	r.must("dark", 3*time.Second, func() bool { return !r.lit(proto.Circuit{A: 7, B: 6}) && len(r.last.Circuits) == 4 })
}
