package sim

import (
	"testing"
	"time"

	"ringlight/hal"
)

// A fibre that leaves the world must bring the same light as one that does
// not. Method: the same two boards joined inside one world, and joined over two
// ports that lead outside with the light carried by hand every 20 us, crossed
// and straight, lit, half lit, cut each way and mended; the lines and the
// converted half-sums agree.
func TestLightThroughTheOutside(t *testing.T) {
	for _, f := range []Fibre{{LossMilliDB: 300}, {LossMilliDB: 1500, Crossed: true}} {
		in, a, z := pair(t, 2, f)
		out := newRig(t, 2, 2)
		oa, oz := out.board(11), out.board(12)
		pa, pz := Port{oa, 1, hal.LOSExternal1}, Port{oz, 0, hal.LOSExternal1}
		for _, p := range []Port{pa, pz} {
			if err := out.w.Lead(p, f); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range []BoardID{oa, oz} {
			out.on(id)
			out.perfect(id, 0)
			out.perfect(id, 1)
		}
		if err := out.w.Connect(pa, pz, f); err == nil {
			t.Error("a port with a fibre took another")
		}
		if _, ok := out.w.Far(pa); ok {
			t.Error("the outside has a far end in this world")
		}
		carry := func(d time.Duration) {
			var l Light
			for end := out.w.Now() + d; out.w.Now() < end; {
				for _, p := range [][2]Port{{pa, pz}, {pz, pa}} {
					if err := out.w.Sent(p[0], &l); err != nil {
						t.Fatal(err)
					}
					if err := out.w.Receive(p[1], &l); err != nil {
						t.Fatal(err)
					}
				}
				out.run(20 * time.Microsecond)
			}
		}
		compare := func(what string, lit bool) {
			t.Helper()
			in.run(5 * time.Millisecond)
			carry(5 * time.Millisecond)
			for _, l := range []struct {
				in, out BoardID
				bundle  int
			}{{a, oa, 1}, {z, oz, 0}} {
				got, want := out.line(l.out, l.bundle, hal.LOSExternal1), in.line(l.in, l.bundle, hal.LOSExternal1)
				if got != want {
					t.Errorf("%s: line of board %d is %v outside, %v inside", what, l.in, got, want)
				}
				if l.in == z && want != lit {
					t.Errorf("%s: light at board %d is %v", what, l.in, want)
				}
			}
			want := in.w.module(z, 0, 1).guardInputs(int64(in.w.now))
			got := out.w.module(oz, 0, 1).guardInputs(int64(out.w.now))
			for ch := range want {
				if d := got[ch] - want[ch]; d > 1e-5 || d < -1e-5 {
					t.Errorf("%s: channel %d sees %g mW outside, %g inside", what, ch, got[ch], want[ch])
				}
			}
		}
		both := func(bits byte) {
			in.latch(a, 1, bits)
			out.latch(oa, 1, bits)
		}
		compare("loopback", false)
		both(pathExternal1)
		compare("external 1", true)
		both(pathDark)
		compare("dark", false)
		both(pathExternal1)
		for _, d := range []Direction{Out, In, Both} {
			for _, err := range []error{in.w.Cut(Port{a, 1, hal.LOSExternal1}, d), out.w.Cut(pa, d)} {
				if err != nil {
					t.Fatal(err)
				}
			}
			compare("cut", d == In)
			for _, err := range []error{in.w.Mend(Port{a, 1, hal.LOSExternal1}, d), out.w.Mend(pa, d)} {
				if err != nil {
					t.Fatal(err)
				}
			}
			compare("mended", true)
		}
		in.w.SetPower(a, false)
		out.w.SetPower(oa, false)
		compare("power off", false)
	}
}
