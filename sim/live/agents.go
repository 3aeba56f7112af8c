package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"ringlight/agent"
	"ringlight/hal"
	"ringlight/mzi/detmath"
	"ringlight/ocs"
	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/proto/mqtt"
	"ringlight/sim"
)

// AgentsConfig says which simulated nodes run against which broker.
type AgentsConfig struct {
	Fabric   *fabric.Fabric
	Modules  int
	Seed     uint64
	Health   time.Duration
	Broker   mqtt.Config // client id and will are filled in for every node
	State    string      // folder of the switches' journals; "": none
	Progress io.Writer
	Log      *slog.Logger
	Ready    func() // is called when all nodes run
	// Ended is given the boards' own record when ctx has ended.
	Ended func(LightRecord)
}

// LightRecord is what the boards themselves say of their light, whatever
// became of agents, broker and planner.
type LightRecord struct {
	Nodes       int           `json:"nodes"`
	PathsLit    int           `json:"paths_lit"`
	CircuitsLit int           `json:"circuits_lit,omitempty"` // of optical switches
	SinceChange time.Duration `json:"-"`                      // how long ago any light changed
	SinceMillis int64         `json:"since_last_change_ms"`
}

// record reads the boards' light. The lock is held.
func (c *clockwork) record() LightRecord {
	r := LightRecord{Nodes: c.nodes}
	last := time.Duration(0)
	for n := range c.nodes {
		for b := range c.bundles {
			for path := range hal.NumLOS {
				at, lit := c.world.LastChange(sim.Port{Board: sim.BoardID(n), Bundle: b, Path: path})
				last = max(last, at)
				if lit {
					r.PathsLit++
				}
			}
		}
	}
	r.SinceChange = c.now() - last
	r.SinceMillis = r.SinceChange.Milliseconds()
	return r
}

// Agents runs a simulated node for every node of a fabric, and a switch for
// every switch of its core, with the production loop in real time, until ctx
// ends. All boards are in one world whose time goes with the wall; it keeps
// its light when the broker dies.
func Agents(ctx context.Context, cfg AgentsConfig) error {
	c := &clockwork{world: sim.NewWorld(sim.WorldConfig{Seed: cfg.Seed}), born: time.Now(), wake: make(chan struct{}, 1)}
	var boards []hal.Board
	var calibrations [][]*ocs.Calibration
	if cfg.Fabric.Nodes > 0 {
		b, spread, err := calibrate(ctx, cfg.Seed, catalogueSize, progressTo(cfg.Progress, "modules calibrated"))
		if err != nil {
			return err
		}
		cfg.Log.Info("optics calibrated", "modules", catalogueSize, "board_time_max", spread.max)
		if boards, calibrations, err = build(c.world, cfg.Fabric, cfg.Modules, cfg.Seed, b); err != nil {
			return err
		}
		c.bundles = len(boards[0].Bundles)
	}
	c.nodes = len(boards)
	c.sinks = make([]func(hal.Event), len(boards))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var switches *Switches
	if cfg.Fabric.Core != nil {
		var err error
		if switches, err = newSwitches(c, SwitchesConfig{Fabric: cfg.Fabric, Seed: cfg.Seed, Health: cfg.Health, Broker: cfg.Broker,
			State: cfg.State, Log: cfg.Log}); err != nil {
			return err
		}
	}
	var nodes sync.WaitGroup
	errs := make([]error, len(boards)+1)
	nodes.Go(func() { c.run(ctx) })
	for n := range boards {
		c.power(sim.BoardID(n))
		nodes.Go(func() {
			if err := cfg.runNode(ctx, c, n, &boards[n], calibrations[n]); err != nil && ctx.Err() == nil {
				errs[n] = fmt.Errorf("live: node %d: %w", n, err)
				cancel()
			}
		})
	}
	if err := switches.reviveAll(ctx); err != nil {
		cancel()
		errs[len(boards)] = err
	}
	if cfg.Ready != nil && ctx.Err() == nil {
		cfg.Ready()
	}
	nodes.Wait()
	errs = append(errs, switches.Wait())
	if cfg.Ended != nil {
		r := c.record()
		for i := range switches.Count() {
			r.CircuitsLit += len(switches.Lit(i))
		}
		cfg.Ended(r)
	}
	return errors.Join(errs...)
}

