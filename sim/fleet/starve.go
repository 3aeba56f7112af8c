package fleet

import (
	"time"

	"ringlight/agent"
	"ringlight/mzi/detmath"
)

// A processor that others keep busy gives an agent a slice of its time and then
// lets it wait: of each period, which is as much longer than a slice as the share
// is small, one slice that lies anywhere in it. What comes in between waits, and
// what is not done when the slice ends goes on in the next.

// sliceTime is how long a process runs before others do. chosen: what Linux gives
// one by default.
const sliceTime = 3 * time.Millisecond

// million is a whole processor.
const million = 1_000_000

// leastShare is the smallest share of a processor, in a million. chosen: with less
// an agent does not read its board within a minute when it starts.
const leastShare = million / 100

// closeTurns is how many turns at its processor an agent needs to close what is
// open beside it, each of which may be a period away. chosen: a search goes through
// 2K candidates, and the other end has to follow each step.
const closeTurns = 20

// starvedRing is how long a ring may be open round a loss where agents are starved:
// both ends search again a few times, and each waits for its turns. chosen: what
// package node promises from the end of a starvation on.
const starvedRing = 5 * time.Second

// ringWithin is within what a ring is closed round a loss.
func ringWithin(cfg *Config) time.Duration {
	if longestPeriod(cfg) > 0 {
		return max(starvedRing, closeWithin(cfg))
	}
	return closeWithin(cfg)
}

// coldTurns is how many it needs to start cold: coldStart, of which a slice is a
// small part.
const coldTurns = coldStart / sliceTime

// longestPeriod is the longest that an agent of a run waits for a turn, 0: none does.
func longestPeriod(cfg *Config) (most time.Duration) {
	most = shareOf(0, cfg.Starve).period
	for i := range cfg.Faults {
		if f := &cfg.Faults[i]; f.Verb == Starve {
			most = max(most, shareOf(0, uint32(f.Count)).period)
		}
	}
	return most
}

// share is a processor's time that an agent has.
type share struct {
	seed   uint64
	period time.Duration // 0: the processor is its own
}

// shareOf so many parts in a million.
func shareOf(seed uint64, parts uint32) share {
	if parts == 0 || parts >= million {
		return share{}
	}
	return share{seed, sliceTime * million / time.Duration(parts)}
}

// from is when the agent runs next, from t on, and until when.
func (s share) from(t time.Duration) (begin, end time.Duration) {
	for n := t / s.period; ; n++ {
		begin = n*s.period + time.Duration(detmath.Hash(s.seed, uint64(n))%uint64(s.period-sliceTime+1))
		if end = begin + sliceTime; t < end {
			return max(t, begin), end
		}
	}
}

// done is when work is done that is begun at t.
func (s share) done(t, work time.Duration) time.Duration {
	for {
		begin, end := s.from(t)
		if begin+work <= end {
			return begin + work
		}
		work -= end - begin
		t = end
	}
}

// turn is when the agent can do something, from t on.
func (st *station) turn(t time.Duration) time.Duration {
	t = max(t, st.busyUntil)
	if st.share.period > 0 {
		t, _ = st.share.from(t)
	}
	return t
}

// think hands in what has waited for the processor. Each thing costs a decision.
func (st *station) think() {
	if st.share.period == 0 && len(st.waits) == 0 {
		return
	}
	st.busyUntil, st.thinking.Takes = st.r.now, st.decide
	if st.share.period > 0 {
		st.busyUntil = st.share.done(st.r.now, st.decide*time.Duration(1+len(st.waits)))
		st.thinking.Takes = st.busyUntil - st.r.now
	}
	waits := st.waits
	st.waits = nil
	for i := range waits {
		st.host.Deliver(st.local(), waits[i])
	}
	clear(waits)
	st.waits = waits[:0]
}

// starve gives the agent of a device another share of its processor.
func (st *station) starve(parts uint32) error {
	st.share = shareOf(detmath.Hash(st.r.cfg.Seed, streamShare, uint64(st.id)), parts)
	if st.host == nil {
		return nil
	}
	st.thinking.Takes = st.decide
	return st.settle()
}

// deliver tells the agent what happened, when it has the processor.
func (st *station) deliver(in agent.Input) error {
	if st.share.period > 0 {
		st.waits = append(st.waits, in)
	} else {
		st.host.Deliver(st.local(), in)
	}
	return st.settle()
}
