package sched

import "fmt"

// fullLeaf is an ErrNoRoom for want of ports: a leaf with Ports, of which Used
// are in use, has so many leaves to Reach.
type fullLeaf struct{ Leaf, Ports, Used, Reach int }

func (e *fullLeaf) Error() string {
	return fmt.Sprintf("%v: leaf %d has %d ports, %d in use, and %d leaves to reach", ErrNoRoom, e.Leaf, e.Ports, e.Used, e.Reach)
}

func (e *fullLeaf) Unwrap() error { return ErrNoRoom }

// Fit brings a new job's wants within the ports of the leaves ([LUMOS] A.12,
// step 2): used is what each leaf has in use already, ports what it has. The
// result has the links each want gets. Where all fits, all get what they want;
// where a leaf is over its ports, flows share links, those of pipelines
// first, since they carry little, then those data parallel ones that have the
// most links. Every pair keeps one link; a leaf that is over even so makes the
// job ErrNoRoom: it has to be placed elsewhere.
//
// The publication leaves the choice to an unpublished model; this is a greedy.
// It takes from the leaf that is furthest over, and there from a pair whose
// other leaf is over as well if there is one.
func Fit(wants []Want, used []int, ports int) ([]int, error) {
	got := make([]int, len(wants))
	load := append([]int(nil), used...)
	at := make([][]int, len(used)) // of a leaf: its wants
	for n, w := range wants {
		if w.A < 0 || w.B < 0 || w.A >= len(used) || w.B >= len(used) || w.A == w.B || w.DP < 0 || w.PP < 0 || w.Links() < 1 {
			return nil, wrong(fmt.Sprintf("wants[%d]", n), "two known leaves and at least one link", "%+v", w)
		}
		got[n] = w.Links()
		load[w.A] += got[n]
		load[w.B] += got[n]
		at[w.A] = append(at[w.A], n)
		at[w.B] = append(at[w.B], n)
	}
	for {
		most := ports
		for leaf, n := range load {
			if len(at[leaf]) > 0 {
				most = max(most, n)
			}
		}
		if most == ports {
			return got, nil
		}
		for leaf := range load { // none grows, so they are furthest over one after the other
			if load[leaf] != most || len(at[leaf]) == 0 {
				continue
			}
			n := cheapest(wants, got, at[leaf], func(n int) bool { return load[wants[n].A]+load[wants[n].B]-load[leaf] > ports })
			if n < 0 {
				return nil, &fullLeaf{leaf, ports, used[leaf], len(at[leaf])}
			}
			got[n]--
			load[wants[n].A]--
			load[wants[n].B]--
		}
	}
}

// cheapest is the want of a leaf that loses a link most easily, or -1: first
// one that still has more than its data parallel traffic asks for; then by
// how many flows a link would carry; among equals one whose other leaf is
// over too.
func cheapest(wants []Want, got, of []int, otherOver func(n int) bool) int {
	best := -1
	for _, n := range of {
		if got[n] > 1 && (best < 0 || lighter(wants, got, n, best, otherOver)) {
			best = n
		}
	}
	return best
}

func lighter(wants []Want, got []int, n, m int, otherOver func(n int) bool) bool {
	pipelineOnly := func(n int) bool { return got[n] > wants[n].DP }
	if pipelineOnly(n) != pipelineOnly(m) {
		return pipelineOnly(n)
	}
	flows := func(n int) int {
		if pipelineOnly(n) {
			return wants[n].PP
		}
		return wants[n].DP
	}
	// flows(n)/(got[n]-1) against flows(m)/(got[m]-1), without a fraction
	if a, b := flows(n)*(got[m]-1), flows(m)*(got[n]-1); a != b {
		return a < b
	}
	return otherOver(n) && !otherOver(m)
}
