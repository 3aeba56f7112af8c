package planner

import (
	"cmp"
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
	// maxActs bounds those known. chosen: more than a planner reads between two signs
	// of life; an act and its answer are some hundred bytes.
	maxActs = 4096
	// actBeats is how many signs of life ago an act may have been asked for that
	// quotes one. chosen: 30 s.
	actBeats = 15
	// lateAnswer is how long it is listened for what became of an act after the one
	// who asked was told that nobody answered. chosen: the longest that any may wait.
	lateAnswer = proto.MaxTTLMillis * time.Millisecond
)

// Bounds of the acts of one operator who is known by a seal, so that nobody pushes
// the records of the others out of the chain in minutes. chosen: a cell of a thousand
// nodes at once; by one operator alone the whole chain lasts three days.
const (
	actsAtOnce = 1024
	actEvery   = 10 * time.Second
	maxActors  = 1024 // more than a trust document has operators
)

// allowance is how much of a bounded thing somebody has used; each interval gives one back.
type allowance struct {
	used  int
	since time.Duration
}

func (a *allowance) room(now time.Duration, atOnce int, every time.Duration) bool {
	if n := int((now - a.since) / every); n > 0 {
		a.used, a.since = max(0, a.used-n), a.since+time.Duration(n)*every
	}
	if a.used == atOnce {
		return false
	}
	a.used++
	return true
}

// act is a request that changes something, and its answer once there is one.
type act struct {
	client string
	corr   proto.Corr
	beat   uint64        // that it quoted, 0: none
	until  time.Duration // that it is known: while it waits, and a minute
	answer []byte
	gone   bool // if another comes

	deed
}

// deed is an act as the audit has it.
type deed struct {
	who, what string
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

// actList are the acts of the last minute, and those that wait for their answers. What it has forgotten is
// never done again: from then on an act must quote a later sign of life than that
// one did, however long ago it was and however many came since.
type actList struct {
	known []act
	floor uint64                // the latest sign of life that a forgotten one quoted
	spent map[string]*allowance // by sender that a seal proves
}

func (l *actList) find(client string, corr proto.Corr) *act {
	for i := range l.known {
		if a := &l.known[i]; a.corr == corr && a.client == client {
			return a
		}
	}
	return nil
}

// again answers an act that was done already as it was then; one that waits is
// answered when it is done.
func (l *actList) again(j *journal.Journal, client string, q *proto.OpRequest) bool {
	a := l.find(client, q.Corr)
	if a != nil && a.answer != nil {
		j.SendRaw(j.Topics.Reply(client), proto.TopicReply, a.answer)
	}
	return a != nil
}

// enter remembers an act and writes it down before it is done. It is refused when it
// is untimely, when it may be one that was forgotten, or when that would become true
// of all that quote the last sign of life, beat.
func (l *actList) enter(j *journal.Journal, client string, q *proto.OpRequest, pk *proto.Packet, beat uint64) *proto.Error {
	if err := untimely(q, pk, j.Term, beat); err != nil {
		return err
	}
	if !l.room(j.Now) {
		return &proto.Error{Code: proto.Busy, Limit: fmt.Sprintf("%d at a time", maxActs), Reason: "too many requests wait for their answers"}
	}
	floor := l.floor
	for _, a := range l.known {
		if a.gone {
			floor = max(floor, a.beat)
		}
	}
	if q.Beat != 0 && q.Beat <= floor {
		code := proto.Expired
		if floor >= beat { // soon there is a later one to quote
			code = proto.Busy
		}
		return &proto.Error{Code: code, Field: "beat", Limit: fmt.Sprintf("after %d: no more than %d requests are remembered", floor, maxActs), Reason: fmt.Sprintf("beat %d", q.Beat)}
	}
	if pk.By != "" && !l.affords(j.Now, pk.By) {
		return &proto.Error{Code: proto.Busy, Field: "author", Limit: fmt.Sprintf("%d acts of one operator at once, one in %v after", actsAtOnce, actEvery), Reason: pk.By + " acted more often"}
	}
	e := asked(audit.Act, client, q, pk)
	l.known, l.floor = slices.DeleteFunc(l.known, func(a act) bool { return a.gone }), floor
	l.wait(act{client: client, corr: q.Corr, beat: q.Beat, deed: deed{e.Who, e.What, e.Sealed}}, j.Now+time.Duration(q.TTLMillis)*time.Millisecond)
	j.Persist(j.Audit(e)...)
	return nil
}

// wait remembers an act that is answered by a time.
func (l *actList) wait(a act, until time.Duration) {
	a.until = until + actMemory
	l.known = append(l.known, a)
}

// room finds what is to be forgotten if another act comes; false: all wait for their
// answers.
func (l *actList) room(now time.Duration) bool {
	room := len(l.known) < maxActs
	for i := range l.known {
		a := &l.known[i]
		a.gone = now > a.until
		room = room || a.gone
	}
	if room {
		return true
	}
	first := slices.IndexFunc(l.known, func(a act) bool { return a.answer != nil })
	if first >= 0 {
		l.known[first].gone = true
	}
	return first >= 0
}

func (l *actList) affords(now time.Duration, who string) bool {
	a := l.spent[who]
	if a == nil {
		if len(l.spent) >= maxActors {
			clear(l.spent) // revoked ones, and such as never came again
		}
		if l.spent == nil {
			l.spent = map[string]*allowance{}
		}
		a = &allowance{since: now}
		l.spent[who] = a
	}
	return a.room(now, actsAtOnce, actEvery)
}

// answered notes what an act came to; nil: it is none that is known.
func (l *actList) answered(now time.Duration, client string, corr proto.Corr, payload []byte) *deed {
	a := l.find(client, corr)
	if a == nil {
		return nil
	}
	a.answer, a.until = payload, now+actMemory
	return &a.deed
}

// clear forgets what keeps a node or a switch out.
func (p *Planner) clear(q *proto.OpRequest, r *proto.OpReply) {
	if q.Noun == proto.NounClearFibre {
		if !p.Rings.Evidence.ClearFibre(q.Name) {
			r.Refuse(&proto.Error{Code: proto.NotFound, Field: "fibre", Limit: "one that is held to be cut: ocsctl alarm list", Reason: fmt.Sprintf("fibre %q is not", proto.Clip(q.Name))})
			return
		}
		p.j.Note(Info, "operator's request", journal.Note{Rule: "clear", Node: -1, Cause: proto.CauseOperator, Text: "what was held against fibre " + q.Name + " is forgotten"})
		return
	}
	t, d := p.find(q.Node)
	if d == nil {
		r.Refuse(&proto.Error{Code: proto.NotFound, Field: "node", Reason: fmt.Sprintf("no node or switch %d", q.Node)})
		return
	}
	was, knows := t.Clear(d), t.Numbers.Knows(d)
	if knows != 0 && p.state == serving {
		was = fmt.Sprintf("it alone knew term %d; ours goes on from there", knows)
		p.seenTerm = max(p.seenTerm, knows)
		p.overtaken("an operator's word: "+was, false)
	}
	was = cmp.Or(was, "nothing kept it out")
	r.Why = []proto.WhyLine{{AtMillis: p.j.Wall, Node: d.ID, Bundle: -1, Rule: "clear", Cause: proto.CauseOperator, Text: proto.Clip(was),
		Measured: proto.NoPower, Expected: proto.NoPower}}
	p.j.Note(Info, "operator's request", journal.Note{Rule: "clear", Node: int64(d.ID), Cause: proto.CauseOperator, Text: "cleared: " + was})
}
