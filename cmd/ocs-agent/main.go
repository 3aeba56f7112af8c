// Command ocs-agent runs one node: it drives the node's optics, protects its
// rings and reports to a planner.
package main

import (
	"context"

	"ringlight/cmd/cli"
)

// version is set by the linker.
var version = "unknown"

// row makes a row of the table of commands.
func row(name, short string, run func(ctx context.Context, args []string) error, forms ...string) cli.Command {
	return cli.Command{Name: name, Forms: forms, Short: short,
		Run: func(ctx context.Context, args []string, _ cli.Terminal) error { return run(ctx, args) }}
}

func program() *cli.Program {
	return &cli.Program{Name: "ocs-agent", Version: version, Short: "drives the optics of one node, protects its rings and reports to a planner",
		Commands: []cli.Command{
			row("run", "run the agent", run),
			row("status", "what the running agent says of itself", status),
			row("pm", "what the running agent has recorded, by quarters of an hour or days", pm, "[PLACE]"),
			row("metrics", "the running agent's measures, for a monitoring system", metrics),
			row("calibrate", "calibrate bundles that carry nothing", calibrate),
			row("path", "put a bundle that carries nothing on a path by hand", path, "set BUNDLE PATH"),
			row("port", "hold a port of a circuit switch off, or let it go", port, "hold PORT", "free PORT"),
			row("host", "tell the agent that the host's GPUs are gone, or back", host, "fault", "ok"),
			row("selftest", "calibrate and switch a simulated board; -bus-soak loads a real one", selftest),
			row("bringup", "look at every chip, heater, laser and fibre of a board", bringup),
			row("board", "check a board file, or show what it says", boardCommand, "check FILE", "show FILE"),
			row("peek", "read one register of a chip", peek, "BUNDLE/MODULE/CHIP/REGISTER"),
			row("poke", "write one register of a chip, within its limits", poke, "BUNDLE/MODULE/CHIP/REGISTER VALUE"),
			row("dump-module", "write the memory of a CMIS module to a file that public tools read", dumpModule),
			row("record", "write what happens on the buses to a file", recordCommand),
			row("replay", "let this program live through a recording again, and compare", replayCommand, "FILE"),
			row("restart-when-allowed", "start the running agent anew, when a planner gives leave", restartWhenAllowed),
			row("release", "let devices out of quarantine", release),
			row("config", "print the effective configuration; -doc lists every key", func(_ context.Context, args []string) error { return configCommand(args) }),
		}}
}

func main() { program().Main() }
