package agent

import (
	"testing"
	"time"

	"ringlight/proto"
)

// quiet is a node of a ring that has nothing to do.
func quiet(tb testing.TB) (*fleet, *fleetNode) {
	t, ok := tb.(*testing.T)
	if !ok {
		t = new(testing.T)
	}
	f := ringed(t, 4, 8)
	f.run(time.Second, nil)
	for _, x := range f.nodes {
		ack := &proto.Command{Version: proto.Version, Node: x.id, Term: f.term, Session: x.agent.cfg.Session, TTLMillis: 1000,
			Verb: proto.VerbAckEvents, Seq: x.agent.outbox.last}
		f.publish(proto.Topics{Fabric: "f1"}.Command(x.id), ack)
	}
	f.run(10*time.Second, nil)
	return f, f.nodes[1]
}

func TestIdlePollAllocatesNothing(t *testing.T) {
	// Goal: ten thousand quiet agents cost nothing: a poll with nothing due
	// makes no garbage and asks for nothing.
	f, x := quiet(t)
	out := make([]Output, 0, 16)
	now := f.world.Now()
	next := time.Duration(0)
	if n := testing.AllocsPerRun(100, func() { out, next = x.agent.Poll(now, out[:0]) }); n != 0 || len(out) != 0 {
		t.Errorf("%v allocations, %d outputs in an idle poll", n, len(out))
	}
	if next != Never {
		t.Errorf("an idle agent without health rounds wants to be polled at %v", next)
	}
}

func BenchmarkIdlePoll(b *testing.B) {
	f, x := quiet(b)
	out := make([]Output, 0, 16)
	now := f.world.Now()
	b.ReportAllocs()
	for b.Loop() {
		out, _ = x.agent.Poll(now, out[:0])
	}
}
