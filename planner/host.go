package planner

import (
	"time"

	"ringlight/proto"
)

// Ports are what a Host needs of the world: the clock, the link, the log. The
// the store belongs to the caller, which is given transactions.
type Ports interface {
	// Now is the time since the planner's start, and the wall clock for people.
	Now() (at time.Duration, wallMillis uint64)
	Send(proto.Packet)
	Log(*Line)
}

// Host is a planner's process without its world: it steps the planner, carries
// its actions out and holds to the order that makes a restart safe. What the
// planner says after it asked for something to be stored leaves when that is
// on disk; what is heard while the disk works waits.
//
//	h.Deliver(packet) // or h.Tick()
//	h.Step()          // as often as may share a transaction
//	if records, due := h.Transaction(); due {
//		... store them ...
//		h.Stored()
//	}
//
// Virtual time lets the disk take its time between Transaction and Stored. A
// Host has no goroutine, clock, file or log.
type Host struct {
	planner *Planner
	ports   Ports
	heard   []Event // waits for its turn
	actions []Action
	records []Record       // to be stored, in no transaction yet
	asked   []uint64       // the Persist actions that they are of
	held    []proto.Packet // said after them
	storing []uint64       // the actions of the transaction under way; nil: none
	reason  string
	exited  bool

	// Late is by how much the caller comes too late to what it has to do.
	Late time.Duration
	// Batches of the store that this process holds; 0: it does not count them.
	Batches uint64
}

// NewHost starts a planner.
func NewHost(cfg Config, ports Ports) *Host { return &Host{planner: New(cfg), ports: ports} }

// Planner lets others read it; they must not step it.
func (h *Host) Planner() *Planner { return h.planner }

// Deliver takes what came over the link: a message, or that the link is up or
// down. Step hands it on.
func (h *Host) Deliver(p proto.Packet) {
	switch p.Kind {
	case proto.Publish, proto.Shed:
		h.heard = append(h.heard, Event{Kind: Packet, Packet: p})
	case proto.LinkUp:
		h.heard = append(h.heard, Event{Kind: LinkUp, Packet: p})
	case proto.LinkDown:
		h.heard = append(h.heard, Event{Kind: LinkDown, Packet: p})
	}
}

// Step hands the planner the first that was delivered, and says what it was.
// Nothing is handed in while a transaction is under way.
func (h *Host) Step() (p proto.Packet, more bool) {
	if len(h.heard) == 0 || h.storing != nil || h.exited {
		return proto.Packet{}, false
	}
	ev := h.heard[0]
	h.heard[0] = Event{}
	if h.heard = h.heard[1:]; len(h.heard) == 0 {
		h.heard = nil
	}
	h.step(ev)
	return ev.Packet, true
}

// Ask takes a question of one who looks on in this process. Step hands it on.
func (h *Host) Ask(p proto.Packet) { h.heard = append(h.heard, Event{Kind: Question, Packet: p}) }

// Lead tells the planner that the store's election has chosen it.
func (h *Host) Lead() { h.step(Event{Kind: Lead}) }

// Warn has alarms stand of what the planner does not see, in the place of those that
// were given before.
func (h *Host) Warn(list []proto.AlarmStatus) { h.planner.Alarms.outside = list }

// Revoked tells of nodes whose keys count no more.
func (h *Host) Revoked(nodes []proto.NodeID) { h.step(Event{Kind: Revoked, Nodes: nodes}) }

// Tick tells the planner that Next has come.
func (h *Host) Tick() { h.step(Event{Kind: Tick}) }

// Next is when the planner wants a Tick, on the clock of Now; Never while a
// transaction is under way.
func (h *Host) Next() time.Duration {
	if h.storing != nil || h.exited {
		return Never
	}
	return h.planner.Next()
}

// Transaction begins to store what the planner asked for, if anything: all or
// nothing, in order. Stored ends it.
func (h *Host) Transaction() (records []Record, due bool) {
	if h.storing != nil || len(h.asked) == 0 {
		return nil, false
	}
	records = h.records
	h.storing, h.records, h.asked = h.asked, nil, nil
	return records, true
}

// Stored says that the transaction is on disk: what waited for it is said, and
// the planner told.
func (h *Host) Stored() {
	done, held := h.storing, h.held
	h.storing, h.held = nil, nil
	for _, p := range held {
		h.ports.Send(p)
	}
	for _, id := range done {
		h.step(Event{Kind: Persisted, Persist: id})
	}
}

// Exited says that the planner gave way, and why. Nothing more is done.
func (h *Host) Exited() (reason string, exited bool) { return h.reason, h.exited }

func (h *Host) step(ev Event) {
	if h.exited {
		return
	}
	ev.At, ev.WallMillis = h.ports.Now()
	ev.Late, ev.Stored = h.Late, h.Batches
	h.actions = h.planner.Step(ev, h.actions[:0])
	for i := range h.actions {
		h.act(&h.actions[i])
	}
	clear(h.actions)
}

func (h *Host) act(a *Action) {
	switch a.Kind {
	case Send:
		if len(h.asked) > 0 || h.storing != nil {
			h.held = append(h.held, a.Packet)
		} else {
			h.ports.Send(a.Packet)
		}
	case Persist:
		h.records = append(h.records, a.Records...)
		h.asked = append(h.asked, a.Persist)
	case Exit:
		h.reason, h.exited = a.Reason, true
	case Log:
		h.ports.Log(&a.Line)
	}
}
