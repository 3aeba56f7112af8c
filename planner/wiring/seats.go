package wiring

import "math/bits"

// MaxBlock is the largest number of even switches that is searched; a link then
// has at most 256 places, one bit each. Of more switches so little is lost by
// giving one up that the first answer is hardly improved.
const MaxBlock = 128

// seats is where the links of a block are: every wanted link is one item, in
// a place or missing. Place 2k is even switch k from the link's lower pod to
// its higher, place 2k+1 the same switch back.
//
// Ports are indexed pod*2*switches + 2k for the light that comes from the pod,
// + 2k+1 for that which goes to it, with two more ports that no switch has where
// that makes whole words of lanes. So what a link looks at lies together, and in
// place p it has port p of its lower pod and port p^1 of its higher.
type seats struct {
	pods, switches int
	low, high      []int32  // of a link: the first port of each end
	old            []places // of a link: where its pair had a circuit
	toll           []uint64 // of a link, in lanes by place: see prices

	place   []int16  // of a link; -1 missing
	at      []int32  // of a port: the link there, -1 none
	paid    []int16  // of a port: the toll of the link there, or unpaid
	bid     int      // what a missing link pays to push another one out
	dearer  []int16  // of a port: what is asked for it besides
	push    []uint64 // what the bid is above what is paid, and that, in lanes by port
	missing []int32
	where   []int32 // of a missing link: its index in missing
	kept    int     // links in a place that was theirs

	noting bool // keep a log that undo can roll back
	log    []move
}

// places are some of a link's, one bit each.
type places [2 * MaxBlock / 64]uint64

func (p *places) add(place int)      { p[place>>6] |= 1 << (place & 63) }
func (p *places) has(place int) bool { return p[place>>6]>>(place&63)&1 != 0 }

func (p *places) count() (n int) {
	for _, word := range p {
		n += bits.OnesCount64(word)
	}
	return n
}

// all calls do for each, in order, as long as that says so.
func (p *places) all(do func(place int) bool) {
	for n, word := range p {
		for ; word != 0; word &= word - 1 {
			if !do(n<<6 + bits.TrailingZeros64(word)) {
				return
			}
		}
	}
}

// move says where a link was before: in no place, or in one.
type move struct {
	link  int32
	place int16
}

func newSeats(t Topology, old Half) *seats {
	links := t.Circuits()
	s := &seats{
		pods: t.Pods, switches: old.Switches,
		low: make([]int32, 0, links), high: make([]int32, 0, links), old: make([]places, 0, links),
		place: make([]int16, links), where: make([]int32, links), missing: make([]int32, 0, links),
	}
	words := s.words()
	s.toll = make([]uint64, links*words)
	s.at = make([]int32, t.Pods*words*lanes)
	s.paid, s.dearer = make([]int16, len(s.at)), make([]int16, len(s.at))
	s.push = make([]uint64, t.Pods*words)
	for _, l := range t.Links {
		var had places
		for k := range old.Switches {
			row := old.Row(k)
			if row[l.I] == l.J {
				had.add(2 * k)
			}
			if row[l.J] == l.I && l.I != l.J {
				had.add(2*k + 1)
			}
		}
		for range l.circuits() {
			s.low = append(s.low, l.I*int32(words*lanes))
			s.high = append(s.high, l.J*int32(words*lanes))
			s.old = append(s.old, had)
		}
	}
	s.clear()
	return s
}

// clear takes every link out.
func (s *seats) clear() {
	for n := range s.at {
		s.at[n], s.paid[n] = -1, unpaid
	}
	s.setBid(s.bid)
	s.missing = s.missing[:0]
	for e := range s.place {
		s.place[e] = -1
		s.where[e] = int32(e)
		s.missing = append(s.missing, int32(e))
	}
	s.kept = 0
}

// places is how many places a link has.
func (s *seats) places() int { return 2 * s.switches }

// words is how many words of lanes the places of a link take, and the ports of
// a pod.
func (s *seats) words() int { return (s.places() + lanes - 1) / lanes }

// pod is the pod of a first port.
func (s *seats) pod(first int32) int32 { return first / int32(s.words()*lanes) }

// tollOf is what a link pays in a place.
func (s *seats) tollOf(e int32, place int) int { return laneOf(s.toll[int(e)*s.words():], place) }

// setPaid says what the link in a port pays, or unpaid.
func (s *seats) setPaid(port, toll int) {
	s.paid[port] = int16(toll)
	setLane(s.push, port, max(0, s.bid-toll)+int(s.dearer[port]))
}

// setBid sets what missing links bid.
func (s *seats) setBid(bid int) {
	s.bid = bid
	for word := range s.push {
		paid, more := s.paid[word*lanes:][:lanes], s.dearer[word*lanes:][:lanes]
		s.push[word] = inLanes(
			max(0, bid-int(paid[0]))+int(more[0]), max(0, bid-int(paid[1]))+int(more[1]),
			max(0, bid-int(paid[2]))+int(more[2]), max(0, bid-int(paid[3]))+int(more[3]))
	}
}

// ports gives the two switch ports of a place, at a link's lower and at its
// higher pod.
func (s *seats) ports(e int32, place int) (low, high int) {
	return int(s.low[e]) + place, int(s.high[e]) + place ^ 1
}

// isOld says whether the pair of a link had a circuit in this place.
func (s *seats) isOld(e int32, place int) bool { return s.old[e].has(place) }

// isFree says whether both ports of a place are.
func (s *seats) isFree(e int32, place int) bool {
	low, high := s.ports(e, place)
	return s.at[low] < 0 && s.at[high] < 0
}

// put places a missing link; both ports must be free.
func (s *seats) put(e int32, place int) {
	low, high := s.ports(e, place)
	if s.noting {
		s.log = append(s.log, move{e, -1})
	}
	toll := s.tollOf(e, place)
	s.at[low], s.at[high] = e, e
	s.setPaid(low, toll)
	s.setPaid(high, toll)
	s.place[e] = int16(place)
	s.kept += int(s.old[e][place>>6] >> (place & 63) & 1)
	last := len(s.missing) - 1
	at, other := s.where[e], s.missing[last]
	s.missing[at] = other
	s.where[other] = at
	s.missing = s.missing[:last]
}

// drop takes a link out of its place.
func (s *seats) drop(e int32) {
	place := int(s.place[e])
	low, high := s.ports(e, place)
	if s.noting {
		s.log = append(s.log, move{e, int16(place)})
	}
	s.at[low], s.at[high] = -1, -1
	s.setPaid(low, unpaid)
	s.setPaid(high, unpaid)
	s.place[e] = -1
	s.kept -= int(s.old[e][place>>6] >> (place & 63) & 1)
	s.where[e] = int32(len(s.missing))
	s.missing = append(s.missing, e)
}

// pay has every link that is in a place pay what that costs now.
func (s *seats) pay() {
	for e, place := range s.place {
		if place >= 0 {
			low, high := s.ports(int32(e), int(place))
			toll := s.tollOf(int32(e), int(place))
			s.paid[low], s.paid[high] = int16(toll), int16(toll)
		}
	}
	s.setBid(s.bid)
}

// note begins a log.
func (s *seats) note() { s.noting, s.log = true, s.log[:0] }

// agree ends the undo log and keeps the changes.
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
func (s *seats) half(places []int16) Half {
	h := NewHalf(s.pods, s.switches)
	for e, place := range places {
		from, to := s.low[e], s.high[e]
		if place&1 != 0 {
			from, to = to, from
		}
		h.Row(int(place >> 1))[s.pod(from)] = s.pod(to)
	}
	return h
}
