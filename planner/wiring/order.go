package wiring

// Step is one command to a switch: take a cross-connect away, or make one.
type Step struct {
	Create  bool
	In, Out int // ports of the switch: the pods whose light comes and goes
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
