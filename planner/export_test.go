package planner

import "testing"

// EachMadeState makes each state of states, for tests that read a planner from outside.
func EachMadeState(t *testing.T, f func(t *testing.T, p *Planner)) {
	for _, s := range states {
		t.Run(s.name, func(t *testing.T) { f(t, s.make(t).p) })
	}
}
