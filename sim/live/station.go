package live

import (
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

	agent  *agent.Agent // nil without power
	link   *mqtt.Link
	life   int // counts the agents; what is meant for an earlier one is dropped
	linkUp bool
	suffer trace.Effect // what it suffers from now

	journal agent.Journal // what is on disk
	writes  []write       // and what is on the way there, in order
	next    time.Duration // when the agent wants to be polled; never without one
	slot    int           // in the stage's heap
	thinks  time.Duration // end of the modelled time of its last decision
	asked   uint64
	status  *agent.Status // answer to the last ask

	noted []proto.Event // events noted since they were last taken
	edges []edgeSeen    // edges handed in since they were last taken
	out   []agent.Output
}

type write struct {
	at     time.Duration
	id     uint64
	record []byte
}

type edgeSeen struct {
	line hal.LineID
	high bool
	at   time.Duration // when the agent got it
}

// due is when something happens here next, besides what the world brings.
func (st *station) due() time.Duration {
	at := st.next
	if len(st.writes) > 0 && st.writes[0].at < at {
		at = st.writes[0].at
	}
	return at
}

// powerOn gives the node power and a fresh agent that knows only its journal.
func (s *stage) powerOn(st *station) error {
	s.world.SetPower(st.board, true)
	st.life++
	st.next, st.writes = s.now, nil
	session := proto.Session(detmath.Hash(s.cfg.Seed, uint64(st.id), uint64(st.life)))
	cfg := agent.Config{
		Fabric: s.fabric.Name, Node: st.id, Board: &s.boards[st.id], Calibrations: st.calibrations,
		Session: session, Boot: uint64(st.life), Software: "ringlight demo", Seed: s.cfg.Seed,
		HealthPeriod: s.cfg.Health, Decide: s.costs.Decide,
	}
	link, err := dial(mqtt.Config{Broker: s.broker, MinReconnect: minReconnect, MaxReconnect: maxReconnect}, s.fabric.Name, st.id, session)
	if err != nil {
		return fmt.Errorf("live: node %d: %w", st.id, err)
	}
	st.link = link
	go s.pump(st, st.life, link)
	st.agent = agent.New(cfg, st.restored())
	s.levels(st)
	return s.poll(st, false)
}

// restored is the journal as the new agent finds it.
func (st *station) restored() agent.Journal {
	j := st.journal
	j.Events = append([]proto.Event(nil), j.Events...)
	return j
}

// levels hands the agent its input lines as they are, before its first poll.
func (s *stage) levels(st *station) {
	for l := range s.boards[st.id].Lines {
		line := hal.LineID(l)
		edge := &hal.Edge{Line: line, High: s.world.Level(st.board, line), At: s.now}
		st.agent.Deliver(s.now, agent.Input{Kind: agent.InHardware, Hardware: hal.Event{Edge: edge}})
	}
}

// powerOff takes the power of the whole node: lasers fall, registers and all
// that was not on disk are lost, and the broker notices by the broken
// connection.
func (s *stage) powerOff(st *station) {
	s.world.SetPower(st.board, false)
	st.link.Abandon()
	st.agent, st.link, st.linkUp = nil, nil, false
	st.next, st.writes = agent.Never, nil
	s.place(st)
}

// hostSays passes the host's word on its GPUs to the agent.
func (s *stage) hostSays(st *station, well bool, why string) error {
	verb := agent.AskHostFault
	if well {
		verb = agent.AskHostOK
	}
	return s.ask(st, verb, why)
}

func (s *stage) ask(st *station, verb agent.AskVerb, text string) error {
	st.asked++
	st.agent.Deliver(s.now, agent.Input{Kind: agent.InAsk, Ask: agent.Ask{ID: st.asked, Verb: verb, Text: text}})
	return s.poll(st, false)
}

// ask the agent how it stands.
func (s *stage) statusOf(st *station) (*agent.Status, error) {
	if st.agent == nil {
		return nil, fmt.Errorf("live: node %d has no power", st.id)
	}
	st.status = nil
	if err := s.ask(st, agent.AskStatus, ""); err != nil {
		return nil, err
	}
	if st.status == nil {
		return nil, fmt.Errorf("live: node %d does not say how it is", st.id)
	}
	return st.status, nil
}

// maxPolls bounds the calls at one instant; more mean that the agent spins.
const maxPolls = 10_000

// poll lets the agent act now, after a delivery or when it is due. After an
// edge the work it asks for leaves the modelled time of a decision later.
func (s *stage) poll(st *station, edge bool) error {
	for range maxPolls {
		st.out, st.next = st.agent.Poll(s.now, st.out[:0])
		s.polls++
		for i := range st.out {
			if err := s.carryOut(st, &st.out[i], edge); err != nil {
				return err
			}
		}
		if st.next > s.now {
			s.place(st)
			return nil
		}
	}
	return fmt.Errorf("live: node %d wants to be polled for ever at %v", st.id, s.now)
}

func (s *stage) carryOut(st *station, o *agent.Output, edge bool) error {
	switch o.Kind {
	case agent.OutSubmit:
		if edge {
			st.thinks = s.now + s.costs.Decide
		}
		// What is asked for while an earlier decision is still being thought
		// must not overtake its work.
		at := max(s.now, st.thinks)
		if err := s.world.Submit(at, st.board, o.Bus, o.Op); err != nil {
			return fmt.Errorf("live: node %d: %w", st.id, err)
		}
	case agent.OutSend:
		if o.Packet.Kind == proto.Publish {
			s.watch.sent(st, o.Packet)
		}
		// A link that is down or full loses a packet, as a network does; the
		// agent's own re-sending covers it.
		_ = st.link.Send(o.Packet)
	case agent.OutPersist:
		st.writes = append(st.writes, write{s.now + persistDelay, o.ID, o.Record})
		return s.noteEvents(st, o.Record)
	case agent.OutAnswer:
		if o.Answer.Err != nil {
			return fmt.Errorf("live: node %d: %w", st.id, o.Answer.Err)
		}
		if o.Answer.Status != nil {
			st.status = o.Answer.Status
		}
	case agent.OutLog:
		if o.Level > 0 {
			s.log.Warn("agent", "node", st.id, "at", s.now, "text", o.Text)
		}
	}
	return nil
}

// noteEvents keeps what the agent has just written into its journal, which is
// where every event is first.
func (s *stage) noteEvents(st *station, record []byte) error {
	var j agent.Journal
	if err := j.Apply(record); err != nil {
		return fmt.Errorf("live: node %d: %w", st.id, err)
	}
	st.noted = append(st.noted, j.Events...)
	return nil
}

// written applies what has reached the disk by now.
func (s *stage) written(st *station) error {
	for len(st.writes) > 0 && st.writes[0].at <= s.now {
		w := st.writes[0]
		st.writes = st.writes[1:]
		if err := st.journal.Apply(w.record); err != nil {
			return fmt.Errorf("live: node %d: %w", st.id, err)
		}
		st.agent.Deliver(s.now, agent.Input{Kind: agent.InPersisted, ID: w.id})
	}
	return nil
}

// receive hands a packet from the network to the agent.
func (s *stage) receive(a arrival) error {
	st := a.station
	if a.life != st.life || st.agent == nil {
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
		s.watch.received(st, a.packet)
	}
	st.agent.Deliver(s.now, agent.Input{Kind: agent.InPacket, Packet: a.packet})
	return s.poll(st, false)
}
