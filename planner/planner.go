package planner

import (
	"math"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/ring"
	"ringlight/proto"
)

// Never is the deadline of a machine that waits for nothing.
const Never = time.Duration(math.MaxInt64)

// Config of a Planner; Start makes one from a store.
type Config struct {
	Fabric    *fabric.Fabric
	Store     State      // what the store holds, Start's records included or not
	Term      proto.Term // of this start, already in the store
	PlannerID uint64     // kept in the store
}

// EventKind says what an Event tells the planner.
type EventKind uint8

const (
	Tick      EventKind = iota + 1 // Next has come
	Packet                         // Packet.Kind Publish: a message came
	LinkUp                         // connected, every subscription granted
	LinkDown                       // the broker is out of reach
	Persisted                      // the records of action Persist are on disk
)

// Event is one thing the planner is told. At is monotonic and alone decides;
// WallMillis is for people who read logs.
type Event struct {
	Kind       EventKind
	At         time.Duration
	WallMillis uint64
	Packet     proto.Packet // of a Packet event
	Persist    uint64       // of a Persisted event: the action's number
}

// ActionKind says what an Action asks for.
type ActionKind uint8

const (
	Send    ActionKind = iota + 1 // Packet, Publish
	Persist                       // Records, in one transaction, in order; answer with Persisted
	Log                           // Line, for the shell's log
	Exit                          // Reason; stop with exit code 1
)

// Level of a log line.
type Level uint8

const (
	Info  Level = iota // a state changed
	Warn               // degraded
	Error              // needs a person
)

// Line is one entry for the shell's log: a constant message and what it is
// about. Fields that do not apply are zero, Node is -1.
type Line struct {
	Level      Level
	Message    string
	Rule       string // which rule decided
	Node       int64
	Ring       proto.RingID
	Generation proto.Generation
	Text       string
}

// Action is one thing the planner asks of its shell, in order.
type Action struct {
	Kind    ActionKind
	Packet  proto.Packet
	Persist uint64 // number of a Persist action
	Records []Record
	Line    Line
	Reason  string
}

// Subscriptions are the topics that a planner's link subscribes, at QoS 1.
func Subscriptions(fabricName string) []string {
	t := proto.Topics{Fabric: fabricName}
	return []string{
		t.EveryNode(proto.TopicAck), t.EveryNode(proto.TopicReported), t.EveryNode(proto.TopicPresence),
		t.EveryNode(proto.TopicEvent), t.Planner(), t.EveryRequest(),
	}
}

// Planner is the machine. New makes one.
type Planner struct {
	cfg    Config
	fab    *fabric.Fabric
	order  ring.Order
	topics proto.Topics
	now    time.Duration
	wall   uint64
	out    []Action

	state      state
	stateSince time.Duration
	linkUp     bool
	linkSince  time.Duration
	beatAt     time.Duration
	beat       uint64 // number of the last sign of life

	term     proto.Term
	seenTerm proto.Term // highest heard of
	gen      proto.Generation
	nextRing proto.RingID
	fresh    bool // the store held no generation: what runs is adopted

	nodes        []nodeView
	rings        []*ringView // by id
	cuts         map[[2]proto.NodeID]*cut
	cutAt        time.Duration  // when the next of them gets another chance
	hails        []proto.NodeID // asked whether they live
	hailAt       time.Duration  // when the next of them is due
	idleDecision decided        // the last one on ring 0's topic

	taken      []bool         // by node: it is in a ring
	stirred    []proto.RingID // to be looked at
	strays     []proto.NodeID // perhaps to be told where they stand
	refusing   []proto.NodeID // that refused a plan
	wantBetter bool           // something has changed since everything was looked at

	txn    txn
	dirty  bool // the placement may have to change
	planAt time.Duration
	// betterAt is when rings may be placed better that are not hurt.
	betterAt time.Duration
	lookAt   time.Duration // when that is looked into
	sweepAt  time.Duration
	rollAt   time.Duration // when missed nodes are taken for offline
	heardAt  time.Duration // when a node was heard for the first time, the last time
	heard    int

	core *circuits // nil: a fabric without switches between pods

	drains       []draining
	stage        []proto.RingID // told again by the last generation that told any
	stageAt      time.Duration
	stageStopped bool

	log      eventLog
	asks     []ask
	corr     uint64 // commands given out
	persists uint64 // Persist actions given out
	raise    uint64 // number of the Persist that raises the term
	counts   counters
}

// counters of what is not otherwise visible.
type counters struct {
	refused uint64 // messages that were not acceptable
	unknown uint64 // keys skipped
}

// decided is a decision as it last stood on a topic.
type decided struct {
	term proto.Term
	gen  proto.Generation
	plan proto.Digest
}

