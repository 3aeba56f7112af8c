package fleet

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ringlight/mzi/detmath"
	"ringlight/planner"
	"ringlight/planner/fabric"
	"ringlight/proto"
)

// process is the planner's computer: the process while it lives, its store and
// its connection. It behaves as planner/server does, but that the disk takes
// its time.
type process struct {
	client
	r       *Run
	rival   bool          // the second planner: nobody starts it again
	host    *planner.Host // nil: no process
	life    uint32
	base    time.Duration // start of this life
	store   map[string][]byte
	paused  bool
	writing []planner.Record // the transaction under way
	busy    bool             // there is one
	term    proto.Term       // highest it decided in
}

const (
	storeLeast = 2 * time.Millisecond // chosen: a transaction of the store with its sync
	storeMean  = 2 * time.Millisecond
	// restartAfter is when a planner that gave way is started again by its
	// supervisor. chosen.
	restartAfter = 5 * time.Second
)

// number is 0 for the planner, 1 for its rival.
func (b *process) number() uint64 { return uint64(plannerID - b.who) }

func (b *process) start() error {
	if b.host != nil {
		return nil
	}
	r := b.r
	var st planner.State
	for k, v := range b.store { // any order: sorted below
		st = append(st, planner.Record{Key: k, Value: v})
	}
	slices.SortFunc(st, func(a, b planner.Record) int { return strings.Compare(a.Key, b.Key) })
	b.life++
	cfg, err := planner.Start(st, r.cfg.Fabric, detmath.Hash(r.cfg.Seed, streamSession, b.number(), uint64(b.life))|1)
	if err != nil {
		return fmt.Errorf("fleet: planner: %w", err)
	}
	b.host = planner.NewHost(cfg, b)
	b.base, b.alive, b.tries, b.paused, b.busy = r.now, true, 0, false, false
	b.will = cfg.Will()
	r.agenda.Push(r.now+r.net.hop(), task{kind: taskConnect, who: b.who, gen: b.conn})
	return nil
}

func (b *process) write(records []planner.Record) {
	for _, rec := range records {
		if rec.Key == "fabric" && !b.rival && b.store[rec.Key] != nil && string(b.store[rec.Key]) != string(rec.Value) {
			to, err := fabric.Parse(rec.Value)
			if err == nil {
				err = b.r.edited(to)
			}
			if err != nil {
				panic("fleet: the description that a planner stores: " + err.Error())
			}
		}
		if rec.Value == nil {
			delete(b.store, rec.Key)
		} else {
			b.store[rec.Key] = rec.Value
		}
	}
}

// kill ends the process. A transaction under way is in the store, or it is
// not.
func (b *process) kill() {
	if b.host == nil {
		return
	}
	if b.busy && detmath.Hash(b.r.cfg.Seed, streamCrash, uint64(b.life), b.number())&1 == 0 {
		b.write(b.writing)
	}
	b.r.net.hangUp(&b.client, false)
	b.host, b.alive = nil, false
	b.life++
}

// next is when it wants a tick.
func (b *process) next() time.Duration {
	if b.host == nil || b.paused {
		return planner.Never
	}
	if at := b.host.Next(); at != planner.Never {
		return max(b.r.now, b.base+at)
	}
	return planner.Never
}

// receive takes a packet from the network.
func (b *process) receive(t *task) {
	switch {
	case b.host == nil || t.gen != b.conn:
	case b.cut:
		b.r.net.hold(t, &b.downAt)
	default:
		b.deliver(t.packet)
	}
}

// deliver hands it what came over its link.
func (b *process) deliver(p proto.Packet) {
	if b.host != nil {
		b.host.Deliver(p)
		b.run()
	}
}

// run hands in what waits, until there is something to store or the process
// stands still.
func (b *process) run() {
	for b.host != nil && !b.paused && !b.busy {
		p, more := b.host.Step()
		if !more {
			return
		}
		b.r.audit.heard(p)
		b.settle()
	}
}

// settle does what a step has left: the process ends, or something is stored.
func (b *process) settle() {
	if reason, exited := b.host.Exited(); exited {
		b.r.audit.gaveWay(reason)
		b.kill()
		if !b.rival {
			b.r.inject.later(Fault{Verb: PlannerStart}, restartAfter)
		}
		return
	}
	if b.writing, b.busy = b.host.Transaction(); b.busy {
		b.r.agenda.Push(b.r.now+storeLeast+b.r.disk.wait(storeMean), task{kind: taskPersisted, who: b.who, gen: b.life})
	}
}

// stored is called when a transaction is on disk.
func (b *process) stored() {
	b.write(b.writing)
	b.busy = false
	b.host.Stored()
	b.settle()
	b.run()
}

// epochMillis is the wall clock at virtual zero, for people who read logs.
const epochMillis = 1_700_000_000_000

// Now is the planner's clock.
func (b *process) Now() (time.Duration, uint64) {
	return b.r.now - b.base, epochMillis + uint64(b.r.now.Milliseconds())
}

// Send hands a packet to the broker.
func (b *process) Send(p proto.Packet) {
	p = b.r.cfg.mutant.rewrites(b.r, p)
	b.r.tracer.packet(b.who, p)
	b.r.audit.planned(b, p)
	b.r.measure.asked(p)
	b.r.net.send(&b.client, p)
}

// Log is for people who follow a run.
func (b *process) Log(l *planner.Line) {
	s := "planner: " + l.Message
	if l.Node >= 0 {
		s += fmt.Sprintf(" node=%d", l.Node)
	}
	if l.Ring != 0 {
		s += fmt.Sprintf(" ring=%d", l.Ring)
	}
	if l.Generation != 0 {
		s += fmt.Sprintf(" generation=%d", l.Generation)
	}
	if l.Text != "" {
		s += ": " + l.Text
	}
	b.r.tracer.linef("%s", s)
}

// process is the planner's computer behind a client's number.
func (r *Run) process(who int32) *process { return r.planners[plannerID-who] }
