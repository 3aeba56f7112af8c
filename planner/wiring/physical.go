package wiring

// Interleaved wiring pairs ports and switches of a group: what port 2k of a
// spine sends and port 2k+1 receives goes through switch 2k, the rest through
// switch 2k+1 ([LUMOS] sec 3.1; Cross wiring in [CROSS] sec 4.1). Ports of a
// switch have the number of the pod, on the in side and on the out side. So
// what a cross-connect from pod i to pod j joins is egressPort at i and
// ingressPort at j.
func egressPort(sw int) int { return sw }

// ingressPort is the port of a spine at which light out of a switch arrives.
func ingressPort(sw int) int { return sw ^ 1 }

// ValidateSize says whether there can be such a group. Ports are paired, so
// their number must be even.
func ValidateSize(pods, spinePorts int) error {
	switch {
	case spinePorts < 1 || spinePorts > MaxSpinePorts:
		return wrong("spine_ports", "2..4096", "%d ports", spinePorts)
	case spinePorts%2 != 0:
		return wrong("spine_ports", "an even number",
			"%d ports cannot be paired, and the last could not be mirrored", spinePorts)
	case pods < 1 || pods > MaxPods:
		return podsError(pods)
	}
	return nil
}

func podsError(pods int) error {
	return wrong("pods", "1..4096", "%d pods", pods)
}
