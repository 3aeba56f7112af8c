package ocs_test

import (
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/proto"
	"ringlight/sim"
)

// Goal: break before make leaves no instant at which both fibres of a bundle
// have light; at once there are such instants, and it is the faster.
// Method: from external 1 to external 2 and back, the light that leaves each
// port looked at every 2 us; a port has light from half the power of its
// weakest lane on.
func TestBreakBeforeMake(t *testing.T) {
	r := newRig(t, 1, 8)
	r.ready()
	o := r.optics[0]
	shines := func(path int) bool {
		var l sim.Light
		if err := r.world.Sent(sim.Port{Board: r.id, Path: path}, &l); err != nil {
			t.Fatal(err)
		}
		const some = 100_000 // nanowatts, -10 dBm: 9 dB under a lane, 11 dB over what leaks
		for i := range r.board.Bundles[0].Modules {
			for lane := range hal.Lanes {
				if l[i][lane] > some {
					return true
				}
			}
		}
		return false
	}
	turn := func(sel func(time.Duration, proto.Path) error, p proto.Path, path int) (both, lit time.Duration) {
		from := r.world.Now()
		if err := sel(from, p); err != nil {
			t.Fatal(err)
		}
		for r.world.Now() < from+time.Millisecond {
			one, two := shines(hal.LOSExternal1), shines(hal.LOSExternal2)
			if one && two {
				both += 2 * time.Microsecond
			}
			if lit == 0 && (path == hal.LOSExternal1 && one || path == hal.LOSExternal2 && two) && !(one && two) {
				lit = r.world.Now() - from
			}
			r.run(2 * time.Microsecond)
		}
		if s := o.Status(); s.Path != p || lit == 0 {
			t.Fatalf("asked for %v, is on %v, lit after %v", p, s.Path, lit)
		}
		return both, lit
	}
	turn(o.Select, proto.External1, hal.LOSExternal1)
	for range 3 {
		both, slow := turn(o.Select, proto.External2, hal.LOSExternal2)
		if both != 0 {
			t.Errorf("break before make: both fibres have light for %v", both)
		}
		overlap, fast := turn(o.SelectAtOnce, proto.External1, hal.LOSExternal1)
		if overlap == 0 || fast >= slow {
			t.Errorf("at once: both have light for %v, the new one alone after %v, with the break after %v", overlap, fast, slow)
		}
		t.Logf("break before make %v; at once %v, both lit for %v", slow, fast, overlap)
	}
}

// Goal: a bundle that begins anew leaves a write to the latch alone that the bus has still:
// its bytes are what light follows, its token whose it is. Method: begun anew between a
// write and its end.
func TestStartLeavesTheWriteToTheBus(t *testing.T) {
	for _, p := range []proto.Path{proto.External1, proto.External2} {
		r := newRig(t, 1, 1)
		r.ready()
		s := newSwitcher(r)
		if err := s.o.SelectAtOnce(s.now, p); err != nil {
			t.Fatal(err)
		}
		s.idle()
		if len(s.ops) != 1 || s.ops[0].Op.Class != hal.ClassSwitch {
			t.Fatalf("to %v: %d ops", p, len(s.ops))
		}
		op := s.ops[0].Op
		op.Token |= 1 << tokenShift // as an agent has it
		token, bytes := op.Token, string(op.Msgs[0].W)
		s.o.Start(s.now)
		if op.Token != token || len(op.Msgs) != 1 || string(op.Msgs[0].W) != bytes {
			t.Errorf("to %v: token %#x became %#x, % x became %+v", p, token, op.Token, bytes, op.Msgs)
		}
	}
}
