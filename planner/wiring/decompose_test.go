package wiring

import (
	"testing"

	"ringlight/mzi/detmath"
)

// Every entry and every sum of the oriented half is the floor or the ceiling
// of half, and both directions together are the topology.
// Method: thousands of random topologies with loops and odd sums.
func TestOrientIsBalanced(t *testing.T) {
	r := detmath.Random(1)
	for range 3000 {
		ports := 1 + r.Below(24)
		top := withLoops(&r, randomTopology(&r, 1+r.Below(14), ports, r.Below(400)), ports)
		checkOriented(t, top, top.Orient())
		checkOriented(t, top, crossOrient(top))
	}
}

func checkOriented(t *testing.T, top Topology, d Demand) {
	t.Helper()
	checkSorted(t, d)
	a := dense(d)
	want := make([]int, top.Pods*top.Pods)
	for _, l := range top.Links {
		want[int(l.I)*top.Pods+int(l.J)] = int(l.Count)
		want[int(l.J)*top.Pods+int(l.I)] = int(l.Count)
	}
	ports := top.Ports()
	for i := range top.Pods {
		row, col := 0, 0
		for j := range top.Pods {
			x, y := a[i*top.Pods+j], a[j*top.Pods+i]
			if x+y != want[i*top.Pods+j] {
				t.Fatalf("%v: A + A^T has %d at [%d,%d], want %d", top, x+y, i, j, want[i*top.Pods+j])
			}
			if !isShare(want[i*top.Pods+j], x, 2) {
				t.Fatalf("%v: A has %d of %d at [%d,%d]", top, x, want[i*top.Pods+j], i, j)
			}
			row += x
			col += y
		}
		if !isShare(ports[i], row, 2) || !isShare(ports[i], col, 2) {
			t.Fatalf("%v: pod %d with %d ports sends %d and receives %d", top, i, ports[i], row, col)
		}
	}
}

func dense(d Demand) []int {
	a := make([]int, d.Rows*d.Cols)
	for _, arc := range d.Arcs {
		a[int(arc.From)*d.Cols+int(arc.To)] += int(arc.Count)
	}
	return a
}

func checkSorted(t *testing.T, d Demand) {
	t.Helper()
	for n, a := range d.Arcs {
		if a.Count < 1 || n > 0 && byEnds(d.Arcs[n-1], a) >= 0 {
			t.Fatalf("arcs not in order or without circuits: %v", d.Arcs)
		}
	}
}

// Every part of a matrix split in k has floors and ceilings of a k-th
// everywhere, and the parts add up.
// Method: thousands of random matrices, odd k among them, not square ones too.
func TestSplitIsEven(t *testing.T) {
	r := detmath.Random(2)
	for range 3000 {
		d := randomDemand(&r, 1+r.Below(9), 1+r.Below(9), 1+r.Below(12))
		k := 1 + r.Below(17)
		checkSplit(t, d, d.split(k, nil), k)
	}
}

func checkSplit(t *testing.T, d Demand, parts []Demand, k int) {
	t.Helper()
	if len(parts) != k {
		t.Fatalf("%d parts, want %d", len(parts), k)
	}
	whole := dense(d)
	rows, cols := d.Sums()
	sum := make([]int, len(whole))
	for _, p := range parts {
		checkSorted(t, p)
		for n, x := range dense(p) {
			sum[n] += x
			if !isShare(whole[n], x, k) {
				t.Fatalf("%v in %d: entry %d of a part is %d of %d", d, k, n, x, whole[n])
			}
		}
		r, c := p.Sums()
		for i := range rows {
			if !isShare(rows[i], r[i], k) {
				t.Fatalf("%v in %d: row %d of a part is %d of %d", d, k, i, r[i], rows[i])
			}
		}
		for j := range cols {
			if !isShare(cols[j], c[j], k) {
				t.Fatalf("%v in %d: column %d of a part is %d of %d", d, k, j, c[j], cols[j])
			}
		}
	}
	for n := range whole {
		if sum[n] != whole[n] {
			t.Fatalf("%v in %d: entry %d adds up to %d of %d", d, k, n, sum[n], whole[n])
		}
	}
}

