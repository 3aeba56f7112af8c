package wiring

import (
	"fmt"
	"slices"
)

// respreadSteps is the search's budget for each path of a need. chosen: a
// thousand leaves with all ports in use have their first descent behind them.
const respreadSteps = 120

// Respread is SpreadNeed for a need that changed: as many paths as can be stay
// on their spines, so that circuits in use need not move for the sake of a new
// job. At first all stay that are needed, and each new one goes where its two
// leaves have least. Where some find no room, paths move: with tau = 2 spines
// are to leaves what even switches are to pods, one path out and one in at
// each, so the search of a rewiring finds which. With tau = 1 all is spread
// anew if there is no other way.
func (l Leaves) Respread(need Topology, old Spread) (Spread, error) {
	d, err := l.beside(need, old, nil, nil)
	if err != nil {
		return Spread{}, err
	}
	if d.lacks() {
		return l.respreadAll(need, old)
	}
	return d.spread(), nil
}

// Beside is Respread for paths none of which may move: what finds no room
// beside them is not in the spread. pods are ports of each pod's spines, by
// pod, that something else has, and leaves paths of each leaf over its spines, by
// leaf, for which it has no link. Where there is nothing to move, all find room.
func (l Leaves) Beside(need Topology, old Spread, pods, leaves []int32) (Spread, error) {
	d, err := l.beside(need, old, pods, leaves)
	some := func(n int32) bool { return n > 0 }
	switch {
	case err != nil:
		return Spread{}, err
	case d.lacks() && old.Load() == 0 && !slices.ContainsFunc(pods, some) && !slices.ContainsFunc(leaves, some):
		return l.SpreadNeed(need)
	}
	return d.spread(), nil
}

func (l Leaves) beside(need Topology, old Spread, pods, leaves []int32) (*sharing, error) {
	if err := l.CheckNeed(need); err != nil {
		return nil, err
	}
	if len(old.Spine) != l.Spines {
		return nil, wrong("spread", fmt.Sprintf("%d spines", l.Spines), "%d spines", len(old.Spine))
	}
	for h, t := range old.Spine {
		if t.Pods != len(l.PodOf) {
			return nil, wrong(fmt.Sprintf("spread of spine %d", h), fmt.Sprintf("%d leaves", len(l.PodOf)), "%d leaves", t.Pods)
		}
	}
	d := l.newSharing(need)
	copy(d.podLoad, pods)
	copy(d.load, leaves)
	d.keep(old, d.fits)
	for n := range need.Links {
		for h := 0; d.left[n] > 0 && h >= 0; {
			if h = d.least(n); h >= 0 {
				d.give(n, h)
			}
		}
	}
	return d, nil
}

func (l Leaves) respreadAll(need Topology, old Spread) (Spread, error) {
	leaves := len(l.PodOf)
	if l.Tau != 2 || leaves > MaxPods || 2*l.Spines > MaxSpinePorts {
		return l.SpreadNeed(need)
	}
	g := Group{Topology: need, Old: NewHalf(leaves, l.Spines)}
	for h, t := range old.Spine {
		if (Spread{Leaves: l, Spine: []Topology{t}}).Load() > 2 {
			return l.SpreadNeed(need)
		}
		row := g.Old.Row(h)
		for _, a := range t.Orient().Arcs { // one a row and column at most
			row[a.From] = a.To
		}
	}
	half, err := Rewire(g, 0, respreadSteps*need.Circuits())
	if err != nil {
		return Spread{}, err
	}
	s := Spread{Leaves: l, Spine: make([]Topology, l.Spines)}
	for h := range s.Spine {
		s.Spine[h] = Topology{leaves, Half{leaves, 1, half.Row(h)}.Links()}
	}
	return s, nil
}

// sharing gives paths to spines one by one.
type sharing struct {
	Leaves
	need    Topology
	left    []int32   // of a link of the need: paths without a spine
	count   [][]int32 // of a spine and link: paths there
	load    []int32   // of a leaf and spine
	podLoad []int32   // of a pod and spine
	limit   int32     // paths of a leaf on a spine
	room    []int32   // of a pod: ports of each of its spines
}

func (l Leaves) newSharing(need Topology) *sharing {
	d := &sharing{
		Leaves: l, need: need, left: make([]int32, len(need.Links)), count: make([][]int32, l.Spines),
		load: make([]int32, len(l.PodOf)*l.Spines), podLoad: make([]int32, l.Pods*l.Spines),
		limit: 2, room: make([]int32, l.Pods),
	}
	if l.Tau == 1 && l.sparse(need) {
		d.limit = 1
	}
	for n, link := range need.Links {
		d.left[n] = link.Count
	}
	for h := range d.count {
		d.count[h] = make([]int32, len(need.Links))
	}
	for _, p := range l.PodOf {
		d.room[p] += int32(l.Tau)
	}
	return d
}

// keep gives every path of a spread that is still needed the spine it has.
func (d *sharing) keep(old Spread, may func(n, h int) bool) {
	for h, t := range old.Spine {
		n := 0
		for _, was := range t.Links {
			for n < len(d.need.Links) && byPair(d.need.Links[n], was) < 0 {
				n++
			}
			if n == len(d.need.Links) {
				break
			}
			if byPair(d.need.Links[n], was) != 0 {
				continue
			}
			for c := was.Count; c > 0 && d.left[n] > 0 && may(n, h); c-- {
				d.give(n, h)
			}
		}
	}
}

// lacks: some path has no spine.
func (d *sharing) lacks() bool {
	return slices.ContainsFunc(d.left, func(n int32) bool { return n > 0 })
}

// ends gives where a link's leaves and pods count their paths on a spine.
func (d *sharing) ends(n, h int) (a, b, p, q int) {
	link := d.need.Links[n]
	a, b = int(link.I), int(link.J)
	p, q = int(d.PodOf[a]), int(d.PodOf[b])
	return a*d.Spines + h, b*d.Spines + h, p*d.Spines + h, q*d.Spines + h
}

func (d *sharing) fits(n, h int) bool {
	a, b, p, q := d.ends(n, h)
	return d.load[a] < d.limit && d.load[b] < d.limit &&
		d.podLoad[p] < d.room[p/d.Spines] && d.podLoad[q] < d.room[q/d.Spines]
}

func (d *sharing) give(n, h int) {
	a, b, p, q := d.ends(n, h)
	d.load[a]++
	d.load[b]++
	d.podLoad[p]++
	d.podLoad[q]++
	d.left[n]--
	d.count[h][n]++
}

// least is the spine on which the two leaves, then their pods, have the
// fewest paths; -1 where none has room.
func (d *sharing) least(n int) int {
	best, leaves, pods := -1, int32(0), int32(0)
	for h := range d.Spines {
		if !d.fits(n, h) {
			continue
		}
		a, b, p, q := d.ends(n, h)
		x, y := d.load[a]+d.load[b], d.podLoad[p]+d.podLoad[q]
		if best < 0 || x < leaves || x == leaves && y < pods {
			best, leaves, pods = h, x, y
		}
	}
	return best
}

func (d *sharing) spread() Spread {
	s := Spread{Leaves: d.Leaves, Spine: make([]Topology, d.Spines)}
	for h := range s.Spine {
		s.Spine[h].Pods = len(d.PodOf)
		for n, link := range d.need.Links {
			if c := d.count[h][n]; c > 0 {
				s.Spine[h].Links = append(s.Spine[h].Links, Link{link.I, link.J, c})
			}
		}
	}
	return s
}
