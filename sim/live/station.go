package live

import (
	"errors"
	"fmt"
	"time"

	"ringlight/agent"
	"ringlight/hal"
	"ringlight/mzi/detmath"
	"ringlight/ocs"
	"ringlight/proto"
	"ringlight/proto/mqtt"
	"ringlight/sim"
	"ringlight/sim/trace"
)

// persistDelay is what the journal's append and sync take on the virtual
// clock. chosen: a flash chip of a management controller.
const persistDelay = time.Millisecond

// station is one node of the demo: its board in the world, its agent while it
// has power, its journal and its own link.
type station struct {
	id           proto.NodeID
	board        sim.BoardID
	calibrations []*ocs.Calibration

	host     *agent.Host // nil without power
	link     *mqtt.Link
	life     int // counts the agents; what is meant for an earlier one is dropped
	linkUp   bool
	effect   trace.Effect // what it suffers from now
	disk     agent.Disk
	synced   time.Duration // when the record on its way is on disk; never without one
	next     time.Duration // when the agent wants to be polled; never without one
	thinking agent.Thinking

	noted []proto.Event // events noted since they were last taken
	edges []edgeSeen    // edges handed in since they were last taken
}

type edgeSeen struct {
	line hal.LineID
	high bool
	at   time.Duration // when the agent got it
}

// due is when something happens here next, besides what the world brings.
func (st *station) due() time.Duration { return min(st.next, st.synced) }

// powerOn gives the node power and a fresh agent that knows only its journal.
func (s *stepper) powerOn(st *station) error {
	s.world.SetPower(st.board, true)
	st.life++
	session := proto.Session(detmath.Hash(s.cfg.Seed, uint64(st.id), uint64(st.life)))
	cfg := agent.Config{
		Fabric: s.fabric.Name, Node: st.id, Board: s.board, Calibrations: st.calibrations,
		Session: session, Boot: uint64(st.life), Software: "ringlight demo", Seed: s.cfg.Seed,
		HealthPeriod: s.cfg.Health, Decide: s.costs.Decide,
	}
	link, err := dial(s.broker, s.fabric.Name, st.id, session)
	if err != nil {
		return fmt.Errorf("live: node %d: %w", st.id, err)
	}
	st.link, st.thinking.Takes, st.synced = link, cfg.Decide, agent.Never
	go s.pump(st, st.life, link)
	st.host = agent.NewHost(cfg, st.disk.Restore(), ports{s, st}, nil)
	st.host.Bins = st.disk.KeepBins
	st.host.Log = func(level uint8, text string) {
		if level > 0 {
			s.log.Warn("agent", "node", st.id, "at", s.now, "text", text)
		}
	}
	if err := st.host.Levels(s.now, func(line hal.LineID) (bool, error) { return s.world.Level(st.board, line), nil }); err != nil {
		return err
	}
	return s.settled(st)
}

// powerOff takes the power of the whole node: lasers fall, registers and all
// that was not on disk are lost, and the broker notices by the broken
// connection.
func (s *stepper) powerOff(st *station) {
	s.world.SetPower(st.board, false)
	st.link.Abandon()
	st.disk.Lose()
	st.host, st.link, st.linkUp = nil, nil, false
	st.next, st.synced = agent.Never, agent.Never
	s.place(st)
}

// tell delivers an input to a node's agent and lets it act.
func (s *stepper) tell(st *station, in agent.Input) error {
	st.host.Deliver(s.now, in)
	return s.settled(st)
}

// settled lets a node's agent act now, after a delivery or when it is due.
func (s *stepper) settled(st *station) error {
	before := len(st.noted)
	if err := st.host.Settle(s.now); err != nil {
		return fmt.Errorf("live: node %d: %w", st.id, err)
	}
	s.told = s.told || st.linkUp && len(st.noted) > before
	st.next = st.host.Next()
	s.place(st)
	return nil
}

// hostSays passes the host's word on its GPUs to the agent.
func (s *stepper) hostSays(st *station, well bool, why string) error {
	verb := agent.AskHostFault
	if well {
		verb = agent.AskHostOK
	}
	var refused error
	st.host.Ask(s.now, agent.Ask{Verb: verb, Text: why}, func(a *agent.Answer) {
		if a.Err != nil {
			refused = fmt.Errorf("live: node %d: %w", st.id, a.Err)
		}
	})
	return errors.Join(s.settled(st), refused)
}

// report is what the node's machine says of itself.
func (st *station) report() *proto.Reported {
	r := new(proto.Reported)
	st.host.View().Report(r)
	return r
}

// ports are those of one node's agent.
type ports struct {
	s  *stepper
	st *station
}

func (p ports) Submit(now time.Duration, w agent.Work) error {
	return p.s.world.Submit(p.st.thinking.Leaves(now, w.Decided), p.st.board, w.Bus, w.Op)
}

// Send loses packets as a network does: the agent's own re-sending covers it.
func (p ports) Send(_ time.Duration, packet proto.Packet) error {
	if packet.Kind == proto.Publish {
		p.s.watch.sent(p.st, packet)
	}
	_ = p.st.link.Send(packet)
	return nil
}

// Persist keeps the events of a record too: the journal is where every event is
// first.
func (p ports) Persist(now time.Duration, id uint64, record *agent.Record) error {
	p.st.disk.Begin(id, record)
	p.st.synced = now + persistDelay
	p.st.noted = append(p.st.noted, record.Events()...)
	return nil
}

// written acknowledges a record that is on disk by now.
func (s *stepper) written(st *station) error {
	if st.synced > s.now {
		return nil
	}
	st.synced = agent.Never
	id, err := st.disk.Commit()
	if err != nil {
		return fmt.Errorf("live: node %d: %w", st.id, err)
	}
	st.host.Deliver(s.now, agent.Input{Kind: agent.InPersisted, ID: id})
	return nil
}

// receive hands a packet from the network to the agent.
func (s *stepper) receive(a arrival) error {
	st := a.station
	if a.life != st.life || st.host == nil {
		return nil
	}
	switch a.packet.Kind {
	case proto.LinkUp:
		st.linkUp = true
	case proto.LinkDown:
		st.linkUp = false
	case proto.Refused:
		return fmt.Errorf("live: node %d: the broker refuses %s", st.id, a.packet.Topic)
	case proto.Publish:
		s.watch.received(a.packet)
	}
	return s.tell(st, agent.Input{Kind: agent.InPacket, Packet: a.packet})
}