func (cfg *AgentsConfig) runNode(ctx context.Context, c *clockwork, n int, board *hal.Board, calibrations []*ocs.Calibration) error {
	session := proto.Session(detmath.Hash(cfg.Seed, uint64(n), uint64(time.Now().UnixNano())))
	link, err := dial(cfg.Broker, cfg.Fabric.Name, proto.NodeID(n), session)
	if err != nil {
		return err
	}
	defer link.Close()
	return agent.Run(ctx, agent.RunConfig{
		Agent: agent.Config{
			Fabric: cfg.Fabric.Name, Node: proto.NodeID(n), Board: board, Calibrations: calibrations,
			Session: session, Boot: uint64(session), Software: "ringlight ocs-sim", Seed: cfg.Seed, HealthPeriod: cfg.Health,
		},
		Open: func(events func(hal.Event)) (agent.Hardware, error) {
			return c.open(sim.BoardID(n), events), nil
		},
		Link:        link,
		RecordBytes: -1, // many nodes in one process
		Log:         cfg.Log.With("node", n),
	})
}

// clockwork drives one world in real time for many nodes.
type clockwork struct {
	mu      sync.Mutex
	world   *sim.World
	bundles int               // of each board
	nodes   int               // boards of nodes, which come first
	sinks   []func(hal.Event) // by board
	after   func(sim.BoardID) // looks at a board on which something has happened; may be nil
	born    time.Time
	wake    chan struct{} // something earlier is due
}

func (c *clockwork) now() time.Duration { return time.Since(c.born) }

// told is an event on its way to a node, after the lock is given back.
type told struct {
	sink func(hal.Event)
	ev   hal.Event
}

// advance brings the world to now, appends what its nodes must be told, and
// says when it is due next. The lock is held.
func (c *clockwork) advance(now time.Duration, out []told) ([]told, time.Duration) {
	for {
		at, ok := c.world.Next()
		if !ok || at > now {
			if now > c.world.Now() {
				c.world.AdvanceTo(now)
			}
			if !ok {
				at = agent.Never
			}
			return out, at
		}
		board, ev, visible := c.world.Step()
		if c.after != nil {
			c.after(board)
		}
		if visible && c.sinks[board] != nil {
			out = append(out, told{c.sinks[board], ev})
		}
	}
}

// run steps the world as it becomes due. Events are told by this goroutine
// alone, so that they stay in order.
func (c *clockwork) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var out []told
	for {
		c.mu.Lock()
		var next time.Duration
		out, next = c.advance(c.now(), out[:0])
		c.mu.Unlock()
		for _, t := range out {
			t.sink(t.ev)
		}
		wait := time.Hour
		if next != agent.Never {
			wait = min(wait, next-c.now())
		}
		timer.Reset(max(wait, 0))
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		case <-timer.C:
		}
	}
}

// change does something to the world at the time it is now. What was due
// before is left to run, which catches up first.
func (c *clockwork) change(do func(at time.Duration) error) error {
	c.mu.Lock()
	err := do(max(c.world.Now(), c.now()))
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return err
}

func (c *clockwork) power(id sim.BoardID) {
	_ = c.change(func(time.Duration) error {
		c.world.SetPower(id, true)
		return nil
	})
}

func (c *clockwork) open(id sim.BoardID, events func(hal.Event)) *wallBoard {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sinks[id] = events
	return &wallBoard{c, id}
}

// wallBoard is one board of a clockwork: an agent's hardware.
type wallBoard struct {
	c  *clockwork
	id sim.BoardID
}

func (b *wallBoard) Submit(bus hal.BusID, op *hal.Op) error {
	return b.c.change(func(at time.Duration) error { return b.c.world.Submit(at, b.id, bus, op) })
}

func (b *wallBoard) Level(line hal.LineID) (bool, error) {
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	return b.c.world.Level(b.id, line), nil
}

func (b *wallBoard) Now() time.Duration { return b.c.now() }

// Close takes the agent away and leaves the board as it is.
func (b *wallBoard) Close() error {
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	b.c.sinks[b.id] = nil
	return nil
}
