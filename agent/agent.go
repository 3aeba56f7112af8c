package agent

import (
	"fmt"
	"hash/fnv"
	"time"

	"ringlight/hal"
	"ringlight/node"
	"ringlight/ocs"
	"ringlight/proto"
)

// adoptPatience is how long an agent waits at start for all of its bundles to
// be read back. chosen: a hundred times what a healthy board needs; a bundle
// behind a dead bus must not keep the others out of service.
const adoptPatience = 2 * time.Second

// maxEarly bounds what waits for the adoption. chosen: what a broker keeps for
// one node, many times over; more is asked for again.
const maxEarly = 64

// maxRounds bounds how often one Poll goes round the bundles: a switch that
// answers at once asks for another turn, and no switch asks for ten.
const maxRounds = 10

// Agent is the hands of one node.
type Agent struct {
	cfg     Config
	topics  proto.Topics
	machine *node.Machine
	bundles []bundle
	lines   []lineUse // by hal.LineID

	started  bool
	adopted  bool
	adoptBy  time.Duration
	early    []Input // packets and asks from before the adoption
	journal  Journal
	actions  []node.Action
	ops      []ocs.BusOp
	opticals []ocs.Event
	outs     []Output // everything else that waits for the next Poll

	persist persistence
	outbox  outbox
	wire    wire
	health  health
}

// lineUse says what an input line of the board means.
type lineUse struct {
	used   bool
	bundle uint8
	path   proto.Path
}

// New makes an agent that has touched nothing yet. journal is what its last
// life left. The levels of the board's lines must be delivered as edges
// before the first Poll.
func New(cfg Config, journal Journal) *Agent {
	if cfg.HealthPeriod == 0 {
		cfg.HealthPeriod = DefaultHealthPeriod
	}
	a := &Agent{cfg: cfg, topics: proto.Topics{Fabric: cfg.Fabric}, journal: journal, outbox: newOutbox(&journal), adoptBy: Never}
	a.machine = node.New(node.Config{ID: cfg.Node, Bundles: len(cfg.Board.Bundles)})
	if journal.State != nil {
		a.machine.Restore(*journal.State)
	}
	a.wire.refused = journal.Refused
	a.wire.reportAt, a.wire.again = Never, Never
	a.lines = make([]lineUse, len(cfg.Board.Lines))
	latch := ocs.NewLatch(cfg.Board)
	a.bundles = make([]bundle, len(cfg.Board.Bundles))
	for i := range a.bundles {
		b := &a.bundles[i]
		var cal *ocs.Calibration
		if i < len(cfg.Calibrations) {
			cal = cfg.Calibrations[i]
		}
		b.optics = ocs.New(ocs.Config{Board: cfg.Board, Bundle: proto.BundleID(i), Latch: latch,
			Calibration: cal, Seed: cfg.Seed + uint64(i)})
		b.next, b.retry = Never, Never
		for l, line := range cfg.Board.Bundles[i].LOS {
			a.lines[line] = lineUse{used: true, bundle: uint8(i), path: proto.Loopback + proto.Path(l)}
		}
	}
	a.health.next = Never
	return a
}

