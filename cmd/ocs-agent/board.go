package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"ringlight/agent"
	"ringlight/cmd/cli"
	"ringlight/hal"
	"ringlight/hal/boardfile"
	"ringlight/hal/linux"
	"ringlight/hal/socket"
	"ringlight/ocs"
	"ringlight/proto"
	"ringlight/proto/guard"
	"ringlight/sim"
	"ringlight/sim/solo"
)

// modelledDecide is what a decision is said to take where the clock is
// virtual: docs/board.md.
var modelledDecide = sim.DefaultCosts().Decide

// agentConfig is the configuration in the agent's own terms.
func (c *Config) agentConfig() (agent.Config, error) {
	if err := c.Board.named(); err != nil {
		return agent.Config{}, err
	}
	board, err := c.Board.layout()
	if err != nil {
		return agent.Config{}, err
	}
	calibrations, damaged, err := agent.LoadCalibrations(c.State, len(board.Bundles))
	if err != nil {
		return agent.Config{}, err
	}
	for _, bad := range damaged {
		fmt.Fprintln(os.Stderr, "ocs-agent:", bad)
	}
	host, _ := os.Hostname() // "": the process alone
	cfg := agent.Config{Fabric: c.Fabric, Node: c.id(), Board: &board, Calibrations: calibrations,
		Session: proto.Session(random() | 1), Boot: bootID(), Software: "ringlight " + version, Host: fmt.Sprintf("%s process %d", host, os.Getpid()), Seed: c.Board.Seed,
		HealthPeriod: c.healthPeriod(), Lock: ocs.LockConfig{Mode: ocs.LockModes[c.Lock]},
		Features: guard.Features(guard.Mode(c.Seal), c.Reports == guard.SealedReports)}
	if c.Board.isSwitch() {
		err = c.switchConfig(&cfg)
	}
	return cfg, err
}

func random() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.BigEndian.Uint64(b[:])
}

// bootID names the boot of this machine; 0 where the kernel does not say.
func bootID() uint64 {
	raw, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return 0
	}
	d := proto.DigestOf(raw)
	return binary.BigEndian.Uint64(d[:8])
}

// open opens the board on the real clock.
func (c *Config) open(board *hal.Board) func(func(hal.Event)) (agent.Hardware, error) {
	return func(events func(hal.Event)) (agent.Hardware, error) {
		switch c.Board.Kind {
		case "linux", "box":
			return linux.Open(board, events)
		case "socket":
			return socket.Dial(c.Board.Path, events)
		}
		s, err := c.Board.Keys.Config(board, c.State)
		if err != nil {
			return nil, err
		}
		return solo.Open(s, events)
	}
}

// keepCalibration writes a new calibration to the state folder.
func (c *Config) keepCalibration(b proto.BundleID, cal *ocs.Calibration) error {
	return agent.SaveCalibration(c.State, b, cal.Encode())
}

// simBench is a simulated board on its virtual clock with an agent on it.
type simBench struct {
	*agent.Bench
	board *solo.Board
	keep  error
}

func (c *Config) bench() (*simBench, error) { return c.recordedBench(-1, nil) }

// recordedBench is a bench with health rounds, which hands out the blocks of
// its recording.
func (c *Config) recordedBench(health time.Duration, blocks func([]byte)) (*simBench, error) {
	if c.Board.ModuleKind == boardfile.CMIS { // such modules leave their maker calibrated
		if err := c.calibrateSimulated(context.Background(), c.logger().Logger); err != nil {
			return nil, err
		}
	}
	a, err := c.agentConfig()
	if err != nil {
		return nil, err
	}
	s, err := c.Board.Keys.Config(a.Board, c.State)
	if err != nil {
		return nil, cli.AsUsage(err)
	}
	b := &simBench{}
	if b.board, err = solo.New(s); err != nil {
		return nil, cli.AsUsage(err)
	}
	a.Decide = modelledDecide
	a.HealthPeriod = health
	if b.Bench, err = agent.NewBench(a, b.board, blocks); err != nil {
		return nil, err
	}
	b.Calibrated = func(id proto.BundleID, cal *ocs.Calibration) {
		if err := c.keepCalibration(id, cal); err != nil {
			b.keep = err
		}
	}
	return b, nil
}

func (b *simBench) close() error { return errors.Join(b.keep, b.board.Close()) }

// Patience on the board's clock.
const (
	calibratePatience = 10 * time.Minute
	pathPatience      = 5 * time.Second
)

// asker answers questions: the running agent, or a board opened for the
// purpose.
type asker struct {
	ask   func(q agent.Question) (*agent.Answer, error)
	close func() error
	bench *simBench // of a simulated board on its virtual clock, else nil
}

// asker finds the running agent; without one it opens the board itself, a
// simulated one on its virtual clock.
func (c *Config) asker(ctx context.Context) (*asker, error) {
	if _, err := c.askSocket(agent.Question{Verb: "status"}); errors.Is(err, agent.ErrHangs) {
		return nil, err
	} else if !errors.Is(err, agent.ErrNoAgent) {
		return &asker{ask: c.askSocket, close: func() error { return nil }}, nil
	}
	if err := c.Board.named(); err != nil {
		return nil, fmt.Errorf("no agent runs at %s, and %w", c.socketPath(), err)
	}
	if c.Board.Kind == "sim" {
		b, err := c.bench()
		if err != nil {
			return nil, err
		}
		b.Over = ctx.Err
		return &asker{bench: b, close: b.close, ask: func(q agent.Question) (*agent.Answer, error) {
			a, err := q.Ask()
			if err != nil {
				return nil, cli.AsUsage(err)
			}
			patience := pathPatience
			if a.Verb == agent.AskCalibrate {
				patience = calibratePatience
			}
			return b.Ask(a, patience)
		}}, nil
	}
	return c.askerOnHardware(ctx)
}

// askerOnHardware runs an agent without a network for as long as the verb
// takes.
func (c *Config) askerOnHardware(ctx context.Context) (*asker, error) {
	a, err := c.agentConfig()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- agent.Run(ctx, c.runConfig(a, nil)) }()
	for {
		if _, err := c.askSocket(agent.Question{Verb: "status"}); err == nil {
			return &asker{ask: c.askSocket, close: func() error { cancel(); return <-ended }}, nil
		}
		select {
		case err := <-ended:
			cancel()
			return nil, err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// askSocket asks the running agent.
func (c *Config) askSocket(q agent.Question) (*agent.Answer, error) {
	return agent.AskSocket(c.socketPath(), q)
}