// With pods above the rows and columns, these get floors and ceilings too.
// Method: as above, pods of random size.
func TestSplitBalancesPods(t *testing.T) {
	r := detmath.Random(3)
	for range 1000 {
		leaves := 2 + r.Below(10)
		podOf := make([]int32, leaves)
		pods := 1 + r.Below(4)
		for a := range podOf {
			podOf[a] = int32(r.Below(pods))
		}
		d := randomDemand(&r, leaves, leaves, 5)
		k := 1 + r.Below(9)
		parts := d.split(k, podOf)
		checkSplit(t, d, parts, k)
		whole := podSums(d, podOf, pods)
		for _, p := range parts {
			for n, x := range podSums(p, podOf, pods) {
				if !isShare(whole[n], x, k) {
					t.Fatalf("pod sum %d of a part is %d of %d in %d", n, x, whole[n], k)
				}
			}
		}
	}
}

func podSums(d Demand, podOf []int32, pods int) []int {
	sums := make([]int, 2*pods)
	for _, a := range d.Arcs {
		sums[podOf[a.From]] += int(a.Count)
		sums[pods+int(podOf[a.To])] += int(a.Count)
	}
	return sums
}

// Layout is a partial permutation a switch with nothing lost, for any number
// of switches, and refuses what cannot fit.
// Method: random topologies over even and odd numbers of switches.
func TestLayoutIsExact(t *testing.T) {
	r := detmath.Random(4)
	for range 2000 {
		switches := 1 + r.Below(13)
		top := withLoops(&r, randomTopology(&r, 1+r.Below(16), 2*switches, r.Below(300)), 2*switches)
		h, err := top.Orient().Layout(switches)
		if err != nil {
			t.Fatal(err)
		}
		if err := Check(top, h); err != nil {
			t.Fatalf("%d switches: %v", switches, err)
		}
	}
	if _, err := (Demand{2, 2, []Arc{{0, 1, 3}}}).Layout(2); err == nil {
		t.Error("three circuits of one pod in two switches were accepted")
	}
	if _, err := (Demand{3, 3, []Arc{{0, 2, 1}, {1, 2, 2}}}).Layout(2); err == nil {
		t.Error("three circuits to one pod in two switches were accepted")
	}
}

// A circulation of least cost is found, or none where there is none.
// Method: small random networks against trying every flow.
func TestFlowAgainstBruteForce(t *testing.T) {
	type arc struct{ from, to, low, high, cost int }
	r := detmath.Random(5)
	for range 2000 {
		nodes := 2 + r.Below(3)
		arcs := make([]arc, 1+r.Below(6))
		for n := range arcs {
			low := r.Below(2)
			arcs[n] = arc{r.Below(nodes), r.Below(nodes), low, low + r.Below(3), r.Below(7) - 3}
		}
		best, found := 0, false
		on := make([]int, len(arcs))
		var try func(n, cost int)
		try = func(n, cost int) {
			if n == len(arcs) {
				over := make([]int, nodes)
				for m, a := range arcs {
					over[a.from] -= on[m]
					over[a.to] += on[m]
				}
				for _, x := range over {
					if x != 0 {
						return
					}
				}
				if !found || cost < best {
					best, found = cost, true
				}
				return
			}
			for x := arcs[n].low; x <= arcs[n].high; x++ {
				on[n] = x
				try(n+1, cost+x*arcs[n].cost)
			}
		}
		try(0, 0)
		f := newFlow(nodes, len(arcs))
		for _, a := range arcs {
			f.arc(a.from, a.to, a.low, a.high, a.cost)
		}
		if ok := f.solve(); ok != found {
			t.Fatalf("%v: solved %v, want %v", arcs, ok, found)
		}
		if !found {
			continue
		}
		cost, over := 0, make([]int, nodes)
		for n, a := range arcs {
			x := f.on(n)
			if x < a.low || x > a.high {
				t.Fatalf("%v: arc %d carries %d", arcs, n, x)
			}
			cost += x * a.cost
			over[a.from] -= x
			over[a.to] += x
		}
		for n, x := range over {
			if x != 0 {
				t.Fatalf("%v: node %d keeps %d", arcs, n, x)
			}
		}
		if cost != best {
			t.Fatalf("%v: cost %d, want %d", arcs, cost, best)
		}
	}
}
