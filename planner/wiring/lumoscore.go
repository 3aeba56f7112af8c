package wiring

import (
	"fmt"
	"slices"
)

// lumoscore.go turns what leaves need across pods into what each spine carries
// and with it into the topology of each group ([LUMOS] sec 4.1).

// Leaves is the leaf layer: the pod of every leaf, the spines of a pod - each
// the like-numbered spine's group - and the links between a leaf and a spine.
type Leaves struct {
	PodOf  []int32
	Pods   int
	Spines int // H
	Tau    int // links from each leaf to each spine, 1 or 2
}

// Ports is the number of cross-pod paths a leaf can have, K_leaf.
func (l Leaves) Ports() int { return l.Tau * l.Spines }

// Validate checks the description.
func (l Leaves) Validate() error {
	switch {
	case l.Tau != 1 && l.Tau != 2:
		return wrong("tau", "1 or 2", "%d", l.Tau)
	case l.Spines < 1 || l.Spines > MaxSpinePorts:
		return wrong("spines", "1..4096", "%d", l.Spines)
	case l.Pods < 1 || l.Pods > MaxPods:
		return podsError(l.Pods)
	}
	for a, p := range l.PodOf {
		if p < 0 || int(p) >= l.Pods {
			return wrong(fmt.Sprintf("pod of leaf %d", a), fmt.Sprintf("0..%d", l.Pods-1), "%d", p)
		}
	}
	return nil
}

// CheckNeed says whether a need - disjoint cross-pod paths between pairs of
// leaves - can be spread: leaves of different pods, and no leaf with more
// paths than it has ports.
func (l Leaves) CheckNeed(need Topology) error {
	if err := l.Validate(); err != nil {
		return err
	}
	if need.Pods != len(l.PodOf) {
		return wrong("need", fmt.Sprintf("%d leaves", len(l.PodOf)), "%d leaves", need.Pods)
	}
	for n, link := range need.Links {
		if l.PodOf[link.I] == l.PodOf[link.J] {
			return wrong(fmt.Sprintf("need[%d]", n), "leaves of different pods",
				"leaves %d and %d are both in pod %d", link.I, link.J, l.PodOf[link.I])
		}
	}
	for a, n := range need.Ports() {
		if n > l.Ports() {
			return wrong("need", fmt.Sprintf("at most tau * spines = %d paths a leaf", l.Ports()), "leaf %d needs %d", a, n)
		}
	}
	return nil
}

// Spread is which spine carries what: of every spine, the paths between pairs
// of leaves. It is symmetric, so it keeps links bidirectional.
type Spread struct {
	Leaves
	Spine []Topology // over leaves
}

// SpreadNeed assigns a need to the spines. With tau = 2 no leaf has more than 2
// paths on a spine, as many as it has links there (Th. 4.1). With tau = 1 it
// has no more than 1 where no leaf needs more than half of its ports (Th.
// 4.2), and otherwise 2 at most, which for some needs is the least there is.
//
// Unlike [LUMOS], whose steps are flows, both are Euler walks; and the walks
// balance pods as well as leaves, so that with tau = 1 the spines' own ports
// suffice for any need of pods with an even number of leaves.
func (l Leaves) SpreadNeed(need Topology) (Spread, error) {
	if err := l.CheckNeed(need); err != nil {
		return Spread{}, err
	}
	s := Spread{Leaves: l, Spine: make([]Topology, l.Spines)}
	for h := range s.Spine {
		s.Spine[h].Pods = len(l.PodOf)
	}
	if l.Tau == 1 && l.sparse(need) {
		s.greedy(need)
		return s, nil
	}
	for h, part := range need.orient(l.PodOf).split(l.Spines, l.PodOf) {
		s.Spine[h] = part.undirected()
	}
	return s, nil
}

// sparse is the condition of Th. 4.2.
func (l Leaves) sparse(need Topology) bool {
	return !slices.ContainsFunc(need.Ports(), func(n int) bool { return 2*n > l.Ports() })
}

// greedy gives every path a spine on which neither leaf has one yet. Each of
// the two has at most half of the spines less one taken, so two are left.
func (s *Spread) greedy(need Topology) {
	taken := make([]bool, len(s.PodOf)*s.Spines)
	for _, link := range need.Links {
		left := link.Count
		for h := 0; left > 0; h++ {
			if h == s.Spines {
				panic("wiring: invariant: leaves that need half of their spines share a free one")
			}
			a, b := int(link.I)*s.Spines+h, int(link.J)*s.Spines+h
			if !taken[a] && !taken[b] {
				taken[a], taken[b] = true, true
				s.Spine[h].Links = append(s.Spine[h].Links, Link{link.I, link.J, 1})
				left--
			}
		}
	}
}

// undirected adds up the arcs of each pair.
func (d Demand) undirected() Topology {
	t := Topology{Pods: d.Rows}
	var forward, back []Arc
	for _, a := range d.Arcs {
		if a.From < a.To {
			forward = append(forward, a)
		} else {
			back = append(back, Arc{a.To, a.From, a.Count})
		}
	}
	for _, a := range together(Demand{d.Rows, d.Cols, forward}, Demand{d.Rows, d.Cols, mergeByRow(d.Rows, nil, back)}).Arcs {
		t.Links = append(t.Links, Link{a.From, a.To, a.Count})
	}
	return t
}

// Load is the most paths any leaf has on one spine.
func (s Spread) Load() int {
	most := 0
	for _, t := range s.Spine {
		for _, n := range t.Ports() {
			most = max(most, n)
		}
	}
	return most
}
