package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"ringlight/agent"
	"ringlight/proto"
)

// usageError is a command line or configuration that is not acceptable:
// nothing was attempted.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// common are the flags that every verb has.
type common struct {
	fs     *flag.FlagSet
	config string
	state  string
	board  string
	sim    bool
	json   bool
}

func newFlags(verb, what, example string) (*flag.FlagSet, *common) {
	c := &common{fs: flag.NewFlagSet("ocs-agent "+verb, flag.ContinueOnError)}
	fs := c.fs
	fs.SetOutput(io.Discard)
	fs.StringVar(&c.config, "config", "", "configuration `file`, JSON; - is stdin")
	fs.StringVar(&c.state, "state", "", "`folder` of journal, calibrations and socket; overrides the configuration")
	fs.StringVar(&c.board, "board", "", "board `file`; overrides board.file of the configuration")
	fs.BoolVar(&c.sim, "sim", false, "a simulated board; overrides board.kind of the configuration")
	fs.BoolVar(&c.json, "json", false, "print JSON")
	fs.Usage = func() {
		fmt.Fprintf(fs.Output(), "ocs-agent %s: %s\n", verb, what)
		fs.PrintDefaults()
		fmt.Fprintf(fs.Output(), "example: %s\n", example)
	}
	return fs, c
}

// parse reads flags; exactly words words may follow them.
func parse(fs *flag.FlagSet, args []string, words int) error {
	err := fs.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fs.SetOutput(os.Stdout)
		fs.Usage()
		return err
	}
	if err != nil {
		return usageError{err}
	}
	if fs.NArg() != words {
		return usagef("%s: %d arguments, want %d; -h explains", fs.Name(), fs.NArg(), words)
	}
	return nil
}

// wordsAndFlags parses flags that may stand before or after at most so many
// words.
func wordsAndFlags(fs *flag.FlagSet, args []string, most int) (words []string, err error) {
	for {
		switch err := fs.Parse(args); {
		case errors.Is(err, flag.ErrHelp):
			fs.SetOutput(os.Stdout)
			fs.Usage()
			return nil, err
		case err != nil:
			return nil, usageError{err}
		}
		args = fs.Args()
		for len(args) > 0 && len(words) < most && (args[0] == "" || args[0][0] != '-') {
			words, args = append(words, args[0]), args[1:]
		}
		switch {
		case len(args) == 0:
			return words, nil
		case args[0] == "" || args[0][0] != '-':
			return nil, usagef("%s: %q is one word too many; -h explains", fs.Name(), args[0])
		}
	}
}

// read is the configuration with what the flags say in its place, not yet looked
// through.
func (c *common) read() (Config, error) {
	cfg, err := readConfig(c.config)
	if err != nil {
		return cfg, err
	}
	if c.state != "" {
		cfg.State = c.state
	}
	if c.board != "" {
		cfg.Board.File = c.board
	}
	if c.sim {
		cfg.Board.Kind = "sim"
	}
	cfg.Board.settle()
	return cfg, cfg.Board.readBoard()
}

// load is the effective configuration.
func (c *common) load() (Config, error) {
	cfg, err := c.read()
	if err == nil {
		err = cfg.Validate()
	}
	if err != nil {
		return cfg, c.fail(usageError{err})
	}
	return cfg, nil
}

// createPrivate makes a file that nobody else may read; one that others may is
// narrowed.
func createPrivate(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() { // else a pipe, a terminal
		if err := f.Chmod(0o600); err != nil {
			f.Close()
			return nil, err
		}
	}
	return f, nil
}

// fail prints an error on stdout too for who asked for JSON.
func (c *common) fail(err error) error {
	if err == nil || !c.json {
		return err
	}
	out := struct {
		Error struct {
			Code    string `json:"code"`
			Field   string `json:"field"`
			Limit   string `json:"limit"`
			Message string `json:"message"`
		} `json:"error"`
	}{}
	out.Error.Code, out.Error.Message = "failed", err.Error()
	if errors.As(err, new(usageError)) {
		out.Error.Code = "usage"
	}
	var pe *proto.Error
	if errors.As(err, &pe) {
		out.Error.Code, out.Error.Field, out.Error.Limit, out.Error.Message = pe.Code.String(), pe.Field, pe.Limit, pe.Reason
	}
	if perr := printJSON(out); perr != nil {
		return errors.Join(err, perr)
	}
	return err
}

func printJSON(v any) error {
	enc := json.NewEncoder(os.Stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// answered turns a refusal of the agent into an error.
func answered(ans *agent.Answer, err error) (*agent.Answer, error) {
	if err == nil && ans.Err != nil {
		// A number of a bundle or a name that does not exist is the caller's.
		if ans.Err.Code == proto.NotFound || ans.Err.Code == proto.Invalid {
			return ans, usageError{ans.Err}
		}
		return ans, ans.Err
	}
	return ans, err
}
