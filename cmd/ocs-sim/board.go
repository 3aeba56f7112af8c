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
	"ringlight/sim/live"
	"ringlight/sim/solo"
)

// boardConfig is the `board` object of an agent's configuration with kind sim, and
// fibres to boards of other processes. Of it calibrated, direct, factory and the
// alarms are the agent's to see to.
type boardConfig struct {
	boardfile.Config
	solo.Keys
	Leads []string `json:"leads"`
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

func readBoard(file string) (cfg solo.Config, leads []live.Lead, err error) {
	c := boardConfig{Config: boardfile.DefaultConfig(), Keys: solo.DefaultKeys()}
	c.Kind = "sim"
	if file != "" {
		data, err := read(file)
		if err != nil {
			return cfg, nil, err
		}
		if err := decodeBoard(data, &c); err != nil {
			return cfg, nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	b, err := c.layout()
	if err == nil {
		cfg, err = c.Keys.Config(&b, "")
	}
	for i, s := range c.Leads {
		l, wrong := live.ParseLead(s)
		if leads = append(leads, l); wrong != nil && err == nil {
			err = fmt.Errorf("board.leads[%d]: %w", i, wrong)
		}
	}
	return cfg, leads, err
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

// layout is the board as data. It refuses what is of another kind.
func (c *boardConfig) layout() (b hal.Board, err error) {
	for _, other := range []struct {
		key, kind string
		there     bool
	}{
		{"buses", "linux", len(c.Buses) > 0}, {"lines", "linux", len(c.Lines) > 0}, {"path", "socket", c.Path != ""},
		{"box", "box", c.Box != boardfile.Box{}}, {"protocol", "box", c.Protocol != ""}, {"address", "box", c.Address != ""}, {"dialect", "box", c.Dialect != ""},
	} {
		if other.there {
			return b, invalid("board."+other.key, "none", "is of kind %s, and the board is simulated", other.kind)
		}
	}
	if c.Kind != "sim" {
		return b, invalid("board.kind", "sim", "%q", c.Kind)
	}
	if c.File != "" {
		raw, err := os.ReadFile(c.File)
		if err != nil {
			return b, invalid("board.file", "a board file", "%v", err)
		}
		if _, b, err = boardfile.Parse(raw); err != nil {
			return b, fmt.Errorf("board.file: %s: %w", c.File, err)
		}
		c.Take(&b)
	}
	if err := c.Check(); err != nil {
		return b, err
	}
	return c.Layout()
}

func invalid(field, limit, format string, args ...any) error {
	return &proto.Error{Code: proto.Invalid, Field: field, Limit: limit, Reason: fmt.Sprintf(format, args...)}
}
