package wiring

import (
	"cmp"
	"fmt"
	"slices"
)

const (
	// MaxPods bounds the ports of one optical switch. chosen: eight times the
	// largest box on sale (512 ports, [LUMOS] Table 1).
	MaxPods = 4096
	// MaxSpinePorts bounds the switches of one group. chosen: as MaxPods.
	MaxSpinePorts = 4096
)

// Link is Count links between pods I and J, I <= J. A link from a pod to
// itself takes two of its ports; as in the matrix of [LUMOS], Count then
// counts ports, and must be even.
type Link struct{ I, J, Count int32 }

// Topology is what is asked of one group: a symmetric matrix of links, kept as
// its upper triangle, by I then J, without zeros or repeats.
type Topology struct {
	Pods  int
	Links []Link
}

// NewTopology sorts and checks links. Each pair may come once, as I <= J.
func NewTopology(pods int, links []Link) (Topology, error) {
	t, err := Sum(pods, links)
	if err != nil || len(t.Links) == len(links) {
		return t, err
	}
	there := slices.DeleteFunc(slices.Clone(links), func(l Link) bool { return l.Count == 0 })
	slices.SortFunc(there, byPair)
	for n := 1; n < len(there); n++ {
		if a, b := there[n-1], there[n]; byPair(a, b) == 0 {
			return Topology{}, wrong("links", "each pair once", "pair [%d,%d] comes twice", a.I, a.J)
		}
	}
	return t, nil
}

// Sum is NewTopology for pairs that may come more than once: what they ask for
// is added up.
func Sum(pods int, links []Link) (Topology, error) {
	if pods < 1 || pods > MaxPods {
		return Topology{}, podsError(pods)
	}
	all := make([]Link, 0, len(links))
	for n, l := range links {
		if err := checkLink(pods, n, l); err != nil {
			return Topology{}, err
		}
		if l.Count > 0 {
			all = append(all, l)
		}
	}
	slices.SortFunc(all, byPair)
	t := Topology{Pods: pods, Links: all[:0]}
	for _, l := range all {
		if last := len(t.Links) - 1; last >= 0 && byPair(t.Links[last], l) == 0 {
			t.Links[last].Count += l.Count
		} else {
			t.Links = append(t.Links, l)
		}
	}
	return t, nil
}

func byPair(a, b Link) int {
	if a.I != b.I {
		return cmp.Compare(a.I, b.I)
	}
	return cmp.Compare(a.J, b.J)
}

func checkLink(pods, n int, l Link) error {
	bad := func(limit, format string, args ...any) error {
		return wrong(fmt.Sprintf("links[%d]", n), limit, format, args...)
	}
	switch {
	case l.I < 0 || l.J < 0 || int(l.I) >= pods || int(l.J) >= pods:
		return bad(fmt.Sprintf("pods 0..%d", pods-1), "[%d,%d] names an unknown pod", l.I, l.J)
	case l.I > l.J:
		return bad("i <= j, each pair once", "[%d,%d] is the wrong way round", l.I, l.J)
	case l.Count < 0 || l.Count > MaxSpinePorts:
		return bad("a count of 0..4096", "count %d", l.Count)
	case l.I == l.J && l.Count%2 != 0:
		// [LUMOS] Th. 2.1 as printed is false for the matrix [1].
		return bad("an even count on the diagonal",
			"%d ports of pod %d cannot be joined in pairs", l.Count, l.I)
	}
	return nil
}

// Ports is the number of ports each pod needs: the row sums of the matrix.
func (t Topology) Ports() []int {
	sum := make([]int, t.Pods)
	for _, l := range t.Links {
		sum[l.I] += int(l.Count)
		if l.I != l.J {
			sum[l.J] += int(l.Count)
		}
	}
	return sum
}

// Circuits is the number of circuits in the even half: one a link.
func (t Topology) Circuits() int {
	n := 0
	for _, l := range t.Links {
		n += int(l.circuits())
	}
	return n
}

func (l Link) circuits() int32 {
	if l.I == l.J {
		return l.Count / 2
	}
	return l.Count
}

// CheckPorts says whether every pod has ports enough.
func (t Topology) CheckPorts(spinePorts int) error {
	for pod, n := range t.Ports() {
		if n > spinePorts {
			return wrong("links", fmt.Sprintf("at most spine_ports = %d links a pod", spinePorts),
				"pod %d has %d", pod, n)
		}
	}
	return nil
}

// Merge adds two topologies of the same pods.
func Merge(a, b Topology) Topology {
	return Topology{a.Pods, merged(a.Links, b.Links, byPair, func(to *Link, l Link) { to.Count += l.Count })}
}

// merged puts two sorted lists together; what is in both is added up.
func merged[T any](a, b []T, order func(a, b T) int, add func(to *T, x T)) []T {
	out := make([]T, 0, len(a)+len(b))
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case j == len(b) || i < len(a) && order(a[i], b[j]) < 0:
			out = append(out, a[i])
			i++
		case i == len(a) || order(b[j], a[i]) < 0:
			out = append(out, b[j])
			j++
		default:
			out = append(out, a[i])
			add(&out[len(out)-1], b[j])
			i++
			j++
		}
	}
	return out
}
