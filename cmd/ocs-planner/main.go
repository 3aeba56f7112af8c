// Command ocs-planner plans the rings of a fabric and follows their light.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// version is set by the build.
var version = "unknown"

// Exit codes of all commands.
const (
	exitDone   = 0
	exitFailed = 1 // attempted and failed
	exitUsage  = 2 // command line or input not acceptable, nothing attempted
)

// terminal is what a command may touch.
type terminal struct {
	in       io.Reader
	out, err io.Writer
}

// usageError marks what was not acceptable.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], terminal{os.Stdin, os.Stdout, os.Stderr}))
}

func run(ctx context.Context, args []string, t terminal) int {
	err := dispatch(ctx, args, t)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return exitDone
	}
	fmt.Fprintln(t.err, "ocs-planner:", err)
	var usage usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailed
}

func dispatch(ctx context.Context, args []string, t terminal) error {
	const usage = "usage:\n  ocs-planner run      plan a fabric (ocs-planner run -h)\n  ocs-planner version"
	if len(args) == 0 {
		return usagef("%s", usage)
	}
	switch args[0] {
	case "run":
		return runPlanner(ctx, args[1:], t)
	case "version":
		fmt.Fprintln(t.out, version)
		return nil
	case "-h", "-help", "--help", "help":
		fmt.Fprintln(t.out, usage)
		return nil
	}
	return usagef("unknown command %q\n%s", args[0], usage)
}
