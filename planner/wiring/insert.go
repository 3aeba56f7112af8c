package wiring

// insert.go is the fallback that always ends: it puts every missing link in
// by two-colour alternation, whatever that costs.

// insertAll places all missing links. A partial configuration of a topology
// within its ports can always be completed: first a link is given a way on
// which both its pods have a free port in some switch (turn), then the two
// switches are made to agree by swapping them along one alternating path.
func (s *seats) insertAll() {
	for len(s.missing) > 0 {
		s.insert(s.missing[len(s.missing)-1])
	}
}

func (s *seats) insert(e int32) {
	if s.insertFree(e) {
		return
	}
	if way, ok := s.openWay(e); ok {
		s.insertWay(e, way)
		return
	}
	for _, t := range s.turn(e) {
		s.insertWay(t.link, t.way)
	}
	way, ok := s.openWay(e)
	if !ok {
		panic("wiring: invariant: after turning, both pods of a link have a free port on one way")
	}
	s.insertWay(e, way)
}

// insertFree takes a place with both ports free if there is one, an old one
// rather than another.
func (s *seats) insertFree(e int32) bool {
	found := -1
	for place := range s.places() {
		if !s.isFree(e, place) {
			continue
		}
		if s.isOld(e, place) {
			found = place
			break
		}
		if found < 0 {
			found = place
		}
	}
	if found < 0 {
		return false
	}
	s.put(e, found)
	return true
}

// free gives the switches in which a pod, by its first port, has that port
// free, as bits: side 0 is the one it sends from, 1 the one it receives at.
func (s *seats) free(first int32, side int) (m places) {
	for k := range s.switches {
		if s.at[int(first)+2*k+side] < 0 {
			m.add(k)
		}
	}
	return m
}

// ends gives the first ports of a link's sender and receiver on a way.
func (s *seats) ends(e int32, way int) (from, to int32) {
	if way == 0 {
		return s.low[e], s.high[e]
	}
	return s.high[e], s.low[e]
}

// openWay finds a way on which the sender has a free out port and the receiver
// a free in port, in whatever switches.
func (s *seats) openWay(e int32) (way int, ok bool) {
	for way := range 2 {
		from, to := s.ends(e, way)
		if s.free(from, 0) != (places{}) && s.free(to, 1) != (places{}) {
			return way, true
		}
	}
	return 0, false
}

// insertWay puts a link in on a way that openWay allows: in switch a, where
// the sender is free, after the path of switches a and b that begins at the
// receiver has been swapped. The path cannot come back to the sender, which
// it could only reach by a link in a. Of the possible pairs of switches it
// takes the one that loses fewest old circuits.
func (s *seats) insertWay(e int32, way int) {
	from, to := s.ends(e, way)
	bestA, bestB, best := -1, -1, 1<<30
	outs, ins := s.free(from, 0), s.free(to, 1)
	outs.all(func(a int) bool {
		ins.all(func(b int) bool {
			loss := 0
			s.alternate(to, a, b, func(link int32, place int) {
				if s.isOld(link, int(s.place[link])) {
					loss++
				}
				if s.isOld(link, place) {
					loss--
				}
			})
			if s.isOld(e, 2*a+way) {
				loss--
			}
			if loss < best {
				bestA, bestB, best = a, b, loss
			}
			return true
		})
		return true
	})
	var path []move
	s.alternate(to, bestA, bestB, func(link int32, place int) {
		path = append(path, move{link, int16(place)})
	})
	for _, m := range path {
		s.drop(m.link)
	}
	for _, m := range path {
		s.put(m.link, int(m.place))
	}
	s.put(e, 2*bestA+way)
}

// alternate walks the path of links in switches a and b, by turns, that
// begins with the one in a that a pod, by its first port, receives, and tells
// the place each would have with the two swapped.
func (s *seats) alternate(pod int32, a, b int, visit func(link int32, place int)) {
	for a != b {
		e := s.at[int(pod)+2*a+1]
		if e < 0 {
			return
		}
		way := int(s.place[e] & 1)
		visit(e, 2*b+way)
		sender, _ := s.ends(e, way)
		f := s.at[int(sender)+2*b]
		if f < 0 {
			return
		}
		way = int(s.place[f] & 1)
		visit(f, 2*a+way)
		_, pod = s.ends(f, way)
	}
}

// turned is a link to be put in again, on the other way.
type turned struct {
	link int32
	way  int
}

// turn makes room where a link's pods have free ports on the same side only:
// say both can send and neither receive. Links that arrive at one of them are
// searched backwards, breadth first, up to a pod that can receive; those on
// the way there are taken out, to go in the other way round. If there were no
// such pod, all of those searched would receive as much as can be, all of it
// from each other, so they would send as much too; but the first of them can
// send more.
func (s *seats) turn(e int32) []turned {
	first, side := s.high[e], 1
	if s.free(first, 0) == (places{}) { // neither can send
		side = 0
	}
	via := make([]int32, s.pods) // of a pod: the link it was reached by, + 1
	queue := []int32{first}
	for q := 0; q < len(queue); q++ {
		pod := queue[q]
		for k := range s.switches {
			link := s.at[int(pod)+2*k+side]
			next := s.far(link, pod)
			if next == first || via[s.pod(next)] != 0 {
				continue
			}
			via[s.pod(next)] = link + 1
			if s.free(next, side) != (places{}) {
				return s.takeOut(via, next, first)
			}
			queue = append(queue, next)
		}
	}
	panic("wiring: invariant: a topology within its ports can be oriented within them")
}

// far is the pod, by its first port, at the other end of a link.
func (s *seats) far(link, pod int32) int32 { return s.low[link] + s.high[link] - pod }

func (s *seats) takeOut(via []int32, pod, first int32) []turned {
	var out []turned
	for pod != first {
		link := via[s.pod(pod)] - 1
		out = append(out, turned{link, 1 - int(s.place[link]&1)})
		s.drop(link)
		pod = s.far(link, pod)
	}
	return out
}