// New makes a planner that waits for its link. It panics when the store's
// records are not what a planner wrote: Start has checked them.
func New(cfg Config) *Planner {
	p := &Planner{
		cfg: cfg, fab: cfg.Fabric, order: ring.OrderOf(cfg.Fabric), topics: proto.Topics{Fabric: cfg.Fabric.Name},
		term: cfg.Term, seenTerm: cfg.Term, nextRing: 1, beatAt: Never, planAt: Never, sweepAt: Never, rollAt: Never,
		nodes: make([]nodeView, cfg.Fabric.Nodes), cuts: map[[2]proto.NodeID]*cut{}, log: newEventLog(),
		cutAt: Never, hailAt: Never, lookAt: Never,
	}
	p.taken = make([]bool, len(p.nodes))
	for i := range p.nodes {
		p.nodes[i] = nodeView{id: proto.NodeID(i), resendAt: Never}
	}
	p.core = newCircuits(cfg.Fabric.Core)
	if err := p.restore(cfg.Store); err != nil {
		panic("planner: " + err.Error())
	}
	return p
}

// Step takes one event and appends what is to be done. Timers that are due
// run after every kind of event.
func (p *Planner) Step(ev Event, out []Action) []Action {
	if p.state == exited {
		return out
	}
	p.out, p.now, p.wall = out, ev.At, ev.WallMillis
	switch ev.Kind {
	case Packet:
		p.receive(ev.Packet)
	case LinkUp:
		p.onLinkUp()
	case LinkDown:
		p.linkUp, p.beatAt = false, Never
	case Persisted:
		p.onPersisted(ev.Persist)
	}
	p.runTimers()
	out, p.out = p.out, nil
	return out
}

func (p *Planner) onLinkUp() {
	p.linkUp, p.linkSince, p.heardAt = true, p.now, p.now
	p.beatAt = p.now
	p.roll()
	p.forgetHails()
	if p.state == preparing {
		// The time without a broker does not count, and nothing sent in it
		// arrived.
		p.txn.deadline = p.now + prepareTimeout
		p.markJoins(&p.txn)
		p.resendPrepares(true)
	}
	for i := range p.nodes {
		if n := &p.nodes[i]; n.pending() {
			n.resendAt, n.backoff = p.now, resendFirst
			p.sweepAt = p.now
		}
	}
	p.circuitsLinkUp()
	p.stirAll()
	p.replan(0)
}

func (p *Planner) onPersisted(id uint64) {
	switch {
	case p.circuitsPersisted(id):
	case p.state == deciding && id == p.txn.persist:
		p.commit()
	case p.state == raising && id == p.raise:
		p.raised()
	default:
		p.flushed(id)
	}
}

func (p *Planner) runTimers() {
	if p.linkUp && p.beatAt <= p.now && p.state != fenced && p.state != raising && p.state != exited {
		p.sendBeat()
	}
	switch p.state {
	case exited:
		return
	case gathering:
		p.gather()
	case preparing:
		p.checkPrepare()
	case fenced:
		p.checkFence()
	}
	if p.linkUp && p.sweepAt <= p.now {
		p.sweep()
	}
	p.callRoll()
	p.checkHails()
	p.checkCuts()
	p.checkGaps()
	p.flush()
	p.checkAsks()
	p.checkDrains()
	if p.lookAt <= p.now {
		p.lookAt = Never
		p.replan(0)
	}
	if p.state == idle && p.linkUp && p.dirty && p.planAt <= p.now {
		p.plan()
	}
	p.runCircuits()
}

// Next is the monotonic time at which the planner wants a Tick.
func (p *Planner) Next() time.Duration {
	if p.state == exited {
		return Never
	}
	next := p.log.next()
	for i := range p.asks {
		next = min(next, p.asks[i].deadline)
	}
	next = min(next, p.nextDrain())
	if !p.linkUp {
		return next
	}
	next = min(next, p.sweepAt, p.rollAt, p.hailAt, p.cutAt, p.lookAt, p.nextCircuits())
	switch p.state {
	case fenced:
		return min(next, p.fenceEnd())
	case raising:
		return next
	case gathering:
		if p.heard > 0 || !p.fresh {
			next = min(next, p.heardAt+gatherQuiet)
		}
	case preparing:
		next = min(next, p.txn.deadline, p.txn.resendAt, p.txn.joinAt)
	case idle:
		if p.dirty {
			next = min(next, p.planAt)
		}
	}
	return min(next, p.beatAt)
}

// replan asks for a look at the placement after a delay at most.
func (p *Planner) replan(after time.Duration) {
	if !p.dirty || p.now+after < p.planAt {
		p.planAt = p.now + after
	}
	p.dirty = true
}

func (p *Planner) persist(records []Record) uint64 {
	p.persists++
	p.out = append(p.out, Action{Kind: Persist, Persist: p.persists, Records: records})
	return p.persists
}

// send publishes a message. What we encode is always valid; a message that is
// not is a broken invariant of ours.
func (p *Planner) send(topic string, kind proto.TopicKind, msg any) {
	payload, err := proto.Encode(msg)
	if err != nil {
		panic("planner: own message is refused: " + err.Error())
	}
	p.sendRaw(topic, kind, payload)
}

func (p *Planner) sendRaw(topic string, kind proto.TopicKind, payload []byte) {
	p.out = append(p.out, Action{Kind: Send, Packet: proto.Packet{
		Kind: proto.Publish, Topic: topic, Payload: payload, QoS: kind.QoS(), Retain: kind.Retain(),
	}})
}
