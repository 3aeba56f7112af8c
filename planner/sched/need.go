package sched

// Want is what a job wants between two leaves of different pods: links for its
// data parallel traffic and for its pipelines. The two have their time each,
// so they share links.
type Want struct {
	A, B   int // leaves, A < B
	DP, PP int
}

// Links is how many links the pair wants in all.
func (w Want) Links() int { return max(w.DP, w.PP) }

// needOf counts, for a job whose elements are at these leaves, the links that
// pairs of leaves of different pods want ([LUMOS] A.12, step 1). parts is the
// arrangement by part of an element, pipeline stage and replica: each part has
// its own leaf in the pod of the element, and what parts send at the same time
// adds up. podOf gives a leaf's pod; rails is the number of flows between two
// parts, one for each GPU of a tensor parallel domain there.
//
// Replicas of a stage form a ring that goes out through the pods and comes
// back ([LUMOS] eq. 42), even rails one way round and odd ones the other (eq.
// 43). Stages do this one after the other, so a pair of leaves wants the most
// of any stage; their pipelines run all the time, so those of all replicas
// add up.
func needOf(parts [][][]int, podOf []int32, rails int) ([]Want, error) {
	for _, leafOf := range parts {
		if err := checkNeed(leafOf, podOf, rails); err != nil {
			return nil, err
		}
	}
	n := len(podOf)
	wants := make([]Want, n*n) // dense: leaves of one job's cluster
	pair := func(a, b int) *Want { return &wants[min(a, b)*n+max(a, b)] }
	flows := make([]int, n*n)
	for r := range parts[0] {
		clear(flows)
		for _, leafOf := range parts {
			ring := ringOrder(leafOf[r], podOf)
			for i, a := range ring {
				b := ring[(i+1)%len(ring)]
				flows[a*n+b] += (rails + 1) / 2
				flows[b*n+a] += rails / 2
			}
		}
		for a := range n {
			for b := a + 1; b < n; b++ {
				if f := max(flows[a*n+b], flows[b*n+a]); f > 0 && podOf[a] != podOf[b] {
					w := pair(a, b)
					w.DP = max(w.DP, f)
				}
			}
		}
	}
	for _, leafOf := range parts {
		for r := 1; r < len(leafOf); r++ {
			for c, a := range leafOf[r-1] {
				if b := leafOf[r][c]; podOf[a] != podOf[b] {
					pair(a, b).PP += rails
				}
			}
		}
	}
	var out []Want
	for i, w := range wants {
		if w.Links() > 0 {
			w.A, w.B = i/n, i%n
			out = append(out, w)
		}
	}
	return out, nil
}

func checkNeed(leafOf [][]int, podOf []int32, rails int) error {
	if rails < 1 || rails > maxDomain {
		return wrong("rails", "at least 1", "%d", rails)
	}
	for r, row := range leafOf {
		if len(row) != len(leafOf[0]) || len(row) == 0 {
			return wrong("arrangement", "rows of one length", "row %d has %d", r, len(row))
		}
		for _, a := range row {
			if a < 0 || a >= len(podOf) {
				return wrong("arrangement", "known leaves", "leaf %d", a)
			}
		}
	}
	return nil
}

// ringOrder is the order of a ring through leaves: out through the pods, in
// the order they come in, with the first half of what lies in each, and back
// with the second.
func ringOrder(row []int, podOf []int32) []int {
	var pods []int32
	in := map[int32][]int{}
	for _, leaf := range row {
		p := podOf[leaf]
		if in[p] == nil {
			pods = append(pods, p)
		}
		in[p] = append(in[p], leaf)
	}
	var out, back []int
	for _, p := range pods {
		half := (len(in[p]) + 1) / 2
		out = append(out, in[p][:half]...)
	}
	for i := len(pods) - 1; i >= 0; i-- {
		half := (len(in[pods[i]]) + 1) / 2
		back = append(back, in[pods[i]][half:]...)
	}
	return append(out, back...)
}
