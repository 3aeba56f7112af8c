package flow

import "time"

// flush gives rates to all that what happened at this instant may have
// changed, and finds what happens next.
func (s *Sim) flush() {
	if len(s.seeds) > 0 {
		s.mark++
		s.bound()
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
		for _, id := range s.woken {
			f := &s.flows[id]
			if f.run.steady > 0 {
				s.catchUp(f.run)
			}
			f.coupled = true
			f.endAt(f.end)
			s.touch(f.run)
		}
		s.seeds, s.begun, s.woken, s.least = s.seeds[:0], s.begun[:0], s.woken[:0], unlimited
	}
	for _, r := range s.dirty {
		s.reschedule(r)
	}
	s.dirty = s.dirty[:0]
}

// bound lowers the least rate that may change to what the flows that begin
// have at least: a link never gives less than all its capacity by all flows.
func (t *traffic) bound() {
	for _, id := range t.begun {
		f := &t.flows[id]
		if !f.on || f.rate >= 0 {
			continue
		}
		t.least = min(t.least, f.cap)
		for i := range f.slots {
			l := &t.links[f.slots[i].link]
			t.least = min(t.least, l.capacity<<weightBits/l.load)
		}
	}
}

// gather finds the links and flows whose rates may change and that hang
// together with a link. A flow slower than all that ended or began does not
// change: what it shares with them holds it back less than another link does.
func (s *Sim) gather(from Link) {
	s.partLinks, s.partFlows = s.partLinks[:0], s.partFlows[:0]
	s.visit(from)
	for i := 0; i < len(s.partLinks); i++ {
		l := &s.links[s.partLinks[i]]
		for k := 0; k < len(l.flows); {
			e := l.flows[k]
			f := &s.flows[e.flow]
			switch {
			case f.mark == s.mark:
			case f.run.over(f, s.now):
				if f.run.steady > 0 {
					s.catchUp(f.run)
				}
				least := s.least
				s.takeOffLinks(e.flow)
				s.least = least // nobody waits for what it had
				for x := range f.slots {
					s.links[f.slots[x].link].waiting -= f.slots[x].weight // of those visited, the others do not mind
				}
				continue
			case f.rate >= 0 && f.rate < s.least:
				w := f.slots[e.slot].weight
				l.waiting -= w
				l.left -= w * f.rate
			default:
				if f.run.steady > 0 {
					s.catchUp(f.run)
				}
				f.mark = s.mark
				s.partFlows = append(s.partFlows, e.flow)
				for x := range f.slots {
					if m := f.slots[x].link; s.links[m].mark != s.mark {
						s.visit(m)
					}
				}
			}
			k++
		}
	}
}

func (t *traffic) visit(l Link) {
	k := &t.links[l]
	k.mark = t.mark
	k.left, k.waiting, k.level = k.capacity<<weightBits, k.load, -1
	t.partLinks = append(t.partLinks, l)
}

// over is whether a flow has ended that nobody had to notice.
func (r *run) over(f *live, now time.Duration) bool {
	if r.steady > 0 {
		return f.end-f.since <= (now-r.start)%r.steady
	}
	return f.end <= now
}

// solve gives the gathered flows their rates.
func (s *Sim) solve() {
	if len(s.partFlows) == 0 {
		return
	}
	s.fill()
	for _, id := range s.partFlows {
		f := &s.flows[id]
		coupled := s.noticed(f)
		if f.rate == f.wanted && f.coupled == coupled {
			continue
		}
		f.coupled = coupled
		s.setRate(f, f.wanted)
	}
	s.count.Solved += int64(len(s.partFlows))
}

// noticed is whether the end of a flow may change the rate of others: if one
// of its links holds others back.
func (t *traffic) noticed(f *live) bool {
	for i := range f.slots {
		if l := &t.links[f.slots[i].link]; l.level >= 0 && (l.held > 1 || f.wanted < l.level) {
			return true
		}
	}
	return false
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
	if f.rate != rate {
		if f.rate > 0 && f.since < s.now {
			f.left = f.left.after(f.rate, s.now-f.since)
		}
		f.rate, f.since = rate, s.now
		f.end = later(s.now, f.left.time(rate))
	}
	f.endAt(f.end)
	s.touch(f.run)
}

// endAt sets when a flow ends, and for its run when others notice.
func (f *live) endAt(end time.Duration) {
	f.end = end
	if !f.coupled {
		end = Never
	}
	r := f.run
	old := r.ends[f.at]
	if old == end {
		return
	}
	r.ends[f.at] = end
	if old == r.soonest || old == r.latest {
		r.stale = true
		return
	}
	r.soonest = min(r.soonest, end)
	if end < Never {
		r.latest = max(r.latest, end)
	}
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
		if k := &t.links[l]; k.waiting > 0 {
			t.levels = append(t.levels, level{k.left / k.waiting, int32(l)})
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
				t.hold(h[0].of, share)
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

// hold notes how many flows a link holds back at a level.
func (t *traffic) hold(of int32, share int64) {
	if of < 0 {
		return
	}
	l := &t.links[of]
	l.level, l.held = share, 0
	for _, e := range l.flows {
		f := &t.flows[e.flow]
		switch {
		case f.mark != t.mark: // it stays as it is
			if !f.coupled {
				t.woken = append(t.woken, e.flow)
			}
		case f.wanted < 0:
			l.held++
		}
	}
}

// capped reports whether links that a flow has to itself may limit it. They cannot
// where a link that it shares is the narrower one even with nobody else on it.
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
