package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"ringlight/agent"
	"ringlight/hal"
	"ringlight/mzi/detmath"
	"ringlight/ocs"
	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/proto/limit"
	"ringlight/proto/mqtt"
	"ringlight/sim"
	"ringlight/sim/fleet"
	"ringlight/sim/solo"
)

// ClusterConfig says which simulated nodes and optical switches run against
// which broker.
type ClusterConfig struct {
	Fabric   *fabric.Fabric
	Modules  int // of a bundle
	Seed     uint64
	Health   time.Duration
	Lock     ocs.LockMode                      // of every node's optics
	Broker   mqtt.Config                       // client id and will are filled in for every agent
	Guard    func(proto.NodeID) (Guard, error) // of an agent's link; nil: none has one
	State    string                            // folder of the switches' journals, one each; "": none
	Progress io.Writer                         // of the calibration; nil: none
	Log      *slog.Logger
	Control  net.Listener // through which boards lose their power and get it back; nil: they do not
	Ready    func()       // is called when all agents run
	// Ended is given the boards' own record when all agents have ended.
	Ended func(LightRecord)
	// Failed is called when an agent ends by itself; nil: nobody asks.
	Failed func()
	// Watch looks at the light after whatever happens on a board, and with board -1 when
	// nothing is due, and again when the time that it then returned has passed; under
	// the world's lock. nil: nobody looks.
	Watch func(w *sim.World, board sim.BoardID) (again time.Duration)
}

// LockAs sets the lock by its name in an agent's configuration, or knows none of that name.
func (c *ClusterConfig) LockAs(name string) (known bool) {
	c.Lock, known = ocs.LockModes[name]
	return known
}

// Guard is what stands at an agent's link, nil: nothing, what that makes the agent
// capable of, and its own pair for the broker; "": that of all.
type Guard struct {
	mqtt.Guard
	Features          proto.Features
	CertFile, KeyFile string
}

// LightRecord is what the boards themselves say of their light, whatever
// became of agents, broker and planner.
type LightRecord struct {
	Nodes       int           `json:"nodes"`
	PathsLit    int           `json:"paths_lit"`
	CircuitsLit int           `json:"circuits_lit,omitempty"` // of optical switches
	SinceChange time.Duration `json:"-"`                      // how long ago any light changed
	SinceMillis int64         `json:"since_last_change_ms"`
	CPUMillis   int64         `json:"cpu_ms"` // of this process
	// How long its threads waited for a processor, and how often they had one.
	WaitedMicros int64 `json:"waited_us"`
	Turns        int64 `json:"turns"`
	// Paths is every path of the nodes, so that a finder of a change can name it.
	Paths []PathLight `json:"-"`
}

// PathLight is the light of one path of a node.
type PathLight struct {
	Node        proto.NodeID
	Bundle      proto.BundleID
	Path        proto.Path
	Lit         bool
	SinceChange time.Duration // how long ago it came or went
}

// Cluster is the nodes and the optical switches of a fabric on simulated
// boards, with the production agents in real time. All boards are in one world
// whose time goes with the wall; they keep their light whatever becomes of
// agents, broker and planner.
type Cluster struct {
	cfg      ClusterConfig
	clock    solo.Wall
	circuits *circuitLight                     // nil: the fabric has no switches
	devices  []*device                         // nodes, then switches; their boards in the same order
	sinks    []atomic.Pointer[func(hal.Event)] // by board
	all      sync.WaitGroup
	ctx      context.Context // of those that are started anew

	mu   sync.Mutex
	errs []error
}

// device is a node or a switch.
type device struct {
	what    string // node or switch
	n       int    // among its kind
	board   sim.BoardID
	agent   agent.Config // of every process of its agent
	journal string       // "": none

	life *life // nil: its agent is dead
}

// life is one process of an agent.
type life struct {
	link  *mqtt.Link
	stop  context.CancelFunc
	ended chan struct{}
}

// Agents runs a cluster until ctx ends or an agent fails.
func Agents(ctx context.Context, cfg ClusterConfig) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cfg.Failed = cancel
	c, err := StartCluster(ctx, cfg)
	switch {
	case err != nil:
		cancel()
	case cfg.Ready != nil && ctx.Err() == nil:
		cfg.Ready()
	}
	if cfg.Control != nil && err == nil {
		go control(cfg.Control, c.obey)
	}
	if c == nil {
		return err
	}
	err = errors.Join(err, c.Wait())
	if cfg.Ended != nil {
		cfg.Ended(c.Light())
	}
	return err
}

