package planner

import (
	"strings"
	"time"

	"ringlight/planner/core"
	"ringlight/planner/fabric"
	"ringlight/planner/hbd"
	"ringlight/planner/job"
	"ringlight/planner/journal"
	"ringlight/planner/member"
	"ringlight/planner/rollout"
	"ringlight/planner/wear"
	"ringlight/proto"
)

// Never is the deadline of a machine that waits for nothing.
const Never = journal.Never

// What a step asks for, and what a store holds.
type (
	Action = journal.Action
	Line   = journal.Line
	Record = journal.Record
	State  = journal.State
)

// Kinds of actions and levels of lines; see package journal.
const (
	Send    = journal.Send
	Persist = journal.Persist
	Log     = journal.Log
	Exit    = journal.Exit

	Info  = journal.Info
	Warn  = journal.Warn
	Error = journal.Error
)

// Config of a Planner; Start makes one from a store.
type Config struct {
	Fabric    *fabric.Fabric
	Store     State      // what the store holds
	Term      proto.Term // the highest that is known of; one above it and all heard of will be ours
	PlannerID uint64     // kept in the store
	Life      uint64     // drawn at each start, so that two that have one store are told apart
	Host      string     // that it runs on, for people
	// First is what the store is given with the first term, if it is not there.
	First []Record
	// Alone: the broker has just begun and is ours, so that nobody else can be
	// in service there. Takeover: whoever is, is replaced.
	Alone, Takeover bool
	// Uncached: the broker keeps nothing, so that on each connection all agents are
	// called to announce themselves. Else what it retained does.
	Uncached bool
	// Features are what its link can do.
	Features proto.Features

	// Election is that of a store which several planners have open, 0: it has none. Of
	// those of one election one alone is in service, so that they do not wait for each
	// other. Follow: this one looks on until Lead. Picture: it never will, and stores
	// nothing. Before is the one that it follows upon in its process: whom that one has
	// heard is known.
	Election        uint64
	Follow, Picture bool
	Before          *Planner
}

// EventKind says what an Event tells the planner.
type EventKind uint8

const (
	Tick      EventKind = iota + 1 // Next has come
	Packet                         // Packet.Kind Publish: a message came; Shed: some did not
	LinkUp                         // connected, every subscription granted
	LinkDown                       // the broker is out of reach
	Persisted                      // the records of action Persist are on disk
	Question                       // Packet is a request of one who looks on in this process
	Lead                           // the store's election has chosen this one
	Revoked                        // keys of Nodes count no more
)

// Event is one thing the planner is told. At is monotonic and alone decides;
// WallMillis is for people who read logs.
type Event struct {
	Kind       EventKind
	At         time.Duration
	WallMillis uint64
	Packet     proto.Packet   // of a Packet event
	Persist    uint64         // of a Persisted event: the action's number
	Nodes      []proto.NodeID // of a Revoked event
	Late       time.Duration  // by how much the process comes too late to what it is to do
	Stored     uint64         // batches of the store that this process holds; 0: it does not count them
}

// Subscriptions are the topics that a planner's link subscribes, at QoS 1.
func Subscriptions(fabricName string) []string {
	t := proto.Topics{Fabric: fabricName}
	return []string{
		t.EveryNode(proto.TopicAck), t.EveryNode(proto.TopicReported), t.EveryNode(proto.TopicPresence),
		t.EveryNode(proto.TopicEvent), t.EveryNode(proto.TopicHealth), t.Planner(), t.EveryRequest(),
	}
}

