package flow

import "time"

// run is a phase of a job under way, or its coasting.
type run struct {
	job     *job
	phase   *phase
	state   state
	version uint32
	next    time.Duration // of its event in the heap, Never if it has none
	dirty   bool          // next is to be found anew

	// Of rounds.
	round, times int // which, and how often still, the one under way included
	start        time.Duration
	cur          *folded
	base         time.Duration // since when cur holds; start unless it was folded anew in mid-round
	flows        []int32       // live flows, one for each of cur
	steady       time.Duration // if not 0: every round until the last takes so long

	// Of a stopped job: what was left.
	heldFor  time.Duration
	heldLeft []amount
}

type state uint8

const (
	computing state = iota
	exchanging
	coasting
	over
)

// startRun starts phase i of the stage; it tells whether that takes time.
func (s *Sim) startRun(j *job, r *run, p *phase) bool {
	*r = run{job: j, phase: p, version: r.version + 1, next: Never, flows: r.flows[:0]}
	if c := p.script.Compute; c > 0 {
		r.state = computing
		s.schedule(r, later(s.now, c))
		return true
	}
	r.state, r.round, r.times = exchanging, -1, 0
	return s.nextRound(r)
}

// nextRound starts the next round that takes time; it tells whether there is.
func (s *Sim) nextRound(r *run) bool {
	s.takeOff(r)
	for r.times--; ; r.times = 0 {
		if r.times <= 0 {
			if r.round++; r.round >= len(r.phase.rounds) {
				r.state = over
				r.version++ // whatever is in the heap is void
				return false
			}
			r.times = r.phase.rounds[r.round].times
		}
		if r.phase.rounds[r.round].takesTime {
			break
		}
	}
	s.put(r, s.foldRound(r), s.now)
	r.start = s.now
	return true
}

// put lets the flows of a folded round run from now on.
func (s *Sim) put(r *run, f *folded, now time.Duration) {
	r.cur, r.base, r.steady = f, now, 0
	for i := range f.groups {
		g := &f.groups[i]
		id := s.newFlow()
		s.flows[id] = live{left: g.left, rate: -1, since: now, end: Never, cap: g.cap, slots: f.slots[g.first:g.after], run: r}
		r.flows = append(r.flows, id)
		s.putOn(id)
	}
	s.touch(r)
}

// takeOff ends what is left of a round's flows.
func (s *Sim) takeOff(r *run) {
	for _, id := range r.flows {
		if s.flows[id].on {
			s.takeOffLinks(id)
		}
		s.flows[id].slots, s.flows[id].run = nil, nil
		s.free = append(s.free, id)
	}
	r.flows = r.flows[:0]
}

// touch has the next event of a run found anew when rates are.
func (s *Sim) touch(r *run) {
	if !r.dirty {
		r.dirty = true
		s.dirty = append(s.dirty, r)
	}
}

// due goes on with a run whose event is now.
func (s *Sim) due(r *run) {
	r.next = Never
	switch r.state {
	case coasting:
		if r.job.own != nil {
			s.dueAlone(r.job)
		} else {
			s.land(r.job)
		}
		return
	case computing:
		r.state = over
	case exchanging:
		if !s.dueRounds(r) {
			return
		}
	}
	s.phaseOver(r.job)
}

// dueRounds goes on with rounds; it tells whether the phase is over.
func (s *Sim) dueRounds(r *run) bool {
	if r.steady > 0 {
		s.counted(r, r.times)
		r.times = 1
		return !s.nextRound(r)
	}
	whole := later(r.base, r.cur.own) <= s.now // in the model Equal always
	for _, id := range r.flows {
		f := &s.flows[id]
		whole = whole && (!f.on || f.end <= s.now)
	}
	switch {
	case !whole:
		for _, id := range r.flows {
			if f := &s.flows[id]; f.on && f.end <= s.now {
				s.takeOffLinks(id)
			}
		}
		s.touch(r)
		return false
	case r.times > 1 && s.regular(r):
		s.counted(r, 1)
		r.times--
		s.again(r)
		return false
	}
	s.counted(r, 1)
	return !s.nextRound(r)
}

// again starts a round anew whose flows are those of the last one. A flow that
// ends now has not left its links, so that nobody else notices.
func (s *Sim) again(r *run) {
	r.start, r.base, r.steady = s.now, s.now, 0
	for i, id := range r.flows {
		f := &s.flows[id]
		f.left, f.since = r.cur.groups[i].left, s.now
		if f.on {
			f.end = later(s.now, f.left.time(f.rate))
		} else {
			f.rate, f.end = -1, Never
			s.putOn(id)
		}
	}
	s.touch(r)
}

func (s *Sim) counted(r *run, times int) {
	rd := &r.phase.rounds[r.round]
	s.count.Flows += int64(times) * rd.count
	s.count.Rounds += int64(times)
}

// regular is whether the round is folded as it would be if it began now.
func (s *Sim) regular(r *run) bool {
	return r.cur == r.phase.rounds[r.round].folded && r.cur.version == r.job.version
}

// catchUp brings a steady run to the round that is under way now.
func (s *Sim) catchUp(r *run) {
	k := int((s.now - r.start) / r.steady)
	if k > 0 {
		s.counted(r, k)
		r.times -= k
		r.start += time.Duration(k) * r.steady
		r.base = r.start
		for i, id := range r.flows {
			f := &s.flows[id]
			f.left, f.since = r.cur.groups[i].left, r.start
			f.end = later(r.start, f.left.time(f.rate))
		}
	}
	r.steady = 0
	s.touch(r)
}

// reschedule finds the next event of a run of rounds: the end of a flow that
// others notice, else the end of the round; of all rounds, when each will be
// as this one is.
func (s *Sim) reschedule(r *run) {
	r.dirty = false
	if r.state != exchanging || r.job.stopped {
		return
	}
	end, first, fresh := later(r.base, r.cur.own), Never, r.base == r.start
	for _, id := range r.flows {
		f := &s.flows[id]
		if !f.on { // it has ended in this round
			fresh = false
			continue
		}
		end = max(end, f.end)
		fresh = fresh && f.since == r.start
		if f.coupled { // never in the model Equal
			first = min(first, f.end)
		}
	}
	r.steady = 0
	switch {
	case first < end:
		s.schedule(r, first)
	case fresh && end < Never && r.times > 1 && !s.plain && s.regular(r):
		r.steady = end - r.start
		if int64(r.times) > int64(Never-r.start)/int64(r.steady) {
			s.schedule(r, Never)
			break
		}
		s.schedule(r, r.start+time.Duration(r.times)*r.steady)
	default:
		s.schedule(r, end)
	}
}

// schedule sets when a run goes on.
func (s *Sim) schedule(r *run, at time.Duration) {
	if at == r.next {
		return
	}
	r.version++
	r.next = at
	if at < Never {
		s.heap.push(event{at, r, r.version})
	}
}
