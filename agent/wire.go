package agent

import (
	"slices"
	"time"

	"ringlight/proto"
	"ringlight/proto/limit"
)

const (
	// maxAcks bounds the answers that wait for the disk. chosen: a planner
	// has one generation and a few commands under way with one node.
	maxAcks = 128
	// Refusals. chosen: planners and operators are refused a few messages now and
	// then, after a change of theirs one for each node; a tenth of what a planner
	// reads of one agent's answers.
	refusalInterval = 50 * time.Millisecond
	refusalBurst    = 64
	// coalesce is the least time between two reports. chosen: a burst is
	// one report, and an operator sees no delay.
	coalesce = 200 * time.Millisecond
	// sendAgain is when retained messages are repeated after the link lost
	// something. chosen.
	sendAgain = time.Second
	// A link that is lost stolenLosses times in a row within stolenWithin of its
	// coming up is taken by another client of its name. chosen: a broker that
	// restarts takes a link once or twice.
	stolenLosses = 3
	stolenWithin = 5 * time.Second
)

var refusalRate = limit.Rate{Interval: refusalInterval, Burst: refusalBurst}

// wire is what the agent has to say and how far it has said it.
type wire struct {
	up       bool
	acks     []heldAck
	birth    bool          // presence is to be sent
	asked    *proto.Corr   // of the last question for it
	reportAt time.Duration // when reported is to be sent
	// reportHeld says that it waits for the disk.
	reportHeld bool
	again      time.Duration // when birth and report are to be repeated
	sentAt     time.Duration
	sentOnce   bool
	seq        uint64 // of reported
	told       uint64 // of the last one that was sent
	refused    uint64 // messages refused, over all lives
	refusals   limit.Bucket
	unsaid     uint64 // of those, not answered since the last one that was
	unknown    uint64 // keys skipped
	health     uint64 // number of the last telemetry
	dropped    uint64 // telemetry
	commands   commandWindow
	beat       beat
	call       [2]uint64 // life and connection of the planner that called last
	upAt       time.Duration
	quick      int // losses in a row soon after the link was up
	doubt      doubt
}

// doubt is what was wrong last with the seal of a message that was read all the same.
type doubt struct {
	text  string // "": nothing was
	since time.Duration
	until time.Duration
}

// doubtFor is how long one stands. chosen: a planner gives a sign of life every two
// seconds.
const doubtFor = time.Minute

// doubted has an alarm stand: with seals enforced the message would not have been read.
func (a *Agent) doubted(now time.Duration, why string) {
	d := &a.wire.doubt
	if d.text == "" {
		d.since = now
	}
	if text := proto.Clip(proto.UnsealedPlanner + why); text != d.text {
		d.text = text
		a.report(now)
	}
	d.until = now + doubtFor
}

// lost is told when the link could not carry what it had taken. Answers and
// events are asked for or sent again anyway; what is retained is repeated.
func (w *wire) lost(now time.Duration) {
	if w.up && w.again == Never {
		w.again = now + sendAgain
	}
}

// called is told of a planner's sign of life. Where the broker keeps nothing it calls all
// that its connection has not heard yet.
func (w *wire) called(s *proto.PlannerState, now time.Duration) {
	if s.Call != 0 && w.call != [2]uint64{s.Life, s.Call} {
		w.call = [2]uint64{s.Life, s.Call}
		w.lost(now)
	}
}

// put keeps an output for the next Poll.
func (a *Agent) put(o Output) { a.outs = append(a.outs, o) }

// subscribe asks for a topic or drops it; the link keeps it over reconnects.
func (a *Agent) subscribe(topic string, kind proto.PacketKind) {
	a.put(Output{Kind: OutSend, Packet: proto.Packet{Kind: kind, Topic: topic, QoS: 1}})
}

// report makes the next report due.
func (a *Agent) report(now time.Duration) {
	w := &a.wire
	if w.up && a.adopted && w.reportAt == Never && !w.reportHeld {
		w.reportAt = now
		if w.sentOnce {
			w.reportAt = max(now, w.sentAt+coalesce)
		}
	}
}

// link takes a notice of the link about itself.
func (a *Agent) link(now time.Duration, p proto.Packet) {
	w := &a.wire
	switch p.Kind {
	case proto.LinkUp:
		w.up, w.birth, w.upAt = true, true, now
		w.reportAt, w.reportHeld = Never, false
		a.report(now)
		a.outbox.rewind()
		a.outbox.backoff = resendFirst
	case proto.LinkDown:
		a.stolen(now)
		w.up, w.reportAt, w.again = false, Never, Never
		a.outbox.rewind()
		a.outbox.resendAt = Never
	case proto.Shed:
		w.refused += p.ShedCount()
		a.report(now)
	}
}

