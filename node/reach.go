package node

import (
	"strconv"
	"time"

	"ringlight/proto"
)

// Numbers of a planner only ever grow here, so one that is false would stay,
// and every true planner would be stale from then on. Hence no message brings
// one that is far above what is known: a term is known when a planner has shown
// that it is there, a generation when it is in force.

const (
	// A term that is farther than MaxTermJump is believed of a planner that is alive, and alone:
	// signsOfLife in a row for at least signsSpan, and none of another term.
	// chosen: three signs, as a planner waits for another one.
	signsOfLife = 3
	signsSpan   = 4 * time.Second
)

// reach knows how far a planner's term may go.
type reach struct {
	settled proto.Term // the highest of a planner that was there
	sign    proto.Term // of the signs of life that came last, in a row
	signs   int
	since   time.Duration
}

// alive takes a planner's sign of life.
func (r *reach) alive(t proto.Term, now time.Duration) {
	if t != r.sign {
		r.sign, r.signs, r.since = t, 0, now
	}
	if r.signs++; r.signs >= signsOfLife && now-r.since >= signsSpan {
		r.settled = max(r.settled, t)
	}
}

func (r *reach) term() proto.Term { return r.settled + proto.MaxTermJump }

// far refuses a term or generation that is too far above what is known.
func (f *fence) far(t proto.Term, g proto.Generation) *proto.Error {
	if limit := f.reach.term(); t > limit {
		return proto.Wrong("term", "at most "+strconv.FormatUint(uint64(limit), 10), "term %d; believed after %d signs of life of its planner alone", t, signsOfLife)
	}
	_, known, _ := f.applied.name()
	if limit := proto.Highest(uint64(known)); uint64(g) > limit {
		return proto.Wrong("generation", "at most "+strconv.FormatUint(limit, 10), "generation %d; %d is in force", g, known)
	}
	return nil
}
