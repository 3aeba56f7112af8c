// Command ocs-sim runs Ringlight on simulated boards.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes of all commands.
const (
	exitDone   = 0
	exitFailed = 1 // attempted and failed
	exitUsage  = 2 // command line or input not acceptable, nothing attempted
)

// usageError marks what was not acceptable.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

var nouns = []struct {
	name, what string
	run        func(ctx context.Context, args []string) error
}{
	{"demo", "broker, planner and a fabric of simulated nodes through a fault trace", demo},
	{"agents", "simulated nodes in real time against a broker", agents},
	{"fleet", "agents and planner on one virtual clock under faults, checked", runFleet},
	{"board", "one simulated board behind a unix socket", board},
	{"procs", "broker, planner, boards and agents, each a process; kills them and judges by the boards' record", procs},
	{"core", "broker, planner and agents of simulated MEMS switches while jobs come and go", core},
	{"hostile", "a stranger at the broker of a fabric: forged, mutated and repeated messages, floods, held connections", runHostile},
	{"study", "the paper's large-scale experiments from running code", studyNoun},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:]))
}

func run(ctx context.Context, args []string) int {
	err := dispatch(ctx, args)
	var usage usageError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return exitDone
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "ocs-sim: interrupted; what was under way is not finished")
		return exitFailed
	case errors.As(err, &usage):
		fmt.Fprintln(os.Stderr, "ocs-sim:", err)
		return exitUsage
	}
	fmt.Fprintln(os.Stderr, "ocs-sim:", err)
	return exitFailed
}

func dispatch(ctx context.Context, args []string) error {
	if len(args) > 0 {
		for _, n := range nouns {
			if n.name == args[0] {
				return n.run(ctx, args[1:])
			}
		}
	}
	list := ""
	for _, n := range nouns {
		list += fmt.Sprintf("\n  ocs-sim %-7s %s", n.name, n.what)
	}
	if len(args) > 0 && (args[0] == "-h" || args[0] == "-help" || args[0] == "help") {
		fmt.Println("usage:" + list)
		return nil
	}
	return usagef("usage:%s", list)
}