// stolen notices that the link is taken again and again, and says by whom it
// may be. The link itself waits longer each time.
func (a *Agent) stolen(now time.Duration) {
	w := &a.wire
	switch {
	case w.up && now-w.upAt >= stolenWithin:
		w.quick = 0
	case w.up:
		if w.quick++; w.quick == stolenLosses {
			a.log(2, "the broker drops the link again and again; does another agent run with node number "+number(a.cfg.Node)+"? Stop one of them.")
		}
	}
}

func (a *Agent) log(level uint8, text string) {
	a.put(Output{Kind: OutLog, Level: level, Text: text})
}

// housekeep does everything but bus work.
func (a *Agent) housekeep(now time.Duration, out []Output) []Output {
	a.restart.overdue(now)
	if d := &a.wire.doubt; d.until <= now {
		*d = doubt{until: Never}
		a.report(now)
	}
	if len(a.outs) > 0 {
		out = append(out, a.outs...)
		clear(a.outs)
		a.outs = a.outs[:0]
	}
	if a.adopted {
		out = a.record(out)
		out = a.optics.round(now, out)
	}
	w := &a.wire
	if !w.up {
		w.acks = w.acks[:0] // whoever asked asks again
		return a.restart.gone(out)
	}
	if w.again <= now {
		w.again, w.birth = Never, true
		a.report(now)
	}
	a.wire.acks = slices.DeleteFunc(a.wire.acks, func(h heldAck) bool { // what waits for the disk stays
		free := a.persist.has(h.after)
		if free {
			out = a.send(out, a.topics.Ack(a.cfg.Node), proto.TopicAck, &h.ack)
		}
		return free
	})
	if !a.adopted {
		return out
	}
	if w.birth {
		w.birth = false
		out = a.send(out, a.topics.Presence(a.cfg.Node), proto.TopicPresence, a.presence())
	}
	if w.reportAt <= now && a.optics.waitsForDisk() {
		// What is told must be what a next life would say too.
		w.reportAt, w.reportHeld = Never, true
	}
	if w.reportAt <= now {
		w.reportAt, w.sentAt, w.sentOnce = Never, now, true
		out = a.send(out, a.topics.Reported(a.cfg.Node), proto.TopicReported, a.reported(now))
		w.told = w.seq
	}
	return a.restart.gone(a.sendEvents(now, out))
}

// send encodes a message; one that breaks its own rules is a fault of ours
// and said so instead of sent.
func (a *Agent) send(out []Output, topic string, kind proto.TopicKind, msg any) []Output {
	payload, err := proto.Encode(msg)
	if err != nil {
		return append(out, Output{Kind: OutLog, Level: 2, Text: "cannot encode " + kind.String() + ": " + err.Error()})
	}
	return append(out, Output{Kind: OutSend, Packet: proto.Packet{Kind: proto.Publish, Topic: topic,
		Payload: payload, QoS: kind.QoS(), Retain: kind.Retain()}})
}

// sendEvents sends what the window allows, and all of it again when nobody
// acknowledged in time.
func (a *Agent) sendEvents(now time.Duration, out []Output) []Output {
	o := &a.outbox
	if o.resendAt <= now {
		o.rewind()
		o.backoff = min(2*o.backoff, resendLast)
		o.resendAt = now + o.backoff
	}
	for e := o.next(); e != nil; e = o.next() {
		out = a.send(out, a.topics.Event(a.cfg.Node), proto.TopicEvent, e)
		o.sent = e.Seq
		if o.resendAt == Never {
			o.resendAt = now + o.backoff
		}
	}
	if o.acked == o.last {
		o.resendAt = Never
	}
	return out
}

// Will is the death note that the agent's link leaves with the broker.
func (c *Config) Will() (proto.Packet, error) { return c.DeathNote("") }

// DeathNote is what an agent leaves that ends by itself: why says for what.
func (c *Config) DeathNote(why string) (proto.Packet, error) {
	payload, err := proto.Encode(&proto.Presence{Version: proto.Version, Node: c.Node, Session: c.Session, Why: proto.Clip(why)})
	return proto.Packet{Kind: proto.Publish, Topic: proto.Topics{Fabric: c.Fabric}.Presence(c.Node), Payload: payload,
		QoS: proto.TopicPresence.QoS(), Retain: true}, err
}
