package wiring

import "slices"

const (
	// lookLimit bounds the neighbours that a first answer looks at, per circuit;
	// past it no further switch is filled. chosen: random groups take from 1 (8
	// pods) to 426 (1024 pods, 512 ports), and what is past it is soon left over.
	lookLimit = 512
	// fewCircuits is up to where the published flows are tried as well. chosen:
	// in small groups either may be lucky, and a quarter of a millisecond is
	// soon over.
	fewCircuits = 256
)

// First realises the topology in one pass, without a search: what can stay
// stays, as few switches as can be are given up for the others to be filled
// from, and what is left over is decomposed into those. Unlike the published
// flows, which have to find what stays, it begins with that.
func (g Group) First() (Half, error) {
	if err := g.Validate(); err != nil {
		return Half{}, err
	}
	f := newFilling(g)
	f.stay()
	h := f.half()
	if g.Circuits() <= fewCircuits {
		if published := crossLayout(crossOrient(g.Topology), g.Old); published.Kept(g.Old) > h.Kept(g.Old) {
			h = published
		}
	}
	mustCheck(g.Topology, h)
	return h, nil
}

// filling is a group on its way: every circuit is in a switch or in the pool.
// What is in the pool can be laid out in the switches given up as soon as no
// pod has more ends there than ports in these.
type filling struct {
	g       Group
	row     [2][]int32 // of a switch and pod: where its light goes, and from where light comes
	givenUp []int      // switches
	open    []int      // all others
	pool    []int32    // of a link: circuits in no switch
	need    []int32    // of a pod: ends in the pool beyond its ports in switches given up
	start   []int32    // of a pod: its links are near[start[pod]:start[pod+1]]
	near    []neighbour
	looks   int // that may still be made

	queue []int32 // pods that a chain reached
	via   []int32 // of these: the link that would push them out, + 1
	from  []int32 // and the pod whose it would be
}

type neighbour struct{ pod, link int32 }

func newFilling(g Group) *filling {
	f := &filling{
		g: g, pool: make([]int32, len(g.Links)), need: make([]int32, g.Pods), start: make([]int32, g.Pods+1),
		via: make([]int32, g.Pods), from: make([]int32, g.Pods), looks: lookLimit * (g.Circuits() + 1),
	}
	for side := range f.row {
		f.row[side] = NewHalf(g.Pods, g.Old.Switches).To
	}
	for n, l := range g.Links {
		f.pool[n] = l.circuits()
		f.need[l.I] += l.circuits()
		f.need[l.J] += l.circuits()
		f.start[l.I]++
		if l.I != l.J {
			f.start[l.J]++
		}
	}
	place(f.start)
	f.near = make([]neighbour, f.start[g.Pods])
	at := slices.Clone(f.start)
	for n, l := range g.Links {
		f.near[at[l.I]] = neighbour{l.J, int32(n)}
		at[l.I]++
		if l.I != l.J {
			f.near[at[l.J]] = neighbour{l.I, int32(n)}
			at[l.J]++
		}
	}
	return f
}

// half fills switches by chains that push out none, then ever more circuits,
// and gives up one switch more when that is not enough: first of all those in
// which nothing stays.
func (f *filling) half() Half {
	for !f.fits() {
		for most := 0; most < f.g.Pods; most = 2*most + 1 {
			for _, k := range f.open {
				f.fill(k, most)
			}
			if len(f.givenUp) == 0 { // one more is cheaper than what chains would push out
				break
			}
		}
		if !f.fits() {
			f.giveUpOne()
		}
	}
	rest := Topology{Pods: f.g.Pods}
	for n, l := range f.g.Links {
		if l.Count = f.pool[n]; l.I == l.J {
			l.Count *= 2
		}
		if l.Count > 0 {
			rest.Links = append(rest.Links, l)
		}
	}
	laid, err := rest.Orient().Layout(len(f.givenUp))
	if err != nil {
		panic("wiring: invariant: what fits the switches given up can be laid out there: " + err.Error())
	}
	h := Half{f.g.Pods, f.g.Old.Switches, f.row[0]}
	for n, k := range f.givenUp {
		copy(h.Row(k), laid.Row(n))
	}
	return h
}

// fits says whether what is in the pool fits the switches given up.
func (f *filling) fits() bool {
	return !slices.ContainsFunc(f.need, func(n int32) bool { return n > 0 })
}

// stay puts circuits where their pairs had them.
func (f *filling) stay() {
	for k := range f.g.Old.Switches {
		stays := false
		for i, j := range f.g.Old.Row(k) {
			if j < 0 {
				continue
			}
			if n := f.link(int32(i), j); n >= 0 && f.pool[n] > 0 {
				f.put(0, k, int32(i), j, n)
				stays = true
			}
		}
		if f.open = append(f.open, k); !stays {
			f.giveUp(k)
		}
	}
}

