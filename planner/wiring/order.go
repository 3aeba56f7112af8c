package wiring

import "fmt"

// Step is one command to a switch: take a cross-connect away, or make one.
type Step struct {
	Create  bool
	In, Out int // ports of the switch: the pods whose light comes and goes
}

// String is +in>out for a cross-connect made, -in>out for one taken away.
func (s Step) String() string {
	sign := '-'
	if s.Create {
		sign = '+'
	}
	return fmt.Sprintf("%c%d>%d", sign, s.In, s.Out)
}

// Steps orders what one switch has to do: everything that goes before
// anything that comes, so that no command finds a port taken and a box never
// has to resolve a conflict itself. Circuits in both configurations are not
// touched.
func Steps(old, wanted []int32) []Step {
	var steps []Step
	for in, out := range old {
		if out >= 0 && wanted[in] != out {
			steps = append(steps, Step{false, in, int(out)})
		}
	}
	for in, out := range wanted {
		if out >= 0 && old[in] != out {
			steps = append(steps, Step{true, in, int(out)})
		}
	}
	return steps
}

// GroupSteps are the commands for all switches of a group, by switch: even
// ones from the halves, odd ones from their mirrors.
func GroupSteps(old, wanted Half) [][]Step {
	out := make([][]Step, 2*old.Switches)
	oldOdd, wantedOdd := old.Mirror(), wanted.Mirror()
	for k := range old.Switches {
		out[2*k] = Steps(old.Row(k), wanted.Row(k))
		out[2*k+1] = Steps(oldOdd.Row(k), wantedOdd.Row(k))
	}
	return out
}
