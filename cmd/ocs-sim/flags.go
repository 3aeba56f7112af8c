package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"

	"ringlight/cmd/cli"
	"ringlight/proto"
	"ringlight/sim"
	"ringlight/sim/study"
	"ringlight/sim/trace"
)

// logger writes what goes wrong to stderr, with verbose state changes too: here
// both are the story itself.
func logger(t cli.Terminal, verbose bool) *slog.Logger {
	level := slog.LevelError
	if verbose {
		level = slog.LevelInfo
	}
	return slog.New(slog.NewTextHandler(t.Err, &slog.HandlerOptions{Level: level}))
}

// output is how a command tells what it did.
type output struct {
	JSON    bool `flag:"json" usage:"print the result as JSON and nothing else"`
	Verbose bool `flag:"v" usage:"log state changes too"`
}

func outputFlags(fs *flag.FlagSet) *output {
	var o output
	cli.Options(fs, &o)
	return &o
}

// progress is where long work tells how far it is: a terminal, and nobody who
// reads JSON or a file.
func progress(t cli.Terminal, asJSON bool) io.Writer {
	if asJSON || !cli.IsTerminal(t.Err) {
		return io.Discard
	}
	return t.Err
}

// open reads a file, "-" is stdin.
func open(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(os.Stdin), nil
	}
	return os.Open(name)
}

// read reads all of a file.
func read(name string) ([]byte, error) {
	text, _, err := cli.ReadBounded(os.Stdin, name, math.MaxInt64-1)
	return text, err
}

// readTrace reads a fault trace; "": none.
func readTrace(name string) (s study.Source, err error) {
	if name == "" {
		return s, nil
	}
	f, err := open(name)
	if err != nil {
		return s, cli.AsUsage(fmt.Errorf("trace: %w", err))
	}
	defer f.Close()
	if s.Trace, err = trace.Read(f); err != nil {
		return s, cli.AsUsage(fmt.Errorf("%s: %w", name, err))
	}
	s.Name = filepath.Base(name)
	return s, nil
}

func physicsFlag(fs *flag.FlagSet) *string {
	return fs.String("physics", "", "`FILE` with what the boards' optics, converters and calls are like: the object board.physics of an agent's configuration; none: the default board")
}

// readPhysics reads what is simulated; nil: as always.
func readPhysics(name string) (*sim.Physics, error) {
	if name == "" {
		return nil, nil
	}
	ph := sim.DefaultPhysics()
	if err := readFile("physics", name, &ph); err != nil {
		return nil, err
	}
	return &ph, checkPhysics("physics.", &ph)
}

func costsFlag(fs *flag.FlagSet) *string {
	return fs.String("costs", "", "`FILE` with measured latencies of the boards' computers, quantile by quantile; none: those of docs/board.md")
}

// readCosts reads what calls cost; without a file those of the default board.
func readCosts(name string) (c sim.Costs, err error) {
	if name == "" {
		return sim.DefaultCosts(), nil
	}
	var t sim.CostTable
	if err := readFile("costs", name, &t); err != nil {
		return c, err
	}
	var errs []error
	c = t.Costs(func(key, have, want string) { errs = append(errs, invalid("costs."+key, want, "%s", have)) })
	return c, errors.Join(errs...)
}

// readFile reads a file that a person has written.
func readFile(what, name string, v any) error {
	data, err := read(name)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if err := proto.DecodeFile(data, v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// checkPhysics joins what is out of its span.
func checkPhysics(prefix string, ph *sim.Physics) error {
	var errs []error
	ph.Validate(func(key string, value float64, low, high string) {
		errs = append(errs, invalid(prefix+key, low+" to "+high, "%v is out of range", value))
	})
	return errors.Join(errs...)
}
