package agent

import (
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"ringlight/hal"
	"ringlight/node"
	"ringlight/proto"
)

// lateStart is after what time an agent says that it waits for its board. chosen: a
// hundred times what a healthy one needs.
const lateStart = 2 * time.Second

// maxEarly bounds what waits for the adoption. chosen: what a broker keeps for
// one node, many times over; more is asked for again.
const maxEarly = 64

// machine decides: a node, or a circuit switch. Only the agent steps it.
type machine interface {
	Step(node.Event, []node.Action) []node.Action
	Next() time.Duration
	View
}

// optics are what an agent drives: the bundles of a node, or the circuits of a switch.
// Everything between them and the planner is the agent's, and the same for both.
type optics interface {
	open(now time.Duration) // begins to read the hardware
	// heard takes a completion or an edge, and says what the machine is to hear of it.
	heard(now time.Duration, ev hal.Event) (node.Event, bool)
	do(now time.Duration, act *node.Action)         // what the machine asks and the agent cannot do
	work(now time.Duration, out []Output) []Output  // bus work
	round(now time.Duration, out []Output) []Output // looks after them now and then, and tells their health
	due(now time.Duration) time.Duration            // when work or round wants to be called
	unread() string                                 // what of the hardware no answer came from since the start

	addRecord(r *record) bool // what the journal does not have yet
	waitsForDisk() bool       // a report has to wait for it
	addReport(now time.Duration, r *proto.Reported)
	addPresence(p *proto.Presence)
	addStatus(s *Status)
}

// operator takes what people and the planner want of this kind alone.
type operator interface {
	execute(now time.Duration, c *proto.Command, ack proto.Ack) (later bool, _ error)
	question(now time.Duration, q Ask)
	release(now time.Duration) // a plan has come: what is held by hand is over
	occupied() string          // what a start anew would cut off; "": nothing
}

// scripts drive a switch by hand; a node has none.
type scripts interface {
	line(in Input)
}

// Agent is what a node or switch does beside deciding.
type Agent struct {
	cfg      Config
	topics   proto.Topics
	machine  machine
	optics   optics
	operator operator
	scripts  scripts // nil: none

	started bool
	adopted bool
	adoptBy time.Duration // by when the hardware must have been read
	waitsAt time.Duration // when it is told that it was not yet
	early   []Input       // packets and asks from before the adoption
	journal Journal
	actions []node.Action
	acting  bool         // the machine's word is being carried out
	late    []node.Event // that came up meanwhile
	outs    []Output     // everything else that waits for the next Poll

	due    time.Duration    // when the last Poll wanted the next one
	behind [3]time.Duration // by how much Polls came too late since the last telemetry: the three worst, the worst last
	lag    time.Duration    // the least of the three of the telemetry before

	persist persistence
	outbox  outbox
	wire    wire
	restart restarting
	pm      records
}

// newAgent makes an agent that has touched nothing yet: of a switch where the board
// has mirrors, else of a node. journal is what its last life left. The levels
// of the board's lines must be delivered as edges before the first Poll.
func newAgent(cfg Config, journal Journal) *Agent {
	if cfg.HealthPeriod == 0 {
		cfg.HealthPeriod = DefaultHealthPeriod
	}
	a := &Agent{cfg: cfg, adoptBy: Never, waitsAt: Never, topics: proto.Topics{Fabric: cfg.Fabric}, journal: journal, outbox: newOutbox(&cfg, &journal)}
	a.wire.refused = journal.Refused
	a.wire.reportAt, a.wire.again, a.wire.doubt.until = Never, Never, Never
	a.restart.agent = a
	var bad int
	if a.pm, bad = newRecords(&cfg, journal.Bins); bad > 0 {
		a.log(1, "of the records, "+itoa(bad)+" bins are damaged, and left out")
	}
	a.journal.Bins = nil
	if cfg.isSwitch() {
		newCrossOptics(a)
	} else {
		newNodeOptics(a)
	}
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
	if !a.adopted && (in.Kind == InPacket && in.Packet.Kind == proto.Publish || in.Kind == InAsk && in.Ask.Verb != AskStatus) {
		if len(a.early) < maxEarly {
			a.early = append(a.early, in)
		}
		return
	}
	var ev node.Event
	var told bool // the machine hears it
	switch in.Kind {
	case InHardware:
		ev, told = a.optics.heard(now, in.Hardware)
	case InPacket:
		ev, told = a.packet(now, in)
	case InPersisted:
		a.persisted(now, in.ID)
	case InAsk:
		a.ask(now, in.Ask)
	case InSendFailed:
		a.wire.lost(now)
	case InAlarm:
		a.alarm(now, in.Alarm)
	case InFirmware:
		a.operator.question(now, Ask{Verb: AskFirmware, Image: in.Line, Text: in.Text})
	case InRestart:
		a.restart.looked(now, in.Text)
	case InJournal:
		a.unwritten(now, in.Text)
	case InLine, InRequest:
		if a.scripts != nil {
			a.scripts.line(in)
		}
	default:
		panic(fmt.Sprintf("agent: input of kind %d", in.Kind))
	}
	if told {
		a.step(now, ev)
	}
}

