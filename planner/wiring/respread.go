package wiring

import "fmt"

// Respread is SpreadNeed for a need that changed: every path that is still
// needed stays on its spine, so that circuits in use need not move for the
// sake of a new job, and the rest goes where the two leaves have least. Where
// that cannot be done within what SpreadNeed promises, all is spread anew.
func (l Leaves) Respread(need Topology, old Spread) (Spread, error) {
	if err := l.CheckNeed(need); err != nil {
		return Spread{}, err
	}
	if len(old.Spine) != l.Spines {
		return Spread{}, wrong("spread", fmt.Sprintf("%d spines", l.Spines), "%d spines", len(old.Spine))
	}
	for h, t := range old.Spine {
		if t.Pods != len(l.PodOf) {
			return Spread{}, wrong(fmt.Sprintf("spread of spine %d", h), fmt.Sprintf("%d leaves", len(l.PodOf)), "%d leaves", t.Pods)
		}
	}
	d := l.newDeal(need)
	d.keep(old, d.fits)
	for n := range need.Links {
		for d.left[n] > 0 {
			h := d.least(n)
			if h < 0 {
				return l.SpreadNeed(need)
			}
			d.give(n, h)
		}
	}
	return d.spread(), nil
}

// Keep is a spread without the paths that a smaller need can do without, such
// as those of jobs that have ended. None changes its spine.
func (s Spread) Keep(need Topology) (Spread, error) {
	if err := s.CheckNeed(need); err != nil {
		return Spread{}, err
	}
	d := s.newDeal(need)
	d.keep(s, func(n, h int) bool { return true })
	for n, link := range need.Links {
		if d.left[n] > 0 {
			return Spread{}, wrong(fmt.Sprintf("need[%d]", n), "no more paths than are there",
				"leaves %d and %d need %d more", link.I, link.J, d.left[n])
		}
	}
	return d.spread(), nil
}

// deal gives paths to spines one by one.
type deal struct {
	Leaves
	need    Topology
	left    []int32   // of a link of the need: paths without a spine
	count   [][]int32 // of a spine and link: paths there
	load    []int32   // of a leaf and spine
	podLoad []int32   // of a pod and spine
	limit   int32     // paths of a leaf on a spine
	room    []int32   // of a pod: ports of each of its spines
}

func (l Leaves) newDeal(need Topology) *deal {
	d := &deal{
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
func (d *deal) keep(old Spread, may func(n, h int) bool) {
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

// ends gives where a link's leaves and pods count their paths on a spine.
func (d *deal) ends(n, h int) (a, b, p, q int) {
	link := d.need.Links[n]
	a, b = int(link.I), int(link.J)
	p, q = int(d.PodOf[a]), int(d.PodOf[b])
	return a*d.Spines + h, b*d.Spines + h, p*d.Spines + h, q*d.Spines + h
}

func (d *deal) fits(n, h int) bool {
	a, b, p, q := d.ends(n, h)
	return d.load[a] < d.limit && d.load[b] < d.limit &&
		d.podLoad[p] < d.room[p/d.Spines] && d.podLoad[q] < d.room[q/d.Spines]
}

func (d *deal) give(n, h int) {
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
func (d *deal) least(n int) int {
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

func (d *deal) spread() Spread {
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
