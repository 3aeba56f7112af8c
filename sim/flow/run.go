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
	base         time.Duration   // since when cur holds; start unless it was folded anew in mid-round
	first        int32           // live flow of cur's first group, the others follow
	ends         []time.Duration // of these, where others notice; Never where not
	soonest      time.Duration   // of ends
	latest       time.Duration   // of ends that are before Never; -1: none is
	stale        bool            // soonest and latest are to be found anew
	last         bool            // the next event is the end of the round
	steady       time.Duration   // if not 0: every round until the last takes so long

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
	*r = run{job: j, phase: p, version: r.version + 1, next: Never, ends: r.ends[:0]}
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
	r.cur, r.base, r.steady, r.stale = f, now, 0, true
	if len(f.groups) > 0 {
		r.first = s.block(len(f.groups))
	}
	for i := range f.groups {
		g := &f.groups[i]
		id := r.first + int32(i)
		s.flows[id] = live{left: g.left, rate: -1, since: now, end: Never, cap: g.cap, slots: f.slots[g.first:g.after], run: r, at: int32(i)}
		r.ends = append(r.ends, Never)
		s.putOn(id)
	}
	s.touch(r)
}

// takeOff ends the remaining flows of a round.
func (s *Sim) takeOff(r *run) {
	for i := range r.ends {
		if id := r.first + int32(i); s.flows[id].on {
			s.takeOffLinks(id)
		}
	}
	if len(r.ends) > 0 {
		s.freeBlock(r.first, len(r.ends))
	}
	r.ends = r.ends[:0]
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
		s.land(r.job)
		return
	case computing:
		r.state = over
	case exchanging:
		if !s.dueRounds(r) {
			return
		}
	}
	if r.job.active--; r.job.active == 0 { // the last phase of its stage
		s.begin(r.job)
	}
}

// dueRounds goes on with rounds; it tells whether the phase is over.
func (s *Sim) dueRounds(r *run) bool {
	if r.steady > 0 {
		r.counted(s, r.times)
		r.times = 1
		return !s.nextRound(r)
	}
	switch {
	case !r.last:
		for i, end := range r.ends {
			if end <= s.now {
				r.ends[i] = Never
				s.takeOffLinks(r.first + int32(i))
			}
		}
		r.stale = true
		s.touch(r)
		return false
	case r.times > 1 && r.regular():
		r.counted(s, 1)
		r.times--
		s.again(r)
		return false
	}
	r.counted(s, 1)
	return !s.nextRound(r)
}

// again starts a round anew whose flows are those of the last one. A flow that
// ends now has not left its links, so that nobody else notices.
func (s *Sim) again(r *run) {
	r.start, r.base, r.steady = s.now, s.now, 0
	for i := range r.ends {
		f := &s.flows[r.first+int32(i)]
		f.left, f.since = r.cur.groups[i].left, s.now
		if f.on {
			f.endAt(later(s.now, f.left.time(f.rate)))
		} else {
			f.rate = -1
			f.endAt(Never)
			s.putOn(r.first + int32(i))
		}
	}
	s.touch(r)
}

func (r *run) counted(s *Sim, times int) {
	rd := &r.phase.rounds[r.round]
	s.count.Flows += int64(times) * rd.count
	s.count.Rounds += int64(times)
}

// regular is whether the round is folded as it would be if it began now.
func (r *run) regular() bool {
	return r.cur == r.phase.rounds[r.round].folded && r.cur.version == r.job.version
}

// catchUp brings a steady run to the round that is under way now.
func (s *Sim) catchUp(r *run) {
	k := int((s.now - r.start) / r.steady)
	if k > 0 {
		r.counted(s, k)
		r.times -= k
		r.start += time.Duration(k) * r.steady
		r.base = r.start
		for i := range r.ends {
			f := &s.flows[r.first+int32(i)]
			f.left, f.since = r.cur.groups[i].left, r.start
			f.endAt(later(r.start, f.left.time(f.rate)))
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
	r.steady, r.last = 0, false
	if r.stale {
		r.stale, r.soonest, r.latest = false, Never, -1
		for _, end := range r.ends {
			r.soonest = min(r.soonest, end)
			if end < Never {
				r.latest = max(r.latest, end)
			}
		}
	}
	if r.soonest < r.latest {
		s.schedule(r, r.soonest)
		return
	}
	end, fresh := later(r.base, r.cur.own), r.base == r.start
	for i := range r.ends {
		f := &s.flows[r.first+int32(i)]
		if !f.on { // it has ended in this round
			fresh = false
			continue
		}
		end = max(end, f.end)
		fresh = fresh && f.since == r.start
	}
	if r.soonest < end {
		s.schedule(r, r.soonest)
		return
	}
	r.last = true
	switch {
	case fresh && end < Never && r.times > 1 && !s.plain && r.regular():
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
		s.heap.Push(at, event{r, r.version})
	}
}
