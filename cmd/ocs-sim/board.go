package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strings"

	"ringlight/cmd/cli"
	"ringlight/hal"
	"ringlight/hal/boardfile"
	"ringlight/proto"
	"ringlight/sim"
	"ringlight/sim/live"
	"ringlight/sim/solo"
)

// boardConfig is the `board` object of an agent's configuration with kind sim.
type boardConfig struct {
	Kind       string      `json:"kind"`
	File       string      `json:"file"` // board file; the five below are then its own
	GPUs       int         `json:"gpus"`
	Bundles    int         `json:"bundles"`
	Ports      int         `json:"ports"` // of a board of mirrors, on either side; 0: it is a node's
	Modules    int         `json:"modules"`
	ModuleKind string      `json:"module_kind"`
	Mux        bool        `json:"mux"`
	SlowMCI    bool        `json:"slow_mci"`
	Seed       uint64      `json:"seed"`
	Physics    sim.Physics `json:"physics"`
	Calibrated bool        `json:"calibrated"` // the agent's to see to; a board is never born calibrated
	Faults     []string    `json:"faults"`
	Fibres     []string    `json:"fibres"`
	Leads      []string    `json:"leads"` // fibres to boards of other processes
}

func board(ctx context.Context, args []string, t cli.Terminal) error {
	fs := cli.NewFlags("board")
	file := fs.String("config", "", "the board as JSON: the `board` object of an agent's configuration, or all of it; - is stdin; none: the default board")
	listen := fs.String("listen", "", "where to serve it, unix:`PATH`")
	physics := physicsFlag(fs)
	fibres := fs.String("fibres", "", "`host:port` that the light of board.leads comes to, over UDP")
	control := fs.String("control", "", "where to read its record and switch its supply, unix:`PATH`; a line a connection: record, power on, power off, cut PORT, mend PORT")
	factory := fs.String("factory", "", "`file` for what the maker of a board of mirrors measured, board.factory of its agent")
	state := fs.String("state", "", "folder that keeps the EEPROMs; none: they are forgotten")
	if _, err := cli.ParseNone(fs, args, help("board")); err != nil {
		return err
	}
	cfg, leads, err := readBoard(*file)
	if err != nil {
		return cli.AsUsage(err)
	}
	if *physics != "" {
		if cfg.Physics, err = readPhysics(*physics); err != nil {
			return cli.AsUsage(err)
		}
	}
	cfg.State = *state
	if len(leads) > 0 && *fibres == "" {
		return cli.AsUsage(invalid("fibres", "host:port", "the board has %d fibres that lead outside", len(leads)))
	}
	if *factory != "" && cfg.Board.Mirrors == nil {
		return cli.AsUsage(invalid("factory", "a board with ports", "the board has no mirrors"))
	}
	l, err := serveAt("listen", *listen)
	if err != nil {
		return err
	}
	o := live.Outside{Fibres: *fibres, Leads: leads, Factory: *factory}
	if *control != "" {
		if o.Control, err = serveAt("control", *control); err != nil {
			_ = l.Close()
			return err
		}
	}
	if m := cfg.Board.Mirrors; m != nil {
		fmt.Fprintf(t.Out, "board with mirrors of %d ports on %s\n", m.Ports, *listen)
	} else {
		fmt.Fprintf(t.Out, "board with %d bundles of %d modules on %s\n", len(cfg.Board.Bundles), len(cfg.Board.Bundles[0].Modules), *listen)
	}
	return live.Board(ctx, cfg, l, o)
}

// serveAt listens on a unix socket that nobody serves.
func serveAt(field, at string) (net.Listener, error) {
	path, ok := strings.CutPrefix(at, "unix:")
	if !ok || path == "" {
		return nil, cli.AsUsage(invalid(field, "unix:PATH", "%q", at))
	}
	// A socket that nobody serves is left from a killed process.
	if c, err := net.Dial("unix", path); err == nil {
		_ = c.Close()
		return nil, cli.AsUsage(invalid(field, "a path that is free", "%s is being served", path))
	} else if info, err := os.Stat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
		_ = os.Remove(path)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, cli.AsUsage(err)
	}
	return l, nil
}

