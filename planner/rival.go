package planner

import (
	"fmt"
	"slices"
	"time"

	"ringlight/proto"
)

// rival is a life of another planner, or of a copy of ours, that was heard live.
type rival struct {
	planner, life uint64
	term          proto.Term
	layout        uint64
	host          string
	takeover      bool
	standby       bool
	mate          bool   // of our store's election
	stored        uint64 // batches of that store that it holds
	behind        uint64 // those that it had yet to read
	seq           uint64 // of its last beat
	beats         int
	first, last   time.Duration
}

func (r *rival) String() string {
	return fmt.Sprintf("planner %v, term %d", proto.PlannerCopy{Planner: r.planner, Life: r.life, Host: r.host}, r.term)
}

// alive: it went on speaking over three periods, the last a moment ago. One
// message is no proof.
func (r *rival) alive(now time.Duration) bool {
	return r.beats >= beatsAlive && r.last-r.first >= (beatsAlive-1)*BeatPeriod-slack && now < r.last+beatsAlive*BeatPeriod
}

const (
	// slack lets three beats be three periods where timers and networks are
	// not exact. chosen.
	slack   = BeatPeriod / 10
	longAgo = -time.Hour
	// maxRivals bounds those that are remembered. chosen: people start two.
	maxRivals = 8
)

// rivals are those heard.
type rivals struct {
	list    []rival
	mates   uint64 // the election of ours; 0: there is none
	dropped uint64 // words of those that were never heard twice
}

func (x *rivals) find(planner, life uint64) *rival {
	i := slices.IndexFunc(x.list, func(r rival) bool { return r.planner == planner && r.life == life })
	if i < 0 {
		return nil
	}
	return &x.list[i]
}

// heard takes a beat of one in service; nil: it is not a new one. Where there is
// no room the one goes that was heard least, then longest ago.
func (x *rivals) heard(m *proto.PlannerState, now time.Duration) (r *rival, first bool) {
	r = x.find(m.Planner, m.Life)
	switch {
	case r != nil && m.Seq <= r.seq && !r.standby:
		return nil, false
	case r != nil && now >= r.last+beatsAlive*BeatPeriod:
		r.beats, r.first = 0, now
	case r == nil:
		if len(x.list) == maxRivals {
			at := 0
			for i := range x.list {
				if a, b := &x.list[i], &x.list[at]; a.beats < b.beats || a.beats == b.beats && a.last < b.last {
					at = i
				}
			}
			if x.list[at].beats == 1 {
				x.dropped++
			}
			x.list = slices.Delete(x.list, at, at+1)
		}
		x.list = append(x.list, rival{planner: m.Planner, life: m.Life, first: now})
		r, first = &x.list[len(x.list)-1], true
	}
	r.term, r.layout, r.takeover, r.standby, r.seq, r.last, r.host = m.Term, m.Layout, m.Takeover, false, m.Seq, now, m.Host
	r.mate, r.stored = x.mates != 0 && m.Election == x.mates, m.Stored
	r.beats++
	return r, first
}

// ended takes the notice that one is not in service: it waits, or is dead. It is
// believed of one that gave way; a death note alone ends no waiting, since
// whoever was forged dead beats on. gave: it waits since now.
func (x *rivals) ended(m *proto.PlannerState, now time.Duration) (r *rival, gave bool) {
	r = x.find(m.Planner, m.Life)
	if r == nil && m.Standby && len(x.list) < maxRivals {
		x.list = append(x.list, rival{planner: m.Planner, life: m.Life, term: m.Term, layout: m.Layout, first: now})
		r = &x.list[len(x.list)-1]
	}
	if r != nil && m.Standby {
		gave = !r.standby
		r.standby, r.beats, r.last, r.host = true, 0, now, m.Host
		r.mate, r.stored = x.mates != 0 && m.Election == x.mates, m.Stored
	}
	return r, gave
}

// gaveWay: one of that life had the term, and stands by.
func (x *rivals) gaveWay(t proto.Term, life uint64) bool {
	return slices.ContainsFunc(x.list, func(r rival) bool { return r.life == life && r.term == t && r.standby })
}

// live is one that is proven to be in service, nil when none is. Those of our
// election do not count.
func (x *rivals) live(now time.Duration) *rival {
	for i := range x.list {
		if r := &x.list[i]; r.alive(now) && !r.mate {
			return r
		}
	}
	return nil
}

// lastSign is when one in service, and not of our election, was heard last, on a doubt or, for one that
// is in service itself, when it spoke more than once.
func (x *rivals) lastSign(proof bool) time.Duration {
	at := longAgo
	for i := range x.list {
		if r := &x.list[i]; !r.mate && (r.beats > 1 || r.beats == 1 && !proof) {
			at = max(at, r.last)
		}
	}
	return at
}

// latest is the one in service that was heard last, on more than one message;
// nil: none.
func (x *rivals) latest() (r *rival) {
	for i := range x.list {
		if o := &x.list[i]; o.beats > 1 && (r == nil || o.last > r.last) {
			r = o
		}
	}
	return r
}

// about describes the other planners that were heard.
func (x *rivals) about(now time.Duration) string {
	s := ""
	for i := range x.list {
		r := &x.list[i]
		what := "said one word, ignored"
		switch {
		case r.standby:
			what = "stands by"
		case r.alive(now):
			what = "is in service"
		case r.beats > 1:
			what = "was in service"
		}
		s += fmt.Sprintf("; %s %s, last heard %d s ago", r, what, int((now - r.last).Seconds()))
	}
	if s == "" {
		return s
	}
	return s[2:]
}
