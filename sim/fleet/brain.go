package fleet

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ringlight/mzi/detmath"
	"ringlight/planner"
	"ringlight/proto"
)

// brain is the planner's computer: the process while it lives, its store and
// its connection. It behaves as planner/server does: while something is being
// stored, nothing else is done, and what was said after it waits for the disk.
type brain struct {
	client
	rival   bool // the second planner: nobody starts it again
	planner *planner.Planner
	life    uint32
	base    time.Duration // start of this life
	store   map[string][]byte
	paused  bool
	waiting []proto.Packet // that came while it stood still or stored
	held    []proto.Packet // to be said when it has stored
	records []planner.Record
	persist []uint64
	writing bool
	actions []planner.Action
	exited  string
	term    proto.Term // highest it decided in
}

const (
	storeLeast = 2 * time.Millisecond // chosen: a transaction of the store with its sync
	storeMean  = 2 * time.Millisecond
	// restartAfter is when a planner that gave way is started again by its
	// supervisor. chosen.
	restartAfter = 5 * time.Second
)

// brainOf is the planner's computer behind a client's number.
func (r *Run) brainOf(who int32) *brain { return &r.brains[brainID-who] }

// planning tells whether a planner is at work.
func (r *Run) planning() bool {
	return r.brains[0].planner != nil || r.brains[1].planner != nil
}

// planned: one is, and has nothing to do.
func (r *Run) planned() bool {
	quiet := false
	for i := range r.brains {
		if p := r.brains[i].planner; p != nil {
			if !p.Overview().Quiet {
				return false
			}
			quiet = true
		}
	}
	return quiet
}

func (r *Run) startPlanner(b *brain) error {
	if b.planner != nil {
		return nil
	}
	var st planner.State
	for k, v := range b.store { // any order: sorted below
		st = append(st, planner.Record{Key: k, Value: v})
	}
	slices.SortFunc(st, func(a, b planner.Record) int { return strings.Compare(a.Key, b.Key) })
	b.life++
	cfg, records, err := planner.Start(st, r.cfg.Fabric, detmath.Hash(r.cfg.Seed, streamSession, uint64(brainID-b.who))|1)
	if err != nil {
		return fmt.Errorf("fleet: planner: %w", err)
	}
	b.write(records)
	b.planner = planner.New(cfg)
	b.base, b.alive, b.tries, b.exited = r.now, true, 0, ""
	b.paused, b.writing = false, false
	b.waiting, b.held, b.records, b.persist = nil, nil, nil, nil
	b.will = b.planner.Will()
	r.agenda.push(task{at: r.now + r.net.hop(), kind: taskConnect, who: b.who, gen: b.conn})
	return nil
}

func (b *brain) write(records []planner.Record) {
	for _, rec := range records {
		if rec.Value == nil {
			delete(b.store, rec.Key)
		} else {
			b.store[rec.Key] = rec.Value
		}
	}
}

// killPlanner ends the process. A transaction under way is in the store, or
// it is not.
func (r *Run) killPlanner(b *brain) {
	if b.planner == nil {
		return
	}
	if b.writing && detmath.Hash(r.cfg.Seed, streamCrash, uint64(b.life), uint64(brainID-b.who))&1 == 0 {
		b.write(b.records)
	}
	r.net.hangUp(&b.client, false)
	b.planner, b.alive = nil, false
	b.life++
}

// brainDue is the planner that wants a tick first, and when.
func (r *Run) brainDue() (b *brain, at time.Duration) {
	for i := range r.brains {
		x := &r.brains[i]
		if x.planner == nil || x.paused || x.writing {
			continue
		}
		if next := x.planner.Next(); next != planner.Never && (b == nil || max(r.now, x.base+next) < at) {
			b, at = x, max(r.now, x.base+next)
		}
	}
	return b, at
}

// tell hands the planner an event, or keeps it while it stands still.
func (r *Run) tell(b *brain, p proto.Packet) {
	if b.planner == nil {
		return
	}
	if b.paused || b.writing {
		b.waiting = append(b.waiting, p)
		return
	}
	switch p.Kind {
	case proto.Publish:
		r.audit.heard(p)
		r.think(b, planner.Event{Kind: planner.Packet, Packet: p})
	case proto.LinkUp:
		r.think(b, planner.Event{Kind: planner.LinkUp})
	case proto.LinkDown:
		r.think(b, planner.Event{Kind: planner.LinkDown})
	}
}

// epochMillis is the wall clock at virtual zero, for people who read logs.
const epochMillis = 1_700_000_000_000

func (r *Run) think(b *brain, ev planner.Event) {
	ev.At, ev.WallMillis = r.now-b.base, epochMillis+uint64(r.now.Milliseconds())
	b.actions = b.planner.Step(ev, b.actions[:0])
	r.thoughts++
	for i := range b.actions {
		a := &b.actions[i]
		switch a.Kind {
		case planner.Send:
			if len(b.persist) > 0 {
				b.held = append(b.held, a.Packet)
			} else {
				r.brainSends(b, a.Packet)
			}
		case planner.Persist:
			b.records = append(b.records, a.Records...)
			b.persist = append(b.persist, a.Persist)
		case planner.Exit:
			b.exited = a.Reason
		case planner.Log:
			if r.cfg.TraceLine != nil {
				r.cfg.TraceLine(r.planLine(&a.Line))
			}
		}
	}
	clear(b.actions)
	switch {
	case b.exited != "":
		r.killPlanner(b)
		if !b.rival {
			r.later(Fault{Verb: PlannerStart}, restartAfter)
		}
	case len(b.persist) > 0 && !b.writing:
		b.writing = true
		r.agenda.push(task{at: r.now + storeLeast + r.disk.wait(storeMean), kind: taskPersisted, who: b.who, gen: b.life})
	}
}

// planLine is a line of the planner's log, for people who follow a run.
func (r *Run) planLine(l *planner.Line) string {
	s := fmt.Sprintf("%v planner: %s", r.now, l.Message)
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
	return s
}

func (r *Run) brainSends(b *brain, p proto.Packet) {
	p = r.cfg.mutant.rewrites(r, p)
	r.tracePacket(b.who, p)
	r.audit.planned(b, p)
	r.net.send(&b.client, p)
}

// stored is told when a transaction is on disk.
func (r *Run) stored(b *brain) {
	b.write(b.records)
	done, held := b.persist, b.held
	b.records, b.persist, b.held, b.writing = nil, nil, nil, false
	for _, p := range held {
		r.brainSends(b, p)
	}
	for _, id := range done {
		if b.planner != nil {
			r.think(b, planner.Event{Kind: planner.Persisted, Persist: id})
		}
	}
	r.catchUp(b)
}

// catchUp hands in what waited.
func (r *Run) catchUp(b *brain) {
	for len(b.waiting) > 0 && b.planner != nil && !b.paused && !b.writing {
		p := b.waiting[0]
		b.waiting = b.waiting[1:]
		r.tell(b, p)
	}
}
