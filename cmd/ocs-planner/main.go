// Command ocs-planner plans the rings of a fabric and follows their light.
package main

import (
	"errors"

	"ringlight/cmd/cli"
	"ringlight/planner/fabric"
)

// version is set by the build.
var version = "unknown"

func program() *cli.Program {
	return &cli.Program{Name: "ocs-planner", Version: version, Refused: refused,
		Short: "plans the rings and jobs of a fabric, and follows their light",
		Commands: []cli.Command{
			{Name: "run", Short: "plan a fabric", Run: runPlanner},
			{Name: "config", Short: "print the effective configuration; -doc lists every key", Run: configCommand},
			{Name: "store", Forms: []string{"export [FILE]", "import [FILE]", "check"}, Short: "copy a store that no planner has open, or say what it holds", Run: storeCommand},
		}}
}

// refused finds field and limit in what package fabric refuses.
func refused(err error) (field, limit string, found bool) {
	var fab *fabric.Error
	if found = errors.As(err, &fab); found {
		field, limit = fab.Field, fab.Limit
	}
	return field, limit, found
}

func main() { program().Main() }