func readBoard(file string) (solo.Config, []live.Lead, error) {
	c := boardConfig{Kind: "sim", GPUs: 4, Bundles: 2, Modules: hal.MaxModules, Seed: 1, Physics: sim.DefaultPhysics()}
	if file != "" {
		data, err := read(file)
		if err != nil {
			return solo.Config{}, nil, err
		}
		if err := decodeBoard(data, &c); err != nil {
			return solo.Config{}, nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	cfg, err := c.solo()
	if err != nil {
		return cfg, nil, err
	}
	var leads []live.Lead
	for i, s := range c.Leads {
		l, err := live.ParseLead(s)
		if err != nil {
			return cfg, nil, fmt.Errorf("board.leads[%d]: %w", i, err)
		}
		leads = append(leads, l)
	}
	return cfg, leads, nil
}

// decodeBoard reads a board, strictly; of an agent's whole configuration only
// the board counts here.
func decodeBoard(data []byte, c *boardConfig) error {
	var whole struct {
		Board json.RawMessage `json:"board"`
	}
	if json.Unmarshal(data, &whole) != nil {
		return proto.DecodeFile(data, new(any)) // with the line
	}
	if at := bytes.Index(data, whole.Board); len(whole.Board) > 0 {
		data = append(bytes.Repeat([]byte("\n"), bytes.Count(data[:at], []byte("\n"))), whole.Board...)
	}
	return proto.DecodeFile(data, c)
}

// layout is the board as data.
func (c *boardConfig) layout() (hal.Board, error) {
	if c.Ports < 0 || c.Ports > hal.MaxCrossbarPorts {
		return hal.Board{}, invalid("board.ports", fmt.Sprintf("0 to %d", hal.MaxCrossbarPorts), "%d", c.Ports)
	}
	if c.Ports > 0 {
		return hal.DefaultMEMS(c.Ports)
	}
	if c.File != "" {
		raw, err := os.ReadFile(c.File)
		if err != nil {
			return hal.Board{}, invalid("board.file", "a board file", "%v", err)
		}
		_, b, err := boardfile.Parse(raw)
		return b, err
	}
	switch c.ModuleKind {
	case "", "chips":
		return boardfile.Default(c.GPUs, c.Bundles, c.Modules)
	case "cmis":
		return boardfile.DefaultCMIS(c.GPUs, c.Bundles, c.Modules, c.Mux)
	}
	return hal.Board{}, invalid("board.module_kind", "chips or cmis", "%q", c.ModuleKind)
}

func (c *boardConfig) solo() (solo.Config, error) {
	if c.Kind != "sim" {
		return solo.Config{}, invalid("board.kind", "sim", "%q", c.Kind)
	}
	b, err := c.layout()
	if err != nil {
		return solo.Config{}, err
	}
	if err := checkPhysics("board.physics.", &c.Physics); err != nil {
		return solo.Config{}, err
	}
	cfg := solo.Config{Board: &b, Seed: c.Seed, Physics: &c.Physics}
	if c.SlowMCI {
		cfg.MCI = sim.SlowMCITiming()
	}
	for i, s := range c.Faults {
		f, err := sim.ParseFault(s)
		if err != nil {
			return cfg, fmt.Errorf("board.faults[%d]: %w", i, err)
		}
		cfg.Faults = append(cfg.Faults, f)
	}
	for i, s := range c.Fibres {
		f, err := solo.ParseFibre(s)
		if err != nil {
			return cfg, fmt.Errorf("board.fibres[%d]: %w", i, err)
		}
		cfg.Fibres = append(cfg.Fibres, f)
	}
	return cfg, nil
}

func invalid(field, limit, format string, args ...any) error {
	return &proto.Error{Code: proto.Invalid, Field: field, Limit: limit, Reason: fmt.Sprintf(format, args...)}
}