// StartCluster starts an agent for every node and every switch of a fabric;
// they end with ctx. What has started when it fails is returned too.
func StartCluster(ctx context.Context, cfg ClusterConfig) (*Cluster, error) {
	cfg.Log = limit.Logger(cfg.Log)
	c := &Cluster{cfg: cfg, ctx: ctx}
	c.clock.World, c.clock.Told = sim.NewWorld(sim.WorldConfig{Seed: cfg.Seed}), c.told
	c.clock.Start()
	if cfg.Watch != nil {
		c.clock.Idle = func() time.Duration { return cfg.Watch(c.clock.World, -1) }
	}
	c.clock.Stepped = func(board sim.BoardID) {
		if c.circuits != nil {
			c.circuits.look(board)
		}
		if cfg.Watch != nil {
			cfg.Watch(c.clock.World, board)
		}
	}
	if err := c.buildNodes(ctx); err != nil {
		return nil, err
	}
	if err := c.buildSwitches(ctx); err != nil {
		return nil, err
	}
	c.sinks = make([]atomic.Pointer[func(hal.Event)], len(c.devices))
	c.all.Go(func() { c.clock.Run(ctx) })
	for _, d := range c.devices {
		if err := c.Revive(ctx, d.agent.Node); err != nil {
			return c, err
		}
	}
	return c, nil
}

func (c *Cluster) add(d device) {
	d.agent.Fabric, d.agent.Software = c.cfg.Fabric.Name, "ringlight ocs-sim"
	d.agent.Seed, d.agent.HealthPeriod, d.agent.Lock.Mode = c.cfg.Seed, c.cfg.Health, c.cfg.Lock
	c.devices = append(c.devices, &d)
}

// optics draws and calibrates the modules that boards are made of.
func (c *Cluster) optics(ctx context.Context) (*fleet.Optics, error) {
	b, spread, err := calibrate(ctx, nil, c.cfg.Seed, catalogueSize, progressTo(c.cfg.Progress, "modules calibrated"))
	if err == nil {
		c.cfg.Log.Info("optics calibrated", "modules", catalogueSize, "board_time_max", spread.max)
	}
	return b, err
}

// buildNodes puts the nodes' boards into the world, calibrated.
func (c *Cluster) buildNodes(ctx context.Context) error {
	if c.cfg.Fabric.Nodes == 0 {
		return nil
	}
	b, err := c.optics(ctx)
	if err != nil {
		return err
	}
	board, calibrations, err := b.Build(c.clock.World, c.cfg.Fabric, c.cfg.Modules, c.cfg.Seed)
	if err != nil {
		return err
	}
	for n := range calibrations {
		c.clock.World.SetPower(sim.BoardID(n), true)
		c.add(device{what: "node", n: n, board: sim.BoardID(n),
			agent: agent.Config{Node: proto.NodeID(n), Board: board, Calibrations: calibrations[n]}})
	}
	return nil
}

// buildSwitches puts the switches' boards into the world.
func (c *Cluster) buildSwitches(ctx context.Context) error {
	if c.cfg.Fabric.Core == nil {
		return nil
	}
	m, err := fleet.BuildMirrors(c.clock.World, c.cfg.Fabric.Core, c.cfg.Seed)
	if err != nil {
		return err
	}
	if c.cfg.Fabric.Core.Direct != nil {
		b, err := c.optics(ctx)
		if err != nil {
			return err
		}
		if err := m.AddServers(c.clock.World, c.cfg.Fabric.Core, b, c.cfg.Modules, c.cfg.Seed); err != nil {
			return err
		}
	}
	c.circuits = newCircuitLight(&c.clock, m)
	for i := range m.Switches() {
		d := device{what: "switch", n: i, board: m.ID(i), agent: agent.Config{Node: proto.FirstSwitch + proto.NodeID(i)}}
		m.Agent(i, &d.agent)
		if c.cfg.State != "" {
			d.journal = filepath.Join(c.cfg.State, fmt.Sprintf("switch-%d", i))
		}
		c.add(d)
	}
	return nil
}

// Do does something to a board, at the time it is now.
func (c *Cluster) Do(id proto.NodeID, f func(w *sim.World, board sim.BoardID) error) error {
	board := c.device(id).board
	return c.clock.Do(func(time.Duration) error {
		err := f(c.clock.World, board)
		c.clock.Stepped(board)
		return err
	})
}

func (c *Cluster) device(id proto.NodeID) *device {
	if id >= proto.FirstSwitch {
		return c.devices[c.cfg.Fabric.Nodes+int(id-proto.FirstSwitch)]
	}
	return c.devices[id]
}

