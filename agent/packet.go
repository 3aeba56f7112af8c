package agent

import (
	"strconv"
	"time"

	"ringlight/node"
	"ringlight/proto"
)

// keptCommands is how many answers are kept for repeated commands. chosen: a
// planner has a few under way with one node.
const keptCommands = 64

// commandWindow remembers the last commands and what they were answered.
type commandWindow struct {
	acks   []proto.Ack
	newest int
}

func (w *commandWindow) find(c proto.Corr) *proto.Ack {
	for i := range w.acks {
		if w.acks[i].Corr == c {
			return &w.acks[i]
		}
	}
	return nil
}

func (w *commandWindow) keep(a proto.Ack) {
	if known := w.find(a.Corr); known != nil {
		*known = a
		return
	}
	a.Events, a.Bins = nil, nil // asked for again, they are read again
	if len(w.acks) < keptCommands {
		w.acks = append(w.acks, a)
		return
	}
	w.acks[w.newest] = a
	w.newest = (w.newest + 1) % keptCommands
}

// beat is a planner's last sign of life.
type beat struct {
	term   proto.Term
	seq    uint64
	at     time.Duration
	period time.Duration
	sealed bool
	// features of the planner that gave it.
	features proto.Features
}

// since is how long ago, at the least, a command was sent that quotes a sign of
// life: before the next one came. Where that is sealed, a broker that keeps back
// both does not make a command younger: the next one was due a period later.
func (b *beat) since(c *proto.Command, now time.Duration) time.Duration {
	switch {
	case c.Beat == 0 || c.Term != b.term || b.seq < c.Beat:
		return 0
	case b.seq == c.Beat && !b.sealed:
		return 0
	case b.seq == c.Beat:
		return max(0, now-b.at-b.period)
	}
	return now - b.at + time.Duration(min(b.seq-c.Beat-1, maxBeatsAgo))*b.period
}

// heard takes a sign of life. One that is sealed was true once: an older one, told
// again, does not turn the clock back that commands are dated by.
func (b *beat) heard(s *proto.PlannerState, sealed bool, now time.Duration) {
	if sealed && b.sealed && (s.Term < b.term || s.Term == b.term && s.Seq <= b.seq) {
		return
	}
	*b = beat{s.Term, s.Seq, now, time.Duration(s.PeriodMillis) * time.Millisecond, sealed, s.Features}
}

// maxBeatsAgo bounds what is counted of a command's age. chosen: whatever is
// that old is over, and the product stays a time.
const maxBeatsAgo = 1000

// packet takes one publication, or a notice of the link, and says what the machine is to
// hear of it.
func (a *Agent) packet(now time.Duration, in Input) (ev node.Event, told bool) {
	p := in.Packet
	if p.Kind != proto.Publish {
		a.link(now, p)
		return ev, false
	}
	topic, err := proto.ParseTopic(p.Topic)
	if err != nil {
		a.refuse(now, proto.Ack{Phase: proto.PhaseProtocol}, err)
		return ev, false
	}
	if topic.Fabric != a.cfg.Fabric {
		a.refuse(now, proto.Ack{Phase: proto.PhaseProtocol}, &proto.Error{Code: proto.NotFound, Field: "topic",
			Limit: "fabric " + a.cfg.Fabric, Reason: "fabric " + topic.Fabric})
		return ev, false
	}
	if p.Doubt != "" {
		a.doubted(now, p.Doubt)
	}
	switch topic.Kind {
	case proto.TopicDesired:
		return a.desired(now, topic, p.Payload)
	case proto.TopicDecision:
		return a.decision(now, topic, p.Payload)
	case proto.TopicCommand:
		a.command(now, topic, in)
	case proto.TopicPlanner:
		a.planner(now, p)
	default:
		a.refuse(now, proto.Ack{Phase: proto.PhaseProtocol}, &proto.Error{Code: proto.Unsupported, Field: "topic",
			Reason: topic.Kind.String() + " is not for an agent"})
	}
	return ev, false
}

// refuse answers what was wrong; nothing else changes.
func (a *Agent) refuse(now time.Duration, ack proto.Ack, err error) {
	ack.Refuse(err)
	var r proto.Reported
	a.machine.Report(&r)
	ack.CurrentTerm, ack.CurrentGeneration = r.Term, r.Generation
	a.answer(now, ack)
	a.report(now)
}

// decode reads a payload and counts the keys that it skipped.
func (a *Agent) decode(payload []byte, msg any) error {
	unknown, err := proto.Decode(payload, msg)
	a.wire.unknown += uint64(unknown)
	return err
}

