package wiring

import (
	"testing"

	"ringlight/mzi/detmath"
)

// The generators of tests and benchmarks.

// randomTopology joins ports at random: each pod has so many, every one of
// them left idle with a chance in thousandths. A pod is not joined with
// itself, so one last port may stay over.
func randomTopology(r *detmath.Random, pods, ports, idle int) Topology {
	var stubs []int32
	for i := range pods {
		for range ports {
			if r.Below(1000) >= idle {
				stubs = append(stubs, int32(i))
			}
		}
	}
	return fromCounts(pods, join(r, stubs, make([]int32, pods*pods)))
}

// churned takes a share of the links, in thousandths, and joins their ports
// anew.
func churned(r *detmath.Random, t Topology, share int) Topology {
	count := make([]int32, t.Pods*t.Pods)
	var stubs []int32
	for _, l := range t.Links {
		for range l.Count {
			if r.Below(1000) < share {
				stubs = append(stubs, l.I, l.J)
			} else {
				count[int(l.I)*t.Pods+int(l.J)]++
			}
		}
	}
	return fromCounts(t.Pods, join(r, stubs, count))
}

func join(r *detmath.Random, stubs, count []int32) []int32 {
	pods := 1
	for pods*pods < len(count) {
		pods++
	}
	for len(stubs) > 1 {
		n := r.Below(len(stubs))
		a := stubs[n]
		stubs[n] = stubs[len(stubs)-1]
		stubs = stubs[:len(stubs)-1]
		for range 100 {
			m := r.Below(len(stubs))
			if b := stubs[m]; b != a {
				stubs[m] = stubs[len(stubs)-1]
				stubs = stubs[:len(stubs)-1]
				count[int(min(a, b))*pods+int(max(a, b))]++
				break
			}
		}
	}
	return count
}

func fromCounts(pods int, count []int32) Topology {
	t := Topology{Pods: pods}
	for n, c := range count {
		if c > 0 {
			t.Links = append(t.Links, Link{int32(n / pods), int32(n % pods), c})
		}
	}
	return t
}

// withLoops gives some pods links to themselves where they have ports idle.
func withLoops(r *detmath.Random, t Topology, ports int) Topology {
	count := make([]int32, t.Pods*t.Pods)
	for _, l := range t.Links {
		count[int(l.I)*t.Pods+int(l.J)] = l.Count
	}
	for i, n := range t.Ports() {
		if idle := (ports - n) / 2; idle > 0 && r.Below(2) == 0 {
			count[i*t.Pods+i] = 2 * int32(1+r.Below(idle))
		}
	}
	return fromCounts(t.Pods, count)
}

// randomDemand is any matrix at all.
func randomDemand(r *detmath.Random, rows, cols, most int) Demand {
	d := Demand{Rows: rows, Cols: cols}
	for i := range rows {
		for j := range cols {
			if r.Below(3) > 0 {
				if c := r.Below(most + 1); c > 0 {
					d.Arcs = append(d.Arcs, Arc{int32(i), int32(j), int32(c)})
				}
			}
		}
	}
	return d
}

// randomGroup is a group configured for one topology that wants a churned
// one. With idle 0 every port is in use in both.
func randomGroup(t testing.TB, r *detmath.Random, pods, ports, idle, churn int) Group {
	t.Helper()
	for {
		was := randomTopology(r, pods, ports, idle)
		wanted := churned(r, was, churn)
		if idle == 0 && wanted.Circuits() != pods*ports/2 {
			continue // two last ports of one pod were left over
		}
		old, err := was.Orient().Layout(ports / 2)
		if err != nil {
			t.Fatal(err)
		}
		return Group{wanted, old}
	}
}

func atLeastFloor(sum, part, of int) bool { return part >= sum/of }
func atMostCeil(sum, part, of int) bool   { return part <= (sum+of-1)/of }

func isShare(sum, part, of int) bool { return atLeastFloor(sum, part, of) && atMostCeil(sum, part, of) }
