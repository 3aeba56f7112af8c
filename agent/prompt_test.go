package agent

import (
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/proto"
)

// Goal: the wake-ups of a machine widen its envelope in steps, so that it has the
// same one after every start, and health tells them as they were; without a
// machine of its own an agent tells nothing.
func TestWakeUpsWidenTheEnvelope(t *testing.T) {
	for p99, want := range map[time.Duration]time.Duration{ // any order: independent rows
		0: 50 * time.Microsecond, 50 * time.Microsecond: 50 * time.Microsecond, 51 * time.Microsecond: 100 * time.Microsecond,
		147 * time.Microsecond: 200 * time.Microsecond, 12 * time.Millisecond: 12800 * time.Microsecond,
	} {
		if got := wakeBound(p99); got != want {
			t.Errorf("p99 %v: %v, want %v", p99, got, want)
		}
	}
	f := startFleet(&fleet{t: t, health: time.Second}, 1, 1)
	f.run(3*time.Second, nil)
	a := f.nodes[0].agent
	bare := a.optics.(*nodeOptics).measured()
	for _, p := range []*hal.Prompt{nil, {Priority: 40, Locked: true, WakeP50: 41 * time.Microsecond, WakeP99: 147 * time.Microsecond, WakeMax: 5 * time.Millisecond}} {
		a.cfg.Prompt = p
		a.wire.up = true
		o := a.optics.(*nodeOptics)
		var told proto.Health
		out := o.health.tell(o, f.world.Now(), nil)
		if len(out) == 0 {
			t.Fatal("no samples")
		}
		f.decode(out[0].Packet, &told)
		envelope := o.measured()
		if p == nil {
			if told.Prompt != nil || envelope != bare {
				t.Errorf("without a machine: %+v, %+v", told.Prompt, envelope)
			}
			continue
		}
		want := bare
		want.DetectMaxMicros += 200
		if told.Prompt == nil || *told.Prompt != (proto.Prompt{Priority: 40, Locked: true, WakeP50Micros: 41, WakeP99Micros: 147, WakeMaxMicros: 5000}) || envelope != want {
			t.Errorf("told %+v, envelope %+v, want %+v", told.Prompt, envelope, want)
		}
	}
}
