package live

import (
	"log/slog"
	"time"

	"ringlight/agent"
	"ringlight/hal"
	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/proto/mqtt"
	"ringlight/sim"
	"ringlight/sim/agenda"
)

// stepper is the world, the nodes in it and the one clock that they share. One
// goroutine steps it; the links' receivers only fill its inbox.
type stepper struct {
	cfg      DemoConfig
	fabric   *fabric.Fabric
	world    *sim.World
	costs    sim.Costs
	board    *hal.Board // of every node
	stations []*station
	queue    agenda.Roster // of the stations
	now      time.Duration
	told     bool          // a node with a link has noted an event
	alone    bool          // the broker is stopped: what is told waits for its return
	late     time.Duration // that this program was woken by lately
	skips    chan<- time.Duration
	owed     time.Duration // that the planner's clock is to skip yet
	leapt    time.Time     // when it was told to last
	broker   mqtt.Config
	inbox    chan arrival
	watch    *watch
	log      *slog.Logger
}

// arrival is a packet that has come over a node's link.
type arrival struct {
	station *station
	life    int
	packet  proto.Packet
}

// inboxSize is chosen: one desired state, decision and acknowledgement for
// every node of a large demo.
const inboxSize = 4096

// pump carries a link's packets to the goroutine that steps the agents. It
// ends with the link.
func (s *stepper) pump(st *station, life int, link *mqtt.Link) {
	for p := range link.Recv() {
		s.inbox <- arrival{st, life, p}
	}
}

// runTo lets everything happen that is due up to t, and sets the clock to t.
func (s *stepper) runTo(t time.Duration) error {
	for {
		at, ok := s.nextDue()
		if !ok || at > t {
			break
		}
		if err := s.step(at); err != nil {
			return err
		}
	}
	if t > s.now {
		s.world.AdvanceTo(t)
		s.now = t
	}
	return nil
}

// nextDue is when anything happens next.
func (s *stepper) nextDue() (time.Duration, bool) {
	at, _ := s.queue.First()
	if w, ok := s.world.Next(); ok && w <= at {
		return w, true
	}
	return at, at != agent.Never
}

// step does the one thing that is due at a time: what the world does goes
// before what the agents do.
func (s *stepper) step(at time.Duration) error {
	if w, ok := s.world.Next(); ok && w <= at {
		board, ev, visible := s.world.Step()
		s.now = max(s.now, s.world.Now())
		if !visible {
			return nil
		}
		return s.hardware(s.stations[board], ev)
	}
	_, who := s.queue.First()
	st := s.stations[who]
	s.now = max(s.now, at)
	if err := s.written(st); err != nil {
		return err
	}
	return s.settled(st)
}

// hardware hands an event of a board to its agent.
func (s *stepper) hardware(st *station, ev hal.Event) error {
	if st.host == nil {
		return nil // work of an agent that has lost its power
	}
	if ev.Edge != nil {
		st.edges = append(st.edges, edgeSeen{ev.Edge.Line, ev.Edge.High, s.now})
	}
	return s.tell(st, agent.Input{Kind: agent.InHardware, Hardware: ev})
}

// place puts down when a node is due after that has changed.
func (s *stepper) place(st *station) { s.queue.Place(int(st.id), st.due()) }
