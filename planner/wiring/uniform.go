package wiring

// Matchings is the configuration of one group under uniform wiring, where
// both fibres of a port go to the same switch: a link takes a circuit in each
// direction there, so a switch realises a matching of pods. To is as in Half,
// but with all switches, and symmetric.
type Matchings struct {
	Pods, Switches int
	To             []int32
}

// newMatchings is a configuration with nothing in it.
func newMatchings(pods, switches int) Matchings { return Matchings(NewHalf(pods, switches)) }

// Row is switch k: the pod each pod is joined with, or -1.
func (m Matchings) Row(k int) []int32 { return Half(m).Row(k) }

func (m Matchings) join(k int, i, j int32) { m.Row(k)[i], m.Row(k)[j] = j, i }

// Links is the topology that is realised.
func (m Matchings) Links() []Link {
	once := NewHalf(m.Pods, m.Switches)
	for s, j := range m.To {
		if int(j) > s%m.Pods {
			once.To[s] = j
		}
	}
	return once.Links()
}

// Kept counts the links that are in both configurations in the same switch.
func (m Matchings) Kept(old Matchings) int {
	n := 0
	for s, j := range m.To {
		if int(j) > s%m.Pods && old.To[s] == j {
			n++
		}
	}
	return n
}

// GreedyUniform is the greedy of the literature on uniform wiring ([CROSS]
// sec 6.2): old links that are still wanted stay, and each further one takes
// the first switch in which both its pods are free. What finds none is not
// realised; under this wiring that need not be the greedy's fault. A pod
// cannot be joined with itself.
func GreedyUniform(t Topology, old Matchings) Matchings {
	m := newMatchings(old.Pods, old.Switches)
	left := make([]int32, len(t.Links))
	for n, l := range t.Links {
		if l.I == l.J {
			continue
		}
		left[n] = l.Count
		for k := range m.Switches {
			if left[n] > 0 && old.Row(k)[l.I] == l.J {
				m.join(k, l.I, l.J)
				left[n]--
			}
		}
	}
	for n, l := range t.Links {
		for k := 0; k < m.Switches && left[n] > 0; k++ {
			if m.Row(k)[l.I] < 0 && m.Row(k)[l.J] < 0 {
				m.join(k, l.I, l.J)
				left[n]--
			}
		}
	}
	return m
}
