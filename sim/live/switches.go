package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"ringlight/agent"
	"ringlight/hal"
	"ringlight/mzi/detmath"
	"ringlight/ocs/circuit"
	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/proto/mqtt"
	"ringlight/sim"
	"ringlight/sim/fleet"
)

// SwitchesConfig says which simulated optical switches run against which
// broker.
type SwitchesConfig struct {
	Fabric *fabric.Fabric // its core's
	Seed   uint64
	Health time.Duration
	Broker mqtt.Config // client id and will are filled in for every switch
	State  string      // folder of the journals, one a switch; "": none
	Log    *slog.Logger
}

// Switches are simulated optical switches with the production agents in real
// time. Their boards keep their light whatever becomes of the agents.
type Switches struct {
	cfg     SwitchesConfig
	clock   *clockwork
	mirrors *fleet.Mirrors
	all     sync.WaitGroup

	mu    sync.Mutex
	lives []*switchLife // by switch; nil: its agent is dead
	errs  []error

	guarded [][]circuit.Pair // by switch; under the clock's lock
	drops   []Drop
	tracked *litTimes // under the clock's lock
}

// switchLife is one process of an agent.
type switchLife struct {
	link  *mqtt.Link
	stop  context.CancelFunc
	ended chan struct{}
}

// Drop is the moment at which a guarded circuit had no light.
type Drop struct {
	At     time.Duration `json:"at_ns"`
	Switch int           `json:"switch"`
	A      uint16        `json:"a"`
	B      uint16        `json:"b"`
}

// StartSwitches starts an agent for every switch of a fabric's core; they end
// with ctx.
func StartSwitches(ctx context.Context, cfg SwitchesConfig) (*Switches, error) {
	c := &clockwork{world: sim.NewWorld(sim.WorldConfig{Seed: cfg.Seed}), born: time.Now(), wake: make(chan struct{}, 1)}
	s, err := newSwitches(c, cfg)
	if err != nil {
		return nil, err
	}
	s.all.Go(func() { c.run(ctx) })
	return s, s.reviveAll(ctx)
}

func (s *Switches) reviveAll(ctx context.Context) error {
	for i := range s.Count() {
		if err := s.Revive(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// newSwitches puts the boards into a world.
func newSwitches(c *clockwork, cfg SwitchesConfig) (*Switches, error) {
	if cfg.Fabric.Core == nil {
		return nil, &proto.Error{Code: proto.NotFound, Field: "core", Reason: "fabric " + cfg.Fabric.Name + " has no optical switches"}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	m, err := fleet.BuildMirrors(c.world, cfg.Fabric.Core, cfg.Seed)
	if err != nil {
		return nil, err
	}
	n := len(m.Factories)
	s := &Switches{cfg: cfg, clock: c, mirrors: m, lives: make([]*switchLife, n), guarded: make([][]circuit.Pair, n)}
	c.sinks = append(c.sinks, make([]func(hal.Event), int(m.First)+n-len(c.sinks))...)
	c.after = s.look
	return s, nil
}

// Count is the number of switches; nil has none.
func (s *Switches) Count() int {
	if s == nil {
		return 0
	}
	return len(s.lives)
}

// Revive starts a dead agent from its journal.
func (s *Switches) Revive(ctx context.Context, i int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lives[i] != nil {
		return nil
	}
	id := proto.FirstSwitch + proto.NodeID(i)
	session := proto.Session(detmath.Hash(s.cfg.Seed, uint64(id), uint64(time.Now().UnixNano())))
	link, err := dial(s.cfg.Broker, s.cfg.Fabric.Name, id, session)
	if err != nil {
		return fmt.Errorf("live: switch %d: %w", i, err)
	}
	ctx, stop := context.WithCancel(ctx)
	life := &switchLife{link: link, stop: stop, ended: make(chan struct{})}
	s.lives[i] = life
	journal := ""
	if s.cfg.State != "" {
		journal = filepath.Join(s.cfg.State, fmt.Sprintf("switch-%d", i))
	}
	s.all.Go(func() {
		defer close(life.ended)
		defer link.Close()
		err := agent.Run(ctx, agent.RunConfig{
			Agent: agent.Config{Fabric: s.cfg.Fabric.Name, Node: id, Board: s.mirrors.Board, Factory: s.mirrors.Factories[i],
				Session: session, Boot: uint64(session), Software: "ringlight ocs-sim", Seed: s.cfg.Seed, HealthPeriod: s.cfg.Health},
			Open: func(events func(hal.Event)) (agent.Hardware, error) {
				return s.clock.open(s.mirrors.ID(i), events), nil
			},
			Link: link, Journal: journal, RecordBytes: -1, Log: s.cfg.Log.With("switch", i),
		})
		if err != nil && ctx.Err() == nil {
			s.mu.Lock()
			s.errs = append(s.errs, fmt.Errorf("live: switch %d: %w", i, err))
			s.mu.Unlock()
		}
	})
	return nil
}

// Kill ends an agent as a crash does: its connection breaks, and what was not
// on disk is lost. Its switch keeps its light.
func (s *Switches) Kill(i int) {
	s.mu.Lock()
	life := s.lives[i]
	s.lives[i] = nil
	s.mu.Unlock()
	if life == nil {
		return
	}
	life.link.Abandon()
	life.stop()
	<-life.ended
}

// Wait waits until all agents have ended, and says what went wrong.
func (s *Switches) Wait() error {
	if s == nil {
		return nil
	}
	s.all.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.errs...)
}

// Lit are the pairs of ports of a switch between which light really passes.
func (s *Switches) Lit(i int) []circuit.Pair {
	s.clock.mu.Lock()
	defer s.clock.mu.Unlock()
	return s.mirrors.Lit(s.clock.world, i)
}

// Guard says which circuits of a switch must keep their light from now on.
func (s *Switches) Guard(i int, circuits []circuit.Pair) {
	s.clock.mu.Lock()
	defer s.clock.mu.Unlock()
	s.guarded[i] = append([]circuit.Pair(nil), circuits...)
}

// Drops are the moments at which guarded circuits had no light; of a circuit
// only the first since it was guarded.
func (s *Switches) Drops() []Drop {
	s.clock.mu.Lock()
	defer s.clock.mu.Unlock()
	return append([]Drop(nil), s.drops...)
}

// look looks at the guarded circuits of a board on which something has
// happened: mirrors move only after a write, and are looked at while they do.
// The clock's lock is held.
func (s *Switches) look(id sim.BoardID) {
	i := int(id) - int(s.mirrors.First)
	if i < 0 || i >= len(s.guarded) {
		return
	}
	if s.tracked != nil {
		s.note(s.tracked, i)
	}
	kept := s.guarded[i][:0]
	for _, p := range s.guarded[i] {
		if s.mirrors.Passes(s.clock.world, i, p.A, p.B) {
			kept = append(kept, p)
			continue
		}
		s.drops = append(s.drops, Drop{At: s.clock.world.Now(), Switch: i, A: p.A, B: p.B})
	}
	s.guarded[i] = kept
}
