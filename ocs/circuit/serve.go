package circuit

import (
	"errors"
	"time"

	"ringlight/hal"
	"ringlight/proto"
)

// Switch is what a script may do to a circuit switch.
type Switch interface {
	Apply(now time.Duration, ch Change) error
	Circuits(buf []Circuit) []Circuit
}

// Served lets a server of the language of commercial boxes (hal/scpi) drive a
// Switch: scripts written for such a box then drive ours, or the simulator.
// Whoever steps the switch sets Now before it lets the server speak.
type Served struct {
	Switch   Switch
	Ports    int // of each side
	Identity string
	Now      time.Duration
	// Busy tells that a change is under way still; nil: the circuits say it.
	Busy func() bool
	// Power is the last reading of a port's monitor; nil: there are none.
	Power func(side, port int) (proto.MilliDBm, error)
}

// State is the switch as a box describes itself. It is busy while a circuit is
// being tuned that can be; one that has failed is refused.
func (s *Served) State() (state hal.BoxState, busy bool) {
	state = hal.BoxState{In: s.Ports, Out: s.Ports, Identity: s.Identity, HasMeters: s.Power != nil, Refused: map[hal.PortPair]error{}}
	busy = s.Busy != nil && s.Busy()
	for _, c := range s.Switch.Circuits(nil) {
		p := hal.PortPair{In: c.Pair.A, Out: c.Pair.B}
		state.Map = append(state.Map, p)
		busy = busy || c.State == proto.Tuning && c.Err == nil
		if c.State == proto.Failed || c.State == proto.Tuning && c.Err != nil && !errors.Is(c.Err, ErrNoInput) {
			state.Refused[p] = c.Err
		}
	}
	if s.Power == nil {
		return state, busy
	}
	for side := range hal.NumSides {
		for port := range s.Ports {
			p, err := s.Power(side, port)
			if err != nil {
				p = hal.DarkMilliDBm
			}
			state.Powers = append(state.Powers, int32(p))
		}
	}
	return state, busy
}

// Change asks for what a command says; what is in its way gives way.
func (s *Served) Change(goal hal.BoxGoal) error {
	ch := Change{Mode: Update}
	if goal.Only {
		ch.Mode = Overwrite
	}
	for _, p := range goal.Remove {
		ch.Remove = append(ch.Remove, Pair{A: p.In, B: p.Out})
	}
	for _, p := range goal.Create {
		ch.Create = append(ch.Create, Pair{A: p.In, B: p.Out})
	}
	return s.Switch.Apply(s.Now, ch)
}
