package wiring

import "cmp"

// Arc is Count directed circuits.
type Arc struct{ From, To, Count int32 }

// Demand is a matrix of directed circuits, by From then To, without zeros or
// repeats.
type Demand struct {
	Rows, Cols int
	Arcs       []Arc
}

// Orient writes the matrix C of a topology as A + A^T with every entry, row
// sum and column sum of A the floor or the ceiling of half of C's ([LUMOS]
// Th. 2.1), and gives A.
//
// Unlike [LUMOS] A.1, which solves a flow: where C is even A is half of it;
// the odd rest is a simple graph. At every pod the ends of its edges are
// paired off; the pairs string the edges into trails; each trail is directed
// along its length, so every pair is one edge in and one out, and at most one
// end a pod has no partner. Linear in the links.
func (t Topology) Orient() Demand {
	return t.orient(nil)
}

// orient does the same for leaves, and balances the sums of their pods as
// well; podOf nil means there are no pods.
func (t Topology) orient(podOf []int32) Demand {
	o := newOrienter(t, podOf)
	o.walk()
	return o.demand(t)
}

// orienter strings the odd links of a topology into trails. End 2e is link e at I,
// end 2e+1 at J.
type orienter struct {
	partner []int32 // of an end, at the same pod; -1 none
	forward []int8  // of an odd link: 1 I->J, -1 J->I, 0 not yet
}

// newOrienter pairs ends at each pod; of leaves, what one leaves over is paired
// within its pod.
func newOrienter(t Topology, podOf []int32) *orienter {
	o := &orienter{}
	open := make([]int32, t.Pods) // the pod's end without a partner, + 1
	for _, l := range t.Links {
		if l.Count&1 != 0 {
			end := int32(len(o.partner))
			o.partner = append(o.partner, -1, -1)
			o.pair(open, l.I, end)
			o.pair(open, l.J, end+1)
		}
	}
	o.forward = make([]int8, len(o.partner)/2)
	if podOf != nil {
		waiting := make([]int32, t.Pods)
		for leaf, left := range open {
			if left != 0 {
				o.pair(waiting, podOf[leaf], left-1)
			}
		}
	}
	return o
}

// pair joins an end to the one that waits at its pod, or lets it wait.
func (o *orienter) pair(waiting []int32, pod, end int32) {
	if other := waiting[pod] - 1; other >= 0 {
		o.partner[end], o.partner[other] = other, end
		waiting[pod] = 0
	} else {
		waiting[pod] = end + 1
	}
}

func (o *orienter) walk() {
	for e := range int32(len(o.forward)) {
		if o.forward[e] != 0 {
			continue
		}
		o.forward[e] = 1
		o.along(2*e+1, 1)
		o.along(2*e, -1)
	}
}

// along follows a trail from an end: with sense 1 light arrives at that end
// and goes on, with -1 it left there and has come from before.
func (o *orienter) along(end int32, sense int8) {
	for {
		next := o.partner[end]
		if next < 0 || o.forward[next>>1] != 0 {
			return
		}
		if next&1 == 0 {
			o.forward[next>>1] = sense
		} else {
			o.forward[next>>1] = -sense
		}
		end = next ^ 1
	}
}

// demand is the topology, every link given its way.
func (o *orienter) demand(t Topology) Demand {
	forward := make([]Arc, 0, len(t.Links))
	back := make([]Arc, 0, len(t.Links))
	odd := 0
	for _, l := range t.Links {
		there, here := l.Count/2, l.Count/2
		if l.I == l.J {
			here = 0
		}
		if l.Count&1 != 0 {
			if o.forward[odd] > 0 {
				there++
			} else {
				here++
			}
			odd++
		}
		if there > 0 {
			forward = append(forward, Arc{l.I, l.J, there})
		}
		if here > 0 {
			back = append(back, Arc{l.J, l.I, here})
		}
	}
	return Demand{t.Pods, t.Pods, mergeByRow(t.Pods, forward, back)}
}

// mergeByRow gives arcs in order of From, then To: back is in order of To,
// and all its arcs go to a lower pod, all forward ones to a higher.
func mergeByRow(pods int, forward, back []Arc) []Arc {
	at := make([]int32, pods+1)
	for _, a := range forward {
		at[a.From+1]++
	}
	for _, a := range back {
		at[a.From+1]++
	}
	for i := range pods {
		at[i+1] += at[i]
	}
	out := make([]Arc, len(forward)+len(back))
	for _, a := range back {
		out[at[a.From]] = a
		at[a.From]++
	}
	for _, a := range forward {
		out[at[a.From]] = a
		at[a.From]++
	}
	return out
}

// Sums are the row and column sums.
func (d Demand) Sums() (rows, cols []int) {
	rows, cols = make([]int, d.Rows), make([]int, d.Cols)
	for _, a := range d.Arcs {
		rows[a.From] += int(a.Count)
		cols[a.To] += int(a.Count)
	}
	return rows, cols
}

// together adds two demands.
func together(a, b Demand) Demand {
	return Demand{a.Rows, a.Cols, merged(a.Arcs, b.Arcs, byEnds, func(to *Arc, x Arc) { to.Count += x.Count })}
}

func byEnds(a, b Arc) int {
	return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
}
