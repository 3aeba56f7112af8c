package fleet

import (
	"fmt"
	"time"

	"ringlight/agent"
	"ringlight/hal"
	"ringlight/mzi/detmath"
	"ringlight/proto"
	"ringlight/sim"
)

// coreSwitch is one switch: its mirrors in the world, its agent while it
// lives, its journal and its place on the network.
type coreSwitch struct {
	client
	id     proto.NodeID
	board  sim.BoardID
	agent  *agent.Agent
	life   uint32
	next   time.Duration
	flying []*hal.Op // bus work of this life

	journal  agent.Journal // what is on disk
	record   []byte        // on the way there
	recordID uint64
	out      []agent.Output
}

// startAgent makes a fresh agent that knows only its journal.
func (r *CoreRun) startAgent(st *coreSwitch) error {
	if st.agent != nil {
		return nil
	}
	st.life++
	st.flying, st.record = nil, nil
	cfg := agent.Config{Fabric: r.cfg.Fabric.Name, Node: st.id, Board: r.mirrors.Board, Factory: r.mirrors.Factories[st.who],
		Session: proto.Session(detmath.Hash(r.cfg.Seed, streamSession, uint64(st.id), uint64(st.life)) | 1), Boot: 1, Software: "ringlight fleet",
		Seed: r.cfg.Seed, HealthPeriod: r.cfg.Health}
	var err error
	if st.will, err = cfg.Will(); err != nil {
		return err
	}
	journal := st.journal
	journal.Events = append([]proto.Event(nil), journal.Events...)
	if r.cfg.defect != nil && st.life > 1 {
		r.cfg.defect(&journal)
	}
	st.agent = agent.New(cfg, journal)
	st.rings, st.alive, st.tries = nil, true, 0
	r.agenda.push(task{at: r.now + r.net.hop(), kind: taskConnect, who: st.who, gen: st.conn})
	return r.poll(st)
}

// endAgent ends the process. The record under way is on disk, or it is not.
func (r *CoreRun) endAgent(st *coreSwitch) {
	if st.agent == nil {
		return
	}
	if st.record != nil && detmath.Hash(r.cfg.Seed, streamCrash, uint64(st.id), uint64(st.life))&1 == 0 {
		r.written(st)
	}
	r.net.hangUp(&st.client, false)
	st.agent, st.alive, st.record, st.flying, st.next = nil, false, nil, nil, agent.Never
}

func (r *CoreRun) written(st *coreSwitch) {
	if err := st.journal.Apply(st.record); err != nil {
		r.violate(int(st.who), "nothing lost", "the journal refuses a record: "+err.Error())
	}
	st.record = nil
}

// poll lets the agent act now, after a delivery or when it is due.
func (r *CoreRun) poll(st *coreSwitch) error {
	for range maxPolls {
		var next time.Duration
		st.out, next = st.agent.Poll(r.now, st.out[:0])
		for i := range st.out {
			if err := r.carryOut(st, &st.out[i]); err != nil {
				return err
			}
		}
		clear(st.out)
		if next > r.now {
			st.next = next
			return nil
		}
	}
	return fmt.Errorf("fleet: switch %d wants to be polled for ever at %v", st.who, r.now)
}

func (r *CoreRun) carryOut(st *coreSwitch, o *agent.Output) error {
	switch o.Kind {
	case agent.OutSubmit:
		st.flying = append(st.flying, o.Op)
		return r.world.Submit(r.now, st.board, o.Bus, o.Op)
	case agent.OutSend:
		r.check.said(int(st.who), o.Packet)
		r.net.send(&st.client, o.Packet)
	case agent.OutPersist:
		st.record, st.recordID = o.Record, o.ID
		r.agenda.push(task{at: r.now + persistLeast + r.disk.wait(persistMean), kind: taskPersisted, who: st.who, gen: st.life})
	case agent.OutLog:
		r.trace(fmt.Sprintf("%v switch %d: %s", r.now, st.who, o.Text))
	}
	return nil
}

// receive hands a packet from the broker to its client.
func (r *CoreRun) receive(t *task) error {
	if t.who < 0 {
		if r.brain.planner != nil && t.gen == r.brain.conn {
			r.tell(t.packet)
		}
		return nil
	}
	st := r.switches[t.who]
	if st.agent == nil || t.gen != st.conn {
		return nil
	}
	st.agent.Deliver(r.now, agent.Input{Kind: agent.InPacket, Packet: t.packet, At: r.now})
	return r.poll(st)
}

// lost tells a client that its connection broke; it tries again.
func (r *CoreRun) lost(c *client) error {
	c.up = false
	c.conn++
	r.net.retry(c)
	if c.who < 0 {
		r.tell(proto.Packet{Kind: proto.LinkDown})
		return nil
	}
	st := r.switches[c.who]
	if st.agent == nil {
		return nil
	}
	st.agent.Deliver(r.now, agent.Input{Kind: agent.InPacket, Packet: proto.Packet{Kind: proto.LinkDown}})
	return r.poll(st)
}

func (r *CoreRun) persisted(t *task) error {
	if t.who < 0 {
		if t.gen == r.brain.life {
			r.stored()
		}
		return nil
	}
	st := r.switches[t.who]
	if st.life != t.gen || st.record == nil {
		return nil
	}
	r.written(st)
	st.agent.Deliver(r.now, agent.Input{Kind: agent.InPersisted, ID: st.recordID})
	return r.poll(st)
}
