// Command ocs-planner plans the rings of a fabric and follows their light.
package main

import (
	"ringlight/cmd/cli"
)

// version is set by the build.
var version = "unknown"

func program() *cli.Program {
	return &cli.Program{Name: "ocs-planner", Version: version,
		Short: "plans the rings and jobs of a fabric, and follows their light",
		Commands: []cli.Command{
			{Name: "run", Short: "plan a fabric", Run: runPlanner},
			{Name: "config", Short: "print the effective configuration; -doc lists every key", Run: configCommand},
			{Name: "store", Forms: []string{"export [FILE]", "import [FILE]", "copy FROM TO", "check", "audit", "adopt"}, Short: "copy a store, or say what it holds", Run: storeCommand},
		}}
}

func main() { program().Main() }