// ask takes a question of someone on this host.
func (a *Agent) ask(now time.Duration, q Ask) {
	if q.Verb == AskStatus {
		a.reply(&Answer{ID: q.ID, Status: a.status(now)})
		return
	}
	if q.Verb == AskBins {
		ans := &Answer{ID: q.ID}
		var err error
		if ans.Bins, ans.Next, err = a.pm.asked(now, q.Bins, q.Value); err != nil {
			ans.Err = proto.AsError(err)
		}
		a.reply(ans)
		return
	}
	if q.Verb == AskRestart {
		a.restart.asked(now, q)
		return
	}
	a.operator.question(now, q)
}

func (a *Agent) reply(ans *Answer) { a.put(Output{Kind: OutAnswer, Answer: ans}) }

// Poll appends what is to be done at now and says when to poll again if
// nothing happens before.
func (a *Agent) Poll(now time.Duration, out []Output) ([]Output, time.Duration) {
	if !a.started {
		a.start(now)
	} else if by := now - a.due; by > a.behind[0] {
		a.behind[0] = by
		slices.Sort(a.behind[:])
	}
	a.due = now
	before := len(out)
	if a.waitsAt <= now {
		a.waitsAt = Never
		a.log(1, a.waits())
	}
	out = a.optics.work(now, out)
	if len(out) > before {
		return out, now // bus work first; the rest can wait for the next call
	}
	out = a.housekeep(now, out)
	a.due = a.next(now)
	return out, a.due
}

// step tells the machine what happened and does what it asks. What comes up
// while that is being done - optics that refuse a remedy - the machine hears
// afterwards: its actions are carried out in the order in which it decided.
func (a *Agent) step(now time.Duration, ev node.Event) {
	ev.At = now
	if a.acting {
		a.late = append(a.late, ev)
		return
	}
	a.acting = true
	for {
		a.actions = a.machine.Step(ev, a.actions[:0])
		for i := range a.actions {
			switch act := &a.actions[i]; act.Kind {
			case node.Answer:
				a.answer(now, act.Ack)
			case node.Save:
				a.persist.saveState()
			case node.Watch:
				a.subscribe(a.topics.Decision(act.Ring), proto.Subscribe)
			case node.Unwatch:
				a.subscribe(a.topics.Decision(act.Ring), proto.Unsubscribe)
			default:
				a.optics.do(now, act)
			}
			a.report(now)
		}
		if len(a.late) == 0 {
			break
		}
		ev = a.late[0]
		a.late = append(a.late[:0], a.late[1:]...)
	}
	a.acting = false
}

// start begins to read the hardware; what the planner says meanwhile waits.
func (a *Agent) start(now time.Duration) {
	a.started = true
	a.subscribe(a.topics.Desired(a.cfg.Node), proto.Subscribe)
	a.subscribe(a.topics.Command(a.cfg.Node), proto.Subscribe)
	a.subscribe(a.topics.Planner(), proto.Subscribe)
	a.adoptBy, a.waitsAt = now+node.BoardPatience, now+lateStart
	a.optics.open(now)
}

// waits says what a start waits for, and for how long at most: unread, the light is
// left as it is, and what is planned stays in force.
func (a *Agent) waits() string {
	return "not in service yet, it waits for its board until " + node.BoardPatience.String() + " after the start: " + a.optics.unread()
}

// adopt takes the hardware as it was found: found tells the machine.
func (a *Agent) adopt(now time.Duration, found node.Event, dark bool) {
	cause := proto.CauseAdopted
	if dark {
		cause = proto.CauseColdStart
	}
	began := proto.Event{Kind: proto.EvStarted, Cause: cause, Text: proto.Clip(a.cfg.Software)}
	if told := a.journal.Told; told != "" {
		began.Severity, began.Text = proto.SeverityWarning, proto.Clip(told+"; "+a.cfg.Software)
	}
	a.note(now, own(now, began))
	a.adopted, a.adoptBy, a.waitsAt = true, Never, Never
	a.persist.saveLight()
	a.persist.saveState()
	a.wire.birth = true
	found.Kind = node.Adopt
	a.step(now, found)
	early := a.early
	a.early = nil
	for _, in := range early {
		a.Deliver(now, in)
	}
}

// next is when the agent has something to do of its own.
func (a *Agent) next(now time.Duration) time.Duration {
	at := min(a.adoptBy, a.waitsAt, a.machine.Next(), a.wire.reportAt, a.wire.again, a.wire.doubt.until, a.optics.due(now), a.restart.due())
	if a.wire.up {
		at = min(at, a.outbox.resendAt)
	}
	return max(at, now)
}
