package isolate

import (
	"cmp"
	"slices"
)

// Place finds where a job of so many GPUs, one or more, would go, or why it
// cannot now. It changes nothing.
func (s *State) Place(gpus int) (Placement, Cause) {
	if gpus < 1 {
		panic("isolate: invariant: a job has one GPU or more")
	}
	if gpus <= s.core.GPUsPerServer {
		return s.withinServer(gpus)
	}
	need := int32(s.core.servers(gpus))
	if s.servers < need {
		return Placement{}, ByGPU
	}
	p, ok := s.withinLeaf(need)
	if !ok {
		switch {
		case s.core.Links != nil:
			p, ok = s.biclique(int(need))
		case s.core.Optics != nil:
			p, ok = s.overOptics(int(need))
		default:
			p, ok = s.anywhere(int(need)), true
		}
	}
	if !ok {
		return Placement{}, ByNetwork
	}
	p.GPUs = gpus
	return p, Fits
}

// withinServer is stage 0: the server with fewest free GPUs that suffice. Of
// several the one that is in use for longest, else the first. So which servers
// small jobs fill depends on the jobs alone, not on where the others are.
func (s *State) withinServer(gpus int) (Placement, Cause) {
	best, at := int32(-1), Server{GPUs: gpus}
	for n := range s.idle {
		for i, g := range s.gpus[s.first[n]:s.first[n+1]] {
			server := s.first[n] + int32(i)
			if g >= int32(gpus) && (best < 0 || g < s.gpus[best] || g == s.gpus[best] && s.opened[server] < s.opened[best]) {
				best, at.Leaf, at.Server = server, n, i
			}
		}
	}
	if best < 0 {
		return Placement{}, ByGPU
	}
	return Placement{GPUs: gpus, Servers: []Server{at}, L: 1}, Fits
}

// withinLeaf is stage 1: the leaf with fewest idle servers that suffice.
func (s *State) withinLeaf(need int32) (Placement, bool) {
	at := -1
	for n, idle := range s.idle {
		if idle >= need && (at < 0 || idle < s.idle[at]) {
			at = n
		}
	}
	if at < 0 {
		return Placement{}, false
	}
	return Placement{Stage: 1, Servers: s.idleServers(nil, at, int(need)), L: 1}, true
}

// anywhere is for a core whose links nobody owns: the fewest leaves.
func (s *State) anywhere(need int) Placement {
	p := Placement{Stage: 2}
	for _, n := range byLeast(Identity[int32](len(s.idle)), func(n int32) int32 { return -s.idle[n] }) {
		if left := need - len(p.Servers); left > 0 {
			p.Servers = s.idleServers(p.Servers, int(n), min(left, int(s.idle[n])))
			p.L++
		}
	}
	return p
}

// idleServers adds the first idle servers of a leaf.
func (s *State) idleServers(to []Server, leaf, servers int) []Server {
	for i, g := range s.gpus[s.first[leaf]:s.first[leaf+1]] {
		if servers > 0 && int(g) == s.core.GPUsPerServer {
			to = append(to, Server{leaf, i, int(g)})
			servers--
		}
	}
	return to
}

// Identity is the map of ports to virtual spines. Any map serves that is the
// same on every leaf; this one is easily read.
func Identity[N int | int32](n int) []N {
	m := make([]N, n)
	for i := range m {
		m[i] = N(i)
	}
	return m
}

// byLeast are numbers sorted by a key, then by themselves.
func byLeast[N int | int32](numbers []N, key func(n N) int32) []N {
	return slices.SortedFunc(slices.Values(numbers), func(a, b N) int { return cmp.Or(cmp.Compare(key(a), key(b)), cmp.Compare(a, b)) })
}