// addressee refuses a message that is not for this node, or whose topic says
// another node than its payload.
func (a *Agent) addressee(topic proto.Topic, n proto.NodeID) error {
	switch {
	case topic.Node != a.cfg.Node:
		return &proto.Error{Code: proto.WrongNode, Field: "topic", Limit: "node " + number(a.cfg.Node), Reason: "topic of node " + number(topic.Node)}
	case n != a.cfg.Node:
		return &proto.Error{Code: proto.WrongNode, Field: "node", Limit: number(a.cfg.Node), Reason: "addressed to node " + number(n)}
	}
	return nil
}

func number(n proto.NodeID) string { return strconv.FormatUint(uint64(n), 10) }

func (a *Agent) desired(now time.Duration, topic proto.Topic, payload []byte) (ev node.Event, told bool) {
	d := new(proto.Desired)
	err := a.decode(payload, d)
	if err == nil {
		err = a.addressee(topic, d.Node)
	}
	if err != nil {
		a.refuse(now, proto.Ack{Phase: proto.PhaseProtocol, Term: d.Term, Generation: d.Generation, Plan: d.Plan}, err)
		return ev, false
	}
	if err := a.persist.refuses(); err != nil && !a.keeps(d) {
		a.refuse(now, proto.Ack{Phase: proto.PhasePrepare, Term: d.Term, Generation: d.Generation, Plan: d.Plan}, err)
		return ev, false
	}
	a.operator.release(now)
	return node.Event{Kind: node.Stage, Desired: d, Digest: proto.DigestOf(payload)}, true
}

// keeps tells that a plan is on disk already.
func (a *Agent) keeps(d *proto.Desired) bool {
	var r proto.Reported
	a.machine.Report(&r)
	return a.persist.settled() && (d.Plan == r.Plan && d.Generation == r.Generation || d.Plan == r.StagedPlan && d.Generation == r.StagedGeneration)
}

func (a *Agent) decision(now time.Duration, topic proto.Topic, payload []byte) (ev node.Event, told bool) {
	d := new(proto.Decision)
	err := a.decode(payload, d)
	if err == nil && d.Ring != topic.Ring {
		err = &proto.Error{Code: proto.Invalid, Field: "ring", Limit: strconv.FormatUint(uint64(topic.Ring), 10),
			Reason: "ring " + strconv.FormatUint(uint64(d.Ring), 10) + " on the topic of another"}
	}
	if err != nil {
		a.refuse(now, proto.Ack{Phase: proto.PhaseProtocol, Term: d.Term, Generation: d.Generation, Plan: d.Plan}, err)
		return ev, false
	}
	return node.Event{Kind: node.Decide, Decision: d}, true
}

func (a *Agent) planner(now time.Duration, p proto.Packet) {
	var s proto.PlannerState
	if err := a.decode(p.Payload, &s); err != nil {
		a.wire.refused++ // all agents hear it: an answer of each is a flood that one message makes
		return
	}
	// What a broker kept proves nothing of a live planner.
	if s.Online && !p.Retain {
		a.wire.beat.heard(&s, p.By != "", now)
		a.wire.called(&s, now)
		a.step(now, node.Event{Kind: node.HeardTerm, Term: s.Term, Life: s.Life})
		var r proto.Reported
		if a.machine.Report(&r); s.Term > r.SeenTerm {
			a.refuse(now, proto.Ack{Phase: proto.PhaseProtocol, Term: s.Term}, &proto.Error{Code: proto.Invalid, Field: "term",
				Limit: "near term " + strconv.FormatUint(uint64(r.SeenTerm), 10), Reason: "a planner's term far ahead is believed when it alone is alive for some beats"})
		}
	}
}

// command takes a Command: checked for the addressee, the life of the agent,
// its age and its term, done once, and answered.
func (a *Agent) command(now time.Duration, topic proto.Topic, in Input) {
	c := new(proto.Command)
	err := a.decode(in.Packet.Payload, c)
	ack := proto.Ack{Phase: proto.PhaseCommand, Term: c.Term, Corr: c.Corr}
	if err != nil {
		ack.Phase = proto.PhaseProtocol
		a.refuse(now, ack, err)
		return
	}
	if in.Packet.Retain {
		a.refuse(now, ack, &proto.Error{Code: proto.Expired, Field: "retain", Limit: "not retained", Reason: "the broker kept it; nobody knows since when"})
		return
	}
	if err := a.admit(now, topic, c, in.At); err != nil {
		a.refuse(now, ack, err)
		return
	}
	if c.Verb != proto.VerbAckEvents && c.Verb != proto.VerbEvents && c.Verb != proto.VerbBins {
		if known := a.wire.commands.find(c.Corr); known != nil {
			again := *known
			if again.Code == proto.OK {
				again.Code, again.Field, again.Reason = proto.Duplicate, "corr", "already done"
			}
			a.answer(now, again)
			a.report(now)
			return
		}
	}
	a.obey(now, c, ack)
}

