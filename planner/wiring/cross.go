package wiring

// cross.go is the method of [CROSS] (MDMCF there; [LUMOS] A.1 and A.8 have the
// same), for comparison: a decomposition that does not look at what is
// configured, then halving of the even switches by min-cost flow down to
// single ones. It is as published except that the flow solver is ours.

// crossOrient is the symmetric decomposition by a flow ([CROSS] Th. 3.1,
// [LUMOS] Fig. 11): every pair sends its links to one or the other row, and
// rows take the floor or the ceiling of half.
func crossOrient(t Topology) Demand {
	ports := t.Ports()
	f := newFlow(len(t.Links)+t.Pods+1, 3*len(t.Links)+t.Pods)
	hub := len(t.Links) + t.Pods
	first := f.arcs()
	for n, l := range t.Links {
		half, rest := int(l.Count)/2, int(l.Count)%2
		if l.I == l.J {
			f.arc(n, len(t.Links)+int(l.I), half, half, 0)
			f.arc(n, len(t.Links)+int(l.J), 0, 0, 0)
			f.arc(hub, n, half, half, 0)
			continue
		}
		f.arc(n, len(t.Links)+int(l.I), half, half+rest, 0)
		f.arc(n, len(t.Links)+int(l.J), half, half+rest, 0)
		f.arc(hub, n, int(l.Count), int(l.Count), 0)
	}
	for i, p := range ports {
		f.arc(len(t.Links)+i, hub, p/2, (p+1)/2, 0)
	}
	if !f.solve() {
		panic("wiring: invariant: half of every entry is a flow in fractions, so one in integers exists")
	}
	var forward, back []Arc
	for n, l := range t.Links {
		if there := int32(f.on(first + 3*n)); there > 0 {
			forward = append(forward, Arc{l.I, l.J, there})
		}
		if here := int32(f.on(first + 3*n + 1)); here > 0 {
			back = append(back, Arc{l.J, l.I, here})
		}
	}
	return Demand{t.Pods, t.Pods, mergeByRow(t.Pods, forward, back)}
}

// crossLayout halves by min-cost flow: of the circuits on every arc, those go
// to either half of the switches that had them there.
func crossLayout(d Demand, old Half) Half {
	h := NewHalf(old.Pods, old.Switches)
	crossHalve(d, old, 0, old.Switches, h)
	return h
}

// CrossRewire is the published method from one end to the other.
func CrossRewire(g Group) (Half, error) {
	if err := g.Validate(); err != nil {
		return Half{}, err
	}
	h := crossLayout(crossOrient(g.Topology), g.Old)
	mustCheck(g.Topology, h)
	return h, nil
}

func crossHalve(d Demand, old Half, first, end int, out Half) {
	if end-first == 1 {
		row := out.Row(first)
		for _, a := range d.Arcs {
			row[a.From] = a.To
		}
		return
	}
	middle := (first + end) / 2
	a, b := crossFlow(d, old, [3]int{first, middle, end})
	crossHalve(a, old, first, middle, out)
	crossHalve(b, old, middle, end, out)
}

func crossFlow(d Demand, old Half, cut [3]int) (a, b Demand) {
	pods := old.Pods
	n := [2]int{cut[1] - cut[0], cut[2] - cut[1]}
	f := newFlow(2*pods+2, 3*len(d.Arcs)+2*pods+1)
	source, sink := 2*pods, 2*pods+1
	rows, cols := d.Sums()
	for i := range pods {
		f.arc(source, i, max(0, rows[i]-n[1]), min(rows[i], n[0]), 0)
		f.arc(pods+i, sink, max(0, cols[i]-n[1]), min(cols[i], n[0]), 0)
	}
	f.arc(sink, source, 0, unbounded, 0)
	first := f.arcs()
	for _, arc := range d.Arcs {
		var had [2]int32
		for side := range had {
			for k := cut[side]; k < cut[side+1]; k++ {
				if old.Row(k)[arc.From] == arc.To {
					had[side]++
				}
			}
			had[side] = min(had[side], arc.Count)
		}
		low, high := min(had[0], arc.Count-had[1]), max(had[0], arc.Count-had[1])
		from, to := int(arc.From), pods+int(arc.To)
		f.arc(from, to, 0, int(low), -1)
		f.arc(from, to, 0, int(high-low), 0)
		f.arc(from, to, 0, int(arc.Count-high), 1)
	}
	if !f.solve() {
		panic("wiring: invariant: a matrix within its switches can be halved")
	}
	a, b = Demand{pods, pods, nil}, Demand{pods, pods, nil}
	for m, arc := range d.Arcs {
		x := int32(f.on(first+3*m) + f.on(first+3*m+1) + f.on(first+3*m+2))
		if x > 0 {
			a.Arcs = append(a.Arcs, Arc{arc.From, arc.To, x})
		}
		if arc.Count > x {
			b.Arcs = append(b.Arcs, Arc{arc.From, arc.To, arc.Count - x})
		}
	}
	return a, b
}
