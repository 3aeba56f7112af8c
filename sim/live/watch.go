package live

import (
	"sync"
	"time"

	"ringlight/planner"
	"ringlight/proto"
)

// view is what the planner last said of itself.
type view struct {
	overview planner.Overview
	rings    []proto.RingStatus // when it was last quiet, with light everywhere
	at       time.Time          // when it said so
	quietAt  time.Time          // when it last became quiet with nothing pending
}

// watch sees what the planner says of itself, from its goroutine, and when
// which generation reached the nodes, from theirs.
type watch struct {
	mu   sync.Mutex
	last view
	news chan struct{} // has one when the planner has said something

	generation   proto.Generation      // the newest that reached a node
	pushed, done time.Time             // its first desired state at a node, its last commit acknowledged by one
	applied      map[proto.NodeID]bool // committed
}

// planner is called after each step of the planner.
func (w *watch) planner(o planner.Overview, rings func() []proto.RingStatus) {
	w.mu.Lock()
	defer w.mu.Unlock()
	still := func(o planner.Overview) bool { return o.Quiet && o.Pending == 0 }
	if still(o) && !still(w.last.overview) {
		w.last.quietAt = time.Now()
	}
	if w.last.overview, w.last.at = o, time.Now(); still(o) && o.LinksConfirmed == o.LinksTotal {
		w.last.rings = rings()
	}
	select {
	case w.news <- struct{}{}:
	default:
	}
}

func (w *watch) view() view {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

func (w *watch) overview() planner.Overview { return w.view().overview }

// received sees what a node is sent, sent what it sends; both from the
// goroutine that steps the nodes.
func (w *watch) received(p proto.Packet) {
	t, err := proto.ParseTopic(p.Topic)
	if err != nil || t.Kind != proto.TopicDesired {
		return
	}
	var d proto.Desired
	if _, err := proto.Decode(p.Payload, &d); err != nil {
		return // the agent will say what is wrong with it
	}
	if d.Generation > w.generation {
		w.generation, w.pushed, w.applied = d.Generation, time.Now(), map[proto.NodeID]bool{}
	}
}

func (w *watch) sent(st *station, p proto.Packet) {
	t, err := proto.ParseTopic(p.Topic)
	if err != nil || t.Kind != proto.TopicAck {
		return
	}
	var a proto.Ack
	if _, err := proto.Decode(p.Payload, &a); err == nil && a.Code == proto.OK && a.Generation == w.generation && a.Phase == proto.PhaseCommit {
		w.applied[st.id], w.done = true, time.Now()
	}
}