// Planner is the machine. New makes one.
type Planner struct {
	Fabric   *fabric.Fabric // what is planned for, until it is edited
	Rings    *hbd.Rings
	Core     *core.Circuits // nil: a fabric without switches between pods
	Circuits core.Claims    // of the core, as jobs have them
	Jobs     *job.Table     // that asked for rings or circuits
	Rollout  *rollout.Rollout
	Alarms   alarmBook
	j        *journal.Journal

	state      state
	pulse      pulse
	stood      standstills
	seenTerm   proto.Term    // ours will be above it
	shown      proto.Term    // the highest of another planner's that is shown
	raises     int           // of the term, in this life
	overAt     time.Duration // not raised over a forged plan before
	overWait   time.Duration
	voicesAt   time.Duration // when it is looked at what devices say of other planners
	beyond     string        // why it listened again: what our store knew nothing of
	raise      uint64        // number of the Persist that raises the term
	listenFrom time.Duration

	others     rivals
	first      []Record // to be stored with the next term
	lastLayout uint64   // of the fabric that was planned here last, as the broker keeps it
	new        bool     // the store was empty
	alone      bool     // nobody else can be heard yet
	served     bool     // it has been in service
	takeover   bool
	claimUntil time.Duration
	replaced   string // who was

	asks     asks
	acts     actList
	refusals refusals
	edits    edits
	wear     wear.Book

	election election

	statusAsks statusAsks

	hushAt       time.Duration // when devices that have gone silent are looked for
	waitsAt      time.Duration // when it is looked at again what is waited for
	waited, said string        // the last time, and in the log
	inbox        inbox
}

// New makes a planner that waits for its link. It panics when the store's
// records are not what a planner wrote: Start has checked them.
func New(cfg Config) *Planner {
	p := &Planner{Fabric: cfg.Fabric, j: journal.New(), seenTerm: cfg.Term, voicesAt: Never, first: cfg.First, new: cfg.Term == 0, alone: cfg.Alone, takeover: cfg.Takeover}
	p.j.Topics, p.j.Planner, p.j.Life, p.j.Layout = proto.Topics{Fabric: cfg.Fabric.Name}, cfg.PlannerID, cfg.Life, layoutOf(cfg.Fabric)
	p.j.Term = cfg.Term // it is not ours yet
	p.pulse = pulse{j: p.j, election: &p.election, host: proto.Clip(cfg.Host), features: proto.FeatureRestart | proto.KnownStates() | cfg.Features, uncached: cfg.Uncached, due: Never}
	p.j.Self = strings.TrimSpace("planner " + p.pulse.host)
	p.Rings = hbd.New(cfg.Fabric, p.j, above{p})
	if cfg.Fabric.Core != nil {
		p.Core = core.New(cfg.Fabric.Core, p.j, above{p})
	}
	p.stood.j, p.inbox.j = p.j, p.j
	p.Alarms = alarmBook{root: above{p}, j: p.j, standing: map[string]*alarm{}, acks: map[string]ack{}}
	p.asks.p = p
	p.edits = edits{p: p, qualified: map[string]*proto.Qualification{}, last: map[string]*proto.Qualification{}, strangers: map[proto.NodeID]proto.Session{}}
	p.Rollout = rollout.New(nodesOf{p}, p.j)
	var circuits *core.Claims
	if p.Core != nil {
		p.Circuits = core.ClaimsOf(p.Core)
		circuits = &p.Circuits
	}
	p.Jobs = job.New(func() *fabric.Fabric { return p.Fabric }, hbd.ClaimsOf(p.Rings), circuits, p.j, above{p}.Busy)
	p.election.begin(p, &cfg)
	if err := p.restore(cfg.Store); err != nil {
		panic("planner: " + err.Error())
	}
	return p
}

// tables are the devices: nodes, and switches where there are any.
func (p *Planner) tables() []*member.Table {
	if p.Core == nil {
		return []*member.Table{p.Rings.Table}
	}
	return []*member.Table{p.Rings.Table, p.Core.Table}
}

// find finds a node or a switch, nil when there is none of that number.
func (p *Planner) find(id proto.NodeID) (*member.Table, *member.Device) {
	for _, t := range p.tables() {
		if d := t.Find(id); d != nil {
			return t, d
		}
	}
	return nil, nil
}

