package mqtt

import (
	"sync"
	"sync/atomic"
	"time"

	"ringlight/proto"
	"ringlight/proto/limit"
)

// intake keeps a flood on one topic from whoever reads the link: what comes
// beyond the topic's share is counted and goes no further, before anything is
// decoded. A sender is not known to a receiver, its topic is; so a flood costs
// those who share its topic, and nobody else.
type intake struct {
	mu       sync.Mutex // an old session's receiver may overlap the new one's
	sources  limit.Sources
	requests limit.Bucket // of all operators: their names cost nothing, their answers do
	untold   uint64       // not delivered, and no Shed packet says so yet
	total    atomic.Uint64
}

// arrived takes what the broker delivered.
func (l *Link) arrived(p proto.Packet) {
	if l.cfg.Intake.Burst > 0 && !l.intake.admit(&p) || !l.in.put(p) {
		l.shed()
	}
}

func (in *intake) admit(p *proto.Packet) bool {
	source := p.Topic
	if len(p.Payload) > proto.MaxPayload {
		return false
	}
	topic, err := proto.ParseTopic(source)
	if err != nil {
		source = "" // all that is wrong counts as one
	}
	now, cost := time.Now(), 1+len(p.Payload)/intakeBytes
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.sources.Take(now, source, cost) && (topic.Kind != proto.TopicRequest || in.requests.Take(now, allRequests, cost))
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
