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

// coreBrain is the planner's computer: the process while it lives, its store
// and its connection. While something is being stored, nothing else is done.
type coreBrain struct {
	client
	planner *planner.Planner
	life    uint32
	base    time.Duration
	store   map[string][]byte
	waiting []proto.Packet // that came while it stored
	held    []proto.Packet // to be said when it has stored
	records []planner.Record
	persist []uint64
	writing bool
	actions []planner.Action
}

func (r *CoreRun) startPlanner() error {
	b := &r.brain
	if b.planner != nil {
		return nil
	}
	var st planner.State
	for k, v := range b.store { // any order: sorted below
		st = append(st, planner.Record{Key: k, Value: v})
	}
	slices.SortFunc(st, func(a, b planner.Record) int { return strings.Compare(a.Key, b.Key) })
	b.life++
	cfg, records, err := planner.Start(st, r.cfg.Fabric, detmath.Hash(r.cfg.Seed, streamSession, 0)|1)
	if err != nil {
		return fmt.Errorf("fleet: planner: %w", err)
	}
	b.write(records)
	b.planner = planner.New(cfg)
	b.base, b.alive, b.tries, b.writing = r.now, true, 0, false
	b.waiting, b.held, b.records, b.persist = nil, nil, nil, nil
	b.will = b.planner.Will()
	r.agenda.push(task{at: r.now + r.net.hop(), kind: taskConnect, who: b.who, gen: b.conn})
	return nil
}

func (b *coreBrain) write(records []planner.Record) {
	for _, rec := range records {
		if rec.Value == nil {
			delete(b.store, rec.Key)
		} else {
			b.store[rec.Key] = rec.Value
		}
	}
}

// killPlanner ends the process. A transaction under way is in the store, or it
// is not.
func (r *CoreRun) killPlanner() {
	b := &r.brain
	if b.planner == nil {
		return
	}
	if b.writing && detmath.Hash(r.cfg.Seed, streamCrash, uint64(b.life), 0)&1 == 0 {
		b.write(b.records)
	}
	r.net.hangUp(&b.client, false)
	b.planner, b.alive = nil, false
	b.life++
}

// due is when the planner wants a tick.
func (b *coreBrain) due(now time.Duration) time.Duration {
	if b.planner == nil || b.writing || b.planner.Next() == planner.Never {
		return planner.Never
	}
	return max(now, b.base+b.planner.Next())
}

func (r *CoreRun) tell(p proto.Packet) {
	b := &r.brain
	if b.planner == nil {
		return
	}
	if b.writing {
		b.waiting = append(b.waiting, p)
		return
	}
	switch p.Kind {
	case proto.Publish:
		r.think(planner.Event{Kind: planner.Packet, Packet: p})
	case proto.LinkUp:
		r.think(planner.Event{Kind: planner.LinkUp})
	case proto.LinkDown:
		r.think(planner.Event{Kind: planner.LinkDown})
	}
}

func (r *CoreRun) think(ev planner.Event) {
	b := &r.brain
	ev.At, ev.WallMillis = r.now-b.base, epochMillis+uint64(r.now.Milliseconds())
	b.actions = b.planner.Step(ev, b.actions[:0])
	for i := range b.actions {
		a := &b.actions[i]
		switch a.Kind {
		case planner.Send:
			if len(b.persist) > 0 {
				b.held = append(b.held, a.Packet)
			} else {
				r.brainSends(a.Packet)
			}
		case planner.Persist:
			b.records = append(b.records, a.Records...)
			b.persist = append(b.persist, a.Persist)
		case planner.Exit:
			r.violate(-1, "one planner", "it gave way: "+a.Reason)
		case planner.Log:
			r.trace(fmt.Sprintf("%v planner: %s node=%d generation=%d: %s", r.now, a.Line.Message, a.Line.Node, a.Line.Generation, a.Line.Text))
		}
	}
	clear(b.actions)
	if len(b.persist) > 0 && !b.writing {
		b.writing = true
		r.agenda.push(task{at: r.now + storeLeast + r.disk.wait(storeMean), kind: taskPersisted, who: b.who, gen: b.life})
	}
}

func (r *CoreRun) brainSends(p proto.Packet) {
	r.check.planned(p)
	r.net.send(&r.brain.client, p)
}

// stored is told when a transaction is on disk.
func (r *CoreRun) stored() {
	b := &r.brain
	b.write(b.records)
	done, held := b.persist, b.held
	b.records, b.persist, b.held, b.writing = nil, nil, nil, false
	for _, p := range held {
		r.brainSends(p)
	}
	for _, id := range done {
		r.think(planner.Event{Kind: planner.Persisted, Persist: id})
	}
	for len(b.waiting) > 0 && b.planner != nil && !b.writing {
		p := b.waiting[0]
		b.waiting = b.waiting[1:]
		r.tell(p)
	}
}
