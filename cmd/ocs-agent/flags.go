package main

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"

	"ringlight/agent"
	"ringlight/cmd/cli"
)

// usagef is a command line or configuration that is not acceptable: nothing was
// attempted.
func usagef(format string, args ...any) error { return cli.AsUsage(fmt.Errorf(format, args...)) }

// common are the flags that every verb has.
type common struct {
	fs     *flag.FlagSet
	text   string // what the verb is for, and an example
	config string
	state  string
	board  string
	sim    bool
	json   bool
}

// newFlags makes the flags of a verb; what it is for and an example are its help.
func newFlags(verb, what, example string) (*flag.FlagSet, *common) {
	name, _, _ := strings.Cut(verb, " ")
	fs := cli.NewFlags(name)
	c := &common{fs: fs}
	fs.StringVar(&c.config, "config", "", "configuration `FILE`, JSON; - is stdin")
	fs.StringVar(&c.state, "state", "", "`FOLDER` of journal, calibrations and socket; overrides the configuration")
	fs.StringVar(&c.board, "board", "", "board `FILE`; overrides board.file of the configuration")
	fs.BoolVar(&c.sim, "sim", false, "a simulated board; overrides board.kind of the configuration")
	fs.BoolVar(&c.json, "json", false, "print JSON")
	c.text = strings.ToUpper(what[:1]) + what[1:] + ".\n\n  " + strings.ReplaceAll(example, "\n", "\n  ")
	return fs, c
}

// none reads flags where no word may stand.
func (c *common) none(args []string) error {
	_, err := c.words(args, 0)
	return err
}

// words reads flags that may stand before or after at most so many words.
func (c *common) words(args []string, most int) ([]string, error) {
	words, err := cli.Parse(c.fs, args, c.text)
	if err == nil && len(words) > most {
		err = usagef("%s: %q is one word too many; -h explains", c.fs.Name(), words[most])
	}
	return words, err
}

// read is the configuration with what the flags say in its place, not yet looked
// through.
func (c *common) read() (Config, error) {
	cfg, err := readConfig(c.config)
	if err != nil {
		return cfg, err
	}
	cfg.State, cfg.Board.File = cmp.Or(c.state, cfg.State), cmp.Or(c.board, cfg.Board.File)
	if c.sim {
		cfg.Board.Kind = "sim"
	}
	cfg.Board.settle()
	return cfg, cfg.Board.readBoard()
}

// alone is the configuration of a verb that takes no words.
func (c *common) alone(args []string) (Config, error) {
	if err := c.none(args); err != nil {
		return Config{}, err
	}
	return c.load()
}

// load is the effective configuration.
func (c *common) load() (Config, error) {
	cfg, err := c.read()
	if err == nil {
		err = cfg.Validate()
	}
	return cfg, cli.AsUsage(err)
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

// printJSON writes an answer in lines: configurations and status are read by people, too.
func printJSON(v any) error {
	enc := json.NewEncoder(os.Stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// answer prints one as JSON, or for people.
func answer(asJSON bool, v any, text func()) error {
	if asJSON {
		return printJSON(v)
	}
	text()
	return nil
}

// answered turns a refusal of the agent into an error.
func answered(ans *agent.Answer, err error) (*agent.Answer, error) {
	if err == nil && ans.Err != nil {
		return ans, ans.Err
	}
	return ans, err
}
