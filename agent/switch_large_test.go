package agent

import (
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/ocs/circuit"
	"ringlight/ocs/mems"
	"ringlight/proto"
)

func TestLargestSwitchIsOneChange(t *testing.T) {
	// Goal: every port of the largest board moves in one act, its messages within
	// their limits, and in the time of a single circuit.
	r := newSwitchRig(t, hal.MaxCrossbarPorts)
	r.start()
	r.roll(shift(r.ports, r.ports, 7)...)
	first := time.Duration(r.last.DarkMicros) * time.Microsecond
	next := shift(r.ports, r.ports, 7)
	for i := range 100 {
		next[i].B = uint16((i+1)%100 + 7)
	}
	for _, c := range next[100:] {
		if c.A%20 == 0 {
			r.watched = append(r.watched, circuit.Pair{A: c.A, B: c.B})
		}
	}
	r.roll(next...)
	dark := time.Duration(r.last.DarkMicros) * time.Microsecond
	t.Logf("%d circuits in %v, 100 of them moved in %v", len(next), first, dark)
	if first > mems.MaxTuneTime || dark > mems.MaxTuneTime || len(r.drops) > 0 || len(r.last.Circuits) != r.ports {
		t.Errorf("%v, %v, %d drops", first, dark, len(r.drops))
	}
}

func TestIdleSwitchPollAllocatesNothing(t *testing.T) {
	r := newSwitchRig(t, 32)
	r.start()
	r.roll(shift(32, 32, 3)...)
	r.run(time.Second, nil)
	out := make([]Output, 0, 16)
	if n := testing.AllocsPerRun(100, func() { out, _ = r.agent.Poll(r.world.Now(), out[:0]) }); n > 0 || len(out) > 0 {
		t.Errorf("%.0f allocations, %d outputs", n, len(out))
	}
}

func FuzzSwitchPacket(f *testing.F) {
	for _, m := range []any{
		&proto.Desired{Version: 1, Node: switchNode, Term: 2, Generation: 3, Decisions: []proto.RingID{proto.FirstGroup}, Circuits: shift(4, 8, 3)},
		&proto.Decision{Version: 1, Ring: proto.FirstGroup, Term: 1, Generation: 1, Plan: proto.Digest{1}, Verdict: 1},
		&proto.Command{Version: 1, Node: switchNode, Term: 3, Session: 101, TTLMillis: 9, Verb: 1},
	} {
		b, err := proto.Encode(m)
		if err != nil {
			f.Fatal(err)
		}
		for kind := range uint8(4) {
			f.Add(kind, b)
		}
	}
	kinds := []string{switchTopics.Desired(switchNode), switchTopics.Decision(proto.FirstGroup), switchTopics.Command(switchNode), switchTopics.Planner()}
	f.Fuzz(func(t *testing.T, kind uint8, payload []byte) {
		r := newSwitchRig(t, 8)
		r.start()
		d := r.desired(shift(3, 8, 1)...)
		r.prepare(d)
		r.in(proto.Packet{Topic: kinds[int(kind)%len(kinds)], Payload: payload})
		r.run(2*time.Second, nil)
		// Whatever it was, what light shows is what is reported.
		lit := []proto.Circuit{}
		for _, c := range r.last.Circuits {
			if c.State == proto.Tuned {
				lit = append(lit, proto.Circuit{A: c.A, B: c.B})
			}
		}
		if r.last.Generation != 0 {
			r.checkLight(lit...)
		}
	})
}

func BenchmarkSwitchChange(b *testing.B) {
	r := newSwitchRig(b, 136)
	r.start()
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		r.roll(shift(136, 136, 1+n%100)...)
	}
	b.ReportMetric(float64(r.last.DarkMicros), "dark-us")
}
