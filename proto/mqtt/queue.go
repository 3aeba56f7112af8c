package mqtt

import (
	"strings"
	"sync"

	"ringlight/proto"
)

// class orders packets in a queue: lower goes first, and is dropped last.
type class uint8

const (
	classLink      class = iota // words of the link itself: never dropped
	classFault                  // events
	classCommand                // all that has to be done or answered
	classTelemetry              // health
	numClasses
)

func classOf(p *proto.Packet) class {
	if p.Kind != proto.Publish {
		return classLink
	}
	switch p.Topic[strings.LastIndexByte(p.Topic, '/')+1:] {
	case "event":
		return classFault
	case "health":
		return classTelemetry
	}
	return classCommand
}

// queue is a bounded hand-over between goroutines that never blocks the one
// that puts.
type queue struct {
	mu       sync.Mutex
	ready    chan struct{} // has a token when there may be something to take
	lists    [numClasses][]proto.Packet
	count    int // without classLink
	bytes    int
	max      int
	maxBytes int
	held     bool // only classLink may be taken
	dropped  [numClasses]uint64
}

func newQueue(max int) *queue {
	return &queue{ready: make(chan struct{}, 1), max: max, maxBytes: min(queueBytes, max*queuedPacket)}
}

func (q *queue) wake() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// put reports whether the packet was taken in; telemetry in the queue makes
// room for it, oldest first.
func (q *queue) put(p proto.Packet) bool {
	c := classOf(&p)
	q.mu.Lock()
	defer q.mu.Unlock()
	if c != classLink {
		for (q.count >= q.max || q.bytes+weight(&p) > q.maxBytes) && len(q.lists[classTelemetry]) > 0 {
			q.remove(classTelemetry)
			q.dropped[classTelemetry]++
		}
		if q.count >= q.max || q.bytes+weight(&p) > q.maxBytes {
			q.dropped[c]++
			return false
		}
		q.count++
		q.bytes += weight(&p)
	}
	q.lists[c] = append(q.lists[c], p)
	q.wake()
	return true
}

func weight(p *proto.Packet) int { return len(p.Topic) + len(p.Payload) + packetBytes }

func (q *queue) remove(c class) proto.Packet {
	p := q.lists[c][0]
	q.lists[c][0] = proto.Packet{}
	if q.lists[c] = q.lists[c][1:]; len(q.lists[c]) == 0 {
		q.lists[c] = nil
	}
	if c != classLink {
		q.count--
		q.bytes -= weight(&p)
	}
	return p
}

// take returns the next packet if there is one.
func (q *queue) take() (proto.Packet, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for c := range q.lists {
		if len(q.lists[c]) > 0 && (!q.held || class(c) == classLink) {
			p := q.remove(class(c))
			q.wake()
			return p, true
		}
	}
	return proto.Packet{}, false
}

// hold keeps publications back until released.
func (q *queue) hold(held bool) {
	q.mu.Lock()
	q.held = held
	q.mu.Unlock()
	q.wake()
}

// flush forgets everything and counts publications as dropped. Changes of
// subscriptions go too: the next session begins with those that are wanted then,
// and an older change would undo one of them.
func (q *queue) flush() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lists[classLink] = nil
	for c := classFault; c < numClasses; c++ {
		q.dropped[c] += uint64(len(q.lists[c]))
		q.lists[c] = nil
	}
	q.count, q.bytes = 0, 0
}

func (q *queue) drops() [numClasses]uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}
