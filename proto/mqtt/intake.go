package mqtt

import (
	"sync"
	"sync/atomic"
	"time"

	"ringlight/proto"
	"ringlight/proto/limit"
	"ringlight/proto/seal"
)

// intake keeps a flood on one topic from whoever reads the link: what comes
// beyond the topic's share is counted and goes no further, before anything is
// decoded. A sender is not known to a receiver, its topic is; so a flood costs
// those who share its topic, and nobody else. What no sender of ours would say has
// a share of its own, and a small one: it costs not even them, and is answered
// seldom.
type intake struct {
	mu       sync.Mutex // an old session's receiver may overlap the new one's
	sources  limit.Sources
	requests limit.Bucket // of all operators: their names cost nothing, their answers do
	wrong    limit.Bucket // of all that is no message of its topic
	untold   uint64       // not delivered, and no Shed packet says so yet
	total    atomic.Uint64
}

// arrived takes what the broker delivered. What is cheap comes before seals.
func (l *Link) arrived(p proto.Packet) {
	if seal.IsSealed(p.Payload) {
		if s, rest, err := seal.Open(p.Payload); err == nil && len(rest) == 0 {
			p.Payload, p.Sealed = s.Payload, p.Payload
		}
	}
	if l.cfg.Intake.Burst > 0 && !l.intake.admit(&p) {
		l.shed()
		return
	}
	passes := proto.Passes
	if l.cfg.Guard != nil {
		passes = l.cfg.Guard.Open(&p)
	}
	if passes == proto.Stopped || passes == proto.Passes && !l.in.put(p) {
		l.shed()
	}
}

func (in *intake) admit(p *proto.Packet) bool {
	if len(p.Payload) > proto.MaxPayload {
		return false
	}
	topic, err := proto.ParseTopic(p.Topic)
	now, cost := time.Now(), 1+len(p.Payload)/intakeBytes
	in.mu.Lock()
	defer in.mu.Unlock()
	if err != nil {
		return in.wrong.Take(now, allWrong, cost)
	}
	// What is beyond the share anyway is not looked at.
	share, asks := in.sources.Of(now, p.Topic), topic.Kind == proto.TopicRequest
	if !share.Has(now, in.sources.Rate, cost) || asks && !in.requests.Has(now, allRequests, cost) {
		return false
	}
	if !topic.Kind.Fits(p.Payload) && (!topic.Kind.Nested() || !seal.IsSealed(p.Payload)) {
		return in.wrong.Take(now, allWrong, cost)
	}
	return share.Take(now, in.sources.Rate, cost) && (!asks || in.requests.Take(now, allRequests, cost))
}

// shed counts a message that is not delivered, and has the reader told soon.
func (l *Link) shed() {
	l.intake.total.Add(1)
	l.intake.mu.Lock()
	defer l.intake.mu.Unlock()
	if l.intake.untold++; l.intake.untold > 1 {
		return
	}
	time.AfterFunc(shedEvery, func() {
		l.intake.mu.Lock()
		n := l.intake.untold
		l.intake.untold = 0
		l.intake.mu.Unlock()
		l.in.put(proto.ShedPacket(n))
	})
}
