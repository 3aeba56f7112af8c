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
	rings    []proto.RingStatus
	at       time.Time // when it said so
	quietAt  time.Time // when it last became quiet with nothing pending
}

// watch sees what the planner says of itself, from its goroutine, and when
// which generation reached the nodes, from theirs.
type watch struct {
	mu   sync.Mutex
	last view

	pushed     map[proto.Generation]time.Time // first desired state at a node
	done       map[proto.Generation]time.Time // last commit acknowledged by a node
	staged     map[proto.NodeID]bool          // of the newest generation: prepared
	applied    map[proto.NodeID]bool          // of the newest generation: committed
	generation proto.Generation
}

func newWatch() *watch {
	return &watch{pushed: map[proto.Generation]time.Time{}, done: map[proto.Generation]time.Time{}}
}

// planner is called after each step of the planner.
func (w *watch) planner(o planner.Overview, rings func() []proto.RingStatus) {
	w.mu.Lock()
	defer w.mu.Unlock()
	still := func(o planner.Overview) bool { return o.Quiet && o.Pending == 0 }
	if still(o) && !still(w.last.overview) {
		w.last.quietAt = time.Now()
	}
	w.last.overview, w.last.rings, w.last.at = o, rings(), time.Now()
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
		w.generation = d.Generation
		w.staged, w.applied = map[proto.NodeID]bool{}, map[proto.NodeID]bool{}
		w.pushed[d.Generation] = time.Now()
	}
}

func (w *watch) sent(st *station, p proto.Packet) {
	t, err := proto.ParseTopic(p.Topic)
	if err != nil || t.Kind != proto.TopicAck {
		return
	}
	var a proto.Ack
	if _, err := proto.Decode(p.Payload, &a); err != nil || a.Code != proto.OK || a.Generation != w.generation {
		return
	}
	switch a.Phase {
	case proto.PhasePrepare:
		w.staged[st.id] = true
	case proto.PhaseCommit:
		w.applied[st.id] = true
		w.done[a.Generation] = time.Now()
	}
}

// commitTime is how long the newest generation took from its first desired
// state at a node to the last node's word that it is in force, with how many
// nodes it was for.
func (w *watch) commitTime() (took time.Duration, applied, staged int) {
	g := w.generation
	if w.done[g].IsZero() {
		return 0, len(w.applied), len(w.staged)
	}
	return w.done[g].Sub(w.pushed[g]), len(w.applied), len(w.staged)
}
