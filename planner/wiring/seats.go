package wiring

// MaxBlock is the largest number of even switches that is searched as one; a
// link then has at most 64 places, one bit each. Larger groups are halved
// first (halve.go), those of few pods already beyond fewBlock: a descent of
// theirs closes late on more.
const MaxBlock, fewBlock, fewPods = 32, 16, 64 // chosen, by runs against a solver and with up to 512 pods

// seats is where the links of a block are: every wanted link is one item, in
// a place or missing. Place 2k is even switch k from the link's lower pod to
// its higher, place 2k+1 the same switch back.
//
// Ports are indexed pod*switches + k, so that what a link looks at lies
// together.
type seats struct {
	pods, switches int
	low, high      []int32  // of a link: the first port of each end
	old            []uint64 // of a link: the places where its pair had a circuit
	toll           []int32  // of a link and place: see prices

	place   []int8     // of a link; -1 missing
	out, in []int32    // of a port: the link there, -1 none
	paid    [2][]int32 // of an out and an in port: the toll of the link there
	missing []int32
	where   []int32 // of a missing link: its index in missing
	kept    int     // links in a place that was theirs

	noting bool // keep a log that undo can roll back
	log    []move
}

// move says where a link was before: in no place, or in one.
type move struct {
	link  int32
	place int8
}

func newSeats(t Topology, old Half) *seats {
	links, ports := t.Circuits(), t.Pods*old.Switches
	s := &seats{
		pods: t.Pods, switches: old.Switches,
		low: make([]int32, 0, links), high: make([]int32, 0, links), old: make([]uint64, 0, links),
		toll:  make([]int32, links*2*old.Switches),
		place: make([]int8, links), where: make([]int32, links), missing: make([]int32, 0, links),
		out: make([]int32, ports), in: make([]int32, ports),
		paid: [2][]int32{make([]int32, ports), make([]int32, ports)},
	}
	for _, l := range t.Links {
		places := uint64(0)
		for k := range old.Switches {
			row := old.Row(k)
			if row[l.I] == l.J {
				places |= 1 << (2 * k)
			}
			if row[l.J] == l.I && l.I != l.J {
				places |= 2 << (2 * k)
			}
		}
		for range l.circuits() {
			s.low = append(s.low, l.I*int32(old.Switches))
			s.high = append(s.high, l.J*int32(old.Switches))
			s.old = append(s.old, places)
		}
	}
	s.clear()
	return s
}

// clear takes every link out.
func (s *seats) clear() {
	for n := range s.out {
		s.out[n], s.in[n] = -1, -1
	}
	s.missing = s.missing[:0]
	for e := range s.place {
		s.place[e] = -1
		s.where[e] = int32(e)
		s.missing = append(s.missing, int32(e))
	}
	s.kept = 0
}

// ports gives the two switch ports of a place: where light comes from a pod,
// and where it goes to one.
func (s *seats) ports(e int32, place int) (out, in int) {
	k := place >> 1
	if place&1 == 0 {
		return int(s.low[e]) + k, int(s.high[e]) + k
	}
	return int(s.high[e]) + k, int(s.low[e]) + k
}

// isOld says whether the pair of a link had a circuit in this place.
func (s *seats) isOld(e int32, place int) bool { return s.old[e]>>place&1 != 0 }

// put places a missing link; both ports must be free.
func (s *seats) put(e int32, place int) {
	out, in := s.ports(e, place)
	if s.noting {
		s.log = append(s.log, move{e, -1})
	}
	toll := s.toll[int(e)*2*s.switches+place]
	s.out[out], s.in[in] = e, e
	s.paid[0][out], s.paid[1][in] = toll, toll
	s.place[e] = int8(place)
	s.kept += int(s.old[e] >> place & 1)
	last := len(s.missing) - 1
	at, other := s.where[e], s.missing[last]
	s.missing[at] = other
	s.where[other] = at
	s.missing = s.missing[:last]
}

// drop takes a link out of its place.
func (s *seats) drop(e int32) {
	place := int(s.place[e])
	out, in := s.ports(e, place)
	if s.noting {
		s.log = append(s.log, move{e, int8(place)})
	}
	s.out[out], s.in[in] = -1, -1
	s.place[e] = -1
	s.kept -= int(s.old[e] >> place & 1)
	s.where[e] = int32(len(s.missing))
	s.missing = append(s.missing, e)
}

// note begins a log.
func (s *seats) note() { s.noting, s.log = true, s.log[:0] }

// agree ends the log and leaves what was done.
func (s *seats) agree() { s.noting = false }

// undo rolls everything back to where note was called.
func (s *seats) undo() {
	s.noting = false
	for n := len(s.log) - 1; n >= 0; n-- {
		if m := s.log[n]; m.place < 0 {
			s.drop(m.link)
		} else {
			s.put(m.link, int(m.place))
		}
	}
}

// half is the configuration of places; none may be missing.
func (s *seats) half(places []int8) Half {
	h := NewHalf(s.pods, s.switches)
	for e, place := range places {
		out, in := s.ports(int32(e), int(place))
		h.Row(int(place >> 1))[out/s.switches] = int32(in / s.switches)
	}
	return h
}