// giveUpOne gives up the switch in which least stays; once no looks are left,
// half of all.
func (f *filling) giveUpOne() {
	slices.SortStableFunc(f.open, func(a, b int) int { return f.kept(b) - f.kept(a) })
	n := 1
	if f.looks <= 0 {
		n = (len(f.open) + 1) / 2
	}
	for range n {
		f.giveUp(f.open[len(f.open)-1])
	}
}

func (f *filling) kept(k int) int {
	row := Half{f.g.Pods, 1, f.row[0][k*f.g.Pods : (k+1)*f.g.Pods]}
	return row.Kept(Half{f.g.Pods, 1, f.g.Old.Row(k)})
}

// giveUp empties the last of the open switches.
func (f *filling) giveUp(k int) {
	for i, j := range f.row[0][k*f.g.Pods : (k+1)*f.g.Pods] {
		if j >= 0 {
			f.drop(0, k, int32(i), j)
		}
	}
	for i := range f.need {
		f.need[i] -= 2
	}
	f.open = f.open[:len(f.open)-1]
	f.givenUp = append(f.givenUp, k)
}

// fill gives the pods that need it what ports of theirs a switch has free, as
// far as chains do it that push out so many circuits at most.
func (f *filling) fill(k, most int) {
	for side, row := range f.row {
		for i, j := range row[k*f.g.Pods : (k+1)*f.g.Pods] {
			if j < 0 && f.need[i] > 0 && f.looks > 0 {
				f.chain(side, k, int32(i), most)
			}
		}
	}
}

// chain gives a pod's free port a circuit from the pool, whose other end
// pushes another circuit out, the first end of which gets one from the pool,
// and so on to a free port, or to a pod that can have one more end in the
// pool. The shortest is taken. Side 0 begins with a pod that sends, side 1
// with one that receives.
func (f *filling) chain(side, k int, first int32, most int) {
	back := f.row[1-side][k*f.g.Pods : (k+1)*f.g.Pods]
	f.queue = append(f.queue[:0], first)
	for q, end := 0, 1; q < len(f.queue); q++ {
		if q == end {
			if most--; most < 0 {
				break
			}
			end = len(f.queue)
		}
		x := f.queue[q]
		links := f.near[f.start[x]:f.start[x+1]]
		f.looks -= len(links)
		for _, to := range links {
			if f.pool[to.link] == 0 {
				continue
			}
			z := back[to.pod]
			if z >= 0 && (z == first || f.via[z] != 0) || f.pool[to.link] == 1 && f.onWay(x, first, to.link) {
				continue
			}
			if z >= 0 && (most == 0 || f.need[z] >= 0) {
				f.via[z], f.from[z] = to.link+1, x
				f.queue = append(f.queue, z)
				continue
			}
			if z >= 0 {
				f.drop(side, k, z, to.pod)
			}
			f.pull(side, k, first, x, to)
			q = len(f.queue)
			break
		}
	}
	for _, pod := range f.queue {
		f.via[pod] = 0
	}
}

// pull makes a chain that ends at pod x with a circuit from the pool.
func (f *filling) pull(side, k int, first, x int32, last neighbour) {
	for x != first {
		was := f.row[side][k*f.g.Pods+int(x)]
		f.drop(side, k, x, was)
		f.put(side, k, x, last.pod, last.link)
		x, last = f.from[x], neighbour{was, f.via[x] - 1}
	}
	f.put(side, k, x, last.pod, last.link)
}

// onWay says whether a chain up to a pod has a link already, the other way
// round.
func (f *filling) onWay(x, first, link int32) bool {
	for ; x != first; x = f.from[x] {
		if f.via[x] == link+1 {
			return true
		}
	}
	return false
}

// put takes a circuit out of the pool; drop puts it back. On side 0 light
// goes from x to y.
func (f *filling) put(side, k int, x, y, link int32) {
	f.row[side][k*f.g.Pods+int(x)], f.row[1-side][k*f.g.Pods+int(y)] = y, x
	f.pool[link]--
	f.need[x]--
	f.need[y]--
}

func (f *filling) drop(side, k int, x, y int32) {
	f.row[side][k*f.g.Pods+int(x)], f.row[1-side][k*f.g.Pods+int(y)] = None, None
	f.pool[f.link(x, y)]++
	f.need[x]++
	f.need[y]++
}

// link finds a pair's link; -1: none is wanted.
func (f *filling) link(x, y int32) int32 {
	n, found := slices.BinarySearchFunc(f.g.Links, Link{I: min(x, y), J: max(x, y)}, byPair)
	if !found {
		return -1
	}
	return int32(n)
}
