package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"

	"ringlight/cmd/cli"
	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/sim"
	"ringlight/sim/trace"
)

// newFlags makes a flag set whose help ends with an example.
func newFlags(name, example string) *flag.FlagSet {
	fs := flag.NewFlagSet("ocs-sim "+name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {
		out := fs.Output()
		fmt.Fprintf(out, "usage: ocs-sim %s [flags]\n", name)
		fs.PrintDefaults()
		fmt.Fprintf(out, "example: %s\n", example)
	}
	return fs
}

// parse reads the flags; nothing may follow them.
func parse(fs *flag.FlagSet, args []string) error {
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fs.SetOutput(os.Stdout)
		fs.Usage()
		return err
	case err != nil:
		return usageError{err}
	}
	if fs.NArg() > 0 {
		return usagef("%s: unexpected %q", fs.Name(), fs.Arg(0))
	}
	return nil
}

// failing is how a command with -json ends: a failure is told on stdout as well.
func failing(asJSON *bool) func(error) error {
	return func(err error) error {
		if *asJSON && err != nil && err != flag.ErrHelp {
			return failJSON(err)
		}
		return err
	}
}

// logger writes what goes wrong to stderr, with verbose state changes too: here
// both are the story itself.
func logger(verbose bool) *slog.Logger {
	level := slog.LevelError
	if verbose {
		level = slog.LevelInfo
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
}

// progress is where long work tells how far it is: a terminal, and nobody who
// reads JSON or a file.
func progress(asJSON bool) io.Writer {
	if asJSON || !cli.IsTerminal(os.Stderr) {
		return io.Discard
	}
	return os.Stderr
}

// failJSON tells a failure on stdout as well, for those who asked for JSON.
func failJSON(err error) error {
	code := "failed"
	var usage usageError
	if errors.As(err, &usage) {
		code = "usage"
	}
	type failure struct {
		Code    string `json:"code"`
		Field   string `json:"field"`
		Limit   string `json:"limit"`
		Message string `json:"message"`
	}
	f := failure{Code: code, Message: err.Error()}
	var field *proto.Error
	var described *fabric.Error
	switch {
	case errors.As(err, &field):
		f.Field, f.Limit = field.Field, field.Limit
	case errors.As(err, &described):
		f.Field, f.Limit = described.Field, described.Limit
	}
	out := struct {
		Error failure `json:"error"`
	}{f}
	if e := json.NewEncoder(os.Stdout).Encode(out); e != nil {
		return errors.Join(err, e)
	}
	return err
}

// open reads a file, "-" is stdin.
func open(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(os.Stdin), nil
	}
	return os.Open(name)
}

// readTrace reads a fault trace.
func readTrace(name string) (*trace.Trace, error) {
	f, err := open(name)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	defer f.Close()
	t, err := trace.Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
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
	f, err := open(name)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	defer f.Close()
	data, err := io.ReadAll(f)
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
