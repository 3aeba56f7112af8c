package live

import (
	"time"

	"ringlight/ocs/circuit"
	"ringlight/sim"
	"ringlight/sim/fleet"
	"ringlight/sim/solo"
)

// circuitLight is the true light of a cluster's optical switches: what passes,
// what had to pass and did not, and since when it does. What is below mirrors
// is under the clock's lock.
type circuitLight struct {
	clock   *solo.Wall
	mirrors *fleet.Mirrors

	guarded [][]circuit.Pair // by switch
	drops   []Drop
	tracked *litTimes
}

// Drop is the moment at which a guarded circuit had no light.
type Drop struct {
	At     time.Duration `json:"at_ns"`
	Switch int           `json:"switch"`
	A      uint16        `json:"a"`
	B      uint16        `json:"b"`
}

func newCircuitLight(c *solo.Wall, m *fleet.Mirrors) *circuitLight {
	return &circuitLight{clock: c, mirrors: m, guarded: make([][]circuit.Pair, m.Switches())}
}

// Lit are the pairs of ports of a switch between which light really passes.
func (l *circuitLight) Lit(i int) []circuit.Pair {
	l.clock.Lock()
	defer l.clock.Unlock()
	return l.mirrors.Lit(l.clock.World, i)
}

// Guard says which circuits of a switch must keep their light from now on.
func (l *circuitLight) Guard(i int, circuits []circuit.Pair) {
	l.clock.Lock()
	defer l.clock.Unlock()
	l.guarded[i] = append([]circuit.Pair(nil), circuits...)
}

// Drops are the moments at which guarded circuits had no light; of a circuit
// only the first since it was guarded.
func (l *circuitLight) Drops() []Drop {
	l.clock.Lock()
	defer l.clock.Unlock()
	return append([]Drop(nil), l.drops...)
}

// look looks at the guarded circuits of a board on which something has
// happened: mirrors move only after a write, and are looked at while they do.
// The clock's lock is held.
func (l *circuitLight) look(id sim.BoardID) {
	i := int(id) - int(l.mirrors.First)
	if i < 0 || i >= len(l.guarded) {
		return
	}
	if l.tracked != nil {
		l.note(l.tracked, i)
	}
	kept := l.guarded[i][:0]
	for _, p := range l.guarded[i] {
		if l.mirrors.Passes(l.clock.World, i, p.A, p.B) {
			kept = append(kept, p)
			continue
		}
		l.drops = append(l.drops, Drop{At: l.clock.World.Now(), Switch: i, A: p.A, B: p.B})
	}
	l.guarded[i] = kept
}

// litTimes says when pairs of ports began to pass light, by switch.
type litTimes struct {
	pods int
	lit  [][]bool // by switch, and port of A and of B
	at   [][]time.Duration
}

// Track has the boards note from now on when pairs of ports begin to pass
// light between pods. It is looked at whenever something happens on a board.
func (l *circuitLight) Track(pods int) {
	l.clock.Lock()
	defer l.clock.Unlock()
	t := &litTimes{pods: pods}
	for i := range l.guarded {
		t.lit = append(t.lit, make([]bool, pods*pods))
		t.at = append(t.at, make([]time.Duration, pods*pods))
		l.note(t, i)
	}
	l.tracked = t
}

// note looks at all pairs of a switch. The clock's lock is held.
func (l *circuitLight) note(t *litTimes, i int) {
	for a := range t.pods {
		for b := range t.pods {
			n := a*t.pods + b
			passes := l.mirrors.Passes(l.clock.World, i, uint16(a), uint16(b))
			if passes && !t.lit[i][n] {
				t.at[i][n] = l.clock.World.Now()
			}
			t.lit[i][n] = passes
		}
	}
}

// LitSince is when a pair of ports last began to pass light; false: it does
// not, or nobody tracked it.
func (l *circuitLight) LitSince(i int, p circuit.Pair) (time.Duration, bool) {
	l.clock.Lock()
	defer l.clock.Unlock()
	t := l.tracked
	if t == nil || int(p.A) >= t.pods || int(p.B) >= t.pods || !t.lit[i][int(p.A)*t.pods+int(p.B)] {
		return 0, false
	}
	return t.at[i][int(p.A)*t.pods+int(p.B)], true
}
