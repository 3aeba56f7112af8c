package flow

// flush gives rates to all that what happened at this instant may have
// changed, and finds what happens next.
func (s *Sim) flush() {
	if len(s.seeds) > 0 {
		s.mark++
		for i := 0; i < len(s.seeds); i++ { // dropped flows may add to them
			if l := s.seeds[i]; s.links[l].mark != s.mark {
				if s.sharing == Equal {
					s.divide(l)
					continue
				}
				s.gather(l)
				s.solve()
			}
		}
		s.seeds = s.seeds[:0]
	}
	for _, r := range s.dirty {
		s.reschedule(r)
	}
	s.dirty = s.dirty[:0]
}

// gather finds the links and flows that hang together with a link.
func (s *Sim) gather(from Link) {
	s.partLinks, s.partFlows = append(s.partLinks[:0], from), s.partFlows[:0]
	s.links[from].mark = s.mark
	for i := 0; i < len(s.partLinks); i++ {
		l := &s.links[s.partLinks[i]]
		for k := 0; k < len(l.flows); {
			id := l.flows[k].flow
			f := &s.flows[id]
			if f.mark == s.mark {
				k++
				continue
			}
			if f.run.steady > 0 {
				s.catchUp(f.run)
			}
			if f.end <= s.now {
				s.takeOffLinks(id) // ended, and nobody had to know
				continue
			}
			f.mark = s.mark
			s.partFlows = append(s.partFlows, id)
			for x := range f.slots {
				if m := &s.links[f.slots[x].link]; m.mark != s.mark {
					m.mark = s.mark
					s.partLinks = append(s.partLinks, f.slots[x].link)
				}
			}
			k++
		}
	}
}

// solve gives the gathered flows their rates.
func (s *Sim) solve() {
	if len(s.partFlows) == 0 {
		return
	}
	s.fill()
	coupled := len(s.partFlows) > 1
	for _, id := range s.partFlows {
		f := &s.flows[id]
		if f.coupled != coupled {
			f.coupled = coupled
			s.touch(f.run)
		}
		s.setRate(f, f.wanted)
	}
	s.count.Solved += int64(len(s.partFlows))
}

// divide gives the flows on a link their rates in the model Equal: each has
// the least of what its links give when each is divided by all flows on it.
func (s *Sim) divide(from Link) {
	l := &s.links[from]
	l.mark = s.mark
	for _, e := range l.flows {
		f := &s.flows[e.flow]
		if f.run.steady > 0 {
			s.catchUp(f.run)
		}
		rate := f.cap
		for i := range f.slots {
			m := &s.links[f.slots[i].link]
			rate = min(rate, m.capacity<<weightBits/m.load)
		}
		s.setRate(f, rate)
	}
	s.count.Solved += int64(len(l.flows))
}

func (s *Sim) setRate(f *live, rate int64) {
	if f.rate == rate {
		return
	}
	if f.rate > 0 && f.since < s.now {
		f.left = f.left.after(f.rate, s.now-f.since)
	}
	f.rate, f.since = rate, s.now
	f.end = later(s.now, f.left.time(rate))
	s.touch(f.run)
}

// level is a link, or the own limit of a flow (^id), in the order of filling.
// Its share is a lower bound: shares only rise while others get their rates.
type level struct {
	share int64
	of    int32
}

// fill is water filling in levels over the gathered links and flows: the
// level is the smallest share there is, and all flows of all links with that
// share get it at once.
func (t *traffic) fill() {
	t.levels = t.levels[:0]
	for _, l := range t.partLinks {
		k := &t.links[l]
		if k.load > 0 {
			k.left, k.waiting = k.capacity<<weightBits, k.load
			t.levels = append(t.levels, level{k.left / k.load, int32(l)})
		}
	}
	for _, id := range t.partFlows {
		f := &t.flows[id]
		f.wanted = -1
		if t.capped(f) {
			t.levels = append(t.levels, level{f.cap, ^id})
		}
	}
	h := t.levels
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.sink(i)
	}
	for len(h) > 0 {
		top := h[0]
		share, waits := t.shareOf(top)
		switch {
		case !waits:
			h = h.drop()
			continue
		case share > top.share:
			h[0].share = share
			h.sink(0)
			continue
		}
		// All at this level, before any of them changes another's share.
		t.lowest = t.lowest[:0]
		for len(h) > 0 && h[0].share == share {
			now, waits := t.shareOf(h[0])
			if waits && now > share {
				h[0].share = now
				h.sink(0)
				continue
			}
			if waits {
				t.lowest = append(t.lowest, h[0].of)
			}
			h = h.drop()
		}
		for _, of := range t.lowest {
			if of < 0 {
				t.give(^of, share)
				continue
			}
			for _, e := range t.links[of].flows {
				t.give(e.flow, share)
			}
		}
	}
}

// capped is whether what a flow shares with nobody may hold it back: not if a
// link that it shares would at its widest.
func (t *traffic) capped(f *live) bool {
	for i := range f.slots {
		if f.cap >= t.links[f.slots[i].link].capacity<<weightBits/f.slots[i].weight {
			return false
		}
	}
	return true
}

func (t *traffic) shareOf(v level) (share int64, waits bool) {
	if v.of < 0 {
		return v.share, t.flows[^v.of].wanted < 0
	}
	l := &t.links[v.of]
	if l.waiting == 0 {
		return 0, false
	}
	return l.left / l.waiting, true
}

func (t *traffic) give(id int32, rate int64) {
	f := &t.flows[id]
	if f.wanted >= 0 {
		return
	}
	f.wanted = rate
	for i := range f.slots {
		l := &t.links[f.slots[i].link]
		l.left -= rate * f.slots[i].weight
		l.waiting -= f.slots[i].weight
	}
}

type levels []level

func (h levels) sink(i int) {
	v := h[i]
	for {
		c := 2*i + 1
		if c >= len(h) {
			break
		}
		if c+1 < len(h) && h[c+1].share < h[c].share {
			c++
		}
		if h[c].share >= v.share {
			break
		}
		h[i] = h[c]
		i = c
	}
	h[i] = v
}

func (h levels) drop() levels {
	h[0] = h[len(h)-1]
	h = h[:len(h)-1]
	if len(h) > 0 {
		h.sink(0)
	}
	return h
}
