package sim

import (
	"testing"
	"time"

	"ringlight/hal"
)

func TestLoopbackLight(t *testing.T) {
	r := newRig(t, 2, 8)
	a := r.board(1)
	r.on(a)
	r.perfect(a, 0)
	r.latch(a, 0, pathLoopback)
	r.run(time.Millisecond)
	for m := range 8 {
		g := r.guard(a, 0, m)
		t.Logf("%d: loop %.2f %.2f dBm per lane, taps %.2f %.2f", m, milliDBm(g[0]/4), milliDBm(g[1]/4), milliDBm(g[6]/8), milliDBm(g[7]/8))
	}
	if !r.w.Lit(Port{a, 0, hal.LOSLoopback}) {
		t.Error("dark")
	}
	t.Log(r.edges, r.w.Limits(a))
}