func (a *Agent) admit(now time.Duration, topic proto.Topic, c *proto.Command, received time.Duration) error {
	if err := a.addressee(topic, c.Node); err != nil {
		return err
	}
	if c.Session != a.cfg.Session {
		return &proto.Error{Code: proto.WrongSession, Field: "session", Limit: strconv.FormatUint(uint64(a.cfg.Session), 10),
			Reason: "for another life of this agent"}
	}
	age := a.wire.beat.since(c, now)
	if received != 0 {
		age = max(age, now-received)
	}
	if age > time.Duration(c.TTLMillis)*time.Millisecond {
		return &proto.Error{Code: proto.Expired, Field: "ttl_millis", Limit: strconv.FormatUint(uint64(c.TTLMillis), 10),
			Reason: "waited " + age.Round(time.Millisecond).String()}
	}
	var r proto.Reported
	a.machine.Report(&r)
	if c.Term > r.SeenTerm+proto.MaxTermJump {
		return &proto.Error{Code: proto.Invalid, Field: "term", Limit: "at most " + strconv.FormatUint(uint64(r.SeenTerm+proto.MaxTermJump), 10),
			Reason: "term " + strconv.FormatUint(uint64(c.Term), 10)}
	}
	if c.Term < r.SeenTerm {
		return &proto.Error{Code: proto.Stale, Field: "term", Limit: "at least " + strconv.FormatUint(uint64(r.SeenTerm), 10),
			Reason: "term " + strconv.FormatUint(uint64(c.Term), 10)}
	}
	if c.Term == r.SeenTerm && c.Life != 0 && r.SeenLife != 0 && c.Life != r.SeenLife {
		return &proto.Error{Code: proto.Stale, Field: "life", Reason: "the term belongs to another life of a planner"}
	}
	return nil
}

func (a *Agent) obey(now time.Duration, c *proto.Command, ack proto.Ack) {
	a.step(now, node.Event{Kind: node.HeardTerm, Term: c.Term, Life: c.Life})
	var err error
	switch c.Verb {
	case proto.VerbAckEvents:
		if c.Seq > a.outbox.last {
			err = &proto.Error{Code: proto.Invalid, Field: "seq", Limit: "at most " + strconv.FormatUint(a.outbox.last, 10),
				Reason: "acknowledges an event that was never sent"}
			break
		}
		if a.outbox.ack(c.Seq) && a.outbox.resendAt != Never {
			a.outbox.resendAt = now + a.outbox.backoff
		}
		return // an acknowledgement is not acknowledged
	case proto.VerbEvents:
		ack.Events, ack.Next = a.outbox.page(c.Next)
		a.answer(now, ack)
		return
	case proto.VerbBins:
		if ack.Bins, ack.Next, err = a.pm.asked(now, c.Bins, c.Next); err == nil {
			a.answer(now, ack)
			return
		}
	case proto.VerbReannounce:
		a.wire.birth, a.wire.asked = true, &c.Corr
		a.report(now)
	case proto.VerbAbort:
		a.step(now, node.Event{Kind: node.DropStaged, Term: c.Term})
	case proto.VerbRestart:
		if err = a.restart.told(c, ack); err == nil {
			return // answered when it is known whether it can be
		}
	default:
		later, refused := a.operator.execute(now, c, ack)
		if later {
			return // answered when it is done
		}
		err = refused
	}
	if err != nil {
		a.refuse(now, ack, err)
		return
	}
	a.finishCommand(now, ack)
}

func unknownVerb(v proto.Verb) error {
	return &proto.Error{Code: proto.Unsupported, Field: "verb", Reason: "unknown verb " + strconv.Itoa(int(v))}
}

// finishCommand answers a command and keeps the answer for its repetition.
func (a *Agent) finishCommand(now time.Duration, ack proto.Ack) {
	var r proto.Reported
	a.machine.Report(&r)
	ack.CurrentTerm, ack.CurrentGeneration = r.Term, r.Generation
	a.wire.commands.keep(ack)
	a.answer(now, ack)
}