// Revive starts a dead agent from its journal.
func (c *Cluster) Revive(ctx context.Context, id proto.NodeID) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.device(id)
	if d.life != nil {
		return nil
	}
	cfg := d.agent
	cfg.Session = proto.Session(detmath.Hash(c.cfg.Seed, uint64(id), uint64(time.Now().UnixNano())))
	cfg.Boot = uint64(cfg.Session)
	to := c.cfg.Broker
	if c.cfg.Guard != nil {
		g, err := c.cfg.Guard(id)
		if err != nil {
			return err
		}
		if g.CertFile != "" {
			to.CertFile, to.KeyFile = g.CertFile, g.KeyFile
		}
		if cfg.Features = g.Features; g.Guard != nil {
			to.Guard, to.Subscriptions = g.Guard, []string{proto.Topics{Fabric: c.cfg.Fabric.Name}.Trust()}
		}
	}
	link, err := dial(to, c.cfg.Fabric.Name, id, cfg.Session)
	if err != nil {
		return fmt.Errorf("live: %s %d: %w", d.what, d.n, err)
	}
	ctx, stop := context.WithCancel(ctx)
	l := &life{link: link, stop: stop, ended: make(chan struct{})}
	d.life = l
	c.all.Go(func() {
		defer close(l.ended)
		defer link.Close()
		err := agent.Run(ctx, agent.RunConfig{
			Agent: cfg,
			Open: func(events func(hal.Event)) (agent.Hardware, error) {
				c.sinks[d.board].Store(&events)
				return wallBoard{c, d.board}, nil
			},
			Link: link, Journal: d.journal, Log: c.cfg.Log.With(d.what, d.n),
			RecordBytes: -1, // many agents in one process
		})
		if err == nil || ctx.Err() != nil {
			return
		}
		c.mu.Lock()
		c.errs = append(c.errs, fmt.Errorf("live: %s %d: %w", d.what, d.n, err))
		c.mu.Unlock()
		if c.cfg.Failed != nil {
			c.cfg.Failed()
		}
	})
	return nil
}

// Kill ends an agent as a crash does: its connection breaks, and what was not
// on disk is lost. Its board keeps its light.
func (c *Cluster) Kill(id proto.NodeID) {
	c.mu.Lock()
	d := c.device(id)
	l := d.life
	d.life = nil
	c.mu.Unlock()
	if l == nil {
		return
	}
	l.link.Abandon()
	l.stop()
	<-l.ended
}

// Wait waits until all agents have ended, and says what went wrong.
func (c *Cluster) Wait() error {
	c.all.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.errs...)
}

// Light reads the boards' light.
func (c *Cluster) Light() LightRecord {
	r := LightRecord{Nodes: c.cfg.Fabric.Nodes}
	w, last := c.clock.World, time.Duration(0)
	c.clock.Lock()
	now := c.clock.Now()
	for n := range r.Nodes {
		for b := range c.devices[n].agent.Board.Bundles {
			for path := range hal.NumLOS {
				at, lit := w.LastChange(sim.Port{Board: sim.BoardID(n), Bundle: b, Path: path})
				last = max(last, at)
				if lit {
					r.PathsLit++
				}
				r.Paths = append(r.Paths, PathLight{Node: proto.NodeID(n), Bundle: proto.BundleID(b), Path: proto.Loopback + proto.Path(path), Lit: lit, SinceChange: now - at})
			}
		}
	}
	c.clock.Unlock()
	if c.circuits != nil {
		for i := range c.circuits.guarded {
			r.CircuitsLit += len(c.circuits.Lit(i))
		}
	}
	r.SinceChange = now - last
	r.SinceMillis = r.SinceChange.Milliseconds()
	r.WaitedMicros, r.Turns = waited()
	var use syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &use) == nil {
		r.CPUMillis = (time.Duration(use.Utime.Nano()) + time.Duration(use.Stime.Nano())).Milliseconds()
	}
	return r
}

// told hands an event of a board to its agent, if it lives.
func (c *Cluster) told(board sim.BoardID, ev hal.Event) {
	if sink := c.sinks[board].Load(); sink != nil {
		(*sink)(ev)
	}
}

// wallBoard is one board of a cluster: an agent's hardware.
type wallBoard struct {
	c  *Cluster
	id sim.BoardID
}

func (b wallBoard) Submit(bus hal.BusID, op *hal.Op) error {
	return b.c.clock.Do(func(at time.Duration) error { return b.c.clock.World.Submit(at, b.id, bus, op) })
}

func (b wallBoard) Level(line hal.LineID) (bool, error) {
	b.c.clock.Lock()
	defer b.c.clock.Unlock()
	return b.c.clock.World.Level(b.id, line), nil
}

func (b wallBoard) Now() time.Duration { return b.c.clock.Now() }

// Close takes the agent away and leaves the board as it is.
func (b wallBoard) Close() error {
	b.c.sinks[b.id].Store(nil)
	return nil
}