// phase spreads what nodes do periodically: a fixed part of period.
func phase(n proto.NodeID, period time.Duration) time.Duration {
	if period <= 0 {
		return 0
	}
	h := fnv.New64a()
	h.Write([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
	return time.Duration(h.Sum64() % uint64(period))
}

// Deliver tells the agent what happened; poll it at the same now.
func (a *Agent) Deliver(now time.Duration, in Input) {
	if !a.adopted && (in.Kind == InPacket && in.Packet.Kind == proto.Publish || in.Kind == InAsk) {
		if len(a.early) < maxEarly {
			a.early = append(a.early, in)
		}
		return
	}
	switch in.Kind {
	case InHardware:
		a.hardware(now, in.Hardware)
	case InPacket:
		a.packet(now, in)
	case InPersisted:
		a.persisted(in.ID)
	case InAsk:
		a.ask(now, in.Ask)
	case InSendFailed:
		a.wire.lost(now)
	default:
		panic(fmt.Sprintf("agent: input of kind %d", in.Kind))
	}
}

func (a *Agent) hardware(now time.Duration, ev hal.Event) {
	if done := ev.Completion; done != nil {
		// The top bits of the token are ours: which bundle asked.
		i := int(done.Op.Token>>tokenShift) - 1
		if i < 0 || i >= len(a.bundles) {
			panic(fmt.Sprintf("agent: completion of an op with token %#x, which no bundle submitted", done.Op.Token))
		}
		a.bundles[i].done = append(a.bundles[i].done, done)
	}
	if e := ev.Edge; e != nil && int(e.Line) < len(a.lines) && a.lines[e.Line].used {
		a.edge(now, e, a.lines[e.Line])
	}
}

// Poll appends what is to be done at now and says when to poll again if
// nothing happens before.
func (a *Agent) Poll(now time.Duration, out []Output) ([]Output, time.Duration) {
	if !a.started {
		a.start(now)
	}
	before := len(out)
	out = a.drive(now, out)
	if len(out) > before {
		return out, now // bus work first; the rest can wait for the next call
	}
	out = a.housekeep(now, out)
	return out, a.next(now)
}

// drive gives every bundle and the machine their turns until nothing more is
// due, and appends the bus work.
func (a *Agent) drive(now time.Duration, out []Output) []Output {
	for range maxRounds {
		busy := false
		for i := range a.bundles {
			b := &a.bundles[i]
			if b.retry <= now {
				b.retry, b.due = Never, true
				b.optics.Start(now)
			}
			if b.due || len(b.done) > 0 || b.next <= now {
				busy = true
				out = a.turn(now, i, out)
			}
			if b.failure != nil {
				busy = true
				a.refusedSelect(now, i)
			}
		}
		if !a.adopted {
			a.tryAdopt(now)
		} else if a.machine.Next() <= now {
			busy = true
			a.step(now, node.Event{Kind: node.Tick})
		}
		a.overdue(now)
		if !busy {
			break
		}
	}
	return out
}

// turn polls the optics of one bundle and hands on what they say.
func (a *Agent) turn(now time.Duration, i int, out []Output) []Output {
	b := &a.bundles[i]
	b.due = false
	a.ops, b.next = b.optics.Poll(now, b.done, a.ops[:0])
	b.done = b.done[:0]
	for _, op := range a.ops {
		op.Op.Token = op.Op.Token&tokenMask | uint64(i+1)<<tokenShift
		out = append(out, Output{Kind: OutSubmit, Bus: op.Bus, Op: op.Op})
	}
	a.opticals = b.optics.TakeEvents(a.opticals[:0])
	for k := range a.opticals {
		a.optical(now, i, &a.opticals[k])
	}
	return out
}

// step tells the machine what happened and does what it asks.
func (a *Agent) step(now time.Duration, ev node.Event) {
	ev.At = now
	a.actions = a.machine.Step(ev, a.actions[:0])
	for i := range a.actions {
		a.act(now, &a.actions[i])
	}
}

func (a *Agent) act(now time.Duration, act *node.Action) {
	switch act.Kind {
	case node.Select:
		a.choose(now, act.Bundle, act.Path)
	case node.Note:
		a.note(now, act.Note, act.Stamps)
	case node.Answer:
		a.answer(act.Ack)
	case node.Save:
		a.persist.saveState()
	case node.Watch:
		a.subscribe(a.topics.Decision(act.Ring), proto.Subscribe)
	case node.Unwatch:
		a.subscribe(a.topics.Decision(act.Ring), proto.Unsubscribe)
	case node.Remedy:
		a.remedy(now, act)
	default:
		panic("agent: machine asks for " + act.Kind.String())
	}
	a.report(now)
}

// next is when the agent has something to do of its own.
func (a *Agent) next(now time.Duration) time.Duration {
	at := min(a.machine.Next(), a.wire.reportAt, a.wire.again, a.health.next, a.adoptBy, a.askDue())
	if a.wire.up {
		at = min(at, a.outbox.resendAt)
	}
	for i := range a.bundles {
		at = min(at, a.bundles[i].next, a.bundles[i].retry)
		if a.bundles[i].due {
			return now
		}
	}
	return max(at, now)
}

// Machine lets checkers and the host read the node; they must not step it.
func (a *Agent) Machine() *node.Machine { return a.machine }
