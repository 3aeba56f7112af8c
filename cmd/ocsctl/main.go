// Command ocsctl asks a running planner, and writes fabric descriptions.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// version is set by the linker.
var version = "unknown"

const usage = `ocsctl asks the planner of a fabric, and prepares its input.

  node list             every node: online, mode, ring, generation
  node show NODE        one node with its bundles, sides and alarms
  ring list             every ring: members, state, links confirmed by light
  ring show RING        one ring
  why NODE[/BUNDLE]     what led to the state of a node or bundle, and what holds now
  clear NODE            forget what keeps a node or switch out of plans: a quarantine,
                        a refusal, an answer that did not come
  drain|undrain NODE    take a node out of its ring, or let it in again; -dry-run
  switch REQUEST NODE SIDE [PEER|loopback]
                        lockout, forced, manual or clear: hold or move a side
  circuit list|show JOB|apply FILE|plan FILE
                        jobs between pods and the circuits that carry them
  watch                 events, births and deaths as they happen
  fabric new            write a fabric description with the default wiring
  plan VERB             plan offline: ring, orchestrate, wiring, isolate,
                        diff, explain
  version               print the version

Every command takes -json; those that ask take -broker, -fabric and -timeout.
ocsctl COMMAND -h explains one. Exit: 0 done, 1 failed, 2 wrong usage.

  ocsctl ring list -json
`

// command is one verb: it reads its own arguments and writes to out.
type command func(ctx context.Context, args []string, out io.Writer) error

var nouns = map[string]command{
	"node": node, "ring": ringNoun, "why": why, "watch": watch, "clear": clearNode, "drain": drain, "undrain": undrain, "switch": switchSide, "circuit": circuit, "fabric": fabricNoun, "plan": plan,
	"version": func(_ context.Context, _ []string, out io.Writer) error {
		_, err := fmt.Fprintln(out, version)
		return err
	},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, out, errs io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(errs, usage)
		return 2
	}
	if slices.Contains([]string{"help", "-h", "-help", "--help"}, args[0]) {
		fmt.Fprint(out, usage)
		return 0
	}
	noun, ok := nouns[args[0]]
	if !ok {
		return fail(wrongUsage("command", "one of those that ocsctl -h lists", "unknown command %q", args[0]), args, out, errs)
	}
	return fail(noun(ctx, args[1:], out), args, out, errs)
}
