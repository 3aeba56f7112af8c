package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"ringlight/agent"
	"ringlight/agent/bench"
	"ringlight/cmd/cli"
	"ringlight/hal"
	"ringlight/hal/boardfile"
	"ringlight/ocs"
	"ringlight/proto"
	"ringlight/sim/solo"
)

// errBringUp is a board that did not pass.
var errBringUp = errors.New("the board did not pass")

// errAgentRuns is a board that somebody else has.
var errAgentRuns = errors.New("an agent runs on this board; stop it first")

// bringup looks at everything of a board, its light, and its fibres.
func bringup(_ context.Context, args []string) error {
	fs, common := newFlags("bringup", "look at every chip, heater, laser and fibre of a board that carries nothing",
		"ocs-agent bringup -config node7.json -calibrate -html node7.html -expect 0/external1-1/external2")
	page := fs.String("html", "", "write one self-contained page with plots to this `file`")
	calibrate := fs.Bool("calibrate", false, "calibrate bundles that are not; a simulated board's always are")
	force := fs.Bool("force", false, "go on where a bundle is not dark: its light goes")
	var texts []string
	fs.Func("expect", "a `fibre` that must be there, as in 0/external1-1/external2; repeat it. None: the map is only shown;\n"+
		"\"none\": no fibre must be there", func(s string) error {
		texts = append(texts, s)
		return nil
	})
	cfg, err := common.alone(args)
	if err != nil {
		return err
	}
	b := bench.BringUp{Origin: cfg.origin(time.Now()), Calibrate: *calibrate || cfg.Board.Kind == "sim", Force: *force,
		Say: func(text string) { fmt.Fprintln(os.Stderr, text, "...") }}
	for _, text := range texts {
		b.Expected = append(make([]bench.Fibre, 0, 1), b.Expected...)
		if text == "none" {
			continue
		}
		f, err := bench.ParseFibre(text, proto.NodeID(cfg.Node))
		if err != nil {
			return cli.AsUsage(err)
		}
		b.Expected = append(b.Expected, f)
	}
	r, err := cfg.bringup(b)
	if err != nil {
		if errors.Is(err, errAgentRuns) || errors.Is(err, bench.ErrInService) || errors.Is(err, hal.ErrUnsupported) {
			err = cli.AsUsage(err)
		}
		return err
	}
	if *page != "" {
		if err := writePage(*page, r); err != nil {
			return err
		}
	}
	err = answer(common.json, r, func() { r.Table(os.Stdout) })
	if err == nil && r.Failed > 0 {
		err = cli.Answered(errBringUp)
	}
	return err
}

func (c *Config) origin(now time.Time) bench.Origin {
	o := bench.Origin{Software: "ringlight " + version, Date: now.Format(time.RFC3339), Simulated: c.Board.Kind == "sim"}
	switch c.Board.Kind {
	case "sim":
		o.Board = fmt.Sprintf("simulated, seed %d", c.Board.Seed)
	case "socket":
		o.Board = "behind the socket " + c.Board.Path + ", which may be a simulator's"
	default:
		o.Board = "hardware of this machine, kind " + c.Board.Kind
	}
	if c.Board.File != "" {
		o.Board += ", board file " + c.Board.File
	}
	return o
}

func writePage(file string, r *bench.Report) error {
	f, err := createPrivate(file)
	if err != nil {
		return cli.AsUsage(err)
	}
	return errors.Join(r.Page(f), f.Close())
}

// bringup opens the board, a simulated one on its virtual clock.
func (c *Config) bringup(b bench.BringUp) (*bench.Report, error) {
	if _, err := c.askSocket(agent.Question{Verb: "status"}); !errors.Is(err, agent.ErrNoAgent) {
		return nil, errAgentRuns
	}
	if c.Board.Kind == "sim" && c.Board.ModuleKind == boardfile.CMIS { // such modules leave their maker calibrated
		if err := c.calibrateSimulated(context.Background(), c.logger().Logger); err != nil {
			return nil, err
		}
	}
	a, err := c.agentConfig()
	if err != nil {
		return nil, err
	}
	var keep error
	b.Calibrated = func(_, bundle int, cal *ocs.Calibration) {
		keep = errors.Join(keep, c.keepCalibration(proto.BundleID(bundle), cal))
	}
	board, shut, err := c.benchBoard(&a)
	if err != nil {
		return nil, err
	}
	r, err := b.Run(bench.Alone(board), []bench.Station{{Node: a.Node, Board: a.Board, Calibrations: a.Calibrations, Seed: a.Seed}})
	return r, errors.Join(err, keep, shut())
}

// benchBoard opens the board for a bench.
func (c *Config) benchBoard(a *agent.Config) (bench.Board, func() error, error) {
	if c.Board.Kind == "sim" {
		s, err := c.Board.Keys.Config(a.Board, c.State)
		if err != nil {
			return nil, nil, cli.AsUsage(err)
		}
		board, err := solo.New(s)
		if err != nil {
			return nil, nil, cli.AsUsage(err)
		}
		return board, board.Close, nil
	}
	w, err := openWaiting(c.open(a.Board))
	if err != nil {
		return nil, nil, err
	}
	return w, w.Close, nil
}
