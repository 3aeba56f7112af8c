package sched

import (
	"maps"
	"slices"
)

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
// The replicas of a stage do their collective, phase after phase, and stages do
// it one after the other, so a pair of leaves wants the most of any phase of
// any stage; their pipelines run all the time, so those of all replicas add up.
func needOf(c Collective, parts [][][]int, podOf []int32, rails int) ([]Want, error) {
	for _, leafOf := range parts {
		if err := checkNeed(leafOf, podOf, rails); err != nil {
			return nil, err
		}
	}
	parts, leaves := renumber(parts, len(podOf))
	n := len(leaves)
	d := domain{rows: make([][]int, len(parts)), podOf: make([]int32, n), rails: rails, flows: map[int]int{}}
	for a, leaf := range leaves {
		d.podOf[a] = podOf[leaf]
	}
	wants := map[int]Want{} // flows of each pair of leaves; most pairs have none
	add := func(a, b, dp, pp int) {
		if d.podOf[a] != d.podOf[b] {
			at := min(a, b)*n + max(a, b)
			w := wants[at]
			wants[at] = Want{DP: max(w.DP, dp), PP: w.PP + pp}
		}
	}
	for r := range parts[0] {
		for k := range parts {
			d.rows[k] = parts[k][r]
		}
		for phase := 0; d.phase(c, phase); phase++ {
			for at, f := range d.flows { // any order: the most of each pair
				add(at/n, at%n, f, 0)
			}
			clear(d.flows)
		}
	}
	for _, leafOf := range parts {
		for r := 1; r < len(leafOf); r++ {
			for c, a := range leafOf[r-1] {
				add(a, leafOf[r][c], 0, rails)
			}
		}
	}
	var out []Want
	for _, at := range slices.Sorted(maps.Keys(wants)) {
		w := wants[at]
		w.A, w.B = leaves[at/n], leaves[at%n]
		out = append(out, w)
	}
	return out, nil
}

// renumber numbers the leaves that a job is at from 0, in their order.
func renumber(parts [][][]int, all int) (out [][][]int, leaves []int) {
	at := make([]int, all)
	for _, rows := range parts {
		for _, row := range rows {
			for _, leaf := range row {
				at[leaf] = 1
			}
		}
	}
	for leaf, used := range at {
		if used > 0 {
			at[leaf] = len(leaves)
			leaves = append(leaves, leaf)
		}
	}
	for _, rows := range parts {
		var part [][]int
		for _, row := range rows {
			to := make([]int, len(row))
			for i, leaf := range row {
				to[i] = at[leaf]
			}
			part = append(part, to)
		}
		out = append(out, part)
	}
	return out, leaves
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

// RingOrder is the order of a ring through members, given the pod of each: out
// through the pods, in the order they come in, with the first half of what lies
// in each, and back with the second ([LUMOS] eq. 42).
func RingOrder(podOf []int32) []int {
	var pods []int32
	in := map[int32][]int{}
	for n, p := range podOf {
		if in[p] == nil {
			pods = append(pods, p)
		}
		in[p] = append(in[p], n)
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
