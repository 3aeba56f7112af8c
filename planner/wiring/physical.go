package wiring

// Plan is how the spines of a group hang on its optical switches.
type Plan uint8

const (
	// Interleaved pairs ports and switches: what port 2k sends and port 2k+1
	// receives goes through switch 2k, the rest through switch 2k+1
	// ([LUMOS] sec 3.1; Cross wiring in [CROSS] sec 4.1).
	Interleaved Plan = iota
	// Uniform takes both fibres of port k to switch k: a bidirectional link
	// needs both directions in one switch.
	Uniform
)

func (p Plan) String() string {
	if p == Uniform {
		return "uniform"
	}
	return "interleaved"
}

// Fibre is one fibre between a port of a pod's spine and a switch. Switch
// ports have the number of the pod, on the in side and on the out side.
type Fibre struct {
	Pod, Port int
	Egress    bool // from the spine to the switch's in side; else from its out side to the spine
	Switch    int
}

// Switch says where one fibre of a spine's port goes.
func (p Plan) Switch(port int, egress bool) int {
	if p == Interleaved && !egress {
		return port ^ 1
	}
	return port
}

// EgressPort and IngressPort are the ports of a spine at a switch: what a
// cross-connect from pod i to pod j in that switch joins is EgressPort at i
// and IngressPort at j.
func (p Plan) EgressPort(sw int) int { return sw }

// IngressPort is the port at which light out of a switch arrives.
func (p Plan) IngressPort(sw int) int {
	if p == Interleaved {
		return sw ^ 1
	}
	return sw
}

// Validate says whether there can be such a group. Interleaved wiring pairs
// ports, so their number must be even.
func (p Plan) Validate(pods, spinePorts int) error {
	if err := checkPorts(p, spinePorts); err != nil {
		return err
	}
	if pods < 1 || pods > MaxPods {
		return podsError(pods)
	}
	return nil
}

// Fibres lists every fibre of one group by pod, port and direction.
func (p Plan) Fibres(pods, spinePorts int) ([]Fibre, error) {
	if err := p.Validate(pods, spinePorts); err != nil {
		return nil, err
	}
	out := make([]Fibre, 0, pods*spinePorts*2)
	for pod := range pods {
		for port := range spinePorts {
			out = append(out,
				Fibre{pod, port, true, p.Switch(port, true)},
				Fibre{pod, port, false, p.Switch(port, false)})
		}
	}
	return out, nil
}

func checkPorts(p Plan, spinePorts int) error {
	switch {
	case spinePorts < 1 || spinePorts > MaxSpinePorts:
		return wrong("spine_ports", "2..4096", "%d ports", spinePorts)
	case p == Interleaved && spinePorts%2 != 0:
		return wrong("spine_ports", "an even number",
			"%d ports cannot be paired, and the last could not be mirrored", spinePorts)
	}
	return nil
}

func podsError(pods int) error {
	return wrong("pods", "1..4096", "%d pods", pods)
}
