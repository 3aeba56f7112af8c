// Command ocs-agent runs one node: it drives the node's optics, protects its
// rings and reports to a planner.
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

// version is set by the linker.
var version = "unknown"

const usage = `ocs-agent drives the optics of one node.

  run         run the agent (default: on a simulated board)
  status      what the running agent says of itself
  metrics     the running agent's measures, for a monitoring system
  calibrate   calibrate bundles that carry nothing
  path set    put a bundle that carries nothing on a path by hand
  port        hold a port of a circuit switch off, or let it go
  host        tell the agent that the host's GPUs are gone, or back
  selftest    calibrate and switch a simulated board, print the ledger; -bus-soak loads a real one
  bringup     look at every chip, heater, laser and fibre of a board; -html writes a page
  board       check a board file, or show what it says
  peek, poke  read or write one register of a chip, within its limits
  dump-module write the memory of a CMIS module to a file that public tools read
  record      write what happens on the buses to a file
  replay      let this program live through a recording again, and compare
  release     let devices out of quarantine
  config      print the effective configuration; -doc lists every key
  version     print the version

ocs-agent VERB -h explains a verb. Exit: 0 done, 1 failed, 2 wrong usage.
`

var verbs = map[string]func(ctx context.Context, args []string) error{
	"run":         run,
	"status":      status,
	"metrics":     metrics,
	"calibrate":   calibrate,
	"path":        path,
	"host":        host,
	"port":        port,
	"selftest":    selftest,
	"bringup":     bringup,
	"board":       boardCommand,
	"peek":        peek,
	"poke":        poke,
	"dump-module": dumpModule,
	"record":      recordCommand,
	"replay":      replayCommand,
	"release":     release,
	"config":      func(_ context.Context, args []string) error { return configCommand(args) },
	"version":     func(context.Context, []string) error { fmt.Println(version); return nil },
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(start(ctx, os.Args[1:]))
}

func start(ctx context.Context, args []string) int {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		return 2
	}
	if args[0] == "help" || args[0] == "-h" || args[0] == "-help" || args[0] == "--help" {
		fmt.Print(usage)
		return 0
	}
	verb, ok := verbs[args[0]]
	if !ok {
		fmt.Fprintf(os.Stderr, "ocs-agent: unknown verb %q\n\n%s", args[0], usage)
		return 2
	}
	err := verb(ctx, args[1:])
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, new(usageError)):
		fmt.Fprintln(os.Stderr, "ocs-agent:", err)
		return 2
	}
	fmt.Fprintln(os.Stderr, "ocs-agent:", err)
	return 1
}
