package wiring

import "fmt"

// Check is the postcondition every configuration of this package has passed:
// each even switch is a partial permutation, and the circuits of the even
// half and of its mirror together are exactly the topology. The error says
// what is wrong first.
func Check(t Topology, h Half) error {
	if h.Pods != t.Pods {
		return wrong("even", fmt.Sprintf("%d pods", t.Pods), "%d pods", h.Pods)
	}
	for s, j := range h.To {
		if j < None || int(j) >= h.Pods {
			return wrong(fmt.Sprintf("even[%d][%d]", s/h.Pods, s%h.Pods), "-1 or a pod", "%d", j)
		}
	}
	if err := h.checkPermutations("even"); err != nil {
		return err
	}
	if err := checkMirror(h); err != nil {
		return err
	}
	got := h.Links()
	for n := 0; n < len(got) || n < len(t.Links); n++ {
		switch {
		case n == len(t.Links) || n < len(got) && byPair(got[n], t.Links[n]) < 0:
			return wrong("even", "the links asked for", "pair [%d,%d] has %d links, asked are 0", got[n].I, got[n].J, got[n].Count)
		case n == len(got) || byPair(got[n], t.Links[n]) > 0:
			return wrong("even", "the links asked for", "pair [%d,%d] has 0 links, asked are %d",
				t.Links[n].I, t.Links[n].J, t.Links[n].Count)
		case got[n] != t.Links[n]:
			return wrong("even", "the links asked for", "pair [%d,%d] has %d links, asked are %d",
				got[n].I, got[n].J, got[n].Count, t.Links[n].Count)
		}
	}
	return nil
}

// checkMirror says whether under interleaved wiring every circuit of the even
// half meets its return through the odd half at the same two ports.
func checkMirror(h Half) error {
	odd := h.Mirror()
	for k := range h.Switches {
		for i, j := range h.Row(k) {
			if j >= 0 && odd.Row(k)[j] != int32(i) {
				return wrong(fmt.Sprintf("even[%d][%d]", k, i), "its transpose in the odd switch",
					"port %d of pod %d sends to port %d of pod %d, which does not send back",
					egressPort(2*k), i, ingressPort(2*k), j)
			}
		}
	}
	return nil
}

// Links is the topology that a half and its mirror realise.
func (h Half) Links() []Link {
	// Circuits by lower pod, then higher pod: two counting sorts.
	type pair struct{ i, j int32 }
	at := make([]int32, h.Pods+1)
	n := 0
	for s, j := range h.To {
		if j >= 0 {
			at[max(int32(s%h.Pods), j)]++
			n++
		}
	}
	byHigh := make([]pair, n)
	place(at)
	for s, j := range h.To {
		if j >= 0 {
			i := int32(s % h.Pods)
			i, j = min(i, j), max(i, j)
			byHigh[at[j]] = pair{i, j}
			at[j]++
		}
	}
	clear(at)
	for _, p := range byHigh {
		at[p.i]++
	}
	place(at)
	sorted := make([]pair, n)
	for _, p := range byHigh {
		sorted[at[p.i]] = p
		at[p.i]++
	}
	var links []Link
	for _, p := range sorted {
		step := int32(1)
		if p.i == p.j {
			step = 2
		}
		if last := len(links) - 1; last >= 0 && links[last].I == p.i && links[last].J == p.j {
			links[last].Count += step
		} else {
			links = append(links, Link{p.i, p.j, step})
		}
	}
	return links
}

// place turns counts into first places.
func place(at []int32) {
	sum := int32(0)
	for n, c := range at {
		at[n] = sum
		sum += c
	}
}
