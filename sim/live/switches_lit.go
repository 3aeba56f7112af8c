package live

import (
	"time"

	"ringlight/ocs/circuit"
)

// litTimes says when pairs of ports began to pass light, by switch.
type litTimes struct {
	pods, ports int
	lit         [][]bool // by switch, and port of A and of B
	at          [][]time.Duration
}

// Track has the boards note from now on when pairs of ports begin to pass
// light. It is looked at whenever something happens on a board.
func (s *Switches) Track() {
	s.clock.mu.Lock()
	defer s.clock.mu.Unlock()
	t := &litTimes{pods: s.cfg.Fabric.Core.Pods, ports: s.cfg.Fabric.Core.SwitchPorts}
	for i := range s.lives {
		t.lit = append(t.lit, make([]bool, t.pods*t.ports))
		t.at = append(t.at, make([]time.Duration, t.pods*t.ports))
		s.note(t, i)
	}
	s.tracked = t
}

// note looks at all pairs of a switch. The clock's lock is held.
func (s *Switches) note(t *litTimes, i int) {
	for a := range t.pods {
		for b := range t.pods {
			n := a*t.ports + b
			passes := s.mirrors.Passes(s.clock.world, i, uint16(a), uint16(b))
			if passes && !t.lit[i][n] {
				t.at[i][n] = s.clock.world.Now()
			}
			t.lit[i][n] = passes
		}
	}
}

// LitSince is when a pair of ports last began to pass light; false: it does
// not, or nobody tracked it.
func (s *Switches) LitSince(i int, p circuit.Pair) (time.Duration, bool) {
	s.clock.mu.Lock()
	defer s.clock.mu.Unlock()
	t := s.tracked
	if t == nil || int(p.A) >= t.pods || int(p.B) >= t.pods || !t.lit[i][int(p.A)*t.ports+int(p.B)] {
		return 0, false
	}
	return t.at[i][int(p.A)*t.ports+int(p.B)], true
}
