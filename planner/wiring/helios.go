package wiring

// Helios configures uniform wiring switch by switch, as Helios does ([CROSS]
// sec 6.2): each takes a heaviest matching of senders with receivers by the
// links that are still asked. Such a matching leads round in cycles of pods,
// and a link needs both directions in one switch, so of every cycle each
// second step becomes a link, those of the better parity.
func Helios(t Topology, switches int) Matchings {
	m := newMatchings(t.Pods, switches)
	left := make([]int32, len(t.Links))
	for n, l := range t.Links {
		if l.I != l.J {
			left[n] = l.Count
		}
	}
	for k := range switches {
		next, weight := heaviest(t, left)
		used := everySecond(next, weight, func(i, j int32) { m.join(k, i, j) })
		for n, l := range t.Links {
			if left[n] > 0 && used[l.I] == l.J {
				left[n]--
			}
		}
	}
	return m
}

// heaviest is the assignment of receivers to senders with the most links
// still asked: whom each pod sends to, or -1, and how much that weighs.
func heaviest(t Topology, left []int32) (next, weight []int32) {
	f := newFlow(2*t.Pods+2, 2*len(t.Links)+2*t.Pods+1)
	source, sink := 2*t.Pods, 2*t.Pods+1
	for i := range t.Pods {
		f.arc(source, i, 0, 1, 0)
		f.arc(t.Pods+i, sink, 0, 1, 0)
	}
	f.arc(sink, source, 0, unbounded, 0)
	first := f.arcs()
	for n, l := range t.Links {
		if left[n] > 0 {
			f.arc(int(l.I), t.Pods+int(l.J), 0, 1, -int(left[n]))
			f.arc(int(l.J), t.Pods+int(l.I), 0, 1, -int(left[n]))
		}
	}
	if !f.solve() {
		panic("wiring: invariant: no circuit at all is an assignment")
	}
	next, weight = make([]int32, t.Pods), make([]int32, t.Pods)
	for i := range next {
		next[i] = None
	}
	arc := first
	for n, l := range t.Links {
		if left[n] <= 0 {
			continue
		}
		if f.on(arc) > 0 {
			next[l.I], weight[l.I] = l.J, left[n]
		}
		if f.on(arc+1) > 0 {
			next[l.J], weight[l.J] = l.I, left[n]
		}
		arc += 2
	}
	return next, weight
}

// everySecond takes every second step of the paths and cycles of next, and tells
// whom each pod is joined with.
func everySecond(next, weight []int32, join func(i, j int32)) []int32 {
	with := make([]int32, len(next))
	into := make([]bool, len(next))
	for i := range with {
		with[i] = None
	}
	for _, j := range next {
		if j >= 0 {
			into[j] = true
		}
	}
	seen := make([]bool, len(next))
	walk := func(start int) {
		var pods []int
		at := start
		for ; at >= 0 && !seen[at]; at = int(next[at]) {
			seen[at] = true
			pods = append(pods, at)
		}
		steps := len(pods) - 1
		if at == start && len(pods) > 1 {
			steps++ // the last leads back to the first
		}
		var sum [2]int32
		for n := range steps {
			if n+1 < len(pods) || n%2 == 1 {
				sum[n%2] += weight[pods[n]]
			}
		}
		odd := 0
		if sum[1] > sum[0] {
			odd = 1
		}
		for n := odd; n < steps; n += 2 {
			i, j := int32(pods[n]), next[pods[n]]
			if with[i] < 0 && with[j] < 0 {
				with[i], with[j] = j, i
				join(i, j)
			}
		}
	}
	for i := range next { // paths first, from their beginnings
		if !into[i] && next[i] >= 0 {
			walk(i)
		}
	}
	for i := range next {
		if !seen[i] && next[i] >= 0 {
			walk(i)
		}
	}
	return with
}
