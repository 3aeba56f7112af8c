package planner

import (
	"fmt"
	"slices"
	"time"

	"ringlight/planner/audit"
	"ringlight/planner/journal"
	"ringlight/proto"
)

// An operator's act has its place in time: it is done once, however often the
// broker brings it, and not at all when it comes long after it was asked for.

const (
	// actMemory is how long an act is known by its client and number. chosen:
	// many times what a client waits and asks again.
	actMemory = time.Minute
	maxActs   = 256 // chosen: people are few; beyond it the oldest is forgotten
	// actBeats is how many signs of life ago an act may have been asked for that
	// quotes one. chosen: 30 s.
	actBeats = 15
)

// act is a request that changes something, and its answer once there is one.
type act struct {
	client string
	corr   proto.Corr
	at     time.Duration
	answer []byte

	who, what string // for the audit
	sealed    bool
}

// acts reports whether a request changes something; a part that is offered does not
// yet.
func acts(q *proto.OpRequest) bool {
	return q.Needs() > proto.RoleView && q.Noun != proto.NounOffer
}

// untimely says why an act comes at the wrong time, nil when it does not; the
// last sign of life was the beat of the term.
func untimely(q *proto.OpRequest, pk *proto.Packet, term proto.Term, beat uint64) *proto.Error {
	switch {
	case pk.Retain:
		return &proto.Error{Code: proto.Expired, Field: "retain", Limit: "not retained", Reason: "the broker kept it; nobody knows since when"}
	case q.Beat == 0 && pk.By == "":
		return nil
	case q.Beat == 0: // a seal is worth nothing against whoever plays it again
		return &proto.Error{Code: proto.Expired, Field: "beat", Limit: "the planner's last sign of life, in what is sealed", Reason: "none"}
	case q.Term != term || q.Beat > beat || beat-q.Beat > actBeats:
		return &proto.Error{Code: proto.Expired, Field: "beat", Limit: fmt.Sprintf("term %d, the last %d of %d", term, actBeats, beat),
			Reason: fmt.Sprintf("term %d, beat %d", q.Term, q.Beat)}
	}
	return nil
}

// repeated answers an act that was done already as it was then; one that waits
// is answered when it is done. Any other is remembered, and written down before it is
// done.
func (l *actList) repeated(j *journal.Journal, client string, q *proto.OpRequest, pk *proto.Packet) bool {
	*l = slices.DeleteFunc(*l, func(a act) bool { return j.Now > a.at+actMemory })
	if a := l.find(client, q.Corr); a != nil {
		if a.answer != nil {
			j.SendRaw(j.Topics.Reply(client), proto.TopicReply, a.answer)
		}
		return true
	}
	if len(*l) == maxActs {
		*l = slices.Delete(*l, 0, 1)
	}
	e := asked(audit.Act, client, q, pk)
	*l = append(*l, act{client: client, corr: q.Corr, at: j.Now, who: e.Who, what: e.What, sealed: e.Sealed})
	j.Persist(j.Audit(e)...)
	return false
}

// actList are the acts of the last minute.
type actList []act

func (l actList) find(client string, corr proto.Corr) *act {
	for i := range l {
		if a := &l[i]; a.client == client && a.corr == corr {
			return a
		}
	}
	return nil
}

// clear forgets what keeps a node or a switch out.
func (p *Planner) clear(q *proto.OpRequest, r *proto.OpReply) {
	t, d := p.find(q.Node)
	if d == nil {
		r.Refuse(&proto.Error{Code: proto.NotFound, Field: "node", Reason: fmt.Sprintf("no node or switch %d", q.Node)})
		return
	}
	was := t.Clear(d)
	if was == "" {
		was = "nothing kept it out"
	}
	r.Why = []proto.WhyLine{{AtMillis: p.j.Wall, Node: d.ID, Bundle: -1, Rule: "clear", Cause: proto.CauseOperator, Text: proto.Clip(was),
		Measured: proto.NoPower, Expected: proto.NoPower}}
	p.j.Note(Info, "operator's request", journal.Note{Rule: "clear", Node: int64(d.ID), Cause: proto.CauseOperator, Text: "cleared: " + was})
}