// Step takes one event and appends what is to be done. Timers that are due
// run after every kind of event.
func (p *Planner) Step(ev Event, out []Action) []Action {
	if p.state == exited {
		return out
	}
	p.j.Begin(ev.At, ev.WallMillis, out)
	p.election.stored, p.pulse.late = ev.Stored, max(p.pulse.late, ev.Late)
	p.stood.late(ev.Late)
	switch ev.Kind {
	case Packet:
		if topic, ours := p.addressed(&ev.Packet); ours {
			p.receive(topic, &ev.Packet)
		}
	case LinkUp:
		p.onLinkUp()
	case LinkDown:
		p.j.LinkUp, p.pulse.due = false, Never
	case Persisted:
		p.onPersisted(ev.Persist)
	case Question:
		if topic, err := proto.ParseTopic(ev.Packet.Topic); err == nil { // be it in service or not: what this one knows
			answer(p, topic.Client, &ev.Packet)
		}
	case Lead:
		p.election.lead()
	case Revoked:
		for _, id := range ev.Nodes {
			if t, d := p.find(id); d != nil {
				t.Revoked(d)
				if !id.IsSwitch() {
					p.Rings.Agenda.Revoked(id)
				}
			}
		}
	}
	p.runTimers()
	return p.j.End()
}

func (p *Planner) onLinkUp() {
	now := p.j.Now
	p.j.LinkUp, p.listenFrom = true, now
	p.pulse.linked()
	if p.alone {
		p.alone, p.pulse.linkSince = false, now-beatsAlive*BeatPeriod
	}
	for _, t := range p.tables() {
		t.LinkUp()
	}
	p.Rings.LinkUp()
	if p.Core != nil {
		p.Core.LinkUp()
	}
}

func (p *Planner) onPersisted(id uint64) {
	switch {
	case p.Core != nil && p.Core.Stages.Persisted(id), p.Rings.Persisted(id):
		p.sawTerm(p.shown, "") // it may have been heard of while the disk was busy
	case p.state == raising && id == p.raise:
		p.raised()
	default:
		p.ackEvents(p.j.Flushed(id))
	}
}

// ackEvents acknowledges events that are on disk.
func (p *Planner) ackEvents(taken []journal.Taken) {
	if !p.j.LinkUp || p.state != gathering && p.state != serving {
		return
	}
	for _, x := range taken {
		if _, d := p.find(x.Node); d != nil && d.Online() {
			p.j.Command(d.ID, d.Session, proto.Command{Verb: proto.VerbAckEvents, Seq: x.Seq})
		}
	}
}

func (p *Planner) runTimers() {
	if p.j.Now >= p.voicesAt {
		p.voices()
	}
	switch p.state {
	case gathering:
		p.gather()
	case listening:
		p.listened()
	case standby:
		p.standing()
	}
	if p.state == exited {
		return
	}
	p.sendSigns()
	p.Rings.Resend()
	for _, t := range p.tables() {
		t.Roll()
		t.Ask(above{p}.Busy() == "")
	}
	p.Rings.Evidence.Conclude()
	for _, t := range p.tables() {
		t.CheckGaps()
	}
	p.j.Flush()
	p.asks.check()
	p.edits.run()
	p.Jobs.Run()
	p.Rings.Plan()
	if p.state == serving {
		p.Rollout.Run()
	}
	if p.Core != nil {
		p.Core.Run()
	}
	p.statusAsks.run(p)
	p.tellWaits()
}

// Next is the monotonic time at which the planner wants a Tick.
func (p *Planner) Next() time.Duration {
	if p.state == exited {
		return Never
	}
	next := min(p.j.Next(), p.edits.next(), p.Jobs.Next(), p.Rings.Next(), p.voicesAt)
	for _, t := range p.tables() {
		next = min(next, t.Next())
	}
	for i := range p.asks.list {
		next = min(next, p.asks.list[i].deadline)
	}
	if p.statusAsks.ahead != nil {
		return p.j.Now
	}
	if !p.j.LinkUp {
		return next
	}
	if p.Core != nil {
		next = min(next, p.Core.Next())
	}
	switch p.state {
	case serving:
		next = min(next, p.Rollout.Next())
	case listening:
		return min(next, p.listenEnd())
	case raising:
		return next
	case following:
		return min(next, p.pulse.due)
	case standby:
		next = min(next, p.listenEnd())
	case gathering:
		heard, _ := p.heard()
		if at, all := p.gatherEnd(); heard > 0 || all || !p.Rings.Table.Numbers.Fresh {
			next = min(next, at)
		}
	}
	return min(next, p.pulse.due)
}
