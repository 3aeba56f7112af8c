package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"ringlight/cmd/cli"
	"ringlight/planner/server"
)

// storeCommand looks at a store that no planner has open, or copies it.
func storeCommand(_ context.Context, args []string, t cli.Terminal) error {
	fs := cli.NewFlags("ocs-planner store")
	state := fs.String("state", "./ocs-planner.db", "`file` of the store; import makes it")
	asJSON := fs.Bool("json", false, "print JSON")
	words, err := cli.Parse(fs, args, `export writes what the store holds as lines of JSON, to stdout without a FILE;
import makes a new store of that, check says what a store holds. A copy has
the same sha256. A planner that runs has its store to itself: stop it first,
no light depends on it.

example: ocs-planner store export -state planner.db backup.jsonl`)
	if err != nil {
		return err
	}
	if len(words) == 0 || len(words) > 2 || words[0] == "check" && len(words) > 1 {
		return cli.Usage("store", "export [FILE], import [FILE] or check", "%d words", len(words))
	}
	file := "-"
	if len(words) == 2 {
		file = words[1]
	}
	head, err := store(words[0], file, *state, t)
	switch {
	case err != nil || words[0] == "export" && file == "-":
		return err
	case *asJSON:
		return cli.PrintJSON(t.Out, head)
	}
	_, err = fmt.Fprintf(t.Out, "fabric %s, last term %d, %d records\nsha256 %s\n", head.Fabric, head.Term, head.Records, head.SHA256)
	return err
}

func store(verb, file, state string, t cli.Terminal) (server.StoreHead, error) {
	switch verb {
	case "check":
		return server.CheckStore(state)
	case "export":
		if file == "-" {
			return server.ExportStore(state, t.Out)
		}
		out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return server.StoreHead{}, cli.Usage("export", "a file that is not there yet", "%w", err)
		}
		head, err := server.ExportStore(state, out)
		if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
			_ = os.Remove(file)
		}
		return head, err
	case "import":
		in := t.In
		if file != "-" {
			f, err := os.Open(file)
			if err != nil {
				return server.StoreHead{}, cli.Usage("import", "", "%w", err)
			}
			defer f.Close()
			in = f
		}
		return server.ImportStore(in, state)
	}
	return server.StoreHead{}, cli.Usage("store", "export, import or check", "%q", verb)
}
